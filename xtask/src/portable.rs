//! Building the core for targets that have no standard library.
//!
//! Where the target's own libraries are installed, plain cargo does it. On Debian the packages `rustc-web` and
//! `rust-web-src` hold a compiler with the source of the standard library, from which cargo builds what is needed. Nothing
//! here asks rustup to download.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, output_of, program, succeeds};
use crate::step::debian_packages;

/// A target without an operating system: a microcontroller with hardware floats, one without any, and WebAssembly.
pub const TARGETS: [&str; 3] = ["thumbv7em-none-eabihf", "riscv32imac-unknown-none-elf", "wasm32-unknown-unknown"];

/// Debian's compiler.
pub const DEBIAN_COMPILER: &str = "/usr/bin/rustc";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library";
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// How a target can be built on this machine.
pub enum Toolchain {
    /// Its libraries are installed beside the compiler in use.
    Installed,
    /// Debian's compiler builds them from source.
    DebianSource,
    /// Not at all; says what is missing.
    Missing(String),
}

/// Find how `target` can be built, installing Debian's packages where that is allowed (unattended, as root).
pub fn toolchain(target: &str) -> Toolchain {
    if installed(target) {
        return Toolchain::Installed;
    }
    match source_toolchain() {
        Toolchain::Missing(_) if !Path::new("/etc/debian_version").exists() => {
            Toolchain::Missing(format!("rustup target add {target}"))
        }
        toolchain => toolchain,
    }
}

/// Debian's compiler with the source of its standard library, installed where that is allowed.
pub fn source_toolchain() -> Toolchain {
    match debian_packages(&DEBIAN_PACKAGES, &[DEBIAN_COMPILER, DEBIAN_SOURCE]) {
        Ok(()) => Toolchain::DebianSource,
        Err(how) => Toolchain::Missing(how),
    }
}

/// Build the core for `target`.
pub fn build_core(target: &str, toolchain: &Toolchain) -> Result<bool, String> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--package", "plumbline-core", "--target", target]);
    if let Toolchain::DebianSource = toolchain {
        debian_source(&mut command, "core");
    }
    succeeds(&mut command)
}

/// Let Debian's compiler build `libraries` of the standard library (`core`, or `std,panic_abort`) for the command's target.
pub fn debian_source(command: &mut Command, libraries: &str) {
    command
        .arg(format!("-Zbuild-std={libraries}"))
        .args(["--target-dir", "target/debian-source"])
        .env("RUSTC", DEBIAN_COMPILER)
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS");
}

/// The linker that comes with the compiler in use, where it does: what Debian's compiler lacks.
pub fn bundled_linker() -> Option<PathBuf> {
    let host = output_of(program("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(sysroot()?.join("lib/rustlib").join(host).join("bin/rust-lld")).filter(|linker| linker.exists())
}

fn installed(target: &str) -> bool {
    sysroot().is_some_and(|sysroot| sysroot.join("lib/rustlib").join(target).join("lib").exists())
}

fn sysroot() -> Option<PathBuf> {
    output_of(program("rustc").args(["--print", "sysroot"])).map(PathBuf::from)
}

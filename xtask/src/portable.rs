//! Building the core for targets that have no standard library.
//!
//! Where the target's own libraries are installed, plain cargo does it. On Debian the packages `rustc-web` and
//! `rust-web-src` hold a compiler with the source of the standard library, from which cargo builds what is needed. Nothing
//! here asks rustup to download.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, output_of, program, succeeds, unattended};

/// A target without an operating system: a microcontroller with hardware floats, one without any, and WebAssembly.
pub const TARGETS: [&str; 3] = ["thumbv7em-none-eabihf", "riscv32imac-unknown-none-elf", "wasm32-unknown-unknown"];

const DEBIAN_COMPILER: &str = "/usr/bin/rustc";
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
    if debian_source_present() || (unattended() && install_debian_source()) {
        return Toolchain::DebianSource;
    }
    Toolchain::Missing(if Path::new("/etc/debian_version").exists() {
        format!("apt-get install -y --no-install-recommends {}", DEBIAN_PACKAGES.join(" "))
    } else {
        format!("rustup target add {target}")
    })
}

/// Build the core for `target`.
pub fn build_core(target: &str, toolchain: &Toolchain) -> Result<bool, String> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--package", "plumbline-core", "--target", target]);
    if let Toolchain::DebianSource = toolchain {
        debian_source(&mut command);
    }
    succeeds(&mut command)
}

fn debian_source(command: &mut Command) {
    command
        .args(["-Zbuild-std=core", "--target-dir", "target/debian-source"])
        .env("RUSTC", DEBIAN_COMPILER)
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS");
}

fn installed(target: &str) -> bool {
    let sysroot = output_of(program("rustc").args(["--print", "sysroot"])).map(PathBuf::from);
    sysroot.is_some_and(|sysroot| sysroot.join("lib/rustlib").join(target).join("lib").exists())
}

fn debian_source_present() -> bool {
    Path::new(DEBIAN_SOURCE).exists() && Path::new(DEBIAN_COMPILER).exists()
}

fn install_debian_source() -> bool {
    let apt = |arguments: &[&str]| {
        succeeds(program("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive")).unwrap_or(false)
    };
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(DEBIAN_PACKAGES);
    Path::new("/etc/debian_version").exists() && apt(&["update", "-qq"]) && apt(&install) && debian_source_present()
}

//! From the crate to a WebAssembly module with its JavaScript side.

use std::fs;
use std::path::{Path, PathBuf};

use crate::portable::{self, Toolchain};
use crate::process::{cargo, root, succeeds};

/// The target.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The two builds: with and without vector instructions. Their bits are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// WebAssembly's first version, which every host has.
    Scalar,
    /// With 128-bit vectors.
    Simd128,
}

impl Instructions {
    /// Both.
    pub const ALL: [Instructions; 2] = [Instructions::Scalar, Instructions::Simd128];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Instructions::Scalar => "scalar",
            Instructions::Simd128 => "simd128",
        }
    }

    /// For the compiler: fewer functions are inlined than the optimisation for size would (a module is downloaded).
    const fn flags(self) -> &'static str {
        match self {
            Instructions::Scalar => "-Cllvm-args=-inline-threshold=25",
            Instructions::Simd128 => "-Cllvm-args=-inline-threshold=25 -Ctarget-feature=+simd128",
        }
    }
}

/// A module, ready to be shipped.
pub struct Module {
    /// The module itself.
    pub wasm: Vec<u8>,
    /// Its JavaScript side.
    pub bindings: String,
}

/// Build the crate with these families (none named: all) and further features, and write its JavaScript side.
pub fn build(instructions: Instructions, families: &[String], further: &[&str]) -> Result<Module, String> {
    let built = compile(instructions, families, further)?;
    let folder = root().join("target/wasm/bound").join(instructions.name());
    bind(&built, &folder)?;
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let bindings = String::from_utf8(read(&folder.join("plumbline_wasm.js"))?).map_err(|error| error.to_string())?;
    Ok(Module { wasm: read(&folder.join("plumbline_wasm_bg.wasm"))?, bindings })
}

fn compile(instructions: Instructions, families: &[String], further: &[&str]) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--profile", "wasm", "--package", "plumbline-wasm", "--target", TARGET]);
    if !families.is_empty() {
        command.arg("--no-default-features").arg("--features").arg(families.join(","));
    }
    for feature in further {
        command.args(["--features", feature]);
    }
    let mut flags = instructions.flags().to_owned();
    let folder = match portable::toolchain(TARGET) {
        Toolchain::Installed => "target",
        Toolchain::DebianSource => {
            portable::debian_source(&mut command, "std,panic_abort");
            // The standard library is compiled here as well, so that it can do without the texts of panics: some 3 KiB packed.
            flags.push_str(" -Zunstable-options -Cpanic=immediate-abort");
            "target/debian-source"
        }
        Toolchain::Missing(how) => return Err(format!("{TARGET} cannot be built here; to build it: {how}")),
    };
    command.env_remove("RUSTFLAGS").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    if let Some(linker) = portable::bundled_linker() {
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    if !succeeds(&mut command)? {
        return Err(format!("the {} module does not build", instructions.name()));
    }
    Ok(root().join(folder).join(TARGET).join("wasm/plumbline_wasm.wasm"))
}

fn bind(module: &Path, folder: &Path) -> Result<(), String> {
    let mut command = cargo();
    command
        .args(["run", "--quiet", "--locked", "--manifest-path", "wasm/bindgen/Cargo.toml"])
        .args(["--target-dir", "target/wasm/bindgen", "--"])
        .arg(module)
        .arg(folder);
    if succeeds(&mut command)? { Ok(()) } else { Err("the module's JavaScript side cannot be written".into()) }
}

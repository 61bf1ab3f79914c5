//! What the tests show of the package.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::node;
use crate::portable::{self, Toolchain};
use crate::process::{cargo, output_of, program, root, succeeds};
use crate::step::{Outcome, Step};

use super::module::TARGET;
use super::package::{self, FOLDER};
use super::size;

/// The steps of `cargo xtask test`, in an order in which each finds what it needs.
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("npm package", || when_possible(build)),
        Step::new("npm package, one family alone", || when_possible(one_family)),
        Step::new("npm package, installed", || when_possible(installed)),
        Step::new("golden values and bits in Node", || when_possible(golden)),
    ]
}

/// Run a check where the package can be built and used; otherwise say what is missing.
fn when_possible(check: fn() -> Result<bool, String>) -> Result<Outcome, String> {
    if let Toolchain::Missing(how) = portable::toolchain(TARGET) {
        return Ok(Outcome::Skipped(how));
    }
    match node::available() {
        Ok(()) => Ok(Outcome::of(check()?)),
        Err(how) => Ok(Outcome::Skipped(how)),
    }
}

/// The package is built, and its modules keep to their sizes.
fn build() -> Result<bool, String> {
    package::build(&[])?;
    size::within_budget(&[])
}

/// One family alone keeps to its size: one that is composed of nothing else, as a sample of all.
fn one_family() -> Result<bool, String> {
    size::families_within_budget(&["kl"])
}

/// Packed and installed into an empty project, where a TypeScript consumer compiles and the tests run.
fn installed() -> Result<bool, String> {
    let project = root().join("target/npm/consumer");
    // Nothing of an earlier run may stand in for what is missing now.
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    let source = root().join("wasm/test");
    for entry in fs::read_dir(&source).map_err(|error| format!("{}: {error}", source.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default();
        fs::copy(&path, project.join(name)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let packed = pack(&project)?;
    let within = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(name);
        command.current_dir(&project).args(arguments);
        succeeds(&mut command)
    };
    Ok(within("npm", &["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"])?
        && within("npm", &["install", "--silent", "--no-audit", "--no-fund", "--no-save", &packed])?
        && within("node", &["node_modules/typescript/bin/tsc", "--project", "."])?
        && within("node", &["--test", "--test-reporter=dot", "package.test.mjs"])?)
}

/// Pack the package into a folder; the name of the file.
fn pack(folder: &Path) -> Result<String, String> {
    let mut command = program("npm");
    command.current_dir(root().join(FOLDER)).args(["pack", "--silent", "--pack-destination"]).arg(folder);
    output_of(&mut command).map(|name| format!("./{name}")).ok_or_else(|| "npm pack fails on the package".into())
}

/// All golden values through both modules, and their bits beside the committed table, which is core's.
fn golden() -> Result<bool, String> {
    let mut holds = true;
    for backend in ["wasm", "wasm-scalar"] {
        for task in [&["verify"][..], &["bits", "--set", "golden"]] {
            let mut command = cargo();
            command
                .args(["run", "--quiet", "--package", "plumbline-conformance", "--bin", "plumbline", "--"])
                .args(task)
                .args(["--backend", backend]);
            holds &= succeeds(&mut command)?;
        }
    }
    Ok(holds)
}

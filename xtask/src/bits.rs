//! The same bits from differently built code: this workspace's unoptimised build, and the optimised C library.

use crate::process::{cargo, root, succeeds};
use crate::step::{Outcome, Step};

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![Step::new("bits: unoptimised build", || plumbline(&[])), Step::new("bits: optimised C library", c_library)]
}

fn c_library() -> Result<Outcome, String> {
    if !succeeds(cargo().args(["build", "--quiet", "--release", "--package", "plumbline-capi"]))? {
        return Ok(Outcome::Failed);
    }
    plumbline(&["--backend", "c"])
}

/// Compare with the committed table; the rows that differ are printed.
fn plumbline(arguments: &[&str]) -> Result<Outcome, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "plumbline-conformance", "--", "bits"]).args(arguments);
    let library = root().join("target/release").join("libplumbline.so");
    let output = command.env("PLUMBLINE_LIBRARY", library).output().map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told = |line: &&str| {
        ["DIFFERS", "other cases", "not in the table", "broke down"].iter().any(|words| line.contains(words))
    };
    text.lines().filter(told).chain(text.lines().last()).for_each(|line| println!("{line}"));
    print!("{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        println!(
            "where the change is meant: plumbline bits --table fixtures/bits.txt --update, and a line in CHANGELOG.md"
        );
    }
    Ok(Outcome::of(output.status.success()))
}

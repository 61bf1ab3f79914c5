//! The same bits from differently built code: this workspace's unoptimised build, the optimised C library, core by the
//! vector instructions of this machine's processor, and core on threads.

use plumbline_simd::Level;

use crate::process::{cargo, root, succeeds};
use crate::step::{Outcome, Step};

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("bits: unoptimised build", || plumbline(Build::Unoptimised, "core")),
        Step::new("bits: optimised C library", c_library),
        Step::new("bits: vector instructions", levels),
        Step::new("bits: threads", || all_of(Build::Unoptimised, &["threads-1", "threads-2", "threads-3-rows"])),
    ]
}

fn c_library() -> Result<Outcome, String> {
    if !succeeds(cargo().args(["build", "--quiet", "--release", "--package", "plumbline-capi"]))? {
        return Ok(Outcome::Failed);
    }
    plumbline(Build::Unoptimised, "c")
}

/// Every level that the processor has. Those that it lacks are named and counted: no machine of one kind has all.
fn levels() -> Result<Outcome, String> {
    let (present, lacking): (Vec<&str>, Vec<&str>) =
        Level::NAMES.into_iter().partition(|name| Level::from_name(name).is_some());
    // Without optimisation there are no vectors.
    let outcome = all_of(Build::Optimised, &present)?;
    println!("{} levels compared, {} skipped", present.len(), lacking.len());
    lacking.iter().for_each(|name| println!("skipped: {name}, which this processor lacks"));
    Ok(outcome)
}

fn all_of(build: Build, backends: &[&str]) -> Result<Outcome, String> {
    let mut equal = true;
    for backend in backends {
        equal &= matches!(plumbline(build, backend)?, Outcome::Passed);
    }
    Ok(Outcome::of(equal))
}

/// How the command is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    Unoptimised,
    Optimised,
}

/// Compare a backend with the committed table; the rows that differ are printed.
fn plumbline(build: Build, backend: &str) -> Result<Outcome, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "plumbline-conformance"]);
    if build == Build::Optimised {
        command.arg("--release");
    }
    command.args(["--", "bits", "--backend", backend]);
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

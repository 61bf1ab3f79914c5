//! `cargo xtask test`: everything that must hold before a change lands.

use std::time::Instant;

use crate::adapters;
use crate::bits;
use crate::capi;
use crate::features;
use crate::firmware;
use crate::gpu;
use crate::instructions;
use crate::portable::{self, Toolchain};
use crate::process::unattended;
use crate::python;
use crate::site;
use crate::step::{Outcome, Step};
use crate::wasm;

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the steps whose name contains this word.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

/// Run the steps, all of them whatever fails, and sum up. True where none failed.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut report = Vec::new();
    for step in steps() {
        if arguments.only.as_ref().is_some_and(|word| !step.name.contains(word.as_str())) {
            continue;
        }
        println!("==> {}", step.name);
        let start = Instant::now();
        let outcome = match (step.run)()? {
            // Unattended, a check that cannot run is a check that fails: nobody reads that it was skipped.
            Outcome::Skipped(missing) if unattended() => {
                println!("missing: {missing}");
                Outcome::Failed
            }
            outcome => outcome,
        };
        report.push((step.name, outcome, start.elapsed()));
    }
    println!("==> summary");
    for (name, outcome, time) in &report {
        let word = match outcome {
            Outcome::Passed => "ok".into(),
            Outcome::Failed => "FAILED".into(),
            Outcome::Skipped(missing) => format!("skipped; to run it: {missing}"),
        };
        println!("{name:<42} {:>6.1} s  {word}", time.as_secs_f64());
    }
    let failed = report.iter().filter(|(_, outcome, _)| matches!(outcome, Outcome::Failed)).count();
    let skipped = report.iter().filter(|(_, outcome, _)| matches!(outcome, Outcome::Skipped(_))).count();
    println!("{} steps, {failed} failed, {skipped} skipped", report.len());
    if report.is_empty() {
        return Err("no step has that word in its name".into());
    }
    Ok(failed == 0)
}

/// The quick checks first, the tests last, so that their closing lines are near the end.
fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", |command| command.args(["fmt", "--all", "--", "--check"])),
        Step::cargo("lints", |command| {
            command.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        Step::cargo("documentation", |command| {
            command.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")
        }),
    ];
    for target in portable::TARGETS {
        steps.push(Step::new(format!("no_std build for {target}"), move || no_std_build(target)));
    }
    steps.extend(features::steps());
    steps.extend(capi::steps());
    steps.extend(wasm::steps());
    steps.extend(bits::steps());
    steps.extend(instructions::steps());
    steps.extend(firmware::steps());
    steps.extend(site::steps());
    steps.extend(gpu::steps());
    // Only libraries have documentation tests; without `--doc` cargo would leave out none of the other tests.
    steps.push(Step::cargo("documentation tests", |command| command.args(["test", "--quiet", "--workspace", "--doc"])));
    steps.push(Step::cargo("tests", |command| command.args(["test", "--quiet", "--workspace", "--all-targets"])));
    steps.extend(adapters::steps());
    steps.extend(python::steps());
    steps
}

fn no_std_build(target: &str) -> Result<Outcome, String> {
    match portable::toolchain(target) {
        Toolchain::Missing(how) => Ok(Outcome::Skipped(how)),
        toolchain => Ok(Outcome::of(portable::build_core(target, &toolchain)?)),
    }
}

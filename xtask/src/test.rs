//! `cargo xtask test`: everything that must hold before a change lands.

use std::process::Command;
use std::time::Instant;

use crate::portable::{self, Toolchain};
use crate::process::{cargo, succeeds, unattended};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the steps whose name contains this word.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

enum Outcome {
    Passed,
    Failed,
    /// Says what is missing on this machine.
    Skipped(String),
}

struct Step {
    name: String,
    run: Box<dyn Fn() -> Result<Outcome, String>>,
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
        cargo_step("format", |command| command.args(["fmt", "--all", "--", "--check"])),
        cargo_step("lints", |command| {
            command.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        cargo_step("documentation", |command| {
            command.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")
        }),
    ];
    for target in portable::TARGETS {
        steps.push(Step { name: format!("no_std build for {target}"), run: Box::new(move || no_std_build(target)) });
    }
    // Only libraries have documentation tests; without `--doc` cargo would leave out none of the other tests.
    steps.push(cargo_step("documentation tests", |command| command.args(["test", "--quiet", "--workspace", "--doc"])));
    steps.push(cargo_step("tests", |command| command.args(["test", "--quiet", "--workspace", "--all-targets"])));
    steps
}

fn cargo_step(name: &str, arguments: impl Fn(&mut Command) -> &mut Command + 'static) -> Step {
    Step {
        name: name.into(),
        run: Box::new(move || {
            let holds = succeeds(arguments(&mut cargo()))?;
            Ok(if holds { Outcome::Passed } else { Outcome::Failed })
        }),
    }
}

fn no_std_build(target: &str) -> Result<Outcome, String> {
    match portable::toolchain(target) {
        Toolchain::Missing(how) => Ok(Outcome::Skipped(how)),
        toolchain => Ok(if portable::build_core(target, &toolchain)? { Outcome::Passed } else { Outcome::Failed }),
    }
}

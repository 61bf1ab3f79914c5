//! `cargo xtask bench`: the speed of core's losses beside verl's, in an optimised build.

use std::path::PathBuf;

use crate::process::{cargo, succeeds};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A Python with torch and verl; without it only core and the machine's limits are measured.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// What is measured: ppo, gae, logits, sweep, wasm.
    #[arg(default_value = "ppo")]
    subject: String,
    /// Write the result to its page of the book (ppo: benchmarks.md, others: benchmark-SUBJECT.md).
    #[arg(long)]
    write: bool,
    /// Further options of the benchmark: --rows N, --columns N, --rounds N.
    #[arg(last = true)]
    options: Vec<String>,
}

/// Run the benchmark; true where it ran.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "plumbline-bench", "--", &arguments.subject]);
    if let Some(python) = &arguments.python {
        command.arg("--python").arg(std::path::absolute(python).map_err(|error| error.to_string())?);
    }
    if arguments.write {
        let page = if arguments.subject == "ppo" {
            "benchmarks.md".into()
        } else {
            format!("benchmark-{}.md", arguments.subject)
        };
        command.args(["--page", &format!("docs/src/{page}")]);
    }
    succeeds(command.args(&arguments.options))
}

//! `plumbline`: the catalog of reinforcement-learning losses, and the check of implementations against it.

mod command;

use std::any::Any;
use std::process::ExitCode;

use clap::Parser;

use command::{Command, Ending};

/// A plumb line for reinforcement-learning losses: look a formula up, evaluate it, check an implementation against it.
///
/// Exit codes, everywhere: 0 all holds, 1 something does not, 2 bad usage or input, 3 what was checked broke down.
#[derive(Debug, Parser)]
#[command(name = "plumbline", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  plumbline list --family kl              what there is
  plumbline explain kl.k1                 a formula with its source, shapes, defaults and dialects
  plumbline eval kl.k1 batch.json --grad  evaluate it on your numbers
  plumbline verify                        all golden values through core";

fn main() -> ExitCode {
    // A panic is a fault of this program; it is told in one sentence, not as a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let arguments = Arguments::parse();
    let ending = std::panic::catch_unwind(|| arguments.command.run()).unwrap_or_else(|payload| {
        anstream::eprintln!("plumbline: this is a fault of plumbline itself: {}", words(payload.as_ref()));
        Ending::Broke
    });
    ending.into()
}

fn words(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref::<&str>().copied().unwrap_or("a panic without a message"),
    }
}

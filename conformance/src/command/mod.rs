//! The subcommands, one file each.

mod bits;
mod check;
mod diagnose;
mod eval;
mod explain;
mod list;
mod vectors;
mod verify;

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the operations of the catalog.
    List(list::Arguments),
    /// Explain one operation: formula, sources, inputs, parameters, outputs, dialects.
    Explain(explain::Arguments),
    /// Evaluate one operation on numbers from JSON.
    Eval(eval::Arguments),
    /// Run all golden values through a backend and compare.
    Verify(verify::Arguments),
    /// Hash the results of every operation and compare with the committed table.
    Bits(bits::Arguments),
    /// Check an implementation, run as a program, and say what it computes.
    Check(check::Arguments),
    /// Print the inputs that implementations are checked on, or prove that they tell the points of the space apart.
    Vectors(vectors::Arguments),
    /// Say from a batch and the loss that was printed for it what was computed; nothing is run.
    Diagnose(diagnose::Arguments),
}

impl Command {
    /// Do it; trouble is told on standard error.
    pub fn run(&self) -> Ending {
        let result = match self {
            Command::List(arguments) => list::run(arguments),
            Command::Explain(arguments) => explain::run(arguments),
            Command::Eval(arguments) => eval::run(arguments),
            Command::Verify(arguments) => verify::run(arguments),
            Command::Bits(arguments) => bits::run(arguments),
            Command::Check(arguments) => check::run(arguments),
            Command::Vectors(arguments) => vectors::run(arguments),
            Command::Diagnose(arguments) => diagnose::run(arguments),
        };
        result.unwrap_or_else(|trouble| {
            anstream::eprintln!("plumbline: {}", trouble.0);
            Ending::Usage
        })
    }
}

/// How a command ended: the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All holds.
    Holds,
    /// Something does not hold.
    Fails,
    /// The usage or the input is bad.
    Usage,
    /// What was checked broke down.
    Broke,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        ExitCode::from(match ending {
            Ending::Holds => 0,
            Ending::Fails => 1,
            Ending::Usage => 2,
            Ending::Broke => 3,
        })
    }
}

/// Bad usage or input, in one sentence.
#[derive(Debug)]
pub struct Trouble(pub String);

impl Trouble {
    /// From anything that can be told.
    pub fn new(message: impl Display) -> Self {
        Trouble(message.to_string())
    }
}

/// Write to standard output, in colour only where it is a terminal. That the reader went away is no error.
pub fn emit(text: &str) -> Result<(), Trouble> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Trouble(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Write one JSON object, on one line, to standard output.
pub fn emit_json(value: &serde_json::Value) -> Result<(), Trouble> {
    let text = serde_json::to_string(value).map_err(Trouble::new)?;
    emit(&(text + "\n"))
}

/// Write a file as a whole: either the new content stands there, or what stood there before.
fn replace(path: &Path, content: &[u8]) -> Result<(), Trouble> {
    let told = |error: &dyn std::fmt::Display| Trouble(format!("{} cannot be written: {error}", path.display()));
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| told(&error))?;
    file.write_all(content).map_err(|error| told(&error))?;
    file.persist(path).map_err(|error| told(&error.error))?;
    Ok(())
}

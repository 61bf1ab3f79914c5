//! `cargo xtask vectors`: pick the cases that tell apart what the cases of one seed do not, and write them down.

use std::path::Path;

use plumbline_core::catalog;
use plumbline_diagnosis::{Meaning, separations};

const TABLE: &str = "diagnosis/src/vectors/telling.txt";

/// Options of `cargo xtask vectors`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the operations whose names begin with this.
    #[arg(long, value_name = "NAME", default_value = "")]
    op: String,
}

/// Add to the table the cases that tell all pairs of points apart; true where none is missing.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if cfg!(debug_assertions) {
        return crate::process::optimised();
    }
    let operations = catalog::operations().filter(|operation| operation.id.starts_with(&arguments.op));
    let meanings: Vec<Meaning> =
        operations.map(|operation| Meaning { operation, dialect: None, settings: Vec::new() }).collect();
    let mut added = Vec::new();
    for (meaning, found) in meanings.iter().zip(separations(&meanings, 1, &|_| ())) {
        let id = meaning.operation.id;
        let found = found.map_err(|error| format!("{id}: {error}"))?;
        added.extend(found.telling.iter().map(|(seed, case)| format!("{id} {seed} {case}")));
    }
    let before = std::fs::read_to_string(TABLE).map_err(|error| format!("{TABLE}: {error}"))?;
    let mut all: Vec<&str> = before.lines().chain(added.iter().map(String::as_str)).collect();
    all.sort_unstable();
    all.dedup();
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(Path::new(TABLE), text).map_err(|error| format!("{TABLE}: {error}"))?;
    println!("{} cases are picked, {} of them new", all.len(), added.len());
    Ok(added.is_empty())
}

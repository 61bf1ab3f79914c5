//! `cargo xtask vectors`: pick the cases that tell apart what the cases of one seed do not, and write them down.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use plumbline_core::catalog;
use plumbline_core::spec::Operation;
use plumbline_diagnosis::{Meaning, separation};

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
    let operations: Vec<&'static Operation> =
        catalog::operations().filter(|operation| operation.id.starts_with(&arguments.op)).collect();
    let next = AtomicUsize::new(0);
    let lines: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(operation) = operations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let meaning = Meaning { operation, dialect: None, settings: Vec::new() };
                    match separation(&meaning, 1) {
                        Ok(found) => {
                            let (gaps, seconds) = (found.gaps.len(), start.elapsed().as_secs_f64());
                            println!("{}: {} points, {gaps} gaps, {seconds:.1} s", operation.id, found.points);
                            let own =
                                found.telling.iter().map(|(seed, case)| format!("{} {seed} {case}", operation.id));
                            lines.lock().unwrap_or_else(|lock| lock.into_inner()).extend(own);
                        }
                        Err(error) => {
                            *failed.lock().unwrap_or_else(|lock| lock.into_inner()) =
                                Some(format!("{}: {error}", operation.id));
                        }
                    }
                }
            });
        }
    });
    if let Some(failed) = failed.into_inner().unwrap_or_else(|lock| lock.into_inner()) {
        return Err(failed);
    }
    let added = lines.into_inner().unwrap_or_else(|lock| lock.into_inner());
    let before = std::fs::read_to_string(TABLE).map_err(|error| format!("{TABLE}: {error}"))?;
    let mut all: Vec<&str> = before.lines().chain(added.iter().map(String::as_str)).collect();
    all.sort_unstable();
    all.dedup();
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(Path::new(TABLE), text).map_err(|error| format!("{TABLE}: {error}"))?;
    println!("{} cases are picked, {} of them new", all.len(), added.len());
    Ok(added.is_empty())
}

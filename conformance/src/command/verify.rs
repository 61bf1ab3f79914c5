//! `plumbline verify`: all golden values through a backend.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_conformance::backend::{Backend, backends};
use plumbline_conformance::fixture;
use plumbline_conformance::verify::{findings_text, junit, table, verify};
use plumbline_evaluate::nearest::nearest;

use super::{Ending, Trouble, emit, emit_json, replace};

/// The arguments of `plumbline verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plumbline verify                              everything, a table per family
  plumbline verify --filter gspo                only what has `gspo` in its case id or operation
  plumbline verify --json | jq .failed          for programs
  plumbline verify --fixtures fixtures/golden   files on disk instead of those inside this program")]
pub struct Arguments {
    /// Which implementation of the catalog to run.
    #[arg(long, default_value = "core", value_name = "NAME")]
    backend: String,
    /// Read the golden files below this directory instead of those inside this program.
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
    /// Run only the cases that have this in their id or operation.
    #[arg(long, default_value = "", value_name = "SUBSTRING", hide_default_value = true)]
    filter: String,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Also write the result as JUnit XML to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let backend = backend_named(&arguments.backend)?;
    let files = match &arguments.fixtures {
        Some(directory) => fixture::directory(directory),
        None => fixture::embedded(),
    }
    .map_err(Trouble::new)?;
    let total: usize = files.iter().map(|file| file.cases.len()).sum();
    let bar = progress_bar(total);
    let report = verify(backend.as_ref(), &files, &arguments.filter, |_| bar.inc(1));
    bar.finish_and_clear();
    if report.cases.is_empty() {
        return Err(Trouble(match arguments.filter.as_str() {
            "" => "there is no golden case to run".to_owned(),
            filter => format!("no golden case has `{filter}` in its id or operation"),
        }));
    }
    if let Some(path) = &arguments.junit {
        replace(path, junit(&report).map_err(Trouble::new)?.as_bytes())?;
    }
    if arguments.json {
        emit_json(&report.json())?;
    } else {
        emit(&(findings_text(&report) + &table(&report)))?;
    }
    Ok(match (report.broke(), report.failed()) {
        (0, 0) => Ending::Holds,
        (0, _) => Ending::Fails,
        _ => Ending::Broke,
    })
}

/// The backend of that name, if it can run here.
pub(super) fn backend_named(name: &str) -> Result<Box<dyn Backend>, Trouble> {
    let mut all = backends();
    if let Some(place) = all.iter().position(|backend| backend.name() == name) {
        let backend = all.swap_remove(place);
        backend.ready().map_err(|lacking| Trouble(format!("the backend `{name}` cannot run: {lacking}")))?;
        return Ok(backend);
    }
    let names: Vec<&str> = all.iter().map(|backend| backend.name()).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known are {}", names.join(", ")),
    };
    Err(Trouble(format!("no backend is called `{name}`; {hint}")))
}

/// A bar on standard error where that is a terminal; elsewhere nothing.
fn progress_bar(total: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} cases, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

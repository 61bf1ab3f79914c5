//! `plumbline bits`: the results of every operation as hashes, beside the committed table.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anstyle::{AnsiColor, Style};
use clap::Args;
use plumbline_bits::Hash;
use plumbline_conformance::bits::{self, Difference, Group, Outcome, Row, Set, Table};
use plumbline_conformance::fixture;
use serde_json::json;

use super::verify::backend_named;
use super::{Ending, Trouble, emit, emit_json, replace};

/// The arguments of `plumbline bits`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plumbline bits                                the table, compared with the committed one
  plumbline bits --backend c                    the same through the C library
  plumbline bits --filter bellman --json        for programs
  plumbline bits --table fixtures/bits.txt --update   write the table anew
  plumbline bits --pack cases.bin --set golden  the cases in one file, for a target without files
  plumbline bits --compare printed.txt          what such a target printed (- for standard input)")]
pub struct Arguments {
    /// Which implementation of the catalog to run.
    #[arg(long, default_value = "core", value_name = "NAME")]
    backend: String,
    /// Only the operations that have this in their identifier.
    #[arg(long, default_value = "", value_name = "SUBSTRING", hide_default_value = true)]
    filter: String,
    /// Only this set of cases.
    #[arg(long, value_name = "SET", value_parser = ["golden", "seeded"])]
    set: Option<String>,
    /// Compare with this table instead of the one inside this program.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Write what was computed to the file that --table names, instead of comparing.
    #[arg(long, requires = "table", conflicts_with_all = ["filter", "set", "compare", "pack"])]
    update: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Write the cases to this file, in one block, and compute nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pack: Option<PathBuf>,
    /// Compute nothing; compare lines of operation, set, precision and hash.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    if let Some(path) = &arguments.compare {
        return compare(arguments, path);
    }
    let backend = backend_named(&arguments.backend)?;
    let groups = groups(arguments)?;
    if let Some(path) = &arguments.pack {
        let block = bits::pack::pack(&groups).map_err(Trouble)?;
        replace(path, &block)?;
        return Ok(Ending::Holds);
    }
    let outcomes: Vec<Outcome> = groups.iter().map(|group| bits::run(backend.as_ref(), group)).collect();
    if let (true, Some(path)) = (arguments.update, &arguments.table) {
        let rows: Vec<Row> = outcomes.iter().filter_map(|outcome| row(outcome).cloned()).collect();
        if rows.len() < outcomes.len() || rows.iter().any(|row| row.f32.is_none() || row.f64.is_none()) {
            return Err(Trouble(format!("the backend `{}` does not compute everything", arguments.backend)));
        }
        replace(path, Table::new(rows).text().as_bytes())?;
        return Ok(Ending::Holds);
    }
    let table = table(arguments)?;
    let judged: Vec<Judged<'_>> = groups
        .iter()
        .zip(&outcomes)
        .map(|(group, outcome)| Judged {
            group,
            outcome,
            difference: row(outcome).and_then(|row| table.difference(row)),
        })
        .collect();
    if arguments.json {
        emit_json(&report_json(arguments, &judged))?;
    } else {
        emit(&report_text(arguments, &judged))?;
    }
    Ok(if judged.iter().any(|judged| matches!(judged.outcome, Outcome::Broke(_))) {
        Ending::Broke
    } else if judged.iter().any(|judged| judged.difference.is_some()) || judged.iter().all(Judged::is_skipped) {
        Ending::Fails
    } else {
        Ending::Holds
    })
}

/// A group of cases, its hashes, and how they differ from the table.
struct Judged<'a> {
    group: &'a Group,
    outcome: &'a Outcome,
    difference: Option<Difference>,
}

impl Judged<'_> {
    fn is_skipped(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped(_))
    }

    /// What is to be said beside the hashes.
    fn words(&self) -> Option<String> {
        match (self.outcome, &self.difference) {
            (Outcome::Skipped(why), _) => Some(format!("skipped: {why}")),
            (Outcome::Broke(how), _) => Some(format!("broke down: {how}")),
            (_, Some(difference)) => Some(difference.to_string()),
            (_, None) => None,
        }
    }
}

fn row(outcome: &Outcome) -> Option<&Row> {
    match outcome {
        Outcome::Row(row) => Some(row),
        _ => None,
    }
}

fn groups(arguments: &Arguments) -> Result<Vec<Group>, Trouble> {
    let files = fixture::embedded().map_err(Trouble::new)?;
    let sets = match arguments.set.as_deref().and_then(Set::named) {
        Some(set) => vec![set],
        None => Set::ALL.to_vec(),
    };
    let groups = bits::cases(&files, &sets, &arguments.filter);
    if groups.is_empty() {
        return Err(Trouble(format!("no operation has `{}` in its identifier", arguments.filter)));
    }
    Ok(groups)
}

fn table(arguments: &Arguments) -> Result<Table, Trouble> {
    let Some(path) = &arguments.table else { return Table::embedded().map_err(Trouble) };
    let told = |error: &dyn std::fmt::Display| Trouble(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| told(&error))?;
    Table::parse(&text).map_err(|error| told(&error))
}

fn compare(arguments: &Arguments, path: &Path) -> Result<Ending, Trouble> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().read_to_string(&mut text).map(|_| ())
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|error| Trouble(format!("{}: {error}", path.display())))?;
    let lines = table(arguments)?.compare_lines(&text, &arguments.filter);
    if lines.equal + lines.differ.len() == 0 {
        return Err(Trouble("no line holds an operation, a set, a precision and a hash".to_owned()));
    }
    let mut told = String::new();
    for (what, names) in [("differs", &lines.differ), ("is missing", &lines.missing)] {
        for name in names {
            let _ = writeln!(told, "{name} {what}");
        }
    }
    let (equal, differ, missing) = (lines.equal, lines.differ.len(), lines.missing.len());
    if arguments.json {
        let json = json!({ "equal": equal, "differ": lines.differ, "missing": lines.missing });
        emit_json(&json)?;
    } else {
        emit(&format!("{told}{equal} hashes equal, {differ} differ, {missing} missing\n"))?;
    }
    Ok(if differ + missing == 0 { Ending::Holds } else { Ending::Fails })
}

fn hash_text(hash: Option<Hash>) -> String {
    hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string())
}

fn report_json(arguments: &Arguments, judged: &[Judged<'_>]) -> serde_json::Value {
    let rows: Vec<_> = judged
        .iter()
        .map(|judged| {
            let row = row(judged.outcome);
            json!({
                "operation": judged.group.operation.id,
                "set": judged.group.set.name(),
                "cases": judged.group.cases.len(),
                "refused": row.map(|row| row.refused),
                "inputs": row.map(|row| row.inputs.to_string()),
                "f32": row.and_then(|row| row.f32).map(|hash| hash.to_string()),
                "f64": row.and_then(|row| row.f64).map(|hash| hash.to_string()),
                "skipped": judged.is_skipped(),
                "difference": judged.words(),
            })
        })
        .collect();
    json!({
        "backend": arguments.backend,
        "differ": judged.iter().filter(|judged| judged.difference.is_some()).count(),
        "skipped": judged.iter().filter(|judged| judged.is_skipped()).count(),
        "rows": rows,
    })
}

fn report_text(arguments: &Arguments, judged: &[Judged<'_>]) -> String {
    const BOLD: Style = Style::new().bold();
    const BAD: Style = AnsiColor::Red.on_default().bold();
    const GOOD: Style = AnsiColor::Green.on_default();
    let width = judged.iter().map(|judged| judged.group.operation.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{BOLD}{:<width$}  {:<6} {:>5}  {:<16}  {:<16}{BOLD:#}",
        "operation", "set", "cases", "f32", "f64"
    );
    for judged in judged {
        let (single, double) = row(judged.outcome).map_or((None, None), |row| (row.f32, row.f64));
        let _ = write!(
            text,
            "{:<width$}  {:<6} {:>5}  {:<16}  {:<16}",
            judged.group.operation.id,
            judged.group.set.name(),
            judged.group.cases.len(),
            hash_text(single),
            hash_text(double)
        );
        let _ = match judged.words() {
            Some(words) if judged.is_skipped() => writeln!(text, "  {words}"),
            Some(words) => writeln!(text, "  {BAD}{words}{BAD:#}"),
            None => writeln!(text),
        };
    }
    let differ = judged.iter().filter(|judged| judged.difference.is_some()).count();
    let skipped = judged.iter().filter(|judged| judged.is_skipped()).count();
    let style = if differ == 0 { GOOD } else { BAD };
    let rows = judged.len();
    let backend = &arguments.backend;
    let _ = writeln!(
        text,
        "{style}{rows} rows, {differ} differ from the table{style:#}, {skipped} skipped (backend {backend})"
    );
    text
}

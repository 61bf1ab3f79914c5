//! `cargo xtask coverage`: for each operation its file in core, golden cases, gradient check and page; and what is missing.

mod checklist;
mod entry;
mod files;
mod gradient;

use std::collections::BTreeMap;

use plumbline_conformance::fixture::{self, Golden};
use plumbline_core::catalog;
use plumbline_core::spec::Operation;

use crate::process::root;

/// Options of `cargo xtask coverage`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Go through the project's checklist (xtask/checklist.txt) instead of the catalog: an entry without an operation is a
    /// hole too.
    #[arg(long)]
    checklist: bool,
    /// Print only the holes.
    #[arg(long)]
    holes: bool,
}

/// What there is of one operation, and what is missing.
struct Coverage {
    id: String,
    file: String,
    golden: usize,
    gradient: String,
    page: bool,
    holes: Vec<String>,
}

/// Print the table and the holes; true where there is no hole.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let golden = fixture::embedded().map_err(|error| error.to_string())?;
    let cases = cases_by_operation(&golden);
    let ids = files::ids()?;
    let mut holes = files::holes()?;
    let mut rows = Vec::new();
    if arguments.checklist {
        for line in checklist::read()? {
            for id in &line.ids {
                rows.push((format!("{}: {}", line.section, line.name), cover(id, &cases, &ids)));
            }
        }
    } else {
        rows.extend(catalog::operations().map(|operation| (String::new(), cover(operation.id, &cases, &ids))));
    }
    if !arguments.holes {
        print(&rows, arguments.checklist);
    }
    for (line, row) in &rows {
        let place = if line.is_empty() { row.id.clone() } else { format!("{line} ({})", row.id) };
        holes.extend(row.holes.iter().map(|hole| format!("{place}: {hole}")));
    }
    for hole in &holes {
        println!("hole: {hole}");
    }
    let complete = rows.iter().filter(|(_, row)| row.holes.is_empty()).count();
    println!("{} rows, {complete} complete, {} holes", rows.len(), holes.len());
    Ok(holes.is_empty())
}

type Cases<'g> = BTreeMap<&'g str, Vec<&'g fixture::Case>>;

fn cases_by_operation(golden: &[Golden]) -> Cases<'_> {
    let mut cases: Cases<'_> = BTreeMap::new();
    for file in golden {
        for case in &file.cases {
            cases.entry(&case.operation).or_default().push(case);
        }
    }
    cases
}

fn cover(id: &str, cases: &Cases<'_>, ids: &BTreeMap<String, String>) -> Coverage {
    let mut row = Coverage {
        id: id.into(),
        file: ids.get(id).cloned().unwrap_or_default(),
        golden: 0,
        gradient: String::new(),
        page: false,
        holes: Vec::new(),
    };
    let Some(operation) = catalog::find(id) else {
        row.holes.push("not in the catalog".into());
        return row;
    };
    let own = cases.get(id).map(Vec::as_slice).unwrap_or_default();
    row.golden = own.len();
    if own.is_empty() {
        row.holes.push("no golden case".into());
    }
    if row.file.is_empty() {
        row.holes.push("no file in core holds its identifier".into());
    }
    row.holes.extend(entry::holes(operation));
    row.page = has_page(operation);
    if !row.page {
        row.holes.push("no page: run `cargo xtask book`".into());
    }
    let check = gradient::check(operation, own);
    row.gradient = check.to_string();
    row.holes.extend(check.holes);
    row
}

fn has_page(operation: &Operation) -> bool {
    let path = root().join("docs/src/formulas").join(format!("{}.md", operation.family.name()));
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("`{}`", operation.id)))
}

fn print(rows: &[(String, Coverage)], with_line: bool) {
    println!("{:<44} {:<44} {:>6}  {:<30} page", "operation", "file", "golden", "gradient");
    let mut last = "";
    for (line, row) in rows {
        if with_line && line != last {
            println!("{line}");
            last = line;
        }
        let mark = if row.holes.is_empty() { ' ' } else { '!' };
        let page = if row.page { "yes" } else { "no" };
        println!("{mark} {:<42} {:<44} {:>6}  {:<30} {page}", row.id, row.file, row.golden, row.gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_file_of_core_is_in_the_catalog() {
        assert_eq!(files::holes().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_entry_of_the_catalog_is_complete() {
        let holes: Vec<String> = catalog::operations()
            .flat_map(|operation| entry::holes(operation).into_iter().map(|hole| format!("{}: {hole}", operation.id)))
            .collect();
        assert_eq!(holes, Vec::<String>::new());
    }

    #[test]
    fn golden_cases_name_operations_of_the_catalog() {
        let golden = fixture::embedded().unwrap();
        let unknown: Vec<&str> =
            cases_by_operation(&golden).into_keys().filter(|id| catalog::find(id).is_none()).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }

    #[test]
    fn every_line_of_the_checklist_has_well_formed_identifiers() {
        let lines = checklist::read().unwrap();
        assert!(lines.len() > 150);
        for line in lines {
            for id in &line.ids {
                let family = id.split_once('.').map(|(family, _)| family);
                let known = plumbline_core::spec::Family::ALL.iter().any(|known| Some(known.name()) == family);
                assert!(known, "{}: {id}", line.name);
            }
        }
    }
}

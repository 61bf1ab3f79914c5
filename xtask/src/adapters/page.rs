//! The page "who computes what", from the kept verdicts.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::read;
use crate::process::root;
use crate::step::{Outcome, Step};

/// The page.
pub(super) const PAGE: &str = "docs/src/who-computes-what.md";

/// The step of `cargo xtask test`: the page is what the kept verdicts give.
pub fn steps() -> Vec<Step> {
    vec![Step::new("page of the adapters' verdicts", || {
        let there = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
        let is_same = there == page(&read()?);
        if !is_same {
            println!("{PAGE} is not what docs/data/adapters.json gives; `cargo xtask adapters --page` writes it");
        }
        Ok(Outcome::of(is_same))
    })]
}

const HEAD: &str = "\
# Who computes what

Verdicts of `plumbline check` on the functions of real libraries, called as their own trainers call them, at pinned versions.
A difference is no fault: it says which convention a function follows, on which case it shows, and how to see it again. The
page is written by `cargo xtask adapters` from the reports that the runs give (`docs/data/adapters.json`); the adapters stand
in `examples/adapters`.

In a cell: the dialect that the adapter declares (`defaults` for none) with the parameters that it fixes, the verdict, and the number of cases that were
compared, values and gradients, with the case in which a difference is largest. ¹: only finite numbers were put under the
mask, since the library relies on finite padding. An empty cell: the library has no such function, or the adapter does not
call it.
";

const NAMES: &[(&str, &str)] = &[
    ("verl", "verl"),
    ("trl", "TRL"),
    ("trl-preference", "TRL"),
    ("openrlhf", "OpenRLHF"),
    ("torchrl", "torchrl"),
    ("numpy", "numpy script"),
];

/// The page's text.
pub(super) fn page(kept: &[(String, Value)]) -> String {
    let mut text = String::from(HEAD);
    // Writing to a String does not fail.
    let _ = write(&mut text, kept);
    text
}

fn write(text: &mut String, kept: &[(String, Value)]) -> std::fmt::Result {
    // Adapters of one library are one column.
    let mut columns: Vec<(String, Vec<&Value>)> = Vec::new();
    for (adapter, report) in kept {
        let library = NAMES.iter().find(|(name, _)| name == adapter).map_or(adapter.as_str(), |(_, library)| library);
        let title = format!("{library} {}", report["subject"]["version"].as_str().unwrap_or("?"));
        match columns.iter_mut().find(|(other, _)| *other == title) {
            Some((_, reports)) => reports.push(report),
            None => columns.push((title, vec![report])),
        }
    }
    let operations = |reports: &[&Value]| -> Vec<Value> {
        reports.iter().flat_map(|report| report["operations"].as_array().cloned().unwrap_or_default()).collect()
    };
    let mut rows: Vec<String> = Vec::new();
    for operation in columns.iter().flat_map(|(_, reports)| operations(reports)) {
        let id = operation["id"].as_str().unwrap_or_default().to_owned();
        if !rows.contains(&id) {
            rows.push(id);
        }
    }
    rows.sort();
    write!(text, "\n| operation |")?;
    columns.iter().try_for_each(|(title, _)| write!(text, " {title} |"))?;
    writeln!(text, "\n|---|{}", "---|".repeat(columns.len()))?;
    for id in &rows {
        write!(text, "| `{id}` |")?;
        for (_, reports) in &columns {
            let all = operations(reports);
            let cells: Vec<String> = all.iter().filter(|operation| operation["id"] == id.as_str()).map(cell).collect();
            write!(text, " {} |", cells.join("; "))?;
        }
        writeln!(text)?;
    }
    writeln!(text, "\n## The differences")?;
    for (title, reports) in &columns {
        for operation in operations(reports) {
            for finding in operation["findings"].as_array().into_iter().flatten() {
                let id = operation["id"].as_str().unwrap_or_default();
                writeln!(text, "\n**{title}, `{id}`.** {}", finding["text"].as_str().unwrap_or_default())?;
                let reproduce = finding["reproduce"].as_str().unwrap_or_default();
                writeln!(text, "\n```sh\n{reproduce}\n```")?;
            }
        }
    }
    let total: usize = columns.iter().map(|(_, reports)| operations(reports).len()).sum();
    let same = |operation: &Value| operation["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("conforms"));
    let conforming: usize =
        columns.iter().map(|(_, reports)| operations(reports).iter().filter(|operation| same(operation)).count()).sum();
    writeln!(text, "\n{conforming} of {total} functions conform to what their adapter declares.")
}

fn cell(operation: &Value) -> String {
    let mut meant = operation["dialect"].as_str().unwrap_or("defaults").to_owned();
    for (name, value) in operation["settings"].as_object().into_iter().flatten() {
        meant += &format!(", {name} {}", value.as_str().map_or(value.to_string(), str::to_owned));
    }
    let verdict = operation["verdict"].as_str().unwrap_or("?");
    let note = if operation["finite_padding"] == true { "¹" } else { "" };
    let mut evidence = operation["cases"].to_string();
    // Where only a far case differs, the report has no ordinary one that is off.
    let worst = operation["worst"]["case"].as_str().or(operation["findings"][0]["case"].as_str());
    if let Some(case) = worst {
        evidence += &format!(", `{case}`");
    }
    if operation["gradients"] != true {
        evidence += ", value only";
    }
    format!("{meant}: {verdict} ({evidence}){note}")
}

//! `plumbline list`: what the catalog holds.

use std::fmt::Write as _;

use anstyle::Style;
use clap::Args;
use plumbline_core::catalog;
use plumbline_core::spec::{Family, Operation};
use plumbline_evaluate::describe;
use plumbline_evaluate::nearest::nearest;
use serde_json::json;

use super::{Ending, Trouble, emit, emit_json};

/// The arguments of `plumbline list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plumbline list                      every operation, family by family
  plumbline list --family advantage   one family
  plumbline list --json               for programs")]
pub struct Arguments {
    /// Only the operations of this family.
    #[arg(long, value_name = "FAMILY")]
    family: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let family = arguments.family.as_deref().map(family_named).transpose()?;
    let operations: Vec<&Operation> =
        catalog::operations().filter(|operation| family.is_none_or(|family| operation.family == family)).collect();
    if arguments.json {
        let summaries: Vec<_> = operations.iter().map(|operation| describe::summary(operation)).collect();
        emit_json(&json!({ "operations": summaries }))?;
    } else {
        emit(&text(&operations))?;
    }
    Ok(Ending::Holds)
}

fn family_named(name: &str) -> Result<Family, Trouble> {
    Family::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
        let names = Family::ALL.map(Family::name);
        Trouble(match nearest(name, names) {
            Some(nearest) => format!("no family is called `{name}`; did you mean `{nearest}`?"),
            None => format!("no family is called `{name}`; known are {}", names.join(", ")),
        })
    })
}

fn text(operations: &[&Operation]) -> String {
    let bold = Style::new().bold();
    let width = operations.iter().map(|operation| operation.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut family = None;
    for operation in operations {
        if family != Some(operation.family) {
            let gap = if family.is_some() { "\n" } else { "" };
            let _ = writeln!(text, "{gap}{bold}{}{bold:#}", operation.family.name());
            family = Some(operation.family);
        }
        let _ = writeln!(text, "  {:<width$}  {}", operation.id, operation.summary);
    }
    let _ = writeln!(text, "\n{} operations; `plumbline explain ID` tells more about one.", operations.len());
    text
}

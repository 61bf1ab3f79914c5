//! `plumbline explain`: one formula.

use std::fmt::Write as _;

use anstyle::Style;
use clap::Args;
use plumbline_core::spec::Operation;
use plumbline_evaluate::describe::{self, legal, setting, shape_text};
use plumbline_evaluate::operation_named;

use super::{Ending, Trouble, emit, emit_json};

/// The arguments of `plumbline explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plumbline explain kl.k1          for people
  plumbline explain kl.k1 --json   for programs")]
pub struct Arguments {
    /// The operation's identifier, such as kl.k1.
    #[arg(value_name = "ID")]
    operation: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let operation = operation_named(&arguments.operation).map_err(Trouble::new)?;
    if arguments.json {
        emit_json(&describe::operation(operation))?;
    } else {
        emit(&text(operation))?;
    }
    Ok(Ending::Holds)
}

const BOLD: Style = Style::new().bold();

fn text(operation: &Operation) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}  {}\n{}\n", operation.id, operation.title, operation.summary);
    section(&mut text, "Formula", [operation.formula.to_owned()]);
    if !operation.gradient.is_empty() {
        section(&mut text, "Gradient", [operation.gradient.to_owned()]);
    }
    if !operation.notes.is_empty() {
        section(&mut text, "Notes", [operation.notes.to_owned()]);
    }
    let inputs = operation.inputs.iter().map(|input| {
        let shapes: Vec<String> = input.shapes.iter().map(|shape| shape_text(shape)).collect();
        let optional = if input.optional { "optional; " } else { "" };
        [input.name.to_owned(), shapes.join(" or "), format!("{optional}{}", input.meaning)]
    });
    section(&mut text, "Inputs", columns(inputs.collect()));
    let params = operation.params.iter().map(|param| {
        let default = format!("= {}", setting(operation.default_of(param)));
        let symbol = if param.symbol.is_empty() { String::new() } else { format!("{}: ", param.symbol) };
        [param.name.to_owned(), default, format!("{symbol}{} ({})", param.meaning, legal(&param.kind))]
    });
    section(&mut text, "Parameters", columns(params.collect()));
    let outputs = operation.outputs.iter().map(|output| {
        let stopped = if output.stop_gradient { "; leaves out a stopped factor" } else { "" };
        let works_in = if output.workspace { "; the operation works in it" } else { "" };
        [output.name.to_owned(), shape_text(output.shape), format!("{}{stopped}{works_in}", output.meaning)]
    });
    section(&mut text, "Outputs", columns(outputs.collect()));
    let dialects = operation.dialects.iter().map(|dialect| {
        let settings: Vec<String> =
            dialect.settings.iter().map(|(name, value)| format!("{name} = {}", setting(*value))).collect();
        [dialect.name.to_owned(), dialect.note.to_owned(), settings.join(", ")]
    });
    section(&mut text, "Dialects", columns(dialects.collect()));
    let sources =
        operation.sources.iter().map(|source| format!("{}, {}, {}", source.title, source.reference, source.place));
    section(&mut text, "Sources", sources.collect::<Vec<_>>());
    text
}

/// A heading with its lines, left out where there are none.
fn section(text: &mut String, heading: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        let _ = writeln!(text, "\n{BOLD}{heading}{BOLD:#}");
        for line in lines {
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
}

/// Rows of three cells, the first two padded to the widest of their column.
fn columns(rows: Vec<[String; 3]>) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    rows.iter().map(|[one, two, three]| format!("{one:<first$}  {two:<second$}  {three}")).collect()
}

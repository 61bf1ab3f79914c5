//! The text of a page, from a family's operations.

use std::fmt::Write;

use plumbline_core::catalog;
use plumbline_core::spec::{Dialect, Family, Operation, ParamKind, ParamSpec, Shape, Value};

const GENERATED: &str =
    "<!-- Written by `cargo xtask book` from the catalog: change the formula's file in core, not this page. -->";

/// The page that lists all operations.
pub fn index() -> String {
    let mut text = format!("{GENERATED}\n\n# All formulas\n");
    text.push_str("\nEvery operation of the catalog. `plumbline explain ID` prints the same in a terminal.\n");
    for family in Family::ALL {
        let _ = write!(text, "\n## [{}]({}.md)\n\n", heading(family), family.name());
        if operations(family).is_empty() {
            text.push_str("No operation yet.\n");
            continue;
        }
        text.push_str("| id | name | |\n|---|---|---|\n");
        for operation in operations(family) {
            let link = format!("[`{}`]({}.md#{})", operation.id, family.name(), anchor(operation));
            row(&mut text, &[&link, operation.title, operation.summary]);
        }
    }
    text
}

/// The page of one family.
pub fn family(family: Family) -> String {
    let mut text = format!("{GENERATED}\n\n# {}\n", heading(family));
    let operations = operations(family);
    if operations.is_empty() {
        text.push_str("\nNo operation yet.\n");
    }
    for (position, operation) in operations.iter().enumerate() {
        // A named setting of a composition shares its interface with the composition, which stands first.
        let like = operations.iter().take(position).find(|earlier| same_interface(earlier, operation));
        write_operation(&mut text, operation, like.copied());
    }
    text
}

fn write_operation(text: &mut String, operation: &Operation, like: Option<&Operation>) {
    let _ = write!(text, "\n<a id=\"{}\"></a>\n\n## {}\n\n", anchor(operation), operation.title);
    let _ = writeln!(text, "`{}`. {}", operation.id, escaped(operation.summary));
    formula(text, "Value", operation.formula);
    if !operation.gradient.is_empty() {
        formula(text, "Gradient", operation.gradient);
    }
    if !operation.notes.is_empty() {
        let _ = write!(text, "\n{}\n", escaped(operation.notes));
    }
    text.push_str("\nSource: ");
    let sources: Vec<String> = operation
        .sources
        .iter()
        .map(|source| format!("{}, {}, {}", escaped(source.title), escaped(source.reference), escaped(source.place)))
        .collect();
    let _ = writeln!(text, "{}.", sources.join("; "));
    match like {
        Some(other) => {
            let _ =
                write!(text, "\nInputs, parameters and outputs are those of [`{}`](#{}).\n", other.id, anchor(other));
        }
        None => interface(text, operation),
    }
    if !operation.defaults.is_empty() {
        let base = if like.is_some() { "Its defaults differ from those in" } else { "Its defaults are" };
        let _ = write!(text, "\n{base}: {}.\n", settings(operation.defaults));
    }
    dialects(text, operation.dialects);
}

fn interface(text: &mut String, operation: &Operation) {
    text.push_str("\n| input | shape | |\n|---|---|---|\n");
    for input in operation.inputs {
        let shapes: Vec<String> = input.shapes.iter().map(|shape| shape_text(shape)).collect();
        let optional = if input.optional { "; may be left out" } else { "" };
        row(text, &[&format!("`{}`", input.name), &shapes.join(" or "), &format!("{}{optional}", input.meaning)]);
    }
    if !operation.params.is_empty() {
        text.push_str("\n| parameter | default | legal | |\n|---|---|---|---|\n");
        for param in operation.params {
            let name = if param.symbol.is_empty() {
                format!("`{}`", param.name)
            } else {
                format!("`{}` {}", param.name, inline(param.symbol))
            };
            row(text, &[&name, &value_text(operation.default_of(param)), &legal(param), param.meaning]);
        }
    }
    text.push_str("\n| output | shape | |\n|---|---|---|\n");
    for output in operation.outputs {
        let stopped = if output.stop_gradient { "; leaves out stopped factors" } else { "" };
        let works_in = if output.workspace { "; the operation works in it" } else { "" };
        let meaning = format!("{}{stopped}{works_in}", output.meaning);
        row(text, &[&format!("`{}`", output.name), &shape_text(output.shape), &meaning]);
    }
}

fn dialects(text: &mut String, dialects: &[Dialect]) {
    if dialects.is_empty() {
        return;
    }
    text.push_str("\n| dialect | settings | |\n|---|---|---|\n");
    for dialect in dialects {
        let settings = if dialect.settings.is_empty() { "the defaults".into() } else { settings(dialect.settings) };
        row(text, &[&format!("`{}`", dialect.name), &settings, dialect.note]);
    }
}

fn operations(family: Family) -> Vec<&'static Operation> {
    catalog::operations().filter(|operation| operation.family == family).collect()
}

fn same_interface(a: &Operation, b: &Operation) -> bool {
    let text = |operation: &Operation| format!("{:?}{:?}{:?}", operation.inputs, operation.params, operation.outputs);
    !a.params.is_empty() && text(a) == text(b)
}

fn anchor(operation: &Operation) -> String {
    operation.id.replace('.', "-")
}

fn heading(family: Family) -> &'static str {
    match family {
        Family::Logits => "From logits to log-probabilities",
        Family::Kl => "KL estimators",
        Family::Ratio => "Ratios and off-policy correction",
        Family::Surrogate => "Policy surrogates",
        Family::Reduce => "Aggregation and whitening",
        Family::Advantage => "Advantages and returns",
        Family::Reward => "Rewards",
        Family::Value => "Value losses",
        Family::Preference => "Preference and reward-model losses",
        Family::Bellman => "Bellman operators and dynamic programming",
        Family::TemporalDifference => "Temporal-difference and Q-learning",
        Family::TrustRegion => "Policy gradients and trust region",
        Family::Objective => "Named objectives",
        other => other.name(),
    }
}

/// A displayed formula: raw HTML, so that no Markdown rule touches the TeX.
fn formula(text: &mut String, name: &str, tex: &str) {
    let tex = tex.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = write!(text, "\n{name}:\n\n<div class=\"formula\">\n\\[ {tex} \\]\n</div>\n");
}

/// A formula within a line; the backslashes of its delimiters are escaped, as the book's TeX reader wants them.
fn inline(tex: &str) -> String {
    format!("\\\\( {} \\\\)", tex.replace('\\', "\\\\").replace('_', "\\_").replace('*', "\\*").replace('<', "&lt;"))
}

fn shape_text(shape: Shape) -> String {
    if shape.is_empty() { "scalar".into() } else { format!("[{}]", shape.join(", ")) }
}

fn value_text(value: Value) -> String {
    match value {
        Value::None => "off".into(),
        Value::Number(number) => number.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Name(name) => format!("`{name}`"),
    }
}

fn legal(param: &ParamSpec) -> String {
    match param.kind {
        ParamKind::Number { range, .. } => range.text.into(),
        ParamKind::OptionalNumber { range, .. } => format!("{}, or off", range.text),
        ParamKind::Integer { low, high: i64::MAX, .. } => format!("whole, >= {low}"),
        ParamKind::Integer { low, high, .. } => format!("whole, {low} to {high}"),
        ParamKind::Flag { .. } => "true, false".into(),
        ParamKind::Choice { names, .. } => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

fn settings(settings: &[(&str, Value)]) -> String {
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("`{name}` = {}", value_text(*value))).collect();
    settings.join(", ")
}

/// A row of a table; a bar inside a cell would end it.
fn row(text: &mut String, cells: &[&str]) {
    for cell in cells {
        let cell = if cell.starts_with('`') || cell.starts_with('[') { cell.to_string() } else { escaped(cell) };
        let _ = write!(text, "| {} ", cell.replace('|', "\\|"));
    }
    text.push_str("|\n");
}

/// Prose as Markdown: what would be read as a tag or as emphasis is escaped, except inside code.
fn escaped(prose: &str) -> String {
    let mut text = String::with_capacity(prose.len());
    let mut code = false;
    for character in prose.chars() {
        match character {
            '`' => code = !code,
            '<' if !code => {
                text.push_str("&lt;");
                continue;
            }
            '*' | '_' if !code => text.push('\\'),
            _ => {}
        }
        text.push(character);
    }
    text
}

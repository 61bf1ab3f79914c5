//! A function with its types for each operation, from the catalog.

use std::fmt::Write;

use plumbline_core::spec::{InputSpec, Operation, ParamKind, ParamSpec};
use plumbline_evaluate::describe::{self, domain_name, legal, setting, shape_text};

const GENERATED: &str = "// Written by `cargo xtask wasm` from the catalog.\n\n";

/// The catalog's description of the operations, as JSON in a string: a string is read faster than the same as code.
pub fn catalog(operations: &[&Operation]) -> String {
    let described: Vec<serde_json::Value> = operations.iter().map(|operation| describe::operation(operation)).collect();
    // JSON of JSON is a string of JavaScript.
    let text = serde_json::Value::String(serde_json::Value::Array(described).to_string());
    format!("{GENERATED}export const text = {text};\n")
}

/// The functions, in an object for each family.
pub fn script(operations: &[&Operation]) -> String {
    let mut text = format!("{GENERATED}import {{ evaluate }} from \"./evaluate.js\";\n");
    for family in families(operations) {
        let _ = write!(text, "\nexport const {family} = {{\n");
        for operation in of_family(operations, family) {
            let _ = writeln!(text, "  {}: (request) => evaluate(\"{}\", request),", short(operation), operation.id);
        }
        text.push_str("};\n");
    }
    text
}

/// The types: documented parameters with default and range, dialects and choices as unions of names.
pub fn types(operations: &[&Operation]) -> String {
    let mut text = format!("{GENERATED}import type {{ InputArray, OperationFunction }} from \"./index.js\";\n");
    let ids: Vec<&str> = operations.iter().map(|operation| operation.id).collect();
    let _ = write!(text, "\n/** The identifiers of all operations. */\nexport type OperationId = {};\n", union(&ids));
    for operation in operations {
        let name = type_name(operation);
        let _ = write!(text, "\n/** The parameters of `{}`. */\nexport interface {name}Params {{\n", operation.id);
        for param in operation.params {
            comment(&mut text, 2, &[&param_text(operation, param)]);
            let _ = writeln!(text, "  {}?: {};", key(param.name), param_type(&param.kind));
        }
        let _ = write!(text, "}}\n\n/** The inputs of `{}`. */\nexport interface {name}Inputs {{\n", operation.id);
        for input in operation.inputs {
            comment(&mut text, 2, &[&input_text(input)]);
            let _ = writeln!(text, "  {}{}: InputArray;", key(input.name), if input.optional { "?" } else { "" });
        }
        text.push_str("}\n");
    }
    for family in families(operations) {
        let _ = write!(text, "\nexport const {family}: {{\n");
        for operation in of_family(operations, family) {
            operation_type(&mut text, operation);
        }
        text.push_str("};\n");
    }
    text
}

fn operation_type(text: &mut String, operation: &Operation) {
    let mut lines = vec![format!("{}. {}", operation.title, operation.summary)];
    for source in operation.sources {
        lines.push(format!("Source: {}, {}, {}.", source.title, source.reference, source.place));
    }
    lines.push("Outputs:".to_owned());
    for output in operation.outputs {
        lines.push(format!("- `{}` {}: {}", output.name, shape_text(output.shape), output.meaning));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    comment(text, 2, &lines);
    let dialects: Vec<&str> = operation.dialects.iter().map(|dialect| dialect.name).collect();
    let is_certain = |input: Option<&str>| match input {
        Some(name) => operation.input(name).is_some_and(|input| !input.optional),
        None => true,
    };
    let (always, sometimes): (Vec<_>, Vec<_>) =
        operation.outputs.iter().partition(|output| is_certain(output.gradient_of));
    let names = |outputs: Vec<&plumbline_core::spec::OutputSpec>| {
        union(&outputs.iter().map(|output| output.name).collect::<Vec<_>>())
    };
    let name = type_name(operation);
    let _ = writeln!(
        text,
        "  {}: OperationFunction<\n    {},\n    {name}Params,\n    {name}Inputs,\n    {},\n    {}\n  >;",
        short(operation),
        union(&dialects),
        names(always),
        names(sometimes),
    );
}

fn param_text(operation: &Operation, param: &ParamSpec) -> String {
    format!(
        "{}. Default `{}`; legal: {}.",
        sentence(param.meaning),
        setting(operation.default_of(param)),
        legal(&param.kind)
    )
}

fn input_text(input: &InputSpec) -> String {
    let shapes: Vec<String> = input.shapes.iter().map(|shape| shape_text(shape)).collect();
    format!("{}. Shape {}; {}.", sentence(input.meaning), shapes.join(" or "), domain_name(input.domain))
}

fn sentence(text: &str) -> &str {
    text.trim_end_matches('.')
}

fn param_type(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Number { .. } | ParamKind::Integer { .. } => "number".to_owned(),
        ParamKind::OptionalNumber { .. } => "number | null".to_owned(),
        ParamKind::Flag { .. } => "boolean".to_owned(),
        ParamKind::Choice { names, .. } => union(names),
    }
}

fn comment(text: &mut String, indent: usize, lines: &[&str]) {
    let space = " ".repeat(indent);
    let _ = writeln!(text, "{space}/**");
    for line in lines {
        let _ = writeln!(text, "{space} * {}", line.replace("*/", "* /").replace('\n', " "));
    }
    let _ = writeln!(text, "{space} */");
}

fn union(names: &[&str]) -> String {
    match names {
        [] => "never".to_owned(),
        names => names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" | "),
    }
}

/// A property's name, quoted where it is no identifier.
fn key(name: &str) -> String {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if plain && !name.starts_with(|letter: char| letter.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

fn families<'a>(operations: &[&'a Operation]) -> Vec<&'a str> {
    let mut families: Vec<&str> = operations.iter().map(|operation| operation.family.name()).collect();
    families.dedup();
    families
}

fn of_family<'a>(operations: &'a [&'a Operation], family: &'a str) -> impl Iterator<Item = &'a Operation> {
    operations.iter().copied().filter(move |operation| operation.family.name() == family)
}

/// The identifier without its family.
fn short(operation: &Operation) -> &str {
    operation.id.split_once('.').map_or(operation.id, |(_, name)| name)
}

/// `kl.k3` as the beginning of a type's name: `KlK3`.
fn type_name(operation: &Operation) -> String {
    operation
        .id
        .split(['.', '_'])
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}

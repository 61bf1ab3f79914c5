//! The catalog as JSON: what bindings, pages and programs read.

use plumbline_core::spec::{Domain, Operation, ParamKind, ParamSpec, Shape, Value as Setting};
use serde_json::{Map, Value, json};

use crate::Param;

/// One line about an operation: its identifier, family, title, summary and dialects.
pub fn summary(operation: &Operation) -> Value {
    json!({
        "id": operation.id,
        "family": operation.family.name(),
        "title": operation.title,
        "summary": operation.summary,
        "dialects": operation.dialects.iter().map(|dialect| dialect.name).collect::<Vec<_>>(),
    })
}

/// Everything about an operation.
pub fn operation(operation: &Operation) -> Value {
    let inputs: Vec<Value> = operation
        .inputs
        .iter()
        .map(|input| {
            json!({
                "name": input.name,
                "meaning": input.meaning,
                "domain": domain_name(input.domain),
                "indexes": indexed_dimension(input.domain),
                "shapes": input.shapes,
                "optional": input.optional,
            })
        })
        .collect();
    let outputs: Vec<Value> = operation
        .outputs
        .iter()
        .map(|output| {
            json!({
                "name": output.name,
                "meaning": output.meaning,
                "shape": output.shape,
                "gradient_of": output.gradient_of,
                "stop_gradient": output.stop_gradient,
                "workspace": output.workspace,
            })
        })
        .collect();
    let dialects: Vec<Value> = operation
        .dialects
        .iter()
        .map(|dialect| {
            let settings: Map<String, Value> =
                dialect.settings.iter().map(|(name, value)| ((*name).to_owned(), setting(*value))).collect();
            json!({ "name": dialect.name, "note": dialect.note, "settings": settings })
        })
        .collect();
    let sources: Vec<Value> = operation
        .sources
        .iter()
        .map(|source| json!({ "title": source.title, "reference": source.reference, "place": source.place }))
        .collect();
    json!({
        "id": operation.id,
        "family": operation.family.name(),
        "title": operation.title,
        "summary": operation.summary,
        "formula": operation.formula,
        "gradient": operation.gradient,
        "notes": operation.notes,
        "sources": sources,
        "inputs": inputs,
        "params": operation.params.iter().map(|spec| param(operation, spec)).collect::<Vec<_>>(),
        "outputs": outputs,
        "dialects": dialects,
    })
}

fn param(operation: &Operation, spec: &ParamSpec) -> Value {
    let (kind, legal) = match spec.kind {
        ParamKind::Number { range, .. } => ("number", json!(range.text)),
        ParamKind::OptionalNumber { range, .. } => ("optional number", json!(range.text)),
        ParamKind::Integer { low, high, .. } => ("whole number", json!({ "low": low, "high": high })),
        ParamKind::Flag { .. } => ("flag", json!([true, false])),
        ParamKind::Choice { names, .. } => ("choice", json!(names)),
    };
    json!({
        "name": spec.name,
        "symbol": spec.symbol,
        "meaning": spec.meaning,
        "kind": kind,
        "default": setting(operation.default_of(spec)),
        "legal": legal,
        "range": range(&spec.kind),
    })
}

/// The legal range of a number as data; `null` at an end means unbounded.
fn range(kind: &ParamKind) -> Value {
    let end = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    match *kind {
        ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. } => json!({
            "low": end(range.low),
            "low_inclusive": range.low_inclusive,
            "high": end(range.high),
            "high_inclusive": range.high_inclusive,
        }),
        ParamKind::Integer { low, high, .. } => json!({
            "low": low,
            "low_inclusive": true,
            "high": if high == i64::MAX { Value::Null } else { json!(high) },
            "high_inclusive": high != i64::MAX,
        }),
        ParamKind::Flag { .. } | ParamKind::Choice { .. } => Value::Null,
    }
}

/// What is legal for a parameter, in words.
pub fn legal(kind: &ParamKind) -> String {
    match *kind {
        ParamKind::Number { range, .. } => range.text.to_owned(),
        ParamKind::OptionalNumber { range, .. } => format!("{} or null", range.text),
        ParamKind::Integer { low, high: i64::MAX, .. } => format!("a whole number >= {low}"),
        ParamKind::Integer { low, high, .. } => format!("a whole number from {low} to {high}"),
        ParamKind::Flag { .. } => "true or false".to_owned(),
        ParamKind::Choice { names, .. } => names.join(" | "),
    }
}

/// A parameter's value as JSON.
pub fn setting(value: Setting) -> Value {
    match value {
        Setting::Integer(whole) => json!(whole),
        other => json!(Param::from(other)),
    }
}

/// A shape as text: `[B, T]`.
pub fn shape_text(shape: Shape) -> String {
    format!("[{}]", shape.join(", "))
}

/// The name of a domain.
pub fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Real => "real",
        Domain::LogProb => "log_prob",
        Domain::LogRatio => "log_ratio",
        Domain::Logit => "logit",
        Domain::Advantage => "advantage",
        Domain::Reward => "reward",
        Domain::Value => "value",
        Domain::Probability => "probability",
        Domain::Positive => "positive",
        Domain::NonNegative => "non_negative",
        Domain::Mask => "mask",
        Domain::Done => "done",
        Domain::Group => "group",
        Domain::Index(_) => "index",
        Domain::Count => "count",
        // Domains may be added; a number is what the others hold.
        _ => "real",
    }
}

fn indexed_dimension(domain: Domain) -> Option<&'static str> {
    match domain {
        Domain::Index(dimension) => Some(dimension),
        _ => None,
    }
}

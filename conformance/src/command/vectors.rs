//! `plumbline vectors`: the discriminating vectors, and whether they tell the points of the space apart.

use std::fmt::Write;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Operation, Value};
use plumbline_diagnosis::vectors::{Case, Purpose};
use plumbline_diagnosis::{Meaning, Separation, separations, vectors_of};
use plumbline_evaluate::operation_named;
use plumbline_evaluate::tensor::tensor_to_json;
use serde_json::json;

use super::{Ending, Trouble, emit, emit_json};

/// Options of `vectors`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this operation (may be repeated; default: all).
    #[arg(long = "op", value_name = "ID")]
    operations: Vec<String>,
    /// Compare all pairs of points (the operation, its dialects, every single change): each pair is told apart by a vector,
    /// or equal on many more cases; a pair that only those tell apart is a gap, and the exit code 1.
    #[arg(long)]
    lint: bool,
    /// Seed of the random cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Print or lint.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let operations: Vec<&'static Operation> = match arguments.operations.is_empty() {
        true => catalog::operations().collect(),
        false => arguments
            .operations
            .iter()
            .map(|id| operation_named(id).map_err(Trouble::new))
            .collect::<Result<_, Trouble>>()?,
    };
    let meanings = operations.into_iter().map(|operation| Meaning { operation, dialect: None, settings: Vec::new() });
    if arguments.lint { lint(meanings.collect(), arguments) } else { print(meanings.collect(), arguments) }
}

fn print(meanings: Vec<Meaning>, arguments: &Arguments) -> Result<Ending, Trouble> {
    let mut operations = Vec::new();
    let mut text = String::new();
    for meaning in meanings {
        let id = meaning.operation.id;
        let cases = vectors_of(&meaning, arguments.seed).map_err(|error| Trouble::new(format!("{id}: {error}")))?;
        if arguments.json {
            operations.push(json!({ "id": id, "cases": cases.iter().map(as_json).collect::<Vec<_>>() }));
        } else {
            let _ = writeln!(text, "{id}: {} vectors", cases.len());
            cases.iter().for_each(|case| as_text(case, &mut text));
        }
    }
    if arguments.json {
        emit_json(&json!({ "seed": arguments.seed, "operations": operations }))?;
    } else {
        emit(&text)?;
    }
    Ok(Ending::Holds)
}

fn purpose(case: &Case) -> String {
    match case.purpose {
        Purpose::Regular => "ordinary numbers".into(),
        Purpose::EmptyRow => "a row without a token".into(),
        Purpose::FarRatio => "numbers far out".into(),
        Purpose::Edge => "an edge".into(),
        Purpose::Related { relation, .. } => format!("the first case again: {}", relation.words()),
        Purpose::UnderMask { input, junk, .. } => format!("{} where `{input}` is not read", junk.name()),
    }
}

fn setting(value: Value) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::Number(number) => json!(number),
        Value::Integer(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::Name(name) => json!(name),
    }
}

fn as_json(case: &Case) -> serde_json::Value {
    let inputs =
        case.inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor_to_json(tensor, Dtype::F64, false)));
    let params = case.overrides.iter().map(|(name, value)| ((*name).to_owned(), setting(*value)));
    json!({
        "id": case.id,
        "purpose": purpose(case),
        "params": params.collect::<serde_json::Map<_, _>>(),
        "inputs": inputs.collect::<serde_json::Map<_, _>>(),
    })
}

fn as_text(case: &Case, text: &mut String) {
    let shapes: Vec<String> = case.inputs.iter().map(|(name, tensor)| format!("{name} {:?}", tensor.shape)).collect();
    let params: Vec<String> =
        case.overrides.iter().map(|(name, value)| format!("{name} = {}", setting(*value))).collect();
    let _ = writeln!(text, "  {}: {}; {}", case.id, purpose(case), shapes.join(", "));
    if !params.is_empty() {
        let _ = writeln!(text, "    with {}", params.join(", "));
    }
}

fn lint(meanings: Vec<Meaning>, arguments: &Arguments) -> Result<Ending, Trouble> {
    let progress = ProgressBar::new(meanings.len() as u64)
        .with_style(ProgressStyle::with_template("{pos}/{len} operations").map_err(Trouble::new)?);
    let found = separations(&meanings, arguments.seed, &|_| progress.inc(1));
    let mut all: Vec<(&'static str, Separation)> = Vec::new();
    for (meaning, found) in meanings.iter().zip(found) {
        let id = meaning.operation.id;
        all.push((id, found.map_err(|error| Trouble::new(format!("{id}: {error}")))?));
    }
    progress.finish_and_clear();
    let gaps: usize = all.iter().map(|(_, found)| found.gaps.len()).sum();
    if arguments.json {
        let one = |(id, found): &(&str, Separation)| {
            let gap = |gap: &plumbline_diagnosis::Gap| {
                let (seed, case) = &gap.told_by;
                json!({ "first": gap.first, "second": gap.second, "seed": seed, "case": case })
            };
            json!({
                "id": id,
                "points": found.points,
                "vectors": found.vectors,
                "drawn": found.drawn,
                "equal": found.equal,
                "gaps": found.gaps.iter().map(gap).collect::<Vec<_>>(),
            })
        };
        emit_json(&json!({ "gaps": gaps, "operations": all.iter().map(one).collect::<Vec<_>>() }))?;
    } else {
        emit(&lint_text(&all, gaps))?;
    }
    Ok(if gaps == 0 { Ending::Holds } else { Ending::Fails })
}

fn lint_text(all: &[(&'static str, Separation)], gaps: usize) -> String {
    let mut text = String::new();
    let mut pairs = 0;
    for (id, found) in all {
        let own = found.points * found.points.saturating_sub(1) / 2;
        pairs += own;
        let _ = writeln!(text, "{id}: {} points, {own} pairs, {} vectors", found.points, found.vectors);
        for same in &found.equal {
            let _ = writeln!(text, "  equal, also on {} drawn cases: {}", found.drawn, same.join(" = "));
        }
        for gap in &found.gaps {
            let (seed, case) = &gap.told_by;
            let _ = writeln!(
                text,
                "  GAP: {} and {} differ on `{case}` of seed {seed}, on no vector",
                gap.first, gap.second
            );
        }
    }
    let _ = writeln!(text, "{} operations, {pairs} pairs of points, {gaps} gaps", all.len());
    text
}

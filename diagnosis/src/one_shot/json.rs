//! The answer as JSON, for programs and pages.

use plumbline_core::num::Dtype;
use plumbline_evaluate::tensor::to_json;
use serde_json::{Value, json};

use super::{Answer, GradientFit, Name};

/// The answer as the object that `plumbline diagnose --json` prints; `file` is where the batch came from.
pub fn answer_as_json(answer: &Answer, file: &str) -> Value {
    let number = |value: f64| to_json(value, Dtype::F64);
    let names = |names: &[Name]| -> Vec<Value> {
        names.iter().map(|name| json!({"operation": name.operation, "dialect": name.dialect})).collect()
    };
    let fits: Vec<Value> = answer
        .fits
        .iter()
        .map(|fit| {
            let (gradient, difference) = match &fit.gradient {
                GradientFit::NotGiven => ("not given", None),
                GradientFit::Same => ("same", None),
                GradientFit::Differs(words) => ("differs", Some(words)),
                GradientFit::NotCompared => ("not compared", None),
            };
            json!({
                "names": names(&fit.names),
                "changes": fit.changes,
                "text": fit.text,
                "value": number(fit.value),
                "gradient": gradient,
                "gradient_difference": difference,
            })
        })
        .collect();
    let nearest: Vec<Value> = answer
        .nearest
        .iter()
        .map(|near| json!({"names": names(&near.names), "text": near.text, "value": number(near.value)}))
        .collect();
    json!({
        "schema": "plumbline-diagnose-1",
        "file": file,
        "batch": answer.batch,
        "notes": answer.notes,
        "printed": {
            "shape": answer.printed.tensor.shape,
            "value": answer.printed.tensor.values.first().map(|value| number(*value)),
            "precision": answer.printed.precision(),
        },
        "meant": answer.meant.map(|meant| json!({"operation": meant.operation, "dialect": meant.dialect})),
        "meant_value": answer.meant_value.map(number),
        "conclusion": answer.conclusion.name(),
        "cannot_tell": answer.fits.len() > 1 || answer.may_be_chance(),
        "fits": fits,
        "nearest": nearest,
        "tells_apart": answer.apart,
        "tried": answer.tried,
        "left_out": answer.left_out,
        "idle_left_out": answer.idle_left_out,
        "expected_by_chance": number(answer.by_chance),
    })
}

//! The report as one JSON object.

use serde_json::{Map, Value, json};

use super::{Checked, Report, words};
use plumbline_core::num::Dtype;
use plumbline_diagnosis::Verdict;
use plumbline_evaluate::describe::setting;
use plumbline_evaluate::tensor::to_json;

/// The object that `plumbline check --json` prints.
pub fn as_json(report: &Report) -> Value {
    let operations: Vec<Value> = report.operations.iter().map(|checked| operation(report, checked)).collect();
    let stale: Vec<Value> = report
        .stale
        .iter()
        .map(|known| json!({"operation": known.operation, "cause": known.cause, "reason": known.reason}))
        .collect();
    json!({
        "schema": "plumbline-check-1",
        "subject": {"name": report.name, "version": report.version, "dtype": report.dtype},
        "seed": report.seed,
        "conforms": report.conforms(),
        "operations": operations,
        "stale_known": stale,
    })
}

fn operation(report: &Report, checked: &Checked) -> Value {
    let diagnosis = &checked.diagnosis;
    let verdict = match &diagnosis.verdict {
        Verdict::ConformsToDialect(_) => "conforms to dialect".to_owned(),
        other => words(other),
    };
    let conforms_to = match diagnosis.verdict {
        Verdict::ConformsToDialect(name) => Some(name),
        _ => None,
    };
    let worst = diagnosis.worst.as_ref().map(|worst| {
        json!({
            "case": worst.case,
            "output": worst.output,
            "position": worst.position,
            "got": to_json(worst.got, Dtype::F64),
            "expected": to_json(worst.expected, Dtype::F64),
            "difference": to_json(worst.difference, Dtype::F64),
        })
    });
    let findings: Vec<Value> = diagnosis
        .findings
        .iter()
        .zip(&checked.known)
        .map(|(finding, known)| {
            let explanations: Vec<Value> = finding
                .explanations
                .iter()
                .map(|explanation| json!({"ids": explanation.ids, "text": explanation.text, "cost": explanation.cost}))
                .collect();
            json!({
                "kind": finding.kind.name(),
                "text": finding.text,
                "case": finding.case,
                "explanations": explanations,
                "reproduce": report.reproduce(checked, &finding.case),
                "known": known,
            })
        })
        .collect();
    let settings: Map<String, Value> =
        checked.settings.iter().map(|(name, value)| ((*name).to_owned(), setting(*value))).collect();
    json!({
        "id": checked.id,
        "dialect": checked.dialect,
        "settings": settings,
        "finite_padding": checked.finite_padding,
        "verdict": verdict,
        "conforms_to": conforms_to,
        "cases": diagnosis.compared,
        "skipped": diagnosis.skipped,
        "gradients": diagnosis.gradients,
        "worst": worst,
        "findings": findings,
    })
}

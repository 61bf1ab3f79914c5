//! Run golden cases through a backend.

use plumbline_core::catalog;
use plumbline_core::num::Dtype;

use super::report::{CaseReport, Finding, FindingKind, Report, Verdict, Worst};
use crate::backend::{Backend, Failure};
use crate::compare::{Tier, compare};
use crate::fixture::{Case, Golden};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Request, Wanted};

/// Run all cases whose identifier or operation contains `filter`; `done` is called after each.
pub fn verify(backend: &dyn Backend, files: &[Golden], filter: &str, mut done: impl FnMut(&CaseReport)) -> Report {
    let mut cases = Vec::new();
    for golden in files {
        for case in &golden.cases {
            if case.id.contains(filter) || case.operation.contains(filter) {
                let report = verify_case(backend, golden, case);
                done(&report);
                cases.push(report);
            }
        }
    }
    Report { backend: backend.name().to_owned(), cases }
}

/// Run one case.
pub fn verify_case(backend: &dyn Backend, golden: &Golden, case: &Case) -> CaseReport {
    let mut report = CaseReport {
        id: case.id.clone(),
        file: golden.file.clone(),
        operation: case.operation.clone(),
        dialect: case.dialect.clone(),
        family: case.family().to_owned(),
        verdict: Verdict::Holds,
        findings: Vec::new(),
        worst: [Worst::default(); 2],
    };
    let dtype = golden.dtype();
    let ended = |mut report: CaseReport, verdict: Verdict, words: String| {
        report.verdict = verdict;
        report.findings.push(Finding { output: None, kind: FindingKind::NoAnswer(words) });
        report
    };
    if !backend.dtypes().contains(&dtype) {
        let words = format!("skipped: {} does not compute in {}", backend.name(), dtype.name());
        return ended(report, Verdict::Skipped, words);
    }
    let names: Vec<&str> = case.expected.iter().map(|(name, _)| name.as_str()).collect();
    let request = Request {
        operation: &case.operation,
        dialect: dialect_of(case),
        dtype,
        params: &case.params,
        inputs: &case.inputs,
        outputs: Wanted::Named(&names),
    };
    let outputs = match backend.evaluate(&request) {
        Ok(outputs) => outputs,
        Err(failure) => {
            let verdict = match failure {
                Failure::Refused(_) => Verdict::Fails,
                Failure::Skipped(_) => Verdict::Skipped,
                Failure::Broke(_) => Verdict::Broke,
            };
            return ended(report, verdict, failure.to_string());
        }
    };
    let tier = Tier::Oracle(case.oracle_precision.map_or(dtype, |precision| precision.dtype()));
    for (name, expected) in &case.expected {
        let finding = |kind: FindingKind| Finding { output: Some(name.clone()), kind };
        let Some((_, got)) = outputs.iter().find(|(output, _)| output == name) else {
            report.findings.push(finding(FindingKind::Missing));
            continue;
        };
        let bound = tier.bound(terms(case), scale(case, expected));
        match compare(expected, got, tier, dtype, bound) {
            Some(agreement) => {
                report.worst[usize::from(tier == Tier::Oracle(Dtype::F64))].add(&agreement);
                if agreement.outside > 0 {
                    report.findings.push(finding(FindingKind::Differs { agreement: Box::new(agreement), dtype }));
                }
            }
            None => {
                let (expected, got) = (expected.shape.clone(), got.shape.clone());
                report.findings.push(finding(FindingKind::Shape { expected, got }));
            }
        }
    }
    if !report.findings.is_empty() {
        report.verdict = Verdict::Fails;
    }
    report
}

/// The dialect to ask for. Golden cases always name the library that they come from; an operation on which libraries
/// do not differ declares no dialects, and then the name selects nothing.
pub fn dialect_of(case: &Case) -> Option<&str> {
    let declared = catalog::find(&case.operation).is_none_or(|operation| !operation.dialects.is_empty());
    declared.then_some(case.dialect.as_str())
}

/// The most terms that one number of the case's outputs can be a sum of: the elements of its largest input.
fn terms(case: &Case) -> usize {
    case.inputs.iter().map(|(_, input)| input.values.len()).max().unwrap_or(1)
}

/// The largest magnitude of the terms behind an output: for an array its own largest element, for a scalar that of
/// everything the case expects (a loss's terms show in its per-token outputs and, times their number, in its gradient),
/// and at least 1, the order of magnitude of the inputs.
fn scale(case: &Case, expected: &Tensor) -> f64 {
    let own = if expected.shape.is_empty() {
        case.expected.iter().map(|(_, tensor)| tensor.magnitude()).fold(0.0, f64::max)
    } else {
        expected.magnitude()
    };
    own.max(1.0)
}

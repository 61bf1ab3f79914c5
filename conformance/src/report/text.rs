//! The report for a terminal: a table, then one paragraph for each finding.

use std::fmt::Write as _;

use super::style::{BAD, GOOD, HEAD, UNSURE};
use super::{Report, words};
use plumbline_diagnosis::{Diagnosis, Verdict};

/// The report; styles are stripped by the writer where the output is no terminal.
pub fn as_text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(text, "{} {} ({}), seed {}", report.name, report.version, report.dtype, report.seed)?;
    writeln!(text)?;
    let rows: Vec<[String; 5]> = report
        .operations
        .iter()
        .map(|checked| {
            [
                checked.id.clone(),
                checked.dialect.clone().unwrap_or_else(|| "-".into()),
                words(&checked.diagnosis.verdict) + if checked.is_known() { " (known)" } else { "" },
                checked.diagnosis.compared.to_string(),
                cause(&checked.diagnosis),
            ]
        })
        .collect();
    let head = ["operation", "dialect", "verdict", "cases", "cause"];
    let width = |column: usize| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        widest.max(head[column].len())
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let [a, b, c, d] = widths;
    writeln!(text, "{HEAD}{:a$}  {:b$}  {:c$}  {:>d$}  {}{HEAD:#}", head[0], head[1], head[2], head[3], head[4])?;
    for (row, checked) in rows.iter().zip(&report.operations) {
        let style = match checked.diagnosis.verdict {
            Verdict::Conforms | Verdict::ConformsToDialect(_) => GOOD,
            _ if checked.is_known() => UNSURE,
            Verdict::NotCompared => UNSURE,
            _ => BAD,
        };
        let line = format!("{:a$}  {:b$}  {style}{:c$}{style:#}  {:>d$}  {}", row[0], row[1], row[2], row[3], row[4]);
        writeln!(text, "{}", line.trim_end())?;
    }
    for checked in &report.operations {
        for (finding, known) in checked.diagnosis.findings.iter().zip(&checked.known) {
            writeln!(text)?;
            writeln!(text, "{HEAD}{} — {}{HEAD:#}", checked.id, finding.kind.name())?;
            writeln!(text, "{}", finding.text)?;
            if let Some(reason) = known {
                writeln!(text, "{UNSURE}Known{UNSURE:#}: {reason}")?;
            }
            if !finding.case.is_empty() {
                writeln!(text, "Reproduce: {}", report.reproduce(checked, &finding.case))?;
            }
        }
        if !checked.diagnosis.skipped.is_empty() {
            let mut reasons = checked.diagnosis.skipped.clone();
            reasons.sort();
            reasons.dedup();
            writeln!(text)?;
            let count = match checked.diagnosis.skipped.len() {
                1 => "1 case was".to_owned(),
                several => format!("{several} cases were"),
            };
            writeln!(text, "{}: {count} left out by the implementation: {}.", checked.id, reasons.join("; "))?;
        }
        if checked.diagnosis.compared > 0 && !checked.diagnosis.gradients && has_gradient(&checked.id) {
            writeln!(text)?;
            writeln!(
                text,
                "{}: no gradients were given, so that what only the gradient shows (stop-gradients, leaks into the \
                 gradient) was not checked.",
                checked.id
            )?;
        }
    }
    for stale in &report.stale {
        writeln!(text)?;
        writeln!(
            text,
            "{BAD}{}{BAD:#}: `{}` is listed as a known deviation and no longer occurs; take it off the list.",
            stale.operation, stale.cause
        )?;
    }
    let relying: Vec<&str> =
        report.operations.iter().filter(|checked| checked.finite_padding).map(|checked| checked.id.as_str()).collect();
    if !relying.is_empty() {
        writeln!(text)?;
        writeln!(
            text,
            "NaN and infinities under the mask were not tried: the implementation relies on finite padding in {}.",
            relying.join(", ")
        )?;
    }
    Ok(())
}

fn has_gradient(id: &str) -> bool {
    plumbline_core::catalog::find(id)
        .is_some_and(|operation| operation.outputs.iter().any(|output| output.gradient_of.is_some()))
}

/// The causes in a few words.
pub(super) fn cause(diagnosis: &Diagnosis) -> String {
    let mut causes: Vec<String> = Vec::new();
    for finding in &diagnosis.findings {
        let cause = match finding.explanations.first() {
            Some(explanation) => explanation.ids.join(" + "),
            None => finding.kind.name().into(),
        };
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes.join(", ")
}

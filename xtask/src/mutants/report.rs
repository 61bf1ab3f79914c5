//! The confusion matrix as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::not_applicable::ROWS;
use super::{Figures, Matrix, Outcome};

/// The lines of those that were not named first (of all where `verbose`), then the figures.
pub fn text(matrix: &Matrix, verbose: bool) -> String {
    let mut text = String::new();
    for outcome in matrix.collection.iter().chain(&matrix.held_out) {
        if verbose || outcome.place != Some(1) {
            let place = outcome.place.map_or("not named".into(), |place| format!("named as number {place}"));
            let row = outcome.mutant.row;
            let _ = writeln!(text, "{row:<5} {:>5.2} s  {place}: {}", outcome.seconds, outcome.mutant.title);
            let _ = writeln!(text, "      wanted {}", outcome.mutant.names.join(" | "));
            let _ = writeln!(text, "      found  {}", outcome.names.join(" ; "));
        }
    }
    for (row, reason) in ROWS.iter().filter(|_| verbose) {
        let _ = writeln!(text, "{row:<5} not applicable: {reason}");
    }
    for alarm in &matrix.false_alarms {
        let _ = writeln!(text, "false alarm: {alarm}");
    }
    let _ = writeln!(text, "              mutants  detected  named first  named in the first three");
    for (name, outcomes) in [("collection", &matrix.collection), ("held out", &matrix.held_out)] {
        let figures = Figures::of(outcomes);
        let _ = writeln!(
            text,
            "{name:<12}  {:>7}  {:>8}  {:>11}  {:>24}",
            figures.mutants, figures.detected, figures.named_first, figures.named_top3
        );
    }
    let _ = writeln!(text, "rows not applicable: {}", ROWS.len());
    let _ = write!(text, "false alarms: {} of {} right implementations", matrix.false_alarms.len(), matrix.controls);
    text
}

/// One object.
pub fn json(matrix: &Matrix) -> Result<String, String> {
    let all = |outcomes: &[Outcome]| -> Vec<Value> {
        let one = |outcome: &Outcome| {
            json!({
                "row": outcome.mutant.row,
                "title": outcome.mutant.title,
                "operation": outcome.mutant.subject.operation,
                "dialect": outcome.mutant.subject.dialect,
                "variant": outcome.mutant.variant,
                "detected": outcome.detected,
                "place": outcome.place,
                "wanted": outcome.mutant.names,
                "found": outcome.names,
            })
        };
        outcomes.iter().map(one).collect()
    };
    let figures = Figures::of(&matrix.collection);
    let held_out = Figures::of(&matrix.held_out);
    let object = json!({
        "mutants": figures.mutants,
        "detected": figures.detected,
        "named_first": figures.named_first,
        "named_top3": figures.named_top3,
        "false_alarms": matrix.false_alarms.len(),
        "controls": matrix.controls,
        "false_alarm_list": matrix.false_alarms,
        "held_out": {
            "mutants": held_out.mutants,
            "detected": held_out.detected,
            "named_first": held_out.named_first,
            "named_top3": held_out.named_top3,
        },
        "rows": all(&matrix.collection),
        "held_out_rows": all(&matrix.held_out),
        "not_applicable": ROWS.iter().map(|(row, reason)| json!({"row": row, "reason": reason})).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&object).map_err(|error| error.to_string())
}

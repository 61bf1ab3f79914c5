//! A golden run as text for people.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::report::{Report, Verdict, Worst};

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The table per family and the sum line.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{BOLD}{:<14}{:>7}{:>8}{:>9}{:>12}{:>14}{:>12}{:>14}{:>11}{BOLD:#}",
        "family", "cases", "failed", "skipped", "f64 ulp", "f64 relative", "f32 ulp", "f32 relative", "cancelled"
    );
    for family in report.families() {
        let style = if family.failed == 0 { GOOD } else { BAD };
        let [single, double] = &family.worst;
        let _ = writeln!(
            text,
            "{style}{:<14}{:>7}{:>8}{style:#}{:>9}{:>12}{:>14}{:>12}{:>14}{:>11}",
            family.family,
            family.cases,
            family.failed,
            family.skipped,
            ulp(double),
            relative(double),
            ulp(single),
            relative(single),
            double.cancelled + single.cancelled,
        );
    }
    let (failed, style) = (report.failed(), if report.failed() == 0 { GOOD } else { BAD });
    let _ = writeln!(
        text,
        "{style}{} cases, {failed} failed, {} skipped{style:#} (backend {})",
        report.cases.len(),
        report.skipped(),
        report.backend
    );
    text
}

fn ulp(worst: &Worst) -> String {
    match (worst.elements, worst.ulp) {
        (0, _) => "-".to_owned(),
        (_, ulp) if ulp > 99_999_999 => "> 10^8".to_owned(),
        (_, ulp) => ulp.to_string(),
    }
}

fn relative(worst: &Worst) -> String {
    if worst.elements == 0 { "-".to_owned() } else { format!("{:.1e}", worst.relative) }
}

/// What is wrong, case by case; empty where nothing is.
pub fn findings_text(report: &Report) -> String {
    let mut text = String::new();
    for case in report.cases.iter().filter(|case| matches!(case.verdict, Verdict::Fails | Verdict::Broke)) {
        let _ = writeln!(text, "{BAD}{}{BAD:#} ({}, dialect {}, {})", case.id, case.operation, case.dialect, case.file);
        for finding in &case.findings {
            let _ = writeln!(text, "    {}", finding.text());
        }
    }
    text
}

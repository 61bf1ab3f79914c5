//! A check as JUnit XML, which continuous integration displays.

use plumbline_diagnosis::Verdict;
use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::{Checked, Report, words};

/// The XML: one suite, one test per operation, whose findings are the message.
pub fn as_junit(report: &Report) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new(format!("{} {} ({})", report.name, report.version, report.dtype));
    suite.add_test_cases(report.operations.iter().map(|checked| test_case(report, checked)));
    let mut document = Document::new("plumbline check");
    document.add_test_suite(suite);
    document.to_string()
}

fn test_case(report: &Report, checked: &Checked) -> TestCase {
    let status = match checked.diagnosis.verdict {
        _ if checked.is_known() => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("a known deviation");
            status
        }
        Verdict::Conforms | Verdict::ConformsToDialect(_) => TestCaseStatus::success(),
        Verdict::NotCompared => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message("no case was compared");
            status
        }
        Verdict::Differs | Verdict::Broken => {
            let kind = match checked.diagnosis.verdict {
                Verdict::Broken => NonSuccessKind::Error,
                _ => NonSuccessKind::Failure,
            };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(words(&checked.diagnosis.verdict));
            let findings: Vec<String> = checked
                .diagnosis
                .findings
                .iter()
                .map(|finding| format!("{}\nReproduce: {}", finding.text, report.reproduce(checked, &finding.case)))
                .collect();
            status.set_description(findings.join("\n\n"));
            status
        }
    };
    let mut test = TestCase::new(checked.id.clone(), status);
    test.set_classname(checked.dialect.clone().unwrap_or_else(|| "defaults".into()));
    test
}

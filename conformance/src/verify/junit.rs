//! A golden run as JUnit XML, which continuous integration displays.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::report::{CaseReport, Finding, Report, Verdict};

/// The XML: one suite per family, one test per case.
pub fn junit(report: &Report) -> Result<String, quick_junit::SerializeError> {
    let mut document = Document::new(format!("plumbline verify ({})", report.backend));
    for family in report.families() {
        let mut suite = TestSuite::new(family.family.clone());
        let cases = report.cases.iter().filter(|case| case.family == family.family);
        suite.add_test_cases(cases.map(test_case));
        document.add_test_suite(suite);
    }
    document.to_string()
}

fn test_case(case: &CaseReport) -> TestCase {
    let message = case.findings.iter().map(Finding::text).collect::<Vec<_>>().join("\n");
    let status = match case.verdict {
        Verdict::Holds => TestCaseStatus::success(),
        Verdict::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(message);
            status
        }
        Verdict::Fails | Verdict::Broke => {
            let kind = if case.verdict == Verdict::Broke { NonSuccessKind::Error } else { NonSuccessKind::Failure };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(message);
            status
        }
    };
    let mut test = TestCase::new(case.id.clone(), status);
    test.set_classname(case.operation.clone());
    test
}

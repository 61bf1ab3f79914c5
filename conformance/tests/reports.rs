//! The reports of `plumbline check`: JSON by its schema, JUnit, HTML, and known deviations.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn check(options: &[&str], adapter: &str, arguments: &[&str]) -> (i32, String, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters").join(adapter);
    let mut command = Command::cargo_bin("plumbline").unwrap();
    command.arg("check").args(options).args(["--", "python3"]).arg(program).args(arguments);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn file(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

#[test]
fn the_json_is_what_its_schema_says() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/schema/plumbline-check-1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (adapter, mode) in [
        ("planted.py", "none"),
        ("planted.py", "kl-operands-swapped"),
        ("planted.py", "masked-nan"),
        ("hostile.py", "nan"),
        ("hostile.py", "kills-itself"),
        ("hostile.py", "raises"),
        ("hostile.py", "skips"),
    ] {
        let (_, out, err) = check(&["--json", "--timeout", "5"], adapter, &[mode]);
        let value: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{mode}: {error}: {err}"));
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{mode}: {errors:?}");
    }
}

#[test]
fn junit_has_a_test_for_each_operation_and_the_findings_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = file(&folder, "check.xml");
    let (code, _, _) = check(&["--junit", &name], "planted.py", &["kl-operands-swapped"]);
    let xml = std::fs::read_to_string(&path).unwrap();
    assert_eq!(code, 1);
    assert!(xml.contains("tests=\"1\"") && xml.contains("failures=\"1\""), "{xml}");
    assert!(xml.contains("swapped operand") && xml.contains("Reproduce: plumbline check --op "), "{xml}");
    let (code, _, _) = check(&["--junit", &name], "planted.py", &["none"]);
    let xml = std::fs::read_to_string(&path).unwrap();
    assert_eq!(code, 0);
    assert!(xml.contains("tests=\"1\"") && xml.contains("failures=\"0\""), "{xml}");
    let (code, out, err) = check(&["--junit", "/nonexistent/check.xml"], "planted.py", &["none"]);
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
}

#[test]
fn the_html_stands_alone_and_shows_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = file(&folder, "check.html");
    // The dual clip needs a token of negative advantage only; the finding of the operands has a case with both signs. Each
    // sign has a plot of the value and one of the gradient, and each plot the subject's line.
    for (mistake, plots, needed) in [
        ("dual-clip-never-active", 2, ["class=\"zone\"", "log_prob - old_log_prob"]),
        ("kl-operands-swapped", 4, ["swapped", "log_prob - old_log_prob"]),
    ] {
        let (code, _, _) = check(&["--html", &name], "planted.py", &[mistake]);
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(code, 1, "{mistake}");
        for needed in ["<!doctype html>", "lang=\"en\"", "prefers-color-scheme:dark", "plumbline check --op "] {
            assert!(page.contains(needed), "{mistake}: {needed}");
        }
        for needed in needed {
            assert!(page.contains(needed), "{mistake}: {needed}");
        }
        for absent in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(absent), "{mistake}: {absent}");
        }
        assert_eq!(page.matches("<svg").count(), plots, "{mistake}");
        assert_eq!(page.matches("class=\"given\"").count(), plots, "{mistake}");
        for tag in ["table", "svg", "section", "figure", "tr", "td", "p"] {
            let (open, closed) = (page.matches(&format!("<{tag}")).count(), page.matches(&format!("</{tag}>")).count());
            let longer = if tag == "p" { page.matches("<pre").count() + page.matches("<path").count() } else { 0 };
            assert_eq!(open - longer, closed, "{mistake}: {tag}");
        }
    }
}

#[test]
fn known_deviations_gate_and_must_still_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = file(&folder, "known.json");
    let write = |entries: &str| std::fs::write(&path, format!(r#"{{"known": [{entries}]}}"#)).unwrap();
    let right = r#"{"operation": "objective.grpo", "cause": "reversed:log_prob-ref_log_prob", "reason": "issue 12"}"#;
    let (_, out, _) = check(&["--json"], "planted.py", &["kl-operands-swapped"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let id = report["operations"][0]["id"].as_str().unwrap();
    let right = right.replace("objective.grpo", id);
    write(&right);
    let (code, out, err) = check(&["--known", &name], "planted.py", &["kl-operands-swapped"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("differs (known)") && out.contains("Known: issue 12"), "{out}");
    // The mistake is mended: the entry must go.
    let (code, out, _) = check(&["--known", &name], "planted.py", &["none"]);
    assert_eq!(code, 1);
    assert!(out.contains("listed as a known deviation and no longer occurs"), "{out}");
    // Another mistake than the one that is known.
    let (code, _, _) = check(&["--known", &name], "planted.py", &["k1-for-k3"]);
    assert_eq!(code, 1);
    write(&right.replace("reason", "because"));
    let (code, out, err) = check(&["--known", &name], "planted.py", &["none"]);
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
    assert!(err.contains("unknown field `because`"), "{err}");
}

//! The golden run: every golden file is valid and core agrees with every oracle.

use std::collections::BTreeSet;
use std::path::Path;

use plumbline_conformance::backend::Core;
use plumbline_conformance::fixture::{self, embedded_texts};
use plumbline_conformance::verify::{findings_text, verify};

#[test]
fn core_agrees_with_every_golden_case() {
    let files = fixture::embedded().unwrap();
    let report = verify(&Core, &files, "", |_| {});
    assert!(report.cases.len() >= 3_500, "only {} golden cases are left", report.cases.len());
    let findings = findings_text(&report);
    let plain = anstream::adapter::strip_str(&findings).to_string();
    let first: Vec<&str> = plain.lines().take(40).collect();
    assert_eq!((report.failed(), report.skipped()), (0, 0), "failed and skipped; the first:\n{}", first.join("\n"));
}

#[test]
fn every_golden_file_satisfies_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/schema");
    let text = std::fs::read_to_string(folder.join("plumbline-fixture-1.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(!validator.is_valid(&serde_json::json!({"schema": "plumbline-fixture-1"})), "the schema accepts anything");
    let mut faults = Vec::new();
    for (file, text) in embedded_texts() {
        let instance = serde_json::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        faults
            .extend(validator.iter_errors(&instance).map(|error| format!("{file}{}: {error}", error.instance_path())));
    }
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
    assert!(embedded_texts().len() >= 100, "only {} golden files are left", embedded_texts().len());
}

#[test]
fn the_files_inside_the_binary_are_those_on_disk() {
    let files = fixture::directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/golden")).unwrap();
    let on_disk: BTreeSet<&str> = files.iter().map(|golden| golden.file.as_str()).collect();
    let inside: BTreeSet<&str> = embedded_texts().iter().map(|(file, _)| *file).collect();
    assert_eq!(on_disk, inside);
}

#[test]
fn values_under_a_zero_mask_are_expected_to_have_no_gradient() {
    let mut checked = 0;
    for golden in fixture::embedded().unwrap() {
        for case in &golden.cases {
            let Some((_, mask)) = case.inputs.iter().find(|(name, _)| name == "mask") else { continue };
            for (name, gradient) in case.expected.iter().filter(|(name, _)| name.starts_with("d_")) {
                if gradient.shape == mask.shape {
                    for (slot, kept) in mask.values.iter().enumerate() {
                        if *kept == 0.0 {
                            assert_eq!(gradient.values[slot], 0.0, "{}: `{name}` at {slot}", case.id);
                            checked += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 1000, "only {checked} masked slots were seen");
}

#[test]
fn every_output_can_be_asked_for_alone() {
    let mut seen = BTreeSet::new();
    let mut asked = 0;
    let files = fixture::embedded().unwrap();
    for (dtype, case) in files.iter().flat_map(|golden| golden.cases.iter().map(|case| (golden.dtype(), case))) {
        let names: Vec<&str> = case.expected.iter().map(|(name, _)| name.as_str()).collect();
        if !seen.insert((case.operation.clone(), names.clone().join(" "))) {
            continue;
        }
        let operation = plumbline_core::catalog::find(&case.operation).unwrap();
        for name in names {
            let request = plumbline_evaluate::Request {
                operation: &case.operation,
                dialect: operation.dialect(&case.dialect).map(|dialect| dialect.name),
                dtype,
                params: &case.params,
                inputs: &case.inputs,
                outputs: plumbline_evaluate::Wanted::Named(&[name]),
            };
            // An output that the operation works in, but does not declare so, would be refused as missing.
            let outputs =
                plumbline_evaluate::evaluate(&request).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id));
            assert_eq!(outputs[0].0, name, "{}", case.id);
            asked += 1;
        }
    }
    assert!(asked >= 600, "only {asked} outputs were asked for");
}

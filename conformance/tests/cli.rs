//! The program's exit codes and messages.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("data/k1.f64.json");

fn plumbline(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plumbline").unwrap();
    command.args(arguments);
    command
}

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn run(arguments: &[&str], input: &str) -> Outcome {
    let output = plumbline(arguments).write_stdin(input.to_owned()).output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Bad usage or input: code 2, nothing on standard output, one sentence on standard error.
fn refused(arguments: &[&str], input: &str) -> String {
    let outcome = run(arguments, input);
    assert_eq!((outcome.code, outcome.out.as_str()), (2, ""), "{arguments:?}: {}", outcome.err);
    assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
    assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
    outcome.err.trim_end().trim_start_matches("plumbline: ").to_owned()
}

fn fixtures(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("test")).unwrap();
    fs::write(folder.path().join("test/k1.f64.json"), text).unwrap();
    folder
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const BATCH: &str = r#"{"inputs": {"log_prob": [[-0.5, -1.0]], "ref_log_prob": [[-0.75, -0.5]]}}"#;

#[test]
fn without_arguments_it_tells_its_usage() {
    assert_eq!(run(&[], "").code, 2);
    assert_eq!(run(&["--help"], "").code, 0);
    for command in ["list", "explain", "eval", "verify"] {
        let help = run(&[command, "--help"], "");
        assert_eq!(help.code, 0);
        assert!(help.out.contains("Examples:"), "{command} has no examples");
    }
    assert_eq!(run(&["verify", "--no-such-flag"], "").code, 2);
}

#[test]
fn list_and_explain_show_the_catalog() {
    let all = object(&run(&["list", "--json"], "").out);
    let ids: Vec<&str> =
        all["operations"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), plumbline_core::catalog::operations().count());
    assert!(ids.contains(&"kl.k1"));
    let family = object(&run(&["list", "--family", "kl", "--json"], "").out);
    assert!(family["operations"].as_array().unwrap().iter().all(|entry| entry["family"] == "kl"));
    assert_eq!(refused(&["list", "--family", "k1"], ""), "no family is called `k1`; did you mean `kl`?");

    for id in ids {
        let text = run(&["explain", id], "");
        assert_eq!(text.code, 0);
        let entry = object(&run(&["explain", id, "--json"], "").out);
        for part in [&entry["formula"], &entry["summary"], &entry["sources"][0]["place"], &entry["outputs"][0]["name"]]
        {
            assert!(text.out.contains(part.as_str().unwrap()), "{id}: {part} is not in the text");
        }
    }
    assert_eq!(refused(&["explain", "kl.k11"], ""), "no operation is called `kl.k11`; did you mean `kl.k1`?");
}

#[test]
fn eval_reads_standard_input_and_files() {
    let outcome = run(&["eval", "kl.k1"], BATCH);
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "kl [1, 2]\n  0.25  -0.5\n"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.json");
    fs::write(&file, BATCH).unwrap();
    let outcome = run(&["eval", "kl.k1", file.to_str().unwrap(), "--grad", "--hex", "--dtype", "f32"], "");
    assert_eq!(
        outcome.out,
        "kl [1, 2]\n  0.25 (3e800000)  -0.5 (bf000000)\nd_log_prob [1, 2]\n  1.0 (3f800000)  1.0 (3f800000)\n"
    );
    let outcome = run(&["eval", "kl.k3", "-", "--json", "--hex", "--dialect", "verl-0.9"], BATCH);
    let result = object(&outcome.out);
    assert_eq!(result["params"], json!({"difference_clamp": 20.0, "value_clamp": 10.0}));
    assert_eq!(result["outputs"]["kl"]["shape"], json!([1, 2]));
    assert_eq!(result["outputs"]["kl"]["bits"].as_array().unwrap().len(), 2);
    assert_eq!(result["outputs"].as_object().unwrap().len(), 1);
}

#[test]
fn eval_says_what_is_wrong_in_one_sentence() {
    let eval = |input: &str| refused(&["eval", "kl.k3"], input);
    assert_eq!(eval("[1]"), r#"the input must be a JSON object: {"inputs": {...}, "params": {...}}"#);
    assert!(eval("{").starts_with("the input is no JSON: EOF"));
    assert!(eval(&"[".repeat(100_000)).starts_with("the input is no JSON: recursion limit"));
    assert_eq!(
        eval(r#"{"input": {}}"#),
        "the input has a member `input`, known are `inputs` and `params`; did you mean `inputs`?"
    );
    assert_eq!(
        eval(r#"{"inputs": {"log_prob": [[1, 2], [3]]}}"#),
        "`log_prob`: the nested lists are ragged: one has 1 entries, another 2"
    );
    assert_eq!(
        eval(r#"{"inputs": {"log_prob": [["nan"]]}}"#),
        "`log_prob`: invalid value: string \"nan\", expected a number, or \"NaN\", \"Infinity\", \"-Infinity\""
    );
    assert_eq!(eval(r#"{"inputs": {}}"#), "`log_prob` is required but was not given");
    let with = |params: &str| eval(&BATCH.replace("}}", &format!("}}, \"params\": {params}}}")));
    assert_eq!(
        with(r#"{"value_clam": 1}"#),
        "no parameter of kl.k3 is called `value_clam`; did you mean `value_clamp`?"
    );
    assert_eq!(with(r#"{"value_clamp": -1}"#), "`value_clamp` is -1, legal is > 0");
    assert_eq!(with(r#"{"value_clamp": "off"}"#), "`value_clamp` must be a number");
    assert_eq!(
        with(r#"{"value_clamp": [1]}"#),
        "`value_clamp`: invalid type: sequence, expected null, a number, true, false or a name"
    );
    let nan = BATCH.replace("-1.0", "\"NaN\"");
    assert_eq!(eval(&nan), "`log_prob` at index 1 is not finite");
    assert_eq!(
        refused(&["eval", "kl.k3", "--dialect", "verl"], BATCH),
        "no dialect of kl.k3 is called `verl`; did you mean `verl-0.9`?"
    );
    assert!(refused(&["eval", "kl.k3", "/no/such/file"], "").starts_with("/no/such/file cannot be read: "));
}

#[test]
fn verify_ends_with_0_where_all_holds() {
    let folder = fixtures(SAMPLE);
    let directory = folder.path().to_str().unwrap();
    let outcome = run(&["verify", "--fixtures", directory, "--json"], "");
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let report = object(&outcome.out);
    assert_eq!((&report["cases"], &report["failed"], &report["skipped"]), (&json!(2), &json!(0), &json!(0)));
    assert_eq!(report["families"][0]["family"], "kl");
    assert_eq!(report["families"][0]["f64"]["elements"], 9);
    let one = object(&run(&["verify", "--fixtures", directory, "--json", "--filter", "plain"], "").out);
    assert_eq!(one["cases"], 1);
}

#[test]
fn verify_ends_with_1_where_a_value_differs_and_says_where() {
    let wrong = SAMPLE.replacen("0.25,-0.5", "0.25,-0.625", 1).replacen(
        "\"3fd0000000000000\",\"bfe0000000000000\"",
        "\"3fd0000000000000\",\"bfe4000000000000\"",
        1,
    );
    let folder = fixtures(&wrong);
    let directory = folder.path().to_str().unwrap();
    let junit = folder.path().join("junit.xml");
    let outcome = run(&["verify", "--fixtures", directory, "--junit", junit.to_str().unwrap()], "");
    assert_eq!(outcome.code, 1);
    let told = "`kl` at [0, 1]: expected -0.625 (bfe4000000000000), got -0.5 (bfe0000000000000), apart 1.250e-1";
    assert!(outcome.out.contains("test/k1/masked") && outcome.out.contains(told), "{}", outcome.out);
    assert!(outcome.out.contains("2 cases, 1 failed, 0 skipped"), "{}", outcome.out);
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains(r#"tests="2""#) && xml.contains(r#"failures="1""#) && xml.contains("test/k1/masked"), "{xml}");
    let report = object(&run(&["verify", "--fixtures", directory, "--json"], "").out);
    let finding = &report["failures"][0]["findings"][0];
    assert_eq!(
        (&finding["position"], &finding["expected"], &finding["got"]),
        (&json!([0, 1]), &json!(-0.625), &json!(-0.5))
    );
}

#[test]
fn an_operation_that_is_not_in_the_catalog_fails() {
    let folder = fixtures(&SAMPLE.replacen("kl.k1", "kl.k11", 1));
    let outcome = run(&["verify", "--fixtures", folder.path().to_str().unwrap()], "");
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("refused: no operation is called `kl.k11`"), "{}", outcome.out);
    assert!(outcome.out.contains("2 cases, 1 failed, 0 skipped"), "{}", outcome.out);
}

#[test]
fn verify_ends_with_2_on_bad_input() {
    let broken = fixtures(&SAMPLE[..400]);
    let message = refused(&["verify", "--fixtures", broken.path().to_str().unwrap()], "");
    assert!(message.starts_with("test/k1.f64.json: "), "{message}");
    assert!(refused(&["verify", "--fixtures", "/no/such/folder"], "").starts_with("/no/such/folder: "));
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&["verify", "--fixtures", empty.path().to_str().unwrap()], "").ends_with("holds no .json file"));
    assert_eq!(refused(&["verify", "--backend", "cor"], ""), "no backend is called `cor`; did you mean `core`?");
    assert_eq!(
        refused(&["verify", "--filter", "no such case"], ""),
        "no golden case has `no such case` in its id or operation"
    );
    let folder = fixtures(SAMPLE);
    let directory = folder.path().to_str().unwrap();
    assert!(
        refused(&["verify", "--fixtures", directory, "--junit", "/no/such/junit.xml"], "")
            .contains("cannot be written")
    );
    assert!(!Path::new("/no/such/junit.xml").exists());
}

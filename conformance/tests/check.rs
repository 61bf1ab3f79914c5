//! `plumbline check` against adapters that are right, that hold a planted mistake, and that misbehave.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn adapter(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters").join(name)
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/adapters").join(name)
}

fn check(options: &[&str], program: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::cargo_bin("plumbline").unwrap();
    command.arg("check").args(options).arg("--").arg("python3").arg(program).args(arguments);
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn object(options: &[&str], program: &Path, arguments: &[&str]) -> (i32, Value) {
    let options = [&["--json"], options].concat();
    let outcome = check(&options, program, arguments);
    let value = serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{error}: {}", outcome.err));
    (outcome.code, value)
}

/// The identifiers of the explanations of the first finding, joined by +, simplest first.
fn causes(report: &Value) -> Vec<String> {
    let explanations = report["operations"][0]["findings"][0]["explanations"].as_array().unwrap();
    let ids = |explanation: &Value| {
        let ids: Vec<&str> = explanation["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        ids.join("+")
    };
    explanations.iter().map(ids).collect()
}

#[test]
fn an_implementation_that_is_right_conforms_in_value_and_gradient() {
    for (program, arguments) in [(example("grpo_pure_python.py"), vec![]), (adapter("planted.py"), vec!["none"])] {
        for seed in ["1", "2", "3"] {
            let (code, report) = object(&["--seed", seed], &program, &arguments);
            let operation = &report["operations"][0];
            assert_eq!((code, operation["verdict"].as_str()), (0, Some("conforms")), "{report:#}");
            assert_eq!(operation["gradients"], true);
            assert!(operation["cases"].as_u64().unwrap() >= 25, "{report:#}");
            assert_eq!(operation["skipped"].as_array().unwrap().len(), 0);
            assert_eq!(report["conforms"], true);
        }
    }
}

#[test]
fn the_readmes_planted_mistake_is_named_in_words() {
    let outcome = check(&[], &example("grpo_planted_mistake.py"), &[]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.out.contains("objective.grpo  paper    differs"), "{}", outcome.out);
    assert!(
        outcome.out.contains("`ref_log_prob` - `log_prob` stands where `log_prob` - `ref_log_prob` should"),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("Reproduce: plumbline check --op objective.grpo --dialect paper --seed 1 --case "));
    assert!(!outcome.out.contains('\u{1b}'), "colours although the output is no terminal");
    assert_eq!(outcome.err, "");
}

/// The mistake, and the cause that must be named first.
const PLANTED: &[(&str, &str)] = &[
    // A. Aggregation.
    ("token-mean-for-sequence-mean", "param:aggregation=token_mean"),
    ("micro-batches-averaged", "mean-of-means:row-halves"),
    ("not-divided-by-rows", "factor:rows_with_tokens"),
    ("not-divided-by-accumulation-steps", "factor:4"),
    ("mean-over-padding-too", "input:mask:as-zeros"),
    ("kl-doubled", "term:kl_coefficient*2"),
    // B. Masks.
    ("masked-nan", "masked-junk:old_log_prob:value"),
    ("mask-ignored", "input:mask:ignored"),
    ("last-token-dropped", "input:mask:drops-last"),
    // C. Surrogate, clipping, ratio.
    ("dual-clip-never-active", "param:clip_ratio_c=none"),
    ("max-for-min", "min-max-exchanged:advantage"),
    ("second-minus", "factor:-1"),
    ("ratio-against-itself", "input:old_log_prob:ignored"),
    ("kl-subtracted", "term:kl_coefficient*-1"),
    ("clip-bounds-exchanged", "exchanged:clip_ratio_low,clip_ratio_high"),
    // D. Sequence level and newer surrogates.
    ("product-for-geometric-mean", "param:ratio_level=sequence_product"),
    ("cispo-gradient-through-weight", "stop-gradient:missing"),
    ("importance-weight-unused", "input:importance_weight:ignored"),
    // E. KL.
    ("kl-operands-swapped", "reversed:log_prob-ref_log_prob"),
    ("k1-for-k3", "param:kl_estimator=k1"),
    ("k2-without-half", "factor:2"),
    // F. Advantages.
    ("advantage-averaged-over-batch", "input:advantage:batch-mean"),
    ("advantage-sign", "input:advantage:negated"),
    ("groups-ignored", "input:group:one-group"),
    ("population-deviation", "param:ddof=0"),
];

#[test]
fn planted_mistakes_are_caught_and_named() {
    let mut wrong = Vec::new();
    for (mistake, cause) in PLANTED {
        let (code, report) = object(&[], &adapter("planted.py"), &[mistake]);
        assert_eq!(code, 1, "{mistake}: {report:#}");
        let causes = causes(&report);
        if causes.first().map(String::as_str) != Some(cause) {
            wrong.push(format!("{mistake}: {cause} expected, found {causes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_mistake_is_caught_with_every_seed() {
    for seed in ["2", "3", "4", "5"] {
        for (mistake, cause) in [
            ("kl-operands-swapped", "reversed:log_prob-ref_log_prob"),
            ("cispo-gradient-through-weight", "stop-gradient:missing"),
            ("dual-clip-never-active", "param:clip_ratio_c=none"),
        ] {
            let (code, report) = object(&["--seed", seed], &adapter("planted.py"), &[mistake]);
            let causes = causes(&report);
            assert_eq!(
                (code, causes.first().map(String::as_str)),
                (1, Some(cause)),
                "{mistake}, seed {seed}: {causes:?}"
            );
        }
    }
}

#[test]
fn nan_on_large_ratios_only_is_named_an_overflow() {
    let (code, report) = object(&[], &adapter("planted.py"), &["overflow"]);
    assert_eq!(code, 1);
    let finding = &report["operations"][0]["findings"][0];
    assert_eq!((finding["kind"].as_str(), finding["case"].as_str()), (Some("not-finite"), Some("far-ratio")));
    assert!(finding["text"].as_str().unwrap().contains("It happens only where log-ratios are large: an overflow."));
}

#[test]
fn a_reported_case_is_repeated_alone() {
    let (_, whole) = object(&[], &adapter("planted.py"), &["masked-nan"]);
    let case = whole["operations"][0]["findings"][0]["case"].as_str().unwrap().to_owned();
    let (code, alone) = object(&["--case", &case], &adapter("planted.py"), &["masked-nan"]);
    assert_eq!(code, 1);
    // The case, and the same one without junk beside it.
    assert_eq!(alone["operations"][0]["cases"], 2);
    assert_eq!(causes(&alone), causes(&whole));
}

/// The misbehaviour, what is said of it, and the exit code.
const HOSTILE: &[(&str, &str, i32)] = &[
    ("hang", "it hangs: no answer within 1 s", 3),
    ("long-line", "its answer is longer than 16 MiB", 3),
    ("deep", "its answer is nested too deep", 3),
    ("bare-nan", "its answer is no message of the protocol", 3),
    ("wrong-shape", "output `kl` has shape [4, 3] where [3, 4] is right", 3),
    ("short-values", "output `kl`: shape [3, 4] does not hold 11 numbers", 3),
    ("closes-pipe", "it closed its output and went on running", 3),
    ("kills-itself", "it was killed before it answered (signal: 9", 3),
    ("exits", "it ended with exit code 7 before it answered; its last words: `out of luck`", 3),
    ("out-of-order", "it answered out of order: `seq` is ", 3),
    ("garbage", "its answer is no message of the protocol", 3),
    ("no-text", "its answer is no UTF-8 text", 3),
    ("no-output", "its answer lacks the output `kl`", 3),
    ("raises", "it raised ValueError: no", 3),
    ("nan", "`kl` at [0, 0] is NaN where ", 1),
];

#[test]
fn a_hostile_implementation_ends_in_a_clear_line_and_the_run_goes_on() {
    let (_, well) = object(&[], &adapter("hostile.py"), &["skips"]);
    let others = well["operations"][0]["cases"].as_u64().unwrap();
    for (mode, words, expected) in HOSTILE {
        let begin = Instant::now();
        let (code, report) = object(&["--timeout", "1"], &adapter("hostile.py"), &[mode]);
        let operation = &report["operations"][0];
        let finding = &operation["findings"][0];
        let text = finding["text"].as_str().unwrap();
        assert_eq!(code, *expected, "{mode}: {text}");
        assert!(text.contains(words), "{mode}: {text}");
        assert!(!text.contains('\n') && text.len() < 400, "{mode}: {text}");
        assert_eq!(finding["case"], "chosen-1", "{mode}");
        // All other cases were compared.
        assert_eq!(operation["cases"].as_u64().unwrap() - u64::from(*mode == "nan"), others, "{mode}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{mode} took {:?}", begin.elapsed());
    }
}

#[test]
fn an_answer_that_nobody_asked_for_is_out_of_order() {
    let (code, report) = object(&[], &adapter("hostile.py"), &["twice"]);
    assert_eq!(code, 3);
    let text = report["operations"][0]["findings"][0]["text"].as_str().unwrap();
    assert!(text.contains("out of order") || text.contains("nobody asked for"), "{text}");
}

#[test]
fn an_implementation_that_always_breaks_is_given_up() {
    let begin = Instant::now();
    let (code, report) = object(&["--timeout", "1"], &adapter("hostile.py"), &["always-hang"]);
    assert_eq!((code, report["operations"][0]["verdict"].as_str()), (3, Some("broken")));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_skip_needs_no_verdict_and_shows_its_reason() {
    let outcome = check(&[], &adapter("hostile.py"), &["skips"]);
    assert_eq!(outcome.code, 0);
    assert!(
        outcome.out.contains("kl.k3: 1 case was left out by the implementation: not on Mondays."),
        "{}",
        outcome.out
    );
}

#[test]
fn an_implementation_that_does_not_start_says_why() {
    for (mode, words) in [
        ("start-garbage", "its answer is no message of the protocol"),
        ("start-exits", "it ended with exit code 3 before it answered"),
        ("start-old", "it does not speak version 1 of the protocol"),
    ] {
        let outcome = check(&[], &adapter("hostile.py"), &[mode]);
        assert_eq!((outcome.code, outcome.out.as_str()), (3, ""), "{mode}");
        assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
        assert!(outcome.err.contains(words), "{}", outcome.err);
    }
}

#[test]
fn bad_usage_is_code_2_and_one_line() {
    let missing = Path::new("/nonexistent/adapter.py");
    for (options, program, arguments, words) in [
        (vec!["--op", "kl.k9"], adapter("hostile.py"), vec!["nan"], "did you mean `kl."),
        (vec!["--op", "kl.k2"], adapter("hostile.py"), vec!["nan"], "does not implement kl.k2; it declares kl.k3"),
        (vec!["--dialect", "verl"], adapter("planted.py"), vec!["none"], "has no dialect `verl`"),
        (vec!["--case", "chosen-9"], adapter("hostile.py"), vec!["nan"], "kl.k3 has no case `chosen-9`"),
    ] {
        let outcome = check(&options, &program, &arguments);
        assert_eq!((outcome.code, outcome.out.as_str()), (2, ""), "{options:?}: {}", outcome.err);
        assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
        assert!(outcome.err.contains(words), "{}", outcome.err);
    }
    let mut command = Command::cargo_bin("plumbline").unwrap();
    let output = command.args(["check", "--"]).arg(missing).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("`/nonexistent/adapter.py` cannot be started"), "{err}");
}

/// Every line of a conversation, in both directions, is what the schema says.
#[test]
fn the_protocols_schema_describes_the_conversation() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/schema/plumbline-protocol-1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("lines.jsonl");
    let outcome = check(&[], &adapter("recorded.py"), &[record.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.out, outcome.err);
    let text = std::fs::read_to_string(&record).unwrap();
    let mut kinds = [0; 6];
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator.iter_errors(&message).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
        let kind = ["ok", "outputs", "skip"].iter().position(|field| message.get(field).is_some());
        let kind =
            kind.or_else(|| ["start", "run", "stop"].iter().position(|cmd| message["cmd"] == *cmd).map(|k| k + 3));
        kinds[kind.unwrap()] += 1;
    }
    // One greeting with its answer, one end, and an answer to every case, one of them a skip.
    assert_eq!((kinds[0], kinds[2], kinds[3], kinds[5]), (1, 1, 1, 1), "{kinds:?}");
    assert!(kinds[4] > 20 && kinds[4] == kinds[1] + kinds[2], "{kinds:?}");
    for bad in [r#"{"cmd":"run","seq":1}"#, r#"{"seq":1}"#, r#"{"seq":1,"skip":"a","error":"b"}"#, r#"{"cmd":"go"}"#] {
        assert!(!validator.is_valid(&serde_json::from_str(bad).unwrap()), "{bad}");
    }
}

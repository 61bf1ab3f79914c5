//! `plumbline diagnose`: batches in the formats that frameworks write, good and broken.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/batches/grpo_by_its_author.json")
}

fn diagnose(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("plumbline").unwrap().arg("diagnose").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn object(arguments: &[&str]) -> (i32, Value) {
    let (code, out, err) = diagnose(&[arguments, &["--json"]].concat());
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {err}"));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/schema/plumbline-diagnose-1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {value:#}");
    (code, value)
}

fn names(value: &Value) -> Vec<String> {
    let fits = value["fits"].as_array().unwrap().iter();
    let names = fits.flat_map(|fit| fit["names"].as_array().unwrap());
    names
        .map(|name| format!("{} {}", name["operation"].as_str().unwrap(), name["dialect"].as_str().unwrap_or("-")))
        .collect()
}

#[test]
fn the_example_is_not_what_its_author_meant() {
    let path = example();
    let path = path.to_str().unwrap();
    let (code, out, err) = diagnose(&[path]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("This is not objective.grpo [trl-1.16]."), "{out}");
    assert!(out.contains("objective.ppo [paper]"), "{out}");
    assert!(out.contains("`per_token_logps` is taken as `log_prob`"), "{out}");
    assert!(out.contains("rows differ in length: they are padded"), "{out}");
    assert!(!out.contains('\u{1b}'), "colours although the output is no terminal");
    let (code, value) = object(&[path]);
    assert_eq!((code, value["conclusion"].as_str()), (1, Some("changed")));
    assert!(names(&value).contains(&"objective.ppo paper".to_owned()), "{:?}", names(&value));
}

#[test]
fn what_is_meant_and_is_there_holds() {
    let path = example();
    let path = path.to_str().unwrap();
    let loss = object(&[path]).1["meant_value"].as_f64().unwrap();
    let (code, value) = object(&[path, "--loss", &format!("{loss:.7}")]);
    assert_eq!((code, value["conclusion"].as_str()), (0, Some("known")), "{value:#}");
    assert_eq!(names(&value)[0], "objective.grpo trl-1.16");
    // With one digit nothing can be told, and with a stranger's number nothing is known.
    let (code, value) = object(&[path, "--loss", "0.1", "--op", "objective.grpo"]);
    assert!(value["cannot_tell"] == true || value["fits"].as_array().unwrap().is_empty(), "{code} {value:#}");
    let (code, value) = object(&[path, "--loss", "-7531.24681"]);
    assert_eq!((code, value["conclusion"].as_str()), (1, Some("unknown")));
    assert_eq!(value["nearest"].as_array().unwrap().len(), 3);
}

/// The example's arrays under the names of another framework, padded.
fn arrays() -> Vec<(&'static str, Vec<usize>, Vec<f32>)> {
    let file = plumbline_conformance::batch_file::read(&std::fs::read(example()).unwrap()).unwrap();
    let names = ["log_probs", "old_log_probs", "ref_log_probs", "advantages", "response_mask"];
    let array = |(name, (_, array)): (&&'static str, &(String, plumbline_conformance::batch_file::Array))| {
        (*name, array.tensor.shape.clone(), array.tensor.values.iter().map(|value| *value as f32).collect())
    };
    names.iter().zip(&file.arrays).map(array).collect()
}

fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

#[test]
fn npz_and_safetensors_give_the_answer_of_the_json() {
    let folder = tempfile::tempdir().unwrap();
    let npz = folder.path().join("batch.npz");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&npz).unwrap());
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, shape, values) in arrays() {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&npy(&shape, &values)).unwrap();
    }
    archive.finish().unwrap();
    let tensors: Vec<(&str, Vec<usize>, Vec<u8>)> = arrays()
        .into_iter()
        .map(|(name, shape, values)| (name, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect()))
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (*name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    let file = folder.path().join("batch.safetensors");
    std::fs::write(&file, safetensors::serialize(views, None).unwrap()).unwrap();
    let loss = format!("{:.6}", object(&[example().to_str().unwrap()]).1["printed"]["value"].as_f64().unwrap());
    let known = ["--op", "objective.grpo", "--dialect", "trl-1.16", "--params", "kl_coefficient=0.04", "--loss", &loss];
    let expected = names(&object(&[example().to_str().unwrap()]).1);
    for path in [npz, file] {
        let (code, value) = object(&[&[path.to_str().unwrap()], known.as_slice()].concat());
        assert_eq!(code, 1, "{value:#}");
        assert_eq!(names(&value), expected);
    }
}

#[test]
fn bad_input_is_code_2_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch.json");
    let path = file.to_str().unwrap();
    let good: Value = serde_json::from_str(&std::fs::read_to_string(example()).unwrap()).unwrap();
    let with = |name: &str, value: Value| {
        let mut batch = good.clone();
        batch[name] = value;
        batch.to_string()
    };
    for (text, options, words) in [
        ("{".to_owned(), vec![], "it is no JSON"),
        (r#"{"log_prob": [[-1, "x"]], "loss": 1}"#.into(), vec![], "`log_prob` at index [0, 1] is \"x\", not a number"),
        (r#"{"log_prob": [[-1]]}"#.into(), vec![], "it holds no `loss`"),
        (with("advantages", json!([1, 2])), vec![], "`advantage` has shape [2], accepted is [B, T] or [B]"),
        (with("mask", json!([[2]])), vec![], "`mask` at index 0 is 2, legal is 0 or 1"),
        (with("operation", json!("objective.grop")), vec![], "did you mean `objective.grpo`?"),
        (with("dialect", json!("trl")), vec![], "no dialect of objective.grpo is called `trl`"),
        (with("params", json!({"kl_coeficient": 1})), vec![], "did you mean `kl_coefficient`?"),
        (with("d_log_prob", json!([[1, 2]])), vec![], "the gradient by `log_prob` has shape [1, 2]"),
        (good.to_string(), vec!["--loss", "low"], "--loss: `low` is no number"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (code, out, err) = diagnose(&[&[path], options.as_slice()].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains(words), "{words}: {err}");
    }
    let (code, _, err) = diagnose(&["/nonexistent/batch.json"]);
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
}

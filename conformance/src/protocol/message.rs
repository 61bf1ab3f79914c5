//! The messages, as JSON.

use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, Operation, Value as Setting};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use plumbline_diagnosis::vectors::Case;
use plumbline_evaluate::tensor::{Number, Tensor, to_json};

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// What an implementation says of itself.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The precision that it computes in.
    pub dtype: Dtype,
    /// What it implements.
    pub operations: Vec<Declared>,
    /// Whether it gives gradients.
    pub gradients: bool,
}

/// One operation as an implementation declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The operation's identifier.
    pub id: String,
    /// The dialect that it means to follow.
    pub dialect: Option<String>,
    /// Parameters that it fixes.
    pub settings: Map<String, Value>,
    /// Inputs and parameters that it takes; `None` where it takes all.
    pub takes: Option<Vec<String>>,
    /// Whether it relies on finite numbers under the mask.
    pub finite_padding: bool,
    /// The precision that it computes in, where that is not the one of its inputs.
    pub precision: Option<Dtype>,
}

/// The answer to one case.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The outputs that it has.
    Outputs(Vec<(String, Tensor)>),
    /// It leaves the case out, with the reason.
    Skip(String),
    /// It raised an error of its own.
    Error(String),
}

/// What is sent.
#[derive(Debug)]
pub enum Request<'a> {
    /// The greeting.
    Start,
    /// One case.
    Run {
        /// The number that the answer must repeat.
        seq: u64,
        /// The operation.
        operation: &'static Operation,
        /// The precision.
        dtype: Dtype,
        /// Complete parameters by position.
        params: &'a [Setting],
        /// The case.
        case: &'a Case,
        /// The outputs asked for, the main one first.
        want: &'a [&'static str],
    },
    /// The end.
    Stop,
}

impl Request<'_> {
    /// The line to send.
    pub fn line(&self) -> String {
        let message = match self {
            Request::Start => json!({"cmd": "start", "version": VERSION}),
            Request::Stop => json!({"cmd": "stop"}),
            Request::Run { seq, operation, dtype, params, case, want } => {
                let params: Map<String, Value> = operation
                    .params
                    .iter()
                    .zip(*params)
                    .map(|(param, value)| (param.name.to_owned(), setting_to_json(*value)))
                    .collect();
                let inputs: Map<String, Value> = case
                    .inputs
                    .iter()
                    .map(|(name, tensor)| {
                        let kind = operation.input(name).map_or("real", |input| kind_of(input.domain));
                        let dtype = if kind == "real" { *dtype } else { Dtype::F64 };
                        let values: Vec<Value> = tensor.values.iter().map(|value| to_json(*value, dtype)).collect();
                        ((*name).to_owned(), json!({"kind": kind, "shape": tensor.shape, "values": values}))
                    })
                    .collect();
                json!({
                    "cmd": "run",
                    "seq": seq,
                    "operation": operation.id,
                    "case": case.id,
                    "dtype": dtype.name(),
                    "params": params,
                    "inputs": inputs,
                    "want": want,
                })
            }
        };
        message.to_string()
    }
}

fn kind_of(domain: Domain) -> &'static str {
    match domain {
        Domain::Mask | Domain::Done => "mask",
        Domain::Group | Domain::Index(_) | Domain::Count => "index",
        _ => "real",
    }
}

fn setting_to_json(value: Setting) -> Value {
    match value {
        Setting::None => Value::Null,
        Setting::Number(number) => Value::from(number),
        Setting::Integer(number) => Value::from(number),
        Setting::Flag(flag) => Value::from(flag),
        Setting::Name(name) => Value::from(name),
    }
}

#[derive(Deserialize)]
struct StartMessage {
    ok: bool,
    name: String,
    version: String,
    dtype: String,
    #[serde(default = "yes")]
    gradients: bool,
    operations: Vec<DeclaredMessage>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DeclaredMessage {
    Id(String),
    Full {
        id: String,
        #[serde(default)]
        dialect: Option<String>,
        #[serde(default)]
        settings: Map<String, Value>,
        #[serde(default)]
        takes: Option<Vec<String>>,
        #[serde(default)]
        finite_padding: bool,
        #[serde(default)]
        precision: Option<String>,
    },
}

/// Read the answer to `start`; an error says in words what is wrong with it.
pub fn read_start(line: &str) -> Result<Start, String> {
    let message: StartMessage = read(line)?;
    if !message.ok {
        return Err(format!("it does not speak version {VERSION} of the protocol (`ok` is false)"));
    }
    let dtype = read_dtype("dtype", &message.dtype)?;
    let read_declared = |declared| {
        Ok(match declared {
            DeclaredMessage::Id(id) => Declared {
                id,
                dialect: None,
                settings: Map::new(),
                takes: None,
                finite_padding: false,
                precision: None,
            },
            DeclaredMessage::Full { id, dialect, settings, takes, finite_padding, precision } => {
                let precision = precision.map(|name| read_dtype("precision", &name)).transpose()?;
                Declared { id, dialect, settings, takes, finite_padding, precision }
            }
        })
    };
    let operations = message.operations.into_iter().map(read_declared).collect::<Result<_, String>>()?;
    Ok(Start { name: message.name, version: message.version, dtype, operations, gradients: message.gradients })
}

fn read_dtype(field: &str, name: &str) -> Result<Dtype, String> {
    match name {
        "f64" => Ok(Dtype::F64),
        "f32" => Ok(Dtype::F32),
        other => Err(format!("`{field}` is `{}`, legal is `f64` or `f32`", short(other))),
    }
}

#[derive(Deserialize)]
struct AnswerMessage {
    seq: u64,
    #[serde(default)]
    outputs: Option<Map<String, Value>>,
    #[serde(default)]
    skip: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

/// Read the answer to `run` number `seq`. Shapes are checked against `shape`, which gives the right one by name.
pub fn read_answer(
    line: &str,
    seq: u64,
    main: &str,
    shape: &dyn Fn(&str) -> Option<Vec<usize>>,
) -> Result<Answer, String> {
    let message: AnswerMessage = read(line)?;
    if message.seq != seq {
        return Err(format!("it answered out of order: `seq` is {} where {seq} was asked", message.seq));
    }
    match (message.outputs, message.skip, message.error) {
        (Some(outputs), None, None) => read_outputs(&outputs, main, shape).map(Answer::Outputs),
        (None, Some(reason), None) => Ok(Answer::Skip(reason)),
        (None, None, Some(error)) => Ok(Answer::Error(error)),
        _ => Err("its answer must have one of `outputs`, `skip` and `error`".into()),
    }
}

fn read_outputs(
    outputs: &Map<String, Value>,
    main: &str,
    shape: &dyn Fn(&str) -> Option<Vec<usize>>,
) -> Result<Vec<(String, Tensor)>, String> {
    if !outputs.contains_key(main) {
        return Err(format!("its answer lacks the output `{main}`"));
    }
    let mut read = Vec::new();
    for (name, value) in outputs {
        let right = shape(name).ok_or_else(|| format!("its answer has an unknown output `{}`", short(name)))?;
        let tensor = read_tensor(value).map_err(|error| format!("output `{name}`: {error}"))?;
        if tensor.shape != right {
            return Err(format!("output `{name}` has shape {:?} where {right:?} is right", tensor.shape));
        }
        read.push((name.clone(), tensor));
    }
    Ok(read)
}

#[derive(Deserialize)]
struct TensorMessage {
    shape: Vec<usize>,
    values: Vec<Number>,
}

/// A number, or a shape with its numbers.
fn read_tensor(value: &Value) -> Result<Tensor, String> {
    if value.is_object() {
        let message = TensorMessage::deserialize(value).map_err(|error| short(&error.to_string()))?;
        return Tensor::new(message.shape, message.values.into_iter().map(|number| number.0).collect());
    }
    Number::deserialize(value).map(|number| Tensor::scalar(number.0)).map_err(|error| short(&error.to_string()))
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        if text.contains("recursion limit") {
            "its answer is nested too deep".into()
        } else {
            format!("its answer is no message of the protocol ({}): `{}`", short(&text), short(line))
        }
    })
}

/// The beginning of a text, without control characters, for one line of a report.
fn short(text: &str) -> String {
    let clean: String = text.chars().take(80).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(80).is_some() { clean + "…" } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Result<Answer, String> {
        read_answer(line, 4, "loss", &|name| match name {
            "loss" => Some(vec![]),
            "d_log_prob" => Some(vec![1, 2]),
            _ => None,
        })
    }

    #[test]
    fn answers_are_read_with_nan_and_infinities_by_name() {
        let read =
            answer(r#"{"seq":4,"outputs":{"loss":0.5,"d_log_prob":{"shape":[1,2],"values":["NaN","-Infinity"]}}}"#);
        let Ok(Answer::Outputs(outputs)) = read else { panic!("{read:?}") };
        assert_eq!(outputs[0], ("loss".to_owned(), Tensor::scalar(0.5)));
        assert!(outputs[1].1.values[0].is_nan());
        assert_eq!(outputs[1].1.values[1], f64::NEG_INFINITY);
        assert_eq!(answer(r#"{"seq":4,"skip":"no"}"#), Ok(Answer::Skip("no".into())));
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_said_in_one_line() {
        let deep = format!(r#"{{"seq":4,"outputs":{{"loss":{}"#, "[".repeat(100_000));
        for (line, words) in [
            ("{", "is no message of the protocol"),
            (r#"{"seq":3,"skip":"x"}"#, "out of order: `seq` is 3 where 4 was asked"),
            (r#"{"seq":4}"#, "one of `outputs`, `skip` and `error`"),
            (r#"{"seq":4,"outputs":{}}"#, "lacks the output `loss`"),
            (
                r#"{"seq":4,"outputs":{"loss":1,"d_log_prob":{"shape":[2],"values":[1,2]}}}"#,
                "has shape [2] where [1, 2] is right",
            ),
            (r#"{"seq":4,"outputs":{"loss":{"shape":[2],"values":[1]}}}"#, "does not hold 1 numbers"),
            (r#"{"seq":4,"outputs":{"loss":"high"}}"#, "output `loss`"),
            (r#"{"seq":4,"outputs":{"loss":1,"extra":1}}"#, "unknown output `extra`"),
            (&deep, "nested too deep"),
        ] {
            let error = answer(line).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
            assert!(!error.contains('\n') && error.len() < 400, "{error}");
        }
    }
}

//! `plumbline eval`: one operation on the caller's numbers.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, ValueEnum};
use plumbline_core::num::Dtype;
use plumbline_evaluate::nearest::nearest;
use plumbline_evaluate::tensor::{Tensor, tensor_to_json, to_bits, to_text};
use plumbline_evaluate::{Outputs, Param, Request, Wanted, evaluate, operation_named, resolved_params};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{Ending, Trouble, emit, emit_json};

/// The arguments of `plumbline eval`.
#[derive(Debug, Args)]
#[command(
    after_help = r#"The input is one JSON object: arrays by name, as nested lists or as {"shape": [...], "values": [...]}, and
parameters by name; what is left out keeps its default. NaN and infinities are "NaN", "Infinity", "-Infinity".

Examples:
  plumbline eval kl.k1 batch.json --grad
  echo '{"inputs": {"log_prob": [[-0.5, -1.0]], "ref_log_prob": [[-0.75, -0.5]]}}' | plumbline eval kl.k1
  plumbline eval kl.k1 batch.json --dtype f32 --hex --json"#
)]
pub struct Arguments {
    /// The operation's identifier, such as kl.k1.
    #[arg(value_name = "ID")]
    operation: String,
    /// The file with the input; `-` or nothing reads standard input.
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Take the parameters of this dialect where the input gives none.
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// The precision to compute in.
    #[arg(long, value_enum, default_value_t = Precision::F64)]
    dtype: Precision,
    /// Also print the gradients.
    #[arg(long)]
    grad: bool,
    /// Also print the bits of every number.
    #[arg(long)]
    hex: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Precision {
    F32,
    F64,
}

/// Run it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let operation = operation_named(&arguments.operation).map_err(Trouble::new)?;
    let dialect = arguments.dialect.as_deref();
    let dtype = match arguments.dtype {
        Precision::F32 => Dtype::F32,
        Precision::F64 => Dtype::F64,
    };
    let (inputs, params) = parse(&read(&arguments.file)?)?;
    let outputs = evaluate(&Request {
        operation: operation.id,
        dialect,
        dtype,
        params: &params,
        inputs: &inputs,
        outputs: if arguments.grad { Wanted::All } else { Wanted::Values },
    })
    .map_err(Trouble::new)?;
    if arguments.json {
        let params = resolved_params(operation, dialect, &params).map_err(Trouble::new)?;
        let params: Map<String, Value> =
            params.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let outputs: Map<String, Value> =
            outputs.into_iter().map(|(name, tensor)| (name, tensor_to_json(&tensor, dtype, arguments.hex))).collect();
        emit_json(&json!({
            "operation": operation.id,
            "dialect": dialect,
            "dtype": dtype.name(),
            "params": params,
            "outputs": outputs,
        }))?;
    } else {
        emit(&text(&outputs, dtype, arguments.hex))?;
    }
    Ok(Ending::Holds)
}

fn read(file: &Path) -> Result<String, Trouble> {
    if file == Path::new("-") {
        let mut text = String::new();
        return match std::io::stdin().read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Trouble(format!("standard input cannot be read: {error}"))),
        };
    }
    std::fs::read_to_string(file).map_err(|error| Trouble(format!("{} cannot be read: {error}", file.display())))
}

type Named<T> = Vec<(String, T)>;

fn parse(text: &str) -> Result<(Named<Tensor>, Named<Param>), Trouble> {
    let value: Value = serde_json::from_str(text).map_err(|error| Trouble(format!("the input is no JSON: {error}")))?;
    let Value::Object(members) = value else {
        return Err(Trouble(r#"the input must be a JSON object: {"inputs": {...}, "params": {...}}"#.to_owned()));
    };
    let (mut inputs, mut params) = (Vec::new(), Vec::new());
    for (name, member) in members {
        let known = ["inputs", "params"];
        if !known.contains(&name.as_str()) {
            let hint = nearest(&name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(Trouble(format!("the input has a member `{name}`, known are `inputs` and `params`{hint}")));
        }
        let Value::Object(entries) = member else {
            return Err(Trouble(format!("`{name}` must be a JSON object")));
        };
        for (key, entry) in entries {
            let wrong = |error: &dyn std::fmt::Display| Trouble(format!("`{key}`: {error}"));
            if name == "inputs" {
                let tensor = Tensor::from_json(&entry).map_err(|error| wrong(&error))?;
                inputs.push((key, tensor));
            } else {
                let param = Param::deserialize(&entry).map_err(|error| wrong(&error))?;
                params.push((key, param));
            }
        }
    }
    Ok((inputs, params))
}

/// The outputs, one line per innermost row.
fn text(outputs: &Outputs, dtype: Dtype, hex: bool) -> String {
    let bold = Style::new().bold();
    let mut text = String::new();
    for (name, tensor) in outputs {
        let number = |value: &f64| {
            let bits = if hex { format!(" ({})", to_bits(*value, dtype)) } else { String::new() };
            to_text(*value, dtype) + &bits
        };
        if tensor.shape.is_empty() {
            let value = tensor.values.first().map(number).unwrap_or_default();
            let _ = writeln!(text, "{bold}{name}{bold:#} {value}");
        } else {
            let _ = writeln!(text, "{bold}{name}{bold:#} {:?}", tensor.shape);
            let width = tensor.shape.last().copied().unwrap_or(1).max(1);
            for row in tensor.values.chunks(width) {
                let _ = writeln!(text, "  {}", row.iter().map(number).collect::<Vec<_>>().join("  "));
            }
        }
    }
    text
}

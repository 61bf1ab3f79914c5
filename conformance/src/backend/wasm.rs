//! The npm package, in Node.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::{env, fmt};

use plumbline_core::num::Dtype;
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Outputs, Request, Wanted};
use serde::{Deserialize, Serialize};

use super::{Backend, Failure};

/// Names the folder of the package, where it is not the one that this workspace builds.
const VARIABLE: &str = "PLUMBLINE_PACKAGE";

/// What Node runs: it reads requests and evaluates them with the package.
const SCRIPT: &str = include_str!("wasm.mjs");

/// One of the package's two modules.
pub struct Wasm {
    name: &'static str,
    instructions: &'static str,
    process: Mutex<Option<Process>>,
}

impl Wasm {
    /// The module with vector instructions.
    pub fn simd128() -> Self {
        Wasm { name: "wasm", instructions: "simd128", process: Mutex::new(None) }
    }

    /// The module without.
    pub fn scalar() -> Self {
        Wasm { name: "wasm-scalar", instructions: "scalar", process: Mutex::new(None) }
    }
}

impl Backend for Wasm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn ready(&self) -> Result<(), String> {
        self.with_process(|_| Ok(())).map_err(|trouble| trouble.0)
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        match self.with_process(|process| process.evaluate(request)) {
            Ok(Answer::Outputs(outputs)) => Ok(outputs),
            Ok(Answer::Refused(words)) => Err(Failure::Refused(words)),
            Ok(Answer::Broke(how)) => Err(Failure::Broke(how)),
            Err(Trouble(how)) => Err(Failure::Broke(how)),
        }
    }
}

impl Wasm {
    /// Use the running process, or start one; after trouble it is gone.
    fn with_process<T>(&self, work: impl FnOnce(&mut Process) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let mut slot = self.process.lock().map_err(|_| Trouble("an earlier call broke down".into()))?;
        let mut process = match slot.take() {
            Some(process) => process,
            None => Process::start(self.instructions)?,
        };
        let result = work(&mut process)?;
        *slot = Some(process);
        Ok(result)
    }
}

/// Why there is no answer, in one sentence.
struct Trouble(String);

impl<E: fmt::Display> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble(error.to_string())
    }
}

enum Answer {
    Outputs(Outputs),
    Refused(String),
    Broke(String),
}

/// The head of a request; the numbers follow.
#[derive(Serialize)]
struct Head<'a> {
    operation: &'a str,
    dialect: Option<&'a str>,
    dtype: &'a str,
    params: serde_json::Map<String, serde_json::Value>,
    inputs: Vec<Array>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<&'a str>>,
}

#[derive(Serialize, Deserialize)]
struct Array {
    name: String,
    shape: Vec<usize>,
}

/// The head of an answer; the numbers follow.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    /// The greeting.
    Operations(usize),
    Outputs(Vec<Array>),
    Refused(String),
    Broke(String),
}

struct Process {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Process {
    fn start(instructions: &str) -> Result<Self, Trouble> {
        let folder = folder()?;
        let mut child = Command::new("node")
            .args(["--input-type=module", "--eval", SCRIPT, "--"])
            .arg(&folder)
            .arg(instructions)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("node cannot be started ({error}); install Node.js 18 or newer"))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("node has no pipes".into());
        };
        let mut process = Process { child, requests, answers };
        match process.told() {
            Ok(Told::Operations(1..)) => Ok(process),
            _ => Err(format!("the package in {} cannot be used by this Node.js", folder.display()).into()),
        }
    }

    fn evaluate(&mut self, request: &Request<'_>) -> Result<Answer, Trouble> {
        let params = request.params.iter().map(|(name, value)| Ok((name.clone(), serde_json::to_value(value)?)));
        let head = Head {
            operation: request.operation,
            dialect: request.dialect,
            dtype: request.dtype.name(),
            params: params.collect::<Result<_, serde_json::Error>>()?,
            inputs: request
                .inputs
                .iter()
                .map(|(name, tensor)| Array { name: name.clone(), shape: tensor.shape.clone() })
                .collect(),
            outputs: match request.outputs {
                Wanted::Named(names) => Some(names.to_vec()),
                Wanted::All => None,
                Wanted::Values => return Ok(Answer::Broke("the package knows no such choice of outputs".into())),
            },
        };
        let head = serde_json::to_vec(&head)?;
        let mut message = u32::try_from(head.len())?.to_le_bytes().to_vec();
        message.extend(head);
        for (_, tensor) in request.inputs {
            message.extend(tensor.values.iter().flat_map(|value| value.to_le_bytes()));
        }
        self.requests.write_all(&message)?;
        self.requests.flush()?;
        Ok(match self.told()? {
            Told::Outputs(arrays) => {
                Answer::Outputs(arrays.into_iter().map(|array| self.numbers(array)).collect::<Result<_, Trouble>>()?)
            }
            Told::Refused(words) => Answer::Refused(words),
            Told::Broke(how) => Answer::Broke(how),
            Told::Operations(_) => return Err("the package greets a second time".into()),
        })
    }

    fn told(&mut self) -> Result<Told, Trouble> {
        let mut length = [0; 4];
        self.answers.read_exact(&mut length).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "node ended before it answered".to_owned(),
            _ => error.to_string(),
        })?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.answers.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn numbers(&mut self, array: Array) -> Result<(String, Tensor), Trouble> {
        let mut bytes = vec![0; 8 * array.shape.iter().product::<usize>()];
        self.answers.read_exact(&mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let values = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        Ok((array.name, Tensor::new(array.shape, values)?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> Result<PathBuf, String> {
    if let Some(folder) = env::var_os(VARIABLE) {
        return Ok(folder.into());
    }
    // The program stands in target/debug or target/release, the package in target/npm.
    let program = env::current_exe().ok();
    let built = program
        .iter()
        .flat_map(|program| program.ancestors())
        .map(|folder| folder.join("npm/plumbline-rl"))
        .find(|folder| folder.join("package.json").is_file());
    built.ok_or_else(|| format!("the npm package is not built: `cargo xtask wasm`, or name its folder in {VARIABLE}"))
}

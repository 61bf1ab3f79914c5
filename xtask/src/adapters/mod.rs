//! The adapters of real libraries: run, and their verdicts as a page of the book.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{cargo, root, succeeds};
use crate::python::environment;

pub use page::steps;

/// Where the verdicts are kept.
const DATA: &str = "docs/data/adapters.json";

/// One adapter.
struct Adapter {
    /// Its name on the command line.
    name: &'static str,
    /// Its file in examples/adapters.
    file: &'static str,
    /// The library whose wheel is unpacked, where it is not installed.
    unpacked: Option<&'static str>,
}

const ADAPTERS: &[Adapter] = &[
    Adapter { name: "verl", file: "verl_0_9.py", unpacked: None },
    Adapter { name: "trl", file: "trl_1_16.py", unpacked: None },
    Adapter { name: "trl-preference", file: "trl_1_16_preference.py", unpacked: None },
    Adapter { name: "openrlhf", file: "openrlhf_0_11.py", unpacked: Some("openrlhf==0.11.2") },
    Adapter { name: "torchrl", file: "torchrl_0_11.py", unpacked: Some("torchrl==0.11.1") },
    Adapter { name: "numpy", file: "numpy_losses.py", unpacked: None },
];

/// Options of `cargo xtask adapters`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these: verl, trl, trl-preference, openrlhf, torchrl, numpy.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A Python that has the libraries, instead of an environment that is made below target (gigabytes).
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// A `plumbline` that is built already.
    #[arg(long, value_name = "PROGRAM")]
    plumbline: Option<PathBuf>,
    /// Only write the page from the kept verdicts.
    #[arg(long)]
    page: bool,
}

/// Run the adapters, keep their verdicts, write the page. True whatever the verdicts are: they are facts about libraries.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if let Some(unknown) = arguments.names.iter().find(|name| ADAPTERS.iter().all(|adapter| adapter.name != **name)) {
        return Err(format!("no adapter is called `{unknown}`"));
    }
    if !arguments.page {
        let plumbline = match &arguments.plumbline {
            Some(program) => program.clone(),
            None => built()?,
        };
        let python = match &arguments.python {
            Some(program) => program.clone(),
            None => library_environment()?.join("bin/python"),
        };
        let mut kept = read()?;
        for adapter in ADAPTERS {
            if !arguments.names.is_empty() && arguments.names.iter().all(|name| *name != adapter.name) {
                continue;
            }
            println!("==> {}", adapter.name);
            let verdict = check(adapter, &plumbline, &python)?;
            kept.retain(|(name, _)| name != adapter.name);
            kept.push((adapter.name.into(), verdict));
        }
        kept.sort_by_key(|(name, _)| ADAPTERS.iter().position(|adapter| adapter.name == name));
        let data: Vec<Value> =
            kept.into_iter().map(|(name, report)| json!({"adapter": name, "report": report})).collect();
        let text = serde_json::to_string_pretty(&data).map_err(|error| error.to_string())? + "\n";
        write(DATA, &text)?;
    }
    write(page::PAGE, &page::page(&read()?))?;
    Ok(true)
}

/// The kept verdicts by adapter.
fn read() -> Result<Vec<(String, Value)>, String> {
    let Ok(text) = fs::read_to_string(root().join(DATA)) else { return Ok(Vec::new()) };
    let data: Vec<Value> = serde_json::from_str(&text).map_err(|error| format!("{DATA}: {error}"))?;
    let entry = |entry: Value| Some((entry["adapter"].as_str()?.to_owned(), entry["report"].clone()));
    data.into_iter().map(|value| entry(value).ok_or_else(|| format!("{DATA} has an entry without a name"))).collect()
}

fn write(path: &str, text: &str) -> Result<(), String> {
    let path = root().join(path);
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(told)?;
    fs::write(&path, text).map_err(told)
}

fn built() -> Result<PathBuf, String> {
    let arguments = ["build", "--quiet", "--release", "-p", "plumbline-conformance", "--bin", "plumbline"];
    if succeeds(cargo().args(arguments))? {
        Ok(root().join("target/release/plumbline"))
    } else {
        Err("plumbline does not build".into())
    }
}

fn library_environment() -> Result<PathBuf, String> {
    let pinned = environment("adapters", &["-r", "fixtures/exporter/requirements.txt"])?;
    environment("adapters", &["--no-deps", "-r", "fixtures/exporter/requirements-nodeps.txt"])?;
    Ok(pinned)
}

/// The wheel of a requirement, unpacked below target.
fn unpacked(requirement: &str, python: &Path) -> Result<PathBuf, String> {
    let folder = root().join("target/python/unpacked").join(requirement.replace("==", "-"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let wheels = folder.with_extension("wheels");
    let mut download = Command::new(python);
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    if !succeeds(download.arg("--dest").arg(&wheels).arg(requirement))? {
        return Err(format!("pip could not download {requirement}"));
    }
    let mut files = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let wheel = files.find_map(Result::ok).ok_or_else(|| format!("{} is empty", wheels.display()))?;
    let mut unpack = Command::new(python);
    if succeeds(unpack.args(["-m", "zipfile", "-e"]).arg(wheel.path()).arg(&folder))? {
        Ok(folder)
    } else {
        Err(format!("{requirement} could not be unpacked"))
    }
}

fn check(adapter: &Adapter, plumbline: &Path, python: &Path) -> Result<Value, String> {
    let mut command = Command::new(plumbline);
    command.current_dir(root()).env("CUDA_VISIBLE_DEVICES", "").env("OMP_NUM_THREADS", "1");
    if let Some(requirement) = adapter.unpacked {
        command.env("PLUMBLINE_UNPACKED", unpacked(requirement, python)?);
    }
    command
        .args(["check", "--json", "--timeout", "60", "--"])
        .arg(python)
        .arg(format!("examples/adapters/{}", adapter.file));
    let output = command.output().map_err(|error| format!("{}: {error}", plumbline.display()))?;
    // Which Python it was says nothing about the library.
    let text = String::from_utf8_lossy(&output.stdout).replace(&*python.to_string_lossy(), "python");
    serde_json::from_str(&text).map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

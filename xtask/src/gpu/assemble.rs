//! What ptxas makes of the committed PTX: that it takes it at all, and registers, spills and memory of each kernel.
//!
//! The assembler is NVIDIA's, from the Python package `nvidia-cuda-nvcc-cu12` in an environment of its own below `target`.
//! It runs without a device.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::ptx::folder;
use crate::process::{program, root, succeeds};
use crate::step::Outcome;

/// From the oldest architecture that the PTX is for to the newest that this assembler knows.
const ARCHITECTURES: [&str; 5] = ["sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];
const PACKAGE: &str = "nvidia-cuda-nvcc-cu12==12.9.86";

/// What a kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needs {
    registers: u32,
    stack: u32,
    spills: u32,
    shared: u32,
}

fn baseline() -> PathBuf {
    folder().join("resources.txt")
}

/// The assembler, installed where it is missing.
fn assembler() -> Result<PathBuf, String> {
    let environment = root().join("target/ptxas");
    let find = || {
        let library = fs::read_dir(environment.join("lib")).ok()?.flatten().next()?.path();
        Some(library.join("site-packages/nvidia/cuda_nvcc/bin/ptxas")).filter(|path| path.exists())
    };
    if let Some(path) = find() {
        return Ok(path);
    }
    let how = || format!("a Python 3 with venv, and its package {PACKAGE} from a registry");
    let made = succeeds(program("python3").args(["-m", "venv"]).arg(&environment)).unwrap_or(false)
        && succeeds(program(&environment.join("bin/pip").display().to_string()).args(["install", "--quiet", PACKAGE]))
            .unwrap_or(false);
    if made { find().ok_or_else(how) } else { Err(how()) }
}

/// Assemble for one architecture.
fn assemble(assembler: &Path, architecture: &str) -> Result<BTreeMap<String, Needs>, String> {
    let mut command = program(&assembler.display().to_string());
    command.args(["-v", &format!("-arch={architecture}"), "-o"]);
    command.arg(root().join(format!("target/ptxas/{architecture}.cubin")));
    let output = command.arg(folder().join("plumbline.ptx")).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("ptxas does not take the kernels for {architecture}: {text}"));
    }
    let mut all = BTreeMap::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            name = rest.split('\'').next().map(str::to_owned);
        }
        let Some(name) = &name else { continue };
        let needs: &mut Needs = all.entry(name.clone()).or_default();
        let before = |what: &str| -> u32 {
            let head = line.split(what).next().filter(|head| head.len() < line.len());
            head.and_then(|head| head.rsplit([' ', ',']).find(|word| !word.is_empty())?.parse().ok()).unwrap_or(0)
        };
        needs.registers += before(" registers");
        needs.stack += before(" bytes stack frame");
        needs.spills += before(" bytes spill stores") + before(" bytes spill loads");
        needs.shared += before(" bytes smem");
    }
    Ok(all)
}

/// The table of all architectures.
fn table(assembler: &Path) -> Result<String, String> {
    let mut text = format!(
        "Registers, stack, spilled and shared bytes of each kernel, from `cargo xtask gpu ptxas` ({PACKAGE}).\n\n{:<44}",
        "kernel"
    );
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    // All at once: they wait for nothing but processors.
    let results = std::thread::scope(|scope| {
        let threads = ARCHITECTURES.map(|architecture| scope.spawn(move || assemble(assembler, architecture)));
        threads.map(|thread| thread.join().map_err(|_| "ptxas: a thread broke down".to_owned()).and_then(|needs| needs))
    });
    for (architecture, needs) in ARCHITECTURES.iter().zip(results) {
        write!(text, " {architecture:>17}").map_err(|error| error.to_string())?;
        for (name, Needs { registers, stack, spills, shared }) in needs? {
            if spills > 0 {
                return Err(format!("{name} spills {spills} bytes on {architecture}"));
            }
            let cell = format!("{registers}/{stack}/{spills}/{shared}");
            let row = rows.entry(name).or_default();
            write!(row, " {cell:>17}").map_err(|error| error.to_string())?;
        }
    }
    text.push('\n');
    for (name, row) in rows {
        writeln!(text, "{name:<44}{row}").map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// Write the baseline.
pub fn write() -> Result<bool, String> {
    let text = table(&assembler()?)?;
    fs::write(baseline(), &text).map_err(|error| error.to_string())?;
    print!("{text}");
    Ok(true)
}

/// Whether the assembler takes the PTX on all architectures with what the baseline says.
pub fn check() -> Result<Outcome, String> {
    let assembler = match assembler() {
        Ok(assembler) => assembler,
        Err(how) => return Ok(Outcome::Skipped(how)),
    };
    let (now, then) = (table(&assembler)?, fs::read_to_string(baseline()).unwrap_or_default());
    if now == then {
        return Ok(Outcome::Passed);
    }
    for (now, then) in now.lines().zip(then.lines()).filter(|(now, then)| now != then) {
        println!("baseline {then}\nnow      {now}");
    }
    println!("run `cargo xtask gpu ptxas` and commit gpu/ptx, if this is meant");
    Ok(Outcome::Failed)
}

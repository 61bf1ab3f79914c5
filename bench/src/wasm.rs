//! PPO with a k3 penalty, value and gradient, one thread: core compiled for this machine beside the npm package in Node, with
//! and without vector instructions.

use std::path::{Path, PathBuf};

use crate::Arguments;
use crate::batch::Batch;
use crate::clock::Clock;
use crate::ours;
use crate::python::{Python, bytes_f32, numbers_f32};
use crate::report::{Measured, table};

const SCRIPT: &str = include_str!("../wasm.mjs");

/// Measure, and return the table.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let batch = Batch::new(arguments.rows.unwrap_or(64), arguments.columns.unwrap_or(512));
    let package = package()?;
    let mut native = Measured::new("core, native");
    let mut simd = Measured::new("npm package in Node, with vector instructions");
    let mut scalar = Measured::new("npm package in Node, without");
    let mut processes =
        [(&mut simd, start(&package, "simd", &batch)?), (&mut scalar, start(&package, "scalar", &batch)?)];
    let mut gradient = vec![0.0; batch.tokens()];
    let mut loss = 0.0;
    for round in 0..arguments.rounds {
        eprint!("\rround {} of {}", round + 1, arguments.rounds);
        let start = Clock::start();
        loss = ours::ppo_with_k3(plumbline_simd::Level::PORTABLE, &batch, &mut gradient)?;
        native.add(start.elapsed());
        for (measured, process) in &mut processes {
            measured.add(process.time("ppo")?);
        }
    }
    eprint!("\r{:30}\r", "");
    for (_, process) in &mut processes {
        process.stop()?;
        let theirs = process.array("result")?;
        let ours = gradient.iter().chain([&loss]);
        if !numbers_f32(&theirs).map(f32::to_bits).eq(ours.map(|number| number.to_bits())) {
            return Err("the package gives other bits than core".into());
        }
    }
    Ok(table(&[native, simd, scalar], batch.tokens(), "token"))
}

fn start(package: &Path, instructions: &str, batch: &Batch) -> Result<Python, String> {
    let arrays = [
        ("log_prob", bytes_f32(&batch.log_prob)),
        ("old_log_prob", bytes_f32(&batch.old_log_prob)),
        ("ref_log_prob", bytes_f32(&batch.ref_log_prob)),
        ("advantage", bytes_f32(&batch.advantage)),
        ("mask", batch.mask.clone()),
    ];
    let settings = [
        package.display().to_string(),
        instructions.to_owned(),
        batch.rows.to_string(),
        batch.columns.to_string(),
        ours::KL_COEFFICIENT.to_string(),
    ];
    Python::start_program(Path::new("node"), &["--input-type=module", "--eval", SCRIPT, "--"], &arrays, &settings)
}

/// The package that this workspace builds.
fn package() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    program
        .ancestors()
        .map(|folder| folder.join("npm/plumbline-rl"))
        .find(|folder| folder.join("package.json").is_file())
        .ok_or_else(|| "the npm package is not built: `cargo xtask wasm`".into())
}

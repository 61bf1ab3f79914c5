//! The program with the feature `cuda`, on a machine without a driver: it is built, it starts, and it says what is missing.

use std::path::Path;

use crate::process::{cargo, root, succeeds};
use crate::step::Outcome;

/// Build it, and run it where no driver is. Where there is one, the golden cases are run on the device.
pub fn check() -> Result<Outcome, String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "plumbline-conformance", "--features", "cuda", "--bin", "plumbline"]);
    // A folder of its own: the program without the feature stays as it is.
    if !succeeds(build.args(["--target-dir", "target/cuda"]))? {
        return Ok(Outcome::Failed);
    }
    let mut program = crate::process::program(&root().join("target/cuda/debug/plumbline").display().to_string());
    let output = program.args(["verify", "--backend", "gpu"]).output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&output.stderr);
    if Path::new("/dev/nvidiactl").exists() {
        print!("{}{words}", String::from_utf8_lossy(&output.stdout));
        return Ok(Outcome::of(output.status.success()));
    }
    print!("{words}");
    println!("skipped: no GPU (1 check: the golden cases on the device)");
    let one_line = words.trim_end().lines().count() == 1 && words.contains("no CUDA driver");
    Ok(Outcome::of(output.status.code() == Some(2) && one_line))
}

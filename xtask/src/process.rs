//! Running other programs from the workspace's root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs this command.
pub fn cargo() -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

/// A program, started in the workspace's root.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Run to the end with the terminal's own output; true where the program exits with 0.
pub fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    Ok(status.success())
}

/// What a program prints, without the line end; `None` where it is missing or fails.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}

/// Whether this runs unattended, where a missing tool is a failure and not a skip.
pub fn unattended() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// This command again in an optimised build: it evaluates some hundred thousand points.
pub fn optimised() -> Result<bool, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--"]).args(std::env::args().skip(1));
    succeeds(&mut command)
}

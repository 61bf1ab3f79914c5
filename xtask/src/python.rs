//! The Python package: its wheel, and the page of the book that installs and uses it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{output_of, program, root, succeeds};
use crate::step::{Outcome, Step, debian_packages};

/// The page whose commands are run.
const PAGE: &str = "docs/src/five-minutes.md";

/// Options of `cargo xtask wheel`.
#[derive(clap::Args)]
pub struct Arguments {}

/// Build the wheel into target/wheels.
pub fn run(_: &Arguments) -> Result<bool, String> {
    available()?;
    build_wheel("release")
}

/// The step of `cargo xtask test`. The program is built without optimisation, which is enough for two small losses.
pub fn steps() -> Vec<Step> {
    vec![Step::new("python package", || match available() {
        Err(missing) => Ok(Outcome::Skipped(missing)),
        Ok(()) => Ok(Outcome::of(build_wheel("dev")? && follow_page()?)),
    })]
}

/// Whether Python with venv and pip is there.
fn available() -> Result<(), String> {
    let usable =
        || output_of(program("python3").args(["-c", "import venv, ensurepip, sys; assert sys.version_info >= (3, 9)"]));
    if usable().is_some() {
        return Ok(());
    }
    // Debian keeps ensurepip in a package of its own; other releases have it below another version's folder.
    let installed = debian_packages(&["python3", "python3-venv"], &["/usr/lib/python3.11/ensurepip/__init__.py"]);
    match usable() {
        Some(_) => Ok(()),
        None => {
            Err(installed.err().unwrap_or("install Python 3.9 or newer with its modules venv and ensurepip".into()))
        }
    }
}

/// A virtual environment below target, made where it is not there, with the requirements of a file or given words.
pub fn environment(name: &str, requirements: &[&str]) -> Result<PathBuf, String> {
    let folder = root().join("target/python").join(name);
    let python = folder.join("bin/python");
    if !python.exists() && !succeeds(program("python3").args(["-m", "venv"]).arg(&folder))? {
        return Err(format!("{} cannot be made", folder.display()));
    }
    let mut install = Command::new(&python);
    install
        .current_dir(root())
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(requirements);
    if succeeds(&mut install)? { Ok(folder) } else { Err(format!("pip could not install {}", requirements.join(" "))) }
}

fn build_wheel(profile: &str) -> Result<bool, String> {
    let tools = environment("tools", &["-r", "python/requirements-build.txt"])?;
    let wheels = root().join("target/wheels");
    if wheels.is_dir() {
        // The page installs whatever lies there.
        fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let mut command = Command::new(tools.join("bin/maturin"));
    command.current_dir(root().join("python")).args(["build", "--profile", profile, "--out"]).arg(wheels);
    succeeds(&mut command)
}

/// Run the page's commands in an empty environment and find the output that it shows.
fn follow_page() -> Result<bool, String> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    for (file, shown) in files(&page) {
        let there = fs::read_to_string(root().join(&file)).map_err(|error| format!("{PAGE} shows {file}: {error}"))?;
        if !there.contains(&shown) {
            println!("{PAGE} shows {file} otherwise than it is");
            return Ok(false);
        }
    }
    let environment = root().join("target/five-minutes");
    if environment.exists() {
        fs::remove_dir_all(&environment).map_err(|error| format!("{}: {error}", environment.display()))?;
    }
    // The last command is the tests, one of which is to fail; all before it must succeed.
    let commands: String = blocks(&page, "sh").join("\n");
    let mut lines: Vec<&str> = commands.lines().filter(|line| !line.starts_with("cargo ")).collect();
    let tests = lines.pop().ok_or_else(|| format!("{PAGE} has no command"))?;
    let script = format!("set -e\n{}\nset +e\n{tests}\necho ended with $?\n", lines.join("\n"));
    let mut shell = Command::new("bash");
    shell.current_dir(root()).args(["-c", &script]).env("COLUMNS", "120");
    let output = shell.output().map_err(|error| format!("bash: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    let wanted = blocks(&page, "text").join("\n");
    let mut wanted: Vec<&str> = wanted.lines().flat_map(|line| line.split("[…]")).map(str::trim).collect();
    wanted.extend(["1 failed, 1 passed", "ended with 1"]);
    let missing: Vec<&str> = wanted.into_iter().filter(|line| !printed.contains(line)).collect();
    for line in &missing {
        println!("{PAGE} shows, and the commands do not print: {line}");
    }
    Ok(missing.is_empty())
}

/// The contents of the page's blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).map(str::to_owned).collect()
}

/// The files that the page shows: blocks of Python that follow a line that ends in the file's name and a colon.
fn files(page: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for part in page.split("```python\n").zip(page.split("```python\n").skip(1)) {
        let name = part.0.trim_end().rsplit('`').nth(1).map(str::to_owned);
        let shown = part.1.split("\n```").next().map(str::to_owned);
        if let (Some(name), Some(shown)) = (name, shown) {
            files.push((name, shown));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{blocks, files};

    #[test]
    fn blocks_and_files_are_found() {
        let page = "In `a/b.py`:\n\n```python\nx = 1\n```\n\nthen\n\n```sh\nls\npwd\n```\n";
        assert_eq!(blocks(page, "sh"), ["ls\npwd"]);
        assert_eq!(files(page), [("a/b.py".to_owned(), "x = 1".to_owned())]);
    }
}

//! `cargo xtask export-fixtures`: run the libraries again and show whether the golden files are still what they give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{program, root, succeeds};

/// Options of `cargo xtask export-fixtures`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the result over the golden files; without it the difference is only shown.
    #[arg(long)]
    write: bool,
    /// Only the exporter's modules whose name contains this word (may be repeated).
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A Python that has the pinned libraries; without it a fresh virtual environment is made (a download of about 3 GB).
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// The version that the pinned libraries are known to run on.
const PYTHON: [&str; 2] = ["python3.11", "python3"];

/// Export into a temporary folder and compare; true where nothing differs, or where it was written.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let work = root().join("target/export-fixtures");
    let fresh = work.join("golden");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    }
    fs::create_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    let python = match &arguments.python {
        Some(python) => std::path::absolute(python).map_err(|error| error.to_string())?,
        None => environment(&work.join("venv"))?,
    };

    let mut export = program(&python.to_string_lossy());
    export.current_dir(root().join("fixtures")).args(["-m", "exporter", "--out"]).arg(&fresh);
    for name in &arguments.only {
        export.args(["--only", name]);
    }
    if !succeeds(&mut export)? {
        return Err("the exporter failed".into());
    }

    let golden = root().join("fixtures/golden");
    let (before, after) = (files(&golden)?, files(&fresh)?);
    let mut differences = 0;
    for (name, text) in &after {
        match before.get(name) {
            Some(old) if old == text => continue,
            Some(_) => println!("differs: {name}"),
            None => println!("new: {name}"),
        }
        differences += 1;
        if arguments.write {
            let path = golden.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&golden)).map_err(|error| error.to_string())?;
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    // A partial export says nothing about the other files.
    for name in before.keys().filter(|name| arguments.only.is_empty() && !after.contains_key(*name)) {
        println!("no longer exported: {name}");
        differences += 1;
        if arguments.write {
            fs::remove_file(golden.join(name)).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    let verb = if arguments.write { "written" } else { "differ" };
    println!("{} files exported, {differences} {verb}", after.len());
    Ok(differences == 0 || arguments.write)
}

/// A virtual environment with the exporter's pinned requirements; its Python.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let python = PYTHON
        .into_iter()
        .find(|name| succeeds(program(name).args(["-c", "import venv"])).unwrap_or(false))
        .ok_or("Python 3.11 with its venv module is needed")?;
    if !succeeds(program(python).args(["-m", "venv"]).arg(folder))? {
        return Err(format!("{python} could not make a virtual environment (on Debian: apt-get install python3-venv)"));
    }
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let exporter = root().join("fixtures/exporter");
    for (file, options) in [("requirements.txt", &[][..]), ("requirements-nodeps.txt", &["--no-deps"][..])] {
        let mut pip = program(&python.to_string_lossy());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(options);
        if !succeeds(pip.arg("-r").arg(exporter.join(file)))? {
            return Err(format!("pip could not install {file}"));
        }
    }
    Ok(python)
}

/// All files below a folder: path relative to it → contents.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(current) = folders.pop() {
        if !current.exists() {
            continue;
        }
        for entry in fs::read_dir(&current).map_err(|error| format!("{}: {error}", current.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let contents = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.insert(name, contents);
            }
        }
    }
    Ok(found)
}

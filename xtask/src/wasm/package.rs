//! The package's folder: what npm packs.

use std::fs;
use std::path::Path;

use plumbline_core::catalog;
use plumbline_core::spec::Operation;

use crate::process::root;

use super::interface;
use super::module::{self, Instructions};

/// Where the package is put together.
pub const FOLDER: &str = "target/npm/plumbline-rl";

/// Build the modules and put the package together, with these families (none named: all).
pub fn build(families: &[String]) -> Result<(), String> {
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    }
    fs::create_dir_all(folder.join("bindings/identify")).map_err(|error| told(&folder, &error))?;
    let mut bindings: Option<String> = None;
    for instructions in Instructions::ALL {
        let built = module::build(instructions, families, &[])?;
        let name = format!("bindings/plumbline_wasm_{}.wasm", instructions.name());
        write(&folder.join(name), &built.wasm)?;
        // One JavaScript side serves both.
        if bindings.as_ref().is_some_and(|other| *other != built.bindings) {
            return Err("the two modules have different JavaScript sides".into());
        }
        bindings = Some(built.bindings);
    }
    write(&folder.join("bindings/plumbline_wasm.js"), bindings.unwrap_or_default().as_bytes())?;

    let identify = module::build(Instructions::Scalar, families, &["identify"])?;
    write(&folder.join("bindings/identify/plumbline_wasm.wasm"), &identify.wasm)?;
    write(&folder.join("bindings/identify/plumbline_wasm.js"), identify.bindings.as_bytes())?;

    let operations: Vec<&Operation> = catalog::operations()
        .filter(|operation| families.is_empty() || families.iter().any(|family| family == operation.family.name()))
        .collect();
    write(&folder.join("catalog.js"), interface::catalog(&operations).as_bytes())?;
    write(&folder.join("operations.js"), interface::script(&operations).as_bytes())?;
    write(&folder.join("operations.d.ts"), interface::types(&operations).as_bytes())?;
    for source in ["wasm/npm", "."] {
        let source = root().join(source);
        for entry in fs::read_dir(&source).map_err(|error| told(&source, &error))? {
            let path = entry.map_err(|error| told(&source, &error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let belongs = source.ends_with("npm") || name.starts_with("LICENSE-");
            if path.is_file() && belongs {
                fs::copy(&path, folder.join(name)).map_err(|error| told(&path, &error))?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| told(path, &error))
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

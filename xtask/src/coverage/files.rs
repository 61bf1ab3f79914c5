//! The files of core's rooms: each formula's file must reach the catalog.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plumbline_core::catalog;
use plumbline_core::spec::Family;

use crate::process::root;

/// Identifier → the file of core that holds it, relative to the workspace.
pub fn ids() -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    for path in all()? {
        let text = read(&path)?;
        let code = without_tests(&text);
        for operation in catalog::operations() {
            // An entry that is built by a function has its identifier as an argument: any literal counts.
            if code.contains(&format!("\"{}\"", operation.id)) && in_room(&path, operation.family) {
                files.entry(operation.id.to_owned()).or_insert_with(|| relative(&path));
            }
        }
    }
    Ok(files)
}

/// Files with a public formula that is not in the catalog.
pub fn holes() -> Result<Vec<String>, String> {
    let mut holes = Vec::new();
    for path in all()? {
        let text = read(&path)?;
        let code = without_tests(&text);
        let name = relative(&path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "mod" {
            continue;
        }
        let parent = path.parent().map(|folder| folder.join("mod.rs"));
        let parent = parent.and_then(|parent| fs::read_to_string(parent).ok()).unwrap_or_default();
        if code.contains("pub static SPECS") {
            if !parent.contains(&format!("{stem}::SPECS")) {
                holes.push(format!("{name}: its SPECS are not in the family's OPERATIONS"));
            }
        } else if let Some(function) = public_formula(code)
            && parent.contains(&format!("pub mod {stem};"))
            && !shared(&path)?
        {
            holes.push(format!("{name}: `{function}` is public, but the file has no catalog entry"));
        }
        for id in code.split("id: \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if catalog::find(id).is_none() {
                holes.push(format!("{name}: `{id}` is not in the catalog"));
            }
        }
    }
    Ok(holes)
}

/// Whether a file without an entry of its own is what the room's formulas are built from: a sibling with entries uses it.
fn shared(path: &Path) -> Result<bool, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let path_to = format!("{stem}::");
    for sibling in all()?.iter().filter(|sibling| sibling.parent() == path.parent()) {
        let text = read(sibling)?;
        if text.lines().any(|line| line.starts_with("use ") && line.contains(&path_to))
            && text.contains("pub static SPECS")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A free function that is public and generic over the number type; methods of types do not count.
fn public_formula(code: &str) -> Option<&str> {
    code.lines()
        .filter_map(|line| line.strip_prefix("pub fn "))
        .find(|rest| rest.contains("Real"))
        .and_then(|rest| rest.split(['<', '(']).next())
}

/// All source files of the rooms that hold formulas.
fn all() -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        Family::ALL.iter().map(|family| room(*family)).filter(|room| room.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn room(family: Family) -> PathBuf {
    root().join("core/src").join(family.name())
}

fn in_room(path: &Path, family: Family) -> bool {
    path.starts_with(room(family))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

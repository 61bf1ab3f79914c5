//! Gathers the golden files into the binary, so that it verifies anywhere.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let golden = manifest.join("../fixtures/golden");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if golden.is_dir() {
        println!("cargo::rerun-if-changed={}", golden.display());
        gather(&golden, &mut files)?;
    } else {
        println!("cargo::rerun-if-changed={}", manifest.join("../fixtures").display());
    }
    files.sort();
    let mut source = String::from("&[\n");
    for file in &files {
        let name: Vec<_> = file.strip_prefix(&golden).map_err(io::Error::other)?.iter().collect();
        let name = name.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        writeln!(source, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .map_err(io::Error::other)?;
    }
    source.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("golden.rs"), source)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

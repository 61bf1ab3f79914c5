//! The committed header is the one that this source gives. `cargo xtask capi header` writes it.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[test]
fn the_header_is_that_of_the_source() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources: Vec<PathBuf> =
        fs::read_dir(here.join("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.sort();
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("PlumblineStatus plumbline_evaluate("));

    let committed = here.join("include/plumbline.h");
    if env::var_os("PLUMBLINE_WRITE_HEADER").is_some() {
        fs::write(&committed, &text).unwrap();
    }
    let found = fs::read_to_string(&committed).unwrap_or_default();
    let first = text.lines().zip(found.lines()).position(|(generated, committed)| generated != committed);
    let line = first.unwrap_or(text.lines().count().min(found.lines().count())) + 1;
    assert!(found == text, "include/plumbline.h differs from line {line}; `cargo xtask capi header` writes it");
}

//! How large the modules are on their way to a reader: packed by gzip, as servers do.

use std::fs;
use std::path::Path;

use crate::process::{program, root};

use super::module::{self, Instructions};
use super::package::FOLDER;

/// What a module with the whole catalog may have.
const WHOLE: usize = 350 * 1024;
/// What a module with one family may have.
const ONE: usize = 60 * 1024;

/// Whether a module with vector instructions that holds one family keeps to its size, for each of these families.
pub fn families_within_budget(families: &[&str]) -> Result<bool, String> {
    let mut holds = true;
    for family in families {
        let built = module::build(Instructions::Simd128, &[(*family).to_owned()], &[])?;
        let path = root().join("target/wasm").join(format!("{family}.wasm"));
        fs::write(&path, built.wasm).map_err(|error| format!("{}: {error}", path.display()))?;
        let size = packed(&path)?;
        let words = if size <= ONE { "within" } else { "MORE THAN" };
        println!("{family}: {} KiB packed, {words} {} KiB", size.div_ceil(1024), ONE / 1024);
        holds &= size <= ONE;
    }
    Ok(holds)
}

/// Whether the package's modules, built with these families (none named: all), keep to their sizes. Of `identify` the size is
/// only told.
pub fn within_budget(families: &[String]) -> Result<bool, String> {
    let budget = if families.len() == 1 { ONE } else { WHOLE };
    let mut holds = true;
    for instructions in Instructions::ALL {
        let name = instructions.name();
        let size = packed(&root().join(FOLDER).join(format!("bindings/plumbline_wasm_{name}.wasm")))?;
        let words = if size <= budget { "within" } else { "MORE THAN" };
        println!("{name}: {} KiB packed, {words} {} KiB", size.div_ceil(1024), budget / 1024);
        holds &= size <= budget;
    }
    let identify = packed(&root().join(FOLDER).join("bindings/identify/plumbline_wasm.wasm"))?;
    println!("identify: {} KiB packed", identify.div_ceil(1024));
    Ok(holds)
}

fn packed(path: &Path) -> Result<usize, String> {
    let mut gzip = program("gzip");
    let output = gzip.args(["-9", "--stdout"]).arg(path).output().map_err(|error| format!("gzip: {error}"))?;
    if output.status.success() { Ok(output.stdout.len()) } else { Err(format!("gzip fails on {}", path.display())) }
}

//! `plumbline-wasm-bindgen MODULE FOLDER`: what wasm-bindgen's own command does with `--target web`, as a library call, so that
//! one lock file pins it. The module file is left out where the package says which of its modules to load.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("usage: plumbline-wasm-bindgen MODULE FOLDER");
        return ExitCode::from(2);
    };
    match write(module, folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("plumbline-wasm-bindgen: {message}");
            ExitCode::from(1)
        }
    }
}

fn write(module: &str, folder: &str) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .web(true)
        .map_err(|error| format!("{error:#}"))?
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .typescript(false)
        .generate(folder)
        .map_err(|error| format!("{error:#}"))
}

//! The catalog for JavaScript. One [`Call`] carries one evaluation over the border: arrays are copied once into the
//! module's memory and results once out of it. The package's own scripts (`wasm/npm`) wrap it; users do not see it.

mod call;
mod refused;

use plumbline_core::catalog;
use plumbline_evaluate::describe;
use wasm_bindgen::prelude::wasm_bindgen;

pub use call::Call;
pub use refused::Refused;

/// Everything about every operation, as a JSON array.
#[wasm_bindgen]
pub fn catalog() -> String {
    serde_json::Value::Array(catalog::operations().map(describe::operation).collect()).to_string()
}

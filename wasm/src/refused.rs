//! A refusal as JavaScript reads it.

use plumbline_evaluate::Refusal;
use wasm_bindgen::prelude::wasm_bindgen;

/// Why a call was refused; the package throws it as its own error class.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Refused(Refusal);

#[wasm_bindgen]
impl Refused {
    /// One sentence.
    pub fn message(&self) -> String {
        self.0.to_string()
    }

    /// One word for programs.
    pub fn kind(&self) -> String {
        self.0.kind().to_owned()
    }

    /// The name of the argument at fault.
    pub fn argument(&self) -> Option<String> {
        self.0.argument().map(str::to_owned)
    }

    /// The flat index of the element at fault.
    pub fn index(&self) -> Option<usize> {
        self.0.index()
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused(refusal)
    }
}

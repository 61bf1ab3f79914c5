//! A refusal as JavaScript reads it.

use plumbline_evaluate::Refusal;
use wasm_bindgen::prelude::wasm_bindgen;

/// Why a call was refused; the package throws it as its own error class.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Refused {
    message: String,
    kind: &'static str,
    argument: Option<String>,
    index: Option<usize>,
}

#[wasm_bindgen]
impl Refused {
    /// One sentence.
    pub fn message(&self) -> String {
        self.message.clone()
    }

    /// One word for programs.
    pub fn kind(&self) -> String {
        self.kind.to_owned()
    }

    /// The name of the argument at fault.
    pub fn argument(&self) -> Option<String> {
        self.argument.clone()
    }

    /// The flat index of the element at fault.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

#[cfg(feature = "identify")]
impl Refused {
    /// A refusal because of an argument.
    pub(crate) fn of(kind: &'static str, argument: &str, message: String) -> Self {
        Refused { message, kind, argument: Some(argument.to_owned()), index: None }
    }
}

#[cfg(feature = "identify")]
impl From<plumbline_diagnosis::one_shot::Unanswerable> for Refused {
    fn from(unanswerable: plumbline_diagnosis::one_shot::Unanswerable) -> Self {
        let plumbline_diagnosis::one_shot::Unanswerable { message, argument, index } = unanswerable;
        Refused { message, kind: "unanswerable", argument, index }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused {
            message: refusal.to_string(),
            kind: refusal.kind(),
            argument: refusal.argument().map(str::to_owned),
            index: refusal.index(),
        }
    }
}

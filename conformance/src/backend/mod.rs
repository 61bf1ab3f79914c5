//! What evaluates: the contract that core, and every other implementation of the catalog, fulfils.

mod c;
mod core;
mod gpu;
mod simd;
mod threads;
mod wasm;

use std::fmt;

use plumbline_core::num::Dtype;

pub use self::c::C;
pub use self::core::Core;
pub use self::gpu::{Gpu, OnDevice};
pub use self::simd::Simd;
pub use self::threads::Parallel;
pub use self::wasm::Wasm;
use plumbline_evaluate::{Outputs, Refusal, Request};

/// An implementation of the catalog.
pub trait Backend {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// The precisions that it computes in.
    fn dtypes(&self) -> &'static [Dtype];
    /// Whether it can work here; else what it lacks, in one sentence.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }
    /// Evaluate a request.
    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure>;
}

/// Why a backend gave no outputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// It says that the request is wrong; its words.
    Refused(String),
    /// It does not have the operation; the reason.
    Skipped(String),
    /// It broke down; how.
    Broke(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(words) => write!(f, "refused: {words}"),
            Failure::Skipped(reason) => write!(f, "skipped: {reason}"),
            Failure::Broke(how) => write!(f, "broke down: {how}"),
        }
    }
}

/// All backends of this program.
pub fn backends() -> Vec<Box<dyn Backend>> {
    let mut backends: Vec<Box<dyn Backend>> = vec![
        Box::new(Core),
        Box::new(OnDevice::host()),
        Box::new(Gpu::default()),
        Box::new(C::default()),
        Box::new(Wasm::simd128()),
        Box::new(Wasm::scalar()),
    ];
    backends.extend(Simd::levels().map(|level| Box::new(level) as Box<dyn Backend>));
    backends.extend(Parallel::all().map(|threads| Box::new(threads) as Box<dyn Backend>));
    backends
}

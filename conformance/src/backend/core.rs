//! The reference itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plumbline_core::num::Dtype;

use super::{Backend, Failure};
use plumbline_evaluate::{Outputs, Refusal, Request, evaluate};

/// `plumbline-core`, called in this process.
#[derive(Clone, Copy, Debug)]
pub struct Core;

impl Backend for Core {
    fn name(&self) -> &'static str {
        "core"
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        caught(|| evaluate(request))
    }
}

/// What core answers. It does not panic; should it, the run goes on and says so.
pub(super) fn caught(evaluate: impl FnOnce() -> Result<Outputs, Refusal>) -> Result<Outputs, Failure> {
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(result) => result.map_err(Failure::from),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            Err(Failure::Broke(text.unwrap_or_else(|| "panic without a message".to_owned())))
        }
    }
}

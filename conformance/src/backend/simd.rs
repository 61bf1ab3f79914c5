//! Core by the vector instructions that the processor has at run time.

use plumbline_core::Error;
use plumbline_core::num::Dtype;
use plumbline_evaluate::{Evaluator, Invocation, Outputs, Request, evaluate_by, operation_named};
use plumbline_simd::{Level, evaluate};

use super::core::caught;
use super::{Backend, Failure};

/// `plumbline-simd` at one of its levels.
#[derive(Clone, Copy, Debug)]
pub struct Simd {
    name: &'static str,
    level: Option<Level>,
}

impl Simd {
    /// All levels, whether this processor has them or not.
    pub fn levels() -> impl Iterator<Item = Simd> {
        Level::NAMES.into_iter().map(|name| Simd { name, level: Level::from_name(name) })
    }

    fn level(&self) -> Result<Level, String> {
        self.level.ok_or_else(|| format!("this processor lacks the level `{}`", self.name))
    }
}

impl Backend for Simd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn ready(&self) -> Result<(), String> {
        self.level().map(|_| ())
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        let level = self.level().map_err(Failure::Broke)?;
        if operation_named(request.operation)?.evaluate.kernel.is_none() {
            return Err(Failure::Skipped("same path as core".to_owned()));
        }
        caught(|| evaluate_by(&By(level), request))
    }
}

struct By(Level);

impl Evaluator for By {
    fn single(&self, call: Invocation<'_, '_, f32>) -> Result<(), Error> {
        evaluate(self.0, call.operation, call.dialect, call.given, call.inputs, call.outputs)
    }

    fn double(&self, call: Invocation<'_, '_, f64>) -> Result<(), Error> {
        evaluate(self.0, call.operation, call.dialect, call.given, call.inputs, call.outputs)
    }
}

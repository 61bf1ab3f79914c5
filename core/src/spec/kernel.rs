//! The evaluations that an engine can call.

use super::Call;
use crate::Error;
use crate::engine::Engine;
use crate::num::Real;

/// An evaluation that consists of passes over many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// That of every policy objective.
    PolicyObjective,
}

impl Kernel {
    pub(super) fn evaluate<R: Real>(self, engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
        match self {
            Kernel::PolicyObjective => crate::objective::policy::evaluate_by(engine, call),
        }
    }
}

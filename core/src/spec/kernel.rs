//! The evaluations that an engine can call.

use super::Call;
use crate::Error;
use crate::engine::Engine;
use crate::num::Real;

/// An evaluation that consists of passes over many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// That of every policy objective.
    #[cfg(feature = "objective")]
    PolicyObjective,
}

impl Kernel {
    pub(super) fn evaluate<R: Real>(self, engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
        #[cfg(not(feature = "objective"))]
        let _ = (engine, call);
        match self {
            #[cfg(feature = "objective")]
            Kernel::PolicyObjective => crate::objective::policy::evaluate_by(engine, call),
        }
    }
}

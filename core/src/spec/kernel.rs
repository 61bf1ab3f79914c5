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
    /// That of the log-sum-exp.
    LogSumExp,
    /// That of the token log-probability.
    TokenLogProb,
    /// That of the entropy.
    Entropy,
}

impl Kernel {
    pub(super) fn evaluate<R: Real>(self, engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
        match self {
            Kernel::PolicyObjective => crate::objective::policy::evaluate_by(engine, call),
            Kernel::LogSumExp => crate::logits::log_softmax::evaluate_logsumexp_by(engine, call),
            Kernel::TokenLogProb => crate::logits::token_logprob::evaluate_by(engine, call),
            Kernel::Entropy => crate::logits::entropy::evaluate_entropy_by(engine, call),
        }
    }
}

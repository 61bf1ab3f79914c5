//! The policy objective of an LLM trainer as five choices: where the advantage comes from, what the ratio's unit is, what
//! is clipped and how the gradient passes it, what else is added (KL, entropy), and what the loss is divided by.
//!
//! PPO, GRPO, Dr. GRPO, DAPO, CISPO, GSPO, GMPO, SAPO and the others are settings of [`PolicyObjective`]; the catalog names
//! them ([`super::named`]). Value, gradient and metrics come from one pass over the batch:
//!
//! ```text
//! row ─► blocks of 128 tokens ─► log-ratio ─► ratio ─► surrogate ─► weights ─► (+ KL, entropy) ─► row sums ─► exact sum
//!                                                        └─► derivative · token weight ─► d_log_prob
//! ```
//!
//! A shard stops after the exact sum: [`PolicyObjective::partial`] gives a [`PolicyPartial`] that merges, and
//! [`PolicyObjective::finish`] turns the merged sums into the loss of the whole batch, with the same bits as without shards.

mod batch;
mod block;
mod call;
mod partial;
mod parts;
mod row;
mod surrogate;
#[cfg(test)]
mod tests;
pub mod token;

pub use batch::{PolicyBatch, PolicyOutputs, Spread};
pub use call::{AdvantageSource, setting};
pub(crate) use call::{INPUTS, OUTPUTS, PARAMS, STOPPED_OUTPUTS, evaluate, evaluate_by};
pub use partial::{PolicyLoss, PolicyMetrics, PolicyPartial};
pub use surrogate::{Surrogate, SurrogateKind};

use crate::Error;
use crate::engine::{Engine, Portable};
use crate::kl::estimator::KlEstimator;
use crate::num::Real;
use crate::reduce::{Reduction, Totals};
use crate::spec::choice;

choice! {
    /// What the importance ratio is a ratio of.
    pub enum RatioLevel {
        /// Of a token: ρ_t = exp(log π − log π_old).
        Token = "token",
        /// Of a response, geometric mean over its tokens; the gradient of each token is 1/L of the response's (GSPO).
        Sequence = "sequence",
        /// The value of `sequence`, the gradient of each token its own (GSPO-token).
        SequenceToken = "sequence_token",
        /// Of a response, product over its tokens.
        SequenceProduct = "sequence_product",
    }
}

choice! {
    /// Whether the KL estimate is weighted by the importance ratio.
    pub enum KlWeight {
        /// It is not.
        None = "none",
        /// It is, and the gradient flows through the ratio too.
        Ratio = "ratio",
        /// It is, with the ratio stopped.
        RatioDetached = "ratio_detached",
    }
}

choice! {
    /// What the entropy is averaged over.
    pub enum EntropyAggregation {
        /// As the loss.
        Same = "same",
        /// Over all tokens.
        TokenMean = "token_mean",
        /// Over the tokens that `keep` leaves in the policy term.
        KeptTokenMean = "kept_token_mean",
    }
}

/// The KL term of an objective.
#[derive(Clone, Copy, Debug)]
pub struct KlTerm<R> {
    /// Its weight β.
    pub coefficient: R,
    /// The estimator.
    pub estimator: KlEstimator,
    /// k3 only: limit of the log-ratio's size before the exponential.
    pub difference_clamp: Option<R>,
    /// k3 only: limit of the estimate.
    pub value_clamp: Option<R>,
    /// Whether it is weighted by the importance ratio.
    pub weight: KlWeight,
}

/// The entropy bonus of an objective.
#[derive(Clone, Copy, Debug)]
pub struct EntropyTerm<R> {
    /// Its weight; the bonus is subtracted from the loss.
    pub coefficient: R,
    /// What it is averaged over.
    pub aggregation: EntropyAggregation,
}

/// A policy objective.
#[derive(Clone, Copy, Debug)]
pub struct PolicyObjective<R> {
    /// The unit of the ratio.
    pub ratio_level: RatioLevel,
    /// Lower and upper limit of the log-ratio (at its level) before the exponential; infinite where there is none.
    pub log_ratio_range: (R, R),
    /// Limit of each token's log-ratio before the sum of a sequence level; infinite where there is none.
    pub token_log_ratio_clamp: R,
    /// Added to L_i in the mean log-ratio of a sequence level.
    pub ratio_length_eps: R,
    /// The surrogate.
    pub surrogate: Surrogate<R>,
    /// The KL term, where there is one.
    pub kl: Option<KlTerm<R>>,
    /// The entropy bonus, where there is one.
    pub entropy: Option<EntropyTerm<R>>,
    /// What the loss is divided by.
    pub reduction: Reduction<R>,
}

impl<R: Real> PolicyObjective<R> {
    /// An objective with a token-level ratio, no limits, no KL and no entropy.
    pub fn new(surrogate: Surrogate<R>, reduction: Reduction<R>) -> Self {
        PolicyObjective {
            ratio_level: RatioLevel::Token,
            log_ratio_range: (R::neg_infinity(), R::infinity()),
            token_log_ratio_clamp: R::infinity(),
            ratio_length_eps: R::zero(),
            surrogate,
            kl: None,
            entropy: None,
            reduction,
        }
    }

    /// The loss of a batch; gradient and per-token results go to the buffers that `outputs` holds.
    ///
    /// Errors: [`Error::LengthMismatch`] for a slice of another length than the batch, [`Error::MissingInput`] where the KL
    /// term has no reference or the entropy bonus no entropy, [`Error::NonFinite`] for a non-finite unmasked input,
    /// [`Error::EmptyMask`] for a batch without tokens. Where an error is returned, what the buffers hold is unspecified.
    ///
    /// ```
    /// use plumbline_core::batch::{Mask, TokenShape};
    /// use plumbline_core::objective::policy::{PolicyBatch, PolicyObjective, PolicyOutputs, Spread, Surrogate};
    /// use plumbline_core::reduce::{Aggregation, Reduction};
    /// use plumbline_core::surrogate::ClipRange;
    ///
    /// let shape = TokenShape { rows: 2, columns: 2 };
    /// let mask = Mask::new(shape, Some(&[1, 1, 1, 0])).unwrap();
    /// let log_prob = [-1.0, -1.0, -1.0, f64::NAN];
    /// let batch = PolicyBatch {
    ///     old_log_prob: Some(&log_prob),
    ///     ..PolicyBatch::new(&log_prob, Spread::PerRow(&[2.0, -1.0]), mask)
    /// };
    /// let ppo = PolicyObjective::new(
    ///     Surrogate::ppo_clip(ClipRange::relative(0.2, 0.2)),
    ///     Reduction::new(Aggregation::TokenMean),
    /// );
    /// let mut gradient = [0.0; 4];
    /// let mut outputs = PolicyOutputs { d_log_prob: Some(&mut gradient), ..PolicyOutputs::default() };
    /// let result = ppo.loss(&batch, &mut outputs).unwrap();
    /// // Ratio 1 everywhere: the loss is the mean of −2, −2, 1.
    /// assert_eq!(result.loss, -1.0);
    /// assert_eq!(gradient, [-2.0 / 3.0, -2.0 / 3.0, 1.0 / 3.0, 0.0]);
    /// ```
    pub fn loss(&self, batch: &PolicyBatch<'_, R>, outputs: &mut PolicyOutputs<'_, R>) -> Result<PolicyLoss<R>, Error> {
        self.loss_by(Portable, batch, outputs)
    }

    /// [`loss`](Self::loss) with the pass called by an engine.
    pub fn loss_by(
        &self,
        engine: impl Engine,
        batch: &PolicyBatch<'_, R>,
        outputs: &mut PolicyOutputs<'_, R>,
    ) -> Result<PolicyLoss<R>, Error> {
        let totals = self.totals(batch);
        let partial = self.partial_by(engine, batch, &totals, outputs)?;
        self.finish(&partial, &totals)
    }

    /// The counts of a batch (or shard) that the reduction divides by. Those of shards merge.
    pub fn totals(&self, batch: &PolicyBatch<'_, R>) -> Totals {
        Totals::of(&batch.mask, batch.groups)
    }

    /// The sums of a shard, given the merged counts of the whole batch. The gradient that is written is that of the whole
    /// batch's loss.
    pub fn partial(
        &self,
        batch: &PolicyBatch<'_, R>,
        totals: &Totals,
        outputs: &mut PolicyOutputs<'_, R>,
    ) -> Result<PolicyPartial<R>, Error> {
        self.partial_by(Portable, batch, totals, outputs)
    }

    /// [`partial`](Self::partial) with the pass called by an engine.
    pub fn partial_by(
        &self,
        engine: impl Engine,
        batch: &PolicyBatch<'_, R>,
        totals: &Totals,
        outputs: &mut PolicyOutputs<'_, R>,
    ) -> Result<PolicyPartial<R>, Error> {
        batch.check(self)?;
        outputs.check(batch.mask.shape())?;
        let divisor = self.reduction.divisor(totals)?;
        if parts::divides(engine, self, batch)
            && let Ok(partial) = parts::accumulate(engine, self, *batch, totals, divisor, outputs.borrowed())
        {
            return Ok(partial);
        }
        // In one part, which also says of the whole batch what was wrong in a part of it.
        let mut partial = PolicyPartial::new();
        row::accumulate(engine, self, batch, totals, divisor, outputs, &mut partial)?;
        Ok(partial)
    }

    /// The loss from the merged sums and counts of all shards.
    pub fn finish(&self, partial: &PolicyPartial<R>, totals: &Totals) -> Result<PolicyLoss<R>, Error> {
        let divisor = self.reduction.divisor(totals)?;
        Ok(partial.finish(self, divisor, totals))
    }
}

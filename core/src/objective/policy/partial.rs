//! The sums of a shard, and the loss that they finish to.

use super::{EntropyAggregation, PolicyObjective};
use crate::num::{ExactSum, Real};
use crate::reduce::Totals;

/// What the tokens of a batch did, beside the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyMetrics<R> {
    /// Fraction of tokens whose loss a clip decided (CISPO: whose weight was limited; DPPO: that were cut off).
    pub clip_fraction: R,
    /// Fraction with a positive advantage and a ratio above the upper bound.
    pub clip_fraction_high: R,
    /// Fraction with a negative advantage and a ratio below the lower bound.
    pub clip_fraction_low: R,
    /// Fraction limited by the dual clip (DPPO: by the cap of the ratio).
    pub dual_clip_fraction: R,
    /// Mean of log π_old − log π over tokens (nats; of the limited log-ratio at token level).
    pub approx_kl_k1: R,
    /// Mean of ρ − 1 − log ρ over tokens (nats; token ratios).
    pub approx_kl_k3: R,
    /// Mean ratio over tokens, at the objective's level.
    pub ratio_mean: R,
    /// Smallest ratio.
    pub ratio_min: R,
    /// Largest ratio.
    pub ratio_max: R,
}

/// The loss of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyLoss<R> {
    /// Policy term + β·KL − c·entropy.
    pub loss: R,
    /// The aggregated policy term.
    pub policy_loss: R,
    /// The aggregated KL estimate, before β.
    pub kl_loss: R,
    /// The averaged entropy, before its coefficient.
    pub entropy_loss: R,
    /// Clip fractions, approximate KL, ratios.
    pub metrics: PolicyMetrics<R>,
}

impl<R: Real> PolicyLoss<R> {
    /// Every number under the name of the catalog's output.
    pub fn named(&self) -> [(&'static str, R); 13] {
        let metrics = &self.metrics;
        [
            ("loss", self.loss),
            ("policy_loss", self.policy_loss),
            ("kl_loss", self.kl_loss),
            ("entropy_loss", self.entropy_loss),
            ("clip_fraction", metrics.clip_fraction),
            ("clip_fraction_high", metrics.clip_fraction_high),
            ("clip_fraction_low", metrics.clip_fraction_low),
            ("dual_clip_fraction", metrics.dual_clip_fraction),
            ("approx_kl_k1", metrics.approx_kl_k1),
            ("approx_kl_k3", metrics.approx_kl_k3),
            ("ratio_mean", metrics.ratio_mean),
            ("ratio_min", metrics.ratio_min),
            ("ratio_max", metrics.ratio_max),
        ]
    }
}

/// The sums of a shard: exact across rows, so that merging in any order gives the bits of the whole batch.
#[derive(Clone, Debug)]
pub struct PolicyPartial<R> {
    pub(super) policy: ExactSum,
    pub(super) kl: ExactSum,
    pub(super) entropy: ExactSum,
    pub(super) approx_kl_k1: ExactSum,
    pub(super) approx_kl_k3: ExactSum,
    pub(super) ratio: ExactSum,
    pub(super) ratio_min: R,
    pub(super) ratio_max: R,
    pub(super) tokens: usize,
    pub(super) kept_tokens: usize,
    pub(super) clipped: usize,
    pub(super) clipped_high: usize,
    pub(super) clipped_low: usize,
    pub(super) dual_clipped: usize,
}

impl<R: Real> PolicyPartial<R> {
    pub(super) fn new() -> Self {
        PolicyPartial {
            policy: ExactSum::new(),
            kl: ExactSum::new(),
            entropy: ExactSum::new(),
            approx_kl_k1: ExactSum::new(),
            approx_kl_k3: ExactSum::new(),
            ratio: ExactSum::new(),
            ratio_min: R::infinity(),
            ratio_max: R::zero(),
            tokens: 0,
            kept_tokens: 0,
            clipped: 0,
            clipped_high: 0,
            clipped_low: 0,
            dual_clipped: 0,
        }
    }

    /// Add the sums of another shard.
    pub fn merge(&mut self, other: &PolicyPartial<R>) {
        self.policy.merge(&other.policy);
        self.kl.merge(&other.kl);
        self.entropy.merge(&other.entropy);
        self.approx_kl_k1.merge(&other.approx_kl_k1);
        self.approx_kl_k3.merge(&other.approx_kl_k3);
        self.ratio.merge(&other.ratio);
        self.ratio_min = self.ratio_min.smaller(other.ratio_min);
        self.ratio_max = self.ratio_max.larger(other.ratio_max);
        self.tokens += other.tokens;
        self.kept_tokens += other.kept_tokens;
        self.clipped += other.clipped;
        self.clipped_high += other.clipped_high;
        self.clipped_low += other.clipped_low;
        self.dual_clipped += other.dual_clipped;
    }

    pub(super) fn finish(&self, objective: &PolicyObjective<R>, divisor: R, totals: &Totals) -> PolicyLoss<R> {
        let scale = objective.reduction.scale();
        let policy_loss = self.policy.value::<R>() / divisor * scale;
        let kl_loss = self.kl.value::<R>() / divisor * scale;
        let entropy_divisor = match objective.entropy.map(|entropy| entropy.aggregation) {
            None | Some(EntropyAggregation::Same) => divisor,
            Some(EntropyAggregation::TokenMean) => R::from_count(totals.tokens),
            // Where nothing is kept the sum is 0 too.
            Some(EntropyAggregation::KeptTokenMean) => R::from_count(self.kept_tokens.max(1)),
        };
        let entropy_loss = self.entropy.value::<R>() / entropy_divisor * scale;
        let mut loss = policy_loss;
        if let Some(kl) = objective.kl {
            loss += kl.coefficient * kl_loss;
        }
        if let Some(entropy) = objective.entropy {
            loss -= entropy.coefficient * entropy_loss;
        }
        let tokens = R::from_count(self.tokens);
        let fraction = |count: usize| R::from_count(count) / tokens;
        PolicyLoss {
            loss,
            policy_loss,
            kl_loss,
            entropy_loss,
            metrics: PolicyMetrics {
                clip_fraction: fraction(self.clipped),
                clip_fraction_high: fraction(self.clipped_high),
                clip_fraction_low: fraction(self.clipped_low),
                dual_clip_fraction: fraction(self.dual_clipped),
                approx_kl_k1: self.approx_kl_k1.value::<R>() / tokens,
                approx_kl_k3: self.approx_kl_k3.value::<R>() / tokens,
                ratio_mean: self.ratio.value::<R>() / tokens,
                ratio_min: self.ratio_min,
                ratio_max: self.ratio_max,
            },
        }
    }
}

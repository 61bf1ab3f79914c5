//! One token of an objective at a time: the stages of `row.rs` for a thread that holds a single token.
//!
//! A batch is the same function of its tokens either way, bit for bit; a test holds the two together. What stands between
//! the tokens, the sums of a row, is the caller's: canonical trees over [`TokenOutput`]'s summands.

use super::surrogate::{GradientPath, Surrogate, Token};
use super::{EntropyAggregation, KlWeight, PolicyObjective, PolicyPartial, RatioLevel};
use crate::kl::estimator::KlEstimator;
use crate::num::Real;
use crate::ratio::geometric_clipped::{LogClipRange, ZeroAdvantage, one_sided_clip};
use crate::surrogate::product;

/// What an objective reads of a token that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenInput<R> {
    /// log π.
    pub log_prob: R,
    /// log π_old.
    pub old_log_prob: Option<R>,
    /// log π_ref.
    pub ref_log_prob: Option<R>,
    /// A, of the token or of its response.
    pub advantage: R,
    /// The weight of the policy term, of the token or of its response.
    pub importance_weight: Option<R>,
    /// Whether the policy term stays in.
    pub keep: bool,
    /// Whether the token was selected.
    pub selected: bool,
    /// H.
    pub entropy: R,
}

/// What a token contributes. A token that is absent contributes [`TokenOutput::absent`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenOutput<R> {
    /// Summand of the policy term.
    pub policy: R,
    /// Summand of the KL term.
    pub kl: R,
    /// Summand of the entropy.
    pub entropy: R,
    /// Summand of the approximate KL k1, with the sign of the log-ratio.
    pub log_ratio: R,
    /// Summand of the approximate KL k3.
    pub k3: R,
    /// The ratio.
    pub ratio: R,
    /// Summand of the derivative by the response's log-ratio.
    pub spread: R,
    /// Gradient by log π, but for what the response spreads.
    pub d_log_prob: R,
    /// Gradient by the entropy.
    pub d_entropy: R,
    /// ℓ before aggregation.
    pub token_loss: R,
    /// Whether a clip decided.
    pub clipped: bool,
    /// Whether that was the upper one on a positive advantage.
    pub clipped_high: bool,
    /// Whether that was the lower one on a negative advantage.
    pub clipped_low: bool,
    /// Whether the dual clip decided.
    pub dual_clipped: bool,
}

impl<R: Real> TokenOutput<R> {
    /// Of a slot without a token.
    pub fn absent() -> Self {
        let zero = R::zero();
        TokenOutput {
            policy: zero,
            kl: zero,
            entropy: zero,
            log_ratio: zero,
            k3: zero,
            ratio: zero,
            spread: zero,
            d_log_prob: zero,
            d_entropy: zero,
            token_loss: zero,
            clipped: false,
            clipped_high: false,
            clipped_low: false,
            dual_clipped: false,
        }
    }
}

/// What a token contributes to the ratio of its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceInput<R> {
    /// Summand of the response's log-ratio.
    pub log_ratio: R,
    /// A second summand, whose tree is added behind that of the first block by block (VESPO's weights of tokens).
    pub log_weight: Option<R>,
    /// Summand of the mean advantage (GMPO).
    pub advantage: R,
    /// Whether a bound of the log-ratio decided (GMPO).
    pub clipped: bool,
    /// Whether that was the upper one on a positive advantage.
    pub clipped_high: bool,
    /// Whether that was the lower one on a negative advantage.
    pub clipped_low: bool,
}

/// The ratio that a whole response shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceRatio<R> {
    /// The log-ratio, limited.
    pub log_ratio: R,
    /// Its exponential.
    pub ratio: R,
    /// Whether the limit of the log-ratio stopped the gradient.
    pub limited: bool,
    /// The mean advantage (GMPO).
    pub advantage: R,
    /// ∂(log-ratio of the response)/∂(log-ratio of a token).
    pub share: R,
}

/// The sums of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowTotals<R> {
    /// Σ of the policy term.
    pub policy: R,
    /// Σ of the KL term.
    pub kl: R,
    /// Σ of the entropy.
    pub entropy: R,
    /// Σ of log-ratios.
    pub log_ratio: R,
    /// Σ of k3.
    pub k3: R,
    /// Σ of ratios.
    pub ratio: R,
}

/// The counts and extremes of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyCounts<R> {
    /// Tokens.
    pub tokens: usize,
    /// Tokens whose policy term stays in.
    pub kept_tokens: usize,
    /// Tokens that a clip decided.
    pub clipped: usize,
    /// By the upper one on a positive advantage.
    pub clipped_high: usize,
    /// By the lower one on a negative advantage.
    pub clipped_low: usize,
    /// By the dual clip.
    pub dual_clipped: usize,
    /// The smallest ratio; infinity of nothing.
    pub ratio_min: R,
    /// The largest ratio; 0 of nothing.
    pub ratio_max: R,
}

impl<R: Real> PolicyObjective<R> {
    /// Whether a response's tokens share a ratio, so that a pass over the row must come before [`PolicyObjective::token`].
    pub fn shares_ratio(&self) -> bool {
        self.ratio_level != RatioLevel::Token || matches!(self.surrogate, Surrogate::Gmpo { .. })
    }

    /// Whether a response's derivative is spread over its tokens after the pass.
    pub fn spreads(&self) -> bool {
        // VESPO stops its ratio, and its KL term is weighted by the token's own: nothing spreads.
        self.shares_ratio()
            && self.ratio_level != RatioLevel::SequenceToken
            && !matches!(self.surrogate, Surrogate::Vespo { .. })
    }

    /// The weight of a row's tokens in the loss.
    #[inline(always)]
    pub fn row_weight(&self, divisor: R, row_divisor: R) -> R {
        self.reduction.scale() / divisor / row_divisor
    }

    /// How many tokens the entropy is averaged over, of a batch of `tokens` of which `kept_tokens` stay in.
    #[inline(always)]
    pub fn averaged_over(&self, tokens: usize, kept_tokens: usize) -> usize {
        match self.entropy.map(|term| term.aggregation) {
            Some(EntropyAggregation::KeptTokenMean) => kept_tokens.max(1),
            _ => tokens,
        }
    }

    /// The weight of a token's entropy where it is averaged over `tokens` tokens; `None` where it follows the loss.
    #[inline(always)]
    pub fn entropy_weight(&self, tokens: usize) -> Option<R> {
        match self.entropy?.aggregation {
            EntropyAggregation::Same => None,
            EntropyAggregation::TokenMean | EntropyAggregation::KeptTokenMean => {
                Some(self.reduction.scale() / R::from_count(tokens))
            }
        }
    }

    #[inline(always)]
    fn token_log_ratio(token: &TokenInput<R>) -> R {
        token.old_log_prob.map_or(R::zero(), |old| token.log_prob - old)
    }

    /// The summands of a response's ratio. `weight_per_token`: whether importance weights are one a token.
    #[inline(always)]
    pub fn sequence_input(&self, token: &TokenInput<R>, weight_per_token: bool) -> SequenceInput<R> {
        let (x, zero) = (Self::token_log_ratio(token), R::zero());
        let free = SequenceInput {
            log_ratio: x.clip(zero - self.token_log_ratio_clamp, self.token_log_ratio_clamp),
            log_weight: None,
            advantage: zero,
            clipped: false,
            clipped_high: false,
            clipped_low: false,
        };
        match self.surrogate {
            Surrogate::Gmpo { low, high } => {
                let range = LogClipRange { low, high };
                let [clipped, slope] = one_sided_clip(x, token.advantage, range, ZeroAdvantage::Neutral);
                let cut = slope == zero;
                let (cut_high, cut_low) = (cut & (token.advantage > zero), cut & (token.advantage < zero));
                SequenceInput {
                    log_ratio: clipped,
                    advantage: token.advantage,
                    clipped: cut_high | cut_low,
                    clipped_high: cut_high,
                    clipped_low: cut_low,
                    ..free
                }
            }
            Surrogate::Vespo { .. } if weight_per_token => {
                let (low, high) = self.log_ratio_range;
                SequenceInput { log_weight: token.importance_weight.map(|weight| weight.ln().clip(low, high)), ..free }
            }
            _ => free,
        }
    }

    /// The ratio of a response of `length` tokens from its sums. `whole_weight`: an importance weight of the response.
    #[inline(always)]
    pub fn sequence_ratio(
        &self,
        log_ratio: R,
        advantage: R,
        length: usize,
        whole_weight: Option<R>,
    ) -> SequenceRatio<R> {
        let length = R::from_count(length) + self.ratio_length_eps;
        let product = self.ratio_level == RatioLevel::SequenceProduct;
        let (low, high) = self.log_ratio_range;
        let sum = match (self.surrogate, whole_weight) {
            // A weight of the whole response joins its ratio once.
            (Surrogate::Vespo { .. }, Some(weight)) => log_ratio + weight.ln().clip(low, high),
            _ => log_ratio,
        };
        let raw = if product { sum } else { sum / length };
        let log_ratio = raw.clip(low, high);
        SequenceRatio {
            log_ratio,
            ratio: log_ratio.exp(),
            limited: raw < low || raw > high,
            advantage: advantage / length,
            share: if product { R::one() } else { R::one() / length },
        }
    }

    /// All stages of a token that is there. `sequence`: the ratio of its response, where the objective has one; `weight`: the
    /// token's weight in the loss; `entropy_weight`: that of its entropy, where it is averaged over tokens.
    #[inline(always)]
    pub fn token(
        &self,
        token: &TokenInput<R>,
        sequence: Option<&SequenceRatio<R>>,
        weight: R,
        entropy_weight: Option<R>,
    ) -> TokenOutput<R> {
        let (zero, one) = (R::zero(), R::one());
        let (low, high) = self.log_ratio_range;
        let token_log_ratio = Self::token_log_ratio(token);
        let (log_ratio, ratio, advantage) = match sequence {
            Some(shared) if matches!(self.surrogate, Surrogate::Gmpo { .. }) => {
                (shared.log_ratio, shared.ratio, shared.advantage)
            }
            Some(shared) => (shared.log_ratio, shared.ratio, token.advantage),
            None => {
                let limited = token_log_ratio.clip(low, high);
                (limited, limited.exp(), token.advantage)
            }
        };
        let (k3, k1) = match sequence {
            None => ((ratio - one) - log_ratio, log_ratio),
            Some(_) => ((token_log_ratio.exp() - one) - token_log_ratio, token_log_ratio),
        };
        let term = self.surrogate.term(Token {
            log_prob: token.log_prob,
            token_log_ratio,
            log_ratio,
            ratio,
            advantage,
            selected: token.selected,
        });
        let by_ratio = self.surrogate.gradient_path() == GradientPath::Ratio;
        let stopped = by_ratio
            && match sequence {
                Some(shared) => shared.limited,
                None => token_log_ratio < low || token_log_ratio > high,
            };
        let (mut loss, mut derivative) = (term.loss, if stopped { zero } else { term.derivative });
        let weighted = !matches!(self.surrogate, Surrogate::Vespo { .. });
        if let Some(importance) = token.importance_weight
            && weighted
        {
            (loss, derivative) = (product(loss, importance), product(derivative, importance));
        }
        if !token.keep {
            (loss, derivative) = (zero, zero);
        }
        let spreads = self.spreads();
        let [kl, d_kl] = self.token_kl(token, token_log_ratio, ratio, spreads);
        let kept_only = self.entropy.is_some_and(|term| term.aggregation == EntropyAggregation::KeptTokenMean);
        let entropy = match self.entropy {
            Some(_) if token.keep || !kept_only => token.entropy,
            _ => zero,
        };
        let kl_through_ratio = self.kl.filter(|kl| kl.weight == KlWeight::Ratio).map(|kl| kl.coefficient);
        let spread = if spreads {
            let policy = if by_ratio { derivative } else { zero };
            policy + kl_through_ratio.map_or(zero, |coefficient| coefficient * kl)
        } else {
            zero
        };
        let (mut gradient, mut token_loss) = (if spreads && by_ratio { zero } else { derivative }, loss);
        if let Some(term) = self.kl {
            gradient += term.coefficient * d_kl;
            token_loss += term.coefficient * kl;
        }
        if let Some(term) = self.entropy
            && term.aggregation == EntropyAggregation::Same
        {
            token_loss += (zero - term.coefficient) * entropy;
        }
        let slope = zero - self.entropy.map_or(zero, |term| term.coefficient) * entropy_weight.unwrap_or(weight);
        TokenOutput {
            policy: loss,
            kl,
            entropy,
            log_ratio: k1,
            k3,
            ratio,
            spread,
            d_log_prob: product(gradient, weight),
            d_entropy: if kept_only && !token.keep { zero } else { slope },
            token_loss,
            clipped: term.clipped,
            clipped_high: term.clipped_high,
            clipped_low: term.clipped_low,
            dual_clipped: term.dual_clipped,
        }
    }

    #[inline(always)]
    fn token_kl(&self, token: &TokenInput<R>, token_log_ratio: R, ratio: R, spreads: bool) -> [R; 2] {
        let (Some(kl), Some(reference)) = (self.kl, token.ref_log_prob) else { return [R::zero(); 2] };
        let x = token.log_prob - reference;
        let flows = kl.weight == KlWeight::Ratio && !spreads;
        let [value, slope] = kl.estimator.estimate(x, kl.difference_clamp, kl.value_clamp);
        let slope = match (kl.estimator, kl.difference_clamp, kl.value_clamp) {
            // ρ·k3 has the slope ρ·d, which does not overflow where k3 and its derivative do.
            (KlEstimator::K3, None, None) if flows => x,
            _ if flows => slope + value,
            _ => slope,
        };
        if kl.weight == KlWeight::None {
            return [value, slope];
        }
        // VESPO's ratio is a response's product; the KL estimate of a token takes the token's own.
        let own = if matches!(self.surrogate, Surrogate::Vespo { .. }) { token_log_ratio.exp() } else { ratio };
        [product(value, own), product(slope, own)]
    }

    /// What a response spreads to each of its tokens whose log-ratio no limit cut off, from its sum of
    /// [`TokenOutput::spread`].
    #[inline(always)]
    pub fn spread_each(&self, sequence: &SequenceRatio<R>, sum: R, weight: R) -> R {
        product(sum, weight) * sequence.share
    }

    /// Whether a token takes its response's share.
    #[inline(always)]
    pub fn takes_share(&self, token: &TokenInput<R>) -> bool {
        let x = Self::token_log_ratio(token);
        match self.surrogate {
            Surrogate::Gmpo { low, high } => {
                let range = LogClipRange { low, high };
                one_sided_clip(x, token.advantage, range, ZeroAdvantage::Neutral)[1] != R::zero()
            }
            _ => x.abs() <= self.token_log_ratio_clamp,
        }
    }

    /// What a row with these sums adds to the batch: its policy, KL and entropy term, and its summands of the approximate
    /// KL k1, k3 and of the mean ratio.
    #[inline(always)]
    pub fn row_terms(&self, sums: &RowTotals<R>, row_divisor: R) -> [R; 6] {
        let entropy = match self.entropy.map(|term| term.aggregation) {
            Some(EntropyAggregation::TokenMean | EntropyAggregation::KeptTokenMean) => sums.entropy,
            _ => sums.entropy / row_divisor,
        };
        let (policy, kl) = (sums.policy / row_divisor, sums.kl / row_divisor);
        [policy, kl, entropy, R::zero() - sums.log_ratio, sums.k3, sums.ratio]
    }
}

impl<R: Real> PolicyPartial<R> {
    /// Add what [`PolicyObjective::row_terms`] gives for a row.
    pub(super) fn add_row(&mut self, terms: [R; 6]) {
        let PolicyPartial { policy, kl, entropy, approx_kl_k1, approx_kl_k3, ratio, .. } = self;
        for (sum, term) in [policy, kl, entropy, approx_kl_k1, approx_kl_k3, ratio].into_iter().zip(terms) {
            sum.add(term);
        }
    }

    /// The partial sums of a batch from the sums of [`PolicyObjective::row_terms`] over its rows, each added exactly and rounded
    /// once.
    pub fn from_sums(sums: [R; 6], counts: PolicyCounts<R>) -> Self {
        let mut partial = PolicyPartial {
            ratio_min: counts.ratio_min,
            ratio_max: counts.ratio_max,
            tokens: counts.tokens,
            kept_tokens: counts.kept_tokens,
            clipped: counts.clipped,
            clipped_high: counts.clipped_high,
            clipped_low: counts.clipped_low,
            dual_clipped: counts.dual_clipped,
            ..PolicyPartial::new()
        };
        partial.add_row(sums);
        partial
    }
}

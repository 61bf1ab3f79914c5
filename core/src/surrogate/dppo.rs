//! DPPO: the trust region as a divergence of the token's probability, by total variation or by KL.

use super::term::{STOPPED_OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs, product};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, choice, evaluate_with};

/// DPPO.
pub(crate) const DPPO: Source = Source {
    title: "Rethinking the Trust Region in LLM Reinforcement Learning",
    reference: "arXiv:2602.04879",
    place: "Section 4 (binary TV and binary KL)",
};

choice! {
    /// Which binary divergence bounds a token.
    pub enum Divergence {
        /// Total variation: the difference of the two probabilities.
        TotalVariation = "total_variation",
        /// KL(π_old‖π) of "this token" against "any other".
        Kl = "kl",
    }
}

/// The thresholds of DPPO.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DppoBounds<R> {
    /// How far the divergence may go where the policy moves against the token.
    pub low: R,
    /// How far it may go where the policy moves towards the token.
    pub high: R,
    /// The cap of the ratio that weighs the token.
    pub cap: R,
    /// Added to both complements inside the logarithm of the KL form.
    pub probability_eps: R,
}

/// The DPPO loss ℓ = −M·sg(min(ρ, cap))·A·log π, derivative −M·min(ρ, cap)·A by log π (DPPO, Section 4).
///
/// M cuts a token off where the update has already moved its probability p from q too far in the direction that the
/// advantage pushes: for A > 0 when p − q > high (TV), or the binary KL q ln(q/p) + (1−q) ln((1−q+ε)/(1−p+ε)) > high while p > q;
/// for A ≤ 0 likewise below q with `low`. At a threshold the token is kept. `log_prob` = log p, `old_log_prob` = log q (nats).
///
/// Differs in: verl adds 10⁻⁸ in the KL form (`probability_eps`).
///
/// ```
/// use plumbline_core::surrogate::dppo::{Divergence, DppoBounds, dppo};
/// let bounds = DppoBounds { low: 0.2, high: 0.2, cap: 3.0, probability_eps: 0.0 };
/// // p = 1, q = e^(−1) = 0.37: moved by more than 0.2 towards a token of positive advantage.
/// assert_eq!(dppo(0.0, -1.0, 2.718, 1.0, Divergence::TotalVariation, bounds).derivative, 0.0);
/// assert_eq!(dppo(0.0, -1.0, 2.718, -1.0, Divergence::TotalVariation, bounds).derivative, 2.718);
/// ```
#[inline(always)]
pub fn dppo<R: Real>(
    log_prob: R,
    old_log_prob: R,
    ratio: R,
    advantage: R,
    divergence: Divergence,
    bounds: DppoBounds<R>,
) -> Term<R> {
    let (zero, one) = (R::zero(), R::one());
    let (p, q) = (log_prob.exp(), old_log_prob.exp());
    let (kept_positive, kept_negative) = match divergence {
        Divergence::TotalVariation => (p - q <= bounds.high, p - q >= zero - bounds.low),
        Divergence::Kl => {
            let eps = bounds.probability_eps;
            let others = ((one - q + eps) / (one - p + eps)).ln();
            let kl = product(q, old_log_prob - log_prob) + product(one - q, others);
            ((kl <= bounds.high) | (p <= q), (kl <= bounds.low) | (p >= q))
        }
    };
    let kept = if advantage > zero { kept_positive } else { kept_negative };
    let derivative = if kept { zero - ratio.smaller(bounds.cap) * advantage } else { zero };
    Term {
        loss: product(derivative, log_prob),
        derivative,
        clipped: !kept,
        clipped_high: !kept & (advantage > zero),
        clipped_low: !kept & (advantage < zero),
        dual_clipped: kept & (ratio > bounds.cap),
    }
}

/// The epsilon of the KL form.
pub(crate) const PROBABILITY_EPS: ParamSpec = ParamSpec::number(
    "probability_eps",
    r"\epsilon_p",
    1e-8,
    Range::NON_NEGATIVE,
    "added to the complements of both probabilities inside the logarithm of the binary KL",
);
const DIVERGENCE: ParamSpec = ParamSpec::choice(
    "divergence",
    "total_variation",
    <Divergence as crate::spec::Choice>::NAMES,
    "which binary divergence bounds a token",
);
const LOW: ParamSpec = ParamSpec::number(
    "clip_ratio_low",
    r"\epsilon_{\mathrm{low}}",
    0.2,
    Range::NON_NEGATIVE,
    "threshold of the divergence where the probability has fallen",
);
const HIGH: ParamSpec = ParamSpec::number(
    "clip_ratio_high",
    r"\epsilon_{\mathrm{high}}",
    0.2,
    Range::NON_NEGATIVE,
    "threshold of the divergence where the probability has risen",
);
const CAP: ParamSpec =
    ParamSpec::number("clip_ratio_c", r"c", 3.0, Range::ABOVE_ONE, "cap of the ratio that weighs the token");

/// [`dppo`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dppo<R> {
    /// Which divergence.
    pub divergence: Divergence,
    /// Thresholds and cap.
    pub bounds: DppoBounds<R>,
}

impl<R: Real> TokenSurrogate<R> for Dppo<R> {
    const OPERATION: &'static str = "surrogate.dppo";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let divergence: Divergence = call.choice("divergence")?;
        let bounds = DppoBounds {
            low: call.number("clip_ratio_low")?,
            high: call.number("clip_ratio_high")?,
            cap: call.number("clip_ratio_c")?,
            probability_eps: call.number("probability_eps")?,
        };
        let limit = R::zero();
        if let (Ok(log_prob), Ok(old)) = (call.real("log_prob"), call.real("old_log_prob")) {
            let mask = call.mask()?;
            for (argument, values) in [("log_prob", log_prob), ("old_log_prob", old)] {
                if let Some((index, value)) =
                    values.iter().enumerate().find(|(slot, value)| mask.keeps(*slot) && **value > limit)
                {
                    return Err(Error::ElementOutOfRange { argument, index, value: (*value).to_f64(), legal: "<= 0" });
                }
            }
        }
        Ok(Dppo { divergence, bounds })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        let old_log_prob = token.log_prob - token.log_ratio;
        dppo(token.log_prob, old_log_prob, token.ratio, token.advantage, self.divergence, self.bounds)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Dppo<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.dppo",
    family: Family::Surrogate,
    title: "DPPO",
    summary: "REINFORCE with a capped, stopped ratio, cut off where the token's probability has moved too far.",
    formula: r"\ell = -M\, \mathrm{sg}(\min(\rho, c))\, A \log\pi_\theta(a)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -M \min(\rho, c) A",
    notes: "M keeps a token while the binary divergence between p and q is within the threshold or the probability moved \
            the other way. Log-probabilities must be <= 0 here, because their exponentials are probabilities. verl: dppo_tv, \
            dppo_kl with epsilon 1e-8.",
    sources: &[DPPO],
    inputs: &inputs(),
    params: &[DIVERGENCE, LOW, HIGH, CAP, PROBABILITY_EPS],
    defaults: &[],
    outputs: STOPPED_OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_cut_by_both_divergences() {
        let bounds = DppoBounds { low: 0.1, high: 0.2, cap: 3.0, probability_eps: 0.0 };
        let at = |p: f64, q: f64, advantage: f64, divergence| {
            dppo(libm::log(p), libm::log(q), p / q, advantage, divergence, bounds).clipped
        };
        for divergence in [Divergence::TotalVariation, Divergence::Kl] {
            assert!(at(0.9, 0.3, 1.0, divergence));
            assert!(!at(0.9, 0.3, -1.0, divergence));
            assert!(at(0.2, 0.7, -1.0, divergence));
            assert!(!at(0.2, 0.7, 1.0, divergence));
        }
        // KL(0.5‖0.6) = 0.0204 is within both thresholds, a difference of 0.15 only within the upper one.
        assert!(!at(0.6, 0.5, 1.0, Divergence::Kl));
        assert!(!at(0.65, 0.5, 1.0, Divergence::TotalVariation));
        assert!(at(0.35, 0.5, -1.0, Divergence::TotalVariation));
        // Probability 1 on both sides: 0·ln(0/0) is no NaN with an epsilon, and 0 without.
        assert!(!dppo(0.0, 0.0, 1.0, 1.0, Divergence::Kl, bounds).loss.is_nan());
        assert_eq!(dppo(-0.1, -3.0, 18.0, -1.0, Divergence::TotalVariation, bounds).derivative, 3.0);
    }
}

//! The clipped surrogate of PPO, with its asymmetric, dual and two-sided forms.

use super::term::{
    CLIP_BOUNDS, CLIP_RATIO_C, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, ClipRange, OUTPUTS, RATIO_MAX, SurrogateToken, Term,
    TokenSurrogate, evaluate_tokens, inputs,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// PPO.
pub(crate) const PPO: Source =
    Source { title: "Proximal Policy Optimization Algorithms", reference: "arXiv:1707.06347", place: "Eq. 7" };
/// Dual clip.
pub(crate) const DUAL_CLIP: Source = Source {
    title: "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
    reference: "arXiv:1912.09729",
    place: "Eq. 5",
};

/// The clipped loss of one token, ℓ = max(−ρ′A, −clip(ρ, low, high)·A), and its derivative by log ρ (PPO, Eq. 7).
///
/// `ratio` ρ = π/π_old ≥ 0; `advantage` A; `clip` the bounds (1 − ε_low, 1 + ε_high; unequal ε is DAPO's clip-higher);
/// `ratio_max` δ limits ρ′ = min(ρ, δ) in the first term only (INTELLECT-2; infinity is off); `dual` c limits the loss of a
/// negative advantage to −c·A (dual clip; infinity is off).
///
/// The derivative is −ρA where the unclipped term decides or ρ lies inside the bounds, and 0 where the clip, δ or c
/// decides. At a bound it is that of the inside; where both terms tie outside the bounds, and where the dual bound ties, it is
/// half: what PyTorch's autograd gives. A = 0 gives 0 whatever the ratio.
///
/// Differs in: verl always applies the dual clip (c = 3) and limits log ρ to ±20 before the exponential; TRL has neither, and
/// has δ.
///
/// ```
/// use plumbline_core::surrogate::{ClipRange, ppo_clip::ppo_clip};
/// let clip = ClipRange { low: 0.8, high: 1.2 };
/// let off = f64::INFINITY;
/// let term = ppo_clip(1.5, 2.0, clip, off, off);
/// assert_eq!((term.loss, term.derivative, term.clipped_high), (-2.4, 0.0, true));
/// let term = ppo_clip(5.0, -1.0, clip, off, off);
/// assert_eq!((term.loss, term.derivative), (5.0, 5.0)); // pulled back
/// assert_eq!(ppo_clip(5.0, -1.0, clip, off, 3.0).loss, 3.0); // dual clip
/// assert_eq!(ppo_clip(5.0, -1.0, clip, 4.0, off).loss, 4.0); // two-sided
/// ```
#[inline(always)]
pub fn ppo_clip<R: Real>(ratio: R, advantage: R, clip: ClipRange<R>, ratio_max: R, dual: R) -> Term<R> {
    pessimistic(ratio, ratio.clip(clip.low, clip.high), ratio < clip.low, ratio > clip.high, advantage, ratio_max, dual)
}

/// The larger of the unclipped and the clipped loss, given on which side of the bounds the ratio lies.
#[inline(always)]
pub(super) fn pessimistic<R: Real>(
    ratio: R,
    clipped_ratio: R,
    below: bool,
    above: bool,
    advantage: R,
    ratio_max: R,
    dual: R,
) -> Term<R> {
    let zero = R::zero();
    let negative = zero - advantage;
    let unclipped = negative * ratio.smaller(ratio_max);
    let clipped = negative * clipped_ratio;
    let flow = negative * ratio;
    let unclipped_flow = if ratio > ratio_max { zero } else { flow };
    let clipped_flow = if below || above { zero } else { flow };
    let first = unclipped > clipped;
    let second = clipped > unclipped;
    let loss = if first { unclipped } else { clipped };
    // A tie passes half of each: all of the flow inside the bounds, where the two are the same.
    let tied = R::half() * unclipped_flow + R::half() * clipped_flow;
    let derivative = if first {
        unclipped_flow
    } else if second {
        clipped_flow
    } else {
        tied
    };
    let cap = if advantage < zero { negative * dual } else { R::infinity() };
    let dual_clipped = loss > cap;
    let at_cap = loss == cap;
    let live = advantage != zero;
    Term {
        loss: if !live {
            zero
        } else if dual_clipped {
            cap
        } else {
            loss
        },
        derivative: if !live || dual_clipped {
            zero
        } else if at_cap && dual < R::infinity() {
            R::half() * derivative
        } else {
            derivative
        },
        clipped: live & second,
        clipped_high: above & (advantage > zero),
        clipped_low: below & (advantage < zero),
        dual_clipped: live & dual_clipped,
    }
}

/// [`ppo_clip`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PpoClip<R> {
    /// The bounds of the ratio.
    pub clip: ClipRange<R>,
    /// δ; infinity is off.
    pub ratio_max: R,
    /// c; infinity is off.
    pub dual: R,
}

impl<R: Real> TokenSurrogate<R> for PpoClip<R> {
    const OPERATION: &'static str = "surrogate.ppo_clip";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(PpoClip {
            clip: ClipRange::from_call(call)?,
            ratio_max: call.optional_number("ratio_max").unwrap_or(R::infinity()),
            dual: call.optional_number("clip_ratio_c").unwrap_or(R::infinity()),
        })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        ppo_clip(token.ratio, token.advantage, self.clip, self.ratio_max, self.dual)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, PpoClip<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.ppo_clip",
    family: Family::Surrogate,
    title: "PPO's clipped surrogate",
    summary: "The worse of the importance-weighted loss and the one with the ratio clipped to an interval around 1.",
    formula: r"\ell = \max\left(-\min(\rho,\delta) A,\; -\mathrm{clip}(\rho, 1-\epsilon_{\mathrm{low}}, 1+\epsilon_{\mathrm{high}}) A\right),\quad \ell \le c|A| \text{ for } A<0",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -\rho A \text{ where the unclipped term decides or } \rho \text{ is inside, else } 0",
    notes: "Four regions: A>0 above the upper bound and A<0 below the lower bound are cut off (gradient 0); A>0 below and \
            A<0 above are pulled back (full gradient). At a bound the gradient is that of the inside; ties pass half.",
    sources: &[
        PPO,
        DUAL_CLIP,
        Source {
            title: "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
            reference: "arXiv:2503.14476",
            place: "Eq. 10 (clip-higher)",
        },
        Source {
            title: "INTELLECT-2: A Reasoning Model Trained Through Globally Decentralized Reinforcement Learning",
            reference: "arXiv:2505.07291",
            place: "Section 3.4 (two-sided clip)",
        },
    ],
    inputs: &inputs(),
    params: &[CLIP_RATIO_LOW, CLIP_RATIO_HIGH, CLIP_BOUNDS, CLIP_RATIO_C, RATIO_MAX],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "one epsilon on both sides, no dual clip", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "the dual clip is always on, with c = 3",
            settings: &[("clip_ratio_c", Value::Number(3.0))],
        },
        Dialect { name: "trl-1.16", note: "no dual clip; ratio_max is called delta", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::term::check;
    use proptest::prelude::*;

    const CLIP: ClipRange<f64> = ClipRange { low: 0.8, high: 1.3 };
    const OFF: f64 = f64::INFINITY;

    #[test]
    fn the_four_regions_and_the_inside() {
        let at = |ratio, advantage| {
            let term = ppo_clip(ratio, advantage, CLIP, OFF, OFF);
            (term.loss, term.derivative, term.clipped)
        };
        assert_eq!(at(2.0, 1.0), (-1.3, 0.0, true));
        assert_eq!(at(0.5, 1.0), (-0.5, -0.5, false));
        assert_eq!(at(2.0, -1.0), (2.0, 2.0, false));
        assert_eq!(at(0.5, -1.0), (0.8, 0.0, true));
        assert_eq!(at(1.0, -1.0), (1.0, 1.0, false));
        // At the bounds the inside decides.
        assert_eq!(at(1.3, 1.0), (-1.3, -1.3, false));
        assert_eq!(at(0.8, -1.0), (0.8, 0.8, false));
    }

    #[test]
    fn overflowed_ratios_and_zero_advantage() {
        let at = |ratio, advantage, dual| {
            let term = ppo_clip(ratio, advantage, CLIP, OFF, dual);
            (term.loss, term.derivative)
        };
        assert_eq!(at(OFF, 1.0, OFF), (-1.3, 0.0));
        assert_eq!(at(OFF, -1.0, OFF), (OFF, OFF));
        assert_eq!(at(OFF, -1.0, 3.0), (3.0, 0.0));
        assert_eq!(at(OFF, 0.0, 3.0), (0.0, 0.0));
        assert_eq!(at(OFF, 0.0, OFF), (0.0, 0.0));
        assert_eq!(at(0.0, -1.0, OFF), (0.8, 0.0));
        // A tie with the dual bound passes half.
        assert_eq!(at(3.0, -1.0, 3.0), (3.0, 1.5));
    }

    proptest! {
        #[test]
        fn derivative_is_that_of_the_value(log_ratio in -3.0f64..3.0, advantage in -2.0f64..2.0) {
            let kinks = [libm::log(0.8), libm::log(1.3), libm::log(3.0), libm::log(2.5)];
            prop_assume!(kinks.iter().all(|kink| (log_ratio - kink).abs() > 1e-4));
            check::derivative(log_ratio, |_, ratio| ppo_clip(ratio, advantage, CLIP, OFF, 3.0));
            check::derivative(log_ratio, |_, ratio| ppo_clip(ratio, advantage, CLIP, 2.5, OFF));
        }

        #[test]
        fn never_below_the_unclipped_loss(log_ratio in -9.0f64..9.0, advantage in -2.0f64..2.0) {
            let ratio = libm::exp(log_ratio);
            prop_assert!(ppo_clip(ratio, advantage, CLIP, OFF, OFF).loss >= -ratio * advantage);
            prop_assert!(ppo_clip(ratio, advantage, CLIP, OFF, 3.0).loss <= 3.0 * advantage.abs());
        }
    }
}

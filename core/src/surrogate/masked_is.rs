//! The unified form of MiniMax-M1: a stopped weight and a token mask.

use super::cispo::MINIMAX_M1;
use super::term::{
    CLIP_BOUNDS, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, ClipRange, STOPPED_OUTPUTS, SurrogateToken, Term, TokenSurrogate,
    evaluate_tokens, inputs, product,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

/// Importance-weighted REINFORCE with PPO's rule as a mask: ℓ = −M·sg(ρ)·A·log π, derivative −M·ρ·A by log π, where M is 0 for
/// A > 0 above the upper bound and for A < 0 below the lower bound, else 1 (MiniMax-M1, Eq. 6 and 7).
///
/// With M ≡ 1 and a clipped weight it is CISPO; with this M it has PPO's gradient and another value. `ratio` ρ ≥ 0,
/// `log_prob` log π (nats), `advantage` A.
///
/// ```
/// use plumbline_core::surrogate::{ClipRange, masked_is::masked_is};
/// let clip = ClipRange { low: 0.8, high: 1.2 };
/// assert_eq!(masked_is(1.5, -1.0, 1.0, clip).derivative, 0.0);
/// assert_eq!(masked_is(1.5, -1.0, -1.0, clip).derivative, 1.5);
/// ```
#[inline(always)]
pub fn masked_is<R: Real>(ratio: R, log_prob: R, advantage: R, clip: ClipRange<R>) -> Term<R> {
    let zero = R::zero();
    let cut_high = (advantage > zero) & (ratio > clip.high);
    let cut_low = (advantage < zero) & (ratio < clip.low);
    let cut = cut_high | cut_low;
    let derivative = if cut { zero } else { zero - product(ratio, advantage) };
    Term {
        loss: product(derivative, log_prob),
        derivative,
        clipped: cut,
        clipped_high: cut_high,
        clipped_low: cut_low,
        dual_clipped: false,
    }
}

/// [`masked_is`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MaskedIs<R> {
    /// The bounds of the ratio.
    pub clip: ClipRange<R>,
}

impl<R: Real> TokenSurrogate<R> for MaskedIs<R> {
    const OPERATION: &'static str = "surrogate.masked_is";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(MaskedIs { clip: ClipRange::from_call(call)? })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        masked_is(token.ratio, token.log_prob, token.advantage, self.clip)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, MaskedIs<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.masked_is",
    family: Family::Surrogate,
    title: "Masked importance sampling (unified form)",
    summary: "Importance-weighted REINFORCE whose tokens are cut off by PPO's rule, written as a mask.",
    formula: r"\ell = -M\, \mathrm{sg}(\rho)\, A \log\pi_\theta(a)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -M \rho A",
    notes: "M = 0 for A>0 above the upper bound and for A<0 below the lower bound, else 1: PPO's gradient, another value. \
            At a bound the token is kept. No library computes it under this name.",
    sources: &[Source { place: "Eq. 6 and 7", ..MINIMAX_M1 }],
    inputs: &inputs(),
    params: &[CLIP_RATIO_LOW, CLIP_RATIO_HIGH, CLIP_BOUNDS],
    defaults: &[],
    outputs: STOPPED_OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::ppo_clip::ppo_clip;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn has_the_gradient_of_ppo(log_ratio in -3.0f64..3.0, advantage in -2.0f64..2.0) {
            let clip = ClipRange { low: 0.8, high: 1.2 };
            let ratio = libm::exp(log_ratio);
            let ppo = ppo_clip(ratio, advantage, clip, f64::INFINITY, f64::INFINITY);
            prop_assert_eq!(masked_is(ratio, -0.5, advantage, clip).derivative, ppo.derivative);
        }
    }
}

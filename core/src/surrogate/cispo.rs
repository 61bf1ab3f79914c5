//! CISPO: the clipped ratio as a stopped weight of REINFORCE.

use super::term::{
    CLIP_BOUNDS, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, ClipRange, STOPPED_OUTPUTS, SurrogateToken, Term, TokenSurrogate,
    evaluate_tokens, inputs,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// MiniMax-M1, where CISPO and the unified masked form are defined.
pub(crate) const MINIMAX_M1: Source = Source {
    title: "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    reference: "arXiv:2506.13585",
    place: "Eq. 4",
};

/// The CISPO loss of one token, ℓ = −sg(clip(ρ, low, high))·A·log π, derivative −clip(ρ, low, high)·A by log π
/// (MiniMax-M1, Eq. 4).
///
/// Every token keeps a gradient: the clip limits its weight instead of cutting it off. `ratio` ρ ≥ 0, `log_prob` log π
/// (nats), `advantage` A. `clipped` says that the weight was limited.
///
/// Differs in: verl takes [1 − ε_low, 1 + ε_high]; TRL has no lower bound and reads `epsilon_high` as the upper bound
/// itself.
///
/// ```
/// use plumbline_core::surrogate::{ClipRange, cispo::cispo};
/// let term = cispo(1.5, -0.5, 1.0, ClipRange { low: 0.0, high: 1.28 });
/// assert_eq!((term.loss, term.derivative), (0.64, -1.28));
/// ```
#[inline(always)]
pub fn cispo<R: Real>(ratio: R, log_prob: R, advantage: R, clip: ClipRange<R>) -> Term<R> {
    let zero = R::zero();
    let (below, above) = (ratio < clip.low, ratio > clip.high);
    let derivative = zero - ratio.clip(clip.low, clip.high) * advantage;
    Term {
        loss: derivative * log_prob,
        derivative,
        clipped: below | above,
        clipped_high: above & (advantage > zero),
        clipped_low: below & (advantage < zero),
        dual_clipped: false,
    }
}

/// [`cispo`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cispo<R> {
    /// The bounds of the weight.
    pub clip: ClipRange<R>,
}

impl<R: Real> TokenSurrogate<R> for Cispo<R> {
    const OPERATION: &'static str = "surrogate.cispo";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Cispo { clip: ClipRange::from_call(call)? })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        cispo(token.ratio, token.log_prob, token.advantage, self.clip)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Cispo<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.cispo",
    family: Family::Surrogate,
    title: "CISPO",
    summary: "REINFORCE weighted by the clipped, stopped ratio: no token loses its gradient.",
    formula: r"\ell = -\mathrm{sg}(\mathrm{clip}(\rho, 1-\epsilon_{\mathrm{low}}, 1+\epsilon_{\mathrm{high}}))\, A \log\pi_\theta(a)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -\mathrm{clip}(\rho, 1-\epsilon_{\mathrm{low}}, 1+\epsilon_{\mathrm{high}}) A",
    notes: "The paper sets no lower bound in its experiments. The gradient is not the derivative of the printed value by \
            the ratio: the weight is stopped.",
    sources: &[MINIMAX_M1],
    inputs: &inputs(),
    params: &[CLIP_RATIO_LOW, CLIP_RATIO_HIGH, CLIP_BOUNDS],
    defaults: &[],
    outputs: STOPPED_OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "no lower bound", settings: &[("clip_ratio_low", Value::None)] },
        Dialect { name: "verl-0.9", note: "both bounds, as distances from 1", settings: &[] },
        Dialect {
            name: "trl-1.16",
            note: "upper bound only, given as the ratio itself",
            settings: &[("clip_ratio_low", Value::None), ("clip_bounds", Value::Name("absolute"))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_is_clipped_on_both_sides_whatever_the_sign() {
        let clip = ClipRange { low: 0.8, high: 1.2 };
        assert_eq!(cispo(2.0, -1.0, 1.0, clip).derivative, -1.2);
        assert_eq!(cispo(2.0, -1.0, -1.0, clip).derivative, 1.2);
        assert_eq!(cispo(0.5, -1.0, 1.0, clip).derivative, -0.8);
        assert_eq!(cispo(f64::INFINITY, -1.0, 1.0, clip).loss, 1.2);
        let term = cispo(2.0, -1.0, -1.0, clip);
        assert!(term.clipped && !term.clipped_high);
    }
}

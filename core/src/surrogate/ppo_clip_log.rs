//! PPO's clip in log space.

use super::ppo_clip::{PPO, pessimistic};
use super::term::{
    CLIP_RATIO_HIGH, CLIP_RATIO_LOW, OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

/// The clipped loss with the bounds compared in log space: ℓ = max(−ρA, −exp(clamp(log ρ, low, high))·A) with
/// low = ln(1 − ε_low), high = ln(1 + ε_high), and its derivative by log ρ.
///
/// The same function as PPO's clip up to rounding at the bounds, but the comparison never meets an overflowed ratio.
/// `log_ratio` is log ρ, `log_low` and `log_high` the bounds. The derivative at a bound is that of the inside.
///
/// ```
/// use plumbline_core::surrogate::ppo_clip_log::ppo_clip_log;
/// let term = ppo_clip_log(1.0f64, 2.0, -0.5, 0.5);
/// assert!((term.loss + 2.0 * 0.5f64.exp()).abs() < 1e-15);
/// assert_eq!(term.derivative, 0.0);
/// ```
#[inline(always)]
pub fn ppo_clip_log<R: Real>(log_ratio: R, advantage: R, log_low: R, log_high: R) -> Term<R> {
    let clipped_ratio = log_ratio.clip(log_low, log_high).exp();
    let off = R::infinity();
    pessimistic(log_ratio.exp(), clipped_ratio, log_ratio < log_low, log_ratio > log_high, advantage, off, off)
}

/// The bounds ln(1 − ε_low) (−∞ where there is none) and ln(1 + ε_high).
pub(crate) fn log_bounds<R: Real>(clip_ratio_low: Option<R>, clip_ratio_high: R) -> (R, R) {
    (clip_ratio_low.map_or(R::neg_infinity(), |low| (R::zero() - low).ln_1p()), clip_ratio_high.ln_1p())
}

/// [`ppo_clip_log`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PpoClipLog<R> {
    /// Lower bound of the log-ratio.
    pub low: R,
    /// Upper bound.
    pub high: R,
}

impl<R: Real> TokenSurrogate<R> for PpoClipLog<R> {
    const OPERATION: &'static str = "surrogate.ppo_clip_log";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let (low, high) = log_bounds(call.optional_number("clip_ratio_low"), call.number("clip_ratio_high")?);
        Ok(PpoClipLog { low, high })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        ppo_clip_log(token.log_ratio, token.advantage, self.low, self.high)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, PpoClipLog<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.ppo_clip_log",
    family: Family::Surrogate,
    title: "PPO's clip in log space",
    summary: "PPO's surrogate with the log-ratio clamped before the exponential.",
    formula: r"\ell = \max\left(-\rho A,\; -e^{\mathrm{clamp}(\log\rho,\, \log(1-\epsilon_{\mathrm{low}}),\, \log(1+\epsilon_{\mathrm{high}}))} A\right)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -\rho A \text{ where the unclipped term decides or } \rho \text{ is inside, else } 0",
    notes: "A lower epsilon of 1 or more is no lower bound. Equal to the clip in ratio space up to rounding at the bounds; no \
            library differs in it.",
    sources: &[Source { place: "Eq. 7, in log space", ..PPO }],
    inputs: &inputs(),
    params: &[CLIP_RATIO_LOW, CLIP_RATIO_HIGH],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::ClipRange;
    use crate::surrogate::ppo_clip::ppo_clip;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_clip_in_ratio_space(log_ratio in -5.0f64..5.0, advantage in -2.0f64..2.0) {
            let (low, high) = log_bounds(Some(0.2), 0.3);
            prop_assume!((log_ratio - low).abs() > 1e-9 && (log_ratio - high).abs() > 1e-9);
            let in_log = ppo_clip_log(log_ratio, advantage, low, high);
            let clip = ClipRange::relative(0.2, 0.3);
            let in_ratio = ppo_clip(libm::exp(log_ratio), advantage, clip, f64::INFINITY, f64::INFINITY);
            // exp(ln(1 + ε)) is 1 + ε within two roundings.
            prop_assert!((in_log.loss - in_ratio.loss).abs() <= 1e-15 * (1.0 + in_ratio.loss.abs()));
            prop_assert_eq!(in_log.derivative, in_ratio.derivative);
        }
    }
}

//! GMPO's token rule: a one-sided clip of the log-ratio, by the sign of the advantage.

use super::term::{OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs, product};
use crate::Error;
use crate::num::Real;
use crate::ratio::geometric_clipped::{LogClipRange, ZeroAdvantage, one_sided_clip};
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// GMPO.
pub(crate) const GMPO: Source =
    Source { title: "Geometric-Mean Policy Optimization", reference: "arXiv:2507.20673", place: "Eq. 4" };

/// GMPO on a response of one token: ℓ = −A·exp(one-sided clip of log ρ), derivative −A·ρ where the gradient passes.
///
/// A whole response takes the mean of the clipped log-ratios (the objective `objective.gmpo`).
///
/// ```
/// use plumbline_core::surrogate::gmpo::gmpo;
/// assert_eq!(gmpo(0.0, 2.0, 0.4, 0.4).loss, -2.0);
/// assert_eq!(gmpo(1.0, 2.0, 0.4, 0.4).derivative, 0.0);
/// ```
#[inline(always)]
pub fn gmpo<R: Real>(log_ratio: R, advantage: R, low: R, high: R) -> Term<R> {
    let [clipped, slope] = one_sided_clip(log_ratio, advantage, LogClipRange { low, high }, ZeroAdvantage::Neutral);
    let passes = slope != R::zero();
    let loss = R::zero() - product(clipped.exp(), advantage);
    let cut = !passes & (advantage != R::zero());
    Term {
        loss,
        derivative: if passes { loss } else { R::zero() },
        clipped: cut,
        clipped_high: cut & (advantage > R::zero()),
        clipped_low: cut & (advantage < R::zero()),
        dual_clipped: false,
    }
}

const LOG_CLIP_LOW: ParamSpec = ParamSpec::number(
    "clip_ratio_low",
    r"\epsilon_{\mathrm{low}}",
    0.4,
    Range::NON_NEGATIVE,
    "how far the log-ratio may fall below 0 for a negative advantage (nats)",
);
const LOG_CLIP_HIGH: ParamSpec = ParamSpec::number(
    "clip_ratio_high",
    r"\epsilon_{\mathrm{high}}",
    0.4,
    Range::NON_NEGATIVE,
    "how far the log-ratio may rise above 0 for a positive advantage (nats)",
);

/// [`gmpo`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Gmpo<R> {
    /// How far the log-ratio may fall below 0.
    pub low: R,
    /// How far it may rise above 0.
    pub high: R,
}

impl<R: Real> TokenSurrogate<R> for Gmpo<R> {
    const OPERATION: &'static str = "surrogate.gmpo";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Gmpo { low: call.number("clip_ratio_low")?, high: call.number("clip_ratio_high")? })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        gmpo(token.log_ratio, token.advantage, self.low, self.high)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Gmpo<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.gmpo",
    family: Family::Surrogate,
    title: "GMPO's one-sided clip, one token",
    summary: "The ratio with its logarithm clipped from the side that the advantage pushes to.",
    formula: r"\ell = -A\, e^{x},\quad x = \min(\log\rho, \epsilon_{\mathrm{high}}) \text{ for } A>0,\; \max(\log\rho, -\epsilon_{\mathrm{low}}) \text{ for } A<0",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -A\rho \text{ where not clipped, else } 0",
    notes: "The bounds are in log space. A response of several tokens takes the mean of x (objective.gmpo). verl: geo_mean.",
    sources: &[GMPO],
    inputs: &inputs(),
    params: &[LOG_CLIP_LOW, LOG_CLIP_HIGH],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::term::check;

    #[test]
    fn one_side_only() {
        // Log-ratios 1 and −0.2 with A<0: the first is not clipped (an issue thread's case: mean 0.4, e^0.4 = 1.49182).
        let range = LogClipRange { low: 0.4, high: 0.4 };
        let clip = |log_ratio: f64, advantage| one_sided_clip(log_ratio, advantage, range, ZeroAdvantage::Neutral);
        let mean = (clip(1.0, -1.0)[0] + clip(-0.2, -1.0)[0]) / 2.0;
        assert!((libm::exp(mean) - 1.491_824_697_641_27).abs() < 1e-14);
        assert_eq!(clip(-1.0, -1.0), [-0.4, 0.0]);
        assert_eq!(clip(-1.0, 1.0), [-1.0, 1.0]);
        for (log_ratio, advantage) in [(0.1, 1.5), (0.7, -1.5), (-0.7, 2.0), (0.9, 2.0), (-0.9, -2.0)] {
            check::derivative(log_ratio, |x, _| gmpo(x, advantage, 0.4, 0.3));
        }
    }
}

//! The hinge preference loss (SLiC on implicit rewards).

use super::pairs::{BETA, INPUTS_WITH_LENGTHS, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, PAPER, ScoreRule, TRL_0_12, TRL_1_16,
    loss_of_margin,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

/// The hinge loss of a reward margin x, max(0, 1 − x), and its derivative by x: −1 below the margin 1, else 0.
///
/// x = β·(s_w − s_l). Zhao et al., "SLiC-HF", arXiv:2305.10425, Eq. (1) with the margin δ = 1/β in units of log-prob, applied to
/// implicit rewards as in RSO (Liu et al., arXiv:2309.06657, hinge-norm loss). At x = 1 exactly the derivative is 0 (PyTorch's
/// relu).
///
/// ```
/// use plumbline_core::preference::dpo_hinge::hinge;
/// assert_eq!(hinge(0.25), [0.75, -1.0]);
/// assert_eq!(hinge(1.0), [0.0, 0.0]);
/// ```
#[inline(always)]
pub fn hinge<R: Real>(margin: R) -> [R; 2] {
    let missing = R::one() - margin;
    if missing > R::zero() { [missing, -R::one()] } else { [R::zero(); 2] }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| loss_of_margin(pair, rule, beta, |margin| hinge(margin)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_hinge",
    family: Family::Preference,
    title: "Hinge DPO",
    summary: "The hinge loss of the difference of implicit rewards.",
    formula: r"\max(0, 1 - \beta\Delta)",
    gradient: r"-\beta\,\mathbb{1}[\beta\Delta < 1]\,(s'_w, -s'_l)/N",
    notes: "At a margin of exactly 1 the gradient is 0, as PyTorch's relu has it. TRL refuses WPO weights with this loss; here \
            they are legal.",
    sources: &[
        Source {
            title: "SLiC-HF: Sequence Likelihood Calibration with Human Feedback",
            reference: "arXiv:2305.10425",
            place: "Eq. (1)",
        },
        Source {
            title: "Statistical Rejection Sampling Improves Preference Optimization",
            reference: "arXiv:2309.06657",
            place: "the hinge-norm loss",
        },
    ],
    inputs: INPUTS_WITH_LENGTHS,
    params: &[BETA, F_DIVERGENCE, F_DIVERGENCE_ALPHA, EXPONENT_CAP, LENGTH_NORMALISATION, PAIR_COUNT],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[PAPER, TRL_1_16, TRL_0_12],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_of_six_tells_hinge_from_sigmoid() {
        // A margin of 6 at β = 0.1: hinge 0.4; the logistic loss, which a dead option would leave in place, is 0.4375.
        let [value, slope] = hinge(0.1f64 * 6.0);
        assert!((value - 0.4).abs() < 1e-15);
        assert_eq!(slope, -1.0);
        assert_eq!(hinge(1000.0), [0.0, 0.0]);
        assert_eq!(hinge(f64::INFINITY), [0.0, 0.0]);
        assert_eq!(hinge(f64::NEG_INFINITY), [f64::INFINITY, -1.0]);
    }
}

//! Robust DPO: an unbiased estimate of the clean loss under noisy labels.

use super::arithmetic::{difference, times};
use super::pairs::{BETA, INPUTS_WITH_LENGTHS, LABEL_SMOOTHING, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, PAPER, ScoreRule, TRL_0_12, TRL_1_16,
    loss_of_margin,
};
use crate::Error;
use crate::num::{Real, sigmoid, softplus};
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

/// The robust preference loss of a reward margin x, [(1−ε)·(−ln σ(x)) − ε·(−ln σ(−x))]/(1−2ε), and its derivative by x,
/// −[(1−ε)·σ(−x) + ε·σ(x)]/(1−2ε).
///
/// x = β·(s_w − s_l); ε ∈ [0, ½) is the rate of swapped labels. Chowdhury et al., "Provably Robust DPO: Aligning Language Models
/// with Noisy Feedback", arXiv:2403.00409, Section 3. Its mean over swapped labels is the clean loss; it is unbounded below as
/// x → ∞ where ε > 0.
///
/// ```
/// use plumbline_core::preference::dpo_robust::robust;
/// // [¾·ln 2 − ¼·ln 2]/½ = ln 2, and [¾·½ + ¼·½]/½ = 1 with a minus sign.
/// let [value, slope] = robust(0.0f64, 0.25);
/// assert!((value - core::f64::consts::LN_2).abs() < 2e-16);
/// assert_eq!(slope, -1.0);
/// ```
#[inline(always)]
pub fn robust<R: Real>(margin: R, label_smoothing: R) -> [R; 2] {
    let clean = R::one() - label_smoothing;
    let scale = R::one() - R::two() * label_smoothing;
    [
        difference(times(clean, softplus(-margin)), times(label_smoothing, softplus(margin))) / scale,
        -(clean * sigmoid(-margin) + label_smoothing * sigmoid(margin)) / scale,
    ]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    let label_smoothing = call.number("label_smoothing")?;
    evaluate_pairs(call, |pair| loss_of_margin(pair, rule, beta, |margin| robust(margin, label_smoothing)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_robust",
    family: Family::Preference,
    title: "Robust DPO",
    summary: "The DPO loss corrected so that its mean over randomly swapped labels is the loss of the clean labels.",
    formula: r"\frac{-(1-\varepsilon)\log\sigma(\beta\Delta) + \varepsilon\log\sigma(-\beta\Delta)}{1-2\varepsilon}",
    gradient: r"-\beta\,\frac{(1-\varepsilon)\sigma(-\beta\Delta) + \varepsilon\sigma(\beta\Delta)}{1-2\varepsilon}\,(s'_w, -s'_l)/N",
    notes: "Not conservative DPO: the second term's sign differs and the sum is divided by 1 - 2 epsilon. Unbounded below.",
    sources: &[Source {
        title: "Provably Robust DPO: Aligning Language Models with Noisy Feedback",
        reference: "arXiv:2403.00409",
        place: "Section 3, the rDPO loss",
    }],
    inputs: INPUTS_WITH_LENGTHS,
    params: &[BETA, LABEL_SMOOTHING, F_DIVERGENCE, F_DIVERGENCE_ALPHA, EXPONENT_CAP, LENGTH_NORMALISATION, PAIR_COUNT],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[PAPER, TRL_1_16, TRL_0_12],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_not_conservative_dpo() {
        // β = 0.1, Δ = 2, ε = 0.1: robust 0.573139 (conservative DPO gives 0.618139).
        assert!((robust(0.2f64, 0.1)[0] - 0.573139).abs() < 5e-7);
    }

    #[test]
    fn mean_over_swapped_labels_is_the_clean_loss() {
        for x in [-3.0f64, -0.2, 0.7, 5.0] {
            let noisy = 0.8 * robust(x, 0.2)[0] + 0.2 * robust(-x, 0.2)[0];
            assert!((noisy - softplus(-x)).abs() < 1e-14);
        }
        assert_eq!(robust(f64::INFINITY, 0.0), [0.0, -0.0]);
        assert_eq!(robust(f64::INFINITY, 0.1)[0], f64::NEG_INFINITY);
    }
}

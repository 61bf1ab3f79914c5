//! DPO with the logistic loss, its conservative (label-smoothed) and its length-normalised form.

use super::arithmetic::times;
use super::pairs::{BETA, INPUTS_WITH_LENGTHS, LABEL_SMOOTHING, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, ScoreRule, TRL_0_12, TRL_1_16_CAP,
    loss_of_margin,
};
use crate::Error;
use crate::num::{Real, sigmoid, softplus};
use crate::spec::{Call, Dialect, Family, Operation, ParamSpec, Source, Value, evaluate_with};

/// Where DPO comes from.
pub const DPO: Source = Source {
    title: "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
    reference: "arXiv:2305.18290",
    place: "Eq. (7)",
};

/// The logistic preference loss of a reward margin x: (1−ε)·(−ln σ(x)) + ε·(−ln σ(−x)), and its derivative by x,
/// ε·σ(x) − (1−ε)·σ(−x).
///
/// x = β·(s_w − s_l) with the scores of chosen and rejected response; ε ∈ [0, ½) is the probability that the labels are
/// swapped (conservative DPO, Mitchell 2023, "A note on DPO with noisy preferences & relationship to IPO", Eq. (3)); ε = 0 is
/// Eq. (7) of the DPO paper. Evaluated through softplus: finite for every finite x, and nowhere a kink.
///
/// ```
/// use plumbline_core::preference::dpo_sigmoid::logistic;
/// let [loss, slope] = logistic(0.0f64, 0.0);
/// assert_eq!(loss, core::f64::consts::LN_2);
/// assert_eq!(slope, -0.5);
/// ```
///
/// Differs in: TRL 1.16 ignores label smoothing in `sigmoid`, TRL 0.12 applies it; OpenRLHF and CPO's loss apply it.
#[inline(always)]
pub fn logistic<R: Real>(margin: R, label_smoothing: R) -> [R; 2] {
    let clean = R::one() - label_smoothing;
    [
        times(clean, softplus(-margin)) + times(label_smoothing, softplus(margin)),
        label_smoothing * sigmoid(margin) - clean * sigmoid(-margin),
    ]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    let label_smoothing = call.number("label_smoothing")?;
    evaluate_pairs(call, |pair| loss_of_margin(pair, rule, beta, |margin| logistic(margin, label_smoothing)))
}

const PARAMS: &[ParamSpec] =
    &[BETA, LABEL_SMOOTHING, F_DIVERGENCE, F_DIVERGENCE_ALPHA, EXPONENT_CAP, LENGTH_NORMALISATION, PAIR_COUNT];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.dpo_sigmoid",
        family: Family::Preference,
        title: "DPO",
        summary: "The logistic loss of the difference of implicit rewards; with label smoothing, conservative DPO.",
        formula: r"-(1-\varepsilon)\log\sigma(\beta\Delta) - \varepsilon\log\sigma(-\beta\Delta),\quad \Delta = s(\log\tfrac{\pi_\theta(y_w)}{\pi_{\mathrm{ref}}(y_w)}) - s(\log\tfrac{\pi_\theta(y_l)}{\pi_{\mathrm{ref}}(y_l)})",
        gradient: r"\beta\,[\varepsilon\sigma(\beta\Delta) - (1-\varepsilon)\sigma(-\beta\Delta)]\,(s'_w, -s'_l)/N",
        notes: "Without references it is reference-free. Under reverse KL the gradients by chosen and rejected log-prob are \
                opposite. A prompt left unmasked in both responses cancels. TRL 1.16 ignores label smoothing here.",
        sources: &[
            DPO,
            Source {
                title: "A note on DPO with noisy preferences & relationship to IPO",
                reference: "Mitchell 2023, ericmitchell.ai/cdpo.pdf",
                place: "Eq. (3): conservative DPO",
            },
        ],
        inputs: INPUTS_WITH_LENGTHS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[
            Dialect { name: "paper", note: "no label smoothing", settings: &[] },
            Dialect {
                name: "trl-1.16",
                note: "label smoothing is ignored; exponent of the alpha-divergence capped at 80",
                settings: &[("label_smoothing", Value::Number(0.0)), TRL_1_16_CAP],
            },
            TRL_0_12,
        ],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "preference.dpo_sigmoid_norm",
        family: Family::Preference,
        title: "Length-normalised DPO",
        summary: "DPO whose scores are divided by the number of tokens of their response.",
        formula: r"-\log\sigma\!\left(\beta\left[\frac{s_w}{|y_w|} - \frac{s_l}{|y_l|}\right]\right)",
        gradient: r"-\beta\,\sigma(-\beta\Delta)\,(s'_w/|y_w|, -s'_l/|y_l|)/N",
        notes: "Lengths are those of the responses without the prompt; 0 counts as 1. TRL 1.16 ignores label smoothing here.",
        sources: &[
            Source {
                title: "Tulu 3: Pushing Frontiers in Open Language Model Post-Training",
                reference: "arXiv:2411.15124",
                place: "Section 5, length-normalized DPO",
            },
            DPO,
        ],
        inputs: INPUTS_WITH_LENGTHS,
        params: PARAMS,
        defaults: &[("length_normalisation", Value::Name("score"))],
        outputs: OUTPUTS,
        dialects: &[
            Dialect { name: "paper", note: "no label smoothing", settings: &[] },
            Dialect {
                name: "trl-1.16",
                note: "label smoothing is ignored; exponent of the alpha-divergence capped at 80",
                settings: &[("label_smoothing", Value::Number(0.0)), TRL_1_16_CAP],
            },
        ],
        evaluate: evaluate_with!(evaluate),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preference::pairs::Pair;

    fn pair(chosen: f64, rejected: f64) -> Pair<f64> {
        Pair { chosen_log_ratio: chosen, rejected_log_ratio: rejected, chosen_length: 1.0, rejected_length: 1.0 }
    }

    fn dpo(pair: &Pair<f64>, beta: f64, label_smoothing: f64) -> f64 {
        loss_of_margin(pair, ScoreRule::reverse_kl(), beta, |margin| logistic(margin, label_smoothing)).value
    }

    #[test]
    fn known_mistakes_give_other_numbers() {
        // Log-ratios +1 and −1, β = 0.1.
        assert!((dpo(&pair(1.0, -1.0), 0.1, 0.0) - 0.598139).abs() < 5e-7);
        // β applied twice.
        assert!((dpo(&pair(1.0, -1.0), 0.1 * 0.1, 0.0) - 0.683197).abs() < 5e-7);
        // Multiplied with β, not divided by it.
        assert!(dpo(&pair(1.0, -1.0), 1.0 / 0.1, 0.0) < 3e-9);
        // Conservative DPO with ε = 0.1.
        assert!((dpo(&pair(1.0, -1.0), 0.1, 0.1) - 0.618139).abs() < 5e-7);
    }

    #[test]
    fn finite_where_the_naive_form_overflows() {
        // −ln σ(−120) in single precision: σ underflows, softplus does not.
        assert_eq!(logistic(-120.0f32, 0.0), [120.0, -1.0]);
        for x in [20.0, 88.0, 89.0, 100.0, 710.0, 1000.0] {
            assert!((logistic(-x, 0.0f64)[0] - x).abs() < 1e-8 && logistic(-x, 0.0f64)[1] > -1.0 - 1e-15);
            assert!(logistic(x, 0.0f64)[0] >= 0.0 && logistic(x, 0.0f64)[0] < 3e-9);
        }
        assert_eq!(logistic(f64::INFINITY, 0.0), [0.0, 0.0]);
        assert_eq!(logistic(f64::NEG_INFINITY, 0.0), [f64::INFINITY, -1.0]);
    }
}

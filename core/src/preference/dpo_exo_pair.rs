//! EXO for pairs: the reverse KL from the policy's preference to a smoothed label.

use super::arithmetic::times;
use super::pairs::{BETA, INPUTS_WITH_LENGTHS, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, PAPER, ScoreRule, TRL_0_12, TRL_1_16,
    loss_of_margin,
};
use crate::Error;
use crate::num::{Real, logsigmoid, sigmoid};
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// The EXO loss of a reward margin x: KL(q‖p) between q = (σ(x), σ(−x)) and the smoothed label p = (1−ε, ε),
/// q_w (ln q_w − ln(1−ε)) + q_l (ln q_l − ln ε), and its derivative by x, q_w q_l (x − ln((1−ε)/ε)).
///
/// x = β·(s_w − s_l), ε ∈ (0, ½). Ji et al., "Towards Efficient Exact Optimization of Language Model Alignment", arXiv:2402.00856,
/// Eq. (16) with K = 2. The loss is 0 where σ(x) = 1 − ε and tends to −ln ε as x → ∞. A factor that has underflowed to 0 wins
/// over the infinity beside it, so no x gives NaN.
///
/// ```
/// use plumbline_core::preference::dpo_exo_pair::exo_pair;
/// // At x = 0: ½ ln(½/¾) + ½ ln(½/¼) = ½ ln(4/3).
/// let [loss, slope] = exo_pair(0.0f64, 0.25);
/// assert!((loss - 0.14384103622589045).abs() < 1e-15);
/// assert!((slope + 0.25 * 1.0986122886681098).abs() < 1e-15);
/// ```
///
/// Differs in: TRL 1.16 takes ε from label_smoothing and keeps it in single precision; TRL 0.12 puts 10⁻³ where ε is 0.
#[inline(always)]
pub fn exo_pair<R: Real>(margin: R, epsilon: R) -> [R; 2] {
    let chosen = sigmoid(margin);
    let rejected = sigmoid(-margin);
    let label_chosen = (-epsilon).ln_1p();
    let label_rejected = epsilon.ln();
    [
        times(chosen, logsigmoid(margin) - label_chosen) + times(rejected, logsigmoid(-margin) - label_rejected),
        times(chosen * rejected, margin - (label_chosen - label_rejected)),
    ]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    let epsilon = call.number("label_smoothing")?;
    evaluate_pairs(call, |pair| loss_of_margin(pair, rule, beta, |margin| exo_pair(margin, epsilon)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_exo_pair",
    family: Family::Preference,
    title: "EXO (pairs)",
    summary: "The reverse KL divergence from the policy's preference between the two responses to the smoothed label.",
    formula: r"\sigma(x)\log\frac{\sigma(x)}{1-\varepsilon} + \sigma(-x)\log\frac{\sigma(-x)}{\varepsilon},\quad x = \beta\Delta",
    gradient: r"\beta\,\sigma(x)\sigma(-x)\left(x - \log\tfrac{1-\varepsilon}{\varepsilon}\right)(s'_w, -s'_l)/N",
    notes: "A label smoothing of 0 is illegal here: the divergence would be infinite. TRL 0.12 replaces 0 by 0.001, this default.",
    sources: &[Source {
        title: "Towards Efficient Exact Optimization of Language Model Alignment",
        reference: "arXiv:2402.00856",
        place: "Eq. (16)",
    }],
    inputs: INPUTS_WITH_LENGTHS,
    params: &[
        BETA,
        ParamSpec::number(
            "label_smoothing",
            r"\varepsilon",
            1e-3,
            Range::open(0.0, 0.5, "in (0, 0.5)"),
            "probability of the rejected response under the smoothed label",
        ),
        F_DIVERGENCE,
        F_DIVERGENCE_ALPHA,
        EXPONENT_CAP,
        LENGTH_NORMALISATION,
        PAIR_COUNT,
    ],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[PAPER, TRL_1_16, TRL_0_12],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_at_the_label_and_finite_far_away() {
        let [value, slope] = exo_pair(2.1972245773362196f64, 0.1);
        assert!(value.abs() < 1e-15 && slope.abs() < 1e-15);
        for x in [88.0, 100.0, 710.0, 1000.0, f64::INFINITY] {
            // −ln(1 − ε) on the side of the label, −ln ε on the other.
            assert!((exo_pair(x, 0.1f64)[0] - 0.10536051565782628).abs() < 1e-12);
            assert!((exo_pair(-x, 0.1f64)[0] - 2.3025850929940455).abs() < 1e-12);
            assert!(exo_pair(x, 0.1f64)[1].abs() < 1e-30);
        }
    }
}

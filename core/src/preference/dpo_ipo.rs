//! IPO: the squared distance of the score difference from 1/(2τ).

use super::pairs::{BETA, INPUTS_WITH_LENGTHS, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, ScoreRule, TRL_0_12_CAP, TRL_1_16_CAP,
    loss_of_difference,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// The IPO loss of a score difference Δ, (Δ − 1/(2τ))², and its derivative by Δ.
///
/// Azar et al., "A General Theoretical Paradigm to Understand Learning from Human Preferences", arXiv:2310.12036, Eq. (17); τ is
/// called β here, as the libraries do. Δ is a difference of log-ratios (nats), not multiplied by β.
///
/// ```
/// use plumbline_core::preference::dpo_ipo::ipo;
/// // Log-ratios +1 and −1, τ = 0.1: (2 − 5)².
/// assert_eq!(ipo(2.0, 0.1), [9.0, -6.0]);
/// ```
///
/// Differs in: the paper sums over tokens; TRL 1.16 divides each *score* by its response's length, TRL 0.12 each log-prob
/// (the same under reverse KL); TRL's CPO sums.
#[inline(always)]
pub fn ipo<R: Real>(difference: R, tau: R) -> [R; 2] {
    let error = difference - R::one() / (R::two() * tau);
    [error * error, R::two() * error]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| loss_of_difference(pair, rule, |scores| ipo(scores, beta)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_ipo",
    family: Family::Preference,
    title: "IPO",
    summary: "The squared distance of the difference of scores from 1/(2 beta).",
    formula: r"\left(\Delta - \frac{1}{2\beta}\right)^2",
    gradient: r"2\left(\Delta - \frac{1}{2\beta}\right)(s'_w, -s'_l)/N",
    notes: "Summed over tokens in the paper, averaged over each response's tokens in TRL: choose by length_normalisation.",
    sources: &[Source {
        title: "A General Theoretical Paradigm to Understand Learning from Human Preferences",
        reference: "arXiv:2310.12036",
        place: "Eq. (17)",
    }],
    inputs: INPUTS_WITH_LENGTHS,
    params: &[BETA, F_DIVERGENCE, F_DIVERGENCE_ALPHA, EXPONENT_CAP, LENGTH_NORMALISATION, PAIR_COUNT],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "log-probs summed over tokens", settings: &[] },
        Dialect {
            name: "trl-1.16",
            note: "scores divided by the response's length; exponent of the alpha-divergence capped at 80",
            settings: &[("length_normalisation", Value::Name("score")), TRL_1_16_CAP],
        },
        Dialect {
            name: "trl-0.12",
            note: "log-probs divided by the response's length; exponent capped at 88.7228 (f32; 709.7827 in f64)",
            settings: &[("length_normalisation", Value::Name("log_ratio")), TRL_0_12_CAP],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preference::pairs::Pair;
    use crate::preference::scores::LengthNormalisation;

    #[test]
    fn sum_and_average_over_tokens() {
        // Log-ratios +1 and −1, lengths 10 and 4, τ = 0.1.
        let pair =
            Pair { chosen_log_ratio: 1.0f64, rejected_log_ratio: -1.0, chosen_length: 10.0, rejected_length: 4.0 };
        let summed = loss_of_difference(&pair, ScoreRule::reverse_kl(), |delta| ipo(delta, 0.1));
        assert_eq!(summed.value, 9.0);
        for length_normalisation in [LengthNormalisation::Score, LengthNormalisation::LogRatio] {
            let rule = ScoreRule { length_normalisation, ..ScoreRule::reverse_kl() };
            let averaged = loss_of_difference(&pair, rule, |delta| ipo(delta, 0.1));
            assert!((averaged.value - 21.6225).abs() < 1e-12);
            assert!((averaged.d_chosen - 2.0 * -4.65 / 10.0).abs() < 1e-14);
            assert!((averaged.d_rejected + 2.0 * -4.65 / 4.0).abs() < 1e-14);
        }
    }

    #[test]
    fn a_packed_row_is_the_wrong_denominator() {
        // Lengths 2 and 4; dividing both by the packed length 6 gives another number.
        let pair = |chosen_length, rejected_length| Pair {
            chosen_log_ratio: 1.0f64,
            rejected_log_ratio: -1.0,
            chosen_length,
            rejected_length,
        };
        let rule = ScoreRule { length_normalisation: LengthNormalisation::Score, ..ScoreRule::reverse_kl() };
        let own = loss_of_difference(&pair(2.0, 4.0), rule, |delta| ipo(delta, 0.1)).value;
        let packed = loss_of_difference(&pair(6.0, 6.0), rule, |delta| ipo(delta, 0.1)).value;
        assert!((own - (0.75f64 - 5.0) * (0.75 - 5.0)).abs() < 1e-12);
        assert!((own - packed).abs() > 3.0);
    }
}

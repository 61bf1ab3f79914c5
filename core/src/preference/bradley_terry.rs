//! The Bradley–Terry loss of a reward model.

use super::pairs::{ACCURACY, LOSS, PAIR_COUNT, PAIR_MASK};
use crate::Error;
use crate::num::{ExactSum, Real, sigmoid, softplus};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with,
};

/// The loss of one comparison, −ln σ(s_w − s_l − m) + c·(s_w + s_l)², and its derivatives by the two scores.
///
/// s_w, s_l: scores of the chosen and the rejected response; m: margin (0 without); c ≥ 0: centring. Bradley and Terry, Biometrika
/// 39 (1952), as used in Ouyang et al., arXiv:2203.02155, Eq. (1) with K = 2; margin of Touvron et al., "Llama 2",
/// arXiv:2307.09288, Eq. (2); centring of Eisenstein et al., arXiv:2312.09244, Eq. (2). Without centring, adding one number to
/// both scores changes nothing, and the two derivatives are opposite: ∓σ(−(s_w − s_l − m)). Finite for all finite scores.
///
/// ```
/// use plumbline_core::preference::bradley_terry::bradley_terry;
/// assert_eq!(bradley_terry(3.0f64, 1.0, 2.0, 0.0), [core::f64::consts::LN_2, -0.5, 0.5]);
/// assert_eq!(bradley_terry(3.0f64, 1.0, 2.0, 0.125), [core::f64::consts::LN_2 + 2.0, 0.5, 1.5]);
/// ```
#[inline(always)]
pub fn bradley_terry<R: Real>(chosen: R, rejected: R, margin: R, centering: R) -> [R; 3] {
    let gap = chosen - rejected - margin;
    let sum = chosen + rejected;
    let slope = sigmoid(-gap);
    let pull = R::two() * centering * sum;
    [softplus(-gap) + centering * (sum * sum), pull - slope, pull + slope]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (chosen, rejected) = (call.real("chosen_score")?, call.real("rejected_score")?);
    let margins = call.optional_real("margin");
    let mask = call.optional_bytes("mask");
    let centering = call.number("centering_coefficient")?;
    let keeps = |index: usize| mask.is_none_or(|mask| mask.get(index).is_some_and(|byte| *byte != 0));
    let pairs = (0..chosen.len()).filter(|index| keeps(*index)).count();
    if pairs == 0 {
        return Err(Error::EmptyMask { argument: "chosen_score" });
    }
    let count = call.optional_number("pair_count").unwrap_or(R::from_count(pairs));
    let mut buffers = ["pair_loss", "d_chosen_score", "d_rejected_score"].map(|name| call.output(name));
    let (mut loss, mut gap, mut correct) = (ExactSum::new(), ExactSum::new(), 0usize);
    for (index, (chosen, rejected)) in chosen.iter().zip(rejected).enumerate() {
        let mut results = [R::zero(); 3];
        if keeps(index) {
            let margin = margins.and_then(|margins| margins.get(index)).copied().unwrap_or(R::zero());
            for (argument, value) in [("chosen_score", *chosen), ("rejected_score", *rejected), ("margin", margin)] {
                if !value.is_finite() {
                    return Err(Error::NonFinite { argument, index });
                }
            }
            let [value, by_chosen, by_rejected] = bradley_terry(*chosen, *rejected, margin, centering);
            results = [value, by_chosen / count, by_rejected / count];
            loss.add(value);
            gap.add(*chosen - *rejected);
            correct += usize::from(chosen > rejected);
        }
        for (buffer, result) in buffers.iter_mut().zip(results) {
            if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
                *slot = result;
            }
        }
    }
    call.write("loss", loss.value::<R>() / count);
    call.write("score_margin", gap.value::<R>() / count);
    call.write("accuracy", R::from_count(correct) / count);
    Ok(())
}

const N: &[&[&str]] = &[&["N"]];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.bradley_terry",
    family: Family::Preference,
    title: "Bradley–Terry loss",
    summary: "The logistic loss of a reward model on the score difference of a chosen and a rejected response.",
    formula: r"-\log\sigma(s_w - s_l - m) + c\,(s_w + s_l)^2",
    gradient: r"\left(-\sigma(-(s_w - s_l - m)) + 2c(s_w + s_l),\ \sigma(-(s_w - s_l - m)) + 2c(s_w + s_l)\right)/N",
    notes: "The margin stands inside the sigmoid. Without centring the loss does not change when both scores are shifted. TRL 1.16 \
            computes the same.",
    sources: &[
        Source {
            title: "Training language models to follow instructions with human feedback",
            reference: "arXiv:2203.02155",
            place: "Eq. (1), K = 2",
        },
        Source {
            title: "Llama 2: Open Foundation and Fine-Tuned Chat Models",
            reference: "arXiv:2307.09288",
            place: "Eq. (2), margin",
        },
        Source {
            title: "Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate Reward Hacking",
            reference: "arXiv:2312.09244",
            place: "Eq. (2), centring",
        },
    ],
    inputs: &[
        InputSpec::new("chosen_score", Domain::Reward, N, "score of the chosen response"),
        InputSpec::new("rejected_score", Domain::Reward, N, "score of the rejected response"),
        InputSpec::new("margin", Domain::NonNegative, N, "how much better the chosen response is; without it 0")
            .optional(),
        PAIR_MASK,
    ],
    params: &[
        ParamSpec::number(
            "centering_coefficient",
            "c",
            0.0,
            Range::NON_NEGATIVE,
            "weight of the squared sum of the two scores, which holds their mean near 0",
        ),
        PAIR_COUNT,
    ],
    defaults: &[],
    outputs: &[
        LOSS,
        OutputSpec::value("pair_loss", &["N"], "loss of each pair; 0 where absent"),
        OutputSpec::gradient("d_chosen_score", "chosen_score", &["N"], "gradient of the loss"),
        OutputSpec::gradient("d_rejected_score", "rejected_score", &["N"], "gradient of the loss"),
        OutputSpec::value("score_margin", &[], "mean of chosen minus rejected score"),
        ACCURACY,
    ],
    dialects: &[
        Dialect { name: "paper", note: "as written", settings: &[] },
        Dialect { name: "trl-1.16", note: "as in the papers", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(chosen: &[f64], rejected: &[f64], margin: &[f64]) -> f64 {
        let terms = chosen.iter().zip(rejected).zip(margin);
        terms.map(|((c, r), m)| bradley_terry(*c, *r, *m, 0.0)[0]).sum::<f64>() / chosen.len() as f64
    }

    #[test]
    fn margins_stand_inside_and_are_not_broadcast() {
        let (chosen, rejected, margin) = ([1.0, 3.0], [0.0, 1.0], [0.5, 2.0]);
        assert!((mean(&chosen, &rejected, &margin) - 0.583612).abs() < 5e-7);
        // (B,1) − (B) would be a B×B matrix: 0.670475.
        let mut broadcast = 0.0;
        for (c, r) in chosen.iter().zip(&rejected) {
            for m in margin {
                broadcast += bradley_terry(*c, *r, m, 0.0)[0] / 4.0;
            }
        }
        assert!((broadcast - 0.670475).abs() < 5e-7);
        // Outside the sigmoid the loss would be −1.029905.
        let outside = mean(&chosen, &rejected, &[0.0, 0.0]) - 1.25;
        assert!((outside + 1.029905).abs() < 5e-7);
    }

    #[test]
    fn the_last_token_only() {
        // Chosen scores per token [2, 0], rejected [0, 1]: last token 1.3133; the mean over both tokens is 0.7201.
        let last = bradley_terry(0.0f64, 1.0, 0.0, 0.0)[0];
        let every = (bradley_terry(2.0f64, 0.0, 0.0, 0.0)[0] + last) / 2.0;
        assert!((last - 1.3133).abs() < 5e-5 && (every - 0.7201).abs() < 5e-5);
    }

    proptest! {
        #[test]
        fn shifting_both_scores_changes_nothing(chosen in -50i32..50, rejected in -50i32..50, shift in -1000i32..1000) {
            // Whole numbers, so that the shift is exact.
            let at = |shift: i32| bradley_terry(f64::from(chosen + shift), f64::from(rejected + shift), 0.25, 0.0);
            prop_assert_eq!(at(0), at(shift));
            prop_assert_eq!(at(0)[1], -at(0)[2]);
        }
    }
}

//! The metrics that every preference trainer prints, without a loss.

use super::pairs::{
    ACCURACY, BETA, CHOSEN_REWARD, INPUTS, MARGIN, PAIR_COUNT, PairBuffers, PairTerm, REJECTED_REWARD, batch_of,
    pair_count, write_means,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, evaluate_with};

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    let beta = call.number("beta")?;
    let none = PairTerm { value: R::zero(), d_chosen: R::zero(), d_rejected: R::zero() };
    let means = batch.sum(beta, count, PairBuffers::default(), |_| none)?.means(count);
    write_means(call, means);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.reward_metrics",
    family: Family::Preference,
    title: "Reward margin and accuracy",
    summary: "Mean implicit rewards of chosen and rejected responses, their margin, and how often the chosen one is larger.",
    formula: r"\overline{\beta c},\ \overline{\beta r},\ \overline{\beta(c - r)},\ \overline{\mathbb{1}[\beta c > \beta r]}",
    gradient: "",
    notes: "c and r are the log-ratios of chosen and rejected response. Equal rewards count as wrong. TRL 1.16 computes the same.",
    sources: &[Source {
        title: "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        reference: "arXiv:2305.18290",
        place: "Section 4, implicit reward",
    }],
    inputs: INPUTS,
    params: &[BETA, PAIR_COUNT],
    defaults: &[],
    outputs: &[MARGIN, CHOSEN_REWARD, REJECTED_REWARD, ACCURACY],
    dialects: &[
        Dialect { name: "paper", note: "as written", settings: &[] },
        Dialect { name: "trl-1.16", note: "as in the paper", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use crate::catalog::find;
    use crate::spec::{Data, Input, Output, evaluate};

    #[test]
    fn chosen_and_rejected_are_not_swapped_and_a_tie_is_not_right() {
        let real = |name, data: &'static [f64]| Input { name, shape: &[4], data: Data::Real(data) };
        let inputs =
            [real("chosen_log_prob", &[-1.0, -2.0, -3.0, -4.0]), real("rejected_log_prob", &[-3.0, -4.0, -3.0, -2.0])];
        let (mut chosen, mut rejected, mut margin, mut accuracy) = ([0.0], [0.0], [0.0], [0.0]);
        let mut outputs = [
            Output { name: "chosen_reward", data: &mut chosen },
            Output { name: "rejected_reward", data: &mut rejected },
            Output { name: "margin", data: &mut margin },
            Output { name: "accuracy", data: &mut accuracy },
        ];
        evaluate(find("preference.reward_metrics").unwrap(), None, &[], &inputs, &mut outputs).unwrap();
        assert_eq!((chosen[0], rejected[0], accuracy[0]), (-0.25, -0.30000000000000004, 0.5));
        assert!((margin[0] - 0.05).abs() < 1e-15);
    }
}

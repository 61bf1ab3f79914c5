//! BCO for pairs: each response is classified by its own reward, shifted by a running mean.

use super::pairs::{
    ACCURACY, BETA, CHOSEN_LOG_PROB, CHOSEN_REWARD, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB, LOSS, MARGIN, PAIR_COUNT,
    PAIR_LOSS, PAIR_MASK, Pair, PairTerm, REF_CHOSEN_LOG_PROB, REF_REJECTED_LOG_PROB, REJECTED_LOG_PROB,
    REJECTED_REWARD, WEIGHT, batch_of, buffers_of, pair_count, write_means,
};
use super::running_mean::{
    NEXT_COUNT, REWARD_SHIFT, RUNNING_COUNT, RUNNING_MEAN, RewardShift, SHIFT, merge_means, state_of,
};
use crate::Error;
use crate::num::{ExactSum, Real, sigmoid, softplus};
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// The BCO loss of one pair, −ln σ(a − δ) − ln σ(−(b − δ)), with rewards a = β·log-ratio of the chosen, b of the rejected
/// response and the shift δ, which is a constant for the gradient.
///
/// Jung et al., "Binary Classifier Optimization for Large Language Model Alignment", arXiv:2404.04656: δ is
/// the mean of the two mean rewards. Derivatives: −β·σ(−(a − δ)) and β·σ(b − δ). Finite for every finite reward.
///
/// ```
/// use plumbline_core::preference::{dpo_bco_pair::bco_pair, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 1.0f64, rejected_log_ratio: 1.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = bco_pair(&pair, 0.5, 0.5);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [2.0 * core::f64::consts::LN_2, -0.25, 0.25]);
/// ```
///
/// Differs in: TRL 1.16 has no shift (δ = 0); TRL 0.12 shifts by the running mean of batch means, kept in single precision,
/// where every batch counts as one.
#[inline(always)]
pub fn bco_pair<R: Real>(pair: &Pair<R>, beta: R, shift: R) -> PairTerm<R> {
    let chosen = beta * pair.chosen_log_ratio - shift;
    let rejected = beta * pair.rejected_log_ratio - shift;
    PairTerm {
        value: softplus(-chosen) + softplus(rejected),
        d_chosen: -(beta * sigmoid(-chosen)),
        d_rejected: beta * sigmoid(rejected),
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    let [mean, batches] = state_of(call)?;
    let mut rewards = ExactSum::new();
    for index in (0..batch.slots()).filter(|index| batch.keeps(*index)) {
        let pair = batch.pair(index)?;
        rewards.add(beta * pair.chosen_log_ratio);
        rewards.add(beta * pair.rejected_log_ratio);
    }
    let [shift, next] = match call.choice("reward_shift")? {
        RewardShift::Zero => [R::zero(), batches],
        RewardShift::Given => [mean, batches],
        RewardShift::Running => {
            let responses = R::from_count(2 * batch.pairs());
            merge_means(mean, batches, rewards.value::<R>() / responses, R::one())
        }
    };
    call.write("shift", shift);
    call.write("next_count", next);
    let buffers = buffers_of(call);
    let means = batch.sum(beta, count, buffers, |pair| bco_pair(pair, beta, shift))?.means(count);
    write_means(call, means);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_bco_pair",
    family: Family::Preference,
    title: "BCO (pairs)",
    summary: "Each response is classified as chosen or rejected by its own reward, shifted by the mean reward.",
    formula: r"-\log\sigma(a - \delta) - \log\sigma(-(b - \delta)),\quad \delta = \mathrm{sg}(\text{mean reward})",
    gradient: r"\beta\left(-\sigma(\delta - a),\ \sigma(b - \delta)\right)/N",
    notes: "a and b are the rewards of chosen and rejected response. No gradient flows through the shift. The running mean counts \
            each batch once; without a state it is the mean of this batch. A shard takes the full batch's shift as given.",
    sources: &[Source {
        title: "Binary Classifier Optimization for Large Language Model Alignment",
        reference: "arXiv:2404.04656",
        place: "binary classifier loss with reward shift",
    }],
    inputs: &[
        CHOSEN_LOG_PROB,
        REJECTED_LOG_PROB,
        REF_CHOSEN_LOG_PROB,
        REF_REJECTED_LOG_PROB,
        WEIGHT,
        PAIR_MASK,
        RUNNING_MEAN,
        RUNNING_COUNT,
    ],
    params: &[BETA, REWARD_SHIFT, PAIR_COUNT],
    defaults: &[],
    outputs: &[
        LOSS,
        PAIR_LOSS,
        D_CHOSEN_LOG_PROB.stopped(),
        D_REJECTED_LOG_PROB.stopped(),
        CHOSEN_REWARD,
        REJECTED_REWARD,
        MARGIN,
        ACCURACY,
        SHIFT,
        NEXT_COUNT,
    ],
    dialects: &[
        Dialect { name: "paper", note: "shifted by the mean reward", settings: &[] },
        Dialect { name: "trl-1.16", note: "no shift", settings: &[("reward_shift", Value::Name("zero"))] },
        Dialect {
            name: "trl-0.12",
            note: "shifted by the running mean of the batches' mean rewards",
            settings: &[("reward_shift", Value::Name("running"))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_with_the_shift_held_agrees_with_differences() {
        let value = |chosen: f64, rejected: f64| {
            let pair = Pair {
                chosen_log_ratio: chosen,
                rejected_log_ratio: rejected,
                chosen_length: 1.0,
                rejected_length: 1.0,
            };
            bco_pair(&pair, 0.3, 0.2)
        };
        let step = 1e-5;
        for (chosen, rejected) in [(1.5, -0.7), (-4.0, 6.0)] {
            let term = value(chosen, rejected);
            let by_chosen =
                (value(chosen + step, rejected).value - value(chosen - step, rejected).value) / (2.0 * step);
            let by_rejected =
                (value(chosen, rejected + step).value - value(chosen, rejected - step).value) / (2.0 * step);
            assert!((term.d_chosen - by_chosen).abs() < 1e-9 && (term.d_rejected - by_rejected).abs() < 1e-9);
        }
        assert_eq!(value(-10_000.0, 0.0).value, 3000.2 + softplus(-0.2));
    }
}

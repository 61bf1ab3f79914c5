//! The leave-one-out advantage of RLOO: the reward less the mean of the others.

use super::grouped::{self, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, set};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// A_i = R_i − (1/(n−1)) Σ_{j≠i} R_j = n/(n−1)·(R_i − mean_g): the baseline is the mean of the other responses to the
/// same prompt, so that it does not depend on the response itself (Ahmadian et al. 2024, §3.2.2, RLOO estimator).
///
/// `rewards`: R_i with the group g of each response, n the number of scored responses in it; `out`: A_i, one per
/// response, in the units of the reward. Not differentiated. Errors: `LengthMismatch`, `NonFinite` of `reward`,
/// `GroupTooSmall` where a group of one is declared an error.
///
/// Differs in: verl `rloo` (alone in a group: the reward), verl `rloo_vectorized` and TRL (alone: 0).
///
/// ```
/// use plumbline_core::advantage::{GroupOfOne, GroupedRewards, rloo};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[4.0, 0.0, 0.0, 0.0], Groups::new(&[0; 4]), None)?;
/// let mut advantage = [0.0f64; 4];
/// rloo(rewards, GroupOfOne::Error, &mut advantage)?;
/// assert_eq!(advantage[0], 4.0);
/// assert!((advantage[1] + 4.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn rloo<R: Real>(rewards: GroupedRewards<'_, R>, group_of_one: GroupOfOne, out: &mut [R]) -> Result<(), Error> {
    rewards.for_each_group(group_of_one, 1.0, out, |leader, out| {
        let statistics = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), 0);
        let (count, others) = (statistics.count as f64, statistics.count.saturating_sub(1) as f64);
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(statistics.centred(reward) * count / others / statistics.scale));
        }
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let group_of_one = call.choice("group_of_one")?;
    evaluate_grouped(call, |rewards, out| rloo(rewards, group_of_one, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.rloo",
    family: Family::Advantage,
    title: "REINFORCE leave-one-out advantage",
    summary: "The reward less the mean reward of the other responses to the same prompt.",
    formula: r"A_i = R_i - \frac{1}{n-1}\sum_{j \ne i} R_j = \frac{n}{n-1}\left(R_i - \operatorname{mean}_g(R)\right)",
    gradient: "",
    notes: "Unbiased, since the baseline does not contain the response's own reward. A KL penalty, where there is one, \
            is summed over the tokens and subtracted from the reward before the baseline is taken.",
    sources: &[
        Source {
            title: "Back to Basics: Revisiting REINFORCE-Style Optimization for Learning from Human Feedback in LLMs",
            reference: "arXiv:2402.14740",
            place: "§3.2.2, RLOO",
        },
        Source {
            title: "Buy 4 REINFORCE Samples, Get a Baseline for Free!",
            reference: "Kool, van Hoof and Welling 2019, ICLR workshop Deep RL Meets Structured Prediction",
            place: "eq. 8",
        },
    ],
    inputs: INPUTS,
    params: &[grouped::GROUP_OF_ONE],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "needs two responses", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "rloo: a response alone keeps its reward (rloo_vectorized gives it 0)",
            settings: &[("group_of_one", Value::Name(GroupOfOne::Reward.name()))],
        },
        Dialect {
            name: "trl-1.16",
            note: "a response alone gets 0",
            settings: &[("group_of_one", Value::Name(GroupOfOne::Zero.name()))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::group_mean;
    use super::*;
    use crate::batch::Groups;
    use proptest::prelude::*;
    use std::vec;

    /// mistakes.md F09, F18.
    #[test]
    fn separating_numbers_of_reported_mistakes() {
        let mut out = [0.0f64; 4];
        rloo(
            GroupedRewards::new(&[3.0, 1.0, 1.0, 1.0], Groups::new(&[0; 4]), None).unwrap(),
            GroupOfOne::Error,
            &mut out,
        )
        .unwrap();
        for (got, want) in out.iter().zip([2.0, -2.0 / 3.0, -2.0 / 3.0, -2.0 / 3.0]) {
            assert!((got - want).abs() < 1e-15);
        }
        // Rewards after KL: 1 − ½·0.4 and 0.
        let rewards = GroupedRewards::new(&[0.8, 0.0], Groups::new(&[0; 2]), None).unwrap();
        rloo(rewards, GroupOfOne::Error, &mut out[..2]).unwrap();
        assert_eq!(out[..2], [0.8, -0.8]);
    }

    #[test]
    fn group_of_one() {
        let mut out = [9.0; 3];
        let rewards = GroupedRewards::new(&[0.3, 2.0, 1.0], Groups::new(&[5, 6, 6]), None).unwrap();
        rloo(rewards, GroupOfOne::Reward, &mut out).unwrap();
        assert_eq!(out, [0.3, 1.0, -1.0]);
        rloo(rewards, GroupOfOne::Zero, &mut out).unwrap();
        assert_eq!(out, [0.0, 1.0, -1.0]);
        let error = rloo(rewards, GroupOfOne::Error, &mut out);
        assert_eq!(error, Err(Error::GroupTooSmall { index: 0, size: 1, needed: 2 }));
    }

    proptest! {
        #[test]
        fn is_n_over_n_minus_one_times_the_centred_reward(
            values in proptest::collection::vec(-5.0f64..5.0, 2..9),
        ) {
            let groups = vec![0; values.len()];
            let rewards = GroupedRewards::new(&values, Groups::new(&groups), None).unwrap();
            let (mut left_out, mut centred) = (vec![0.0; values.len()], vec![0.0; values.len()]);
            rloo(rewards, GroupOfOne::Error, &mut left_out).unwrap();
            group_mean(rewards, GroupOfOne::Error, &mut centred).unwrap();
            let n = values.len() as f64;
            for (index, (a, c)) in left_out.iter().zip(&centred).enumerate() {
                prop_assert!((a - n / (n - 1.0) * c).abs() <= 4.0 * f64::EPSILON * a.abs());
                let others: f64 = values.iter().enumerate().filter(|(j, _)| *j != index).map(|(_, v)| v).sum();
                // Sums of at most 8 numbers below 5, in another order.
                prop_assert!((a - (values[index] - others / (n - 1.0))).abs() < 64.0 * 5.0 * f64::EPSILON);
            }
        }
    }
}

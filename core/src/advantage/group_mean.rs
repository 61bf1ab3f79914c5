//! The advantage of Dr. GRPO: the reward less the mean of its group, not scaled.

use super::grouped::{self, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, set};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// A_i = R_i − mean_g: the centred reward (Dr. GRPO; Liu et al. 2025, §3.1).
///
/// `rewards`: R_i with the group g of each response; `out`: A_i, one per response, in the units of the reward. Not
/// differentiated. A response alone in its group is its own mean, so `GroupOfOne::Zero` is the formula itself. Errors:
/// `LengthMismatch`, `NonFinite` of `reward`, `GroupTooSmall` where a group of one is declared an error.
///
/// Differs in: verl (alone in a group: the reward), TRL (alone: 0).
///
/// ```
/// use plumbline_core::advantage::{GroupOfOne, GroupedRewards, group_mean};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[4.0, 0.0, 2.0], Groups::new(&[0, 0, 0]), None)?;
/// let mut advantage = [0.0; 3];
/// group_mean(rewards, GroupOfOne::Zero, &mut advantage)?;
/// assert_eq!(advantage, [2.0, -2.0, 0.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn group_mean<R: Real>(
    rewards: GroupedRewards<'_, R>,
    group_of_one: GroupOfOne,
    out: &mut [R],
) -> Result<(), Error> {
    rewards.for_each_group(group_of_one, 1.0, out, |leader, out| {
        let statistics = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), 0);
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(statistics.centred(reward) / statistics.scale));
        }
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let group_of_one = call.choice("group_of_one")?;
    evaluate_grouped(call, |rewards, out| group_mean(rewards, group_of_one, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.group_mean",
    family: Family::Advantage,
    title: "Dr. GRPO's centred advantage",
    summary: "The reward less the mean of its group, in the reward's own units.",
    formula: r"A_i = R_i - \operatorname{mean}_g(R)",
    gradient: "",
    notes: "The baseline contains the response's own reward, which scales the expected gradient by (n − 1)/n against a \
            leave-one-out baseline.",
    sources: &[Source {
        title: "Understanding R1-Zero-Like Training: A Critical Perspective",
        reference: "arXiv:2503.20783",
        place: "§3.1",
    }],
    inputs: INPUTS,
    params: &[grouped::GROUP_OF_ONE_ZERO],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "the formula: a response alone gets 0", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "norm_adv_by_std_in_grpo=False: a response alone keeps its reward",
            settings: &[("group_of_one", Value::Name(GroupOfOne::Reward.name()))],
        },
        Dialect { name: "trl-1.16", note: "scale_rewards=\"none\": a response alone gets 0", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Groups;

    #[test]
    fn centred_within_groups() {
        let mut out = [9.0; 5];
        let rewards = GroupedRewards::new(&[4.0, 7.0, 0.0, 2.0, 0.3], Groups::new(&[1, 2, 1, 1, 3]), None).unwrap();
        group_mean(rewards, GroupOfOne::Zero, &mut out).unwrap();
        assert_eq!(out, [2.0, 0.0, -2.0, 0.0, 0.0]);
        group_mean(rewards, GroupOfOne::Reward, &mut out).unwrap();
        assert_eq!(out, [2.0, 7.0, -2.0, 0.0, 0.3]);
        let error = group_mean(rewards, GroupOfOne::Error, &mut out);
        assert_eq!(error, Err(Error::GroupTooSmall { index: 1, size: 1, needed: 2 }));
        let error = group_mean(rewards, GroupOfOne::Zero, &mut out[..4]);
        assert_eq!(error, Err(Error::LengthMismatch { argument: "advantage", expected: 5, got: 4 }));
    }

    #[test]
    fn ends_of_the_range() {
        let mut out = [9.0; 3];
        let rewards = GroupedRewards::new(&[f64::MAX, f64::MAX, -f64::MAX], Groups::new(&[0; 3]), None).unwrap();
        group_mean(rewards, GroupOfOne::Error, &mut out).unwrap();
        // A third and four thirds of the largest number; the last is beyond the range.
        assert!((out[0] / f64::MAX - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(out[2], f64::NEG_INFINITY);
    }
}

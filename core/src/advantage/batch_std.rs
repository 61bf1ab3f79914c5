//! The advantage centred within its group and scaled by the deviation of the whole batch.

use super::group_mean_std::GroupMeanStd;
use super::grouped::{
    self, Deviation, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, quotient, set,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// A_i = (R_i − mean_g)/(std_batch + ε): centred within the group, scaled by the deviation of all rewards of the batch
/// (Liu et al. 2025, "Tricks or Traps", §4.1; TRL's `scale_rewards="batch"`).
///
/// `rewards`: R_i with the group g of each response; `out`: A_i, one per response. Not differentiated. The deviation
/// is that of the rewards, not of the centred rewards. Errors: `LengthMismatch`, `NonFinite` of `reward`,
/// `GroupTooSmall` where a group of one is declared an error.
///
/// Differs in: TRL (ε = 10⁻⁴; alone in a group: 0). verl has no such estimator.
///
/// ```
/// use plumbline_core::advantage::{Deviation, EpsPlacement, GroupMeanStd, GroupOfOne, GroupedRewards, batch_std};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[4.0, 0.0, 0.0, 0.0], Groups::new(&[0, 0, 1, 1]), None)?;
/// let deviation = Deviation { ddof: 1, eps: 0.0, eps_placement: EpsPlacement::StdPlusEps };
/// let mut advantage = [0.0; 4];
/// batch_std(rewards, GroupMeanStd { deviation, group_of_one: GroupOfOne::Zero }, &mut advantage)?;
/// assert_eq!(advantage, [1.0, -1.0, 0.0, 0.0]); // group means 2 and 0, batch deviation 2
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn batch_std<R: Real>(rewards: GroupedRewards<'_, R>, config: GroupMeanStd<R>, out: &mut [R]) -> Result<(), Error> {
    let batch = Statistics::new(rewards.scored().map(|(_, reward)| reward), config.deviation.ddof);
    let denominator = batch.denominator(config.deviation);
    rewards.for_each_group(config.group_of_one, denominator / batch.scale, out, |leader, out| {
        let group = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), 0);
        // A group may be on another scale than the batch only where it is far smaller.
        let ratio = batch.scale / group.scale;
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(quotient(group.centred(reward) * ratio, denominator)));
        }
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let config = GroupMeanStd { deviation: Deviation::from_call(call)?, group_of_one: call.choice("group_of_one")? };
    evaluate_grouped(call, |rewards, out| batch_std(rewards, config, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.batch_std",
    family: Family::Advantage,
    title: "Group mean, batch deviation",
    summary: "The reward less the mean of its group, divided by the deviation of the whole batch's rewards.",
    formula: r"A_i = \frac{R_i - \operatorname{mean}_g(R)}{\operatorname{std}_{\mathrm{batch}}(R) + \epsilon}",
    gradient: "",
    notes: "The deviation is that of the rewards, not of the centred ones, so it contains the spread between prompts. \
            With group_of_one = reward the baseline of a response alone is 0, and it is still divided by the batch's \
            deviation.",
    sources: &[Source {
        title: "Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
        reference: "arXiv:2508.08221",
        place: "§4.1, advantage normalisation",
    }],
    inputs: INPUTS,
    params: &[grouped::eps(1e-4), grouped::DDOF, grouped::EPS_PLACEMENT, grouped::GROUP_OF_ONE],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[Dialect {
        name: "trl-1.16",
        note: "scale_rewards=\"batch\": eps 1e-4; a response alone gets 0",
        settings: &[("group_of_one", Value::Name(GroupOfOne::Zero.name()))],
    }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::EpsPlacement;
    use super::*;
    use crate::batch::Groups;

    #[test]
    fn group_mean_and_batch_deviation() {
        let deviation = Deviation { ddof: 1, eps: 0.5, eps_placement: EpsPlacement::StdPlusEps };
        let mut config = GroupMeanStd { deviation, group_of_one: GroupOfOne::Zero };
        let mut out = [9.0; 5];
        // The unscored NaN is absent: deviation of [1, 0, 11, 10] is √(101/3).
        let values = [1.0, 0.0, f64::NAN, 11.0, 10.0];
        let rewards = GroupedRewards::new(&values, Groups::new(&[0, 0, 0, 1, 1]), Some(&[1, 1, 0, 1, 1])).unwrap();
        batch_std(rewards, config, &mut out).unwrap();
        let unit = 0.5 / ((101.0f64 / 3.0).sqrt() + 0.5);
        for (got, want) in out.iter().zip([unit, -unit, 0.0, unit, -unit]) {
            assert!((got - want).abs() < 1e-15);
        }
        config.group_of_one = GroupOfOne::Reward;
        config.deviation.eps = 0.0;
        let rewards = GroupedRewards::new(&[4.0, 0.0, 0.0, 0.0], Groups::new(&[0, 1, 1, 1]), None).unwrap();
        batch_std(rewards, config, &mut out[..4]).unwrap();
        assert_eq!(out[..4], [2.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn scales_far_apart() {
        let deviation = Deviation { ddof: 1, eps: 0.0, eps_placement: EpsPlacement::StdPlusEps };
        let config = GroupMeanStd { deviation, group_of_one: GroupOfOne::Zero };
        let mut out = [9.0f64; 4];
        let rewards = GroupedRewards::new(&[1e300, 0.0, 1e-300, 0.0], Groups::new(&[0, 0, 1, 1]), None).unwrap();
        batch_std(rewards, config, &mut out).unwrap();
        assert!((out[0] - 1.0).abs() < 1e-15 && (out[1] + 1.0).abs() < 1e-15);
        assert_eq!(out[2..], [0.0, 0.0]);
    }
}

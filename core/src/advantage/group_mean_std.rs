//! The group-relative advantage of GRPO: the reward, centred and scaled within its group.

use super::grouped::{
    self, Deviation, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, quotient, set,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// The choices of [`group_mean_std`].
#[derive(Clone, Copy, Debug)]
pub struct GroupMeanStd<R> {
    /// How the group's deviation is estimated and divided by.
    pub deviation: Deviation<R>,
    /// What a response alone in its group gets.
    pub group_of_one: GroupOfOne,
}

/// A_i = (R_i − mean_g)/(std_g + ε): each reward relative to the responses to the same prompt (GRPO; Shao et al. 2024,
/// §4.1.2, outcome supervision).
///
/// `rewards`: R_i with the group g of each response; `out`: A_i, one per response. Not differentiated. Where all
/// rewards of a group are equal the advantage is exactly 0, even for ε = 0. Errors: `LengthMismatch`, `NonFinite` of
/// `reward`, and `GroupTooSmall` where a group of one is declared an error.
///
/// Differs in: verl (ε = 10⁻⁶; alone in a group: mean 0, deviation 1), TRL (ε = 10⁻⁴; alone: 0).
///
/// ```
/// use plumbline_core::advantage::{Deviation, EpsPlacement, GroupMeanStd, GroupOfOne, GroupedRewards, group_mean_std};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[4.0, 0.0, 0.0, 0.0], Groups::new(&[7, 7, 7, 7]), None)?;
/// let deviation = Deviation { ddof: 1, eps: 0.0, eps_placement: EpsPlacement::StdPlusEps };
/// let mut advantage = [0.0; 4];
/// group_mean_std(rewards, GroupMeanStd { deviation, group_of_one: GroupOfOne::Error }, &mut advantage)?;
/// assert_eq!(advantage, [1.5, -0.5, -0.5, -0.5]); // mean 1, deviation √(12/3) = 2
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn group_mean_std<R: Real>(
    rewards: GroupedRewards<'_, R>,
    config: GroupMeanStd<R>,
    out: &mut [R],
) -> Result<(), Error> {
    let deviation = config.deviation;
    let alone = Statistics { count: 1, scale: 1.0, mean: 0.0, variance: 1.0 }.denominator(deviation);
    rewards.for_each_group(config.group_of_one, alone, out, |leader, out| {
        let statistics = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), deviation.ddof);
        let denominator = statistics.denominator(deviation);
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(quotient(statistics.centred(reward), denominator)));
        }
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let config = GroupMeanStd { deviation: Deviation::from_call(call)?, group_of_one: call.choice("group_of_one")? };
    evaluate_grouped(call, |rewards, out| group_mean_std(rewards, config, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.group_mean_std",
    family: Family::Advantage,
    title: "GRPO's group-relative advantage",
    summary: "The reward less the mean of its group, divided by the group's deviation.",
    formula: r"A_i = \frac{R_i - \operatorname{mean}_g(R)}{\operatorname{std}_g(R) + \epsilon}",
    gradient: "",
    notes: "Where all rewards of a group are equal the advantage is exactly 0. Dividing by the deviation weights prompts \
            of little spread (very easy and very hard ones) more: the bias that Dr. GRPO removes. The paper does not say \
            which deviation; both libraries take the sample's (ddof 1) and differ in eps and in the group of one. verl's \
            vectorised form computes the same with statistics in single precision.",
    sources: &[Source {
        title: "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
        reference: "arXiv:2402.03300",
        place: "§4.1.2, outcome supervision",
    }],
    inputs: INPUTS,
    params: &[grouped::eps(1e-6), grouped::DDOF, grouped::EPS_PLACEMENT, grouped::GROUP_OF_ONE],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "no eps", settings: &[("eps", Value::Number(0.0))] },
        Dialect {
            name: "verl-0.9",
            note: "eps 1e-6; a response alone keeps its reward over 1 + eps",
            settings: &[("eps", Value::Number(1e-6)), ("group_of_one", Value::Name(GroupOfOne::Reward.name()))],
        },
        Dialect {
            name: "trl-1.16",
            note: "scale_rewards=\"group\": eps 1e-4; a response alone gets 0",
            settings: &[("eps", Value::Number(1e-4)), ("group_of_one", Value::Name(GroupOfOne::Zero.name()))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::EpsPlacement;
    use super::*;
    use crate::batch::Groups;
    use core::f64::consts::FRAC_1_SQRT_2 as ROOT_HALF;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn run<R: Real>(rewards: &[R], groups: &[u32], scored: Option<&[u8]>, config: GroupMeanStd<R>) -> Vec<R> {
        let mut out = vec![R::one(); rewards.len()];
        group_mean_std(GroupedRewards::new(rewards, Groups::new(groups), scored).unwrap(), config, &mut out).unwrap();
        out
    }

    fn config(ddof: usize, eps: f64) -> GroupMeanStd<f64> {
        let deviation = Deviation { ddof, eps, eps_placement: EpsPlacement::StdPlusEps };
        GroupMeanStd { deviation, group_of_one: GroupOfOne::Reward }
    }

    fn close(got: &[f64], want: &[f64], tolerance: f64) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= tolerance, "{got} is not {want}");
        }
    }

    /// mistakes.md F03, F06, F14, F19: the numbers that separate scopes, deviations, keys and eps.
    #[test]
    fn separating_numbers_of_reported_mistakes() {
        close(
            &run(&[1.0, 0.0, 11.0, 10.0], &[0, 0, 1, 1], None, config(1, 0.0)),
            &[ROOT_HALF, -ROOT_HALF, ROOT_HALF, -ROOT_HALF],
            1e-4,
        );
        close(&run(&[3.0, 1.0, 1.0, 1.0], &[0; 4], None, config(1, 0.0)), &[1.5, -0.5, -0.5, -0.5], 0.0);
        close(&run(&[3.0, 1.0, 1.0, 1.0], &[0; 4], None, config(0, 0.0))[..1], &[1.73205], 1e-5);
        close(
            &run(&[1.0, 0.0, 0.0, 0.0], &[0, 0, 1, 1], None, config(1, 1e-6)),
            &[ROOT_HALF, -ROOT_HALF, 0.0, 0.0],
            1e-4,
        );
        close(&run(&[0.001, 0.0], &[0; 2], None, config(1, 1e-4))[..1], &[0.61949], 1e-5);
        close(&run(&[0.001, 0.0], &[0; 2], None, config(1, 1e-6))[..1], &[0.70611], 1e-5);
    }

    #[test]
    fn eps_placement() {
        let mut config = config(1, 0.5);
        // Deviation of [1, 0] is √½; the advantage of the first is ½ over the denominator.
        config.deviation.eps_placement = EpsPlacement::MaxStdEps;
        close(&run(&[1.0, 0.0], &[0, 0], None, config), &[0.5 / 0.5f64.sqrt(), -0.5 / 0.5f64.sqrt()], 1e-15);
        config.deviation.eps_placement = EpsPlacement::SqrtVarPlusEps;
        assert_eq!(run(&[1.0, 0.0], &[0, 0], None, config), [0.5, -0.5]);
        config.deviation.eps_placement = EpsPlacement::StdPlusEps;
        close(&run(&[1.0, 0.0], &[0, 0], None, config)[..1], &[0.5 / (0.5f64.sqrt() + 0.5)], 1e-15);
    }

    #[test]
    fn group_of_one_and_responses_without_reward() {
        let mut config = config(1, 1.0);
        assert_eq!(run(&[0.3, 5.0, 5.0], &[1, 2, 2], None, config), [0.15, 0.0, 0.0]);
        config.group_of_one = GroupOfOne::Zero;
        assert_eq!(run(&[0.3], &[1], None, config), [0.0]);
        // The absent reward (a NaN) leaves its group with two members.
        config.deviation.eps = 0.0;
        let out = run(&[4.0, f64::NAN, 2.0], &[0, 0, 0], Some(&[1, 0, 1]), config);
        close(&out, &[0.5f64.sqrt(), 0.0, -(0.5f64.sqrt())], 1e-15);
        assert_eq!(out[1].to_bits(), 0);
        config.group_of_one = GroupOfOne::Error;
        let rewards = [4.0, f64::NAN];
        let grouped = GroupedRewards::new(&rewards, Groups::new(&[0, 0]), Some(&[1, 0])).unwrap();
        let error = group_mean_std(grouped, config, &mut [0.0; 2]);
        assert_eq!(error, Err(Error::GroupTooSmall { index: 0, size: 1, needed: 2 }));
        let error = GroupedRewards::new(&rewards, Groups::new(&[0, 0]), None).unwrap_err();
        assert_eq!(error, Error::NonFinite { argument: "reward", index: 1 });
    }

    #[test]
    fn equal_rewards_and_the_ends_of_the_range() {
        for x in [0.1, 1.0 / 3.0, 1e300, 5e-324] {
            for bits in run(&[x; 7], &[0; 7], None, config(1, 0.0)) {
                assert_eq!(bits.to_bits(), 0);
            }
        }
        close(&run(&[f64::MAX, -f64::MAX], &[0; 2], None, config(1, 0.0)), &[0.5f64.sqrt(), -(0.5f64.sqrt())], 1e-15);
        close(&run(&[4e-250, 0.0, 0.0, 0.0], &[0; 4], None, config(1, 0.0)), &[1.5, -0.5, -0.5, -0.5], 1e-15);
        let deviation = Deviation { ddof: 1, eps: 0.0f32, eps_placement: EpsPlacement::StdPlusEps };
        let config = GroupMeanStd { deviation, group_of_one: GroupOfOne::Error };
        assert_eq!(run(&[f32::MAX, 0.0, 0.0, 0.0], &[0; 4], None, config), [1.5, -0.5, -0.5, -0.5]);
    }

    proptest! {
        #[test]
        fn permuting_permutes_and_groups_sum_to_zero(
            rows in proptest::collection::vec((-10.0f64..10.0, 0u32..3), 1..12),
            turn in 0usize..12,
        ) {
            let split = |rows: &[(f64, u32)]| -> (Vec<f64>, Vec<u32>) { rows.iter().copied().unzip() };
            let (rewards, groups) = split(&rows);
            let straight = run(&rewards, &groups, None, config(1, 1e-6));
            let mut turned_rows = rows.clone();
            let turn = turn % rows.len();
            turned_rows.rotate_left(turn);
            let (rewards, turned_groups) = split(&turned_rows);
            let mut turned = run(&rewards, &turned_groups, None, config(1, 1e-6));
            turned.rotate_right(turn);
            for (a, b) in straight.iter().zip(&turned) {
                prop_assert_eq!(a.to_bits(), b.to_bits());
            }
            for group in 0..3 {
                let members: Vec<f64> =
                    straight.iter().zip(&groups).filter(|(_, g)| **g == group).map(|(a, _)| *a).collect();
                if members.len() > 1 {
                    // Each of at most 12 advantages below √12 carries a few roundings of rewards below 10, over a
                    // deviation that may be as small as the least spread drawn.
                    let sum: f64 = members.iter().sum();
                    let spread = rows.iter().filter(|row| row.1 == group).map(|row| row.0);
                    let spread = spread.clone().fold(f64::MIN, f64::max) - spread.fold(f64::MAX, f64::min);
                    prop_assert!(sum.abs() <= 12.0 * 10.0 * f64::EPSILON * (1.0 + 12.0 / (spread + 1e-6)), "{}", sum);
                }
            }
        }
    }
}

//! The advantage of GPG: the centred reward, scaled up for the responses that teach nothing.

use super::grouped::{self, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, set};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Choice, Dialect, Family, Operation, ParamSpec, Range, Source, Value, choice, evaluate_with};

choice! {
    /// Which responses α = B / count counts.
    pub enum GpgCount {
        /// Those whose reward is not 0 (verl).
        NonzeroRewards = "nonzero_rewards",
        /// Those whose group has more than one reward: all the others have advantage 0 (the paper).
        GroupsWithSpread = "groups_with_spread",
    }
}

/// A_i = α·(R_i − mean_g)/f_norm with α = B / count (GPG; Chu et al. 2025, §3.3, accurate gradient estimation).
///
/// `rewards`: R_i with the group g of each response; B is the number of scored responses; a count of 0 is taken as 1.
/// `f_norm` > 0 is the paper's F_norm. `out`: A_i, one per response. Not differentiated. Errors: `LengthMismatch`,
/// `NonFinite`, `OutOfRange` of `f_norm`, `GroupTooSmall` where a group of one is declared an error.
///
/// Differs in: verl (counts the responses whose *reward* is not 0; alone in a group: the reward).
///
/// ```
/// use plumbline_core::advantage::{GpgCount, GroupOfOne, GroupedRewards, gpg};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[1.0, 0.0, 0.0, 0.0], Groups::new(&[0, 0, 1, 1]), None)?;
/// let mut advantage = [0.0; 4];
/// gpg(rewards, GpgCount::GroupsWithSpread, 1.0, GroupOfOne::Zero, &mut advantage)?;
/// assert_eq!(advantage, [1.0, -1.0, 0.0, 0.0]); // ±½, times 4/2
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn gpg<R: Real>(
    rewards: GroupedRewards<'_, R>,
    count: GpgCount,
    f_norm: R,
    group_of_one: GroupOfOne,
    out: &mut [R],
) -> Result<(), Error> {
    if !Range::POSITIVE.contains(f_norm.to_f64()) {
        let (value, legal) = (f_norm.to_f64(), Range::POSITIVE.text);
        return Err(Error::OutOfRange { argument: F_NORM.name, value, legal });
    }
    let counted = match count {
        GpgCount::NonzeroRewards => rewards.scored().filter(|(_, reward)| *reward != R::zero()).count(),
        GpgCount::GroupsWithSpread => rewards.leaders().map(|leader| with_spread(rewards, leader)).sum(),
    };
    let alpha = rewards.scored().count() as f64 / counted.max(1) as f64;
    let f_norm = f_norm.to_f64();
    rewards.for_each_group(group_of_one, f_norm / alpha, out, |leader, out| {
        let statistics = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), 0);
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(alpha * statistics.centred(reward) / f_norm / statistics.scale));
        }
    })
}

/// The size of a group whose rewards differ, else 0.
fn with_spread<R: Real>(rewards: GroupedRewards<'_, R>, leader: usize) -> usize {
    let mut members = rewards.members(leader);
    let Some((_, first)) = members.next() else { return 0 };
    if members.clone().any(|(_, reward)| reward != first) { members.count() + 1 } else { 0 }
}

const F_NORM: ParamSpec =
    ParamSpec::number("f_norm", r"F_{\mathrm{norm}}", 1.0, Range::POSITIVE, "what the centred reward is divided by");

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (count, f_norm) = (call.choice("count")?, call.number(F_NORM.name)?);
    let group_of_one = call.choice("group_of_one")?;
    evaluate_grouped(call, |rewards, out| gpg(rewards, count, f_norm, group_of_one, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.gpg",
    family: Family::Advantage,
    title: "GPG's advantage",
    summary: "The centred reward times batch size over the number of responses that count.",
    formula: r"A_i = \alpha\,\frac{R_i - \operatorname{mean}_g(R)}{F_{\mathrm{norm}}},\quad \alpha = \frac{B}{N}",
    gradient: "",
    notes: "N counts the responses of groups whose rewards differ (the paper's B - M, all others having no gradient) or \
            the responses whose reward is not 0 (verl, which agrees only by accident: a wholly correct group counts).",
    sources: &[Source {
        title: "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
        reference: "arXiv:2504.02546",
        place: "§3.3, accurate gradient estimation",
    }],
    inputs: INPUTS,
    params: &[
        ParamSpec::choice(
            "count",
            GpgCount::GroupsWithSpread.name(),
            GpgCount::NAMES,
            "which responses N counts: those of groups whose rewards differ, or those whose reward is not 0",
        ),
        F_NORM,
        grouped::GROUP_OF_ONE_ZERO,
    ],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "counts the responses of groups whose rewards differ", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "counts non-zero rewards; a response alone keeps its reward",
            settings: &[
                ("count", Value::Name(GpgCount::NonzeroRewards.name())),
                ("group_of_one", Value::Name(GroupOfOne::Reward.name())),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Groups;

    #[test]
    fn counts_and_scales() {
        let groups = Groups::new(&[0, 0, 1, 1, 2]);
        let rewards = GroupedRewards::new(&[1.0, 0.0, 1.0, 1.0, 3.0], groups, None).unwrap();
        let mut out = [9.0; 5];
        gpg(rewards, GpgCount::NonzeroRewards, 0.5, GroupOfOne::Reward, &mut out).unwrap();
        assert_eq!(out, [1.25, -1.25, 0.0, 0.0, 7.5]);
        gpg(rewards, GpgCount::GroupsWithSpread, 1.0, GroupOfOne::Zero, &mut out).unwrap();
        assert_eq!(out, [1.25, -1.25, 0.0, 0.0, 0.0]);
        let none = GroupedRewards::new(&[0.0, 0.0], Groups::new(&[0, 0]), None).unwrap();
        gpg(none, GpgCount::NonzeroRewards, 1.0, GroupOfOne::Zero, &mut out[..2]).unwrap();
        assert_eq!(out[..2], [0.0, 0.0]);
        let error = gpg(none, GpgCount::NonzeroRewards, 0.0, GroupOfOne::Zero, &mut out[..2]);
        assert_eq!(error, Err(Error::OutOfRange { argument: "f_norm", value: 0.0, legal: "> 0" }));
    }
}

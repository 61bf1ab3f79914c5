//! The advantage of OPO: the reward less the length-weighted mean of its group.

use super::grouped::{
    self, GROUP, GroupOfOne, GroupedRewards, MASK_REQUIRED, OUTPUTS, REWARD, SCORED, evaluate_grouped, set,
};
use crate::Error;
use crate::batch::Mask;
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Dialect, Family, Operation, Source, Value, evaluate_with};

/// A_i = R_i − Σ_j L_j R_j / Σ_j L_j over the group: the baseline of least variance where the squared norm of a
/// response's gradient grows with its length (OPO; Hao et al. 2025, eq. 7).
///
/// `rewards`: R_i with the group of each response; `mask`: [B, T], its row sums are the lengths L_i; `out`: A_i, one per
/// response. Not differentiated. A response alone is its own baseline, so `GroupOfOne::Zero` is the formula itself. A
/// group without any token is the error `EmptyMask`. Other errors: `LengthMismatch`, `NonFinite`, `GroupTooSmall`.
///
/// Differs in: verl (alone in a group: the reward). TRL has no such estimator.
///
/// ```
/// use plumbline_core::advantage::{GroupOfOne, GroupedRewards, opo};
/// use plumbline_core::batch::{Groups, Mask, TokenShape};
/// let rewards = GroupedRewards::new(&[4.0, 0.0], Groups::new(&[0, 0]), None)?;
/// let mask = Mask::new(TokenShape { rows: 2, columns: 3 }, Some(&[1, 0, 0, 1, 1, 1]))?;
/// let mut advantage = [0.0; 2];
/// opo(rewards, mask, GroupOfOne::Zero, &mut advantage)?;
/// assert_eq!(advantage, [3.0, -1.0]); // baseline (1·4 + 3·0)/4
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn opo<R: Real>(
    rewards: GroupedRewards<'_, R>,
    mask: Mask<'_>,
    group_of_one: GroupOfOne,
    out: &mut [R],
) -> Result<(), Error> {
    if mask.shape().rows != rewards.rows() {
        return Err(Error::LengthMismatch { argument: "mask", expected: rewards.rows(), got: mask.shape().rows });
    }
    let mut empty = false;
    rewards.for_each_group(group_of_one, 1.0, out, |leader, out| {
        let (mut sum, mut tokens) = (ExactSum::new(), 0usize);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (row, reward) in rewards.members(leader) {
            let length = mask.length(row);
            tokens += length;
            // In units of 2⁶⁴, so that the product does not overflow.
            sum.add(length as f64 * (reward.to_f64() / UNIT));
            low = low.smaller(reward.to_f64());
            high = high.larger(reward.to_f64());
        }
        empty |= tokens == 0;
        let baseline = Real::clip(sum.value::<f64>() / tokens as f64 * UNIT, low, high);
        for (row, reward) in rewards.members(leader) {
            set(out, row, R::from_f64(reward.to_f64() - baseline));
        }
    })?;
    if empty { Err(Error::EmptyMask { argument: "mask" }) } else { Ok(()) }
}

const UNIT: f64 = 18_446_744_073_709_551_616.0;

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (group_of_one, mask) = (call.choice("group_of_one")?, call.mask()?);
    evaluate_grouped(call, |rewards, out| opo(rewards, mask, group_of_one, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.opo",
    family: Family::Advantage,
    title: "OPO's length-weighted baseline",
    summary: "The reward less the mean reward of its group weighted by response length.",
    formula: r"A_i = R_i - \frac{\sum_{j \in g} L_j R_j}{\sum_{j \in g} L_j}",
    gradient: "",
    notes: "The variance-optimal baseline under the assumption that the squared gradient norm of a response is \
            proportional to its length. The length-weighted sum of a group's advantages is 0, their plain sum is not.",
    sources: &[Source {
        title: "On-Policy RL with Optimal Reward Baseline",
        reference: "arXiv:2505.23585",
        place: "§3.2, length-weighted reward baseline",
    }],
    inputs: &[REWARD, GROUP, MASK_REQUIRED, SCORED],
    params: &[grouped::GROUP_OF_ONE_ZERO],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "the formula: a response alone gets 0", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "a response alone keeps its reward",
            settings: &[("group_of_one", Value::Name(GroupOfOne::Reward.name()))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Groups, TokenShape};

    #[test]
    fn weights_by_length_and_declares_the_edges() {
        let bytes = [1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
        let mask = Mask::new(TokenShape { rows: 4, columns: 4 }, Some(&bytes)).unwrap();
        let values = [3.0, 0.0, 0.3, f64::NAN];
        let rewards = GroupedRewards::new(&values, Groups::new(&[0, 0, 1, 1]), Some(&[1, 1, 1, 0])).unwrap();
        let mut out = [9.0; 4];
        opo(rewards, mask, GroupOfOne::Zero, &mut out).unwrap();
        assert_eq!(out, [2.0, -1.0, 0.0, 0.0]);
        opo(rewards, mask, GroupOfOne::Reward, &mut out).unwrap();
        assert_eq!(out, [2.0, -1.0, 0.3, 0.0]);
        let nothing = Mask::new(TokenShape { rows: 2, columns: 1 }, Some(&[0, 0])).unwrap();
        let rewards = GroupedRewards::new(&[1.0, 2.0], Groups::new(&[0, 0]), None).unwrap();
        let error = opo(rewards, nothing, GroupOfOne::Zero, &mut out[..2]);
        assert_eq!(error, Err(Error::EmptyMask { argument: "mask" }));
        let huge = [f64::MAX, f64::MAX];
        let rewards = GroupedRewards::new(&huge, Groups::new(&[0, 0]), None).unwrap();
        let wide = Mask::new(TokenShape { rows: 2, columns: 4 }, None).unwrap();
        opo(rewards, wide, GroupOfOne::Zero, &mut out[..2]).unwrap();
        assert_eq!(out[..2], [0.0, 0.0]);
    }
}

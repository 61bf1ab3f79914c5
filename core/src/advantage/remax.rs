//! The advantage of ReMax: the reward-to-go less the reward of the greedy response.

use super::discounted_return::discounted_return;
use super::trajectory::{Discount, REWARD, Trajectories, at};
use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::spec::{Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// A_it = Σ_{s≥t} r_is − b_i, with b_i the reward of the greedy response to the same prompt (ReMax; Li et al. 2023, §3.2).
///
/// `reward`: r, [B, T] in the order of `mask`; `greedy_reward`: b_i, one per response; `out`: A, [B, T], +0 under the
/// mask. Not differentiated. Errors: `LengthMismatch`, `NonFinite` of `reward` and of `greedy_reward` (where the
/// response holds a token).
///
/// ```
/// use plumbline_core::advantage::remax;
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 3 }, Some(&[1, 1, 0]))?;
/// let mut advantage = [0.0; 3];
/// remax(&[0.5, 1.0, f64::NAN], &[0.25], mask, &mut advantage)?;
/// assert_eq!(advantage, [1.25, 0.75, 0.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn remax<R: Real>(reward: &[R], greedy_reward: &[R], mask: Mask<'_>, out: &mut [R]) -> Result<(), Error> {
    let shape = mask.shape();
    shape.check_rows(GREEDY.name, greedy_reward)?;
    let illegal = |(row, value): &(usize, &R)| !value.is_finite() && mask.kept(*row).next().is_some();
    if let Some((index, _)) = greedy_reward.iter().enumerate().find(illegal) {
        return Err(Error::NonFinite { argument: GREEDY.name, index });
    }
    reward_to_go(reward, mask, out)?;
    for (row, slots) in out.chunks_mut(shape.columns.max(1)).enumerate() {
        let baseline = at(greedy_reward, row);
        for (column, slot) in slots.iter_mut().enumerate() {
            if mask.keeps(row * shape.columns + column) {
                // An infinite return comes of finite rewards; its baseline is finite.
                *slot -= baseline;
            }
        }
    }
    Ok(())
}

/// Σ_{s≥t} r_is over unmasked tokens.
pub(super) fn reward_to_go<R: Real>(reward: &[R], mask: Mask<'_>, out: &mut [R]) -> Result<(), Error> {
    let trajectories = Trajectories {
        mask,
        reward,
        discount: Discount::Constant(R::one()),
        terminated: None,
        truncated: None,
        next_value: None,
        bootstrap_value: None,
    };
    discounted_return(&trajectories, out)
}

const GREEDY: InputSpec =
    InputSpec::new("greedy_reward", Domain::Reward, &[&["B"]], "reward of the greedy response to the same prompt");

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (reward, greedy, mask) = (call.real(REWARD.name)?, call.real(GREEDY.name)?, call.mask()?);
    if let Some(out) = call.output("advantage") {
        remax(reward, greedy, mask, out)?;
    }
    match call.output("returns") {
        Some(out) => reward_to_go(reward, mask, out),
        None => Ok(()),
    }
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.remax",
    family: Family::Advantage,
    title: "ReMax's advantage",
    summary: "The reward-to-go less the reward of the greedy response to the same prompt.",
    formula: r"A_{it} = \sum_{s \ge t} m_{is} r_{is} - R(\hat y_i)",
    gradient: "",
    notes: "verl computes the same; its returns do not vanish under the mask, here they are +0.",
    sources: &[Source {
        title: "ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large Language Models",
        reference: "arXiv:2310.10505",
        place: "§3.2, algorithm 1",
    }],
    inputs: &[REWARD, GREEDY, InputSpec::MASK],
    params: &[],
    defaults: &[],
    outputs: &[
        OutputSpec::value("advantage", &["B", "T"], "advantage of each token; +0 under the mask"),
        OutputSpec::value("returns", &["B", "T"], "reward-to-go of each token; +0 under the mask"),
    ],
    dialects: &[Dialect { name: "verl-0.9", note: "the formula", settings: &[] }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;

    #[test]
    fn skips_masked_tokens_and_names_bad_input() {
        let mask = Mask::new(TokenShape { rows: 3, columns: 3 }, Some(&[1, 0, 1, 1, 1, 1, 0, 0, 0])).unwrap();
        let mut reward = [1.0, f64::NAN, 2.0, 0.0, 0.0, -1.0, f64::NAN, f64::NAN, f64::NAN];
        let mut out = [9.0; 9];
        remax(&reward, &[0.5, -0.5, f64::NAN], mask, &mut out).unwrap();
        assert_eq!(out, [2.5, 0.0, 1.5, -0.5, -0.5, -0.5, 0.0, 0.0, 0.0]);
        let error = remax(&reward, &[0.5, f64::NAN, 0.0], mask, &mut out);
        assert_eq!(error, Err(Error::NonFinite { argument: "greedy_reward", index: 1 }));
        reward[2] = f64::INFINITY;
        let error = remax(&reward, &[0.5, 0.5, 0.0], mask, &mut out);
        assert_eq!(error, Err(Error::NonFinite { argument: "reward", index: 2 }));
    }
}

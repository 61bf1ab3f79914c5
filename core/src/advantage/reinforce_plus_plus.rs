//! The advantages of REINFORCE++: discounted returns, or group-centred rewards, whitened over the batch's tokens.

use super::discounted_return::discounted_return_with;
use super::group_mean::group_mean;
use super::grouped::{self, GROUP, GroupOfOne, GroupedRewards, MASK_REQUIRED, broadcast_in_place};
use super::trajectory::{Discount, GAMMA, REWARD, Trajectories};
use super::whiten::{self, Whiten, whiten_in_place};
use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, Value, evaluate_with};

/// The choices of [`reinforce_plus_plus`].
#[derive(Clone, Copy, Debug)]
pub struct ReinforcePlusPlus<R> {
    /// γ.
    pub gamma: R,
    /// Whether the return is carried over masked tokens inside a response.
    pub carry_over_mask: bool,
    /// How the returns are whitened.
    pub whitening: Whiten<R>,
}

/// A_it = whiten(G_it), G_it = r_it + γ·G_{i,t+1}: the discounted return of each token, whitened over all tokens of the
/// batch (REINFORCE++; Hu 2025, §3).
///
/// `reward`: r with the KL penalty already in it, [B, T] in the order of `mask`; `out`: A, [B, T], +0 under the mask. Not
/// differentiated. Errors: `LengthMismatch`, `NonFinite`, `OutOfRange` of γ, and those of whitening.
///
/// Differs in: verl before 0.9 (a masked token inside a response resets the return).
///
/// ```
/// use plumbline_core::advantage::{OneToken, ReinforcePlusPlus, Whiten, reinforce_plus_plus};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 3 }, None)?;
/// let whitening = Whiten { shift_mean: true, ddof: 1, eps: 0.0, count_eps: 0.0, one_token: OneToken::Error };
/// let config = ReinforcePlusPlus { gamma: 1.0, carry_over_mask: true, whitening };
/// let mut advantage = [0.0; 3];
/// reinforce_plus_plus(&[1.0, 1.0, 1.0], mask, config, &mut advantage)?;
/// assert_eq!(advantage, [1.0, 0.0, -1.0]); // returns 3, 2, 1
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn reinforce_plus_plus<R: Real>(
    reward: &[R],
    mask: Mask<'_>,
    config: ReinforcePlusPlus<R>,
    out: &mut [R],
) -> Result<(), Error> {
    returns(reward, mask, config.gamma, config.carry_over_mask, out)?;
    whiten_in_place(out, mask, config.whitening)
}

fn returns<R: Real>(reward: &[R], mask: Mask<'_>, gamma: R, carry: bool, out: &mut [R]) -> Result<(), Error> {
    let trajectories = Trajectories {
        mask,
        reward,
        discount: Discount::Constant(gamma),
        terminated: None,
        truncated: None,
        next_value: None,
        bootstrap_value: None,
    };
    discounted_return_with(&trajectories, carry, out)
}

/// A_it = whiten(R_i − mean_g): the group-centred reward at every token, whitened over all tokens of the batch
/// (REINFORCE++-baseline; Hu 2025, §3).
///
/// `rewards`: R_i with the group g of each response, all of them scored; `mask`, `out`: [B, T]. Not differentiated.
/// Errors: those of [`group_mean`] and of whitening; `NonFinite` of `reward` also where a response without reward is
/// given, since whitening over tokens has no place for it.
///
/// Differs in: verl (alone in a group: the reward; before its fix of pull request 1527, pads were not 0).
pub fn reinforce_plus_plus_baseline<R: Real>(
    reward: &[R],
    groups: Groups<'_>,
    mask: Mask<'_>,
    group_of_one: GroupOfOne,
    whitening: Whiten<R>,
    out: &mut [R],
) -> Result<(), Error> {
    let rewards = GroupedRewards::new(reward, groups, None)?;
    mask.shape().check_rows(REWARD.name, reward)?;
    mask.shape().check("advantage", out)?;
    let Some(head) = out.get_mut(..rewards.rows()) else { return Err(Error::EmptyMask { argument: "mask" }) };
    group_mean(rewards, group_of_one, head)?;
    broadcast_in_place(out, mask);
    whiten_in_place(out, mask, whitening)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (reward, mask) = (call.real(REWARD.name)?, call.mask()?);
    let config = ReinforcePlusPlus {
        gamma: call.number(GAMMA.name)?,
        carry_over_mask: call.flag(CARRY.name),
        whitening: Whiten::from_call(call)?,
    };
    if let Some(out) = call.output("advantage") {
        reinforce_plus_plus(reward, mask, config, out)?;
    }
    match call.output("returns") {
        Some(out) => returns(reward, mask, config.gamma, config.carry_over_mask, out),
        None => Ok(()),
    }
}

fn evaluate_baseline<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (reward, groups) = (call.real(REWARD.name)?, Groups::new(call.index(GROUP.name)?));
    let (mask, group_of_one, whitening) = (call.mask()?, call.choice("group_of_one")?, Whiten::from_call(call)?);
    match call.output("advantage") {
        Some(out) => reinforce_plus_plus_baseline(reward, groups, mask, group_of_one, whitening, out),
        None => Ok(()),
    }
}

const CARRY: ParamSpec = ParamSpec::flag(
    "carry_over_mask",
    true,
    "whether the return is carried over masked tokens inside a response (otherwise they reset it to 0)",
);
const SOURCE: Source = Source {
    title: "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage Normalization",
    reference: "arXiv:2501.03262",
    place: "§3, global advantage normalisation",
};
const ADVANTAGE: OutputSpec = OutputSpec::value("advantage", &["B", "T"], "advantage of each token; +0 under the mask");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "advantage.reinforce_plus_plus",
        family: Family::Advantage,
        title: "REINFORCE++ advantage",
        summary: "The discounted return of each token, whitened over all tokens of the batch.",
        formula: r"A_{it} = \frac{G_{it} - \bar G}{\sqrt{\operatorname{var}(G) + \epsilon}},\quad G_{it} = r_{it} + \gamma\,G_{i,t+1}",
        gradient: "",
        notes: "The normalisation is global, over the batch's tokens, not within a group. verl before 0.9 reset the return \
                at a masked token inside a response.",
        sources: &[SOURCE],
        inputs: &[REWARD, InputSpec::MASK],
        params: &[GAMMA, CARRY, whiten::EPS, whiten::COUNT_EPS, whiten::ONE_TOKEN],
        defaults: &[],
        outputs: &[ADVANTAGE, OutputSpec::value("returns", &["B", "T"], "return of each token; +0 under the mask")],
        dialects: &[
            Dialect { name: "verl-0.9", note: "gamma 1 unless set", settings: &[] },
            Dialect {
                name: "verl-0.5",
                note: "a masked token inside a response resets the return",
                settings: &[("carry_over_mask", Value::Flag(false))],
            },
        ],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "advantage.reinforce_plus_plus_baseline",
        family: Family::Advantage,
        title: "REINFORCE++-baseline advantage",
        summary: "The group-centred reward at every token, whitened over all tokens of the batch.",
        formula: r"A_{it} = \operatorname{whiten}\left(R_i - \operatorname{mean}_g(R)\right)",
        gradient: "",
        notes: "The centred reward is repeated at every token before whitening, so long responses weigh more in mean and \
                deviation, and the mean that is subtracted again is not 0 where lengths differ.",
        sources: &[SOURCE],
        inputs: &[grouped::REWARD, GROUP, MASK_REQUIRED],
        params: &[grouped::GROUP_OF_ONE_ZERO, whiten::EPS, whiten::COUNT_EPS, whiten::ONE_TOKEN],
        defaults: &[],
        outputs: &[ADVANTAGE],
        dialects: &[Dialect {
            name: "verl-0.9",
            note: "a response alone keeps its reward",
            settings: &[("group_of_one", Value::Name(GroupOfOne::Reward.name()))],
        }],
        evaluate: evaluate_with!(evaluate_baseline),
    },
];

#[cfg(test)]
mod tests {
    use super::super::OneToken;
    use super::*;
    use crate::batch::TokenShape;

    const WHITENING: Whiten<f64> =
        Whiten { shift_mean: true, ddof: 1, eps: 0.0, count_eps: 0.0, one_token: OneToken::Error };

    #[test]
    fn carried_and_reset_returns() {
        let mask = Mask::new(TokenShape { rows: 1, columns: 4 }, Some(&[1, 0, 1, 1])).unwrap();
        let mut out = [9.0; 4];
        returns(&[1.0, f64::NAN, 2.0, 4.0], mask, 0.5, true, &mut out).unwrap();
        assert_eq!(out, [3.0, 0.0, 4.0, 4.0]);
        returns(&[1.0, f64::NAN, 2.0, 4.0], mask, 0.5, false, &mut out).unwrap();
        assert_eq!(out, [1.0, 0.0, 4.0, 4.0]);
        let config = ReinforcePlusPlus { gamma: 0.5, carry_over_mask: false, whitening: WHITENING };
        reinforce_plus_plus(&[1.0, f64::NAN, 2.0, 4.0], mask, config, &mut out).unwrap();
        // [1, 4, 4]: mean 3, deviation √3.
        for (got, want) in out.iter().zip([-2.0 / 3f64.sqrt(), 0.0, 1.0 / 3f64.sqrt(), 1.0 / 3f64.sqrt()]) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn baseline_is_whitened_over_tokens() {
        let mask = Mask::new(TokenShape { rows: 2, columns: 3 }, Some(&[1, 1, 1, 1, 0, 0])).unwrap();
        let mut out = [9.0f64; 6];
        let groups = Groups::new(&[4, 4]);
        reinforce_plus_plus_baseline(&[1.0, 0.0], groups, mask, GroupOfOne::Zero, WHITENING, &mut out).unwrap();
        // Tokens [½, ½, ½, −½]: mean ¼, deviation ½.
        assert_eq!(out, [0.5, 0.5, 0.5, -1.5, 0.0, 0.0]);
        let error =
            reinforce_plus_plus_baseline(&[1.0], Groups::new(&[4]), mask, GroupOfOne::Zero, WHITENING, &mut out);
        assert_eq!(error, Err(Error::LengthMismatch { argument: "reward", expected: 2, got: 1 }));
    }
}

//! The advantage for pass@k training: only the best response of a group is credited, by its lead.

use super::grouped::{
    self, Deviation, GroupOfOne, GroupedRewards, INPUTS, OUTPUTS, Statistics, evaluate_grouped, quotient, set,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, ParamSpec, Source, evaluate_with};

/// A = R₍₁₎ − R₍₂₎ for the best response of each group, 0 for the others: the leave-one-out advantage of max-of-k as the
/// objective (Tang et al. 2025, §4), optionally divided by the group's deviation.
///
/// `rewards`: R_i with the group of each response; `deviation`: how the lead is scaled, `None` leaves it; `out`: A_i, one
/// per response. Where the best is tied the lead, and so every advantage, is 0. Not differentiated. Every group needs two
/// scored responses (`GroupTooSmall`). Other errors: `LengthMismatch`, `NonFinite`.
///
/// Differs in: verl divides by std + 10⁻⁶ unless `norm_adv_by_std_in_grpo` is off; the paper does not.
///
/// ```
/// use plumbline_core::advantage::{GroupedRewards, passk};
/// use plumbline_core::batch::Groups;
/// let rewards = GroupedRewards::new(&[0.5, 3.0, 1.0], Groups::new(&[0, 0, 0]), None)?;
/// let mut advantage = [0.0; 3];
/// passk(rewards, None, &mut advantage)?;
/// assert_eq!(advantage, [0.0, 2.0, 0.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn passk<R: Real>(
    rewards: GroupedRewards<'_, R>,
    deviation: Option<Deviation<R>>,
    out: &mut [R],
) -> Result<(), Error> {
    rewards.for_each_group(GroupOfOne::Error, 1.0, out, |leader, out| {
        let (mut best, mut second) = (None, R::neg_infinity());
        for (row, reward) in rewards.members(leader) {
            match best {
                Some((_, leading)) if reward <= leading => second = second.larger(reward),
                Some((_, leading)) => (best, second) = (Some((row, reward)), leading),
                None => best = Some((row, reward)),
            }
        }
        let Some((row, best)) = best else { return };
        let lead = match deviation {
            None => best.to_f64() - second.to_f64(),
            Some(deviation) => {
                let statistics = Statistics::new(rewards.members(leader).map(|(_, reward)| reward), deviation.ddof);
                let lead = best.to_f64() * statistics.scale - second.to_f64() * statistics.scale;
                quotient(lead, statistics.denominator(deviation))
            }
        };
        set(out, row, R::from_f64(lead));
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let deviation = if call.flag("normalise") { Some(Deviation::from_call(call)?) } else { None };
    evaluate_grouped(call, |rewards, out| passk(rewards, deviation, out))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.passk",
    family: Family::Advantage,
    title: "Pass@k advantage",
    summary: "The best response of a group gets its lead over the second best, the others get 0.",
    formula: r"A_i = \mathbb 1[i = \arg\max_g R]\,(R_{(1)} - R_{(2)})\,/\,(\operatorname{std}_g(R) + \epsilon)",
    gradient: "",
    notes: "Where the best is tied the lead is 0, so it does not matter which of the tied is named best. Every group needs \
            two responses. The division by the deviation is optional.",
    sources: &[Source {
        title: "Optimizing Language Models for Inference Time Objectives using Reinforcement Learning",
        reference: "arXiv:2503.19595",
        place: "§4, leave-one-out for pass@k",
    }],
    inputs: INPUTS,
    params: &[
        ParamSpec::flag("normalise", false, "whether the lead is divided by the group's deviation"),
        grouped::eps(1e-6),
        grouped::DDOF,
        grouped::EPS_PLACEMENT,
    ],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "the lead itself", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "grpo_passk: divided by std + 1e-6",
            settings: &[("normalise", crate::spec::Value::Flag(true))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::EpsPlacement;
    use super::*;
    use crate::batch::Groups;

    #[test]
    fn lead_ties_and_scale() {
        let values = [1.0, 4.0, 0.0, 2.0, 2.0, f64::NAN];
        let rewards =
            GroupedRewards::new(&values, Groups::new(&[0, 0, 0, 1, 1, 1]), Some(&[1, 1, 1, 1, 1, 0])).unwrap();
        let mut out = [9.0f64; 6];
        passk(rewards, None, &mut out).unwrap();
        assert_eq!(out, [0.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
        let deviation = Deviation { ddof: 1, eps: 0.0, eps_placement: EpsPlacement::StdPlusEps };
        passk(rewards, Some(deviation), &mut out).unwrap();
        // Deviation of [1, 4, 0] is √(13/3).
        assert!((out[1] - 3.0 / (13.0f64 / 3.0).sqrt()).abs() < 1e-15);
        let alone = GroupedRewards::new(&[1.0], Groups::new(&[0]), None).unwrap();
        let error = passk(alone, None, &mut out[..1]);
        assert_eq!(error, Err(Error::GroupTooSmall { index: 0, size: 1, needed: 2 }));
    }
}

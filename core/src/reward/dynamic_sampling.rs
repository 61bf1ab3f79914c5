//! Dynamic sampling: which prompts have responses that differ, and so teach something.

use crate::Error;
use crate::batch::Groups;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// When a group is kept.
    pub enum KeepCriterion {
        /// 0 < number of correct responses < group size.
        CorrectCount = "correct_count",
        /// The rewards are not all equal (their deviation is above 0).
        Spread = "spread",
    }
}

/// keep_i = 1 where some but not all responses to the prompt are correct, or where their rewards differ: the other
/// groups have advantage 0 throughout (dynamic sampling; DAPO, Yu et al. 2025, eq. 11).
///
/// `reward`: the *raw* reward of each response: a length penalty would give spread to a group without any; a response is
/// correct where its reward is above `threshold`. `keep_group_of_one`: whether a response alone is kept. `out`: 1 or 0
/// per response. Errors: `LengthMismatch`, `NonFinite` of `reward`.
///
/// Differs in: verl's filter keeps groups whose metric has a deviation above 0, and groups of one.
///
/// ```
/// use plumbline_core::batch::Groups;
/// use plumbline_core::reward::{KeepCriterion, dynamic_sampling};
/// let mut keep = [0.0; 5];
/// let groups = Groups::new(&[1, 1, 2, 2, 3]);
/// dynamic_sampling(&[1.0, 0.0, 1.0, 1.0, 1.0], groups, KeepCriterion::CorrectCount, 0.0, false, &mut keep)?;
/// assert_eq!(keep, [1.0, 1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn dynamic_sampling<R: Real>(
    reward: &[R],
    groups: Groups<'_>,
    criterion: KeepCriterion,
    threshold: R,
    keep_group_of_one: bool,
    out: &mut [R],
) -> Result<(), Error> {
    let expected = groups.rows();
    for (argument, got) in [("reward", reward.len()), ("keep", out.len())] {
        if got != expected {
            return Err(Error::LengthMismatch { argument, expected, got });
        }
    }
    if let Some(index) = reward.iter().position(|reward| !reward.is_finite()) {
        return Err(Error::NonFinite { argument: "reward", index });
    }
    for leader in groups.leaders() {
        let rewards = || groups.members(leader).filter_map(|row| reward.get(row).copied());
        let size = rewards().count();
        let differ = match criterion {
            KeepCriterion::CorrectCount => {
                let correct = rewards().filter(|reward| *reward > threshold).count();
                correct > 0 && correct < size
            }
            KeepCriterion::Spread => rewards().any(|other| Some(other) != rewards().next()),
        };
        let keep = differ || (size == 1 && keep_group_of_one);
        for row in groups.members(leader) {
            if let Some(out) = out.get_mut(row) {
                *out = if keep { R::one() } else { R::zero() };
            }
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (reward, groups) = (call.real("reward")?, Groups::new(call.index("group")?));
    let (criterion, threshold) = (call.choice("criterion")?, call.number("threshold")?);
    let alone = call.flag("keep_group_of_one");
    match call.output("keep") {
        Some(out) => dynamic_sampling(reward, groups, criterion, threshold, alone, out),
        None => Ok(()),
    }
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "reward.dynamic_sampling",
    family: Family::Reward,
    title: "Dynamic sampling filter",
    summary: "Keep the prompts of which some but not all responses are correct.",
    formula: r"\mathrm{keep}_g = \mathbb 1\left[0 < \left|\{i \in g : R_i > \tau\}\right| < |g|\right]",
    gradient: "",
    notes: "The filter looks at the raw reward. After a length penalty a group of wrong answers has spread and would be \
            kept. `spread` compares rewards exactly, which a computed deviation above 0 does only up to rounding.",
    sources: &[Source {
        title: "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
        reference: "arXiv:2503.14476",
        place: "eq. 11, §3.2, dynamic sampling",
    }],
    inputs: &[
        InputSpec::new("reward", Domain::Reward, &[&["B"]], "raw reward of each response, before any shaping"),
        InputSpec::new("group", Domain::Group, &[&["B"]], "which prompt each response answers (any identifiers)"),
    ],
    params: &[
        ParamSpec::choice(
            "criterion",
            KeepCriterion::CorrectCount.name(),
            KeepCriterion::NAMES,
            "when a group is kept: some but not all correct, or rewards that differ",
        ),
        ParamSpec::number(
            "threshold",
            r"\tau",
            0.0,
            Range::ANY,
            "a response is correct where its reward is above this",
        ),
        ParamSpec::flag("keep_group_of_one", false, "whether a response alone in its group is kept"),
    ],
    defaults: &[],
    outputs: &[OutputSpec::value("keep", &["B"], "1 where the response's group is kept, else 0")],
    dialects: &[
        Dialect { name: "paper", note: "some but not all correct", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "the DAPO recipe's filter_groups: deviation above 0, or a group of one",
            settings: &[
                ("criterion", Value::Name(KeepCriterion::Spread.name())),
                ("keep_group_of_one", Value::Flag(true)),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(reward: &[f64; 4], criterion: KeepCriterion, alone: bool) -> [f64; 4] {
        let mut keep = [9.0; 4];
        dynamic_sampling(reward, Groups::new(&[2, 1, 2, 3]), criterion, 0.5, alone, &mut keep).unwrap();
        keep
    }

    /// mistakes.md F13: a length penalty gives spread to a group that has none.
    #[test]
    fn criteria() {
        use KeepCriterion::{CorrectCount, Spread};
        assert_eq!(run(&[1.0, 1.0, 0.0, 1.0], CorrectCount, false), [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(run(&[0.0, 1.0, 0.0, 1.0], CorrectCount, true), [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(run(&[0.0, 1.0, 0.0, 1.0], Spread, false), [0.0; 4]);
        assert_eq!(run(&[0.0, 1.0, -1.0, 1.0], Spread, false), [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(run(&[0.0, 1.0, -1.0, 1.0], CorrectCount, false), [0.0; 4]);
        let error = dynamic_sampling(&[f64::NAN], Groups::new(&[1]), Spread, 0.5, false, &mut [0.0]);
        assert_eq!(error, Err(Error::NonFinite { argument: "reward", index: 0 }));
    }
}

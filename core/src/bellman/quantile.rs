//! The distributional backup projected on quantiles.

use super::mdp::{DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, TRANSITION, at, checked_policy};
use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// The quantiles at (2i − 1)/2N of a weighted sample: for each the smallest value at or below which at least that share of
/// the weight lies.
///
/// `sample(visit)` calls `visit(value, weight)` for every element, in any order but the same each time; weights are
/// positive. Sums of weights are exact. It costs one walk over the sample per distinct value and no memory. Nothing is
/// written where the sample is empty.
///
/// ```
/// use plumbline_core::bellman::quantile::midpoint_quantiles;
/// let mut quantiles = [0.0; 2];
/// // The shares ¼ and ¾ of the values 1, 2, 5 with weights ½, ⅛, ⅜.
/// midpoint_quantiles(&mut quantiles, |visit| [(5.0, 0.375), (1.0, 0.5), (2.0, 0.125)].iter().for_each(|(x, w)| visit(*x, *w)));
/// assert_eq!(quantiles, [1.0, 5.0]);
/// ```
pub fn midpoint_quantiles<R: Real>(quantiles: &mut [R], sample: impl Fn(&mut dyn FnMut(R, R))) {
    let mut total = ExactSum::new();
    sample(&mut |_, weight| total.add(weight));
    let total = total.value::<R>();
    let count = R::two() * R::from_count(quantiles.len());
    let mut below: Option<R> = None;
    let mut mass = ExactSum::new();
    let mut places = quantiles.iter_mut().enumerate().peekable();
    while places.peek().is_some() {
        // The next larger value, and its weight.
        let mut next: Option<R> = None;
        sample(&mut |value, _| {
            if below.is_none_or(|below| value > below) && next.is_none_or(|next| value < next) {
                next = Some(value);
            }
        });
        let Some(value) = next else { break };
        sample(&mut |candidate, weight| {
            if candidate == value {
                mass.add(weight);
            }
        });
        let reached = mass.value::<R>() * count;
        while let Some((_, slot)) = places.next_if(|(index, _)| R::from_count(2 * index + 1) * total <= reached) {
            *slot = value;
        }
        below = Some(value);
    }
    // The last shares may be missed by rounding only: they have the largest value.
    if let Some(largest) = below {
        places.for_each(|(_, slot)| *slot = largest);
    }
}

/// One state's backed-up quantiles: the mixture over actions, successors and their N quantiles of r + γ(1 − done)θ, at the
/// shares (2i − 1)/2N.
pub fn quantile_backup<R: Real>(mdp: &Mdp<'_, R>, state: usize, policy: &[R], quantiles: &[R], backup: &mut [R]) {
    let count = backup.len();
    let share = R::one() / R::from_count(count);
    midpoint_quantiles(backup, |visit| {
        for action in 0..mdp.actions() {
            let pair = state * mdp.actions() + action;
            let chosen = at(policy, pair);
            for transition in mdp.transitions(state, action).filter(|_| chosen != R::zero()) {
                let weight = chosen * mdp.probability(transition.slot) * share;
                let reward = mdp.transition_reward(pair, transition.slot);
                for index in 0..count {
                    let next = match mdp.ends(transition.slot) {
                        true => R::zero(),
                        false => mdp.discount() * at(quantiles, transition.next_state * count + index),
                    };
                    // A weight that underflows is absent.
                    if weight > R::zero() {
                        visit((reward + next).limited(), weight);
                    }
                }
            }
        }
    });
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy, quantiles) = (Mdp::from_call(call)?, checked_policy(call)?, call.finite("quantile")?);
    let count = call.dim("N");
    if count == 0 {
        return Err(Error::EmptyMask { argument: "quantile" });
    }
    if let Some(backup) = call.output("backup") {
        backup.fill(R::zero());
        for (state, row) in backup.chunks_exact_mut(count).enumerate() {
            quantile_backup(&mdp, state, policy, quantiles, row);
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.quantile",
    family: Family::Bellman,
    title: "Quantile backup of return distributions",
    summary: "One backup of each state's return distribution under a policy, projected on equally likely quantiles.",
    formula: r"\theta_i(s) \leftarrow F^{-1}\big(\tfrac{2i - 1}{2N}\big),\quad F \text{ of } r + \gamma(1 - d)\,\theta_J(S'),\ 
A \sim \pi,\ S' \sim p,\ J \text{ uniform}",
    gradient: "",
    notes: "The quantile is the smallest value whose share of the weight reaches the level; levels are shares of the whole weight, so \
            rows that sum to less than 1 are taken as given that the episode goes on as described. Sums of weights are rounded \
            once; where a level is met exactly, rounding of the weights decides. A state without successors gets 0. The \
            projection is the best in the Wasserstein-1 metric. No library differs.",
    sources: &[Source {
        title: "Distributional Reinforcement Learning with Quantile Regression",
        reference: "arXiv:1710.10044",
        place: "Lemma 2 and Proposition 2",
    }],
    inputs: &[
        TRANSITION,
        REWARD,
        POLICY,
        InputSpec::new(
            "quantile",
            Domain::Value,
            &[&["S", "N"]],
            "N equally likely values of each state's return, in any order",
        ),
        NEXT_STATE,
        ROW_START,
        DONE,
    ],
    params: &[DISCOUNT],
    defaults: &[],
    outputs: &[OutputSpec::value("backup", &["S", "N"], "backed-up quantiles of each state, ascending")],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn a_mixture_by_hand() {
        // From state 0 half ends with 1, half goes on to state 1 (quantiles 2, 6) with reward 3.
        let case = Case::new(SPECS, "bellman.quantile")
            .real("transition", &[3], &[0.5, 0.5, 1.0])
            .index("next_state", &[3], &[0, 1, 1])
            .index("row_start", &[2, 1], &[0, 2])
            .real("reward", &[3], &[1.0, 3.0, 0.0])
            .mask("done", &[3], &[1, 0, 0])
            .real("policy", &[2, 1], &[1.0, 1.0])
            .real("quantile", &[2, 2], &[9.0, 9.0, 2.0, 6.0])
            .number("discount", 0.5);
        // State 0: 1 (½), 4 (¼), 6 (¼); state 1: 1, 3.
        assert_eq!(case.get("backup").unwrap(), [1.0, 4.0, 1.0, 3.0]);
    }

    proptest! {
        #[test]
        fn an_even_sample_of_as_many_values_is_itself(mut values in prop::collection::vec(-9.0f64..9.0, 1..8)) {
            let mut quantiles = std::vec![0.0; values.len()];
            midpoint_quantiles(&mut quantiles, |visit| values.iter().for_each(|value| visit(*value, 0.25)));
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(quantiles, values);
        }
    }
}

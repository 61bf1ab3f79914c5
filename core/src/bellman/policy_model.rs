//! The Markov reward process that a policy makes of a decision process: P_π and r_π.

use super::mdp::{
    DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, TRANSITION, at, checked_policy, expected_value,
};
use crate::Error;
use crate::batch::{row_of, set};
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with};

/// Hand π(a|s) p(s'|s, a) · `weight`(entry) of each successor s' of a state to `add`, in the order of actions and entries.
pub fn add_successors<R: Real>(
    mdp: &Mdp<'_, R>,
    state: usize,
    policy: impl Fn(usize) -> R,
    weight: impl Fn(usize) -> R,
    mut add: impl FnMut(usize, R),
) {
    for action in 0..mdp.actions() {
        let probability = policy(action);
        if probability != R::zero() {
            for transition in mdp.transitions(state, action) {
                add(transition.next_state, probability * mdp.probability(transition.slot) * weight(transition.slot));
            }
        }
    }
}

/// The matrix of policy evaluation, `matrix` [S, S] = I − γ(1 − done) P_π; with `transpose` that of the occupancies.
///
/// `policy(s, a)` are the probabilities.
pub fn evaluation_system<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: impl Fn(usize, usize) -> R,
    transpose: bool,
    matrix: &mut [R],
) {
    let states = mdp.states();
    matrix.fill(R::zero());
    for state in 0..states {
        let place = |next: usize| if transpose { next * states + state } else { state * states + next };
        if let Some(diagonal) = matrix.get_mut(place(state)) {
            *diagonal = R::one();
        }
        let kept = |slot: usize| if mdp.ends(slot) { R::zero() } else { mdp.discount() };
        add_successors(
            mdp,
            state,
            |action| policy(state, action),
            kept,
            |next, weight| {
                if let Some(element) = matrix.get_mut(place(next)) {
                    *element -= weight;
                }
            },
        );
    }
}

/// r_π(s) = Σ_a π(a|s) Σ_s' p(s'|s, a) r.
///
/// ```
/// use plumbline_core::bellman::{policy_model::policy_reward, mdp::{Mdp, Rewards, Transitions}};
/// let (p, r) = ([1.0, 1.0], [1.0, 3.0]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5)?;
/// assert_eq!(policy_reward(&mdp, 0, |action| [0.25, 0.75][action]), 2.5);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn policy_reward<R: Real>(mdp: &Mdp<'_, R>, state: usize, policy: impl Fn(usize) -> R) -> R {
    expected_value(mdp.actions(), policy, |action| mdp.expected_reward(state, action))
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy) = (Mdp::from_call(call)?, checked_policy(call)?);
    let mut rewards = call.output("policy_reward");
    let mut matrices = ["policy_transition", "discounted_transition"].map(|name| call.output(name));
    for matrix in matrices.iter_mut().flatten() {
        matrix.fill(R::zero());
    }
    let [whole, discounted] = &mut matrices;
    for state in 0..mdp.states() {
        let row = row_of(policy, mdp.actions(), state);
        set(&mut rewards, state, policy_reward(&mdp, state, |action| at(row, action)));
        let kept = |slot: usize| if mdp.ends(slot) { R::zero() } else { mdp.discount() };
        let accumulate = |matrix: &mut Option<&mut [R]>, weight: &dyn Fn(usize) -> R| {
            add_successors(
                &mdp,
                state,
                |action| at(row, action),
                weight,
                |next, weight| {
                    let element = matrix.as_deref_mut().and_then(|m| m.get_mut(state * mdp.states() + next));
                    if let Some(element) = element {
                        *element += weight;
                    }
                },
            );
        };
        accumulate(whole, &|_| R::one());
        accumulate(discounted, &kept);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.policy_model",
    family: Family::Bellman,
    title: "Transitions and rewards under a policy",
    summary: "The Markov reward process that a policy makes of a decision process.",
    formula: r"P_\pi(s'|s) = \sum_a \pi(a|s)\,p(s'|s,a),\quad r_\pi(s) = \sum_a \pi(a|s)\sum_{s'} p(s'|s,a)\,r",
    gradient: "",
    notes: "The value solves v = r_π + Γ v with the matrix Γ = γ(1 − done)P_π, in which ends of episodes are taken out. \
            Elements are added up in the order of actions and entries. No library differs.",
    sources: &[Source {
        title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
        reference: "Puterman 1994, ISBN 978-0-471-72782-8",
        place: "Section 5.6.1, Eq. 5.6.1-5.6.2",
    }],
    inputs: &[TRANSITION, REWARD, POLICY, NEXT_STATE, ROW_START, DONE],
    params: &[DISCOUNT],
    defaults: &[],
    outputs: &[
        OutputSpec::value("policy_reward", &["S"], "mean reward of each state"),
        OutputSpec::value("policy_transition", &["S", "S"], "probability of each successor, ends of episodes included"),
        OutputSpec::value(
            "discounted_transition",
            &["S", "S"],
            "discount factor times the probability of each successor from which the episode goes on",
        ),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn matrices_by_hand() {
        let case = Case::new(SPECS, "bellman.policy_model")
            .real("transition", &[2, 2, 2], &[0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
            .real("reward", &[2, 2, 2], &[1.0, 3.0, f64::NAN, 7.0, 4.0, 0.0, -1.0, 0.0])
            .mask("done", &[2, 2, 2], &[0, 0, 0, 1, 0, 0, 0, 0])
            .real("policy", &[2, 2], &[0.25, 0.75, 1.0, 0.0])
            .number("discount", 0.5);
        assert_eq!(case.get("policy_reward").unwrap(), [5.75, 4.0]);
        assert_eq!(case.get("policy_transition").unwrap(), [0.125, 0.875, 1.0, 0.0]);
        assert_eq!(case.get("discounted_transition").unwrap(), [0.0625, 0.0625, 0.5, 0.0]);
    }
}

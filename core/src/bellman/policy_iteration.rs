//! Policy iteration.

use super::conversion::q_from_v;
use super::evaluate_direct::{MATRIX, evaluate_direct};
use super::mdp::{
    ACTION, ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, STATE_VALUE, TRANSITION, at,
};
use super::value_iteration::GREEDY_POLICY;
use crate::Error;
use crate::batch::set;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// How policy iteration ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Improvement<R> {
    /// Evaluations that were made.
    pub evaluations: usize,
    /// max (T* v − v) of the last policy's value.
    pub residual: R,
    /// Whether no state had a better action left.
    pub stable: bool,
}

/// Evaluate a deterministic policy exactly, make it greedy, and repeat until no action is better by more than `tolerance`
/// (Howard 1960; Sutton & Barto 2018, §4.3).
///
/// `action` \[S\] holds the policy as numbers, the start and the result; `value` \[S\] receives its value; `matrix` [S, S] is
/// workspace. A state keeps its action unless another is better by more than the tolerance, then it takes the lowest of the
/// best: that rounding cannot make it go round among equal policies. Errors: `Singular` of `transition` where a policy on the
/// way has no finite value (γ = 1).
///
/// ```
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, policy_iteration::policy_iteration};
/// let (p, r, done) = ([1.0, 1.0], [1.0, 1.5], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let (mut action, mut value) = ([1.0], [0.0]);
/// let end = policy_iteration(&mdp, &mut action, &mut value, &mut [0.0], 0.0, 10)?;
/// assert_eq!((action, value), ([0.0], [2.0]));
/// assert_eq!((end.evaluations, end.residual, end.stable), (2, 0.0, true));
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn policy_iteration<R: Real>(
    mdp: &Mdp<'_, R>,
    action: &mut [R],
    value: &mut [R],
    matrix: &mut [R],
    tolerance: R,
    limit: usize,
) -> Result<Improvement<R>, Error> {
    let mut end = Improvement { evaluations: 0, residual: R::infinity(), stable: false };
    while end.evaluations < limit && !end.stable {
        let taken = |state: usize, candidate: usize| {
            if at(action, state) == R::from_count(candidate) { R::one() } else { R::zero() }
        };
        evaluate_direct(mdp, taken, matrix, value)?;
        end = Improvement { evaluations: end.evaluations + 1, residual: R::zero(), stable: true };
        for (state, slot) in action.iter_mut().enumerate() {
            let (best, highest) = mdp.best_action(state, value);
            let gain = highest - at(value, state);
            end.residual = gain.abs().larger(end.residual);
            let current = (0..mdp.actions()).find(|candidate| R::from_count(*candidate) == *slot).unwrap_or(0);
            if highest - mdp.action_value(state, current, value) > tolerance {
                end.stable = false;
                // At the limit the policy stays the one whose value is returned.
                if end.evaluations < limit {
                    *slot = R::from_count(best);
                }
            }
        }
    }
    Ok(end)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mdp = Mdp::from_call(call)?;
    let initial = if call.has(INITIAL_ACTION.name) { Some(call.index(INITIAL_ACTION.name)?) } else { None };
    let [value, action, matrix] =
        [call.workspace(STATE_VALUE.name)?, call.workspace(ACTION.name)?, call.workspace(MATRIX.name)?];
    for (state, slot) in action.iter_mut().enumerate() {
        let start = initial.and_then(|initial| initial.get(state)).map_or(0, |action| *action as usize);
        *slot = R::from_count(start);
    }
    let (tolerance, limit) = (call.number("tolerance")?, call.integer("max_evaluations")?);
    let end = policy_iteration(&mdp, action, value, matrix, tolerance, limit)?;
    if let Some(q) = call.output(ACTION_VALUE.name) {
        q_from_v(&mdp, value, q);
    }
    let mut policy = call.output(GREEDY_POLICY.name);
    for (state, taken) in action.iter().enumerate() {
        for candidate in 0..mdp.actions() {
            let probability = if *taken == R::from_count(candidate) { R::one() } else { R::zero() };
            set(&mut policy, state * mdp.actions() + candidate, probability);
        }
    }
    let remaining = R::one() - mdp.discount();
    let bound = if end.residual == R::zero() { R::zero() } else { end.residual / remaining };
    call.write("evaluations", R::from_count(end.evaluations));
    call.write("residual", end.residual);
    call.write("error_bound", bound);
    call.write("converged", if end.stable { R::one() } else { R::zero() });
    Ok(())
}

const INITIAL_ACTION: InputSpec = InputSpec::new(
    "initial_action",
    Domain::Index("A"),
    &[&["S"]],
    "action that each state starts with; the first without it",
)
.optional();

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.policy_iteration",
    family: Family::Bellman,
    title: "Policy iteration",
    summary: "Exact evaluation and greedy improvement in turn until no action is better.",
    formula: r"v_k = v_{\pi_k},\quad \pi_{k+1}(s) \in \arg\max_a q_{\pi_k}(s,a)",
    gradient: "",
    notes: "Values never decrease from one policy to the next. A state keeps its action unless another is better by more than \
            the tolerance; a change goes to the lowest of the best actions. `error_bound` is residual/(1 − γ), infinite for γ = 1 \
            unless the residual is 0. At the limit of evaluations the policy is the one whose value is returned. With γ = 1 \
            the first policy has to reach an end from every state. No library differs.",
    sources: &[
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Section 4.3",
        },
        Source {
            title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
            reference: "Puterman 1994, ISBN 978-0-471-72782-8",
            place: "Section 6.4, Theorem 6.4.2",
        },
    ],
    inputs: &[TRANSITION, REWARD, NEXT_STATE, ROW_START, DONE, INITIAL_ACTION],
    params: &[
        DISCOUNT,
        ParamSpec::number(
            "tolerance",
            r"\theta",
            1e-9,
            Range::NON_NEGATIVE,
            "an action changes where another is better by more than this (units of the return)",
        ),
        ParamSpec::integer(
            "max_evaluations",
            "K",
            1000,
            1,
            1_000_000_000,
            "the iteration stops after this many policies",
        ),
    ],
    defaults: &[],
    outputs: &[
        STATE_VALUE,
        ACTION_VALUE,
        OutputSpec::value("policy", &["S", "A"], "1 for the action of each state, 0 for the others"),
        OutputSpec::value("action", &["S"], "action of each state").workspace(),
        OutputSpec::value("residual", &[], "largest |T* v − v| of the result"),
        OutputSpec::value("evaluations", &[], "policies that were evaluated"),
        OutputSpec::value("error_bound", &[], "largest possible distance from the optimal value"),
        OutputSpec::value("converged", &[], "1 where no action is better by more than the tolerance, else 0"),
        MATRIX,
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::mdp::testing::processes;
    use super::super::sweep::Stopping;
    use super::super::value_iteration::value_iteration;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_never_decrease_and_end_at_the_optimum(process in processes()) {
            let mdp = process.view();
            let states = process.states;
            // Values stay below 100; an evaluation's backward error is amplified by at most 1/(1 − γ) = 50.
            let rounding = 50.0 * 256.0 * f64::EPSILON * 100.0;
            let (mut action, mut value, mut matrix) = ([0.0; 4], [0.0; 4], [0.0; 16]);
            let mut last: Option<[f64; 4]> = None;
            for limit in 1..30 {
                let mut start = [0.0; 4];
                let end = policy_iteration(
                    &mdp, &mut start[..states], &mut value[..states], &mut matrix[..states * states], 1e-9, limit,
                ).unwrap();
                if let Some(last) = last {
                    prop_assert!((0..states).all(|state| value[state] >= last[state] - rounding));
                }
                last = Some(value);
                action = start;
                if end.stable {
                    break;
                }
                prop_assert!(limit < 29);
            }
            let mut best = [0.0; 4];
            value_iteration(&mdp, &mut best[..states], None, Stopping { tolerance: 0.0, limit: 5000 });
            for state in 0..states {
                // Within tolerance/(1 − γ) of the optimum.
                prop_assert!((best[state] - value[state]).abs() <= 50.0 * 1e-9 + rounding);
                prop_assert!(action[state] < process.actions as f64);
            }
        }
    }
}

//! Modified (truncated) policy iteration.

use super::mdp::{
    ACTION, ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, STATE_VALUE, TRANSITION, at,
};
use super::sweep::{
    self, CONVERGED, ERROR_BOUND, INITIAL_VALUE, MAX_SWEEPS, Outcome, RESIDUAL, Stopping, TOLERANCE, iterate,
};
use super::value_iteration::{GREEDY_POLICY, write_greedy};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, ParamSpec, Source, evaluate_with};

/// v ← (T_π)^m v with π greedy for v, until T* changes v by no more than the tolerance (Puterman & Shin 1978).
///
/// `value` \[S\] holds the start and the result, which is T* of the last values; `previous` and `action` \[S\] are workspace;
/// `evaluation_sweeps` is m ≥ 1. m = 1 is value iteration, m → ∞ policy iteration. All sweeps are synchronous.
///
/// ```
/// use plumbline_core::bellman::modified_policy_iteration::modified_policy_iteration;
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, sweep::Stopping};
/// let (p, r, done) = ([1.0, 1.0], [1.0, 1.5], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let (mut value, mut previous, mut action) = ([1.5], [0.0], [0.0]);
/// let stopping = Stopping { tolerance: 0.125, limit: 10 };
/// let outcome = modified_policy_iteration(&mdp, &mut value, &mut previous, &mut action, 2, stopping);
/// assert_eq!(value, [1.9375]); // 1.5; 1.75, 1.875; 1.9375
/// assert_eq!((outcome.iterations, outcome.residual), (2, 0.0625));
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn modified_policy_iteration<R: Real>(
    mdp: &Mdp<'_, R>,
    value: &mut [R],
    previous: &mut [R],
    action: &mut [R],
    evaluation_sweeps: usize,
    stopping: Stopping<R>,
) -> Outcome<R> {
    turns(stopping, evaluation_sweeps, |sweep| match sweep {
        Sweep::Improve => sweep::synchronous_sweep(value, previous, |values, new| {
            mdp.best_actions(0, values, new, |state, best| {
                if let Some(slot) = action.get_mut(state) {
                    *slot = R::from_count(best);
                }
            });
        }),
        Sweep::Evaluate => sweep::sweep(value, Some(previous), |state, values| {
            mdp.action_value(state, at(action, state).to_f64() as usize, values)
        }),
    })
}

/// A sweep of modified policy iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// T*: the best actions are taken and remembered.
    Improve,
    /// T_π of the remembered actions.
    Evaluate,
}

/// The order of the sweeps, each of which returns its largest change: one that improves, then `evaluation_sweeps` − 1 that
/// evaluate, until one that improves changes little.
pub fn turns<R: Real>(
    stopping: Stopping<R>,
    evaluation_sweeps: usize,
    mut sweep: impl FnMut(Sweep) -> R,
) -> Outcome<R> {
    iterate(stopping, || {
        let residual = sweep(Sweep::Improve);
        if residual > stopping.tolerance {
            for _ in 1..evaluation_sweeps {
                sweep(Sweep::Evaluate);
            }
        }
        residual
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mdp = Mdp::from_call(call)?;
    let value = sweep::started(call)?;
    let (previous, action) = (call.workspace("previous_value")?, call.workspace("evaluated_action")?);
    let sweeps = call.integer("evaluation_sweeps")?;
    let outcome = modified_policy_iteration(&mdp, value, previous, action, sweeps, sweep::stopping(call)?);
    sweep::report(call, outcome, mdp.discount());
    call.write("improvements", R::from_count(outcome.iterations));
    write_greedy(call, &mdp, value);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.modified_policy_iteration",
    family: Family::Bellman,
    title: "Modified policy iteration",
    summary: "Greedy improvement and a few sweeps of evaluation in turn, between value and policy iteration.",
    formula: r"v_{k+1} = (T_{\pi_k})^m\, v_k,\quad \pi_k \text{ greedy for } v_k",
    gradient: "",
    notes: "The first sweep of each turn is the optimality operator's; its largest change is the residual. Once that is within \
            the tolerance the turn ends there, so that the bound γ/(1 − γ) times the residual holds for the result. \
            `max_sweeps` counts turns. The printed action and policy are greedy for the result. No library differs.",
    sources: &[Source {
        title: "Modified Policy Iteration Algorithms for Discounted Markov Decision Problems",
        reference: "Puterman and Shin 1978, doi:10.1287/mnsc.24.11.1127",
        place: "Section 2, the algorithm",
    }],
    inputs: &[TRANSITION, REWARD, NEXT_STATE, ROW_START, DONE, INITIAL_VALUE],
    params: &[
        DISCOUNT,
        TOLERANCE,
        MAX_SWEEPS,
        ParamSpec::integer(
            "evaluation_sweeps",
            "m",
            5,
            1,
            1_000_000_000,
            "sweeps per turn, the improving one included",
        ),
    ],
    defaults: &[],
    outputs: &[
        STATE_VALUE,
        ACTION_VALUE,
        GREEDY_POLICY,
        ACTION,
        RESIDUAL,
        OutputSpec::value("improvements", &[], "turns that were made"),
        ERROR_BOUND,
        CONVERGED,
        OutputSpec::value("previous_value", &["S"], "values before the last sweep").workspace(),
        OutputSpec::value("evaluated_action", &["S"], "action of each state in the last turn's policy").workspace(),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::mdp::testing::processes;
    use super::super::mdp::{error_bound, max_distance};
    use super::super::value_iteration::value_iteration;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_sweep_is_value_iteration_and_more_reach_the_same_values(process in processes(), sweeps in 1usize..8) {
            let mdp = process.view();
            let states = process.states;
            let run = |sweeps: usize, limit: usize| {
                let (mut value, mut previous, mut action) = ([0.0; 4], [0.0; 4], [0.0; 4]);
                let stopping = Stopping { tolerance: 0.0, limit };
                let outcome = modified_policy_iteration(
                    &mdp, &mut value[..states], &mut previous[..states], &mut action[..states], sweeps, stopping,
                );
                (value, outcome)
            };
            let (mut value, mut previous) = ([0.0; 4], [0.0; 4]);
            let stopping = Stopping { tolerance: 0.0, limit: 17 };
            let outcome = value_iteration(&mdp, &mut value[..states], Some(&mut previous[..states]), stopping);
            prop_assert_eq!(run(1, 17), (value, outcome));
            // 5000 turns at γ < 0.98 leave only rounding, amplified by at most 50.
            let rounding = 50.0 * 64.0 * f64::EPSILON * 100.0;
            let (fixed, end) = run(1, 5000);
            let (other, _) = run(sweeps, 5000);
            prop_assert!(max_distance(&other, &fixed) <= error_bound(end.residual, process.discount) + 2.0 * rounding);
        }
    }
}

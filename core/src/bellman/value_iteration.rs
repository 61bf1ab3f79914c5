//! Value iteration.

use super::conversion::q_from_v;
use super::mdp::{ACTION, ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, STATE_VALUE, TRANSITION};
use super::sweep::{
    self, CONVERGED, ERROR_BOUND, IN_PLACE, INITIAL_VALUE, MAX_SWEEPS, Outcome, PREVIOUS, RESIDUAL, SWEEPS, Stopping,
    TOLERANCE, iterate,
};
use crate::Error;
use crate::batch::set;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with};

/// v ← T* v until the largest change is within the tolerance (Sutton & Barto 2018, §4.4).
///
/// `value` \[S\] holds the start and the result; `previous` \[S\] makes the sweeps synchronous, without it they are in place.
///
/// ```
/// use plumbline_core::bellman::value_iteration::value_iteration;
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, sweep::Stopping};
/// // Stay for 1, or end for 1.5.
/// let (p, r, done) = ([1.0, 1.0], [1.0, 1.5], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let mut value = [0.0];
/// let outcome = value_iteration(&mdp, &mut value, None, Stopping { tolerance: 0.125, limit: 10 });
/// assert_eq!(value, [1.875]); // 1.5, 1.75, 1.875; the exact value is 2
/// assert_eq!((outcome.iterations, outcome.residual), (3, 0.125));
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn value_iteration<R: Real>(
    mdp: &Mdp<'_, R>,
    value: &mut [R],
    mut previous: Option<&mut [R]>,
    stopping: Stopping<R>,
) -> Outcome<R> {
    iterate(stopping, || match previous.as_deref_mut() {
        Some(previous) => {
            sweep::synchronous_sweep(value, previous, |values, new| mdp.best_actions(0, values, new, |_, _| ()))
        }
        None => sweep::sweep(value, None, |state, values| mdp.best_action(state, values).1),
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mdp = Mdp::from_call(call)?;
    let (value, previous) = (sweep::started(call)?, sweep::previous(call)?);
    let outcome = value_iteration(&mdp, value, previous, sweep::stopping(call)?);
    sweep::report(call, outcome, mdp.discount());
    write_greedy(call, &mdp, value);
    Ok(())
}

/// Write the action values of a value function, its greedy actions and the policy that takes them.
pub(super) fn write_greedy<R: Real>(call: &mut Call<'_, R>, mdp: &Mdp<'_, R>, value: &[R]) {
    if let Some(q) = call.output(ACTION_VALUE.name) {
        q_from_v(mdp, value, q);
    }
    let (mut chosen, mut policy) = (call.output(ACTION.name), call.output(GREEDY_POLICY.name));
    for state in 0..mdp.states() {
        let (best, _) = mdp.best_action(state, value);
        set(&mut chosen, state, R::from_count(best));
        for action in 0..mdp.actions() {
            let probability = if action == best { R::one() } else { R::zero() };
            set(&mut policy, state * mdp.actions() + action, probability);
        }
    }
}

/// The policy that takes the greedy actions.
pub(super) const GREEDY_POLICY: OutputSpec =
    OutputSpec::value("policy", &["S", "A"], "1 for the greedy action of each state, 0 for the others");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.value_iteration",
    family: Family::Bellman,
    title: "Value iteration",
    summary: "Sweeps of the Bellman optimality operator, synchronous or in place, until little changes.",
    formula: r"v_{k+1} = T^* v_k,\quad \lVert v_{k+1} - v^*\rVert_\infty \le \frac{\gamma}{1 - \gamma}\lVert v_{k+1} - v_k\rVert_\infty",
    gradient: "",
    notes: "The policy is greedy with respect to the result; its value is within twice the bound of the optimum. Reaching the \
            limit of sweeps is no error: `converged` tells. The bound is that of exact arithmetic. Ties go to the lowest \
            action. No library differs.",
    sources: &[
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Section 4.4, Eq. 4.10",
        },
        Source {
            title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
            reference: "Puterman 1994, ISBN 978-0-471-72782-8",
            place: "Theorem 6.3.1",
        },
    ],
    inputs: &[TRANSITION, REWARD, NEXT_STATE, ROW_START, DONE, INITIAL_VALUE],
    params: &[DISCOUNT, TOLERANCE, MAX_SWEEPS, IN_PLACE],
    defaults: &[],
    outputs: &[STATE_VALUE, ACTION_VALUE, GREEDY_POLICY, ACTION, RESIDUAL, SWEEPS, ERROR_BOUND, CONVERGED, PREVIOUS],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::mdp::testing::processes;
    use super::super::mdp::{Rewards, Transitions, error_bound, max_distance};
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn a_corridor_by_hand_and_a_missing_workspace() {
        // States 0, 1, 2 in a row; left and right; entering 2 ends with reward 1.
        let case = Case::new(SPECS, "bellman.value_iteration")
            .real("transition", &[6], &[1.0; 6])
            .index("next_state", &[6], &[0, 1, 0, 2, 2, 2])
            .index("row_start", &[3, 2], &[0, 1, 2, 3, 4, 5])
            .real("reward", &[6], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
            .mask("done", &[6], &[0, 0, 0, 1, 1, 1])
            .number("discount", 0.5);
        assert_eq!(case.get("q"), Err(Error::MissingWorkspace { argument: "value" }));
        assert_eq!(case.get("value"), Err(Error::MissingWorkspace { argument: "previous_value" }));
        let p = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let done = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1];
        let rewards = Rewards::PerAction(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let mdp = Mdp::new([3, 2], Transitions::Dense(&p), rewards, Some(&done), 0.5).unwrap();
        let (mut value, mut previous) = ([0.0; 3], [0.0; 3]);
        let stopping = Stopping { tolerance: 0.0, limit: 100 };
        let outcome = value_iteration(&mdp, &mut value, Some(&mut previous), stopping);
        assert_eq!(value, [0.5, 1.0, 0.0]);
        assert_eq!(outcome, Outcome { iterations: 3, residual: 0.0, converged: true });
    }

    proptest! {
        #[test]
        fn the_fixed_point_solves_its_equation_and_the_bound_holds(process in processes(), limit in 1usize..40) {
            let mdp = process.view();
            let states = process.states;
            let run = |limit: usize, in_place: bool| {
                let (mut value, mut previous) = ([0.0; 4], [0.0; 4]);
                let before = if in_place { None } else { Some(&mut previous[..states]) };
                let outcome = value_iteration(&mdp, &mut value[..states], before, Stopping { tolerance: 0.0, limit });
                (value, outcome)
            };
            // 5000 sweeps at γ < 0.98 leave 100 · 0.98^5000 < 1e-41: only rounding.
            let rounding = 50.0 * 64.0 * f64::EPSILON * 100.0;
            let (fixed, _) = run(5000, false);
            for state in 0..states {
                prop_assert!((mdp.best_action(state, &fixed).1 - fixed[state]).abs() <= rounding / 50.0);
            }
            let mut distances = [0.0; 2];
            for (distance, in_place) in distances.iter_mut().zip([false, true]) {
                let (value, outcome) = run(limit, in_place);
                *distance = max_distance(&value[..states], &fixed[..states]);
                prop_assert!(*distance <= error_bound(outcome.residual, process.discount) + rounding);
            }
        }
    }
}

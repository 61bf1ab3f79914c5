//! Iterative policy evaluation.

use super::mdp::{DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, STATE_VALUE, TRANSITION, checked_policy};
use super::sweep::{
    self, CONVERGED, ERROR_BOUND, IN_PLACE, INITIAL_VALUE, MAX_SWEEPS, Outcome, PREVIOUS, RESIDUAL, SWEEPS, Stopping,
    TOLERANCE, iterate,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

/// v ← T_π v until the largest change is within the tolerance (Sutton & Barto 2018, §4.1).
///
/// `policy` [S, A]; `value` \[S\] holds the start and the result; `previous` \[S\] makes the sweeps synchronous, without it they
/// are in place. Both converge; in exact arithmetic the result is within γ/(1 − γ) times the residual of v_π.
///
/// ```
/// use plumbline_core::bellman::evaluate_iterative::evaluate_iterative;
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, sweep::{Outcome, Stopping}};
/// let (p, r) = ([1.0], [1.0]);
/// let mdp = Mdp::new([1, 1], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5)?;
/// let mut value = [0.0];
/// let outcome = evaluate_iterative(&mdp, &[1.0], &mut value, None, Stopping { tolerance: 0.25, limit: 10 });
/// assert_eq!(value, [1.75]); // 1, 1.5, 1.75; the exact value is 2
/// assert_eq!(outcome, Outcome { iterations: 3, residual: 0.25, converged: true });
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn evaluate_iterative<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: &[R],
    value: &mut [R],
    mut previous: Option<&mut [R]>,
    stopping: Stopping<R>,
) -> Outcome<R> {
    iterate(stopping, || {
        sweep::sweep(value, previous.as_deref_mut(), |state, values| mdp.state_value(state, policy, values))
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy) = (Mdp::from_call(call)?, checked_policy(call)?);
    let (value, previous) = (sweep::started(call)?, sweep::previous(call)?);
    let outcome = evaluate_iterative(&mdp, policy, value, previous, sweep::stopping(call)?);
    sweep::report(call, outcome, mdp.discount());
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.evaluate_iterative",
    family: Family::Bellman,
    title: "Iterative policy evaluation",
    summary: "Sweeps of the Bellman expectation operator, synchronous or in place, until little changes.",
    formula: r"v_{k+1} = T_\pi v_k,\quad \lVert v_{k+1} - v_\pi\rVert_\infty \le \frac{\gamma}{1 - \gamma}\lVert v_{k+1} - v_k\rVert_\infty",
    gradient: "",
    notes: "Reaching the limit of sweeps is no error: `converged` tells. The bound holds for both kinds of sweep in exact \
            arithmetic; rounding adds about (γ/(1 − γ)) times an ulp of the values. With γ = 1 an episode has to end for the \
            values to settle. No library differs.",
    sources: &[
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Section 4.1, iterative policy evaluation",
        },
        Source {
            title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
            reference: "Puterman 1994, ISBN 978-0-471-72782-8",
            place: "Theorem 6.3.1 (the bound), section 6.3.3 (Gauss-Seidel)",
        },
    ],
    inputs: &[TRANSITION, REWARD, POLICY, NEXT_STATE, ROW_START, DONE, INITIAL_VALUE],
    params: &[DISCOUNT, TOLERANCE, MAX_SWEEPS, IN_PLACE],
    defaults: &[],
    outputs: &[STATE_VALUE, RESIDUAL, SWEEPS, ERROR_BOUND, CONVERGED, PREVIOUS],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::evaluate_direct::evaluate_direct;
    use super::super::mdp::testing::{policy, processes};
    use super::super::mdp::{error_bound, max_distance};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bound_holds_in_both_kinds_of_sweep(
            process in processes(), seed in prop::collection::vec(0.0f64..1.0, 12), limit in 1usize..40, in_place: bool
        ) {
            let (mdp, policy) = (process.view(), policy(&process, &seed));
            let states = process.states;
            let (mut matrix, mut exact) = ([0.0; 16], [0.0; 4]);
            let probability = |s: usize, a: usize| policy[s * process.actions + a];
            evaluate_direct(&mdp, probability, &mut matrix[..states * states], &mut exact[..states]).unwrap();
            let (mut value, mut previous) = ([0.0; 4], [0.0; 4]);
            let before = if in_place { None } else { Some(&mut previous[..states]) };
            let stopping = Stopping { tolerance: 0.0, limit };
            let outcome = evaluate_iterative(&mdp, &policy, &mut value[..states], before, stopping);
            let bound = error_bound(outcome.residual, process.discount);
            // Values stay below 100; the rounding of a sweep is amplified by at most 1/(1 − γ) = 50.
            let rounding = 50.0 * 64.0 * f64::EPSILON * 100.0;
            prop_assert!(max_distance(&value[..states], &exact[..states]) <= bound + rounding);
        }
    }
}

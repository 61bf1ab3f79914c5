//! Policy evaluation in closed form.

use super::mdp::{
    DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, STATE_VALUE, TRANSITION, at, checked_policy,
};
use super::policy_model::{evaluation_system, policy_reward};
use crate::Error;
use crate::num::{Real, solve_linear};
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with};

/// v_π = (I − γ(1 − done) P_π)⁻¹ r_π, by elimination with partial pivoting in the caller's `matrix` [S, S].
///
/// `policy` [S, A]; `value` \[S\]. With γ = 1 a policy under which some state never reaches an end has no finite value: the
/// error `Singular` of `transition`.
///
/// ```
/// use plumbline_core::bellman::{evaluate_direct::evaluate_direct, mdp::{Mdp, Rewards, Transitions}};
/// let (p, r) = ([0.0, 1.0, 0.0, 1.0], [1.0, 2.0]);
/// let mdp = Mdp::new([2, 1], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5)?;
/// let (mut matrix, mut value) = ([0.0; 4], [0.0; 2]);
/// evaluate_direct(&mdp, |_, _| 1.0, &mut matrix, &mut value)?;
/// assert_eq!(value, [3.0, 4.0]); // 2/(1 − ½) = 4; 1 + ½·4 = 3
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn evaluate_direct<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: impl Fn(usize, usize) -> R,
    matrix: &mut [R],
    value: &mut [R],
) -> Result<(), Error> {
    evaluation_system(mdp, &policy, false, matrix);
    for (state, slot) in value.iter_mut().enumerate() {
        *slot = policy_reward(mdp, state, |action| policy(state, action));
    }
    solve_linear(TRANSITION.name, matrix, value)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy) = (Mdp::from_call(call)?, checked_policy(call)?);
    let (value, matrix) = (call.workspace(STATE_VALUE.name)?, call.workspace(MATRIX.name)?);
    evaluate_direct(&mdp, |state, action| at(policy, state * mdp.actions() + action), matrix, value)?;
    let residual = (0..mdp.states()).fold(R::zero(), |largest, state| {
        (mdp.state_value(state, policy, value) - at(value, state)).abs().larger(largest)
    });
    call.write("residual", residual);
    Ok(())
}

/// The workspace of the elimination.
pub(super) const MATRIX: OutputSpec = OutputSpec::value(
    "matrix",
    &["S", "S"],
    "what the elimination leaves of the system's matrix, its triangular factor and junk below it",
)
.workspace();

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.evaluate_direct",
    family: Family::Bellman,
    title: "Policy evaluation in closed form",
    summary: "The value of a policy as the solution of its linear Bellman equation.",
    formula: r"v_\pi = (I - \gamma(1 - d)P_\pi)^{-1}\,r_\pi",
    gradient: "",
    notes: "Gaussian elimination with partial pivoting, S³/3 multiplications. `residual` tells how well the result solves its \
            equation; its distance from the exact value is at most residual/(1 − γ). With γ = 1 a policy that never reaches an \
            end from some state is singular. No library differs.",
    sources: &[
        Source {
            title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
            reference: "Puterman 1994, ISBN 978-0-471-72782-8",
            place: "Theorem 6.1.1",
        },
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Section 4.1",
        },
    ],
    inputs: &[TRANSITION, REWARD, POLICY, NEXT_STATE, ROW_START, DONE],
    params: &[DISCOUNT],
    defaults: &[],
    outputs: &[STATE_VALUE, OutputSpec::value("residual", &[], "largest |T_π v − v| of the result"), MATRIX],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::mdp::testing::{policy, processes};
    use super::super::mdp::{Rewards, Transitions};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_endless_undiscounted_process_is_singular() {
        let mdp = Mdp::new([1, 1], Transitions::Dense(&[1.0]), Rewards::PerAction(&[1.0]), None, 1.0).unwrap();
        let result = evaluate_direct(&mdp, |_, _| 1.0, &mut [0.0], &mut [0.0]);
        assert_eq!(result, Err(Error::Singular { argument: "transition", index: 0 }));
        let ends = Mdp::new([1, 1], Transitions::Dense(&[1.0]), Rewards::PerAction(&[1.0]), Some(&[1]), 1.0).unwrap();
        let mut value = [0.0];
        assert_eq!(evaluate_direct(&ends, |_, _| 1.0, &mut [0.0], &mut value), Ok(()));
        assert_eq!(value, [1.0]);
    }

    proptest! {
        #[test]
        fn the_result_solves_its_equation(process in processes(), seed in prop::collection::vec(0.0f64..1.0, 12)) {
            let (mdp, policy) = (process.view(), policy(&process, &seed));
            let (mut matrix, mut value) = ([0.0; 16], [0.0; 4]);
            let states = process.states;
            let probability = |s: usize, a: usize| policy[s * process.actions + a];
            evaluate_direct(&mdp, probability, &mut matrix[..states * states], &mut value[..states]).unwrap();
            for state in 0..states {
                // Rewards below 2 and γ < 0.98 keep values below 100; backward error of a 4 × 4 elimination.
                let backup = mdp.state_value(state, &policy, &value);
                prop_assert!((backup - value[state]).abs() < 256.0 * f64::EPSILON * 100.0);
            }
        }
    }
}

//! Policy evaluation in closed form by the factorisation of a linear-algebra library.

use nalgebra::{DMatrix, DVector};
use plumbline_core::Error;
use plumbline_core::bellman::mdp::Mdp;
use plumbline_core::bellman::policy_model::{evaluation_system, policy_reward};

/// v_π = (I − γ(1 − done) P_π)⁻¹ r_π, the system being the core's and the solution nalgebra's (LU with partial pivoting).
///
/// `policy(s, a)` are the probabilities; `value` \[S\]. Memory for the matrix [S, S] is allocated. The core's own elimination
/// needs none and differs in the last bits. A pivot of at most S·ε times the matrix's largest element is the error
/// `Singular` of `transition`, as there.
pub fn evaluate_direct(
    mdp: &Mdp<'_, f64>,
    policy: impl Fn(usize, usize) -> f64,
    value: &mut [f64],
) -> Result<(), Error> {
    let states = mdp.states();
    if value.len() != states {
        return Err(Error::LengthMismatch { argument: "value", expected: states, got: value.len() });
    }
    let mut system = vec![0.0; states * states];
    evaluation_system(mdp, &policy, false, &mut system);
    let matrix = DMatrix::from_row_slice(states, states, &system);
    let rewards = DVector::from_fn(states, |state, _| policy_reward(mdp, state, |action| policy(state, action)));
    let threshold = matrix.amax() * states as f64 * f64::EPSILON;
    let factors = matrix.lu();
    let pivots = factors.u().diagonal();
    let argument = "transition";
    if let Some(index) = pivots.iter().position(|pivot| !(pivot.abs() > threshold && pivot.is_finite())) {
        return Err(Error::Singular { argument, index });
    }
    let solution = factors.solve(&rewards).ok_or(Error::Singular { argument, index: states - 1 })?;
    if let Some(index) = solution.iter().position(|value| !value.is_finite()) {
        return Err(Error::Singular { argument, index });
    }
    value.copy_from_slice(solution.as_slice());
    Ok(())
}

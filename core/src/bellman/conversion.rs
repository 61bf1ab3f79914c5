//! Action values from state values and back.

use super::mdp::{
    ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, STATE_VALUE, TRANSITION, VALUE, at, best,
    checked_policy, expected_value,
};
use crate::Error;
use crate::batch::row_of;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, Source, evaluate_with};

/// q(s, a) = Σ_s' p(s'|s, a) [r + γ (1 − done) v(s')] for every pair (Sutton & Barto 2018, Eq. 4.6).
///
/// ```
/// use plumbline_core::bellman::{conversion::q_from_v, mdp::{Mdp, Rewards, Transitions}};
/// let (p, r, done) = ([1.0, 1.0], [1.0, 3.0], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let mut q = [0.0; 2];
/// q_from_v(&mdp, &[6.0], &mut q);
/// assert_eq!(q, [4.0, 3.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn q_from_v<R: Real>(mdp: &Mdp<'_, R>, value: &[R], action_value: &mut [R]) {
    for (pair, slot) in action_value.iter_mut().enumerate() {
        let (state, action) = mdp.pair(pair);
        *slot = mdp.action_value(state, action, value);
    }
}

/// v(s) = Σ_a π(a|s) q(s, a) of one state's row, or max_a q(s, a) without a policy (Sutton & Barto 2018, Eq. 3.12–3.18).
///
/// ```
/// use plumbline_core::bellman::conversion::v_from_q;
/// assert_eq!(v_from_q(&[4.0, 8.0], Some(&[0.75, 0.25])), 5.0);
/// assert_eq!(v_from_q(&[4.0, 8.0], None), 8.0);
/// ```
pub fn v_from_q<R: Real>(action_values: &[R], policy: Option<&[R]>) -> R {
    match policy {
        Some(policy) => {
            expected_value(action_values.len(), |action| at(policy, action), |action| at(action_values, action))
        }
        None => best(action_values.len(), |action| at(action_values, action)).1,
    }
}

fn evaluate_q_from_v<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, value) = (Mdp::from_call(call)?, call.finite(VALUE.name)?);
    q_from_v(&mdp, value, call.output(ACTION_VALUE.name).unwrap_or(&mut []));
    Ok(())
}

fn evaluate_v_from_q<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (values, actions) = (call.finite(ACTION_VALUE.name)?, call.dim("A"));
    if actions == 0 {
        return Err(Error::EmptyMask { argument: ACTION_VALUE.name });
    }
    let policy = if call.has(POLICY.name) { Some(checked_policy(call)?) } else { None };
    for (state, slot) in call.output(STATE_VALUE.name).unwrap_or(&mut []).iter_mut().enumerate() {
        *slot = v_from_q(row_of(values, actions, state), policy.map(|policy| row_of(policy, actions, state)));
    }
    Ok(())
}

const SUTTON: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
    place: "Eq. 4.6; exercises 3.12-3.13, 3.18-3.19",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "bellman.q_from_v",
        family: Family::Bellman,
        title: "Action values from state values",
        summary: "The value of each action by looking one step ahead.",
        formula: r"q(s,a) = \sum_{s'} p(s'|s,a)\,[r + \gamma(1 - d)\,v(s')]",
        gradient: "",
        notes: "What stands behind the end of an episode is not looked at. No library differs.",
        sources: &[SUTTON],
        inputs: &[TRANSITION, REWARD, VALUE, NEXT_STATE, ROW_START, DONE],
        params: &[DISCOUNT],
        defaults: &[],
        outputs: &[ACTION_VALUE],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_q_from_v),
    },
    Operation {
        id: "bellman.v_from_q",
        family: Family::Bellman,
        title: "State values from action values",
        summary: "The value of each state as its policy's mean action value, or as the largest one without a policy.",
        formula: r"v(s) = \sum_a \pi(a|s)\,q(s,a) \quad\text{or}\quad \max_a q(s,a)",
        gradient: "",
        notes: "An action of probability 0 is not looked at. No library differs.",
        sources: &[SUTTON],
        inputs: &[
            InputSpec::new("q", Domain::Value, &[&["S", "A"]], "value of each action in each state"),
            POLICY.optional(),
        ],
        params: &[],
        defaults: &[],
        outputs: &[STATE_VALUE],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_v_from_q),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn one_step_ahead_and_back() {
        let q = Case::new(SPECS, "bellman.q_from_v")
            .real("transition", &[5], &[0.5, 0.5, 1.0, 1.0, 1.0])
            .index("next_state", &[5], &[0, 1, 1, 0, 0])
            .index("row_start", &[2, 2], &[0, 2, 3, 4])
            .real("reward", &[5], &[1.0, 3.0, 7.0, 4.0, -1.0])
            .mask("done", &[5], &[0, 0, 1, 0, 0])
            .real("value", &[2], &[8.0, 4.0])
            .number("discount", 0.5);
        assert_eq!(q.get("q").unwrap(), [5.0, 7.0, 8.0, 3.0]);
        assert_eq!(q.get_f32("q").unwrap(), [5.0, 7.0, 8.0, 3.0]);
        let v = Case::new(SPECS, "bellman.v_from_q").real("q", &[2, 2], &[5.0, 7.0, 8.0, 3.0]);
        assert_eq!(v.get("value").unwrap(), [7.0, 8.0]);
        assert_eq!(v.real("policy", &[2, 2], &[0.25, 0.75, 1.0, 0.0]).get("value").unwrap(), [6.5, 8.0]);
    }
}

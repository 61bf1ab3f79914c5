//! The Bellman expectation operator T_π on state and on action values.

use super::mdp::{
    ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, STATE_VALUE, TRANSITION, VALUE, at,
    checked_policy, expected_value,
};
use crate::Error;
use crate::batch::row_of;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// (T_π v)(s) = Σ_a π(a|s) Σ_s' p(s'|s, a) [r + γ (1 − done) v(s')] (Sutton & Barto 2018, Eq. 4.5).
///
/// `policy` [S, A] are probabilities, `value` and `backup` \[S\]. T_π contracts by γ in the max norm and is monotone. Sums
/// are trees by position, over the successors and then over the actions. Lengths are the caller's; what is missing counts
/// as 0.
///
/// ```
/// use plumbline_core::bellman::{expectation::expectation_v, mdp::{Mdp, Rewards, Transitions}};
/// // One state, two actions: stay for 1, or end for 3.
/// let (p, r, done) = ([1.0, 1.0], [1.0, 3.0], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let mut backup = [0.0];
/// expectation_v(&mdp, &[0.5, 0.5], &[4.0], &mut backup);
/// assert_eq!(backup, [3.0]); // ½(1 + ½·4) + ½·3
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn expectation_v<R: Real>(mdp: &Mdp<'_, R>, policy: &[R], value: &[R], backup: &mut [R]) {
    for (state, slot) in backup.iter_mut().enumerate() {
        *slot = mdp.state_value(state, policy, value);
    }
}

/// (T_π q)(s, a) = Σ_s' p(s'|s, a) [r + γ (1 − done) Σ_a' π(a'|s') q(s', a')] (Sutton & Barto 2018, Eq. 4.4 for q).
///
/// `state_value` \[S\] receives Σ_a' π q of every state; the rest as in [`expectation_v`].
pub fn expectation_q<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: &[R],
    action_value: &[R],
    state_value: &mut [R],
    backup: &mut [R],
) {
    for (state, slot) in state_value.iter_mut().enumerate() {
        let [values, row] = [action_value, policy].map(|table| row_of(table, mdp.actions(), state));
        *slot = expected_value(mdp.actions(), |action| at(row, action), |action| at(values, action));
    }
    for (pair, slot) in backup.iter_mut().enumerate() {
        let (state, action) = mdp.pair(pair);
        *slot = mdp.action_value(state, action, state_value);
    }
}

fn evaluate_v<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy, value) = (Mdp::from_call(call)?, checked_policy(call)?, call.finite(VALUE.name)?);
    if let Some(backup) = call.output("backup") {
        expectation_v(&mdp, policy, value, backup);
    }
    Ok(())
}

fn evaluate_q<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy, q) = (Mdp::from_call(call)?, checked_policy(call)?, call.finite(ACTION_VALUE.name)?);
    let state_value = call.workspace(STATE_VALUE.name)?;
    expectation_q(&mdp, policy, q, state_value, call.output("backup").unwrap_or(&mut []));
    Ok(())
}

const NOTES: &str = "An action or a transition of probability 0 is not looked at, nor is what stands behind the end of an \
                     episode. The operator contracts by γ in the max norm. Values are limited to the finite numbers. No \
                     library differs.";
const SUTTON: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
    place: "Eq. 4.4-4.5",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "bellman.expectation_v",
        family: Family::Bellman,
        title: "Bellman expectation operator on state values",
        summary: "One synchronous backup of state values under a policy.",
        formula: r"(T_\pi v)(s) = \sum_a \pi(a|s) \sum_{s'} p(s'|s,a)\,[r + \gamma(1 - d)\,v(s')]",
        gradient: "",
        notes: NOTES,
        sources: &[SUTTON],
        inputs: &[TRANSITION, REWARD, POLICY, VALUE, NEXT_STATE, ROW_START, DONE],
        params: &[DISCOUNT],
        defaults: &[],
        outputs: &[OutputSpec::value("backup", &["S"], "backed-up value of each state")],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_v),
    },
    Operation {
        id: "bellman.expectation_q",
        family: Family::Bellman,
        title: "Bellman expectation operator on action values",
        summary: "One synchronous backup of action values under a policy.",
        formula: r"(T_\pi q)(s,a) = \sum_{s'} p(s'|s,a)\,\Big[r + \gamma(1 - d)\sum_{a'} \pi(a'|s')\,q(s',a')\Big]",
        gradient: "",
        notes: NOTES,
        sources: &[SUTTON],
        inputs: &[
            TRANSITION,
            REWARD,
            POLICY,
            InputSpec::new("q", Domain::Value, &[&["S", "A"]], "value of each action in each state"),
            NEXT_STATE,
            ROW_START,
            DONE,
        ],
        params: &[DISCOUNT],
        defaults: &[],
        outputs: &[
            OutputSpec::value("backup", &["S", "A"], "backed-up value of each action in each state"),
            OutputSpec::value("value", &["S"], "mean action value of each state before the backup").workspace(),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_q),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn on_two_states_by_hand() {
        let case = |id| {
            Case::new(SPECS, id)
                .real("transition", &[2, 2, 2], &[0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
                .real("reward", &[2, 2], &[2.0, 7.0, 4.0, -1.0])
                .mask("done", &[2, 2, 2], &[0, 0, 0, 1, 0, 0, 0, 0])
                .real("policy", &[2, 2], &[0.25, 0.75, 1.0, 0.0])
                .number("discount", 0.5)
        };
        let backup = case("bellman.expectation_v").real("value", &[2], &[8.0, 4.0]).get("backup");
        assert_eq!(backup.unwrap(), [6.5, 8.0]);
        let case = case("bellman.expectation_q").real("q", &[2, 2], &[2.0, 10.0, 4.0, 99.0]);
        assert_eq!(case.get("value").unwrap(), [8.0, 4.0]);
        assert_eq!(case.get("backup"), Err(Error::MissingWorkspace { argument: "value" }));
        let broken = case.real("policy", &[2, 2], &[0.75, 0.75, 1.0, 0.0]).get("value");
        assert!(matches!(broken, Err(Error::ElementOutOfRange { argument: "policy", value: 1.5, .. })));
    }

    #[test]
    fn action_values_agree_with_state_values() {
        use super::super::mdp::{Rewards, Transitions};
        let p = [0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
        let r = [2.0, 7.0, 4.0, -1.0];
        let mdp = Mdp::new([2, 2], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5).unwrap();
        let (mut value, mut backup) = ([0.0; 2], [0.0; 4]);
        expectation_q(&mdp, &[0.25, 0.75, 1.0, 0.0], &[2.0, 10.0, 4.0, 99.0], &mut value, &mut backup);
        assert_eq!((value, backup), ([8.0, 4.0], [5.0, 9.0, 8.0, 3.0]));
    }
}

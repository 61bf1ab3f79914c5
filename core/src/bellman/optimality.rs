//! The Bellman optimality operator T* on state and on action values.

use super::mdp::{
    ACTION, ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, STATE_VALUE, TRANSITION, VALUE, at, best,
};
use crate::Error;
use crate::batch::{row_of, set};
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// (T* v)(s) = max_a Σ_s' p(s'|s, a) [r + γ (1 − done) v(s')] (Sutton & Barto 2018, Eq. 4.10), and the lowest action that
/// attains it.
///
/// `value` \[S\]. T* contracts by γ in the max norm and is monotone.
///
/// ```
/// use plumbline_core::bellman::{optimality::optimality_v, mdp::{Mdp, Rewards, Transitions}};
/// let (p, r, done) = ([1.0, 1.0], [1.0, 3.0], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// assert_eq!(optimality_v(&mdp, 0, &[6.0]), (0, 4.0)); // stay: 1 + ½·6
/// assert_eq!(optimality_v(&mdp, 0, &[4.0]), (0, 3.0)); // a tie goes to the lower action
/// # Ok::<(), plumbline_core::Error>(())
/// ```
#[inline]
pub fn optimality_v<R: Real>(mdp: &Mdp<'_, R>, state: usize, value: &[R]) -> (usize, R) {
    mdp.best_action(state, value)
}

/// (T* q)(s, a) = Σ_s' p(s'|s, a) [r + γ (1 − done) max_a' q(s', a')] (Sutton & Barto 2018, Eq. 4.2).
///
/// `state_value` \[S\] receives max_a' q of every state.
pub fn optimality_q<R: Real>(mdp: &Mdp<'_, R>, action_value: &[R], state_value: &mut [R], backup: &mut [R]) {
    for (state, slot) in state_value.iter_mut().enumerate() {
        let row = row_of(action_value, mdp.actions(), state);
        (_, *slot) = best(row.len(), |action| at(row, action));
    }
    for (pair, slot) in backup.iter_mut().enumerate() {
        let (state, action) = mdp.pair(pair);
        *slot = mdp.action_value(state, action, state_value);
    }
}

fn evaluate_v<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, value) = (Mdp::from_call(call)?, call.finite(VALUE.name)?);
    let mut outputs = ["backup", ACTION.name, "ties"].map(|name| call.output(name));
    let [backups, actions, ties] = &mut outputs;
    for state in 0..mdp.states() {
        let (action, highest) = optimality_v(&mdp, state, value);
        set(backups, state, highest);
        set(actions, state, R::from_count(action));
        if ties.is_some() {
            let equal = (0..mdp.actions()).filter(|action| mdp.action_value(state, *action, value) == highest).count();
            set(ties, state, R::from_count(equal));
        }
    }
    Ok(())
}

fn evaluate_q<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, q) = (Mdp::from_call(call)?, call.finite(ACTION_VALUE.name)?);
    let state_value = call.workspace(STATE_VALUE.name)?;
    optimality_q(&mdp, q, state_value, call.output("backup").unwrap_or(&mut []));
    Ok(())
}

const SUTTON: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
    place: "Eq. 4.1-4.2, 4.10",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "bellman.optimality_v",
        family: Family::Bellman,
        title: "Bellman optimality operator on state values",
        summary: "One synchronous backup of state values by the best action.",
        formula: r"(T^* v)(s) = \max_a \sum_{s'} p(s'|s,a)\,[r + \gamma(1 - d)\,v(s')]",
        gradient: "",
        notes: "A tie goes to the lowest action; `ties` counts the actions whose values are equal to the bit. The operator \
                contracts by γ in the max norm. Values are limited to the finite numbers. No library differs.",
        sources: &[SUTTON],
        inputs: &[TRANSITION, REWARD, VALUE, NEXT_STATE, ROW_START, DONE],
        params: &[DISCOUNT],
        defaults: &[],
        outputs: &[
            OutputSpec::value("backup", &["S"], "backed-up value of each state"),
            ACTION,
            OutputSpec::value("ties", &["S"], "how many actions attain the maximum"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_v),
    },
    Operation {
        id: "bellman.optimality_q",
        family: Family::Bellman,
        title: "Bellman optimality operator on action values",
        summary: "One synchronous backup of action values by the best next action.",
        formula: r"(T^* q)(s,a) = \sum_{s'} p(s'|s,a)\,\big[r + \gamma(1 - d)\max_{a'} q(s',a')\big]",
        gradient: "",
        notes: "What stands behind the end of an episode is not looked at. The operator contracts by γ in the max norm. No \
                library differs.",
        sources: &[SUTTON],
        inputs: &[
            TRANSITION,
            REWARD,
            InputSpec::new("q", Domain::Value, &[&["S", "A"]], "value of each action in each state"),
            NEXT_STATE,
            ROW_START,
            DONE,
        ],
        params: &[DISCOUNT],
        defaults: &[],
        outputs: &[
            OutputSpec::value("backup", &["S", "A"], "backed-up value of each action in each state"),
            OutputSpec::value("value", &["S"], "largest action value of each state before the backup").workspace(),
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
    fn maximum_action_and_ties_by_hand() {
        // q = [[5, 7], [8, 3]] as in the tests of the process.
        let case = Case::new(SPECS, "bellman.optimality_v")
            .real("transition", &[2, 2, 2], &[0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
            .real("reward", &[2, 2], &[2.0, 7.0, 4.0, -1.0])
            .mask("done", &[2, 2, 2], &[0, 0, 0, 1, 0, 0, 0, 0])
            .real("value", &[2], &[8.0, 4.0])
            .number("discount", 0.5);
        assert_eq!(case.get("backup").unwrap(), [7.0, 8.0]);
        assert_eq!(case.get("action").unwrap(), [1.0, 0.0]);
        assert_eq!(case.get("ties").unwrap(), [1.0, 1.0]);
        let tied = case.real("reward", &[2, 2], &[4.0, 7.0, 4.0, -1.0]);
        assert_eq!(tied.get("action").unwrap(), [0.0, 0.0]);
        assert_eq!(tied.get("ties").unwrap(), [2.0, 1.0]);
    }

    #[test]
    fn action_values_by_hand() {
        use super::super::mdp::{Rewards, Transitions};
        let p = [0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
        let r = [2.0, 7.0, 4.0, -1.0];
        let mdp = Mdp::new([2, 2], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5).unwrap();
        let (mut value, mut backup) = ([0.0; 2], [0.0; 4]);
        optimality_q(&mdp, &[8.0, 2.0, -1.0, 4.0], &mut value, &mut backup);
        assert_eq!((value, backup), ([8.0, 4.0], [5.0, 9.0, 8.0, 3.0]));
    }
}

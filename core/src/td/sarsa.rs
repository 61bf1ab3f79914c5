//! Sarsa and expected Sarsa.

use crate::Error;
use crate::num::{Real, tree_sum_zip};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, Source, evaluate_with};
use crate::td::transition::{
    ACTION, D_Q, DISCOUNT, DONE, ERROR_LOSS, Estimate, HUBER_THRESHOLD, LOSS, Q, REWARD, TARGET, TD_ERROR, WEIGHT,
    ended, finite, finite_row, learn, one_step_target,
};

/// The mean action value under a policy, Σ_a π(a) Q(a). An action of probability 0 counts as 0.
///
/// ```
/// assert_eq!(plumbline_core::td::sarsa::expected_value(&[0.25, 0.75], &[4.0, 8.0]), 7.0);
/// ```
pub fn expected_value<R: Real>(policy: &[R], action_values: &[R]) -> R {
    tree_sum_zip(policy, action_values, |probability, value| *probability * *value)
}

fn evaluate_sarsa<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, next, done) = (call.finite("reward")?, call.real("next_q")?, call.optional_bytes("done"));
    let actions = call.index("next_action")?;
    let columns = call.dim("A");
    learn(call, Estimate::ActionValue, |_, n| {
        let bootstrap = if ended(done, n) {
            None
        } else {
            let action = actions.get(n).map_or(0, |action| *action as usize);
            Some(finite("next_q", next, n * columns + action)?)
        };
        Ok(one_step_target(finite("reward", rewards, n)?, discount, bootstrap))
    })
}

fn evaluate_expected<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, next, done) = (call.finite("reward")?, call.real("next_q")?, call.optional_bytes("done"));
    let policy = call.real("next_policy")?;
    let columns = call.dim("A");
    learn(call, Estimate::ActionValue, |_, n| {
        let bootstrap = if ended(done, n) {
            None
        } else {
            let values = finite_row("next_q", next, columns, n)?;
            let probabilities = finite_row("next_policy", policy, columns, n)?;
            if let Some(column) = probabilities.iter().position(|p| !(R::zero()..=R::one()).contains(p)) {
                return Err(Error::ElementOutOfRange {
                    argument: "next_policy",
                    index: n * columns + column,
                    value: crate::td::transition::at(probabilities, column).to_f64(),
                    legal: "in [0, 1]",
                });
            }
            Some(expected_value(probabilities, values))
        };
        Ok(one_step_target(finite("reward", rewards, n)?, discount, bootstrap))
    })
}

const NEXT_Q: InputSpec =
    InputSpec::new("next_q", Domain::Value, &[&["N", "A"]], "action values of the next state, constants");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.sarsa",
        family: Family::TemporalDifference,
        title: "Sarsa",
        summary: "The action's value is moved towards the reward plus the discounted value of the action taken next.",
        formula: r"y = r + \gamma(1 - d)\,Q(s', a'),\quad \delta = y - Q(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: r"\partial L/\partial Q(s, a) = -\frac{w}{N}\,\ell'(\delta)",
        notes: "On-policy: a′ is the action that the behaviour policy took. No dialects.",
        sources: &[Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Eq. 6.7",
        }],
        inputs: &[
            Q,
            ACTION,
            REWARD,
            NEXT_Q,
            InputSpec::new("next_action", Domain::Index("A"), &[&["N"]], "the action taken in the next state"),
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &[],
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_sarsa),
    },
    Operation {
        id: "td.expected_sarsa",
        family: Family::TemporalDifference,
        title: "Expected Sarsa",
        summary: "The action's value is moved towards the reward plus the policy's mean value of the next state, discounted.",
        formula: r"y = r + \gamma(1 - d)\sum_{a'}\pi(a'|s')\,Q(s', a'),\quad \delta = y - Q(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: r"\partial L/\partial Q(s, a) = -\frac{w}{N}\,\ell'(\delta)",
        notes: "With a greedy policy it is Q-learning. Probabilities are taken as given, they are not normalised. No dialects.",
        sources: &[Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Eq. 6.9",
        }],
        inputs: &[
            Q,
            ACTION,
            REWARD,
            NEXT_Q,
            InputSpec::new(
                "next_policy",
                Domain::Probability,
                &[&["N", "A"]],
                "the policy's probabilities in the next state",
            ),
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &[],
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_expected),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    fn case(id: &str) -> Case {
        Case::new(SPECS, id)
            .real("q", &[2, 2], &[2.0, 5.0, 1.0, 0.0])
            .index("action", &[2], &[0, 1])
            .real("reward", &[2], &[1.0, 3.0])
            .real("next_q", &[2, 2], &[4.0, 8.0, f64::NAN, f64::INFINITY])
            .mask("done", &[2], &[0, 1])
            .number("discount", 0.5)
    }

    #[test]
    fn targets_and_gradients() {
        let sarsa = case("td.sarsa").index("next_action", &[2], &[1, 0]);
        assert_eq!(sarsa.get("target").unwrap(), [5.0, 3.0]);
        assert_eq!(sarsa.get("d_q").unwrap(), [-1.5, 0.0, 0.0, -1.5]);
        sarsa.check_gradient("q");
        let expected = case("td.expected_sarsa").real("next_policy", &[2, 2], &[0.25, 0.75, f64::NAN, 0.0]);
        assert_eq!(expected.get("target").unwrap(), [4.5, 3.0]);
        expected.check_gradient("q");
        let illegal = expected.real("next_policy", &[2, 2], &[1.25, 0.0, 0.0, 0.0]).get("loss");
        let argument = "next_policy";
        assert_eq!(illegal, Err(Error::ElementOutOfRange { argument, index: 0, value: 1.25, legal: "in [0, 1]" }));
    }
}

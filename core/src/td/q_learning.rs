//! Q-learning and double Q-learning, tabular and with networks.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, Source, Value, evaluate_with};
use crate::td::transition::{
    ACTION, D_Q, DISCOUNT, DONE, ERROR_LOSS, Estimate, HUBER_THRESHOLD, LOSS, Q, REWARD, TARGET, TD_ERROR, WEIGHT, at,
    ended, finite, finite_row, learn, one_step_target,
};

/// The first action of the largest value, and that value; `None` where there is no action.
///
/// ```
/// assert_eq!(plumbline_core::td::q_learning::greedy(&[1.0, 4.0, 4.0]), Some((1, 4.0)));
/// ```
pub fn greedy<R: Real>(action_values: &[R]) -> Option<(usize, R)> {
    action_values.iter().copied().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// What Q-learning bootstraps from: the largest action value.
pub fn max_value<R: Real>(action_values: &[R]) -> R {
    greedy(action_values).map_or(R::zero(), |(_, value)| value)
}

/// What double Q-learning bootstraps from: the evaluator's value of the selector's greedy action.
///
/// ```
/// // Selected by [1, 4], valued by [3, 2].
/// assert_eq!(plumbline_core::td::q_learning::double_value(&[1.0, 4.0], &[3.0, 2.0]), 2.0);
/// ```
pub fn double_value<R: Real>(selector: &[R], evaluator: &[R]) -> R {
    greedy(selector).map_or(R::zero(), |(action, _)| at(evaluator, action))
}

fn single<R: Real>(call: &mut Call<'_, R>, next_name: &'static str) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, next, done) = (call.finite("reward")?, call.real(next_name)?, call.optional_bytes("done"));
    let columns = call.dim("A");
    learn(call, Estimate::ActionValue, |_, n| {
        let bootstrap = if ended(done, n) { None } else { Some(max_value(finite_row(next_name, next, columns, n)?)) };
        Ok(one_step_target(finite("reward", rewards, n)?, discount, bootstrap))
    })
}

fn double<R: Real>(call: &mut Call<'_, R>, [selector_name, evaluator_name]: [&'static str; 2]) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, done) = (call.finite("reward")?, call.optional_bytes("done"));
    let (selector, evaluator) = (call.real(selector_name)?, call.real(evaluator_name)?);
    let columns = call.dim("A");
    learn(call, Estimate::ActionValue, |_, n| {
        let bootstrap = if ended(done, n) {
            None
        } else {
            let selector = finite_row(selector_name, selector, columns, n)?;
            Some(double_value(selector, finite_row(evaluator_name, evaluator, columns, n)?))
        };
        Ok(one_step_target(finite("reward", rewards, n)?, discount, bootstrap))
    })
}

fn evaluate_q_learning<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    single(call, "next_q")
}

fn evaluate_dqn<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    single(call, "next_q_target")
}

fn evaluate_double_q<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    double(call, ["next_q", "next_q_other"])
}

fn evaluate_double_dqn<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    double(call, ["next_q_online", "next_q_target"])
}

const fn next_q(name: &'static str, meaning: &'static str) -> InputSpec {
    InputSpec::new(name, Domain::Value, &[&["N", "A"]], meaning)
}

const GRADIENT: &str = r"\partial L/\partial Q(s, a) = -\frac{w}{N}\,\ell'(\delta)";
const HUBER: [(&str, Value); 1] = [("error_loss", Value::Name("huber"))];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.q_learning",
        family: Family::TemporalDifference,
        title: "Q-learning",
        summary: "The action's value is moved towards the reward plus the largest value of the next state, discounted.",
        formula: r"y = r + \gamma(1 - d)\max_{a'}Q(s', a'),\quad \delta = y - Q(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: GRADIENT,
        notes: "Off-policy. The semi-gradient: no gradient flows into the maximum. No dialects.",
        sources: &[
            Source {
                title: "Q-learning",
                reference: "Watkins and Dayan 1992, doi:10.1007/BF00992698",
                place: "Section 2",
            },
            Source {
                title: "Reinforcement Learning: An Introduction, 2nd edition",
                reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
                place: "Eq. 6.8",
            },
        ],
        inputs: &[Q, ACTION, REWARD, next_q("next_q", "action values of the next state, constants"), DONE, WEIGHT],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &[],
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_q_learning),
    },
    Operation {
        id: "td.double_q",
        family: Family::TemporalDifference,
        title: "Double Q-learning",
        summary: "One table picks the next action, the other says what it is worth, so that noise is not maximised over.",
        formula: r"y = r + \gamma(1 - d)\,Q^B\big(s', \arg\max_{a'}Q^A(s', a')\big),\quad \delta = y - Q^A(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: GRADIENT,
        notes: "The table that learns picks; ties go to the first action. Which table learns is tossed at each step by the \
                caller. No dialects.",
        sources: &[Source { title: "Double Q-learning", reference: "van Hasselt, NeurIPS 2010", place: "Algorithm 1" }],
        inputs: &[
            Q,
            ACTION,
            REWARD,
            next_q("next_q", "the learning table's values of the next state: they pick the action"),
            next_q("next_q_other", "the other table's values of the next state: one of them is the bootstrap"),
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &[],
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_double_q),
    },
    Operation {
        id: "td.dqn",
        family: Family::TemporalDifference,
        title: "Deep Q-network",
        summary: "Q-learning with the next state's values from a target network and a Huber penalty.",
        formula: r"y = r + \gamma(1 - d)\max_{a'}Q_{\bar\theta}(s', a'),\quad \delta = y - Q_\theta(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: GRADIENT,
        notes: "The paper clips the error to [−1, 1], which is the derivative of Huber's function with κ = 1. No dialects.",
        sources: &[Source {
            title: "Human-level control through deep reinforcement learning",
            reference: "Mnih et al. 2015, doi:10.1038/nature14236",
            place: "Methods, Algorithm 1",
        }],
        inputs: &[
            Q,
            ACTION,
            REWARD,
            next_q("next_q_target", "the target network's action values of the next state"),
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &HUBER,
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_dqn),
    },
    Operation {
        id: "td.double_dqn",
        family: Family::TemporalDifference,
        title: "Double DQN",
        summary: "The online network picks the next action, the target network says what it is worth.",
        formula: r"y = r + \gamma(1 - d)\,Q_{\bar\theta}\big(s', \arg\max_{a'}Q_\theta(s', a')\big),\quad \delta = y - Q_\theta(s, a),\quad L = \frac1N\sum w\,\ell(\delta)",
        gradient: GRADIENT,
        notes: "The pick uses the online network on the next state, not on the current one; ties go to the first action. No \
                dialects.",
        sources: &[Source {
            title: "Deep Reinforcement Learning with Double Q-learning",
            reference: "arXiv:1509.06461",
            place: "Section 3, Y^DoubleDQN",
        }],
        inputs: &[
            Q,
            ACTION,
            REWARD,
            next_q("next_q_online", "the online network's action values of the next state: they pick the action"),
            next_q(
                "next_q_target",
                "the target network's action values of the next state: one of them is the bootstrap",
            ),
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &HUBER,
        outputs: &[LOSS, TARGET, TD_ERROR, D_Q],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_double_dqn),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn case(id: &str) -> Case {
        Case::new(SPECS, id)
            .real("q", &[1, 2], &[2.0, 5.0])
            .index("action", &[1], &[0])
            .real("reward", &[1], &[1.0])
            .number("discount", 0.9)
    }

    #[test]
    fn who_picks_and_who_values() {
        // Online values of the next state [1, 4], target values [3, 2].
        let target = |case: Case| case.get("target").unwrap()[0];
        assert_eq!(target(case("td.dqn").real("next_q_target", &[1, 2], &[3.0, 2.0])), 1.0 + 0.9 * 3.0);
        assert_eq!(target(case("td.q_learning").real("next_q", &[1, 2], &[1.0, 4.0])), 1.0 + 0.9 * 4.0);
        let double = case("td.double_dqn").real("next_q_online", &[1, 2], &[1.0, 4.0]);
        assert_eq!(target(double.real("next_q_target", &[1, 2], &[3.0, 2.0])), 1.0 + 0.9 * 2.0);
        let double = case("td.double_q").real("next_q", &[1, 2], &[1.0, 4.0]);
        assert_eq!(target(double.real("next_q_other", &[1, 2], &[3.0, 2.0])), 1.0 + 0.9 * 2.0);
        assert_eq!(greedy::<f64>(&[]), None);
    }

    #[test]
    fn behind_the_end_nothing_is_read() {
        for junk in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let case = case("td.dqn").real("next_q_target", &[1, 2], &[junk, 2.0]);
            assert_eq!(case.clone().mask("done", &[1], &[1]).get("target").unwrap(), [1.0]);
            assert_eq!(case.get("target"), Err(Error::NonFinite { argument: "next_q_target", index: 0 }));
        }
        let out = case("td.dqn").real("next_q_target", &[1, 2], &[0.0; 2]).index("action", &[1], &[2]).get("loss");
        assert!(matches!(out, Err(Error::ElementOutOfRange { argument: "action", index: 0, .. })));
    }

    proptest! {
        #[test]
        fn gradients_and_limits(
            q in proptest::array::uniform6(-4.0..4.0f64),
            next in proptest::array::uniform6(-4.0..4.0f64),
            reward in proptest::array::uniform2(-2.0..2.0f64),
            loss in proptest::sample::select(std::vec!["half_squared", "squared", "huber"]),
        ) {
            let base = |id| Case::new(SPECS, id).real("q", &[2, 3], &q).index("action", &[2], &[2, 0]).real("reward", &[2], &reward);
            let dqn = base("td.dqn").real("next_q_target", &[2, 3], &next).choice("error_loss", loss);
            dqn.check_gradient("q");
            // Double DQN whose two networks agree is DQN.
            let double = base("td.double_dqn").real("next_q_online", &[2, 3], &next).real("next_q_target", &[2, 3], &next);
            prop_assert_eq!(double.get("target").unwrap(), dqn.get("target").unwrap());
        }
    }
}

//! Policies from action values: greedy, ε-greedy, softmax.

use super::mdp::{ACTION, ACTION_VALUE, at, best};
use crate::Error;
use crate::batch::{row_of, set};
use crate::num::{LogPartition, Real};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice, evaluate_with,
};

choice! {
    /// How action values become probabilities.
    pub enum PolicyKind {
        /// All on the best action.
        Greedy = "greedy",
        /// ε spread evenly over all actions, the rest on the best.
        EpsilonGreedy = "epsilon_greedy",
        /// softmax(q/τ).
        Softmax = "softmax",
    }
}

/// ε/A + (1 − ε)·[a is the best]: an ε-greedy probability; ε = 0 is the greedy policy.
///
/// ```
/// use plumbline_core::bellman::policy::epsilon_greedy;
/// assert_eq!(epsilon_greedy(0.5, 4, true), 0.625);
/// assert_eq!(epsilon_greedy(0.5, 4, false), 0.125);
/// ```
#[inline]
pub fn epsilon_greedy<R: Real>(epsilon: R, actions: usize, is_best: bool) -> R {
    let spread = epsilon / R::from_count(actions);
    if is_best { spread + (R::one() - epsilon) } else { spread }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (q, states, actions) = (call.finite(ACTION_VALUE.name)?, call.dim("S"), call.dim("A"));
    let kind: PolicyKind = call.choice("policy_kind")?;
    let epsilon = match kind {
        PolicyKind::EpsilonGreedy => call.number("epsilon")?,
        _ => R::zero(),
    };
    let temperature: R = call.number("temperature")?;
    if actions == 0 {
        return Err(Error::EmptyMask { argument: ACTION_VALUE.name });
    }
    let (mut policy, mut chosen) = (call.output("policy"), call.output(ACTION.name));
    for state in 0..states {
        let row = row_of(q, actions, state);
        let (greedy, _) = best(actions, |action| at(row, action));
        set(&mut chosen, state, R::from_count(greedy));
        let partition = match kind {
            PolicyKind::Softmax => LogPartition::new(row, temperature),
            _ => None,
        };
        for (action, value) in row.iter().enumerate() {
            let probability = match partition {
                Some(partition) => partition.log_prob(*value).exp(),
                None => epsilon_greedy(epsilon, actions, action == greedy),
            };
            set(&mut policy, state * actions + action, probability);
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.policy",
    family: Family::Bellman,
    title: "Greedy, ε-greedy and softmax policies",
    summary: "The probabilities of actions that a policy gives to a table of action values.",
    formula: r"\pi(a|s) = [a = a^*(s)],\quad \frac{\varepsilon}{A} + (1 - \varepsilon)[a = a^*(s)],\quad
\frac{e^{q(s,a)/\tau}}{\sum_{a'} e^{q(s,a')/\tau}}",
    gradient: "",
    notes: "The best action is the lowest of equal ones, so the greedy policy is deterministic. Implementations that spread ties \
            evenly or break them at random differ there. ε is spread over all actions, the best one included.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
        place: "Eq. 2.11, 4.9, section 5.4 (ε-greedy)",
    }],
    inputs: &[InputSpec::new("q", Domain::Value, &[&["S", "A"]], "value of each action in each state")],
    params: &[
        ParamSpec::choice(
            "policy_kind",
            PolicyKind::Greedy.name(),
            PolicyKind::NAMES,
            "greedy, epsilon_greedy or softmax",
        ),
        ParamSpec::number("epsilon", r"\varepsilon", 0.1, Range::UNIT, "share of actions chosen evenly (ε-greedy)"),
        ParamSpec::number("temperature", r"\tau", 1.0, Range::POSITIVE, "temperature of the softmax (units of q)"),
    ],
    defaults: &[],
    outputs: &[OutputSpec::value("policy", &["S", "A"], "probability of each action in each state"), ACTION],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn the_three_kinds() {
        let case = Case::new(SPECS, "bellman.policy").real("q", &[2, 2], &[1.0, 1.0, 2.0, 2.0 + Real::ln(3.0f64)]);
        assert_eq!(case.get("policy").unwrap(), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(case.get("action").unwrap(), [0.0, 1.0]);
        let spread = case.clone().choice("policy_kind", "epsilon_greedy").number("epsilon", 0.5);
        assert_eq!(spread.get("policy").unwrap(), [0.75, 0.25, 0.25, 0.75]);
        let soft = case.choice("policy_kind", "softmax").get("policy").unwrap();
        assert_eq!(soft[..2], [0.5, 0.5]);
        // A quarter and three quarters, to the rounding of ln 3 and of the exponential.
        assert!((soft[2] - 0.25).abs() < 4.0 * f64::EPSILON && (soft[3] - 0.75).abs() < 4.0 * f64::EPSILON);
    }
}

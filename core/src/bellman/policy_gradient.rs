//! The exact policy gradient of a softmax policy, by occupancy.

use super::evaluate_direct::{MATRIX, evaluate_direct};
use super::mdp::{DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, STATE_VALUE, TRANSITION, at};
use super::occupancy::{START, discounted_visits, start_distribution};
use crate::Error;
use crate::batch::{row_of, set};
use crate::num::{LogPartition, Real, tree_sum_zip};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// One element of the gradient, η(s) π(a|s) (q(s, a) − v(s)): the policy-gradient theorem for softmax logits.
///
/// ```
/// use plumbline_core::bellman::policy_gradient::logit_gradient;
/// assert_eq!(logit_gradient(2.0, 0.25, 5.0, 3.0), 1.0);
/// ```
#[inline]
pub fn logit_gradient<R: Real>(visits: R, probability: R, action_value: R, state_value: R) -> R {
    let weight = visits * probability;
    if weight == R::zero() { R::zero() } else { weight * (action_value - state_value) }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, logits, start) = (Mdp::from_call(call)?, call.finite("logits")?, start_distribution(call)?);
    let [policy, value, visits, matrix] = [
        call.workspace("policy")?,
        call.workspace(STATE_VALUE.name)?,
        call.workspace("visits")?,
        call.workspace(MATRIX.name)?,
    ];
    let actions = mdp.actions();
    for (state, probabilities) in policy.chunks_exact_mut(actions.max(1)).enumerate() {
        let row = row_of(logits, actions, state);
        if let Some(partition) = LogPartition::new(row, R::one()) {
            for (logit, slot) in row.iter().zip(probabilities) {
                *slot = partition.log_prob(*logit).exp();
            }
        }
    }
    let probability = |state: usize, action: usize| at(row_of(policy, actions, state), action);
    evaluate_direct(&mdp, probability, matrix, value)?;
    visits.iter_mut().zip(start).for_each(|(slot, start)| *slot = *start);
    discounted_visits(&mdp, probability, matrix, visits)?;
    call.write("objective", tree_sum_zip(start, value, |start, value| *start * *value));
    let mut gradient = call.output("d_logits");
    for pair in 0..mdp.states() * actions {
        let (state, action) = mdp.pair(pair);
        let q = mdp.action_value(state, action, value);
        set(&mut gradient, pair, logit_gradient(at(visits, state), at(policy, pair), q, at(value, state)));
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.policy_gradient",
    family: Family::Bellman,
    title: "Exact policy gradient by occupancy",
    summary: "The mean return of a softmax policy from the start, and its exact gradient by the logits.",
    formula: r"J = \sum_s \mu(s)\,v_\pi(s),\quad \pi(a|s) = \mathrm{softmax}(\theta_s)_a",
    gradient: r"\partial J/\partial\theta_{sa} = \eta(s)\,\pi(a|s)\,(q_\pi(s,a) - v_\pi(s)),\quad
\eta = (I - \gamma(1 - d)P_\pi^\top)^{-1}\mu",
    notes: "The objective is to be raised, not lowered. States count by their discounted visits η, not by their share of them; \
            implementations that drop γᵗ weigh by undiscounted visits, which is not the gradient of J. With γ = 1 every state has \
            to reach an end. No library differs.",
    sources: &[
        Source {
            title: "Policy Gradient Methods for Reinforcement Learning with Function Approximation",
            reference: "Sutton et al. 2000, Advances in Neural Information Processing Systems 12",
            place: "Theorem 1",
        },
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Eq. 13.5",
        },
    ],
    inputs: &[
        TRANSITION,
        REWARD,
        InputSpec::new("logits", Domain::Logit, &[&["S", "A"]], "the softmax policy's logits"),
        START,
        NEXT_STATE,
        ROW_START,
        DONE,
    ],
    params: &[DISCOUNT],
    defaults: &[],
    outputs: &[
        OutputSpec::value("objective", &[], "mean (discounted) return from the start"),
        OutputSpec::gradient("d_logits", "logits", &["S", "A"], "derivative of the objective by each logit"),
        OutputSpec::value("policy", &["S", "A"], "probability of each action in each state").workspace(),
        OutputSpec::value("value", &["S"], "value of each state").workspace(),
        OutputSpec::value("visits", &["S"], "discounted visits of each state").workspace(),
        MATRIX,
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Data, Input, Output};

    #[test]
    fn a_bandit_by_hand() {
        // Two actions that end with rewards 1 and 5, three to one: J = 2, advantages −1 and 3.
        let logits = [Real::ln(3.0f64), 0.0];
        let inputs = [
            Input { name: "transition", shape: &[1, 2, 1], data: Data::Real(&[1.0, 1.0]) },
            Input { name: "reward", shape: &[1, 2], data: Data::Real(&[1.0, 5.0]) },
            Input { name: "done", shape: &[1, 2, 1], data: Data::Mask(&[1, 1]) },
            Input { name: "logits", shape: &[1, 2], data: Data::Real(&logits) },
            Input { name: "start_distribution", shape: &[1], data: Data::Real(&[1.0]) },
        ];
        let mut buffers = [[0.0; 2], [0.0; 2], [0.0; 2]];
        let [gradient, policy, rest] = &mut buffers;
        let [mut objective, mut matrix] = [[0.0], [0.0]];
        let (value, visits) = rest.split_at_mut(1);
        let mut outputs = [
            Output { name: "objective", data: &mut objective },
            Output { name: "d_logits", data: gradient },
            Output { name: "policy", data: policy },
            Output { name: "value", data: value },
            Output { name: "visits", data: visits },
            Output { name: "matrix", data: &mut matrix },
        ];
        crate::spec::evaluate(&SPECS[0], None, &[], &inputs, &mut outputs).unwrap();
        // To the rounding of ln 3 and the exponential.
        for (got, expected) in
            [(objective[0], 2.0), (buffers[0][0], -0.75), (buffers[0][1], 0.75), (buffers[2][1], 1.0)]
        {
            assert!((got - expected).abs() < 1e-14, "{got} {expected}");
        }
    }
}

//! The soft (entropy-regularised) Bellman backup.

use super::mdp::{ACTION_VALUE, DISCOUNT, DONE, Mdp, NEXT_STATE, REWARD, ROW_START, TRANSITION, VALUE, at, best};
use crate::Error;
use crate::batch::{row_of, set};
use crate::num::{LogPartition, Real};
use crate::spec::{Call, Family, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// α ln Σ_a e^(q(a)/α): the soft maximum, between max q and max q + α ln A.
///
/// ```
/// use plumbline_core::bellman::soft::soft_maximum;
/// assert_eq!(soft_maximum(&[3.0f64, 3.0], 2.0), 3.0 + 2.0 * core::f64::consts::LN_2);
/// assert_eq!(soft_maximum(&[1e6f64, -1e6], 0.5), 1e6);
/// ```
pub fn soft_maximum<R: Real>(action_values: &[R], temperature: R) -> R {
    let (_, highest) = best(action_values.len(), |action| at(action_values, action));
    match LogPartition::new(action_values, temperature) {
        // The best action's log-probability is −ln Σ e^((q − max q)/α).
        Some(partition) => (highest - temperature * partition.log_prob(highest)).limited(),
        None => highest,
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, value, temperature) = (Mdp::from_call(call)?, call.finite(VALUE.name)?, call.number("temperature")?);
    let q = call.workspace(ACTION_VALUE.name)?;
    let (mut backup, mut policy) = (call.output("backup"), call.output("policy"));
    for (pair, slot) in q.iter_mut().enumerate() {
        let (state, action) = mdp.pair(pair);
        *slot = mdp.action_value(state, action, value);
    }
    for state in 0..mdp.states() {
        let row = row_of(q, mdp.actions(), state);
        set(&mut backup, state, soft_maximum(row, temperature));
        if let Some(partition) = LogPartition::new(row, temperature) {
            for (action, value) in row.iter().enumerate() {
                set(&mut policy, state * mdp.actions() + action, partition.log_prob(*value).exp());
            }
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.soft",
    family: Family::Bellman,
    title: "Soft Bellman backup",
    summary: "One backup in which the maximum is softened by an entropy bonus, and the policy that attains it.",
    formula: r"(T_\alpha v)(s) = \alpha\log\sum_a e^{q(s,a)/\alpha},\quad q(s,a) = \sum_{s'} p(s'|s,a)\,[r + \gamma(1 - d)\,v(s')]",
    gradient: "",
    notes: "The policy softmax(q/α) maximises mean value plus α times entropy, whose maximum is the backup. As α → 0 it becomes the \
            optimality operator. It contracts by γ in the max norm. No library differs.",
    sources: &[
        Source {
            title: "Reinforcement Learning with Deep Energy-Based Policies",
            reference: "arXiv:1702.08165",
            place: "Theorem 2 and Eq. 8-9",
        },
        Source {
            title: "A Theory of Regularized Markov Decision Processes",
            reference: "arXiv:1901.11275",
            place: "Section 3, negative entropy",
        },
    ],
    inputs: &[TRANSITION, REWARD, VALUE, NEXT_STATE, ROW_START, DONE],
    params: &[
        DISCOUNT,
        ParamSpec::number(
            "temperature",
            r"\alpha",
            1.0,
            Range::POSITIVE,
            "weight of the entropy (units of the return)",
        ),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("backup", &["S"], "backed-up value of each state"),
        OutputSpec::value("policy", &["S", "A"], "probability of each action in each state"),
        OutputSpec::value("q", &["S", "A"], "value of each action in each state").workspace(),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_policy_attains_the_backup(q in prop::collection::vec(-5.0f64..5.0, 1..6), temperature in 0.05f64..3.0) {
            let soft = soft_maximum(&q, temperature);
            let highest = q.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            prop_assert!(soft >= highest);
            let partition = LogPartition::new(&q, temperature).unwrap();
            // Σ π (q − α ln π), terms below 5 + 3·ln 6 + 200 · 0.05.
            let attained: f64 = q
                .iter()
                .map(|value| {
                    let log_prob = partition.log_prob(*value);
                    Real::exp(log_prob) * (value - temperature * log_prob)
                })
                .sum();
            prop_assert!((attained - soft).abs() < 64.0 * f64::EPSILON * 20.0);
        }
    }

    #[test]
    fn extremes_are_finite() {
        assert_eq!(soft_maximum(&[f64::MAX, f64::MAX], 1e300), f64::MAX);
        assert_eq!(soft_maximum(&[f64::MIN, f64::MAX], 1e-300), f64::MAX);
        assert_eq!(soft_maximum(&[-1000.0f32, -1000.0], 1e-30), -1000.0);
    }
}

//! Dueling heads: a state value and advantages give action values.

use crate::Error;
use crate::batch::row_of;
use crate::num::{Real, tree_sum};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, choice, evaluate_with,
};
use crate::td::q_learning::greedy;
use crate::td::transition::{at, transitions};

choice! {
    /// What is taken off the advantages so that value and advantage can be told apart.
    pub enum Baseline {
        /// Their mean over the actions.
        Mean = "mean",
        /// Their largest.
        Max = "max",
    }
}

/// What is taken off the advantages of one state.
///
/// ```
/// use plumbline_core::td::dueling::{Baseline, baseline};
/// assert_eq!(baseline(&[1.0, 3.0], Baseline::Mean), 2.0);
/// assert_eq!(baseline(&[1.0, 3.0], Baseline::Max), 3.0);
/// ```
pub fn baseline<R: Real>(advantages: &[R], kind: Baseline) -> R {
    match kind {
        Baseline::Mean => tree_sum(advantages) / R::from_count(advantages.len()),
        Baseline::Max => greedy(advantages).map_or(R::zero(), |(_, largest)| largest),
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let kind: Baseline = call.choice("baseline")?;
    let (value, advantage) = (call.finite("value")?, call.finite("advantage")?);
    let cotangent = call.optional_finite("cotangent")?;
    let count = transitions(call, "value")?;
    let columns = call.dim("A");
    let mut outputs = ["q", "d_value", "d_advantage"].map(|name| call.output(name));
    let [q, d_value, d_advantage] = &mut outputs;
    for n in 0..count {
        let advantages = row_of(advantage, columns, n);
        let base = baseline(advantages, kind);
        let ones = R::from_count(columns);
        let row = cotangent.map(|cotangent| row_of(cotangent, columns, n));
        let total = row.map_or(ones, tree_sum);
        crate::batch::set(d_value, n, total);
        for action in 0..columns {
            let slot = n * columns + action;
            crate::batch::set(q, slot, at(value, n) + (at(advantages, action) - base));
            let own = row.map_or(R::one(), |row| at(row, action));
            let shared = match kind {
                Baseline::Mean => total / ones,
                Baseline::Max if greedy(advantages).is_some_and(|(best, _)| best == action) => total,
                Baseline::Max => R::zero(),
            };
            crate::batch::set(d_advantage, slot, own - shared);
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "td.dueling",
    family: Family::TemporalDifference,
    title: "Dueling heads",
    summary: "Action values from a state value and advantages whose mean (or largest) is taken off.",
    formula: r"Q(s, a) = V(s) + A(s, a) - \frac{1}{|\mathcal A|}\sum_{a'}A(s, a')\quad\text{or}\quad V(s) + A(s, a) - \max_{a'}A(s, a')",
    gradient: r"\partial L/\partial V = \sum_a g_a,\qquad
        \partial L/\partial A_b = g_b - \frac{1}{|\mathcal A|}\sum_a g_a\quad\text{or}\quad g_b - [b = a^*]\sum_a g_a,\qquad g_a = \partial L/\partial Q(s, a)",
    notes: "The mean runs over the actions, not over the batch. Of equal largest advantages the first takes the gradient. \
            Without a cotangent the gradients are those of the sum of all action values. No dialects.",
    sources: &[Source {
        title: "Dueling Network Architectures for Deep Reinforcement Learning",
        reference: "arXiv:1511.06581",
        place: "Eq. 8 (max) and 9 (mean)",
    }],
    inputs: &[
        InputSpec::new("value", Domain::Value, &[&["N"]], "value of each state"),
        InputSpec::new("advantage", Domain::Advantage, &[&["N", "A"]], "advantage of each action"),
        InputSpec::new(
            "cotangent",
            Domain::Real,
            &[&["N", "A"]],
            "derivative of the loss by each action value; 1 where not given",
        )
        .optional(),
    ],
    params: &[ParamSpec::choice("baseline", "mean", Baseline::NAMES, "what is taken off the advantages: mean or max")],
    defaults: &[],
    outputs: &[
        OutputSpec::value("q", &["N", "A"], "action values"),
        OutputSpec::gradient("d_value", "value", &["N"], "derivative by each state value"),
        OutputSpec::gradient("d_advantage", "advantage", &["N", "A"], "derivative by each advantage"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn mean_and_max() {
        let case = Case::new(SPECS, "td.dueling").real("value", &[2], &[10.0, 0.0]).real(
            "advantage",
            &[2, 3],
            &[1.0, 2.0, 6.0, 5.0, 5.0, 5.0],
        );
        assert_eq!(case.get("q").unwrap(), [8.0, 9.0, 13.0, 0.0, 0.0, 0.0]);
        let max = case.clone().choice("baseline", "max");
        assert_eq!(max.get("q").unwrap(), [5.0, 6.0, 10.0, 0.0, 0.0, 0.0]);
        let cotangent = [1.0, 0.0, 0.5, 3.0, 0.0, 0.0];
        let mean = case.real("cotangent", &[2, 3], &cotangent);
        assert_eq!(mean.get("d_value").unwrap(), [1.5, 3.0]);
        assert_eq!(mean.get("d_advantage").unwrap(), [0.5, -0.5, 0.0, 2.0, -1.0, -1.0]);
        let max = max.real("cotangent", &[2, 3], &cotangent);
        assert_eq!(max.get("d_advantage").unwrap(), [1.0, 0.0, -1.0, 0.0, 0.0, 0.0]);
    }
}

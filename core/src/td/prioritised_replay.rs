//! Prioritised experience replay: priorities, sampling probabilities and importance weights.

use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice, evaluate_with,
};
use crate::td::transition::{at, transitions};

choice! {
    /// How an error becomes a priority.
    pub enum PriorityScheme {
        /// |δ| + ε.
        Proportional = "proportional",
        /// 1/rank, the largest |δ| having rank 1.
        Rank = "rank",
    }
}

/// The proportional priority |δ| + ε of a temporal-difference error (before any importance weight).
///
/// ```
/// assert_eq!(plumbline_core::td::prioritised_replay::priority(-3.0, 0.5), 3.5);
/// ```
#[inline(always)]
pub fn priority<R: Real>(td_error: R, eps: R) -> R {
    td_error.abs() + eps
}

/// The importance weight of a transition relative to the rarest of the batch, (p_min/p)^(αβ): (N·P)^(−β) divided by its
/// maximum, in which N and the normaliser of P cancel.
///
/// ```
/// assert_eq!(plumbline_core::td::prioritised_replay::relative_weight(4.0, 1.0, 0.5), 0.5);
/// ```
#[inline(always)]
pub fn relative_weight<R: Real>(priority: R, smallest_priority: R, exponent: R) -> R {
    if priority == smallest_priority || exponent == R::zero() {
        R::one()
    } else {
        (exponent * (smallest_priority.ln() - priority.ln())).exp()
    }
}

/// p^α with 0⁰ = 1.
fn power<R: Real>(base: R, exponent: R) -> R {
    if exponent == R::zero() { R::one() } else { (exponent * base.ln()).exp() }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let count = transitions(call, "td_error")?;
    let errors = call.finite("td_error")?;
    let scheme: PriorityScheme = call.choice("scheme")?;
    let (alpha, beta, eps): (R, R, R) =
        (call.number("priority_exponent")?, call.number("weight_exponent")?, call.number("priority_eps")?);
    let of = |n: usize| match scheme {
        PriorityScheme::Proportional => priority(at(errors, n), eps),
        PriorityScheme::Rank => {
            let own = at(errors, n).abs();
            // Equal errors rank in the order of the batch.
            let before = errors
                .iter()
                .enumerate()
                .filter(|(other, error)| error.abs() > own || (error.abs() == own && *other < n));
            R::one() / R::from_count(before.count() + 1)
        }
    };
    let smallest = (0..count).map(of).fold(R::infinity(), |least, value| value.smaller(least));
    let largest = (0..count).map(of).fold(R::zero(), |most, value| value.larger(most));
    if largest == R::zero() {
        return Err(Error::OutOfRange {
            argument: "priority_eps",
            value: eps.to_f64(),
            legal: "> 0 where every error is 0",
        });
    }
    // Relative to the largest priority, so that no power overflows.
    let relative = |n: usize| power(of(n) / largest, alpha);
    let mut total = ExactSum::new();
    for n in 0..count {
        total.add(relative(n));
    }
    let total: R = total.value();
    let mut outputs = ["importance_weight", "priority", "probability"].map(|name| call.output(name));
    let [weights, priorities, probabilities] = &mut outputs;
    for n in 0..count {
        crate::batch::set(priorities, n, of(n));
        crate::batch::set(probabilities, n, relative(n) / total);
        crate::batch::set(weights, n, relative_weight(of(n), smallest, alpha * beta));
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "td.prioritised_replay",
    family: Family::TemporalDifference,
    title: "Prioritised experience replay",
    summary: "How often a transition is drawn by its error, and the weight that makes up for it.",
    formula: r"p_n = |\delta_n| + \epsilon\ \text{or}\ 1/\mathrm{rank}(n),\quad P_n = \frac{p_n^\alpha}{\sum_m p_m^\alpha},\quad
        w_n = \frac{(N P_n)^{-\beta}}{\max_m (N P_m)^{-\beta}}",
    gradient: "",
    notes: "Weights are divided by the largest of the batch, so that they only scale down. The priority is of the error itself, \
            not of the weighted loss. With all of a buffer given, probability is the sampling distribution. No dialects.",
    sources: &[Source {
        title: "Prioritized Experience Replay",
        reference: "arXiv:1511.05952",
        place: "Eq. 1 and Section 3.3–3.4",
    }],
    inputs: &[InputSpec::new("td_error", Domain::Real, &[&["N"]], "temporal-difference error of each transition")],
    params: &[
        ParamSpec::choice("scheme", "proportional", PriorityScheme::NAMES, "how an error becomes a priority"),
        ParamSpec::number(
            "priority_exponent",
            r"\alpha",
            0.6,
            Range::NON_NEGATIVE,
            "how much priorities count; 0 = uniform",
        ),
        ParamSpec::number(
            "weight_exponent",
            r"\beta",
            0.4,
            Range::UNIT,
            "how much of the bias the weights undo; 1 = all",
        ),
        ParamSpec::number(
            "priority_eps",
            r"\epsilon",
            1e-6,
            Range::NON_NEGATIVE,
            "added to the absolute error (proportional)",
        ),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("importance_weight", &["N"], "weight of each transition's loss, at most 1"),
        OutputSpec::value("priority", &["N"], "priority of each transition"),
        OutputSpec::value("probability", &["N"], "probability of drawing each transition"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let case = Case::new(SPECS, "td.prioritised_replay")
            .real("td_error", &[3], &[-4.0, 1.0, 1.0])
            .number("priority_exponent", 1.0)
            .number("weight_exponent", 0.5)
            .number("priority_eps", 0.0);
        assert_eq!(case.get("priority").unwrap(), [4.0, 1.0, 1.0]);
        assert_eq!(case.get("importance_weight").unwrap(), [0.5, 1.0, 1.0]);
        for (got, expected) in case.get("probability").unwrap().iter().zip([2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0]) {
            assert!((got - expected).abs() < 1e-15);
        }
        assert_eq!(case.clone().choice("scheme", "rank").get("priority").unwrap(), [1.0, 0.5, 1.0 / 3.0]);
        let zero = case.real("td_error", &[2], &[0.0; 2]).get("probability");
        assert!(matches!(zero, Err(Error::OutOfRange { argument: "priority_eps", .. })));
    }

    proptest! {
        #[test]
        fn probabilities_sum_to_one_and_weights_stay_in_the_unit(
            errors in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite() && x.abs() < 1e300), 1..8),
        ) {
            let case = Case::new(SPECS, "td.prioritised_replay").real("td_error", &[errors.len()], &errors);
            prop_assert!((case.get("probability").unwrap().iter().sum::<f64>() - 1.0).abs() <= 1e-14);
            prop_assert!(case.get("importance_weight").unwrap().iter().all(|weight| (0.0..=1.0).contains(weight)));
        }
    }
}

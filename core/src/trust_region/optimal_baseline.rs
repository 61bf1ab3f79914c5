//! The baseline that makes the policy gradient's variance smallest.

use super::steps::{STEP_MASK, Steps, at};
use crate::Error;
use crate::num::{ExactSum, Real, tree_sum_by};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// Σ w G / Σ w of weights w ≥ 0: a mean of the returns; 0 where all weights are.
///
/// With w = ‖∇ log π‖² it is the constant baseline of least variance (Greensmith et al. 2004; Peters & Schaal 2008, Eq. 11),
/// with w = (∂ log π/∂θ_k)² the best for one component of the gradient. Sums are exact, so the order of steps changes no
/// bit.
///
/// ```
/// use plumbline_core::trust_region::optimal_baseline::weighted_mean;
/// assert_eq!(weighted_mean(&[8.0, 4.0, f64::NAN], |step| [Some(1.0), Some(3.0), None][step]), 5.0);
/// ```
pub fn weighted_mean<R: Real>(values: &[R], weight: impl Fn(usize) -> Option<R>) -> R {
    let mut total = ExactSum::new();
    (0..values.len()).filter_map(&weight).for_each(|weight| total.add(weight));
    let total = total.value::<R>();
    if total == R::zero() {
        return R::zero();
    }
    let mut mean = ExactSum::new();
    for (step, value) in values.iter().enumerate() {
        if let Some(weight) = weight(step) {
            mean.add(weight / total * *value);
        }
    }
    mean.value::<R>().limited()
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let steps = Steps::from_call(call, SCORE.name)?;
    let (scores, width) = (call.real(SCORE.name)?, call.dim("P"));
    steps.finite(SCORE.name, scores, width)?;
    let returns = steps.column(call, "return_to_go")?;
    // Scores over their largest, so that squares stay within the range.
    let largest = |columns: core::ops::Range<usize>| {
        steps.kept().fold(R::zero(), |largest, step| {
            columns.clone().fold(largest, |largest, k| at(scores, step * width + k).abs().larger(largest))
        })
    };
    let square = |slot: usize, scale: R| {
        let part = if scale == R::zero() { R::zero() } else { at(scores, slot) / scale };
        part * part
    };
    let scale = largest(0..width);
    let norm = |step: usize| tree_sum_by(width, |k| square(step * width + k, scale));
    let weighted = |weight: &dyn Fn(usize) -> R| weighted_mean(returns, |step| steps.keeps(step).then(|| weight(step)));
    call.write("baseline", weighted(&norm));
    for (k, slot) in call.output("component_baseline").unwrap_or(&mut []).iter_mut().enumerate() {
        let scale = largest(k..k + 1);
        *slot = weighted(&|step| square(step * width + k, scale));
    }
    Ok(())
}

const SCORE: InputSpec = InputSpec::new(
    "score",
    Domain::Real,
    &[&["N", "P"]],
    "derivatives of each action's log-probability by the policy's P parameters",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.optimal_baseline",
    family: Family::TrustRegion,
    title: "Variance-optimal baseline",
    summary: "The constant baseline of least variance: the mean return, weighted by the squared norm of the score.",
    formula: r"b^* = \frac{\sum_n \lVert\nabla\log\pi_n\rVert^2\, G_n}{\sum_n \lVert\nabla\log\pi_n\rVert^2},\quad
b_k^* = \frac{\sum_n (\partial_k\log\pi_n)^2\, G_n}{\sum_n (\partial_k\log\pi_n)^2}",
    gradient: "",
    notes: "One baseline for the whole gradient, and one per component, which is better still. Estimated from the same steps that \
            it is used on it is slightly biased. Where all scores are 0 any baseline is as good: 0. No dialects.",
    sources: &[
        Source {
            title: "Variance Reduction Techniques for Gradient Estimates in Reinforcement Learning",
            reference: "Greensmith et al. 2004, Journal of Machine Learning Research 5",
            place: "Theorem 8",
        },
        Source {
            title: "Reinforcement learning of motor skills with policy gradients",
            reference: "Peters and Schaal 2008, doi:10.1016/j.neunet.2008.02.003",
            place: "Section 3.2, optimal baselines",
        },
    ],
    inputs: &[
        SCORE,
        InputSpec::new("return_to_go", Domain::Value, &[&["N"]], "return that each step's score is multiplied by"),
        STEP_MASK,
    ],
    params: &[],
    defaults: &[],
    outputs: &[
        OutputSpec::value("baseline", &[], "best baseline for the whole gradient"),
        OutputSpec::value("component_baseline", &["P"], "best baseline for each component of it"),
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
    fn by_hand() {
        let case = Case::new(SPECS, "trust_region.optimal_baseline")
            .real("score", &[3, 2], &[1.0, 0.0, f64::NAN, 9.0, 1.0, 2.0])
            .real("return_to_go", &[3], &[6.0, f64::NAN, 3.0])
            .mask("mask", &[3], &[1, 0, 1]);
        assert_eq!(case.get("baseline").unwrap(), [3.5]);
        assert_eq!(case.get("component_baseline").unwrap(), [4.5, 3.0]);
        assert_eq!(case.real("score", &[3, 2], &[0.0; 6]).get("baseline").unwrap(), [0.0]);
    }

    proptest! {
        #[test]
        fn no_other_constant_gives_less_second_moment(
            scores in prop::collection::vec(-3.0f64..3.0, 6), returns in prop::collection::vec(-5.0f64..5.0, 6), shift in -2.0f64..2.0
        ) {
            let best = weighted_mean(&returns, |n| Some(scores[n] * scores[n]));
            let moment = |b: f64| (0..6).map(|n| { let part = scores[n] * (returns[n] - b); part * part }).sum::<f64>();
            // Second moments are below 6·(3·12)²; their sums round by a few ulp of that.
            prop_assert!(moment(best) <= moment(best + shift) + 16.0 * f64::EPSILON * 7776.0);
        }
    }
}

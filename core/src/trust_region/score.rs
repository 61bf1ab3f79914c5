//! Score functions: the derivatives of an action's log-probability by a policy's parameters.

use super::steps::{STEP_MASK, Steps, at, cleared};
use crate::Error;
use crate::batch::row_of;
use crate::batch::set;
use crate::num::{LogPartition, Real};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// ([v is the action] − π(v))/τ: the softmax policy's score by the logit of v (Sutton & Barto 2018, Eq. 13.9).
///
/// ```
/// use plumbline_core::trust_region::score::softmax_score;
/// assert_eq!(softmax_score(true, 0.25, 0.5), 1.5);
/// assert_eq!(softmax_score(false, 0.25, 0.5), -0.5);
/// ```
#[inline(always)]
pub fn softmax_score<R: Real>(is_action: bool, probability: R, temperature: R) -> R {
    let indicator = if is_action { R::one() } else { R::zero() };
    ((indicator - probability) / temperature).limited()
}

/// The Gaussian policy's scores by its mean and by its log standard deviation: z/σ and z² − 1 with z = (a − μ)/σ
/// (Sutton & Barto 2018, exercise 13.4).
///
/// ```
/// use plumbline_core::trust_region::score::gaussian_score;
/// assert_eq!(gaussian_score(3.0f64, 1.0, 0.0), [2.0, 3.0]);
/// ```
#[inline(always)]
pub fn gaussian_score<R: Real>(action: R, mean: R, log_std: R) -> [R; 2] {
    let precision = (R::zero() - log_std).exp();
    let over = |x: R| if x == R::zero() { R::zero() } else { x * precision };
    // Limited, so that a distance beyond the range under an infinite σ is 0 and not NaN.
    let z = over((action - mean).limited());
    [over(z), z * z - R::one()]
}

fn evaluate_softmax<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (logits, actions, width) = (call.real("logits")?, call.optional_index("action"), call.dim("V"));
    let temperature: R = call.number("temperature")?;
    let steps = Steps::from_call(call, "logits")?;
    steps.finite("logits", logits, width)?;
    let actions = actions.ok_or(Error::MissingInput { argument: "action" })?;
    let mut scores = cleared(call, "score");
    for step in steps.kept() {
        let action = actions.get(step).map_or(0, |action| *action as usize);
        if action >= width {
            let legal = "below the number of actions";
            return Err(Error::ElementOutOfRange { argument: "action", index: step, value: action as f64, legal });
        }
        let row = row_of(logits, width, step);
        if let Some(partition) = LogPartition::new(row, temperature) {
            for (v, logit) in row.iter().enumerate() {
                let probability = partition.log_prob(*logit).exp();
                set(&mut scores, step * width + v, softmax_score(v == action, probability, temperature));
            }
        }
    }
    Ok(())
}

fn evaluate_gaussian<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let width = call.dim("D");
    let steps = Steps::from_call(call, "mean")?;
    let names = ["action", "mean", "log_std"];
    let mut columns: [&[R]; 3] = [&[]; 3];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = call.real(name)?;
        steps.finite(name, column, width)?;
    }
    let mut outputs = ["score_mean", "score_log_std"].map(|name| cleared(call, name));
    for step in steps.kept() {
        for slot in step * width..(step + 1) * width {
            let [action, mean, log_std] = columns.map(|column| at(column, slot));
            for (buffer, score) in outputs.iter_mut().zip(gaussian_score(action, mean, log_std)) {
                set(buffer, slot, score);
            }
        }
    }
    Ok(())
}

const BOOK: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
    place: "Eq. 13.2-13.3, 13.9; Eq. 13.19-13.21",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "trust_region.softmax_score",
        family: Family::TrustRegion,
        title: "Score of a softmax policy",
        summary: "The derivative of the action's log-probability by each logit.",
        formula: r"\frac{\partial\log\pi(a)}{\partial z_v} = \frac{[v = a] - \pi(v)}{\tau},\quad \pi = \mathrm{softmax}(z/\tau)",
        gradient: "",
        notes: "Its mean under the policy is 0, which is why a baseline changes no expected gradient. No dialects.",
        sources: &[BOOK],
        inputs: &[
            InputSpec::new("logits", Domain::Logit, &[&["N", "V"]], "the policy's logits"),
            InputSpec::new("action", Domain::Index("V"), &[&["N"]], "the action taken"),
            STEP_MASK,
        ],
        params: &[ParamSpec::number(
            "temperature",
            r"\tau",
            1.0,
            Range::POSITIVE,
            "temperature that the logits are divided by",
        )],
        defaults: &[],
        outputs: &[OutputSpec::value("score", &["N", "V"], "derivative of the log-probability by each logit")],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_softmax),
    },
    Operation {
        id: "trust_region.gaussian_score",
        family: Family::TrustRegion,
        title: "Score of a Gaussian policy",
        summary: "The derivatives of the action's log-density by mean and log standard deviation.",
        formula: r"\frac{\partial\log\pi(a)}{\partial\mu} = \frac{z}{\sigma},\quad \frac{\partial\log\pi(a)}{\partial\log\sigma} = z^2 - 1,\quad
z = \frac{a - \mu}{\sigma}",
        gradient: "",
        notes: "Dimensions are independent. Where σ underflows the scores are infinite, except at the mean. No dialects.",
        sources: &[BOOK],
        inputs: &[
            InputSpec::new("action", Domain::Real, &[&["N", "D"]], "the action taken"),
            InputSpec::new("mean", Domain::Real, &[&["N", "D"]], "mean of each action dimension"),
            InputSpec::new("log_std", Domain::Real, &[&["N", "D"]], "logarithm of each dimension's standard deviation"),
            STEP_MASK,
        ],
        params: &[],
        defaults: &[],
        outputs: &[
            OutputSpec::value("score_mean", &["N", "D"], "derivative of the log-density by each mean"),
            OutputSpec::value(
                "score_log_std",
                &["N", "D"],
                "derivative of the log-density by each log standard deviation",
            ),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_gaussian),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn absent_steps_and_illegal_actions() {
        let case = Case::new(SPECS, "trust_region.softmax_score")
            .real("logits", &[2, 2], &[0.0, 0.0, f64::NAN, 0.0])
            .index("action", &[2], &[1, 7])
            .mask("mask", &[2], &[1, 0]);
        assert_eq!(case.get("score").unwrap(), [-0.5, 0.5, 0.0, 0.0]);
        let illegal = case.real("logits", &[2, 2], &[0.0; 4]).mask("mask", &[2], &[1, 1]).get("score");
        assert!(matches!(illegal, Err(Error::ElementOutOfRange { argument: "action", index: 1, value: 7.0, .. })));
        assert_eq!(gaussian_score(1.0f32, 1.0, -1000.0), [0.0, -1.0]);
        assert_eq!(gaussian_score(2.0f32, 1.0, -1000.0), [f32::INFINITY, f32::INFINITY]);
        assert_eq!(gaussian_score(2.0f32, 1.0, 1000.0), [0.0, -1.0]);
        assert_eq!(gaussian_score(f64::MAX, f64::MIN, 800.0), [0.0, -1.0]);
    }

    proptest! {
        /// By enumeration of a categorical policy's actions: E[score] = 0, and E[(q − b)·score] does not depend on b.
        #[test]
        fn a_baseline_changes_no_expected_gradient(
            logits in prop::collection::vec(-3.0f64..3.0, 4), q in prop::collection::vec(-5.0f64..5.0, 4), baseline in -5.0f64..5.0
        ) {
            let partition = LogPartition::new(&logits, 1.0).unwrap();
            let p: std::vec::Vec<f64> = logits.iter().map(|logit| Real::exp(partition.log_prob(*logit))).collect();
            for v in 0..4 {
                let gradient = |b: f64| (0..4).map(|a| p[a] * (q[a] - b) * softmax_score(v == a, p[v], 1.0)).sum::<f64>();
                let mean: f64 = (0..4).map(|a| p[a] * softmax_score(v == a, p[v], 1.0)).sum();
                // Terms below 10, four of them; probabilities are a few ulp off.
                prop_assert!(mean.abs() < 32.0 * f64::EPSILON);
                prop_assert!((gradient(baseline) - gradient(0.0)).abs() < 320.0 * f64::EPSILON);
                let exact = p[v] * (q[v] - (0..4).map(|a| p[a] * q[a]).sum::<f64>());
                prop_assert!((gradient(baseline) - exact).abs() < 320.0 * f64::EPSILON);
            }
        }
    }
}

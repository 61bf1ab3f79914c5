//! Bias and variance of the estimators on a categorical policy, by enumeration of its actions.

use super::estimator::{DIFFERENCE_CLAMP, KlEstimator, VALUE_CLAMP, VERL_CLAMPS};
use super::k1::SCHULMAN;
use crate::Error;
use crate::num::{LogPartition, Real, kl_div, tree_sum_zip};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, evaluate_with,
};

/// Two categorical distributions over the same actions, given by their logits.
///
/// A logit of −∞ is an action of probability 0; both sides must agree on which those are, since otherwise one of the two
/// divergences is infinite.
#[derive(Clone, Copy, Debug)]
pub struct CategoricalPair<'a, R> {
    logits: &'a [R],
    ref_logits: &'a [R],
    policy: LogPartition<R>,
    reference: LogPartition<R>,
}

/// What an estimator is on average over the policy's own actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorMoments<R> {
    /// E\[k\].
    pub mean: R,
    /// E\[k\] − KL(π‖π_ref).
    pub bias: R,
    /// E[(k − E\[k\])²].
    pub variance: R,
}

impl<'a, R: Real> CategoricalPair<'a, R> {
    /// Check two rows of logits.
    pub fn new(logits: &'a [R], ref_logits: &'a [R]) -> Result<Self, Error> {
        if logits.len() != ref_logits.len() {
            return Err(Error::LengthMismatch {
                argument: "ref_logits",
                expected: logits.len(),
                got: ref_logits.len(),
            });
        }
        for (argument, row, other) in [("logits", logits, ref_logits), ("ref_logits", ref_logits, logits)] {
            let bad = row.iter().zip(other).position(|(logit, other)| {
                logit.is_nan()
                    || *logit == R::infinity()
                    || (*logit == R::neg_infinity() && *other != R::neg_infinity() && !other.is_nan())
            });
            if let Some(index) = bad {
                return Err(Error::NonFinite { argument, index });
            }
        }
        match (LogPartition::new(logits, R::one()), LogPartition::new(ref_logits, R::one())) {
            (Some(policy), Some(reference)) => Ok(CategoricalPair { logits, ref_logits, policy, reference }),
            _ => Err(Error::EmptyMask { argument: "logits" }),
        }
    }

    /// (log π, log π_ref) of an action with these logits.
    #[inline(always)]
    fn log_probs(&self, logit: &R, ref_logit: &R) -> (R, R) {
        (self.policy.log_prob(*logit), self.reference.log_prob(*ref_logit))
    }

    /// Σ term(π(a), d(a)) over the actions. One whose probability is below the smallest normal number is never sampled; and
    /// above it e⁻ᵈ cannot overflow.
    fn sum(&self, term: impl Fn(R, R) -> R) -> R {
        tree_sum_zip(self.logits, self.ref_logits, |logit, ref_logit| {
            let (log_prob, ref_log_prob) = self.log_probs(logit, ref_logit);
            let probability = log_prob.exp();
            if probability < R::min_positive_value() { R::zero() } else { term(probability, log_prob - ref_log_prob) }
        })
    }

    /// KL(π‖π_ref), exactly.
    pub fn kl(&self) -> R {
        tree_sum_zip(self.logits, self.ref_logits, |logit, ref_logit| {
            let (log_prob, ref_log_prob) = self.log_probs(logit, ref_logit);
            kl_div(log_prob.exp(), ref_log_prob.exp(), log_prob - ref_log_prob)
        })
    }

    /// KL(π_ref‖π), exactly.
    pub fn swapped_kl(&self) -> R {
        tree_sum_zip(self.logits, self.ref_logits, |logit, ref_logit| {
            let (log_prob, ref_log_prob) = self.log_probs(logit, ref_logit);
            kl_div(ref_log_prob.exp(), log_prob.exp(), ref_log_prob - log_prob)
        })
    }

    /// Mean, bias and variance of an estimator under the policy.
    pub fn moments(&self, estimate: impl Fn(R) -> [R; 2]) -> EstimatorMoments<R> {
        let mean = self.sum(|probability, log_ratio| {
            let [value, _] = estimate(log_ratio);
            probability * value
        });
        let variance = self.sum(|probability, log_ratio| {
            let [value, _] = estimate(log_ratio);
            probability * (value - mean) * (value - mean)
        });
        EstimatorMoments { mean, bias: mean - self.kl(), variance }
    }

    /// The gradient of KL(π‖π_ref) by the logits: π(j)·(d(j) − KL).
    pub fn write_kl_gradient(&self, gradient: &mut [R]) {
        let kl = self.kl();
        self.write(gradient, |probability, _, log_ratio| probability * (log_ratio - kl));
    }

    /// The gradient of KL(π_ref‖π) by the logits of π: π(j) − π_ref(j).
    pub fn write_swapped_kl_gradient(&self, gradient: &mut [R]) {
        self.write(gradient, |probability, ref_probability, _| probability - ref_probability);
    }

    /// The mean over the policy's actions of the gradient that the estimator, used as a loss, sends to the logits:
    /// E[k′(d) ∇log π(a)], which is π(j)·(k′(d(j)) − E[k′]).
    pub fn write_expected_gradient(&self, estimate: impl Fn(R) -> [R; 2], gradient: &mut [R]) {
        let derivative = |log_ratio| {
            let [_, derivative] = estimate(log_ratio);
            derivative
        };
        let mean = self.sum(|probability, log_ratio| probability * derivative(log_ratio));
        self.write(gradient, |probability, _, log_ratio| probability * (derivative(log_ratio) - mean));
    }

    /// The total variance (trace of the covariance) of that gradient over the policy's actions.
    pub fn gradient_variance(&self, estimate: impl Fn(R) -> [R; 2]) -> R {
        let derivative = |log_ratio| {
            let [_, derivative] = estimate(log_ratio);
            derivative
        };
        // ‖1_a − π‖² = 1 − 2π(a) + Σπ².
        let collision = self.sum(|probability, _| probability * probability);
        let mean = self.sum(|probability, log_ratio| probability * derivative(log_ratio));
        let squared_norm = self.sum(|probability, log_ratio| {
            let slope = derivative(log_ratio);
            probability * slope * slope * ((R::one() - probability - probability) + collision)
        });
        let norm_of_mean = self.sum(|probability, log_ratio| {
            let centred = probability * (derivative(log_ratio) - mean);
            centred * centred
        });
        (squared_norm - norm_of_mean).larger(R::zero())
    }

    fn write(&self, gradient: &mut [R], value: impl Fn(R, R, R) -> R) {
        for ((slot, logit), ref_logit) in gradient.iter_mut().zip(self.logits).zip(self.ref_logits) {
            let (log_prob, ref_log_prob) = self.log_probs(logit, ref_logit);
            let probability = log_prob.exp();
            *slot = if *logit == R::neg_infinity() {
                R::zero()
            } else if probability < R::min_positive_value() {
                value(R::zero(), ref_log_prob.exp(), R::zero())
            } else {
                value(probability, ref_log_prob.exp(), log_prob - ref_log_prob)
            };
        }
    }
}

const ESTIMATOR: ParamSpec =
    ParamSpec::choice("kl_estimator", KlEstimator::K3.name(), KlEstimator::NAMES, "which estimator is examined");

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let estimator: KlEstimator = call.choice(ESTIMATOR.name)?;
    let difference_clamp = call.optional_number(DIFFERENCE_CLAMP.name);
    let value_clamp = call.optional_number(VALUE_CLAMP.name);
    let estimate = |log_ratio| estimator.estimate(log_ratio, difference_clamp, value_clamp);
    let pair = CategoricalPair::new(call.real("logits")?, call.real("ref_logits")?)?;
    let moments = pair.moments(estimate);
    call.write("kl", pair.kl());
    call.write("swapped_kl", pair.swapped_kl());
    call.write("mean_estimate", moments.mean);
    call.write("bias", moments.bias);
    call.write("variance", moments.variance);
    call.write("gradient_variance", pair.gradient_variance(estimate));
    if let Some(gradient) = call.output("d_logits") {
        pair.write_kl_gradient(gradient);
    }
    if let Some(gradient) = call.output("swapped_gradient") {
        pair.write_swapped_kl_gradient(gradient);
    }
    if let Some(gradient) = call.output("mean_gradient") {
        pair.write_expected_gradient(estimate, gradient);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.categorical_estimators",
    family: Family::Kl,
    title: "estimators by enumeration",
    summary: "The exact divergence of two categorical policies and its gradient, beside an estimator's mean, bias, variance and mean gradient over all actions.",
    formula: r"\mathrm{KL}(\pi\|\pi_{\mathrm{ref}}) = \sum_a \pi(a)\,d(a),\quad d(a) = \log\pi(a) - \log\pi_{\mathrm{ref}}(a),\quad
\text{bias} = \sum_a \pi(a)\,k(d(a)) - \mathrm{KL}",
    gradient: r"\partial \mathrm{KL}/\partial z_j = \pi(j)\,(d(j) - \mathrm{KL}),\qquad
\text{mean gradient of } k:\ \pi(j)\Big(k'(d(j)) - \sum_a \pi(a)\,k'(d(a))\Big)",
    notes: "k1 and k3 have bias 0; k2 has not. As losses k1 sends no gradient on average, k2 and the straight-through forms \
            that of KL(π‖π_ref), k3 that of the swapped divergence KL(π_ref‖π). Both sides must give probability 0 (a logit of \
            −∞) to the same actions.",
    sources: &[
        Source { place: "bias and variance of k1, k2, k3", ..SCHULMAN },
        Source {
            title: "On a few pitfalls in KL divergence gradient estimation for RL",
            reference: "arXiv:2506.09477",
            place: "gradients of k1, k2 and k3 as losses",
        },
    ],
    inputs: &[
        InputSpec::new("logits", Domain::Logit, &[&["V"]], "logits of the policy; -inf excludes an action"),
        InputSpec::new("ref_logits", Domain::Logit, &[&["V"]], "logits of the reference policy"),
    ],
    params: &[ESTIMATOR, DIFFERENCE_CLAMP, VALUE_CLAMP],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &[], "KL(π‖π_ref), exact (nats)"),
        OutputSpec::gradient("d_logits", "logits", &["V"], "gradient of kl by the policy's logits"),
        OutputSpec::value("swapped_kl", &[], "KL(π_ref‖π), exact (nats)"),
        OutputSpec::value("swapped_gradient", &["V"], "gradient of swapped_kl by the policy's logits"),
        OutputSpec::value("mean_estimate", &[], "the estimator's mean over the policy's actions (nats)"),
        OutputSpec::value("bias", &[], "its mean less the exact divergence (nats)"),
        OutputSpec::value("variance", &[], "its variance (nats squared)"),
        OutputSpec::value("mean_gradient", &["V"], "mean over the actions of the gradient that it sends to the logits"),
        OutputSpec::value("gradient_variance", &[], "total variance of that gradient"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "no clamp", settings: &[] },
        Dialect { name: "verl-0.9", note: "difference limited to 20, result to 10", settings: VERL_CLAMPS },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const ALL: &[KlEstimator] = KlEstimator::MEMBERS;

    fn gradient_of(pair: &CategoricalPair<'_, f64>, estimator: KlEstimator) -> Vec<f64> {
        let mut gradient = std::vec![f64::NAN; pair.logits.len()];
        pair.write_expected_gradient(|d| estimator.estimate(d, None, None), &mut gradient);
        gradient
    }

    #[test]
    fn the_two_action_example() {
        // π = (0.8, 0.2), π_ref = (0.5, 0.5): d = (ln 1.6, ln 0.4), KL = 0.8 ln 1.6 + 0.2 ln 0.4 = 0.19274475702175753.
        let logits = [Real::ln(4.0f64), 0.0];
        let pair = CategoricalPair::new(&logits, &[0.0, 0.0]).unwrap();
        assert!((pair.kl() - 0.192_744_757_021_757_53).abs() < 1e-15);
        let mut exact = [0.0; 2];
        pair.write_kl_gradient(&mut exact);
        // 0.8 (ln 1.6 − KL) = 0.22180709777918249.
        assert!((exact[0] - 0.221_807_097_779_182_5).abs() < 1e-15);
        for (estimator, expected) in [
            (KlEstimator::K1, 0.0),
            (KlEstimator::K2, exact[0]),
            (KlEstimator::K3, 0.3),
            (KlEstimator::K1Plus, exact[0]),
            (KlEstimator::K3Plus, exact[0]),
        ] {
            let gradient = gradient_of(&pair, estimator);
            assert!((gradient[0] - expected).abs() < 1e-15, "{estimator:?}: {gradient:?}");
            assert!((gradient[0] + gradient[1]).abs() < 1e-15);
        }
        // Variance of k1: 0.16 (ln 4)² = 0.30748...
        let k1 = pair.moments(|d| KlEstimator::K1.estimate(d, None, None));
        assert!((k1.variance - 0.16 * Real::ln(4.0f64) * Real::ln(4.0f64)).abs() < 1e-15);
    }

    #[test]
    fn an_excluded_action_has_no_gradient_and_one_sided_exclusion_is_an_error() {
        let masked = f64::NEG_INFINITY;
        let (logits, reference) = ([0.3, masked, -0.4], [0.0, masked, 1.0]);
        let pair = CategoricalPair::new(&logits, &reference).unwrap();
        let without = CategoricalPair::new(&[0.3, -0.4], &[0.0, 1.0]).unwrap();
        assert_eq!(pair.kl(), without.kl());
        for estimator in ALL {
            let gradient = gradient_of(&pair, *estimator);
            assert_eq!(gradient[1].to_bits(), 0);
            assert_eq!([gradient[0], gradient[2]], gradient_of(&without, *estimator)[..]);
        }
        assert_eq!(
            CategoricalPair::new(&[0.3, 0.0], &[masked, 1.0]).unwrap_err(),
            Error::NonFinite { argument: "ref_logits", index: 0 }
        );
        assert_eq!(
            CategoricalPair::new(&[masked, masked], &[masked, masked]).unwrap_err(),
            Error::EmptyMask { argument: "logits" }
        );
    }

    #[test]
    fn large_logits_stay_finite_or_give_the_right_infinity() {
        for size in [88.0f64, 355.0, 370.0, 710.0, 1000.0] {
            let logits = [size, 0.0, -size];
            let reference = [0.0, 0.0, 0.0];
            let pair = CategoricalPair::new(&logits, &reference).unwrap();
            assert!((pair.kl() - Real::ln(3.0f64)).abs() < 1e-14);
            for estimator in ALL {
                let moments = pair.moments(|d| estimator.estimate(d, None, None));
                assert!(moments.mean.is_finite() && moments.variance.is_finite());
                assert!(gradient_of(&pair, *estimator).iter().all(|g| g.is_finite()));
            }
        }
    }

    proptest! {
        #[test]
        fn k1_and_k3_are_unbiased_and_gradients_are_those_of_the_theory(
            rows in prop::collection::vec((-3.0f64..3.0, -3.0f64..3.0), 2..9)
        ) {
            let logits: Vec<f64> = rows.iter().map(|row| row.0).collect();
            let reference: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let pair = CategoricalPair::new(&logits, &reference).unwrap();
            let kl = pair.kl();
            prop_assert!(kl >= 0.0 && pair.swapped_kl() >= 0.0);
            for estimator in [KlEstimator::K1, KlEstimator::K3, KlEstimator::K1Plus, KlEstimator::K3Plus] {
                let moments = pair.moments(|d| estimator.estimate(d, None, None));
                prop_assert!(moments.bias.abs() < 1e-14, "{:?} {:?}", estimator, moments);
            }
            let mut exact = std::vec![0.0; logits.len()];
            pair.write_kl_gradient(&mut exact);
            let mut swapped = std::vec![0.0; logits.len()];
            pair.write_swapped_kl_gradient(&mut swapped);
            for j in 0..logits.len() {
                let (mut up, mut down) = (logits.clone(), logits.clone());
                up[j] += 1e-5;
                down[j] -= 1e-5;
                let above = CategoricalPair::new(&up, &reference).unwrap();
                let below = CategoricalPair::new(&down, &reference).unwrap();
                prop_assert!(((above.kl() - below.kl()) / 2e-5 - exact[j]).abs() < 1e-8);
                prop_assert!(((above.swapped_kl() - below.swapped_kl()) / 2e-5 - swapped[j]).abs() < 1e-8);
            }
            let zero = std::vec![0.0; logits.len()];
            for (estimator, theory) in [
                (KlEstimator::K1, &zero),
                (KlEstimator::K2, &exact),
                (KlEstimator::K3, &swapped),
                (KlEstimator::K1Plus, &exact),
                (KlEstimator::AbsPlus, &exact),
                (KlEstimator::K3Plus, &exact),
            ] {
                for (mean, expected) in gradient_of(&pair, estimator).iter().zip(theory) {
                    prop_assert!((mean - expected).abs() < 1e-13, "{:?}", estimator);
                }
            }
        }

        #[test]
        fn gradient_variance_is_the_mean_squared_distance(
            rows in prop::collection::vec((-2.0f64..2.0, -2.0f64..2.0), 2..6)
        ) {
            let logits: Vec<f64> = rows.iter().map(|row| row.0).collect();
            let reference: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let pair = CategoricalPair::new(&logits, &reference).unwrap();
            for estimator in ALL {
                let mean = gradient_of(&pair, *estimator);
                let mut expected = 0.0;
                for a in 0..logits.len() {
                    let (log_prob, ref_log_prob) = pair.log_probs(&logits[a], &reference[a]);
                    let slope = estimator.estimate(log_prob - ref_log_prob, None, None)[1];
                    let distance: f64 = (0..logits.len())
                        .map(|j| {
                            let p = Real::exp(pair.policy.log_prob(logits[j]));
                            let sample = slope * (f64::from(u8::from(j == a)) - p);
                            (sample - mean[j]) * (sample - mean[j])
                        })
                        .sum();
                    expected += Real::exp(log_prob) * distance;
                }
                let variance = pair.gradient_variance(|d| estimator.estimate(d, None, None));
                prop_assert!((variance - expected).abs() < 1e-12 * (1.0 + expected));
            }
        }
    }
}

//! The k3 estimator, plain and clamped.

use super::estimator::{DIFFERENCE_CLAMP, VALUE_CLAMP, VERL_CLAMPS, pair_inputs};
use super::k1::SCHULMAN;
use crate::Error;
use crate::num::{Real, exp_remainders};
use crate::spec::{Call, Dialect, Family, Operation, OutputSpec, Source, evaluate_with, map_elements};

/// The k3 estimate of KL(π‖π_ref) at one sampled token and its derivative by d = log π − log π_ref:
/// k3 = e⁻ᵈ − 1 + d, derivative 1 − e⁻ᵈ.
///
/// Its mean over samples of π is the divergence, it is never negative, and its variance is low. The mean of its gradient
/// is that of the *other* direction, KL(π_ref‖π).
///
/// `difference_clamp` c limits d to [−c, c] before the exponential, `value_clamp` v limits the result to [−v, v]; outside a
/// bound the derivative is 0, at a bound it is that of the inside (PyTorch's clamp). Without clamps a d below −ln(largest
/// number) gives infinity with derivative −infinity. Value and derivative are good to a few units in the last place, near
/// 0 too, where e⁻ᵈ − 1 + d would cancel.
///
/// Differs in: verl clamps the difference to 20 and the result to 10; TRL clamps neither.
///
/// ```
/// use plumbline_core::kl::k3::k3;
/// let [value, derivative] = k3(-1.0f64, None, None);
/// assert!((value - 0.718_281_828_459_045_2).abs() < 1e-15); // e − 2
/// assert!((derivative + 1.718_281_828_459_045_2).abs() < 1e-15); // 1 − e
/// assert_eq!(k3(-5.0, Some(20.0), Some(10.0)), [10.0, 0.0]); // e⁵ − 6 is above 10
/// ```
#[inline(always)]
pub fn k3<R: Real>(log_ratio: R, difference_clamp: Option<R>, value_clamp: Option<R>) -> [R; 2] {
    let zero = R::zero();
    let x = match difference_clamp {
        None => -log_ratio,
        Some(clamp) => (-log_ratio).clip(-clamp, clamp),
    };
    let [slope, value] = exp_remainders(x);
    let outside = difference_clamp.is_some_and(|clamp| log_ratio.abs() > clamp);
    let derivative = if outside { zero } else { zero - slope };
    match value_clamp {
        None => [value, derivative],
        Some(limit) => [value.smaller(limit), if value > limit { zero } else { derivative }],
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let difference_clamp = call.optional_number(DIFFERENCE_CLAMP.name);
    let value_clamp = call.optional_number(VALUE_CLAMP.name);
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        k3(log_prob - reference, difference_clamp, value_clamp)
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.k3",
    family: Family::Kl,
    title: "k3",
    summary: "The low-variance estimator: unbiased, never negative; its mean gradient is that of the other direction.",
    formula: r"k_3 = e^{-d} - 1 + d,\quad d = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)",
    gradient: r"\partial k_3 / \partial \log\pi_\theta = 1 - e^{-d}",
    notes: "A clamp passes the gradient inside and at its bounds and stops it outside. verl: `low_var_kl` and `k3`, \
            difference to 20, result to 10. TRL: no clamp. The lower bound of the result, -value_clamp, is never reached: \
            k3 is not negative.",
    sources: &[Source { place: "k3", ..SCHULMAN }],
    inputs: &pair_inputs(),
    params: &[DIFFERENCE_CLAMP, VALUE_CLAMP],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &["B", "T"], "the estimate at each token (nats)"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each estimate by its log_prob"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "no clamp", settings: &[] },
        Dialect { name: "verl-0.9", note: "difference limited to 20, result to 10", settings: VERL_CLAMPS },
        Dialect { name: "trl-1.16", note: "no clamp", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes_give_the_right_infinity_or_value() {
        for d in [20.0, 88.0, 89.0, 100.0, 710.0, 1000.0] {
            let [value, derivative] = k3::<f64>(d, None, None);
            assert_eq!(value, Real::exp(-d) - 1.0 + d);
            assert_eq!(derivative, 1.0 - Real::exp(-d));
            let [value, derivative] = k3::<f32>(d as f32, None, None);
            assert_eq!(value, d as f32 - 1.0);
            assert_eq!(derivative, 1.0);
        }
        assert_eq!(k3::<f32>(-89.0, None, None), [f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(k3::<f64>(-710.0, None, None), [f64::INFINITY, f64::NEG_INFINITY]);
        // The difference of two finite log-probabilities may itself overflow.
        assert_eq!(k3::<f64>(f64::NEG_INFINITY, None, None), [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(k3::<f64>(f64::INFINITY, None, None)[1], 1.0);
        assert_eq!(k3::<f64>(-1000.0, Some(20.0), Some(10.0)), [10.0, 0.0]);
        assert_eq!(k3::<f64>(0.0, None, None), [0.0, 0.0]);
    }

    #[test]
    fn clamps_pass_the_gradient_at_the_bound() {
        let [value, derivative] = k3::<f64>(20.0, Some(20.0), None);
        assert_eq!(derivative, 1.0 - Real::exp(-20.0f64));
        assert_eq!(k3(20.5, Some(20.0), None), [value, 0.0]);
        assert_eq!(k3(-1.0, None, Some(k3(-1.0f64, None, None)[0])), k3(-1.0, None, None));
    }

    proptest! {
        #[test]
        fn never_negative_and_zero_only_at_zero(d in -3.0f64..3.0, scale in 0i32..140) {
            let d = d * libm::exp2(f64::from(-scale));
            let [value, derivative] = k3(d, None, None);
            prop_assert!(value >= 0.0);
            prop_assert!(derivative * d >= 0.0);
            prop_assert!((value - d * d / 2.0).abs() <= 0.6 * (d * d * d).abs() * Real::exp(d.abs()) + 1e-15 * d * d);
            prop_assert!(k3(d as f32, None, None)[0] >= 0.0);
        }

        #[test]
        fn single_precision_agrees_with_double(d in -80.0f32..80.0) {
            // Eight units in the last place: the direct form at |d| = 1/2 loses less than four bits.
            let (single, double) = (k3(d, None, None), k3(f64::from(d), None, None));
            for (a, b) in single.iter().zip(double) {
                prop_assert!((f64::from(*a) - b).abs() <= 16.0 * f64::from(f32::EPSILON) * b.abs());
            }
        }

        #[test]
        fn derivative_is_that_of_the_value(d in -8.0f64..8.0) {
            let h = 1e-5;
            let slope = (k3(d + h, None, None)[0] - k3(d - h, None, None)[0]) / (2.0 * h);
            let derivative = k3(d, None, None)[1];
            prop_assert!((slope - derivative).abs() <= 1e-6 * (1.0 + Real::exp(-d)));
        }
    }
}

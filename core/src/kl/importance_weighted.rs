//! k3 weighted by the importance ratio of the policy that sampled.

use super::k1::SCHULMAN;
use crate::Error;
use crate::num::{Real, exp_remainders};
use crate::spec::{
    Call, Dialect, Domain, Elementwise, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, Value,
    evaluate_elements, evaluate_with,
};

/// x·eʷ without 0·∞ and without an intermediate overflow or underflow.
#[inline(always)]
fn times_exp<R: Real>(x: R, w: R) -> R {
    let factor = w.exp();
    if factor >= R::min_positive_value() && factor <= R::max_value() {
        x * factor
    } else if x == R::zero() {
        R::zero()
    } else {
        (w + x.abs().ln()).exp() * x.signum()
    }
}

/// ρ·k3 with ρ = π/π_old of the sampled token, and its derivative by log π: with the gradient through ρ it is ρ·d, without
/// it ρ·(1 − e⁻ᵈ), where d = log π − log π_ref.
///
/// The mean over samples of π_old is KL(π‖π_ref), and with the gradient through ρ the mean gradient is that of the
/// divergence: E_old[ρ d ∇log π] = E_π[d ∇log π]. Products of an overflowing and an underflowing factor are formed in log
/// space, so that e.g. ρ = e⁻¹⁰⁰⁰ against k3 ≈ e¹⁰⁰⁰ gives 1.
///
/// ```
/// use plumbline_core::kl::importance_weighted::importance_weighted_k3;
/// let [value, derivative] = importance_weighted_k3(-0.5f64, -0.5, -1.0, true); // ρ = 1, d = ½
/// assert!((value - (0.606_530_659_712_633_4 - 0.5)).abs() < 1e-15); // e^-½ − 1 + ½
/// assert_eq!(derivative, 0.5);
/// ```
#[inline(always)]
pub fn importance_weighted_k3<R: Real>(log_prob: R, old_log_prob: R, ref_log_prob: R, weight_gradient: bool) -> [R; 2] {
    let finite = |x: R| x.clip(R::min_value(), R::max_value());
    let weight = finite(log_prob - old_log_prob);
    let log_ratio = finite(log_prob - ref_log_prob);
    let [slope, k3] = exp_remainders(-log_ratio);
    // Where e⁻ᵈ is beyond the largest number, everything else in k3 and in its slope is below its rounding error.
    let ratio_beyond = (weight - log_ratio).exp();
    let value = if k3.is_finite() { times_exp(k3, weight) } else { ratio_beyond };
    let derivative = if weight_gradient {
        times_exp(log_ratio, weight)
    } else if slope.is_finite() {
        times_exp(R::zero() - slope, weight)
    } else {
        -ratio_beyond
    };
    [value, derivative]
}

/// Whether the gradient goes through the weight.
const WEIGHT_GRADIENT: ParamSpec =
    ParamSpec::flag("weight_gradient", true, "whether the gradient goes through the importance ratio");

/// [`importance_weighted_k3`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ImportanceWeightedK3 {
    /// Whether the gradient goes through the importance ratio.
    pub weight_gradient: bool,
}

impl<R: Real> Elementwise<R, 3, 2> for ImportanceWeightedK3 {
    const OPERATION: &'static str = "kl.k3_importance_weighted";
    const INPUTS: [&'static str; 3] = ["log_prob", "old_log_prob", "ref_log_prob"];
    const OUTPUTS: [&'static str; 2] = ["kl", "d_log_prob"];

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(ImportanceWeightedK3 { weight_gradient: call.flag(WEIGHT_GRADIENT.name) })
    }

    #[inline(always)]
    fn apply(&self, _: bool, [log_prob, old_log_prob, ref_log_prob]: [R; 3]) -> [R; 2] {
        importance_weighted_k3(log_prob, old_log_prob, ref_log_prob, self.weight_gradient)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, ImportanceWeightedK3, 3, 2>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.k3_importance_weighted",
    family: Family::Kl,
    title: "importance-weighted k3",
    summary: "k3 times the ratio to the policy that sampled: off-policy unbiased, in value and (through the ratio) in gradient.",
    formula: r"\rho\,k_3,\quad \rho = \pi_\theta(a)/\pi_{\mathrm{old}}(a),\quad k_3 = e^{-d} - 1 + d,\quad
d = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)",
    gradient: r"\rho\,d\ \text{(through the ratio)},\qquad \rho\,(1 - e^{-d})\ \text{(ratio stopped)}",
    notes: "With weight_gradient = false the ratio is a stopped factor, and the gradient is not that of the value. \
            TRL multiplies k3 by its ratio with gradient (`use_bias_correction_kl`, on by default since 1.9); verl has \
            no weighted form.",
    sources: &[
        Source {
            title: "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
            reference: "arXiv:2512.02556",
            place: "scaling GRPO, unbiased KL estimate",
        },
        Source { place: "k3", ..SCHULMAN },
    ],
    inputs: &[
        InputSpec::new(
            "log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of the sampled token, current policy (nats)",
        ),
        InputSpec::new(
            "old_log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "the same under the policy that sampled (nats)",
        ),
        InputSpec::new("ref_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the reference policy (nats)"),
        InputSpec::MASK,
    ],
    params: &[WEIGHT_GRADIENT],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &["B", "T"], "the weighted estimate at each token (nats)"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each estimate by its log_prob")
            .stopped(),
    ],
    dialects: &[
        Dialect { name: "paper", note: "gradient through the ratio", settings: &[] },
        Dialect {
            name: "trl-1.16",
            note: "gradient through the ratio",
            settings: &[(WEIGHT_GRADIENT.name, Value::Flag(true))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_underflowing_ratio_against_an_overflowing_estimate() {
        let [value, derivative] = importance_weighted_k3(-2000.0f64, -1000.0, -1000.0, false);
        assert_eq!([value, derivative], [1.0, -1.0]);
        // rho d = -1000 e^-1000: below the smallest number.
        assert_eq!(importance_weighted_k3(-2000.0f64, -1000.0, -1000.0, true)[1], -0.0);
        assert_eq!(importance_weighted_k3(0.0f64, -1000.0, 0.0, true), [0.0, 0.0]);
        assert_eq!(importance_weighted_k3(0.0f32, -100.0, -1.0, true), [f32::INFINITY; 2]);
        // e^710 overflows, e^710 k3(1e-3) = e^710 5e-7 does not.
        let [value, _] = importance_weighted_k3(0.0f64, -710.0, -1e-3, true);
        assert!((value / 1.116_625_143_684_330_3e302 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn derivative_is_that_of_the_value(log_prob in -4.0f64..0.0, old in -4.0f64..0.0, reference in -4.0f64..0.0) {
            let h = 1e-5;
            let at = |x: f64| importance_weighted_k3(x, old, reference, true);
            let slope = (at(log_prob + h)[0] - at(log_prob - h)[0]) / (2.0 * h);
            let scale = Real::exp((log_prob - old).abs() + (log_prob - reference).abs());
            prop_assert!((slope - at(log_prob)[1]).abs() <= 1e-7 * scale);
            // With the ratio stopped only k3 moves.
            let rho = Real::exp(log_prob - old);
            let stopped = importance_weighted_k3(log_prob, old, reference, false)[1];
            let expected = rho * (1.0 - Real::exp(reference - log_prob));
            prop_assert!((stopped - expected).abs() <= 1e-13 * scale);
        }
    }
}

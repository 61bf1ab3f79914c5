//! The straight-through estimators k1+, abs+ and k3+: the value of one estimator with the gradient of k2.

use super::abs::abs;
use super::estimator::{DIFFERENCE_CLAMP, VALUE_CLAMP, VERL_CLAMPS, pair_inputs};
use super::k1::{SCHULMAN, k1};
use super::k2::k2;
use super::k3::k3;
use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, evaluate_with, map_elements,
};

#[inline(always)]
fn with_gradient_of_k2<R: Real>(log_ratio: R, [value, _]: [R; 2]) -> [R; 2] {
    let [_, derivative] = k2(log_ratio);
    [value, derivative]
}

/// k1+ = sg(k1) + k2 − sg(k2): the value d, the derivative d. Value and gradient are both unbiased.
///
/// ```
/// use plumbline_core::kl::straight_through::k1_plus;
/// assert_eq!(k1_plus(-0.25), [-0.25, -0.25]);
/// ```
#[inline(always)]
pub fn k1_plus<R: Real>(log_ratio: R) -> [R; 2] {
    with_gradient_of_k2(log_ratio, k1(log_ratio))
}

/// abs+ = sg(|d|) + k2 − sg(k2): the value |d|, the derivative d.
///
/// ```
/// use plumbline_core::kl::straight_through::abs_plus;
/// assert_eq!(abs_plus(-0.25), [0.25, -0.25]);
/// ```
#[inline(always)]
pub fn abs_plus<R: Real>(log_ratio: R) -> [R; 2] {
    with_gradient_of_k2(log_ratio, abs(log_ratio))
}

/// k3+ = sg(k3) + k2 − sg(k2): the value of k3 (clamped as asked), the derivative d (never clamped).
///
/// ```
/// use plumbline_core::kl::straight_through::k3_plus;
/// assert_eq!(k3_plus(-5.0, Some(20.0), Some(10.0)), [10.0, -5.0]);
/// ```
#[inline(always)]
pub fn k3_plus<R: Real>(log_ratio: R, difference_clamp: Option<R>, value_clamp: Option<R>) -> [R; 2] {
    with_gradient_of_k2(log_ratio, k3(log_ratio, difference_clamp, value_clamp))
}

fn evaluate_k1_plus<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        k1_plus(log_prob - reference)
    })
}

fn evaluate_abs_plus<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        abs_plus(log_prob - reference)
    })
}

fn evaluate_k3_plus<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let difference_clamp = call.optional_number(DIFFERENCE_CLAMP.name);
    let value_clamp = call.optional_number(VALUE_CLAMP.name);
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        k3_plus(log_prob - reference, difference_clamp, value_clamp)
    })
}

const INPUTS: [InputSpec; 3] = pair_inputs();
const NO_PARAMS: &[ParamSpec] = &[];
const GRADIENT: &str = r"d = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)\quad(\text{the gradient of } k_2)";
const SOURCES: &[Source] = &[
    Source { place: "k1, k2 and k3, whose values and gradients are combined", ..SCHULMAN },
    Source {
        title: "On a few pitfalls in KL divergence gradient estimation for RL",
        reference: "arXiv:2506.09477",
        place: "gradients of k1, k2 and k3 as losses",
    },
];
const OUTPUTS: &[OutputSpec] = &[
    OutputSpec::value("kl", &["B", "T"], "the estimate at each token (nats)"),
    OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "the gradient of k2 at each token").stopped(),
];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "kl.k1_plus",
        family: Family::Kl,
        title: "k1+ (straight-through)",
        summary: "The value of k1 with the gradient of k2: both unbiased.",
        formula: r"k_1^+ = \mathrm{sg}(k_1) + k_2 - \mathrm{sg}(k_2)",
        gradient: GRADIENT,
        notes: "Equal in verl (`kl+`, `k1+`).",
        sources: SOURCES,
        inputs: &INPUTS,
        params: NO_PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_k1_plus),
    },
    Operation {
        id: "kl.abs_plus",
        family: Family::Kl,
        title: "abs+ (straight-through)",
        summary: "The absolute log-ratio as value with the gradient of k2.",
        formula: r"\mathrm{abs}^+ = \mathrm{sg}(|d|) + k_2 - \mathrm{sg}(k_2)",
        gradient: GRADIENT,
        notes: "Equal in verl (`abs+`).",
        sources: SOURCES,
        inputs: &INPUTS,
        params: NO_PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_abs_plus),
    },
    Operation {
        id: "kl.k3_plus",
        family: Family::Kl,
        title: "k3+ (straight-through)",
        summary: "The value of k3 with the gradient of k2: the low-variance value, the unbiased gradient.",
        formula: r"k_3^+ = \mathrm{sg}(k_3) + k_2 - \mathrm{sg}(k_2)",
        gradient: GRADIENT,
        notes: "The clamps act on the value only. verl: `low_var_kl+` and `k3+`, difference to 20, result to 10.",
        sources: SOURCES,
        inputs: &INPUTS,
        params: &[DIFFERENCE_CLAMP, VALUE_CLAMP],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[
            Dialect { name: "paper", note: "no clamp", settings: &[] },
            Dialect { name: "verl-0.9", note: "difference limited to 20, result to 10", settings: VERL_CLAMPS },
        ],
        evaluate: evaluate_with!(evaluate_k3_plus),
    },
];

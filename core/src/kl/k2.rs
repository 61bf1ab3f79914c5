//! The k2 estimator: half the squared log-ratio.

use super::estimator::pair_inputs;
use super::k1::SCHULMAN;
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with, map_elements};

/// The k2 estimate of KL(π‖π_ref) at one sampled token, k2 = d²/2 with d = log π − log π_ref, and its derivative by d,
/// which is d.
///
/// The value is biased, but the mean of its gradient over samples of π, E[d ∇log π], is the gradient of KL(π‖π_ref)
/// exactly. Never negative. A square beyond the largest number is infinity; the gradient stays d.
///
/// ```
/// use plumbline_core::kl::k2::k2;
/// assert_eq!(k2(-0.5), [0.125, -0.5]);
/// ```
#[inline(always)]
pub fn k2<R: Real>(log_ratio: R) -> [R; 2] {
    [R::half() * log_ratio * log_ratio, log_ratio]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        k2(log_prob - reference)
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.k2",
    family: Family::Kl,
    title: "k2",
    summary: "Half the squared log-ratio of the sampled token: a biased value whose mean gradient is that of the divergence.",
    formula: r"k_2 = \tfrac12 d^2,\quad d = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)",
    gradient: r"\partial k_2 / \partial \log\pi_\theta = d",
    notes: "Equal in verl (`mse`, `k2`).",
    sources: &[Source { place: "k2", ..SCHULMAN }],
    inputs: &pair_inputs(),
    params: &[],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &["B", "T"], "the estimate at each token (nats)"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each estimate by its log_prob"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_infinity_in_the_value_only() {
        assert_eq!(k2(1e200f64), [f64::INFINITY, 1e200]);
        assert_eq!(k2(-1000f32), [500_000.0, -1000.0]);
    }
}

//! The k1 estimator: the log-ratio itself.

use super::estimator::pair_inputs;
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with, map_elements};

/// Schulman's note on estimating a KL divergence from samples, where k1, k2 and k3 are compared.
pub const SCHULMAN: Source =
    Source { title: "Approximating KL Divergence", reference: "Schulman 2020, joschu.net/blog/kl-approx", place: "k1" };

/// The k1 estimate of KL(π‖π_ref) at one sampled token, k1 = d with d = log π − log π_ref, and its derivative by d.
///
/// Its mean over samples of π is the divergence; a single value can be negative, and the mean of its gradient is 0
/// (it is the score), so as a loss term it teaches nothing. Any finite d is legal. `d_log_prob` is 1.
///
/// ```
/// use plumbline_core::kl::k1::k1;
/// assert_eq!(k1(-0.25), [-0.25, 1.0]);
/// ```
#[inline(always)]
pub fn k1<R: Real>(log_ratio: R) -> [R; 2] {
    [log_ratio, R::one()]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        k1(log_prob - reference)
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.k1",
    family: Family::Kl,
    title: "k1",
    summary: "The log-ratio of the sampled token: unbiased, high variance, may be negative.",
    formula: r"k_1 = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)",
    gradient: r"\partial k_1 / \partial \log\pi_\theta = 1",
    notes: "The gradient is 1 everywhere, so its expectation under the policy is 0. Equal in verl (`kl`, `k1`) and in TRL's RLOO.",
    sources: &[SCHULMAN],
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

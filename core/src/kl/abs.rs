//! The absolute log-ratio as a penalty.

use super::estimator::pair_inputs;
use super::k1::SCHULMAN;
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, OutputSpec, Source, evaluate_with, map_elements};

/// |d| with d = log π − log π_ref, and its derivative by d, the sign of d (0 at d = 0, as PyTorch has it).
///
/// It is no estimate of the divergence: its mean is at least |KL|. Any finite d is legal.
///
/// ```
/// use plumbline_core::kl::abs::abs;
/// assert_eq!(abs(-0.25), [0.25, -1.0]);
/// assert_eq!(abs(0.0), [0.0, 0.0]);
/// ```
#[inline(always)]
pub fn abs<R: Real>(log_ratio: R) -> [R; 2] {
    let zero = R::zero();
    let sign = if log_ratio > zero {
        R::one()
    } else if log_ratio < zero {
        -R::one()
    } else {
        zero
    };
    [log_ratio.abs(), sign]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_elements(call, ["log_prob", "ref_log_prob"], ["kl", "d_log_prob"], |[log_prob, reference]| {
        abs(log_prob - reference)
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.abs",
    family: Family::Kl,
    title: "absolute log-ratio",
    summary: "The absolute value of the sampled token's log-ratio: a penalty, not an estimate of the divergence.",
    formula: r"|d|,\quad d = \log\pi_\theta(a) - \log\pi_{\mathrm{ref}}(a)",
    gradient: r"\partial |d| / \partial \log\pi_\theta = \operatorname{sign}(d)",
    notes: "The gradient at d = 0 is 0. Equal in verl (`abs`); TRL has no such mode.",
    sources: &[Source { place: "the log-ratio that k1 is made of", ..SCHULMAN }],
    inputs: &pair_inputs(),
    params: &[],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &["B", "T"], "the penalty at each token (nats)"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each penalty by its log_prob"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

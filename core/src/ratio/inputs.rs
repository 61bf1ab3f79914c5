//! Inputs and parameters that the files of this family share.

use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::ratio::token::LogRatioBounds;
use crate::spec::{Call, Domain, InputSpec, ParamSpec, Range};

/// log π_θ of the sampled tokens.
pub const LOG_PROB: InputSpec = InputSpec::new(
    "log_prob",
    Domain::LogProb,
    &[&["B", "T"]],
    "log-probability of the sampled token, current policy (nats)",
);
/// log π_old of the sampled tokens.
pub const OLD_LOG_PROB: InputSpec = InputSpec::new(
    "old_log_prob",
    Domain::LogProb,
    &[&["B", "T"]],
    "the same under the policy before the update, recomputed by the trainer (nats)",
);
/// log π_rollout of the sampled tokens.
pub const ROLLOUT_LOG_PROB: InputSpec = InputSpec::new(
    "rollout_log_prob",
    Domain::LogProb,
    &[&["B", "T"]],
    "the same as the inference engine reported it when it drew the token (nats)",
);
/// Lower end of the clamp of a log-ratio.
pub const LOG_RATIO_MIN: ParamSpec = ParamSpec::optional(
    "log_ratio_min",
    r"\ell_{\min}",
    None,
    Range::ANY,
    "lower clamp of the log-ratio before the exponential (nats); none = no clamp",
);
/// Upper end of the clamp of a log-ratio.
pub const LOG_RATIO_MAX: ParamSpec = ParamSpec::optional(
    "log_ratio_max",
    r"\ell_{\max}",
    None,
    Range::ANY,
    "upper clamp of the log-ratio before the exponential (nats); none = no clamp",
);
/// What some libraries add to the number of tokens that a mean divides by.
pub const LENGTH_EPS: ParamSpec = ParamSpec::number(
    "length_eps",
    r"\epsilon",
    0.0,
    Range::NON_NEGATIVE,
    "added to the number of tokens that a mean divides by",
);

/// The clamp of the call's parameters.
pub fn bounds<R: Real>(call: &Call<'_, R>) -> Result<LogRatioBounds<R>, Error> {
    LogRatioBounds::new(call.optional_number("log_ratio_min"), call.optional_number("log_ratio_max"))
}

/// The mask and two log-probabilities per token, finite where the mask keeps.
pub fn pair<'c, R: Real>(
    call: &Call<'c, R>,
    first: &'static str,
    second: &'static str,
) -> Result<(Mask<'c>, &'c [R], &'c [R]), Error> {
    let mask = call.mask()?;
    let (a, b) = (call.real(first)?, call.real(second)?);
    mask.check_finite(first, a)?;
    mask.check_finite(second, b)?;
    Ok((mask, a, b))
}

/// One element of a slice; +0 past its end.
#[inline(always)]
pub fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

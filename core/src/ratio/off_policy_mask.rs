//! Off-policy sequence masking: leave out responses that are both bad and far from the current policy.

use crate::Error;
use crate::num::Real;
use crate::ratio::inputs::{LOG_PROB, ROLLOUT_LOG_PROB, at, pair};
use crate::ratio::sequence::{mean_log_ratio, row_log_ratio_sum};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with,
};

/// Whether a response (or token) is kept: its advantage is not negative, or its mean KL is at most the threshold.
///
/// ```
/// use plumbline_core::ratio::off_policy_mask::keeps;
/// assert!(keeps(0.0, 9.0, 0.5) && keeps(-1.0, 0.5, 0.5) && !keeps(-1.0, 0.6, 0.5));
/// ```
#[inline(always)]
pub fn keeps<R: Real>(advantage: R, mean_kl: R, threshold: R) -> bool {
    advantage >= R::zero() || mean_kl <= threshold
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let threshold: R = call.number("kl_threshold")?;
    let (mask, log_prob, rollout) = pair(call, "log_prob", "rollout_log_prob")?;
    let per_token = call.rank("advantage") == 2;
    let advantage = if per_token {
        let advantage = call.real("advantage")?;
        mask.check_finite("advantage", advantage)?;
        advantage
    } else {
        call.finite("advantage")?
    };
    let [mut keep, mut kl] = ["keep", "mean_kl"].map(|name| call.output(name));
    for row in 0..mask.shape().rows {
        let mean_kl = mean_log_ratio(row_log_ratio_sum(&mask, row, rollout, log_prob), mask.length(row));
        mask.write_row(row, &mut keep, |slot| {
            let advantage = at(advantage, if per_token { slot } else { row });
            if keeps(advantage, mean_kl, threshold) { R::one() } else { R::zero() }
        });
        crate::batch::set(&mut kl, row, mean_kl);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.off_policy_mask",
    family: Family::Ratio,
    title: "Off-policy sequence mask (OPSM)",
    summary: "A mask without the responses of negative advantage that the current policy has moved far away from.",
    formula: r"M_{it} = m_{it}\,\Big[\,A_i \ge 0\ \text{or}\ \frac{1}{L_i}\sum_t m_{it}\log\frac{\pi_{\mathrm{rollout}}(a_{it})}{\pi_\theta(a_{it})} \le \delta\,\Big]",
    gradient: "",
    notes: "The policy that drew the tokens is the inference engine's; where its log-probabilities are missing, π_old takes \
            its place. Masked terms leave the loss, its denominator stays. The KL is the k1 estimate and may be negative. \
            TRL computes the same, but lets a token without an engine log-probability (NaN) count as 0, here \
            it must be masked.",
    sources: &[Source {
        title: "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
        reference: "arXiv:2512.02556",
        place: "Eq. 9, off-policy sequence masking",
    }],
    inputs: &[
        LOG_PROB,
        ROLLOUT_LOG_PROB,
        InputSpec::new(
            "advantage",
            Domain::Advantage,
            &[&["B"], &["B", "T"]],
            "advantage of each response, or of each of its tokens; only its sign is used",
        ),
        InputSpec::MASK,
    ],
    params: &[ParamSpec::number(
        "kl_threshold",
        r"\delta",
        0.5,
        Range::NON_NEGATIVE,
        "the largest mean KL at which a response of negative advantage is kept (nats per token)",
    )],
    defaults: &[],
    outputs: &[
        OutputSpec::value("keep", &["B", "T"], "the new mask: 1 where the token is kept"),
        OutputSpec::value("mean_kl", &["B"], "mean log π_rollout − log π_θ of each response (nats per token)"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "as the formula", settings: &[] },
        Dialect { name: "trl-1.16", note: "the threshold has no default", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn only_bad_and_far_responses_go() {
        let case = Case::new(SPECS, "ratio.off_policy_mask")
            .real("log_prob", &[4, 2], &[-2.0, -1.0, -2.0, -1.0, -1.0, f64::NAN, 3.0, 3.0])
            .real("rollout_log_prob", &[4, 2], &[-0.5, -0.5, -0.5, -0.5, -0.5, 1.0, f64::NAN, 1.0])
            .mask("mask", &[4, 2], &[1, 1, 1, 1, 1, 0, 0, 0])
            .real("advantage", &[4], &[-1.0, 0.0, -1.0, -1.0]);
        assert_eq!(case.get("mean_kl").unwrap(), [1.0, 1.0, 0.5, 0.0]);
        assert_eq!(case.get("keep").unwrap(), [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(case.clone().number("kl_threshold", 1.0).get("keep").unwrap()[0], 1.0);
        let per_token = case.real("advantage", &[4, 2], &[-1.0, 1.0, 0.0, 0.0, 0.0, f64::NAN, f64::NAN, 0.0]);
        assert_eq!(per_token.get("keep").unwrap()[..2], [0.0, 1.0]);
    }
}

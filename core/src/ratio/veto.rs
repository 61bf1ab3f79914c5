//! Rejection of a whole response for one catastrophic token.

use crate::Error;
use crate::num::Real;
use crate::ratio::inputs::{OLD_LOG_PROB, ROLLOUT_LOG_PROB, at, pair};
use crate::ratio::token::log_ratio;
use crate::spec::{Call, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// Whether a token is catastrophic: its log-ratio log π_old − log π_rollout lies below ln(`threshold`).
///
/// ```
/// assert!(plumbline_core::ratio::veto::is_catastrophic(-10.0, 1e-4));
/// assert!(!plumbline_core::ratio::veto::is_catastrophic(-9.0, 1e-4));
/// ```
#[inline(always)]
pub fn is_catastrophic<R: Real>(log_ratio: R, threshold: R) -> bool {
    log_ratio < threshold.ln()
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let threshold: R = call.number("threshold")?;
    let (mask, old, rollout) = pair(call, "old_log_prob", "rollout_log_prob")?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let catastrophic = |slot: usize| is_catastrophic(log_ratio(at(old, slot), at(rollout, slot)), threshold);
    let mut keep = call.output("keep");
    let (mut tokens, mut rows) = (0, 0);
    for row in 0..mask.shape().rows {
        let hits = mask.kept(row).filter(|slot| catastrophic(*slot)).count();
        tokens += hits;
        rows += usize::from(hits > 0);
        mask.write_row(row, &mut keep, |_| if hits > 0 { R::zero() } else { R::one() });
    }
    call.write("catastrophic_fraction", R::from_count(tokens) / R::from_count(mask.count()));
    call.write("sequence_masked_fraction", R::from_count(rows) / R::from_count(mask.nonempty_rows()));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.veto",
    family: Family::Ratio,
    title: "Veto",
    summary: "A new mask without the responses in which the trainer finds one sampled token all but impossible.",
    formula: r"m'_{it} = m_{it}\prod_{u:\,m_{iu}=1}[\,\pi_{\mathrm{old}}(a_{iu})/\pi_{\mathrm{rollout}}(a_{iu}) \ge \tau\,]",
    gradient: "",
    notes: "The comparison is in log space, on the ratio of single tokens before any truncation. No dialects: verl had this \
            rule as rollout_token_veto_threshold (0.6 to 0.7, 1e-4 in its examples) and 0.9 expresses it by the seq_max \
            criteria of ratio.rejection.",
    sources: &[Source {
        title: "verl documentation: Rollout Importance Sampling (0.6)",
        reference: "verl.readthedocs.io",
        place: "veto threshold",
    }],
    inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
    params: &[ParamSpec::number(
        "threshold",
        r"\tau",
        1e-4,
        Range::POSITIVE,
        "the smallest ratio π_old/π_rollout of a token that does not veto its response",
    )],
    defaults: &[],
    outputs: &[
        OutputSpec::value("keep", &["B", "T"], "the new mask: 1 where the token is kept"),
        OutputSpec::value("catastrophic_fraction", &[], "share of tokens below the threshold"),
        OutputSpec::value("sequence_masked_fraction", &[], "share of responses (with a token) that are vetoed"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn one_token_takes_its_response_along() {
        let case = Case::new(SPECS, "ratio.veto")
            .real("old_log_prob", &[3, 2], &[-11.0, 0.0, 0.0, -50.0, 0.0, 3.0])
            .real("rollout_log_prob", &[3, 2], &[-1.0, 0.0, 0.0, 0.0, 0.0, -900.0])
            .mask("mask", &[3, 2], &[1, 1, 1, 0, 1, 1]);
        assert_eq!(case.get("keep").unwrap(), [0.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(case.get("catastrophic_fraction").unwrap(), [0.2]);
        assert_eq!(case.get("sequence_masked_fraction").unwrap(), [1.0 / 3.0]);
        assert_eq!(case.clone().number("threshold", 1e-5).get("keep").unwrap()[0], 1.0);
        assert_eq!(case.mask("mask", &[3, 2], &[0; 6]).get("keep"), Err(Error::EmptyMask { argument: "mask" }));
    }
}

//! Weights that correct for the inference engine: truncated (TIS), or zero outside a band (MIS, IcePop).

use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::ratio::inputs::{LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, ROLLOUT_LOG_PROB, at, bounds, pair};
use crate::ratio::sequence::{mean_log_ratio, row_log_ratio_sum};
use crate::ratio::token::{LogRatioBounds, log_ratio, token_ratio};
use crate::spec::{
    Call, Choice, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

/// Truncated importance sampling between the trainer and the inference engine.
pub const TIS: Source = Source {
    title: "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    reference: "Yao et al. 2025, fengyao.notion.site/off-policy-rl",
    place: "truncated importance sampling",
};
/// IcePop.
pub const ICEPOP: Source = Source {
    title: "Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
    reference: "arXiv:2510.18855",
    place: "IcePop: double-sided masking",
};
/// Masked importance sampling at sequence level.
pub const MIS: Source = Source {
    title: "When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference Mismatch",
    reference: "Liu, Li et al. 2025, richardli.xyz/rl-collapse",
    place: "masked importance sampling",
};

choice! {
    /// What one weight belongs to.
    pub enum WeightLevel {
        /// A token: exp(d_t).
        Token = "token",
        /// A response: exp(Σ_t d_t), at each of its tokens.
        Sequence = "sequence",
        /// A response: exp(Σ_t d_t / L), at each of its tokens.
        GeometricMean = "geometric_mean",
    }
}

/// The log-weight of one token, d_t = log π_old − log π_rollout or what its response gives it at `level`, before any clamp.
pub fn log_weight<'m, R: Real>(
    level: WeightLevel,
    mask: &'m Mask<'m>,
    row: usize,
    old_log_prob: &'m [R],
    rollout_log_prob: &'m [R],
) -> impl Fn(usize) -> R + 'm {
    let whole = match level {
        WeightLevel::Token => R::zero(),
        WeightLevel::Sequence => row_log_ratio_sum(mask, row, old_log_prob, rollout_log_prob),
        WeightLevel::GeometricMean => {
            mean_log_ratio(row_log_ratio_sum(mask, row, old_log_prob, rollout_log_prob), mask.length(row))
        }
    };
    move |slot| match level {
        WeightLevel::Token => log_ratio(at(old_log_prob, slot), at(rollout_log_prob, slot)),
        _ => whole,
    }
}

/// The truncated weight min(max(w, `low`), `high`); plain TIS has `low` = 0.
///
/// ```
/// assert_eq!(plumbline_core::ratio::importance_weight::truncated_weight(2.7, 0.0, 2.0), 2.0);
/// ```
#[inline(always)]
pub fn truncated_weight<R: Real>(weight: R, low: R, high: R) -> R {
    weight.clip(low, high)
}

/// The weight where it lies in [`low`, `high`], ends included, and 0 outside.
///
/// ```
/// assert_eq!(plumbline_core::ratio::importance_weight::masked_weight(2.7, 0.5, 2.0), 0.0);
/// ```
#[inline(always)]
pub fn masked_weight<R: Real>(weight: R, low: R, high: R) -> R {
    if weight >= low && weight <= high { weight } else { R::zero() }
}

/// The band [`weight_min`, `weight_max`] of the call; an absent end does not bind.
pub(crate) fn band<R: Real>(call: &Call<'_, R>) -> Result<(R, R), Error> {
    let low = call.optional_number("weight_min").unwrap_or(R::zero());
    let high = call.optional_number("weight_max").unwrap_or(R::infinity());
    if low <= high {
        Ok((low, high))
    } else {
        Err(Error::OutOfRange { argument: "weight_min", value: low.to_f64(), legal: "at most weight_max" })
    }
}

fn weights<R: Real>(call: &mut Call<'_, R>, limit: impl Fn(R, R, R) -> R) -> Result<(), Error> {
    let level: WeightLevel = call.choice("level")?;
    let clamp: LogRatioBounds<R> = bounds(call)?;
    let (low, high) = band(call)?;
    let (mask, old, rollout) = pair(call, "old_log_prob", "rollout_log_prob")?;
    let mut output = call.output("importance_weight");
    for row in 0..mask.shape().rows {
        let log_weight = log_weight(level, &mask, row, old, rollout);
        mask.write_row(row, &mut output, |slot| limit(token_ratio(log_weight(slot), clamp)[0], low, high));
    }
    Ok(())
}

fn evaluate_tis<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    weights(call, truncated_weight)
}

fn evaluate_mis<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    weights(call, masked_weight)
}

/// The parameter that says what one weight belongs to.
pub(crate) const LEVEL: ParamSpec = ParamSpec::choice(
    "level",
    "token",
    WeightLevel::NAMES,
    "what one weight belongs to: token; sequence = product over the response; geometric_mean = its L-th root",
);
const OUTPUT: OutputSpec = OutputSpec::value(
    "importance_weight",
    &["B", "T"],
    "the weight at each token, a constant of the loss (no gradient flows through it)",
);
const VERL_CLAMP: [(&str, Value); 2] =
    [("log_ratio_min", Value::Number(-20.0)), ("log_ratio_max", Value::Number(20.0))];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "ratio.tis",
        family: Family::Ratio,
        title: "Truncated importance weight (TIS)",
        summary: "How much more probable a token or response is under the trainer than under the inference engine, cut off \
                  at a cap.",
        formula: r"w = \min\big(\exp(\log\pi_{\mathrm{old}} - \log\pi_{\mathrm{rollout}}),\, C\big)",
        gradient: "",
        notes: "The operands are the trainer's recomputed policy and the engine's, not the current policy. With weight_min \
                the weight is clipped on both sides. verl clamps the log-ratio to ±20 (at sequence level: the sum) and caps \
                at 2; TRL does not clamp and caps at 3. TRL counts a token without an engine log-probability (NaN) with \
                ratio 1; here it must be masked.",
        sources: &[TIS],
        inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
        params: &[
            LEVEL,
            ParamSpec::optional("weight_min", r"C_{\min}", None, Range::POSITIVE, "smallest weight; none = 0"),
            ParamSpec::optional("weight_max", "C", Some(2.0), Range::POSITIVE, "largest weight; none = no cap"),
            LOG_RATIO_MIN,
            LOG_RATIO_MAX,
        ],
        defaults: &[],
        outputs: &[OUTPUT],
        dialects: &[
            Dialect { name: "paper", note: "no clamp of the log-ratio", settings: &[] },
            Dialect { name: "verl-0.9", note: "the log-ratio is clamped to ±20", settings: &VERL_CLAMP },
            Dialect {
                name: "trl-1.16",
                note: "the cap is 3 (token_truncate; level = sequence is sequence_truncate)",
                settings: &[("weight_max", Value::Number(3.0))],
            },
        ],
        evaluate: evaluate_with!(evaluate_tis),
    },
    Operation {
        id: "ratio.mis",
        family: Family::Ratio,
        title: "Masked importance weight (MIS, IcePop)",
        summary: "The importance weight where it lies inside a band; a token or response outside it is left out.",
        formula: r"w = \rho\,[\,C_{\min} \le \rho \le C_{\max}\,],\quad
            \rho = \exp(\log\pi_{\mathrm{old}} - \log\pi_{\mathrm{rollout}})",
        gradient: "",
        notes: "Both ends belong to the band. Token level with both ends is IcePop, sequence level with a cap alone is masked \
                importance sampling. verl clamps the log-ratio to ±20 and needs both ends; TRL's default is sequence level \
                with a cap of 3 and no lower end.",
        sources: &[ICEPOP, MIS],
        inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
        params: &[
            LEVEL,
            ParamSpec::optional(
                "weight_min",
                r"C_{\min}",
                Some(0.5),
                Range::POSITIVE,
                "lower end of the band; none = 0",
            ),
            ParamSpec::optional(
                "weight_max",
                r"C_{\max}",
                Some(5.0),
                Range::POSITIVE,
                "upper end of the band; none = no end",
            ),
            LOG_RATIO_MIN,
            LOG_RATIO_MAX,
        ],
        defaults: &[],
        outputs: &[OUTPUT],
        dialects: &[
            Dialect { name: "paper", note: "no clamp of the log-ratio; band 0.5 … 5", settings: &[] },
            Dialect { name: "verl-0.9", note: "the log-ratio is clamped to ±20", settings: &VERL_CLAMP },
            Dialect {
                name: "trl-1.16",
                note: "sequence level, a cap of 3 and no lower end (sequence_mask; level = token is token_mask)",
                settings: &[
                    ("level", Value::Name("sequence")),
                    ("weight_min", Value::None),
                    ("weight_max", Value::Number(3.0)),
                ],
            },
        ],
        evaluate: evaluate_with!(evaluate_mis),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn case(id: &str, log_ratios: &[f64]) -> Case {
        let shape = [1, log_ratios.len()];
        Case::new(SPECS, id).real("old_log_prob", &shape, log_ratios).real(
            "rollout_log_prob",
            &shape,
            &[0.0; 8][..shape[1]],
        )
    }

    #[test]
    fn caps_and_bands() {
        let tis = case("ratio.tis", &[1.0, 0.1, -3.0]);
        assert_eq!(tis.get("importance_weight").unwrap(), [2.0, 1.1051709180756477, 0.049787068367863944]);
        let both = tis.clone().number("weight_min", 0.25).get("importance_weight").unwrap();
        assert_eq!(both, [2.0, 1.1051709180756477, 0.25]);
        let mis = case("ratio.mis", &[1000.0, 0.1, -3.0]);
        assert_eq!(mis.get("importance_weight").unwrap(), [0.0, 1.1051709180756477, 0.0]);
        // The ends belong to the band.
        assert_eq!(masked_weight(0.5, 0.5, 2.0), 0.5);
        assert_eq!(masked_weight(2.0, 0.5, 2.0), 2.0);
    }

    #[test]
    fn levels() {
        // Log-ratios 0.3, −0.1 and junk: product e^0.2, geometric mean e^0.1.
        let case =
            |level| case("ratio.tis", &[0.3, -0.1, f64::NAN]).mask("mask", &[1, 3], &[1, 1, 0]).choice("level", level);
        let product = case("sequence").get("importance_weight").unwrap();
        assert!((product[0] - 1.2214027581601699).abs() < 1e-15 && product[1] == product[0] && product[2] == 0.0);
        let mean = case("geometric_mean").get("importance_weight").unwrap();
        assert!((mean[0] - 1.1051709180756477).abs() < 1e-15 && mean[1] == mean[0] && mean[2] == 0.0);
    }

    #[test]
    fn a_band_that_is_upside_down_is_an_error() {
        let error = case("ratio.mis", &[0.0]).number("weight_min", 6.0).get("importance_weight");
        assert_eq!(error, Err(Error::OutOfRange { argument: "weight_min", value: 6.0, legal: "at most weight_max" }));
    }

    proptest! {
        #[test]
        fn weights_stay_in_their_band(values in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6)) {
            for level in WeightLevel::NAMES {
                for weight in case("ratio.tis", &values).choice("level", level).get("importance_weight").unwrap() {
                    prop_assert!((0.0..=2.0).contains(&weight));
                }
                for weight in case("ratio.mis", &values).choice("level", level).get("importance_weight").unwrap() {
                    prop_assert!(weight == 0.0 || (0.5..=5.0).contains(&weight));
                }
            }
        }
    }
}

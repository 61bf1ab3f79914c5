//! What the importance weights of a batch look like.

use crate::Error;
use crate::num::Real;
use crate::ratio::importance_weight::{LEVEL, WeightLevel, log_weight, masked_weight, truncated_weight};
use crate::ratio::inputs::{LENGTH_EPS, LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, ROLLOUT_LOG_PROB, bounds, pair};
use crate::ratio::statistics::{
    EMPTY_ROW, EmptyRow, VERL_DIAGNOSTICS, counts, row_fraction, row_mean, summarise_rows, token_deviation,
    token_extremes, token_fraction, token_mean,
};
use crate::ratio::token::token_ratio;
use crate::spec::{
    Call, Choice, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice, evaluate_with,
};

choice! {
    /// What becomes of a weight outside its band.
    pub enum Outside {
        /// It is cut off at the end of the band.
        Truncate = "truncate",
        /// It becomes 0.
        Zero = "zero",
    }
}

/// The effective sample size as a share of the sample, (mean w + ε)² / mean w²; 1 where all weights are equal, 0 where
/// all are 0.
///
/// ```
/// use plumbline_core::ratio::weight_diagnostics::effective_sample_size;
/// assert_eq!(effective_sample_size(1.0, 2.0, 0.0), 0.5); // weights 0 and 2
/// ```
#[inline(always)]
pub fn effective_sample_size<R: Real>(mean: R, mean_square: R, eps: R) -> R {
    let shifted = mean + eps;
    if mean_square == R::zero() { R::zero() } else { shifted * shifted / mean_square }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let level: WeightLevel = call.choice("level")?;
    let outside: Outside = call.choice("outside")?;
    let empty: EmptyRow = call.choice("empty_row")?;
    let clamp = bounds(call)?;
    let eps: R = call.number("length_eps")?;
    let high: R = call.number("weight_max")?;
    let given_low: Option<R> = call.optional_number("weight_min");
    let low = given_low.unwrap_or(R::one() / high);
    if low > high {
        return Err(Error::OutOfRange { argument: "weight_min", value: low.to_f64(), legal: "at most weight_max" });
    }
    let (mask, old, rollout) = pair(call, "old_log_prob", "rollout_log_prob")?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let columns = mask.shape().columns.max(1);
    let logarithm = |slot: usize| log_weight(level, &mask, slot.checked_div(columns).unwrap_or(0), old, rollout)(slot);
    let raw = |slot: usize| token_ratio(logarithm(slot), clamp)[0];
    let applied = |slot: usize| match outside {
        Outside::Truncate => truncated_weight(raw(slot), given_low.unwrap_or(R::zero()), high),
        Outside::Zero => masked_weight(raw(slot), low, high),
    };

    let mean = token_mean(&mask, eps, applied);
    let mean_square = token_mean(&mask, eps, |slot| {
        let weight = applied(slot);
        weight * weight
    });
    let ([max, min], fractions): ([R; 2], [R; 2]) = if level == WeightLevel::Token {
        let fraction = |holds: &dyn Fn(R) -> bool| token_fraction(&mask, eps, |slot| holds(raw(slot)));
        (token_extremes(&mask, applied), [fraction(&|weight| weight > high), fraction(&|weight| weight < low)])
    } else {
        let row_log = |row: usize| log_weight(level, &mask, row, old, rollout)(row * columns);
        let rows = summarise_rows(&mask, empty, row_log);
        let fraction = |holds: &dyn Fn(R) -> bool| row_fraction(&mask, empty, |row| holds(row_log(row)));
        // Of the largest only the upper end of the clamp is applied, of the smallest none.
        let capped = clamp.clamp(rows.max)[0].smaller(rows.max);
        ([capped.exp(), rows.min.exp()], [fraction(&|log| log > high.ln()), fraction(&|log| log < low.ln())])
    };
    let row_weight = |row: usize| row_mean(&mask, row, eps, applied);
    let raw_row_weight = |row: usize| row_mean(&mask, row, eps, raw);
    let rows = summarise_rows(&mask, empty, row_weight);
    let deviation = (0..mask.shape().rows)
        .filter(|row| counts(&mask, *row, empty))
        .fold(R::zero(), |largest, row| (row_weight(row) - R::one()).abs().larger(largest));
    let metrics = [
        ("mean", mean),
        ("max", max),
        ("min", min),
        ("std", token_deviation(&mask, eps, mean, applied)),
        ("effective_sample_size", effective_sample_size(mean, mean_square, eps)),
        ("fraction_high", fractions[0]),
        ("fraction_low", fractions[1]),
        ("sequence_mean", rows.mean),
        ("sequence_std", rows.deviation),
        ("sequence_max", rows.max),
        ("sequence_min", rows.min),
        ("sequence_max_deviation", deviation),
        ("sequence_fraction_high", row_fraction(&mask, empty, |row| raw_row_weight(row) > high)),
        ("sequence_fraction_low", row_fraction(&mask, empty, |row| raw_row_weight(row) < low)),
        ("out_of_band_fraction", token_fraction(&mask, eps, |slot| raw(slot) < low || raw(slot) > high)),
    ];
    for (name, value) in metrics {
        call.write(name, value);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.weight_diagnostics",
    family: Family::Ratio,
    title: "Diagnostics of importance weights",
    summary: "Mean, spread, extremes, effective sample size and out-of-band shares of a batch's importance weights.",
    formula: r"\bar w = \frac{\sum m w}{\sum m},\quad
        \mathrm{ESS} = \frac{\bar w^2}{\overline{w^2}},\quad
        \sigma_w = \sqrt{\overline{w^2} - \bar w^2},\quad
        f_{\mathrm{high}} = \frac{\#\{\rho > C_{\max}\}}{n}",
    gradient: "",
    notes: "mean, std, effective_sample_size and the sequence_ mean, std and extremes are those of the weights as applied \
            (after truncation or zeroing); the shares are counted on the raw weights, so that truncation does not hide \
            what it cut. At token level max and min are of the applied weights, at the other levels of the raw weight of \
            a response. Without weight_min the lower bound of the shares is 1/weight_max. verl adds 1e-8 to counts (and to \
            the mean inside the effective sample size), clamps log-ratios to ±20, and lets an empty response take part \
            with weight 0 (log-ratio 0).",
    sources: &[
        Source {
            title: "Monte Carlo theory, methods and examples",
            reference: "Owen 2013, artowen.su.domains/mc",
            place: "Eq. 9.13, effective sample size (here divided by n)",
        },
        Source {
            title: "verl documentation: Rollout Correction",
            reference: "verl.readthedocs.io/en/latest/algo/rollout_corr_math.html",
            place: "metrics",
        },
    ],
    inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
    params: &[
        LEVEL,
        ParamSpec::choice("outside", "truncate", Outside::NAMES, "what becomes of a weight outside its band"),
        ParamSpec::optional("weight_min", r"C_{\min}", None, Range::POSITIVE, "lower end of the band"),
        ParamSpec::number("weight_max", r"C_{\max}", 2.0, Range::POSITIVE, "upper end of the band"),
        LOG_RATIO_MIN,
        LOG_RATIO_MAX,
        LENGTH_EPS,
        EMPTY_ROW,
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("mean", &[], "mean weight over tokens"),
        OutputSpec::value("max", &[], "largest weight"),
        OutputSpec::value("min", &[], "smallest weight"),
        OutputSpec::value("std", &[], "population deviation over tokens"),
        OutputSpec::value("effective_sample_size", &[], "effective sample size as a share of the tokens"),
        OutputSpec::value("fraction_high", &[], "share of raw weights above the band"),
        OutputSpec::value("fraction_low", &[], "share of raw weights below the band"),
        OutputSpec::value("sequence_mean", &[], "mean over responses of a response's mean weight"),
        OutputSpec::value("sequence_std", &[], "its sample deviation"),
        OutputSpec::value("sequence_max", &[], "largest mean weight of a response"),
        OutputSpec::value("sequence_min", &[], "smallest mean weight of a response"),
        OutputSpec::value("sequence_max_deviation", &[], "largest distance of a response's mean weight from 1"),
        OutputSpec::value("sequence_fraction_high", &[], "share of responses whose raw mean weight is above the band"),
        OutputSpec::value("sequence_fraction_low", &[], "share of responses whose raw mean weight is below the band"),
        OutputSpec::value("out_of_band_fraction", &[], "share of tokens whose raw weight is outside the band"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "exact counts, no clamp, empty responses left out", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "log-ratios clamped to ±20, 1e-8 added to counts, empty responses take part",
            settings: VERL_DIAGNOSTICS,
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn one(case: &Case, name: &str) -> f64 {
        case.get(name).unwrap()[0]
    }

    /// Raw token weights (1, 4) and (½), an empty row, junk under the mask.
    fn case() -> Case {
        let four = 2.0 * core::f64::consts::LN_2;
        let half = -core::f64::consts::LN_2;
        Case::new(SPECS, "ratio.weight_diagnostics")
            .real("old_log_prob", &[3, 2], &[0.0, four, half, f64::NAN, f64::NAN, 1.0])
            .real("rollout_log_prob", &[3, 2], &[0.0; 6])
            .mask("mask", &[3, 2], &[1, 1, 1, 0, 0, 0])
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-14 * expected.abs(), "{got} is not {expected}");
    }

    #[test]
    fn hand_checked_numbers() {
        // Applied weights 1, 2, ½: mean 7/6, mean square 5.25/3 = 1.75.
        let case = case().number("weight_max", 2.0).number("weight_min", 0.25);
        close(one(&case, "mean"), 7.0 / 6.0);
        close(one(&case, "effective_sample_size"), 49.0 / 36.0 / 1.75);
        close(one(&case, "std"), (1.75f64 - 49.0 / 36.0).sqrt());
        assert_eq!([one(&case, "max"), one(&case, "fraction_low")], [2.0, 0.0]);
        close(one(&case, "fraction_high"), 1.0 / 3.0);
        close(one(&case, "sequence_mean"), 1.0);
        close(one(&case, "sequence_std"), 0.5f64.sqrt());
        close(one(&case, "sequence_max_deviation"), 0.5);
        // Raw mean of the first row is 2.5, above the cap of 2 although every applied weight is at most 2.
        assert_eq!(one(&case, "sequence_fraction_high"), 0.5);
        let counted = case.choice("empty_row", "count_as_zero");
        close(one(&counted, "sequence_mean"), 2.0 / 3.0);
        assert_eq!(one(&counted, "sequence_min"), 0.0);
    }

    #[test]
    fn zero_outside_and_sequence_level() {
        let zero = case().choice("outside", "zero").number("weight_min", 0.25);
        close(one(&zero, "mean"), 0.5);
        assert_eq!(one(&zero, "min"), 0.0);
        let sequence = case().choice("level", "sequence");
        close(one(&sequence, "max"), 4.0);
        close(one(&sequence, "mean"), 4.5 / 3.0);
        assert_eq!(one(&sequence, "fraction_high"), 0.5);
    }

    proptest! {
        #[test]
        fn finite_log_probs_never_give_nan(
            values in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6),
            level in proptest::sample::select(WeightLevel::NAMES.to_vec()),
        ) {
            let case = Case::new(SPECS, "ratio.weight_diagnostics")
                .real("old_log_prob", &[2, 3], &values)
                .real("rollout_log_prob", &[2, 3], &[0.0; 6])
                .choice("level", level);
            for output in SPECS[0].outputs {
                prop_assert!(!one(&case, output.name).is_nan(), "{}", output.name);
            }
            let size = one(&case, "effective_sample_size");
            prop_assert!((0.0..=1.0 + 1e-12).contains(&size));
        }
    }
}

//! Rejection of tokens or responses whose trainer and inference engine disagree too much.

use crate::Error;
use crate::batch::Mask;
use crate::kl::k1::k1;
use crate::kl::k2::k2;
use crate::kl::k3::k3;
use crate::num::Real;
use crate::ratio::inputs::{
    LENGTH_EPS, LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, ROLLOUT_LOG_PROB, at, bounds, pair,
};
use crate::ratio::statistics::{
    EmptyRow, row_fraction, row_mean, summarise_rows, token_deviation, token_extremes, token_fraction, token_mean,
};
use crate::ratio::token::log_ratio;
use crate::spec::{
    Call, Choice, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// Which statistic is held against the threshold: where it is taken, and the divergence estimator.
    pub enum Criterion {
        /// k1 of each token.
        TokenK1 = "token_k1",
        /// k2 of each token.
        TokenK2 = "token_k2",
        /// k3 of each token.
        TokenK3 = "token_k3",
        /// Sum of k1 over the response.
        SequenceSumK1 = "seq_sum_k1",
        /// Sum of k2 over the response.
        SequenceSumK2 = "seq_sum_k2",
        /// Sum of k3 over the response.
        SequenceSumK3 = "seq_sum_k3",
        /// Mean of k1 over the response.
        SequenceMeanK1 = "seq_mean_k1",
        /// Mean of k2 over the response.
        SequenceMeanK2 = "seq_mean_k2",
        /// Mean of k3 over the response.
        SequenceMeanK3 = "seq_mean_k3",
        /// Largest k2 of the response.
        SequenceMaxK2 = "seq_max_k2",
        /// Largest k3 of the response.
        SequenceMaxK3 = "seq_max_k3",
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Token,
    Sum,
    Mean,
    Max,
}

/// The estimators of KL(π_rollout‖π_old) at one sampled token, from d = log π_old − log π_rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// −d.
    K1,
    /// d²/2.
    K2,
    /// eᵈ − 1 − d.
    K3,
}

impl Divergence {
    /// The estimate at one token (nats).
    ///
    /// ```
    /// use plumbline_core::ratio::rejection::Divergence;
    /// assert_eq!(Divergence::K1.at(-0.5), 0.5);
    /// assert_eq!(Divergence::K2.at(-0.5), 0.125);
    /// assert_eq!(Divergence::K3.at(0.0), 0.0);
    /// ```
    #[inline(always)]
    pub fn at<R: Real>(self, log_ratio: R) -> R {
        // The estimators are of the sampling policy's side: their log-ratio is the other way round.
        let [estimate, _] = match self {
            Divergence::K1 => k1(-log_ratio),
            Divergence::K2 => k2(-log_ratio),
            Divergence::K3 => k3(-log_ratio, None, None),
        };
        estimate
    }
}

impl Criterion {
    fn parts(self) -> (Level, Divergence) {
        use Criterion as C;
        let level = match self {
            C::TokenK1 | C::TokenK2 | C::TokenK3 => Level::Token,
            C::SequenceSumK1 | C::SequenceSumK2 | C::SequenceSumK3 => Level::Sum,
            C::SequenceMeanK1 | C::SequenceMeanK2 | C::SequenceMeanK3 => Level::Mean,
            C::SequenceMaxK2 | C::SequenceMaxK3 => Level::Max,
        };
        let divergence = match self {
            C::TokenK1 | C::SequenceSumK1 | C::SequenceMeanK1 => Divergence::K1,
            C::TokenK2 | C::SequenceSumK2 | C::SequenceMeanK2 | C::SequenceMaxK2 => Divergence::K2,
            C::TokenK3 | C::SequenceSumK3 | C::SequenceMeanK3 | C::SequenceMaxK3 => Divergence::K3,
        };
        (level, divergence)
    }
}

/// The statistics that are kept: `low ≤ x ≤ high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band<R> {
    /// Smallest; 0 of k2 and k3, which are never negative.
    pub low: R,
    /// Largest.
    pub high: R,
}

impl<R: Real> Band<R> {
    /// For k1: the logarithms of a ratio band, whose lower end is 1/`max` where `min` is absent. For k2 and k3: at most `max`.
    pub fn new(divergence: Divergence, min: Option<R>, max: R) -> Result<Self, Error> {
        let illegal =
            |value: R, legal| Err(Error::OutOfRange { argument: "threshold_min", value: value.to_f64(), legal });
        match (divergence, min) {
            (Divergence::K1, Some(min)) if min > max => illegal(min, "at most threshold_max"),
            (Divergence::K1, Some(min)) => Ok(Band { low: min.ln(), high: max.ln() }),
            (Divergence::K1, None) => {
                let (low, high) = (R::one() / max, max);
                if low > high {
                    illegal(low, "at most threshold_max")
                } else {
                    Ok(Band { low: low.ln(), high: high.ln() })
                }
            }
            (_, Some(min)) => illegal(min, "given only with a k1 criterion"),
            (_, None) => Ok(Band { low: R::zero(), high: max }),
        }
    }

    /// Whether a statistic is kept; both ends are.
    #[inline(always)]
    pub fn keeps(self, statistic: R) -> bool {
        statistic >= self.low && statistic <= self.high
    }
}

fn row_statistic<R: Real>(mask: &Mask<'_>, row: usize, level: Level, length_eps: R, token: impl Fn(usize) -> R) -> R {
    match level {
        Level::Sum => mask.row_sum(row, token),
        Level::Token | Level::Mean => row_mean(mask, row, length_eps, token),
        Level::Max => mask.kept(row).map(token).fold(R::zero(), |largest, value| value.larger(largest)),
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (level, divergence) = call.choice::<Criterion>("criterion")?.parts();
    let band = Band::new(divergence, call.optional_number("threshold_min"), call.number("threshold_max")?)?;
    let clamp = bounds(call)?;
    let length_eps = call.number("length_eps")?;
    let (mask, old, rollout) = pair(call, "old_log_prob", "rollout_log_prob")?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let columns = mask.shape().columns;
    let token = |slot: usize| divergence.at(clamp.clamp(log_ratio(at(old, slot), at(rollout, slot)))[0]);
    let of_row = |row: usize| row_statistic(&mask, row, level, length_eps, token);
    // One statistic per token; a response's own stands at each of its tokens.
    let statistic = |slot: usize| if level == Level::Token { token(slot) } else { of_row(slot / columns.max(1)) };
    let one_if = |condition: bool| if condition { R::one() } else { R::zero() };
    let high = |value: R| value > band.high;
    let low = |value: R| value < band.low;

    let mut keep = call.output("keep");
    let mut statistics = call.output("statistic");
    for row in 0..mask.shape().rows {
        if level == Level::Token {
            mask.write_row(row, &mut keep, |slot| one_if(band.keeps(token(slot))));
            mask.write_row(row, &mut statistics, token);
        } else {
            let whole = of_row(row);
            mask.write_row(row, &mut keep, |_| one_if(band.keeps(whole)));
            mask.write_row(row, &mut statistics, |_| whole);
        }
    }

    let rows = summarise_rows(&mask, EmptyRow::Exclude, of_row);
    let deviant = summarise_rows(&mask, EmptyRow::Exclude, |row| of_row(row).abs());
    let row_high = row_fraction(&mask, EmptyRow::Exclude, |row| high(of_row(row)));
    let row_low = row_fraction(&mask, EmptyRow::Exclude, |row| low(of_row(row)));
    let limited = |slot: usize| statistic(slot).clip(band.low, band.high);
    let limited_mean = token_mean(&mask, length_eps, limited);
    let ([max, min], fractions) = if level == Level::Token {
        let fraction = |holds: &dyn Fn(R) -> bool| token_fraction(&mask, length_eps, |slot| holds(token(slot)));
        (token_extremes(&mask, token), [fraction(&high), fraction(&low)])
    } else {
        ([rows.max, rows.min], [row_high, row_low])
    };
    let dropped_row = |row: usize| mask.kept(row).any(|slot| !band.keeps(statistic(slot)));
    let metrics = [
        ("mean", token_mean(&mask, length_eps, statistic)),
        ("max", max),
        ("min", min),
        ("std", token_deviation(&mask, length_eps, limited_mean, limited)),
        ("fraction_high", fractions[0]),
        ("fraction_low", fractions[1]),
        ("sequence_mean", rows.mean),
        ("sequence_std", rows.deviation),
        ("sequence_max", rows.max),
        ("sequence_min", rows.min),
        ("sequence_max_deviation", deviant.max),
        ("sequence_fraction_high", row_high),
        ("sequence_fraction_low", row_low),
        ("masked_fraction", token_fraction(&mask, length_eps, |slot| !band.keeps(statistic(slot)))),
        ("sequence_masked_fraction", row_fraction(&mask, EmptyRow::Exclude, dropped_row)),
    ];
    for (name, value) in metrics {
        call.write(name, value);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.rejection",
    family: Family::Ratio,
    title: "Rejection by divergence",
    summary: "A new mask without the tokens or responses on which the trainer and the inference engine disagree too much.",
    formula: r"m'_{it} = m_{it}\,[\,\tau_{\mathrm{low}} \le x_{it} \le \tau_{\mathrm{high}}\,],\quad
        x \in \{k_1, k_2, k_3\}\ \text{at the token, or its sum, mean or maximum over the response},\quad
        k_1 = -d,\ k_2 = d^2/2,\ k_3 = e^d - 1 - d,\ d = \log\pi_{\mathrm{old}} - \log\pi_{\mathrm{rollout}}",
    gradient: "",
    notes: "For k1 the thresholds are a band of the ratio π_rollout/π_old, the inverse of the importance weight (k1 = −d), \
            and its lower end is the reciprocal of the upper where it is not given; for k2 and k3 one upper threshold in \
            nats. Ends are kept. Several criteria combine by multiplying their masks. mean and std are over tokens (std of \
            the statistic limited to the band), the sequence_ metrics over responses with a token (a token criterion's row \
            value is its mean). verl clamps the log-ratio to ±20 before any of it and adds 1e-8 to counts.",
    sources: &[
        Source {
            title: "verl documentation: Rollout Correction",
            reference: "verl.readthedocs.io/en/latest/algo/rollout_corr_math.html",
            place: "rejection sampling",
        },
        Source {
            title: "Approximating KL Divergence",
            reference: "Schulman 2020, joschu.net/blog/kl-approx",
            place: "k1, k2, k3",
        },
    ],
    inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
    params: &[
        ParamSpec::choice("criterion", "token_k1", Criterion::NAMES, "which statistic is held against the threshold"),
        ParamSpec::optional(
            "threshold_min",
            r"\tau_{\min}",
            None,
            Range::POSITIVE,
            "k1 only: lower end of the ratio band; none = 1/threshold_max",
        ),
        ParamSpec::number(
            "threshold_max",
            r"\tau_{\max}",
            2.0,
            Range::POSITIVE,
            "k1: upper end of the ratio band; k2, k3: the largest statistic that is kept (nats)",
        ),
        LOG_RATIO_MIN,
        LOG_RATIO_MAX,
        LENGTH_EPS,
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("keep", &["B", "T"], "the new mask: 1 where the token is kept"),
        OutputSpec::value(
            "statistic",
            &["B", "T"],
            "the statistic at each token; a response's own at each of its tokens",
        ),
        OutputSpec::value("mean", &[], "mean of the statistic over tokens"),
        OutputSpec::value("max", &[], "largest statistic"),
        OutputSpec::value("min", &[], "smallest statistic"),
        OutputSpec::value("std", &[], "deviation over tokens of the statistic limited to the band"),
        OutputSpec::value("fraction_high", &[], "share above the band, of tokens or responses as the criterion says"),
        OutputSpec::value("fraction_low", &[], "share below the band"),
        OutputSpec::value("sequence_mean", &[], "mean over responses"),
        OutputSpec::value("sequence_std", &[], "sample deviation over responses"),
        OutputSpec::value("sequence_max", &[], "largest response"),
        OutputSpec::value("sequence_min", &[], "smallest response"),
        OutputSpec::value("sequence_max_deviation", &[], "largest absolute value of a response"),
        OutputSpec::value("sequence_fraction_high", &[], "share of responses above the band"),
        OutputSpec::value("sequence_fraction_low", &[], "share of responses below the band"),
        OutputSpec::value("masked_fraction", &[], "share of tokens that are rejected"),
        OutputSpec::value("sequence_masked_fraction", &[], "share of responses with a rejected token"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "no clamp, exact counts", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "the log-ratio is clamped to ±20; 1e-8 is added to counts",
            settings: &[
                ("log_ratio_min", Value::Number(-20.0)),
                ("log_ratio_max", Value::Number(20.0)),
                ("length_eps", Value::Number(1e-8)),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    /// Log-ratios (0.5, −1, 2) and (0.1), junk under the mask.
    fn case(criterion: &'static str) -> Case {
        Case::new(SPECS, "ratio.rejection")
            .real("old_log_prob", &[3, 3], &[0.5, -1.0, 2.0, 0.1, f64::NAN, 9.0, f64::INFINITY, 1.0, 1.0])
            .real("rollout_log_prob", &[3, 3], &[0.0; 9])
            .mask("mask", &[3, 3], &[1, 1, 1, 1, 0, 0, 0, 0, 0])
            .choice("criterion", criterion)
    }

    #[test]
    fn token_k1_acts_on_the_inverse_ratio() {
        // k1 = −0.5, 1, −2, −0.1; the band ln 0.5 … ln 3 = −0.693 … 1.099.
        let case = case("token_k1").number("threshold_min", 0.5).number("threshold_max", 3.0);
        assert_eq!(case.get("keep").unwrap(), [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(case.get("mean").unwrap(), [-0.4]);
        assert_eq!(case.get("max").unwrap(), [1.0]);
        assert_eq!(case.get("min").unwrap(), [-2.0]);
        assert_eq!([case.get("fraction_high").unwrap(), case.get("fraction_low").unwrap()], [[0.0], [0.25]]);
        assert_eq!(case.get("sequence_mean").unwrap(), [-0.3]);
        assert_eq!(case.get("masked_fraction").unwrap(), [0.25]);
        assert_eq!(case.get("sequence_masked_fraction").unwrap(), [0.5]);
    }

    #[test]
    fn sequence_statistics() {
        // k2 = 0.125, 0.5, 2, 0.005.
        assert_eq!(case("seq_sum_k2").get("statistic").unwrap()[..4], [2.625, 2.625, 2.625, 0.005000000000000001]);
        assert_eq!(case("seq_mean_k2").get("statistic").unwrap()[0], 0.875);
        assert_eq!(case("seq_max_k2").get("statistic").unwrap()[0], 2.0);
        assert_eq!(case("seq_sum_k2").get("keep").unwrap(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(case("seq_mean_k2").get("keep").unwrap()[..4], [1.0; 4]);
        // The end is kept.
        assert_eq!(case("seq_max_k2").get("keep").unwrap()[..4], [1.0; 4]);
        assert_eq!(case("seq_sum_k1").get("statistic").unwrap()[0], -1.5);
    }

    #[test]
    fn illegal_thresholds() {
        let argument = "threshold_min";
        let error = case("token_k2").number(argument, 0.5).get("keep");
        assert_eq!(error, Err(Error::OutOfRange { argument, value: 0.5, legal: "given only with a k1 criterion" }));
        let error = case("token_k1").number(argument, 3.0).get("keep");
        assert_eq!(error, Err(Error::OutOfRange { argument, value: 3.0, legal: "at most threshold_max" }));
        assert_eq!(
            case("token_k1").mask("mask", &[3, 3], &[0; 9]).get("keep"),
            Err(Error::EmptyMask { argument: "mask" })
        );
    }

    proptest! {
        #[test]
        fn never_keeps_more_and_never_gives_nan(
            values in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6),
            mask in proptest::array::uniform6(0u8..2),
            criterion in proptest::sample::select(Criterion::NAMES.to_vec()),
        ) {
            prop_assume!(mask.contains(&1));
            let case = Case::new(SPECS, "ratio.rejection")
                .real("old_log_prob", &[2, 3], &values)
                .real("rollout_log_prob", &[2, 3], &[0.0; 6])
                .mask("mask", &[2, 3], &mask)
                .choice("criterion", criterion);
            for (keep, mask) in case.get("keep").unwrap().iter().zip(mask) {
                prop_assert!(*keep == 0.0 || (*keep == 1.0 && mask == 1));
            }
            for output in SPECS[0].outputs {
                prop_assert!(case.get(output.name).unwrap().iter().all(|value| !value.is_nan()), "{}", output.name);
            }
        }
    }
}

//! The importance ratio of a whole response: its geometric mean per token (GSPO), the same with a token's own gradient
//! (GSPO-token), and the plain product.

use crate::Error;
use crate::batch::{Mask, set};
use crate::num::Real;
use crate::ratio::inputs::{LOG_PROB, LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, at, bounds, pair};
use crate::ratio::token::{LogRatioBounds, log_ratio, token_ratio};
use crate::spec::{Call, Dialect, Family, InputSpec, Operation, OutputSpec, Source, Value, evaluate_with};

/// GSPO's definition of the sequence ratio.
pub const GSPO: Source =
    Source { title: "Group Sequence Policy Optimization", reference: "arXiv:2507.18071", place: "Eq. 7" };
/// GSPO-token's ratio.
pub const GSPO_TOKEN: Source =
    Source { title: "Group Sequence Policy Optimization", reference: "arXiv:2507.18071", place: "Eq. 14" };
/// Importance sampling of whole trajectories.
pub const PER_DECISION: Source = Source {
    title: "Eligibility Traces for Off-Policy Policy Evaluation",
    reference: "Precup, Sutton, Singh, ICML 2000",
    place: "Section 2, the product of likelihood ratios",
};

/// Σ_t m_t (log π − log π′) of one response (nats); an empty one has 0.
pub fn row_log_ratio_sum<R: Real>(mask: &Mask<'_>, row: usize, log_prob: &[R], other_log_prob: &[R]) -> R {
    mask.row_sum(row, |slot| log_ratio(at(log_prob, slot), at(other_log_prob, slot)))
}

/// The mean log-ratio of a response from its sum and its number of tokens L; 0 where L = 0.
#[inline(always)]
pub fn mean_log_ratio<R: Real>(log_ratio_sum: R, length: usize) -> R {
    if length == 0 { R::zero() } else { log_ratio_sum / R::from_count(length) }
}

/// The geometric mean of a response's token ratios, s = exp(Σ_t d_t / L) with d_t = log π_θ − log π_old, and
/// ∂s/∂log π_θ(a_t) = s/L, the same for every token.
///
/// An empty response has s = 1 (the empty product) and no gradient. A clamp of the mean log-ratio makes the derivative 0
/// beyond its bounds and leaves it at the bound. Where the mean is beyond the type's range s is +∞ or +0.
///
/// ```
/// use plumbline_core::ratio::{sequence::sequence_ratio, token::LogRatioBounds};
/// let [ratio, d_log_prob] = sequence_ratio(0.3f64, 3, LogRatioBounds::none()); // log-ratios 0.4, −0.2, 0.1
/// assert!((ratio - 1.1051709180756477).abs() < 1e-15); // e^0.1
/// assert_eq!(d_log_prob, ratio / 3.0);
/// ```
///
/// Differs in: TRL 1.16 differentiates through the mean, as here; verl 0.9 uses GSPO-token's gradient
/// ([`SPECS`] `ratio.sequence_token`), with the log-ratio clamped from above at 10.
#[inline(always)]
pub fn sequence_ratio<R: Real>(log_ratio_sum: R, length: usize, bounds: LogRatioBounds<R>) -> [R; 2] {
    let [ratio, slope] = token_ratio(mean_log_ratio(log_ratio_sum, length), bounds);
    [ratio, if length == 0 { R::zero() } else { slope / R::from_count(length) }]
}

fn rows<R: Real>(call: &mut Call<'_, R>, formula: impl Fn(R, usize, LogRatioBounds<R>) -> [R; 2]) -> Result<(), Error> {
    let bounds = bounds(call)?;
    let (mask, log_prob, old) = pair(call, "log_prob", "old_log_prob")?;
    let [mut ratios, mut d_log_prob] = ["ratio", "d_log_prob"].map(|name| call.output(name));
    for row in 0..mask.shape().rows {
        let sum = row_log_ratio_sum(&mask, row, log_prob, old);
        let [ratio, derivative] = formula(sum, mask.length(row), bounds);
        set(&mut ratios, row, ratio);
        mask.write_row(row, &mut d_log_prob, |_| derivative);
    }
    Ok(())
}

fn evaluate_sequence<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    rows(call, sequence_ratio)
}

fn evaluate_product<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    rows(call, |sum, _, bounds| token_ratio(sum, bounds))
}

fn evaluate_sequence_token<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let bounds = bounds(call)?;
    let (mask, log_prob, old) = pair(call, "log_prob", "old_log_prob")?;
    let mut outputs = ["ratio", "d_log_prob"].map(|name| call.output(name));
    for row in 0..mask.shape().rows {
        let sum = row_log_ratio_sum(&mask, row, log_prob, old);
        let results = token_ratio(mean_log_ratio(sum, mask.length(row)), bounds);
        for (output, result) in outputs.iter_mut().zip(results) {
            mask.write_row(row, output, |_| result);
        }
    }
    Ok(())
}

const D_LOG_PROB: OutputSpec = OutputSpec::gradient(
    "d_log_prob",
    "log_prob",
    &["B", "T"],
    "derivative of the response's ratio by each of its log_prob",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "ratio.sequence",
        family: Family::Ratio,
        title: "Sequence importance ratio (geometric mean, GSPO)",
        summary: "The geometric mean of a response's token ratios; every token has the same gradient.",
        formula: r"s_i = \exp\Big(\frac{1}{L_i}\sum_t m_{it}\,(\log\pi_\theta - \log\pi_{\mathrm{old}})\Big)",
        gradient: r"\partial s_i/\partial\log\pi_\theta(a_{it}) = s_i/L_i",
        notes: "One ratio per response; it stands for each of its tokens. An empty response has ratio 1. A clamp acts on \
                the mean log-ratio; beyond it the derivative is 0, at it the derivative stands. TRL takes this gradient, \
                verl that of ratio.sequence_token.",
        sources: &[GSPO],
        inputs: &[LOG_PROB, OLD_LOG_PROB, InputSpec::MASK],
        params: &[LOG_RATIO_MIN, LOG_RATIO_MAX],
        defaults: &[],
        outputs: &[OutputSpec::value("ratio", &["B"], "the ratio of each response"), D_LOG_PROB],
        dialects: &[
            Dialect { name: "paper", note: "no clamp", settings: &[] },
            Dialect { name: "trl-1.16", note: "no clamp", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_sequence),
    },
    Operation {
        id: "ratio.sequence_product",
        family: Family::Ratio,
        title: "Sequence importance ratio (product)",
        summary: "The probability of the whole response now, divided by its probability when the update began.",
        formula: r"w_i = \exp\Big(\sum_t m_{it}\,(\log\pi_\theta - \log\pi_{\mathrm{old}})\Big)",
        gradient: r"\partial w_i/\partial\log\pi_\theta(a_{it}) = w_i",
        notes: "The unbiased weight of a response; its variance grows exponentially with the length. An empty response \
                has ratio 1. VESPO clamps the log-ratio to [ln 1e-8, 20]. No library difference beside the clamp.",
        sources: &[PER_DECISION],
        inputs: &[LOG_PROB, OLD_LOG_PROB, InputSpec::MASK],
        params: &[LOG_RATIO_MIN, LOG_RATIO_MAX],
        defaults: &[],
        outputs: &[OutputSpec::value("ratio", &["B"], "the ratio of each response"), D_LOG_PROB],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_product),
    },
    Operation {
        id: "ratio.sequence_token",
        family: Family::Ratio,
        title: "Sequence ratio with a token's gradient (GSPO-token)",
        summary: "The value of the sequence ratio at every token, with the gradient of the token's own log-probability.",
        formula: r"s_{it} = \mathrm{sg}(s_i)\,\frac{\pi_\theta(a_{it})}{\mathrm{sg}(\pi_\theta(a_{it}))}",
        gradient: r"\partial s_{it}/\partial\log\pi_\theta(a_{it}) = s_i",
        notes: "The gradient is not the derivative of the printed value, s/L: the sequence ratio is stopped, so a token's \
                gradient is L times that of ratio.sequence and advantages may differ from token to token. verl clamps \
                the log-ratio from above at 10, and the clamp passes no gradient beyond.",
        sources: &[GSPO_TOKEN],
        inputs: &[LOG_PROB, OLD_LOG_PROB, InputSpec::MASK],
        params: &[LOG_RATIO_MIN, LOG_RATIO_MAX],
        defaults: &[],
        outputs: &[
            OutputSpec::value("ratio", &["B", "T"], "the response's ratio at each of its tokens"),
            OutputSpec::gradient(
                "d_log_prob",
                "log_prob",
                &["B", "T"],
                "derivative of each token's ratio by its log_prob",
            )
            .stopped(),
        ],
        dialects: &[
            Dialect { name: "paper", note: "no clamp", settings: &[] },
            Dialect {
                name: "verl-0.9",
                note: "the log-ratio is clamped from above at 10",
                settings: &[("log_ratio_max", Value::Number(10.0))],
            },
        ],
        evaluate: evaluate_with!(evaluate_sequence_token),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    const E: f64 = core::f64::consts::E;

    /// Rows of log-ratios (0.4, −0.2, 0.1), (1), () with junk under the mask.
    fn case(id: &str) -> Case {
        Case::new(SPECS, id)
            .real("log_prob", &[3, 3], &[-0.6, -1.2, -0.9, -0.5, f64::NAN, 7.0, 1.0, f64::INFINITY, 2.0])
            .real("old_log_prob", &[3, 3], &[-1.0, -1.0, -1.0, -1.5, 3.0, f64::NAN, 4.0, 4.0, 4.0])
            .mask("mask", &[3, 3], &[1, 1, 1, 1, 0, 0, 0, 0, 0])
    }

    fn close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() <= 4e-15 * expected.abs(), "{got} is not {expected}");
        }
    }

    #[test]
    fn the_three_ratios_of_known_rows() {
        let (mean, product) = (1.1051709180756477, 1.3498588075760032); // e^0.1, e^0.3
        close(&case("ratio.sequence").get("ratio").unwrap(), &[mean, E, 1.0]);
        let third = mean / 3.0;
        close(&case("ratio.sequence").get("d_log_prob").unwrap(), &[third, third, third, E, 0.0, 0.0, 0.0, 0.0, 0.0]);
        close(&case("ratio.sequence_product").get("ratio").unwrap(), &[product, E, 1.0]);
        close(
            &case("ratio.sequence_product").get("d_log_prob").unwrap(),
            &[product, product, product, E, 0.0, 0.0, 0.0, 0.0, 0.0],
        );
        let tokens = [mean, mean, mean, E, 0.0, 0.0, 0.0, 0.0, 0.0];
        close(&case("ratio.sequence_token").get("ratio").unwrap(), &tokens);
        close(&case("ratio.sequence_token").get("d_log_prob").unwrap(), &tokens);
    }

    #[test]
    fn clamp_stops_the_gradient() {
        let clamped = case("ratio.sequence").number("log_ratio_max", 0.5);
        close(&clamped.get("ratio").unwrap(), &[1.1051709180756477, 1.6487212707001282, 1.0]);
        assert_eq!(clamped.get("d_log_prob").unwrap()[3], 0.0);
    }

    #[test]
    fn log_ratios_that_overflow_give_no_nan() {
        let case = Case::new(SPECS, "ratio.sequence_product")
            .real(
                "log_prob",
                &[1, 130],
                &std::array::from_fn::<f64, 130, _>(|t| if t < 65 { f64::MAX } else { -f64::MAX }),
            )
            .real(
                "old_log_prob",
                &[1, 130],
                &std::array::from_fn::<f64, 130, _>(|t| if t < 65 { -f64::MAX } else { f64::MAX }),
            );
        assert_eq!(case.get("ratio").unwrap(), [1.0]);
    }

    proptest! {
        #[test]
        fn gradients_are_those_of_the_values(
            log_prob in proptest::array::uniform6(-3.0..0.0f64),
            old in proptest::array::uniform6(-3.0..0.0f64),
        ) {
            for id in ["ratio.sequence", "ratio.sequence_product"] {
                Case::new(SPECS, id)
                    .real("log_prob", &[2, 3], &log_prob)
                    .real("old_log_prob", &[2, 3], &old)
                    .mask("mask", &[2, 3], &[1, 0, 1, 1, 1, 1])
                    .check_gradient("log_prob");
            }
        }

        #[test]
        fn padding_changes_no_bit(values in proptest::collection::vec(-3.0..3.0f64, 5), junk in any::<f64>()) {
            let zeros = [0.0; 8];
            let narrow = Case::new(SPECS, "ratio.sequence").real("log_prob", &[1, 5], &values).real("old_log_prob", &[1, 5], &zeros[..5]);
            let mut wide_values = values.clone();
            wide_values.extend([junk; 3]);
            let wide = Case::new(SPECS, "ratio.sequence")
                .real("log_prob", &[1, 8], &wide_values)
                .real("old_log_prob", &[1, 8], &zeros)
                .mask("mask", &[1, 8], &[1, 1, 1, 1, 1, 0, 0, 0]);
            prop_assert_eq!(narrow.get("ratio").unwrap()[0].to_bits(), wide.get("ratio").unwrap()[0].to_bits());
        }
    }
}

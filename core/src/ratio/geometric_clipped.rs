//! The clipped geometric-mean ratio of GMPO.

use crate::Error;
use crate::batch::set;
use crate::num::Real;
use crate::ratio::inputs::{LENGTH_EPS, LOG_PROB, OLD_LOG_PROB, at, pair};
use crate::ratio::token::log_ratio;
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

/// GMPO.
pub const GMPO: Source = Source {
    title: "Geometric-Mean Policy Optimization",
    reference: "arXiv:2507.20673",
    place: "Section 3, the objective with token-level clipping",
};

choice! {
    /// What a token's log-ratio counts as where the advantage is exactly 0. The loss is 0 either way.
    pub enum ZeroAdvantage {
        /// As 0, with no gradient: sign(0) = 0.
        Neutral = "neutral",
        /// As where the advantage is negative: clipped from below.
        Negative = "negative",
    }
}

/// The range of a token's log-ratio that the pessimistic clip leaves alone (nats): [−`low`, `high`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogClipRange<R> {
    /// How far below 0 it reaches.
    pub low: R,
    /// How far above 0 it reaches.
    pub high: R,
}

/// One token's log-ratio d, clipped on the side that the advantage's sign chooses, and its derivative by d:
/// min(d, high) for A > 0, max(d, −low) for A < 0.
///
/// At the bound itself the derivative is 1 (minimum and clamp tie, and both pass the gradient there).
///
/// ```
/// use plumbline_core::ratio::geometric_clipped::{LogClipRange, ZeroAdvantage, one_sided_clip};
/// let range = LogClipRange { low: 0.4, high: 0.4 };
/// assert_eq!(one_sided_clip(1.0, 2.0, range, ZeroAdvantage::Neutral), [0.4, 0.0]);
/// assert_eq!(one_sided_clip(1.0, -2.0, range, ZeroAdvantage::Neutral), [1.0, 1.0]);
/// ```
#[inline(always)]
pub fn one_sided_clip<R: Real>(log_ratio: R, advantage: R, range: LogClipRange<R>, zero: ZeroAdvantage) -> [R; 2] {
    let clipped = if advantage > R::zero() {
        log_ratio.smaller(range.high)
    } else if advantage < R::zero() || zero == ZeroAdvantage::Negative {
        log_ratio.larger(-range.low)
    } else {
        return [R::zero(), R::zero()];
    };
    [clipped, if clipped == log_ratio { R::one() } else { R::zero() }]
}

/// The geometric mean of one response's clipped token ratios, g = exp(Σ_t clip(d_t) / (L + ε)), from the sum of the
/// clipped log-ratios, and the factor g/(L + ε) that times a token's own derivative is ∂g/∂log π_θ(a_t).
///
/// An empty response has g = 1 and factor 0.
#[inline(always)]
pub fn geometric_ratio<R: Real>(clipped_log_ratio_sum: R, length: usize, length_eps: R) -> [R; 2] {
    if length == 0 {
        return [R::one(), R::zero()];
    }
    let divisor = R::from_count(length) + length_eps;
    let ratio = (clipped_log_ratio_sum / divisor).exp();
    [ratio, ratio / divisor]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let range = LogClipRange { low: call.number("clip_ratio_low")?, high: call.number("clip_ratio_high")? };
    let length_eps = call.number("length_eps")?;
    let zero: ZeroAdvantage = call.choice("zero_advantage")?;
    let (mask, log_prob, old) = pair(call, "log_prob", "old_log_prob")?;
    let per_token = call.rank("advantage") == 2;
    let advantage = if per_token {
        let advantage = call.real("advantage")?;
        mask.check_finite("advantage", advantage)?;
        advantage
    } else {
        call.finite("advantage")?
    };
    let clipped = |slot: usize, row: usize| {
        let d = log_ratio(at(log_prob, slot), at(old, slot));
        one_sided_clip(d, at(advantage, if per_token { slot } else { row }), range, zero)
    };
    let [mut ratios, mut d_log_prob] = ["ratio", "d_log_prob"].map(|name| call.output(name));
    for row in 0..mask.shape().rows {
        let sum = mask.row_sum(row, |slot| clipped(slot, row)[0]);
        let [ratio, factor] = geometric_ratio(sum, mask.length(row), length_eps);
        set(&mut ratios, row, ratio);
        mask.write_row(
            row,
            &mut d_log_prob,
            |slot| {
                if clipped(slot, row)[1] == R::zero() { R::zero() } else { factor }
            },
        );
    }
    Ok(())
}

const ZERO_ADVANTAGE: ParamSpec = ParamSpec::choice(
    "zero_advantage",
    "neutral",
    ZeroAdvantage::NAMES,
    "what a log-ratio counts as where the advantage is exactly 0: neutral = as 0, negative = clipped from below",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.geometric_clipped",
    family: Family::Ratio,
    title: "Clipped geometric-mean ratio (GMPO)",
    summary: "The geometric mean of a response's token ratios, each clipped in log space on the side that would flatter \
              its advantage.",
    formula: r"g_i = \exp\Big(\frac{1}{L_i}\sum_t m_{it}\,c_{it}\Big),\quad
        c_{it} = \begin{cases}\min(d_{it}, \epsilon_{\mathrm{high}}) & A > 0\\ \max(d_{it}, -\epsilon_{\mathrm{low}}) & A < 0\end{cases},\quad
        d_{it} = \log\pi_\theta - \log\pi_{\mathrm{old}}",
    gradient: r"\partial g_i/\partial\log\pi_\theta(a_{it}) = \frac{g_i}{L_i}\,[c_{it} = d_{it}]",
    notes: "The bounds are in log space (nats), not 1 ± ε. Only the side that the sign of the advantage picks is clipped. \
            At the bound the derivative stands. An empty response has ratio 1. verl adds 1e-8 to the length and clips at \
            0.2 by default; TRL's bounds are 0.4 and it treats an advantage of exactly 0 as negative.",
    sources: &[GMPO],
    inputs: &[
        LOG_PROB,
        OLD_LOG_PROB,
        InputSpec::new(
            "advantage",
            Domain::Advantage,
            &[&["B"], &["B", "T"]],
            "advantage of each response, or of each of its tokens; only its sign is used",
        ),
        InputSpec::MASK,
    ],
    params: &[
        ParamSpec::number(
            "clip_ratio_low",
            r"\epsilon_{\mathrm{low}}",
            0.4,
            Range::NON_NEGATIVE,
            "how far below 0 a log-ratio may lie (nats)",
        ),
        ParamSpec::number(
            "clip_ratio_high",
            r"\epsilon_{\mathrm{high}}",
            0.4,
            Range::NON_NEGATIVE,
            "how far above 0 a log-ratio may lie (nats)",
        ),
        LENGTH_EPS,
        ZERO_ADVANTAGE,
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("ratio", &["B"], "the ratio of each response"),
        OutputSpec::gradient(
            "d_log_prob",
            "log_prob",
            &["B", "T"],
            "derivative of the response's ratio by each of its log_prob",
        ),
    ],
    dialects: &[
        Dialect { name: "paper", note: "bounds e^±0.4", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "1e-8 is added to the length; bounds 0.2",
            settings: &[
                ("clip_ratio_low", Value::Number(0.2)),
                ("clip_ratio_high", Value::Number(0.2)),
                ("length_eps", Value::Number(1e-8)),
            ],
        },
        Dialect {
            name: "trl-1.16",
            note: "an advantage of exactly 0 counts as negative",
            settings: &[("zero_advantage", Value::Name("negative"))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn case(advantage: f64) -> Case {
        Case::new(SPECS, "ratio.geometric_clipped")
            .real("log_prob", &[1, 3], &[0.0, -1.2, f64::NAN])
            .real("old_log_prob", &[1, 3], &[-1.0, -1.0, 0.0])
            .real("advantage", &[1], &[advantage])
            .mask("mask", &[1, 3], &[1, 1, 0])
    }

    #[test]
    fn clips_the_flattering_side_only() {
        // Log-ratios 1 and −0.2: (1 − 0.2)/2 = 0.4 for A < 0, (0.4 − 0.2)/2 = 0.1 for A > 0.
        let (negative, positive) = (1.4918246976412703, 1.1051709180756477);
        let got = case(-1.0).get("ratio").unwrap()[0];
        assert!((got - negative).abs() < 1e-15);
        assert_eq!(case(-1.0).get("d_log_prob").unwrap(), [got / 2.0, got / 2.0, 0.0]);
        let got = case(1.0).get("ratio").unwrap()[0];
        assert!((got - positive).abs() < 1e-15);
        assert_eq!(case(1.0).get("d_log_prob").unwrap(), [0.0, got / 2.0, 0.0]);
    }

    #[test]
    fn zero_advantage_and_ties() {
        assert_eq!(case(0.0).get("ratio").unwrap(), [1.0]);
        assert_eq!(case(0.0).dialect("trl-1.16").get("ratio"), case(-1.0).get("ratio"));
        let range = LogClipRange { low: 0.3, high: 0.4 };
        assert_eq!(one_sided_clip(0.4, 1.0, range, ZeroAdvantage::Neutral), [0.4, 1.0]);
        assert_eq!(one_sided_clip(-0.3, -1.0, range, ZeroAdvantage::Neutral), [-0.3, 1.0]);
        assert_eq!(one_sided_clip(-5.0, 1.0, range, ZeroAdvantage::Neutral), [-5.0, 1.0]);
        assert_eq!(geometric_ratio(0.0, 0, 0.0), [1.0, 0.0]);
    }

    proptest! {
        #[test]
        fn gradient_is_that_of_the_value(
            log_prob in proptest::array::uniform6(-3.0..0.0f64),
            old in proptest::array::uniform6(-3.0..0.0f64),
            advantage in proptest::array::uniform2(-2.0..2.0f64),
        ) {
            let near_kink = log_prob.iter().zip(&old).any(|(a, b)| {
                let d = a - b;
                (d - 0.4).abs() < 1e-5 || (d + 0.4).abs() < 1e-5
            });
            prop_assume!(!near_kink);
            Case::new(SPECS, "ratio.geometric_clipped")
                .real("log_prob", &[2, 3], &log_prob)
                .real("old_log_prob", &[2, 3], &old)
                .real("advantage", &[2], &advantage)
                .mask("mask", &[2, 3], &[1, 0, 1, 1, 1, 1])
                .check_gradient("log_prob");
        }
    }
}

//! The importance ratio of one token.

use crate::Error;
use crate::num::Real;
use crate::ratio::inputs::{LOG_PROB, LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, bounds};
use crate::spec::{
    Call, Dialect, Elementwise, Family, InputSpec, Operation, OutputSpec, Source, Value, evaluate_elements,
    evaluate_with,
};

/// The paper that clips the ratio.
pub const PPO: Source = Source {
    title: "Proximal Policy Optimization Algorithms",
    reference: "arXiv:1707.06347",
    place: "Section 3, the ratio r_t(θ)",
};

/// log π − log π′ of one token (nats). The difference of two finite numbers saturates at the largest finite number, so
/// that sums of log-ratios of both signs never meet ∞ − ∞.
#[inline(always)]
pub fn log_ratio<R: Real>(log_prob: R, other_log_prob: R) -> R {
    (log_prob - other_log_prob).clip(R::min_value(), R::max_value())
}

/// A clamp of a log-ratio before the exponential: `low ≤ high`, ±∞ where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatioBounds<R> {
    low: R,
    high: R,
}

impl<R: Real> LogRatioBounds<R> {
    /// The clamp [`low`, `high`]; an absent end does not bind. An error where `low > high`.
    pub fn new(low: Option<R>, high: Option<R>) -> Result<Self, Error> {
        let bounds = LogRatioBounds { low: low.unwrap_or(R::neg_infinity()), high: high.unwrap_or(R::infinity()) };
        if bounds.low <= bounds.high {
            Ok(bounds)
        } else {
            Err(Error::OutOfRange {
                argument: "log_ratio_min",
                value: bounds.low.to_f64(),
                legal: "at most log_ratio_max",
            })
        }
    }

    /// No clamp.
    pub fn none() -> Self {
        LogRatioBounds { low: R::neg_infinity(), high: R::infinity() }
    }

    /// The clamped log-ratio and its derivative: 1 inside and exactly at a bound (as autograd of a clamp gives), 0 beyond.
    #[inline(always)]
    pub fn clamp(self, log_ratio: R) -> [R; 2] {
        let clamped = log_ratio.clip(self.low, self.high);
        [clamped, if clamped == log_ratio { R::one() } else { R::zero() }]
    }
}

/// The importance ratio of one token, ρ = exp(d) with d = log π_θ − log π_old, and ∂ρ/∂log π_θ = ρ.
///
/// With a clamp of d to [`log_ratio_min`, `log_ratio_max`] the ratio is constant beyond it and the derivative 0; at the
/// bound itself the derivative is ρ. Without one, a ratio beyond the type's range is +∞ (with derivative +∞) or +0.
/// The same function is the ratio of a whole response when it is given Σ d ([`sequence`](super::sequence)).
///
/// ```
/// use plumbline_core::ratio::token::{LogRatioBounds, token_ratio};
/// let bounds = LogRatioBounds::new(Some(-20.0), Some(20.0))?;
/// assert_eq!(token_ratio(0.0, bounds), [1.0, 1.0]);
/// assert_eq!(token_ratio(25.0, bounds), [485165195.4097903, 0.0]); // e^20
/// # Ok::<(), plumbline_core::Error>(())
/// ```
///
/// Differs in: verl 0.9 clamps d to ±20 in most of its losses; TRL 1.16 does not clamp.
#[inline(always)]
pub fn token_ratio<R: Real>(log_ratio: R, bounds: LogRatioBounds<R>) -> [R; 2] {
    let [clamped, slope] = bounds.clamp(log_ratio);
    let ratio = clamped.exp();
    [ratio, if slope == R::zero() { R::zero() } else { ratio }]
}

/// [`token_ratio`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TokenRatio<R> {
    /// The limits of the log-ratio.
    pub bounds: LogRatioBounds<R>,
}

impl<R: Real> Elementwise<R, 2, 2> for TokenRatio<R> {
    const OPERATION: &'static str = "ratio.token";
    const INPUTS: [&'static str; 2] = ["log_prob", "old_log_prob"];
    const OUTPUTS: [&'static str; 2] = ["ratio", "d_log_prob"];

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(TokenRatio { bounds: bounds(call)? })
    }

    #[inline(always)]
    fn apply(&self, _: bool, [log_prob, old]: [R; 2]) -> [R; 2] {
        token_ratio(log_ratio(log_prob, old), self.bounds)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, TokenRatio<R>, 2, 2>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.token",
    family: Family::Ratio,
    title: "Token importance ratio",
    summary: "How much more probable a sampled token is now than when the update began.",
    formula: r"\rho_t = \exp(\log\pi_\theta(a_t) - \log\pi_{\mathrm{old}}(a_t))",
    gradient: r"\partial\rho_t/\partial\log\pi_\theta(a_t) = \rho_t",
    notes: "With a clamp of the log-ratio the derivative is the ratio inside and at the bound, 0 beyond. Without one a \
            large log-ratio gives infinity in value and derivative. verl clamps to ±20, TRL does not clamp.",
    sources: &[PPO],
    inputs: &[LOG_PROB, OLD_LOG_PROB, InputSpec::MASK],
    params: &[LOG_RATIO_MIN, LOG_RATIO_MAX],
    defaults: &[],
    outputs: &[
        OutputSpec::value("ratio", &["B", "T"], "the ratio of each token"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each ratio by its log_prob"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "no clamp", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "the log-ratio is clamped to ±20",
            settings: &[("log_ratio_min", Value::Number(-20.0)), ("log_ratio_max", Value::Number(20.0))],
        },
        Dialect { name: "trl-1.16", note: "no clamp", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn clamp_binds_beyond_its_ends_only() {
        let bounds = LogRatioBounds::new(Some(-1.0), Some(0.5)).unwrap();
        assert_eq!(bounds.clamp(0.5), [0.5, 1.0]);
        assert_eq!(bounds.clamp(0.75), [0.5, 0.0]);
        assert_eq!(bounds.clamp(-1.0), [-1.0, 1.0]);
        assert_eq!(bounds.clamp(-2.0), [-1.0, 0.0]);
        assert_eq!(
            LogRatioBounds::new(Some(1.0), Some(0.5)),
            Err(Error::OutOfRange { argument: "log_ratio_min", value: 1.0, legal: "at most log_ratio_max" })
        );
    }

    #[test]
    fn ends_of_the_range() {
        let none = LogRatioBounds::none();
        assert_eq!(token_ratio(1000.0, none), [f64::INFINITY, f64::INFINITY]);
        assert_eq!(token_ratio(-1000.0, none), [0.0, 0.0]);
        assert_eq!(token_ratio(88.0f32, LogRatioBounds::none())[0], 1.651_636_3e38);
        assert_eq!(token_ratio(89.0f32, LogRatioBounds::none())[0], f32::INFINITY);
        assert_eq!(log_ratio(f64::MAX, -f64::MAX), f64::MAX);
    }

    #[test]
    fn the_dialects() {
        let case = Case::new(SPECS, "ratio.token")
            .real("log_prob", &[1, 3], &[-1.0, -0.5, f64::NAN])
            .real("old_log_prob", &[1, 3], &[-26.0, -0.5, 0.0])
            .mask("mask", &[1, 3], &[1, 1, 0]);
        assert_eq!(case.clone().dialect("verl-0.9").get("ratio").unwrap(), [485165195.4097903, 1.0, 0.0]);
        assert_eq!(case.clone().dialect("verl-0.9").get("d_log_prob").unwrap(), [0.0, 1.0, 0.0]);
        assert_eq!(case.clone().dialect("trl-1.16").get("ratio").unwrap(), [72004899337.38588, 1.0, 0.0]);
        assert_eq!(case.clone().dialect("verl-0.9").get_f32("ratio").unwrap(), [485165195.4097903f64 as f32, 1.0, 0.0]);
        let junk = case.mask("mask", &[1, 3], &[1, 1, 1]).get("ratio");
        assert_eq!(junk, Err(Error::NonFinite { argument: "log_prob", index: 2 }));
    }

    proptest! {
        #[test]
        fn finite_log_probs_never_give_nan(a in any::<f64>(), b in any::<f64>(), clamp in any::<bool>()) {
            prop_assume!(a.is_finite() && b.is_finite());
            let ends = if clamp { Some(20.0) } else { None };
            let bounds = LogRatioBounds::new(ends.map(|end: f64| -end), ends).unwrap();
            let [ratio, derivative] = token_ratio(log_ratio(a, b), bounds);
            prop_assert!(ratio >= 0.0 && derivative >= 0.0 && derivative <= ratio);
            let swapped = token_ratio(log_ratio(b, a), bounds)[0];
            if clamp {
                // exp(d)·exp(−d) = 1 up to one rounding of each exponential and one of the product.
                prop_assert!((ratio * swapped - 1.0).abs() <= 1e-15);
            }
        }
    }
}

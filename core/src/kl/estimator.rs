//! The choice among the estimators, and what their catalog entries share.

use super::abs::abs;
use super::k1::k1;
use super::k2::k2;
use super::k3::k3;
use super::straight_through::{abs_plus, k1_plus, k3_plus};
use crate::num::Real;
use crate::spec::{Domain, InputSpec, ParamSpec, Range, Value, choice};

choice! {
    /// Which estimator of KL(π‖π_ref) a token contributes.
    pub enum KlEstimator {
        /// The log-ratio.
        K1 = "k1",
        /// The absolute log-ratio.
        Abs = "abs",
        /// Half the squared log-ratio.
        K2 = "k2",
        /// e⁻ᵈ − 1 + d.
        K3 = "k3",
        /// The value of k1 with the gradient of k2.
        K1Plus = "k1_plus",
        /// The value of abs with the gradient of k2.
        AbsPlus = "abs_plus",
        /// The value of k3 with the gradient of k2.
        K3Plus = "k3_plus",
    }
}

impl KlEstimator {
    /// The estimate and its derivative by `log_ratio` = log π − log π_ref. The clamps concern k3 and the value of k3+;
    /// the other estimators ignore them.
    ///
    /// ```
    /// use plumbline_core::kl::estimator::KlEstimator;
    /// assert_eq!(KlEstimator::K2.estimate(2.0, None, None), [2.0, 2.0]);
    /// ```
    #[inline(always)]
    pub fn estimate<R: Real>(self, log_ratio: R, difference_clamp: Option<R>, value_clamp: Option<R>) -> [R; 2] {
        match self {
            KlEstimator::K1 => k1(log_ratio),
            KlEstimator::Abs => abs(log_ratio),
            KlEstimator::K2 => k2(log_ratio),
            KlEstimator::K3 => k3(log_ratio, difference_clamp, value_clamp),
            KlEstimator::K1Plus => k1_plus(log_ratio),
            KlEstimator::AbsPlus => abs_plus(log_ratio),
            KlEstimator::K3Plus => k3_plus(log_ratio, difference_clamp, value_clamp),
        }
    }
}

/// The limit of the log-ratio inside k3.
pub const DIFFERENCE_CLAMP: ParamSpec = ParamSpec::optional(
    "difference_clamp",
    r"c",
    None,
    Range::POSITIVE,
    "k3 only: limit of the log-ratio's size before the exponential (nats); off by default",
);

/// The limit of k3's result.
pub const VALUE_CLAMP: ParamSpec = ParamSpec::optional(
    "value_clamp",
    r"v",
    None,
    Range::POSITIVE,
    "k3 only: limit of the estimate (nats); off by default",
);

/// The clamps that verl has written into k3.
pub const VERL_CLAMPS: &[(&str, Value)] =
    &[(DIFFERENCE_CLAMP.name, Value::Number(20.0)), (VALUE_CLAMP.name, Value::Number(10.0))];

/// Two log-probabilities of each sampled token, and the mask.
pub(super) const fn pair_inputs() -> [InputSpec; 3] {
    [
        InputSpec::new(
            "log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of the sampled token, current policy (nats)",
        ),
        InputSpec::new("ref_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the reference policy (nats)"),
        InputSpec::MASK,
    ]
}

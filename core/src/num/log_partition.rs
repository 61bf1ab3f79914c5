//! The logarithm of a softmax's normaliser, from which every function of a categorical distribution starts.

use super::{Real, tree_sum_map};

/// ln Σ e^(zⱼ/τ) of one row of logits, kept in two parts so that log-probabilities do not lose digits at large logits.
///
/// −∞ is a legal logit: its entry has probability 0. NaN and +∞ are not, and are the caller's to reject.
///
/// ```
/// use plumbline_core::num::LogPartition;
/// let row = [1000.0f64, 1000.0, f64::NEG_INFINITY];
/// let partition = LogPartition::new(&row, 1.0).unwrap();
/// assert_eq!(partition.log_prob(1000.0), -core::f64::consts::LN_2);
/// assert_eq!(partition.log_prob(f64::NEG_INFINITY), f64::NEG_INFINITY);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogPartition<R> {
    largest: R,
    log_sum: R,
    temperature: R,
}

impl<R: Real> LogPartition<R> {
    /// Of a row at temperature τ > 0; `None` where no logit is above −∞.
    pub fn new(logits: &[R], temperature: R) -> Option<Self> {
        let mut largest = R::neg_infinity();
        for logit in logits {
            largest = logit.larger(largest);
        }
        if largest == R::neg_infinity() {
            return None;
        }
        let sum = tree_sum_map(logits, |logit| ((*logit - largest) / temperature).exp());
        Some(LogPartition { largest, log_sum: sum.ln(), temperature })
    }

    /// ln Σ e^(zⱼ/τ).
    pub fn value(self) -> R {
        self.largest / self.temperature + self.log_sum
    }

    /// The log-probability of an entry with that logit.
    #[inline(always)]
    pub fn log_prob(self, logit: R) -> R {
        (logit - self.largest) / self.temperature - self.log_sum
    }

    /// τ.
    pub fn temperature(self) -> R {
        self.temperature
    }
}

/// ln Σ e^(zⱼ); −∞ of nothing.
///
/// ```
/// use plumbline_core::num::log_sum_exp;
/// assert_eq!(log_sum_exp(&[-1000.0f64, -1000.0]), -1000.0 + core::f64::consts::LN_2);
/// ```
pub fn log_sum_exp<R: Real>(values: &[R]) -> R {
    LogPartition::new(values, R::one()).map_or(R::neg_infinity(), LogPartition::value)
}

//! The logarithm of a softmax's normaliser, from which every function of a categorical distribution starts.

use super::{BLOCK, Real, RowSum, halving_fold};
use crate::engine::Engine;

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
        Self::of_kept(logits, temperature, |_| true)
    }

    /// The same over the entries whose logit `keep` keeps.
    pub fn of_kept(logits: &[R], temperature: R, keep: impl Fn(R) -> bool) -> Option<Self> {
        let (mut largest, mut position) = (R::neg_infinity(), 0);
        for (index, logit) in logits.iter().enumerate() {
            if *logit > largest && keep(*logit) {
                (largest, position) = (*logit, index);
            }
        }
        if largest == R::neg_infinity() {
            return None;
        }
        let others = others(logits, (largest, position), temperature, keep);
        Some(LogPartition { largest, log_sum: others.ln_1p(), temperature })
    }

    /// [`new`](Self::new) with the passes called by an engine; `None` where a logit is NaN or +∞ too.
    pub(crate) fn new_by(engine: impl Engine, logits: &[R], temperature: R) -> Option<Self> {
        let (largest, legal) = engine.run(logits, survey);
        if !legal || largest == R::neg_infinity() {
            return None;
        }
        let others = engine.run((logits, largest), move |(logits, largest)| {
            let position = logits.iter().position(|logit| *logit == largest).unwrap_or(0);
            others(logits, (largest, position), temperature, |_| true)
        });
        // Of zeros of both signs the first is the largest, as in the other walk.
        let largest = if largest == R::zero() {
            logits.iter().copied().find(|logit| *logit == largest).unwrap_or(largest)
        } else {
            largest
        };
        Some(LogPartition { largest, log_sum: others.ln_1p(), temperature })
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

/// Σ e^((zⱼ − max z)/τ) over the entries that `keep` keeps, but the largest. Its own term is 1: ln(1 + the others) keeps the
/// digits of a log-probability near 0.
#[inline(always)]
fn others<R: Real>(logits: &[R], (largest, position): (R, usize), temperature: R, keep: impl Fn(R) -> bool) -> R {
    let mut others = RowSum::new();
    for (start, chunk) in (0..).step_by(BLOCK).zip(logits.chunks(BLOCK)) {
        let mut block = [R::zero(); BLOCK];
        for (slot, logit) in block.iter_mut().zip(chunk) {
            *slot = if keep(*logit) { ((*logit - largest) / temperature).exp() } else { R::zero() };
        }
        if let Some(slot) = position.checked_sub(start).and_then(|place| block.get_mut(place)) {
            *slot = R::zero();
        }
        others.push(&block);
    }
    others.value()
}

/// The largest of the legal logits, and whether all are.
#[inline(always)]
fn survey<R: Real>(logits: &[R]) -> (R, bool) {
    let mut largest = [R::neg_infinity(); BLOCK];
    let mut legal = true;
    for chunk in logits.chunks(BLOCK) {
        for (slot, logit) in largest.iter_mut().zip(chunk) {
            *slot = (*logit).larger(*slot);
            legal &= *logit < R::infinity();
        }
    }
    (halving_fold(&largest, R::larger), legal)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Portable;
    use std::vec;

    #[test]
    fn a_log_probability_near_zero_keeps_its_digits() {
        // ln σ(40) = −e⁻⁴⁰ + …, nearest double −4.248354255291589e-18.
        let row = [0.0, 40.0f64];
        let log_prob = LogPartition::new(&row, 1.0).unwrap().log_prob(40.0);
        assert!((log_prob / -4.248_354_255_291_589e-18 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn an_engine_gives_the_same_partition() {
        let same = |row: &[f32], temperature: f32| {
            let (core, engine) =
                (LogPartition::new(row, temperature), LogPartition::new_by(Portable, row, temperature));
            assert_eq!(std::format!("{core:?}"), std::format!("{engine:?}"));
        };
        for length in [1usize, 2, 127, 128, 129, 400] {
            let row: std::vec::Vec<f32> = (0..length).map(|index| (index * 7919 % 101) as f32 / 9.0 - 5.0).collect();
            same(&row, 1.0);
            same(&row, 0.3);
        }
        same(&[-0.0, 0.0, f32::NEG_INFINITY], 1.0);
        same(&[0.0, -0.0, -1000.0], 1.0);
        same(&[f32::NEG_INFINITY; 3], 1.0);
        assert_eq!(LogPartition::new_by(Portable, &[0.0, f32::NAN], 1.0), None);
        assert_eq!(LogPartition::new_by(Portable, &[0.0, f32::INFINITY], 1.0), None);
    }

    #[test]
    fn rows_longer_than_a_block_and_extreme_logits() {
        let mut row = vec![0.0f32; 300];
        assert_eq!(log_sum_exp(&row), Real::ln(300.0f32));
        row[299] = 1000.0;
        let partition = LogPartition::new(&row, 1.0).unwrap();
        assert_eq!([partition.log_prob(1000.0), partition.log_prob(0.0)], [0.0, -1000.0]);
        // A temperature that overflows z/τ leaves the log-probabilities right.
        let partition = LogPartition::new(&[-1000.0f64, 1000.0], 1e-307).unwrap();
        assert_eq!([partition.log_prob(1000.0), partition.log_prob(-1000.0)], [0.0, f64::NEG_INFINITY]);
        assert_eq!(LogPartition::new(&[f64::NEG_INFINITY; 2], 1.0), None);
        assert_eq!(log_sum_exp::<f64>(&[]), f64::NEG_INFINITY);
    }
}

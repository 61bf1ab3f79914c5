//! One term of a Kullback–Leibler divergence, without cancellation.

use super::{Real, exp_remainders};

/// p ln(p/q) − p + q from p, q and ln(p/q): never negative, and over two distributions the −p + q add up to 0.
///
/// A sum of these terms is the divergence to full precision even where the two distributions nearly agree, where the
/// terms p ln(p/q) of both signs would cancel. p = 0 gives q, q = 0 with p > 0 (log-ratio +∞) infinity.
///
/// ```
/// use plumbline_core::num::kl_div;
/// assert_eq!(kl_div(0.5, 0.25, core::f64::consts::LN_2), 0.5 * core::f64::consts::LN_2 - 0.25);
/// assert_eq!(kl_div(0.0, 0.25, f64::NEG_INFINITY), 0.25);
/// ```
#[inline(always)]
pub fn kl_div<R: Real>(p: R, q: R, log_ratio: R) -> R {
    if p == R::zero() {
        return q;
    }
    if log_ratio.abs() < R::half() {
        let [_, remainder] = exp_remainders(-log_ratio);
        p * remainder
    } else {
        p * log_ratio + (q - p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges() {
        assert_eq!(kl_div(0.0f64, 0.0, f64::NAN), 0.0);
        assert_eq!(kl_div(1e-9f64, 0.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(kl_div(0.25f32, 0.25, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn the_two_forms_meet_and_none_is_negative(p in 1e-6f64..1.0, log_ratio in -2.0f64..2.0, scale in 0i32..60) {
            let log_ratio = log_ratio * libm::exp2(f64::from(-scale));
            let q = p * Real::exp(-log_ratio);
            let term = kl_div(p, q, log_ratio);
            prop_assert!(term >= 0.0);
            prop_assert!((term - (p * log_ratio - p + q)).abs() <= 4.0 * f64::EPSILON * (p + q));
        }
    }
}

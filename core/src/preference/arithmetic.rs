//! Two operations that keep infinities from turning into NaN.

use crate::num::Real;

/// a − b, and 0 where both are the same infinity: equal arguments differ by nothing.
#[inline(always)]
pub(super) fn difference<R: Real>(a: R, b: R) -> R {
    if a == b { R::zero() } else { a - b }
}

/// a·b, and 0 where either is 0: a factor that is exactly zero has vanished faster than any infinity beside it grew.
#[inline(always)]
pub(super) fn times<R: Real>(a: R, b: R) -> R {
    if a == R::zero() || b == R::zero() { R::zero() } else { a * b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinities_give_no_nan() {
        assert_eq!(difference(f64::INFINITY, f64::INFINITY), 0.0);
        assert_eq!(difference(f64::INFINITY, 3.0), f64::INFINITY);
        assert_eq!(difference(5.0, 3.0), 2.0);
        assert_eq!(times(0.0, f64::INFINITY), 0.0);
        assert_eq!(times(f64::NEG_INFINITY, -0.0), 0.0);
        assert_eq!(times(3.0, 2.0), 6.0);
    }
}

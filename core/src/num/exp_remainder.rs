//! The exponential with its first Taylor terms taken away, without cancellation.

use super::Real;

/// Below this size of the argument the power series is used; above it the direct form loses fewer than four bits.
const SERIES_LIMIT: f64 = 0.5;
/// 1/(n+2)!: the coefficients of (eˣ − 1 − x)/x². Fifteen reach 2⁻⁵³ at |x| = ½.
const COEFFICIENTS: [f64; 15] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
    1.0 / 87_178_291_200.0,
    1.0 / 1_307_674_368_000.0,
    1.0 / 20_922_789_888_000.0,
];

/// eˣ − 1 and eˣ − 1 − x, the first two Taylor remainders of the exponential: to less than 0.51 units in the last place for
/// `f32`, to a few for `f64`.
///
/// The second is never negative, and infinity where eˣ is. One exponential and no branch, so that a loop over it
/// vectorises for `f32`.
///
/// ```
/// use plumbline_core::num::exp_remainders;
/// assert_eq!(exp_remainders(1e-100f64), [1e-100, 1e-100 * 1e-100 / 2.0]);
/// assert_eq!(exp_remainders(1000.0f64), [f64::INFINITY, f64::INFINITY]);
/// ```
#[inline(always)]
pub fn exp_remainders<R: Real>(x: R) -> [R; 2] {
    x.exp_remainders()
}

/// The two remainders in `f64`.
#[inline(always)]
pub(super) fn exp_remainders_f64(x: f64) -> [f64; 2] {
    // The largest finite number as a bound keeps ∞ − ∞ out of the difference below.
    let x = x.limited();
    let first = Real::exp(x) - 1.0;
    let second = first - x;
    let mut series = 0.0;
    for coefficient in COEFFICIENTS.iter().rev() {
        series = series * x + *coefficient;
    }
    let near_second = x * x * series;
    if x.abs() < SERIES_LIMIT { [x + near_second, near_second] } else { [first, second] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes() {
        assert_eq!(exp_remainders(0.0f64), [0.0, 0.0]);
        assert_eq!(exp_remainders(f64::INFINITY), [f64::INFINITY; 2]);
        assert_eq!(exp_remainders(f64::NEG_INFINITY), [-1.0, f64::MAX - 1.0]);
        assert_eq!(exp_remainders(-1000.0f32), [-1.0, 999.0]);
        assert_eq!(exp_remainders(f32::NEG_INFINITY), [-1.0, f32::MAX]);
        assert_eq!(exp_remainders(f32::INFINITY), [f32::INFINITY; 2]);
        assert_eq!(exp_remainders(0.0f32), [0.0, 0.0]);
        assert!(exp_remainders(f32::NAN).iter().all(|remainder| remainder.is_nan()));
        assert!(exp_remainders(f64::NAN).iter().all(|remainder| remainder.is_nan()));
        assert_eq!(exp_remainders(89.0f32), [f32::INFINITY; 2]);
    }

    proptest! {
        #[test]
        fn first_remainder_is_expm1(x in -3.0f64..3.0, scale in 0i32..60) {
            let x = x * libm::exp2(f64::from(-scale));
            let expected = libm::expm1(x);
            // At |x| = 1/2 the direct form has lost log2(e^-0.5 / 0.39) < 2 bits; 4 ulp cover it and libm's own 1.
            prop_assert!((exp_remainders(x)[0] - expected).abs() <= 4.0 * f64::EPSILON * expected.abs());
        }

        #[test]
        fn second_remainder_is_not_negative(x in -3.0f64..3.0, scale in 0i32..140) {
            let x = x * libm::exp2(f64::from(-scale));
            prop_assert!(exp_remainders(x)[1] >= 0.0);
            prop_assert!(exp_remainders(x as f32)[1] >= 0.0);
        }

        #[test]
        fn single_precision_is_rounded_once(x in -110.0f32..80.0, scale in 0i32..60) {
            let x = x * libm::exp2f(-scale as f32);
            for (single, double) in exp_remainders(x).iter().zip(exp_remainders(f64::from(x))) {
                // Half a unit in the last place is at most 2⁻²⁴ of the number; below −104.5 the second is rounded twice.
                let bound = if x < -104.5 { 1.01 } else { 0.51 } * f64::from(f32::EPSILON) * double.abs();
                prop_assert!((f64::from(*single) - double).abs() <= bound, "{x:e}: {single:e} {double:e}");
            }
        }
    }
}

//! How far two numbers are apart.

use plumbline_core::num::Dtype;

/// How many representable numbers of that precision lie between the two, one of them counted: 0 for equal ones (+0 and
/// −0 are), `None` where either is NaN.
pub fn ulp_distance(first: f64, second: f64, dtype: Dtype) -> Option<u64> {
    if first.is_nan() || second.is_nan() {
        return None;
    }
    // Sign and magnitude become one ascending line of integers on which both zeros are 0.
    let line = |value: f64| match dtype {
        Dtype::F32 => {
            let bits = (value as f32).to_bits();
            let magnitude = i128::from(bits & 0x7fff_ffff);
            if bits >> 31 == 1 { -magnitude } else { magnitude }
        }
        Dtype::F64 => {
            let bits = value.to_bits();
            let magnitude = i128::from(bits & 0x7fff_ffff_ffff_ffff);
            if bits >> 63 == 1 { -magnitude } else { magnitude }
        }
    };
    u64::try_from((line(first) - line(second)).abs()).ok()
}

/// |got − expected| / |expected|; 0 where they are equal, infinite where only `expected` is 0 or only one is finite, NaN
/// where either is NaN.
pub fn relative_error(expected: f64, got: f64) -> f64 {
    if expected == got {
        0.0
    } else if expected.is_infinite() || got.is_infinite() {
        if expected.is_nan() || got.is_nan() { f64::NAN } else { f64::INFINITY }
    } else {
        (got - expected).abs() / expected.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ulps_count_steps_across_zero_and_up_to_infinity() {
        let next = f64::from_bits(1.0f64.to_bits() + 1);
        assert_eq!(ulp_distance(1.0, next, Dtype::F64), Some(1));
        assert_eq!(ulp_distance(1.0, next, Dtype::F32), Some(0));
        assert_eq!(ulp_distance(0.0, -0.0, Dtype::F64), Some(0));
        assert_eq!(ulp_distance(-5e-324, 5e-324, Dtype::F64), Some(2));
        assert_eq!(ulp_distance(f64::MAX, f64::INFINITY, Dtype::F64), Some(1));
        assert_eq!(ulp_distance(f64::NAN, f64::NAN, Dtype::F64), None);
        assert_eq!(ulp_distance(f64::NEG_INFINITY, f64::INFINITY, Dtype::F32), Some(2 * 0x7f80_0000));
    }

    #[test]
    fn relative_errors() {
        assert_eq!(relative_error(2.0, 2.5), 0.25);
        assert_eq!(relative_error(-2.0, -1.0), 0.5);
        assert_eq!(relative_error(0.0, -0.0), 0.0);
        assert_eq!(relative_error(0.0, 1e-30), f64::INFINITY);
        assert_eq!(relative_error(f64::INFINITY, f64::INFINITY), 0.0);
        assert_eq!(relative_error(f64::INFINITY, 1.0), f64::INFINITY);
        assert!(relative_error(f64::NAN, f64::INFINITY).is_nan());
    }
}

//! When two numbers count as the same, by the number type in which the implementation computes.

/// Relative and absolute part of the allowed difference.
///
/// An implementation of n operations errs by about n·u of the largest intermediate number, u being half an ulp of 1
/// (1.1e-16 in f64, 6.0e-8 in f32). Inputs are of the order of 1 and a case has at most some hundred operations between
/// an input and an output, with cancellation in differences such as e^-d - 1 + d: 1e-9 and 2e-5 leave three digits of
/// room in f64 and one in f32, and are far below the smallest difference that a mistake makes on the cases (an epsilon
/// of 1e-6 beside a deviation of the order of 1 shows in f64 and cannot show in f32).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Share of the expected number.
    pub relative: f64,
    /// Beside it, for numbers near 0.
    pub absolute: f64,
    /// Numbers beyond this size are infinite in the implementation's number type.
    pub largest: f64,
}

impl Tolerance {
    /// For an implementation that computes in f64.
    pub const DOUBLE: Tolerance = Tolerance { relative: 1e-9, absolute: 1e-11, largest: f64::MAX };
    /// For an implementation that computes in f32.
    pub const SINGLE: Tolerance = Tolerance { relative: 2e-5, absolute: 2e-6, largest: f32::MAX as f64 };

    /// Whether `got` is the number `expected`: within the tolerance, or of the same class (NaN, an infinity).
    pub fn same(&self, got: f64, expected: f64) -> bool {
        self.same_at_scale(got, expected, 0.0)
    }

    /// The same where the number is a sum of terms of the size `scale`.
    pub fn same_at_scale(&self, got: f64, expected: f64, scale: f64) -> bool {
        let expected = if expected.abs() > self.largest { expected.signum() * f64::INFINITY } else { expected };
        if got.is_nan() || expected.is_nan() {
            return got.is_nan() && expected.is_nan();
        }
        if got.is_infinite() || expected.is_infinite() {
            return got == expected;
        }
        (got - expected).abs() <= self.relative * expected.abs().max(scale) + self.absolute
    }

    /// Whether all numbers are the same.
    pub fn all_same(&self, got: &[f64], expected: &[f64]) -> bool {
        got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| self.same(*got, *expected))
    }
}

#[cfg(test)]
mod tests {
    use super::Tolerance;

    #[test]
    fn nan_is_never_a_number_and_range_follows_the_type() {
        let double = Tolerance::DOUBLE;
        assert!(double.same(1.0 + 5e-10, 1.0));
        assert!(!double.same(1.0 + 5e-9, 1.0));
        assert!(!double.same(f64::NAN, 1.0));
        assert!(!double.same(f64::INFINITY, 1e300));
        assert!(Tolerance::SINGLE.same(f64::INFINITY, 1e39));
        assert!(!Tolerance::SINGLE.same(f64::NEG_INFINITY, 1e39));
    }
}

//! The sum across rows: exact, so that no order, no sharding and no thread count can change a bit of it.
//!
//! A fixed-point number wide enough for every finite `f64` (2⁻¹⁰⁷⁴ … 2¹⁰²⁴) is kept in digits of 32 bits, each in a signed
//! 64-bit limb, so that an addition touches three limbs and carries wait. Two accumulators merge by adding their limbs. The
//! result is rounded once, to nearest, ties to even, when it is asked for. The idea is Kulisch's long accumulator.

use super::Real;

/// 2098 bits of range, rounded up to whole digits, and two digits of headroom for carries.
const LIMBS: usize = 68;
/// Carries are propagated after this many additions: each adds less than 2³² to a limb of 2⁶³.
const ADDITIONS_BEFORE_CARRY: u32 = 1 << 30;
/// Exponent of the accumulator's lowest bit.
const LOWEST_EXPONENT: i32 = -1074;

/// An exact sum of `f32` or `f64` numbers, independent of their order.
///
/// ```
/// use plumbline_core::num::ExactSum;
/// let mut sum = ExactSum::new();
/// for x in [1e300, 1.0, -1e300] {
///     sum.add(x);
/// }
/// assert_eq!(sum.value::<f64>(), 1.0);
/// ```
#[derive(Clone, Debug)]
pub struct ExactSum {
    limbs: [i64; LIMBS],
    additions: u32,
    positive_infinity: bool,
    negative_infinity: bool,
    nan: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self::new()
    }
}

impl ExactSum {
    /// The empty sum.
    pub const fn new() -> Self {
        ExactSum { limbs: [0; LIMBS], additions: 0, positive_infinity: false, negative_infinity: false, nan: false }
    }

    /// Add one number.
    pub fn add<R: Real>(&mut self, value: R) {
        let value = value.to_f64();
        if !value.is_finite() {
            self.nan |= value.is_nan();
            self.positive_infinity |= value == f64::INFINITY;
            self.negative_infinity |= value == f64::NEG_INFINITY;
            return;
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let biased = ((bits >> 52) & 0x7ff) as usize;
        let (significand, shift) = if biased == 0 { (fraction, 0) } else { (fraction | (1 << 52), biased - 1) };
        let wide = u128::from(significand) << (shift % 32);
        let negative = value < 0.0;
        for (limb, part) in self.limbs.iter_mut().skip(shift / 32).zip([wide, wide >> 32, wide >> 64]) {
            let digit = (part & 0xffff_ffff) as i64;
            *limb += if negative { -digit } else { digit };
        }
        self.additions += 1;
        if self.additions >= ADDITIONS_BEFORE_CARRY {
            self.carry();
        }
    }

    /// Add everything that `other` holds.
    pub fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs) {
            *limb += more;
        }
        self.additions += 1;
        self.positive_infinity |= other.positive_infinity;
        self.negative_infinity |= other.negative_infinity;
        self.nan |= other.nan;
    }

    /// Bring every limb but the last into 0 … 2³²−1; the last keeps the sign.
    fn carry(&mut self) {
        let mut carry = 0i64;
        let last = LIMBS - 1;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let total = *limb + carry;
            if index == last {
                *limb = total;
            } else {
                *limb = total & 0xffff_ffff;
                carry = total >> 32;
            }
        }
        self.additions = 1;
    }

    /// The sum, rounded once to nearest, ties to even. The empty sum is +0; infinities of both signs give NaN.
    pub fn value<R: Real>(&self) -> R {
        if self.nan || (self.positive_infinity && self.negative_infinity) {
            return R::nan();
        }
        if self.positive_infinity {
            return R::infinity();
        }
        if self.negative_infinity {
            return R::neg_infinity();
        }
        let mut magnitude = self.clone();
        magnitude.carry();
        let negative = magnitude.limbs.last().is_some_and(|top| *top < 0);
        if negative {
            for limb in &mut magnitude.limbs {
                *limb = -*limb;
            }
            magnitude.carry();
        }
        let Some(top) = magnitude.highest_bit() else { return R::zero() };
        let smallest = (R::SMALLEST_EXPONENT - LOWEST_EXPONENT) as usize;
        let mut lowest_kept = (top + 1).saturating_sub(R::SIGNIFICAND_BITS as usize).max(smallest);
        let mut significand = 0u64;
        // Where everything lies below the smallest subnormal, only the rounding is left to decide.
        for index in (lowest_kept..=top.max(lowest_kept)).rev() {
            significand = (significand << 1) | u64::from(magnitude.bit(index));
        }
        let half = lowest_kept > 0 && magnitude.bit(lowest_kept - 1);
        let beyond = lowest_kept > 1 && magnitude.any_bit_below(lowest_kept - 1);
        if half && (beyond || significand & 1 == 1) {
            significand += 1;
            if significand == 1 << R::SIGNIFICAND_BITS {
                significand >>= 1;
                lowest_kept += 1;
            }
        }
        R::from_parts(negative, significand, lowest_kept as i32 + LOWEST_EXPONENT)
    }

    /// Index of the highest set bit of a carried, non-negative accumulator.
    fn highest_bit(&self) -> Option<usize> {
        let (index, limb) = self.limbs.iter().enumerate().rev().find(|(_, limb)| **limb != 0)?;
        Some(index * 32 + 63 - limb.leading_zeros() as usize)
    }

    /// One bit of a carried, non-negative accumulator. The last limb may hold more than 32 bits.
    fn bit(&self, index: usize) -> bool {
        let limb_index = (index / 32).min(LIMBS - 1);
        self.limbs.get(limb_index).is_some_and(|limb| (*limb >> (index - limb_index * 32).min(63)) & 1 == 1)
    }

    /// Whether any bit below `index` is set.
    fn any_bit_below(&self, index: usize) -> bool {
        let whole = (index / 32).min(LIMBS - 1);
        let rest = (index - whole * 32).min(62);
        self.limbs.iter().take(whole).any(|limb| *limb != 0)
            || self.limbs.get(whole).is_some_and(|limb| limb & ((1i64 << rest) - 1) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::new();
        for value in values {
            sum.add(*value);
        }
        sum
    }

    #[test]
    fn cancellation_overflow_and_ends_of_the_range() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]).value::<f64>(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).value::<f64>(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).value::<f64>(), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]).value::<f64>(), f64::NEG_INFINITY);
        assert_eq!(sum(&[5e-324; 3]).value::<f64>().to_bits(), 3);
        assert_eq!(sum(&[-5e-324, 1.0, -1.0]).value::<f64>(), -5e-324);
        assert_eq!(sum(&[]).value::<f64>().to_bits(), 0);
        assert_eq!(sum(&[1.5, -1.5]).value::<f64>().to_bits(), 0);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).value::<f64>().is_nan());
        assert_eq!(sum(&[f64::INFINITY, 1.0]).value::<f64>(), f64::INFINITY);
        assert!(sum(&[f64::NAN]).value::<f64>().is_nan());
    }

    #[test]
    fn rounds_once_and_to_even() {
        // 1 + 2^-53 is a tie (to even: 1), a little more is not.
        assert_eq!(sum(&[1.0, 1.1102230246251565e-16]).value::<f64>(), 1.0);
        assert_eq!(sum(&[1.0, 1.1102230246251565e-16, 1e-300]).value::<f64>(), 1.0000000000000002);
        // To f32 directly: through f64 this would round twice, to a tie and then down.
        assert_eq!(sum(&[1.0, 5.960464477539063e-8, 1e-300]).value::<f32>(), 1.0000001);
        assert_eq!(sum(&[1.0, 5.960464477539063e-8]).value::<f32>(), 1.0);
        assert_eq!(sum(&[1e-45, 1e-45]).value::<f32>().to_bits(), 1);
        assert_eq!(sum(&[3.6e-46]).value::<f32>().to_bits(), 0);
        assert_eq!(sum(&[f64::from(f32::MAX), 1.1e31]).value::<f32>(), f32::INFINITY);
    }

    proptest! {
        #[test]
        fn two_numbers_give_the_rounded_sum(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(a.is_finite() && b.is_finite());
            // Adding +0 turns −0 into +0, which the accumulator does not distinguish.
            prop_assert_eq!(sum(&[a, b]).value::<f64>().to_bits(), (a + b + 0.0).to_bits());
        }

        #[test]
        fn order_and_sharding_do_not_matter(
            values in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 0..40),
            cut in 0usize..40,
        ) {
            let whole = sum(&values).value::<f64>().to_bits();
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert_eq!(sum(&reversed).value::<f64>().to_bits(), whole);
            let cut = cut.min(values.len());
            let mut left = sum(&values[..cut]);
            left.merge(&sum(&values[cut..]));
            prop_assert_eq!(left.value::<f64>().to_bits(), whole);
        }
    }
}

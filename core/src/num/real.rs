//! The number trait: `f32` and `f64`, with transcendental functions whose bits do not depend on the platform.

use core::fmt::{Debug, Display, LowerExp};

use num_traits::NumAssignOps;
use num_traits::float::FloatCore;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Which of the two number types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Dtype {
    /// `"f32"` or `"f64"`.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }
}

/// A real number type, `f32` or `f64` (sealed).
///
/// For `f32`, [`exp`](Real::exp) and [`ln`](Real::ln) are correctly rounded for all 2³² inputs, and the other
/// functions are evaluated in `f64` and rounded once. For `f64` they are those of the `libm` crate (at most 1 ulp).
pub trait Real:
    sealed::Sealed + FloatCore + NumAssignOps + Default + Debug + Display + LowerExp + Send + Sync + 'static
{
    /// Which type this is.
    const DTYPE: Dtype;
    /// Bits of the significand, the implicit one included (24 or 53).
    const SIGNIFICAND_BITS: u32;
    /// Exponent of the smallest positive subnormal (−149 or −1074).
    const SMALLEST_EXPONENT: i32;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// The same value as `f64` (exact).
    fn to_f64(self) -> f64;
    /// A count as a number (exact below 2²⁴ or 2⁵³).
    fn from_count(count: usize) -> Self;
    /// The bit pattern, in the low bits.
    fn bits(self) -> u64;
    /// `±significand · 2^exponent`; infinity where that is too large. The significand has at most
    /// [`SIGNIFICAND_BITS`](Real::SIGNIFICAND_BITS) bits (or is that power of two) and the result is exact.
    fn from_parts(negative: bool, significand: u64, exponent: i32) -> Self;

    /// eˣ.
    fn exp(self) -> Self;
    /// eˣ − 1.
    fn exp_m1(self) -> Self;
    /// eˣ − 1 and eˣ − 1 − x, with one exponential: see [`exp_remainders`](crate::num::exp_remainders).
    fn exp_remainders(self) -> [Self; 2];
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// ln(1 + x).
    fn ln_1p(self) -> Self;
    /// Square root, correctly rounded.
    fn sqrt(self) -> Self;

    /// The larger of two numbers; the second where they are equal or the first is NaN. Unlike `max` of the
    /// standard library its result for ±0 is defined, and it compiles to one instruction.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    /// The smaller of two numbers; the second where they are equal or the first is NaN.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other { self } else { other }
    }
    /// `self` limited to `[low, high]` (`low ≤ high`); NaN stays NaN.
    #[inline(always)]
    fn clip(self, low: Self, high: Self) -> Self {
        let raised = if self < low { low } else { self };
        if raised > high { high } else { raised }
    }
    /// The nearest finite number: infinities become the largest one of their sign; NaN stays NaN.
    #[inline(always)]
    fn limited(self) -> Self {
        self.clip(Self::min_value(), Self::max_value())
    }
    /// One half, exactly.
    #[inline(always)]
    fn half() -> Self {
        Self::from_f64(0.5)
    }
    /// Two, exactly.
    #[inline(always)]
    fn two() -> Self {
        Self::from_f64(2.0)
    }
}

impl Real for f32 {
    const DTYPE: Dtype = Dtype::F32;
    const SIGNIFICAND_BITS: u32 = 24;
    const SMALLEST_EXPONENT: i32 = -149;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_count(count: usize) -> Self {
        count as f32
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_parts(negative: bool, significand: u64, exponent: i32) -> Self {
        let sign = u64::from(negative) << 31;
        let biased = (exponent - Self::SMALLEST_EXPONENT).max(0) as u64;
        let infinity = 0x7f80_0000;
        let magnitude = if biased > 254 { infinity } else { ((biased << 23) + significand).min(infinity) };
        f32::from_bits((sign | magnitude) as u32)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        super::exp::exp_f32(self)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        libm::expm1(f64::from(self)) as f32
    }
    #[inline(always)]
    fn exp_remainders(self) -> [Self; 2] {
        super::exp::exp_remainders_f32(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        super::ln::ln_f32(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        libm::log1p(f64::from(self)) as f32
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        libm::sqrtf(self)
    }
}

impl Real for f64 {
    const DTYPE: Dtype = Dtype::F64;
    const SIGNIFICAND_BITS: u32 = 53;
    const SMALLEST_EXPONENT: i32 = -1074;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_count(count: usize) -> Self {
        count as f64
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn from_parts(negative: bool, significand: u64, exponent: i32) -> Self {
        let sign = u64::from(negative) << 63;
        let biased = (exponent - Self::SMALLEST_EXPONENT).max(0) as u64;
        let infinity = 0x7ff0_0000_0000_0000;
        let magnitude = if biased > 2046 { infinity } else { ((biased << 52) + significand).min(infinity) };
        f64::from_bits(sign | magnitude)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        libm::exp(self)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        libm::expm1(self)
    }
    #[inline(always)]
    fn exp_remainders(self) -> [Self; 2] {
        super::exp_remainder::exp_remainders_f64(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        libm::log(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        libm::log1p(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        libm::sqrt(self)
    }
}

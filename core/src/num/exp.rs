//! The `f32` exponential, correctly rounded for every input and free of branches, so that it vectorises.
//!
//! The argument is widened to `f64` and reduced by multiples of ln 2, a polynomial gives e^r to about 2⁻⁵³, and one
//! conversion rounds to `f32`. No `f32` input has an exponential so close to a rounding boundary that this error could
//! decide the rounding: `cargo xtask sweep` compares all 2³² inputs with a correctly rounded oracle.

/// The polynomial p for which 1 + r + r²·p(r) is nearest to eʳ, relatively, on |r| ≤ ½·ln 2: minimax of degree 9 by Remez's
/// algorithm in 50 digits, error 2⁻⁵⁷·⁹ before and 2⁻⁵⁶·³ after its coefficients are rounded. The Taylor polynomial needs two
/// more terms for the same. Its even and its odd powers are summed apart, each highest first, so that the two sums do not
/// wait for each other.
const EVEN: [f64; 5] =
    [2.763030721649732e-7, 2.4801492946781564e-5, 1.3888888943762855e-3, 4.166666666652972e-2, 5.000000000000011e-1];
const ODD: [f64; 5] = [
    2.5000027084888187e-8,
    2.7557586782665284e-6,
    1.984_126_950_578_948e-4,
    8.333333333494976e-3,
    1.666666666666641e-1,
];
/// ln 2 in two parts: the high part has 32 significant bits, so that `k * LN2_HIGH` is exact for |k| < 2²⁰.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Adding 1.5·2⁵² to a small number leaves its nearest integer in the low bits of the significand.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// eˣ, correctly rounded. Overflows to infinity above 88.72…, underflows to +0 below −103.97….
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    // Beyond these bounds the result is 0 or infinity whatever the argument; NaN passes both comparisons.
    let bounded = if x < -104.5 { -104.5 } else { x };
    let bounded = f64::from(if bounded > 89.5 { 89.5 } else { bounded });
    let shifted = bounded * core::f64::consts::LOG2_E + ROUNDER;
    let multiple = shifted - ROUNDER;
    let remainder = (bounded - multiple * LN2_HIGH) - multiple * LN2_LOW;
    let square = remainder * remainder;
    let ([e8, e6, e4, e2, e0], [o9, o7, o5, o3, o1]) = (EVEN, ODD);
    let even = (((e8 * square + e6) * square + e4) * square + e2) * square + e0;
    let odd = (((o9 * square + o7) * square + o5) * square + o3) * square + o1;
    let polynomial = even + remainder * odd;
    let significand = 1.0 + (remainder + square * polynomial);
    // The low bits of `shifted` are the integer `multiple`; moved into the exponent they scale by 2^multiple.
    let scaled = f64::from_bits(significand.to_bits().wrapping_add(shifted.to_bits() << 52)) as f32;
    if x.is_nan() { x } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::exp_f32;

    #[test]
    fn known_values_and_ends_of_the_range() {
        assert_eq!(exp_f32(0.0).to_bits(), 1.0f32.to_bits());
        assert_eq!(exp_f32(-0.0).to_bits(), 1.0f32.to_bits());
        // e = 2.718281828459045…, nearest f32 0x402df854.
        assert_eq!(exp_f32(1.0).to_bits(), 0x402d_f854);
        // e^88 = 1.65163625499400185552…e38.
        assert_eq!(exp_f32(88.0), 1.651_636_254_994_001_8e38_f64 as f32);
        assert_eq!(exp_f32(88.73), f32::INFINITY);
        assert_eq!(exp_f32(1000.0), f32::INFINITY);
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32(-103.97).to_bits(), 1);
        assert_eq!(exp_f32(-104.0).to_bits(), 0);
        assert_eq!(exp_f32(f32::NEG_INFINITY).to_bits(), 0);
        assert!(exp_f32(f32::NAN).is_nan());
        assert!(exp_f32(-f32::NAN).is_nan());
    }

    #[test]
    fn agrees_with_the_double_precision_exponential_on_a_stride() {
        // libm's f64 exponential rounded to f32 was correct on all inputs in an exhaustive comparison.
        let mut bits = 0u32;
        while let Some(next) = bits.checked_add(40_009) {
            let x = f32::from_bits(bits);
            if !x.is_nan() {
                assert_eq!(exp_f32(x).to_bits(), (libm::exp(f64::from(x)) as f32).to_bits(), "x = {x:e}");
            }
            bits = next;
        }
    }
}

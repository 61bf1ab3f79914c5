//! The `f32` exponential, correctly rounded for every input, and its remainders; free of branches, so that they vectorise.
//!
//! The argument is widened to `f64` and reduced by multiples of ln 2, a polynomial gives e^r to about 2⁻⁵¹, and one
//! conversion rounds to `f32`. No `f32` input has an exponential so close to a rounding boundary that this error could
//! decide the rounding: `cargo xtask sweep` compares all 2³² inputs with a correctly rounded oracle.

use super::Real;

/// The polynomial p for which 1 + r + r²·p(r) is nearest to eʳ, relatively, on |r| ≤ ½·ln 2: minimax of degree 8 by Remez's
/// algorithm in 60 digits, error 2⁻⁵¹·⁶. The Taylor polynomial needs two more terms for the same. Its even and its odd powers
/// are summed apart, each highest first, so that the two sums do not wait for each other.
const EVEN: [f64; 5] =
    [2.747679813367258e-7, 2.4801931715000066e-5, 1.3888888516229644e-3, 4.1666666668136475e-2, 4.9999999999998324e-1];
const ODD: [f64; 4] = [2.7634990883473627e-6, 1.9841185235998588e-4, 8.333333370870236e-3, 1.6666666666611554e-1];
/// ln 2 in two parts: the high part has 32 significant bits, so that `k * LN2_HIGH` is exact for |k| < 2²⁰.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Adding 1.5·2⁵² to a small number leaves its nearest integer in the low bits of the significand.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// No exponential is above 0 below the first, none is finite above the second.
const BOUNDS: [f32; 2] = [-104.5, 89.5];

/// The exponential of a widened argument within [`BOUNDS`], and what it is made of.
struct Reduced {
    /// The multiple of ln 2 that was taken away from the argument: 0 where its size is below ½·ln 2.
    multiple: f64,
    /// e^r − 1 − r of the remaining r.
    second_remainder: f64,
    /// eˣ. NaN may come out as anything.
    exponential: f64,
}

#[inline(always)]
fn reduce(bounded: f64) -> Reduced {
    let shifted = bounded * core::f64::consts::LOG2_E + ROUNDER;
    let multiple = shifted - ROUNDER;
    let remainder = (bounded - multiple * LN2_HIGH) - multiple * LN2_LOW;
    let square = remainder * remainder;
    let ([e8, e6, e4, e2, e0], [o7, o5, o3, o1]) = (EVEN, ODD);
    let even = (((e8 * square + e6) * square + e4) * square + e2) * square + e0;
    let odd = ((o7 * square + o5) * square + o3) * square + o1;
    let second_remainder = square * (even + remainder * odd);
    let significand = 1.0 + (remainder + second_remainder);
    // The low bits of `shifted` are the integer `multiple`; moved into the exponent they scale by 2^multiple.
    let exponential = f64::from_bits(significand.to_bits().wrapping_add(shifted.to_bits() << 52));
    Reduced { multiple, second_remainder, exponential }
}

/// eˣ, correctly rounded. Overflows to infinity above 88.72…, underflows to +0 below −103.97….
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    let [low, high] = BOUNDS;
    // NaN passes both comparisons.
    let bounded = if x < low { low } else { x };
    let bounded = if bounded > high { high } else { bounded };
    let exponential = reduce(f64::from(bounded)).exponential as f32;
    if x.is_nan() { x } else { exponential }
}

/// eˣ − 1 and eˣ − 1 − x, each taken in `f64` and rounded once: to less than 0.51 units in the last place, but for the
/// second where x is below −104.5 (one addition more there).
#[inline(always)]
pub(super) fn exp_remainders_f32(x: f32) -> [f32; 2] {
    let [low, high] = BOUNDS;
    // −∞ becomes the smallest finite number, which keeps ∞ − ∞ out of the differences.
    let capped = x.clip(f32::MIN, high);
    let bounded = if capped < low { low } else { capped };
    let wide = f64::from(bounded);
    let reduced = reduce(wide);
    // Where nothing was taken away from x, the polynomial is the remainder, and nothing cancels. NaN comes from `wide`.
    let far = (reduced.exponential - 1.0) - wide;
    let second = if reduced.multiple == 0.0 { reduced.second_remainder } else { far };
    [(second + wide) as f32, second as f32 + (bounded - capped)]
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

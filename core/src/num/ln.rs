//! The `f32` natural logarithm, correctly rounded for every input.
//!
//! The argument is written as m·2ᵉ with m in [√½, √2); ln m = 2 artanh((m−1)/(m+1)) as an odd series in `f64`, e·ln 2 is
//! added in two parts, and one conversion rounds to `f32`. A handful of inputs lie closer to a rounding boundary than
//! the `f64` error: they are listed with their correct result. `cargo xtask sweep` compares all 2³² inputs with a
//! correctly rounded oracle.

/// 2/(2n+1) for n = 12 … 1, highest first: the series of 2 artanh(s) = 2s + s·Σ 2 s²ⁿ/(2n+1).
const COEFFICIENTS: [f64; 12] = [
    2.0 / 25.0,
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];
/// The inputs whose logarithm lies too close to a rounding boundary for the series, with their correct results.
const EXCEPTIONS: [(u32, u32); 5] = [
    (0x3c41_3d3a, 0xc08e_158f),
    (0x4117_8feb, 0x400f_e5e7),
    (0x4c5d_65a5, 0x418f_034b),
    (0x65d8_90d3, 0x4254_d1f9),
    (0x6f31_a8ec, 0x4284_5a89),
];
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// ln x, correctly rounded; −∞ at ±0, NaN below 0.
#[inline(always)]
pub(crate) fn ln_f32(x: f32) -> f32 {
    let wide = f64::from(x);
    let bits = wide.to_bits();
    // Shift the exponent boundary from 1 to √2, so that the significand lands in [√½, √2).
    let shifted = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    let exponent = (shifted as i64) >> 52;
    let significand = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    let s = (significand - 1.0) / (significand + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for coefficient in COEFFICIENTS {
        series = series * square + coefficient;
    }
    let ln_significand = 2.0 * s + s * (square * series);
    let e = exponent as f64;
    let mut rounded = (e * LN2_HIGH + (ln_significand + e * LN2_LOW)) as f32;
    // Selections, not branches: the loop around this function stays vectorisable.
    for (input, result) in EXCEPTIONS {
        rounded = if x.to_bits() == input { f32::from_bits(result) } else { rounded };
    }
    if x == 0.0 {
        f32::NEG_INFINITY
    } else if x < 0.0 || x.is_nan() {
        f32::NAN
    } else if x == f32::INFINITY {
        x
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::ln_f32;

    #[test]
    fn known_values_and_ends_of_the_range() {
        assert_eq!(ln_f32(1.0).to_bits(), 0);
        // ln 2 = 0.693147180559945…, ln 10 = 2.302585092994046….
        assert_eq!(ln_f32(2.0), core::f64::consts::LN_2 as f32);
        assert_eq!(ln_f32(10.0), core::f64::consts::LN_10 as f32);
        assert_eq!(ln_f32(0.0), f32::NEG_INFINITY);
        assert_eq!(ln_f32(-0.0), f32::NEG_INFINITY);
        assert_eq!(ln_f32(f32::INFINITY), f32::INFINITY);
        // The smallest subnormal is 2^-149: -149 ln 2.
        assert_eq!(ln_f32(f32::from_bits(1)), (-149.0 * core::f64::consts::LN_2) as f32);
        assert!(ln_f32(-1.0).is_nan());
        assert!(ln_f32(f32::NEG_INFINITY).is_nan());
        assert!(ln_f32(f32::NAN).is_nan());
    }

    #[test]
    fn inputs_next_to_a_rounding_boundary() {
        // ln of 0x41178feb is 2.24840724468231193: 8e-17 below the middle of 0x400fe5e7 and 0x400fe5e8. The others are as close.
        for (input, correct) in [
            (0x3c41_3d3a, 0xc08e_158f),
            (0x4117_8feb, 0x400f_e5e7),
            (0x4c5d_65a5, 0x418f_034b),
            (0x65d8_90d3, 0x4254_d1f9),
            (0x6f31_a8ec, 0x4284_5a89),
        ] {
            assert_eq!(ln_f32(f32::from_bits(input)).to_bits(), correct, "x = {input:#x}");
        }
    }

    #[test]
    fn agrees_with_the_double_precision_logarithm_on_a_stride() {
        let mut bits = 0u32;
        while let Some(next) = bits.checked_add(40_009) {
            let x = f32::from_bits(bits);
            if x > 0.0 {
                assert_eq!(ln_f32(x).to_bits(), (libm::log(f64::from(x)) as f32).to_bits(), "x = {x:e}");
            }
            bits = next;
        }
    }
}

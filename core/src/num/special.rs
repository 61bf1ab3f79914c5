//! Special functions in the form that neither overflows nor loses digits. For `f32` they are evaluated in `f64` and
//! rounded once.

use super::Real;

#[inline(always)]
fn in_f64<R: Real>(x: R, f: impl Fn(f64) -> f64) -> R {
    R::from_f64(f(x.to_f64()))
}

/// ln(1 + eˣ): x + ln(1 + e⁻ˣ) for positive x, so that it never overflows.
#[inline(always)]
pub fn softplus<R: Real>(x: R) -> R {
    in_f64(x, |x| if x > 0.0 { x + libm::log1p(libm::exp(-x)) } else { libm::log1p(libm::exp(x)) })
}

/// ln σ(x) = −softplus(−x).
#[inline(always)]
pub fn logsigmoid<R: Real>(x: R) -> R {
    -softplus(-x)
}

/// σ(x) = 1/(1 + e⁻ˣ), through the exponential of −|x|.
#[inline(always)]
pub fn sigmoid<R: Real>(x: R) -> R {
    in_f64(x, |x| {
        if x >= 0.0 {
            1.0 / (1.0 + libm::exp(-x))
        } else {
            let e = libm::exp(x);
            e / (1.0 + e)
        }
    })
}

/// ln(1 − eˣ) for x ≤ 0: ln(−expm1 x) near 0, ln1p(−eˣ) far from it (the switch at −ln 2 keeps both accurate).
/// −∞ at 0, NaN for positive x.
#[inline(always)]
pub fn log1mexp<R: Real>(x: R) -> R {
    in_f64(x, |x| if x > -core::f64::consts::LN_2 { libm::log(-libm::expm1(x)) } else { libm::log1p(-libm::exp(x)) })
}

/// ln(eᵃ + eᵇ).
#[inline(always)]
pub fn log_add_exp<R: Real>(a: R, b: R) -> R {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == R::neg_infinity() || high == R::infinity() { high } else { high + softplus(low - high) }
}

/// ln(p/(1 − p)), the inverse of [`sigmoid`].
#[inline(always)]
pub fn logit<R: Real>(p: R) -> R {
    in_f64(p, |p| libm::log(p) - libm::log1p(-p))
}

/// x·ln y with 0·ln 0 = 0.
#[inline(always)]
pub fn xlogy<R: Real>(x: R, y: R) -> R {
    if x == R::zero() { R::zero() } else { x * y.ln() }
}

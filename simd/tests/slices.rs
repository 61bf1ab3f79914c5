//! Exponential and logarithm of slices, and what a policy needs of its logits, have core's bits at every level.

use plumbline_core::logits::token::{TokenLogits, TokenOutputs};
use plumbline_core::num::Real;
use plumbline_simd::{Level, exp, ln, token_logits};

/// Every 4,001st bit pattern: all exponents, subnormal numbers, infinities and NaN.
fn patterns() -> Vec<f32> {
    (0..=u32::MAX).step_by(4_001).map(f32::from_bits).collect()
}

#[test]
fn exponential_and_logarithm_of_slices() {
    let from = patterns();
    let mut to = vec![0.0; from.len()];
    for level in Level::supported() {
        exp(level, &from, &mut to);
        for (x, y) in from.iter().zip(&to) {
            assert!(Real::exp(*x).to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "{x:e} at {}", level.name());
        }
        ln(level, &from, &mut to);
        for (x, y) in from.iter().zip(&to) {
            let expected = Real::ln(*x);
            assert!(expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan(), "{x:e} at {}", level.name());
        }
    }
}

fn tokens<R: Real>() {
    let (rows, width) = (5, 1031);
    let mut logits: Vec<R> =
        (0..rows * width).map(|index| R::from_f64((index * 7919 % 10_007) as f64 / 500.0 - 10.0)).collect();
    logits[3] = R::neg_infinity();
    let action: Vec<u32> = (0..rows as u32).map(|row| row * 211).collect();
    let run = |level: Level| {
        let batch = TokenLogits {
            logits: &logits,
            width,
            action: &action,
            mask: None,
            temperature: R::from_f64(0.9),
            log_prob_cotangent: None,
            entropy_cotangent: None,
        };
        let (mut log_prob, mut entropy) = (vec![R::zero(); rows], vec![R::zero(); rows]);
        let mut d_logits = vec![R::zero(); rows * width];
        let mut outputs =
            TokenOutputs { log_prob: Some(&mut log_prob), entropy: Some(&mut entropy), d_logits: Some(&mut d_logits) };
        token_logits(level, &batch, &mut outputs).unwrap();
        log_prob.iter().chain(&entropy).chain(&d_logits).map(|number| number.bits()).collect::<Vec<u64>>()
    };
    let portable = run(Level::PORTABLE);
    assert!(portable.iter().filter(|bits| **bits != 0).count() > rows * width);
    for level in Level::supported() {
        assert!(run(level) == portable, "{}", level.name());
    }
}

#[test]
fn log_probabilities_entropies_and_their_gradient() {
    tokens::<f32>();
    tokens::<f64>();
}

//! Penalties of an error: half its square, and Huber's function.

use super::Real;

/// ½e² and its derivative e.
#[inline(always)]
pub fn half_square<R: Real>(error: R) -> [R; 2] {
    [R::half() * error * error, error]
}

/// Huber's function and its derivative: ½e² where |e| ≤ `threshold`, `threshold`·(|e| − ½·`threshold`) beyond, where the
/// derivative is ±`threshold`. Both branches agree at the threshold.
#[inline(always)]
pub fn huber<R: Real>(error: R, threshold: R) -> [R; 2] {
    let size = error.abs();
    if size <= threshold {
        half_square(error)
    } else {
        [threshold * (size - R::half() * threshold), error.clip(-threshold, threshold)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(half_square(-3.0), [4.5, -3.0]);
        assert_eq!(huber(2.0, 0.5), [0.875, 0.5]);
        assert_eq!(huber(-2.0, 0.5), [0.875, -0.5]);
        assert_eq!(huber(0.5, 0.5), [0.125, 0.5]);
        assert_eq!(huber(f64::MAX, 1.0)[1], 1.0);
    }
}

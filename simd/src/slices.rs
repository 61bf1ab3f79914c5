//! Exponential and logarithm of many numbers by a level.

use plumbline_core::engine::Engine;
use plumbline_core::num::Real;

use crate::{Level, Task};

struct Map<'t, R, F> {
    from: &'t [R],
    to: &'t mut [R],
    function: F,
}

impl<R: Real, F: Fn(R) -> R> Task for Map<'_, R, F> {
    type Output = ();

    fn run<E: Engine>(self, engine: E) {
        let function = self.function;
        engine.run((self.from, self.to), move |(from, to)| {
            for (slot, value) in to.iter_mut().zip(from) {
                *slot = function(*value);
            }
        });
    }
}

/// eˣ of each number, as far as the shorter slice reaches.
///
/// ```
/// use plumbline_simd::{Level, exp};
/// let mut to = [0.0f32; 2];
/// exp(Level::best(), &[0.0, 1.0], &mut to);
/// assert_eq!(to, [1.0, core::f32::consts::E]);
/// ```
pub fn exp<R: Real>(level: Level, from: &[R], to: &mut [R]) {
    level.run(Map { from, to, function: |value: R| value.exp() });
}

/// ln x of each number, as far as the shorter slice reaches.
///
/// ```
/// use plumbline_simd::{Level, ln};
/// let mut to = [0.0f32; 2];
/// ln(Level::best(), &[1.0, 2.0], &mut to);
/// assert_eq!(to, [0.0, core::f32::consts::LN_2]);
/// ```
pub fn ln<R: Real>(level: Level, from: &[R], to: &mut [R]) {
    level.run(Map { from, to, function: |value: R| value.ln() });
}

//! A number with its derivatives by every trainable element: what autograd would carry through a framework's code.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number and its derivatives; a constant has none.
#[derive(Clone, Debug, Default)]
pub struct Scalar {
    /// The number.
    pub value: f64,
    /// Its derivative by each variable.
    pub slopes: Vec<f64>,
}

impl Scalar {
    /// The variable with the number `position` of `count`.
    pub fn variable(value: f64, position: usize, count: usize) -> Scalar {
        let mut slopes = vec![0.0; count];
        slopes[position] = 1.0;
        Scalar { value, slopes }
    }

    fn map(self, value: f64, slope: f64) -> Scalar {
        Scalar { value, slopes: self.slopes.iter().map(|own| own * slope).collect() }
    }

    /// The same number, held fixed.
    pub fn detach(&self) -> Scalar {
        Scalar { value: self.value, slopes: Vec::new() }
    }

    /// The exponential.
    pub fn exp(self) -> Scalar {
        let value = plumbline_core::num::Real::exp(self.value);
        self.map(value, value)
    }

    /// The logarithm.
    pub fn ln(self) -> Scalar {
        let (value, slope) = (plumbline_core::num::Real::ln(self.value), 1.0 / self.value);
        self.map(value, slope)
    }

    /// The logarithm of the logistic function.
    pub fn log_sigmoid(self) -> Scalar {
        // -log(1 + e^-x), in the form that does not overflow.
        let tail = plumbline_core::num::Real::exp(-self.value.abs());
        let value = self.value.min(0.0) - plumbline_core::num::Real::ln(1.0 + tail);
        let slope = if self.value >= 0.0 { tail / (1.0 + tail) } else { 1.0 / (1.0 + tail) };
        self.map(value, slope)
    }

    /// The logistic function.
    pub fn sigmoid(self) -> Scalar {
        lift(1.0) / (lift(1.0) + (-self).exp())
    }

    /// Inside the bounds, with slope 0 outside.
    pub fn clamp(self, low: f64, high: f64) -> Scalar {
        if self.value < low {
            lift(low)
        } else if self.value > high {
            lift(high)
        } else {
            self
        }
    }

    /// The smaller of two; the first where they are equal.
    pub fn min(self, other: Scalar) -> Scalar {
        if other.value < self.value { other } else { self }
    }

    /// The larger of two; the first where they are equal.
    pub fn max(self, other: Scalar) -> Scalar {
        if other.value > self.value { other } else { self }
    }
}

/// A constant.
pub fn lift(value: f64) -> Scalar {
    Scalar { value, slopes: Vec::new() }
}

/// The sum of some numbers.
pub fn sum(numbers: impl IntoIterator<Item = Scalar>) -> Scalar {
    numbers.into_iter().fold(lift(0.0), |sum, number| sum + number)
}

/// The mean of some numbers; NaN of none, as in a framework.
pub fn mean(numbers: Vec<Scalar>) -> Scalar {
    let count = numbers.len() as f64;
    sum(numbers) / count
}

fn join(first: &Scalar, second: &Scalar, value: f64, by_first: f64, by_second: f64) -> Scalar {
    let count = first.slopes.len().max(second.slopes.len());
    let at = |slopes: &[f64], index: usize| slopes.get(index).copied().unwrap_or(0.0);
    let slope = |index: usize| {
        // A slope of 0 stays 0 whatever it is multiplied by: autograd's graph has no edge there.
        let (a, b) = (at(&first.slopes, index), at(&second.slopes, index));
        (if a == 0.0 { 0.0 } else { a * by_first }) + (if b == 0.0 { 0.0 } else { b * by_second })
    };
    Scalar { value, slopes: (0..count).map(slope).collect() }
}

impl Add for Scalar {
    type Output = Scalar;
    fn add(self, other: Scalar) -> Scalar {
        join(&self, &other, self.value + other.value, 1.0, 1.0)
    }
}

impl Sub for Scalar {
    type Output = Scalar;
    fn sub(self, other: Scalar) -> Scalar {
        join(&self, &other, self.value - other.value, 1.0, -1.0)
    }
}

impl Mul for Scalar {
    type Output = Scalar;
    fn mul(self, other: Scalar) -> Scalar {
        join(&self, &other, self.value * other.value, other.value, self.value)
    }
}

impl Div for Scalar {
    type Output = Scalar;
    fn div(self, other: Scalar) -> Scalar {
        let value = self.value / other.value;
        join(&self, &other, value, 1.0 / other.value, -value / other.value)
    }
}

impl Add<f64> for Scalar {
    type Output = Scalar;
    fn add(self, other: f64) -> Scalar {
        Scalar { value: self.value + other, ..self }
    }
}

impl Sub<f64> for Scalar {
    type Output = Scalar;
    fn sub(self, other: f64) -> Scalar {
        self + -other
    }
}

impl Mul<f64> for Scalar {
    type Output = Scalar;
    fn mul(self, other: f64) -> Scalar {
        let value = self.value * other;
        self.map(value, other)
    }
}

impl Div<f64> for Scalar {
    type Output = Scalar;
    fn div(self, other: f64) -> Scalar {
        let value = self.value / other;
        self.map(value, 1.0 / other)
    }
}

impl Neg for Scalar {
    type Output = Scalar;
    fn neg(self) -> Scalar {
        self * -1.0
    }
}

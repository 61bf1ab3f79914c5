//! A number as a framework printed it, and how far the true one may be from it.

use plumbline_evaluate::tensor::Tensor;

/// How a number was written down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Written {
    /// In decimals, of which the last stands for this much.
    Decimal {
        /// The weight of the last digit.
        unit: f64,
        /// How many digits tell something.
        digits: usize,
    },
    /// In half precision (either kind; bfloat16 keeps 8 bits).
    Half,
    /// In single precision.
    Single,
    /// In double precision.
    Double,
}

/// Numbers and how they were written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// The numbers.
    pub tensor: Tensor,
    /// How they were written down.
    pub written: Written,
}

/// Shares of the size of the terms by which a sum over a batch errs: an exponential and a product or two in single precision
/// err by some 1e-7 each, and partial sums round at the size of what they hold.
const SINGLE: f64 = 5e-7;
/// The same in double precision, where a mistake of an epsilon of 1e-8 must still show.
const DOUBLE: f64 = 1e-11;
/// bfloat16: half an ulp of 1 is 2^-9; two roundings.
const HALF: f64 = 1.0 / 256.0;
/// Decimals beyond which single precision has nothing to say.
const SINGLE_DIGITS: usize = 8;

impl Printed {
    /// One number from its text, such as `0.1235`, `-1.2e-05` or `tensor(0.1235, grad_fn=<…>)`. The digits tell the
    /// precision: half a unit of the last one, unless they spell out a number of single or double precision.
    ///
    /// ```
    /// use plumbline_diagnosis::one_shot::{Printed, Written};
    /// assert_eq!(Printed::parse("0.1235").unwrap().written, Written::Decimal { unit: 1e-4, digits: 4 });
    /// assert_eq!(Printed::parse("0.12349999696016312").unwrap().written, Written::Single);
    /// assert!(Printed::parse("0.12.3").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Printed> {
        let text = text.trim().trim_matches('"');
        let inner = text.strip_prefix("tensor(").and_then(|rest| rest.split([',', ')']).next()).unwrap_or(text).trim();
        let value: f64 = match inner {
            "NaN" | "nan" => f64::NAN,
            "Infinity" | "inf" => f64::INFINITY,
            "-Infinity" | "-inf" => f64::NEG_INFINITY,
            _ if inner.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
                inner.parse().ok()?
            }
            _ => return None,
        };
        Some(Printed { tensor: Tensor::scalar(value), written: written(inner, value) })
    }

    /// Numbers whose precision is known.
    pub fn new(tensor: Tensor, written: Written) -> Printed {
        Printed { tensor, written }
    }

    /// Numbers that came as decimals: in single precision where all of them are such numbers, else in double.
    pub fn guessed(tensor: Tensor) -> Printed {
        let written =
            if tensor.values.iter().all(|value| is_single(*value)) { Written::Single } else { Written::Double };
        Printed { tensor, written }
    }

    /// Numbers that were printed with decimals of which the finest stands for `unit`.
    ///
    /// ```
    /// use plumbline_diagnosis::one_shot::{Printed, Written};
    /// use plumbline_evaluate::tensor::Tensor;
    /// let printed = Printed::to_unit(Tensor { shape: vec![2], values: vec![-0.0833, 0.25] }, 1e-4);
    /// assert_eq!(printed.written, Written::Decimal { unit: 1e-4, digits: 4 });
    /// assert!(printed.is(&[-1.0 / 12.0, 0.25], 0.25, |_| true));
    /// ```
    pub fn to_unit(tensor: Tensor, unit: f64) -> Printed {
        let largest = tensor.values.iter().map(|value| value.abs()).filter(|size| size.is_finite()).fold(0.0, f64::max);
        let weights = std::iter::successors(Some(unit), |weight| Some(weight * 10.0));
        let digits = weights.take_while(|weight| *weight <= largest * (1.0 + 1e-9)).count().max(1);
        if digits > SINGLE_DIGITS || unit.is_nan() || unit <= 0.0 {
            return Printed::guessed(tensor);
        }
        Printed { tensor, written: Written::Decimal { unit, digits } }
    }

    /// As a result: one number has no shape, though a loss is often kept as an array of one.
    pub fn into_result(mut self) -> Printed {
        if self.tensor.values.len() == 1 {
            self.tensor.shape.clear();
        }
        self
    }

    /// How far from `expected` the printed number may be, where it is a sum of terms whose sizes add up to `scale`.
    pub fn allowed(&self, expected: f64, scale: f64) -> f64 {
        let size = expected.abs().max(scale);
        match self.written {
            Written::Decimal { unit, digits } => {
                let share = if digits <= SINGLE_DIGITS { SINGLE } else { DOUBLE };
                0.5 * unit * (1.0 + 1e-9) + share * size
            }
            Written::Half => HALF * expected.abs() + SINGLE * size,
            Written::Single => SINGLE * size,
            Written::Double => DOUBLE * size,
        }
    }

    /// Whether numbers are the printed ones, as far as these tell; those that `kept` leaves out are not looked at.
    pub fn is(&self, expected: &[f64], scale: f64, kept: impl Fn(usize) -> bool) -> bool {
        self.tensor.values.len() == expected.len()
            && self.tensor.values.iter().zip(expected).enumerate().filter(|(index, _)| kept(*index)).all(
                |(_, (printed, expected))| {
                    let same = (printed - expected).abs() <= self.allowed(*expected, scale);
                    same || (printed.is_nan() && expected.is_nan()) || printed == expected
                },
            )
    }

    /// The precision in words.
    pub fn precision(&self) -> String {
        match self.written {
            Written::Decimal { unit, digits } => {
                let plural = if digits == 1 { "" } else { "s" };
                format!("{digits} digit{plural}: within {:e}", 0.5 * unit)
            }
            Written::Half => "half precision".into(),
            Written::Single => "single precision".into(),
            Written::Double => "double precision".into(),
        }
    }
}

fn written(text: &str, value: f64) -> Written {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let after_point = mantissa.split_once('.').map_or(0, |(_, rest)| rest.len());
    let figures: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = figures.trim_start_matches('0').len().max(1);
    let unit = format!("1e{}", exponent.saturating_sub(after_point as i32)).parse().unwrap_or(f64::MIN_POSITIVE);
    if digits > SINGLE_DIGITS && is_single(value) {
        Written::Single
    } else if digits > 15 || !value.is_finite() {
        Written::Double
    } else {
        Written::Decimal { unit, digits }
    }
}

fn is_single(value: f64) -> bool {
    value.is_nan() || f64::from(value as f32) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_decide_what_is_allowed() {
        let four = Printed::parse("-0.1235").unwrap();
        assert!(four.is(&[-0.12354], 0.1, |_| true));
        assert!(!four.is(&[-0.12356], 0.1, |_| true));
        assert!(!four.is(&[0.12350], 0.1, |_| true));
        let exponent = Printed::parse("1.50e-05").unwrap();
        assert_eq!(exponent.written, Written::Decimal { unit: 1e-7, digits: 3 });
        let single = Printed::parse("0.012345679104328156").unwrap();
        assert_eq!(single.written, Written::Single);
        assert!(single.is(&[0.01234570], 0.1, |_| true) && !single.is(&[0.0123465], 0.1, |_| true));
        let double = Printed::parse("0.1234567890123456").unwrap();
        assert_eq!(double.written, Written::Double);
        assert!(!double.is(&[0.12345678902], 0.1, |_| true));
    }

    #[test]
    fn what_a_framework_prints_is_read() {
        assert_eq!(
            Printed::parse("tensor(0.25, device='cuda:0', grad_fn=<MeanBackward0>)").unwrap().tensor.values,
            [0.25]
        );
        assert!(Printed::parse("nan").unwrap().tensor.values[0].is_nan());
        assert_eq!(Printed::parse("-inf").unwrap().tensor.values, [f64::NEG_INFINITY]);
        for bad in ["", "loss", "1,5", "0x10", "infinite"] {
            assert!(Printed::parse(bad).is_none(), "{bad}");
        }
    }
}

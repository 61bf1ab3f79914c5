//! Named arrays as they stand in JSON: a shape and row-major numbers, NaN and the infinities by class.

use std::fmt;

use plumbline_core::num::{Dtype, Real};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An array. Numbers of both precisions, masks (0 or 1) and indices are all held as `f64`, which is exact for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The sizes, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub values: Vec<f64>,
}

impl Tensor {
    /// A scalar.
    pub fn scalar(value: f64) -> Self {
        Tensor { shape: Vec::new(), values: vec![value] }
    }

    /// An array of this shape; an error where the numbers are not as many as the shape says.
    pub fn new(shape: Vec<usize>, values: Vec<f64>) -> Result<Self, String> {
        let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        if count == Some(values.len()) {
            Ok(Tensor { shape, values })
        } else {
            Err(format!("shape {shape:?} does not hold {} numbers", values.len()))
        }
    }

    /// From JSON: a number, nested lists of numbers, or `{"shape": […], "values": […]}`.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        if let Value::Object(_) = value {
            let array = Array::deserialize(value).map_err(|error| error.to_string())?;
            return array.tensor(None);
        }
        let mut shape = Vec::new();
        let mut probe = value;
        while let Value::Array(items) = probe {
            shape.push(items.len());
            match items.first() {
                Some(first) => probe = first,
                None => break,
            }
        }
        let mut values = Vec::new();
        collect(value, &shape, &mut values)?;
        Ok(Tensor { shape, values })
    }

    /// The position of a flat index, outermost first.
    pub fn position(&self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut position: Vec<usize> = self
            .shape
            .iter()
            .rev()
            .map(|size| {
                let here = rest % size.max(&1);
                rest /= size.max(&1);
                here
            })
            .collect();
        position.reverse();
        position
    }

    /// The largest finite magnitude; 0 where there is none.
    pub fn magnitude(&self) -> f64 {
        self.values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}

fn collect(value: &Value, shape: &[usize], values: &mut Vec<f64>) -> Result<(), String> {
    match (value, shape) {
        (Value::Array(items), [size, inner @ ..]) => {
            if items.len() != *size {
                return Err(format!("the nested lists are ragged: one has {} entries, another {size}", items.len()));
            }
            items.iter().try_for_each(|item| collect(item, inner, values))
        }
        (Value::Array(_), []) | (Value::Object(_), _) => Err("the nested lists are ragged".to_owned()),
        (_, [_, ..]) => Err("the nested lists are ragged".to_owned()),
        (leaf, []) => {
            let number = Number::deserialize(leaf).map_err(|error| error.to_string())?;
            values.push(number.0);
            Ok(())
        }
    }
}

/// One number: a JSON number, `true`/`false` (1/0, for masks), or `"NaN"`, `"Infinity"`, `"-Infinity"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl Visitor<'_> for Numbers {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a number, or "NaN", "Infinity", "-Infinity""#)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value as f64))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Number, E> {
                Ok(Number(f64::from(u8::from(value))))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
                match value {
                    "NaN" => Ok(Number(f64::NAN)),
                    "Infinity" => Ok(Number(f64::INFINITY)),
                    "-Infinity" => Ok(Number(f64::NEG_INFINITY)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
                }
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}

/// An array with its bit patterns beside the decimals.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    shape: Vec<usize>,
    values: Vec<Number>,
    #[serde(default)]
    bits: Option<Vec<String>>,
}

impl Array {
    /// The array. Bits are authoritative: where there are some, they must be those of the decimals in `dtype` (where it
    /// is not given, in the precision that the number of digits tells).
    pub fn tensor(self, dtype: Option<Dtype>) -> Result<Tensor, String> {
        let mut tensor = Tensor::new(self.shape, self.values.into_iter().map(|number| number.0).collect())?;
        let Some(bits) = self.bits else { return Ok(tensor) };
        if bits.len() != tensor.values.len() {
            return Err(format!("{} bit patterns stand beside {} numbers", bits.len(), tensor.values.len()));
        }
        for (index, (value, text)) in tensor.values.iter_mut().zip(&bits).enumerate() {
            let dtype = dtype.unwrap_or(if text.len() == 8 { Dtype::F32 } else { Dtype::F64 });
            let exact = from_bits(text, dtype).ok_or_else(|| {
                format!("at index {index} `{text}` is not the bit pattern of an {} in hexadecimal", dtype.name())
            })?;
            let rounded = round_to(*value, dtype);
            if exact.to_bits() != rounded.to_bits() && !(exact.is_nan() && rounded.is_nan()) {
                return Err(format!("at index {index} the decimal {value} and the bits {text} disagree"));
            }
            *value = exact;
        }
        Ok(tensor)
    }
}

/// The nearest number of that precision, as `f64`.
pub fn round_to(value: f64, dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => f64::from(value as f32),
        Dtype::F64 => value,
    }
}

/// The number with these bits; `None` unless there are exactly as many hexadecimal digits as the precision has.
pub fn from_bits(text: &str, dtype: Dtype) -> Option<f64> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match (dtype, text.len()) {
        (Dtype::F32, 8) => u32::from_str_radix(text, 16).ok().map(|bits| f64::from(f32::from_bits(bits))),
        (Dtype::F64, 16) => u64::from_str_radix(text, 16).ok().map(f64::from_bits),
        _ => None,
    }
}

/// The bits in hexadecimal, sign first.
pub fn to_bits(value: f64, dtype: Dtype) -> String {
    match dtype {
        Dtype::F32 => format!("{:08x}", (value as f32).bits()),
        Dtype::F64 => format!("{:016x}", value.bits()),
    }
}

/// The shortest decimal that reads back as the same number of that precision; NaN and the infinities by class.
pub fn to_text(value: f64, dtype: Dtype) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    match dtype {
        Dtype::F32 => format!("{:?}", value as f32),
        Dtype::F64 => format!("{value:?}"),
    }
}

/// The number as JSON: a number where it is finite, else its class as a string.
pub fn to_json(value: f64, dtype: Dtype) -> Value {
    let text = to_text(value, dtype);
    match text.parse::<f64>() {
        Ok(shortest) if value.is_finite() => Value::from(shortest),
        _ => Value::from(text),
    }
}

/// An array as JSON, with its bits where `bits` asks for them.
pub fn tensor_to_json(tensor: &Tensor, dtype: Dtype, bits: bool) -> Value {
    #[derive(Serialize)]
    struct Written<'a> {
        shape: &'a [usize],
        values: Vec<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        bits: Option<Vec<String>>,
    }
    let written = Written {
        shape: &tensor.shape,
        values: tensor.values.iter().map(|value| to_json(*value, dtype)).collect(),
        bits: bits.then(|| tensor.values.iter().map(|value| to_bits(*value, dtype)).collect()),
    };
    serde_json::to_value(written).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_lists_scalars_and_objects_are_read() {
        assert_eq!(Tensor::from_json(&json!(2.5)).unwrap(), Tensor::scalar(2.5));
        let nested = Tensor::from_json(&json!([[1, 2, 3], [4, 5, "-Infinity"]])).unwrap();
        assert_eq!(nested, Tensor { shape: vec![2, 3], values: vec![1.0, 2.0, 3.0, 4.0, 5.0, f64::NEG_INFINITY] });
        assert_eq!(Tensor::from_json(&json!({"shape": [2, 1], "values": [true, false]})).unwrap().values, [1.0, 0.0]);
        assert_eq!(Tensor::from_json(&json!([])).unwrap().shape, [0]);
        assert_eq!(Tensor::from_json(&json!([[], []])).unwrap().shape, [2, 0]);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for bad in [
            json!([[1, 2], [3]]),
            json!([[1], 2]),
            json!([1, [2]]),
            json!("many"),
            json!([null]),
            json!({"shape": [2], "values": [1]}),
            json!({"shape": [1], "values": [1], "bit": []}),
            json!({"shape": [4294967296u64, 4294967296u64, 4294967296u64], "values": []}),
        ] {
            assert!(Tensor::from_json(&bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn bits_and_decimals_must_agree() {
        let read = |text: &str, dtype| serde_json::from_str::<Array>(text).unwrap().tensor(Some(dtype));
        let good = read(r#"{"shape":[2],"values":[0.1,"NaN"],"bits":["3dcccccd","7fc00000"]}"#, Dtype::F32).unwrap();
        assert_eq!(good.values[0], f64::from(0.1f32));
        assert!(good.values[1].is_nan());
        let apart = read(r#"{"shape":[],"values":[0.1],"bits":["3dccccce"]}"#, Dtype::F32).unwrap_err();
        assert_eq!(apart, "at index 0 the decimal 0.1 and the bits 3dccccce disagree");
        assert!(read(r#"{"shape":[],"values":[-0.0],"bits":["0000000000000000"]}"#, Dtype::F64).is_err());
        assert!(read(r#"{"shape":[],"values":[1],"bits":["3ff"]}"#, Dtype::F64).is_err());
        assert!(read(r#"{"shape":[],"values":[1],"bits":["+3800000"]}"#, Dtype::F32).is_err());
        assert!(read(r#"{"shape":[],"values":[1],"bits":[]}"#, Dtype::F64).is_err());
    }

    #[test]
    fn positions_and_texts() {
        let tensor = Tensor { shape: vec![2, 3], values: vec![0.0; 6] };
        assert_eq!(tensor.position(4), [1, 1]);
        assert_eq!(Tensor::scalar(0.0).position(0), [0usize; 0]);
        assert_eq!(to_text(f64::from(0.1f32), Dtype::F32), "0.1");
        assert_eq!(to_bits(f64::from(0.1f32), Dtype::F32), "3dcccccd");
        assert_eq!(to_json(f64::NAN, Dtype::F64), json!("NaN"));
        assert_eq!(to_json(-0.5, Dtype::F64), json!(-0.5));
    }
}

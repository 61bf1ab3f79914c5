//! One array in numpy's own format: a header that is a Python dictionary, then the numbers.

use plumbline_diagnosis::one_shot::Written;
use plumbline_evaluate::tensor::Tensor;

use super::Array;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Read an array; an error says what is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<Array, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a numpy array")?;
    let cut = || "the header is cut off".to_owned();
    let major = *rest.first().ok_or_else(cut)?;
    let (start, length): (usize, usize) = match (major, rest.get(2..4), rest.get(2..6)) {
        (1, Some(bytes), _) => (4, usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))),
        (2 | 3, _, Some(bytes)) => (6, u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize),
        _ => return Err(format!("version {major} of numpy's format is not known")),
    };
    let header = rest.get(start..start.saturating_add(length)).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no text".to_owned())?;
    let data = &rest[start + length..];
    let kind = quoted(after(header, "descr")?).ok_or("the header gives no type")?;
    let is_fortran = after(header, "fortran_order")?.starts_with("True");
    let shape = shape(after(header, "shape")?)?;
    numbers(kind, shape, is_fortran, data)
}

/// What follows a key and its colon.
fn after<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let found = ['\'', '"'].iter().find_map(|quote| header.split_once(&format!("{quote}{key}{quote}")));
    let rest = found.and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    rest.map(str::trim_start).ok_or_else(|| format!("the header has no `{key}`"))
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| "'\"".contains(*first))?;
    text[1..].split_once(quote).map(|(inner, _)| inner)
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let bad = || "the header's shape is no tuple of sizes".to_owned();
    let (inner, _) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(bad)?;
    let sizes = inner.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.trim_end_matches('L').parse().map_err(|_| bad())).collect()
}

fn numbers(kind: &str, shape: Vec<usize>, is_fortran: bool, data: &[u8]) -> Result<Array, String> {
    let (order, code) = kind.split_at_checked(1).unwrap_or(("", kind));
    let is_big = match order {
        "<" | "|" => false,
        ">" => true,
        "=" => cfg!(target_endian = "big"),
        _ => return Err(format!("numbers of type `{kind}` are not read")),
    };
    /// The bytes of one number, first the least significant.
    fn little<const N: usize>(bytes: &[u8], is_big: bool) -> [u8; N] {
        let mut little = [0; N];
        little.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        if is_big {
            little.reverse();
        }
        little
    }
    macro_rules! read_as {
        ($number:ty, $to:expr) => {{
            const SIZE: usize = size_of::<$number>();
            let to: fn($number) -> f64 = $to;
            (
                SIZE,
                Box::new(move |bytes: &[u8]| to(<$number>::from_le_bytes(little::<SIZE>(bytes, is_big))))
                    as Box<dyn Fn(&[u8]) -> f64>,
            )
        }};
    }
    let (size, to_number) = match code {
        "f8" => read_as!(f64, |number| number),
        "f4" => read_as!(f32, f64::from),
        "f2" => read_as!(u16, half_to_f64),
        "i8" => read_as!(i64, |number| number as f64),
        "i4" => read_as!(i32, f64::from),
        "i2" => read_as!(i16, f64::from),
        "i1" => read_as!(i8, f64::from),
        "u8" => read_as!(u64, |number| number as f64),
        "u4" => read_as!(u32, f64::from),
        "u2" => read_as!(u16, f64::from),
        "u1" | "b1" => read_as!(u8, f64::from),
        _ => return Err(format!("numbers of type `{kind}` are not read")),
    };
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    let needed = count.and_then(|count| count.checked_mul(size));
    if needed != Some(data.len()) {
        return Err(format!("shape {shape:?} of type `{kind}` does not fit {} bytes of numbers", data.len()));
    }
    let values: Vec<f64> = data.chunks_exact(size).map(to_number).collect();
    let tensor = Tensor { values: if is_fortran { row_major(&values, &shape) } else { values }, shape };
    let written = match code {
        "f2" => Some(Written::Half),
        "f4" => Some(Written::Single),
        _ => None,
    };
    Ok(Array { tensor, written })
}

/// From the first index running fastest to the last.
fn row_major(values: &[f64], shape: &[usize]) -> Vec<f64> {
    let tensor = Tensor { shape: shape.to_vec(), values: Vec::new() };
    let from = |index: usize| {
        let position = tensor.position(index);
        shape.iter().zip(position).rev().fold(0, |flat, (size, place)| flat * size + place)
    };
    (0..values.len()).map(|index| values[from(index)]).collect()
}

/// A number of IEEE half precision.
pub(super) fn half_to_f64(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction / 16_777_216.0,
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * f64::from_bits(((exponent - 15 + 1023) as u64) << 52),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(header: &str, data: &[u8]) -> Result<Array, String> {
        let mut bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes()].concat();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        read(&bytes)
    }

    #[test]
    fn types_orders_and_shapes_are_read() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
        let read = array(header, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf]).unwrap();
        assert_eq!(read.tensor, Tensor { shape: vec![2, 1], values: vec![1.0, -0.5] });
        assert_eq!(read.written, Some(Written::Single));
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }";
        let read = array(header, &[0, 1, 0, 2, 0, 3, 0xff, 0xff]).unwrap();
        assert_eq!(read.tensor.values, [1.0, 3.0, 2.0, -1.0]);
        let scalar = array("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &[1]).unwrap();
        assert_eq!(scalar.tensor, Tensor::scalar(1.0));
    }

    #[test]
    fn half_precision() {
        for (bits, number) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333251953125), (1, 1.0 / 16_777_216.0), (0x7bff, 65504.0)]
        {
            assert_eq!(half_to_f64(bits), number);
        }
        assert!(half_to_f64(0x7e00).is_nan() && half_to_f64(0xfc00) == f64::NEG_INFINITY);
    }

    #[test]
    fn broken_arrays_are_refused() {
        for (header, data) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0u8; 4][..]),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }", &[]),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': 2}", &[0; 8]),
            ("{'descr': '<f4', 'shape': (2,)}", &[0; 8]),
            ("{'descr': 'é4', 'fortran_order': False, 'shape': (2,)}", &[0; 8]),
            ("{}", &[]),
        ] {
            assert!(array(header, data).is_err(), "{header}");
        }
        assert!(read(b"\x93NUMPY\x01\x00\xff\xff{}").is_err());
    }
}

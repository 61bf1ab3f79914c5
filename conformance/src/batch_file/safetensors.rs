//! The safetensors format.

use ::safetensors::{Dtype, SafeTensors};
use plumbline_diagnosis::one_shot::{Printed, Written};
use plumbline_evaluate::tensor::Tensor;

use super::npy::half_to_f64;
use super::{Array, BatchFile};

pub(super) fn read(bytes: &[u8]) -> Result<BatchFile, String> {
    let broken = |error: &dyn std::fmt::Display| format!("it cannot be read as safetensors: {error}");
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| broken(&error))?;
    let mut file = BatchFile::default();
    for (name, view) in tensors.iter() {
        let values = numbers(view.dtype(), view.data())
            .ok_or_else(|| format!("`{name}`: numbers of type {:?} are not read", view.dtype()))?;
        let tensor = Tensor::new(view.shape().to_vec(), values).map_err(|error| format!("`{name}`: {error}"))?;
        let written = match view.dtype() {
            Dtype::F16 | Dtype::BF16 => Some(Written::Half),
            Dtype::F32 => Some(Written::Single),
            _ => None,
        };
        file.arrays.push((name.to_owned(), Array { tensor, written }));
    }
    // The header is a hash map: the order is made the same in every run.
    file.arrays.sort_by(|first, second| first.0.cmp(&second.0));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| broken(&error))?;
    if let Some(loss) = metadata.metadata().as_ref().and_then(|texts| texts.get("loss")) {
        file.result =
            Some(Printed::parse(loss).ok_or_else(|| format!("`loss` in the metadata is no number: `{loss}`"))?);
    }
    Ok(file)
}

fn numbers(dtype: Dtype, data: &[u8]) -> Option<Vec<f64>> {
    macro_rules! read_as {
        ($number:ty, $to:expr) => {{
            let to: fn($number) -> f64 = $to;
            let (chunks, _) = data.as_chunks::<{ size_of::<$number>() }>();
            Some(chunks.iter().map(|bytes| to(<$number>::from_le_bytes(*bytes))).collect())
        }};
    }
    match dtype {
        Dtype::F64 => read_as!(f64, |number| number),
        Dtype::F32 => read_as!(f32, f64::from),
        Dtype::F16 => read_as!(u16, half_to_f64),
        // The upper half of a number of single precision.
        Dtype::BF16 => read_as!(u16, |bits| f64::from(f32::from_bits(u32::from(bits) << 16))),
        Dtype::I64 => read_as!(i64, |number| number as f64),
        Dtype::I32 => read_as!(i32, f64::from),
        Dtype::I16 => read_as!(i16, f64::from),
        Dtype::I8 => read_as!(i8, f64::from),
        Dtype::U64 => read_as!(u64, |number| number as f64),
        Dtype::U32 => read_as!(u32, f64::from),
        Dtype::U16 => read_as!(u16, f64::from),
        Dtype::U8 | Dtype::BOOL => read_as!(u8, f64::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_the_metadata_may_hold_the_loss() {
        let header = r#"{"__metadata__":{"loss":"0.5"},"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]},"adv":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([1, 0, 0x80, 0x3f, 0x20, 0xc0]);
        let file = read(&bytes).unwrap();
        assert_eq!(file.arrays[0].0, "adv");
        assert_eq!(file.arrays[0].1.tensor.values, [1.0, -2.5]);
        assert_eq!(file.arrays[1].1.tensor.values, [1.0, 0.0]);
        assert_eq!(file.result.unwrap().tensor.values, [0.5]);
    }
}

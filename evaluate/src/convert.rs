//! From arrays of numbers to the kinds of data that core takes.

use plumbline_core::num::Real;
use plumbline_core::spec::{Data, Domain, InputSpec};

use super::Refusal;
use crate::tensor::Tensor;

/// An input's numbers in the form that its domain asks for.
#[derive(Clone, Debug)]
pub enum Converted<R> {
    /// Real numbers.
    Real(Vec<R>),
    /// Bytes, 0 or 1.
    Mask(Vec<u8>),
    /// Indices, identifiers or counts.
    Index(Vec<u32>),
}

impl<R: Real> Converted<R> {
    /// Convert an array; a mask must hold 0 and 1, an index whole numbers.
    pub fn new(spec: &InputSpec, tensor: &Tensor) -> Result<Self, Refusal> {
        let bad = |index: usize, value: f64, legal: &'static str| Refusal::Element {
            argument: spec.name.to_owned(),
            index,
            value,
            legal,
        };
        match spec.domain {
            Domain::Mask | Domain::Done => tensor
                .values
                .iter()
                .enumerate()
                .map(|(index, value)| match *value {
                    0.0 => Ok(0),
                    1.0 => Ok(1),
                    other => Err(bad(index, other, "0 or 1")),
                })
                .collect::<Result<_, _>>()
                .map(Converted::Mask),
            Domain::Group | Domain::Index(_) | Domain::Count => tensor
                .values
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    let whole = *value as u32;
                    if f64::from(whole) == *value { Ok(whole) } else { Err(bad(index, *value, "a whole number >= 0")) }
                })
                .collect::<Result<_, _>>()
                .map(Converted::Index),
            _ => Ok(Converted::Real(tensor.values.iter().map(|value| R::from_f64(*value)).collect())),
        }
    }

    /// As core takes it.
    pub fn data(&self) -> Data<'_, R> {
        match self {
            Converted::Real(values) => Data::Real(values),
            Converted::Mask(values) => Data::Mask(values),
            Converted::Index(values) => Data::Index(values),
        }
    }
}

/// Whether an input of this domain holds real numbers.
pub fn is_real(domain: Domain) -> bool {
    !matches!(domain, Domain::Mask | Domain::Done | Domain::Group | Domain::Index(_) | Domain::Count)
}

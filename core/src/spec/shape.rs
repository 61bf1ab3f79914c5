//! From the shapes of the inputs to the sizes of the named dimensions.

use super::call::Input;
use super::operation::{Operation, Shape, Value};
use super::params::Params;
use crate::Error;

/// The most named dimensions an operation may have.
pub const MAX_DIMS: usize = 12;

/// The largest size that an input without elements may have in another dimension. Its elements do not vouch for that
/// size, and a loop over rows that hold nothing would still run over all of them.
const MAX_CLAIMED: usize = 1 << 20;

/// Sizes of the named dimensions of one call.
#[derive(Clone, Copy, Debug)]
pub struct Dims {
    entries: [(&'static str, usize); MAX_DIMS],
    used: usize,
}

impl Dims {
    /// The size of a dimension.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.entries.iter().take(self.used).find(|(candidate, _)| *candidate == name).map(|(_, size)| *size)
    }

    /// How many elements a shape has; `None` while one of its dimensions is unknown.
    pub fn count(&self, shape: Shape) -> Option<usize> {
        shape.iter().try_fold(1usize, |count, name| count.checked_mul(self.get(name)?))
    }

    fn set(&mut self, name: &'static str, size: usize) {
        if let Some(slot) = self.entries.get_mut(self.used) {
            *slot = (name, size);
            self.used += 1;
        }
    }

    fn agrees(&self, shape: Shape, sizes: &[usize]) -> bool {
        shape.len() == sizes.len()
            && shape.iter().zip(sizes).all(|(name, size)| self.get(name).is_none_or(|known| known == *size))
    }
}

/// The dimensions that the inputs fix; those that no input has are read from whole-number parameters of that name.
/// Fails where an input's shape is none of the accepted ones or disagrees with another input's.
pub fn resolve_dims<R>(operation: &Operation, params: &Params, inputs: &[Input<'_, R>]) -> Result<Dims, Error> {
    let mut dims = Dims { entries: [("", 0); MAX_DIMS], used: 0 };
    for (position, param) in operation.params.iter().enumerate() {
        if let Value::Integer(value) = params.get(position) {
            let is_dimension = operation.outputs.iter().any(|output| output.shape.contains(&param.name));
            if is_dimension && let Ok(size) = usize::try_from(value) {
                dims.set(param.name, size);
            }
        }
    }
    for spec in operation.inputs {
        let Some(input) = inputs.iter().find(|input| input.name == spec.name) else { continue };
        let shape = spec
            .shapes
            .iter()
            .find(|shape| dims.agrees(shape, input.shape))
            .ok_or(Error::ShapeMismatch { argument: spec.name })?;
        if input.data.is_empty() && input.shape.iter().any(|size| *size > MAX_CLAIMED) {
            return Err(Error::ShapeMismatch { argument: spec.name });
        }
        for (name, size) in shape.iter().zip(input.shape) {
            if dims.get(name).is_none() {
                dims.set(name, *size);
            }
        }
        let expected = dims.count(shape).unwrap_or(0);
        if input.data.len() != expected {
            return Err(Error::LengthMismatch { argument: spec.name, expected, got: input.data.len() });
        }
    }
    Ok(dims)
}

//! The slice form of a formula that treats every element by itself.

use super::call::Call;
use crate::Error;
use crate::num::Real;

/// Apply a scalar formula to each unmasked element. All inputs have one element per slot, or one per row, which then
/// stands for every slot of the row. Under the mask nothing is read and +0 is written. A non-finite unmasked input is an error.
pub fn map_elements<R: Real, const I: usize, const O: usize>(
    call: &mut Call<'_, R>,
    inputs: [&'static str; I],
    outputs: [&'static str; O],
    formula: impl Fn([R; I]) -> [R; O],
) -> Result<(), Error> {
    let mut columns: [&[R]; I] = [&[]; I];
    let mut slots = 0;
    for (column, name) in columns.iter_mut().zip(inputs) {
        *column = call.real(name)?;
        slots = slots.max(column.len());
    }
    let mask = call.optional_bytes("mask");
    let mut buffers: [Option<&mut [R]>; O] = outputs.map(|name| call.output(name));
    for slot in 0..slots {
        let kept = mask.is_none_or(|bytes| bytes.get(slot).is_some_and(|byte| *byte != 0));
        let results = if kept {
            let mut arguments = [R::zero(); I];
            for ((argument, column), name) in arguments.iter_mut().zip(&columns).zip(inputs) {
                // An input with one element per row is stretched over the row's slots.
                let index = if column.len() == slots { slot } else { slot * column.len() / slots };
                *argument = column.get(index).copied().unwrap_or(R::zero());
                if !argument.is_finite() {
                    return Err(Error::NonFinite { argument: name, index });
                }
            }
            formula(arguments)
        } else {
            [R::zero(); O]
        };
        for (buffer, result) in buffers.iter_mut().zip(results) {
            if let Some(element) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(slot)) {
                *element = result;
            }
        }
    }
    Ok(())
}

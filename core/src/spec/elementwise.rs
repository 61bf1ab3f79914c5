//! Formulas that treat every element by itself, and their form over slices.

use super::call::Call;
use super::operation::Operation;
use super::params::Params;
use crate::Error;
use crate::num::Real;

/// A formula of one element, with its settings: what the catalog's evaluation and a kernel for a graphics processor are both
/// made of. A kernel is handed the settings as they lie in memory, so the type is `repr(C)`.
pub trait Elementwise<R: Real, const I: usize, const O: usize>: Copy {
    /// The identifier of the operation.
    const OPERATION: &'static str;
    /// The inputs, each with one element per slot, or one per row, which then stands for every slot of the row.
    const INPUTS: [&'static str; I];
    /// The outputs.
    const OUTPUTS: [&'static str; O];
    /// An optional input of bytes that marks elements.
    const MARK: Option<&'static str> = None;

    /// The settings that a call's parameters give. Where the call has inputs, they are judged by what the formula asks of them
    /// beside being finite.
    fn from_call(call: &Call<'_, R>) -> Result<Self, Error>;
    /// The results of one element; `marked` by [`MARK`](Elementwise::MARK).
    fn apply(&self, marked: bool, inputs: [R; I]) -> [R; O];
}

/// The formula with the settings that the parameters give.
pub fn formula_of<R: Real, F: Elementwise<R, I, O>, const I: usize, const O: usize>(
    operation: &'static Operation,
    params: Params,
) -> Result<F, Error> {
    F::from_call(&Call::of_params(operation, params)?)
}

/// The evaluation of an elementwise formula. Under the mask nothing is read and +0 is written. A non-finite unmasked input
/// is an error.
pub fn evaluate_elements<R: Real, F: Elementwise<R, I, O>, const I: usize, const O: usize>(
    call: &mut Call<'_, R>,
) -> Result<(), Error> {
    let formula = F::from_call(call)?;
    let marks = F::MARK.and_then(|name| call.optional_bytes(name));
    map_slots(call, F::INPUTS, F::OUTPUTS, |slot, inputs| {
        formula.apply(marks.is_some_and(|bytes| bytes.get(slot).is_some_and(|byte| *byte != 0)), inputs)
    })
}

/// The same of a function of one element that no kernel asks for by its settings.
pub(crate) fn map_elements<R: Real, const I: usize, const O: usize>(
    call: &mut Call<'_, R>,
    inputs: [&'static str; I],
    outputs: [&'static str; O],
    formula: impl Fn([R; I]) -> [R; O],
) -> Result<(), Error> {
    map_slots(call, inputs, outputs, |_, inputs| formula(inputs))
}

/// Apply a function of slot and inputs to each unmasked element.
fn map_slots<R: Real, const I: usize, const O: usize>(
    call: &mut Call<'_, R>,
    inputs: [&'static str; I],
    outputs: [&'static str; O],
    formula: impl Fn(usize, [R; I]) -> [R; O],
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
            formula(slot, arguments)
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

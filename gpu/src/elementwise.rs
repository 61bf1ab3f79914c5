//! Elementwise formulas on arrays in the device's memory.
#![allow(unsafe_code)]

use plumbline_core::Error as CoreError;
use plumbline_core::spec::Elementwise;
use plumbline_gpu_kernels::elementwise::{Elements, Map};
use plumbline_gpu_kernels::memory::{Number, Pack, Reader, Writer};
use plumbline_gpu_kernels::warp::LANES;

use crate::array::Plain;
use crate::{Array, Device, Error};

/// What an elementwise formula reads, in the device's memory.
#[derive(Debug)]
pub struct ElementArrays<'a, D: Device, R, const I: usize> {
    /// The inputs, in the formula's order: one element per slot, or one per row.
    pub inputs: [&'a Array<D, R>; I],
    /// Which slots are there.
    pub mask: Option<&'a Array<D, u8>>,
    /// Which slots are marked, where the formula knows marks.
    pub marks: Option<&'a Array<D, u8>>,
}

/// Apply one of core's elementwise formulas; +0 under the mask. That the inputs are finite is the caller's to know: what is
/// not gives what the formula makes of it.
pub fn map_elements<D: Device, R: Number + Plain, F: Elementwise<R, I, O>, const I: usize, const O: usize>(
    device: &D,
    formula: F,
    arrays: &ElementArrays<'_, D, R, I>,
    outputs: [Option<&mut Array<D, R>>; O],
) -> Result<(), Error> {
    let count = arrays.inputs.iter().map(|input| input.length()).max().unwrap_or(0);
    let rows = arrays.inputs.iter().map(|input| input.length()).filter(|rows| *rows < count).min().unwrap_or(1).max(1);
    let wrong = |argument, got| Err(CoreError::LengthMismatch { argument, expected: count, got }.into());
    for (argument, input) in F::INPUTS.iter().zip(&arrays.inputs) {
        if input.length() != count && (input.length() != rows || !count.is_multiple_of(rows)) {
            return wrong(*argument, input.length());
        }
    }
    for (argument, bytes) in [("mask", arrays.mask), (F::MARK.unwrap_or("mask"), arrays.marks)] {
        if let Some(bytes) = bytes.filter(|bytes| bytes.length() != count) {
            return wrong(argument, bytes.length());
        }
    }
    for (argument, output) in F::OUTPUTS.iter().zip(&outputs) {
        if let Some(output) = output.as_ref().filter(|output| output.length() != count) {
            return wrong(*argument, output.length());
        }
    }
    let bytes = |bytes: Option<&Array<D, u8>>| bytes.map_or(Reader::NONE, |bytes| bytes.reader(device));
    let kernel = Map {
        formula,
        elements: Elements {
            mask: bytes(arrays.mask),
            marks: bytes(arrays.marks),
            inputs: arrays.inputs.map(|input| input.reader(device)),
            outputs: outputs.map(|output| output.map_or(Writer::NONE, |output| output.writer(device))),
            count,
            columns: count / rows,
        },
    };
    // SAFETY: the arrays are the device's own, of the lengths that were looked at, and those that are written are borrowed by
    // no one else.
    unsafe { device.launch(device.grid(count.div_ceil(R::Pack::COUNT * LANES)), &kernel) }
}

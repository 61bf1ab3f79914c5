//! Evaluation, and how large its outputs are.
#![allow(unsafe_code)]

use std::ffi::c_char;

use plumbline_core::num::Dtype;
use plumbline_core::spec::{self, Data, Params, resolve_dims};

use crate::boundary::{guarded, read, slice, write};
use crate::call::{Element, PlumblineCall, PlumblineOutput, Prepared, numbers, outputs};
use crate::describe::PLUMBLINE_MAX_RANK;
use crate::status::{PlumblineError, PlumblineStatus, Refused};
use crate::text::name;

/// Evaluate an operation: the outputs that are asked for are written to the caller's buffers.
///
/// An output that is not asked for is not computed, where that saves work. `error` may be null.
///
/// # Safety
/// Every pointer is null or leads to what its description says: names end in a zero byte, arrays hold as many elements as
/// is said, and no other thread writes to any of it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_evaluate(
    call: *const PlumblineCall,
    outputs: *const PlumblineOutput,
    output_count: usize,
    error: *mut PlumblineError,
) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller, here and below.
    unsafe {
        guarded(error, || {
            let call = Prepared::new(read(call, "the call")?)?;
            let asked = slice(outputs, output_count, "the list of outputs")?;
            match call.dtype {
                Dtype::F32 => evaluate::<f32>(&call, asked),
                Dtype::F64 => evaluate::<f64>(&call, asked),
            }
        })
    }
}

/// # Safety
/// As for [`plumbline_evaluate`].
unsafe fn evaluate<'a, R: Element>(call: &Prepared<'a>, asked: &'a [PlumblineOutput]) -> Result<(), Refused<'a>> {
    // SAFETY: what this function asks of its caller, here and below.
    let (inputs, used) =
        unsafe { call.inputs(|input, argument, domain, count| numbers::<R>(input, argument, domain, count)) }?;
    let inputs = inputs.get(..used).unwrap_or(&[]);
    // SAFETY: as above.
    let (mut outputs, used) = unsafe { outputs::<R>(call.operation, asked, inputs) }?;
    let outputs = outputs.get_mut(..used).unwrap_or_default();
    Ok(spec::evaluate(call.operation, call.dialect, call.params(), inputs, outputs)?)
}

/// How large an output of a call is: its sizes, outermost first, go to `shape`, which holds `PLUMBLINE_MAX_RANK` of them,
/// their number to `rank`, their product to `length`. Only the names, parameters and shapes of the call are looked at;
/// its inputs need no data yet. `shape`, `rank` and `error` may be null.
///
/// `PLUMBLINE_STATUS_MISSING_INPUT` where the inputs that are given do not determine the size.
///
/// # Safety
/// As for `plumbline_evaluate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_output_shape(
    call: *const PlumblineCall,
    output: *const c_char,
    shape: *mut usize,
    rank: *mut usize,
    length: *mut usize,
    error: *mut PlumblineError,
) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe {
        guarded(error, || {
            let call = Prepared::new(read(call, "the call")?)?;
            let given = name(output)?.ok_or(Refused::Null("the output's name"))?;
            let spec =
                call.operation.output(given).ok_or(Refused::Unknown { what: "output of the operation", given })?;
            let params = Params::resolve(call.operation, call.dialect, call.params())?;
            let (inputs, used) = call.inputs(|_, _, _, count| Ok(of_length(count)))?;
            let inputs = inputs.get(..used).unwrap_or(&[]);
            let dims = resolve_dims(call.operation, &params, inputs)?;
            let undetermined = plumbline_core::Error::MissingInput { argument: spec.name };
            let mut sizes = [0; PLUMBLINE_MAX_RANK];
            for (size, dimension) in sizes.iter_mut().zip(spec.shape) {
                *size = dims.get(dimension).ok_or(undetermined)?;
            }
            let count = dims.count(spec.shape).ok_or(plumbline_core::Error::ShapeMismatch { argument: spec.name })?;
            if !shape.is_null() {
                write(shape.cast::<[usize; PLUMBLINE_MAX_RANK]>(), "the shape", sizes)?;
            }
            if !rank.is_null() {
                write(rank, "the rank", spec.shape.len())?;
            }
            write(length, "the length", count)
        })
    }
}

/// An array whose elements take no memory, so that its length can be asked for before there is data.
fn of_length<'a>(count: usize) -> Data<'a, ()> {
    const UNITS: &[()] = &[(); usize::MAX];
    Data::Real(UNITS.get(..count).unwrap_or(UNITS))
}

//! One evaluation as the caller writes it down, and its way into core's types.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ops::Range;
use std::ptr;

use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{
    Data, Domain, Evaluable, Given, GivenValue, Input, MAX_OUTPUTS, MAX_PARAMS, Operation, Output, ParamKind,
};

use crate::boundary::{buffer, slice};
use crate::describe::PlumblineNumbers;
use crate::status::Refused;
use crate::text::name;

/// The most inputs that an operation of the catalog has (a test counts them).
pub(crate) const MAX_INPUTS: usize = 32;

/// The precision to compute in.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlumblineDtype {
    /// `float`.
    F32 = 32,
    /// `double`.
    F64 = 64,
}

/// What a parameter is set to.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlumblineParamKind {
    /// Nothing: an optional number is switched off.
    None = 0,
    /// A number, `number`; whole where the parameter is.
    Number = 1,
    /// Yes or no: `number` is not 0, or 0.
    Flag = 2,
    /// One of the parameter's names, `text`.
    Name = 3,
}

/// A parameter that is not left at its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineParam {
    /// The parameter's name.
    pub name: *const c_char,
    /// What it is set to: a `PlumblineParamKind`.
    pub kind: u32,
    /// The number or flag.
    pub number: f64,
    /// The name.
    pub text: *const c_char,
}

/// A parameter set to a number.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_param_number(name: *const c_char, number: f64) -> PlumblineParam {
    PlumblineParam { name, kind: PlumblineParamKind::Number as u32, number, text: ptr::null() }
}

/// A parameter set to yes or no.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_param_flag(name: *const c_char, flag: bool) -> PlumblineParam {
    let number = f64::from(u8::from(flag));
    PlumblineParam { name, kind: PlumblineParamKind::Flag as u32, number, text: ptr::null() }
}

/// A parameter set to one of its names.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_param_name(name: *const c_char, text: *const c_char) -> PlumblineParam {
    PlumblineParam { name, kind: PlumblineParamKind::Name as u32, number: 0.0, text }
}

/// An optional number, switched off.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_param_none(name: *const c_char) -> PlumblineParam {
    PlumblineParam { name, kind: PlumblineParamKind::None as u32, number: 0.0, text: ptr::null() }
}

/// An input: exactly one of the four pointers is set, the one that `plumbline_input` says (for real numbers the one of the
/// call's dtype). It leads to as many numbers as the shape says, row-major.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineInput {
    /// The input's name.
    pub name: *const c_char,
    /// The sizes, outermost first; may be null where the rank is 0.
    pub shape: *const usize,
    /// How many sizes.
    pub rank: usize,
    /// Real numbers of a call in single precision.
    pub f32: *const f32,
    /// Real numbers of a call in double precision.
    pub f64: *const f64,
    /// A mask: bytes, 0 or not.
    pub mask: *const u8,
    /// Indices, identifiers or counts.
    pub index: *const u32,
}

/// An output that the caller asks for: exactly one of the two pointers is set, the one of the call's dtype.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineOutput {
    /// The output's name.
    pub name: *const c_char,
    /// The buffer of a call in single precision.
    pub f32: *mut f32,
    /// The buffer of a call in double precision.
    pub f64: *mut f64,
    /// How many numbers the buffer holds: as many as `plumbline_output_shape` says.
    pub length: usize,
}

/// What to evaluate. What it leads to is read and not kept.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineCall {
    /// The operation's identifier, such as `kl.k3`.
    pub operation: *const c_char,
    /// The dialect; null for the operation's defaults.
    pub dialect: *const c_char,
    /// The precision: a `PlumblineDtype`.
    pub dtype: u32,
    /// Parameters that are not left at their defaults (or their dialect's settings).
    pub params: *const PlumblineParam,
    /// How many.
    pub param_count: usize,
    /// The inputs.
    pub inputs: *const PlumblineInput,
    /// How many.
    pub input_count: usize,
}

/// A number type, and where the caller's structures hold it.
pub(crate) trait Element: Evaluable {
    fn of_input(input: &PlumblineInput) -> *const Self;
    fn of_output(output: &PlumblineOutput) -> *mut Self;
    /// Whether the pointer of the other type is set.
    fn other(input: &PlumblineInput) -> bool;
}

impl Element for f32 {
    fn of_input(input: &PlumblineInput) -> *const f32 {
        input.f32
    }
    fn of_output(output: &PlumblineOutput) -> *mut f32 {
        output.f32
    }
    fn other(input: &PlumblineInput) -> bool {
        !input.f64.is_null()
    }
}

impl Element for f64 {
    fn of_input(input: &PlumblineInput) -> *const f64 {
        input.f64
    }
    fn of_output(output: &PlumblineOutput) -> *mut f64 {
        output.f64
    }
    fn other(input: &PlumblineInput) -> bool {
        !input.f32.is_null()
    }
}

/// A call whose names are known and whose lists are within their limits; the data is not looked at yet.
pub(crate) struct Prepared<'a> {
    pub operation: &'static Operation,
    pub dialect: Option<&'a str>,
    pub dtype: Dtype,
    params: [Given<'a>; MAX_PARAMS],
    param_count: usize,
    inputs: &'a [PlumblineInput],
}

impl<'a> Prepared<'a> {
    /// # Safety
    /// Every pointer of the call is null or leads to what its description says, unchanged for `'a`.
    pub unsafe fn new(call: &'a PlumblineCall) -> Result<Self, Refused<'a>> {
        // SAFETY: what this function asks of its caller.
        let id = unsafe { name(call.operation) }?.ok_or(Refused::Null("the operation's name"))?;
        let operation = catalog::find(id).ok_or(Refused::Unknown { what: "operation", given: id })?;
        // SAFETY: as above.
        let dialect = unsafe { name(call.dialect) }?;
        if let Some(given) = dialect
            && operation.dialect(given).is_none()
        {
            return Err(Refused::Unknown { what: "dialect of the operation", given });
        }
        let dtype = match call.dtype {
            dtype if dtype == PlumblineDtype::F32 as u32 => Dtype::F32,
            dtype if dtype == PlumblineDtype::F64 as u32 => Dtype::F64,
            _ => return Err(Refused::NoSuchItem("dtype")),
        };
        // SAFETY: as above.
        let given = unsafe { slice(call.params, call.param_count, "the list of parameters") }?;
        let mut params = [Given { name: "", value: GivenValue::None }; MAX_PARAMS];
        let mut param_count = 0;
        for param in given {
            // SAFETY: as above.
            let one = unsafe { as_given(operation, param) }?;
            if params.iter().take(param_count).any(|earlier| earlier.name == one.name) {
                return Err(Refused::Repeated(one.name));
            }
            // A parameter's name is known and stands once, so there are no more of them than the operation has.
            if let Some(slot) = params.get_mut(param_count) {
                *slot = one;
                param_count += 1;
            }
        }
        // SAFETY: as above.
        let inputs = unsafe { slice(call.inputs, call.input_count, "the list of inputs") }?;
        Ok(Prepared { operation, dialect, dtype, params, param_count, inputs })
    }

    pub fn params(&self) -> &[Given<'a>] {
        self.params.get(..self.param_count).unwrap_or(&[])
    }

    /// The inputs as core takes them, of which the first so many count.
    ///
    /// # Safety
    /// As for [`Prepared::new`]; `data` may only hand out what it may read.
    pub unsafe fn inputs<R>(
        &self,
        data: impl Fn(&'a PlumblineInput, &'static str, Domain, usize) -> Result<Data<'a, R>, Refused<'a>>,
    ) -> Result<([Input<'a, R>; MAX_INPUTS], usize), Refused<'a>> {
        let mut inputs: [Input<'a, R>; MAX_INPUTS] =
            std::array::from_fn(|_| Input { name: "", shape: &[], data: Data::Mask(&[]) });
        let mut used = 0;
        for input in self.inputs {
            // SAFETY: what this function asks of its caller.
            let given = unsafe { name(input.name) }?.ok_or(Refused::Null("an input's name"))?;
            let spec = self.operation.input(given).ok_or(Refused::Unknown { what: "input of the operation", given })?;
            if inputs.iter().take(used).any(|earlier| earlier.name == spec.name) {
                return Err(Refused::Repeated(spec.name));
            }
            // SAFETY: as above.
            let shape = unsafe { slice(input.shape, input.rank, "an input's shape") }?;
            let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
            let count = count.ok_or(plumbline_core::Error::ShapeMismatch { argument: spec.name })?;
            let data = data(input, spec.name, spec.domain, count)?;
            if let Some(slot) = inputs.get_mut(used) {
                *slot = Input { name: spec.name, shape, data };
                used += 1;
            }
        }
        Ok((inputs, used))
    }
}

/// # Safety
/// The parameter's pointers are null or lead to names, unchanged for `'a`.
unsafe fn as_given<'a>(operation: &Operation, param: &PlumblineParam) -> Result<Given<'a>, Refused<'a>> {
    // SAFETY: what this function asks of its caller.
    let given = unsafe { name(param.name) }?.ok_or(Refused::Null("a parameter's name"))?;
    let (_, spec) = operation.param(given).ok_or(Refused::Unknown { what: "parameter of the operation", given })?;
    let value = match param.kind {
        kind if kind == PlumblineParamKind::None as u32 => GivenValue::None,
        kind if kind == PlumblineParamKind::Number as u32 => GivenValue::Number(param.number),
        kind if kind == PlumblineParamKind::Flag as u32 => GivenValue::Flag(param.number != 0.0),
        kind if kind == PlumblineParamKind::Name as u32 => {
            // SAFETY: as above.
            let text = unsafe { name(param.text) }?.ok_or(Refused::Null("a parameter's text"))?;
            if let ParamKind::Choice { names, .. } = spec.kind
                && !names.contains(&text)
            {
                return Err(Refused::Unknown { what: "choice of the parameter", given: text });
            }
            GivenValue::Name(text)
        }
        _ => return Err(Refused::NoSuchItem("kind of a parameter's value")),
    };
    Ok(Given { name: spec.name, value })
}

/// An input's numbers.
///
/// # Safety
/// The input's pointers are null or lead to `count` numbers, unchanged for `'a`.
pub(crate) unsafe fn numbers<'a, R: Element>(
    input: &PlumblineInput,
    argument: &'static str,
    domain: Domain,
    count: usize,
) -> Result<Data<'a, R>, Refused<'a>> {
    let kind = PlumblineNumbers::of(domain);
    let real = R::of_input(input);
    let others = [
        (PlumblineNumbers::Real, !real.is_null()),
        (PlumblineNumbers::Mask, !input.mask.is_null()),
        (PlumblineNumbers::Index, !input.index.is_null()),
    ];
    let missing = others.iter().any(|(other, set)| *other == kind && !set) && count > 0;
    let foreign = others.iter().any(|(other, set)| *other != kind && *set) || R::other(input);
    if missing || foreign {
        let expected = match kind {
            PlumblineNumbers::Real => "real numbers of the call's dtype, under the pointer of that name and no other",
            PlumblineNumbers::Mask => "a mask, under `mask` and no other pointer",
            PlumblineNumbers::Index => "whole numbers, under `index` and no other pointer",
        };
        return Err(plumbline_core::Error::WrongKind { argument, expected }.into());
    }
    // SAFETY: what this function asks of its caller.
    unsafe {
        Ok(match kind {
            PlumblineNumbers::Real => Data::Real(slice(real, count, argument)?),
            PlumblineNumbers::Mask => Data::Mask(slice(input.mask, count, argument)?),
            PlumblineNumbers::Index => Data::Index(slice(input.index, count, argument)?),
        })
    }
}

/// The outputs as core takes them, of which the first so many count.
///
/// # Safety
/// The outputs' pointers are null or lead to as many numbers as they say, which nobody else uses for `'a`.
pub(crate) unsafe fn outputs<'a, R: Element>(
    operation: &'static Operation,
    asked: &'a [PlumblineOutput],
    inputs: &[Input<'a, R>],
) -> Result<([Output<'a, R>; MAX_OUTPUTS], usize), Refused<'a>> {
    let mut outputs: [Output<'a, R>; MAX_OUTPUTS] = std::array::from_fn(|_| Output { name: "", data: &mut [] });
    let mut used = 0;
    for output in asked {
        // SAFETY: what this function asks of its caller.
        let given = unsafe { name(output.name) }?.ok_or(Refused::Null("an output's name"))?;
        let spec = operation.output(given).ok_or(Refused::Unknown { what: "output of the operation", given })?;
        if outputs.iter().take(used).any(|earlier| earlier.name == spec.name) {
            return Err(Refused::Repeated(spec.name));
        }
        let place = R::of_output(output);
        let extent = extent(place, output.length);
        let with_input = inputs.iter().any(|input| overlap(&extent, &input_extent(&input.data)));
        let with_output = outputs.iter().take(used).any(|other| {
            let earlier = other.data.as_ptr_range();
            overlap(&extent, &(earlier.start as usize..earlier.end as usize))
        });
        if with_input || with_output {
            return Err(Refused::Overlap(spec.name));
        }
        if place.is_null() && output.length > 0 {
            let expected = "a buffer of the call's dtype, under the pointer of that name";
            return Err(plumbline_core::Error::WrongKind { argument: spec.name, expected }.into());
        }
        // SAFETY: as above; that no other buffer of the call overlaps it was just found.
        let data = unsafe { buffer(place, output.length, spec.name) }?;
        if let Some(slot) = outputs.get_mut(used) {
            *slot = Output { name: spec.name, data };
            used += 1;
        }
    }
    Ok((outputs, used))
}

/// The addresses of an array.
fn extent<T>(pointer: *const T, length: usize) -> Range<usize> {
    let start = pointer as usize;
    start..start.saturating_add(length.saturating_mul(size_of::<T>()))
}

fn input_extent<R>(data: &Data<'_, R>) -> Range<usize> {
    match data {
        Data::Real(values) => extent(values.as_ptr(), values.len()),
        Data::Mask(values) => extent(values.as_ptr(), values.len()),
        Data::Index(values) => extent(values.as_ptr(), values.len()),
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operation_has_more_inputs_than_there_is_room_for() {
        assert!(catalog::operations().all(|operation| operation.inputs.len() <= MAX_INPUTS));
    }

    #[test]
    fn overlaps() {
        assert!(overlap(&(0..8), &(4..12)) && overlap(&(0..8), &(2..3)));
        assert!(!overlap(&(0..8), &(8..12)) && !overlap(&(4..4), &(0..4)));
    }
}

//! The catalog's descriptions.
#![allow(unsafe_code)]

use std::ffi::c_char;

use plumbline_core::catalog;
use plumbline_core::spec::{Domain, Operation, ParamKind, Shape, Value};

use crate::boundary::{guarded, write};
use crate::call::PlumblineParamKind;
use crate::status::{PlumblineStatus, Refused};
use crate::text::{PlumblineText, name};

/// The most sizes that a shape has.
pub const PLUMBLINE_MAX_RANK: usize = 8;

/// Which pointer of a `PlumblineInput` an input's numbers stand under.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlumblineNumbers {
    /// `f32` or `f64`, by the call's dtype.
    Real = 0,
    /// `mask`.
    Mask = 1,
    /// `index`.
    Index = 2,
}

impl PlumblineNumbers {
    pub(crate) fn of(domain: Domain) -> Self {
        match domain {
            Domain::Mask | Domain::Done => PlumblineNumbers::Mask,
            Domain::Group | Domain::Index(_) | Domain::Count => PlumblineNumbers::Index,
            _ => PlumblineNumbers::Real,
        }
    }
}

/// An operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineOperationInfo {
    /// Its identifier.
    pub id: PlumblineText,
    /// The family it belongs to.
    pub family: PlumblineText,
    /// Its name in the literature.
    pub title: PlumblineText,
    /// One sentence.
    pub summary: PlumblineText,
    /// The value (TeX).
    pub formula: PlumblineText,
    /// The gradient (TeX); empty where no input is trainable.
    pub gradient: PlumblineText,
    /// Ties, stopped gradients, edge cases, and how known libraries differ.
    pub notes: PlumblineText,
    /// How many inputs it has.
    pub input_count: usize,
    /// How many parameters.
    pub param_count: usize,
    /// How many outputs.
    pub output_count: usize,
    /// How many dialects.
    pub dialect_count: usize,
    /// How many sources.
    pub source_count: usize,
}

/// An input of an operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineInputInfo {
    /// Its name.
    pub name: PlumblineText,
    /// What it is, with its unit.
    pub meaning: PlumblineText,
    /// Which pointer its numbers stand under.
    pub numbers: PlumblineNumbers,
    /// Whether it may be left out.
    pub optional: bool,
    /// How many shapes are accepted.
    pub shape_count: usize,
}

/// A shape as a list of named dimensions; rank 0 is a scalar.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineShapeInfo {
    /// How many dimensions.
    pub rank: usize,
    /// Their names, outermost first.
    pub dimensions: [PlumblineText; PLUMBLINE_MAX_RANK],
}

/// A parameter of an operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineParamInfo {
    /// Its name.
    pub name: PlumblineText,
    /// Its symbol in the formula (TeX).
    pub symbol: PlumblineText,
    /// What it is, with its unit.
    pub meaning: PlumblineText,
    /// Of which kind its values are.
    pub kind: PlumblineParamKind,
    /// Whether it is a number that may be switched off.
    pub may_be_none: bool,
    /// Whether it is a whole number.
    pub whole: bool,
    /// Whether it is switched off by default.
    pub default_is_none: bool,
    /// The default: the number, or 1 or 0 for a flag.
    pub default_number: f64,
    /// The default of a choice.
    pub default_name: PlumblineText,
    /// The smallest legal number, or what legal numbers are above.
    pub low: f64,
    /// Whether `low` itself is legal.
    pub low_inclusive: bool,
    /// The largest legal number, or what legal numbers are below.
    pub high: f64,
    /// Whether `high` itself is legal.
    pub high_inclusive: bool,
    /// How many names a choice has.
    pub choice_count: usize,
}

/// An output of an operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineOutputInfo {
    /// Its name.
    pub name: PlumblineText,
    /// What it is, with its unit.
    pub meaning: PlumblineText,
    /// Its shape.
    pub shape: PlumblineShapeInfo,
    /// For a gradient: the input by which the sum of the operation's first output is differentiated.
    pub gradient_of: PlumblineText,
    /// Whether the gradient leaves out a stopped factor.
    pub stop_gradient: bool,
    /// Whether the operation works in this buffer: it is provided with every call that determines its size, wanted or not.
    pub workspace: bool,
}

/// A named setting of the parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineDialectInfo {
    /// Its name: `paper`, or a library and its version.
    pub name: PlumblineText,
    /// What differs from the default, in words.
    pub note: PlumblineText,
}

/// Where a formula comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineSourceInfo {
    /// Title of the paper or book.
    pub title: PlumblineText,
    /// Its identifier.
    pub reference: PlumblineText,
    /// The place in it.
    pub place: PlumblineText,
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_version() -> PlumblineText {
    PlumblineText::new(env!("CARGO_PKG_VERSION"))
}

/// How many operations the catalog has.
#[unsafe(no_mangle)]
pub extern "C" fn plumbline_operation_count() -> usize {
    catalog::operations().count()
}

/// The position of the operation of that identifier.
///
/// # Safety
/// Here and in the other functions that describe: a name ends in a zero byte, and a pointer to what is filled leads to memory
/// for it. Null pointers are an error, not a danger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_find(id: *const c_char, position: *mut usize) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe {
        guarded(std::ptr::null_mut(), || {
            let given = name(id)?.ok_or(Refused::Null("the identifier"))?;
            let found = catalog::operations().position(|operation| operation.id == given);
            write(position, "the position", found.ok_or(Refused::Unknown { what: "operation", given })?)
        })
    }
}

/// Hand over the description of an item, if there is such an item.
///
/// # Safety
/// Where it is not null and aligned, `place` leads to memory for a `T`.
unsafe fn hand_over<T>(place: *mut T, item: impl FnOnce() -> Option<T>) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe {
        guarded(std::ptr::null_mut(), || {
            write(place, "the place for the description", item().ok_or(Refused::NoSuchItem("position"))?)
        })
    }
}

fn at(position: usize) -> Option<&'static Operation> {
    catalog::operations().nth(position)
}

/// The operation at a position of the catalog.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_operation(position: usize, info: *mut PlumblineOperationInfo) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, || at(position).map(operation_info)) }
}

/// An input of an operation.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_input(
    operation: usize,
    input: usize,
    info: *mut PlumblineInputInfo,
) -> PlumblineStatus {
    let item = || {
        let spec = at(operation)?.inputs.get(input)?;
        Some(PlumblineInputInfo {
            name: PlumblineText::new(spec.name),
            meaning: PlumblineText::new(spec.meaning),
            numbers: PlumblineNumbers::of(spec.domain),
            optional: spec.optional,
            shape_count: spec.shapes.len(),
        })
    };
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, item) }
}

/// One of the shapes that an input is accepted in.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_input_shape(
    operation: usize,
    input: usize,
    shape: usize,
    info: *mut PlumblineShapeInfo,
) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, || Some(shape_info(at(operation)?.inputs.get(input)?.shapes.get(shape)?))) }
}

/// A parameter of an operation.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_param(
    operation: usize,
    param: usize,
    info: *mut PlumblineParamInfo,
) -> PlumblineStatus {
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, || at(operation).and_then(|operation| param_info(operation, param))) }
}

/// One of the names that a choice may be set to.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_param_choice(
    operation: usize,
    param: usize,
    choice: usize,
    text: *mut PlumblineText,
) -> PlumblineStatus {
    let item = || match at(operation)?.params.get(param)?.kind {
        ParamKind::Choice { names, .. } => names.get(choice).map(|name| PlumblineText::new(name)),
        _ => None,
    };
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(text, item) }
}

/// An output of an operation.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_output(
    operation: usize,
    output: usize,
    info: *mut PlumblineOutputInfo,
) -> PlumblineStatus {
    let item = || {
        let spec = at(operation)?.outputs.get(output)?;
        Some(PlumblineOutputInfo {
            name: PlumblineText::new(spec.name),
            meaning: PlumblineText::new(spec.meaning),
            shape: shape_info(spec.shape),
            gradient_of: spec.gradient_of.map_or(PlumblineText::NONE, PlumblineText::new),
            stop_gradient: spec.stop_gradient,
            workspace: spec.workspace,
        })
    };
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, item) }
}

/// A dialect of an operation.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_dialect(
    operation: usize,
    dialect: usize,
    info: *mut PlumblineDialectInfo,
) -> PlumblineStatus {
    let item = || {
        let dialect = at(operation)?.dialects.get(dialect)?;
        Some(PlumblineDialectInfo { name: PlumblineText::new(dialect.name), note: PlumblineText::new(dialect.note) })
    };
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, item) }
}

/// A source of an operation.
///
/// # Safety
/// As for `plumbline_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plumbline_source(
    operation: usize,
    source: usize,
    info: *mut PlumblineSourceInfo,
) -> PlumblineStatus {
    let item = || {
        let source = at(operation)?.sources.get(source)?;
        Some(PlumblineSourceInfo {
            title: PlumblineText::new(source.title),
            reference: PlumblineText::new(source.reference),
            place: PlumblineText::new(source.place),
        })
    };
    // SAFETY: what this function asks of its caller.
    unsafe { hand_over(info, item) }
}

fn operation_info(operation: &Operation) -> PlumblineOperationInfo {
    PlumblineOperationInfo {
        id: PlumblineText::new(operation.id),
        family: PlumblineText::new(operation.family.name()),
        title: PlumblineText::new(operation.title),
        summary: PlumblineText::new(operation.summary),
        formula: PlumblineText::new(operation.formula),
        gradient: PlumblineText::new(operation.gradient),
        notes: PlumblineText::new(operation.notes),
        input_count: operation.inputs.len(),
        param_count: operation.params.len(),
        output_count: operation.outputs.len(),
        dialect_count: operation.dialects.len(),
        source_count: operation.sources.len(),
    }
}

fn shape_info(shape: Shape) -> PlumblineShapeInfo {
    let mut dimensions = [PlumblineText::NONE; PLUMBLINE_MAX_RANK];
    for (slot, dimension) in dimensions.iter_mut().zip(shape) {
        *slot = PlumblineText::new(dimension);
    }
    PlumblineShapeInfo { rank: shape.len(), dimensions }
}

fn param_info(operation: &Operation, position: usize) -> Option<PlumblineParamInfo> {
    let spec = operation.params.get(position)?;
    let mut info = PlumblineParamInfo {
        name: PlumblineText::new(spec.name),
        symbol: PlumblineText::new(spec.symbol),
        meaning: PlumblineText::new(spec.meaning),
        kind: PlumblineParamKind::Number,
        may_be_none: false,
        whole: false,
        default_is_none: false,
        default_number: 0.0,
        default_name: PlumblineText::NONE,
        low: 0.0,
        low_inclusive: true,
        high: 1.0,
        high_inclusive: true,
        choice_count: 0,
    };
    match spec.kind {
        ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. } => {
            (info.low, info.low_inclusive) = (range.low, range.low_inclusive);
            (info.high, info.high_inclusive) = (range.high, range.high_inclusive);
            info.may_be_none = matches!(spec.kind, ParamKind::OptionalNumber { .. });
        }
        ParamKind::Integer { low, high, .. } => {
            (info.low, info.high, info.whole) = (low as f64, high as f64, true);
        }
        ParamKind::Flag { .. } => info.kind = PlumblineParamKind::Flag,
        ParamKind::Choice { names, .. } => {
            info.kind = PlumblineParamKind::Name;
            info.choice_count = names.len();
        }
    }
    match operation.default_of(spec) {
        Value::None => info.default_is_none = true,
        Value::Number(number) => info.default_number = number,
        Value::Integer(number) => info.default_number = number as f64,
        Value::Flag(flag) => info.default_number = f64::from(u8::from(flag)),
        Value::Name(name) => info.default_name = PlumblineText::new(name),
    }
    Some(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shape_has_more_sizes_than_there_is_room_for() {
        for operation in catalog::operations() {
            let outputs = operation.outputs.iter().map(|output| output.shape);
            let inputs = operation.inputs.iter().flat_map(|input| input.shapes.iter().copied());
            assert!(inputs.chain(outputs).all(|shape| shape.len() <= PLUMBLINE_MAX_RANK), "{}", operation.id);
        }
    }
}

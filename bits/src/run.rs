//! Evaluate a packed case with core, in memory of the caller.

use core::mem;

use plumbline_core::Error;
use plumbline_core::catalog;
use plumbline_core::spec::{
    Data, Evaluable, Given, GivenValue, Input, MAX_OUTPUTS, MAX_PARAMS, Operation, Output, OutputSpec, Params,
    evaluate, resolve_dims,
};

use crate::Digest;
use crate::pack::{Array, Case, MAX_RANK, Malformed, kind};

/// The most inputs of a case.
const MAX_INPUTS: usize = 16;

/// Why a case could not be evaluated at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The block does not hold what it says.
    Malformed,
    /// The memory does not hold the case's arrays.
    Memory,
}

impl From<Malformed> for Trouble {
    fn from(_: Malformed) -> Self {
        Trouble::Malformed
    }
}

/// The outputs that a run asks for: all but the gradients by inputs that are not given.
pub fn is_asked(spec: &OutputSpec, is_given: impl FnMut(&str) -> bool) -> bool {
    spec.gradient_of.is_none_or(is_given)
}

/// Evaluate a case in one precision and add its results to the digest. Inputs and outputs are held in `reals` and
/// `indices`. Tells whether the operation refused the case.
pub fn case<R: Evaluable>(
    case: &Case<'_>,
    operation: &'static Operation,
    reals: &mut [R],
    indices: &mut [u32],
    digest: &mut Digest,
) -> Result<bool, Trouble> {
    let mut params = [Given { name: "", value: GivenValue::None }; MAX_PARAMS];
    let mut param_count = 0;
    for (slot, param) in params.iter_mut().zip(case.params()) {
        *slot = param?;
        param_count += 1;
    }
    let params = params.get(..param_count).unwrap_or(&[]);

    const NOTHING: Option<Array<'static>> = None;
    let mut arrays = [NOTHING; MAX_INPUTS];
    for (slot, array) in arrays.iter_mut().zip(case.inputs()) {
        *slot = Some(array?);
    }
    let mut inputs: [Input<'_, R>; MAX_INPUTS] =
        core::array::from_fn(|_| Input { name: "", shape: &[], data: Data::Mask(&[]) });
    let (mut reals, mut indices) = (reals, indices);
    let mut input_count = 0;
    for (slot, array) in inputs.iter_mut().zip(arrays.iter().flatten()) {
        let data = match array.kind {
            kind::MASK => Data::Mask(array.mask()),
            kind::INDEX => Data::Index(copy(&mut indices, array.indices())?),
            kind::F32 => Data::Real(copy(&mut reals, array.singles().map(|value| R::from_f64(f64::from(value))))?),
            _ => Data::Real(copy(&mut reals, array.doubles().map(R::from_f64))?),
        };
        let shape = array.shape.get(..array.rank.min(MAX_RANK)).unwrap_or(&[]);
        *slot = Input { name: array.name, shape, data };
        input_count += 1;
    }
    let inputs = inputs.get(..input_count).unwrap_or(&[]);

    match outputs(case, operation, params, inputs, reals, digest)? {
        Ok(()) => Ok(false),
        Err(_) => {
            digest.refused();
            Ok(true)
        }
    }
}

/// Evaluate and hash. The outer error is trouble of the run, the inner one a refusal of the operation.
fn outputs<R: Evaluable>(
    case: &Case<'_>,
    operation: &'static Operation,
    params: &[Given<'_>],
    inputs: &[Input<'_, R>],
    reals: &mut [R],
    digest: &mut Digest,
) -> Result<Result<(), Error>, Trouble> {
    let dims = Params::resolve(operation, case.dialect, params)
        .and_then(|resolved| resolve_dims(operation, &resolved, inputs));
    let dims = match dims {
        Ok(dims) => dims,
        Err(error) => return Ok(Err(error)),
    };
    let mut asked: [Output<'_, R>; MAX_OUTPUTS] = core::array::from_fn(|_| Output { name: "", data: &mut [] });
    let mut wanted = 0;
    let mut reals = reals;
    let is_asked = |spec: &OutputSpec| is_asked(spec, |name| inputs.iter().any(|input| input.name == name));
    // What is asked for first, then what the operation only works in.
    for only_worked_in in [false, true] {
        for spec in operation.outputs {
            let taken = if only_worked_in { spec.workspace && !is_asked(spec) } else { is_asked(spec) };
            let (true, Some(count)) = (taken, dims.count(spec.shape)) else { continue };
            let data = copy(&mut reals, (0..count).map(|_| R::zero()))?;
            if let Some(slot) = asked.get_mut(wanted) {
                *slot = Output { name: spec.name, data };
                wanted += 1;
            }
        }
    }
    let given = asked.get_mut(..wanted).unwrap_or_default();
    if let Err(error) = evaluate(operation, case.dialect, params, inputs, given) {
        return Ok(Err(error));
    }
    digest.case();
    for output in given {
        if operation.output(output.name).is_some_and(is_asked) {
            digest.output(output.name, output.data.iter().copied());
        }
    }
    Ok(Ok(()))
}

/// Take as much memory as there are values, and fill it with them.
fn copy<'m, T>(memory: &mut &'m mut [T], values: impl ExactSizeIterator<Item = T>) -> Result<&'m mut [T], Trouble> {
    let (taken, rest) = mem::take(memory).split_at_mut_checked(values.len()).ok_or(Trouble::Memory)?;
    *memory = rest;
    for (slot, value) in taken.iter_mut().zip(values) {
        *slot = value;
    }
    Ok(taken)
}

/// The operation of a case.
pub fn operation_of(case: &Case<'_>) -> Result<&'static Operation, Trouble> {
    catalog::find(case.operation).ok_or(Trouble::Malformed)
}

//! One evaluation: named inputs, complete parameters, and the outputs that the caller asked for.

use super::choice::Choice;
use super::operation::{Domain, Evaluate, Operation, Value};
use super::params::{Given, Params};
use super::shape::{Dims, resolve_dims};
use crate::Error;
use crate::batch::{Mask, TokenShape};
use crate::engine::Engine;
use crate::num::Real;

/// The numbers of an input.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a, R> {
    /// Real numbers.
    Real(&'a [R]),
    /// Bytes, 0 or not.
    Mask(&'a [u8]),
    /// Indices, identifiers or counts.
    Index(&'a [u32]),
}

impl<R> Data<'_, R> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Data::Real(values) => values.len(),
            Data::Mask(values) => values.len(),
            Data::Index(values) => values.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One named input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a, R> {
    /// Its name in the operation's list.
    pub name: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its numbers, row-major.
    pub data: Data<'a, R>,
}

/// One output that the caller asks for, with the buffer that it goes to.
#[derive(Debug)]
pub struct Output<'a, R> {
    /// Its name in the operation's list.
    pub name: &'a str,
    /// The buffer, as long as the output's shape says.
    pub data: &'a mut [R],
}

/// A number type that the catalog evaluates in.
pub trait Evaluable: Real {
    /// The function for this type.
    fn function(evaluate: &Evaluate) -> fn(&mut Call<'_, Self>) -> Result<(), Error>;
}

impl Evaluable for f32 {
    fn function(evaluate: &Evaluate) -> fn(&mut Call<'_, f32>) -> Result<(), Error> {
        evaluate.f32
    }
}

impl Evaluable for f64 {
    fn function(evaluate: &Evaluate) -> fn(&mut Call<'_, f64>) -> Result<(), Error> {
        evaluate.f64
    }
}

/// Evaluate an operation: `dialect`, then `given`, override the parameters' defaults; the requested outputs are
/// filled. Where an error is returned, what the buffers hold is unspecified.
pub fn evaluate<R: Evaluable>(
    operation: &'static Operation,
    dialect: Option<&str>,
    given: &[Given<'_>],
    inputs: &[Input<'_, R>],
    outputs: &mut [Output<'_, R>],
) -> Result<(), Error> {
    checked(operation, dialect, given, inputs, outputs, R::function(&operation.evaluate))
}

/// [`evaluate`] with the passes of the operation called by an engine, where it consists of such.
pub fn evaluate_by<R: Evaluable>(
    engine: impl Engine,
    operation: &'static Operation,
    dialect: Option<&str>,
    given: &[Given<'_>],
    inputs: &[Input<'_, R>],
    outputs: &mut [Output<'_, R>],
) -> Result<(), Error> {
    match operation.evaluate.kernel {
        Some(kernel) => checked(operation, dialect, given, inputs, outputs, |call| kernel.evaluate(engine, call)),
        None => evaluate(operation, dialect, given, inputs, outputs),
    }
}

fn checked<R: Real>(
    operation: &'static Operation,
    dialect: Option<&str>,
    given: &[Given<'_>],
    inputs: &[Input<'_, R>],
    outputs: &mut [Output<'_, R>],
    run: impl FnOnce(&mut Call<'_, R>) -> Result<(), Error>,
) -> Result<(), Error> {
    let params = Params::resolve(operation, dialect, given)?;
    for (position, input) in inputs.iter().enumerate() {
        let spec = operation.input(input.name).ok_or(Error::UnknownArgument { position })?;
        let right = match spec.domain {
            Domain::Mask | Domain::Done => (matches!(input.data, Data::Mask(_)), "a mask"),
            Domain::Group | Domain::Index(_) | Domain::Count => (matches!(input.data, Data::Index(_)), "whole numbers"),
            _ => (matches!(input.data, Data::Real(_)), "real numbers"),
        };
        if !right.0 {
            return Err(Error::WrongKind { argument: spec.name, expected: right.1 });
        }
    }
    for spec in operation.inputs {
        if !spec.optional && !inputs.iter().any(|input| input.name == spec.name) {
            return Err(Error::MissingInput { argument: spec.name });
        }
    }
    let dims = resolve_dims(operation, &params, inputs)?;
    let mut requested: [Requested<'_, R>; MAX_OUTPUTS] = core::array::from_fn(|_| Requested { name: "", buffer: None });
    for (position, output) in outputs.iter_mut().enumerate() {
        let spec = operation.output(output.name).ok_or(Error::UnknownArgument { position })?;
        let expected = dims.count(spec.shape).ok_or(Error::ShapeMismatch { argument: spec.name })?;
        if output.data.len() != expected {
            return Err(Error::LengthMismatch { argument: spec.name, expected, got: output.data.len() });
        }
        let slot = requested.get_mut(position).ok_or(Error::UnknownArgument { position })?;
        *slot = Requested { name: spec.name, buffer: Some(&mut *output.data) };
    }
    run(&mut Call { operation, params, dims, inputs, requested })
}

/// The most outputs an operation may have.
pub const MAX_OUTPUTS: usize = 32;

#[derive(Debug)]
struct Requested<'c, R> {
    name: &'static str,
    buffer: Option<&'c mut [R]>,
}

/// What an operation's function sees: checked inputs, complete parameters, requested outputs.
#[derive(Debug)]
pub struct Call<'c, R> {
    operation: &'static Operation,
    params: Params,
    dims: Dims,
    inputs: &'c [Input<'c, R>],
    requested: [Requested<'c, R>; MAX_OUTPUTS],
}

impl<R: Real> Call<'static, R> {
    /// A call that has parameters only.
    pub(crate) fn of_params(operation: &'static Operation, params: Params) -> Result<Self, Error> {
        let dims = resolve_dims::<R>(operation, &params, &[])?;
        let requested = core::array::from_fn(|_| Requested { name: "", buffer: None });
        Ok(Call { operation, params, dims, inputs: &[], requested })
    }
}

impl<'c, R: Real> Call<'c, R> {
    /// The operation being evaluated.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// The size of a named dimension; 0 where no input has it.
    pub fn dim(&self, name: &str) -> usize {
        self.dims.get(name).unwrap_or(0)
    }

    /// The shape of the batch of tokens, dimensions B and T.
    pub fn tokens(&self) -> TokenShape {
        TokenShape { rows: self.dim("B"), columns: self.dim("T") }
    }

    fn find(&self, name: &str) -> Option<&'c Input<'c, R>> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Whether an input was given.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The rank of an input as it was given; 0 where it was not.
    pub fn rank(&self, name: &str) -> usize {
        self.find(name).map_or(0, |input| input.shape.len())
    }

    /// An optional input's numbers, not checked for NaN: for values that stand under a mask.
    pub fn optional_real(&self, name: &'static str) -> Option<&'c [R]> {
        match self.find(name)?.data {
            Data::Real(values) => Some(values),
            _ => None,
        }
    }

    /// An input's numbers, not checked for NaN: for values that stand under a mask.
    pub fn real(&self, name: &'static str) -> Result<&'c [R], Error> {
        self.optional_real(name).ok_or(Error::MissingInput { argument: name })
    }

    /// An input's numbers, all of them finite.
    pub fn finite(&self, name: &'static str) -> Result<&'c [R], Error> {
        let values = self.real(name)?;
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(Error::NonFinite { argument: name, index }),
            None => Ok(values),
        }
    }

    /// An optional input's numbers, all of them finite.
    pub fn optional_finite(&self, name: &'static str) -> Result<Option<&'c [R]>, Error> {
        if self.has(name) { self.finite(name).map(Some) } else { Ok(None) }
    }

    /// An optional input's bytes.
    pub fn optional_bytes(&self, name: &'static str) -> Option<&'c [u8]> {
        match self.find(name)?.data {
            Data::Mask(values) => Some(values),
            _ => None,
        }
    }

    /// The buffer of an output that the operation works in.
    pub fn workspace(&mut self, name: &'static str) -> Result<&'c mut [R], Error> {
        self.output(name).ok_or(Error::MissingWorkspace { argument: name })
    }

    /// The input `mask` over the batch of tokens.
    pub fn mask(&self) -> Result<Mask<'c>, Error> {
        Mask::new(self.tokens(), self.optional_bytes("mask"))
    }

    /// An optional input's indices.
    pub fn optional_index(&self, name: &'static str) -> Option<&'c [u32]> {
        match self.find(name)?.data {
            Data::Index(values) => Some(values),
            _ => None,
        }
    }

    /// An input's indices; where they index a dimension, all of them are below its size.
    pub fn index(&self, name: &'static str) -> Result<&'c [u32], Error> {
        let values = self.optional_index(name).ok_or(Error::MissingInput { argument: name })?;
        if let Some(Domain::Index(dimension)) = self.operation.input(name).map(|input| input.domain) {
            let limit = self.dim(dimension);
            if let Some(index) = values.iter().position(|value| *value as usize >= limit) {
                let value = values.get(index).map_or(0.0, |value| f64::from(*value));
                return Err(Error::ElementOutOfRange {
                    argument: name,
                    index,
                    value,
                    legal: "below the size it indexes",
                });
            }
        }
        Ok(values)
    }

    fn param(&self, name: &str) -> Value {
        self.operation.param(name).map_or(Value::None, |(position, _)| self.params.get(position))
    }

    /// A real parameter.
    pub fn number(&self, name: &'static str) -> Result<R, Error> {
        self.optional_number(name).ok_or(Error::MissingInput { argument: name })
    }

    /// A real parameter that may be switched off.
    pub fn optional_number(&self, name: &'static str) -> Option<R> {
        match self.param(name) {
            Value::Number(value) => Some(R::from_f64(value)),
            _ => None,
        }
    }

    /// A whole parameter, not negative.
    pub fn integer(&self, name: &'static str) -> Result<usize, Error> {
        match self.param(name) {
            Value::Integer(value) => usize::try_from(value).map_err(|_| Error::OutOfRange {
                argument: name,
                value: value as f64,
                legal: ">= 0",
            }),
            _ => Err(Error::MissingInput { argument: name }),
        }
    }

    /// A yes-or-no parameter.
    pub fn flag(&self, name: &'static str) -> bool {
        self.param(name) == Value::Flag(true)
    }

    /// A parameter that is one of several names.
    pub fn choice<C: Choice>(&self, name: &'static str) -> Result<C, Error> {
        match self.param(name) {
            Value::Name(text) => C::from_name(text).ok_or(Error::UnknownChoice { argument: name }),
            _ => Err(Error::MissingInput { argument: name }),
        }
    }

    /// Take the buffer of an output; `None` where the caller did not ask for it (or it was taken before).
    pub fn output(&mut self, name: &str) -> Option<&'c mut [R]> {
        self.requested.iter_mut().find(|requested| requested.name == name)?.buffer.take()
    }

    /// Write a scalar output, where the caller asked for it.
    pub fn write(&mut self, name: &str, value: R) {
        if let Some([slot]) = self.output(name) {
            *slot = value;
        }
    }
}

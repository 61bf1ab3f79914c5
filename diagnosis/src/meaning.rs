//! A function from a case to value and gradient.

use plumbline_core::Error;
use plumbline_core::spec::{Dims, Given, Input, Operation, Output, OutputSpec, Params, Value, evaluate, resolve_dims};

use crate::vectors::{Case, as_given, resolve};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Converted, shape_of};

/// An operation with the parameters that an implementation means: its dialect, then what it fixes itself.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// The operation.
    pub operation: &'static Operation,
    /// The dialect.
    pub dialect: Option<&'static str>,
    /// Parameters that the implementation fixes.
    pub settings: Vec<(&'static str, Value)>,
}

/// What a meaning gives on one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// The operation's first output.
    pub value: Vec<f64>,
    /// The gradients, in the order in which they were asked for; each as long as its input.
    pub gradients: Vec<Vec<f64>>,
    /// How far the gradients may be off because they were taken by differences; 0 for analytic ones.
    pub uncertainty: f64,
}

impl Numbers {
    /// Every number: the value, then the gradients.
    pub fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.value.iter().chain(self.gradients.iter().flatten()).copied()
    }
}

/// A gradient that the implementation was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trainable {
    /// The output that holds the gradient.
    pub output: &'static str,
    /// The input that it belongs to.
    pub input: &'static str,
}

impl Meaning {
    /// Complete parameters on a case.
    pub fn parameters(&self, case: &Case) -> Result<Vec<Value>, Error> {
        resolve(self.operation, self.dialect, &[&self.settings, &case.overrides])
    }

    /// Whether the operation accepts a case, with finite numbers.
    pub fn accepts(&self, case: &Case) -> bool {
        self.parameters(case)
            .and_then(|params| {
                let names = self.outputs_for(&params, case, true);
                outputs(self.operation, &params, &case.inputs, &names)
            })
            .is_ok_and(|all| all.iter().flatten().all(|number| number.is_finite()))
    }

    /// The outputs that the operation has for a case: the gradients by inputs that are given (where they are wanted), and
    /// the values whose dimensions the inputs fix.
    pub fn outputs_for(&self, params: &[Value], case: &Case, gradients: bool) -> Vec<&'static str> {
        let is_there = |output: &&OutputSpec| {
            let is_wanted = output.gradient_of.is_none_or(|input| gradients && case.input(input).is_some());
            is_wanted && output_shape(self.operation, params, &case.inputs, output.name).is_some()
        };
        self.operation.outputs.iter().filter(is_there).map(|output| output.name).collect()
    }

    /// The gradients that the operation has for a case's inputs.
    pub fn trainables(&self, case: &Case) -> Vec<Trainable> {
        let outputs = self.operation.outputs.iter();
        outputs
            .filter_map(|output| Some(Trainable { output: output.name, input: output.gradient_of? }))
            .filter(|trainable| case.input(trainable.input).is_some())
            .collect()
    }
}

/// Evaluate an operation with complete parameters: the outputs of the given names.
///
/// The search evaluates some hundred thousand points, so this goes to the core directly, without names to look up.
pub fn outputs(
    operation: &'static Operation,
    params: &[Value],
    inputs: &[(&'static str, Tensor)],
    names: &[&'static str],
) -> Result<Vec<Vec<f64>>, Error> {
    with_call(operation, params, inputs, |given, borrowed, dims| {
        let works_in = operation.outputs.iter().filter(|output| output.workspace && dims.count(output.shape).is_some());
        let mut provided = names.to_vec();
        provided.extend(works_in.map(|output| output.name).filter(|name| !names.contains(name)));
        let mut buffers: Vec<Vec<f64>> = Vec::with_capacity(provided.len());
        for name in &provided {
            let count = operation.output(name).and_then(|output| dims.count(output.shape));
            buffers.push(vec![0.0; count.ok_or(Error::ShapeMismatch { argument: name })?]);
        }
        let mut requested: Vec<Output<'_, f64>> =
            provided.iter().zip(&mut buffers).map(|(name, data)| Output { name, data }).collect();
        evaluate(operation, None, given, borrowed, &mut requested)?;
        buffers.truncate(names.len());
        Ok(buffers)
    })
}

/// The shape of an output; `None` where the operation has no such output or these inputs do not fix its dimensions.
pub fn output_shape(
    operation: &'static Operation,
    params: &[Value],
    inputs: &[(&'static str, Tensor)],
    name: &str,
) -> Option<Vec<usize>> {
    let output = operation.output(name)?;
    let shape = with_call(operation, params, inputs, |_, _, dims| Ok(shape_of(dims, output.shape)));
    shape.ok().flatten()
}

/// Complete parameters as the core takes them. Names are looked up one by one: only those that say something.
pub(crate) fn given_of<'a>(operation: &Operation, params: &'a [Value]) -> Vec<Given<'a>> {
    operation
        .params
        .iter()
        .zip(params)
        .filter(|(param, value)| operation.default_of(param) != **value)
        .map(|(param, value)| Given { name: param.name, value: as_given(*value) })
        .collect()
}

/// The call's parts as the core takes them.
fn with_call<T>(
    operation: &'static Operation,
    params: &[Value],
    inputs: &[(&'static str, Tensor)],
    then: impl FnOnce(&[Given<'_>], &[Input<'_, f64>], &Dims) -> Result<T, Error>,
) -> Result<T, Error> {
    let given = given_of(operation, params);
    let mut converted: Vec<Converted<f64>> = Vec::with_capacity(inputs.len());
    for (position, (name, tensor)) in inputs.iter().enumerate() {
        let spec = operation.input(name).ok_or(Error::UnknownArgument { position })?;
        let expected = "numbers of the input's domain";
        converted.push(Converted::new(spec, tensor).map_err(|_| Error::WrongKind { argument: spec.name, expected })?);
    }
    let borrowed: Vec<Input<'_, f64>> = inputs
        .iter()
        .zip(&converted)
        .map(|((name, tensor), converted)| Input { name, shape: &tensor.shape, data: converted.data() })
        .collect();
    let resolved = Params::resolve(operation, None, &given)?;
    let dims = resolve_dims(operation, &resolved, &borrowed)?;
    then(&given, &borrowed, &dims)
}

//! One evaluation, asked for by names.

use std::fmt;

use plumbline_core::catalog;
use plumbline_core::num::{Dtype, Real};
use plumbline_core::spec::{
    Dims, Evaluable, Given, GivenValue, Input, InputSpec, Operation, Output, OutputSpec, ParamKind, Params, Shape,
    Value, resolve_dims,
};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::convert::Converted;
use crate::nearest::nearest;
use crate::tensor::Tensor;

/// A parameter's value, as it stands in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Param {
    /// Switched off: `null`.
    None,
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Name(String),
}

impl From<Value> for Param {
    fn from(value: Value) -> Self {
        match value {
            Value::None => Param::None,
            Value::Number(number) => Param::Number(number),
            Value::Integer(whole) => Param::Number(whole as f64),
            Value::Flag(flag) => Param::Flag(flag),
            Value::Name(name) => Param::Name(name.to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalars;
        impl Visitor<'_> for Scalars {
            type Value = Param;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a number, true, false or a name")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Param, E> {
                Ok(Param::None)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Param, E> {
                Ok(Param::Number(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Param, E> {
                Ok(Param::Number(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Param, E> {
                Ok(Param::Number(value as f64))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Param, E> {
                Ok(Param::Flag(value))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Param, E> {
                Ok(Param::Name(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Scalars)
    }
}

/// Which outputs to compute.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// All that the given inputs determine.
    All,
    /// Those that are no gradients.
    Values,
    /// These.
    Named(&'a [&'a str]),
}

/// One evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operation's identifier.
    pub operation: &'a str,
    /// The dialect; without one, the operation's defaults.
    pub dialect: Option<&'a str>,
    /// The precision to compute in.
    pub dtype: Dtype,
    /// Parameters by name; the others keep their defaults.
    pub params: &'a [(String, Param)],
    /// Inputs by name.
    pub inputs: &'a [(String, Tensor)],
    /// Which outputs.
    pub outputs: Wanted<'a>,
}

/// Outputs by name, in the operation's order.
pub type Outputs = Vec<(String, Tensor)>;

/// The operation of that identifier.
pub fn operation_named(id: &str) -> Result<&'static Operation, Refusal> {
    catalog::find(id)
        .ok_or_else(|| unknown("operation", id, catalog::operations().map(|operation| operation.id), false))
}

/// A checked request in the form that core takes, with the buffers to fill.
#[derive(Debug)]
pub struct Invocation<'a, 'b, R> {
    /// The operation.
    pub operation: &'static Operation,
    /// The dialect.
    pub dialect: Option<&'a str>,
    /// Parameters that override it.
    pub given: &'a [Given<'a>],
    /// Inputs.
    pub inputs: &'a [Input<'a, R>],
    /// Outputs, those that the operation works in among them.
    pub outputs: &'a mut [Output<'b, R>],
}

impl<R: Evaluable> Invocation<'_, '_, R> {
    /// By core.
    pub fn by_core(self) -> Result<(), plumbline_core::Error> {
        plumbline_core::spec::evaluate(self.operation, self.dialect, self.given, self.inputs, self.outputs)
    }
}

/// What computes an [`Invocation`].
pub trait Evaluator {
    /// In single precision.
    fn single(&self, invocation: Invocation<'_, '_, f32>) -> Result<(), plumbline_core::Error>;
    /// In double precision.
    fn double(&self, invocation: Invocation<'_, '_, f64>) -> Result<(), plumbline_core::Error>;
}

/// Evaluate with core.
pub fn evaluate(request: &Request<'_>) -> Result<Outputs, Refusal> {
    match request.dtype {
        Dtype::F32 => evaluate_as::<f32>(request, |invocation| invocation.by_core()),
        Dtype::F64 => evaluate_as::<f64>(request, |invocation| invocation.by_core()),
    }
}

/// Evaluate with something else that takes what core takes.
pub fn evaluate_by(evaluator: &impl Evaluator, request: &Request<'_>) -> Result<Outputs, Refusal> {
    match request.dtype {
        Dtype::F32 => evaluate_as::<f32>(request, |invocation| evaluator.single(invocation)),
        Dtype::F64 => evaluate_as::<f64>(request, |invocation| evaluator.double(invocation)),
    }
}

fn evaluate_as<R: Evaluable>(
    request: &Request<'_>,
    by: impl FnOnce(Invocation<'_, '_, R>) -> Result<(), plumbline_core::Error>,
) -> Result<Outputs, Refusal> {
    let operation = operation_named(request.operation)?;
    let mut converted = Vec::with_capacity(request.inputs.len());
    for (name, tensor) in request.inputs {
        converted.push(Converted::<R>::new(input_named(operation, name)?, tensor)?);
    }
    let inputs: Vec<Input<'_, R>> = request
        .inputs
        .iter()
        .zip(&converted)
        .map(|((name, tensor), converted)| Input { name, shape: &tensor.shape, data: converted.data() })
        .collect();
    let filled = arrays_by(operation, request.dialect, request.params, &inputs, request.outputs, by)?;
    Ok(filled
        .into_iter()
        .map(|filled| {
            let values = filled.values.into_iter().map(Real::to_f64).collect();
            (filled.spec.name.to_owned(), Tensor { shape: filled.shape, values })
        })
        .collect())
}

/// An output with its numbers.
#[derive(Clone, Debug)]
pub struct Filled<R> {
    /// Which output of the operation.
    pub spec: &'static OutputSpec,
    /// Its sizes, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub values: Vec<R>,
}

/// Evaluate with core on arrays that already have the kind that each input's domain asks for: nothing is converted or
/// copied. The outputs come in the operation's order.
pub fn evaluate_arrays<R: Evaluable>(
    operation: &'static Operation,
    dialect: Option<&str>,
    params: &[(String, Param)],
    inputs: &[Input<'_, R>],
    outputs: Wanted<'_>,
) -> Result<Vec<Filled<R>>, Refusal> {
    arrays_by(operation, dialect, params, inputs, outputs, |invocation| invocation.by_core())
}

fn arrays_by<R: Evaluable>(
    operation: &'static Operation,
    dialect: Option<&str>,
    params: &[(String, Param)],
    inputs: &[Input<'_, R>],
    outputs: Wanted<'_>,
    by: impl FnOnce(Invocation<'_, '_, R>) -> Result<(), plumbline_core::Error>,
) -> Result<Vec<Filled<R>>, Refusal> {
    let given = given_params(operation, dialect, params)?;
    for (position, input) in inputs.iter().enumerate() {
        input_named(operation, input.name)?;
        if inputs.iter().take(position).any(|other| other.name == input.name) {
            return Err(Refusal::Unknown {
                what: "second input".to_owned(),
                argument: input.name.to_owned(),
                given: input.name.to_owned(),
                nearest: None,
                known: Vec::new(),
            });
        }
    }
    let params = Params::resolve(operation, dialect, &given)?;
    let dims = resolve_dims(operation, &params, inputs).map_err(|error| explain_shape(error, operation, inputs))?;

    let mut filled: Vec<Filled<R>> = Vec::new();
    for spec in wanted(operation, outputs, inputs)? {
        let Some(shape) = shape_of(&dims, spec.shape) else {
            if let Wanted::Named(_) = outputs {
                return Err(Refusal::Undetermined { output: spec.name.to_owned(), shape: spec.shape });
            }
            continue;
        };
        filled.push(Filled { spec, shape, values: zeros(&dims, spec)? });
    }
    let asked = filled.len();
    // A buffer that the operation works in and nobody asked for is provided and not handed on.
    for spec in operation.outputs.iter().filter(|spec| spec.workspace) {
        if !filled.iter().any(|other| other.spec.name == spec.name)
            && let Some(shape) = shape_of(&dims, spec.shape)
        {
            filled.push(Filled { spec, shape, values: zeros(&dims, spec)? });
        }
    }
    let mut buffers: Vec<Output<'_, R>> =
        filled.iter_mut().map(|filled| Output { name: filled.spec.name, data: &mut filled.values }).collect();
    by(Invocation { operation, dialect, given: &given, inputs, outputs: &mut buffers })
        .map_err(|error| explain_shape(error, operation, inputs))?;
    drop(buffers);
    filled.truncate(asked);
    Ok(filled)
}

/// The input of that name.
pub fn input_named(operation: &'static Operation, name: &str) -> Result<&'static InputSpec, Refusal> {
    operation.input(name).ok_or_else(|| {
        unknown(&format!("input of {}", operation.id), name, operation.inputs.iter().map(|input| input.name), true)
    })
}

/// The parameters that a request comes to: defaults, the dialect's settings, then what was given; in the operation's
/// order.
pub fn resolved_params(
    operation: &'static Operation,
    dialect: Option<&str>,
    params: &[(String, Param)],
) -> Result<Vec<(&'static str, Param)>, Refusal> {
    let given = given_params(operation, dialect, params)?;
    let resolved = Params::resolve(operation, dialect, &given)?;
    Ok(operation
        .params
        .iter()
        .enumerate()
        .map(|(position, param)| (param.name, Param::from(resolved.get(position))))
        .collect())
}

/// Check the dialect's and the parameters' names, and hand the parameters over as core takes them.
fn given_params<'a>(
    operation: &'static Operation,
    dialect: Option<&str>,
    params: &'a [(String, Param)],
) -> Result<Vec<Given<'a>>, Refusal> {
    if let Some(dialect) = dialect
        && operation.dialect(dialect).is_none()
    {
        let what = format!("dialect of {}", operation.id);
        return Err(unknown(&what, dialect, operation.dialects.iter().map(|dialect| dialect.name), true));
    }
    params.iter().map(|(name, value)| given(operation, name, value)).collect()
}

fn unknown<'a>(what: &str, given: &str, known: impl Iterator<Item = &'a str>, print_all: bool) -> Refusal {
    let known: Vec<&str> = known.collect();
    Refusal::Unknown {
        what: what.to_owned(),
        argument: given.to_owned(),
        given: given.to_owned(),
        nearest: nearest(given, known.iter().copied()).map(str::to_owned),
        known: if print_all { known.into_iter().map(str::to_owned).collect() } else { Vec::new() },
    }
}

fn given<'a>(operation: &'static Operation, name: &'a str, value: &'a Param) -> Result<Given<'a>, Refusal> {
    let (_, spec) = operation.param(name).ok_or_else(|| {
        unknown(&format!("parameter of {}", operation.id), name, operation.params.iter().map(|param| param.name), true)
    })?;
    if let (ParamKind::Choice { names, .. }, Param::Name(chosen)) = (spec.kind, value)
        && !names.contains(&chosen.as_str())
    {
        let mut refusal = unknown(&format!("choice of `{name}`"), chosen, names.iter().copied(), true);
        if let Refusal::Unknown { argument, .. } = &mut refusal {
            name.clone_into(argument);
        }
        return Err(refusal);
    }
    let value = match value {
        Param::None => GivenValue::None,
        Param::Number(number) => GivenValue::Number(*number),
        Param::Flag(flag) => GivenValue::Flag(*flag),
        Param::Name(name) => GivenValue::Name(name),
    };
    Ok(Given { name, value })
}

/// The outputs to allocate, each once. A gradient by an input that was not given is not among "all".
fn wanted<R>(
    operation: &'static Operation,
    wanted: Wanted<'_>,
    inputs: &[Input<'_, R>],
) -> Result<Vec<&'static OutputSpec>, Refusal> {
    match wanted {
        Wanted::All => Ok(operation
            .outputs
            .iter()
            .filter(|spec| spec.gradient_of.is_none_or(|input| inputs.iter().any(|given| given.name == input)))
            .collect()),
        Wanted::Values => Ok(operation.outputs.iter().filter(|spec| spec.gradient_of.is_none()).collect()),
        Wanted::Named(names) => {
            for name in names {
                if operation.output(name).is_none() {
                    let what = format!("output of {}", operation.id);
                    return Err(unknown(&what, name, operation.outputs.iter().map(|output| output.name), true));
                }
            }
            Ok(operation.outputs.iter().filter(|spec| names.contains(&spec.name)).collect())
        }
    }
}

/// The sizes of a shape; `None` while one of its dimensions is not known.
pub fn shape_of(dims: &Dims, shape: Shape) -> Option<Vec<usize>> {
    shape.iter().map(|name| dims.get(name)).collect()
}

fn zeros<R: Real>(dims: &Dims, spec: &OutputSpec) -> Result<Vec<R>, Refusal> {
    let too_large = || Refusal::TooLarge { output: spec.name.to_owned() };
    let count = dims.count(spec.shape).ok_or_else(too_large)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(count).map_err(|_| too_large())?;
    buffer.resize(count, R::zero());
    Ok(buffer)
}

/// Add to core's complaint about a shape what was given and what would be right.
fn explain_shape<R>(error: plumbline_core::Error, operation: &'static Operation, inputs: &[Input<'_, R>]) -> Refusal {
    let plumbline_core::Error::ShapeMismatch { argument } = error else { return Refusal::Core(error) };
    let Some(spec) = operation.input(argument) else { return Refusal::Core(error) };
    let Some(at_fault) = inputs.iter().find(|input| input.name == argument) else { return Refusal::Core(error) };
    let mut sizes: Vec<(String, usize)> = Vec::new();
    for earlier in operation.inputs.iter().take_while(|earlier| earlier.name != argument) {
        let Some(given) = inputs.iter().find(|input| input.name == earlier.name) else { continue };
        for shape in earlier.shapes.iter().filter(|shape| shape.len() == given.shape.len()) {
            for (name, size) in shape.iter().zip(given.shape) {
                let relevant = spec.shapes.iter().any(|accepted| accepted.contains(name));
                if relevant && !sizes.iter().any(|(known, _)| known == name) {
                    sizes.push(((*name).to_owned(), *size));
                }
            }
        }
    }
    Refusal::Shape { argument: argument.to_owned(), given: at_fault.shape.to_vec(), accepted: spec.shapes, sizes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], values: &[f64]) -> Tensor {
        Tensor { shape: shape.to_vec(), values: values.to_vec() }
    }

    fn k1(inputs: &[(&str, Tensor)], outputs: Wanted<'_>) -> Result<Outputs, Refusal> {
        let inputs: Vec<(String, Tensor)> =
            inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
        evaluate(&Request {
            operation: "kl.k1",
            dialect: None,
            dtype: Dtype::F32,
            params: &[],
            inputs: &inputs,
            outputs,
        })
    }

    #[test]
    fn outputs_are_allocated_by_the_operations_shapes() {
        let log_prob = tensor(&[2, 2], &[-0.5, -1.0, -1.5, f64::NAN]);
        let reference = tensor(&[2, 2], &[-0.75, -0.5, -1.5, 0.0]);
        let mask = tensor(&[2, 2], &[1.0, 1.0, 1.0, 0.0]);
        let inputs = [("log_prob", log_prob), ("ref_log_prob", reference), ("mask", mask)];
        let outputs = k1(&inputs, Wanted::All).unwrap();
        assert_eq!(outputs[0], ("kl".to_owned(), tensor(&[2, 2], &[0.25, -0.5, 0.0, 0.0])));
        assert_eq!(outputs[1], ("d_log_prob".to_owned(), tensor(&[2, 2], &[1.0, 1.0, 1.0, 0.0])));
        assert_eq!(k1(&inputs, Wanted::Values).unwrap().len(), 1);
        assert_eq!(k1(&inputs, Wanted::Named(&["d_log_prob"])).unwrap()[0].0, "d_log_prob");
    }

    #[test]
    fn refusals_name_the_argument_and_suggest_the_nearest_name() {
        let one = || tensor(&[1, 2], &[-0.5, -1.0]);
        let text = |result: Result<Outputs, Refusal>| result.unwrap_err().to_string();
        assert_eq!(
            text(k1(&[("log_probs", one())], Wanted::All)),
            "no input of kl.k1 is called `log_probs`; did you mean `log_prob`?"
        );
        assert_eq!(text(k1(&[("log_prob", one())], Wanted::All)), "`ref_log_prob` is required but was not given");
        let both = |reference: Tensor, mask: Tensor| {
            k1(&[("log_prob", one()), ("ref_log_prob", reference), ("mask", mask)], Wanted::All)
        };
        assert_eq!(text(both(tensor(&[2], &[0.0, 0.0]), one())), "`mask` at index 0 is -0.5, legal is 0 or 1",);
        let mask = tensor(&[1, 2], &[1.0, 1.0]);
        assert_eq!(
            text(both(tensor(&[2], &[0.0, 0.0]), mask.clone())),
            "`ref_log_prob` has shape [2], accepted is [B, T] with B = 1, T = 2",
        );
        assert_eq!(text(both(tensor(&[1, 2], &[0.0, f64::NAN]), mask)), "`ref_log_prob` at index 1 is not finite");
        // No elements vouch for so many rows; a loop over them would not end.
        let claimed = tensor(&[1 << 40, 0], &[]);
        assert_eq!(
            text(k1(&[("log_prob", claimed.clone()), ("ref_log_prob", claimed)], Wanted::All)),
            "`log_prob` has shape [1099511627776, 0], accepted is [B, T]",
        );
        assert_eq!(
            operation_named("kl.k9").unwrap_err().to_string(),
            "no operation is called `kl.k9`; did you mean `kl.k1`?"
        );
    }
}

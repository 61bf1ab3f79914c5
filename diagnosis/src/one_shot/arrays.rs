//! The batch in the forms that core takes, converted once for all points.

use plumbline_core::Error;
use plumbline_core::num::{Dtype, Real};
use plumbline_core::spec::{
    Data, Domain, Evaluable, Input, InputSpec, Operation, Output, Params, Value, evaluate, resolve_dims,
};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Converted, Refusal, is_real};

use crate::meaning::given_of;

/// One array in one form.
struct Array<R> {
    name: &'static str,
    kind: Kind,
    shape: Vec<usize>,
    numbers: Converted<R>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Real,
    Flags,
    Whole,
}

fn kind(domain: Domain) -> Kind {
    match domain {
        Domain::Mask | Domain::Done => Kind::Flags,
        domain if is_real(domain) => Kind::Real,
        _ => Kind::Whole,
    }
}

/// The batch in one precision.
pub(super) struct Arrays<R>(Vec<Array<R>>);

/// What an operation gives.
pub(super) struct Found {
    /// The main output.
    pub value: Vec<f64>,
    /// The gradients that were asked for.
    pub gradients: Vec<Vec<f64>>,
    /// How large the terms are that the value is a sum of.
    pub scale: f64,
}

impl<R: Evaluable> Arrays<R> {
    /// Convert the inputs for the operations; the first number that has no such form is refused.
    pub fn new(inputs: &[(&'static str, Tensor)], operations: &[&'static Operation]) -> Result<Self, Refusal> {
        let mut arrays: Vec<Array<R>> = Vec::new();
        for operation in operations {
            for (name, tensor) in inputs {
                let Some(spec) = operation.input(name) else { continue };
                let kind = kind(spec.domain);
                if !arrays.iter().any(|array| array.name == *name && array.kind == kind) {
                    let numbers = Converted::new(spec, tensor)?;
                    arrays.push(Array { name, kind, shape: tensor.shape.clone(), numbers });
                }
            }
        }
        Ok(Arrays(arrays))
    }

    fn of(&self, spec: &InputSpec) -> Option<Input<'_, R>> {
        let array = self.0.iter().find(|array| array.name == spec.name && array.kind == kind(spec.domain))?;
        Some(Input { name: spec.name, shape: &array.shape, data: array.numbers.data() })
    }

    /// Evaluate with complete parameters: the main output and the gradients by these inputs.
    pub fn evaluate(&self, operation: &'static Operation, params: &[Value], by: &[&str]) -> Result<Found, Error> {
        let inputs: Vec<Input<'_, R>> = operation.inputs.iter().filter_map(|spec| self.of(spec)).collect();
        let given = given_of(operation, params);
        let dims = resolve_dims(operation, &Params::resolve(operation, None, &given)?, &inputs)?;
        let missing = Error::MissingInput { argument: "output" };
        let main = operation.outputs.first().ok_or(missing)?;
        let is_scalar = main.shape.is_empty();
        let mut asked = vec![main];
        for input in by {
            asked.push(operation.outputs.iter().find(|output| output.gradient_of == Some(input)).ok_or(missing)?);
        }
        // The size of the terms is read off a gradient: of a mean of −A·ratio, say, it is the mean of |A|·ratio.
        let sizes = operation
            .outputs
            .iter()
            .find(|output| output.gradient_of.is_some_and(|input| inputs.iter().any(|given| given.name == input)));
        if let Some(sizes) = sizes.filter(|sizes| is_scalar && !asked.iter().any(|output| output.name == sizes.name)) {
            asked.push(sizes);
        }
        let works_in = operation.outputs.iter().filter(|output| output.workspace && dims.count(output.shape).is_some());
        for output in works_in {
            if !asked.iter().any(|other| other.name == output.name) {
                asked.push(output);
            }
        }
        let mut buffers: Vec<Vec<R>> = Vec::with_capacity(asked.len());
        for output in &asked {
            let count = dims.count(output.shape).ok_or(Error::ShapeMismatch { argument: output.name })?;
            buffers.push(vec![R::zero(); count]);
        }
        let mut outputs: Vec<Output<'_, R>> =
            asked.iter().zip(&mut buffers).map(|(output, data)| Output { name: output.name, data }).collect();
        evaluate(operation, None, &given, &inputs, &mut outputs)?;
        let scale = match sizes.and_then(|sizes| asked.iter().position(|output| output.name == sizes.name)) {
            Some(position) if is_scalar => sizes_of(&buffers[position]).sum(),
            _ => sizes_of(&buffers[0]).fold(0.0, f64::max),
        };
        let mut all = buffers.into_iter().map(|buffer| buffer.into_iter().map(Real::to_f64).collect());
        Ok(Found { value: all.next().unwrap_or_default(), gradients: all.take(by.len()).collect(), scale })
    }
}

fn sizes_of<R: Real>(numbers: &[R]) -> impl Iterator<Item = f64> {
    numbers.iter().map(|number| Real::to_f64(*number).abs()).filter(|size| size.is_finite())
}

/// The batch in both precisions: the single one to look, the double one to be sure.
pub(super) struct Both {
    pub single: Arrays<f32>,
    pub double: Arrays<f64>,
}

impl Both {
    pub fn new(inputs: &[(&'static str, Tensor)], operations: &[&'static Operation]) -> Result<Self, Refusal> {
        Ok(Both { single: Arrays::new(inputs, operations)?, double: Arrays::new(inputs, operations)? })
    }

    pub fn evaluate(
        &self,
        dtype: Dtype,
        operation: &'static Operation,
        params: &[Value],
        by: &[&str],
    ) -> Result<Found, Error> {
        match dtype {
            Dtype::F32 => self.single.evaluate(operation, params, by),
            Dtype::F64 => self.double.evaluate(operation, params, by),
        }
    }

    /// Whether a slot that the mask leaves out holds something that is no finite number; its input and index.
    pub fn non_finite_under_mask(&self) -> Option<(&'static str, usize)> {
        let mask = self.double.0.iter().find(|array| array.name == "mask")?;
        let Data::Mask(kept) = mask.numbers.data() else { return None };
        self.double.0.iter().find_map(|array| {
            let Data::Real(numbers) = array.numbers.data() else { return None };
            if array.shape != mask.shape {
                return None;
            }
            let index = numbers.iter().zip(kept).position(|(number, kept)| *kept == 0 && !number.is_finite())?;
            Some((array.name, index))
        })
    }
}

//! One evaluation, put together and read out piece by piece.

use plumbline_core::num::{Dtype, Real};
use plumbline_core::spec::{Domain, Evaluable, Input, InputSpec, Operation};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Converted, Filled, Param, Wanted, evaluate_arrays, input_named, is_real, operation_named};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::Refused;

/// One evaluation: the operation with its parameters and arrays and, after [`Call::run`], its outputs.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Call {
    operation: &'static Operation,
    dtype: Dtype,
    dialect: Option<String>,
    params: Vec<(String, Param)>,
    inputs: Vec<Array>,
    outputs: Option<Vec<String>>,
    filled: Vec<Output>,
}

/// An input as it came over the border.
#[derive(Debug)]
struct Array {
    name: String,
    shape: Vec<usize>,
    numbers: Numbers,
}

/// The numbers of an input, in the type that the caller has them in.
#[derive(Debug)]
enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U8(Vec<u8>),
    U32(Vec<u32>),
}

/// An output on its way back.
#[derive(Debug)]
struct Output {
    name: &'static str,
    shape: Vec<usize>,
    numbers: Numbers,
}

#[wasm_bindgen]
impl Call {
    /// Begin a call of the operation of that identifier.
    #[wasm_bindgen(constructor)]
    pub fn new(operation: &str, single_precision: bool) -> Result<Call, Refused> {
        Ok(Call {
            operation: operation_named(operation)?,
            dtype: if single_precision { Dtype::F32 } else { Dtype::F64 },
            dialect: None,
            params: Vec::new(),
            inputs: Vec::new(),
            outputs: None,
            filled: Vec::new(),
        })
    }

    /// Choose a dialect.
    pub fn dialect(&mut self, name: String) {
        self.dialect = Some(name);
    }

    /// Set a parameter to a number.
    pub fn number(&mut self, name: String, value: f64) {
        self.params.push((name, Param::Number(value)));
    }

    /// Set a parameter to yes or no.
    pub fn flag(&mut self, name: String, value: bool) {
        self.params.push((name, Param::Flag(value)));
    }

    /// Set a parameter to one of its names.
    pub fn choice(&mut self, name: String, value: String) {
        self.params.push((name, Param::Name(value)));
    }

    /// Switch a parameter off.
    pub fn off(&mut self, name: String) {
        self.params.push((name, Param::None));
    }

    /// Give an input in single precision.
    pub fn float32s(&mut self, name: String, shape: Vec<usize>, numbers: Vec<f32>) {
        self.input(name, shape, Numbers::F32(numbers));
    }

    /// Give an input in double precision.
    pub fn float64s(&mut self, name: String, shape: Vec<usize>, numbers: Vec<f64>) {
        self.input(name, shape, Numbers::F64(numbers));
    }

    /// Give an input as bytes.
    pub fn bytes(&mut self, name: String, shape: Vec<usize>, numbers: Vec<u8>) {
        self.input(name, shape, Numbers::U8(numbers));
    }

    /// Give an input as whole numbers.
    pub fn indices(&mut self, name: String, shape: Vec<usize>, numbers: Vec<u32>) {
        self.input(name, shape, Numbers::U32(numbers));
    }

    /// Compute only the outputs that are asked for, instead of all that the inputs determine.
    #[wasm_bindgen(js_name = wantNamed)]
    pub fn want_named(&mut self) {
        self.outputs = Some(Vec::new());
    }

    /// Ask for an output.
    pub fn want(&mut self, name: String) {
        self.outputs.get_or_insert_default().push(name);
    }

    /// Evaluate. The inputs are gone afterwards.
    pub fn run(&mut self) -> Result<(), Refused> {
        self.filled = match self.dtype {
            Dtype::F32 => self.evaluate::<f32>()?.into_iter().map(|filled| output(filled, Numbers::F32)).collect(),
            Dtype::F64 => self.evaluate::<f64>()?.into_iter().map(|filled| output(filled, Numbers::F64)).collect(),
        };
        Ok(())
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        self.filled.len()
    }

    /// The name of an output.
    pub fn name(&self, position: usize) -> String {
        self.filled.get(position).map(|output| output.name.to_owned()).unwrap_or_default()
    }

    /// The shape of an output.
    pub fn shape(&self, position: usize) -> Vec<usize> {
        self.filled.get(position).map(|output| output.shape.clone()).unwrap_or_default()
    }

    /// Take an output's numbers in single precision; none where they are in double precision or gone.
    #[wasm_bindgen(js_name = takeFloat32s)]
    pub fn take_float32s(&mut self, position: usize) -> Vec<f32> {
        match self.filled.get_mut(position).map(|output| &mut output.numbers) {
            Some(Numbers::F32(numbers)) => std::mem::take(numbers),
            _ => Vec::new(),
        }
    }

    /// Take an output's numbers in double precision; none where they are in single precision or gone.
    #[wasm_bindgen(js_name = takeFloat64s)]
    pub fn take_float64s(&mut self, position: usize) -> Vec<f64> {
        match self.filled.get_mut(position).map(|output| &mut output.numbers) {
            Some(Numbers::F64(numbers)) => std::mem::take(numbers),
            _ => Vec::new(),
        }
    }
}

impl Call {
    fn input(&mut self, name: String, shape: Vec<usize>, numbers: Numbers) {
        self.inputs.push(Array { name, shape, numbers });
    }

    fn evaluate<R: Evaluable + Held>(&mut self) -> Result<Vec<Filled<R>>, Refused> {
        let arrays = std::mem::take(&mut self.inputs);
        let mut converted = Vec::with_capacity(arrays.len());
        for array in arrays {
            let spec = input_named(self.operation, &array.name)?;
            let data = convert::<R>(spec, &array.shape, array.numbers)?;
            converted.push((array.name, array.shape, data));
        }
        let inputs: Vec<Input<'_, R>> =
            converted.iter().map(|(name, shape, converted)| Input { name, shape, data: converted.data() }).collect();
        let names: Option<Vec<&str>> = self.outputs.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let wanted = match &names {
            Some(names) => Wanted::Named(names),
            None => Wanted::All,
        };
        Ok(evaluate_arrays(self.operation, self.dialect.as_deref(), &self.params, &inputs, wanted)?)
    }
}

/// The numbers in the kind that the input's domain asks for. They are moved where they are of that kind already.
fn convert<R: Held>(spec: &InputSpec, shape: &[usize], numbers: Numbers) -> Result<Converted<R>, Refused> {
    if is_real(spec.domain) {
        return Ok(Converted::Real(match R::held(numbers) {
            Ok(held) => held,
            Err(numbers) => numbers.into_f64().into_iter().map(R::from_f64).collect(),
        }));
    }
    let is_index = matches!(spec.domain, Domain::Group | Domain::Index(_) | Domain::Count);
    match numbers {
        Numbers::U8(bytes) if !is_index && bytes.iter().all(|byte| *byte <= 1) => Ok(Converted::Mask(bytes)),
        Numbers::U32(indices) if is_index => Ok(Converted::Index(indices)),
        other => Ok(Converted::new(spec, &Tensor { shape: shape.to_vec(), values: other.into_f64() })?),
    }
}

fn output<R>(filled: Filled<R>, numbers: fn(Vec<R>) -> Numbers) -> Output {
    Output { name: filled.spec.name, shape: filled.shape, numbers: numbers(filled.values) }
}

impl Numbers {
    fn into_f64(self) -> Vec<f64> {
        match self {
            Numbers::F32(numbers) => numbers.into_iter().map(f64::from).collect(),
            Numbers::F64(numbers) => numbers,
            Numbers::U8(numbers) => numbers.into_iter().map(f64::from).collect(),
            Numbers::U32(numbers) => numbers.into_iter().map(f64::from).collect(),
        }
    }
}

/// A number type that an input may already be held in.
trait Held: Real {
    /// The numbers as they are; back where they are of another type.
    fn held(numbers: Numbers) -> Result<Vec<Self>, Numbers>;
}

impl Held for f32 {
    fn held(numbers: Numbers) -> Result<Vec<f32>, Numbers> {
        match numbers {
            Numbers::F32(held) => Ok(held),
            other => Err(other),
        }
    }
}

impl Held for f64 {
    fn held(numbers: Numbers) -> Result<Vec<f64>, Numbers> {
        match numbers {
            Numbers::F64(held) => Ok(held),
            other => Err(other),
        }
    }
}

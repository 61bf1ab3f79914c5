//! Evaluation of an operation from owned values, for tests.

use std::vec;
use std::vec::Vec;

use super::{Data, Evaluable, Given, GivenValue, Input, Operation, Output, Params, evaluate, resolve_dims};
use crate::Error;

#[derive(Clone, Debug)]
enum Owned {
    Real(Vec<f64>),
    Mask(Vec<u8>),
    Index(Vec<u32>),
}

/// One call of an operation, put together step by step.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    operation: &'static Operation,
    dialect: Option<&'static str>,
    params: Vec<Given<'static>>,
    inputs: Vec<(&'static str, Vec<usize>, Owned)>,
}

impl Case {
    /// The operation of that identifier among a file's entries.
    pub(crate) fn new(specs: &'static [Operation], id: &str) -> Self {
        let operation = specs.iter().find(|operation| operation.id == id).unwrap();
        Case { operation, dialect: None, params: vec![], inputs: vec![] }
    }
    fn input(mut self, name: &'static str, shape: &[usize], data: Owned) -> Self {
        self.inputs.retain(|(other, ..)| *other != name);
        self.inputs.push((name, shape.to_vec(), data));
        self
    }
    pub(crate) fn real(self, name: &'static str, shape: &[usize], values: &[f64]) -> Self {
        self.input(name, shape, Owned::Real(values.to_vec()))
    }
    pub(crate) fn mask(self, name: &'static str, shape: &[usize], values: &[u8]) -> Self {
        self.input(name, shape, Owned::Mask(values.to_vec()))
    }
    pub(crate) fn index(self, name: &'static str, shape: &[usize], values: &[u32]) -> Self {
        self.input(name, shape, Owned::Index(values.to_vec()))
    }
    fn param(mut self, name: &'static str, value: GivenValue<'static>) -> Self {
        self.params.push(Given { name, value });
        self
    }
    pub(crate) fn number(self, name: &'static str, value: f64) -> Self {
        self.param(name, GivenValue::Number(value))
    }
    pub(crate) fn choice(self, name: &'static str, value: &'static str) -> Self {
        self.param(name, GivenValue::Name(value))
    }
    pub(crate) fn dialect(mut self, name: &'static str) -> Self {
        self.dialect = Some(name);
        self
    }
    /// One output in double precision.
    pub(crate) fn get(&self, output: &str) -> Result<Vec<f64>, Error> {
        self.get_as::<f64>(output, |value| value)
    }
    /// One output in single precision.
    pub(crate) fn get_f32(&self, output: &str) -> Result<Vec<f32>, Error> {
        self.get_as::<f32>(output, |value| value as f32)
    }
    fn get_as<R: Evaluable>(&self, output: &str, convert: impl Fn(f64) -> R) -> Result<Vec<R>, Error> {
        let reals: Vec<Vec<R>> = self
            .inputs
            .iter()
            .map(|(_, _, data)| match data {
                Owned::Real(values) => values.iter().map(|value| convert(*value)).collect(),
                _ => vec![],
            })
            .collect();
        let inputs: Vec<Input<'_, R>> = self
            .inputs
            .iter()
            .zip(&reals)
            .map(|((name, shape, data), real)| Input {
                name,
                shape,
                data: match data {
                    Owned::Real(_) => Data::Real(real),
                    Owned::Mask(values) => Data::Mask(values),
                    Owned::Index(values) => Data::Index(values),
                },
            })
            .collect();
        let params = Params::resolve(self.operation, self.dialect, &self.params)?;
        let dims = resolve_dims(self.operation, &params, &inputs)?;
        let spec = self.operation.output(output).unwrap();
        let mut buffer = vec![R::nan(); dims.count(spec.shape).unwrap()];
        evaluate(
            self.operation,
            self.dialect,
            &self.params,
            &inputs,
            &mut [Output { name: spec.name, data: &mut buffer }],
        )?;
        Ok(buffer)
    }
    /// Assert that a gradient equals central differences of the first output's sum, to a relative 1e-6 of the largest.
    pub(crate) fn check_gradient(&self, input: &str) {
        let spec = self.operation.outputs.iter().find(|spec| spec.gradient_of == Some(input)).unwrap();
        let gradient = self.get(spec.name).unwrap();
        let value = self.operation.outputs[0].name;
        for slot in 0..gradient.len() {
            let shifted = |step: f64| {
                let mut case = self.clone();
                for (name, _, data) in &mut case.inputs {
                    if let Owned::Real(values) = data
                        && *name == input
                    {
                        values[slot] += step;
                    }
                }
                case.get(value).unwrap().iter().sum::<f64>()
            };
            let numeric = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
            assert!(
                (numeric - gradient[slot]).abs() <= 2e-7 * (1.0 + numeric.abs()),
                "{} at {slot}: {} but differences give {numeric}",
                spec.name,
                gradient[slot]
            );
        }
    }
}

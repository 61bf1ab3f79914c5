//! The test-only interface: an implementation as a function from a case to numbers, run on the cases in place of an
//! adapter.

use plumbline_core::Error;
use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Operation, Value};
use plumbline_diagnosis::vectors::{Case, Purpose, Taken, cases_for};
use plumbline_diagnosis::{Diagnosis, Meaning, Observation, Observed, Tolerance, diagnose, output_shape, outputs};
use plumbline_evaluate::tensor::{Tensor, round_to};

use super::scalar::{Scalar, lift};

/// What an implementation answers: outputs by name, or an error of its own in words.
pub type Answer = Result<Vec<(&'static str, Vec<f64>)>, String>;

/// An implementation under test.
pub struct Subject {
    /// The operation that it is meant to compute.
    pub operation: &'static str,
    /// The dialect that it declares.
    pub dialect: Option<&'static str>,
    /// The optional inputs and the parameters that it takes; empty: whatever inputs the operation has.
    pub takes: &'static [&'static str],
    /// Parameters that it fixes.
    pub settings: &'static [(&'static str, Value)],
    /// The number type in which it computes.
    pub dtype: Dtype,
    /// What it computes.
    pub compute: fn(&Given<'_>) -> Answer,
}

/// What it is given on one case.
pub struct Given<'a> {
    /// The operation with its parameters.
    pub meaning: &'a Meaning,
    /// The case.
    pub case: &'a Case,
    params: Vec<Value>,
}

impl Given<'_> {
    /// A parameter; `None` where it is off.
    pub fn option(&self, name: &str) -> Option<f64> {
        let (position, _) = self.meaning.operation.param(name)?;
        match self.params[position] {
            Value::Number(number) => Some(number),
            Value::Integer(number) => Some(number as f64),
            _ => None,
        }
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> f64 {
        self.option(name).unwrap_or(f64::NAN)
    }

    /// Whether an input is given.
    pub fn has(&self, name: &str) -> bool {
        self.case.input(name).is_some()
    }

    /// The numbers of an input; none where it is not given.
    pub fn values(&self, name: &str) -> Vec<f64> {
        self.case.input(name).map(|tensor| tensor.values.clone()).unwrap_or_default()
    }

    /// The sizes of an input.
    pub fn shape(&self, name: &str) -> Vec<usize> {
        self.case.input(name).map(|tensor| tensor.shape.clone()).unwrap_or_default()
    }

    /// Rows and columns of the batch.
    pub fn size(&self) -> (usize, usize) {
        self.case.rows_and_columns().unwrap_or((self.case.inputs[0].1.values.len(), 1))
    }

    /// Which slots the mask keeps, row by row.
    pub fn kept(&self) -> Vec<Vec<bool>> {
        let (rows, columns) = self.size();
        match self.case.input("mask") {
            Some(mask) => {
                mask.values.chunks(columns).map(|row| row.iter().map(|kept| *kept != 0.0).collect()).collect()
            }
            None => vec![vec![true; columns]; rows],
        }
    }

    /// The trainable inputs' elements as variables, each input's in its own order; the others as constants.
    pub fn variables(&self, name: &str) -> Vec<Scalar> {
        let trainables = self.meaning.trainables(self.case);
        let count: usize = trainables.iter().map(|trainable| self.values(trainable.input).len()).sum();
        let mut start = 0;
        for trainable in &trainables {
            let values = self.values(trainable.input);
            if trainable.input == name {
                let variable = |(index, value): (usize, &f64)| Scalar::variable(*value, start + index, count);
                return values.iter().enumerate().map(variable).collect();
            }
            start += values.len();
        }
        self.values(name).into_iter().map(lift).collect()
    }

    /// The value's elements and the derivatives of their sum, under the operation's names.
    pub fn answer(&self, value: Vec<Scalar>) -> Answer {
        let trainables = self.meaning.trainables(self.case);
        let main = self.meaning.operation.outputs[0].name;
        let mut given = vec![(main, value.iter().map(|number| number.value).collect::<Vec<f64>>())];
        let mut start = 0;
        for trainable in trainables {
            let count = self.values(trainable.input).len();
            let slope = |position: usize| value.iter().filter_map(|number| number.slopes.get(position)).sum();
            given.push((trainable.output, (start..start + count).map(slope).collect()));
            start += count;
        }
        Ok(given)
    }

    /// The core's own computation, to be changed.
    pub fn core(&self) -> Core<'_> {
        Core {
            given: self,
            operation: self.meaning.operation,
            params: self.params.clone(),
            inputs: self.case.inputs.clone(),
        }
    }
}

/// A computation by the core with other parameters or inputs.
#[derive(Clone)]
pub struct Core<'a> {
    given: &'a Given<'a>,
    operation: &'static Operation,
    params: Vec<Value>,
    inputs: Vec<(&'static str, Tensor)>,
}

impl Core<'_> {
    /// With another parameter.
    pub fn set(mut self, name: &str, value: Value) -> Self {
        if let Some((position, _)) = self.operation.param(name) {
            self.params[position] = value;
        }
        self
    }

    /// With another number as a parameter.
    pub fn number(self, name: &str, value: f64) -> Self {
        self.set(name, Value::Number(value))
    }

    /// With another name as a parameter.
    pub fn name(self, name: &str, value: &'static str) -> Self {
        self.set(name, Value::Name(value))
    }

    /// With other numbers as an input.
    pub fn input(mut self, name: &str, values: Vec<f64>) -> Self {
        if let Some((_, tensor)) = self.inputs.iter_mut().find(|(candidate, _)| *candidate == name) {
            tensor.values = values;
        }
        self
    }

    /// With an input's numbers changed one by one.
    pub fn map(self, name: &str, change: impl Fn(usize, f64) -> f64) -> Self {
        let values = self.given.values(name);
        let changed = values.iter().enumerate().map(|(index, value)| change(index, *value)).collect();
        self.input(name, changed)
    }

    /// Without an input.
    pub fn without(mut self, name: &str) -> Self {
        self.inputs.retain(|(candidate, _)| *candidate != name);
        self
    }

    /// Another operation, at its defaults but for the parameters of the same name.
    pub fn operation(mut self, id: &str) -> Self {
        let Some(operation) = catalog::find(id) else { return self };
        let old = self.operation;
        let params = operation.params.iter().map(|param| match old.param(param.name) {
            Some((position, _)) => self.params[position],
            None => operation.default_of(param),
        });
        self.params = params.collect();
        self.operation = operation;
        self.inputs.retain(|(name, _)| operation.input(name).is_some());
        self
    }

    /// The main output and the gradients, under the names of the operation that is meant.
    pub fn run(&self) -> Answer {
        self.run_with(&[])
    }

    /// The same with some other outputs.
    pub fn run_with(&self, others: &[&'static str]) -> Answer {
        let meant = self.given.meaning.operation;
        let mut names = vec![self.operation.outputs[0].name];
        let mut called = vec![meant.outputs[0].name];
        for trainable in self.given.meaning.trainables(self.given.case) {
            let own = self.operation.outputs.iter().find(|output| output.gradient_of == Some(trainable.input));
            if let Some(own) = own {
                names.push(own.name);
                called.push(trainable.output);
            }
        }
        names.extend(others);
        called.extend(others);
        let is_probe = matches!(self.given.case.purpose, Purpose::UnderMask { .. } | Purpose::Edge | Purpose::EmptyRow);
        let all = match outputs(self.operation, &self.params, &self.inputs, &names) {
            Ok(all) => all,
            // A framework does not refuse: junk comes out as it went in, and so does a mean of nothing.
            Err(error) if self.has_unbounded() || is_probe => {
                let shape = |name: &&str| output_shape(self.operation, &self.params, &self.inputs, name);
                let shapes: Option<Vec<Vec<usize>>> = names.iter().map(shape).collect();
                let shapes = shapes.ok_or_else(|| words(error))?;
                shapes.into_iter().map(|shape| vec![f64::NAN; shape.iter().product()]).collect()
            }
            Err(error) => return Err(words(error)),
        };
        Ok(called.into_iter().zip(all).collect())
    }

    fn has_unbounded(&self) -> bool {
        self.inputs.iter().any(|(_, tensor)| tensor.values.iter().any(|value| !value.is_finite()))
    }

    /// The main output alone.
    pub fn value(&self) -> Result<Vec<f64>, String> {
        Ok(self.run()?.swap_remove(0).1)
    }
}

fn words(error: Error) -> String {
    error.to_string()
}

/// Every number of an answer changed.
pub fn each(answer: Answer, change: impl Fn(f64) -> f64) -> Answer {
    Ok(answer?.into_iter().map(|(name, values)| (name, values.into_iter().map(&change).collect())).collect())
}

/// Answers added up, each with a factor.
pub fn combined(parts: &[(f64, Answer)]) -> Answer {
    let mut whole: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for (factor, part) in parts {
        let part = part.as_ref().map_err(Clone::clone)?;
        if whole.is_empty() {
            whole = part.iter().map(|(name, values)| (*name, vec![0.0; values.len()])).collect();
        }
        for ((_, sum), (_, values)) in whole.iter_mut().zip(part) {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    Ok(whole)
}

impl Subject {
    /// What it is meant to compute.
    pub fn meaning(&self) -> Result<Meaning, String> {
        let operation = catalog::find(self.operation).ok_or_else(|| format!("there is no {}", self.operation))?;
        let dialect = match self.dialect {
            None => None,
            Some(name) => Some(operation.dialect(name).ok_or_else(|| format!("no dialect {name}"))?.name),
        };
        Ok(Meaning { operation, dialect, settings: self.settings.to_vec() })
    }

    /// Run it on the discriminating vectors and the seeded random ones, and diagnose what it gave.
    pub fn diagnosis(&self, seed: u64) -> Result<Diagnosis, String> {
        let meaning = self.meaning()?;
        let operation = meaning.operation;
        for name in self.takes {
            if operation.input(name).is_none() && operation.param(name).is_none() {
                return Err(format!("{} has no `{name}`", self.operation));
            }
        }
        let names = (!self.takes.is_empty()).then(|| self.takes.iter().map(|name| (*name).to_owned()).collect());
        let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
        let base = meaning.parameters(&empty).map_err(words)?;
        let accepts = |case: &Case| meaning.accepts(case);
        let cases = cases_for(operation, &base, &Taken { names }, seed, self.dtype, &accepts);
        if cases.is_empty() {
            return Err(format!("{} has no case with these inputs", self.operation));
        }
        let mut seen = Vec::with_capacity(cases.len());
        for case in cases {
            let params = meaning.parameters(&case).map_err(words)?;
            let answer = (self.compute)(&Given { meaning: &meaning, case: &case, params: params.clone() });
            let observed = match answer {
                Err(error) => Observed::Raised(format!("it raised {error}")),
                Ok(given) => {
                    let tensor = |(name, values): (&'static str, Vec<f64>)| {
                        let shape = output_shape(operation, &params, &case.inputs, name).unwrap_or_default();
                        let values = values.into_iter().map(|value| round_to(value, self.dtype)).collect();
                        (name.to_owned(), Tensor { shape, values })
                    };
                    Observed::Outputs(given.into_iter().map(tensor).collect())
                }
            };
            seen.push(Observation { case, observed });
        }
        let tolerance = match self.dtype {
            Dtype::F32 => Tolerance::SINGLE,
            Dtype::F64 => Tolerance::DOUBLE,
        };
        Ok(diagnose(&meaning, meaning.dialect.is_some(), &seen, tolerance))
    }
}

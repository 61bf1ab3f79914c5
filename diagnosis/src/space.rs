//! The points of the space: a meaning with some changes, evaluated by composing the core.

use plumbline_core::Error;
use plumbline_core::catalog;
use plumbline_core::num::Real;
use plumbline_core::spec::{Domain, Operation, Value};

use super::change::{Change, LogRatioEdit, Place, Power};
use super::composed::composed;
use super::edit::{Edit, power};
use super::meaning::{Meaning, Numbers, Trainable, outputs};
use super::parts::in_parts;
use crate::vectors::Case;
use plumbline_evaluate::is_real;
use plumbline_evaluate::tensor::Tensor;

/// Step of the differences by which a total derivative is taken.
const STEP: f64 = 1e-3;

pub(super) type Inputs = Vec<(&'static str, Tensor)>;

/// A meaning with some changes.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    /// What the implementation is meant to compute.
    pub meaning: &'a Meaning,
    /// What is different.
    pub changes: Vec<Change>,
}

impl Point<'_> {
    /// Value and gradients on a case.
    pub fn numbers(&self, case: &Case, trainables: &[Trainable]) -> Result<Numbers, Error> {
        let gradient_of = self.changes.iter().find_map(|change| match change {
            Change::GradientOf(other) => Some(other.as_ref().clone()),
            _ => None,
        });
        if let Some(other) = gradient_of {
            let others = self.changes.iter().filter(|change| !matches!(change, Change::GradientOf(_)));
            let rest = Point { meaning: self.meaning, changes: others.cloned().collect() };
            let value = rest.value(case)?;
            let mut changes = rest.changes;
            changes.push(other);
            let gradients = Point { meaning: self.meaning, changes }.numbers(case, trainables)?;
            return Ok(Numbers { value, ..gradients });
        }
        if self.changes.contains(&Change::NoGradient) {
            let gradients = trainables
                .iter()
                .map(|trainable| vec![0.0; case.input(trainable.input).map_or(0, |tensor| tensor.values.len())])
                .collect();
            return Ok(Numbers { value: self.value(case)?, gradients, uncertainty: 0.0 });
        }
        if let Some(numbers) = composed(self, case, trainables) {
            return numbers;
        }
        if self.needs_total_derivative(trainables) {
            let value = self.value(case)?;
            let gradients =
                trainables.iter().map(|trainable| self.total_derivative(case, trainable)).collect::<Result<_, _>>()?;
            // Differences of numbers of this size lose so much to rounding.
            let size = value.iter().map(|number| number.abs()).filter(|size| size.is_finite()).fold(1.0, f64::max);
            return Ok(Numbers { value, gradients, uncertainty: 4.0 * f64::EPSILON * size / STEP });
        }
        self.analytic(case, trainables)
    }

    /// Whether a change acts on a trainable input, so that the operation's own gradient is not the point's.
    fn needs_total_derivative(&self, trainables: &[Trainable]) -> bool {
        let inputs: Vec<&str> = trainables.iter().map(|trainable| trainable.input).collect();
        self.needs_differences(&inputs)
    }

    /// The same for the gradients by these inputs.
    pub(crate) fn needs_differences(&self, trainables: &[&str]) -> bool {
        let trains = |name: &str| trainables.contains(&name);
        self.changes.iter().any(|change| match change {
            Change::Unstopped => true,
            Change::ExchangeInputs(first, second) | Change::Reflect(first, second) => trains(first) || trains(second),
            Change::Input(name, _) | Change::Mirror(name) | Change::ZeroWhere(name, _) => trains(name),
            Change::Copy { to, .. } => trains(to),
            Change::LogRatio(_) => trains("log_prob"),
            Change::MaskedAsZeros => !trainables.is_empty(),
            _ => false,
        })
    }

    fn value(&self, case: &Case) -> Result<Vec<f64>, Error> {
        match composed(self, case, &[]) {
            Some(numbers) => Ok(numbers?.value),
            None => Ok(self.analytic(case, &[])?.value),
        }
    }

    /// Central differences of fourth order of the sum of the value, at every unmasked element of the input; NaN where a
    /// kink lies so near that no step tells.
    ///
    /// With step h the error is h⁴/30 of the fifth derivative, 1e-13 of it here, and about 1e-16/h of the value.
    fn total_derivative(&self, case: &Case, trainable: &Trainable) -> Result<Vec<f64>, Error> {
        let missing = Error::MissingInput { argument: trainable.input };
        let values = &case.input(trainable.input).ok_or(missing)?.values;
        let kept = case.kept(trainable.input);
        let mut gradient = vec![0.0; values.len()];
        let mut moved = case.clone();
        // What is differentiated is the value's sum, weighted by the cotangent where there is one.
        let cotangent = case.input("cotangent").map(|tensor| tensor.values.clone()).unwrap_or_default();
        let weight = |index: usize| cotangent.get(index).copied().unwrap_or(1.0);
        let leaks = self.changes.iter().any(|change| {
            matches!(change, Change::LogRatio(LogRatioEdit::ColumnCentred) | Change::Input(_, Edit::RowMeanPadded))
        });
        for (slot, derivative) in gradient.iter_mut().enumerate().filter(|(slot, _)| kept[*slot] || leaks) {
            let mut at = |offset: f64| -> Result<Vec<f64>, Error> {
                if let Some(moved) = moved.values_mut(trainable.input).and_then(|values| values.get_mut(slot)) {
                    *moved = values[slot] + offset;
                }
                self.value(&moved)
            };
            let mut by_step = |step: f64| -> Result<f64, Error> {
                let (above, below) = (at(step)?, at(-step)?);
                let (far_above, far_below) = (at(2.0 * step)?, at(-2.0 * step)?);
                // Element by element, so that large elements that do not move leave no rounding error.
                let near = above.iter().zip(&below).map(|(above, below)| above - below);
                let far = far_above.iter().zip(&far_below).map(|(above, below)| above - below);
                let slopes = near.zip(far).map(|(near, far)| (8.0 * near - far) / (12.0 * step));
                Ok(slopes.enumerate().map(|(index, slope)| weight(index) * slope).sum())
            };
            let mut coarse = by_step(STEP)?;
            *derivative = f64::NAN;
            for step in [STEP / 4.0, STEP / 16.0, STEP / 64.0] {
                let fine = by_step(step)?;
                // Where no kink lies within the coarse step both agree but for rounding, which grows as the step shrinks.
                if (fine - coarse).abs() <= 1e-9 * fine.abs() + 1e-9 {
                    *derivative = coarse;
                    break;
                }
                coarse = fine;
            }
            at(0.0)?;
        }
        Ok(gradient)
    }

    fn analytic(&self, case: &Case, trainables: &[Trainable]) -> Result<Numbers, Error> {
        let (operation, params) = self.parameters(case)?;
        let inputs = self.inputs(operation, &params, case)?;
        let mut mirrored = None;
        let mut split = None;
        for change in &self.changes {
            match change {
                Change::Mirror(name) => mirrored = Some(*name),
                Change::Parts(how) => split = Some(*how),
                _ => {}
            }
        }
        let result = |inputs: &Inputs| match split {
            None => direct(operation, &params, inputs, trainables),
            Some(how) => in_parts(operation, &params, inputs, trainables, how),
        };
        let Some(name) = mirrored else { return result(&inputs) };
        // What does not depend on the input stays: -f(-x) + 2 f(0).
        let mut numbers = result(&edited(case, Edit::Negated, inputs.clone(), name)?)?;
        let rest = result(&edited(case, Edit::Zero, inputs, name)?)?;
        let pairs = numbers.value.iter_mut().chain(numbers.gradients.iter_mut().flatten()).zip(rest.all());
        pairs.for_each(|(number, rest)| *number = 2.0 * rest - *number);
        Ok(numbers)
    }

    /// The inputs after all changes of inputs.
    pub(super) fn inputs(&self, operation: &Operation, params: &[Value], case: &Case) -> Result<Inputs, Error> {
        let mut inputs = case.inputs.clone();
        for change in &self.changes {
            match change {
                Change::Input(name, how) => inputs = edited(case, *how, inputs, name)?,
                Change::Ignored(prefix) => {
                    let is_optional = |name: &str| operation.input(name).is_some_and(|input| input.optional);
                    inputs.retain(|(name, _)| !(name.starts_with(prefix) && is_optional(name)));
                }
                Change::Copy { to, from, edit: how, at } => {
                    let source = match how {
                        Some(how) => edited(case, *how, inputs.clone(), from)?,
                        None => inputs.clone(),
                    };
                    copy(&mut inputs, &source, (to, from), *at)?;
                }
                Change::CopyFamily(token) => copy_family(&mut inputs, token)?,
                Change::ZeroWhere(name, flag) => combine(&mut inputs, name, flag, |value, flag| value * (1.0 - flag))?,
                Change::And(mask, other) => combine(&mut inputs, mask, other, |mask, other| mask * other)?,
                Change::Or(flag, other) => combine(&mut inputs, flag, other, f64::max)?,
                Change::LengthsTotal => lengths_total(operation, &mut inputs),
                Change::MaskedAsZeros => masked_as_zeros(operation, &mut inputs)?,
                Change::TraceNeverCut => never_cut(&mut inputs)?,
                Change::LogRatio(how) => log_ratio(operation, params, &mut inputs, *how)?,
                Change::Power(how) => bootstrap_power(operation, params, &mut inputs, *how)?,
                Change::ExchangeInputs(first, second) => exchange(&mut inputs, first, second)?,
                Change::Reflect(first, second) => reflect(&mut inputs, first, second)?,
                _ => {}
            }
        }
        inputs.retain(|(name, _)| operation.input(name).is_some());
        Ok(inputs)
    }

    pub(crate) fn parameters(&self, case: &Case) -> Result<(&'static Operation, Vec<Value>), Error> {
        let mut meaning = self.meaning.clone();
        for change in &self.changes {
            if let Change::Dialect(name) = change {
                meaning.dialect = Some(name);
            }
        }
        let mut params = meaning.parameters(case)?;
        let operation = meaning.operation;
        let position = |name: &str| operation.param(name).map(|(position, _)| position);
        for change in &self.changes {
            match change {
                Change::Set(name, value) => {
                    if let Some(position) = position(name) {
                        params[position] = *value;
                    }
                }
                Change::Scale(name, factor) => {
                    if let Some(position) = position(name)
                        && let Value::Number(number) = params[position]
                    {
                        params[position] = Value::Number(number * factor);
                    }
                }
                Change::Square(name) | Change::Reciprocal(name) => {
                    if let Some(position) = position(name)
                        && let Value::Number(number) = params[position]
                    {
                        let is_square = matches!(change, Change::Square(_));
                        params[position] = Value::Number(if is_square { number * number } else { 1.0 / number });
                    }
                }
                Change::CopyParam { to, from } => {
                    if let (Some(to), Some(from)) = (position(to), position(from)) {
                        params[to] = params[from];
                    }
                }
                Change::RatioBoundsForLog => {
                    for (name, sign) in [("clip_ratio_low", -1.0), ("clip_ratio_high", 1.0)] {
                        if let Some(position) = position(name)
                            && let Value::Number(number) = params[position]
                        {
                            params[position] = Value::Number(sign * Real::ln(1.0 + sign * number));
                        }
                    }
                }
                Change::ExchangeParams(first, second) => {
                    if let (Some(first), Some(second)) = (position(first), position(second)) {
                        params.swap(first, second);
                    }
                }
                _ => {}
            }
        }
        let other = self.changes.iter().find_map(|change| match change {
            Change::Operation(id) | Change::OperationBy { id, .. } => catalog::find(id),
            _ => None,
        });
        let Some(other) = other else { return Ok((operation, params)) };
        // The other operation at its own defaults, but for what the case sets and both have.
        let shared: Vec<(&'static str, Value)> =
            case.overrides.iter().filter(|(name, _)| other.param(name).is_some()).copied().collect();
        let mut others = crate::vectors::resolve(other, None, &[&shared])?;
        for change in &self.changes {
            if let Change::OperationBy { to, from, squared, .. } = change
                && let (Some((to, _)), Some(from)) = (other.param(to), position(from))
                && let Value::Number(number) = params[from]
            {
                others[to] = Value::Number(if *squared { number * number } else { number });
            }
        }
        Ok((other, others))
    }

    /// A number that a parameter has here; `None` where it is off.
    pub(super) fn number(&self, case: &Case, name: &str) -> Option<f64> {
        let (operation, params) = self.parameters(case).ok()?;
        match params.get(operation.param(name)?.0)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }
}

fn edited(case: &Case, edit: Edit, inputs: Inputs, name: &str) -> Result<Inputs, Error> {
    edit.apply(&Case { inputs, ..bare(case) }, name).ok_or(Error::MissingInput { argument: "input" })
}

fn bare(case: &Case) -> Case {
    Case { id: String::new(), purpose: case.purpose, overrides: Vec::new(), inputs: Vec::new() }
}

pub(super) fn direct(
    operation: &'static Operation,
    params: &[Value],
    inputs: &[(&'static str, Tensor)],
    trainables: &[Trainable],
) -> Result<Numbers, Error> {
    let main = operation.outputs.first().map(|output| output.name).unwrap_or_default();
    let mut names = vec![main];
    names.extend(trainables.iter().map(|trainable| trainable.output));
    let mut all = outputs(operation, params, inputs, &names)?.into_iter();
    Ok(Numbers { value: all.next().unwrap_or_default(), gradients: all.collect(), uncertainty: 0.0 })
}

fn exchange(inputs: &mut [(&'static str, Tensor)], first: &str, second: &str) -> Result<(), Error> {
    let position = |name: &str| inputs.iter().position(|(candidate, _)| *candidate == name);
    let (Some(first), Some(second)) = (position(first), position(second)) else {
        return Err(Error::MissingInput { argument: "input" });
    };
    let kept = inputs[first].1.clone();
    inputs[first].1 = std::mem::replace(&mut inputs[second].1, kept);
    Ok(())
}

/// The second input moves to the other side of the first: their difference changes its sign, the first stays.
fn reflect(inputs: &mut [(&'static str, Tensor)], first: &str, second: &str) -> Result<(), Error> {
    let missing = Error::MissingInput { argument: "input" };
    let centre = inputs.iter().find(|(name, _)| *name == first).map(|(_, tensor)| &tensor.values);
    let centre = centre.ok_or(missing)?.clone();
    let moved = inputs.iter_mut().find(|(name, _)| *name == second).map(|(_, tensor)| &mut tensor.values);
    for (value, centre) in moved.ok_or(missing)?.iter_mut().zip(centre) {
        *value = 2.0 * centre - *value;
    }
    Ok(())
}

/// Numbers of one input put where another one's are.
fn copy(inputs: &mut Inputs, source: &Inputs, (to, from): (&str, &str), at: Place) -> Result<(), Error> {
    let missing = Error::MissingInput { argument: "input" };
    let find = |inputs: &Inputs, name: &str| {
        inputs.iter().find(|(candidate, _)| *candidate == name).map(|(_, tensor)| tensor.clone())
    };
    let from = find(source, from).ok_or(missing)?;
    let flags = match at {
        Place::Where(flag) => Some(find(inputs, flag).ok_or(missing)?.values),
        _ => None,
    };
    let (_, to) = inputs.iter_mut().find(|(candidate, _)| *candidate == to).ok_or(missing)?;
    if to.values.len() != from.values.len() || flags.as_ref().is_some_and(|flags| flags.len() != to.values.len()) {
        return Err(missing);
    }
    let columns = to.shape.get(1).copied().unwrap_or(1).max(1);
    for (slot, (to, from)) in to.values.iter_mut().zip(from.values).enumerate() {
        let here = match at {
            Place::All => true,
            Place::Where(_) => flags.as_ref().is_some_and(|flags| flags[slot] != 0.0),
            Place::LastStep => slot % columns + 1 == columns,
        };
        if here {
            *to = from;
        }
    }
    Ok(())
}

/// For each input whose name holds the word, the input whose name is the same without it, shape and all.
fn copy_family(inputs: &mut Inputs, word: &str) -> Result<(), Error> {
    let before = inputs.clone();
    for (name, tensor) in inputs.iter_mut().filter(|(name, _)| name.contains(word)) {
        let source = name.replacen(word, "", 1);
        let other = before.iter().find(|(candidate, _)| *candidate == source);
        *tensor = other.ok_or(Error::MissingInput { argument: "input" })?.1.clone();
    }
    Ok(())
}

/// An input element by element from itself and another one of the same size.
fn combine(inputs: &mut Inputs, name: &str, other: &str, with: impl Fn(f64, f64) -> f64) -> Result<(), Error> {
    let missing = Error::MissingInput { argument: "input" };
    let find = |name: &str| inputs.iter().position(|(candidate, _)| *candidate == name).ok_or(missing);
    let (first, second) = (find(name)?, find(other)?);
    let others = inputs[second].1.values.clone();
    if inputs[first].1.values.len() != others.len() {
        return Err(missing);
    }
    inputs[first].1.values.iter_mut().zip(others).for_each(|(value, other)| *value = with(*value, other));
    Ok(())
}

fn lengths_total(operation: &Operation, inputs: &mut Inputs) {
    let is_length = |name: &str| operation.input(name).is_some_and(|input| input.domain == Domain::Count);
    let lengths = inputs.iter().filter(|(name, _)| is_length(name));
    let whole: f64 = lengths.map(|(_, tensor)| tensor.values.iter().sum::<f64>()).sum();
    inputs.iter_mut().filter(|(name, _)| is_length(name)).for_each(|(_, tensor)| tensor.values.fill(whole));
}

fn masked_as_zeros(operation: &Operation, inputs: &mut Inputs) -> Result<(), Error> {
    let mask = inputs.iter().find(|(name, _)| *name == "mask").map(|(_, mask)| mask.clone());
    let mask = mask.ok_or(Error::MissingInput { argument: "mask" })?;
    for (name, tensor) in inputs.iter_mut().filter(|(_, tensor)| tensor.shape == mask.shape) {
        if *name == "mask" {
            tensor.values.fill(1.0);
        } else if operation.input(name).is_some_and(|input| is_real(input.domain)) {
            let masked = tensor.values.iter_mut().zip(&mask.values).filter(|(_, kept)| **kept == 0.0);
            masked.for_each(|(value, _)| *value = 0.0);
        }
    }
    Ok(())
}

/// What follows a termination is worth 0, and no flag cuts anything.
fn never_cut(inputs: &mut Inputs) -> Result<(), Error> {
    combine(inputs, "next_value", "terminated", |value, flag| value * (1.0 - flag))?;
    inputs.retain(|(name, _)| *name != "terminated" && *name != "truncated");
    Ok(())
}

fn log_ratio(operation: &Operation, params: &[Value], inputs: &mut Inputs, how: LogRatioEdit) -> Result<(), Error> {
    let missing = Error::MissingInput { argument: "input" };
    let bound = |name: &str| match operation.param(name).and_then(|(position, _)| params.get(position)) {
        Some(Value::Number(number)) => Ok(*number),
        _ => Err(missing),
    };
    let find = |name: &str| inputs.iter().position(|(candidate, _)| *candidate == name).ok_or(missing);
    let (new, old) = (find("log_prob")?, find("old_log_prob")?);
    let old = inputs[old].1.values.clone();
    let tensor = &mut inputs[new].1;
    let mut ratios: Vec<f64> = tensor.values.iter().zip(&old).map(|(new, old)| new - old).collect();
    match how {
        LogRatioEdit::ClippedBothSides => {
            let (low, high) = (bound("clip_ratio_low")?, bound("clip_ratio_high")?);
            ratios.iter_mut().for_each(|ratio| *ratio = ratio.clamp(-low, high));
        }
        LogRatioEdit::ColumnCentred => {
            let [rows, columns] = tensor.shape[..] else { return Err(missing) };
            for column in 0..columns {
                let mean = (0..rows).map(|row| ratios[row * columns + column]).sum::<f64>() / rows as f64;
                (0..rows).for_each(|row| ratios[row * columns + column] -= mean);
            }
        }
    }
    tensor.values = old.iter().zip(&ratios).map(|(old, ratio)| old + ratio).collect();
    Ok(())
}

/// The bootstrap value times the power that it has too much or too little.
fn bootstrap_power(operation: &Operation, params: &[Value], inputs: &mut Inputs, how: Power) -> Result<(), Error> {
    let missing = Error::MissingInput { argument: "input" };
    let discount = ["discount", "gamma"].iter().find_map(|name| {
        match operation.param(name).and_then(|(position, _)| params.get(position)) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    });
    let discount = discount.ok_or(missing)?;
    let find = |name: &str| inputs.iter().find(|(candidate, _)| *candidate == name).map(|(_, tensor)| tensor.clone());
    let rewards = find("reward").ok_or(missing)?;
    let width = rewards.shape.get(1).copied().ok_or(missing)?;
    let mask = find("mask").map_or(vec![1.0; rewards.values.len()], |mask| mask.values);
    let (_, bootstrap) = inputs.iter_mut().find(|(name, _)| *name == "bootstrap_value").ok_or(missing)?;
    for (value, kept) in bootstrap.values.iter_mut().zip(mask.chunks(width.max(1))) {
        let steps = kept.iter().take_while(|kept| **kept != 0.0).count() as i32;
        let missing_power = match how {
            Power::Once => 1 - steps,
            Power::FullWindow => width as i32 - steps,
        };
        *value *= power(discount, missing_power);
    }
    Ok(())
}

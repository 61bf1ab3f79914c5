//! The points of the space: a meaning with some changes, evaluated by composing the core.

use plumbline_core::Error;
use plumbline_core::catalog;
use plumbline_core::spec::{Domain, Operation, ParamKind, Value};

use super::change::{Change, Edit, Split, are_interchangeable};
use super::meaning::{Meaning, Numbers, Trainable, outputs};
use crate::vectors::Case;
use plumbline_evaluate::is_real;
use plumbline_evaluate::tensor::Tensor;

/// Step of the differences by which a total derivative is taken.
const STEP: f64 = 1e-3;

type Inputs = Vec<(&'static str, Tensor)>;

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
            Change::Input(name, _) | Change::Mirror(name) => trains(name),
            _ => false,
        })
    }

    fn value(&self, case: &Case) -> Result<Vec<f64>, Error> {
        Ok(self.analytic(case, &[])?.value)
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
        for (slot, derivative) in gradient.iter_mut().enumerate().filter(|(slot, _)| kept[*slot]) {
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
                Ok(near.zip(far).map(|(near, far)| (8.0 * near - far) / (12.0 * step)).sum())
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
        let mut inputs = case.inputs.clone();
        let mut mirrored = None;
        let mut split = None;
        let edit = |edit: Edit, inputs: Inputs, name: &str| {
            edit.apply(&Case { inputs, ..bare(case) }, name).ok_or(Error::MissingInput { argument: "input" })
        };
        for change in &self.changes {
            match change {
                Change::Input(name, how) => inputs = edit(*how, inputs, name)?,
                Change::ExchangeInputs(first, second) => exchange(&mut inputs, first, second)?,
                Change::Reflect(first, second) => reflect(&mut inputs, first, second)?,
                Change::Mirror(name) => mirrored = Some(*name),
                Change::Parts(how) => split = Some(*how),
                _ => {}
            }
        }
        inputs.retain(|(name, _)| operation.input(name).is_some());
        let result = |inputs: &Inputs| match split {
            None => direct(operation, &params, inputs, trainables),
            Some(how) => in_parts(operation, &params, inputs, trainables, how),
        };
        let Some(name) = mirrored else { return result(&inputs) };
        // What does not depend on the input stays: -f(-x) + 2 f(0).
        let mut numbers = result(&edit(Edit::Negated, inputs.clone(), name)?)?;
        let rest = result(&edit(Edit::Zero, inputs, name)?)?;
        let pairs = numbers.value.iter_mut().chain(numbers.gradients.iter_mut().flatten()).zip(rest.all());
        pairs.for_each(|(number, rest)| *number = 2.0 * rest - *number);
        Ok(numbers)
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
                Change::ExchangeParams(first, second) => {
                    if let (Some(first), Some(second)) = (position(first), position(second)) {
                        params.swap(first, second);
                    }
                }
                _ => {}
            }
        }
        let other = self.changes.iter().find_map(|change| match change {
            Change::Operation(id) => catalog::find(id),
            _ => None,
        });
        let Some(other) = other else { return Ok((operation, params)) };
        // The other operation at its own defaults, but for what the case sets and both have.
        let shared: Vec<(&'static str, Value)> =
            case.overrides.iter().filter(|(name, _)| other.param(name).is_some()).copied().collect();
        Ok((other, crate::vectors::resolve(other, None, &[&shared])?))
    }
}

fn bare(case: &Case) -> Case {
    Case { id: String::new(), purpose: case.purpose, overrides: Vec::new(), inputs: Vec::new() }
}

fn direct(
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

/// Evaluate each part of the batch and average: a scalar is the mean over the parts that have a token, what has one
/// entry per row or slot is put together again (a gradient of a mean divided by the number of parts).
fn in_parts(
    operation: &'static Operation,
    params: &[Value],
    inputs: &[(&'static str, Tensor)],
    trainables: &[Trainable],
    how: Split,
) -> Result<Numbers, Error> {
    let none = Error::EmptyMask { argument: "mask" };
    let shape_of =
        |name: &str| inputs.iter().find(|(candidate, _)| *candidate == name).map(|(_, tensor)| &tensor.shape);
    let axis = usize::from(how == Split::ColumnHalves);
    let length = batch_lengths(operation, inputs).and_then(|lengths| lengths.get(axis).copied()).ok_or(none)?;
    let ranges: Vec<std::ops::Range<usize>> = match how {
        Split::Rows => (0..length).map(|row| row..row + 1).collect(),
        Split::RowHalves | Split::ColumnHalves => vec![0..length.div_ceil(2), length.div_ceil(2)..length],
    };
    let main = operation.outputs.first();
    let is_scalar = main.is_some_and(|output| output.shape.is_empty());
    let follows_axis = main.is_some_and(|output| output.shape.contains(&["B", "T"][axis]));
    if !is_scalar && !follows_axis {
        return Err(none);
    }
    let mut parts = Vec::new();
    for range in ranges {
        let part: Vec<(&'static str, Tensor)> = inputs
            .iter()
            .map(|(name, tensor)| (*name, slice(operation, name, tensor, axis, range.clone(), length)))
            .collect();
        match direct(operation, params, &part, trainables) {
            Ok(numbers) => parts.push((range, numbers)),
            Err(Error::EmptyMask { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let count = parts.len() as f64;
    if parts.is_empty() {
        return Err(none);
    }
    let value = if is_scalar {
        vec![parts.iter().map(|(_, numbers)| numbers.value.iter().sum::<f64>()).sum::<f64>() / count]
    } else {
        // Rows follow each other; columns would interleave, which only scalars are tried for.
        if axis == 1 || parts.iter().map(|(range, _)| range.len()).sum::<usize>() != length {
            return Err(none);
        }
        parts.iter().flat_map(|(_, numbers)| numbers.value.iter().copied()).collect()
    };
    let share = if is_scalar { count } else { 1.0 };
    let mut gradients = Vec::new();
    for (position, trainable) in trainables.iter().enumerate() {
        let shape = shape_of(trainable.input).ok_or(none)?;
        let mut gradient = vec![0.0; shape.iter().product()];
        let columns: usize = shape.iter().skip(1).product();
        for (range, numbers) in &parts {
            let from = numbers.gradients.get(position).ok_or(none)?;
            for (index, number) in from.iter().enumerate() {
                let slot = if axis == 0 {
                    range.start * columns + index
                } else {
                    index / range.len() * columns + range.start + index % range.len()
                };
                if let Some(to) = gradient.get_mut(slot) {
                    *to = number / share;
                }
            }
        }
        gradients.push(gradient);
    }
    Ok(Numbers { value, gradients, uncertainty: 0.0 })
}

/// Sizes of the dimensions B and T.
fn batch_lengths(operation: &Operation, inputs: &[(&'static str, Tensor)]) -> Option<Vec<usize>> {
    inputs.iter().find_map(|(name, tensor)| {
        let spec = operation.input(name)?;
        let is_batch = spec.shapes.iter().any(|shape| *shape == ["B", "T"]) && tensor.shape.len() == 2;
        is_batch.then(|| tensor.shape.clone())
    })
}

fn slice(
    operation: &Operation,
    name: &str,
    tensor: &Tensor,
    axis: usize,
    range: std::ops::Range<usize>,
    length: usize,
) -> Tensor {
    let spec = operation.input(name);
    let shape = spec.and_then(|spec| spec.shapes.iter().find(|shape| shape.len() == tensor.shape.len()));
    let follows = shape.and_then(|shape| shape.get(axis)).is_some_and(|name| *name == ["B", "T"][axis]);
    if !follows || tensor.shape.get(axis) != Some(&length) {
        return tensor.clone();
    }
    let columns: usize = tensor.shape.iter().skip(1).product();
    let keeps = |index: usize| {
        let position = if axis == 0 { index / columns.max(1) } else { index % columns.max(1) };
        range.contains(&position)
    };
    let mut shape = tensor.shape.clone();
    shape[axis] = range.len();
    let values = tensor.values.iter().enumerate().filter(|(index, _)| keeps(*index)).map(|(_, value)| *value);
    Tensor { shape, values: values.collect() }
}

/// All single changes of a meaning, in the order in which explanations of equal cost are printed.
pub fn single_changes(meaning: &Meaning, cases: &[&Case]) -> Vec<Change> {
    let operation = meaning.operation;
    let Some(example) = cases.first() else { return Vec::new() };
    let mut changes: Vec<Change> = Vec::new();
    changes.extend(
        operation
            .dialects
            .iter()
            .filter(|dialect| Some(dialect.name) != meaning.dialect)
            .map(|dialect| Change::Dialect(dialect.name)),
    );
    let by_case: Vec<Vec<Value>> = cases.iter().filter_map(|case| meaning.parameters(case).ok()).collect();
    for (position, param) in operation.params.iter().enumerate() {
        let mut values: Vec<Value> = Vec::new();
        for value in by_case.iter().map(|params| params[position]) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let changed = param_changes(param.name, param.kind, &values, operation.default_of(param));
        // A value that all cases have is no change.
        changes.extend(changed.into_iter().filter(|change| match change {
            Change::Set(_, value) => values != [*value],
            _ => true,
        }));
    }
    changes.extend(exchanged_params(operation, &by_case));
    changes.extend(input_changes(operation, example));
    changes.extend(Split::ALL.into_iter().map(Change::Parts));
    changes.push(Change::Unstopped);
    changes.extend(
        catalog::operations()
            .filter(|other| are_interchangeable(operation, other))
            .map(|other| Change::Operation(other.id)),
    );
    changes
}

fn param_changes(name: &'static str, kind: ParamKind, values: &[Value], default: Value) -> Vec<Change> {
    let set = |value: Value| Change::Set(name, value);
    match kind {
        ParamKind::Choice { names, .. } => names.iter().map(|name| set(Value::Name(name))).collect(),
        ParamKind::Flag { .. } => vec![set(Value::Flag(false)), set(Value::Flag(true))],
        ParamKind::Integer { low, high, .. } => {
            let mut numbers = vec![0, 1];
            for value in values {
                if let Value::Integer(number) = value {
                    numbers.extend([number - 1, number + 1]);
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            numbers.retain(|number| (low..=high).contains(number));
            numbers.into_iter().map(|number| set(Value::Integer(number))).collect()
        }
        ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. } => {
            let mut changes = Vec::new();
            if matches!(kind, ParamKind::OptionalNumber { .. }) {
                changes.push(set(Value::None));
            }
            if default != Value::None {
                changes.push(set(default));
            }
            // Round values to which options are often fixed, and common epsilons.
            for number in [0.0, 1.0, 0.5, 2.0, 3.0, 1e-8, 1e-6, 1e-5, 1e-4] {
                if range.contains(number) && Value::Number(number) != default && is_plausible(default, number) {
                    changes.push(set(Value::Number(number)));
                }
            }
            if values.iter().any(|value| matches!(value, Value::Number(number) if *number != 0.0)) {
                changes.extend([0.5, 2.0, -1.0].into_iter().map(|factor| Change::Scale(name, factor)));
            }
            changes
        }
    }
}

/// Epsilons are tried for parameters that are epsilons, and round numbers for those that are not.
fn is_plausible(default: Value, number: f64) -> bool {
    let is_small = matches!(default, Value::Number(default) if default.abs() < 1e-2);
    number == 0.0 || (number < 1e-2) == is_small || matches!(default, Value::Number(0.0))
}

/// Pairs of real parameters that are both set, to different numbers, on some case.
fn exchanged_params(operation: &'static Operation, by_case: &[Vec<Value>]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (first, first_param) in operation.params.iter().enumerate() {
        for (second, second_param) in operation.params.iter().enumerate().skip(first + 1) {
            let differ = |params: &Vec<Value>| match (params[first], params[second]) {
                (Value::Number(first), Value::Number(second)) => first != second,
                _ => false,
            };
            if by_case.iter().any(differ) {
                changes.push(Change::ExchangeParams(first_param.name, second_param.name));
            }
        }
    }
    changes
}

fn input_changes(operation: &'static Operation, example: &Case) -> Vec<Change> {
    let mut changes = Vec::new();
    let given: Vec<_> = operation.inputs.iter().filter(|input| example.input(input.name).is_some()).collect();
    for input in &given {
        if input.optional && input.domain != Domain::Mask {
            changes.push(Change::Input(input.name, Edit::Ignored));
        }
        let edits: &[Edit] = match input.domain {
            Domain::Mask if input.optional && input.name != "mask" => &[Edit::Ignored],
            Domain::Mask => &[Edit::KeepsAll, Edit::DropsLast, Edit::DropsFirst, Edit::KeepsOneMore],
            Domain::Done | Domain::Index(_) | Domain::Count => &[],
            Domain::Group => &[Edit::OneGroup, Edit::OwnGroups],
            _ => &[
                Edit::Negated,
                Edit::Zero,
                Edit::FromNextStep,
                Edit::FromPreviousStep,
                Edit::RowMean,
                Edit::RowMeanPadded,
                Edit::BatchMean,
                Edit::Centred,
                Edit::WhitenedSample,
                Edit::WhitenedPopulation,
            ],
        };
        changes.extend(edits.iter().map(|edit| Change::Input(input.name, *edit)));
        if matches!(input.domain, Domain::Advantage | Domain::Reward | Domain::Value | Domain::Real) {
            changes.push(Change::Mirror(input.name));
        }
    }
    for (position, first) in given.iter().enumerate() {
        for second in given.iter().skip(position + 1) {
            let alike = first.domain == second.domain && first.shapes == second.shapes;
            if alike && is_real(first.domain) {
                changes.push(Change::ExchangeInputs(first.name, second.name));
                changes.push(Change::Reflect(first.name, second.name));
            }
        }
    }
    changes
}

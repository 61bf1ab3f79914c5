//! A batch that is evaluated in parts: what micro-batches, workers and split contexts compute.

use plumbline_core::Error;
use plumbline_core::spec::{Operation, Value};

use super::change::{Parts, Split};
use super::meaning::{Numbers, Trainable};
use super::space::direct;
use plumbline_evaluate::tensor::Tensor;

type Inputs = [(&'static str, Tensor)];
const NONE: Error = Error::EmptyMask { argument: "mask" };

/// Where a part's elements stand in the whole.
struct Part {
    /// Rows or columns.
    range: std::ops::Range<usize>,
    /// Rows of the part.
    rows: usize,
    numbers: Numbers,
}

/// Evaluate each part of the batch and average: a scalar is the mean over the parts that have a token, what has one
/// entry per row or slot is put together again (a gradient of a mean divided by the number of parts).
pub fn in_parts(
    operation: &'static Operation,
    params: &[Value],
    inputs: &Inputs,
    trainables: &[Trainable],
    how: Split,
) -> Result<Numbers, Error> {
    if how.parts == Parts::Runs {
        return in_runs(operation, params, inputs, trainables);
    }
    let axis = usize::from(how.parts == Parts::ColumnHalves);
    let lengths = batch_lengths(operation, inputs).ok_or(NONE)?;
    let length = *lengths.get(axis).ok_or(NONE)?;
    let ranges: Vec<std::ops::Range<usize>> = match how.parts {
        Parts::Rows => (0..length).map(|row| row..row + 1).collect(),
        Parts::RowPairs => (0..length).step_by(2).map(|row| row..(row + 2).min(length)).collect(),
        _ => vec![0..length.div_ceil(2), length.div_ceil(2)..length],
    };
    let main = operation.outputs.first().ok_or(NONE)?;
    let is_scalar = main.shape.is_empty();
    if !is_scalar && !main.shape.contains(&["B", "T"][axis]) {
        return Err(NONE);
    }
    let mut parts = Vec::new();
    for range in ranges {
        let part: Vec<(&'static str, Tensor)> = inputs
            .iter()
            .map(|(name, tensor)| (*name, slice(operation, name, tensor, axis, range.clone(), length)))
            .collect();
        match direct(operation, params, &part, trainables) {
            Ok(numbers) => {
                let rows = if axis == 0 { range.len() } else { 1 };
                parts.push(Part { range, rows, numbers });
            }
            Err(Error::EmptyMask { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if parts.is_empty() {
        return Err(NONE);
    }
    let rows: usize = parts.iter().map(|part| part.rows).sum();
    let share = |part: &Part| match (is_scalar, how.by_rows) {
        (false, _) => 1.0,
        (true, true) => part.rows as f64 / rows as f64,
        (true, false) => 1.0 / parts.len() as f64,
    };
    let value = if is_scalar {
        vec![parts.iter().map(|part| share(part) * part.numbers.value.iter().sum::<f64>()).sum()]
    } else {
        let shape: Vec<usize> = if main.shape.len() == 2 { lengths.clone() } else { vec![length] };
        put_together(&shape, axis, parts.iter().map(|part| (&part.range, part.numbers.value.as_slice(), 1.0)))
    };
    let mut gradients = Vec::new();
    for (position, trainable) in trainables.iter().enumerate() {
        let (_, tensor) = inputs.iter().find(|(name, _)| *name == trainable.input).ok_or(NONE)?;
        let of = |part: &Part| part.numbers.gradients.get(position).cloned().unwrap_or_default();
        let own: Vec<Vec<f64>> = parts.iter().map(of).collect();
        let pieces = parts.iter().zip(&own).map(|(part, own)| (&part.range, own.as_slice(), share(part)));
        gradients.push(put_together(&tensor.shape, axis, pieces));
    }
    Ok(Numbers { value, gradients, uncertainty: 0.0 })
}

/// Parts of an array along an axis, each with a factor.
fn put_together<'a>(
    shape: &[usize],
    axis: usize,
    parts: impl Iterator<Item = (&'a std::ops::Range<usize>, &'a [f64], f64)>,
) -> Vec<f64> {
    let mut whole = vec![0.0; shape.iter().product()];
    let columns: usize = shape.iter().skip(1).product();
    for (range, numbers, share) in parts {
        for (index, number) in numbers.iter().enumerate() {
            let slot = if axis == 0 {
                range.start * columns + index
            } else {
                index / range.len() * columns + range.start + index % range.len()
            };
            if let Some(to) = whole.get_mut(slot) {
                *to = number * share;
            }
        }
    }
    whole
}

/// Each run of unmasked tokens by itself, for results that have one entry per slot.
fn in_runs(
    operation: &'static Operation,
    params: &[Value],
    inputs: &Inputs,
    trainables: &[Trainable],
) -> Result<Numbers, Error> {
    let main = operation.outputs.first().ok_or(NONE)?;
    let position = inputs.iter().position(|(name, tensor)| *name == "mask" && tensor.shape.len() == 2).ok_or(NONE)?;
    if main.shape != ["B", "T"] || !trainables.is_empty() {
        return Err(NONE);
    }
    let mask = inputs.get(position).ok_or(NONE)?.1.clone();
    let columns = mask.shape.get(1).copied().unwrap_or(1).max(1);
    // The number of the run that each slot belongs to, from 1.
    let mut runs = vec![0; mask.values.len()];
    for (row, kept) in mask.values.chunks(columns).enumerate() {
        let mut run = 0;
        for (column, kept_here) in kept.iter().enumerate().filter(|(_, kept)| **kept != 0.0) {
            let starts = column == 0 || kept.get(column - 1).is_none_or(|before| *before == 0.0);
            run += usize::from(starts && *kept_here != 0.0);
            runs[row * columns + column] = run;
        }
    }
    let mut value = vec![0.0; mask.values.len()];
    for run in 1..=runs.iter().copied().max().unwrap_or(0) {
        let mut part = inputs.to_vec();
        part[position].1.values = runs.iter().map(|own| f64::from(u8::from(*own == run))).collect();
        let numbers = direct(operation, params, &part, &[])?;
        for (slot, number) in numbers.value.iter().enumerate().filter(|(slot, _)| runs[*slot] == run) {
            value[slot] = *number;
        }
    }
    Ok(Numbers { value, gradients: Vec::new(), uncertainty: 0.0 })
}

/// Sizes of the dimensions B and T.
fn batch_lengths(operation: &Operation, inputs: &Inputs) -> Option<Vec<usize>> {
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

//! Changes that put results of several points together: a term under another change, a branch under another change,
//! every row against every row, a result that is worked on again.

use plumbline_core::Error;
use plumbline_core::spec::Value;

use super::change::{Change, OutputEdit, Place};
use super::edit::{Edit, power};
use super::factor::row_lengths;
use super::meaning::{Numbers, Trainable, outputs};
use super::space::Point;
use crate::vectors::Case;

const UNDEFINED: Error = Error::MissingInput { argument: "input" };
/// A clip range that clips nothing.
const WIDE: f64 = 1e300;

/// The numbers of a point that has such a change; `None` where it has none.
pub(super) fn composed(point: &Point<'_>, case: &Case, trainables: &[Trainable]) -> Option<Result<Numbers, Error>> {
    let position = point.changes.iter().position(is_composed)?;
    let mut rest = point.changes.clone();
    let change = rest.remove(position);
    let builder = Builder { point: Point { meaning: point.meaning, changes: rest }, case, trainables };
    Some(builder.numbers(&change))
}

fn is_composed(change: &Change) -> bool {
    matches!(
        change,
        Change::Term(..)
            | Change::Misplaced(_)
            | Change::Outside(..)
            | Change::Broadcast(_)
            | Change::Only(..)
            | Change::TokenByToken { .. }
            | Change::Branch(_)
            | Change::DualClipUngated
            | Change::DualClipReciprocal
            | Change::Output(_)
    )
}

struct Builder<'a> {
    point: Point<'a>,
    case: &'a Case,
    trainables: &'a [Trainable],
}

impl Builder<'_> {
    fn numbers(&self, change: &Change) -> Result<Numbers, Error> {
        match change {
            Change::Term(name, inner) => {
                let off = Change::Set(name, Value::Number(0.0));
                sum(&[
                    (1.0, self.with(std::slice::from_ref(&off))?),
                    (1.0, self.with(std::slice::from_ref(inner.as_ref()))?),
                    (-1.0, self.with(&[inner.as_ref().clone(), off])?),
                ])
            }
            Change::Misplaced(name) => {
                let coefficient = self.point.number(self.case, name).ok_or(UNDEFINED)?;
                let set = |value: f64| self.with(&[Change::Set(name, Value::Number(value))]);
                let (without, whole) = (set(0.0)?, set(1.0)?);
                sum(&[(coefficient - 1.0, without), (1.0, whole)])
            }
            Change::Outside(name, sign) => {
                let optional = self.point.meaning.operation.input(name).is_some_and(|input| input.optional);
                let edit = if optional { Edit::Ignored } else { Edit::Zero };
                let mut numbers = self.with(&[Change::Input(name, edit)])?;
                let mean = self.mean_of(name)?;
                numbers.value.iter_mut().for_each(|value| *value += sign * mean);
                Ok(numbers)
            }
            Change::Only(name, factor) => self.only(name, *factor),
            Change::Broadcast(name) => self.broadcast(name),
            Change::TokenByToken { mean } => self.token_by_token(*mean),
            Change::Branch(inner) => {
                let unclipped = self.unclipped(&[])?;
                let clipped = self.clipped(inner)?;
                self.assemble(&unclipped, |slot| larger(unclipped.at(slot), clipped.at(slot)))
            }
            Change::DualClipUngated | Change::DualClipReciprocal => self.dual_clip(*change == Change::DualClipUngated),
            Change::Output(edit) => self.output(*edit),
            _ => Err(UNDEFINED),
        }
    }

    fn with(&self, changes: &[Change]) -> Result<Numbers, Error> {
        self.with_case(changes, self.case)
    }

    fn with_case(&self, changes: &[Change], case: &Case) -> Result<Numbers, Error> {
        let changes = self.point.changes.iter().chain(changes).cloned().collect();
        Point { meaning: self.point.meaning, changes }.numbers(case, self.trainables)
    }

    fn mean_of(&self, name: &str) -> Result<f64, Error> {
        let tensor = self.case.input(name).ok_or(UNDEFINED)?;
        let kept = self.case.kept(name);
        let count = kept.iter().filter(|kept| **kept).count();
        let values = tensor.values.iter().zip(&kept).filter(|(_, kept)| **kept);
        if count == 0 { Err(UNDEFINED) } else { Ok(values.map(|(value, _)| *value).sum::<f64>() / count as f64) }
    }

    /// Nothing but an input: its mean where the result is a scalar, itself where it has the same shape.
    fn only(&self, name: &str, factor: f64) -> Result<Numbers, Error> {
        let operation = self.point.meaning.operation;
        let main = operation.outputs.first().ok_or(UNDEFINED)?;
        let tensor = self.case.input(name).ok_or(UNDEFINED)?;
        let kept = self.case.kept(name);
        let count = kept.iter().filter(|kept| **kept).count().max(1) as f64;
        let (value, slope) = if main.shape.is_empty() {
            (vec![factor * self.mean_of(name)?], factor / count)
        } else if operation.input(name).is_some_and(|input| input.shapes.contains(&main.shape))
            && tensor.shape.len() == main.shape.len()
        {
            let masked = tensor.values.iter().zip(&kept).map(|(value, kept)| if *kept { factor * value } else { 0.0 });
            (masked.collect(), factor)
        } else {
            return Err(UNDEFINED);
        };
        let gradients = self.trainables.iter().map(|trainable| {
            let own = self.case.kept(trainable.input);
            let is_it = trainable.input == name;
            own.into_iter().map(|kept| if kept && is_it { slope } else { 0.0 }).collect()
        });
        Ok(Numbers { value, gradients: gradients.collect(), uncertainty: 0.0 })
    }

    /// The mean over all pairs of rows: over all rotations of the input's rows.
    fn broadcast(&self, name: &str) -> Result<Numbers, Error> {
        let tensor = self.case.input(name).ok_or(UNDEFINED)?;
        let rows = tensor.shape.first().copied().filter(|rows| *rows > 1).ok_or(UNDEFINED)?;
        let width = tensor.values.len() / rows;
        let mut all = Vec::with_capacity(rows);
        for turn in 0..rows {
            let mut case = self.case.clone();
            case.values_mut(name).ok_or(UNDEFINED)?.rotate_left(turn * width);
            all.push((1.0 / rows as f64, self.with_case(&[], &case)?));
        }
        sum(&all)
    }

    /// Each token of a row by itself, then the sum or the mean of the results.
    fn token_by_token(&self, mean: bool) -> Result<Numbers, Error> {
        let main = self.point.meaning.operation.outputs.first().ok_or(UNDEFINED)?;
        let (rows, columns) = self.case.rows_and_columns().ok_or(UNDEFINED)?;
        if main.shape != ["B"] || self.case.input("mask").is_none_or(|mask| mask.values.len() != rows * columns) {
            return Err(UNDEFINED);
        }
        let kept = self.case.kept("mask");
        let lengths = row_lengths(self.case, rows, columns);
        let mut whole = self.with(&[])?;
        for (row, value) in whole.value.iter_mut().enumerate().filter(|(row, _)| lengths[*row] > 0) {
            *value = 0.0;
            for gradient in &mut whole.gradients {
                let width = gradient.len() / rows;
                gradient[row * width..(row + 1) * width].fill(0.0);
            }
        }
        for column in 0..columns {
            let mut case = self.case.clone();
            let mask = case.values_mut("mask").ok_or(UNDEFINED)?;
            mask.iter_mut().enumerate().filter(|(slot, _)| slot % columns != column).for_each(|(_, kept)| *kept = 0.0);
            let part = self.with_case(&[], &case)?;
            for row in (0..rows).filter(|row| kept[row * columns + column]) {
                let share = if mean { 1.0 / lengths[row] as f64 } else { 1.0 };
                whole.value[row] += share * part.value.get(row).ok_or(UNDEFINED)?;
                for (gradient, own) in whole.gradients.iter_mut().zip(&part.gradients) {
                    let width = gradient.len() / rows;
                    let range = row * width..(row + 1) * width;
                    gradient[range.clone()].iter_mut().zip(&own[range]).for_each(|(sum, own)| *sum += share * own);
                }
            }
        }
        Ok(whole)
    }

    fn output(&self, edit: OutputEdit) -> Result<Numbers, Error> {
        if !self.trainables.is_empty() {
            return Err(UNDEFINED);
        }
        let mut numbers = self.with(&[])?;
        let value = &mut numbers.value;
        let kept = match self.case.input("mask").filter(|mask| mask.values.len() == value.len()) {
            Some(mask) => mask.values.iter().map(|kept| f64::from(u8::from(*kept != 0.0))).collect(),
            None => vec![1.0; value.len()],
        };
        match edit {
            OutputEdit::MinusFirst => {
                let groups = self.case.input("group").map(|group| group.values.clone()).ok_or(UNDEFINED)?;
                if groups.len() != value.len() {
                    return Err(UNDEFINED);
                }
                let own = value.clone();
                for (member, value) in value.iter_mut().enumerate() {
                    let first = groups.iter().position(|group| *group == groups[member]).ok_or(UNDEFINED)?;
                    *value -= own[first];
                }
            }
            OutputEdit::Plus(name) | OutputEdit::Minus(name) => {
                let other = self.case.input(name).filter(|other| other.values.len() == value.len());
                let sign = if matches!(edit, OutputEdit::Plus(_)) { 1.0 } else { -1.0 };
                value.iter_mut().zip(&other.ok_or(UNDEFINED)?.values).for_each(|(value, other)| *value += sign * other);
            }
            OutputEdit::Centred => standardised(value, &kept, None)?,
            OutputEdit::Whitened { by_length: false, eps } => standardised(value, &kept, Some(power_of_ten(eps)))?,
            OutputEdit::Whitened { by_length: true, eps } => {
                let (rows, columns) = self.case.rows_and_columns().ok_or(UNDEFINED)?;
                if rows != value.len() || self.case.input("mask").is_none() {
                    return Err(UNDEFINED);
                }
                let lengths: Vec<f64> =
                    row_lengths(self.case, rows, columns).into_iter().map(|length| length as f64).collect();
                standardised(value, &lengths, Some(power_of_ten(eps)))?;
            }
        }
        Ok(numbers)
    }

    /// Losses of tokens without any clipping.
    fn unclipped(&self, changes: &[Change]) -> Result<Tokens, Error> {
        let wide = |name: &'static str| Change::Set(name, Value::Number(WIDE));
        let own = [wide("clip_ratio_low"), wide("clip_ratio_high"), Change::Set("clip_ratio_c", Value::None)];
        self.tokens(&[&own, changes].concat())
    }

    /// Losses of tokens that are clipped whatever side wins.
    fn clipped(&self, inner: &Change) -> Result<Tokens, Error> {
        let plain = [Change::Set("clip_ratio_c", Value::None), inner.clone()];
        let negated = [plain.as_slice(), &[Change::Input("advantage", Edit::Negated)]].concat();
        let zero = [plain.as_slice(), &[Change::Input("advantage", Edit::Zero)]].concat();
        let (least, negated, zero) = (self.tokens(&plain)?, self.tokens(&negated)?, self.tokens(&zero)?);
        let unclipped = self.unclipped(std::slice::from_ref(inner))?;
        // The one of the two that is not the unclipped one; the other extreme is that of the negated advantage, negated.
        let all = |slot: usize| {
            if least.at(slot) != unclipped.at(slot) {
                return least.at(slot);
            }
            let (negated, zero) = (negated.at(slot), zero.at(slot));
            (2.0 * zero.0 - negated.0, 2.0 * zero.1 - negated.1)
        };
        let pairs: Vec<(f64, f64)> = (0..least.loss.len()).map(all).collect();
        Ok(Tokens { loss: pairs.iter().map(|pair| pair.0).collect(), slope: pairs.iter().map(|pair| pair.1).collect() })
    }

    /// The dual clip for both signs, or with the reciprocal of its bound.
    fn dual_clip(&self, ungated: bool) -> Result<Numbers, Error> {
        let Some(bound) = self.point.number(self.case, "clip_ratio_c") else { return self.with(&[]) };
        let bound = if ungated { bound } else { 1.0 / bound };
        let without = self.tokens(&[Change::Set("clip_ratio_c", Value::None)])?;
        // At a ratio of 1 the loss is -A, whatever else is added.
        let same = Change::Copy { to: "old_log_prob", from: "log_prob", edit: None, at: Place::All };
        let one = self.unclipped(std::slice::from_ref(&same))?;
        let zero = self.unclipped(&[same, Change::Input("advantage", Edit::Zero)])?;
        self.assemble(&without, |slot| {
            let (rest, rest_slope) = zero.at(slot);
            let gain = one.at(slot).0 - rest;
            let limit = (rest + bound * gain, rest_slope);
            // A loss above 0 at a ratio of 1 is a negative advantage.
            if (ungated || gain > 0.0) && limit.0 < without.at(slot).0 { limit } else { without.at(slot) }
        })
    }

    /// Loss and slope of each token under changes; only where a token's slope is its own.
    fn tokens(&self, changes: &[Change]) -> Result<Tokens, Error> {
        let changes: Vec<Change> = self.point.changes.iter().chain(changes).cloned().collect();
        let point = Point { meaning: self.point.meaning, changes };
        let (operation, params) = point.parameters(self.case)?;
        if let Some((position, _)) = operation.param("ratio_level")
            && params.get(position) != Some(&Value::Name("token"))
        {
            return Err(UNDEFINED);
        }
        let inputs = point.inputs(operation, &params, self.case)?;
        let is_token_loss = operation.outputs.first().is_some_and(|main| main.name == "token_loss");
        let names: &[&'static str] =
            if is_token_loss { &["token_loss", "d_log_prob"] } else { &["token_loss", "d_log_prob", "token_weight"] };
        let mut all = outputs(operation, &params, &inputs, names)?.into_iter();
        let (loss, slope) = (all.next().ok_or(UNDEFINED)?, all.next().ok_or(UNDEFINED)?);
        let weight = all.next().unwrap_or_else(|| vec![1.0; loss.len()]);
        Ok(Tokens { loss: loss.iter().zip(weight).map(|(loss, weight)| loss * weight).collect(), slope })
    }

    /// The result with other losses of tokens.
    fn assemble(&self, like: &Tokens, token: impl Fn(usize) -> (f64, f64)) -> Result<Numbers, Error> {
        let mut numbers = self.with(&[])?;
        let pairs: Vec<(f64, f64)> = (0..like.loss.len()).map(token).collect();
        let own = self.tokens(&[])?;
        if numbers.value.len() == 1 && like.loss.len() != 1 {
            let difference: f64 = pairs.iter().zip(&own.loss).map(|(pair, own)| pair.0 - own).sum();
            numbers.value[0] += difference;
        } else {
            numbers.value = pairs.iter().map(|pair| pair.0).collect();
        }
        for (trainable, gradient) in self.trainables.iter().zip(&mut numbers.gradients) {
            if trainable.input == "log_prob" {
                *gradient = pairs.iter().map(|pair| pair.1).collect();
            }
        }
        Ok(numbers)
    }
}

/// Losses of tokens with their weights in the result, and the result's slopes.
struct Tokens {
    loss: Vec<f64>,
    slope: Vec<f64>,
}

impl Tokens {
    fn at(&self, slot: usize) -> (f64, f64) {
        (self.loss[slot], self.slope[slot])
    }
}

fn larger(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    if second.0 > first.0 { second } else { first }
}

fn power_of_ten(exponent: Option<i32>) -> f64 {
    exponent.map_or(0.0, |exponent| power(10.0, exponent))
}

/// Centred, or whitened with the sample's deviation plus an epsilon, under weights.
fn standardised(values: &mut [f64], weights: &[f64], eps: Option<f64>) -> Result<(), Error> {
    let count: f64 = weights.iter().sum();
    let mean = values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / count;
    let squares: f64 = values.iter().zip(weights).map(|(value, weight)| weight * (value - mean) * (value - mean)).sum();
    let deviation = eps.map_or(1.0, |eps| (squares / (count - 1.0)).sqrt() + eps);
    if !deviation.is_normal() {
        return Err(UNDEFINED);
    }
    values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
    Ok(())
}

fn sum(parts: &[(f64, Numbers)]) -> Result<Numbers, Error> {
    let (_, first) = parts.first().ok_or(UNDEFINED)?;
    let mut whole = Numbers {
        value: vec![0.0; first.value.len()],
        gradients: first.gradients.iter().map(|gradient| vec![0.0; gradient.len()]).collect(),
        uncertainty: 0.0,
    };
    for (factor, part) in parts {
        if part.value.len() != whole.value.len() {
            return Err(UNDEFINED);
        }
        whole.value.iter_mut().zip(&part.value).for_each(|(sum, number)| *sum += factor * number);
        for (sum, gradient) in whole.gradients.iter_mut().zip(&part.gradients) {
            sum.iter_mut().zip(gradient).for_each(|(sum, number)| *sum += factor * number);
        }
        whole.uncertainty += part.uncertainty;
    }
    Ok(whole)
}

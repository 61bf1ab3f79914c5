//! What is looked at before the space is searched: numbers side by side, leaks from under the mask, and which tokens differ.

use plumbline_core::spec::{Domain, Operation};

use super::finding::Worst;
use super::meaning::{Numbers, Trainable};
use super::tolerance::Tolerance;
use crate::vectors::Case;
use plumbline_evaluate::tensor::Tensor;

/// One case with finite numbers on both sides.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// The case.
    pub case: &'a Case,
    /// The gradients that the implementation gave.
    pub trainables: Vec<Trainable>,
    /// Its numbers.
    pub got: Numbers,
    /// The right ones.
    pub expected: Numbers,
    /// The main output's name and shape.
    pub main: (&'static str, Vec<usize>),
    /// The slots of the value that count: those under a mask of the same shape do not.
    pub kept: Vec<bool>,
}

impl Sample<'_> {
    /// Whether the value is `numbers`'.
    pub fn value_is(&self, numbers: &Numbers, tolerance: Tolerance) -> bool {
        self.got.value.len() == numbers.value.len()
            && self
                .kept
                .iter()
                .zip(self.got.value.iter().zip(&numbers.value))
                .all(|(kept, (got, other))| !kept || tolerance.same(*got, *other))
    }

    /// Whether all gradients are `numbers`'. A number that was taken by differences and could not be told is not compared.
    pub fn gradient_is(&self, numbers: &Numbers, tolerance: Tolerance) -> bool {
        let tolerance = Tolerance { absolute: tolerance.absolute + numbers.uncertainty, ..tolerance };
        self.got.gradients.len() == numbers.gradients.len()
            && self.got.gradients.iter().zip(&numbers.gradients).all(|(got, other)| {
                let same =
                    |got: f64, other: f64| (numbers.uncertainty > 0.0 && other.is_nan()) || tolerance.same(got, other);
                got.len() == other.len() && got.iter().zip(other).all(|(got, other)| same(*got, *other))
            })
    }

    /// Whether value and gradients are the right ones.
    pub fn is_right(&self, tolerance: Tolerance) -> bool {
        self.value_is(&self.expected, tolerance) && self.gradient_is(&self.expected, tolerance)
    }

    /// Every number that counts, with its output, position, got and expected.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, Vec<usize>, f64, f64)> + '_ {
        let position =
            |shape: &[usize], index: usize| Tensor { shape: shape.to_vec(), values: Vec::new() }.position(index);
        let value = self
            .kept
            .iter()
            .zip(self.got.value.iter().zip(&self.expected.value))
            .enumerate()
            .filter(|(_, (kept, _))| **kept)
            .map(move |(index, (_, (got, expected)))| (self.main.0, position(&self.main.1, index), *got, *expected));
        let gradients = self.trainables.iter().zip(self.got.gradients.iter().zip(&self.expected.gradients)).flat_map(
            move |(trainable, (got, expected))| {
                let shape = self.case.input(trainable.input).map(|tensor| tensor.shape.clone()).unwrap_or_default();
                got.iter()
                    .zip(expected)
                    .enumerate()
                    .map(move |(index, (got, expected))| (trainable.output, position(&shape, index), *got, *expected))
            },
        );
        value.chain(gradients)
    }

    /// The number that differs most, of those that count as different.
    pub fn worst(&self, tolerance: Tolerance) -> Option<Worst> {
        self.pairs()
            .filter(|(_, _, got, expected)| !tolerance.same(*got, *expected))
            .map(|(output, position, got, expected)| {
                let difference = (got - expected).abs() / expected.abs().max(1.0);
                let difference = if difference.is_nan() { f64::INFINITY } else { difference };
                Worst { case: self.case.id.clone(), output: output.into(), position, got, expected, difference }
            })
            .max_by(|first, second| first.difference.total_cmp(&second.difference))
    }

    /// The first number of the value or a gradient that differs.
    pub fn first_difference(&self, tolerance: Tolerance) -> Option<(&'static str, Vec<usize>, f64, f64)> {
        self.pairs().find(|(_, position, got, expected)| !position.is_empty() && !tolerance.same(*got, *expected))
    }
}

/// A property of a token.
type Predicate<'a> = (String, Box<dyn Fn(&Sample<'_>, usize) -> bool + 'a>);

/// Which tokens differ, where one property or two together tell it exactly, over all samples.
pub fn token_pattern(operation: &Operation, samples: &[Sample<'_>], tolerance: Tolerance) -> Option<String> {
    let mut tokens: Vec<(usize, usize, bool)> = Vec::new();
    for (number, sample) in samples.iter().enumerate() {
        let (trainable, got, expected) =
            (sample.trainables.first()?, sample.got.gradients.first()?, sample.expected.gradients.first()?);
        if sample.case.input(trainable.input)?.shape.len() != 2 {
            return None;
        }
        let kept = sample.case.kept(trainable.input);
        let slots = got.iter().zip(expected).enumerate().filter(|(slot, _)| kept[*slot]);
        tokens.extend(slots.map(|(slot, (got, expected))| (number, slot, !tolerance.same(*got, *expected))));
    }
    let differing = tokens.iter().filter(|(_, _, differs)| *differs).count();
    if differing == 0 || differing == tokens.len() {
        return None;
    }
    let predicates = predicates(operation, samples.first()?);
    let told: Vec<Vec<bool>> = predicates
        .iter()
        .map(|(_, holds)| tokens.iter().map(|(number, slot, _)| holds(&samples[*number], *slot)).collect())
        .collect();
    let exact = |holds: &dyn Fn(usize) -> bool| {
        tokens.iter().enumerate().all(|(index, (_, _, differs))| holds(index) == *differs)
    };
    for (name, row) in predicates.iter().map(|(name, _)| name).zip(&told) {
        if exact(&|index| row[index]) {
            return Some(format!("exactly the tokens with {name} differ"));
        }
    }
    for (first, first_row) in told.iter().enumerate() {
        for (second, second_row) in told.iter().enumerate().skip(first + 1) {
            if exact(&|index| first_row[index] && second_row[index]) {
                let (first, second) = (&predicates[first].0, &predicates[second].0);
                return Some(format!("exactly the tokens with {first} and {second} differ"));
            }
        }
    }
    None
}

fn predicates<'a>(operation: &'a Operation, example: &Sample<'_>) -> Vec<Predicate<'a>> {
    let mut predicates: Vec<Predicate<'a>> = Vec::new();
    let at = |sample: &Sample<'_>, name: &str, slot: usize| -> Option<f64> {
        let tensor = sample.case.input(name)?;
        let slots = sample.got.gradients.first()?.len();
        // One number per row stands for all of its slots.
        let index = if tensor.values.len() == slots { slot } else { slot * tensor.values.len() / slots };
        tensor.values.get(index).copied()
    };
    let given: Vec<_> = operation.inputs.iter().filter(|input| example.case.input(input.name).is_some()).collect();
    for input in &given {
        let name = input.name;
        if matches!(input.domain, Domain::Advantage | Domain::Real | Domain::Reward | Domain::LogRatio) {
            predicates
                .push((format!("{name} > 0"), Box::new(move |s, slot| at(s, name, slot).is_some_and(|x| x > 0.0))));
            predicates
                .push((format!("{name} < 0"), Box::new(move |s, slot| at(s, name, slot).is_some_and(|x| x < 0.0))));
            predicates.push((format!("{name} = 0"), Box::new(move |s, slot| at(s, name, slot) == Some(0.0))));
        }
        for other in given.iter().filter(|other| other.name != name) {
            if input.domain == Domain::LogProb && other.domain == Domain::LogProb {
                let other = other.name;
                let above = move |s: &Sample<'_>, slot: usize| matches!((at(s, name, slot), at(s, other, slot)), (Some(x), Some(y)) if x > y);
                predicates.push((format!("{name} > {other}"), Box::new(above)));
            }
        }
    }
    let row = |s: &Sample<'_>, slot: usize| -> (Vec<bool>, usize) {
        let columns = s.case.input("mask").and_then(|mask| mask.shape.get(1)).copied().unwrap_or(1).max(1);
        let kept = s.case.kept("mask");
        let start = slot / columns * columns;
        (kept.get(start..start + columns).unwrap_or(&[]).to_vec(), slot - start)
    };
    predicates.push((
        "the last place in their row".into(),
        Box::new(move |s, slot| {
            let (kept, column) = row(s, slot);
            kept.iter().rposition(|kept| *kept) == Some(column)
        }),
    ));
    predicates.push((
        "the first place in their row".into(),
        Box::new(move |s, slot| {
            let (kept, column) = row(s, slot);
            kept.iter().position(|kept| *kept) == Some(column)
        }),
    ));
    predicates.push((
        "a row to themselves".into(),
        Box::new(move |s, slot| row(s, slot).0.iter().filter(|kept| **kept).count() == 1),
    ));
    predicates
}

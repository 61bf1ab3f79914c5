//! Whether the discriminating vectors tell the points of the space apart.
//!
//! Two points that agree on every vector are either the same function or a gap in the vectors. Which of the two is looked
//! at on many more cases, drawn from other seeds: points that agree there too count as equal, a pair that a drawn case tells
//! apart is a gap.

use plumbline_core::Error;
use plumbline_core::num::Dtype;

use super::candidates::single_changes;
use super::change::Change;
use super::meaning::{Meaning, Numbers};
use super::space::Point;
use super::tolerance::Tolerance;
use crate::vectors::{Case, Purpose, Taken, cases_for};

/// How the points of one operation are told apart.
#[derive(Clone, Debug)]
pub struct Separation {
    /// Points that are defined on some vector, the unchanged one among them.
    pub points: usize,
    /// The vectors.
    pub vectors: usize,
    /// Cases of other seeds on which points that no vector tells apart were compared.
    pub drawn: usize,
    /// Identifiers of points that are equal on all vectors and all drawn cases; `unchanged` is the operation itself.
    pub equal: Vec<Vec<String>>,
    /// Pairs that a drawn case tells apart and no vector.
    pub gaps: Vec<Gap>,
}

/// Two points that no vector tells apart although they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The first point.
    pub first: String,
    /// The second.
    pub second: String,
    /// The seed and the case that tell them apart.
    pub told_by: (u64, String),
}

/// Seeds of the drawn cases, beside the vectors' own.
const SEEDS: u64 = 12;

/// What an implementation with every input and parameter of the operation is asked.
pub fn vectors_of(meaning: &Meaning, seed: u64) -> Result<Vec<Case>, Error> {
    let inputs = meaning.operation.inputs.iter().map(|input| input.name);
    let names = inputs.chain(meaning.operation.params.iter().map(|param| param.name)).map(str::to_owned).collect();
    let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
    let base = meaning.parameters(&empty)?;
    let accepts = |case: &Case| meaning.accepts(case);
    Ok(cases_for(meaning.operation, &base, &Taken { names: Some(names) }, seed, Dtype::F64, &accepts))
}

/// Compare every pair of points (the operation as it is, its dialects, and every single change of the algebra).
pub fn separation(meaning: &Meaning, seed: u64) -> Result<Separation, Error> {
    let clean = |case: &Case| !matches!(case.purpose, Purpose::UnderMask { .. });
    let vectors: Vec<Case> = vectors_of(meaning, seed)?.into_iter().filter(clean).collect();
    let examples: Vec<&Case> = vectors.iter().collect();
    let mut groups: Vec<Vec<Member>> = Vec::new();
    let mut points = 0;
    let changes = single_changes(meaning, &examples).into_iter().map(|change| vec![change]);
    for changes in std::iter::once(Vec::new()).chain(changes) {
        let member = Member::new(meaning, changes, &vectors);
        if member.values.iter().all(Option::is_none) {
            continue;
        }
        points += 1;
        match groups.iter_mut().find(|group| group[0].agrees(&member, meaning, &vectors)) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
    }
    let mut drawn: Vec<(u64, Case)> = Vec::new();
    for offset in 1..=SEEDS {
        let seed = seed.wrapping_add(1000 * offset);
        drawn.extend(vectors_of(meaning, seed)?.into_iter().filter(clean).map(|case| (seed, case)));
    }
    let (mut equal, mut gaps) = (Vec::new(), Vec::new());
    for group in groups.into_iter().filter(|group| group.len() > 1) {
        let (first, rest) = group.split_at(1);
        let mut same = vec![first[0].id()];
        for member in rest {
            match drawn.iter().find(|(_, case)| differ(&first[0], member, meaning, case)) {
                None => same.push(member.id()),
                Some((seed, case)) => {
                    gaps.push(Gap { first: first[0].id(), second: member.id(), told_by: (*seed, case.id.clone()) })
                }
            }
        }
        if same.len() > 1 {
            equal.push(same);
        }
    }
    Ok(Separation { points, vectors: vectors.len(), drawn: drawn.len(), equal, gaps })
}

/// A point with its values on the vectors; `None` where it is not defined.
struct Member {
    changes: Vec<Change>,
    values: Vec<Option<Vec<f64>>>,
}

impl Member {
    fn new(meaning: &Meaning, changes: Vec<Change>, vectors: &[Case]) -> Member {
        let point = Point { meaning, changes };
        let value = |case: &Case| Some(kept_value(case, point.numbers(case, &[]).ok()?.value));
        let values = vectors.iter().map(value).collect();
        Member { changes: point.changes, values }
    }

    fn id(&self) -> String {
        match self.changes.first() {
            None => "unchanged".into(),
            Some(change) => change.id(),
        }
    }

    /// Whether no vector tells the two apart: values first, then gradients. Only vectors on which both are defined count.
    fn agrees(&self, other: &Member, meaning: &Meaning, vectors: &[Case]) -> bool {
        let mut compared = 0;
        for (first, second) in self.values.iter().zip(&other.values) {
            if let (Some(first), Some(second)) = (first, second) {
                compared += 1;
                if !Tolerance::DOUBLE.all_same(first, second) {
                    return false;
                }
            }
        }
        compared > 0 && vectors.iter().all(|case| !gradients_differ(self, other, meaning, case, 1.0))
    }
}

/// What stands under the mask does not count.
fn kept_value(case: &Case, value: Vec<f64>) -> Vec<f64> {
    match case.input("mask").filter(|mask| mask.values.len() == value.len()) {
        Some(mask) => {
            let kept = value.into_iter().zip(&mask.values).filter(|(_, kept)| **kept != 0.0);
            kept.map(|(value, _)| value).collect()
        }
        None => value,
    }
}

/// Whether a case tells two points apart by more than rounding (ten times what counts as the same).
fn differ(first: &Member, second: &Member, meaning: &Meaning, case: &Case) -> bool {
    let of = |member: &Member| {
        let point = Point { meaning, changes: member.changes.clone() };
        point.numbers(case, &[]).ok().map(|numbers| kept_value(case, numbers.value))
    };
    let (Some(one), Some(other)) = (of(first), of(second)) else { return false };
    !loosened(10.0).all_same(&one, &other) || gradients_differ(first, second, meaning, case, 10.0)
}

fn loosened(factor: f64) -> Tolerance {
    let Tolerance { relative, absolute, largest } = Tolerance::DOUBLE;
    Tolerance { relative: factor * relative, absolute: factor * absolute, largest }
}

fn gradients_differ(first: &Member, second: &Member, meaning: &Meaning, case: &Case, factor: f64) -> bool {
    let trainables = meaning.trainables(case);
    if trainables.is_empty() {
        return false;
    }
    let of = |member: &Member| Point { meaning, changes: member.changes.clone() }.numbers(case, &trainables).ok();
    let (Some(first), Some(second)) = (of(first), of(second)) else { return false };
    let uncertainty = first.uncertainty + second.uncertainty;
    let mut tolerance = loosened(factor);
    tolerance.absolute += uncertainty;
    let all = |numbers: &Numbers| numbers.gradients.concat();
    // A difference quotient at a kink is NaN: it tells nothing.
    all(&first).iter().zip(all(&second)).any(|(first, second)| {
        let is_told = uncertainty == 0.0 || (!first.is_nan() && !second.is_nan());
        is_told && !tolerance.same(*first, second)
    })
}

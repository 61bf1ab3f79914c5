//! Whether the discriminating vectors tell the points of the space apart.
//!
//! Two points that agree on every vector are either the same function or a gap in the vectors. Which of the two is looked
//! at on many more cases, drawn from other seeds: points that agree there too count as equal, a pair that a drawn case tells
//! apart is a gap.

use std::cell::OnceCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumbline_core::Error;
use plumbline_core::num::Dtype;
use plumbline_core::spec::Value;

use super::candidates::single_changes;
use super::change::Change;
use super::meaning::{Meaning, Numbers};
use super::space::Point;
use super::tolerance::Tolerance;
use crate::vectors::{Case, Purpose, Taken, cases_for, cases_of_seed};

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
    /// Drawn cases that together tell all of these pairs apart, with their seeds.
    pub telling: Vec<(u64, String)>,
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

/// At least so many cases of other seeds are drawn, from at most so many seeds.
const DRAWN: usize = 300;
const SEEDS: u64 = 12;
/// Drawn cases on which a gradient by differences is compared with an analytic one.
const DIFFERENCES: usize = 24;

/// What an implementation with every input and parameter of the operation is asked.
pub fn vectors_of(meaning: &Meaning, seed: u64) -> Result<Vec<Case>, Error> {
    let (base, taken) = (base_of(meaning)?, everything(meaning));
    Ok(cases_for(meaning.operation, &base, &taken, seed, Dtype::F64, &|case| meaning.accepts(case)))
}

/// Those of them that are drawn from the seed alone.
fn drawn_of(meaning: &Meaning, seed: u64) -> Result<Vec<Case>, Error> {
    let (base, taken) = (base_of(meaning)?, everything(meaning));
    Ok(cases_of_seed(meaning.operation, &base, &taken, seed, Dtype::F64, &|case| meaning.accepts(case)))
}

fn base_of(meaning: &Meaning) -> Result<Vec<Value>, Error> {
    meaning.parameters(&Case {
        id: String::new(),
        purpose: Purpose::Regular,
        overrides: Vec::new(),
        inputs: Vec::new(),
    })
}

fn everything(meaning: &Meaning) -> Taken {
    let inputs = meaning.operation.inputs.iter().map(|input| input.name);
    let names = inputs.chain(meaning.operation.params.iter().map(|param| param.name));
    Taken { names: Some(names.map(str::to_owned).collect()) }
}

/// Compare every pair of points (the operation as it is, its dialects, and every single change of the algebra).
pub fn separation(meaning: &Meaning, seed: u64) -> Result<Separation, Error> {
    let clean = |case: &Case| !matches!(case.purpose, Purpose::UnderMask { .. });
    let vectors: Vec<Case> = vectors_of(meaning, seed)?.into_iter().filter(clean).collect();
    let examples: Vec<&Case> = vectors.iter().collect();
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    let mut points = 0;
    let changes = single_changes(meaning, &examples).into_iter().map(|change| vec![change]);
    for changes in std::iter::once(Vec::new()).chain(changes) {
        let member = Member::new(meaning, changes, &vectors);
        if (0..vectors.len()).all(|case| member.value(case).is_none()) {
            continue;
        }
        points += 1;
        match groups.iter_mut().find(|group| group[0].agrees(&member)) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
    }
    let mut drawn: Vec<(u64, Case)> = Vec::new();
    for offset in 1..=SEEDS {
        if drawn.len() >= DRAWN {
            break;
        }
        let seed = seed.wrapping_add(1000 * offset);
        drawn.extend(drawn_of(meaning, seed)?.into_iter().map(|case| (seed, case)));
    }
    let cases: Vec<Case> = drawn.iter().map(|(_, case)| case.clone()).collect();
    let name = |case: usize| (drawn[case].0, drawn[case].1.id.clone());
    let (mut equal, mut gaps, mut telling) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups.into_iter().filter(|group| group.len() > 1) {
        let mut classes: Vec<Vec<Member<'_>>> = Vec::new();
        for member in group {
            let member = Member::new(meaning, member.changes().to_vec(), &cases);
            match classes.iter_mut().find(|class| class[0].told_by(&member, 10.0, DIFFERENCES).is_none()) {
                Some(class) => class.push(member),
                None => classes.push(vec![member]),
            }
        }
        for (position, first) in classes.iter().enumerate() {
            for second in classes.iter().skip(position + 1) {
                let (first, second) = (&first[0], &second[0]);
                let Some(case) = first.told_by(second, 10.0, DIFFERENCES) else { continue };
                gaps.push(Gap { first: first.id(), second: second.id(), told_by: name(case) });
                if !telling.iter().any(|case| first.is_told(second, *case, 10.0)) {
                    telling.push(case);
                }
            }
        }
        equal.extend(
            classes
                .iter()
                .filter(|class| class.len() > 1)
                .map(|class| class.iter().map(Member::id).collect::<Vec<_>>()),
        );
    }
    let telling = telling.into_iter().map(name).collect();
    Ok(Separation { points, vectors: vectors.len(), drawn: drawn.len(), equal, gaps, telling })
}

/// [`separation`] of many operations, on as many threads as the machine has; `done` hears of each.
pub fn separations(
    meanings: &[Meaning],
    seed: u64,
    done: &(dyn Fn(&Meaning) + Sync),
) -> Vec<Result<Separation, Error>> {
    let next = AtomicUsize::new(0);
    let found: Vec<OnceLock<Result<Separation, Error>>> = meanings.iter().map(|_| OnceLock::new()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(meaning), Some(found)) = (meanings.get(position), found.get(position)) else { break };
                    let _ = found.set(separation(meaning, seed));
                    done(meaning);
                }
            });
        }
    });
    found.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// A point with its numbers on some cases, each taken when it is first asked for.
struct Member<'a> {
    point: Point<'a>,
    cases: &'a [Case],
    /// `None` where the point is not defined.
    values: Vec<OnceCell<Option<Vec<f64>>>>,
    gradients: Vec<OnceCell<Option<Numbers>>>,
}

impl<'a> Member<'a> {
    fn new(meaning: &'a Meaning, changes: Vec<Change>, cases: &'a [Case]) -> Member<'a> {
        Member {
            point: Point { meaning, changes },
            cases,
            values: vec![OnceCell::new(); cases.len()],
            gradients: vec![OnceCell::new(); cases.len()],
        }
    }

    fn changes(&self) -> &[Change] {
        &self.point.changes
    }

    fn id(&self) -> String {
        self.changes().first().map_or("unchanged".into(), Change::id)
    }

    /// What stands under the mask does not count.
    fn value(&self, case: usize) -> Option<&[f64]> {
        let taken = self.values[case].get_or_init(|| {
            let case = &self.cases[case];
            Some(kept_value(case, self.point.numbers(case, &[]).ok()?.value))
        });
        taken.as_deref()
    }

    fn gradients(&self, case: usize) -> Option<&Numbers> {
        let taken = self.gradients[case].get_or_init(|| {
            let case = &self.cases[case];
            self.point.numbers(case, &self.point.meaning.trainables(case)).ok()
        });
        taken.as_ref()
    }

    /// Whether the gradients are differences of values.
    fn takes_differences(&self) -> bool {
        let inputs = self.point.meaning.operation.outputs.iter().filter_map(|output| output.gradient_of);
        self.point.needs_differences(&inputs.collect::<Vec<_>>())
    }

    /// Whether no case tells the two apart. Only cases on which both are defined count.
    fn agrees(&self, other: &Member<'_>) -> bool {
        let compared = |case: usize| self.value(case).is_some() && other.value(case).is_some();
        self.told_by(other, 1.0, usize::MAX).is_none() && (0..self.cases.len()).any(compared)
    }

    /// The first case that tells two points apart by more than rounding (`factor` times what counts as the same): values
    /// first, then gradients. Where just one of the two takes differences, which are slow, gradients are looked at on so many
    /// cases only; where both do, equal values have equal ones.
    fn told_by(&self, other: &Member<'_>, factor: f64, differences: usize) -> Option<usize> {
        let all = 0..self.cases.len();
        let by_value = all.clone().find(|case| self.values_differ(other, *case, factor));
        let count = match (self.takes_differences(), other.takes_differences()) {
            (true, true) => 0,
            (false, false) => usize::MAX,
            _ => differences,
        };
        by_value.or_else(|| all.clone().take(count).find(|case| self.gradients_differ(other, *case, factor)))
    }

    fn is_told(&self, other: &Member<'_>, case: usize, factor: f64) -> bool {
        self.values_differ(other, case, factor) || self.gradients_differ(other, case, factor)
    }

    fn values_differ(&self, other: &Member<'_>, case: usize, factor: f64) -> bool {
        let (Some(first), Some(second)) = (self.value(case), other.value(case)) else { return false };
        !loosened(factor).all_same(first, second)
    }

    fn gradients_differ(&self, other: &Member<'_>, case: usize, factor: f64) -> bool {
        if self.point.meaning.trainables(&self.cases[case]).is_empty() {
            return false;
        }
        let (Some(first), Some(second)) = (self.gradients(case), other.gradients(case)) else { return false };
        let uncertainty = first.uncertainty + second.uncertainty;
        let mut tolerance = loosened(factor);
        tolerance.absolute += uncertainty;
        // A difference quotient at a kink is NaN: it tells nothing.
        first.gradients.iter().flatten().zip(second.gradients.iter().flatten()).any(|(first, second)| {
            let is_told = uncertainty == 0.0 || (!first.is_nan() && !second.is_nan());
            is_told && !tolerance.same(*first, *second)
        })
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

fn loosened(factor: f64) -> Tolerance {
    let Tolerance { relative, absolute, largest } = Tolerance::DOUBLE;
    Tolerance { relative: factor * relative, absolute: factor * absolute, largest }
}

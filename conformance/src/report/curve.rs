//! Loss and gradient against one log-probability: what an implementation gives beside what is right.

use plumbline_core::spec::{Domain, Operation};
use plumbline_diagnosis::Meaning;
use plumbline_diagnosis::vectors::{Case, Purpose};

/// One token's log-probability, moved.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The input that is moved.
    pub input: &'static str,
    /// Its gradient's name.
    pub gradient: &'static str,
    /// The input that it is measured from, where there is one of its kind.
    pub from: Option<&'static str>,
    /// The slot that is moved.
    pub slot: usize,
    /// What is special about it, in words.
    pub title: String,
    /// The distance from `from` (or the input itself) of each case.
    pub places: Vec<f64>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// What both sides give along a sweep.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What is drawn, in words.
    pub title: String,
    /// The horizontal axis in words.
    pub axis: String,
    /// The main output's name.
    pub value: &'static str,
    /// The gradient's name.
    pub gradient: &'static str,
    /// The points, from left to right.
    pub points: Vec<CurvePoint>,
}

/// One place of a curve; what was not given is NaN.
#[derive(Clone, Copy, Debug)]
pub struct CurvePoint {
    /// The place.
    pub place: f64,
    /// The right value and gradient.
    pub right: [f64; 2],
    /// The implementation's.
    pub given: [f64; 2],
}

/// How many places a sweep has.
const PLACES: usize = 49;
/// How far it goes to both sides.
const REACH: f64 = 1.2;

/// The sweeps of an operation from the case of that name, else from its first ordinary one: of a token with a positive advantage and of one with a negative
/// one, or of the first token where there is no advantage. Empty where no log-probability is trained.
pub fn sweeps(meaning: &Meaning, cases: &[&Case], shown: &str) -> Vec<Sweep> {
    let operation: &'static Operation = meaning.operation;
    let mut ordinary = cases.iter().filter(|case| case.purpose == Purpose::Regular);
    let Some(case) = ordinary.clone().find(|case| case.id == shown).or(ordinary.next()) else { return Vec::new() };
    let trained = meaning
        .trainables(case)
        .into_iter()
        .find(|trainable| operation.input(trainable.input).is_some_and(|input| input.domain == Domain::LogProb));
    let Some(trained) = trained else { return Vec::new() };
    let Some(tensor) = case.input(trained.input) else { return Vec::new() };
    let alike = |name: &str| {
        let domain = operation.input(name).map(|input| input.domain);
        name != trained.input && domain == Some(Domain::LogProb)
    };
    let from =
        case.inputs.iter().find(|(name, other)| alike(name) && other.shape == tensor.shape).map(|(name, _)| *name);
    let kept = case.kept(trained.input);
    let rows = tensor.shape.first().copied().unwrap_or(1).max(1);
    let judged =
        operation.inputs.iter().find(|input| input.domain == Domain::Advantage && case.input(input.name).is_some());
    let advantage = |slot: usize| -> Option<f64> {
        let values = &case.input(judged?.name)?.values;
        let index = if values.len() == rows { slot * rows / tensor.values.len() } else { slot };
        values.get(index).copied()
    };
    let slots = (0..tensor.values.len()).filter(|slot| kept[*slot]);
    let chosen: Vec<(usize, String)> = match judged {
        None => slots.take(1).map(|slot| (slot, "one token".to_owned())).collect(),
        Some(judged) => [(1.0, ">"), (-1.0, "<")]
            .into_iter()
            .filter_map(|(sign, words)| {
                let slot = slots.clone().find(|slot| advantage(*slot).is_some_and(|number| number * sign > 0.0))?;
                Some((slot, format!("a token with {} {words} 0", judged.name)))
            })
            .collect(),
    };
    let sweep = |(slot, title): (usize, String)| {
        let centre = from.and_then(|name| case.input(name)).and_then(|tensor| tensor.values.get(slot)).copied();
        let origin = centre.unwrap_or(0.0);
        let middle = if centre.is_some() { 0.0 } else { tensor.values.get(slot).copied().unwrap_or(0.0) };
        let places: Vec<f64> = (0..PLACES)
            // The middle of a kink is nowhere exactly.
            .map(|index| middle + REACH * (2.0 * (index as f64 + 0.31) / PLACES as f64 - 1.0))
            .collect();
        let moved = |(index, place): (usize, &f64)| {
            let mut moved = Case::clone(case);
            moved.id = format!("{}+{index}", case.id);
            if let Some(number) = moved.values_mut(trained.input).and_then(|values| values.get_mut(slot)) {
                *number = origin + place;
            }
            moved
        };
        let cases = places.iter().enumerate().map(moved).collect();
        Sweep { input: trained.input, gradient: trained.output, from, slot, title, places, cases }
    };
    chosen.into_iter().map(sweep).collect()
}

impl Sweep {
    /// The horizontal axis in words.
    pub fn axis(&self) -> String {
        match self.from {
            Some(from) => format!("{} - {from}", self.input),
            None => self.input.to_owned(),
        }
    }
}

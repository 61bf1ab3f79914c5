//! Random compositions: two changes at once with parameters drawn at random, each looked for among what is printed.

use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::Operation;
use plumbline_diagnosis::vectors::{Case, Purpose, Random, Taken, cases_for};
use plumbline_diagnosis::{
    Change, Diagnosis, FindingKind, Meaning, Observation, Observed, Point, Tolerance, diagnose, may_be_paired,
    output_shape, same_axis, single_changes,
};
use plumbline_evaluate::tensor::Tensor;

/// On so many further sets of cases an explanation must fit to count as equal.
const FURTHER: usize = 3;
/// So many are drawn to find those on which the composition is defined.
const FURTHER_ATTEMPTS: usize = 12;

/// What became of the compositions.
pub struct Found {
    /// How many were tried: those that are defined on every case and show in the numbers.
    pub tried: usize,
    /// Those of which another explanation was printed that is the same function: it has the same values and gradients on
    /// further, independently drawn sets of cases too.
    pub equal: usize,
    /// Those that are not among the explanations.
    pub missed: Vec<String>,
}

/// The operations that compositions are drawn from: those with a choice of axes.
const OPERATIONS: [&str; 12] = [
    "objective.ppo",
    "objective.dr_grpo",
    "objective.gspo",
    "objective.cispo",
    "surrogate.ppo_clip",
    "reduce.aggregate",
    "advantage.gae",
    "advantage.group_mean_std",
    "value.clipped",
    "preference.dpo_sigmoid",
    "preference.simpo",
    "td.double_dqn",
];

/// Draw and look for so many; true where at least 99 of 100 are found.
pub fn run(count: usize, seed: u64, json: bool) -> Result<bool, String> {
    let found = sample(count, seed)?;
    let right = found.tried - found.missed.len();
    if json {
        let (tried, equal, missed) = (found.tried, found.equal, &found.missed);
        println!("{}", serde_json::json!({"tried": tried, "found": right, "by_an_equal": equal, "missed": missed}));
    } else {
        for missed in &found.missed {
            println!("missed: {missed}");
        }
        let (tried, equal) = (found.tried, found.equal);
        println!("{right} of {tried} random compositions are among the explanations, {equal} of them by an equal one");
    }
    Ok(right * 100 >= found.tried * 99)
}

/// Draw and look for so many.
pub fn sample(count: usize, seed: u64) -> Result<Found, String> {
    let mut random = Random::new(seed, "random compositions");
    let mut found = Found { tried: 0, equal: 0, missed: Vec::new() };
    while found.tried < count {
        let id = OPERATIONS[random.below(OPERATIONS.len())];
        let operation: &'static Operation = catalog::find(id).ok_or_else(|| format!("there is no {id}"))?;
        let dialect = operation.dialects.get(random.below(operation.dialects.len() + 1)).map(|dialect| dialect.name);
        let meaning = Meaning { operation, dialect, settings: Vec::new() };
        // Some of the parameters vary, each time others.
        let parameters = operation.params.iter().filter(|_| random.below(3) == 0).map(|param| param.name.to_owned());
        let parameters: Vec<String> = parameters.collect();
        let inputs = operation.inputs.iter().map(|input| input.name.to_owned());
        let taken = Taken { names: Some(inputs.chain(parameters).collect()) };
        let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
        let base = meaning.parameters(&empty).map_err(|error| error.to_string())?;
        let accepts = |case: &Case| meaning.accepts(case);
        let cases = cases_for(operation, &base, &taken, random.bits(), Dtype::F64, &accepts);
        let examples: Vec<&Case> = cases.iter().collect();
        let singles: Vec<Change> = single_changes(&meaning, &examples).into_iter().filter(may_be_paired).collect();
        if singles.len() < 2 {
            continue;
        }
        let changes = vec![singles[random.below(singles.len())].clone(), singles[random.below(singles.len())].clone()];
        if changes[0] == changes[1] || same_axis(&changes[0], &changes[1]) {
            continue;
        }
        let point = Point { meaning: &meaning, changes: changes.clone() };
        let Some(seen) = observations(&point, &cases) else { continue };
        let diagnosis = diagnose(&meaning, true, &seen, Tolerance::DOUBLE);
        // What no case shows is no composition that could be found.
        if diagnosis.findings.is_empty() {
            continue;
        }
        found.tried += 1;
        let wanted: Vec<String> = changes.iter().map(Change::id).collect();
        let printed = printed(&diagnosis);
        if printed.iter().any(|ids| *ids == wanted || ids.iter().rev().eq(wanted.iter())) {
            continue;
        }
        let mut others = Vec::new();
        for _ in 0..FURTHER_ATTEMPTS {
            let cases = cases_for(operation, &base, &taken, random.bits(), Dtype::F64, &accepts);
            others.extend(observations(&point, &cases));
            if others.len() == FURTHER {
                break;
            }
        }
        if others.len() == FURTHER && has_equal(&diagnosis, &meaning, &others) {
            found.equal += 1;
            continue;
        }
        let said: Vec<String> =
            diagnosis.findings.iter().map(|finding| format!("{}: {}", finding.kind.name(), finding.text)).collect();
        found.missed.push(format!("{id} {dialect:?} {}: {}", wanted.join("+"), said.join(" ")));
    }
    Ok(found)
}

/// Whether one explanation fits on further sets of cases too: a point by its numbers, a factor by being printed again.
fn has_equal(diagnosis: &Diagnosis, meaning: &Meaning, others: &[Vec<Observation>]) -> bool {
    let explained = diagnosis.findings.iter().filter(|finding| finding.kind == FindingKind::Explained);
    let mut again: Option<Vec<Vec<Vec<String>>>> = None;
    explained.flat_map(|finding| &finding.explanations).any(|explanation| {
        if explanation.changes.is_empty() {
            let diagnosed = |seen: &Vec<Observation>| printed(&diagnose(meaning, true, seen, Tolerance::DOUBLE));
            let again = again.get_or_insert_with(|| others.iter().map(diagnosed).collect());
            return again.iter().all(|printed| printed.contains(&explanation.ids));
        }
        let point = Point { meaning, changes: explanation.changes.clone() };
        others.iter().flatten().all(|seen| gives(&point, seen))
    })
}

/// Whether a point has the observed value, where the mask keeps it, and the observed gradients.
fn gives(point: &Point<'_>, seen: &Observation) -> bool {
    let Observed::Outputs(given) = &seen.observed else { return false };
    let trainables = point.meaning.trainables(&seen.case);
    let Ok(numbers) = point.numbers(&seen.case, &trainables) else { return false };
    let Some((_, value)) = given.first() else { return false };
    let mask = seen.case.input("mask").filter(|mask| mask.shape == value.shape);
    let kept = |slot: usize| mask.is_none_or(|mask| mask.values[slot] != 0.0);
    let mut values = value.values.iter().zip(&numbers.value).enumerate().filter(|(slot, _)| kept(*slot));
    let mut tolerance = Tolerance::DOUBLE;
    let same_value = values.all(|(_, (got, own))| tolerance.same(*got, *own));
    // Both sides may be differences, and one at a kink is NaN.
    tolerance.absolute += 2.0 * numbers.uncertainty;
    let mut gradients = given.iter().skip(1).zip(&numbers.gradients);
    same_value
        && gradients.all(|((_, got), own)| {
            let same = |got: f64, own: f64| (numbers.uncertainty > 0.0 && own.is_nan()) || tolerance.same(got, own);
            got.values.len() == own.len() && got.values.iter().zip(own).all(|(got, own)| same(*got, *own))
        })
}

/// The explanations that reproduce all numbers.
fn printed(diagnosis: &Diagnosis) -> Vec<Vec<String>> {
    let explained = diagnosis.findings.iter().filter(|finding| finding.kind == FindingKind::Explained);
    explained.flat_map(|finding| &finding.explanations).map(|explanation| explanation.ids.clone()).collect()
}

/// What an implementation of a point answers; `None` where it is not defined, or not finite, on some ordinary case.
fn observations(point: &Point<'_>, cases: &[Case]) -> Option<Vec<Observation>> {
    let operation = point.meaning.operation;
    let mut seen = Vec::new();
    for case in cases.iter().filter(|case| !matches!(case.purpose, Purpose::UnderMask { .. })) {
        let trainables = point.meaning.trainables(case);
        let numbers = point.numbers(case, &trainables).ok()?;
        if numbers.all().any(|number| !number.is_finite()) {
            return None;
        }
        let params = point.meaning.parameters(case).ok()?;
        let shape = |name: &str| output_shape(operation, &params, &case.inputs, name);
        let main = operation.outputs.first()?.name;
        let mut given = vec![(main.to_owned(), Tensor { shape: shape(main)?, values: numbers.value })];
        for (trainable, values) in trainables.iter().zip(numbers.gradients) {
            given.push((trainable.output.to_owned(), Tensor { shape: shape(trainable.output)?, values }));
        }
        seen.push(Observation { case: case.clone(), observed: Observed::Outputs(given) });
    }
    Some(seen)
}

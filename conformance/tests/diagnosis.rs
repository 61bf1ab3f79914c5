//! The cases and the search, without an adapter: every operation has cases, the core conforms to itself, and a point of the
//! space is found again from its numbers.

use plumbline_core::catalog;
use plumbline_core::num::{Dtype, Real};
use plumbline_core::spec::{Operation, Value};
use plumbline_diagnosis::vectors::{Case, Purpose, Taken, cases_for};
use plumbline_diagnosis::{
    Change, Diagnosis, Meaning, Observation, Observed, Parts, Point, Split, Tolerance, Verdict, diagnose, output_shape,
    outputs, separation, single_changes,
};
use plumbline_evaluate::tensor::Tensor;

fn meaning(id: &str, dialect: Option<&'static str>) -> Meaning {
    Meaning { operation: catalog::find(id).unwrap(), dialect, settings: Vec::new() }
}

fn cases(meaning: &Meaning, takes: Option<&[&str]>, seed: u64) -> Vec<Case> {
    let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
    let taken = Taken { names: takes.map(|names| names.iter().map(|name| (*name).to_owned()).collect()) };
    let base = meaning.parameters(&empty).unwrap();
    cases_for(meaning.operation, &base, &taken, seed, Dtype::F64, &|case| meaning.accepts(case))
}

/// What an implementation that computes `point` would answer.
fn observed(point: &Point<'_>, case: &Case) -> Observed {
    let operation = point.meaning.operation;
    let trainables = point.meaning.trainables(case);
    let Ok(numbers) = point.numbers(case, &trainables) else { return Observed::Skipped("not defined here".into()) };
    let params = point.meaning.parameters(case).unwrap();
    let shape = |name: &str| output_shape(operation, &params, &case.inputs, name).unwrap();
    let main = operation.outputs[0].name;
    let mut given = vec![(main.to_owned(), Tensor { shape: shape(main), values: numbers.value })];
    for (trainable, values) in trainables.iter().zip(numbers.gradients) {
        given.push((trainable.output.to_owned(), Tensor { shape: shape(trainable.output), values }));
    }
    Observed::Outputs(given)
}

fn diagnosis(meaning: &Meaning, changes: &[Change], cases: &[Case]) -> Diagnosis {
    let point = Point { meaning, changes: changes.to_vec() };
    let seen: Vec<Observation> =
        cases.iter().map(|case| Observation { case: case.clone(), observed: observed(&point, case) }).collect();
    diagnose(meaning, meaning.dialect.is_some(), &seen, Tolerance::DOUBLE)
}

#[test]
fn every_operation_has_cases_and_the_core_conforms_to_itself() {
    let mut without = Vec::new();
    for operation in catalog::operations() {
        let meaning = Meaning { operation, dialect: None, settings: Vec::new() };
        let cases = cases(&meaning, None, 1);
        if cases.len() < 5 {
            without.push(format!("{}: {}", operation.id, cases.len()));
            continue;
        }
        let result = diagnosis(&meaning, &[], &cases);
        assert_eq!(result.verdict, Verdict::Conforms, "{}: {:?}", operation.id, result.findings);
        assert_eq!(result.compared, cases.len(), "{}", operation.id);
    }
    assert!(without.is_empty(), "too few cases: {without:#?}");
}

#[test]
fn cases_are_rebuilt_from_their_seed() {
    let meaning = meaning("objective.grpo", None);
    let text = |seed| format!("{:?}", cases(&meaning, None, seed));
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn chosen_cases_avoid_what_hides_mistakes() {
    let meaning = meaning("objective.grpo", Some("paper"));
    let takes = ["log_prob", "old_log_prob", "ref_log_prob", "advantage", "mask", "clip_ratio_low", "clip_ratio_high"];
    let cases = cases(&meaning, Some(&takes), 1);
    let first = &cases[0];
    let values = |name: &str| first.input(name).unwrap().values.clone();
    let (low, high) = (override_of(first, "clip_ratio_low"), override_of(first, "clip_ratio_high"));
    assert!((low - high).abs() > 1e-3);
    let lengths: Vec<usize> =
        values("mask").chunks(4).map(|row| row.iter().filter(|kept| **kept == 1.0).count()).collect();
    assert_eq!(lengths, [1, 2, 4]);
    // Each sign of the advantage meets a ratio above, below and inside the clip range; one advantage is 0.
    let kept = values("mask");
    let mut regions = std::collections::BTreeSet::new();
    for slot in (0..12).filter(|slot| kept[*slot] == 1.0) {
        let log_ratio = values("log_prob")[slot] - values("old_log_prob")[slot];
        let side = i32::from(log_ratio > Real::ln(1.0 + high)) - i32::from(log_ratio < Real::ln(1.0 - low));
        let advantage = values("advantage")[slot];
        regions.insert((if advantage == 0.0 { 0 } else { advantage.signum() as i32 }, side));
    }
    assert_eq!(regions.iter().filter(|(sign, _)| *sign == 0).count(), 1, "{regions:?}");
    for region in [(1, 1), (1, 0), (1, -1), (-1, 1), (-1, 0), (-1, -1)] {
        assert!(regions.contains(&region), "{region:?} is missing among {regions:?}");
    }
    let names: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    for name in ["empty-row", "far-ratio", "under-mask-log_prob-nan", "under-mask-advantage-inf", "chosen-2"] {
        assert!(names.contains(&name), "{name} is missing among {names:?}");
    }
}

fn override_of(case: &Case, name: &str) -> f64 {
    match case.overrides.iter().find(|(candidate, _)| *candidate == name) {
        Some((_, plumbline_core::spec::Value::Number(number))) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

/// Every single change that shows in the numbers is among the explanations of those numbers.
#[test]
fn a_point_of_the_space_is_found_again() {
    let policy: &[&str] = &[
        "log_prob",
        "old_log_prob",
        "ref_log_prob",
        "advantage",
        "mask",
        "importance_weight",
        "clip_ratio_low",
        "clip_ratio_high",
        "kl_coefficient",
    ];
    let mut tried = 0;
    let mut missed = Vec::new();
    for (id, dialect, takes) in [
        ("objective.grpo", Some("paper"), Some(policy)),
        ("kl.k3", None, None),
        ("advantage.group_mean_std", Some("verl-0.9"), None),
        ("reduce.aggregate", None, None),
    ] {
        let meaning = meaning(id, dialect);
        let cases = cases(&meaning, takes, 1);
        let examples: Vec<&Case> = cases.iter().collect();
        // The policy objective has some three hundred changes: every fifth of them.
        let step = if id.starts_with("objective.") { 5 } else { 1 };
        for change in single_changes(&meaning, &examples).into_iter().step_by(step) {
            if !shows(&meaning, &change, &cases) {
                continue;
            }
            tried += 1;
            let result = diagnosis(&meaning, std::slice::from_ref(&change), &cases);
            // Without a declared dialect the numbers of another one are no mistake.
            let named = match result.verdict {
                Verdict::ConformsToDialect(name) => change == Change::Dialect(name),
                _ => result
                    .findings
                    .iter()
                    .any(|finding| finding.explanations.iter().any(|explanation| explanation.ids == [change.id()])),
            };
            if !named {
                missed.push(format!("{id}: {} ({:?})", change.id(), result.verdict));
            }
        }
    }
    assert!(tried > 60, "{tried}");
    assert!(missed.is_empty(), "{} of {tried} missed: {missed:#?}", missed.len());
}

/// Every pair of points is told apart by a vector, or is equal on many more cases.
#[test]
fn vectors_tell_the_points_of_main_operations_apart() {
    for (id, least) in [
        ("kl.k3", 60),
        ("value.clipped", 150),
        ("advantage.gae", 200),
        ("td.double_dqn", 120),
        ("preference.bradley_terry", 60),
        ("td.c51", 80),
        ("reduce.aggregate", 120),
    ] {
        let found = separation(&meaning(id, None), 1).unwrap();
        assert!(found.points >= least, "{id}: {}", found.points);
        assert_eq!(found.gaps, [], "{id}");
    }
    // The operation's own defaults are equal to its first dialect.
    let found = separation(&meaning("kl.k3", None), 1).unwrap();
    assert!(found.equal[0].starts_with(&["unchanged".into(), "dialect:paper".into()]), "{:?}", found.equal[0]);
}

/// Whether a change moves a number by more than the tolerance on a case without junk, where the changed meaning is defined.
fn shows(meaning: &Meaning, change: &Change, cases: &[Case]) -> bool {
    let regular = cases.iter().filter(|case| !matches!(case.purpose, Purpose::UnderMask { .. }));
    let changed = Point { meaning, changes: vec![change.clone()] };
    let base = Point { meaning, changes: Vec::new() };
    let mut moves = false;
    for case in regular {
        let trainables = meaning.trainables(case);
        let (Ok(changed), Ok(base)) = (changed.numbers(case, &trainables), base.numbers(case, &trainables)) else {
            return false;
        };
        if changed.all().any(|number| !number.is_finite()) {
            return false;
        }
        let kept = case.kept("mask");
        let is_masked = |index: usize| changed.value.len() == kept.len() && !kept[index];
        let differ = |a: f64, b: f64| (a - b).abs() > 1e-6 * b.abs().max(1.0);
        let value = changed.value.iter().zip(&base.value).enumerate();
        moves |= value.filter(|(index, _)| !is_masked(*index)).any(|(_, (a, b))| differ(*a, *b));
        let gradients = changed.gradients.iter().flatten().zip(base.gradients.iter().flatten());
        moves |= gradients.into_iter().any(|(a, b)| differ(*a, *b));
    }
    moves
}

/// The operation's own outputs beside value and gradient are compared where they are given.
#[test]
fn another_output_that_differs_is_reported_by_name() {
    let meaning = meaning("objective.grpo", Some("paper"));
    let operation: &'static Operation = meaning.operation;
    let cases = cases(&meaning, None, 1);
    let seen: Vec<Observation> = cases
        .iter()
        .map(|case| {
            let params = meaning.parameters(case).unwrap();
            let names = ["loss", "clip_fraction"];
            let values = outputs(operation, &params, &case.inputs, &names).unwrap();
            let loss = Tensor { shape: vec![], values: values[0].clone() };
            let metric = Tensor { shape: vec![], values: vec![values[1][0] + 0.25] };
            let given = vec![("loss".to_owned(), loss), ("clip_fraction".to_owned(), metric)];
            Observation { case: case.clone(), observed: Observed::Outputs(given) }
        })
        .collect();
    let result = diagnose(&meaning, true, &seen, Tolerance::DOUBLE);
    assert_eq!(result.verdict, Verdict::Differs);
    assert_eq!(result.findings.len(), 1, "{:?}", result.findings);
    assert!(result.findings[0].text.starts_with("`clip_fraction` differs on "), "{}", result.findings[0].text);
    assert!(!result.gradients);
}

/// A mean of means does not come out of its shards, and a trace that decays otherwise does not telescope: both are said.
#[test]
fn shards_and_traces_are_evidence() {
    let text = |id: &str, takes: &[&str], change: Change| {
        let meaning = meaning(id, None);
        let cases = cases(&meaning, Some(takes), 1);
        let result = diagnosis(&meaning, std::slice::from_ref(&change), &cases);
        let explained = result.findings.iter().find(|finding| !finding.explanations.is_empty()).unwrap();
        assert!(explained.explanations.iter().any(|found| found.ids == [change.id()]), "{:?}", explained.explanations);
        explained.text.clone()
    };
    let halves = Change::Parts(Split { parts: Parts::RowHalves, by_rows: false });
    let said = text("reduce.aggregate", &["mask"], halves);
    assert!(
        said.contains(
            "It depends on how the batch is cut into shards: its two halves of rows, weighted by their tokens"
        ),
        "{said}"
    );
    let takes = ["mask", "terminated", "truncated", "next_value", "gamma", "gae_lambda"];
    let fixed = Change::Set("gae_lambda", Value::Number(0.95));
    let said = text("advantage.gae", &takes, fixed);
    assert!(said.contains("Where the trace decay is 1, it telescopes to the return"), "{said}");
    assert!(said.contains("Where the trace decay is 0, it is the target of one step"), "{said}");
    // Whether the trace is cut does not show in one step.
    let said = text("advantage.gae", &takes, Change::TraceNeverCut);
    assert!(said.contains("Where the trace decay is 0, all is right"), "{said}");
}

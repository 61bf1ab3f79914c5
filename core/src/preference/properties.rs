//! Properties of all operations of the family, driven by the catalog: gradients agree with central differences, no
//! finite input gives NaN, masked slots are absent, order of pairs does not matter.

use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::OPERATIONS;
use crate::Error;
use crate::spec::{Data, Dialect, Domain, Given, GivenValue, Input, Operation, Output, Value, evaluate};

fn operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().flat_map(|file| file.iter())
}

/// Owned numbers of one input.
#[derive(Clone, Debug)]
enum Numbers {
    Real(Vec<f64>),
    Mask(Vec<u8>),
    Index(Vec<u32>),
}

#[derive(Clone, Debug)]
struct Owned {
    name: &'static str,
    shape: Vec<usize>,
    numbers: Numbers,
}

fn size(dimension: &str) -> usize {
    match dimension {
        "N" | "B" => 4,
        "T" => 5,
        "S" => 6,
        "K" => 3,
        "M" => 2,
        other => panic!("dimension {other} has no size in these tests"),
    }
}

/// A small deterministic generator, so that a failing case is rebuilt from its seed.
struct Draw(u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// Inputs for an operation: log-probs around −`scale`, everything else by its domain.
fn inputs(operation: &Operation, draw: &mut Draw, scale: f64) -> Vec<Owned> {
    let mut all = Vec::new();
    for spec in operation.inputs {
        let shape: Vec<usize> = spec.shapes[0].iter().map(|dimension| size(dimension)).collect();
        let count: usize = shape.iter().product();
        let numbers = match spec.domain {
            Domain::Mask => Numbers::Mask((0..count).map(|_| u8::from(draw.unit() < 0.8)).collect()),
            Domain::Count => Numbers::Index((0..count).map(|_| draw.between(1.0, 9.0) as u32).collect()),
            Domain::Index(_) => {
                let rows = shape.iter().rev().skip(1).product::<usize>();
                let width = shape.last().copied().unwrap_or(1);
                // A permutation in each row: a rotation by a drawn amount.
                let mut values = Vec::new();
                for _ in 0..rows {
                    let start = draw.between(0.0, width as f64) as usize;
                    values.extend((0..width).map(|index| ((index + start) % width) as u32));
                }
                Numbers::Index(values)
            }
            domain => Numbers::Real(
                (0..count)
                    .map(|_| match domain {
                        Domain::LogProb => -draw.between(0.05, 1.0) * scale,
                        Domain::Positive | Domain::NonNegative => draw.between(0.1, 3.0),
                        Domain::Probability => draw.between(0.05, 0.95),
                        _ => draw.between(-1.0, 1.0) * scale,
                    })
                    .collect(),
            ),
        };
        all.push(Owned { name: spec.name, shape, numbers });
    }
    all
}

fn count_of(operation: &Operation, name: &str) -> usize {
    operation.output(name).unwrap().shape.iter().map(|dimension| size(dimension)).product()
}

fn run<R: crate::spec::Evaluable>(
    operation: &'static Operation,
    given: &[Given<'_>],
    dialect: Option<&str>,
    owned: &[Owned],
) -> Result<Vec<Vec<R>>, Error> {
    let converted: Vec<Vec<R>> = owned
        .iter()
        .map(|input| match &input.numbers {
            Numbers::Real(values) => values.iter().map(|value| R::from_f64(*value)).collect(),
            _ => Vec::new(),
        })
        .collect();
    let inputs: Vec<Input<'_, R>> = owned
        .iter()
        .zip(&converted)
        .map(|(input, real)| Input {
            name: input.name,
            shape: &input.shape,
            data: match &input.numbers {
                Numbers::Real(_) => Data::Real(real),
                Numbers::Mask(values) => Data::Mask(values),
                Numbers::Index(values) => Data::Index(values),
            },
        })
        .collect();
    let mut buffers: Vec<Vec<R>> = operation
        .outputs
        .iter()
        .map(|output| std::vec![R::from_f64(123.0); count_of(operation, output.name)])
        .collect();
    let mut outputs: Vec<Output<'_, R>> =
        operation.outputs.iter().zip(&mut buffers).map(|(output, data)| Output { name: output.name, data }).collect();
    evaluate(operation, dialect, given, &inputs, &mut outputs)?;
    drop(outputs);
    Ok(buffers)
}

/// Every setting of an operation worth a look: each choice and flag turned to each of its members.
fn settings(operation: &'static Operation) -> Vec<(String, Vec<Given<'static>>)> {
    use crate::spec::ParamKind;
    let mut all = std::vec![(String::from("default"), Vec::new())];
    for param in operation.params {
        let name = param.name;
        match param.kind {
            ParamKind::Choice { names, .. } => {
                for choice in names {
                    let given = Given { name, value: GivenValue::Name(choice) };
                    all.push((std::format!("{name} = {choice}"), std::vec![given]));
                }
            }
            ParamKind::Flag { .. } => {
                for flag in [false, true] {
                    let given = Given { name, value: GivenValue::Flag(flag) };
                    all.push((std::format!("{name} = {flag}"), std::vec![given]));
                }
            }
            ParamKind::Number { range, .. } if range.contains(0.3) => {
                let given = Given { name, value: GivenValue::Number(0.3) };
                all.push((std::format!("{name} = 0.3"), std::vec![given]));
            }
            ParamKind::OptionalNumber { range, .. } if range.contains(7.0) => {
                let given = Given { name, value: GivenValue::Number(7.0) };
                all.push((std::format!("{name} = 7"), std::vec![given]));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn gradients_agree_with_central_differences() {
    for operation in operations() {
        for (label, given) in settings(operation) {
            for seed in 1..=3 {
                let owned = inputs(operation, &mut Draw(seed), 3.0);
                let results = run::<f64>(operation, &given, None, &owned).unwrap();
                for (position, output) in operation.outputs.iter().enumerate() {
                    let Some(by) = output.gradient_of else { continue };
                    if output.stop_gradient {
                        continue;
                    }
                    let input = owned.iter().position(|input| input.name == by).unwrap();
                    for element in 0..results[position].len() {
                        let step = 1e-5;
                        let total = |shift: f64| {
                            let mut moved = owned.clone();
                            if let Numbers::Real(values) = &mut moved[input].numbers {
                                values[element] += shift;
                            }
                            let results = run::<f64>(operation, &given, None, &moved).unwrap();
                            results[0].iter().sum::<f64>()
                        };
                        let numeric = (total(step) - total(-step)) / (2.0 * step);
                        let analytic = results[position][element];
                        // Error of the central difference: step² · third derivative and rounding / step.
                        assert!(
                            (numeric - analytic).abs() <= 2e-7 * (1.0 + analytic.abs()),
                            "{} ({label}, seed {seed}): {}[{element}] = {analytic}, differences give {numeric}",
                            operation.id,
                            output.name,
                        );
                    }
                }
            }
        }
    }
}

fn no_nan<R: crate::spec::Evaluable>(scale: f64) {
    for operation in operations() {
        let dialects = operation.dialects.iter().map(|dialect: &Dialect| Some(dialect.name));
        for dialect in core::iter::once(None).chain(dialects) {
            for (label, given) in settings(operation) {
                for seed in 1..=4 {
                    let owned = inputs(operation, &mut Draw(seed), scale);
                    match run::<R>(operation, &given, dialect, &owned) {
                        Ok(results) => {
                            for (output, values) in operation.outputs.iter().zip(results) {
                                assert!(
                                    values.iter().all(|value| !value.is_nan()),
                                    "{} ({label}, {dialect:?}, scale {scale}, seed {seed}): {} = {values:?}",
                                    operation.id,
                                    output.name
                                );
                            }
                        }
                        Err(error) => assert!(!matches!(error, Error::NonFinite { .. }), "{}: {error}", operation.id),
                    }
                }
            }
        }
    }
}

#[test]
fn no_finite_input_gives_nan() {
    for scale in [1.0, 20.0, 88.0, 100.0, 710.0, 1000.0, 30_000.0] {
        no_nan::<f64>(scale);
        no_nan::<f32>(scale);
    }
}

/// For an input, the mask that its elements stand under, where it has one of the same shape.
fn mask_of(owned: &[Owned], input: &Owned) -> Option<Vec<u8>> {
    let prefix = input.name.rsplit_once("_log").map(|(prefix, _)| prefix.trim_start_matches("ref_"));
    owned.iter().find_map(|candidate| match &candidate.numbers {
        Numbers::Mask(bytes)
            if candidate.shape == input.shape
                && (candidate.name == "mask"
                    || prefix.is_some_and(|prefix| candidate.name == std::format!("{prefix}_mask"))) =>
        {
            Some(bytes.clone())
        }
        _ => None,
    })
}

#[test]
fn masked_slots_are_absent() {
    for operation in operations() {
        for seed in 1..=4 {
            let owned = inputs(operation, &mut Draw(seed), 3.0);
            let mut junk = owned.clone();
            for (input, original) in junk.iter_mut().zip(&owned) {
                let Some(mask) = mask_of(&owned, original) else { continue };
                if let Numbers::Real(values) = &mut input.numbers {
                    for (index, value) in values.iter_mut().enumerate().filter(|(index, _)| mask[*index] == 0) {
                        *value = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300][index % 4];
                    }
                }
            }
            let clean = run::<f64>(operation, &[], None, &owned).unwrap();
            let dirty = run::<f64>(operation, &[], None, &junk).unwrap();
            for (output, (clean, dirty)) in operation.outputs.iter().zip(clean.iter().zip(&dirty)) {
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(clean), bits(dirty), "{}: {}", operation.id, output.name);
                let Some(by) = output.gradient_of else { continue };
                let input = owned.iter().find(|input| input.name == by).unwrap();
                if let Some(mask) = mask_of(&owned, input) {
                    for (value, byte) in clean.iter().zip(mask) {
                        assert!(byte != 0 || value.to_bits() == 0, "{}: {}", operation.id, output.name);
                    }
                }
            }
        }
    }
}

#[test]
fn catalog_entries_are_complete() {
    for operation in operations() {
        let id = operation.id;
        assert!(id.starts_with("preference."), "{id}");
        assert!(!operation.summary.is_empty() && !operation.formula.is_empty() && !operation.notes.is_empty(), "{id}");
        assert!(
            operation.sources.iter().all(|source| !source.place.is_empty()) && !operation.sources.is_empty(),
            "{id}"
        );
        let trainable = operation.outputs.iter().any(|output| output.gradient_of.is_some());
        assert_eq!(trainable, !operation.gradient.is_empty(), "{id}");
        for dialect in operation.dialects {
            for (name, value) in dialect.settings {
                let (_, param) = operation.param(name).unwrap_or_else(|| panic!("{id}: {name}"));
                let legal = match (param.kind, value) {
                    (crate::spec::ParamKind::Choice { names, .. }, Value::Name(name)) => names.contains(name),
                    _ => true,
                };
                assert!(legal, "{id}: {name}");
            }
        }
    }
}

fn pair_operation(operation: &Operation) -> bool {
    operation.outputs.iter().any(|output| output.name == "d_rejected_log_prob" && output.shape == ["N"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn order_of_pairs_changes_no_bit_of_the_mean(seed in 1u64..1_000_000) {
        for operation in operations().filter(|operation| pair_operation(operation)) {
            let owned = inputs(operation, &mut Draw(seed), 5.0);
            let mut turned = owned.clone();
            for input in &mut turned {
                if input.shape == [size("N")] {
                    match &mut input.numbers {
                        Numbers::Real(values) => values.rotate_left(1),
                        Numbers::Mask(values) => values.rotate_left(1),
                        Numbers::Index(values) => values.rotate_left(1),
                    }
                }
            }
            let (straight, rotated) = (run::<f64>(operation, &[], None, &owned), run::<f64>(operation, &[], None, &turned));
            match (straight, rotated) {
                (Ok(straight), Ok(rotated)) => {
                    prop_assert_eq!(straight[0][0].to_bits(), rotated[0][0].to_bits(), "{}", operation.id);
                }
                (straight, rotated) => prop_assert_eq!(straight.err(), rotated.err(), "{}", operation.id),
            }
        }
    }

    #[test]
    fn gradients_of_a_score_difference_are_opposite(seed in 1u64..1_000_000) {
        // Under reverse KL without length normalisation only the difference of the two log-probs matters.
        for name in ["dpo_sigmoid", "dpo_hinge", "dpo_ipo", "dpo_exo_pair", "dpo_robust", "dpo_discopop", "dpo_aot"] {
            let operation = operations().find(|operation| operation.id.strip_prefix("preference.") == Some(name)).unwrap();
            let owned = inputs(operation, &mut Draw(seed), 5.0);
            let Ok(results) = run::<f64>(operation, &[], None, &owned) else { continue };
            let gradient = |wanted: &str| {
                results[operation.outputs.iter().position(|output| output.name == wanted).unwrap()].clone()
            };
            for (by_chosen, by_rejected) in gradient("d_chosen_log_prob").into_iter().zip(gradient("d_rejected_log_prob")) {
                prop_assert_eq!(by_chosen, -by_rejected, "{}", operation.id);
            }
        }
    }

    #[test]
    fn references_of_zero_are_the_reference_free_form(seed in 1u64..1_000_000) {
        for operation in operations().filter(|operation| operation.input("ref_chosen_log_prob").is_some_and(|input| input.optional)) {
            let mut owned = inputs(operation, &mut Draw(seed), 5.0);
            for input in owned.iter_mut().filter(|input| input.name.starts_with("ref_")) {
                if let Numbers::Real(values) = &mut input.numbers {
                    values.fill(0.0);
                }
            }
            let free: Vec<Owned> = owned.iter().filter(|input| !input.name.starts_with("ref_")).cloned().collect();
            prop_assert_eq!(
                run::<f64>(operation, &[], None, &owned).ok(),
                run::<f64>(operation, &[], None, &free).ok(),
                "{}", operation.id
            );
        }
    }
}

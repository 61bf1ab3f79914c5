//! Properties of every operation, driven by the catalog: what stands under the mask changes nothing, padding and the
//! order of rows change nothing, no finite input gives NaN, no input panics.

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plumbline_conformance::backend::{Backend, Core, Failure};
use plumbline_conformance::fixture::Case;
use plumbline_conformance::verify::dialect_of;
use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, Family, InputSpec, Operation, ParamKind, Shape};
use plumbline_evaluate::tensor::{Tensor, round_to};
use plumbline_evaluate::{Outputs, Param, Request, Wanted, evaluate, resolved_params};

use common::{Inputs, Random, cases, drawn, drawn_params, golden_cases};

/// The time after which an operation gets no further random inputs: one that iterates to convergence would hold up the
/// others.
const SHARE: Duration = Duration::from_millis(700);

/// Any number: special ones often, else random bits.
fn junk(random: &mut Random) -> f64 {
    const SPECIAL: [f64; 10] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0, 1e30, -1e-300, 88.8];
    if random.below(2) == 0 { *random.pick(&SPECIAL) } else { f64::from_bits(random.bits()) }
}

/// Whether an input of this domain holds real numbers.
fn is_real(domain: Domain) -> bool {
    !matches!(domain, Domain::Mask | Domain::Done | Domain::Group | Domain::Index(_) | Domain::Count)
}

fn run(case: &Case, dtype: Dtype, inputs: &Inputs) -> Result<Outputs, String> {
    evaluate(&Request {
        operation: &case.operation,
        dialect: dialect_of(case),
        dtype,
        params: &case.params,
        inputs,
        outputs: Wanted::All,
    })
    .map_err(|refusal| refusal.to_string())
}

/// The same bits, which NaN would not be excused from; the place of the first difference.
fn difference(before: &[f64], after: &[f64]) -> Option<String> {
    if before.len() != after.len() {
        return Some(format!("{} elements became {}", before.len(), after.len()));
    }
    let mut pairs = before.iter().zip(after).enumerate();
    let (index, (old, new)) = pairs.find(|(_, (old, new))| old.to_bits() != new.to_bits())?;
    Some(format!("{old:e} became {new:e} at {index}"))
}

fn specs<'a>(operation: &'static Operation, inputs: &'a Inputs) -> Vec<(&'static InputSpec, Shape, &'a Tensor)> {
    operation
        .inputs
        .iter()
        .filter_map(|spec| {
            let (_, tensor) = inputs.iter().find(|(name, _)| name == spec.name)?;
            let shape = spec.shapes.iter().find(|shape| shape.len() == tensor.shape.len())?;
            Some((spec, *shape, tensor))
        })
        .collect()
}

#[test]
fn what_stands_under_the_mask_changes_no_bit() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut faults, mut replaced) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for (dtype, case) in cases(24) {
        let operation = catalog::find(&case.operation).unwrap();
        let Some((_, mask)) = case.inputs.iter().find(|(name, _)| name == "mask").cloned() else { continue };
        let Ok(before) = run(&case, dtype, &case.inputs) else { continue };
        for _ in 0..4 {
            let mut inputs = case.inputs.clone();
            for (name, tensor) in &mut inputs {
                let covered = |spec: &&InputSpec| {
                    let named = spec.shapes.iter().find(|shape| shape.len() == tensor.shape.len());
                    is_real(spec.domain) && named == operation.input("mask").and_then(|mask| mask.shapes.first())
                };
                if operation.input(name).as_ref().is_some_and(covered) && tensor.shape == mask.shape {
                    for (value, _) in tensor.values.iter_mut().zip(&mask.values).filter(|(_, kept)| **kept == 0.0) {
                        *value = round_to(junk(&mut random), dtype);
                        *replaced.entry(operation.id).or_default() += 1;
                    }
                }
            }
            match run(&case, dtype, &inputs) {
                Err(refusal) => faults.push(format!("{}: {refusal}", case.id)),
                Ok(after) => faults.extend(before.iter().zip(&after).filter_map(|((name, old), (_, new))| {
                    difference(&old.values, &new.values).map(|what| format!("{}: `{name}`: {what}", case.id))
                })),
            }
        }
    }
    println!("{replaced:#?}");
    assert!(replaced.values().sum::<usize>() > 1000, "too few slots were replaced");
    assert!(faults.is_empty(), "{} faults, the first:\n{}", faults.len(), faults[..faults.len().min(20)].join("\n"));
}

/// An array with `extra` columns added along each dimension called T, filled by `fill`.
fn padded(tensor: &Tensor, shape: Shape, extra: usize, mut fill: impl FnMut() -> f64) -> Tensor {
    let Some(axis) = shape.iter().position(|name| *name == "T") else { return tensor.clone() };
    let inner: usize = tensor.shape[axis + 1..].iter().product();
    let (old, mut wide) = (tensor.shape[axis] * inner, tensor.shape.clone());
    wide[axis] += extra;
    let outer: usize = tensor.shape[..axis].iter().product();
    let mut values = Vec::new();
    for row in 0..outer {
        values.extend_from_slice(&tensor.values[row * old..(row + 1) * old]);
        values.extend((0..extra * inner).map(|_| fill()));
    }
    Tensor { shape: wide, values }
}

/// Whether this call divides by the padded width, as the operation's own parameters say.
fn divides_by_width(operation: &'static Operation, case: &Case) -> bool {
    let Ok(params) = resolved_params(operation, dialect_of(case), &case.params) else { return false };
    let has = |wanted: &str, value: &Param| params.iter().any(|(name, given)| *name == wanted && given == value);
    let counts_absent = params.iter().any(|(name, given)| *name == "absent_length" && *given != Param::Number(0.0));
    counts_absent
        || has("aggregation", &Param::Name("seq_mean_token_sum_norm".to_owned()))
            && has("length_normaliser", &Param::None)
}

#[test]
fn padding_columns_change_no_bit() {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    let (mut faults, mut seen) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for (dtype, case) in cases(24) {
        let operation = catalog::find(&case.operation).unwrap();
        let masked = operation.input("mask").is_some_and(|spec| spec.shapes.iter().any(|shape| shape.contains(&"T")));
        if !masked || divides_by_width(operation, &case) {
            continue;
        }
        let Ok(before) = run(&case, dtype, &case.inputs) else { continue };
        let extra = 1 + random.below(200);
        let described = specs(operation, &case.inputs);
        let mut inputs: Inputs = described
            .iter()
            .map(|(spec, shape, tensor)| {
                let wide = padded(tensor, shape, extra, || match spec.domain {
                    domain if is_real(domain) => round_to(junk(&mut random), dtype),
                    _ => 0.0,
                });
                (spec.name.to_owned(), wide)
            })
            .collect();
        if !inputs.iter().any(|(name, _)| name == "mask") {
            let Some((_, shape, tensor)) = described.iter().find(|(_, shape, _)| *shape == ["B", "T"]) else {
                continue;
            };
            let ones = Tensor { shape: tensor.shape.clone(), values: vec![1.0; tensor.values.len()] };
            inputs.push(("mask".to_owned(), padded(&ones, shape, extra, || 0.0)));
        }
        *seen.entry(operation.id).or_default() += 1;
        match run(&case, dtype, &inputs) {
            Err(refusal) => faults.push(format!("{}: {refusal}", case.id)),
            Ok(after) => {
                for ((name, old), (_, new)) in before.iter().zip(&after) {
                    let wide = padded(old, operation.output(name).unwrap().shape, extra, || 0.0);
                    if let Some(what) = difference(&wide.values, &new.values) {
                        faults.push(format!("{}: {extra} columns: `{name}`: {what}", case.id));
                    }
                }
            }
        }
    }
    println!("{seen:#?}");
    assert!(seen.values().sum::<usize>() > 30, "too few cases were padded");
    assert!(faults.is_empty(), "{} faults, the first:\n{}", faults.len(), faults[..faults.len().min(20)].join("\n"));
}

/// Rows in another order.
fn permuted(tensor: &Tensor, shape: Shape, order: &[usize]) -> Tensor {
    if shape.first() != Some(&"B") || tensor.shape[0] != order.len() {
        return tensor.clone();
    }
    let width: usize = tensor.shape[1..].iter().product();
    let values = order.iter().flat_map(|row| tensor.values[row * width..(row + 1) * width].to_vec()).collect();
    Tensor { shape: tensor.shape.clone(), values }
}

#[test]
fn the_order_of_rows_changes_no_bit() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut faults, mut seen) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for (dtype, case) in cases(24) {
        let operation = catalog::find(&case.operation).unwrap();
        let described = specs(operation, &case.inputs);
        let rows =
            described.iter().find_map(|(_, shape, tensor)| (shape.first() == Some(&"B")).then(|| tensor.shape[0]));
        let (Some(rows), Ok(before)) = (rows, run(&case, dtype, &case.inputs)) else { continue };
        let mut order: Vec<usize> = (0..rows).collect();
        for place in (1..rows).rev() {
            order.swap(place, random.below(place + 1));
        }
        let inputs: Inputs = described
            .iter()
            .map(|(spec, shape, tensor)| (spec.name.to_owned(), permuted(tensor, shape, &order)))
            .collect();
        *seen.entry(operation.id).or_default() += 1;
        match run(&case, dtype, &inputs) {
            Err(refusal) => faults.push(format!("{}: {refusal}", case.id)),
            Ok(after) => {
                for ((name, old), (_, new)) in before.iter().zip(&after) {
                    let old = permuted(old, operation.output(name).unwrap().shape, &order);
                    if let Some(what) = difference(&old.values, &new.values) {
                        faults.push(format!("{}: rows {order:?}: `{name}`: {what}", case.id));
                    }
                }
            }
        }
    }
    println!("{seen:#?}");
    assert!(seen.values().sum::<usize>() > 30, "too few cases were permuted");
    assert!(faults.is_empty(), "{} faults, the first:\n{}", faults.len(), faults[..faults.len().min(20)].join("\n"));
}

#[test]
fn no_finite_input_gives_nan() {
    let (mut faults, mut answered) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
    for operation in catalog::operations() {
        answered.insert(operation.id, 0);
        let mut random = Random::named(operation.id);
        let begun = Instant::now();
        for round in (0..200).take_while(|_| begun.elapsed() < SHARE) {
            let dtype = if round % 2 == 0 { Dtype::F64 } else { Dtype::F32 };
            let scale = *random.pick(&[1.0, 20.0, 88.0, 100.0, 710.0, 1000.0]);
            let inputs = drawn(operation, &mut random, scale, dtype);
            let params = drawn_params(operation, &mut random);
            let request = Request {
                operation: operation.id,
                dialect: None,
                dtype,
                params: &params,
                inputs: &inputs,
                outputs: Wanted::All,
            };
            let Ok(outputs) = evaluate(&request) else { continue };
            *answered.entry(operation.id).or_default() += 1;
            // A composition sums terms; where they overflow to both infinities the sum has no value. A formula by itself
            // has no such excuse.
            let excused = operation.family == Family::Objective
                && outputs.iter().any(|(_, tensor)| tensor.values.iter().any(|value| value.is_infinite()));
            for (name, tensor) in outputs.into_iter().filter(|_| !excused) {
                if tensor.values.iter().any(|value| value.is_nan()) {
                    let first = format!("`{name}` is NaN ({}) for {params:?} {inputs:?}", dtype.name());
                    faults.entry(format!("{}: {first}", operation.id)).or_default();
                }
            }
        }
    }
    let silent: Vec<&str> = answered.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    println!("never answered: {silent:?}");
    let lines: Vec<&String> = faults.keys().collect();
    assert!(
        faults.is_empty(),
        "{} faults, the first:\n{}",
        faults.len(),
        lines[..lines.len().min(10)].iter().map(|l| l.as_str()).collect::<Vec<_>>().join("\n")
    );
    assert!(silent.len() * 10 <= answered.len(), "too many operations refuse everything: {silent:?}");
}

/// Break one thing about the inputs: bits, a shape, a length, a size of 0, a name.
fn broken(inputs: &mut Inputs, random: &mut Random) {
    if inputs.is_empty() {
        return;
    }
    let place = random.below(inputs.len());
    let tensor = &mut inputs[place].1;
    match random.below(8) {
        0..=2 => {
            for value in &mut tensor.values {
                if random.below(3) == 0 {
                    *value = junk(random);
                }
            }
        }
        3 => {
            tensor.values.pop();
        }
        4 => tensor.shape.push(1),
        5 => {
            tensor.shape.pop();
        }
        6 => {
            let zero = random.below(3);
            for (_, tensor) in inputs.iter_mut() {
                if let Some(size) = tensor.shape.get_mut(zero) {
                    *size = 0;
                    tensor.values.clear();
                }
            }
        }
        _ => {
            if let Some(size) = tensor.shape.first_mut() {
                *size = *random.pick(&[usize::MAX, 1 << 40, 0, 7]);
            }
        }
    }
}

#[test]
fn no_input_panics() {
    let mut faults = Vec::new();
    let mut calls = [0usize; 2];
    let golden = golden_cases();
    for operation in catalog::operations() {
        let cases: Vec<&Case> =
            golden.iter().filter(|(_, case)| case.operation == operation.id).map(|(_, case)| case).collect();
        let mut random = Random::named(operation.id);
        let begun = Instant::now();
        for _ in (0..300).take_while(|_| begun.elapsed() < SHARE) {
            let dtype = *random.pick(&[Dtype::F32, Dtype::F64]);
            let mut params = drawn_params(operation, &mut random);
            let mut inputs = if cases.is_empty() || random.below(2) == 0 {
                drawn(operation, &mut random, 1.0, dtype)
            } else {
                let case = *random.pick(&cases);
                params.clone_from(&case.params);
                case.inputs.clone()
            };
            for _ in 0..random.below(3) {
                broken(&mut inputs, &mut random);
            }
            if let Some((name, value)) = params.first_mut()
                && operation.param(name).is_some_and(|(_, spec)| !matches!(spec.kind, ParamKind::Integer { .. }))
                && random.below(4) == 0
            {
                *value = Param::Number(junk(&mut random));
            }
            let dialects: Vec<Option<&str>> =
                std::iter::once(None).chain(operation.dialects.iter().map(|dialect| Some(dialect.name))).collect();
            let dialect = *random.pick(&dialects);
            let request = Request {
                operation: operation.id,
                dialect,
                dtype,
                params: &params,
                inputs: &inputs,
                outputs: Wanted::All,
            };
            match Core.evaluate(&request) {
                Ok(_) => calls[0] += 1,
                Err(Failure::Broke(words)) => {
                    faults.push(format!("{}: {words}: {params:?} {inputs:?}", operation.id));
                }
                Err(_) => calls[1] += 1,
            }
        }
    }
    println!("{} calls were answered, {} refused", calls[0], calls[1]);
    assert!(calls[0] > 1000 && calls[1] > 1000, "{calls:?}");
    assert!(faults.is_empty(), "{} faults, the first:\n{}", faults.len(), faults[..faults.len().min(10)].join("\n"));
}

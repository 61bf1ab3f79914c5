//! Every gradient that is declared to be the derivative of the printed value is: against differences of core's own
//! values, on every golden case in double precision and on random inputs.

mod common;

use std::collections::BTreeMap;

use plumbline_conformance::fixture::Case;
use plumbline_conformance::verify::dialect_of;
use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Family, Operation};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Param, Request, Wanted, evaluate};

use common::cases;

/// What was seen of one operation's gradients.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Elements whose derivative agrees.
    agreed: usize,
    /// Elements of those whose derivative is large enough for the differences to measure it.
    measured: usize,
    /// Elements left out because the value has a kink nearby.
    kinks: usize,
    /// Elements left out because a shifted input is outside the operation's domain or its value is infinite.
    edges: usize,
}

/// Σ first output, and Σ |first output| as the measure of its rounding; weighted by `cotangent` where there is one.
fn total(case: &Case, inputs: &[(String, Tensor)], first: &str) -> Option<[f64; 2]> {
    let names = [first];
    let outputs = evaluate(&Request {
        operation: &case.operation,
        dialect: dialect_of(case),
        dtype: Dtype::F64,
        params: &case.params,
        inputs,
        outputs: Wanted::Named(&names),
    })
    .ok()?;
    let (_, value) = outputs.first()?;
    let cotangent = inputs.iter().find(|(name, _)| name == "cotangent").map(|(_, tensor)| tensor);
    let weight = |slot: usize| cotangent.map_or(1.0, |tensor| tensor.values.get(slot).copied().unwrap_or(1.0));
    let masked = inputs.iter().find(|(name, tensor)| name == "mask" && tensor.shape == value.shape);
    let kept = |slot: usize| masked.is_none_or(|(_, mask)| mask.values[slot] != 0.0);
    let terms =
        value.values.iter().enumerate().filter(|(slot, _)| kept(*slot)).map(|(slot, value)| value * weight(slot));
    let total = terms.fold([0.0, 0.0], |[sum, size], term| [sum + term, size + term.abs()]);
    // An infinite value has no differences.
    total.iter().all(|part| part.is_finite()).then_some(total)
}

/// The five values around one element, its step, and the rounding that they carry.
fn around(case: &Case, name: &str, slot: usize, first: &str) -> Option<([f64; 5], f64, f64)> {
    let mut inputs = case.inputs.clone();
    let place = inputs.iter().position(|(input, _)| input == name)?;
    let center = inputs[place].1.values[slot];
    let step = 1e-3 * center.abs().max(0.25);
    let (mut values, mut noise) = ([0.0; 5], 0.0f64);
    for (value, shift) in values.iter_mut().zip([-2.0, -1.0, 0.0, 1.0, 2.0]) {
        inputs[place].1.values[slot] = center + shift * step;
        let [sum, size] = total(case, &inputs, first)?;
        *value = sum;
        noise = noise.max(size);
    }
    Some((values, step, 64.0 * f64::EPSILON * noise / step))
}

/// Whether the case chooses, of an operation that can be either, a form whose gradient stops a factor: the names of these
/// choices say so.
fn stops_a_factor(case: &Case) -> bool {
    let stopping = |name: &str| name.ends_with("_plus") || name.ends_with("_detached");
    case.params.iter().any(|(_, value)| matches!(value, Param::Name(name) if stopping(name)))
}

/// The case with its hidden constant shown: without `old_log_prob`, the old policy is the current one without gradient,
/// which differences of the value would move along.
fn with_constants(mut case: Case, operation: &'static Operation) -> Case {
    let given = |name: &str| case.inputs.iter().find(|(input, _)| input == name).map(|(_, tensor)| tensor.clone());
    if operation.input("old_log_prob").is_some() && given("old_log_prob").is_none() {
        case.inputs.extend(given("log_prob").map(|tensor| ("old_log_prob".to_owned(), tensor)));
    }
    case
}

/// A composition's random case keeps the composition: another surrogate or ratio may stop a factor.
fn keeps_composition(mut case: Case, operation: &'static Operation) -> Case {
    if operation.family == Family::Objective && case.expected.is_empty() {
        case.params.retain(|(name, _)| name != "surrogate" && name != "ratio_level");
    }
    case
}

fn check(case: &Case, operation: &'static Operation, count: &mut Count) {
    let first = operation.outputs[0].name;
    let gradients: Vec<(&str, &str)> = operation
        .outputs
        .iter()
        .filter(|output| !output.stop_gradient)
        .filter_map(|output| Some((output.name, output.gradient_of?)))
        .filter(|(_, input)| case.inputs.iter().any(|(name, _)| name == input))
        .collect();
    for (output, input) in gradients {
        let names = [output];
        let analytic = evaluate(&Request {
            operation: operation.id,
            dialect: dialect_of(case),
            dtype: Dtype::F64,
            params: &case.params,
            inputs: &case.inputs,
            outputs: Wanted::Named(&names),
        });
        let Ok(analytic) = analytic else { continue };
        let gradient = &analytic[0].1.values;
        let Some((_, tensor)) = case.inputs.iter().find(|(name, _)| name == input) else { continue };
        for (slot, (value, slope)) in tensor.values.iter().zip(gradient).enumerate() {
            if !value.is_finite() {
                assert_eq!(*slope, 0.0, "{}: `{output}` at {slot} stands under the mask", case.id);
                continue;
            }
            let Some(([far_left, left, center, right, far_right], step, noise)) = around(case, input, slot, first)
            else {
                count.edges += 1;
                continue;
            };
            let slopes = [left - far_left, center - left, right - center, far_right - right].map(|rise| rise / step);
            let largest = slopes.iter().fold(0.0f64, |largest, slope| largest.max(slope.abs()));
            // Of a smooth function the slopes change evenly; a kink inside the window makes them jump.
            let jump = |window: &[f64]| (window[2] - 2.0 * window[1] + window[0]).abs();
            if jump(&slopes[..3]).max(jump(&slopes[1..])) > 1e-5 * largest + 8.0 * noise {
                count.kinks += 1;
                continue;
            }
            // Error step⁴/30 of the fifth derivative, far below what the jumps let pass.
            let measured = (far_left - 8.0 * left + 8.0 * right - far_right) / (12.0 * step);
            let allowed = 2e-5 * largest + 4.0 * noise;
            assert!(
                (measured - slope).abs() <= allowed,
                "{}: `{output}` at {slot} is {slope:e}, the differences say {measured:e}, allowed {allowed:e}",
                case.id,
            );
            count.agreed += 1;
            count.measured += usize::from(slope.abs() > 2.0 * allowed);
        }
    }
}

#[test]
fn declared_gradients_are_the_derivatives_of_the_values() {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (dtype, case) in cases(24) {
        let operation = catalog::find(&case.operation).unwrap();
        if dtype == Dtype::F64 && !stops_a_factor(&case) {
            let case = with_constants(keeps_composition(case, operation), operation);
            check(&case, operation, counts.entry(operation.id).or_default());
        }
    }
    let sum = |field: fn(&Count) -> usize| counts.values().map(field).sum::<usize>();
    let (agreed, measured, kinks, edges) = (sum(|c| c.agreed), sum(|c| c.measured), sum(|c| c.kinks), sum(|c| c.edges));
    println!("{agreed} elements agree ({measured} measurable), {kinks} at kinks, {edges} at edges of the domain");
    println!("{counts:#?}");
    assert!(measured >= 8_000, "only {measured} derivatives were measured");
    assert!(kinks + edges <= agreed / 4, "{kinks} kinks and {edges} edges beside {agreed} elements");
    for (id, count) in counts {
        let main = catalog::find(id).and_then(|operation| operation.outputs.iter().find(|o| o.gradient_of.is_some()));
        let declared = main.is_some_and(|output| !output.stop_gradient);
        assert!(!declared || count.measured > 0, "{id}: no derivative was measured");
    }
}

//! Whether an operation's gradients are checked: against a library's, and against central differences of the value.
//!
//! The differences are taken at the inputs of the golden cases, which lie off every kink. What a gradient output
//! differentiates is the sum of the first output, weighted by the input `cotangent` where there is one. Gradients that
//! are declared to leave out stopped factors are no derivatives of the value: for them only golden values count.

use std::fmt;

use plumbline_conformance::evaluate::{Request, Wanted, evaluate};
use plumbline_conformance::fixture::{Case, Golden};
use plumbline_conformance::tensor::Tensor;
use plumbline_conformance::verify::dialect_of;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, Operation};

/// Cases of one operation that are differenced.
const CASES: usize = 8;
/// Step of the central difference, relative to max(1, |x|).
const STEP: f64 = 1e-6;
/// Allowed error, relative to the largest of 1, the value and the gradient's largest element. The difference quotient
/// loses 2⁻⁵³/10⁻⁶ ≈ 10⁻¹⁰ of the value to rounding and (10⁻⁶)² of the third derivative; both stay well below it.
const TOLERANCE: f64 = 1e-7;

/// How the gradients of an operation are checked.
#[derive(Default)]
pub struct Check {
    /// Gradient outputs that the operation has.
    pub outputs: usize,
    /// Golden cases that hold a gradient.
    pub golden: usize,
    /// Derivatives compared with central differences.
    pub compared: usize,
    /// Derivatives that disagree.
    pub disagreements: Vec<String>,
    /// Disagreements, and gradients that nothing checks.
    pub holes: Vec<String>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outputs, self.golden, self.compared) {
            (0, ..) => f.write_str("none"),
            (_, golden, 0) => write!(f, "{golden} golden"),
            (_, golden, compared) => write!(f, "{golden} golden, {compared} differences"),
        }
    }
}

/// Check the gradients of an operation at its golden cases.
pub fn check(operation: &Operation, cases: &[(&Golden, &Case)]) -> Check {
    let mut check = Check::default();
    for output in operation.outputs {
        let Some(input) = output.gradient_of else { continue };
        check.outputs += 1;
        let golden = cases.iter().filter(|(_, case)| case.expected.iter().any(|(name, _)| name == output.name)).count();
        check.golden = check.golden.max(golden);
        let mut compared = 0;
        if !output.stop_gradient {
            let usable = cases
                .iter()
                .filter(|(file, case)| file.dtype() == Dtype::F64 && case.inputs.iter().any(|(name, _)| name == input));
            for (_, case) in usable.take(CASES) {
                match differences(operation, case, input, output.name) {
                    Ok(count) => compared += count,
                    Err(message) => check.disagreements.push(format!("{}: `{}`: {message}", case.id, output.name)),
                }
            }
        }
        check.compared += compared;
        if golden + compared == 0 {
            check.holes.push(format!("nothing checks the gradient `{}`", output.name));
        }
    }
    check.holes.extend(check.disagreements.iter().cloned());
    check
}

/// Compare every element of one gradient; how many were compared.
fn differences(operation: &Operation, case: &Case, input: &str, gradient: &str) -> Result<usize, String> {
    let first = operation.outputs.first().ok_or("no output")?.name;
    let run = |inputs: &[(String, Tensor)], outputs: &[&str]| {
        let outputs = Wanted::Named(outputs);
        evaluate(&Request {
            operation: operation.id,
            dialect: dialect_of(case),
            dtype: Dtype::F64,
            params: &case.params,
            inputs,
            outputs,
        })
        .map_err(|refusal| refusal.to_string())
    };
    let weights = case.inputs.iter().find(|(name, _)| name == "cotangent").map(|(_, tensor)| &tensor.values);
    let value = |outputs: &[(String, Tensor)]| -> f64 {
        let Some((_, tensor)) = outputs.first() else { return f64::NAN };
        match weights {
            Some(weights) => tensor.values.iter().zip(weights).filter(|(v, _)| **v != 0.0).map(|(v, w)| v * w).sum(),
            None => tensor.values.iter().sum(),
        }
    };
    let analytic = run(&case.inputs, &[first, gradient])?;
    let at = value(&analytic);
    let [_, (_, derivative)] = analytic.as_slice() else { return Err("the outputs did not come".into()) };
    let largest = derivative.values.iter().fold(1f64.max(at.abs()), |largest, slope| largest.max(slope.abs()));
    if !largest.is_finite() {
        return Ok(0);
    }
    let mut inputs = case.inputs.clone();
    let position = inputs.iter().position(|(name, _)| name == input).ok_or("the input is not there")?;
    let mut compared = 0;
    for (index, slope) in derivative.values.iter().enumerate() {
        let x = inputs[position].1.values.get(index).copied().ok_or("the gradient has another shape than its input")?;
        let step = STEP * x.abs().max(1.0);
        // Junk under the mask is not a point to differentiate at, and a step may not leave the domain.
        if !x.is_finite() || x.abs() > 1e6 || leaves(operation, input, x, step) {
            continue;
        }
        let mut moved = |to: f64| {
            inputs[position].1.values[index] = to;
            run(&inputs, &[first]).map(|outputs| value(&outputs))
        };
        let (above, below) = (moved(x + step)?, moved(x - step)?);
        inputs[position].1.values[index] = x;
        let difference = (above - below) / ((x + step) - (x - step));
        let error = (difference - slope).abs();
        if error > TOLERANCE * largest || difference.is_nan() {
            return Err(format!("element {index} is {slope}, the central difference {difference}"));
        }
        compared += 1;
    }
    Ok(compared)
}

fn leaves(operation: &Operation, input: &str, x: f64, step: f64) -> bool {
    match operation.input(input).map(|input| input.domain) {
        Some(Domain::Probability) => x - step < 0.0 || x + step > 1.0,
        Some(Domain::Positive | Domain::NonNegative) => x - step <= 0.0,
        _ => false,
    }
}

//! The largest step that a quadratic model of the KL divergence allows.

use crate::Error;
use crate::num::{Real, dot};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// β = √(2δ/(xᵀAx)): along x the model ½β²xᵀAx of the mean KL reaches δ (Schulman et al. 2015, Appendix C).
///
/// Errors: `OutOfRange` of `fisher_step` where the curvature xᵀAx is not positive.
///
/// ```
/// use plumbline_core::trust_region::step_length::step_length;
/// assert_eq!(step_length(0.5, 4.0)?, 0.5);
/// assert!(step_length(0.5, -1.0).is_err());
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn step_length<R: Real>(max_kl: R, curvature: R) -> Result<R, Error> {
    if curvature > R::zero() {
        // Apart, so that neither quotient overflows before the root.
        Ok(((R::two() * max_kl).sqrt() / curvature.sqrt()).limited())
    } else {
        let (argument, legal) = ("fisher_step", "a vector whose product with `step` is > 0");
        Err(Error::OutOfRange { argument, value: curvature.to_f64(), legal })
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (step, product) = (call.finite("step")?, call.finite("fisher_step")?);
    let curvature = dot(step, product);
    let length = step_length(call.number("max_kl")?, curvature)?;
    call.write("step_length", length);
    call.write("curvature", curvature);
    for (slot, x) in call.output("parameter_step").unwrap_or(&mut []).iter_mut().zip(step) {
        *slot = (length * *x).limited();
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.step_length",
    family: Family::TrustRegion,
    title: "TRPO step length",
    summary: "How far to go along a direction until the quadratic model of the mean KL divergence reaches its limit.",
    formula: r"\beta = \sqrt{\frac{2\delta}{x^\top A x}}",
    gradient: "",
    notes: "A is the Fisher information (the Hessian of the mean KL), x mostly A⁻¹g from conjugate gradient. The square roots are taken \
            apart. A curvature that is not positive is an error. No dialects.",
    sources: &[Source {
        title: "Trust Region Policy Optimization",
        reference: "arXiv:1502.05477",
        place: "Appendix C, the maximal step length",
    }],
    inputs: &[
        InputSpec::new("step", Domain::Real, &[&["P"]], "the direction x"),
        InputSpec::new("fisher_step", Domain::Real, &[&["P"]], "the Fisher information times the direction, A·x"),
    ],
    params: &[ParamSpec::number("max_kl", r"\delta", 0.01, Range::POSITIVE, "limit of the mean KL divergence (nats)")],
    defaults: &[],
    outputs: &[
        OutputSpec::value("step_length", &[], "the multiple of the direction"),
        OutputSpec::value("parameter_step", &["P"], "that multiple"),
        OutputSpec::value("curvature", &[], "direction times product"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let case = Case::new(SPECS, "trust_region.step_length")
            .real("step", &[2], &[1.0, 2.0])
            .real("fisher_step", &[2], &[4.0, 2.0])
            .number("max_kl", 1.0);
        assert_eq!(case.get("curvature").unwrap(), [8.0]);
        assert_eq!(case.get("step_length").unwrap(), [2.0f64.sqrt() / 8.0f64.sqrt()]);
        assert!(case.real("fisher_step", &[2], &[0.0; 2]).get("step_length").is_err());
    }

    proptest! {
        #[test]
        fn the_model_reaches_its_limit(max_kl in 1e-6f64..1.0, curvature in 1e-9f64..1e9) {
            let length = step_length(max_kl, curvature).unwrap();
            prop_assert!((0.5 * length * length * curvature / max_kl - 1.0).abs() < 8.0 * f64::EPSILON);
        }
    }
}

//! Controllers of the KL coefficient: fixed, and adaptive towards a target.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// The next coefficient of a proportional controller in log space: β·(1 + e·n/horizon) with
/// e = clip(KL/target − 1, ±error_clip).
///
/// A measured KL above the target raises the coefficient, one below lowers it. n is how many episodes (or steps) the
/// measurement covers. Where n exceeds horizon/error_clip the factor may become negative: choose the horizon larger.
///
/// ```
/// use plumbline_core::kl::controller::adaptive_kl_coefficient;
/// // Twice the target: the error is cut to 0.2, and a horizon of ten batches makes it a fiftieth.
/// assert_eq!(adaptive_kl_coefficient(0.5, 12.0, 100, 6.0, 1000.0, 0.2), 0.51);
/// ```
pub fn adaptive_kl_coefficient<R: Real>(
    kl_coefficient: R,
    measured_kl: R,
    steps: usize,
    target_kl: R,
    horizon: R,
    error_clip: R,
) -> R {
    let error = (measured_kl / target_kl - R::one()).clip(-error_clip, error_clip);
    kl_coefficient * (R::one() + error * R::from_count(steps) / horizon)
}

const TARGET_KL: ParamSpec = ParamSpec::number(
    "target_kl",
    r"\mathrm{KL}^*",
    6.0,
    Range::POSITIVE,
    "the divergence to hold (nats per response)",
);
const HORIZON: ParamSpec = ParamSpec::number(
    "horizon",
    "H",
    10_000.0,
    Range::POSITIVE,
    "how many steps a full correction takes to multiply up (same unit as steps)",
);
const ERROR_CLIP: ParamSpec = ParamSpec::number(
    "error_clip",
    r"\epsilon",
    0.2,
    Range::POSITIVE,
    "limit of the relative error in either direction",
);

const COEFFICIENT: InputSpec =
    InputSpec::new("kl_coefficient", Domain::NonNegative, &[&[]], "the coefficient that was used (reward per nat)");
const MEASURED: InputSpec = InputSpec::new("measured_kl", Domain::Real, &[&[]], "the mean KL that was measured (nats)");
const STEPS: InputSpec = InputSpec::new("steps", Domain::Count, &[&[]], "how many episodes the measurement covers");
const NEXT: OutputSpec = OutputSpec::value("next_kl_coefficient", &[], "the coefficient of the next batch");

const ZIEGLER: Source = Source {
    title: "Fine-Tuning Language Models from Human Preferences",
    reference: "arXiv:1909.08593",
    place: "section 2.2, adaptive coefficient",
};

fn scalar<R: Real>(call: &Call<'_, R>, name: &'static str) -> Result<R, Error> {
    call.finite(name)?.first().copied().ok_or(Error::MissingInput { argument: name })
}

fn coefficient<R: Real>(call: &Call<'_, R>) -> Result<R, Error> {
    let value = scalar(call, COEFFICIENT.name)?;
    if value < R::zero() {
        return Err(Error::ElementOutOfRange {
            argument: COEFFICIENT.name,
            index: 0,
            value: value.to_f64(),
            legal: Range::NON_NEGATIVE.text,
        });
    }
    Ok(value)
}

fn evaluate_adaptive<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let kl_coefficient = coefficient(call)?;
    let measured_kl = scalar(call, MEASURED.name)?;
    let steps = call.index(STEPS.name)?.first().map_or(0, |steps| *steps as usize);
    let next = adaptive_kl_coefficient(
        kl_coefficient,
        measured_kl,
        steps,
        call.number(TARGET_KL.name)?,
        call.number(HORIZON.name)?,
        call.number(ERROR_CLIP.name)?,
    );
    call.write(NEXT.name, next);
    Ok(())
}

fn evaluate_fixed<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let kl_coefficient = coefficient(call)?;
    call.write(NEXT.name, kl_coefficient);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "kl.adaptive_controller",
        family: Family::Kl,
        title: "adaptive KL controller",
        summary: "Raises the KL coefficient while the measured divergence is above its target, lowers it below.",
        formula: r"\beta' = \beta\Big(1 + \operatorname{clip}\big(\tfrac{\mathrm{KL}}{\mathrm{KL}^*} - 1,
-\epsilon, \epsilon\big)\,\tfrac{n}{H}\Big)",
        gradient: "",
        notes: "The paper writes the gain n/H as one constant, K_beta = 0.1. Equal in verl.",
        sources: &[ZIEGLER],
        inputs: &[COEFFICIENT, MEASURED, STEPS],
        params: &[TARGET_KL, HORIZON, ERROR_CLIP],
        defaults: &[],
        outputs: &[NEXT],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_adaptive),
    },
    Operation {
        id: "kl.fixed_controller",
        family: Family::Kl,
        title: "fixed KL controller",
        summary: "Leaves the KL coefficient as it is.",
        formula: r"\beta' = \beta",
        gradient: "",
        notes: "Equal in verl and TRL.",
        sources: &[Source { place: "section 2.2, constant coefficient", ..ZIEGLER }],
        inputs: &[COEFFICIENT, MEASURED.optional(), STEPS.optional()],
        params: &[],
        defaults: &[],
        outputs: &[NEXT],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_fixed),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_clipped_on_both_sides() {
        assert_eq!(adaptive_kl_coefficient(1.0f64, 6.0, 256, 6.0, 10_000.0, 0.2), 1.0);
        assert_eq!(
            adaptive_kl_coefficient(1.0f64, 6.6, 1000, 6.0, 10_000.0, 0.2),
            1.0 + 0.1 * (6.6f64 / 6.0 - 1.0) / 0.1 * 0.1
        );
        assert_eq!(adaptive_kl_coefficient(1.0f64, 0.0, 1000, 6.0, 10_000.0, 0.2), 1.0 - 0.02);
        assert_eq!(adaptive_kl_coefficient(0.0f64, 600.0, 1000, 6.0, 10_000.0, 0.2), 0.0);
    }
}

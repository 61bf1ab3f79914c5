//! How a target network follows the online one.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// Polyak averaging, τθ + (1 − τ)θ̄. With τ = 1 it is the copy, to the bit.
///
/// ```
/// assert_eq!(plumbline_core::td::target_update::polyak(4.0, 8.0, 0.25), 7.0);
/// ```
#[inline(always)]
pub fn polyak<R: Real>(parameter: R, target: R, rate: R) -> R {
    rate * parameter + (R::one() - rate) * target
}

/// Whether a step copies: every `period` steps, the first copy at step `period`.
pub fn copies(step: usize, period: usize) -> bool {
    step > 0 && step.is_multiple_of(period)
}

fn update<R: Real>(call: &mut Call<'_, R>, rate: R) -> Result<(), Error> {
    let (parameters, targets) = (call.finite("parameter")?, call.finite("target_parameter")?);
    if let Some(buffer) = call.output("new_target_parameter") {
        for ((element, parameter), target) in buffer.iter_mut().zip(parameters).zip(targets) {
            *element = polyak(*parameter, *target, rate);
        }
    }
    Ok(())
}

fn evaluate_polyak<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rate = call.number("rate")?;
    update(call, rate)
}

fn evaluate_hard<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let copy = copies(call.integer("step")?, call.integer("period")?);
    update(call, if copy { R::one() } else { R::zero() })
}

const PARAMETER: InputSpec = InputSpec::new("parameter", Domain::Real, &[&["P"]], "parameters of the online network");
const TARGET: InputSpec =
    InputSpec::new("target_parameter", Domain::Real, &[&["P"]], "parameters of the target network");
const OUTPUT: OutputSpec =
    OutputSpec::value("new_target_parameter", &["P"], "parameters of the target network after the step");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.target_polyak_update",
        family: Family::TemporalDifference,
        title: "Polyak update of a target network",
        summary: "The target network's parameters move a share of the way to the online ones.",
        formula: r"\bar\theta \leftarrow \tau\theta + (1 - \tau)\bar\theta",
        gradient: "",
        notes: "τ is the share of the online network; some libraries call 1 − τ by the name of polyak. No dialects.",
        sources: &[Source {
            title: "Continuous control with deep reinforcement learning",
            reference: "arXiv:1509.02971",
            place: "Section 3, soft target updates",
        }],
        inputs: &[PARAMETER, TARGET],
        params: &[ParamSpec::number("rate", r"\tau", 0.005, Range::UNIT, "share of the online parameters")],
        defaults: &[],
        outputs: &[OUTPUT],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_polyak),
    },
    Operation {
        id: "td.target_hard_update",
        family: Family::TemporalDifference,
        title: "Hard update of a target network",
        summary: "Every so many steps the target network becomes a copy of the online one.",
        formula: r"\bar\theta \leftarrow \begin{cases}\theta & C \mid t,\ t > 0\\ \bar\theta & \text{otherwise}\end{cases}",
        gradient: "",
        notes: "Steps count from 1; at step 0 nothing is copied. No dialects.",
        sources: &[Source {
            title: "Human-level control through deep reinforcement learning",
            reference: "Mnih et al. 2015, doi:10.1038/nature14236",
            place: "Algorithm 1, every C steps",
        }],
        inputs: &[PARAMETER, TARGET],
        params: &[
            ParamSpec::integer("step", "t", 1, 0, i64::MAX, "number of the step"),
            ParamSpec::integer("period", "C", 1, 1, i64::MAX, "steps between copies"),
        ],
        defaults: &[],
        outputs: &[OUTPUT],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_hard),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn soft_and_hard() {
        let base =
            |id| Case::new(SPECS, id).real("parameter", &[2], &[4.0, 0.1]).real("target_parameter", &[2], &[8.0, 0.7]);
        let name = "new_target_parameter";
        assert_eq!(base("td.target_polyak_update").number("rate", 0.25).get(name).unwrap()[0], 7.0);
        assert_eq!(base("td.target_polyak_update").number("rate", 1.0).get(name).unwrap(), [4.0, 0.1]);
        let hard = |step, period| base("td.target_hard_update").number("step", step).number("period", period).get(name);
        assert_eq!(hard(20.0, 10.0).unwrap(), [4.0, 0.1]);
        assert_eq!(hard(21.0, 10.0).unwrap(), [8.0, 0.7]);
        assert_eq!(hard(0.0, 10.0).unwrap(), [8.0, 0.7]);
    }
}

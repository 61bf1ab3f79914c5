//! REINFORCE with a return and a baseline.

use super::steps::{D_LOG_PROB, LOG_PROB, LOSS, STEP_MASK, Steps, at, cleared};
use crate::Error;
use crate::batch::set;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// One step's loss −w (G − b) log π and its derivative −w (G − b) by log π (Williams 1992; Sutton & Barto 2018, Eq. 13.11).
///
/// `weight` is γᵗ in the textbook's algorithm, 1 in most programs. The baseline may depend on the state, not on the action:
/// it then changes no expected gradient. Return and baseline are constants.
///
/// ```
/// use plumbline_core::trust_region::reinforce::reinforce;
/// assert_eq!(reinforce(-0.5, 3.0, 1.0, 1.0), [1.0, -2.0]);
/// ```
#[inline(always)]
pub fn reinforce<R: Real>(log_prob: R, return_to_go: R, baseline: R, weight: R) -> [R; 2] {
    let slope = (R::zero() - weight * (return_to_go - baseline).limited()).limited();
    [slope * log_prob, slope]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let steps = Steps::from_call(call, LOG_PROB.name)?;
    let (log_prob, returns) = (steps.column(call, LOG_PROB.name)?, steps.column(call, RETURN.name)?);
    let baseline = steps.optional_column(call, BASELINE.name)?;
    let weight = steps.optional_column(call, WEIGHT.name)?;
    let term = |step: usize| {
        let (baseline, weight) =
            (baseline.map_or(R::zero(), |b| at(b, step)), weight.map_or(R::one(), |w| at(w, step)));
        reinforce(at(log_prob, step), at(returns, step), baseline, weight)
    };
    call.write(LOSS.name, steps.sum(|step| term(step)[0]) / steps.count());
    let mut advantages = cleared(call, ADVANTAGE.name);
    let mut gradient = cleared(call, D_LOG_PROB.name);
    for step in steps.kept() {
        let advantage = at(returns, step) - baseline.map_or(R::zero(), |b| at(b, step));
        set(&mut advantages, step, advantage);
        set(&mut gradient, step, term(step)[1] / steps.count());
    }
    Ok(())
}

const RETURN: InputSpec =
    InputSpec::new("return_to_go", Domain::Value, &[&["N"]], "return from each step on, a constant");
const BASELINE: InputSpec = InputSpec::new(
    "baseline",
    Domain::Value,
    &[&["N"]],
    "what is taken off the return, a constant that does not depend on the action; 0 without it",
)
.optional();
const WEIGHT: InputSpec = InputSpec::new(
    "weight",
    Domain::NonNegative,
    &[&["N"]],
    "weight of each step's term, such as the discount to the power of its time; 1 without it",
)
.optional();
const ADVANTAGE: OutputSpec = OutputSpec::value("advantage", &["N"], "return minus baseline");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.reinforce",
    family: Family::TrustRegion,
    title: "REINFORCE with baseline",
    summary: "The mean of return minus baseline times the log-probability of the action, negated.",
    formula: r"L = -\frac1N\sum_n w_n\,(G_n - b_n)\log\pi_\theta(a_n|s_n)",
    gradient: r"\partial L/\partial\log\pi_n = -\frac{w_n}{N}(G_n - b_n)",
    notes: "Without a baseline it is plain REINFORCE. The textbook's algorithm weighs step t by γᵗ; most programs leave the weight \
            out, which is another gradient. The mean is over the steps that count. No dialects.",
    sources: &[
        Source {
            title: "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
            reference: "Williams 1992, doi:10.1007/BF00992696",
            place: "Section 4, Eq. 11",
        },
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Sections 13.3-13.4, Eq. 13.11",
        },
    ],
    inputs: &[LOG_PROB, RETURN, BASELINE, WEIGHT, STEP_MASK],
    params: &[],
    defaults: &[],
    outputs: &[LOSS, D_LOG_PROB, ADVANTAGE],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn by_hand_and_by_differences() {
        let case = Case::new(SPECS, "trust_region.reinforce")
            .real("log_prob", &[3], &[-0.5, f64::NAN, -2.0])
            .real("return_to_go", &[3], &[3.0, f64::INFINITY, 1.0])
            .mask("mask", &[3], &[1, 0, 1]);
        assert_eq!(case.get("loss").unwrap(), [1.75]);
        let case = case.real("baseline", &[3], &[1.0, f64::NAN, 2.0]).real("weight", &[3], &[1.0, f64::NAN, 0.5]);
        assert_eq!(case.get("loss").unwrap(), [0.0]);
        assert_eq!(case.get("advantage").unwrap(), [2.0, 0.0, -1.0]);
        assert_eq!(case.get("d_log_prob").unwrap(), [-1.0, 0.0, 0.25]);
        assert_eq!(reinforce(0.0, f64::MAX, -f64::MAX, 1.0), [0.0, -f64::MAX]);
        let empty = case.mask("mask", &[3], &[0, 0, 0]).get("loss");
        assert_eq!(empty, Err(Error::EmptyMask { argument: "log_prob" }));
    }
}

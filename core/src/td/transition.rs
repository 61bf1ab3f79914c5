//! What the single-step methods share: inputs and parameters, the target, and the loss of its error.

use crate::Error;
use crate::num::{ExactSum, Real, half_square, huber};
use crate::spec::{Call, Choice, Domain, InputSpec, OutputSpec, ParamSpec, Range, choice};

choice! {
    /// The penalty of a temporal-difference error.
    pub enum ErrorLoss {
        /// ½δ².
        HalfSquared = "half_squared",
        /// δ².
        Squared = "squared",
        /// Huber's function.
        Huber = "huber",
    }
}

/// Reward of each transition.
pub const REWARD: InputSpec = InputSpec::new("reward", Domain::Reward, &[&["N"]], "reward of each transition");
/// Whether the episode ended.
pub const DONE: InputSpec = InputSpec::new(
    "done",
    Domain::Done,
    &[&["N"]],
    "1 where the episode ended with this transition; what stands behind it is then absent. Without it no episode ends",
)
.optional();
/// Importance weights of prioritised replay.
pub const WEIGHT: InputSpec = InputSpec::new(
    "importance_weight",
    Domain::NonNegative,
    &[&["N"]],
    "weight of each transition's loss (prioritised replay); 1 where it is not given",
)
.optional();
/// Action values of the state.
pub const Q: InputSpec =
    InputSpec::new("q", Domain::Value, &[&["N", "A"]], "action values of the state, the estimate that learns");
/// The action that was taken.
pub const ACTION: InputSpec = InputSpec::new("action", Domain::Index("A"), &[&["N"]], "the action that was taken");
/// The discount factor.
pub const DISCOUNT: ParamSpec = ParamSpec::number("discount", r"\gamma", 0.99, Range::UNIT, "discount factor per step");
/// The penalty of the error.
pub const ERROR_LOSS: ParamSpec = ParamSpec::choice(
    "error_loss",
    "half_squared",
    ErrorLoss::NAMES,
    "penalty of the temporal-difference error: half_squared, squared or huber",
);
/// Huber's threshold.
pub const HUBER_THRESHOLD: ParamSpec = ParamSpec::number(
    "huber_threshold",
    r"\kappa",
    1.0,
    Range::POSITIVE,
    "error at which the huber penalty turns linear (units of the return)",
);
/// The mean loss.
pub const LOSS: OutputSpec = OutputSpec::value("loss", &[], "mean over transitions of the weighted penalty");
/// The target.
pub const TARGET: OutputSpec = OutputSpec::value("target", &["N"], "what each estimate is moved towards, a constant");
/// The error.
pub const TD_ERROR: OutputSpec =
    OutputSpec::value("td_error", &["N"], "target minus estimate, without weight (the new priority's basis)");
/// The gradient by the action values.
pub const D_Q: OutputSpec = OutputSpec::gradient(
    "d_q",
    "q",
    &["N", "A"],
    "derivative of the loss by each action value; +0 for the actions that were not taken",
);

/// The one-step target r + γ(1 − done)·bootstrap. Where the episode ended the bootstrap is absent, not multiplied by 0.
///
/// ```
/// use plumbline_core::td::transition::one_step_target;
/// assert_eq!(one_step_target(1.0, 0.5, Some(4.0)), 3.0);
/// assert_eq!(one_step_target(1.0, 0.5, None), 1.0);
/// ```
#[inline(always)]
pub fn one_step_target<R: Real>(reward: R, discount: R, bootstrap: Option<R>) -> R {
    match bootstrap {
        Some(value) => reward + discount * value,
        None => reward,
    }
}

/// The penalty of a temporal-difference error δ = target − estimate, and its derivative by the *estimate*.
#[inline(always)]
pub fn error_penalty<R: Real>(td_error: R, loss: ErrorLoss, huber_threshold: R) -> [R; 2] {
    let error = -td_error;
    match loss {
        ErrorLoss::HalfSquared => half_square(error),
        ErrorLoss::Squared => half_square(error).map(|part| R::two() * part),
        ErrorLoss::Huber => huber(error, huber_threshold),
    }
}

/// One element of a slice; +0 past its end.
#[inline(always)]
pub(crate) fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

/// The first of two finite numbers that is not, as an error.
pub(crate) fn finite<R: Real>(argument: &'static str, values: &[R], index: usize) -> Result<R, Error> {
    let value = at(values, index);
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { argument, index }) }
}

/// One row of a matrix, every element finite.
pub(crate) fn finite_row<'v, R: Real>(
    argument: &'static str,
    values: &'v [R],
    columns: usize,
    row: usize,
) -> Result<&'v [R], Error> {
    let numbers = crate::batch::row_of(values, columns, row);
    match numbers.iter().position(|value| !value.is_finite()) {
        Some(column) => Err(Error::NonFinite { argument, index: row * columns + column }),
        None => Ok(numbers),
    }
}

/// Whether the episode ended with transition `n`.
pub(crate) fn ended(done: Option<&[u8]>, n: usize) -> bool {
    done.is_some_and(|bytes| bytes.get(n).is_some_and(|byte| *byte != 0))
}

/// The number of transitions; an error where there is none.
pub(crate) fn transitions<R: Real>(call: &Call<'_, R>, argument: &'static str) -> Result<usize, Error> {
    match call.dim("N") {
        0 => Err(Error::EmptyMask { argument }),
        count => Ok(count),
    }
}

/// Which estimate learns: one value per transition, or the value of the action taken.
#[derive(Clone, Copy)]
pub(crate) enum Estimate {
    Value,
    ActionValue,
}

/// Run a method: `target(n)` gives each transition's target; the estimate, the loss and the gradients are the same for all.
pub(crate) fn learn<'c, R: Real>(
    call: &mut Call<'c, R>,
    estimate: Estimate,
    target: impl Fn(&Call<'c, R>, usize) -> Result<R, Error>,
) -> Result<(), Error> {
    let count = transitions(call, "reward")?;
    let loss: ErrorLoss = call.choice("error_loss")?;
    let threshold: R = call.number("huber_threshold")?;
    let weights = call.optional_finite("importance_weight")?;
    let columns = call.dim("A");
    let (values, actions, gradient_name) = match estimate {
        Estimate::Value => (call.finite("value")?, None, "d_value"),
        Estimate::ActionValue => (call.finite("q")?, Some(call.index("action")?), "d_q"),
    };
    let mut outputs = ["target", "td_error", gradient_name].map(|name| call.output(name));
    let [targets, errors, gradient] = &mut outputs;
    if let Some(buffer) = gradient {
        buffer.fill(R::zero());
    }
    let mut total = ExactSum::new();
    for n in 0..count {
        let goal = target(call, n)?;
        let slot = match actions {
            Some(actions) => n * columns + actions.get(n).map_or(0, |action| *action as usize),
            None => n,
        };
        let td_error = goal - at(values, slot);
        let [penalty, slope] = error_penalty(td_error, loss, threshold);
        let weight = weights.map_or(R::one(), |weights| at(weights, n));
        // A weight of 0 takes the transition out, however large its penalty.
        let weighted = |part: R| if weight == R::zero() { R::zero() } else { weight * part };
        total.add(weighted(penalty));
        crate::batch::set(targets, n, goal);
        crate::batch::set(errors, n, td_error);
        crate::batch::set(gradient, slot, weighted(slope) / R::from_count(count));
    }
    call.write("loss", total.value::<R>() / R::from_count(count));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalties_and_their_slopes_by_the_estimate() {
        assert_eq!(error_penalty(2.0, ErrorLoss::HalfSquared, 1.0), [2.0, -2.0]);
        assert_eq!(error_penalty(2.0, ErrorLoss::Squared, 1.0), [4.0, -4.0]);
        assert_eq!(error_penalty(-2.0, ErrorLoss::Huber, 1.0), [1.5, 1.0]);
    }
}

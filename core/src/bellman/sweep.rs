//! Sweeps over all states, repeated until little changes: what the iterative methods share.

use super::mdp::{at, error_bound, max_distance};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, InputSpec, OutputSpec, ParamSpec, Range};

/// When an iteration stops.
#[derive(Clone, Copy, Debug)]
pub struct Stopping<R> {
    /// The last change that is small enough (units of the return).
    pub tolerance: R,
    /// The most iterations.
    pub limit: usize,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<R> {
    /// Iterations that were made.
    pub iterations: usize,
    /// The last one's largest change, as the method defines it.
    pub residual: R,
    /// Whether that is within the tolerance.
    pub converged: bool,
}

/// Repeat `step`, which returns its largest change, until that is within the tolerance or the limit is reached.
pub fn iterate<R: Real>(stopping: Stopping<R>, mut step: impl FnMut() -> R) -> Outcome<R> {
    let mut outcome = Outcome { iterations: 0, residual: R::infinity(), converged: false };
    while outcome.iterations < stopping.limit && !outcome.converged {
        let residual = step();
        let iterations = outcome.iterations + 1;
        outcome = Outcome { iterations, residual, converged: residual <= stopping.tolerance };
    }
    outcome
}

/// One sweep: every state's value becomes `backup` of the values; the largest change is returned.
///
/// With `previous` all states are backed up from the values before the sweep, which are left there; without it states are
/// backed up in order, each from the newest values.
pub fn sweep<R: Real>(value: &mut [R], previous: Option<&mut [R]>, mut backup: impl FnMut(usize, &[R]) -> R) -> R {
    if let Some(previous) = previous {
        return synchronous_sweep(value, previous, |values, new| {
            for (state, slot) in new.iter_mut().enumerate() {
                *slot = backup(state, values);
            }
        });
    }
    let mut residual = R::zero();
    for state in 0..value.len() {
        let new = backup(state, value);
        if let Some(slot) = value.get_mut(state) {
            residual = (new - *slot).abs().larger(residual);
            *slot = new;
        }
    }
    residual
}

/// One sweep whose `backup(values, new)` writes the new values of all states; the values before it are left in `previous`.
pub fn synchronous_sweep<R: Real>(value: &mut [R], previous: &mut [R], backup: impl FnOnce(&[R], &mut [R])) -> R {
    for (old, new) in previous.iter_mut().zip(value.iter()) {
        *old = *new;
    }
    backup(previous, value);
    max_distance(value, previous)
}

/// The values before the last sweep, where sweeps are synchronous.
pub(super) fn previous<'c, R: Real>(call: &mut Call<'c, R>) -> Result<Option<&'c mut [R]>, Error> {
    let buffer = call.output(PREVIOUS.name);
    match (call.flag(IN_PLACE.name), buffer) {
        (true, buffer) => {
            if let Some(buffer) = buffer {
                buffer.fill(R::zero());
            }
            Ok(None)
        }
        (false, None) => Err(Error::MissingWorkspace { argument: PREVIOUS.name }),
        (false, buffer) => Ok(buffer),
    }
}

/// The buffer of the values, filled with what the iteration starts from.
pub(super) fn started<'c, R: Real>(call: &mut Call<'c, R>) -> Result<&'c mut [R], Error> {
    let initial = call.optional_finite(INITIAL_VALUE.name)?;
    let value = call.workspace(super::mdp::STATE_VALUE.name)?;
    for (state, slot) in value.iter_mut().enumerate() {
        *slot = initial.map_or(R::zero(), |initial| at(initial, state));
    }
    Ok(value)
}

pub(super) fn stopping<R: Real>(call: &Call<'_, R>) -> Result<Stopping<R>, Error> {
    Ok(Stopping { tolerance: call.number(TOLERANCE.name)?, limit: call.integer(MAX_SWEEPS.name)? })
}

/// Write how an iteration of a γ-contraction ended.
pub(super) fn report<R: Real>(call: &mut Call<'_, R>, outcome: Outcome<R>, discount: R) {
    call.write(RESIDUAL.name, outcome.residual);
    call.write(SWEEPS.name, R::from_count(outcome.iterations));
    call.write(ERROR_BOUND.name, error_bound(outcome.residual, discount));
    call.write(CONVERGED.name, if outcome.converged { R::one() } else { R::zero() });
}

pub(super) const INITIAL_VALUE: InputSpec =
    InputSpec::new("initial_value", Domain::Value, &[&["S"]], "values to start from; 0 without it").optional();
pub(super) const TOLERANCE: ParamSpec = ParamSpec::number(
    "tolerance",
    r"\theta",
    1e-8,
    Range::NON_NEGATIVE,
    "the iteration stops when the largest change is at most this (units of the return)",
);
pub(super) const MAX_SWEEPS: ParamSpec =
    ParamSpec::integer("max_sweeps", "K", 10_000, 1, 1_000_000_000, "the iteration stops after this many sweeps");
pub(super) const IN_PLACE: ParamSpec = ParamSpec::flag(
    "in_place",
    false,
    "back states up one after the other from the newest values (Gauss-Seidel) instead of all from the old ones",
);
pub(super) const RESIDUAL: OutputSpec =
    OutputSpec::value("residual", &[], "largest change of a value in the last sweep");
pub(super) const SWEEPS: OutputSpec = OutputSpec::value("sweeps", &[], "sweeps that were made");
pub(super) const ERROR_BOUND: OutputSpec = OutputSpec::value(
    "error_bound",
    &[],
    "largest possible distance from the exact value, γ/(1 − γ) times the residual; infinity for γ = 1",
);
pub(super) const CONVERGED: OutputSpec =
    OutputSpec::value("converged", &[], "1 where the residual is within the tolerance, else 0");
pub(super) const PREVIOUS: OutputSpec =
    OutputSpec::value("previous_value", &["S"], "values before the last sweep; 0 where sweeps are in place")
        .workspace();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synchronous_sweeps_read_old_values_and_sweeps_in_place_new_ones() {
        let backup = |state: usize, value: &[f64]| 1.0 + value[1 - state];
        let (mut value, mut previous) = ([0.0, 10.0], [0.0; 2]);
        assert_eq!(sweep(&mut value, Some(&mut previous), backup), 11.0);
        assert_eq!((value, previous), ([11.0, 1.0], [0.0, 10.0]));
        let mut value = [0.0, 10.0];
        assert_eq!(sweep(&mut value, None, backup), 11.0);
        assert_eq!(value, [11.0, 12.0]);
    }

    #[test]
    fn iterations_stop_at_the_tolerance_or_the_limit() {
        let mut change = 8.0;
        let mut halve = || {
            change *= 0.5;
            change
        };
        let outcome = iterate(Stopping { tolerance: 1.0, limit: 9 }, &mut halve);
        assert_eq!(outcome, Outcome { iterations: 3, residual: 1.0, converged: true });
        let outcome = iterate(Stopping { tolerance: 0.0, limit: 2 }, &mut halve);
        assert_eq!(outcome, Outcome { iterations: 2, residual: 0.25, converged: false });
    }
}

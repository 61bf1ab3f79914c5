//! The λ-return: forward view by recursion, backward view by eligibility traces.

use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{
    self, Arithmetic, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories,
    VALUE, at,
};
use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

/// G^λ_t = r_t + γ((1−λ)·V(s_{t+1}) + λ·G^λ_{t+1}): the mean of all n-step returns with weights (1−λ)λⁿ⁻¹, the last
/// taking the rest (Sutton & Barto 2018, eq. 12.2–12.3).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]); `value`: V(s_t), [B, T]; `trace_decay`: λ in
/// [0, 1]; `out`: [B, T], +0 under the mask. It is V plus generalised advantage. Where the trace is cut the bootstrap
/// value stands alone. Not differentiated. Errors: those of [`Trajectories::check`], `OutOfRange` of λ.
///
/// ```
/// use plumbline_core::advantage::{Discount, Trajectories, lambda_return};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 2 }, None)?;
/// let trajectories = Trajectories {
///     mask, reward: &[1.0, 2.0], discount: Discount::Constant(0.5), terminated: None, truncated: None,
///     next_value: None, bootstrap_value: Some(&[8.0]),
/// };
/// let mut returns = [0.0; 2];
/// lambda_return(&trajectories, &[1.0, 4.0], 0.5, &mut returns)?;
/// assert_eq!(returns, [3.5, 6.0]); // 2 + 0.5·8, then 1 + 0.5·(0.5·4 + 0.5·6)
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn lambda_return<R: Real>(
    trajectories: &Trajectories<'_, R>,
    value: &[R],
    trace_decay: R,
    out: &mut [R],
) -> Result<(), Error> {
    trajectories.check(Some(value))?;
    check_decay(trace_decay)?;
    let shape = trajectories.mask.shape();
    shape.check("returns", out)?;
    for (row, out) in out.chunks_mut(shape.columns.max(1)).enumerate() {
        whole_row(trajectories, row, value, trace_decay, out);
    }
    Ok(())
}

pub(super) fn check_decay<R: Real>(trace_decay: R) -> Result<(), Error> {
    let value = trace_decay.to_f64();
    if Range::UNIT.contains(value) {
        return Ok(());
    }
    Err(Error::OutOfRange { argument: TRACE_DECAY.name, value, legal: Range::UNIT.text })
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn whole_row<R: Real>(trajectories: &Trajectories<'_, R>, row: usize, value: &[R], trace_decay: R, out: &mut [R]) {
    if !forward_row::<R, R, Plain>(trajectories, row, value, trace_decay, out) {
        forward_row::<R, f64, Roomy>(trajectories, row, value, trace_decay, out);
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn forward_row<R: Real, N: Real, A: Arithmetic<R, N>>(
    trajectories: &Trajectories<'_, R>,
    row: usize,
    value: &[R],
    trace_decay: R,
    out: &mut [R],
) -> bool {
    out.fill(R::zero());
    let start = row.saturating_mul(trajectories.mask.shape().columns);
    let (mut to_go, mut finite) = (N::zero(), true);
    let (kept, rest) = (A::coefficient(trace_decay), A::coefficient(R::one() - trace_decay));
    trajectories.reversed(
        row,
        |slot| at(value, slot),
        |step| {
            let next_value = A::read(step.next_value);
            let mixed =
                if step.cut || kept == N::zero() { next_value } else { A::settle(rest * next_value + kept * to_go) };
            let discount = A::coefficient(step.discount);
            to_go = A::read(step.reward);
            if discount != N::zero() {
                to_go = A::settle(to_go + discount * mixed);
            }
            finite &= to_go.is_finite();
            if let Some(out) = out.get_mut(step.slot.saturating_sub(start)) {
                *out = A::write(to_go);
            }
        },
    );
    finite
}

choice! {
    /// What a visit does to the state's eligibility.
    pub enum TraceKind {
        /// Adds 1 to it.
        Accumulating = "accumulating",
        /// Sets it to 1.
        Replacing = "replacing",
    }
}

/// ΔV(s) = Σ_t δ_t e_t(s), e_t(s) = γλ e_{t−1}(s) + 1[s_t = s]: the backward view, the sum of the increments of offline
/// TD(λ) for a step size of 1 (Sutton & Barto 2018, §12.2; 1998, eq. 7.5–7.7).
///
/// `state`: s_t, [B, T], indices into `state_value`; `trajectories.next_value` is not used: the value of the next state
/// is that of the next step's, or the bootstrap value. `increment`: ΔV, one per state. With accumulating traces it equals
/// Σ_t (G^λ_t − V(s_t)) over the visits of s. Each state walks the batch by itself, which costs S·B·T and no memory.
/// Errors: those of [`Trajectories::check`], `OutOfRange` of λ, `ElementOutOfRange` of `state`.
pub fn td_lambda_increment<R: Real>(
    trajectories: &Trajectories<'_, R>,
    state: &[u32],
    state_value: &[R],
    trace_decay: R,
    kind: TraceKind,
    increment: &mut [R],
) -> Result<(), Error> {
    let trajectories = Trajectories { next_value: None, ..*trajectories };
    trajectories.check(None)?;
    check_decay(trace_decay)?;
    let (mask, shape) = (trajectories.mask, trajectories.mask.shape());
    shape.check(STATE.name, state)?;
    if increment.len() != state_value.len() {
        let (expected, got) = (state_value.len(), increment.len());
        return Err(Error::LengthMismatch { argument: "increment", expected, got });
    }
    if let Some(index) = state_value.iter().position(|value| !value.is_finite()) {
        return Err(Error::NonFinite { argument: STATE_VALUE.name, index });
    }
    check_states(state, mask, state_value.len())?;
    let value = |slot: usize| state.get(slot).map_or(R::zero(), |state| at(state_value, *state as usize));
    for (target, increment) in increment.iter_mut().enumerate() {
        let mut total = ExactSum::new();
        for row in 0..shape.rows {
            let (mut eligibility, mut sum) = (R::zero(), R::zero());
            for slot in mask.kept(row) {
                let step = trajectories.step(row, slot, value);
                if state.get(slot).is_some_and(|state| *state as usize == target) {
                    eligibility = match kind {
                        TraceKind::Accumulating => eligibility + R::one(),
                        TraceKind::Replacing => R::one(),
                    };
                }
                if eligibility != R::zero() {
                    // Limited, so that numbers beyond the range on both sides do not add up to NaN.
                    let limit = |x: R| x.clip(R::min_value(), R::max_value());
                    let error = limit(limit(step.reward + step.discount * step.next_value) - value(slot));
                    sum = limit(sum + limit(eligibility * error));
                }
                eligibility = if step.cut { R::zero() } else { step.discount * trace_decay * eligibility };
            }
            total.add(sum);
        }
        *increment = total.value();
    }
    Ok(())
}

/// Every state that the mask shows must be below `states`.
pub(super) fn check_states(state: &[u32], mask: crate::batch::Mask<'_>, states: usize) -> Result<(), Error> {
    let illegal = |(slot, state): &(usize, &u32)| **state as usize >= states && mask.keeps(*slot);
    match state.iter().enumerate().find(illegal) {
        Some((index, state)) => Err(Error::ElementOutOfRange {
            argument: STATE.name,
            index,
            value: f64::from(*state),
            legal: "below the number of states",
        }),
        None => Ok(()),
    }
}

/// [`lambda_return`], row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LambdaReturn<R> {
    /// λ.
    pub trace_decay: R,
}

impl<R: Real> RowScan<R, 1> for LambdaReturn<R> {
    const NAME: &'static str = "advantage.lambda_return";
    const OPERATIONS: &'static [&'static str] = &["advantage.lambda_return"];
    const VALUE: Option<&'static str> = Some(VALUE.name);
    const OUTPUTS: [&'static str; 1] = ["returns"];

    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error> {
        Ok(Some(LambdaReturn { trace_decay: call.number(TRACE_DECAY.name)? }))
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [returns]: [&mut [R]; 1]) {
        whole_row(&steps.trajectories, row, steps.value, self.trace_decay, returns);
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    let (value, trace_decay) = (call.real(VALUE.name)?, call.number(TRACE_DECAY.name)?);
    match call.output("returns") {
        Some(out) => lambda_return(&trajectories, value, trace_decay, out),
        None => Ok(()),
    }
}

fn evaluate_backward<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    let state = call.optional_index(STATE.name).ok_or(Error::MissingInput { argument: STATE.name })?;
    let state_value = call.real(STATE_VALUE.name)?;
    let (trace_decay, kind) = (call.number(TRACE_DECAY.name)?, call.choice("trace")?);
    match call.output("increment") {
        Some(out) => td_lambda_increment(&trajectories, state, state_value, trace_decay, kind, out),
        None => Ok(()),
    }
}

pub(super) const TRACE_DECAY: ParamSpec = ParamSpec::number(
    "trace_decay",
    r"\lambda",
    0.95,
    Range::UNIT,
    "weight of longer returns: 0 is the one-step target, 1 the Monte Carlo return",
);
pub(super) const STATE: InputSpec =
    InputSpec::new("state", Domain::Index("S"), &[&["B", "T"]], "state that each step leaves");
const STATE_VALUE: InputSpec = InputSpec::new("state_value", Domain::Value, &[&["S"]], "V of each state");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "advantage.lambda_return",
        family: Family::Advantage,
        title: "λ-return (forward view)",
        summary: "The mean of all n-step returns with geometrically falling weights, by one backward recursion.",
        formula: r"G^\lambda_t = r_t + \gamma_t\left((1-\lambda)V(s_{t+1}) + \lambda G^\lambda_{t+1}\right)
= (1-\lambda)\sum_{n \ge 1} \lambda^{n-1} G_{t:t+n}",
        gradient: "",
        notes: "Equal to V plus generalised advantage with the same λ. A masked step is skipped. No library differs.",
        sources: &[Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, MIT Press, ISBN 978-0-262-03924-6",
            place: "eq. 12.2–12.3",
        }],
        inputs: &[
            trajectory::REWARD,
            VALUE,
            NEXT_VALUE,
            BOOTSTRAP_VALUE,
            TERMINATED,
            TRUNCATED,
            DISCOUNT,
            InputSpec::MASK,
        ],
        params: &[GAMMA, TRACE_DECAY],
        defaults: &[("gamma", Value::Number(0.99))],
        outputs: &[OutputSpec::value("returns", &["B", "T"], "λ-return of each step; +0 under the mask")],
        dialects: &[],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "advantage.td_lambda_increment",
        family: Family::Advantage,
        title: "Offline TD(λ) (backward view)",
        summary: "What TD(λ) with eligibility traces adds to each state's value, for a step size of 1.",
        formula: r"\Delta V(s) = \sum_t \delta_t\, e_t(s),\quad e_t(s) = \gamma\lambda\, e_{t-1}(s) + \mathbb 1[s_t = s],\quad
\delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)",
        gradient: "",
        notes: "Offline: V is held fixed, increments are added up over all rows. Then accumulating traces give exactly the \
                forward view, the sum over a state's visits of λ-return less value. Replacing traces set a visited \
                state's eligibility to 1. No library differs.",
        sources: &[
            Source {
                title: "Reinforcement Learning: An Introduction, 2nd edition",
                reference: "Sutton and Barto 2018, MIT Press, ISBN 978-0-262-03924-6",
                place: "§12.2, eq. 12.5–12.7",
            },
            Source {
                title: "Reinforcement Learning with Replacing Eligibility Traces",
                reference: "Singh and Sutton 1996, Machine Learning 22",
                place: "eq. 4 (replacing traces), theorem 1 (equivalence)",
            },
        ],
        inputs: &[trajectory::REWARD, STATE, STATE_VALUE, BOOTSTRAP_VALUE, TERMINATED, DISCOUNT, InputSpec::MASK],
        params: &[
            GAMMA,
            TRACE_DECAY,
            ParamSpec::choice(
                "trace",
                TraceKind::Accumulating.name(),
                TraceKind::NAMES,
                "what a visit does to the state's eligibility: adds 1, or sets it to 1",
            ),
        ],
        defaults: &[("gamma", Value::Number(0.99))],
        outputs: &[OutputSpec::value("increment", &["S"], "sum of the increments of each state's value")],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_backward),
    },
];

#[cfg(test)]
mod tests {
    use super::super::{Discount, gae};
    use super::*;
    use crate::batch::{Mask, TokenShape};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn base<'a>(rows: usize, reward: &'a [f64], mask: Option<&'a [u8]>) -> Trajectories<'a, f64> {
        Trajectories {
            mask: Mask::new(TokenShape { rows, columns: reward.len() / rows }, mask).unwrap(),
            reward,
            discount: Discount::Constant(0.9),
            terminated: None,
            truncated: None,
            next_value: None,
            bootstrap_value: None,
        }
    }

    /// mistakes.md G14: γ per step multiplies what follows that step.
    #[test]
    fn discount_per_step() {
        let next = [0.5, 0.4, 0.3];
        let trajectories = Trajectories {
            discount: Discount::PerStep(&[0.9, 0.5, 0.8]),
            next_value: Some(&next),
            ..base(1, &[1.0, 2.0, 3.0], None)
        };
        let mut out = [0.0f64; 3];
        lambda_return(&trajectories, &[0.0; 3], 0.7, &mut out).unwrap();
        for (got, want) in out.iter().zip([3.14722, 3.194, 3.24]) {
            assert!((got - want).abs() < 1e-12);
        }
    }

    /// mistakes.md G20: each step's own flag counts.
    #[test]
    fn terminated_per_step() {
        let next = [5.0, 5.0];
        let trajectories =
            Trajectories { terminated: Some(&[0, 1]), next_value: Some(&next), ..base(1, &[1.0, 1.0], None) };
        let mut out = [0.0; 2];
        lambda_return(&trajectories, &[0.0; 2], 0.0, &mut out).unwrap();
        assert_eq!(out, [5.5, 1.0]);
    }

    #[test]
    fn traces_by_hand_and_bad_states() {
        let trajectories = Trajectories { discount: Discount::Constant(0.5), ..base(1, &[1.0, 2.0, 4.0], None) };
        let mut increment = [9.0; 3];
        let mut run = |kind| {
            td_lambda_increment(&trajectories, &[0, 1, 0], &[2.0, 4.0, 0.0], 0.5, kind, &mut increment).unwrap();
            increment
        };
        // δ = [1 + 2 − 2, 2 + 1 − 4, 4 − 2] = [1, −1, 2]; e(0) = [1, ¼, 1 + 1/16], e(1) = [0, 1, ¼].
        assert_eq!(run(TraceKind::Accumulating), [1.0 - 0.25 + 2.125, -1.0 + 0.5, 0.0]);
        assert_eq!(run(TraceKind::Replacing), [1.0 - 0.25 + 2.0, -0.5, 0.0]);
        let error = td_lambda_increment(&trajectories, &[0, 3, 0], &[0.0; 3], 0.5, TraceKind::Replacing, &mut [0.0; 3]);
        let legal = "below the number of states";
        assert_eq!(error, Err(Error::ElementOutOfRange { argument: "state", index: 1, value: 3.0, legal }));
    }

    proptest! {
        #[test]
        fn is_value_plus_generalised_advantage_and_equals_the_backward_view(
            steps in proptest::collection::vec((-2.0f64..2.0, 0u32..3, 0u8..4, 0u8..5), 8),
            values in proptest::collection::vec(-2.0f64..2.0, 3),
            decay in 0.0f64..=1.0,
        ) {
            let reward: Vec<f64> = steps.iter().map(|step| step.0).collect();
            let state: Vec<u32> = steps.iter().map(|step| step.1).collect();
            let mask: Vec<u8> = steps.iter().map(|step| step.2.min(1)).collect();
            let terminated: Vec<u8> = steps.iter().map(|step| u8::from(step.3 == 0)).collect();
            let value: Vec<f64> = state.iter().map(|state| values[*state as usize]).collect();
            let trajectories = Trajectories {
                terminated: Some(&terminated),
                bootstrap_value: Some(&[0.7, -1.1]),
                ..base(2, &reward, Some(&mask))
            };
            let (mut returns, mut advantage, mut increment) = (vec![0.0; 8], vec![0.0; 8], vec![0.0; 3]);
            lambda_return(&trajectories, &value, decay, &mut returns).unwrap();
            gae(&trajectories, &value, decay, &mut advantage).unwrap();
            let kind = TraceKind::Accumulating;
            td_lambda_increment(&trajectories, &state, &values, decay, kind, &mut increment).unwrap();
            let mut forward = [0.0; 3];
            for slot in (0..8).filter(|slot| mask[*slot] != 0) {
                // Four steps a row of numbers below 20, a handful of roundings each.
                prop_assert!((returns[slot] - value[slot] - advantage[slot]).abs() < 4.0 * 8.0 * 20.0 * f64::EPSILON);
                forward[state[slot] as usize] += returns[slot] - value[slot];
            }
            for (forward, backward) in forward.iter().zip(&increment) {
                prop_assert!((forward - backward).abs() < 8.0 * 16.0 * 20.0 * f64::EPSILON);
            }
        }
    }
}

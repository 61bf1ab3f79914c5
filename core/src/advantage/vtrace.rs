//! V-trace: off-policy corrected value targets and advantages.

use super::lambda_return::{TRACE_DECAY, check_decay};
use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{
    self, Arithmetic, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories,
    VALUE, at,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};

/// The choices of [`vtrace`]. A bound of `None` leaves the ratio as it is.
#[derive(Clone, Copy, Debug)]
pub struct Vtrace<R> {
    /// λ in [0, 1].
    pub trace_decay: R,
    /// ρ̄ > 0: bound of the weight of each temporal-difference error; it decides which policy's value is the fixed point.
    pub clip_rho: Option<R>,
    /// c̄ > 0: bound of the weight that the trace carries on; it decides the speed, not the fixed point.
    pub clip_c: Option<R>,
    /// Bound of the weight of the advantage.
    pub clip_pg_rho: Option<R>,
}

/// v_t = V(s_t) + ρ_t δ_t + γ c_t (v_{t+1} − V(s_{t+1})) with ρ_t = min(ρ̄, w_t), c_t = λ min(c̄, w_t),
/// w_t = π(a_t)/μ(a_t), δ_t = r_t + γV(s_{t+1}) − V(s_t); advantage ρ^pg_t (r_t + γ v_{t+1} − V(s_t)) (IMPALA; Espeholt et
/// al. 2018, eq. 1, remark 1 and §4.2).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]); `value`: V(s_t); `log_prob` and `old_log_prob`:
/// log π(a_t) and log μ(a_t), all [B, T]; `returns`: v, `advantage`: [B, T], +0 under the mask. With π = μ and λ = 1 it is
/// the n-step return to the end. Not differentiated. Errors: those of [`Trajectories::check`], `NonFinite`, `OutOfRange` of
/// a bound or λ, and `ElementOutOfRange` of `log_prob` where an unbounded ratio overflows.
pub fn vtrace<R: Real>(
    trajectories: &Trajectories<'_, R>,
    value: &[R],
    log_prob: &[R],
    old_log_prob: &[R],
    config: Vtrace<R>,
    mut returns: Option<&mut [R]>,
    mut advantage: Option<&mut [R]>,
) -> Result<(), Error> {
    trajectories.check(Some(value))?;
    check_decay(config.trace_decay)?;
    let bounds = [(CLIP_RHO.name, config.clip_rho), (CLIP_C.name, config.clip_c), (CLIP_PG.name, config.clip_pg_rho)];
    for (argument, bound) in bounds {
        if let Some(value) = bound.map(|bound| bound.to_f64())
            && !Range::POSITIVE.contains(value)
        {
            return Err(Error::OutOfRange { argument, value, legal: Range::POSITIVE.text });
        }
    }
    let bounded = bounds.iter().all(|(_, bound)| bound.is_some());
    check_log_probs(trajectories, log_prob, old_log_prob, bounded)?;
    let shape = trajectories.mask.shape();
    for (name, out) in [("returns", returns.as_deref_mut()), ("advantage", advantage.as_deref_mut())] {
        if let Some(out) = out {
            shape.check(name, out)?;
            out.fill(R::zero());
        }
    }
    let inputs = Inputs { trajectories, value, log_prob, old_log_prob, config };
    for row in 0..shape.rows {
        let own = row.saturating_mul(shape.columns)..(row + 1).saturating_mul(shape.columns);
        let returns = returns.as_deref_mut().and_then(|out| out.get_mut(own.clone()));
        let advantage = advantage.as_deref_mut().and_then(|out| out.get_mut(own));
        whole_row(inputs, row, returns, advantage);
    }
    Ok(())
}

/// Both are finite at every step; where a ratio is used without bound, so is its exponential.
pub(super) fn check_log_probs<R: Real>(
    trajectories: &Trajectories<'_, R>,
    log_prob: &[R],
    old_log_prob: &[R],
    bounded: bool,
) -> Result<(), Error> {
    let mask = trajectories.mask;
    for (spec, values) in [(LOG_PROB, log_prob), (OLD_LOG_PROB, old_log_prob)] {
        mask.shape().check(spec.name, values)?;
        mask.check_finite(spec.name, values)?;
    }
    if bounded {
        return Ok(());
    }
    for (index, (log_prob, old)) in log_prob.iter().zip(old_log_prob).enumerate() {
        let log_ratio = *log_prob - *old;
        if mask.keeps(index) && !log_ratio.exp().is_finite() {
            return Err(Error::ElementOutOfRange {
                argument: LOG_PROB.name,
                index,
                value: log_ratio.to_f64(),
                legal: "a log-ratio whose exponential is finite, where the ratio is not bounded",
            });
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Inputs<'a, R> {
    trajectories: &'a Trajectories<'a, R>,
    value: &'a [R],
    log_prob: &'a [R],
    old_log_prob: &'a [R],
    config: Vtrace<R>,
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn whole_row<R: Real>(
    inputs: Inputs<'_, R>,
    row: usize,
    mut returns: Option<&mut [R]>,
    mut advantage: Option<&mut [R]>,
) {
    if !one_row::<R, R, Plain>(inputs, row, returns.as_deref_mut(), advantage.as_deref_mut()) {
        one_row::<R, f64, Roomy>(inputs, row, returns, advantage);
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn one_row<R: Real, N: Real, A: Arithmetic<R, N>>(
    inputs: Inputs<'_, R>,
    row: usize,
    mut returns: Option<&mut [R]>,
    mut advantage: Option<&mut [R]>,
) -> bool {
    let Inputs { trajectories, value, log_prob, old_log_prob, config } = inputs;
    let start = row.saturating_mul(trajectories.mask.shape().columns);
    let bound = |ratio: R, limit: Option<R>| A::coefficient(limit.map_or(ratio, |limit| ratio.smaller(limit)));
    // v_{t+1} − V(s_{t+1}) of the step behind.
    let (mut correction, mut finite) = (N::zero(), true);
    trajectories.reversed(
        row,
        |slot| at(value, slot),
        |step| {
            let ratio = (at(log_prob, step.slot) - at(old_log_prob, step.slot)).exp();
            let discount = A::coefficient(step.discount);
            let (reward, next, own) = (A::read(step.reward), A::read(step.next_value), A::read(at(value, step.slot)));
            let behind = if step.cut { N::zero() } else { correction };
            let next_target = A::settle(next + behind);
            let bootstrapped = if discount == N::zero() { N::zero() } else { A::settle(discount * next_target) };
            let error = A::settle(reward + discount * next - own);
            let carried = discount * A::coefficient(config.trace_decay) * bound(ratio, config.clip_c);
            correction = A::settle(bound(ratio, config.clip_rho) * error);
            if carried != N::zero() {
                correction = A::settle(correction + A::settle(carried * behind));
            }
            let target = A::settle(own + correction);
            let policy =
                A::settle(bound(ratio, config.clip_pg_rho) * A::settle(A::settle(reward + bootstrapped) - own));
            finite &= target.is_finite() && policy.is_finite();
            for (out, result) in [(returns.as_deref_mut(), target), (advantage.as_deref_mut(), policy)] {
                if let Some(out) = out.and_then(|out| out.get_mut(step.slot.saturating_sub(start))) {
                    *out = A::write(result);
                }
            }
        },
    );
    finite
}

/// [`vtrace`], row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VtraceRows<R> {
    /// λ.
    pub trace_decay: R,
    /// The bounds of ρ, of c and of the policy's ρ; infinite where there is none.
    pub bounds: [R; 3],
}

impl<R: Real> RowScan<R, 2> for VtraceRows<R> {
    const NAME: &'static str = "advantage.vtrace";
    const OPERATIONS: &'static [&'static str] = &["advantage.vtrace"];
    const VALUE: Option<&'static str> = Some(VALUE.name);
    const OUTPUTS: [&'static str; 2] = ["returns", "advantage"];

    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error> {
        let bounds = [CLIP_RHO, CLIP_C, CLIP_PG];
        Ok(Some(VtraceRows {
            trace_decay: call.number(TRACE_DECAY.name)?,
            bounds: bounds.map(|bound| call.optional_number(bound.name).unwrap_or(R::infinity())),
        }))
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [returns, advantage]: [&mut [R]; 2]) {
        let [rho, c, policy] = self.bounds.map(|bound| (bound < R::infinity()).then_some(bound));
        let inputs = Inputs {
            trajectories: &steps.trajectories,
            value: steps.value,
            log_prob: steps.log_prob.unwrap_or(&[]),
            old_log_prob: steps.old_log_prob.unwrap_or(&[]),
            config: Vtrace { trace_decay: self.trace_decay, clip_rho: rho, clip_c: c, clip_pg_rho: policy },
        };
        returns.fill(R::zero());
        advantage.fill(R::zero());
        whole_row(inputs, row, Some(returns), Some(advantage));
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    let (value, log_prob, old) = (call.real(VALUE.name)?, call.real(LOG_PROB.name)?, call.real(OLD_LOG_PROB.name)?);
    let config = Vtrace {
        trace_decay: call.number(TRACE_DECAY.name)?,
        clip_rho: call.optional_number(CLIP_RHO.name),
        clip_c: call.optional_number(CLIP_C.name),
        clip_pg_rho: call.optional_number(CLIP_PG.name),
    };
    let (returns, advantage) = (call.output("returns"), call.output("advantage"));
    vtrace(&trajectories, value, log_prob, old, config, returns, advantage)
}

pub(super) const LOG_PROB: InputSpec = InputSpec::new(
    "log_prob",
    Domain::LogProb,
    &[&["B", "T"]],
    "log-probability of the action taken, target policy (nats)",
);
pub(super) const OLD_LOG_PROB: InputSpec =
    InputSpec::new("old_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the behaviour policy (nats)");
const CLIP_RHO: ParamSpec = ParamSpec::optional(
    "clip_rho",
    r"\bar\rho",
    Some(1.0),
    Range::POSITIVE,
    "bound of the weight of each temporal-difference error",
);
const CLIP_C: ParamSpec = ParamSpec::optional(
    "clip_c",
    r"\bar c",
    Some(1.0),
    Range::POSITIVE,
    "bound of the weight that the trace carries on",
);
const CLIP_PG: ParamSpec = ParamSpec::optional(
    "clip_pg_rho",
    r"\bar\rho^{\mathrm{pg}}",
    Some(1.0),
    Range::POSITIVE,
    "bound of the weight of the advantage",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.vtrace",
    family: Family::Advantage,
    title: "V-trace",
    summary: "Value targets and advantages corrected for the behaviour policy by truncated importance weights.",
    formula: r"v_t = V(s_t) + \rho_t\delta_t + \gamma_t c_t\left(v_{t+1} - V(s_{t+1})\right),\quad
\rho_t = \min(\bar\rho, w_t),\quad c_t = \lambda\min(\bar c, w_t),\quad
A_t = \min(\bar\rho^{\mathrm{pg}}, w_t)\left(r_t + \gamma_t v_{t+1} - V(s_t)\right)",
    gradient: "",
    notes: "The paper assumes clip_rho >= clip_c. The last step of a row counts: its reward enters, and the value after it \
            is bootstrap_value. Under the behaviour policy itself (and bounds of at least 1) the target is the λ-return. \
            No library that the catalog names differs.",
    sources: &[Source {
        title: "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures",
        reference: "arXiv:1802.01561",
        place: "eq. 1, remarks 1 and 2, §4.2",
    }],
    inputs: &[
        trajectory::REWARD,
        VALUE,
        LOG_PROB,
        OLD_LOG_PROB,
        NEXT_VALUE,
        BOOTSTRAP_VALUE,
        TERMINATED,
        TRUNCATED,
        DISCOUNT,
        InputSpec::MASK,
    ],
    params: &[GAMMA, TRACE_DECAY, CLIP_RHO, CLIP_C, CLIP_PG],
    defaults: &[("gamma", Value::Number(0.99)), ("trace_decay", Value::Number(1.0))],
    outputs: &[
        OutputSpec::value("returns", &["B", "T"], "v_t: target of the value function; +0 under the mask"),
        OutputSpec::value("advantage", &["B", "T"], "weighted advantage of the action taken; +0 under the mask"),
    ],
    dialects: &[Dialect { name: "paper", note: "all bounds 1, λ 1", settings: &[] }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::{Discount, lambda_return};
    use super::*;
    use crate::batch::{Mask, TokenShape};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const CONFIG: Vtrace<f64> =
        Vtrace { trace_decay: 1.0, clip_rho: Some(1.0), clip_c: Some(1.0), clip_pg_rho: Some(1.0) };

    fn base(reward: &[f64]) -> Trajectories<'_, f64> {
        Trajectories {
            mask: Mask::new(TokenShape { rows: 1, columns: reward.len() }, None).unwrap(),
            reward,
            discount: Discount::Constant(0.5),
            terminated: None,
            truncated: None,
            next_value: None,
            bootstrap_value: Some(&[4.0]),
        }
    }

    #[test]
    fn by_hand() {
        let ln2 = core::f64::consts::LN_2;
        let (mut returns, mut advantage) = ([9.0f64; 2], [9.0f64; 2]);
        let config = Vtrace { clip_rho: Some(2.0), clip_c: Some(1.0), clip_pg_rho: None, trace_decay: 0.5 };
        // Ratios 2 and ½. δ = [1 + 1 − 1, 3 + 2 − 2] = [1, 3]; v₁ = 2 + 1.5; v₀ = 1 + 2·1 + 0.5·0.5·1·1.5.
        vtrace(
            &base(&[1.0, 3.0]),
            &[1.0, 2.0],
            &[ln2, 0.0],
            &[0.0, ln2],
            config,
            Some(&mut returns),
            Some(&mut advantage),
        )
        .unwrap();
        for (got, want) in returns.iter().zip([3.375, 3.5]) {
            assert!((got - want).abs() < 1e-14);
        }
        // 2·(1 + 0.5·3.5 − 1) and ½·(3 + 2 − 2).
        for (got, want) in advantage.iter().zip([3.5, 1.5]) {
            assert!((got - want).abs() < 1e-14);
        }
    }

    /// mistakes.md G22, J07: the last step's reward counts and its bootstrap is not its own value.
    #[test]
    fn the_last_step_counts() {
        let mut returns = [9.0];
        let trajectories =
            Trajectories { discount: Discount::Constant(1.0), bootstrap_value: Some(&[5.0]), ..base(&[0.0]) };
        vtrace(&trajectories, &[2.0], &[-1.0], &[-1.0], CONFIG, Some(&mut returns), None).unwrap();
        assert_eq!(returns, [5.0]);
    }

    #[test]
    fn ranges() {
        let trajectories = base(&[1.0, 3.0]);
        let (mut returns, mut advantage) = ([9.0; 2], [9.0; 2]);
        let far = [1000.0, -1000.0];
        vtrace(&trajectories, &[1.0, 2.0], &far, &[0.0; 2], CONFIG, Some(&mut returns), Some(&mut advantage)).unwrap();
        assert_eq!((returns, advantage), ([2.0, 2.0], [1.0, 0.0]));
        let open = Vtrace { clip_rho: None, ..CONFIG };
        let error = vtrace(&trajectories, &[1.0, 2.0], &far, &[0.0; 2], open, None, None).unwrap_err();
        assert!(matches!(error, Error::ElementOutOfRange { argument: "log_prob", index: 0, value: 1000.0, .. }));
        let bad = Vtrace { clip_c: Some(0.0), ..CONFIG };
        let error = vtrace(&trajectories, &[1.0, 2.0], &[0.0; 2], &[0.0; 2], bad, None, None);
        assert_eq!(error, Err(Error::OutOfRange { argument: "clip_c", value: 0.0, legal: "> 0" }));
        let huge = [f64::MAX, -f64::MAX];
        vtrace(
            &base(&huge),
            &huge,
            &[700.0; 2],
            &[0.0; 2],
            Vtrace { clip_rho: None, clip_c: None, ..CONFIG },
            Some(&mut returns),
            Some(&mut advantage),
        )
        .unwrap();
        assert!(returns.iter().chain(&advantage).all(|value| !value.is_nan()));
    }

    proptest! {
        #[test]
        fn on_policy_it_is_the_lambda_return(
            steps in proptest::collection::vec((-2.0f64..2.0, -2.0f64..2.0, -3.0f64..0.0), 1..9),
            decay in 0.0f64..=1.0,
        ) {
            let reward: Vec<f64> = steps.iter().map(|step| step.0).collect();
            let value: Vec<f64> = steps.iter().map(|step| step.1).collect();
            let log_prob: Vec<f64> = steps.iter().map(|step| step.2).collect();
            let (mut returns, mut want) = (vec![0.0; steps.len()], vec![0.0; steps.len()]);
            let config = Vtrace { trace_decay: decay, ..CONFIG };
            vtrace(&base(&reward), &value, &log_prob, &log_prob, config, Some(&mut returns), None).unwrap();
            lambda_return(&base(&reward), &value, decay, &mut want).unwrap();
            for (got, want) in returns.iter().zip(&want) {
                // At most 8 steps of numbers below 8, a handful of roundings each.
                prop_assert!((got - want).abs() < 8.0 * 8.0 * 8.0 * f64::EPSILON);
            }
        }
    }
}

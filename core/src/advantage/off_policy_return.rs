//! Off-policy returns of action values: Retrace(λ), Q(λ), tree backup, importance sampling, Watkins's and Peng's Q(λ).

use super::lambda_return::{TRACE_DECAY, check_decay};
use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{self, Arithmetic, DISCOUNT, GAMMA, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories, at};
use super::vtrace::{LOG_PROB, OLD_LOG_PROB, check_log_probs};
use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, Value, choice, evaluate_with,
};

choice! {
    /// Which return: how much of the error behind a step its trace lets through.
    pub enum OffPolicyTrace {
        /// λ·min(1, π/μ).
        Retrace = "retrace",
        /// λ, with the expectation under π as correction (Harutyunyan et al. 2016).
        QLambda = "q_lambda",
        /// λ·π.
        TreeBackup = "tree_backup",
        /// λ·π/μ.
        ImportanceSampling = "importance_sampling",
        /// λ where the action is greedy, else 0.
        Watkins = "watkins",
        /// No correction: λ-mixture of uncorrected n-step returns (Peng and Williams 1996).
        Peng = "peng",
    }
}

/// Inputs of [`off_policy_return`].
#[derive(Clone, Copy, Debug)]
pub struct ActionValueSteps<'a, R> {
    /// Rewards, γ and the ends of episodes. `next_value` is Σ_a π(a|s_{t+1}) Q(s_{t+1}, a) and is needed.
    pub trajectories: Trajectories<'a, R>,
    /// Q(s_t, a_t), [B, T].
    pub action_value: &'a [R],
    /// log π(a_t|s_t), where the trace uses it.
    pub log_prob: Option<&'a [R]>,
    /// log μ(a_t|s_t), where the trace uses it.
    pub old_log_prob: Option<&'a [R]>,
    /// Whether a_t is the greedy action at s_t, where the trace uses it.
    pub greedy: Option<&'a [u8]>,
}

/// G_t = Q(s_t, a_t) + Σ_{k≥t} γ^{k−t} (Π_{i=t+1}^{k} c_i) δ_k with δ_k = r_k + γ E_π Q(s_{k+1}, ·) − Q(s_k, a_k): the
/// target of Q(s_t, a_t) for the trace c (Munos et al. 2016, eq. 3–4 and table 1). Peng's Q(λ) is instead
/// G_t = r_t + γ((1−λ) E_π Q(s_{t+1}, ·) + λ G_{t+1}), which with λ = 1 is the uncorrected return.
///
/// `trace_decay`: λ; `out`: G, [B, T], +0 under the mask. Not differentiated. Errors: those of [`Trajectories::check`],
/// `MissingInput` of `next_value` or of what the trace uses, `NonFinite`, `OutOfRange` of λ, and `ElementOutOfRange` of
/// `log_prob` where an unbounded ratio overflows.
pub fn off_policy_return<R: Real>(
    inputs: &ActionValueSteps<'_, R>,
    trace: OffPolicyTrace,
    trace_decay: R,
    out: &mut [R],
) -> Result<(), Error> {
    let trajectories = &inputs.trajectories;
    if trajectories.next_value.is_none() {
        return Err(Error::MissingInput { argument: NEXT.name });
    }
    trajectories.check(None)?;
    check_decay(trace_decay)?;
    let (mask, shape) = (trajectories.mask, trajectories.mask.shape());
    shape.check(ACTION_VALUE.name, inputs.action_value)?;
    mask.check_finite(ACTION_VALUE.name, inputs.action_value)?;
    shape.check("returns", out)?;
    let needed = |given: Option<&'_ [R]>, argument| given.map(|_| ()).ok_or(Error::MissingInput { argument });
    match trace {
        OffPolicyTrace::Retrace | OffPolicyTrace::ImportanceSampling => {
            needed(inputs.log_prob, LOG_PROB.name)?;
            needed(inputs.old_log_prob, OLD_LOG_PROB.name)?;
            let (log_prob, old) = (inputs.log_prob.unwrap_or(&[]), inputs.old_log_prob.unwrap_or(&[]));
            check_log_probs(trajectories, log_prob, old, trace == OffPolicyTrace::Retrace)?;
        }
        OffPolicyTrace::TreeBackup => {
            needed(inputs.log_prob, LOG_PROB.name)?;
            let log_prob = inputs.log_prob.unwrap_or(&[]);
            check_log_probs(trajectories, log_prob, log_prob, true)?;
        }
        OffPolicyTrace::Watkins => {
            let greedy = inputs.greedy.ok_or(Error::MissingInput { argument: GREEDY.name })?;
            shape.check(GREEDY.name, greedy)?;
        }
        OffPolicyTrace::QLambda | OffPolicyTrace::Peng => {}
    }
    for (row, out) in out.chunks_mut(shape.columns.max(1)).enumerate() {
        whole_row(inputs, row, trace, trace_decay, out);
    }
    Ok(())
}

/// c_t without λ.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn coefficient<R: Real>(inputs: &ActionValueSteps<'_, R>, trace: OffPolicyTrace, slot: usize) -> R {
    let log = |values: Option<&[R]>| values.map_or(R::zero(), |values| at(values, slot));
    match trace {
        OffPolicyTrace::Retrace => (log(inputs.log_prob) - log(inputs.old_log_prob)).exp().smaller(R::one()),
        OffPolicyTrace::ImportanceSampling => (log(inputs.log_prob) - log(inputs.old_log_prob)).exp(),
        OffPolicyTrace::TreeBackup => log(inputs.log_prob).exp(),
        OffPolicyTrace::Watkins => {
            let greedy = inputs.greedy.is_some_and(|bytes| bytes.get(slot).is_some_and(|byte| *byte != 0));
            if greedy { R::one() } else { R::zero() }
        }
        OffPolicyTrace::QLambda | OffPolicyTrace::Peng => R::one(),
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn whole_row<R: Real>(
    inputs: &ActionValueSteps<'_, R>,
    row: usize,
    trace: OffPolicyTrace,
    trace_decay: R,
    out: &mut [R],
) {
    if !one_row::<R, R, Plain>(inputs, row, trace, trace_decay, out) {
        one_row::<R, f64, Roomy>(inputs, row, trace, trace_decay, out);
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn one_row<R: Real, N: Real, A: Arithmetic<R, N>>(
    inputs: &ActionValueSteps<'_, R>,
    row: usize,
    trace: OffPolicyTrace,
    trace_decay: R,
    out: &mut [R],
) -> bool {
    out.fill(R::zero());
    let start = row.saturating_mul(inputs.trajectories.mask.shape().columns);
    let (decay, rest) = (A::coefficient(trace_decay), A::coefficient(R::one() - trace_decay));
    // Of the step behind: Peng's return, or the correction of Q times the trace at it.
    let (mut behind, mut finite) = (N::zero(), true);
    inputs.trajectories.reversed(
        row,
        |_| R::zero(),
        |step| {
            let (reward, next) = (A::read(step.reward), A::read(step.next_value));
            let discount = A::coefficient(step.discount);
            let own = A::read(at(inputs.action_value, step.slot));
            let result = if trace == OffPolicyTrace::Peng {
                let uses_next = step.cut || decay == N::zero();
                let mixed = if uses_next { next } else { A::settle(rest * next + decay * behind) };
                let result = if discount == N::zero() { reward } else { A::settle(reward + discount * mixed) };
                behind = result;
                result
            } else {
                let mut correction = A::settle(reward + discount * next - own);
                if !step.cut && discount != N::zero() {
                    correction = A::settle(correction + discount * behind);
                }
                let carried = decay * A::coefficient(coefficient(inputs, trace, step.slot));
                behind = if carried == N::zero() { N::zero() } else { A::settle(carried * correction) };
                A::settle(own + correction)
            };
            finite &= result.is_finite() && behind.is_finite();
            if let Some(out) = out.get_mut(step.slot.saturating_sub(start)) {
                *out = A::write(result);
            }
        },
    );
    finite
}

/// [`off_policy_return`], row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffPolicyReturn<R> {
    /// Which return.
    pub trace: OffPolicyTrace,
    /// λ.
    pub trace_decay: R,
}

impl<R: Real> RowScan<R, 1> for OffPolicyReturn<R> {
    const NAME: &'static str = "advantage.off_policy_return";
    const OPERATIONS: &'static [&'static str] = &[
        "advantage.retrace",
        "advantage.q_lambda",
        "advantage.tree_backup",
        "advantage.importance_sampling_return",
        "advantage.watkins_q_lambda",
        "advantage.peng_q_lambda",
    ];
    const VALUE: Option<&'static str> = Some(ACTION_VALUE.name);
    const OUTPUTS: [&'static str; 1] = ["returns"];

    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error> {
        Ok(Some(OffPolicyReturn { trace: call.choice("trace")?, trace_decay: call.number(TRACE_DECAY.name)? }))
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [returns]: [&mut [R]; 1]) {
        let inputs = ActionValueSteps {
            trajectories: steps.trajectories,
            action_value: steps.value,
            log_prob: steps.log_prob,
            old_log_prob: steps.old_log_prob,
            greedy: steps.greedy,
        };
        whole_row(&inputs, row, self.trace, self.trace_decay, returns);
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let inputs = ActionValueSteps {
        trajectories: Trajectories::from_call(call)?,
        action_value: call.real(ACTION_VALUE.name)?,
        log_prob: call.optional_real(LOG_PROB.name),
        old_log_prob: call.optional_real(OLD_LOG_PROB.name),
        greedy: call.optional_bytes(GREEDY.name),
    };
    let (trace, decay) = (call.choice("trace")?, call.number(TRACE_DECAY.name)?);
    match call.output("returns") {
        Some(out) => off_policy_return(&inputs, trace, decay, out),
        None => Ok(()),
    }
}

const ACTION_VALUE: InputSpec = InputSpec::new(
    "action_value",
    Domain::Value,
    &[&["B", "T"]],
    "Q(s_t, a_t): value of the action taken at each step",
);
const NEXT: InputSpec = InputSpec::new(
    "next_value",
    Domain::Value,
    &[&["B", "T"]],
    "expectation of Q(s_{t+1}, a) over the target policy (for Watkins: the maximum), not read where the step terminates",
);
const GREEDY: InputSpec =
    InputSpec::new("greedy", Domain::Mask, &[&["B", "T"]], "1 where the action taken is the greedy one").optional();

const INPUTS: &[InputSpec] = &[
    trajectory::REWARD,
    ACTION_VALUE,
    NEXT,
    LOG_PROB.optional(),
    OLD_LOG_PROB.optional(),
    GREEDY,
    TERMINATED,
    TRUNCATED,
    DISCOUNT,
    InputSpec::MASK,
];
const PARAMS: &[ParamSpec] = &[
    GAMMA,
    TRACE_DECAY,
    ParamSpec::choice(
        "trace",
        OffPolicyTrace::Retrace.name(),
        OffPolicyTrace::NAMES,
        "how much of the error behind a step passes it: λ min(1, π/μ), λ, λπ, λπ/μ, λ if greedy, or uncorrected",
    ),
];
const OUTPUTS: &[OutputSpec] = &[OutputSpec::value("returns", &["B", "T"], "target of Q(s_t, a_t); +0 under the mask")];

/// The operation of one trace; they differ in the trace's default and in what is said about it.
const fn operation(
    id: &'static str,
    title: &'static str,
    summary: &'static str,
    formula: &'static str,
    notes: &'static str,
    sources: &'static [Source],
    defaults: &'static [(&'static str, Value)],
) -> Operation {
    Operation {
        id,
        family: Family::Advantage,
        title,
        summary,
        formula,
        gradient: "",
        notes,
        sources,
        inputs: INPUTS,
        params: PARAMS,
        defaults,
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate),
    }
}

const MUNOS: Source = Source {
    title: "Safe and Efficient Off-Policy Reinforcement Learning",
    reference: "arXiv:1606.02647",
    place: "eq. 3–4, table 1",
};
const GAMMA_DEFAULT: (&str, Value) = ("gamma", Value::Number(0.99));

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    operation(
        "advantage.retrace",
        "Retrace(λ)",
        "Off-policy target of an action value, whose trace is cut by the truncated importance ratio.",
        r"G_t = Q(s_t, a_t) + \sum_{k \ge t} \gamma^{k-t}\left(\prod_{i=t+1}^{k} c_i\right)\delta_k,\quad
c_i = \lambda\min\left(1, \frac{\pi(a_i|s_i)}{\mu(a_i|s_i)}\right),\quad
\delta_k = r_k + \gamma\,\mathbb E_\pi Q(s_{k+1}, \cdot) - Q(s_k, a_k)",
        "The first error is not weighted: the action is given. The ratio is that of the action taken, not of all actions. \
         Needs log_prob and old_log_prob. No library that the catalog names differs.",
        &[MUNOS],
        &[GAMMA_DEFAULT],
    ),
    operation(
        "advantage.q_lambda",
        "Q(λ) with off-policy corrections",
        "Off-policy target of an action value, whose trace decays by λ alone and whose errors use the target policy.",
        r"G_t = Q(s_t, a_t) + \sum_{k \ge t} (\gamma\lambda)^{k-t}\delta_k,\quad
\delta_k = r_k + \gamma\,\mathbb E_\pi Q(s_{k+1}, \cdot) - Q(s_k, a_k)",
        "Converges where the policies are close: λ < (1 - γ)/(γ max‖π - μ‖₁). The choice `watkins` of the trace cuts it at \
         actions that are not greedy (then next_value is the maximum, and `greedy` is needed).",
        &[
            Source {
                title: "Q(λ) with Off-Policy Corrections",
                reference: "arXiv:1602.04951",
                place: "eq. 6, theorem 1",
            },
            MUNOS,
            Source {
                title: "Learning from Delayed Rewards",
                reference: "Watkins 1989, PhD thesis, Cambridge",
                place: "chapter 7",
            },
        ],
        &[GAMMA_DEFAULT, ("trace", Value::Name(OffPolicyTrace::QLambda.name()))],
    ),
    operation(
        "advantage.tree_backup",
        "Tree backup TB(λ)",
        "Off-policy target of an action value, whose trace is the target policy's probability of the action taken.",
        r"c_i = \lambda\,\pi(a_i|s_i)\ \text{in}\ G_t = Q(s_t, a_t) + \sum_{k \ge t} \gamma^{k-t}\left(\prod_{i=t+1}^{k} c_i\right)\delta_k",
        "Needs log_prob only: the behaviour policy need not be known. Cuts traces where the policies agree.",
        &[
            Source {
                title: "Eligibility Traces for Off-Policy Policy Evaluation",
                reference: "Precup, Sutton and Singh 2000, ICML",
                place: "§3, tree backup",
            },
            MUNOS,
        ],
        &[GAMMA_DEFAULT, ("trace", Value::Name(OffPolicyTrace::TreeBackup.name()))],
    ),
    operation(
        "advantage.importance_sampling_return",
        "Importance-sampling return",
        "Off-policy target of an action value, whose trace is the full importance ratio.",
        r"c_i = \lambda\,\frac{\pi(a_i|s_i)}{\mu(a_i|s_i)}\ \text{in}\ G_t = Q(s_t, a_t) + \sum_{k \ge t} \gamma^{k-t}\left(\prod_{i=t+1}^{k} c_i\right)\delta_k",
        "Unbiased, with a variance that may be infinite. A ratio that overflows is an error. Needs log_prob and old_log_prob.",
        &[
            MUNOS,
            Source {
                title: "Eligibility Traces for Off-Policy Policy Evaluation",
                reference: "Precup, Sutton and Singh 2000, ICML",
                place: "§2, per-decision importance sampling",
            },
        ],
        &[GAMMA_DEFAULT, ("trace", Value::Name(OffPolicyTrace::ImportanceSampling.name()))],
    ),
    operation(
        "advantage.peng_q_lambda",
        "Peng's Q(λ) (uncorrected)",
        "Mixture of uncorrected n-step returns that bootstrap from the target policy.",
        r"G_t = r_t + \gamma\left((1-\lambda)\,\mathbb E_\pi Q(s_{t+1}, \cdot) + \lambda\,G_{t+1}\right)",
        "No correction for the behaviour policy: the fixed point lies between both policies' values. With λ = 1 it is the \
         uncorrected return. `action_value` does not enter.",
        &[
            Source {
                title: "Incremental Multi-Step Q-Learning",
                reference: "Peng and Williams 1996, Machine Learning 22",
                place: "§3, eq. 8",
            },
            Source {
                title: "Revisiting Peng's Q(λ) for Modern Reinforcement Learning",
                reference: "arXiv:2103.00107",
                place: "eq. 4",
            },
        ],
        &[GAMMA_DEFAULT, ("trace", Value::Name(OffPolicyTrace::Peng.name()))],
    ),
];

#[cfg(test)]
mod tests {
    use super::super::Discount;
    use super::*;
    use crate::batch::{Mask, TokenShape};

    const NEXT_VALUES: [f64; 3] = [2.0, 4.0, 8.0];
    const LN2: f64 = core::f64::consts::LN_2;

    fn steps<'a>(terminated: Option<&'a [u8]>) -> ActionValueSteps<'a, f64> {
        ActionValueSteps {
            trajectories: Trajectories {
                mask: Mask::new(TokenShape { rows: 1, columns: 3 }, None).unwrap(),
                reward: &[1.0, 2.0, 3.0],
                discount: Discount::Constant(0.5),
                terminated,
                truncated: None,
                next_value: Some(&NEXT_VALUES),
                bootstrap_value: None,
            },
            action_value: &[1.0, 3.0, 5.0],
            // π is 1, ¼, ½ and μ is 1, ½, ¼.
            log_prob: Some(&[0.0, -2.0 * LN2, -LN2]),
            old_log_prob: Some(&[0.0, -LN2, -2.0 * LN2]),
            greedy: Some(&[1, 0, 1]),
        }
    }

    fn run(trace: OffPolicyTrace, decay: f64, terminated: Option<&[u8]>) -> [f64; 3] {
        let mut out = [9.0; 3];
        off_policy_return(&steps(terminated), trace, decay, &mut out).unwrap();
        out
    }

    fn close(got: [f64; 3], want: [f64; 3]) {
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-14, "{got} is not {want}");
        }
    }

    #[test]
    fn by_hand() {
        // δ = [1 + 1 − 1, 2 + 2 − 3, 3 + 4 − 5] = [1, 1, 2].
        use OffPolicyTrace::*;
        close(run(Retrace, 1.0, None), [1.0 + 1.0 + 0.5 * 0.5 * (1.0 + 0.5 * 2.0), 3.0 + 1.0 + 0.5 * 2.0, 7.0]);
        close(run(ImportanceSampling, 1.0, None), [2.0 + 0.25 * (1.0 + 0.5 * 2.0 * 2.0), 4.0 + 0.5 * 2.0 * 2.0, 7.0]);
        close(run(TreeBackup, 1.0, None), [2.0 + 0.5 * 0.25 * (1.0 + 0.5 * 0.5 * 2.0), 4.0 + 0.25 * 2.0, 7.0]);
        close(run(QLambda, 0.5, None), [2.0 + 0.25 * (1.0 + 0.25 * 2.0), 4.0 + 0.25 * 2.0, 7.0]);
        close(run(Watkins, 1.0, None), [2.0, 4.0 + 0.5 * 2.0, 7.0]);
        close(run(Peng, 0.5, None), [1.0 + 0.5 * (1.0 + 0.5 * 4.75), 2.0 + 0.5 * (2.0 + 0.5 * 7.0), 7.0]);
        close(run(Peng, 1.0, None), [1.0 + 0.5 * 5.5, 5.5, 7.0]);
        for trace in OffPolicyTrace::MEMBERS {
            close(run(*trace, 0.0, None), [2.0, 4.0, 7.0]);
            close(run(*trace, 1.0, Some(&[1, 1, 1])), [1.0, 2.0, 3.0]);
        }
    }

    /// mistakes.md G17: with λ = 0 the target uses the next state's own value.
    #[test]
    fn one_step_target() {
        let inputs = ActionValueSteps {
            trajectories: Trajectories {
                reward: &[0.0; 3],
                discount: Discount::Constant(0.9),
                next_value: Some(&[0.2, 0.3, 0.9]),
                ..steps(None).trajectories
            },
            action_value: &[0.1, 0.2, 0.3],
            ..steps(None)
        };
        let mut out = [9.0; 3];
        off_policy_return(&inputs, OffPolicyTrace::QLambda, 0.0, &mut out).unwrap();
        assert!((out[0] - 0.18).abs() < 1e-15);
    }

    #[test]
    fn what_a_trace_needs() {
        let mut out = [9.0; 3];
        let bare = ActionValueSteps { log_prob: None, greedy: None, ..steps(None) };
        let mut run = |trace| off_policy_return(&bare, trace, 0.5, &mut out);
        let missing = |argument| Err(Error::MissingInput { argument });
        assert_eq!(run(OffPolicyTrace::Retrace), missing("log_prob"));
        assert_eq!(run(OffPolicyTrace::TreeBackup), missing("log_prob"));
        assert_eq!(run(OffPolicyTrace::Watkins), missing("greedy"));
        assert_eq!(run(OffPolicyTrace::Peng), Ok(()));
    }
}

//! The log-probability of the sampled token.

use super::row::{COTANGENT, D_LOGITS, LOGITS, ROW_MASK, Rows, SoftmaxRow, TEMPERATURE, map_rows};
use crate::Error;
use crate::engine::{Engine, Portable};
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Kernel, Operation, OutputSpec, Source, evaluate_with};

/// ln softmax(z/τ)\[a\]: −∞ where the action is excluded or does not exist.
///
/// ```
/// use plumbline_core::logits::{row::SoftmaxRow, token_logprob::token_logprob};
/// let row = SoftmaxRow::new(&[0.0, 0.0], 0.5).unwrap();
/// assert_eq!(token_logprob(&row, 1), -core::f64::consts::LN_2);
/// ```
pub fn token_logprob<R: Real>(row: &SoftmaxRow<'_, R>, action: usize) -> R {
    row.logits().get(action).map_or(R::neg_infinity(), |logit| row.log_prob(*logit))
}

/// Its gradient by the logits, times a cotangent: (1[j = a] − pⱼ)/τ; 0 everywhere where the action is excluded, since −∞ stays
/// −∞. The action's own entry, 1 − pₐ, is taken from −expm1(ln pₐ), which keeps its digits where the action is nearly certain.
pub fn write_token_logprob_gradient<R: Real>(row: &SoftmaxRow<'_, R>, action: usize, cotangent: R, gradient: &mut [R]) {
    write_token_logprob_gradient_by(Portable, row, action, cotangent, gradient);
}

fn write_token_logprob_gradient_by<R: Real>(
    engine: impl Engine,
    row: &SoftmaxRow<'_, R>,
    action: usize,
    cotangent: R,
    gradient: &mut [R],
) {
    let log_prob = match row.logits().get(action) {
        Some(logit) if *logit != R::neg_infinity() => row.log_prob(*logit),
        _ => return gradient.fill(R::zero()),
    };
    row.write_gradient_by(engine, gradient, cotangent, slope);
    if let Some(slot) = gradient.get_mut(action) {
        *slot = own_gradient(row, log_prob, cotangent);
    }
}

/// The derivative of another entry's log-probability by a logit, times τ: −p.
#[inline(always)]
pub(super) fn slope<R: Real>(probability: R, _log_prob: R) -> R {
    R::zero() - probability
}

/// The gradient by the action's own logit.
pub(super) fn own_gradient<R: Real>(row: &SoftmaxRow<'_, R>, log_prob: R, cotangent: R) -> R {
    cotangent * (R::zero() - log_prob.exp_m1()) / row.partition().temperature()
}

/// The index of each row's action, checked where the row counts.
pub(super) fn checked_actions<'c, R: Real>(call: &Call<'c, R>, rows: &Rows<'c, R>) -> Result<&'c [u32], Error> {
    let actions = call.optional_index(ACTION.name).ok_or(Error::MissingInput { argument: ACTION.name })?;
    let limit = call.dim("V");
    for row in rows.kept() {
        if let Some(action) = actions.get(row)
            && *action as usize >= limit
        {
            return Err(Error::ElementOutOfRange {
                argument: ACTION.name,
                index: row,
                value: f64::from(*action),
                legal: "below the number of entries",
            });
        }
    }
    Ok(actions)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_by(Portable, call)
}

/// The evaluation, the passes called by an engine.
pub(crate) fn evaluate_by<R: Real>(engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
    let actions = checked_actions(call, &Rows::new(call))?;
    let action = |row: usize| actions.get(row).map_or(0, |action| *action as usize);
    map_rows(
        engine,
        call,
        "log_prob",
        |row, softmax| token_logprob(softmax, action(row)),
        |row, softmax, _, cotangent, gradient| {
            write_token_logprob_gradient_by(engine, softmax, action(row), cotangent, gradient);
        },
    )
}

/// The sampled entry of each row.
pub(super) const ACTION: InputSpec = InputSpec::new(
    "action",
    Domain::Index("V"),
    &[&["N"]],
    "index of the sampled entry of each row; not read where the row is absent",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "logits.token_logprob",
    family: Family::Logits,
    title: "token log-probability",
    summary: "The log-probability of the sampled token under the softmax of its logits at a temperature.",
    formula: r"\log\pi(a) = z_a/\tau - \log\sum_k e^{z_k/\tau}",
    gradient: r"c\,(\mathbf 1[j = a] - p_j)/\tau",
    notes: "The temperature divides the logits, not the log-probability. An action whose logit is -inf has log-probability \
            -inf and gradient 0. Equal in verl (`logprobs_from_logits`, which leaves the temperature to \
            its caller) and TRL (`selective_log_softmax`).",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "ISBN 978-0-262-03924-6",
        place: "Equation 13.2 (softmax in action preferences), section 2.8 (its gradient)",
    }],
    inputs: &[LOGITS, ACTION, COTANGENT, ROW_MASK],
    params: &[TEMPERATURE],
    defaults: &[],
    outputs: &[OutputSpec::value("log_prob", &["N"], "log-probability of each action (nats)"), D_LOGITS],
    dialects: &[],
    evaluate: evaluate_with!(evaluate, Some(Kernel::TokenLogProb)),
}];

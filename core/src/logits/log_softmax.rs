//! Log-softmax and its normaliser.

use super::row::{D_LOGITS, LOGITS, ROW_MASK, Rows, SoftmaxRow, TEMPERATURE, cleared, map_rows, row_mut};
use crate::Error;
use crate::batch::row_of;
use crate::engine::{Engine, Portable};
use crate::num::{Real, tree_sum_zip};
use crate::spec::{Call, Domain, Family, InputSpec, Kernel, Operation, OutputSpec, Source, evaluate_with};

/// ln softmax(z/τ) of a row, entry by entry: (zⱼ − max z)/τ − ln Σ e^((z − max z)/τ); −∞ where an entry is excluded.
///
/// ```
/// use plumbline_core::logits::{log_softmax::write_log_softmax, row::SoftmaxRow};
/// let logits = [1000.0, 1000.0, f64::NEG_INFINITY];
/// let mut log_prob = [0.0; 3];
/// write_log_softmax(&SoftmaxRow::new(&logits, 1.0).unwrap(), &mut log_prob);
/// assert_eq!(log_prob, [-core::f64::consts::LN_2, -core::f64::consts::LN_2, f64::NEG_INFINITY]);
/// ```
pub fn write_log_softmax<R: Real>(row: &SoftmaxRow<'_, R>, log_prob: &mut [R]) {
    for (slot, logit) in log_prob.iter_mut().zip(row.logits()) {
        *slot = row.log_prob(*logit);
    }
}

/// The gradient of Σⱼ cⱼ ln softmax(z/τ)ⱼ by z: (cⱼ − pⱼ Σ c)/τ over the entries that are not excluded.
///
/// ```
/// use plumbline_core::logits::{log_softmax::write_log_softmax_gradient, row::SoftmaxRow};
/// let logits = [0.0, 0.0];
/// let mut gradient = [0.0; 2];
/// write_log_softmax_gradient(&SoftmaxRow::new(&logits, 1.0).unwrap(), Some(&[1.0, 0.0]), &mut gradient);
/// assert_eq!(gradient, [0.5, -0.5]);
/// ```
pub fn write_log_softmax_gradient<R: Real>(row: &SoftmaxRow<'_, R>, cotangent: Option<&[R]>, gradient: &mut [R]) {
    // Without cotangents every entry weighs 1: the weights are then read from the logits' own slice, unused.
    let weights = cotangent.unwrap_or(row.logits());
    let weight = |logit: &R, weight: &R| match cotangent {
        _ if *logit == R::neg_infinity() => R::zero(),
        None => R::one(),
        Some(_) => *weight,
    };
    let sum = tree_sum_zip(row.logits(), weights, weight);
    for ((slot, logit), given) in gradient.iter_mut().zip(row.logits()).zip(weights) {
        *slot = if *logit == R::neg_infinity() {
            R::zero()
        } else {
            (weight(logit, given) - row.log_prob(*logit).exp() * sum) / row.partition().temperature()
        };
    }
}

/// ln Σ e^(zⱼ/τ) of a row; its gradient is p/τ.
///
/// ```
/// use plumbline_core::logits::{log_softmax::logsumexp, row::SoftmaxRow};
/// assert_eq!(logsumexp(&SoftmaxRow::new(&[-1000.0, -1000.0], 1.0).unwrap()), -1000.0 + core::f64::consts::LN_2);
/// ```
pub fn logsumexp<R: Real>(row: &SoftmaxRow<'_, R>) -> R {
    row.partition().value()
}

fn evaluate_log_softmax<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rows = Rows::new(call);
    let (logits, width) = (call.real(LOGITS.name)?, call.dim("V"));
    let cotangents = call.optional_real(MATRIX_COTANGENT.name);
    let temperature = call.number(TEMPERATURE.name)?;
    let mut log_probs = cleared(call, "log_prob");
    let mut gradients = cleared(call, D_LOGITS.name);
    for row in rows.kept() {
        let offset = row.saturating_mul(width);
        let softmax = SoftmaxRow::judge(LOGITS.name, offset, row_of(logits, width, row), temperature)?;
        let cotangent = cotangents.map(|cotangents| row_of(cotangents, width, row));
        for (index, value) in cotangent.unwrap_or(&[]).iter().enumerate() {
            if !value.is_finite() && softmax.logits().get(index) != Some(&R::neg_infinity()) {
                return Err(Error::NonFinite { argument: MATRIX_COTANGENT.name, index: offset.saturating_add(index) });
            }
        }
        if let Some(log_prob) = row_mut(&mut log_probs, width, row) {
            write_log_softmax(&softmax, log_prob);
        }
        if let Some(gradient) = row_mut(&mut gradients, width, row) {
            write_log_softmax_gradient(&softmax, cotangent, gradient);
        }
    }
    Ok(())
}

fn evaluate_logsumexp<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_logsumexp_by(Portable, call)
}

/// The evaluation of the log-sum-exp, the passes called by an engine.
pub(crate) fn evaluate_logsumexp_by<R: Real>(engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
    map_rows(
        engine,
        call,
        "logsumexp",
        |_, row| logsumexp(row),
        |_, row, _, cotangent, gradient| {
            row.write_gradient_by(engine, gradient, cotangent, |probability, _| probability);
        },
    )
}

const MATRIX_COTANGENT: InputSpec = InputSpec::new(
    "cotangent",
    Domain::Real,
    &[&["N", "V"]],
    "upstream gradient of each log-probability, not read where an entry is excluded; without it all are 1",
)
.optional();

const SOURCE: Source = Source {
    title: "Accurately computing the log-sum-exp and softmax functions",
    reference: "doi:10.1093/imanum/draa038",
    place: "Equations 1.1 to 1.3 and the shifted algorithms of section 3",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "logits.log_softmax",
        family: Family::Logits,
        title: "log-softmax",
        summary: "The log-probability of every entry of a row of logits.",
        formula: r"\log p_j = z_j/\tau - \log\sum_k e^{z_k/\tau}",
        gradient: r"\Big(c_j - p_j \sum_k c_k\Big)/\tau",
        notes: "An excluded entry (logit -inf) has log-probability -inf and gradient 0, and its cotangent is not read. \
                Equal in PyTorch, verl and TRL.",
        sources: &[SOURCE],
        inputs: &[LOGITS, MATRIX_COTANGENT, ROW_MASK],
        params: &[TEMPERATURE],
        defaults: &[],
        outputs: &[
            OutputSpec::value("log_prob", &["N", "V"], "log-probability of each entry (nats); 0 in absent rows"),
            D_LOGITS,
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_log_softmax),
    },
    Operation {
        id: "logits.logsumexp",
        family: Family::Logits,
        title: "log-sum-exp",
        summary: "The logarithm of the softmax's normaliser.",
        formula: r"\log\sum_k e^{z_k/\tau}",
        gradient: r"p_j/\tau",
        notes: "Equal in PyTorch, verl and TRL.",
        sources: &[SOURCE],
        inputs: &[LOGITS, super::row::COTANGENT, ROW_MASK],
        params: &[TEMPERATURE],
        defaults: &[],
        outputs: &[OutputSpec::value("logsumexp", &["N"], "log of the normaliser of each row (nats)"), D_LOGITS],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_logsumexp, Some(Kernel::LogSumExp)),
    },
];

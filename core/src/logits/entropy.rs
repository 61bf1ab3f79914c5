//! The Shannon entropy of a categorical distribution, and its collision probability.

use super::row::{COTANGENT, D_LOGITS, LOGITS, ROW_MASK, SoftmaxRow, TEMPERATURE, map_rows};
use crate::Error;
use crate::engine::{Engine, Portable};
use crate::num::Real;
use crate::spec::{Call, Family, Kernel, Operation, OutputSpec, Source, evaluate_with};

/// H = −Σ p ln p with p = softmax(z/τ), in nats. Every term is ≥ 0, so nothing cancels; an entry of probability 0 counts
/// as 0.
///
/// ```
/// use plumbline_core::logits::{entropy::entropy, row::SoftmaxRow};
/// let row = SoftmaxRow::new(&[3.0, 3.0, f64::NEG_INFINITY], 1.0).unwrap();
/// assert_eq!(entropy(&row), core::f64::consts::LN_2);
/// ```
pub fn entropy<R: Real>(row: &SoftmaxRow<'_, R>) -> R {
    row.sum(term)
}

/// −p ln p.
#[inline(always)]
pub(super) fn term<R: Real>(probability: R, log_prob: R) -> R {
    probability * (R::zero() - log_prob)
}

/// The derivative of the entropy H by a logit, times τ: −p(ln p + H).
#[inline(always)]
pub(super) fn slope<R: Real>(entropy: R) -> impl Fn(R, R) -> R {
    move |probability, log_prob| {
        if probability == R::zero() { R::zero() } else { R::zero() - probability * (log_prob + entropy) }
    }
}

/// The gradient of the entropy by the logits, times a cotangent: −pⱼ(ln pⱼ + H)/τ.
pub fn write_entropy_gradient<R: Real>(row: &SoftmaxRow<'_, R>, entropy: R, cotangent: R, gradient: &mut [R]) {
    row.write_gradient(gradient, cotangent, slope(entropy));
}

/// Σ p², the probability that two independent samples agree.
///
/// ```
/// use plumbline_core::logits::{entropy::sum_p_squared, row::SoftmaxRow};
/// assert_eq!(sum_p_squared(&SoftmaxRow::new(&[1.0, 1.0], 1.0).unwrap()), 0.5);
/// ```
pub fn sum_p_squared<R: Real>(row: &SoftmaxRow<'_, R>) -> R {
    row.sum(|probability, _| probability * probability)
}

/// Its gradient by the logits, times a cotangent: 2pⱼ(pⱼ − Σp²)/τ.
pub fn write_sum_p_squared_gradient<R: Real>(row: &SoftmaxRow<'_, R>, sum: R, cotangent: R, gradient: &mut [R]) {
    row.write_gradient(gradient, cotangent, |probability, _| R::two() * probability * (probability - sum));
}

fn evaluate_entropy<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_entropy_by(Portable, call)
}

/// The evaluation of the entropy, the passes called by an engine.
pub(crate) fn evaluate_entropy_by<R: Real>(engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
    map_rows(
        engine,
        call,
        "entropy",
        |_, row| row.sum_by(engine, term),
        |_, row, entropy, cotangent, gradient| row.write_gradient_by(engine, gradient, cotangent, slope(entropy)),
    )
}

fn evaluate_sum_p_squared<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_rows(
        Portable,
        call,
        "sum_p_squared",
        |_, row| sum_p_squared(row),
        |_, row, sum, cotangent, gradient| write_sum_p_squared_gradient(row, sum, cotangent, gradient),
    )
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "logits.entropy",
        family: Family::Logits,
        title: "entropy",
        summary: "The Shannon entropy of the softmax of each row, over all entries.",
        formula: r"H = -\sum_j p_j \log p_j,\quad p = \operatorname{softmax}(z/\tau)",
        gradient: r"-c\,p_j(\log p_j + H)/\tau",
        notes: "It is the entropy of the whole distribution, not minus the log-probability of a sample. verl computes \
                logsumexp(z) - sum(p z), which is NaN where a logit is -inf and loses digits at large logits, and leaves the \
                temperature to its caller; its chunked form computes in single precision. TRL sums p log p.",
        sources: &[Source {
            title: "A Mathematical Theory of Communication",
            reference: "doi:10.1002/j.1538-7305.1948.tb01338.x",
            place: "section 6",
        }],
        inputs: &[LOGITS, COTANGENT, ROW_MASK],
        params: &[TEMPERATURE],
        defaults: &[],
        outputs: &[OutputSpec::value("entropy", &["N"], "entropy of each row (nats)"), D_LOGITS],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_entropy, Some(Kernel::Entropy)),
    },
    Operation {
        id: "logits.sum_p_squared",
        family: Family::Logits,
        title: "collision probability",
        summary: "The sum of squared probabilities of each row: the chance that two samples agree.",
        formula: r"\sum_j p_j^2,\quad p = \operatorname{softmax}(z/\tau)",
        gradient: r"2c\,p_j\Big(p_j - \sum_k p_k^2\Big)/\tau",
        notes: "verl (`calculate_sum_pi_squared_from_logits`) computes exp(logsumexp(2z) - 2 logsumexp(z)), the same number.",
        sources: &[Source {
            title: "On Measures of Entropy and Information",
            reference: "Renyi 1961, Proc. 4th Berkeley Symposium, vol. 1",
            place: "Equation 1.21 at order 2 (its exponential)",
        }],
        inputs: &[LOGITS, COTANGENT, ROW_MASK],
        params: &[TEMPERATURE],
        defaults: &[],
        outputs: &[OutputSpec::value("sum_p_squared", &["N"], "sum of squared probabilities of each row"), D_LOGITS],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_sum_p_squared),
    },
];

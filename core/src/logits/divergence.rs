//! Divergences between two categorical distributions: both directions of Kullback–Leibler, and generalised Jensen–Shannon.

use super::row::{COTANGENT, D_LOGITS, LOGITS, ROW_MASK, Rows, SoftmaxRow, TEMPERATURE, cleared, row_mut, set};
use crate::Error;
use crate::batch::row_of;
use crate::num::{Real, exp_remainders, kl_div, tree_sum_zip};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice,
    evaluate_with,
};

choice! {
    /// Which of the two distributions comes first.
    pub enum Direction {
        /// KL(p‖q): the policy first.
        Forward = "forward",
        /// KL(q‖p): the reference first.
        Reverse = "reverse",
    }
}

/// p, q and ln(p/q) of one entry; the log-ratio is 0 where both exclude it.
struct Entry<R> {
    p: R,
    q: R,
    log_ratio: R,
}

#[inline(always)]
fn entry<R: Real>(first: &SoftmaxRow<'_, R>, second: &SoftmaxRow<'_, R>, p_logit: R, q_logit: R) -> Entry<R> {
    let (log_p, log_q) = (first.log_prob(p_logit), second.log_prob(q_logit));
    let both_excluded = p_logit == R::neg_infinity() && q_logit == R::neg_infinity();
    Entry { p: log_p.exp(), q: log_q.exp(), log_ratio: if both_excluded { R::zero() } else { log_p - log_q } }
}

/// The first entry that `first` keeps and `second` excludes: there KL(first‖second) is infinite.
fn uncovered<R: Real>(first: &SoftmaxRow<'_, R>, second: &SoftmaxRow<'_, R>) -> Option<usize> {
    let excluded = R::neg_infinity();
    first.logits().iter().zip(second.logits()).position(|(p, q)| *p != excluded && *q == excluded)
}

/// KL(p‖q) = Σ p ln(p/q), as the sum of the terms p ln(p/q) − p + q, which are ≥ 0 and do not cancel where p and q nearly
/// agree. Entries that p excludes count q (their terms' share of Σ q − p); q must not exclude an entry that p keeps.
///
/// ```
/// use plumbline_core::logits::{divergence::kl, row::SoftmaxRow};
/// let (p, q) = ([0.0, f64::NEG_INFINITY], [0.0, 0.0]);
/// let kl = kl(&SoftmaxRow::new(&p, 1.0).unwrap(), &SoftmaxRow::new(&q, 1.0).unwrap());
/// assert_eq!(kl, core::f64::consts::LN_2);
/// ```
pub fn kl<R: Real>(first: &SoftmaxRow<'_, R>, second: &SoftmaxRow<'_, R>) -> R {
    tree_sum_zip(first.logits(), second.logits(), |p_logit, q_logit| {
        let Entry { p, q, log_ratio } = entry(first, second, *p_logit, *q_logit);
        kl_div(p, q, log_ratio)
    })
}

/// The gradient of KL(p‖q) by the logits of p, times a cotangent: pⱼ(ln(pⱼ/qⱼ) − KL)/τ.
pub fn write_kl_gradient_of_first<R: Real>(
    first: &SoftmaxRow<'_, R>,
    second: &SoftmaxRow<'_, R>,
    kl: R,
    cotangent: R,
    gradient: &mut [R],
) {
    let temperature = first.partition().temperature();
    for ((slot, p_logit), q_logit) in gradient.iter_mut().zip(first.logits()).zip(second.logits()) {
        let Entry { p, log_ratio, .. } = entry(first, second, *p_logit, *q_logit);
        // The equality is for a divergence that overflowed: ∞ − ∞.
        let centred = if log_ratio == kl { R::zero() } else { log_ratio - kl };
        *slot = if p == R::zero() { R::zero() } else { cotangent * (p * centred) / temperature };
    }
}

/// The gradient of KL(p‖q) by the logits of q, times a cotangent: (qⱼ − pⱼ)/τ.
pub fn write_kl_gradient_of_second<R: Real>(
    first: &SoftmaxRow<'_, R>,
    second: &SoftmaxRow<'_, R>,
    cotangent: R,
    gradient: &mut [R],
) {
    let temperature = second.partition().temperature();
    for ((slot, p_logit), q_logit) in gradient.iter_mut().zip(first.logits()).zip(second.logits()) {
        let Entry { p, q, log_ratio } = entry(first, second, *p_logit, *q_logit);
        let difference = if log_ratio.abs() < R::half() {
            // q − p = p(e^(−ln p/q) − 1) without cancellation.
            let [growth, _] = exp_remainders(R::zero() - log_ratio);
            p * growth
        } else {
            q - p
        };
        *slot = if *q_logit == R::neg_infinity() { R::zero() } else { cotangent * difference / temperature };
    }
}

/// ln(p/m) and ln(q/m) with m = βp + (1−β)q, from ln(p/q).
#[inline(always)]
fn log_ratios_to_mixture<R: Real>(log_ratio: R, beta: R) -> [R; 2] {
    let rest = R::one() - beta;
    if log_ratio > R::zero() {
        // m/p = 1 + (1−β)(q/p − 1), with q/p ≤ 1.
        let to_p = R::zero() - (rest * (R::zero() - log_ratio).exp_m1()).ln_1p();
        [to_p, to_p - log_ratio]
    } else {
        let to_q = R::zero() - (beta * log_ratio.exp_m1()).ln_1p();
        [to_q + log_ratio, to_q]
    }
}

/// The generalised Jensen–Shannon divergence β KL(p‖m) + (1−β) KL(q‖m), m = βp + (1−β)q, for 0 < β < 1.
///
/// It tends to 0 as β → 0 or 1; divided by β it tends to KL(p‖q), divided by 1−β to KL(q‖p).
///
/// ```
/// use plumbline_core::logits::{divergence::generalised_jsd, row::SoftmaxRow};
/// let (p, q) = ([0.0, f64::NEG_INFINITY], [f64::NEG_INFINITY, 0.0]);
/// let jsd = generalised_jsd(&SoftmaxRow::new(&p, 1.0).unwrap(), &SoftmaxRow::new(&q, 1.0).unwrap(), 0.5);
/// assert_eq!(jsd, core::f64::consts::LN_2);
/// ```
pub fn generalised_jsd<R: Real>(first: &SoftmaxRow<'_, R>, second: &SoftmaxRow<'_, R>, beta: R) -> R {
    let rest = R::one() - beta;
    tree_sum_zip(first.logits(), second.logits(), |p_logit, q_logit| {
        let Entry { p, q, log_ratio } = entry(first, second, *p_logit, *q_logit);
        let [p_to_m, q_to_m] = log_ratios_to_mixture(log_ratio, beta);
        let m = beta * p + rest * q;
        // The added β(m − p) + (1−β)(m − q) is 0 for each entry, and each of the two terms is ≥ 0.
        beta * kl_div(p, m, p_to_m) + rest * kl_div(q, m, q_to_m)
    })
}

/// Its gradient by the logits of p, times a cotangent: β pⱼ(ln(pⱼ/mⱼ) − KL(p‖m))/τ. That by the logits of q is the same
/// with the rows exchanged and 1−β for β.
pub fn write_jsd_gradient_of_first<R: Real>(
    first: &SoftmaxRow<'_, R>,
    second: &SoftmaxRow<'_, R>,
    beta: R,
    cotangent: R,
    gradient: &mut [R],
) {
    let temperature = first.partition().temperature();
    let to_mixture = |p_logit: &R, q_logit: &R| {
        let Entry { p, q, log_ratio } = entry(first, second, *p_logit, *q_logit);
        let [p_to_m, _] = log_ratios_to_mixture(log_ratio, beta);
        (p, beta * p + (R::one() - beta) * q, p_to_m)
    };
    let divergence = tree_sum_zip(first.logits(), second.logits(), |p_logit, q_logit| {
        let (p, m, p_to_m) = to_mixture(p_logit, q_logit);
        kl_div(p, m, p_to_m)
    });
    for ((slot, p_logit), q_logit) in gradient.iter_mut().zip(first.logits()).zip(second.logits()) {
        let (p, _, p_to_m) = to_mixture(p_logit, q_logit);
        *slot = if p == R::zero() { R::zero() } else { cotangent * beta * (p * (p_to_m - divergence)) / temperature };
    }
}

/// A divergence of a pair of rows.
#[derive(Clone, Copy)]
enum Divergence<R> {
    /// KL(first‖second).
    Kl,
    /// The generalised Jensen–Shannon divergence at 0 < β < 1.
    Jsd(R),
}

/// Walk over the rows of two matrices of logits, given by their input and gradient names, in the formula's order.
fn map_pairs<'c, R: Real>(
    call: &mut Call<'c, R>,
    value_name: &str,
    [first, second]: [(&'static str, &str); 2],
    divergence: Divergence<R>,
) -> Result<(), Error> {
    let rows = Rows::new(call);
    let (first_logits, second_logits, width) = (call.real(first.0)?, call.real(second.0)?, call.dim("V"));
    let temperature = call.number(TEMPERATURE.name)?;
    let mut values = cleared(call, value_name);
    let mut by_first = cleared(call, first.1);
    let mut by_second = cleared(call, second.1);
    for row in rows.kept() {
        let offset = row.saturating_mul(width);
        let p = SoftmaxRow::judge(first.0, offset, row_of(first_logits, width, row), temperature)?;
        let q = SoftmaxRow::judge(second.0, offset, row_of(second_logits, width, row), temperature)?;
        let cotangent = rows.cotangent(row)?;
        let by_first = row_mut(&mut by_first, width, row);
        let by_second = row_mut(&mut by_second, width, row);
        let value = match divergence {
            Divergence::Kl => {
                if let Some(index) = uncovered(&p, &q) {
                    return Err(Error::NonFinite { argument: second.0, index: offset.saturating_add(index) });
                }
                let value = kl(&p, &q);
                if let Some(gradient) = by_first {
                    write_kl_gradient_of_first(&p, &q, value, cotangent, gradient);
                }
                if let Some(gradient) = by_second {
                    write_kl_gradient_of_second(&p, &q, cotangent, gradient);
                }
                value
            }
            Divergence::Jsd(beta) => {
                if let Some(gradient) = by_first {
                    write_jsd_gradient_of_first(&p, &q, beta, cotangent, gradient);
                }
                if let Some(gradient) = by_second {
                    write_jsd_gradient_of_first(&q, &p, R::one() - beta, cotangent, gradient);
                }
                generalised_jsd(&p, &q, beta)
            }
        };
        set(&mut values, row, value);
    }
    Ok(())
}

fn evaluate_kl<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let policy = (LOGITS.name, D_LOGITS.name);
    let reference = (REF_LOGITS.name, "d_ref_logits");
    match call.choice::<Direction>(DIRECTION.name)? {
        Direction::Forward => map_pairs(call, "kl", [policy, reference], Divergence::Kl),
        Direction::Reverse => map_pairs(call, "kl", [reference, policy], Divergence::Kl),
    }
}

fn evaluate_jsd<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number(BETA.name)?;
    let student = (LOGITS.name, D_LOGITS.name);
    let teacher = (TEACHER_LOGITS.name, "d_teacher_logits");
    if beta == R::zero() {
        map_pairs(call, "jsd", [teacher, student], Divergence::Kl)
    } else if beta == R::one() {
        map_pairs(call, "jsd", [student, teacher], Divergence::Kl)
    } else {
        map_pairs(call, "jsd", [teacher, student], Divergence::Jsd(beta))
    }
}

const DIRECTION: ParamSpec = ParamSpec::choice(
    "direction",
    Direction::Forward.name(),
    Direction::NAMES,
    "forward: KL(policy‖reference); reverse: KL(reference‖policy)",
);
const BETA: ParamSpec = ParamSpec::number(
    "beta",
    r"\beta",
    0.5,
    Range::UNIT,
    "weight of the teacher in the mixture; at 0 KL(teacher‖student), at 1 KL(student‖teacher)",
);
const REF_LOGITS: InputSpec =
    InputSpec::new("ref_logits", Domain::Logit, &[&["N", "V"]], "logits of the reference, q; -inf excludes an entry");
const TEACHER_LOGITS: InputSpec =
    InputSpec::new("teacher_logits", Domain::Logit, &[&["N", "V"]], "logits of the teacher, p; -inf excludes an entry");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "logits.kl_full",
        family: Family::Logits,
        title: "full Kullback–Leibler divergence",
        summary: "The divergence of two categorical distributions over all entries, in either direction, with gradients to both sides.",
        formula: r"\mathrm{KL}(p\|q) = \sum_j p_j\,(\log p_j - \log q_j),\quad p = \operatorname{softmax}(z/\tau),\
q = \operatorname{softmax}(z^{\mathrm{ref}}/\tau)",
        gradient: r"\text{forward: } \partial z_j: p_j\,(\log p_j - \log q_j - \mathrm{KL})/\tau,\quad
\partial z^{\mathrm{ref}}_j: (q_j - p_j)/\tau;\qquad \text{reverse: the roles of } p \text{ and } q \text{ swapped}",
        notes: "Where the second distribution of the direction excludes (logit -inf) an entry that the first keeps, the \
                divergence is infinite: an error that names it. verl's kl_penalty mode `full` is not implemented there.",
        sources: &[Source {
            title: "On Information and Sufficiency",
            reference: "doi:10.1214/aoms/1177729694",
            place: "Equation 2.4",
        }],
        inputs: &[LOGITS, REF_LOGITS, COTANGENT, ROW_MASK],
        params: &[DIRECTION, TEMPERATURE],
        defaults: &[],
        outputs: &[
            OutputSpec::value("kl", &["N"], "divergence of each row (nats)"),
            D_LOGITS,
            OutputSpec::gradient(
                "d_ref_logits",
                "ref_logits",
                &["N", "V"],
                "gradient by the reference's logits; 0 where an entry is excluded",
            ),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_kl),
    },
    Operation {
        id: "logits.jsd",
        family: Family::Logits,
        title: "generalised Jensen–Shannon divergence",
        summary: "The divergence between the forward and the reverse Kullback–Leibler divergence that distillation uses, weighted by beta.",
        formula: r"\beta\,\mathrm{KL}(p\|m) + (1-\beta)\,\mathrm{KL}(q\|m),\quad m = \beta p + (1-\beta) q,\quad
p \text{ teacher},\ q \text{ student}",
        gradient: r"\partial z_j: (1-\beta)\,q_j\,\big(\log(q_j/m_j) - \mathrm{KL}(q\|m)\big)/\tau,\qquad
\partial z^{\mathrm{teacher}}_j: \beta\,p_j\,\big(\log(p_j/m_j) - \mathrm{KL}(p\|m)\big)/\tau",
        notes: "The divergence itself tends to 0 at either end; what stands there is its limit after division by beta or \
                1 - beta: KL(teacher‖student) at 0, KL(student‖teacher) at 1 (as in TRL's GKD). TRL sums the rows' values and \
                divides by the number of rows or of labelled tokens.",
        sources: &[Source {
            title: "On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes",
            reference: "arXiv:2306.13649",
            place: "Equation 1",
        }],
        inputs: &[
            InputSpec { meaning: "logits of the student, q; -inf excludes an entry", ..LOGITS },
            TEACHER_LOGITS,
            COTANGENT,
            ROW_MASK,
        ],
        params: &[BETA, TEMPERATURE],
        defaults: &[],
        outputs: &[
            OutputSpec::value("jsd", &["N"], "divergence of each row (nats)"),
            D_LOGITS,
            OutputSpec::gradient(
                "d_teacher_logits",
                "teacher_logits",
                &["N", "V"],
                "gradient by the teacher's logits; 0 where an entry is excluded",
            ),
        ],
        dialects: &[
            Dialect { name: "paper", note: "as defined, the ends as limits", settings: &[] },
            Dialect { name: "trl-1.16", note: "the same", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_jsd),
    },
];

//! The log-probability of the sampled token under the truncated distribution that it was sampled from.

use super::row::{COTANGENT, D_LOGITS, LOGITS, ROW_MASK, Rows, SoftmaxRow, TEMPERATURE, cleared, row_mut, set};
use super::token_logprob::{ACTION, checked_actions};
use crate::Error;
use crate::batch::row_of;
use crate::num::{LogPartition, Real, tree_sum_map};
use crate::spec::{Call, Dialect, Family, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with};

/// A number whose order is that of the floating-point numbers; −0 and +0 are the same.
fn order_key<R: Real>(value: R) -> u64 {
    let bits = (value + R::zero()).bits();
    let sign = match R::DTYPE {
        crate::num::Dtype::F32 => 1u64 << 31,
        crate::num::Dtype::F64 => 1u64 << 63,
    };
    // Within the type's width: negative numbers run backwards below the positive ones.
    if bits & sign != 0 { (sign - 1) - (bits - sign) } else { bits | sign }
}

/// The largest key that satisfies a condition which holds for every smaller one, too.
fn largest_key(holds: impl Fn(u64) -> bool) -> u64 {
    let mut key = 0;
    for bit in (0..u64::BITS).rev() {
        let candidate = key | (1 << bit);
        if holds(candidate) {
            key = candidate;
        }
    }
    key
}

/// Which entries a sampler keeps: those whose logit is not below a threshold.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    lowest: u64,
}

impl Support {
    /// First the `top_k` largest logits (0: all), then among them the smallest set of largest ones that holds at least the
    /// share `top_p` of their probability. Entries that tie with the last one kept are kept, too. No memory is needed: both
    /// thresholds are found by bisection over the bits of the logits.
    pub fn new<R: Real>(row: &SoftmaxRow<'_, R>, top_k: usize, top_p: R) -> Self {
        let excluded = order_key(R::neg_infinity());
        let mut lowest = excluded + 1;
        if top_k > 0 {
            let kth = largest_key(|key| row.logits().iter().filter(|logit| order_key(**logit) >= key).count() >= top_k);
            lowest = lowest.max(kth);
        }
        if top_p < R::one() {
            let mass = |key: u64| {
                tree_sum_map(row.logits(), |logit| {
                    if order_key(*logit) >= key { row.log_prob(*logit).exp() } else { R::zero() }
                })
            };
            let needed = top_p * mass(lowest);
            lowest = lowest.max(largest_key(|key| mass(key) >= needed));
        }
        Support { lowest }
    }

    /// Whether an entry with that logit is kept.
    pub fn keeps<R: Real>(self, logit: R) -> bool {
        order_key(logit) >= self.lowest
    }
}

/// ln p̃(a) with p̃ = p/Σ_S p on the support S, 0 outside it; −∞ where the sampler cannot have drawn the action.
///
/// ```
/// use plumbline_core::logits::{row::SoftmaxRow, truncated::{Support, truncated_logprob}};
/// let row = SoftmaxRow::new(&[2.0, 2.0, 0.0], 1.0).unwrap();
/// let support = Support::new(&row, 2, 1.0);
/// assert_eq!(truncated_logprob(&row, support, 0), -core::f64::consts::LN_2);
/// assert_eq!(truncated_logprob(&row, support, 2), f64::NEG_INFINITY);
/// ```
pub fn truncated_logprob<R: Real>(row: &SoftmaxRow<'_, R>, support: Support, action: usize) -> R {
    match (row.logits().get(action), kept_partition(row, support)) {
        (Some(logit), Some(partition)) if support.keeps(*logit) => partition.log_prob(*logit),
        _ => R::neg_infinity(),
    }
}

/// Its gradient by the logits, times a cotangent, with the support held fixed: (1[j = a] − p̃ⱼ)/τ on S, 0 outside; 0
/// everywhere where the action is not in S.
pub fn write_truncated_gradient<R: Real>(
    row: &SoftmaxRow<'_, R>,
    support: Support,
    action: usize,
    cotangent: R,
    gradient: &mut [R],
) {
    let (Some(chosen), Some(partition)) = (row.logits().get(action), kept_partition(row, support)) else {
        return gradient.fill(R::zero());
    };
    if !support.keeps(*chosen) {
        return gradient.fill(R::zero());
    }
    for (index, (slot, logit)) in gradient.iter_mut().zip(row.logits()).enumerate() {
        let log_prob = partition.log_prob(*logit);
        let slope = if !support.keeps(*logit) {
            R::zero()
        } else if index == action {
            R::zero() - log_prob.exp_m1()
        } else {
            R::zero() - log_prob.exp()
        };
        *slot = cotangent * slope / partition.temperature();
    }
}

/// Σ_S p: the probability that an untruncated sample lies in the support.
pub fn support_mass<R: Real>(row: &SoftmaxRow<'_, R>, support: Support) -> R {
    tree_sum_map(row.logits(), |logit| if support.keeps(*logit) { row.log_prob(*logit).exp() } else { R::zero() })
}

fn kept_partition<R: Real>(row: &SoftmaxRow<'_, R>, support: Support) -> Option<LogPartition<R>> {
    LogPartition::of_kept(row.logits(), row.partition().temperature(), |logit| support.keeps(logit))
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rows = Rows::new(call);
    let actions = checked_actions(call, &rows)?;
    let (logits, width) = (call.real(LOGITS.name)?, call.dim("V"));
    let temperature = call.number(TEMPERATURE.name)?;
    let (top_k, top_p) = (call.integer(TOP_K.name)?, call.number(TOP_P.name)?);
    let mut log_probs = cleared(call, "log_prob");
    let mut gradients = cleared(call, D_LOGITS.name);
    let mut masses = cleared(call, "support_mass");
    let mut members = cleared(call, "in_support");
    for row in rows.kept() {
        let offset = row.saturating_mul(width);
        let softmax = SoftmaxRow::judge(LOGITS.name, offset, row_of(logits, width, row), temperature)?;
        let action = actions.get(row).map_or(0, |action| *action as usize);
        let support = Support::new(&softmax, top_k, top_p);
        let log_prob = truncated_logprob(&softmax, support, action);
        set(&mut log_probs, row, log_prob);
        set(&mut members, row, if log_prob == R::neg_infinity() { R::zero() } else { R::one() });
        if masses.is_some() {
            set(&mut masses, row, support_mass(&softmax, support));
        }
        let cotangent = rows.cotangent(row)?;
        if let Some(gradient) = row_mut(&mut gradients, width, row) {
            write_truncated_gradient(&softmax, support, action, cotangent, gradient);
        }
    }
    Ok(())
}

const TOP_K: ParamSpec = ParamSpec::integer(
    "top_k",
    "k",
    0,
    0,
    u32::MAX as i64,
    "how many of the largest logits the sampler keeps; 0 keeps all",
);
const TOP_P: ParamSpec = ParamSpec::number(
    "top_p",
    "p",
    1.0,
    Range { low: 0.0, low_inclusive: false, high: 1.0, high_inclusive: true, text: "in (0, 1]" },
    "share of the remaining probability that the sampler keeps",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "logits.truncated_logprob",
    family: Family::Logits,
    title: "renormalised top-k/top-p log-probability",
    summary: "The log-probability of the sampled token under the truncated, renormalised distribution that the sampler used.",
    formula: r"\log\tilde p(a) = z_a/\tau - \log\sum_{k\in S} e^{z_k/\tau},\quad S = \text{top-}p(\text{top-}k(z))",
    gradient: r"c\,(\mathbf 1[j = a] - \tilde p_j)/\tau\ \ (j \in S),\quad 0\ \text{outside}",
    notes: "The support is held fixed in the gradient. top-k comes first, top-p then acts on the renormalised rest (the order of \
            the transformers library's samplers); an entry is kept while the probability of the strictly larger ones is below \
            top_p, and ties with the last one kept stay in. An action outside the support has log-probability -inf and \
            gradient 0. verl and TRL train on the untruncated log-probability.",
    sources: &[
        Source {
            title: "The Curious Case of Neural Text Degeneration",
            reference: "arXiv:1904.09751",
            place: "Equations 2 and 3 (nucleus and renormalisation), section 3.2 (top-k)",
        },
        Source {
            title: "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
            reference: "arXiv:2512.02556",
            place: "scaling GRPO, keep sampling mask",
        },
    ],
    inputs: &[LOGITS, ACTION, COTANGENT, ROW_MASK],
    params: &[TOP_K, TOP_P, TEMPERATURE],
    defaults: &[],
    outputs: &[
        OutputSpec::value("log_prob", &["N"], "log-probability of each action in the truncated distribution (nats)"),
        D_LOGITS,
        OutputSpec::value("support_mass", &["N"], "probability of the support before renormalisation"),
        OutputSpec::value("in_support", &["N"], "1 where the action is in the support, 0 where it is not"),
    ],
    dialects: &[Dialect { name: "paper", note: "nucleus only", settings: &[("top_k", Value::Integer(0))] }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn kept<R: Real>(logits: &[R], top_k: usize, top_p: f64) -> Vec<usize> {
        let row = SoftmaxRow::new(logits, R::one()).unwrap();
        let support = Support::new(&row, top_k, R::from_f64(top_p));
        (0..logits.len()).filter(|index| support.keeps(logits[*index])).collect()
    }

    #[test]
    fn supports_by_hand() {
        // Probabilities 0.4, 0.3, 0.2, 0.1.
        let logits = [0.4f64, 0.1, 0.3, 0.2].map(Real::ln);
        assert_eq!(kept(&logits, 0, 1.0), [0, 1, 2, 3]);
        assert_eq!(kept(&logits, 2, 1.0), [0, 2]);
        assert_eq!(kept(&logits, 9, 1.0), [0, 1, 2, 3]);
        assert_eq!(kept(&logits, 0, 0.65), [0, 2]);
        assert_eq!(kept(&logits, 0, 0.75), [0, 2, 3]);
        assert_eq!(kept(&logits, 0, 1e-9), [0]);
        // Inside the top 2 (0.4/0.7 = 0.571…) half the probability is in the first alone.
        assert_eq!(kept(&logits, 2, 0.5), [0]);
        // Ties stay in, zeros of both signs are equal, excluded entries never count.
        assert_eq!(kept(&[1.0f32, 0.0, -0.0, -1.0], 2, 1.0), [0, 1, 2]);
        assert_eq!(kept(&[1.0f64, f64::NEG_INFINITY, -1000.0], 0, 1.0), [0, 2]);
    }

    proptest! {
        #[test]
        fn support_is_the_sorted_prefix_and_the_gradient_that_of_the_value(
            logits in prop::collection::vec(-3.0f64..3.0, 2..12), top_k in 0usize..12, top_p in 0.05f64..1.0
        ) {
            let row = SoftmaxRow::new(&logits, 1.0).unwrap();
            let mut order: Vec<usize> = (0..logits.len()).collect();
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
            order.truncate(if top_k == 0 { logits.len() } else { top_k });
            let probability = |index: usize| Real::exp(row.log_prob(logits[index]));
            let total: f64 = order.iter().map(|index| probability(*index)).sum();
            let mut above = 0.0;
            let mut expected = Vec::new();
            for index in order {
                // Within rounding of the boundary either side is right.
                prop_assume!((above - top_p * total).abs() > 1e-12);
                if above < top_p * total {
                    expected.push(index);
                }
                above += probability(index);
            }
            expected.sort_unstable();
            prop_assert_eq!(&kept(&logits, top_k, top_p), &expected);

            let support = Support::new(&row, top_k, top_p);
            let action = expected[0];
            let mut gradient = std::vec![0.0; logits.len()];
            write_truncated_gradient(&row, support, action, 1.0, &mut gradient);
            for index in 0..logits.len() {
                let at = |step: f64| {
                    let mut moved = logits.clone();
                    moved[index] += step;
                    let log_sum = crate::num::log_sum_exp(&expected.iter().map(|kept| moved[*kept]).collect::<Vec<_>>());
                    moved[action] - log_sum
                };
                prop_assert!((at(0.0) - truncated_logprob(&row, support, action)).abs() < 1e-14);
                prop_assert!(((at(1e-5) - at(-1e-5)) / 2e-5 - gradient[index]).abs() < 1e-9);
            }
            let mass: f64 = expected.iter().map(|index| probability(*index)).sum();
            prop_assert!((support_mass(&row, support) - mass).abs() < 1e-15);
        }
    }
}

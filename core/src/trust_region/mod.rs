//! Policy gradients, actor-critic methods and trust regions.
//!
//! The methods over a batch take N steps, one number each; a step under a zero mask is absent.

pub mod actor_critic;
pub mod conjugate_gradient;
pub mod fisher_vector_product;
pub mod line_search;
pub mod natural_gradient;
pub mod optimal_baseline;
pub mod reinforce;
pub mod score;
pub mod step_length;
mod steps;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    reinforce::SPECS,
    optimal_baseline::SPECS,
    actor_critic::SPECS,
    score::SPECS,
    fisher_vector_product::SPECS,
    conjugate_gradient::SPECS,
    step_length::SPECS,
    line_search::SPECS,
    natural_gradient::SPECS,
];

/// The parts together: a TRPO step on softmax policies whose surrogate and divergence are known exactly.
#[cfg(test)]
mod tests {
    use super::conjugate_gradient::{Buffers, conjugate_gradient};
    use super::fisher_vector_product::fisher_vector_product;
    use super::line_search::accepts;
    use super::step_length::step_length;
    use crate::num::{LogPartition, Real, dot};
    use proptest::prelude::*;

    const STATES: usize = 3;
    const ACTIONS: usize = 3;
    const SIZE: usize = STATES * ACTIONS;

    fn softmax(logits: &[f64; SIZE]) -> [f64; SIZE] {
        let mut policy = [0.0; SIZE];
        for (row, out) in logits.chunks(ACTIONS).zip(policy.chunks_mut(ACTIONS)) {
            let partition = LogPartition::new(row, 1.0).unwrap();
            for (logit, slot) in row.iter().zip(out) {
                *slot = Real::exp(partition.log_prob(*logit));
            }
        }
        policy
    }

    proptest! {
        #[test]
        fn a_step_improves_the_surrogate_and_stays_within_the_divergence(
            logits in prop::array::uniform9(-2.0f64..2.0),
            advantages in prop::array::uniform9(-3.0f64..3.0),
            max_kl in 1e-4f64..0.1,
        ) {
            let old = softmax(&logits);
            let count = STATES as f64;
            // Σ π A / S and its gradient, by enumeration.
            let surrogate = |policy: &[f64; SIZE]| dot(policy, &advantages) / count;
            let mut gradient = [0.0; SIZE];
            for state in 0..STATES {
                let row = state * ACTIONS..(state + 1) * ACTIONS;
                let mean = dot(&old[row.clone()], &advantages[row.clone()]);
                for slot in row {
                    gradient[slot] = old[slot] * (advantages[slot] - mean) / count;
                }
            }
            prop_assume!(dot(&gradient, &gradient).sqrt() > 1e-3);
            let fisher = |vector: &[f64], product: &mut [f64]| {
                product.copy_from_slice(&old);
                for (out, vector) in product.chunks_mut(ACTIONS).zip(vector.chunks(ACTIONS)) {
                    fisher_vector_product(out, vector);
                    out.iter_mut().zip(vector).for_each(|(slot, v)| *slot = *slot / count + 1e-3 * v);
                }
            };
            let mut parts = [[0.0; SIZE]; 4];
            let [solution, residual, direction, product] = &mut parts;
            let buffers = Buffers { solution, residual, direction, product };
            conjugate_gradient(fisher, &gradient, buffers, 1e-10, SIZE).unwrap();
            let (step, mut along) = (parts[0], [0.0; SIZE]);
            fisher(&step, &mut along);
            let length = step_length(max_kl, dot(&step, &along)).unwrap();
            let mut fraction = 1.0;
            let accepted = (0..20).any(|_| {
                let moved: [f64; SIZE] = std::array::from_fn(|slot| logits[slot] + fraction * length * step[slot]);
                let new = softmax(&moved);
                let divergence = (0..SIZE).map(|slot| old[slot] * Real::ln(old[slot] / new[slot])).sum::<f64>() / count;
                fraction *= 0.8;
                let improvement = surrogate(&new) - surrogate(&old);
                // The quadratic model is within a factor of the truth for steps this short.
                assert!(fraction < 0.8 || divergence < 4.0 * max_kl, "{divergence} {max_kl}");
                accepts(improvement, 0.0, divergence, max_kl)
            });
            prop_assert!(accepted);
        }
    }
}

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

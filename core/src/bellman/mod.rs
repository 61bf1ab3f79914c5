//! Bellman operators and dynamic programming on finite Markov decision processes, dense or sparse.
//!
//! [`mdp::Mdp`] is the checked view of the caller's tables that every method takes; results and workspace are the caller's.

mod best_actions;
pub mod contraction;
pub mod conversion;
pub mod evaluate_direct;
pub mod evaluate_iterative;
pub mod expectation;
pub mod mdp;
pub mod modified_policy_iteration;
pub mod occupancy;
pub mod optimality;
pub mod policy;
pub mod policy_gradient;
pub mod policy_iteration;
pub mod policy_model;
pub mod quantile;
pub mod soft;
pub mod sweep;
pub mod value_iteration;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    expectation::SPECS,
    optimality::SPECS,
    conversion::SPECS,
    policy::SPECS,
    policy_model::SPECS,
    evaluate_direct::SPECS,
    evaluate_iterative::SPECS,
    value_iteration::SPECS,
    policy_iteration::SPECS,
    modified_policy_iteration::SPECS,
    contraction::SPECS,
    occupancy::SPECS,
    policy_gradient::SPECS,
    soft::SPECS,
    quantile::SPECS,
];

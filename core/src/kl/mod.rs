//! KL estimators per token, from the log-probabilities of sampled tokens under two policies.

pub mod abs;
pub mod categorical;
pub mod controller;
pub mod estimator;
pub mod gaussian_fit;
pub mod importance_weighted;
pub mod k1;
pub mod k2;
pub mod k3;
pub mod reward_penalty;
pub mod straight_through;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    k1::SPECS,
    abs::SPECS,
    k2::SPECS,
    k3::SPECS,
    straight_through::SPECS,
    importance_weighted::SPECS,
    reward_penalty::SPECS,
    controller::SPECS,
    categorical::SPECS,
    gaussian_fit::SPECS,
];

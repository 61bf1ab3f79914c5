//! Losses of a state-value estimate against a return, and what is measured on it. Each gives a loss per token and its
//! plain mean over the unmasked tokens; other aggregations are composed in the objectives.

pub mod capped;
pub mod clipped;
pub mod explained_variance;
pub mod huber;
pub mod inputs;
pub mod mse;
pub mod popart;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] =
    &[mse::SPECS, clipped::SPECS, capped::SPECS, huber::SPECS, popart::SPECS, explained_variance::SPECS];

//! From per-token losses to one number: what the loss is divided by, and the weight that each token carries.

pub mod aggregate;
mod aggregation;
mod totals;

pub use aggregation::{Aggregation, EmptyRow, REDUCTION_PARAMS, Reduction};
pub use totals::Totals;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[aggregate::SPECS];

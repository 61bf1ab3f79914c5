//! KL estimators per token, from the log-probabilities of sampled tokens under two policies.

pub mod k1;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[k1::SPECS];

//! Whole losses of a trainer: compositions of the rooms below.

pub mod named;
pub mod policy;
pub mod ppo_rlhf;
pub mod sft;
pub mod value_loss;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[named::SPECS, value_loss::SPECS, ppo_rlhf::SPECS, sft::SPECS];

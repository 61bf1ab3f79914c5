//! Rewards and their shaping: where a score stands, what length costs, which prompts are kept, and on which scale.

pub mod assemble;
pub mod dynamic_sampling;
pub mod overlong;
pub mod pass_at_k;
pub mod standardise;

pub use assemble::assemble;
pub use dynamic_sampling::{KeepCriterion, dynamic_sampling};
pub use overlong::{Overlong, overlong};
pub use pass_at_k::pass_at_k;
pub use standardise::{Running, calibrate};

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] =
    &[assemble::SPECS, overlong::SPECS, dynamic_sampling::SPECS, standardise::SPECS, pass_at_k::SPECS];

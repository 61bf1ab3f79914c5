//! Whole losses of a trainer: compositions of the rooms below.

pub mod named;
pub mod policy;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[named::SPECS];

//! Views of the caller's slices: a batch of responses padded to one width, its mask, and the groups its rows belong to.

mod groups;
mod tokens;

pub use groups::Groups;
pub use tokens::{Mask, TokenShape, row_of, set};
pub(crate) use tokens::{count_nonzero, cut};

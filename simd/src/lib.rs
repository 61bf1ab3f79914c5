//! Core's passes over many numbers by the vector instructions that the processor has.
//!
//! No formula lives here. Core is compiled for the least processor of its target; here its stages are compiled again, inside
//! functions for wider vectors, and a [`Level`] that the processor has is chosen at run time. Each operation on numbers is
//! the one that core names: a vector only does several of them at once, and none are contracted, so every level has core's
//! bits.

mod engines;
mod evaluate;
mod level;
mod logits;
mod slices;

pub use evaluate::evaluate;
pub use level::{Level, Task};
pub use logits::token_logits;
pub use slices::{exp, ln};

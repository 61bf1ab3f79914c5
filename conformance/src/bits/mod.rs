//! Bits as a contract: the results of every operation on fixed cases, hashed, and compared with the committed table.
//!
//! The [`cases`] are the inputs of all golden cases and a seeded set; each is computed in single and in double precision, with
//! all values, gradients and metrics. A [`Row`] of the [`Table`] holds the hashes of one operation on one of the two sets.
//! Any [`Backend`] can be [`run`]. A target that cannot be called from here reads the cases from a [`pack`] and prints
//! lines that are [compared](Table::compare_lines).

mod cases;
pub mod pack;
mod run;
mod seeded;
mod table;

pub use cases::{Case, Group, Set, cases};
pub use run::{Outcome, run};
pub use table::{Difference, Lines, Row, Table};

#[cfg(doc)]
use crate::backend::Backend;

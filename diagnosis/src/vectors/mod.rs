//! The inputs that implementations are checked on: small, chosen so that variants differ on them, and seeded random
//! ones. They are made from an operation's description alone, so every operation of the catalog can be checked.

mod case;
mod generate;
mod random;
mod telling;

pub use case::{Case, Junk, Purpose, Relation, as_given, resolve};
pub(crate) use generate::cases_of_seed;
pub use generate::{Taken, cases_for, retain};
pub use random::Random;

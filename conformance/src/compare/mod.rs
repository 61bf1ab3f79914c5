//! Compare arrays: in bits, in units of the last place, relative to what is expected, against a bound that follows
//! from the precision.

mod bound;
mod distance;
mod tensors;

pub use bound::{Bound, Tier};
pub use distance::{relative_error, ulp_distance};
pub use tensors::{Agreement, Difference, compare};

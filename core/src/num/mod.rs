//! Numbers whose bits are the same on every target: the number trait, one exponential and one logarithm,
//! stable special functions, and sums whose order is fixed by index.
//!
//! Three rules make the bits portable. No operation is contracted (`a * b + c` is two roundings). No function of
//! the platform's mathematical library is called. Every sum has one order: inside a row a tree fixed by position
//! ([`tree_sum`]), across rows an exact accumulator that does not depend on order at all ([`ExactSum`]).

mod exact_sum;
mod exp;
mod exp_remainder;
mod kl_div;
mod linear;
mod ln;
mod log_partition;
mod penalty;
mod real;
mod special;
mod tree_sum;

pub use exact_sum::ExactSum;
pub use exp_remainder::exp_remainders;
pub use kl_div::kl_div;
pub use linear::{dot, solve_linear};
pub use log_partition::{LogPartition, log_sum_exp};
pub use penalty::{half_square, huber};
pub use real::{Dtype, Real};
pub use special::{log_add_exp, log1mexp, logit, logsigmoid, sigmoid, softplus, xlogy};
pub use tree_sum::{BLOCK, RowSum, halving_fold, halving_sum, tree_sum, tree_sum_by, tree_sum_map, tree_sum_zip};

//! Plumbline on many cores.
//!
//! No formula lives here: each function calls the core's, state by state, and only decides which thread does which part.
//! Parts are fixed ranges of rows and what crosses them (exact sums, maxima, counts) is free of order, so the results have
//! the bits of the core's own functions for every number of threads.
//!
//! - `sweep` (feature `rayon`): value iteration and policy evaluation over processes of millions of states.
//! - `threads` (feature `rayon`): an engine for core's passes over rows (policy objectives, logits).
//! - `direct` (feature `nalgebra`): a policy's value by a linear-algebra library's factorisation.
//!
//! Losses over several machines need no function of their own: a shard's sums merge. The example `full_batch_loss` computes one by map and reduce.

#[cfg(feature = "nalgebra")]
pub mod direct;
#[cfg(feature = "rayon")]
pub mod sweep;
#[cfg(feature = "rayon")]
pub mod threads;

/// The code of the page is compiled and run with the documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/src/data-parallel.md")]
    struct DataParallel;
}

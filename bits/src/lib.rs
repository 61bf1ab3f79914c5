//! What "the same bits on every target" is measured with.
//!
//! [`Digest`] is the hash over the results of an operation: SHA-256 over a plain sequence of bytes, so that any other
//! program can compute it as well. [`pack`] holds cases (operation, parameters, inputs) in one block of bytes for targets
//! that have neither files nor an allocator, and [`run`] evaluates such a case with core in memory of the caller. The crate
//! is `no_std`, allocates nothing and does not panic.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod digest;
pub mod pack;
pub mod run;

pub use digest::{Digest, Hash};

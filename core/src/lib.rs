//! Reinforcement-learning losses, Bellman operators and estimators: value and analytic gradient, once, with the same
//! bits everywhere.
//!
//! The crate is `no_std`, allocates nothing, contains no unsafe code and does not panic: bad input is an [`Error`] that
//! names the argument. Every formula is a generic function over [`num::Real`] (`f32` or `f64`) in a file of its own;
//! [`catalog`] describes all of them as data and evaluates them by name.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod advantage;
pub mod batch;
pub mod bellman;
pub mod catalog;
pub mod engine;
pub mod error;
pub mod kl;
pub mod logits;
pub mod num;
pub mod objective;
pub mod preference;
pub mod ratio;
pub mod reduce;
pub mod reward;
pub mod spec;
pub mod surrogate;
pub mod td;
pub mod trust_region;
pub mod value;

pub use error::Error;

/// The code in the README and in the book is compiled and run with the documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/src/architecture.md")]
    struct Architecture;
}

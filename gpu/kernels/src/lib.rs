//! Kernels: indexing, loads, shuffles and the canonical tree of a row around the functions of `plumbline-core`. No formula
//! stands here.
//!
//! A kernel is a plain struct of arguments ([`Kernel`]) whose `run` describes what one *warp*, 32 threads side by side, does.
//! Compiled for nvptx64 a warp's value is the number that each thread holds; compiled for the host it is 32 numbers, and
//! the same source is run warp after warp. No kernel has barriers or shared memory: what threads exchange, they exchange
//! inside a warp.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, link_llvm_intrinsics, stdarch_nvptx))]
// Shuffles that the compiler keeps together are its own intrinsics.
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

pub mod bellman;
#[cfg(target_arch = "nvptx64")]
mod device;
pub mod elementwise;
pub mod fault;
pub mod formulas;
pub mod memory;
pub mod policy;
pub mod scan;
pub mod tile;
pub mod warp;

use warp::Warp;

/// A kernel with its arguments, as they are handed over by value.
pub trait Kernel: Copy {
    /// The name of its entry without the number type, with dots where the entry has underscores.
    const NAME: &'static str;
    /// The number type at the end of its entry's name.
    const SUFFIX: &'static str;
    /// What each warp of the grid does.
    fn run<W: Warp>(&self, warp: &W);
}

//! Executes PTX text on the host, under the rules of IEEE 754: what the committed kernels say, instruction by instruction.
//!
//! It knows the instructions that the kernels use and refuses every other one, fused multiply-add among them. The 32 threads of
//! a warp run one after the other between shuffles, where they meet; a thread that does not come is an error. Global
//! memory is checked: an access outside of an allocation, or one that is not aligned, is an error. It is no
//! evidence about hardware: neither its timing, nor its caches, nor an error of ptxas shows here, and the sign and payload of
//! a NaN are the host's.

mod device;
mod instruction;
mod memory;
mod operand;
mod parse;
mod run;

pub use device::{Interpreted, Traffic};
pub use parse::{Entry, Module};

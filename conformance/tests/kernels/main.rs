//! The kernels give core's bits on every golden case that they have a kernel for: their source on emulated grids, and
//! the committed PTX in an interpreter.

mod coverage;
mod emulated;
mod interpreted;
mod same_bits;

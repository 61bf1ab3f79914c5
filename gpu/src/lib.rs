//! Plumbline's batch operations on a device: buffers, launches and results around the kernels of
//! `plumbline-gpu-kernels`.
//!
//! A [`Device`] is a memory and something that runs kernels over a grid. [`Emulated`] is one on the host; every kernel gives
//! the bits of `plumbline-core` there. With the feature `cuda` there is `Cuda`, not yet run on hardware. [`evaluate`] runs an operation of the catalog; [`policy`] and its siblings are the
//! typed interface for arrays that already lie in the device's memory.

pub mod array;
pub mod bellman;
#[cfg(feature = "cuda")]
mod cuda;
pub mod device;
pub mod elementwise;
mod emulated;
mod error;
pub mod evaluate;
pub mod kl;
pub mod policy;
pub mod scan;

pub use array::Array;
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
pub use device::{Device, Grid};
pub use emulated::{Emulated, Order};
pub use error::Error;

//! What runs kernels.

use plumbline_gpu_kernels::Kernel;

use crate::Error;

/// The shape of a launch: blocks of whole warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: usize,
    /// Warps of a block.
    pub warps: usize,
}

impl Grid {
    /// One warp.
    pub const ONE: Grid = Grid { blocks: 1, warps: 1 };
}

/// The name of a kernel's entry.
pub fn entry_name<K: Kernel>() -> String {
    format!("{}_{}", K::NAME.replace('.', "_"), K::SUFFIX)
}

/// A memory and something that runs kernels in it, in the order of their launches.
pub trait Device {
    /// A piece of its memory, aligned to 16 bytes, given back when dropped.
    type Memory: std::fmt::Debug;

    /// A piece of that many bytes, its content unspecified.
    fn allocate(&self, bytes: usize) -> Result<Self::Memory, Error>;
    /// Where a piece starts, in the device's addresses.
    fn address(&self, memory: &Self::Memory) -> *mut u8;
    /// Copy from the host to the start of a piece.
    fn write(&self, memory: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error>;
    /// Copy from the start of a piece to the host, after all kernels before.
    fn read(&self, memory: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error>;
    /// A grid with at least `warps` warps where the device runs that many, and otherwise as many as it runs at a time.
    fn grid(&self, warps: usize) -> Grid;
    /// Launch a kernel.
    ///
    /// # Safety
    /// The kernel's arrays lie in this device's memory and are what their constructors ask for until the kernel has run.
    #[allow(unsafe_code, reason = "a launch trusts the addresses that it is given")]
    unsafe fn launch<K: Kernel>(&self, grid: Grid, kernel: &K) -> Result<(), Error>;
}

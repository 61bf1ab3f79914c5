//! A grid on the host: the kernels' own source, warp after warp.
#![allow(unsafe_code)]

use plumbline_gpu_kernels::Kernel;
use plumbline_gpu_kernels::warp::EmulatedWarp;

use crate::{Device, Error, Grid};

/// The order in which warps of an emulated grid run: no result may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
}

/// An emulated device with a given grid.
#[derive(Clone, Copy, Debug)]
pub struct Emulated {
    /// The grid of every launch that does not fix one itself.
    pub grid: Grid,
    /// The order of its warps.
    pub order: Order,
}

impl Default for Emulated {
    fn default() -> Self {
        Emulated { grid: Grid { blocks: 4, warps: 4 }, order: Order::Forward }
    }
}

impl Device for Emulated {
    // Elements of 16 bytes for the alignment.
    type Memory = Box<[u128]>;

    fn allocate(&self, bytes: usize) -> Result<Self::Memory, Error> {
        // Not zero: what a kernel does not write must not look as if it had.
        Ok(vec![u128::MAX; bytes.div_ceil(16)].into_boxed_slice())
    }

    fn address(&self, memory: &Self::Memory) -> *mut u8 {
        memory.as_ptr().cast_mut().cast()
    }

    fn write(&self, memory: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error> {
        assert!(bytes.len() <= memory.len() * 16);
        // SAFETY: the piece holds at least as many bytes, and `&mut` says that no one else uses it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.as_mut_ptr().cast(), bytes.len()) };
        Ok(())
    }

    fn read(&self, memory: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        assert!(bytes.len() <= memory.len() * 16);
        // SAFETY: the piece holds at least as many bytes, all of them initialised, and no kernel runs now.
        unsafe { std::ptr::copy_nonoverlapping(memory.as_ptr().cast(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn grid(&self, _warps: usize) -> Grid {
        self.grid
    }

    unsafe fn launch<K: Kernel>(&self, grid: Grid, kernel: &K) -> Result<(), Error> {
        let count = grid.blocks * grid.warps;
        let run = |index| kernel.run(&EmulatedWarp { index, count });
        match self.order {
            Order::Forward => (0..count).for_each(run),
            Order::Backward => (0..count).rev().for_each(run),
        }
        Ok(())
    }
}

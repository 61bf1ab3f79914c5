//! The interpreter as a device.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plumbline_gpu::device::entry_name;
use plumbline_gpu::{Device, Error, Grid};
use plumbline_gpu_kernels::Kernel;

use crate::memory::{Memory, Piece};
use crate::parse::Module;
use crate::run::{Counts, Place, warp};

/// What a launch did to memory.
pub type Traffic = Counts;

/// A device that executes PTX.
#[derive(Debug)]
pub struct Interpreted {
    module: Module,
    memory: Rc<RefCell<Memory>>,
    grid: Grid,
    traffic: Cell<Traffic>,
}

impl Interpreted {
    /// A device for a module's kernels, with the grid of every launch that does not fix one itself.
    pub fn new(text: &str, grid: Grid) -> Result<Self, String> {
        let mut module = Module::parse(text)?;
        let memory = Rc::new(RefCell::new(std::mem::take(&mut module.memory)));
        Ok(Interpreted { module, memory, grid, traffic: Cell::default() })
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What all launches since the last call did to memory.
    pub fn traffic(&self) -> Traffic {
        self.traffic.take()
    }
}

/// A kernel's arguments as bytes.
#[allow(unsafe_code)]
fn bytes_of<K: Kernel>(kernel: &K) -> Vec<u8> {
    let mut bytes = vec![0u8; size_of::<K>()];
    // SAFETY: as many bytes as the arguments have; copied without looking at them, so that padding does no harm.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(kernel).cast::<u8>(), bytes.as_mut_ptr(), bytes.len()) };
    bytes
}

impl Device for Interpreted {
    type Memory = Piece;

    fn allocate(&self, bytes: usize) -> Result<Piece, Error> {
        // Not zero: what a kernel does not write must not look as if it had.
        let address = self.memory.borrow_mut().add(vec![0xff; bytes]);
        Ok(Piece { address, memory: Rc::clone(&self.memory) })
    }

    fn address(&self, memory: &Piece) -> *mut u8 {
        std::ptr::without_provenance_mut(memory.address as usize)
    }

    fn write(&self, memory: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        memory.with(|content| content[..bytes.len()].copy_from_slice(bytes));
        Ok(())
    }

    fn read(&self, memory: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        memory.with(|content| bytes.copy_from_slice(&content[..bytes.len()]));
        Ok(())
    }

    fn grid(&self, _warps: usize) -> Grid {
        self.grid
    }

    #[allow(unsafe_code)]
    unsafe fn launch<K: Kernel>(&self, grid: Grid, kernel: &K) -> Result<(), Error> {
        let name = entry_name::<K>();
        let entry = self.module.entry(&name).ok_or_else(|| Error::CodeRejected(format!("no entry {name}")))?;
        let parameters = bytes_of(kernel);
        let (mut memory, mut traffic) = (self.memory.borrow_mut(), self.traffic.get());
        for block in 0..grid.blocks as u64 {
            for first in (0..grid.warps as u64 * 32).step_by(32) {
                let place = Place { thread: first, threads: grid.warps as u64 * 32, block, blocks: grid.blocks as u64 };
                warp(entry, &parameters, &mut memory, place, &mut traffic).map_err(Error::Driver)?;
            }
        }
        self.traffic.set(traffic);
        Ok(())
    }
}

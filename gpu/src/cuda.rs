//! A CUDA device, through the crate `cust`.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;

use cust::context::{Context, CurrentContext};
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::memory::DeviceBuffer;
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::sys::{CUresult, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};
use plumbline_gpu_kernels::Kernel;
use plumbline_gpu_kernels::warp::LANES;

use crate::device::entry_name;
use crate::{Device, Error, Grid};

/// The kernels, as they are committed.
const PTX: &str = include_str!("../ptx/plumbline.ptx");
/// Warps of a block: the kernels' warps have nothing to do with each other, so few are enough.
const WARPS: usize = 4;
/// Blocks for each multiprocessor: enough that loads wait for each other.
const BLOCKS: usize = 16;

/// The first CUDA device of this machine, with one stream: copies and kernels follow each other in it, and only reading
/// waits.
pub struct Cuda {
    // Dropped from the first to the last: the context outlives what lies in it.
    stream: Stream,
    module: Module,
    multiprocessors: usize,
    name: String,
    _context: Context,
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A piece of the device's memory.
#[derive(Debug)]
pub struct Piece {
    buffer: DeviceBuffer<u8>,
}

// Debug, because an error's Display asks the driver, which may be what fails.
fn told(error: CudaError) -> Error {
    match error {
        CudaError::NoDevice => Error::NoDevice,
        CudaError::InvalidPtx | CudaError::InvalidImage | CudaError::NoBinaryForGpu => {
            Error::CodeRejected(format!("{error:?}"))
        }
        _ => Error::Driver(format!("{error:?}")),
    }
}

fn done(result: CUresult, what: &str) -> Result<(), Error> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Driver(format!("{what}: {result:?}"))) }
}

impl Cuda {
    /// Open the first device and hand it the kernels.
    pub fn open() -> Result<Self, Error> {
        if !plumbline_gpu_driver::present() {
            return Err(Error::NoDriver);
        }
        let context = cust::quick_init().map_err(told)?;
        let device = CurrentContext::get_device().map_err(told)?;
        let multiprocessors = device.get_attribute(DeviceAttribute::MultiprocessorCount).map_err(told)?;
        Ok(Cuda {
            // A stream that waits for the default one: memory that is given back waits for it too.
            stream: Stream::new(StreamFlags::DEFAULT, None).map_err(told)?,
            module: Module::from_ptx(PTX, &[]).map_err(|error| Error::CodeRejected(format!("{error:?}")))?,
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1),
            name: device.name().map_err(told)?,
            _context: context,
        })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Device for Cuda {
    type Memory = Piece;

    fn allocate(&self, bytes: usize) -> Result<Piece, Error> {
        // SAFETY: the bytes are not read before a copy or a kernel has written them: arrays say so of themselves.
        let buffer = unsafe { DeviceBuffer::uninitialized(bytes) };
        let buffer = buffer.map_err(|error| match error {
            CudaError::OutOfMemory => Error::OutOfMemory(bytes),
            error => told(error),
        })?;
        Ok(Piece { buffer })
    }

    fn address(&self, memory: &Piece) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(memory.buffer.as_device_ptr().as_raw() as usize)
    }

    fn write(&self, memory: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        assert!(bytes.len() <= memory.buffer.len());
        let to = memory.buffer.as_device_ptr().as_raw();
        // SAFETY: the piece holds at least as many bytes, and the driver has copied the host's before it returns.
        let result = unsafe { cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), self.stream.as_inner()) };
        done(result, "copy to the device")
    }

    fn read(&self, memory: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        assert!(bytes.len() <= memory.buffer.len());
        let from = memory.buffer.as_device_ptr().as_raw();
        // SAFETY: the piece holds at least as many bytes; the host's are not touched before the stream has been waited for.
        let result =
            unsafe { cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), from, bytes.len(), self.stream.as_inner()) };
        let copied = done(result, "copy to the host");
        self.stream.synchronize().map_err(told)?;
        copied
    }

    fn grid(&self, warps: usize) -> Grid {
        Grid { blocks: warps.div_ceil(WARPS).clamp(1, self.multiprocessors * BLOCKS), warps: WARPS }
    }

    unsafe fn launch<K: Kernel>(&self, grid: Grid, kernel: &K) -> Result<(), Error> {
        let name = entry_name::<K>();
        let function =
            self.module.get_function(&name).map_err(|error| Error::CodeRejected(format!("{name}: {error:?}")))?;
        let arguments = [std::ptr::from_ref(kernel).cast::<c_void>().cast_mut()];
        let (blocks, threads) = (grid.blocks as u32, (grid.warps * LANES) as u32);
        // SAFETY: the entry of that name takes this type by value, which the driver copies before it returns; that its arrays are
        // what they should be is the caller's promise.
        unsafe { self.stream.launch(&function, blocks, threads, 0, &arguments) }.map_err(told)
    }
}

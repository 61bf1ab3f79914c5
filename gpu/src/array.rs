//! Arrays in a device's memory.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use plumbline_gpu_kernels::memory::{Reader, Writer};

use crate::{Device, Error};

mod sealed {
    pub trait Sealed {}
}

/// A number that may lie in a device's memory: any bits are a value.
pub trait Plain: Copy + sealed::Sealed {}

macro_rules! plain {
    ($($type:ty),+) => { $(impl sealed::Sealed for $type {} impl Plain for $type {})+ };
}
plain!(f32, f64, u8, u16, u32, u64);

/// An array in a device's memory.
#[derive(Debug)]
pub struct Array<D: Device, T> {
    memory: Option<D::Memory>,
    length: usize,
    elements: PhantomData<T>,
}

impl<D: Device, T: Plain> Array<D, T> {
    /// An array of that length, its content unspecified.
    pub fn new(device: &D, length: usize) -> Result<Self, Error> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory(usize::MAX))?;
        let memory = if length == 0 { None } else { Some(device.allocate(bytes)?) };
        Ok(Array { memory, length, elements: PhantomData })
    }

    /// An array without elements.
    pub fn none() -> Self {
        Array { memory: None, length: 0, elements: PhantomData }
    }

    /// A copy of the host's elements.
    pub fn from_host(device: &D, elements: &[T]) -> Result<Self, Error> {
        let mut array = Self::new(device, elements.len())?;
        array.write(device, elements)?;
        Ok(array)
    }

    /// Overwrite the first elements with the host's.
    pub fn write(&mut self, device: &D, elements: &[T]) -> Result<(), Error> {
        let Some(memory) = self.memory.as_mut() else { return Ok(()) };
        assert!(elements.len() <= self.length, "an array of {} holds no {} elements", self.length, elements.len());
        // SAFETY: the elements are plain numbers.
        let bytes = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) };
        device.write(memory, bytes)
    }

    /// Copy the first elements to the host, after all kernels before.
    pub fn read(&self, device: &D, elements: &mut [T]) -> Result<(), Error> {
        let Some(memory) = self.memory.as_ref() else { return Ok(()) };
        assert!(elements.len() <= self.length, "an array of {} holds no {} elements", self.length, elements.len());
        // SAFETY: the elements are plain numbers, for which any bytes are values.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast::<u8>(), size_of_val(elements)) };
        device.read(memory, bytes)
    }

    /// How many elements there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// For a kernel that reads it.
    pub fn reader(&self, device: &D) -> Reader<T> {
        match &self.memory {
            // SAFETY: the piece holds as many elements. That it lives, and is initialised, until the kernel has run is asked
            // of the launch.
            Some(memory) => unsafe { Reader::new(device.address(memory).cast(), self.length) },
            None => Reader::NONE,
        }
    }

    /// For a kernel that writes it.
    pub fn writer(&mut self, device: &D) -> Writer<T> {
        match &self.memory {
            // SAFETY: as in `reader`; `&mut` says that no one else uses it.
            Some(memory) => unsafe { Writer::new(device.address(memory).cast(), self.length) },
            None => Writer::NONE,
        }
    }
}

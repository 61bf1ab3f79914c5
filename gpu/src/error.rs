//! What can go wrong between host and device.

use std::fmt;

/// Why a device gave no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The operation has no kernel, or not with these parameters; says which.
    NoKernel(String),
    /// No driver is installed.
    NoDriver,
    /// A driver, but no device.
    NoDevice,
    /// The device's memory is full; how many bytes were asked for.
    OutOfMemory(usize),
    /// The driver does not take the kernels' code; its words.
    CodeRejected(String),
    /// The driver reports a failure; its words.
    Driver(String),
    /// Core's own judgement of the input.
    Core(plumbline_core::Error),
}

impl From<plumbline_core::Error> for Error {
    fn from(error: plumbline_core::Error) -> Self {
        Error::Core(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoKernel(what) => write!(f, "no kernel: {what}"),
            Error::NoDriver => f.write_str("no CUDA driver is installed"),
            Error::NoDevice => f.write_str("the CUDA driver finds no device"),
            Error::OutOfMemory(bytes) => write!(f, "the device has no room for {bytes} bytes"),
            Error::CodeRejected(words) => write!(f, "the CUDA driver does not take the kernels: {words}"),
            Error::Driver(words) => write!(f, "the CUDA driver reports: {words}"),
            Error::Core(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

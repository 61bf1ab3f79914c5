//! Returns of trajectories in the device's memory.
#![allow(unsafe_code)]

use plumbline_core::Error as CoreError;
use plumbline_core::advantage::row_scan::RowScan;
use plumbline_gpu_kernels::memory::{Number, Reader};
use plumbline_gpu_kernels::scan::{Scan, Steps};
use plumbline_gpu_kernels::warp::LANES;

use crate::array::Plain;
use crate::{Array, Device, Error};

/// Steps in the device's memory, \[B, T\], as [`plumbline_core::advantage::Trajectories`] has them. What a return has no use
/// for is left out.
#[derive(Debug)]
pub struct StepArrays<'a, D: Device, R> {
    /// Rewards.
    pub reward: &'a Array<D, R>,
    /// Values of the states, or of the actions taken.
    pub value: Option<&'a Array<D, R>>,
    /// The value of the state that each step reaches.
    pub next_value: Option<&'a Array<D, R>>,
    /// The value behind each row, \[B\].
    pub bootstrap_value: Option<&'a Array<D, R>>,
    /// The discount factor of each step.
    pub discount: Option<&'a Array<D, R>>,
    /// log π.
    pub log_prob: Option<&'a Array<D, R>>,
    /// log μ.
    pub old_log_prob: Option<&'a Array<D, R>>,
    /// Which steps are there.
    pub mask: Option<&'a Array<D, u8>>,
    /// Where episodes end by themselves.
    pub terminated: Option<&'a Array<D, u8>>,
    /// Where they are cut.
    pub truncated: Option<&'a Array<D, u8>>,
    /// Where the action is the greedy one.
    pub greedy: Option<&'a Array<D, u8>>,
    /// B and T.
    pub shape: [usize; 2],
    /// The discount factor where there is none for each step.
    pub gamma: R,
}

fn checked<D: Device, T: Plain>(
    argument: &'static str,
    array: Option<&Array<D, T>>,
    expected: usize,
    device: &D,
) -> Result<Reader<T>, Error> {
    match array {
        Some(array) if array.length() != expected => {
            Err(CoreError::LengthMismatch { argument, expected, got: array.length() }.into())
        }
        Some(array) => Ok(array.reader(device)),
        None => Ok(Reader::NONE),
    }
}

/// One of core's returns over a batch, a thread a row; +0 for absent steps. That the numbers are what core asks for is the
/// caller's to know.
pub fn scan_rows<D: Device, R: Number + Plain, S: RowScan<R, O>, const O: usize>(
    device: &D,
    scan: S,
    arrays: &StepArrays<'_, D, R>,
    outputs: [&mut Array<D, R>; O],
) -> Result<(), Error> {
    let [rows, columns] = arrays.shape;
    let slots = rows.saturating_mul(columns);
    for (argument, output) in S::OUTPUTS.iter().zip(&outputs) {
        if output.length() != slots {
            return Err(CoreError::LengthMismatch { argument, expected: slots, got: output.length() }.into());
        }
    }
    if S::VALUE.is_some() && arrays.value.is_none() {
        return Err(CoreError::MissingInput { argument: "value" }.into());
    }
    let steps = Steps {
        reward: checked("reward", Some(arrays.reward), slots, device)?,
        value: checked("value", arrays.value, slots, device)?,
        next_value: checked("next_value", arrays.next_value, slots, device)?,
        bootstrap_value: checked("bootstrap_value", arrays.bootstrap_value, rows, device)?,
        discount: checked("discount", arrays.discount, slots, device)?,
        log_prob: checked("log_prob", arrays.log_prob, slots, device)?,
        old_log_prob: checked("old_log_prob", arrays.old_log_prob, slots, device)?,
        mask: checked("mask", arrays.mask, slots, device)?,
        terminated: checked("terminated", arrays.terminated, slots, device)?,
        truncated: checked("truncated", arrays.truncated, slots, device)?,
        greedy: checked("greedy", arrays.greedy, slots, device)?,
        rows,
        columns,
        gamma: arrays.gamma,
    };
    let kernel = Scan { scan, steps, outputs: outputs.map(|output| output.writer(device)) };
    // SAFETY: the arrays are the device's own, of the lengths that were looked at, and those that are written are borrowed by
    // no one else.
    unsafe { device.launch(device.grid(rows.div_ceil(LANES)), &kernel) }
}

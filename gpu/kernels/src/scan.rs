//! Returns, a thread a row. A thread walks its row from the last step to the first, as core does: the order of the roundings is
//! the row's own, which a scan in parallel inside the row would change.
#![allow(unsafe_code)]

use plumbline_core::advantage::row_scan::{RowScan, ScanSteps};
use plumbline_core::advantage::{Discount, Trajectories};
use plumbline_core::batch::{Mask, TokenShape};

use crate::Kernel;
use crate::memory::{Number, Reader, Writer};
use crate::tile::each_thread;
use crate::warp::Warp;

/// Steps in the device's memory, [B, T], and the value behind each row, \[B\]. What is not given has no elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Steps<R> {
    /// Rewards.
    pub reward: Reader<R>,
    /// Values of states, or of actions.
    pub value: Reader<R>,
    /// The value of the state that each step reaches.
    pub next_value: Reader<R>,
    /// The value behind each row.
    pub bootstrap_value: Reader<R>,
    /// The discount factor of each step.
    pub discount: Reader<R>,
    /// log π.
    pub log_prob: Reader<R>,
    /// log μ.
    pub old_log_prob: Reader<R>,
    /// Which steps are there.
    pub mask: Reader<u8>,
    /// Where episodes end by themselves.
    pub terminated: Reader<u8>,
    /// Where they are cut.
    pub truncated: Reader<u8>,
    /// Where the action is the greedy one.
    pub greedy: Reader<u8>,
    /// B.
    pub rows: usize,
    /// T.
    pub columns: usize,
    /// The discount factor where there is none for each step.
    pub gamma: R,
}

#[inline(always)]
fn given<T: Copy>(reader: &Reader<T>) -> Option<&[T]> {
    reader.given().then(|| reader.slice())
}

impl<R: Number> Steps<R> {
    #[inline(always)]
    fn as_core(&self) -> Option<ScanSteps<'_, R>> {
        let shape = TokenShape { rows: self.rows, columns: self.columns };
        let trajectories = Trajectories {
            mask: Mask::new(shape, given(&self.mask)).ok()?,
            reward: self.reward.slice(),
            discount: given(&self.discount).map_or(Discount::Constant(self.gamma), Discount::PerStep),
            terminated: given(&self.terminated),
            truncated: given(&self.truncated),
            next_value: given(&self.next_value),
            bootstrap_value: given(&self.bootstrap_value),
        };
        Some(ScanSteps {
            trajectories,
            value: self.value.slice(),
            log_prob: given(&self.log_prob),
            old_log_prob: given(&self.old_log_prob),
            greedy: given(&self.greedy),
        })
    }
}

/// One of core's returns over a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Scan<R, S, const O: usize> {
    /// The return with its settings.
    pub scan: S,
    /// What it reads.
    pub steps: Steps<R>,
    /// Where the results go, [B, T] each.
    pub outputs: [Writer<R>; O],
}

impl<R: Number, S: RowScan<R, O>, const O: usize> Kernel for Scan<R, S, O> {
    const NAME: &'static str = S::NAME;
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let Some(steps) = self.steps.as_core() else { return };
        each_thread(warp, self.steps.rows, |row| {
            let first = row * self.steps.columns;
            // SAFETY: the part of a row, which no other thread is given.
            let outputs =
                core::array::from_fn(|output| unsafe { self.outputs[output].slice(first, self.steps.columns) });
            self.scan.row(&steps, row, outputs);
        });
    }
}

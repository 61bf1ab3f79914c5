//! From rows to the loss: exact sums, in parts that merge, and what core makes of them.
#![allow(unsafe_code)]

use plumbline_core::num::ExactSum;
use plumbline_core::objective::policy::PolicyPartial;
use plumbline_core::objective::policy::token::PolicyCounts;

use super::rows::totals;
use super::{Batch, Settings, TILE_COUNTS, Workspace};
use crate::Kernel;
use crate::memory::{Number, Writer};
use crate::warp::{LANES, Warp};

/// Parts that each exact sum is added up in: the threads of a warp.
pub const ADDERS: usize = LANES;
/// Room for one exact sum, in bytes: core's is a little over half of it.
pub const EXACT_SUM_BYTES: usize = 1024;
const WORDS: usize = EXACT_SUM_BYTES / size_of::<u64>();
const _: () = assert!(size_of::<ExactSum>() <= EXACT_SUM_BYTES && align_of::<ExactSum>() <= align_of::<u64>());
/// Numbers of the result: loss, policy, KL and entropy loss; clip fractions (any, high, low, dual), approximate KL k1 and
/// k3; mean, smallest and largest ratio.
pub const METRICS: usize = 13;

/// Exact sums of the rows' terms, each in [`ADDERS`] parts: warp k adds up sum k.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Add<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The terms, and where the parts go.
    pub workspace: Workspace<R>,
}

/// Where a part of an exact sum stands.
#[inline(always)]
fn part(exact: &Writer<u64>, sum: usize, adder: usize) -> Option<*mut ExactSum> {
    exact.part((sum * ADDERS + adder) * WORDS, WORDS).map(<*mut u64>::cast)
}

impl<R: Number> Kernel for Add<R> {
    const NAME: &'static str = "policy_add";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (rows, workspace) = (self.batch.rows, &self.workspace);
        let mut place = warp.index();
        while place < 6 {
            warp.each(|lane| {
                let mut sum = ExactSum::new();
                let mut row = lane;
                while row < rows {
                    sum.add(workspace.row_term.written(place * rows + row).unwrap_or(R::zero()));
                    row += ADDERS;
                }
                if let Some(pointer) = part(&workspace.exact, place, lane) {
                    // SAFETY: room for an exact sum that this thread alone uses.
                    unsafe { pointer.write(sum) };
                }
            });
            place += warp.count();
        }
    }
}

/// The loss and the metrics. One warp: a thread merges the parts of a sum, the first thread finishes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Finish<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// The parts.
    pub workspace: Workspace<R>,
    /// The result, [METRICS].
    pub result: Writer<R>,
}

impl<R: Number> Kernel for Finish<R> {
    const NAME: &'static str = "policy_finish";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        if warp.index() != 0 {
            return;
        }
        let workspace = &self.workspace;
        let merged = warp.each(|lane| {
            let mut sum = ExactSum::new();
            for adder in 0..ADDERS {
                if lane < 6
                    && let Some(pointer) = part(&workspace.exact, lane, adder)
                {
                    // SAFETY: the kernel before wrote an exact sum there, and no one writes now.
                    sum.merge(unsafe { &*pointer });
                }
            }
            sum.value::<R>()
        });
        let sums = [0, 1, 2, 3, 4, 5].map(|lane| warp.broadcast(merged, lane));
        warp.each(|lane| {
            if lane == 0 {
                self.finish(sums);
            }
        });
    }
}

impl<R: Number> Finish<R> {
    #[inline(always)]
    fn finish(&self, sums: [R; 6]) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let totals = totals(batch, workspace);
        let mut counts = [0usize; TILE_COUNTS];
        let (mut ratio_min, mut ratio_max) = (R::infinity(), R::zero());
        for row in 0..batch.rows {
            for (place, count) in counts.iter_mut().enumerate() {
                *count += workspace.row_count.written(place * batch.rows + row).unwrap_or(0) as usize;
            }
            ratio_min = ratio_min.smaller(workspace.row_ratio.written(row).unwrap_or(ratio_min));
            ratio_max = ratio_max.larger(workspace.row_ratio.written(batch.rows + row).unwrap_or(ratio_max));
        }
        let [clipped, clipped_high, clipped_low, dual_clipped] = counts;
        let counts = PolicyCounts {
            tokens: totals.tokens,
            kept_tokens: workspace.totals.written(2).unwrap_or(0) as usize,
            clipped,
            clipped_high,
            clipped_low,
            dual_clipped,
            ratio_min,
            ratio_max,
        };
        let Ok(loss) = objective.finish(&PolicyPartial::from_sums(sums, counts), &totals) else { return };
        let metrics = loss.metrics;
        let values = [
            loss.loss,
            loss.policy_loss,
            loss.kl_loss,
            loss.entropy_loss,
            metrics.clip_fraction,
            metrics.clip_fraction_high,
            metrics.clip_fraction_low,
            metrics.dual_clip_fraction,
            metrics.approx_kl_k1,
            metrics.approx_kl_k3,
            metrics.ratio_mean,
            metrics.ratio_min,
            metrics.ratio_max,
        ];
        for (place, value) in values.iter().enumerate() {
            self.result.set(place, *value);
        }
    }
}

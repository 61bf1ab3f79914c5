//! Counts of rows and of the batch, the weights that follow, and rows from their tiles.

use plumbline_core::batch::{Mask, TokenShape};
use plumbline_core::objective::policy::token::RowTotals;
use plumbline_core::reduce::{Aggregation, Totals};

use super::tiles::sequence_of;
use super::{Batch, Settings, TILE_COUNTS, TILE_SUMS, Workspace};
use crate::Kernel;
use crate::memory::{Number, Reader};
use crate::tile::{Tile, each_thread};
use crate::warp::{LANES, Warp};

/// How many tokens each row holds, and how many of them stay in. A warp a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Count<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// Where counts go.
    pub workspace: Workspace<R>,
}

impl<R: Number> Kernel for Count<R> {
    const NAME: &'static str = "policy_count";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let batch = &self.batch;
        let mut row = warp.index();
        while row < batch.rows {
            let counts = warp.each(|lane| {
                let (mut tokens, mut kept) = (0u32, 0u32);
                let mut column = lane;
                while column < batch.columns {
                    let slot = row * batch.columns + column;
                    let there = batch.kept(slot);
                    tokens += u32::from(there);
                    kept += u32::from(there && batch.keep.at(slot, 1) != 0);
                    column += LANES;
                }
                (tokens, kept)
            });
            let tokens = sum(warp, warp.map(counts, |_, (tokens, _)| u64::from(tokens)));
            let kept = sum(warp, warp.map(counts, |_, (_, kept)| u64::from(kept)));
            warp.zip(tokens, kept, |lane, tokens, kept| {
                if lane == 0 {
                    self.workspace.length.set(row, tokens as u32);
                    self.workspace.kept.set(row, kept as u32);
                }
            });
            row += warp.count();
        }
    }
}

/// The sum over a warp, which the first thread then holds.
#[inline(always)]
fn sum<W: Warp>(warp: &W, values: W::Each<u64>) -> W::Each<u64> {
    let mut total = values;
    let mut by = LANES / 2;
    while by > 0 {
        let other = warp.shuffle_down(total, by);
        total = warp.zip(total, other, |_, a, b| a.wrapping_add(b));
        by /= 2;
    }
    total
}

/// The counts of the batch. One warp.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Total<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// Where counts go.
    pub workspace: Workspace<R>,
}

/// The tokens of all rows of a row's group.
#[inline(always)]
fn group_tokens(group: Reader<u32>, length: Reader<u32>, row: usize) -> (usize, bool) {
    let own = group.at(row, 0);
    let (mut tokens, mut leads) = (0usize, true);
    for other in 0..group.length() {
        if group.at(other, 0) == own {
            tokens += length.at(other, 0) as usize;
            leads &= other >= row;
        }
    }
    (tokens, leads)
}

impl<R: Number> Kernel for Total<R> {
    const NAME: &'static str = "policy_total";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        if warp.index() != 0 {
            return;
        }
        let (batch, length) = (&self.batch, self.workspace.length.reader());
        let counts = warp.each(|lane| {
            let mut counts = [0u64; 4];
            let mut row = lane;
            while row < batch.rows {
                let tokens = length.at(row, 0);
                counts[0] += u64::from(tokens);
                counts[1] += u64::from(tokens > 0);
                counts[2] += u64::from(self.workspace.kept.written(row).unwrap_or(0));
                if batch.group.given() {
                    let (tokens, leads) = group_tokens(batch.group, length, row);
                    counts[3] += u64::from(leads && tokens > 0);
                }
                row += LANES;
            }
            counts
        });
        for place in 0..4 {
            let total = sum(warp, warp.map(counts, |_, counts| counts[place]));
            warp.map(total, |lane, total| {
                if lane == 0 {
                    self.workspace.totals.set(place, total);
                }
            });
        }
    }
}

/// The divisor of each row and the weight of its tokens. A thread a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Weigh<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// Where they go.
    pub workspace: Workspace<R>,
}

/// The counts as core takes them.
#[inline(always)]
pub(super) fn totals<R: Number>(batch: &Batch<R>, workspace: &Workspace<R>) -> Totals {
    let at = |place: usize| workspace.totals.written(place).unwrap_or(0) as usize;
    Totals { tokens: at(0), rows: batch.rows, nonempty_rows: at(1), groups: at(3), columns: batch.columns }
}

impl<R: Number> Kernel for Weigh<R> {
    const NAME: &'static str = "policy_weigh";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let Ok(divisor) = objective.reduction.divisor(&totals(batch, workspace)) else { return };
        let Ok(nothing) = Mask::new(TokenShape { rows: 0, columns: 0 }, None) else { return };
        each_thread(warp, batch.rows, |row| {
            let length = workspace.length.reader();
            // The tokens that stand for the row's length where a mean runs over its group.
            let tokens = if batch.group.given() && objective.reduction.aggregation == Aggregation::GroupMeanTokenMean {
                group_tokens(batch.group, length, row).0
            } else {
                length.at(row, 0) as usize
            };
            let row_divisor = objective.reduction.row_divisor(row, tokens, &nothing, None);
            workspace.row_divisor.set(row, row_divisor);
            workspace.row_weight.set(row, objective.row_weight(divisor, row_divisor));
        });
    }
}

/// Rows from their tiles. A thread a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rows<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// Sums and counts.
    pub workspace: Workspace<R>,
}

impl<R: Number> Kernel for Rows<R> {
    const NAME: &'static str = "policy_rows";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let per_row = Tile::per_row(batch.columns);
        each_thread(warp, batch.rows, |row| {
            let tiles = row * per_row..(row + 1) * per_row;
            let sum = |place: usize| {
                let mut total = R::zero();
                for tile in tiles.clone() {
                    total += workspace.tile_sum.written(tile * TILE_SUMS + place).unwrap_or(R::zero());
                }
                total
            };
            let sums = RowTotals {
                policy: sum(0),
                kl: if objective.kl.is_some() { sum(1) } else { R::zero() },
                entropy: if objective.entropy.is_some() { sum(2) } else { R::zero() },
                log_ratio: sum(3),
                k3: sum(4),
                ratio: sum(5),
            };
            let there = workspace.length.written(row).unwrap_or(0) > 0;
            let terms = if there {
                objective.row_terms(&sums, workspace.row_divisor.written(row).unwrap_or(R::one()))
            } else {
                [R::zero(); 6]
            };
            let [policy, kl, entropy, k1, k3, ratio] = terms;
            let store = |place: usize, term: R| workspace.row_term.set(place * batch.rows + row, term);
            store(0, policy);
            store(1, kl);
            store(2, entropy);
            store(3, k1);
            store(4, k3);
            store(5, ratio);
            let count = |place: usize| {
                let of = |tile: usize| workspace.tile_count.written(tile * TILE_COUNTS + place).unwrap_or(0);
                workspace.row_count.set(place * batch.rows + row, tiles.clone().map(of).fold(0, u32::wrapping_add));
            };
            count(0);
            count(1);
            count(2);
            count(3);
            let (mut smallest, mut largest) = (R::infinity(), R::zero());
            for tile in tiles.clone() {
                smallest = smallest.smaller(workspace.tile_ratio.written(tile * 2).unwrap_or(smallest));
                largest = largest.larger(workspace.tile_ratio.written(tile * 2 + 1).unwrap_or(largest));
            }
            workspace.row_ratio.set(row, smallest);
            workspace.row_ratio.set(batch.rows + row, largest);
            if objective.spreads() && there {
                let sequence = sequence_of(workspace, batch.rows, row);
                let weight = workspace.row_weight.written(row).unwrap_or(R::zero());
                workspace.row_share.set(row, objective.spread_each(&sequence, sum(6), weight));
            }
        });
    }
}

//! Objectives whose responses share a ratio: the sums for it before the pass, the response's derivative after it.

use plumbline_core::num::Real;
use plumbline_core::objective::policy::token::SequenceInput;

use super::{Batch, SEQUENCE_COUNTS, SEQUENCE_SUMS, Settings, TILE_COUNTS, Workspace};
use crate::Kernel;
use crate::memory::{Number, Writer};
use crate::tile::{HELD, Halves, Tile, each_thread, each_tile, fold, halving_sum};
use crate::warp::Warp;

/// The sums of each tile for the response's ratio. A warp a tile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SequenceTiles<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// Where sums go.
    pub workspace: Workspace<R>,
}

impl<R: Number> Kernel for SequenceTiles<R> {
    const NAME: &'static str = "policy_sequence_tiles";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let weighted = batch.importance_weight.given() && batch.weight_per_token != 0;
        each_tile(warp, batch.rows, batch.columns, |tile| {
            let sums = warp.each(|lane| {
                let mut sums =
                    Sums { log_ratio: Halves::new(), log_weight: Halves::new(), advantage: Halves::new(), counts: 0 };
                let mut held = 0;
                while held < HELD {
                    if let Some(slot) = tile.slot(lane, held)
                        && batch.kept(slot)
                    {
                        sums.add(held, &objective.sequence_input(&batch.token(tile.row, slot), weighted));
                    }
                    held += 1;
                }
                sums
            });
            let first = tile.index * SEQUENCE_SUMS;
            let store = |place: usize, term: fn(&Sums<R>) -> Halves<R>| {
                let sum = halving_sum(warp, warp.map(sums, |_, sums| term(&sums)));
                warp.map(sum, |lane, sum| {
                    if lane == 0 {
                        workspace.sequence_sum.set(first + place, sum);
                    }
                });
            };
            store(0, |sums| sums.log_ratio);
            store(1, |sums| sums.log_weight);
            store(2, |sums| sums.advantage);
            let counts = fold(warp, warp.map(sums, |_, sums| sums.counts), u32::wrapping_add);
            warp.map(counts, |lane, counts| {
                if lane == 0 {
                    let first = tile.index * SEQUENCE_COUNTS;
                    workspace.sequence_count.set(first, counts & 1023);
                    workspace.sequence_count.set(first + 1, counts >> 10 & 1023);
                    workspace.sequence_count.set(first + 2, counts >> 20);
                }
            });
        });
    }
}

/// What a thread has of a tile.
#[derive(Clone, Copy)]
struct Sums<R> {
    log_ratio: Halves<R>,
    log_weight: Halves<R>,
    advantage: Halves<R>,
    /// Clipped, high, low: at most 128 of each, which ten bits hold.
    counts: u32,
}

impl<R: Real> Sums<R> {
    #[inline(always)]
    fn add(&mut self, held: usize, input: &SequenceInput<R>) {
        self.log_ratio.add(held, input.log_ratio);
        self.log_weight.add(held, input.log_weight.unwrap_or(R::zero()));
        self.advantage.add(held, input.advantage);
        self.counts +=
            u32::from(input.clipped) | u32::from(input.clipped_high) << 10 | u32::from(input.clipped_low) << 20;
    }
}

/// The ratio of each response. A thread a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SequenceRows<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// Sums, and where the ratios go.
    pub workspace: Workspace<R>,
}

impl<R: Number> Kernel for SequenceRows<R> {
    const NAME: &'static str = "policy_sequence_rows";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let per_row = Tile::per_row(batch.columns);
        let per_token = batch.weight_per_token != 0;
        each_thread(warp, batch.rows, |row| {
            let at = |tile: usize, place: usize| {
                workspace.sequence_sum.written(tile * SEQUENCE_SUMS + place).unwrap_or(R::zero())
            };
            let (mut log_ratio, mut advantage) = (R::zero(), R::zero());
            for tile in row * per_row..(row + 1) * per_row {
                log_ratio += at(tile, 0);
                log_ratio += at(tile, 1);
                advantage += at(tile, 2);
            }
            let weight =
                if batch.importance_weight.given() && !per_token { batch.importance_weight.get(row) } else { None };
            let length = workspace.length.written(row).unwrap_or(0) as usize;
            let ratio = objective.sequence_ratio(log_ratio, advantage, length, weight);
            let store = |place: usize, value: R| workspace.sequence.set(place * batch.rows + row, value);
            store(0, ratio.log_ratio);
            store(1, ratio.ratio);
            store(2, if ratio.limited { R::one() } else { R::zero() });
            store(3, ratio.advantage);
            store(4, ratio.share);
        });
    }
}

/// Each token's share of its response's derivative, and the counts of the bounds of its log-ratio. A warp a tile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Spread<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// The shares.
    pub workspace: Workspace<R>,
    /// Gradient by log π, to which they are added, [B, T].
    pub d_log_prob: Writer<R>,
}

impl<R: Number> Kernel for Spread<R> {
    const NAME: &'static str = "policy_spread";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let per_row = Tile::per_row(batch.columns);
        each_tile(warp, batch.rows, batch.columns, |tile| {
            let share = workspace.row_share.written(tile.row).unwrap_or(R::zero());
            warp.each(|lane| {
                let mut held = 0;
                while held < HELD {
                    if let Some(slot) = tile.slot(lane, held)
                        && objective.spreads()
                        && batch.kept(slot)
                        && objective.takes_share(&batch.token(tile.row, slot))
                        && let Some(own) = self.d_log_prob.written(slot)
                    {
                        self.d_log_prob.set(slot, own + share);
                    }
                    held += 1;
                }
                // The first warp of a row adds what the pass before counted.
                if lane == 0 && tile.column == 0 {
                    for place in 0..SEQUENCE_COUNTS.min(TILE_COUNTS) {
                        let of =
                            |tile: usize| workspace.sequence_count.written(tile * SEQUENCE_COUNTS + place).unwrap_or(0);
                        let more = (tile.row * per_row..(tile.row + 1) * per_row).map(of).fold(0, u32::wrapping_add);
                        let place = place * batch.rows + tile.row;
                        let own = workspace.row_count.written(place).unwrap_or(0);
                        workspace.row_count.set(place, own.wrapping_add(more));
                    }
                }
            });
        });
    }
}

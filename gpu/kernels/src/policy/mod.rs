//! The policy objective: one pass over the tokens for value, gradient and metrics.
//!
//! ```text
//! Count ─► Total ─► Weigh ─► [SequenceTiles ─► SequenceRows] ─► Tiles ─► Rows ─► [Spread] ─► Add ─► Finish
//! ```
//!
//! `Tiles` is the pass: a warp a tile, every stage of a token in registers, tile sums by the canonical tree. The others
//! read the mask or a few numbers for each tile or row. What stands in brackets is only launched for objectives whose
//! responses share a ratio.

mod finish;
mod rows;
mod sequence;
mod settings;
mod tiles;

pub use finish::{ADDERS, Add, EXACT_SUM_BYTES, Finish, METRICS};
pub use rows::{Count, Rows, Total, Weigh};
pub use sequence::{SequenceRows, SequenceTiles, Spread};
pub use settings::Settings;
pub use tiles::Tiles;

use plumbline_core::num::Real;
use plumbline_core::objective::policy::token::TokenInput;

use crate::memory::{Reader, Writer};

/// Summands of a tile: policy, KL, entropy, log-ratio, k3, ratio, spread.
pub const TILE_SUMS: usize = 7;
/// Counts of a tile: clipped, clipped high, clipped low, dual clipped.
pub const TILE_COUNTS: usize = 4;
/// Sums of a tile for the response's ratio: log-ratio, log-weight, advantage.
pub const SEQUENCE_SUMS: usize = 3;
/// Counts of a tile for the response's ratio: clipped, high, low.
pub const SEQUENCE_COUNTS: usize = 3;
/// Counts of a batch: tokens, rows that hold any, tokens that stay in, groups that hold any.
pub const TOTALS: usize = 4;

/// What an objective reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Batch<R> {
    /// log π, [B, T].
    pub log_prob: Reader<R>,
    /// log π_old, [B, T].
    pub old_log_prob: Reader<R>,
    /// log π_ref, [B, T].
    pub ref_log_prob: Reader<R>,
    /// A, [B, T] or \[B\].
    pub advantage: Reader<R>,
    /// Weights of the policy term, [B, T] or \[B\].
    pub importance_weight: Reader<R>,
    /// H, [B, T].
    pub entropy: Reader<R>,
    /// Which slots hold a token, [B, T].
    pub mask: Reader<u8>,
    /// 0 where the policy term is left out, [B, T].
    pub keep: Reader<u8>,
    /// 1 where a token was selected, [B, T].
    pub selected: Reader<u8>,
    /// The prompt of each response, \[B\].
    pub group: Reader<u32>,
    /// B.
    pub rows: usize,
    /// T.
    pub columns: usize,
    /// Whether A is one a token.
    pub advantage_per_token: u32,
    /// Whether importance weights are one a token.
    pub weight_per_token: u32,
}

/// The sums and counts that go from tiles to rows to the batch: the workspace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Workspace<R> {
    /// L_i, \[B\].
    pub length: Writer<u32>,
    /// Tokens of each row that stay in, \[B\].
    pub kept: Writer<u32>,
    /// Counts of the batch, [TOTALS].
    pub totals: Writer<u64>,
    /// d_i, \[B\].
    pub row_divisor: Writer<R>,
    /// The weight of each row's tokens, \[B\].
    pub row_weight: Writer<R>,
    /// Tile sums, [tiles, TILE_SUMS].
    pub tile_sum: Writer<R>,
    /// Tile counts, [tiles, TILE_COUNTS].
    pub tile_count: Writer<u32>,
    /// Smallest and largest ratio of each tile, [tiles, 2].
    pub tile_ratio: Writer<R>,
    /// The terms of each row, [6, B].
    pub row_term: Writer<R>,
    /// Counts of each row, [TILE_COUNTS, B].
    pub row_count: Writer<u32>,
    /// Smallest and largest ratio of each row, [2, B].
    pub row_ratio: Writer<R>,
    /// What each row spreads to its tokens, \[B\].
    pub row_share: Writer<R>,
    /// Tile sums for the response's ratio, [tiles, SEQUENCE_SUMS].
    pub sequence_sum: Writer<R>,
    /// Tile counts for the response's ratio, [tiles, SEQUENCE_COUNTS].
    pub sequence_count: Writer<u32>,
    /// The ratio of each response, [5, B].
    pub sequence: Writer<R>,
    /// Exact sums in parts.
    pub exact: Writer<u64>,
    /// The first number that is not finite, \[1\].
    pub fault: Writer<u64>,
}

impl<R: Real> Batch<R> {
    #[inline(always)]
    fn kept(&self, slot: usize) -> bool {
        self.mask.at(slot, 1) != 0
    }

    /// A token that is there.
    #[inline(always)]
    fn token(&self, row: usize, slot: usize) -> TokenInput<R> {
        let zero = R::zero();
        let old = if self.old_log_prob.given() { self.old_log_prob.get(slot) } else { None };
        let reference = if self.ref_log_prob.given() { self.ref_log_prob.get(slot) } else { None };
        let weight = if self.importance_weight.given() {
            self.importance_weight.get(if self.weight_per_token != 0 { slot } else { row })
        } else {
            None
        };
        TokenInput {
            log_prob: self.log_prob.at(slot, zero),
            old_log_prob: old,
            ref_log_prob: reference,
            advantage: self.advantage.at(if self.advantage_per_token != 0 { slot } else { row }, zero),
            importance_weight: weight,
            keep: self.keep.at(slot, 1) != 0,
            selected: self.selected.at(slot, 0) != 0,
            entropy: self.entropy.at(slot, zero),
        }
    }
}

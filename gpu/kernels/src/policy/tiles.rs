//! The pass over the tokens.

use plumbline_core::num::Real;
use plumbline_core::objective::policy::token::{SequenceRatio, TokenInput, TokenOutput};

use super::{Batch, Settings, TILE_COUNTS, TILE_SUMS, Workspace};
use crate::Kernel;
use crate::fault::Fault;
use crate::memory::{Number, Writer};
use crate::tile::{HELD, Halves, each_tile, fold, halving_sum};
use crate::warp::{LANES, Warp};

/// Every stage of every token: gradients, per-token results, the sums of each tile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tiles<R> {
    /// The tokens.
    pub batch: Batch<R>,
    /// The objective.
    pub settings: Settings<R>,
    /// Where sums go.
    pub workspace: Workspace<R>,
    /// Gradient by log π, [B, T].
    pub d_log_prob: Writer<R>,
    /// Gradient by the entropy, [B, T].
    pub d_entropy: Writer<R>,
    /// ℓ, [B, T].
    pub token_loss: Writer<R>,
    /// The weight of each token, [B, T].
    pub token_weight: Writer<R>,
}

impl<R: Number> Kernel for Tiles<R> {
    const NAME: &'static str = "policy_tiles";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (batch, workspace) = (&self.batch, &self.workspace);
        let objective = self.settings.objective();
        let zero = R::zero();
        let kept_tokens = workspace.totals.written(2).unwrap_or(0) as usize;
        let tokens = workspace.totals.written(0).unwrap_or(0) as usize;
        let entropy_weight = objective.entropy_weight(objective.averaged_over(tokens, kept_tokens));
        let shared = objective.shares_ratio();
        each_tile(warp, batch.rows, batch.columns, |tile| {
            let weight = workspace.row_weight.written(tile.row).unwrap_or(zero);
            let sequence = if shared { Some(sequence_of(workspace, batch.rows, tile.row)) } else { None };
            let sums = warp.each(|lane| {
                let mut sums = Sums::new();
                let mut held = 0;
                while held < HELD {
                    if let Some(slot) = tile.slot(lane, held) {
                        let output = if batch.kept(slot) {
                            let token = batch.token(tile.row, slot);
                            self.judge(&token, tile.index, lane + held * LANES);
                            let output = objective.token(&token, sequence.as_ref(), weight, entropy_weight);
                            sums.add(held, &output);
                            (output, weight)
                        } else {
                            (TokenOutput::absent(), zero)
                        };
                        self.write(slot, &output.0, output.1);
                    }
                    held += 1;
                }
                sums
            });
            let first = tile.index * TILE_SUMS;
            // Only the first thread holds the sum.
            let store = |place: usize, term: fn(&Sums<R>) -> Halves<R>| {
                let sum = halving_sum(warp, warp.map(sums, |_, sums| term(&sums)));
                warp.map(sum, |lane, sum| {
                    if lane == 0 {
                        workspace.tile_sum.set(first + place, sum);
                    }
                });
            };
            store(0, |sums| sums.policy);
            if objective.kl.is_some() {
                store(1, |sums| sums.kl);
            }
            if objective.entropy.is_some() {
                store(2, |sums| sums.entropy);
            }
            store(3, |sums| sums.log_ratio);
            store(4, |sums| sums.k3);
            store(5, |sums| sums.ratio);
            if objective.spreads() {
                store(6, |sums| sums.spread);
            }
            let smallest = fold(warp, warp.map(sums, |_, sums| sums.smallest), R::smaller);
            let largest = fold(warp, warp.map(sums, |_, sums| sums.largest), R::larger);
            let low = fold(warp, warp.map(sums, |_, sums| sums.counts[0]), u32::wrapping_add);
            let high = fold(warp, warp.map(sums, |_, sums| sums.counts[1]), u32::wrapping_add);
            warp.zip(warp.pair(smallest, largest), warp.pair(low, high), |lane, (smallest, largest), (low, high)| {
                if lane == 0 {
                    workspace.tile_ratio.set(tile.index * 2, smallest);
                    workspace.tile_ratio.set(tile.index * 2 + 1, largest);
                    let first = tile.index * TILE_COUNTS;
                    workspace.tile_count.set(first, low & 0xffff);
                    workspace.tile_count.set(first + 1, low >> 16);
                    workspace.tile_count.set(first + 2, high & 0xffff);
                    workspace.tile_count.set(first + 3, high >> 16);
                }
            });
        });
    }
}

/// What a thread has of a tile.
#[derive(Clone, Copy)]
struct Sums<R> {
    policy: Halves<R>,
    kl: Halves<R>,
    entropy: Halves<R>,
    log_ratio: Halves<R>,
    k3: Halves<R>,
    ratio: Halves<R>,
    spread: Halves<R>,
    smallest: R,
    largest: R,
    /// Clipped and clipped high in the halves of a word, clipped low and dual clipped in those of another: at most 128 of each.
    counts: [u32; 2],
}

impl<R: Real> Sums<R> {
    #[inline(always)]
    fn new() -> Self {
        let none = Halves::new();
        Sums {
            policy: none,
            kl: none,
            entropy: none,
            log_ratio: none,
            k3: none,
            ratio: none,
            spread: none,
            smallest: R::infinity(),
            largest: R::zero(),
            counts: [0; 2],
        }
    }

    #[inline(always)]
    fn add(&mut self, held: usize, output: &TokenOutput<R>) {
        self.policy.add(held, output.policy);
        self.kl.add(held, output.kl);
        self.entropy.add(held, output.entropy);
        self.log_ratio.add(held, output.log_ratio);
        self.k3.add(held, output.k3);
        self.ratio.add(held, output.ratio);
        self.spread.add(held, output.spread);
        self.smallest = self.smallest.smaller(output.ratio);
        self.largest = self.largest.larger(output.ratio);
        self.counts[0] += u32::from(output.clipped) | u32::from(output.clipped_high) << 16;
        self.counts[1] += u32::from(output.clipped_low) | u32::from(output.dual_clipped) << 16;
    }
}

/// The ratio that the row's response shares.
#[inline(always)]
pub(super) fn sequence_of<R: Number>(workspace: &Workspace<R>, rows: usize, row: usize) -> SequenceRatio<R> {
    let at = |place: usize| workspace.sequence.written(place * rows + row).unwrap_or(R::zero());
    SequenceRatio { log_ratio: at(0), ratio: at(1), limited: at(2) != R::zero(), advantage: at(3), share: at(4) }
}

impl<R: Number> Tiles<R> {
    #[inline(always)]
    fn write(&self, slot: usize, output: &TokenOutput<R>, weight: R) {
        self.d_log_prob.set(slot, output.d_log_prob);
        self.d_entropy.set(slot, output.d_entropy);
        self.token_loss.set(slot, output.token_loss);
        self.token_weight.set(slot, weight);
    }

    /// Note the first number that is not finite.
    #[inline(always)]
    fn judge(&self, token: &TokenInput<R>, tile: usize, position: usize) {
        let numbers = [
            token.log_prob,
            token.old_log_prob.unwrap_or(R::zero()),
            token.advantage,
            token.importance_weight.unwrap_or(R::zero()),
            token.ref_log_prob.unwrap_or(R::zero()),
            token.entropy,
        ];
        if numbers.iter().fold(true, |finite, number| finite & number.is_finite()) {
            return;
        }
        let argument = numbers.iter().position(|number| !number.is_finite()).unwrap_or(0);
        Fault { tile, argument, position }.report(&self.workspace.fault);
    }
}

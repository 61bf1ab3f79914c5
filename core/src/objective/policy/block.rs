//! One block of 128 tokens on its way through the stages. Each stage is a loop over whole arrays without a branch on the
//! kind of objective inside, so that it vectorises; the arrays stay in the first-level cache. The stages are functions that
//! are not inlined: only then does the compiler know that their arrays do not overlap.

use crate::num::{BLOCK, Real};
use crate::surrogate::product;

/// One number for each token of a block.
pub(super) type Lane<R> = [R; BLOCK];

/// The numbers of one block. Absent tokens hold zeros (ratio 1).
#[derive(Debug)]
pub(super) struct Block<R> {
    /// Which tokens are there.
    pub kept: Lane<bool>,
    /// Which of them were selected.
    pub selected: Lane<bool>,
    /// log π.
    pub log_prob: Lane<R>,
    /// log π − log π_old of the token, unlimited.
    pub token_log_ratio: Lane<R>,
    /// The log-ratio at the objective's level, limited.
    pub log_ratio: Lane<R>,
    /// Its exponential.
    pub ratio: Lane<R>,
    /// A.
    pub advantage: Lane<R>,
    /// ℓ of the policy term.
    pub loss: Lane<R>,
    /// Its derivative.
    pub derivative: Lane<R>,
    /// The KL estimate.
    pub kl: Lane<R>,
    /// Its derivative by the token's log-probability.
    pub d_kl: Lane<R>,
    /// H.
    pub entropy: Lane<R>,
    /// A lane for what a stage needs for itself.
    pub scratch: Lane<R>,
}

impl<R: Real> Block<R> {
    pub(super) fn new() -> Self {
        let zero = [R::zero(); BLOCK];
        Block {
            kept: [false; BLOCK],
            selected: [false; BLOCK],
            log_prob: zero,
            token_log_ratio: zero,
            log_ratio: zero,
            ratio: zero,
            advantage: zero,
            loss: zero,
            derivative: zero,
            kl: zero,
            d_kl: zero,
            entropy: zero,
            scratch: zero,
        }
    }
}

/// The part of a row that a block covers.
#[inline(always)]
pub(super) fn part<T>(row: &[T], start: usize) -> &[T] {
    let end = row.len().min(start + BLOCK);
    row.get(start..end).unwrap_or(&[])
}

/// Which of the next `count` slots hold a token.
#[inline(never)]
pub(super) fn load_kept(kept: &mut Lane<bool>, mask: Option<&[u8]>, count: usize) {
    match mask {
        Some(bytes) => {
            for slot in kept.iter_mut().skip(bytes.len()) {
                *slot = false;
            }
            for (slot, byte) in kept.iter_mut().zip(bytes) {
                *slot = *byte != 0;
            }
        }
        None => {
            for (index, slot) in kept.iter_mut().enumerate() {
                *slot = index < count;
            }
        }
    }
}

/// The numbers of the tokens that are there; zeros elsewhere.
pub(super) fn load<R: Real>(lane: &mut Lane<R>, from: &[R], kept: &Lane<bool>) {
    if let Some(from) = from.first_chunk::<BLOCK>() {
        select(lane, from, kept, R::zero());
    } else {
        let mut padded = [R::zero(); BLOCK];
        for (slot, value) in padded.iter_mut().zip(from) {
            *slot = *value;
        }
        select(lane, &padded, kept, R::zero());
    }
}

/// Whether all numbers of a lane are finite.
#[inline(never)]
pub(super) fn all_finite<R: Real>(lane: &Lane<R>) -> bool {
    // x·0 is 0 for a finite x and NaN otherwise; one comparison of the sum of such terms would do, but a fold of
    // comparisons vectorises as well and needs no order.
    lane.iter().fold(true, |all, value| all & (*value * R::zero() == R::zero()))
}

/// The numbers of the tokens that are there, `otherwise` elsewhere.
#[inline(never)]
pub(super) fn select<R: Real>(into: &mut Lane<R>, from: &Lane<R>, kept: &Lane<bool>, otherwise: R) {
    for ((slot, value), kept) in into.iter_mut().zip(from).zip(kept) {
        *slot = if *kept { *value } else { otherwise };
    }
}

/// A number for each pair of numbers of two lanes.
#[inline(never)]
pub(super) fn combine<R: Real>(into: &mut Lane<R>, a: &Lane<R>, b: &Lane<R>, formula: impl Fn(R, R) -> R) {
    for ((slot, a), b) in into.iter_mut().zip(a).zip(b) {
        *slot = formula(*a, *b);
    }
}

/// Multiply a lane by the weight of its tokens: +0 for an absent token, and where the number or the weight is 0.
#[inline(never)]
pub(super) fn weigh<R: Real>(lane: &mut Lane<R>, kept: &Lane<bool>, weight: R) {
    for (slot, kept) in lane.iter_mut().zip(kept) {
        *slot = if *kept { product(*slot, weight) } else { R::zero() };
    }
}

/// Write a lane to the part of a row that it covers.
#[inline(never)]
pub(super) fn store<R: Real>(row: &mut [R], start: usize, lane: &Lane<R>) {
    if let Some(part) = row.get_mut(start..) {
        for (slot, value) in part.iter_mut().zip(lane) {
            *slot = *value;
        }
    }
}

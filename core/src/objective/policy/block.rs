//! One block of 128 tokens on its way through the stages. Each stage is a loop over whole arrays without a branch on the
//! kind of objective inside, so that it vectorises; the arrays stay in the first-level cache. They are parts of one
//! [`Block`], at distances that the compiler knows, so that it need not ask whether they overlap.

use crate::num::{BLOCK, Real};

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

/// The part of a row that a block covers, as a whole block: where the row ends inside, zeros are put behind it.
#[inline(always)]
pub(super) fn whole<'a, T: Copy>(row: &'a [T], start: usize, padded: &'a mut [T; BLOCK], zero: T) -> &'a [T; BLOCK] {
    let part = part(row, start);
    if let Some(whole) = part.first_chunk::<BLOCK>() {
        return whole;
    }
    *padded = [zero; BLOCK];
    for (slot, value) in padded.iter_mut().zip(part) {
        *slot = *value;
    }
    padded
}

/// Which of the next `count` slots hold a token.
#[inline(always)]
pub(super) fn load_kept(kept: &mut Lane<bool>, mask: Option<&[u8]>, start: usize, count: usize) {
    match mask {
        Some(bytes) => {
            let mut padded = [0; BLOCK];
            for (slot, byte) in kept.iter_mut().zip(whole(bytes, start, &mut padded, 0)) {
                *slot = *byte != 0;
            }
        }
        None if count >= BLOCK => *kept = [true; BLOCK],
        None => {
            for (index, slot) in kept.iter_mut().enumerate() {
                *slot = index < count;
            }
        }
    }
}

/// The numbers of the tokens that are there; zeros elsewhere.
#[inline(always)]
pub(super) fn load<R: Real>(lane: &mut Lane<R>, from: &[R], start: usize, kept: &Lane<bool>) {
    let mut padded = [R::zero(); BLOCK];
    for ((slot, value), kept) in lane.iter_mut().zip(whole(from, start, &mut padded, R::zero())).zip(kept) {
        let value = *value;
        *slot = if *kept { value } else { R::zero() };
    }
}

/// Whether a number is finite: x·0 is 0 for a finite x and NaN otherwise.
#[inline(always)]
pub(super) fn finite<R: Real>(value: R) -> bool {
    value * R::zero() == R::zero()
}

/// Whether all numbers of a lane are finite.
#[inline(always)]
pub(super) fn all_finite<R: Real>(lane: &Lane<R>) -> bool {
    lane.iter().fold(true, |all, value| all & finite(*value))
}

/// Write a lane to the part of a row that it covers.
#[inline(always)]
pub(super) fn store<R: Real>(row: &mut [R], start: usize, lane: &Lane<R>) {
    if let Some(part) = row.get_mut(start..) {
        for (slot, value) in part.iter_mut().zip(lane) {
            *slot = *value;
        }
    }
}

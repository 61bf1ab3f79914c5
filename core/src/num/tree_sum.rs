//! The canonical sum inside a row: a tree fixed by position.
//!
//! A row is cut into blocks of [`BLOCK`] positions. Inside a block element t is added to element t + 64, then t + 32, …:
//! the upper half is folded onto the lower until one number is left. That is one vector addition a step on a CPU and one
//! shuffle a step on a GPU. Block sums are added in order, starting from +0. Positions past the end, and masked ones,
//! count as +0 and change no bit, so a row can be padded to any width.

use super::Real;

/// Positions in a block.
pub const BLOCK: usize = 128;

/// The sum of one block by halving.
#[inline(always)]
pub fn halving_sum<R: Real>(block: &[R; BLOCK]) -> R {
    halving_fold(block, |a, b| a + b)
}

/// One block, or the half of one whose first step has been done, folded to one number by halving: element t with element
/// t + 64, then t + 32, …. For an operation that does not depend on order (the smallest, the largest) this is the form that
/// vectorises. N is a power of two.
#[inline(always)]
pub fn halving_fold<R: Real, const N: usize>(values: &[R; N], combine: impl Fn(R, R) -> R) -> R {
    let mut values = *values;
    let mut width = N / 2;
    while width > 0 {
        let (low, high) = values.split_at_mut(width);
        for (a, b) in low.iter_mut().zip(high.iter()) {
            *a = combine(*a, *b);
        }
        width /= 2;
    }
    values.first().copied().unwrap_or(R::zero())
}

/// Sum of a row that arrives block by block.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowSum<R> {
    total: R,
}

impl<R: Real> RowSum<R> {
    /// The sum of no blocks.
    #[inline(always)]
    pub fn new() -> Self {
        RowSum { total: R::zero() }
    }
    /// Add the next block; positions past the end of the row must hold +0.
    #[inline(always)]
    pub fn push(&mut self, block: &[R; BLOCK]) {
        self.total += halving_sum(block);
    }
    /// The same by a call: the tree is a kilobyte of code, too much for every formula that adds up a few terms.
    /// A kernel for a graphics processor is one function, without calls.
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn push_called(&mut self, block: &[R; BLOCK]) {
        self.push(block);
    }
    /// Add the next block, whose sum is known.
    #[inline(always)]
    pub fn push_sum(&mut self, sum: R) {
        self.total += sum;
    }
    /// The sum so far.
    #[inline(always)]
    pub fn value(self) -> R {
        self.total
    }
}

/// The sum of at most `W` terms: a block of which only the first `W` positions, a power of two, are held.
#[inline(always)]
fn short_sum<R: Real, const W: usize>(length: usize, mut term: impl FnMut(usize) -> R) -> R {
    let mut values = [R::zero(); W];
    for (slot, index) in values.iter_mut().zip(0..length) {
        *slot = term(index);
    }
    let mut width = W / 2;
    while width > 0 {
        let (low, high) = values.split_at_mut(width);
        for (a, b) in low.iter_mut().zip(high.iter()) {
            *a += *b;
        }
        width /= 2;
    }
    // The total starts from +0, as in the whole tree.
    R::zero() + values.first().copied().unwrap_or(R::zero())
}

/// The canonical sum of `length` numbers `term(0)`, `term(1)`, ….
#[inline]
pub fn tree_sum_by<R: Real>(length: usize, mut term: impl FnMut(usize) -> R) -> R {
    // A short row needs only the lowest part of the tree: what is left out would add +0. Rows of transitions are short. Not in
    // WebAssembly, whose modules are downloaded: there six copies of every term are too much code.
    if cfg!(not(target_arch = "wasm32")) {
        match length {
            // In registers: numbers stored one by one and read back in pairs would wait for each other.
            0..=4 => {
                let mut next = |index: usize| if index < length { term(index) } else { R::zero() };
                let [a, b, c, d] = [next(0), next(1), next(2), next(3)];
                return R::zero() + ((a + c) + (b + d));
            }
            5..=16 => return short_sum::<R, 16>(length, term),
            _ => {}
        }
    }
    let mut sum = RowSum::new();
    let mut start = 0;
    while start < length {
        let mut block = [R::zero(); BLOCK];
        for (slot, index) in block.iter_mut().zip(start..length) {
            *slot = term(index);
        }
        sum.push_called(&block);
        start += BLOCK;
    }
    sum.value()
}

/// The canonical sum of a term per element of a slice.
#[inline]
pub fn tree_sum_map<T, R: Real>(values: &[T], term: impl Fn(&T) -> R) -> R {
    let mut sum = RowSum::new();
    for chunk in values.chunks(BLOCK) {
        let mut block = [R::zero(); BLOCK];
        for (slot, value) in block.iter_mut().zip(chunk) {
            *slot = term(value);
        }
        sum.push_called(&block);
    }
    sum.value()
}

/// The canonical sum of a term per pair of elements of two slices, as long as the shorter.
#[inline]
pub fn tree_sum_zip<T, U, R: Real>(left: &[T], right: &[U], term: impl Fn(&T, &U) -> R) -> R {
    let mut sum = RowSum::new();
    for (left, right) in left.chunks(BLOCK).zip(right.chunks(BLOCK)) {
        let mut block = [R::zero(); BLOCK];
        for ((slot, a), b) in block.iter_mut().zip(left).zip(right) {
            *slot = term(a, b);
        }
        sum.push_called(&block);
    }
    sum.value()
}

/// The canonical sum of a slice.
pub fn tree_sum<R: Real>(values: &[R]) -> R {
    tree_sum_map(values, |value| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_the_documented_one() {
        // 2^24 + 1 + 1 in f32: added one at a time the ones vanish; the tree meets them first only when they share a half.
        let mut values = [0.0f32; BLOCK];
        values[0] = 16_777_216.0;
        values[1] = 1.0;
        values[65] = 1.0;
        assert_eq!(halving_sum(&values), 16_777_218.0);
        values[65] = 0.0;
        values[64] = 1.0;
        assert_eq!(halving_sum(&values), 16_777_216.0);
    }

    #[test]
    fn padding_changes_no_bit() {
        let values: std::vec::Vec<f32> = (0..300).map(|i| 1.0 / (i as f32 - 150.5)).collect();
        for length in [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 127, 128, 129, 255, 256, 257, 300] {
            let mut padded = values[..length].to_vec();
            padded.resize(length + 1000, 0.0);
            assert_eq!(tree_sum(&values[..length]).to_bits(), tree_sum(&padded).to_bits());
            assert_eq!(tree_sum(&values[..length]).to_bits(), tree_sum_by(length, |i| values[i]).to_bits());
            let halves = tree_sum_zip(&values[..length], &values, |a, b| 0.5 * a + 0.5 * b);
            assert_eq!(tree_sum(&values[..length]).to_bits(), halves.to_bits());
        }
        assert_eq!(tree_sum(&[-0.0f32]).to_bits(), 0);
        assert_eq!(tree_sum_by(4, |_| -0.0f32).to_bits(), 0);
    }
}

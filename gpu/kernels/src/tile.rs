//! Tiles: 128 neighbouring positions of a row, the unit of core's canonical sum. A warp holds one, four positions a thread.

use plumbline_core::num::{BLOCK, Real};

use crate::warp::{LANES, Warp, Word};

/// Positions of a tile that a thread holds: its lane, and 32, 64, 96 further on.
pub const HELD: usize = BLOCK / LANES;

/// A warp's next tile: which row, where in it, and the tile's place among all.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// The row.
    pub row: usize,
    /// The tile's place among all.
    pub index: usize,
    /// The column of its first position.
    pub column: usize,
    /// Columns of a row.
    pub columns: usize,
}

impl Tile {
    /// How many tiles a row of that width has.
    #[inline(always)]
    pub fn per_row(columns: usize) -> usize {
        columns.div_ceil(BLOCK)
    }

    /// The tile at a place.
    #[inline(always)]
    pub fn at(index: usize, columns: usize) -> Self {
        let per_row = Self::per_row(columns);
        let row = index.checked_div(per_row).unwrap_or(0);
        Tile { row, index, column: (index - row * per_row) * BLOCK, columns }
    }

    /// The flat index of a position, where it lies in the row.
    #[inline(always)]
    pub fn slot(&self, lane: usize, held: usize) -> Option<usize> {
        let column = self.column + lane + held * LANES;
        (column < self.columns).then(|| self.row * self.columns + column)
    }
}

/// Every tile of `rows` rows, each for one warp.
#[inline(always)]
pub fn each_tile<W: Warp>(warp: &W, rows: usize, columns: usize, mut work: impl FnMut(Tile)) {
    let tiles = rows * Tile::per_row(columns);
    let mut index = warp.index();
    while index < tiles {
        work(Tile::at(index, columns));
        index += warp.count();
    }
}

/// Every one of `count` things, each for one thread.
#[inline(always)]
pub fn each_thread<W: Warp>(warp: &W, count: usize, mut work: impl FnMut(usize)) {
    let mut first = warp.index() * LANES;
    while first < count {
        warp.each(|lane| {
            if first + lane < count {
                work(first + lane);
            }
        });
        first += warp.count() * LANES;
    }
}

/// What a thread has of a tile's canonical sum: its first and third term together, and its second and fourth. In core's tree
/// element t is added to element t + 64 first.
#[derive(Clone, Copy, Debug)]
pub struct Halves<R> {
    even: R,
    odd: R,
}

impl<R: Real> Halves<R> {
    /// No terms. A sum that starts from +0 differs from one that does not where all its terms are −0, and then only in a sign
    /// that the row's own start from +0 takes away again.
    #[inline(always)]
    pub fn new() -> Self {
        Halves { even: R::zero(), odd: R::zero() }
    }

    /// Add the term of a position that the thread holds; positions come in order.
    #[inline(always)]
    pub fn add(&mut self, held: usize, term: R) {
        let even = held.is_multiple_of(2);
        let sum = (if even { self.even } else { self.odd }) + term;
        if even {
            self.even = sum;
        } else {
            self.odd = sum;
        }
    }
}

impl<R: Real> Default for Halves<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// The canonical sum of a tile, which the first thread then holds.
#[inline(always)]
pub fn halving_sum<R: Real + Word, W: Warp>(warp: &W, halves: W::Each<Halves<R>>) -> W::Each<R> {
    fold(warp, warp.map(halves, |_, halves| halves.even + halves.odd), |a, b| a + b)
}

/// The values of a warp folded to one, which the first thread then holds.
#[inline(always)]
pub fn fold<R: Word, W: Warp>(warp: &W, values: W::Each<R>, combine: impl Fn(R, R) -> R) -> W::Each<R> {
    let mut folded = values;
    let mut by = LANES / 2;
    while by > 0 {
        let other = warp.shuffle_down(folded, by);
        folded = warp.zip(folded, other, |_, a, b| combine(a, b));
        by /= 2;
    }
    folded
}

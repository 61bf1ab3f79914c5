//! The threads of a warp, as a kernel sees them.

/// Threads of a warp.
pub const LANES: usize = 32;

/// 32 threads side by side. What is written between two calls of a method is the same for all of them.
pub trait Warp {
    /// A value that each thread holds.
    type Each<T: Copy>: Copy;

    /// Which warp of the grid this is.
    fn index(&self) -> usize;
    /// How many warps the grid has.
    fn count(&self) -> usize;
    /// A value for each thread, told its lane.
    fn each<T: Copy>(&self, value: impl FnMut(usize) -> T) -> Self::Each<T>;
    /// A value for each thread from the one that it holds.
    fn map<A: Copy, T: Copy>(&self, values: Self::Each<A>, value: impl FnMut(usize, A) -> T) -> Self::Each<T>;
    /// A value for each thread from the two that it holds.
    #[inline(always)]
    fn zip<A: Copy, B: Copy, T: Copy>(
        &self,
        left: Self::Each<A>,
        right: Self::Each<B>,
        mut value: impl FnMut(usize, A, B) -> T,
    ) -> Self::Each<T> {
        let pairs = self.pair(left, right);
        self.map(pairs, |lane, (a, b)| value(lane, a, b))
    }
    /// Two values that each thread holds, as one.
    fn pair<A: Copy, B: Copy>(&self, left: Self::Each<A>, right: Self::Each<B>) -> Self::Each<(A, B)>;
    /// The value that the thread `by` lanes further on holds; a thread without one keeps its own.
    fn shuffle_down<T: Word>(&self, values: Self::Each<T>, by: usize) -> Self::Each<T>;
    /// The value that the thread of that lane holds, for all threads.
    fn broadcast<T: Word>(&self, values: Self::Each<T>, lane: usize) -> T;
}

/// A number that threads exchange.
pub trait Word: Copy {
    /// Its bits, low half first.
    fn to_words(self) -> [u32; 2];
    /// From its bits.
    fn from_words(words: [u32; 2]) -> Self;
    /// Whether both halves are needed.
    const WIDE: bool;
}

impl Word for u32 {
    const WIDE: bool = false;
    #[inline(always)]
    fn to_words(self) -> [u32; 2] {
        [self, 0]
    }
    #[inline(always)]
    fn from_words([low, _]: [u32; 2]) -> Self {
        low
    }
}

impl Word for u64 {
    const WIDE: bool = true;
    #[inline(always)]
    fn to_words(self) -> [u32; 2] {
        [self as u32, (self >> 32) as u32]
    }
    #[inline(always)]
    fn from_words([low, high]: [u32; 2]) -> Self {
        u64::from(low) | u64::from(high) << 32
    }
}

impl Word for f32 {
    const WIDE: bool = false;
    #[inline(always)]
    fn to_words(self) -> [u32; 2] {
        [self.to_bits(), 0]
    }
    #[inline(always)]
    fn from_words([low, _]: [u32; 2]) -> Self {
        f32::from_bits(low)
    }
}

impl Word for f64 {
    const WIDE: bool = true;
    #[inline(always)]
    fn to_words(self) -> [u32; 2] {
        let bits = self.to_bits();
        [bits as u32, (bits >> 32) as u32]
    }
    #[inline(always)]
    fn from_words([low, high]: [u32; 2]) -> Self {
        f64::from_bits(u64::from(low) | u64::from(high) << 32)
    }
}

/// A warp on the host: 32 values where each thread of the device holds one.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedWarp {
    /// Which warp of the grid this is.
    pub index: usize,
    /// How many warps the grid has.
    pub count: usize,
}

impl Warp for EmulatedWarp {
    type Each<T: Copy> = [T; LANES];

    fn index(&self) -> usize {
        self.index
    }
    fn count(&self) -> usize {
        self.count
    }
    fn each<T: Copy>(&self, value: impl FnMut(usize) -> T) -> [T; LANES] {
        core::array::from_fn(value)
    }
    fn map<A: Copy, T: Copy>(&self, values: [A; LANES], mut value: impl FnMut(usize, A) -> T) -> [T; LANES] {
        core::array::from_fn(|lane| value(lane, values[lane]))
    }
    fn pair<A: Copy, B: Copy>(&self, left: [A; LANES], right: [B; LANES]) -> [(A, B); LANES] {
        core::array::from_fn(|lane| (left[lane], right[lane]))
    }
    fn shuffle_down<T: Word>(&self, values: [T; LANES], by: usize) -> [T; LANES] {
        core::array::from_fn(|lane| values.get(lane + by).copied().unwrap_or(values[lane]))
    }
    fn broadcast<T: Word>(&self, values: [T; LANES], lane: usize) -> T {
        values[lane % LANES]
    }
}

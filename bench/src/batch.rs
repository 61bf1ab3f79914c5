//! The tensors: log-probabilities under three policies and advantages, from a fixed seed.

/// A batch in which every slot holds a token.
pub struct Batch {
    /// B.
    pub rows: usize,
    /// T.
    pub columns: usize,
    /// Current policy.
    pub log_prob: Vec<f32>,
    /// Sampling policy.
    pub old_log_prob: Vec<f32>,
    /// Reference policy.
    pub ref_log_prob: Vec<f32>,
    /// Advantages.
    pub advantage: Vec<f32>,
    /// All ones.
    pub mask: Vec<u8>,
}

impl Batch {
    /// Log-ratios within ±0.4 about 0 (a tenth of the tokens reaches a clip bound) and advantages of both signs.
    pub fn new(rows: usize, columns: usize) -> Self {
        let tokens = rows * columns;
        let mut random = Random::new();
        let mut draw = |low: f32, high: f32| -> Vec<f32> { (0..tokens).map(|_| random.between(low, high)).collect() };
        let old_log_prob = draw(-3.0, -0.5);
        let shift = draw(-0.4, 0.4);
        let log_prob: Vec<f32> = old_log_prob.iter().zip(&shift).map(|(old, shift)| old + shift).collect();
        let ref_log_prob = draw(-3.0, -0.5);
        let advantage = draw(-2.0, 2.0);
        Batch { rows, columns, log_prob, old_log_prob, ref_log_prob, advantage, mask: vec![1; tokens] }
    }

    /// B·T.
    pub fn tokens(&self) -> usize {
        self.rows * self.columns
    }
}

/// Marsaglia's 64-bit xorshift.
pub struct Random(u64);

impl Random {
    /// From a fixed seed.
    pub fn new() -> Self {
        Random(7)
    }

    /// A number of the interval.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.next() >> 40) as f32 / (1u64 << 24) as f32)
    }

    /// A number below `count`, which is below 2³².
    pub fn below(&mut self, count: usize) -> usize {
        (((self.next() >> 32) * count as u64) >> 32) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

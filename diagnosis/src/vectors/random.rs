//! A small seeded generator of numbers, so that a case is rebuilt from its seed on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and a mix per number.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers depend on the seed and on the name of what they are for, so that adding an operation
    /// changes no other operation's cases.
    pub fn new(seed: u64, name: &str) -> Random {
        // FNV-1a over the name.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Random(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// A whole number below `limit`; 0 where the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_depend_on_seed_and_name_and_stay_in_range() {
        let mut first = Random::new(1, "kl.k3");
        let mut same = Random::new(1, "kl.k3");
        assert_eq!(first.bits(), same.bits());
        assert_ne!(Random::new(2, "kl.k3").bits(), Random::new(1, "kl.k3").bits());
        assert_ne!(Random::new(1, "kl.k1").bits(), Random::new(1, "kl.k3").bits());
        for _ in 0..1000 {
            let number = first.between(-2.0, 3.0);
            assert!((-2.0..3.0).contains(&number));
            assert!(first.below(7) < 7);
        }
    }
}

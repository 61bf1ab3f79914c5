//! The hash over the results of an operation.

use core::fmt;

use plumbline_core::num::{Dtype, Real};
use sha2::{Digest as _, Sha256};

/// A hash: the first 8 bytes of SHA-256, which are written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub u64);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nibble by nibble: the standard library's padding has paths that panic.
        (0..16).rev().try_for_each(|place| {
            let nibble = (self.0 >> (4 * place)) as u32 & 15;
            fmt::Write::write_char(f, char::from_digit(nibble, 16).unwrap_or('?'))
        })
    }
}

impl Hash {
    /// From 16 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Hash> {
        (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Hash)
    }
}

/// The results of several cases, one after the other, on their way into a hash.
///
/// The bytes are, for each case: 1, then for each output 2, its name, 0, its number of elements (64 bits) and each element's
/// bits, all little-endian; or, where the case was refused, 3. Zeros keep their sign; NaN is hashed as a class, by
/// the bits of the positive quiet one, because its sign and payload are not defined by IEEE 754.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    state: Sha256,
}

impl Digest {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A case begins whose outputs follow.
    pub fn case(&mut self) {
        self.state.update([1]);
    }

    /// A case was refused.
    pub fn refused(&mut self) {
        self.state.update([3]);
    }

    /// One output, computed in single or double precision.
    pub fn output<R: Real>(&mut self, name: &str, values: impl ExactSizeIterator<Item = R>) {
        self.state.update([2]);
        self.state.update(name.as_bytes());
        self.state.update([0]);
        self.state.update((values.len() as u64).to_le_bytes());
        for value in values {
            match R::DTYPE {
                Dtype::F32 => {
                    let bits = if value.is_nan() { 0x7fc0_0000 } else { value.bits() as u32 };
                    self.state.update(bits.to_le_bytes());
                }
                Dtype::F64 => {
                    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.bits() };
                    self.state.update(bits.to_le_bytes());
                }
            }
        }
    }

    /// Bytes of another kind.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The hash.
    pub fn finish(self) -> Hash {
        let whole = self.state.finalize();
        Hash(whole.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn hash_of(values: &[f32]) -> Hash {
        let mut digest = Digest::new();
        digest.case();
        digest.output("kl", values.iter().copied());
        digest.finish()
    }

    #[test]
    fn the_hash_is_that_of_the_described_bytes() {
        // printf '\001\002kl\000\002\000\000\000\000\000\000\000\000\000\200\077\000\000\000\200' | sha256sum
        assert_eq!(hash_of(&[1.0, -0.0]).to_string(), "4665496a5b1f94ef");
    }

    #[test]
    fn zeros_keep_their_sign_and_nan_is_a_class() {
        assert_ne!(hash_of(&[0.0]), hash_of(&[-0.0]));
        assert_eq!(hash_of(&[f32::NAN]), hash_of(&[f32::from_bits(0xffc1_2345)]));
        assert_ne!(hash_of(&[1.0]), hash_of(&[1.0 + f32::EPSILON]));
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = Hash(0x0123_4567_89ab_cdef);
        assert_eq!(hash.to_string(), "0123456789abcdef");
        assert_eq!(Hash::parse("0123456789abcdef"), Some(hash));
        assert_eq!((Hash::parse("123"), Hash::parse("0123456789abcdeg")), (None, None));
    }
}

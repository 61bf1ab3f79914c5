//! The first number of a batch that is not finite, as a word that threads lower together.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::Writer;

/// A number that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its tile.
    pub tile: usize,
    /// The place of its argument among the kernel's.
    pub argument: usize,
    /// Its position in the tile.
    pub position: usize,
}

impl Fault {
    /// The word of no fault.
    pub const NONE: u64 = u64::MAX;

    /// Lower the word to this fault, where it stood higher: an earlier tile, then an earlier argument, comes first.
    #[inline(always)]
    pub fn report(&self, word: &Writer<u64>) {
        let key = (self.tile as u64) << 11 | (self.argument as u64 & 15) << 7 | self.position as u64 & 127;
        if let Some(pointer) = word.first() {
            // SAFETY: the word is one aligned element that threads change in this way only.
            unsafe { AtomicU64::from_ptr(pointer) }.fetch_min(key, Ordering::Relaxed);
        }
    }

    /// The fault that a word tells.
    pub fn of(word: u64) -> Option<Fault> {
        (word != Self::NONE).then_some(Fault {
            tile: (word >> 11) as usize,
            argument: (word >> 7 & 15) as usize,
            position: (word & 127) as usize,
        })
    }
}

//! How deep the stack went: the free part is painted, and what is no longer painted was used.

/// The memory below the stack.
pub struct Stack {
    lowest: *mut u32,
    highest: *mut u32,
}

const PAINT: u32 = 0x5041_494e;
/// What lies between the painted part and this function's own frame.
const MARGIN: usize = 64;

impl Stack {
    /// A stack that grows down from `highest` and may grow to `lowest`.
    ///
    /// # Safety
    /// All memory between them is there, aligned to words, and used for nothing but the stack.
    pub unsafe fn new(lowest: *mut u32, highest: *mut u32) -> Self {
        Stack { lowest, highest }
    }

    /// Paint the part that is not in use.
    #[inline(never)]
    pub fn paint(&self) {
        let mut marker = 0u32;
        let here = &raw mut marker;
        let end = (here as usize).saturating_sub(4 * MARGIN);
        let mut word = self.lowest;
        while (word as usize) < end {
            // SAFETY: the word lies between the lowest address of the stack and what is in use of it.
            unsafe { word.write_volatile(PAINT) };
            word = word.wrapping_add(1);
        }
    }

    /// The most bytes that were in use since painting.
    pub fn deepest(&self) -> usize {
        let mut word = self.lowest;
        // SAFETY: the word lies within the stack, which is readable memory.
        while word < self.highest && unsafe { word.read_volatile() } == PAINT {
            word = word.wrapping_add(1);
        }
        self.highest as usize - word as usize
    }
}

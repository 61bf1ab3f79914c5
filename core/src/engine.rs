//! How the stages of a pass over many numbers are called.
//!
//! A stage is one loop over whole arrays. It is compiled for the processor that core is compiled for. A crate that knows at
//! run time what the processor can do may have it compiled once more, for more instructions: it implements [`Engine`] by a
//! function that is compiled for them and calls the stage inside it. Every arithmetic operation stays the one that is
//! written, so the bits stay the same.
//!
//! An engine may also have several threads. A pass over rows asks it whether the rows that are left are worth dividing, and
//! hands it both halves: sums across rows do not depend on how the rows are divided, so the bits stay the same here too.

/// A way to call a stage.
pub trait Engine: Copy + Send + Sync {
    /// Call a stage on a block of arrays. It is inlined here, and so compiled for what this function is compiled for.
    ///
    /// A stage is a closure of a function that is generic over the engine: as it is called for one engine only, nothing
    /// speaks against inlining it. The block is an argument, because of a reference that is one the compiler knows that it
    /// may be read, and that nothing else is behind it.
    fn run<B, T>(self, block: B, stage: impl FnOnce(B) -> T) -> T;

    /// Whether rows of so many numbers in all are worth dividing in two. Not on one thread.
    #[inline(always)]
    fn divides(self, _numbers: usize) -> bool {
        false
    }

    /// Do both, at the same time where the engine can.
    #[inline(always)]
    fn both<A: Send, B: Send>(self, first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B + Send) -> (A, B) {
        (first(), second())
    }
}

/// The instructions that core is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Engine for Portable {
    // A function of its own: one loop at a time is what a compiler vectorises best.
    #[inline(never)]
    fn run<B, T>(self, block: B, stage: impl FnOnce(B) -> T) -> T {
        stage(block)
    }
}

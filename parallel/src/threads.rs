//! An engine that calls its stages by another, on all threads of the current pool.

use plumbline_core::engine::Engine;

/// Numbers of a part: enough that handing it out costs nothing beside it.
pub const PART: usize = 1 << 15;

/// Another engine's stages, with rows divided over the threads of rayon's current pool.
///
/// Every operation whose rows an engine can divide runs on it: the policy objectives
/// (`PolicyObjective::loss_by`), log-probabilities and entropies from logits (`TokenLogits::evaluate_by`), or any of them by name
/// (`plumbline_core::spec::evaluate_by`).
///
/// ```
/// use plumbline_core::batch::{Mask, TokenShape};
/// use plumbline_core::engine::Portable;
/// use plumbline_core::objective::policy::{PolicyBatch, PolicyObjective, PolicyOutputs, Spread, Surrogate};
/// use plumbline_core::reduce::{Aggregation, Reduction};
/// use plumbline_parallel::threads::Threads;
/// let mask = Mask::new(TokenShape { rows: 2, columns: 2 }, None)?;
/// let batch = PolicyBatch::new(&[-1.0; 4], Spread::PerRow(&[2.0, -1.0]), mask);
/// let objective = PolicyObjective::new(Surrogate::ImportanceWeighted, Reduction::new(Aggregation::TokenMean));
/// let result = objective.loss_by(Threads::new(Portable), &batch, &mut PolicyOutputs::default())?;
/// assert_eq!(result.loss, -0.5);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Threads<E> {
    engine: E,
    part: usize,
}

impl<E: Engine> Threads<E> {
    /// With parts of [`PART`] numbers.
    pub fn new(engine: E) -> Self {
        Threads { engine, part: PART }
    }

    /// With parts of at most so many numbers, or of one row.
    pub fn with_part(engine: E, part: usize) -> Self {
        Threads { engine, part }
    }
}

impl<E: Engine> Engine for Threads<E> {
    #[inline(always)]
    fn run<B, T>(self, block: B, stage: impl FnOnce(B) -> T) -> T {
        self.engine.run(block, stage)
    }

    fn divides(self, numbers: usize) -> bool {
        numbers > self.part
    }

    fn both<A: Send, B: Send>(self, first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B + Send) -> (A, B) {
        rayon::join(first, second)
    }
}

//! Log-probabilities and entropies from logits by a level.

use plumbline_core::Error;
use plumbline_core::engine::Engine;
use plumbline_core::logits::token::{TokenLogits, TokenOutputs};
use plumbline_core::num::Real;

use crate::{Level, Task};

struct Tokens<'t, 'i, 'o, R> {
    batch: &'t TokenLogits<'i, R>,
    outputs: &'t mut TokenOutputs<'o, R>,
}

impl<R: Real> Task for Tokens<'_, '_, '_, R> {
    type Output = Result<(), Error>;

    fn run<E: Engine>(self, engine: E) -> Result<(), Error> {
        self.batch.evaluate_by(engine, self.outputs)
    }
}

/// [`TokenLogits::evaluate`] with the passes called by `level`.
pub fn token_logits<R: Real>(
    level: Level,
    batch: &TokenLogits<'_, R>,
    outputs: &mut TokenOutputs<'_, R>,
) -> Result<(), Error> {
    level.run(Tokens { batch, outputs })
}

//! From logits to log-probabilities, entropies and full divergences, with gradients by the logits.

pub mod divergence;
pub mod entropy;
pub mod gaussian;
pub mod log_softmax;
pub mod nll;
pub mod row;
pub mod token;
pub mod token_logprob;
pub mod truncated;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    log_softmax::SPECS,
    token_logprob::SPECS,
    entropy::SPECS,
    divergence::SPECS,
    gaussian::SPECS,
    truncated::SPECS,
    nll::SPECS,
];

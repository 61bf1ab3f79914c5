//! Importance ratios and off-policy corrections.
//!
//! Three policies are in play: the current one, π_θ (`log_prob`); the behaviour policy at the start of the update, π_old
//! (`old_log_prob`, recomputed by the trainer); and the one of the inference engine that drew the tokens, π_rollout
//! (`rollout_log_prob`). The ratio π_θ/π_old is what the surrogates clip. The weight π_old/π_rollout corrects for the
//! engine's other numerics or older parameters: it is truncated ([`importance_weight`]), set to zero outside a band, or
//! the token or response is rejected ([`rejection`]).
//!
//! *Bypass mode* leaves π_old out by setting `old_log_prob` := `rollout_log_prob`. Then π_θ/π_old already is π_θ/π_rollout:
//! with the PPO clip no further weight is applied (it would be counted twice); with REINFORCE the weight is
//! π_θ/π_rollout, truncated and stopped, and it multiplies −A log π_θ.

pub mod batch_normalised;
pub mod geometric_clipped;
pub mod importance_weight;
pub mod inputs;
pub mod mismatch_diagnostics;
pub mod off_policy_mask;
pub mod rejection;
pub mod sequence;
pub mod statistics;
pub mod token;
pub mod top_entropy_mask;
pub mod veto;
pub mod weight_diagnostics;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    token::SPECS,
    sequence::SPECS,
    geometric_clipped::SPECS,
    importance_weight::SPECS,
    batch_normalised::SPECS,
    rejection::SPECS,
    veto::SPECS,
    weight_diagnostics::SPECS,
    mismatch_diagnostics::SPECS,
    off_policy_mask::SPECS,
    top_entropy_mask::SPECS,
];

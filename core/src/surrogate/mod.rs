//! Per-token policy surrogates: the loss of one sampled token as a function of its ratio, its log-probability and its
//! advantage, with the derivative and what the clip did.

pub mod cispo;
pub mod cov;
pub mod dppo;
pub mod dro;
pub mod gmpo;
pub mod importance_weighted;
pub mod masked_is;
pub mod ppo_clip;
pub mod ppo_clip_log;
pub mod reinforce;
pub mod sapo;
mod term;
pub mod vespo;

pub(crate) use term::{CLIP_BOUNDS, CLIP_RATIO_C, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, RATIO_MAX, product};
pub use term::{ClipBounds, ClipRange, SurrogateToken, Term, TokenSurrogate};

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    reinforce::SPECS,
    importance_weighted::SPECS,
    ppo_clip::SPECS,
    ppo_clip_log::SPECS,
    cispo::SPECS,
    masked_is::SPECS,
    gmpo::SPECS,
    sapo::SPECS,
    vespo::SPECS,
    dppo::SPECS,
    cov::SPECS,
    dro::SPECS,
];

//! The surrogates as one choice, and their stage over a block.

use super::block::Block;
use super::partial::PolicyPartial;
use crate::engine::Engine;
use crate::num::Real;
use crate::spec::choice;
use crate::surrogate::cispo::cispo;
use crate::surrogate::cov::{clip_cov, kl_cov};
use crate::surrogate::dppo::{Divergence, DppoBounds, dppo};
use crate::surrogate::dro::dro;
use crate::surrogate::importance_weighted::{importance_weighted, importance_weighted_detached};
use crate::surrogate::masked_is::masked_is;
use crate::surrogate::ppo_clip::ppo_clip;
use crate::surrogate::ppo_clip_log::ppo_clip_log;
use crate::surrogate::reinforce::reinforce;
use crate::surrogate::sapo::sapo;
use crate::surrogate::vespo::{GammaShape, vespo};
use crate::surrogate::{ClipRange, Term};

choice! {
    /// Which surrogate, by its name in the catalog.
    pub enum SurrogateKind {
        /// −A·log π.
        Reinforce = "reinforce",
        /// −ρ·A.
        ImportanceWeighted = "importance_weighted",
        /// −sg(ρ)·A·log π.
        ImportanceWeightedDetached = "importance_weighted_detached",
        /// PPO's clip.
        PpoClip = "ppo_clip",
        /// PPO's clip in log space.
        PpoClipLog = "ppo_clip_log",
        /// CISPO.
        Cispo = "cispo",
        /// PPO's rule as a mask on a stopped weight.
        MaskedIs = "masked_is",
        /// GMPO: geometric mean of one-sided clipped ratios, one loss a response.
        Gmpo = "gmpo",
        /// SAPO's soft gate.
        Sapo = "sapo",
        /// VESPO's gamma weight.
        Vespo = "vespo",
        /// DPPO by total variation.
        DppoTv = "dppo_tv",
        /// DPPO by KL.
        DppoKl = "dppo_kl",
        /// Clip-Cov.
        ClipCov = "clip_cov",
        /// KL-Cov.
        KlCov = "kl_cov",
        /// DRO.
        Dro = "dro",
    }
}

/// A surrogate with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Surrogate<R> {
    /// −A·log π.
    Reinforce,
    /// −ρ·A.
    ImportanceWeighted,
    /// −sg(ρ)·A·log π.
    ImportanceWeightedDetached,
    /// PPO's clip.
    PpoClip {
        /// The bounds of the ratio.
        clip: ClipRange<R>,
        /// δ, the limit of the unclipped ratio; infinity is off.
        ratio_max: R,
        /// c of the dual clip; infinity is off.
        dual: R,
    },
    /// PPO's clip in log space.
    PpoClipLog {
        /// Lower bound of the log-ratio.
        low: R,
        /// Upper bound of the log-ratio.
        high: R,
    },
    /// CISPO.
    Cispo {
        /// The bounds of the weight.
        clip: ClipRange<R>,
    },
    /// PPO's rule as a mask on a stopped weight.
    MaskedIs {
        /// The bounds of the ratio.
        clip: ClipRange<R>,
    },
    /// GMPO. It fixes the ratio level: one ratio a response.
    Gmpo {
        /// Distance below 0 that a log-ratio may fall to for A < 0.
        low: R,
        /// Distance above 0 that it may rise to for A > 0.
        high: R,
    },
    /// SAPO.
    Sapo {
        /// τ for A > 0.
        temperature_positive: R,
        /// τ for A ≤ 0.
        temperature_negative: R,
    },
    /// VESPO. Importance weights join the sequence ratio instead of multiplying the loss.
    Vespo {
        /// Shape for A ≥ 0.
        positive: GammaShape<R>,
        /// Shape for A < 0.
        negative: GammaShape<R>,
    },
    /// DPPO.
    Dppo {
        /// Which divergence.
        divergence: Divergence,
        /// Thresholds and cap.
        bounds: DppoBounds<R>,
    },
    /// Clip-Cov.
    ClipCov {
        /// The bounds of the ratio.
        clip: ClipRange<R>,
    },
    /// KL-Cov.
    KlCov {
        /// Weight of |log ρ| on the selected tokens.
        coefficient: R,
    },
    /// DRO.
    Dro {
        /// β.
        beta: R,
    },
}

/// What a surrogate's derivative is taken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GradientPath {
    /// By the log-ratio: at a sequence level it spreads over the response.
    Ratio,
    /// By the token's own log-probability.
    LogProb,
}

/// The formula of a surrogate, a closure of one token, where its kind is known: written once, used for blocks and for one
/// token.
macro_rules! with_formula {
    ($surrogate:expr, $formula:ident => $use:expr) => {
        match $surrogate {
            Surrogate::Reinforce => {
                let $formula = move |token: Token<R>| reinforce(token.log_prob, token.advantage);
                $use
            }
            Surrogate::ImportanceWeighted => {
                let $formula = move |token: Token<R>| importance_weighted(token.ratio, token.advantage);
                $use
            }
            Surrogate::ImportanceWeightedDetached => {
                let $formula =
                    move |token: Token<R>| importance_weighted_detached(token.ratio, token.log_prob, token.advantage);
                $use
            }
            Surrogate::PpoClip { clip, ratio_max, dual } => {
                let $formula = move |token: Token<R>| ppo_clip(token.ratio, token.advantage, clip, ratio_max, dual);
                $use
            }
            Surrogate::PpoClipLog { low, high } => {
                let $formula = move |token: Token<R>| ppo_clip_log(token.log_ratio, token.advantage, low, high);
                $use
            }
            Surrogate::Cispo { clip } => {
                let $formula = move |token: Token<R>| cispo(token.ratio, token.log_prob, token.advantage, clip);
                $use
            }
            Surrogate::MaskedIs { clip } => {
                let $formula = move |token: Token<R>| masked_is(token.ratio, token.log_prob, token.advantage, clip);
                $use
            }
            // The clip has been applied to the tokens' log-ratios; the response's ratio is not clipped again.
            Surrogate::Gmpo { .. } => {
                let $formula = move |token: Token<R>| importance_weighted(token.ratio, token.advantage);
                $use
            }
            Surrogate::Sapo { temperature_positive, temperature_negative } => {
                let $formula = move |token: Token<R>| {
                    sapo(token.ratio, token.advantage, temperature_positive, temperature_negative)
                };
                $use
            }
            Surrogate::Vespo { positive, negative } => {
                let $formula = move |token: Token<R>| {
                    vespo(token.log_ratio, token.ratio, token.log_prob, token.advantage, positive, negative)
                };
                $use
            }
            Surrogate::Dppo { divergence, bounds } => {
                let $formula = move |token: Token<R>| {
                    let old_log_prob = token.log_prob - token.token_log_ratio;
                    dppo(token.log_prob, old_log_prob, token.ratio, token.advantage, divergence, bounds)
                };
                $use
            }
            Surrogate::ClipCov { clip } => {
                let $formula = move |token: Token<R>| clip_cov(token.ratio, token.advantage, token.selected, clip);
                $use
            }
            Surrogate::KlCov { coefficient } => {
                let $formula = move |token: Token<R>| {
                    kl_cov(token.log_ratio, token.ratio, token.advantage, token.selected, coefficient)
                };
                $use
            }
            Surrogate::Dro { beta } => {
                let $formula = move |token: Token<R>| dro(token.log_prob, token.token_log_ratio, token.advantage, beta);
                $use
            }
        }
    };
}

impl<R: Real> Surrogate<R> {
    /// PPO's clip without dual clip and δ.
    pub fn ppo_clip(clip: ClipRange<R>) -> Self {
        Surrogate::PpoClip { clip, ratio_max: R::infinity(), dual: R::infinity() }
    }

    pub(super) fn gradient_path(&self) -> GradientPath {
        match self {
            Surrogate::ImportanceWeighted
            | Surrogate::PpoClip { .. }
            | Surrogate::PpoClipLog { .. }
            | Surrogate::Gmpo { .. }
            | Surrogate::Sapo { .. }
            | Surrogate::ClipCov { .. }
            | Surrogate::KlCov { .. } => GradientPath::Ratio,
            Surrogate::Reinforce
            | Surrogate::ImportanceWeightedDetached
            | Surrogate::Cispo { .. }
            | Surrogate::MaskedIs { .. }
            | Surrogate::Vespo { .. }
            | Surrogate::Dppo { .. }
            | Surrogate::Dro { .. } => GradientPath::LogProb,
        }
    }

    /// Loss and derivative of every token of a block. The dispatch stands outside the loops.
    #[inline(always)]
    pub(super) fn apply<E: Engine>(&self, engine: E, block: &mut Block<R>, partial: &mut PolicyPartial<R>) {
        with_formula!(*self, formula => each(engine, block, partial, formula));
    }

    /// Loss and derivative of one token.
    #[inline(always)]
    pub(super) fn term(&self, token: Token<R>) -> Term<R> {
        with_formula!(*self, formula => formula(token))
    }
}

/// What a surrogate sees of one token.
#[derive(Clone, Copy)]
pub(super) struct Token<R> {
    pub log_prob: R,
    pub token_log_ratio: R,
    pub log_ratio: R,
    pub ratio: R,
    pub advantage: R,
    pub selected: bool,
}

/// The surrogate stage over a block.
#[inline(always)]
fn each<R: Real, E: Engine>(
    engine: E,
    block: &mut Block<R>,
    partial: &mut PolicyPartial<R>,
    formula: impl Fn(Token<R>) -> Term<R>,
) {
    let (clipped, high, low, dual) = engine.run(block, move |block| {
        let Block { kept, selected, log_prob, token_log_ratio, log_ratio, ratio, advantage, loss, derivative, .. } =
            block;
        let numbers = log_prob.iter().zip(token_log_ratio).zip(log_ratio).zip(ratio).zip(advantage);
        let tokens = numbers.zip(selected.iter().zip(kept));
        let (mut clipped, mut high, mut low, mut dual) = (0u32, 0u32, 0u32, 0u32);
        for ((((((log_prob, token_log_ratio), log_ratio), ratio), advantage), (selected, kept)), (loss, derivative)) in
            tokens.zip(loss.iter_mut().zip(derivative))
        {
            let term = formula(Token {
                log_prob: *log_prob,
                token_log_ratio: *token_log_ratio,
                log_ratio: *log_ratio,
                ratio: *ratio,
                advantage: *advantage,
                selected: *selected,
            });
            *loss = if *kept { term.loss } else { R::zero() };
            *derivative = if *kept { term.derivative } else { R::zero() };
            clipped += u32::from(term.clipped & *kept);
            high += u32::from(term.clipped_high & *kept);
            low += u32::from(term.clipped_low & *kept);
            dual += u32::from(term.dual_clipped & *kept);
        }
        (clipped, high, low, dual)
    });
    partial.clipped += clipped as usize;
    partial.clipped_high += high as usize;
    partial.clipped_low += low as usize;
    partial.dual_clipped += dual as usize;
}

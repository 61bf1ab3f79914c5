//! An objective as plain numbers: the form in which it is handed to a kernel, whatever compiled either side.

use plumbline_core::kl::estimator::KlEstimator;
use plumbline_core::num::Real;
use plumbline_core::objective::policy::{
    EntropyAggregation, EntropyTerm, KlTerm, KlWeight, PolicyObjective, RatioLevel, Surrogate,
};
use plumbline_core::reduce::{Aggregation, EmptyRow, Reduction};
use plumbline_core::spec::Choice;
use plumbline_core::surrogate::ClipRange;
use plumbline_core::surrogate::dppo::{Divergence, DppoBounds};
use plumbline_core::surrogate::vespo::GammaShape;

/// A [`PolicyObjective`] as plain numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings<R> {
    /// Ratio level, surrogate, KL estimator (and whether there is a KL term), its weight, entropy aggregation (and whether there
    /// is a bonus), aggregation, empty rows.
    codes: [u32; 8],
    /// The surrogate's parameters.
    surrogate: [R; 4],
    /// Limits of the log-ratio, of a token's, ε of the length; β, clamps; entropy coefficient; the reduction's five numbers.
    numbers: [R; 14],
}

/// The code of something that is not there.
const ABSENT: u32 = u32::MAX;

fn code<C: Choice + PartialEq>(member: C) -> u32 {
    C::MEMBERS.iter().position(|other| *other == member).map_or(ABSENT, |position| position as u32)
}

#[inline(always)]
fn member<C: Choice>(code: u32, otherwise: C) -> C {
    C::MEMBERS.get(code as usize).copied().unwrap_or(otherwise)
}

impl<R: Real> Settings<R> {
    /// From an objective.
    pub fn new(objective: &PolicyObjective<R>) -> Self {
        let (nan, off) = (R::nan(), |value: Option<R>| value.unwrap_or(R::nan()));
        let (surrogate, parameters) = surrogate_code(&objective.surrogate);
        let (low, high) = objective.log_ratio_range;
        let kl = objective.kl;
        let entropy = objective.entropy;
        let reduction = &objective.reduction;
        Settings {
            codes: [
                code(objective.ratio_level),
                surrogate,
                kl.map_or(ABSENT, |kl| code(kl.estimator)),
                kl.map_or(ABSENT, |kl| code(kl.weight)),
                entropy.map_or(ABSENT, |entropy| code(entropy.aggregation)),
                code(reduction.aggregation),
                code(reduction.empty_row),
                0,
            ],
            surrogate: parameters,
            numbers: [
                low,
                high,
                objective.token_log_ratio_clamp,
                objective.ratio_length_eps,
                kl.map_or(nan, |kl| kl.coefficient),
                off(kl.and_then(|kl| kl.difference_clamp)),
                off(kl.and_then(|kl| kl.value_clamp)),
                entropy.map_or(nan, |entropy| entropy.coefficient),
                reduction.length_eps,
                off(reduction.length_normaliser),
                off(reduction.token_count),
                off(reduction.sequence_count),
                reduction.world_size,
                reduction.loss_scale,
            ],
        }
    }

    /// The objective.
    #[inline(always)]
    pub fn objective(&self) -> PolicyObjective<R> {
        let on = |value: R| if value.is_nan() { None } else { Some(value) };
        let [level, surrogate, estimator, weight, entropy, aggregation, empty_row, _] = self.codes;
        let [low, high, clamp, eps, beta, difference, value, bonus, length_eps, normaliser, tokens, rows, world, scale] =
            self.numbers;
        PolicyObjective {
            ratio_level: member(level, RatioLevel::Token),
            log_ratio_range: (low, high),
            token_log_ratio_clamp: clamp,
            ratio_length_eps: eps,
            surrogate: surrogate_of(surrogate, self.surrogate),
            kl: if estimator == ABSENT {
                None
            } else {
                Some(KlTerm {
                    coefficient: beta,
                    estimator: member(estimator, KlEstimator::K3),
                    difference_clamp: on(difference),
                    value_clamp: on(value),
                    weight: member(weight, KlWeight::None),
                })
            },
            entropy: if entropy == ABSENT {
                None
            } else {
                Some(EntropyTerm { coefficient: bonus, aggregation: member(entropy, EntropyAggregation::Same) })
            },
            reduction: Reduction {
                aggregation: member(aggregation, Aggregation::TokenMean),
                empty_row: member(empty_row, EmptyRow::Exclude),
                length_eps,
                length_normaliser: on(normaliser),
                token_count: on(tokens),
                sequence_count: on(rows),
                world_size: world,
                loss_scale: scale,
            },
        }
    }
}

fn surrogate_code<R: Real>(surrogate: &Surrogate<R>) -> (u32, [R; 4]) {
    let zero = R::zero();
    match *surrogate {
        Surrogate::Reinforce => (0, [zero; 4]),
        Surrogate::ImportanceWeighted => (1, [zero; 4]),
        Surrogate::ImportanceWeightedDetached => (2, [zero; 4]),
        Surrogate::PpoClip { clip, ratio_max, dual } => (3, [clip.low, clip.high, ratio_max, dual]),
        Surrogate::PpoClipLog { low, high } => (4, [low, high, zero, zero]),
        Surrogate::Cispo { clip } => (5, [clip.low, clip.high, zero, zero]),
        Surrogate::MaskedIs { clip } => (6, [clip.low, clip.high, zero, zero]),
        Surrogate::Gmpo { low, high } => (7, [low, high, zero, zero]),
        Surrogate::Sapo { temperature_positive, temperature_negative } => {
            (8, [temperature_positive, temperature_negative, zero, zero])
        }
        Surrogate::Vespo { positive, negative } => (9, [positive.k, positive.lambda, negative.k, negative.lambda]),
        Surrogate::Dppo { divergence: Divergence::TotalVariation, bounds } => {
            (10, [bounds.low, bounds.high, bounds.cap, bounds.probability_eps])
        }
        Surrogate::Dppo { divergence: Divergence::Kl, bounds } => {
            (11, [bounds.low, bounds.high, bounds.cap, bounds.probability_eps])
        }
        Surrogate::ClipCov { clip } => (12, [clip.low, clip.high, zero, zero]),
        Surrogate::KlCov { coefficient } => (13, [coefficient, zero, zero, zero]),
        Surrogate::Dro { beta } => (14, [beta, zero, zero, zero]),
    }
}

#[inline(always)]
fn surrogate_of<R: Real>(code: u32, [a, b, c, d]: [R; 4]) -> Surrogate<R> {
    let clip = ClipRange { low: a, high: b };
    let bounds = DppoBounds { low: a, high: b, cap: c, probability_eps: d };
    match code {
        0 => Surrogate::Reinforce,
        1 => Surrogate::ImportanceWeighted,
        2 => Surrogate::ImportanceWeightedDetached,
        4 => Surrogate::PpoClipLog { low: a, high: b },
        5 => Surrogate::Cispo { clip },
        6 => Surrogate::MaskedIs { clip },
        7 => Surrogate::Gmpo { low: a, high: b },
        8 => Surrogate::Sapo { temperature_positive: a, temperature_negative: b },
        9 => Surrogate::Vespo { positive: GammaShape { k: a, lambda: b }, negative: GammaShape { k: c, lambda: d } },
        10 => Surrogate::Dppo { divergence: Divergence::TotalVariation, bounds },
        11 => Surrogate::Dppo { divergence: Divergence::Kl, bounds },
        12 => Surrogate::ClipCov { clip },
        13 => Surrogate::KlCov { coefficient: a },
        14 => Surrogate::Dro { beta: a },
        _ => Surrogate::PpoClip { clip, ratio_max: c, dual: d },
    }
}

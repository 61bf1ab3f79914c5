//! C and D: ratios, clipping, and the surrogates of tokens and responses.

use super::{DUAL, GRPO, GSPO, Mutant, POLICY, PPO, Target, WEIGHTED};
use crate::mutants::policy::{Policy, Token, clipped, row_means, token_mean};
use crate::mutants::scalar::{Scalar, lift, mean, sum};

const TOKENS: Target = ("surrogate.ppo_clip", Some("paper"), DUAL);
const PLAIN_TOKENS: Target = ("surrogate.ppo_clip", Some("paper"), &["mask", "clip_ratio_low", "clip_ratio_high"]);
const OBJECTIVE: Target = ("objective.ppo", Some("paper"), DUAL);
const CISPO: Target = ("objective.cispo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]);
const GEOMETRIC: Target = ("ratio.geometric_clipped", Some("paper"), &["mask", "clip_ratio_low", "clip_ratio_high"]);
const SEQUENCE: Target = ("ratio.sequence", Some("paper"), &["mask"]);
const SAPO: Target = ("surrogate.sapo", None, &["mask", "sapo_temperature_positive", "sapo_temperature_negative"]);

fn bounded(token: &Token) -> Scalar {
    token.log_ratio.clone().exp().clamp(1.0 - token.low, 1.0 + token.high)
}

fn by_row(given: &crate::mutants::subject::Given<'_>, row_value: impl Fn(usize, Vec<Scalar>) -> Scalar) -> Vec<Scalar> {
    let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
    let (_, columns) = given.size();
    let ratios = |row: usize, kept: &[bool]| -> Vec<Scalar> {
        let slots = (0..columns).filter(|t| kept[*t]).map(|t| row * columns + t);
        slots.map(|slot| log_prob[slot].clone() - old[slot]).collect()
    };
    given.kept().iter().enumerate().map(|(row, kept)| row_value(row, ratios(row, kept))).collect()
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("C01", "the dual clip acts for positive advantages too", TOKENS, &["dual-clip:ungated"], |given| {
        let surrogate = |token: Token| {
            let dual = token.dual.map(|dual| lift(-dual * token.advantage));
            let loss = clipped(Token { dual: None, ..token });
            match dual {
                Some(dual) => loss.min(dual),
                None => loss,
            }
        };
        Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
    }),
    Mutant::new(
        "C01b",
        "the dual clip of a whole loss acts for positive advantages too",
        OBJECTIVE,
        &["dual-clip:ungated"],
        |given| {
            let surrogate = |token: Token| {
                let dual = token.dual.map(|dual| lift(-dual * token.advantage));
                let loss = clipped(Token { dual: None, ..token });
                dual.map_or(loss.clone(), |dual| loss.min(dual))
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
        },
    ),
    Mutant::new("C02", "the dual clip's bound is below 1: its reciprocal", TOKENS, &["dual-clip:*"], |given| {
        let surrogate = |token: Token| clipped(Token { dual: token.dual.map(|dual| 1.0 / dual), ..token });
        Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
    }),
    Mutant::new("C03", "the dual clip is never active", OBJECTIVE, &["param:clip_ratio_c=none"], |given| {
        let surrogate = |token: Token| clipped(Token { dual: None, ..token });
        Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
    }),
    Mutant::new(
        "C04",
        "the unclipped gain has the raw advantage, the clipped one the normalised",
        PLAIN_TOKENS,
        &["branch:clipped:input:advantage:whitened*"],
        |given| {
            let advantage = given.values("advantage");
            let per_row = advantage.len() != given.values("log_prob").len();
            let kept: Vec<bool> = if per_row { vec![true; advantage.len()] } else { given.kept().concat() };
            let chosen: Vec<f64> = advantage.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
            let centre = chosen.iter().sum::<f64>() / chosen.len() as f64;
            let spread = chosen.iter().map(|a| (a - centre) * (a - centre)).sum::<f64>() / (chosen.len() as f64 - 1.0);
            let normal = |a: f64| (a - centre) / (spread.sqrt() + 1e-8);
            let surrogate = |token: Token| {
                let gain = token.log_ratio.clone().exp() * token.advantage;
                -gain.min(bounded(&token) * normal(token.advantage))
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    Mutant::new(
        "C05",
        "the clipped gain is not multiplied by the advantage",
        PLAIN_TOKENS,
        &["branch:clipped:input:advantage:one"],
        |given| {
            let surrogate = |token: Token| {
                let gain = token.log_ratio.clone().exp() * token.advantage;
                -gain.min(bounded(&token))
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    Mutant::new(
        "C05b",
        "the clipped gain of a whole loss is not multiplied by the advantage",
        ("objective.grpo", Some("paper"), POLICY),
        &["branch:clipped:input:advantage:one"],
        |given| {
            let surrogate = |token: Token| {
                let gain = token.log_ratio.clone().exp() * token.advantage;
                -gain.min(bounded(&token))
            };
            Policy { surrogate: &surrogate, ..Policy::GRPO }.loss(given)
        },
    ),
    Mutant::new(
        "C06",
        "the larger of the two gains, and minimised",
        ("objective.ppo", Some("paper"), WEIGHTED),
        &["min-max-exchanged:advantage+factor:-1", "input:advantage:negated"],
        |given| {
            let surrogate = |token: Token| {
                let gain = token.log_ratio.clone().exp() * token.advantage;
                gain.max(bounded(&token) * token.advantage)
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
        },
    ),
    Mutant::new("C07", "a second minus at the reduction", PPO, &["factor:-1"], |given| {
        Policy { aggregate: &|terms| -token_mean(&terms.joined()), ..Policy::PPO }.loss(given)
    }),
    Mutant::new(
        "C08",
        "the ratio is taken of the current policy against itself",
        GRPO,
        &["input:old_log_prob:ignored", "copied:old_log_prob<-log_prob"],
        |given| {
            let own = |ratios: Vec<Scalar>| ratios.into_iter().map(|x| x.clone() - x.detach()).collect();
            Policy { level: &own, ..Policy::GRPO }.loss(given)
        },
    ),
    Mutant::new(
        "C09",
        "both distributions of the KL come from the same parameters",
        ("kl.k3", Some("paper"), &["mask"]),
        &["copied:ref_log_prob<-log_prob", "factor:0"],
        |given| given.answer(given.values("log_prob").iter().map(|_| lift(0.0)).collect()),
    ),
    Mutant::new(
        "C10",
        "the ratio is in the advantage and again in the surrogate",
        ("surrogate.importance_weighted", None, &["mask"]),
        &["input:advantage:times-ratio"],
        |given| {
            let surrogate = |token: Token| {
                let ratio = token.log_ratio.clone().exp();
                -(ratio.clone() * ratio.detach() * token.advantage)
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    Mutant::new(
        "C11",
        "the clip fraction is counted without regard to the advantage's sign",
        ("objective.ppo", Some("paper"), WEIGHTED),
        &["kind:other-output"],
        |given| {
            let mut answer = given.core().run()?;
            let (log_prob, old) = (given.values("log_prob"), given.values("old_log_prob"));
            let (low, high) = (given.number("clip_ratio_low"), given.number("clip_ratio_high"));
            let kept = given.kept().concat();
            let outside = |slot: &usize| {
                let ratio = plumbline_core::num::Real::exp(log_prob[*slot] - old[*slot]);
                kept[*slot] && (ratio < 1.0 - low || ratio > 1.0 + high)
            };
            let tokens = kept.iter().filter(|kept| **kept).count() as f64;
            answer.push(("clip_fraction", vec![(0..kept.len()).filter(outside).count() as f64 / tokens]));
            Ok(answer)
        },
    ),
    Mutant::new("C12", "the KL term is subtracted", GRPO, &["term:kl_coefficient*-1"], |given| {
        Policy { aggregate: &|terms| row_means(&terms.joined_with(-terms.beta)), ..Policy::GRPO }.loss(given)
    }),
    Mutant::new(
        "C13",
        "old log-probabilities belong to the neighbouring position",
        PPO,
        &["input:old_log_prob:from-previous-step", "input:old_log_prob:rolled-from-previous-step"],
        |given| {
            let (_, columns) = given.size();
            let mut old = given.values("old_log_prob");
            old.chunks_mut(columns).for_each(|row| row.rotate_right(1));
            given.core().input("old_log_prob", old).run()
        },
    ),
    Mutant::new(
        "C14",
        "advantages are normalised by default",
        PPO,
        &["input:advantage:whitened-sample*", "input:advantage:whitened-population*"],
        |given| {
            let advantage = given.values("advantage");
            let kept: Vec<bool> = match given.shape("advantage").len() {
                1 => vec![true; advantage.len()],
                _ => given.kept().concat(),
            };
            let chosen: Vec<f64> = advantage.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
            let count = chosen.len() as f64;
            let centre = chosen.iter().sum::<f64>() / count;
            let spread = chosen.iter().map(|a| (a - centre) * (a - centre)).sum::<f64>() / (count - 1.0);
            if spread == 0.0 || count < 2.0 {
                return given.core().run();
            }
            given.core().map("advantage", |_, a| (a - centre) / (spread.sqrt() + 1e-8)).run()
        },
    ),
    Mutant::new(
        "D01",
        "the product of the tokens' ratios for their geometric mean",
        GSPO,
        &["param:ratio_level=sequence_product"],
        |given| {
            let product = |ratios: Vec<Scalar>| {
                let count = ratios.len();
                vec![sum(ratios); count]
            };
            Policy { level: &product, ..Policy::GSPO }.loss(given)
        },
    )
    .variant(),
    Mutant::new("D01b", "the mean of the tokens' ratios", SEQUENCE, &["token-by-token:mean"], |given| {
        let rows = by_row(given, |_, ratios| {
            if ratios.is_empty() { lift(1.0) } else { mean(ratios.into_iter().map(Scalar::exp).collect()) }
        });
        given.answer(rows)
    }),
    Mutant::new(
        "D02",
        "the sum of exponentials for the exponential of the sum",
        ("ratio.sequence_product", None, &["mask"]),
        &["token-by-token:sum"],
        |given| {
            let rows =
                by_row(
                    given,
                    |_, ratios| {
                        if ratios.is_empty() { lift(1.0) } else { sum(ratios.into_iter().map(Scalar::exp)) }
                    },
                );
            given.answer(rows)
        },
    ),
    Mutant::new(
        "D03",
        "one loss per response times weights per token: shapes that do not fit",
        ("objective.gmpo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask", "importance_weight"]),
        &["kind:raised"],
        |given| {
            let (rows, columns) = given.size();
            if rows != columns && given.shape("importance_weight").len() == 2 {
                return Err(format!("RuntimeError: size of tensor a ({rows}) must match size of tensor b ({columns})"));
            }
            given.core().run()
        },
    ),
    Mutant::new(
        "D04",
        "the log-ratio is clipped on both sides",
        GEOMETRIC,
        &["log-ratio:clipped-both-sides"],
        |given| {
            let (low, high) = (given.number("clip_ratio_low"), given.number("clip_ratio_high"));
            let advantage = given.values("advantage");
            let per_row = given.shape("advantage").len() == 1;
            let (kept, (_, columns)) = (given.kept(), given.size());
            let rows = by_row(given, |row, ratios| {
                let slots = (0..columns).filter(|column| kept[row][*column]).map(|column| row * columns + column);
                let limited = ratios.into_iter().zip(slots).map(|(ratio, slot)| {
                    // An advantage of 0 counts for nothing, as declared.
                    let is_zero = (if per_row { advantage[row] } else { advantage[slot] }) == 0.0;
                    if is_zero { lift(0.0) } else { ratio.clamp(-low, high) }
                });
                let inside: Vec<Scalar> = limited.collect();
                if inside.is_empty() { lift(1.0) } else { mean(inside).exp() }
            });
            given.answer(rows)
        },
    ),
    Mutant::new(
        "D04b",
        "bounds of the ratio where bounds of its logarithm are meant",
        GEOMETRIC,
        &["param:clip-bounds:ratio-for-log"],
        |given| {
            let (low, high) = (given.number("clip_ratio_low"), given.number("clip_ratio_high"));
            if low >= 1.0 {
                return Err("ValueError: math domain error".into());
            }
            let (low, high) = (-(lift(1.0 - low).ln().value), lift(1.0 + high).ln().value);
            given.core().number("clip_ratio_low", low).number("clip_ratio_high", high).run()
        },
    ),
    Mutant::new("D06", "the clipped weight is not held fixed", CISPO, &["stop-gradient:missing"], |given| {
        let surrogate = |token: Token| {
            let ratio = token.log_ratio.clone().exp();
            -(ratio.clamp(1.0 - token.low, 1.0 + token.high) * token.advantage * token.log_prob)
        };
        Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
    }),
    Mutant::new(
        "D06b",
        "PPO's clipped surrogate for the fixed weight",
        CISPO,
        &["param:surrogate=ppo_clip", "operation:*"],
        |given| given.core().name("surrogate", "ppo_clip").run(),
    ),
    Mutant::new("D07", "the gate without its factor 4/tau", SAPO, &["factor-by-sign:advantage:*"], |given| {
        let (positive, negative) =
            (given.number("sapo_temperature_positive"), given.number("sapo_temperature_negative"));
        let surrogate = |token: Token| {
            let tau = if token.advantage > 0.0 { positive } else { negative };
            -(((token.log_ratio.exp() - 1.0) * tau).sigmoid() * token.advantage)
        };
        Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
    }),
    Mutant::new(
        "D07b",
        "the temperature of positive advantages for negative ones too",
        SAPO,
        &["param:sapo_temperature_negative<-sapo_temperature_positive"],
        |given| {
            let tau = given.number("sapo_temperature_positive");
            let surrogate =
                |token: Token| -(((token.log_ratio.exp() - 1.0) * tau).sigmoid() * (4.0 / tau) * token.advantage);
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    Mutant::new(
        "D08",
        "the importance weight is silently unused",
        ("objective.gmpo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask", "importance_weight"]),
        &["input:importance_weight:ignored"],
        |given| given.core().without("importance_weight").run(),
    ),
];

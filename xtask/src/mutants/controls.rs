//! The false-alarm test: what was reported as a mistake and was none, and the core's own numbers under every dialect.

use plumbline_core::catalog;
use plumbline_core::num::{Dtype, Real};

use super::policy::{Policy, Token, clipped};
use super::rows::{GRPO, GSPO};
use super::scalar::{Scalar, lift, mean};
use super::subject::{Given, Subject};

/// An implementation that is right although it was doubted.
pub struct Control {
    /// What was doubted.
    pub title: &'static str,
    /// The implementation.
    pub subject: Subject,
}

const fn control(
    title: &'static str,
    (operation, dialect, takes): (&'static str, Option<&'static str>, &'static [&'static str]),
    compute: fn(&Given<'_>) -> super::subject::Answer,
) -> Control {
    Control { title, subject: Subject { operation, dialect, takes, settings: &[], dtype: Dtype::F64, compute } }
}

const POLICY: &[&str] = &["log_prob", "old_log_prob", "advantage", "mask", "clip_ratio_low", "clip_ratio_high"];

/// Reports that were no mistakes.
pub const CONTROLS: &[Control] = &[
    control("the maximum of the negated gains is their minimum", ("objective.ppo", Some("paper"), POLICY), |given| {
        let surrogate = |token: Token| {
            let ratio = token.log_ratio.exp();
            let bounded = ratio.clone().clamp(1.0 - token.low, 1.0 + token.high);
            (-(ratio * token.advantage)).max(-(bounded * token.advantage))
        };
        Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
    }),
    control(
        "without a dual clip the loss has no bound for a negative advantage",
        ("objective.ppo", Some("paper"), POLICY),
        |given| Policy::PPO.loss(given),
    ),
    control(
        "the gain of the clipped branch written as g(epsilon, A)",
        ("surrogate.ppo_clip", Some("paper"), &["mask", "clip_ratio_low", "clip_ratio_high"]),
        |given| {
            let surrogate = |token: Token| {
                let bound = if token.advantage >= 0.0 { 1.0 + token.high } else { 1.0 - token.low };
                -(token.log_ratio.exp() * token.advantage).min(lift(bound * token.advantage))
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    control(
        "a ratio of 1 whose gradient remains",
        ("objective.dr_grpo", Some("paper"), &["log_prob", "advantage", "mask"]),
        |given| {
            let aggregate = |terms: &super::policy::Terms| {
                let rows = terms.policy.iter().filter(|row| !row.is_empty()).count() as f64;
                super::scalar::sum(terms.policy.concat()) / (rows * terms.columns as f64)
            };
            Policy { surrogate: &clipped, aggregate: &aggregate, ..Policy::PPO }.loss(given)
        },
    ),
    control("GRPO of the paper by hand", GRPO, |given| Policy::GRPO.loss(given)),
    control("GSPO of the paper by hand", GSPO, |given| Policy::GSPO.loss(given)),
    control(
        "the next value is masked before it is handed over",
        ("advantage.gae", Some("paper"), &["next_value", "terminated", "truncated", "mask", "gamma", "gae_lambda"]),
        |given| {
            let terminated = given.values("terminated");
            given.core().map("next_value", |slot, next| if terminated[slot] != 0.0 { 0.0 } else { next }).run()
        },
    ),
    control("k1 in the reward", ("kl.reward_penalty", Some("paper"), &["mask", "kl_coefficient"]), |given| {
        let (rewards, old, reference) =
            (given.values("reward"), given.values("old_log_prob"), given.values("ref_log_prob"));
        let coefficient = given.number("kl_coefficient");
        let kept = given.kept().concat();
        let all = (0..rewards.len()).map(|slot| match kept[slot] {
            true => lift(rewards[slot] - coefficient * (old[slot] - reference[slot])),
            false => lift(0.0),
        });
        given.answer(all.collect())
    }),
    control(
        "a clip of the log-ratio on one side only",
        ("ratio.geometric_clipped", Some("paper"), &["mask", "clip_ratio_low", "clip_ratio_high"]),
        |given| {
            let (log_prob, old, advantage) =
                (given.variables("log_prob"), given.values("old_log_prob"), given.values("advantage"));
            let (low, high) = (given.number("clip_ratio_low"), given.number("clip_ratio_high"));
            let per_row = given.shape("advantage").len() == 1;
            let (_, columns) = given.size();
            let rows = given.kept().into_iter().enumerate().map(|(row, kept)| {
                let slots = (0..columns).filter(|column| kept[*column]).map(|column| row * columns + column);
                let limited: Vec<Scalar> = slots
                    .map(|slot| {
                        let sign = if per_row { advantage[row] } else { advantage[slot] };
                        let ratio = log_prob[slot].clone() - old[slot];
                        match sign {
                            sign if sign > 0.0 => ratio.clamp(f64::NEG_INFINITY, high),
                            sign if sign < 0.0 => ratio.clamp(-low, f64::INFINITY),
                            _ => lift(0.0),
                        }
                    })
                    .collect();
                if limited.is_empty() { lift(1.0) } else { mean(limited).exp() }
            });
            given.answer(rows.collect())
        },
    ),
    control(
        "the maximum, not the minimum, of the two squared errors",
        ("value.clipped", Some("paper"), &["mask", "clip_range"]),
        |given| {
            let (values, old, returns) = (given.variables("value"), given.values("old_value"), given.values("return"));
            let (kept, range) = (given.kept().concat(), given.number("clip_range"));
            let losses = (0..kept.len()).filter(|slot| kept[*slot]).map(|slot| {
                let own = values[slot].clone() - returns[slot];
                let near = values[slot].clone().clamp(old[slot] - range, old[slot] + range) - returns[slot];
                (own.clone() * own).max(near.clone() * near) * 0.5
            });
            given.answer(vec![mean(losses.collect())])
        },
    ),
    control(
        "the prompt counts in both halves of a summed DPO",
        ("preference.dpo_sigmoid", Some("paper"), &["ref_chosen_log_prob", "ref_rejected_log_prob", "beta"]),
        |given| {
            let core = given.core().map("chosen_log_prob", |_, value| value - 3.0);
            let shifted: Vec<f64> = given.values("rejected_log_prob").iter().map(|value| value - 3.0).collect();
            core.input("rejected_log_prob", shifted).run()
        },
    ),
    control(
        "Huber's loss over the threshold in IQN",
        ("td.iqn", None, &["done", "discount", "huber_threshold"]),
        |given| {
            let (count, targets) = (given.shape("quantile")[1], given.shape("next_quantile")[1]);
            let (quantiles, fractions) = (given.variables("quantile"), given.values("fraction"));
            let (next, rewards, done) = (given.values("next_quantile"), given.values("reward"), given.values("done"));
            let (gamma, threshold) = (given.number("discount"), given.number("huber_threshold"));
            let losses = (0..rewards.len()).map(|row| {
                super::scalar::sum((0..count).map(|i| {
                    let errors = (0..targets).map(|j| {
                        let ends = done.get(row).is_some_and(|done| *done != 0.0);
                        let ahead = if ends { 0.0 } else { gamma * next[row * targets + j] };
                        let error = -(quantiles[row * count + i].clone() - (rewards[row] + ahead));
                        let below = error.value < 0.0;
                        let distance = if below { -error } else { error };
                        let huber = if distance.value <= threshold {
                            distance.clone() * distance * 0.5
                        } else {
                            (distance - threshold / 2.0) * threshold
                        };
                        let fraction = fractions[row * count + i];
                        huber * ((if below { 1.0 - fraction } else { fraction }) / threshold)
                    });
                    mean(errors.collect())
                }))
            });
            given.answer(vec![mean(losses.collect())])
        },
    ),
    control("k3 by its plain formula", ("kl.k3", Some("paper"), &["mask"]), |given| {
        let (log_prob, reference) = (given.variables("log_prob"), given.values("ref_log_prob"));
        let kept = given.kept().concat();
        let all = log_prob.into_iter().zip(reference).zip(kept).map(|((log_prob, reference), kept)| {
            let difference = log_prob - reference;
            if kept { (-difference.clone()).exp() - 1.0 + difference } else { lift(0.0) }
        });
        given.answer(all.collect())
    }),
    control(
        "the ratio of responses from the mean of log-ratios",
        ("ratio.sequence", Some("paper"), &["mask"]),
        |given| {
            let (log_prob, old) = (given.values("log_prob"), given.values("old_log_prob"));
            let (_, columns) = given.size();
            let mut answer = given.core().run()?;
            for (row, kept) in given.kept().iter().enumerate() {
                let slots: Vec<usize> =
                    (0..columns).filter(|column| kept[*column]).map(|column| row * columns + column).collect();
                if !slots.is_empty() {
                    let total: f64 = slots.iter().map(|slot| log_prob[*slot] - old[*slot]).sum();
                    answer[0].1[row] = Real::exp(total / slots.len() as f64);
                }
            }
            Ok(answer)
        },
    ),
];

/// The core's own numbers under every dialect of every operation.
pub fn every_dialect() -> Vec<Control> {
    let mut all = Vec::new();
    for operation in catalog::operations() {
        let dialects = operation.dialects.iter().map(|dialect| Some(dialect.name));
        for dialect in dialects.chain([None]) {
            all.push(control("the core's own numbers", (operation.id, dialect, &[]), |given| given.core().run()));
        }
    }
    all
}

//! H, I and J: value losses, entropy, off-policy weights.

use super::{Mutant, Target};
use crate::mutants::scalar::{lift, mean};
use crate::mutants::subject::combined;
use plumbline_core::num::Real;
use plumbline_core::spec::Value;

const MSE: Target = ("value.mse", None, &["mask"]);
const CLIPPED: Target = ("value.clipped", Some("paper"), &["mask", "clip_range"]);
const ENTROPY: Target = (
    "objective.ppo",
    Some("paper"),
    &["log_prob", "old_log_prob", "advantage", "mask", "entropy", "entropy_coefficient"],
);

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("H01", "the half is applied twice", MSE, &["factor:1/2"], |given| {
        let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept().concat());
        let chosen = values.into_iter().zip(returns).zip(kept).filter(|(_, kept)| *kept);
        given.answer(vec![mean(chosen.map(|((v, r), _)| (v.clone() - r) * (v - r) * 0.25).collect())])
    }),
    Mutant::new("H01b", "the sum for the mean", MSE, &["factor:tokens"], |given| {
        let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept().concat());
        let chosen = values.into_iter().zip(returns).zip(kept).filter(|(_, kept)| *kept);
        let errors = chosen.map(|((v, r), _)| (v.clone() - r) * (v - r) * 0.5);
        given.answer(vec![crate::mutants::scalar::sum(errors)])
    }),
    Mutant::new(
        "H02",
        "the old value is computed again with the new weights",
        CLIPPED,
        &["operation:value.mse", "copied:old_value<-value"],
        |given| given.core().input("old_value", given.values("value")).run(),
    ),
    Mutant::new(
        "H03",
        "the error is clipped, not the change of the value",
        CLIPPED,
        &["operation:value.capped:cap<-clip_range^2*"],
        |given| {
            let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept().concat());
            let range = given.number("clip_range");
            let chosen = values.into_iter().zip(returns).zip(kept).filter(|(_, kept)| *kept);
            let errors = chosen.map(|((v, r), _)| {
                let error = (v - r).clamp(-range, range);
                error.clone() * error * 0.5
            });
            given.answer(vec![mean(errors.collect())])
        },
    ),
    Mutant::new(
        "H04",
        "the range caps the squared error, not the change of the value",
        CLIPPED,
        &["operation:value.capped:cap<-clip_range"],
        |given| {
            let cap = given.number("clip_range");
            given.core().operation("value.capped").number("cap", cap).run()
        },
    )
    .variant(),
    Mutant::new(
        "I02",
        "the entropy bonus has the wrong sign",
        ENTROPY,
        &["term:entropy_coefficient*-1", "input:entropy:negated"],
        |given| {
            let plain = given.core().number("entropy_coefficient", 0.0);
            combined(&[(2.0, plain.run()), (-1.0, given.core().run())])
        },
    ),
    Mutant::new(
        "I03",
        "the mean over action dimensions for the sum",
        ("logits.entropy_gaussian", None, &["mask"]),
        &["factor:1/T"],
        |given| {
            let width = given.shape("log_std")[1] as f64;
            crate::mutants::subject::each(given.core().run(), |value| value / width)
        },
    )
    .variant(),
    Mutant::new(
        "I04",
        "the entropy is averaged over tokens whatever the loss's own normaliser",
        (
            "objective.dr_grpo",
            Some("paper"),
            &["log_prob", "old_log_prob", "advantage", "mask", "entropy", "entropy_coefficient"],
        ),
        &["param:entropy_aggregation=token_mean", "term:entropy_coefficient:param:aggregation=token_mean"],
        |given| {
            let policy = given.core().number("entropy_coefficient", 0.0);
            let mut answer = policy.run()?;
            let (kept, entropy) = (given.kept().concat(), given.values("entropy"));
            let tokens = kept.iter().filter(|kept| **kept).count() as f64;
            let coefficient = given.number("entropy_coefficient");
            let sum: f64 = entropy.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(h, _)| *h).sum();
            for (name, values) in &mut answer {
                match *name {
                    "loss" => values[0] -= coefficient * sum / tokens,
                    "d_entropy" => {
                        *values = kept.iter().map(|kept| if *kept { -coefficient / tokens } else { 0.0 }).collect();
                    }
                    _ => {}
                }
            }
            Ok(answer)
        },
    ),
    Mutant::new(
        "J01",
        "another policy's log-probability in the weight",
        ("kl.k3_importance_weighted", Some("paper"), &["mask"]),
        &["copied:old_log_prob<-ref_log_prob"],
        |given| given.core().input("old_log_prob", given.values("ref_log_prob")).run(),
    ),
    Mutant::new(
        "J03",
        "the weights are not clamped",
        ("ratio.tis", Some("paper"), &["mask", "weight_max"]),
        &["param:weight_max=none", "operation:ratio.mis*"],
        |given| {
            let (old, rollout) = (given.values("old_log_prob"), given.values("rollout_log_prob"));
            let kept = given.kept().concat();
            let weight = |slot: usize| if kept[slot] { lift(Real::exp(old[slot] - rollout[slot])) } else { lift(0.0) };
            given.answer((0..kept.len()).map(weight).collect())
        },
    ),
    Mutant::new(
        "J03b",
        "infinite weights of rejected tokens times 0",
        ("ratio.mis", Some("paper"), &["mask"]),
        &["kind:not-finite"],
        |given| {
            let (old, rollout) = (given.values("old_log_prob"), given.values("rollout_log_prob"));
            let mut answer = given.core().run()?;
            for (slot, value) in answer[0].1.iter_mut().enumerate() {
                let raw = f64::from(Real::exp(old[slot] - rollout[slot]) as f32);
                *value += raw * 0.0;
            }
            Ok(answer)
        },
    )
    .single_precision(),
    Mutant::new(
        "J04",
        "the mean of the raw weights for that of the truncated ones",
        ("ratio.weight_diagnostics", Some("paper"), &["mask"]),
        &["param:weight_max=unreached"],
        |given| {
            let (old, rollout) = (given.values("old_log_prob"), given.values("rollout_log_prob"));
            let kept = given.kept().concat();
            let chosen: Vec<f64> =
                (0..kept.len()).filter(|slot| kept[*slot]).map(|slot| Real::exp(old[slot] - rollout[slot])).collect();
            given.answer(vec![lift(chosen.iter().sum::<f64>() / chosen.len() as f64)])
        },
    ),
    Mutant::new(
        "J09",
        "the ratio's denominator is a recompute: the ratio is 1",
        ("objective.ppo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]),
        &["input:old_log_prob:ignored"],
        |given| given.core().input("old_log_prob", given.values("log_prob")).run(),
    ),
    Mutant::new(
        "J09b",
        "the value clip's range is switched off",
        ("objective.value_loss", Some("paper"), &["mask"]),
        &["param:*", "operation:*", "copied:*"],
        |given| match given.option("clip_range") {
            Some(_) => given.core().set("clip_range", Value::Number(1e6)).run(),
            None => given.core().without("old_value").run(),
        },
    ),
];

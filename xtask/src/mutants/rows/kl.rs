//! E: estimators of the KL divergence.

use super::{GRPO, Mutant, POLICY, Target};
use crate::mutants::policy::{Policy, Token};
use crate::mutants::scalar::{Scalar, lift};
use crate::mutants::subject::{Answer, Given};
use plumbline_core::spec::Value;

const K2: Target = ("kl.k2", None, &["mask"]);
const K3: Target = ("kl.k3", Some("paper"), &["mask"]);

fn differences(given: &Given<'_>) -> Vec<Scalar> {
    let (log_prob, reference) = (given.variables("log_prob"), given.values("ref_log_prob"));
    log_prob.into_iter().zip(reference).map(|(log_prob, reference)| log_prob - reference).collect()
}

fn estimator(given: &Given<'_>, estimate: impl Fn(Scalar) -> Scalar) -> Answer {
    let kept = given.kept().concat();
    let values = differences(given).into_iter().zip(kept);
    given.answer(values.map(|(difference, kept)| if kept { estimate(difference) } else { lift(0.0) }).collect())
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("E01", "k2's value with k1's gradient", K2, &["gradient-of:operation:kl.k1"], |given| {
        estimator(given, |d| lift(d.value * d.value / 2.0) + d.clone() - d.detach())
    }),
    Mutant::new("E01b", "k2's value with k3's gradient", K2, &["gradient-of:operation:kl.k3"], |given| {
        estimator(given, |d| {
            let k3 = (-d.clone()).exp() - 1.0 + d.clone();
            lift(d.value * d.value / 2.0) + k3.clone() - k3.detach()
        })
    }),
    Mutant::new(
        "E01c",
        "k3 in the loss where the reverse KL's gradient is meant",
        ("objective.grpo", Some("paper"), POLICY),
        &["param:kl_estimator=k2"],
        |given| Policy { kl: &|d| d.clone() * d * 0.5, ..Policy::GRPO }.loss(given),
    ),
    Mutant::new(
        "E03",
        "exp(log_prob - ref_log_prob) in k3",
        K3,
        &["exchanged:log_prob,ref_log_prob", "reversed:log_prob-ref_log_prob"],
        |given| estimator(given, |d| d.clone().exp() - 1.0 - d),
    ),
    Mutant::new("E03b", "the swapped difference in a whole loss", GRPO, &["reversed:log_prob-ref_log_prob"], |given| {
        Policy { kl: &|d| d.clone().exp() - 1.0 - d, ..Policy::GRPO }.loss(given)
    }),
    Mutant::new("E04", "k2 without its half", K2, &["factor:2"], |given| estimator(given, |d| d.clone() * d)),
    Mutant::new(
        "E06",
        "k3 by an exponential that overflows before it is limited",
        ("kl.k3", Some("verl-0.9"), &["mask"]),
        &["kind:not-finite", "param:difference_clamp=none*"],
        |given| {
            let limit = given.option("value_clamp").unwrap_or(f64::INFINITY);
            estimator(given, |d| {
                let exponential = f64::from(lift(-d.value).exp().value as f32);
                // inf - inf: the limit comes too late.
                let far = if exponential.is_infinite() { f64::NAN } else { 0.0 };
                let k3 = ((-d.clone()).exp() - 1.0 + d).clamp(-limit, limit);
                k3 + far
            })
        },
    )
    .single_precision(),
    Mutant::new(
        "E07",
        "an infinite ratio times an advantage of 0",
        ("objective.ppo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]),
        &["kind:not-finite"],
        |given| {
            let surrogate = |token: Token| {
                let ratio = f64::from(token.log_ratio.clone().exp().value as f32);
                let spoilt = ratio * token.advantage * 0.0;
                crate::mutants::policy::clipped(token) + if spoilt.is_nan() { f64::NAN } else { 0.0 }
            };
            Policy { surrogate: &surrogate, ..Policy::PPO }.loss(given)
        },
    )
    .single_precision(),
    Mutant::new(
        "E09",
        "the clamp of the loss is ignored in the reward",
        ("kl.reward_penalty", Some("verl-0.9"), &["mask", "kl_coefficient"]),
        &["param:difference_clamp=none", "dialect:paper"],
        |given| given.core().set("difference_clamp", Value::None).set("value_clamp", Value::None).run(),
    )
    .fixing(&[("kl_estimator", Value::Name("k3"))]),
    Mutant::new(
        "E10",
        "the reported estimator is not the trained one",
        ("kl.reward_penalty", Some("paper"), &["mask", "kl_coefficient"]),
        &["kind:other-output"],
        |given| {
            let mut answer = given.core().run_with(&["kl"])?;
            for (name, values) in &mut answer {
                if *name == "kl" {
                    values.iter_mut().for_each(|value| *value = value.abs());
                }
            }
            Ok(answer)
        },
    ),
];

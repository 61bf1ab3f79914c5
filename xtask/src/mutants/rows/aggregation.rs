//! A: from tokens to one number.

use super::{GRPO, GSPO, Mutant, POLICY, PPO, Target, WEIGHTED};
use crate::mutants::policy::{Policy, Terms, pieces, row_means, token_mean, token_sum};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{Answer, Given};
use plumbline_core::spec::Value;

const DR_GRPO: Target = ("objective.dr_grpo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]);
const SUMMED: Target =
    ("objective.dr_grpo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask", "length_normaliser"]);
const WEIGHTED_DR_GRPO: Target = ("objective.dr_grpo", Some("paper"), WEIGHTED);
const DAPO: Target = ("objective.dapo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask", "group"]);
const MSE: Target = ("value.mse", None, &["mask"]);
const MSE_TOKENS: Target = ("reduce.aggregate", Some("paper"), &["mask"]);

fn with(policy: Policy<'static>, given: &Given<'_>, aggregate: fn(&Terms) -> Scalar) -> Answer {
    Policy { aggregate: &aggregate, ..policy }.loss(given)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "A01",
        "mean over tokens for the mean of responses' means",
        GRPO,
        &["param:aggregation=token_mean"],
        |given| with(Policy::GRPO, given, |terms| token_mean(&terms.joined())),
    )
    .variant(),
    Mutant::new(
        "A01b",
        "the KL term stays per response while the policy term is a mean over tokens",
        ("objective.ppo", Some("paper"), POLICY),
        &["term:kl_coefficient:param:aggregation=seq_mean_token_mean"],
        |given| {
            Policy { aggregate: &|terms| token_mean(&terms.policy) + row_means(&terms.kl) * terms.beta, ..Policy::PPO }
                .loss(given)
        },
    ),
    Mutant::new(
        "A02",
        "micro-batches' token means, weighted by their share of the responses",
        PPO,
        &["mean-of-means:row-halves-by-rows"],
        |given| {
            with(Policy::PPO, given, |terms| {
                let losses = terms.joined();
                let half = losses.len().div_ceil(2);
                let parts = pieces(&losses, half);
                let rows: usize = parts.iter().map(|(rows, _)| rows).sum();
                sum(parts.into_iter().map(|(count, mean)| mean * (count as f64 / rows as f64)))
            })
        },
    ),
    Mutant::new(
        "A03",
        "a local token count, times the micro-batch's share of the responses, in pairs of rows",
        PPO,
        &["mean-of-means:row-pairs-by-rows"],
        |given| {
            with(Policy::PPO, given, |terms| {
                let parts = pieces(&terms.joined(), 2);
                let rows: usize = parts.iter().map(|(rows, _)| rows).sum();
                sum(parts.into_iter().map(|(count, mean)| mean * (count as f64 / rows as f64)))
            })
        },
    ),
    Mutant::new(
        "A04",
        "the mean of the workers' token means",
        PPO,
        &["mean-of-means:row-halves", "mean-of-means:row-pairs"],
        |given| {
            with(Policy::PPO, given, |terms| mean(pieces(&terms.joined(), 2).into_iter().map(|part| part.1).collect()))
        },
    ),
    Mutant::new(
        "A05",
        "the sum over responses divided by T and not by B",
        DR_GRPO,
        &["factor:rows_with_tokens", "factor:B"],
        |given| with(Policy::GRPO, given, |terms| token_sum(&terms.joined()) / terms.columns as f64),
    ),
    Mutant::new(
        "A06",
        "the padded width of the batch in place of the declared constant",
        SUMMED,
        &["param:length_normaliser=none"],
        |given| given.core().set("length_normaliser", Value::None).run(),
    ),
    Mutant::new("A06b", "a hard-coded 1000 for the declared constant", DR_GRPO, &["factor:T*1/1000"], |given| {
        with(Policy::GRPO, given, |terms| {
            let rows = terms.policy.iter().filter(|row| !row.is_empty()).count() as f64;
            token_sum(&terms.joined()) / rows / 1000.0
        })
    }),
    Mutant::new(
        "A08",
        "the importance weight is not applied",
        WEIGHTED_DR_GRPO,
        &["input:importance_weight:ignored"],
        |given| given.core().without("importance_weight").run(),
    ),
    Mutant::new(
        "A08b",
        "micro means divided by the accumulation steps although already token means",
        PPO,
        &["factor:1/4"],
        |given| with(Policy::PPO, given, |terms| token_mean(&terms.joined()) / 4.0),
    ),
    Mutant::new("A09", "not divided by the accumulation steps", PPO, &["factor:4"], |given| {
        with(Policy::PPO, given, |terms| token_mean(&terms.joined()) * 4.0)
    }),
    Mutant::new(
        "A11",
        "each response's own length where all tokens are meant",
        PPO,
        &["param:aggregation=seq_mean_token_mean"],
        |given| Policy { aggregate: &|terms| row_means(&terms.joined()), ..Policy::PPO }.loss(given),
    )
    .variant(),
    Mutant::new(
        "A12",
        "token mean over the batch where the mean inside each prompt's group is meant",
        DAPO,
        &["param:aggregation=token_mean"],
        |given| with(Policy::PPO, given, |terms| token_mean(&terms.joined())),
    )
    .variant(),
    Mutant::new(
        "A13",
        "the gradient is multiplied by the number of ranks",
        DR_GRPO,
        &["factor:value*1,gradient*8"],
        |given| {
            let mut answer = given.core().run()?;
            answer.iter_mut().skip(1).for_each(|(_, values)| values.iter_mut().for_each(|value| *value *= 8.0));
            Ok(answer)
        },
    ),
    Mutant::new(
        "A14",
        "fully masked responses count as 0 in the mean over responses",
        GRPO,
        &["param:empty_row=count_as_zero", "dialect:trl-1.16"],
        |given| {
            with(Policy::GRPO, given, |terms| {
                let losses = terms.joined();
                let rows = losses.len() as f64;
                sum(losses.into_iter().filter(|row| !row.is_empty()).map(mean)) / rows
            })
        },
    ),
    Mutant::new(
        "A15",
        "the mean over all slots of loss times mask",
        MSE,
        &["factor:tokens/(B*T)", "input:mask:as-zeros"],
        |given| {
            let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept().concat());
            let terms = values.into_iter().zip(returns).zip(kept).map(|((value, target), kept)| {
                let error = value - target;
                if kept { error.clone() * error * 0.5 } else { lift(0.0) }
            });
            given.answer(vec![mean(terms.collect())])
        },
    ),
    Mutant::new(
        "A16",
        "a loss per response broadcast over the mask: each response counts by its length",
        GSPO,
        &["param:aggregation=token_mean"],
        |given| Policy { aggregate: &|terms| token_mean(&terms.joined()), ..Policy::GSPO }.loss(given),
    ),
    Mutant::new(
        "A17",
        "one weight for each token for one for each response",
        GSPO,
        &["param:ratio_level=token"],
        |given| Policy::GRPO.loss(given),
    )
    .variant(),
    Mutant::new(
        "A18",
        "the odds-ratio term is not divided by the accumulation steps, the likelihood is",
        ("preference.orpo", Some("paper"), &["beta"]),
        &["term:beta*2", "param:beta*2"],
        |given| {
            let beta = given.number("beta");
            given.core().number("beta", 2.0 * beta).run()
        },
    ),
    Mutant::new(
        "A19",
        "a mask of shape (B, 1) against losses of shape (B): every pair of rows",
        ("trust_region.reinforce", None, &["mask"]),
        &["input:mask:ignored+factor:B", "broadcast:mask*"],
        |given| {
            let (log_prob, target) = (given.variables("log_prob"), given.values("return_to_go"));
            let mask = given.values("mask");
            let kept: f64 = mask.iter().sum();
            let losses: Vec<Scalar> =
                log_prob.into_iter().zip(target).map(|(log_prob, target)| -(log_prob * target)).collect();
            let outer = mask.iter().flat_map(|kept| losses.iter().map(move |loss| loss.clone() * *kept));
            given.answer(vec![sum(outer) / kept])
        },
    ),
    Mutant::new(
        "A04b",
        "the last, partial window of rows is dropped",
        MSE_TOKENS,
        &["input:mask:drops-last-row"],
        |given| {
            let (rows, columns) = given.size();
            let mask = given.kept().concat();
            let kept =
                mask.iter().enumerate().map(|(slot, kept)| f64::from(u8::from(*kept && slot / columns + 1 < rows)));
            given.core().input("mask", kept.collect()).run()
        },
    ),
];

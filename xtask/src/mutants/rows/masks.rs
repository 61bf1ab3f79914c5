//! B: masks, padding, and what leaks from under them.

use super::{GRPO, GSPO, Mutant, POLICY, Target, by_rows};
use crate::mutants::policy::{Policy, token_mean};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{Answer, Given, combined};

const GAE: Target = ("advantage.gae", Some("paper"), &["mask", "gamma", "gae_lambda"]);
const RETURN: Target = ("advantage.discounted_return", None, &["mask", "gamma"]);
const KEEPING: Target = (
    "objective.ppo",
    Some("paper"),
    &["log_prob", "old_log_prob", "advantage", "mask", "keep", "clip_ratio_low", "clip_ratio_high"],
);

/// NaN where an input holds NaN or infinity under the mask: 0 times it is NaN.
fn spoilt(given: &Given<'_>, input: &str) -> f64 {
    let kept = given.kept().concat();
    given.values(input).iter().zip(kept).filter(|(_, kept)| !kept).map(|(value, _)| 0.0 * value).sum()
}

fn with_spoilt_value(given: &Given<'_>, input: &str) -> Answer {
    let spoilt = spoilt(given, input);
    let mut answer = given.core().run()?;
    answer[0].1.iter_mut().for_each(|value| *value += spoilt);
    Ok(answer)
}

fn all_kept(given: &Given<'_>) -> Vec<f64> {
    vec![1.0; given.values("mask").len()]
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("B01", "values at padding serve as the next value", GAE, &["input:mask:ignored"], |given| {
        given.core().input("mask", all_kept(given)).run()
    }),
    Mutant::new(
        "B02",
        "a response's advantage is averaged over its slots, masked ones too",
        ("surrogate.ppo_clip", Some("paper"), &["mask", "clip_ratio_low", "clip_ratio_high"]),
        &["input:advantage:row-mean-padded"],
        |given| {
            let advantage = given.values("advantage");
            let (_, columns) = given.size();
            if advantage.len() != given.values("log_prob").len() {
                return given.core().run();
            }
            let means = by_rows(&advantage, columns).into_iter().map(|row| row.iter().sum::<f64>() / columns as f64);
            given.core().input("advantage", means.flat_map(|mean| vec![mean; columns]).collect()).run()
        },
    ),
    Mutant::new(
        "B03",
        "old log-probabilities are multiplied by the mask",
        GRPO,
        &["masked-junk:old_log_prob:*"],
        |given| with_spoilt_value(given, "old_log_prob"),
    ),
    Mutant::new(
        "B04",
        "a mean over responses multiplies by the mask where it should select",
        ("reduce.aggregate", Some("verl-0.9"), &["mask"]),
        &["masked-junk:token_loss:*"],
        |given| with_spoilt_value(given, "token_loss"),
    ),
    Mutant::new("B05", "the KL term is multiplied by the mask", GRPO, &["masked-junk:ref_log_prob:*"], |given| {
        with_spoilt_value(given, "ref_log_prob")
    }),
    Mutant::new(
        "B07",
        "the mask of the reverse-KL advantage is all ones",
        ("preference.minillm_advantage", Some("paper"), &["mask", "gamma"]),
        &["input:mask:ignored"],
        |given| given.core().input("mask", all_kept(given)).run(),
    ),
    Mutant::new("B08", "rewards where returns are needed", RETURN, &["param:gamma=0", "only:reward*1"], |given| {
        let kept = given.kept().concat();
        let rewards = given.values("reward").into_iter().zip(kept);
        given.answer(rewards.map(|(reward, kept)| lift(if kept { reward } else { 0.0 })).collect())
    }),
    Mutant::new("B09", "penalties of masked tokens enter the reward-to-go", RETURN, &["input:mask:ignored"], |given| {
        let (_, columns) = given.size();
        let gamma = given.number("gamma");
        let mut all = Vec::new();
        for row in by_rows(&given.values("reward"), columns) {
            let mut running = 0.0;
            let mut returns: Vec<Scalar> = row
                .iter()
                .rev()
                .map(|reward| {
                    running = reward + gamma * running;
                    lift(running)
                })
                .collect();
            returns.reverse();
            all.extend(returns);
        }
        given.answer(all)
    }),
    Mutant::new(
        "B10",
        "the running return is set back to 0 at every masked token inside a response",
        RETURN,
        &["mean-of-means:runs"],
        |given| {
            let (_, columns) = given.size();
            let gamma = given.number("gamma");
            let mut all = Vec::new();
            for (row, kept) in by_rows(&given.values("reward"), columns).iter().zip(given.kept()) {
                let mut running = 0.0;
                let mut returns: Vec<Scalar> = row
                    .iter()
                    .zip(kept)
                    .rev()
                    .map(|(reward, kept)| {
                        running = if kept { reward + gamma * running } else { 0.0 };
                        lift(running)
                    })
                    .collect();
                returns.reverse();
                all.extend(returns);
            }
            given.answer(all)
        },
    ),
    Mutant::new(
        "B11",
        "tool tokens count as steps of zero reward and value: the trace decays over them",
        GAE,
        &["input:mask:as-zeros"],
        |given| {
            let kept = given.kept().concat();
            let zeroed =
                |name: &str| given.values(name).iter().zip(&kept).map(|(x, k)| if *k { *x } else { 0.0 }).collect();
            given
                .core()
                .input("reward", zeroed("reward"))
                .input("value", zeroed("value"))
                .input("mask", all_kept(given))
                .run()
        },
    ),
    Mutant::new("B14", "dropped tokens also leave the denominator", KEEPING, &["input:mask:and-keep"], |given| {
        let keep = given.values("keep");
        given.core().map("mask", |slot, kept| kept * keep[slot]).run()
    }),
    Mutant::new(
        "B15",
        "the prompt is masked in the chosen half only",
        (
            "preference.wpo",
            Some("paper"),
            &["ref_chosen_log_prob", "ref_rejected_log_prob", "chosen_mask", "rejected_mask"],
        ),
        &["input:rejected_mask:ignored"],
        |given| given.core().without("rejected_mask").run(),
    ),
    Mutant::new(
        "B16",
        "log-probabilities of padding are added to the sums",
        ("ratio.sequence_product", None, &["mask"]),
        &["input:mask:ignored"],
        |given| {
            let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
            let (_, columns) = given.size();
            let distances: Vec<Scalar> = log_prob.into_iter().zip(old).map(|(new, old)| new - old).collect();
            given.answer(distances.chunks(columns).map(|row| sum(row.to_vec()).exp()).collect())
        },
    ),
    Mutant::new(
        "B17",
        "log-ratios are centred per column over the batch",
        ("ratio.sequence", Some("paper"), &["mask"]),
        &["input:log_prob:column-centred+input:old_log_prob:column-centred", "log-ratio:column-centred"],
        |given| {
            let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
            let (rows, columns) = given.size();
            let kept = given.kept();
            let distance =
                |row: usize, column: usize| log_prob[row * columns + column].clone() - old[row * columns + column];
            let centre: Vec<Scalar> =
                (0..columns).map(|column| mean((0..rows).map(|row| distance(row, column)).collect())).collect();
            let ratio = |row: usize| {
                let tokens = (0..columns).filter(|column| kept[row][*column]);
                let centred: Vec<Scalar> = tokens.map(|t| distance(row, t) - centre[t].clone()).collect();
                if centred.is_empty() { lift(1.0) } else { mean(centred).exp() }
            };
            given.answer((0..rows).map(ratio).collect())
        },
    ),
    Mutant::new(
        "B19",
        "the KL term counts tokens of the environment",
        GRPO,
        &["term:kl_coefficient:input:mask:ignored"],
        |given| {
            let without = given.core().number("kl_coefficient", 0.0);
            let ones = all_kept(given);
            let unmasked = given.core().input("mask", ones.clone());
            let base = given.core().input("mask", ones).number("kl_coefficient", 0.0);
            combined(&[(1.0, without.run()), (1.0, unmasked.run()), (-1.0, base.run())])
        },
    ),
    Mutant::new("B20", "each row's last valid step is dropped", GRPO, &["input:mask:drops-last"], |given| {
        let (_, columns) = given.size();
        let mut mask = given.values("mask");
        for row in mask.chunks_mut(columns) {
            if let Some(last) = row.iter().rposition(|kept| *kept != 0.0) {
                row[last] = 0.0;
            }
        }
        given.core().input("mask", mask).run()
    }),
    Mutant::new(
        "B21",
        "the KL term over the kept tokens only",
        (
            "objective.ppo",
            Some("paper"),
            &["log_prob", "old_log_prob", "ref_log_prob", "advantage", "mask", "keep", "kl_coefficient"],
        ),
        &["term:kl_coefficient:input:mask:and-keep"],
        |given| {
            let keep = given.values("keep");
            let kept = |core: crate::mutants::subject::Core<'_>| core.map("mask", |slot, kept| kept * keep[slot]).run();
            let without = given.core().number("kl_coefficient", 0.0);
            combined(&[(1.0, without.run()), (1.0, kept(given.core())), (-1.0, kept(without.clone()))])
        },
    )
    .variant(),
    Mutant::new(
        "B05b",
        "a KL term of 0 times NaN, and the mean over all tokens",
        ("objective.ppo", Some("paper"), POLICY),
        &["masked-junk:ref_log_prob:*"],
        |given| {
            let spoilt = spoilt(given, "ref_log_prob");
            Policy { aggregate: &|terms| token_mean(&terms.joined()) + spoilt, ..Policy::PPO }.loss(given)
        },
    ),
    Mutant::new(
        "B16b",
        "a mean that counts each row's first padding slot",
        GSPO,
        &["input:mask:keeps-one-more"],
        |given| {
            let (_, columns) = given.size();
            let mut mask = given.values("mask");
            for row in mask.chunks_mut(columns) {
                let end = row.iter().rposition(|kept| *kept != 0.0).map_or(0, |last| last + 1);
                if let Some(slot) = row.get_mut(end) {
                    *slot = 1.0;
                }
            }
            given.core().input("mask", mask).run()
        },
    ),
];

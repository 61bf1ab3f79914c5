//! F: advantages of groups and batches.

use super::{Mutant, PPO, Target, by_rows};
use crate::mutants::subject::{Answer, Given, each};
use plumbline_core::num::Real;
use plumbline_core::spec::Value;

const MEAN_STD: Target = ("advantage.group_mean_std", Some("verl-0.9"), &["group"]);
const MEAN: Target = ("advantage.group_mean", Some("paper"), &["group"]);
const WHITEN: Target = ("advantage.whiten", None, &["mask"]);

fn members(given: &Given<'_>, of: usize) -> Vec<usize> {
    let groups = given.values("group");
    (0..groups.len()).filter(|index| groups[*index] == groups[of]).collect()
}

fn moments(values: &[f64], ddof: f64) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, Real::sqrt(squares / (count - ddof)))
}

fn main_output(given: &Given<'_>, values: Vec<f64>) -> Answer {
    Ok(vec![(given.meaning.operation.outputs[0].name, values)])
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "F01",
        "whitening one element gives NaN",
        ("advantage.whiten", None, &["mask"]),
        &["kind:not-finite"],
        |given| {
            let tokens = given.kept().concat().into_iter().filter(|kept| *kept).count();
            each(given.core().run(), |value| if tokens < 2 { f64::NAN } else { value })
        },
    )
    .fixing(&[("one_token", Value::Name("zero"))]),
    Mutant::new(
        "F02",
        "each half of the context is whitened by itself",
        WHITEN,
        &["mean-of-means:column-halves"],
        |given| {
            let (_, columns) = given.size();
            let (half, eps) = (columns.div_ceil(2), given.number("whiten_eps"));
            let (values, kept) = (given.values("values"), given.kept().concat());
            let mut whitened = vec![0.0; values.len()];
            for part in [0..half, half..columns] {
                let slots: Vec<usize> =
                    (0..values.len()).filter(|slot| kept[*slot] && part.contains(&(slot % columns))).collect();
                if slots.len() < 2 {
                    continue;
                }
                let (mean, deviation) = moments(&slots.iter().map(|slot| values[*slot]).collect::<Vec<_>>(), 1.0);
                for slot in slots {
                    whitened[slot] = (values[slot] - mean) / Real::sqrt(deviation * deviation + eps);
                }
            }
            main_output(given, whitened)
        },
    )
    .fixing(&[("one_token", Value::Name("zero"))]),
    Mutant::new("F03", "mean and deviation of the whole batch", MEAN_STD, &["input:group:one-group"], |given| {
        let rewards = given.values("reward");
        let (mean, deviation) = moments(&rewards, 1.0);
        let eps = given.number("eps");
        main_output(given, rewards.iter().map(|reward| (reward - mean) / (deviation + eps)).collect())
    }),
    Mutant::new("F04", "the first reward of the group as its baseline", MEAN, &["output:baseline:first"], |given| {
        let rewards = given.values("reward");
        let first = |index: usize| rewards[members(given, index)[0]];
        main_output(given, (0..rewards.len()).map(|index| rewards[index] - first(index)).collect())
    }),
    Mutant::new("F06", "the population's deviation", MEAN_STD, &["param:ddof=0"], |given| {
        let rewards = given.values("reward");
        let eps = given.number("eps");
        let one = |index: usize| {
            let group: Vec<f64> = members(given, index).into_iter().map(|member| rewards[member]).collect();
            let (mean, deviation) = moments(&group, 0.0);
            // One response alone: mean 0, deviation 1, as declared.
            if group.len() == 1 { rewards[index] / (1.0 + eps) } else { (rewards[index] - mean) / (deviation + eps) }
        };
        main_output(given, (0..rewards.len()).map(one).collect())
    }),
    Mutant::new(
        "F08",
        "group scores whitened again over tokens",
        ("advantage.group_mean_std", Some("verl-0.9"), &["mask"]),
        &["output:whitened-by-length*"],
        |given| {
            let scores = given.core().value()?;
            let lengths: Vec<usize> = given.kept().iter().map(|row| row.iter().filter(|kept| **kept).count()).collect();
            let tokens: Vec<f64> =
                scores.iter().zip(&lengths).flat_map(|(score, length)| vec![*score; *length]).collect();
            if tokens.len() < 2 {
                return main_output(given, scores);
            }
            let (mean, deviation) = moments(&tokens, 1.0);
            main_output(given, scores.iter().map(|score| (score - mean) / (deviation + 1e-8)).collect())
        },
    ),
    Mutant::new(
        "F10",
        "whitening over the batch where the group's baseline is meant",
        ("advantage.reinforce_plus_plus_baseline", Some("verl-0.9"), &["group"]),
        &["input:group:one-group"],
        |given| given.core().map("group", |_, _| 0.0).run(),
    )
    .variant(),
    Mutant::new("F11", "padding is not 0 after whitening", WHITEN, &["kind:under-mask"], |given| {
        let (values, kept) = (given.values("values"), given.kept().concat());
        let chosen: Vec<f64> = values.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect();
        let (mean, deviation) = moments(&chosen, 1.0);
        let spread = Real::sqrt(deviation * deviation + given.number("whiten_eps"));
        let masked = |(value, kept): (f64, bool)| ((if kept { value } else { 0.0 }) - mean) / spread;
        main_output(given, values.into_iter().zip(kept).map(masked).collect())
    }),
    Mutant::new(
        "F12",
        "the root of the variance, at least epsilon",
        MEAN_STD,
        &["param:eps_placement=*", "param:eps=0"],
        |given| {
            let rewards = given.values("reward");
            let eps = given.number("eps");
            let one = |index: usize| {
                let group: Vec<f64> = members(given, index).into_iter().map(|member| rewards[member]).collect();
                let (mean, deviation) = moments(&group, 1.0);
                match group.len() {
                    1 => rewards[index],
                    _ => (rewards[index] - mean) / Real::sqrt((deviation * deviation).max(eps)),
                }
            };
            main_output(given, (0..rewards.len()).map(one).collect())
        },
    ),
    Mutant::new("F14", "two prompts that look alike are one group", MEAN_STD, &["input:group:one-group"], |given| {
        given.core().map("group", |_, _| 0.0).run()
    }),
    Mutant::new(
        "F14b",
        "prompts repeated as a whole where each is to be repeated in turn",
        MEAN,
        &["input:group:rearranged"],
        |given| {
            let groups = given.values("group");
            let mut sorted = groups.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            given.core().input("group", sorted).run()
        },
    ),
    Mutant::new("F15", "the advantage is averaged over the minibatch", PPO, &["input:advantage:batch-mean"], |given| {
        let advantage = given.values("advantage");
        let kept: Vec<bool> = match given.shape("advantage").len() {
            1 => vec![true; advantage.len()],
            _ => given.kept().concat(),
        };
        let chosen: Vec<f64> = advantage.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
        let mean = chosen.iter().sum::<f64>() / chosen.len() as f64;
        given.core().map("advantage", |_, _| mean).run()
    }),
    Mutant::new(
        "F16",
        "a normalised value beside raw returns",
        ("value.normalised_return", None, &["mask", "return_mean", "return_std"]),
        &["operation:value.mse"],
        |given| given.core().number("return_mean", 0.0).number("return_std", 1.0).run(),
    ),
    Mutant::new(
        "F17",
        "the output layer keeps its old statistics",
        ("value.popart_update", None, &["mask", "return_mean", "second_moment"]),
        &["only:weight*1", "param:step_size=0"],
        |given| main_output(given, given.values("weight")),
    ),
    Mutant::new(
        "F18",
        "the group's mean only, without its deviation",
        MEAN_STD,
        &["operation:advantage.group_mean"],
        |given| {
            let rewards = given.values("reward");
            let one = |index: usize| {
                let group: Vec<f64> = members(given, index).into_iter().map(|member| rewards[member]).collect();
                if group.len() == 1 { rewards[index] } else { rewards[index] - moments(&group, 1.0).0 }
            };
            main_output(given, (0..rewards.len()).map(one).collect())
        },
    )
    .variant(),
    Mutant::new("F18b", "the mean of the others for the mean of all", MEAN, &["operation:advantage.rloo"], |given| {
        let rewards = given.values("reward");
        let one = |index: usize| {
            let group: Vec<f64> = members(given, index).into_iter().map(|member| rewards[member]).collect();
            let count = group.len() as f64;
            if group.len() == 1 { 0.0 } else { (rewards[index] - moments(&group, 1.0).0) * count / (count - 1.0) }
        };
        main_output(given, (0..rewards.len()).map(one).collect())
    })
    .variant(),
    Mutant::new("F19", "an epsilon of 1e-4 for 1e-6", MEAN_STD, &["param:eps=0.0001", "dialect:trl-1.16"], |given| {
        given.core().number("eps", 1e-4).run()
    })
    .variant(),
    Mutant::new(
        "F09b",
        "returns of the greedy rollout's baseline are left out",
        ("advantage.remax", Some("verl-0.9"), &["mask"]),
        &["input:greedy_reward:zero"],
        |given| {
            let (_, columns) = given.size();
            let mut all = Vec::new();
            for (row, kept) in by_rows(&given.values("reward"), columns).iter().zip(given.kept()) {
                let mut running = 0.0;
                let mut returns: Vec<f64> = row
                    .iter()
                    .zip(kept)
                    .rev()
                    .map(|(reward, kept)| {
                        running += if kept { *reward } else { 0.0 };
                        if kept { running } else { 0.0 }
                    })
                    .collect();
                returns.reverse();
                all.extend(returns);
            }
            main_output(given, all)
        },
    ),
];

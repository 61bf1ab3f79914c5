//! Mistakes of the same kinds on other operations, written with their names before the search was run on them.

use super::{Mutant, by_rows};
use crate::mutants::policy::{Policy, Token};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{combined, each};
use plumbline_core::num::Real;
use plumbline_core::spec::Value;

const TRACE: &[&str] = &["terminated", "mask", "gamma", "trace_decay"];
const REFERENCES: &[&str] = &["ref_chosen_log_prob", "ref_rejected_log_prob", "beta"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "H-01",
        "V-trace's weights are not clipped",
        ("advantage.vtrace", None, &["mask", "gamma"]),
        &["param:clip_rho=unreached*"],
        |given| given.core().number("clip_rho", 1e6).run(),
    ),
    Mutant::new(
        "H-02",
        "V-trace's two bounds in each other's place",
        ("advantage.vtrace", None, &["mask", "gamma", "clip_rho", "clip_c"]),
        &["exchanged:clip_rho,clip_c"],
        |given| {
            let (rho, trace) = (given.number("clip_rho"), given.number("clip_c"));
            given.core().number("clip_rho", trace).number("clip_c", rho).run()
        },
    ),
    Mutant::new(
        "H-03",
        "Retrace without its decay",
        ("advantage.retrace", None, &["log_prob", "old_log_prob", "terminated", "mask", "gamma", "trace_decay"]),
        &["param:trace_decay=1"],
        |given| given.core().number("trace_decay", 1.0).run(),
    ),
    Mutant::new(
        "H-04",
        "action values belong to the step before",
        ("advantage.tree_backup", None, &["log_prob", "old_log_prob", "mask", "gamma", "trace_decay"]),
        &["input:action_value:*from-previous-step"],
        |given| {
            let (_, columns) = given.size();
            let mut values = given.values("action_value");
            values.chunks_mut(columns).for_each(|row| row.rotate_right(1));
            given.core().input("action_value", values).run()
        },
    ),
    Mutant::new(
        "H-05",
        "costs are taken for rewards",
        ("advantage.lambda_return", None, TRACE),
        &["input:reward:negated"],
        |given| given.core().map("reward", |_, reward| -reward).run(),
    ),
    Mutant::new(
        "H-06",
        "one step too many before the bootstrap",
        ("advantage.n_step_return", None, &["mask", "gamma", "n"]),
        &["param:n=*", "param:n+1"],
        |given| {
            let n = given.number("n") as i64;
            given.core().set("n", Value::Integer(n + 1)).run()
        },
    ),
    Mutant::new(
        "H-07",
        "the discount is applied twice a step",
        ("advantage.discounted_return", None, &["mask", "gamma"]),
        &["param:gamma:squared"],
        |given| {
            let gamma = given.number("gamma");
            given.core().number("gamma", gamma * gamma).run()
        },
    ),
    Mutant::new(
        "H-08",
        "the mean of the batch's other responses, not of the group's",
        ("advantage.rloo", Some("paper"), &["group"]),
        &["input:group:one-group"],
        |given| {
            let rewards = given.values("reward");
            let (whole, count) = (rewards.iter().sum::<f64>(), rewards.len() as f64);
            let own = rewards.iter().map(|reward| lift(reward - (whole - reward) / (count - 1.0)));
            given.answer(own.collect())
        },
    ),
    Mutant::new(
        "H-09",
        "GPG without its scale",
        ("advantage.gpg", Some("paper"), &["group"]),
        &["operation:advantage.group_mean"],
        |given| {
            let (rewards, groups) = (given.values("reward"), given.values("group"));
            let own = (0..rewards.len()).map(|index| {
                let members: Vec<f64> = (0..rewards.len())
                    .filter(|other| groups[*other] == groups[index])
                    .map(|other| rewards[other])
                    .collect();
                let centre = members.iter().sum::<f64>() / members.len() as f64;
                lift(if members.len() == 1 { 0.0 } else { rewards[index] - centre })
            });
            given.answer(own.collect())
        },
    ),
    Mutant::new(
        "H-10",
        "OPO's baseline without the lengths",
        ("advantage.opo", Some("paper"), &["group"]),
        &["operation:advantage.group_mean", "input:mask:*"],
        |given| given.core().operation("advantage.group_mean").name("group_of_one", "zero").run(),
    ),
    Mutant::new(
        "H-11",
        "the group's deviation for the batch's",
        ("advantage.batch_std", Some("trl-1.16"), &["group"]),
        &["operation:advantage.group_mean_std"],
        |given| {
            let eps = given.number("eps");
            given.core().operation("advantage.group_mean_std").number("eps", eps).run()
        },
    ),
    Mutant::new(
        "H-12",
        "the greedy baseline is added",
        ("advantage.remax", Some("verl-0.9"), &["mask"]),
        &["input:greedy_reward:negated"],
        |given| given.core().map("greedy_reward", |_, reward| -reward).run(),
    ),
    Mutant::new(
        "H-13",
        "Huber's threshold is ignored",
        ("value.huber", None, &["mask", "huber_threshold"]),
        &["param:huber_threshold=1"],
        |given| {
            let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept().concat());
            let chosen = values.into_iter().zip(returns).zip(kept).filter(|(_, kept)| *kept);
            let losses = chosen.map(|((value, target), _)| {
                let error = value - target;
                if error.value.abs() <= 1.0 {
                    error.clone() * error * 0.5
                } else if error.value > 0.0 {
                    error - 0.5
                } else {
                    -error - 0.5
                }
            });
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new(
        "H-14",
        "the value loss averages rows first",
        ("value.mse", None, &["mask"]),
        &["mean-of-means:rows"],
        |given| {
            let (_, columns) = given.size();
            let (values, returns, kept) = (given.variables("value"), given.values("return"), given.kept());
            let rows = kept.iter().enumerate().filter(|(_, kept)| kept.contains(&true)).map(|(row, kept)| {
                let slots = (0..columns).filter(|column| kept[*column]).map(|column| row * columns + column);
                mean(
                    slots
                        .map(|slot| {
                            (values[slot].clone() - returns[slot]) * (values[slot].clone() - returns[slot]) * 0.5
                        })
                        .collect(),
                )
            });
            given.answer(vec![mean(rows.collect())])
        },
    ),
    Mutant::new(
        "H-15",
        "explained variance of the value by the return",
        ("value.explained_variance", None, &["mask"]),
        &["exchanged:value,return"],
        |given| {
            let (values, returns) = (given.values("value"), given.values("return"));
            given.core().input("value", returns).input("return", values).run()
        },
    ),
    Mutant::new(
        "H-16",
        "the rejected response's reference is left out",
        ("preference.dpo_hinge", Some("paper"), REFERENCES),
        &["input:ref_rejected_log_prob:zero"],
        |given| given.core().map("ref_rejected_log_prob", |_, _| 0.0).run(),
    ),
    Mutant::new(
        "H-17",
        "IPO's target without the two",
        ("preference.dpo_ipo", Some("paper"), REFERENCES),
        &["param:beta*0.5"],
        |given| {
            let beta = given.number("beta");
            given.core().number("beta", beta / 2.0).run()
        },
    ),
    Mutant::new(
        "H-18",
        "the two classes' weights are exchanged",
        ("preference.kto", Some("paper"), &["beta", "desirable_weight", "undesirable_weight"]),
        &["exchanged:desirable_weight,undesirable_weight"],
        |given| {
            let (first, second) = (given.number("desirable_weight"), given.number("undesirable_weight"));
            given.core().number("desirable_weight", second).number("undesirable_weight", first).run()
        },
    ),
    Mutant::new(
        "H-19",
        "SimPO on sums",
        ("preference.simpo", Some("paper"), &["chosen_length", "rejected_length", "beta", "gamma"]),
        &["param:length_normalisation=none"],
        |given| {
            let (chosen, rejected) = (given.variables("chosen_log_prob"), given.variables("rejected_log_prob"));
            let (beta, gamma) = (given.number("beta"), given.number("gamma"));
            let losses = chosen.into_iter().zip(rejected).map(|(w, l)| -((w - l) * beta - gamma).log_sigmoid());
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new(
        "H-20",
        "the rejected response is preferred",
        ("preference.bradley_terry", Some("paper"), &["margin"]),
        &["exchanged:chosen_score,rejected_score", "reversed:chosen_score-rejected_score"],
        |given| {
            let (chosen, rejected) = (given.variables("chosen_score"), given.variables("rejected_score"));
            let margins = given.values("margin");
            let losses = chosen
                .into_iter()
                .zip(rejected)
                .enumerate()
                .map(|(pair, (w, l))| -(l - w - margins.get(pair).copied().unwrap_or(0.0)).log_sigmoid());
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new(
        "H-21",
        "pairs of a ranking are summed",
        ("preference.ranking_pairs", Some("paper"), &["ranking_count"]),
        &["factor:*"],
        |given| {
            let width = given.shape("score")[1] as f64;
            each(given.core().run(), |value| value * width * (width - 1.0) / 2.0)
        },
    ),
    Mutant::new(
        "H-22",
        "the entropy is subtracted",
        ("td.sac", None, &["done", "discount", "temperature"]),
        &["input:next_log_prob:negated", "param:temperature*-1", "term:temperature*-1"],
        |given| given.core().map("next_log_prob", |_, log_prob| -log_prob).run(),
    ),
    Mutant::new(
        "H-23",
        "expected SARSA without its weights",
        ("td.expected_sarsa", None, &["done", "importance_weight", "discount"]),
        &["input:importance_weight:ignored"],
        |given| given.core().without("importance_weight").run(),
    ),
    Mutant::new(
        "H-24",
        "C51's weights are averaged first",
        ("td.c51", None, &["done", "importance_weight", "discount"]),
        &["input:importance_weight:batch-mean"],
        |given| {
            let weights = given.values("importance_weight");
            let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
            given.core().map("importance_weight", |_, _| mean).run()
        },
    ),
    Mutant::new(
        "H-25",
        "the other direction of the divergence",
        ("logits.kl_full", None, &["mask"]),
        &["param:direction=reverse", "exchanged:logits,ref_logits"],
        |given| given.core().name("direction", "reverse").run(),
    ),
    Mutant::new(
        "H-26",
        "student and teacher are exchanged",
        ("logits.jsd", Some("paper"), &["mask", "beta"]),
        &["exchanged:logits,teacher_logits", "param:beta*"],
        |given| {
            let beta = given.number("beta");
            given.core().number("beta", 1.0 - beta).run()
        },
    ),
    Mutant::new(
        "H-27",
        "advantages are centred over the batch",
        ("surrogate.reinforce", None, &["mask"]),
        &["input:advantage:centred"],
        |given| {
            let advantage = given.values("advantage");
            let kept: Vec<bool> = match given.shape("advantage").len() {
                1 => vec![true; advantage.len()],
                _ => given.kept().concat(),
            };
            let chosen: Vec<f64> = advantage.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
            let centre = chosen.iter().sum::<f64>() / chosen.len() as f64;
            given.core().map("advantage", |_, a| a - centre).run()
        },
    ),
    Mutant::new(
        "H-28",
        "DPPO's ratio is not limited",
        ("surrogate.dppo", None, &["mask", "clip_ratio_c"]),
        &["param:clip_ratio_c=none", "param:clip_ratio_c=unreached"],
        |given| given.core().number("clip_ratio_c", 1e8).run(),
    ),
    Mutant::new(
        "H-29",
        "selected tokens are not treated differently",
        ("surrogate.clip_cov", None, &["mask", "selected"]),
        &["input:selected:ignored"],
        |given| given.core().without("selected").run(),
    ),
    Mutant::new(
        "H-30",
        "DRO's quadratic term without its half",
        ("surrogate.dro", None, &["mask", "dro_beta"]),
        &["param:dro_beta*2", "term:dro_beta*2"],
        |given| {
            let beta = given.number("dro_beta");
            let surrogate =
                |token: Token| -(token.log_prob * token.advantage - token.log_ratio.clone() * token.log_ratio * beta);
            Policy { surrogate: &surrogate, ..Policy::PPO }.tokens(given)
        },
    ),
    Mutant::new(
        "H-31",
        "the teacher's and the student's log-probabilities are exchanged",
        ("preference.minillm_advantage", Some("paper"), &["mask", "gamma"]),
        &["exchanged:log_prob,teacher_log_prob", "factor:-1"],
        |given| {
            let (student, teacher) = (given.values("log_prob"), given.values("teacher_log_prob"));
            given.core().input("log_prob", teacher).input("teacher_log_prob", student).run()
        },
    ),
    Mutant::new(
        "H-32",
        "the response's ratio for each token's",
        ("objective.dr_grpo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]),
        &["param:ratio_level=sequence"],
        |given| {
            Policy {
                level: &crate::mutants::policy::geometric_mean,
                aggregate: &|terms| {
                    let rows = terms.policy.iter().filter(|row| !row.is_empty()).count() as f64;
                    sum(terms.policy.concat()) / (rows * terms.columns as f64)
                },
                ..Policy::PPO
            }
            .loss(given)
        },
    ),
    Mutant::new(
        "H-33",
        "the gate's temperatures are exchanged",
        ("surrogate.sapo", None, &["mask", "sapo_temperature_positive", "sapo_temperature_negative"]),
        &["exchanged:sapo_temperature_positive,sapo_temperature_negative"],
        |given| {
            let (positive, negative) =
                (given.number("sapo_temperature_positive"), given.number("sapo_temperature_negative"));
            given
                .core()
                .number("sapo_temperature_positive", negative)
                .number("sapo_temperature_negative", positive)
                .run()
        },
    ),
    Mutant::new(
        "H-34",
        "the critic's loss without its half",
        ("trust_region.a2c", None, &["mask", "done", "discount", "critic_coefficient"]),
        &["term:critic_coefficient*2", "param:critic_coefficient*2"],
        |given| {
            let without = given.core().number("critic_coefficient", 0.0);
            combined(&[(2.0, given.core().run()), (-1.0, without.run())])
        },
    ),
    Mutant::new(
        "H-35",
        "the actor's term also reaches the critic",
        ("trust_region.a2c", None, &["mask", "done", "discount"]),
        &["stop-gradient:missing"],
        |given| {
            let (log_prob, values) = (given.variables("log_prob"), given.variables("value"));
            let (rewards, next, done) = (given.values("reward"), given.values("next_value"), given.values("done"));
            let mask = given.values("mask");
            let (gamma, weight) = (given.number("discount"), given.number("critic_coefficient"));
            let kept = |row: &usize| mask.get(*row).is_none_or(|kept| *kept != 0.0);
            let losses = (0..log_prob.len()).filter(kept).map(|row| {
                let ahead = if done.get(row).is_some_and(|done| *done != 0.0) { 0.0 } else { gamma * next[row] };
                let error = -(values[row].clone() - (rewards[row] + ahead));
                -(error.clone() * log_prob[row].clone()) + error.clone() * error * (weight / 2.0)
            });
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new(
        "H-36",
        "the last token's log-probability is not summed",
        ("ratio.sequence_product", None, &["mask"]),
        &["input:mask:drops-last"],
        |given| {
            let (_, columns) = given.size();
            let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
            let rows = given.kept().into_iter().enumerate().map(|(row, kept)| {
                let last = kept.iter().rposition(|kept| *kept);
                let slots = (0..columns).filter(|column| kept[*column] && Some(*column) != last);
                let total =
                    sum(slots.map(|column| log_prob[row * columns + column].clone() - old[row * columns + column]));
                total.exp()
            });
            given.answer(rows.collect::<Vec<Scalar>>())
        },
    ),
    Mutant::new(
        "H-37",
        "the importance weight of the penalty is taken against itself",
        ("kl.k3_importance_weighted", Some("paper"), &["mask"]),
        &["copied:old_log_prob<-log_prob"],
        |given| {
            let kept = given.kept().concat();
            let (log_prob, reference) = (given.variables("log_prob"), given.values("ref_log_prob"));
            let all = log_prob.into_iter().zip(reference).zip(kept).map(|((x, reference), kept)| {
                let d = x.clone() - reference;
                let weight = (x.clone() - x.detach()).exp();
                if kept { weight * ((-d.clone()).exp() - 1.0 + d) } else { lift(0.0) }
            });
            given.answer(all.collect())
        },
    ),
    Mutant::new(
        "H-38",
        "GSPO's advantage is whitened by the population",
        ("objective.gspo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]),
        &["input:advantage:whitened-population*"],
        |given| {
            let advantage = given.values("advantage");
            let kept: Vec<bool> = match given.shape("advantage").len() {
                1 => vec![true; advantage.len()],
                _ => given.kept().concat(),
            };
            let chosen: Vec<f64> = advantage.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(a, _)| *a).collect();
            let count = chosen.len() as f64;
            let centre = chosen.iter().sum::<f64>() / count;
            let spread = Real::sqrt(chosen.iter().map(|a| (a - centre) * (a - centre)).sum::<f64>() / count);
            given.core().map("advantage", |_, a| (a - centre) / spread).run()
        },
    ),
    Mutant::new(
        "H-39",
        "micro-batches of one row each",
        ("objective.cispo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]),
        &["param:aggregation=seq_mean_token_mean", "mean-of-means:rows"],
        |given| {
            let surrogate = crate::mutants::policy::cispo;
            Policy {
                surrogate: &surrogate,
                aggregate: &|terms| crate::mutants::policy::row_means(&terms.joined()),
                ..Policy::PPO
            }
            .loss(given)
        },
    ),
    Mutant::new(
        "H-40",
        "rewards of the batch's longest response for all",
        ("reward.assemble", Some("verl-0.9"), &["mask"]),
        &["input:score:*"],
        |given| {
            let (_, columns) = given.size();
            let rows = by_rows(&given.values("mask"), columns);
            let lengths: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
            let longest = (0..lengths.len()).fold(0, |best, row| if lengths[row] > lengths[best] { row } else { best });
            let scores = given.values("score");
            given.core().map("score", |_, _| scores[longest]).run()
        },
    ),
];

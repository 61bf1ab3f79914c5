//! L: targets of temporal-difference learning and replay.

use super::{Mutant, Target, by_rows};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{Answer, Given};
use plumbline_core::num::Real;

const DOUBLE: Target = ("td.double_dqn", None, &["done", "discount"]);
const DQN: Target = ("td.dqn", None, &["done", "discount"]);
const N_STEP: Target = ("td.n_step", None, &["done", "mask", "discount"]);
const Q_LEARNING: Target = ("td.q_learning", None, &["done", "importance_weight", "discount"]);

fn half_squares(given: &Given<'_>, targets: Vec<f64>) -> Answer {
    let actions = given.values("action");
    let width = given.shape("q")[1];
    let q = given.variables("q");
    let losses = targets.into_iter().enumerate().map(|(row, target)| {
        let error = q[row * width + actions[row] as usize].clone() - target;
        error.clone() * error * 0.5
    });
    given.answer(vec![mean(losses.collect())])
}

fn done(given: &Given<'_>) -> Vec<bool> {
    match given.has("done") {
        true => given.values("done").iter().map(|done| *done != 0.0).collect(),
        false => vec![false; given.values("reward").len()],
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "L01",
        "the target comes from the online network",
        DOUBLE,
        &["copied:next_q_target<-next_q_online"],
        |given| given.core().input("next_q_target", given.values("next_q_online")).run(),
    ),
    Mutant::new(
        "L02",
        "double in name only",
        DOUBLE,
        &["copied:next_q_online<-next_q_target", "operation:td.dqn"],
        |given| given.core().input("next_q_online", given.values("next_q_target")).run(),
    ),
    Mutant::new(
        "L02b",
        "the two networks' roles are swapped",
        DOUBLE,
        &["exchanged:next_q_online,next_q_target"],
        |given| {
            let (online, target) = (given.values("next_q_online"), given.values("next_q_target"));
            given.core().input("next_q_online", target).input("next_q_target", online).run()
        },
    ),
    Mutant::new("L03", "the best action of the current state", DOUBLE, &["copied:next_q_online<-q"], |given| {
        given.core().input("next_q_online", given.values("q")).run()
    }),
    Mutant::new("L05", "the bootstrap is discounted once", N_STEP, &["power:discount-once"], |given| {
        n_step(given, |gamma, _| gamma)
    }),
    Mutant::new(
        "L06",
        "the full window's power of the discount on a window that was cut",
        N_STEP,
        &["power:discount-full-window"],
        |given| {
            let width = given.shape("reward")[1];
            n_step(given, move |gamma, _| (0..width).fold(1.0, |power, _| power * gamma))
        },
    ),
    Mutant::new(
        "L07",
        "rewards are read one step late",
        ("td.n_step", None, &["discount"]),
        &["input:reward:from-next-step", "input:reward:rolled-from-next-step"],
        |given| {
            let width = given.shape("reward")[1];
            let mut rewards = given.values("reward");
            rewards.chunks_mut(width).for_each(|row| row.rotate_left(1));
            given.core().input("reward", rewards).run()
        },
    ),
    Mutant::new("L08", "the discount is missing", Q_LEARNING, &["param:discount=1"], |given| {
        let (rewards, width) = (given.values("reward"), given.shape("next_q")[1]);
        let next = by_rows(&given.values("next_q"), width);
        let done = done(given);
        let best = |row: usize| next[row].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let targets: Vec<f64> =
            (0..rewards.len()).map(|row| rewards[row] + if done[row] { 0.0 } else { best(row) }).collect();
        let weights = given.values("importance_weight");
        if weights.is_empty() {
            return half_squares(given, targets);
        }
        given.core().number("discount", 1.0).run()
    }),
    Mutant::new(
        "L09",
        "targets of the other actions are 0",
        ("td.q_learning", None, &["done", "discount"]),
        &["extra:*", "others:*"],
        |given| {
            let width = given.shape("q")[1];
            let (rewards, actions) = (given.values("reward"), given.values("action"));
            let next = by_rows(&given.values("next_q"), width);
            let done = done(given);
            let gamma = given.number("discount");
            let q = given.variables("q");
            let losses = (0..rewards.len()).map(|row| {
                let best = next[row].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let target = rewards[row] + if done[row] { 0.0 } else { gamma * best };
                sum((0..width).map(|action| {
                    let goal = if action == actions[row] as usize { target } else { 0.0 };
                    let error = q[row * width + action].clone() - goal;
                    error.clone() * error * 0.5
                }))
            });
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new("L09b", "the reward is left out", DQN, &["input:reward:zero"], |given| {
        given.core().map("reward", |_, _| 0.0).run()
    }),
    Mutant::new("L10", "what follows an end is scaled by 0", DQN, &["masked-junk:next_q_target:*"], |given| {
        let done = done(given);
        let width = given.shape("next_q_target")[1];
        let spoilt: f64 = by_rows(&given.values("next_q_target"), width)
            .iter()
            .zip(&done)
            .filter(|(_, done)| **done)
            .map(|(row, _)| 0.0 * row.iter().sum::<f64>())
            .sum();
        let mut answer = given.core().run()?;
        answer[0].1[0] += spoilt;
        Ok(answer)
    }),
    Mutant::new(
        "L12",
        "the minimum of the first critic and itself",
        ("td.td3", None, &["done", "discount"]),
        &["copied:next_q2<-next_q1"],
        |given| given.core().input("next_q2", given.values("next_q1")).run(),
    ),
    Mutant::new(
        "L13",
        "the weights are averaged before they are applied",
        Q_LEARNING,
        &["input:importance_weight:batch-mean"],
        |given| {
            let weights = given.values("importance_weight");
            let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
            given.core().map("importance_weight", |_, _| mean).run()
        },
    ),
    Mutant::new(
        "L15",
        "weights are not divided by the largest",
        ("td.prioritised_replay", None, &["priority_exponent", "weight_exponent"]),
        &["factor:per-case"],
        |given| {
            let (alpha, beta) = (given.number("priority_exponent"), given.number("weight_exponent"));
            let power = |base: f64, exponent: f64| Real::exp(exponent * Real::ln(base));
            let raw: Vec<f64> = given
                .values("td_error")
                .iter()
                .map(|error| power(error.abs() + given.number("priority_eps"), alpha))
                .collect();
            let whole: f64 = raw.iter().sum();
            let count = raw.len() as f64;
            given.answer(raw.iter().map(|p| lift(power(count * p / whole, -beta))).collect())
        },
    ),
    Mutant::new(
        "L19",
        "returns of shape (B) minus values of shape (B, 1)",
        ("trust_region.reinforce", None, &["baseline"]),
        &["broadcast:baseline", "input:baseline:batch-mean"],
        |given| {
            let (log_prob, returns, values) =
                (given.variables("log_prob"), given.values("return_to_go"), given.values("baseline"));
            let count = log_prob.len();
            let term = |i: usize, j: usize| -(log_prob[i].clone() * (returns[i] - values[j]));
            let all: Vec<Scalar> =
                (0..count).flat_map(|i| (0..count).map(move |j| (i, j))).map(|(i, j)| term(i, j)).collect();
            given.answer(vec![mean(all)])
        },
    ),
    Mutant::new(
        "L10b",
        "the end of an episode is not looked at",
        Q_LEARNING,
        &["input:done:ignored", "input:done:zero"],
        |given| given.core().without("done").run(),
    ),
    Mutant::new(
        "L14",
        "the loss is weighted by the squared weight",
        Q_LEARNING,
        &["input:importance_weight:squared"],
        |given| given.core().map("importance_weight", |_, w| w * w).run(),
    ),
];

/// Targets over windows, with the bootstrap's discount as given by the number of rewards in the window.
fn n_step(given: &Given<'_>, power: impl Fn(f64, usize) -> f64) -> Answer {
    let width = given.shape("reward")[1];
    let gamma = given.number("discount");
    let rewards = by_rows(&given.values("reward"), width);
    let (bootstrap, values) = (given.values("bootstrap_value"), given.variables("value"));
    let flags = |name: &str, absent: f64| match given.has(name) {
        true => by_rows(&given.values(name), width),
        false => vec![vec![absent; width]; rewards.len()],
    };
    let (done, mask) = (flags("done", 0.0), flags("mask", 1.0));
    let losses = (0..rewards.len()).map(|row| {
        let (mut target, mut weight, mut count, mut ended) = (0.0, 1.0, 0, false);
        for step in 0..width {
            if mask[row][step] == 0.0 || ended {
                break;
            }
            target += weight * rewards[row][step];
            weight *= gamma;
            count += 1;
            ended = done[row][step] != 0.0;
        }
        if !ended {
            target += power(gamma, count) * bootstrap[row];
        }
        let error = values[row].clone() - target;
        error.clone() * error * 0.5
    });
    given.answer(vec![mean(losses.collect())])
}

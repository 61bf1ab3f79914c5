//! G: returns, generalised advantages, ends of episodes.

use super::{Mutant, Target, by_rows};
use crate::mutants::subject::{Answer, Given};

const GAE: Target =
    ("advantage.gae", Some("paper"), &["next_value", "terminated", "truncated", "mask", "gamma", "gae_lambda"]);
const PLAIN_GAE: Target = ("advantage.gae", Some("paper"), &["mask", "gamma", "gae_lambda"]);
const LAMBDA: Target = (
    "advantage.lambda_return",
    None,
    &["next_value", "terminated", "truncated", "discount", "mask", "gamma", "trace_decay"],
);
const RETURN: Target = ("advantage.discounted_return", None, &["terminated", "mask", "gamma"]);

fn shifted(given: &Given<'_>, name: &str, later: bool) -> Vec<f64> {
    let (_, columns) = given.size();
    let mut values = given.values(name);
    for row in values.chunks_mut(columns) {
        if later {
            row.rotate_left(1);
            row[columns - 1] = 0.0;
        } else {
            row.rotate_right(1);
            row[0] = 0.0;
        }
    }
    values
}

fn either(given: &Given<'_>, first: &str, second: &str) -> Vec<f64> {
    given.values(first).iter().zip(given.values(second)).map(|(a, b)| a.max(b)).collect()
}

/// Advantages by hand: rewards, values, next values, what follows counted or not, the trace carried or not.
fn gae(given: &Given<'_>, follows: impl Fn(usize) -> bool, carries: impl Fn(usize) -> bool) -> Answer {
    let (_, columns) = given.size();
    let (gamma, lambda) = (given.number("gamma"), given.number("gae_lambda"));
    let (rewards, values, next) = (given.values("reward"), given.values("value"), given.values("next_value"));
    let kept = given.kept().concat();
    let mut advantages = vec![0.0; rewards.len()];
    for row in 0..rewards.len() / columns {
        let mut running = 0.0;
        for slot in (row * columns..(row + 1) * columns).rev().filter(|slot| kept[*slot]) {
            let after = if follows(slot) { gamma * next[slot] } else { 0.0 };
            let delta = rewards[slot] + after - values[slot];
            running = delta + if carries(slot) { gamma * lambda * running } else { 0.0 };
            advantages[slot] = running;
        }
    }
    Ok(vec![("advantage", advantages)])
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "G01",
        "the end of the episode is read from the next step",
        GAE,
        &["input:terminated:from-next-step"],
        |given| given.core().input("terminated", shifted(given, "terminated", true)).run(),
    ),
    Mutant::new(
        "G01b",
        "a start-of-episode flag where the end-of-step flag is meant",
        RETURN,
        &["input:terminated:from-previous-step"],
        |given| given.core().input("terminated", shifted(given, "terminated", false)).run(),
    ),
    Mutant::new(
        "G04",
        "returns are formed from advantages that are still 0",
        PLAIN_GAE,
        &["output:returns:equals:value"],
        |given| {
            let mut answer = given.core().run()?;
            let kept = given.kept().concat();
            let values = given.values("value").into_iter().zip(kept).map(|(v, k)| if k { v } else { 0.0 });
            answer.push(("returns", values.collect()));
            Ok(answer)
        },
    ),
    Mutant::new(
        "G05",
        "values are the next values rolled: the last wraps into the first",
        GAE,
        &["copied:value<-next_value:rolled-from-previous-step"],
        |given| {
            let (_, columns) = given.size();
            let mut next = given.values("next_value");
            next.chunks_mut(columns).for_each(|row| row.rotate_right(1));
            given.core().input("value", next).run()
        },
    ),
    Mutant::new("G06", "truncation is taken for termination", GAE, &["input:terminated:or-truncated"], |given| {
        let (terminated, truncated) = (given.values("terminated"), given.values("truncated"));
        gae(
            given,
            |slot| terminated[slot] == 0.0 && truncated[slot] == 0.0,
            |slot| terminated[slot] == 0.0 && truncated[slot] == 0.0,
        )
    }),
    Mutant::new("G07", "at a time limit nothing follows", LAMBDA, &["input:terminated:or-truncated"], |given| {
        given.core().input("terminated", either(given, "terminated", "truncated")).run()
    }),
    Mutant::new(
        "G08",
        "at a time limit the value of the state that is left, not of the one that is reached",
        GAE,
        &["copied:next_value<-value:where-truncated"],
        |given| {
            let (values, truncated) = (given.values("value"), given.values("truncated"));
            given.core().map("next_value", |slot, next| if truncated[slot] != 0.0 { values[slot] } else { next }).run()
        },
    ),
    Mutant::new(
        "G08b",
        "the value of the state that is left everywhere",
        GAE,
        &["copied:next_value<-value"],
        |given| given.core().input("next_value", given.values("value")).run(),
    ),
    Mutant::new(
        "G09",
        "the reward of the step that ends the episode is lost",
        GAE,
        &["input:reward:zero-where-terminated"],
        |given| {
            let terminated = given.values("terminated");
            given.core().map("reward", |slot, reward| if terminated[slot] != 0.0 { 0.0 } else { reward }).run()
        },
    ),
    Mutant::new("G10", "truncation is read one step early", GAE, &["input:truncated:from-previous-step"], |given| {
        given.core().input("truncated", shifted(given, "truncated", false)).run()
    }),
    Mutant::new(
        "G11",
        "rewards are stored before the observation: one step late",
        LAMBDA,
        &["input:reward:from-previous-step"],
        |given| given.core().input("reward", shifted(given, "reward", false)).run(),
    ),
    Mutant::new(
        "G12",
        "the score is put on the first padding slot",
        ("reward.assemble", Some("verl-0.9"), &["mask"]),
        &["input:mask:keeps-one-more"],
        |given| {
            let (rows, columns) = given.size();
            let mut reward = vec![0.0; rows * columns];
            for (row, (kept, score)) in given.kept().iter().zip(given.values("score")).enumerate() {
                let end = kept.iter().rposition(|kept| *kept).map_or(0, |last| last + 1).min(columns - 1);
                if kept.contains(&true) {
                    reward[row * columns + end] = score;
                }
            }
            Ok(vec![("reward", reward)])
        },
    ),
    Mutant::new(
        "G13",
        "the reward's end index is the count plus one",
        PLAIN_GAE,
        &["input:reward:from-previous-step"],
        |given| given.core().input("reward", shifted(given, "reward", false)).run(),
    ),
    Mutant::new(
        "G14",
        "per-step discounts are one step out of phase",
        LAMBDA,
        &["input:discount:from-next-step", "input:discount:rolled-from-next-step"],
        |given| {
            let (_, columns) = given.size();
            let mut discount = given.values("discount");
            discount.chunks_mut(columns).for_each(|row| row.rotate_left(1));
            given.core().input("discount", discount).run()
        },
    ),
    Mutant::new(
        "G15",
        "the trace is cut on termination only",
        GAE,
        &["input:truncated:ignored", "input:truncated:zero"],
        |given| {
            let terminated = given.values("terminated");
            gae(given, |slot| terminated[slot] == 0.0, |slot| terminated[slot] == 0.0)
        },
    ),
    Mutant::new("G15b", "the trace is never cut", GAE, &["trace:never-cut"], |given| {
        let terminated = given.values("terminated");
        gae(given, |slot| terminated[slot] == 0.0, |_| true)
    }),
    Mutant::new(
        "G16",
        "where the episode ends the target is the next value, not the reward",
        LAMBDA,
        &["copied:reward<-next_value:where-terminated"],
        |given| {
            let (next, terminated) = (given.values("next_value"), given.values("terminated"));
            given.core().map("reward", |slot, reward| if terminated[slot] != 0.0 { next[slot] } else { reward }).run()
        },
    ),
    Mutant::new(
        "G17",
        "values of the landing state one step on",
        ("advantage.q_lambda", None, &["log_prob", "old_log_prob", "greedy", "mask", "gamma", "trace_decay"]),
        &["input:next_value:from-next-step", "input:next_value:rolled-from-next-step"],
        |given| {
            let (_, columns) = given.size();
            let mut next = given.values("next_value");
            next.chunks_mut(columns).for_each(|row| row.rotate_left(1));
            given.core().input("next_value", next).run()
        },
    ),
    Mutant::new(
        "G18",
        "the bootstrap is weighted by one minus the number of ends",
        ("advantage.discounted_return", None, &["bootstrap_value", "terminated", "mask", "gamma"]),
        &["input:bootstrap_value:*"],
        |given| {
            let (_, columns) = given.size();
            let ends: Vec<f64> =
                by_rows(&given.values("terminated"), columns).iter().map(|row| row.iter().sum()).collect();
            given.core().map("bootstrap_value", |row, value| value * (1.0 - ends[row])).run()
        },
    ),
    Mutant::new(
        "G20",
        "the last step's end flag serves for every step",
        RETURN,
        &["input:terminated:last-of-row"],
        |given| {
            let (_, columns) = given.size();
            let last = by_rows(&given.values("terminated"), columns)
                .into_iter()
                .flat_map(|row| vec![row[columns - 1]; columns]);
            given.core().input("terminated", last.collect()).run()
        },
    ),
    Mutant::new(
        "G22",
        "the last reward of each row is dropped and its value serves as the bootstrap",
        ("advantage.vtrace", Some("paper"), &["gamma"]),
        &["copied:reward<-value:last-step"],
        |given| {
            // Over T - 1 steps with the last value as bootstrap; the last step's own target is its value.
            let (rows, columns) = given.size();
            let (gamma, decay) = (given.number("gamma"), given.number("trace_decay"));
            let (rewards, values) = (given.values("reward"), given.values("value"));
            let (new, old) = (given.values("log_prob"), given.values("old_log_prob"));
            let clipped = |slot: usize| plumbline_core::num::Real::exp(new[slot] - old[slot]).min(1.0);
            let mut targets = values.clone();
            for row in 0..rows {
                let mut ahead = 0.0;
                for slot in (row * columns..(row + 1) * columns - 1).rev() {
                    let delta = clipped(slot) * (rewards[slot] + gamma * values[slot + 1] - values[slot]);
                    ahead = delta + gamma * decay * clipped(slot) * ahead;
                    targets[slot] = values[slot] + ahead;
                }
            }
            Ok(vec![("returns", targets)])
        },
    ),
    Mutant::new(
        "J08",
        "the end of the episode never lies in the slice",
        ("advantage.retrace", None, &["log_prob", "old_log_prob", "terminated", "mask", "gamma", "trace_decay"]),
        &["input:terminated:ignored", "input:terminated:zero"],
        |given| given.core().without("terminated").run(),
    ),
];

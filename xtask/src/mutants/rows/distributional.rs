//! M: distributions of returns.

use super::{Mutant, Target, by_rows};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{Answer, Given};
use plumbline_core::spec::Value;

const PROJECTION: Target = ("td.categorical_projection", None, &["done", "discount", "value_min", "value_max"]);
const QUANTILES: Target = ("td.qr_dqn", None, &["done", "discount", "huber_threshold"]);
const SAMPLED: Target = ("td.iqn", None, &["done", "discount", "huber_threshold"]);

fn projection(given: &Given<'_>, limited: bool, keeps_whole: bool) -> Answer {
    let width = given.shape("next_probability")[1];
    let (low, high) = (given.number("value_min"), given.number("value_max"));
    let gap = (high - low) / (width as f64 - 1.0);
    let gamma = given.number("discount");
    let (rewards, done) = (given.values("reward"), given.values("done"));
    let mut all = Vec::new();
    for (row, probabilities) in by_rows(&given.values("next_probability"), width).iter().enumerate() {
        let mut target = vec![0.0; width];
        let ends = done.get(row).is_some_and(|done| *done != 0.0);
        // Behind an end all mass lies on the reward.
        let whole = |atom: usize| f64::from(u8::from(atom == 0));
        let probabilities: Vec<f64> = if ends { (0..width).map(whole).collect() } else { probabilities.clone() };
        for (atom, probability) in probabilities.iter().enumerate() {
            let follows = if ends { 0.0 } else { gamma };
            let mut value = rewards[row] + follows * (low + gap * atom as f64);
            if limited {
                value = value.clamp(low, high);
            } else if value < low || value > high {
                continue;
            }
            let position = (value - low) / gap;
            let (lower, upper) = (position.floor(), position.ceil());
            if lower == upper {
                target[lower as usize] += if keeps_whole { *probability } else { 0.0 };
            } else {
                target[lower as usize] += probability * (upper - position);
                target[upper as usize] += probability * (position - lower);
            }
        }
        all.extend(target.into_iter().map(lift));
    }
    given.answer(all)
}

fn quantile_loss(given: &Given<'_>, share: impl Fn(usize, usize, bool) -> f64) -> Answer {
    let (count, targets) = (given.shape("quantile")[1], given.shape("next_quantile")[1]);
    let quantiles = given.variables("quantile");
    let next = by_rows(&given.values("next_quantile"), targets);
    let (rewards, done) = (given.values("reward"), given.values("done"));
    let (gamma, threshold) = (given.number("discount"), given.number("huber_threshold"));
    let losses = (0..rewards.len()).map(|row| {
        let follows = if done.get(row).is_some_and(|done| *done != 0.0) { 0.0 } else { gamma };
        sum((0..count).map(|i| {
            mean(
                (0..targets)
                    .map(|j| {
                        let ahead = if follows == 0.0 { 0.0 } else { follows * next[row][j] };
                        let error = -(quantiles[row * count + i].clone() - (rewards[row] + ahead));
                        let size = error.value.abs();
                        let below = error.value < 0.0;
                        let huber: Scalar = if size <= threshold {
                            error.clone() * error * 0.5
                        } else {
                            let distance = if below { -error } else { error };
                            (distance - threshold / 2.0) * threshold
                        };
                        huber * share(i, j, below)
                    })
                    .collect(),
            )
        }))
    });
    given.answer(vec![mean(losses.collect())])
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("M01", "mass that falls on an atom is lost", PROJECTION, &["kind:invariance"], |given| {
        projection(given, true, false)
    }),
    Mutant::new("M03", "mass beyond the ends is lost", PROJECTION, &["kind:invariance"], |given| {
        projection(given, false, true)
    }),
    Mutant::new("M04", "a fraction means one minus itself", SAMPLED, &["input:fraction:complement"], |given| {
        given.core().map("fraction", |_, fraction| 1.0 - fraction).run()
    }),
    Mutant::new("M05", "fractions run along the targets' axis", QUANTILES, &["kind:raised"], |given| {
        let (count, targets) = (given.shape("quantile")[1], given.shape("next_quantile")[1]);
        if count != targets {
            return Err(format!("ValueError: operands could not be broadcast together ({count},) ({targets},)"));
        }
        let middle = |index: usize| (2.0 * index as f64 + 1.0) / (2.0 * count as f64);
        quantile_loss(given, |_, j, below| if below { 1.0 - middle(j) } else { middle(j) })
    }),
    Mutant::new(
        "M06",
        "without the division by the threshold",
        SAMPLED,
        &["param:divide_by_threshold=false"],
        |given| given.core().set("divide_by_threshold", Value::Flag(false)).run(),
    )
    .variant(),
    Mutant::new("M07", "the mean over quantiles for the sum", QUANTILES, &["param:quantile_reduction=mean"], |given| {
        let count = given.shape("quantile")[1];
        let middle = |index: usize| (2.0 * index as f64 + 1.0) / (2.0 * count as f64);
        quantile_loss(given, |i, _, below| (if below { 1.0 - middle(i) } else { middle(i) }) / count as f64)
    })
    .variant(),
    Mutant::new(
        "M08",
        "probabilities where logits are meant",
        ("td.c51", None, &["done", "discount"]),
        &["input:logit:softmax"],
        |given| {
            let width = given.shape("logit")[1];
            let softmax = |row: &[Scalar]| -> Vec<Scalar> {
                let largest = row.iter().map(|x| x.value).fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<Scalar> = row.iter().map(|x| (x.clone() - largest).exp()).collect();
                let whole = sum(powers.clone());
                powers.into_iter().map(|power| power / whole.clone()).collect()
            };
            let mut target = given.core().run_with(&["target_probability"])?;
            let target = by_rows(&target.pop().unwrap_or_default().1, width);
            let logits = given.variables("logit");
            let rows = logits.chunks(width).zip(&target).map(|(row, target)| {
                let twice = softmax(&softmax(row));
                -sum(twice.into_iter().zip(target).map(|(p, t)| p.ln() * *t))
            });
            given.answer(vec![mean(rows.collect())])
        },
    ),
    Mutant::new(
        "M09",
        "the mean over the batch for that over the actions",
        ("td.dueling", None, &["baseline"]),
        &["axis:*"],
        |given| {
            let width = given.shape("advantage")[1];
            let (values, advantages) = (given.variables("value"), given.variables("advantage"));
            let rows = values.len();
            let all = (0..rows).flat_map(|row| (0..width).map(move |action| (row, action)));
            let q = all.map(|(row, action)| {
                let column = mean((0..rows).map(|other| advantages[other * width + action].clone()).collect());
                values[row].clone() + advantages[row * width + action].clone() - column
            });
            given.answer(q.collect())
        },
    ),
];

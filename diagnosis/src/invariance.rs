//! Invariances: what must not change when a case is changed in a way that does not matter, and what must be kept.

use super::evidence::Sample;
use super::tolerance::Tolerance;
use super::words::{number, place};
use crate::vectors::{Purpose, Relation};
use plumbline_evaluate::tensor::Tensor;

/// The invariances that fail, each in a sentence with its numbers.
pub(super) fn failures(
    samples: &[Sample<'_>],
    find: &dyn Fn(usize) -> Option<String>,
    tolerance: Tolerance,
) -> Vec<String> {
    let mut failed = Vec::new();
    for sample in samples {
        let Purpose::Related { relation, clean } = sample.case.purpose else { continue };
        let Some(clean) = find(clean).and_then(|id| samples.iter().find(|other| other.case.id == id)) else { continue };
        if let Some((position, before, after)) = broken(clean, sample, relation, tolerance) {
            failed.push(format!(
                "It depends on what must not matter: where {}, `{}`{} becomes {} instead of {}",
                relation.words(),
                sample.main.0,
                place(&position),
                number(after),
                number(before)
            ));
        }
        if relation == Relation::FirstShard {
            failed.extend(torn(clean, sample, samples, tolerance));
        }
    }
    failed.extend(trace(samples, tolerance));
    failed.extend(lost_mass(samples, tolerance));
    failed
}

/// A sum or mean that is not what its two shards give together, although the right one is.
fn torn(whole: &Sample<'_>, first: &Sample<'_>, samples: &[Sample<'_>], tolerance: Tolerance) -> Option<String> {
    let is_other =
        |sample: &&Sample<'_>| matches!(sample.case.purpose, Purpose::Related { relation: Relation::OtherShard, .. });
    let other = samples.iter().find(is_other)?;
    let got = |sample: &Sample<'_>| Some(*sample.got.value.first().filter(|_| sample.main.1.is_empty())?);
    let right = |sample: &Sample<'_>| sample.expected.value.first().copied();
    // What a shard may count by: its tokens, its rows, itself.
    let tokens = |sample: &Sample<'_>| {
        let mask = sample.case.input("mask").filter(|mask| mask.shape.len() == 2);
        mask.map(|mask| mask.values.iter().filter(|kept| **kept != 0.0).count() as f64)
    };
    let rows = |sample: &Sample<'_>| {
        sample.case.inputs.iter().find_map(|(_, tensor)| tensor.shape.first()).map(|rows| *rows as f64)
    };
    let together = |weights: [f64; 2], total: f64, of: [f64; 2]| (weights[0] * of[0] + weights[1] * of[1]) / total;
    let ways = [
        (tokens(first).zip(tokens(other)), "weighted by their tokens"),
        (rows(first).zip(rows(other)), "weighted by their rows"),
        (Some((1.0, 1.0)), "added"),
    ];
    for (weights, words) in ways {
        let Some((one, two)) = weights else { continue };
        let total = if words == "added" { 1.0 } else { one + two };
        if tolerance.same(together([one, two], total, [right(first)?, right(other)?]), right(whole)?) {
            let parts = together([one, two], total, [got(first)?, got(other)?]);
            return (!tolerance.same(parts, got(whole)?)).then(|| {
                format!(
                    "It depends on how the batch is cut into shards: its two halves of rows, {words}, give {}, and the whole \
                     gives {}",
                    number(parts),
                    number(whole.got.value[0])
                )
            });
        }
    }
    None
}

/// Where a sum of errors telescopes to the return, and where only one error is left of it.
fn trace(samples: &[Sample<'_>], tolerance: Tolerance) -> Vec<String> {
    let of = |wanted: Relation| {
        samples
            .iter()
            .find(|sample| matches!(sample.case.purpose, Purpose::Related { relation, .. } if relation == wanted))
    };
    let wrong = |sample: &Sample<'_>, what: &str| {
        let mut pairs = sample.pairs().filter(|(output, ..)| *output == sample.main.0);
        let (output, position, got, expected) = pairs.find(|(_, _, got, right)| !tolerance.same(*got, *right))?;
        let words = match sample.case.purpose {
            Purpose::Related { relation, .. } => relation.words(),
            _ => return None,
        };
        Some(format!(
            "Where {words}, {what}, but `{output}`{} is {} instead of {}",
            place(&position),
            number(got),
            number(expected)
        ))
    };
    let one = of(Relation::TraceOfOne)
        .and_then(|sample| wrong(sample, "it telescopes to the return (an advantage: the return less the value)"));
    let Some(sample) = of(Relation::TraceOfZero) else { return one.into_iter().collect() };
    let zero = wrong(sample, "it is the target of one step (an advantage: one temporal-difference error)");
    let only_trace = match (&one, &zero) {
        (Some(_), None) => Some(format!(
            "Where {}, all is right: the error of one step is, and what adds the errors up is not",
            Relation::TraceOfZero.words()
        )),
        _ => None,
    };
    one.into_iter().chain(zero).chain(only_trace).collect()
}

/// The first number that changed although the right ones do not.
fn broken(
    clean: &Sample<'_>,
    changed: &Sample<'_>,
    relation: Relation,
    tolerance: Tolerance,
) -> Option<(Vec<usize>, f64, f64)> {
    if let Relation::TraceOfOne | Relation::TraceOfZero = relation {
        return None;
    }
    let shape = &clean.main.1;
    let counterpart = |position: &[usize]| -> Option<usize> {
        let mut position = position.to_vec();
        if let (Some(row), Some(rows)) = (position.first_mut(), shape.first()) {
            match relation {
                Relation::ReversedRows => *row = rows.checked_sub(1 + *row)?,
                Relation::OtherShard => *row = row.checked_sub(rows.div_ceil(2))?,
                _ => {}
            }
        }
        let other = &changed.main.1;
        position.iter().zip(other).try_fold(0, |flat, (index, size)| (index < size).then_some(flat * size + index))
    };
    let positions = Tensor { shape: shape.clone(), values: Vec::new() };
    let pairs: Vec<(usize, usize)> = (0..clean.got.value.len())
        .filter(|slot| clean.kept[*slot])
        .filter_map(|slot| Some((slot, counterpart(&positions.position(slot))?)))
        .collect();
    let at = |numbers: &[f64], slot: usize| numbers.get(slot).copied().unwrap_or(f64::NAN);
    let is_invariant =
        pairs.iter().all(|(a, b)| tolerance.same(at(&changed.expected.value, *b), at(&clean.expected.value, *a)));
    if !is_invariant {
        return None;
    }
    let differs =
        |pair: &&(usize, usize)| !tolerance.same(at(&changed.got.value, pair.1), at(&clean.got.value, pair.0));
    let (slot, other) = pairs.iter().find(differs)?;
    Some((positions.position(*slot), at(&clean.got.value, *slot), at(&changed.got.value, *other)))
}

/// Distributions that do not sum to 1.
fn lost_mass(samples: &[Sample<'_>], tolerance: Tolerance) -> Option<String> {
    let sums = |sample: &Sample<'_>, numbers: &[f64]| -> Option<Vec<f64>> {
        let width = *sample.main.1.last().filter(|_| sample.main.1.len() > 1)?;
        Some(numbers.chunks(width.max(1)).map(|row| row.iter().sum()).collect())
    };
    let all_are_one = samples.iter().all(|sample| {
        sums(sample, &sample.expected.value).is_some_and(|sums| sums.iter().all(|sum| tolerance.same(*sum, 1.0)))
    });
    if !all_are_one {
        return None;
    }
    samples.iter().find_map(|sample| {
        let sums = sums(sample, &sample.got.value)?;
        let (row, sum) = sums.iter().enumerate().find(|(_, sum)| !tolerance.same(**sum, 1.0))?;
        let case = &sample.case.id;
        Some(format!(
            "Mass is lost or made: row {row} of `{}` sums to {} on `{case}`, not to 1",
            sample.main.0,
            number(*sum)
        ))
    })
}

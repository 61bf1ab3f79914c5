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
    }
    failed.extend(lost_mass(samples, tolerance));
    failed
}

/// The first number that changed although the right ones do not.
fn broken(
    clean: &Sample<'_>,
    changed: &Sample<'_>,
    relation: Relation,
    tolerance: Tolerance,
) -> Option<(Vec<usize>, f64, f64)> {
    let shape = &clean.main.1;
    let counterpart = |position: &[usize]| -> Option<usize> {
        let mut position = position.to_vec();
        if relation == Relation::ReversedRows
            && let (Some(row), Some(rows)) = (position.first_mut(), shape.first())
        {
            *row = rows.checked_sub(1 + *row)?;
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

//! The rows of a batch in parts, for an engine with several threads.

use super::batch::{PolicyBatch, PolicyOutputs, Spread};
use super::partial::PolicyPartial;
use super::{EntropyAggregation, PolicyObjective, row};
use crate::Error;
use crate::batch::{Mask, TokenShape, cut};
use crate::engine::Engine;
use crate::num::Real;
use crate::reduce::Totals;

/// Whether a batch is to be divided. Where a row needs others (a mean by groups, an entropy averaged over kept tokens) it is
/// one part.
pub(super) fn divides<R: Real>(
    engine: impl Engine,
    objective: &PolicyObjective<R>,
    batch: &PolicyBatch<'_, R>,
) -> bool {
    let kept_mean = objective.entropy.is_some_and(|term| term.aggregation == EntropyAggregation::KeptTokenMean);
    let shape = batch.mask.shape();
    shape.rows > 1 && batch.groups.is_none() && !kept_mean && engine.divides(shape.slots())
}

/// The sums of a batch, whose halves are accumulated each by itself. Indices in an error are those of a part.
pub(super) fn accumulate<R: Real, E: Engine>(
    engine: E,
    objective: &PolicyObjective<R>,
    batch: PolicyBatch<'_, R>,
    totals: &Totals,
    divisor: R,
    mut outputs: PolicyOutputs<'_, R>,
) -> Result<PolicyPartial<R>, Error> {
    if !divides(engine, objective, &batch) {
        let mut partial = PolicyPartial::new();
        row::accumulate(engine, objective, &batch, totals, divisor, &mut outputs, &mut partial)?;
        return Ok(partial);
    }
    let TokenShape { rows, columns } = batch.mask.shape();
    let middle = rows / 2;
    let (first, second) = (rows_of(&batch, 0, middle)?, rows_of(&batch, middle, rows)?);
    let (first_outputs, second_outputs) = split(outputs, middle.saturating_mul(columns));
    let (left, right) = engine.both(
        || accumulate(engine, objective, first, totals, divisor, first_outputs),
        || accumulate(engine, objective, second, totals, divisor, second_outputs),
    );
    let mut merged = left?;
    merged.merge(&right?);
    Ok(merged)
}

/// Rows `start..end` of a batch whose slices have been checked.
fn rows_of<'a, R: Real>(batch: &PolicyBatch<'a, R>, start: usize, end: usize) -> Result<PolicyBatch<'a, R>, Error> {
    let columns = batch.mask.shape().columns;
    let (from, to) = (start.saturating_mul(columns), end.saturating_mul(columns));
    let numbers = |values: &'a [R]| values.get(from..to).unwrap_or(&[]);
    let bytes = |values: &'a [u8]| values.get(from..to).unwrap_or(&[]);
    let spread = |values: Spread<'a, R>| match values {
        Spread::PerToken(values) => Spread::PerToken(numbers(values)),
        Spread::PerRow(values) => Spread::PerRow(values.get(start..end).unwrap_or(&[])),
    };
    let shape = TokenShape { rows: end.saturating_sub(start), columns };
    Ok(PolicyBatch {
        log_prob: numbers(batch.log_prob),
        old_log_prob: batch.old_log_prob.map(numbers),
        ref_log_prob: batch.ref_log_prob.map(numbers),
        advantage: spread(batch.advantage),
        mask: Mask::new(shape, batch.mask.bytes().map(bytes))?,
        groups: None,
        importance_weight: batch.importance_weight.map(spread),
        keep: batch.keep.map(bytes),
        selected: batch.selected.map(bytes),
        entropy: batch.entropy.map(numbers),
    })
}

/// Outputs before and from a slot.
fn split<R>(outputs: PolicyOutputs<'_, R>, slot: usize) -> (PolicyOutputs<'_, R>, PolicyOutputs<'_, R>) {
    let (d_log_prob, d_log_prob_from) = cut(outputs.d_log_prob, slot);
    let (d_entropy, d_entropy_from) = cut(outputs.d_entropy, slot);
    let (token_loss, token_loss_from) = cut(outputs.token_loss, slot);
    let (token_weight, token_weight_from) = cut(outputs.token_weight, slot);
    (
        PolicyOutputs { d_log_prob, d_entropy, token_loss, token_weight },
        PolicyOutputs {
            d_log_prob: d_log_prob_from,
            d_entropy: d_entropy_from,
            token_loss: token_loss_from,
            token_weight: token_weight_from,
        },
    )
}

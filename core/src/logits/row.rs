//! One row of logits, judged once, and the walk over a batch of them.

use crate::Error;
use crate::batch::{cut, row_of};
use crate::engine::{Engine, Portable};
use crate::num::{BLOCK, LogPartition, Real, RowSum, tree_sum_map};
use crate::spec::{Call, Domain, InputSpec, OutputSpec, ParamSpec, Range};

/// A row of logits with its softmax's normaliser.
///
/// −∞ excludes an entry: its probability and its gradient are 0. Every other non-finite logit is an error, and so is a row
/// that excludes everything. Several functions of the same row share one `SoftmaxRow`.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxRow<'a, R> {
    logits: &'a [R],
    partition: LogPartition<R>,
}

impl<'a, R: Real> SoftmaxRow<'a, R> {
    /// Judge a row at temperature τ > 0.
    pub fn new(logits: &'a [R], temperature: R) -> Result<Self, Error> {
        Self::judge("logits", 0, logits, temperature)
    }

    /// The same for the row of the argument's matrix that starts at `offset`.
    pub(super) fn judge(argument: &'static str, offset: usize, logits: &'a [R], temperature: R) -> Result<Self, Error> {
        Self::judge_by(Portable, argument, offset, logits, temperature)
    }

    /// The same, the passes called by an engine.
    pub(super) fn judge_by(
        engine: impl Engine,
        argument: &'static str,
        offset: usize,
        logits: &'a [R],
        temperature: R,
    ) -> Result<Self, Error> {
        match LogPartition::new_by(engine, logits, temperature) {
            Some(partition) => Ok(SoftmaxRow { logits, partition }),
            None => Err(match logits.iter().position(|logit| logit.is_nan() || *logit == R::infinity()) {
                Some(index) => Error::NonFinite { argument, index: offset.saturating_add(index) },
                None => Error::EmptyMask { argument },
            }),
        }
    }

    /// The logits.
    pub fn logits(&self) -> &'a [R] {
        self.logits
    }

    /// The normaliser.
    pub fn partition(&self) -> LogPartition<R> {
        self.partition
    }

    /// The log-probability of an entry with that logit.
    #[inline(always)]
    pub fn log_prob(&self, logit: R) -> R {
        self.partition.log_prob(logit)
    }

    /// Σ term(p, ln p) over the entries whose probability is above 0.
    pub(super) fn sum(&self, term: impl Fn(R, R) -> R) -> R {
        tree_sum_map(self.logits, |logit| self.term(*logit, &term))
    }

    /// The same, the pass called by an engine.
    pub(super) fn sum_by(&self, engine: impl Engine, term: impl Fn(R, R) -> R) -> R {
        engine.run(self, move |row| {
            let mut sum = RowSum::new();
            for chunk in row.logits.chunks(BLOCK) {
                let mut block = [R::zero(); BLOCK];
                for (slot, logit) in block.iter_mut().zip(chunk) {
                    *slot = row.term(*logit, &term);
                }
                sum.push(&block);
            }
            sum.value()
        })
    }

    #[inline(always)]
    fn term(&self, logit: R, term: impl Fn(R, R) -> R) -> R {
        let log_prob = self.log_prob(logit);
        let probability = log_prob.exp();
        if probability == R::zero() { R::zero() } else { term(probability, log_prob) }
    }

    /// Write cotangent·slope(p, ln p)/τ for every entry, +0 for excluded ones.
    pub(super) fn write_gradient(&self, gradient: &mut [R], cotangent: R, slope: impl Fn(R, R) -> R) {
        self.write_gradient_by(Portable, gradient, cotangent, slope);
    }

    /// The same, the pass called by an engine.
    pub(super) fn write_gradient_by(
        &self,
        engine: impl Engine,
        gradient: &mut [R],
        cotangent: R,
        slope: impl Fn(R, R) -> R,
    ) {
        engine.run((self, gradient), move |(row, gradient)| {
            let temperature = row.partition.temperature();
            for (slot, logit) in gradient.iter_mut().zip(row.logits) {
                let log_prob = row.log_prob(*logit);
                let value = cotangent * slope(log_prob.exp(), log_prob) / temperature;
                *slot = if *logit == R::neg_infinity() { R::zero() } else { value };
            }
        });
    }
}

/// The logits of N rows.
pub(super) const LOGITS: InputSpec =
    InputSpec::new("logits", Domain::Logit, &[&["N", "V"]], "logits of N rows over V entries; -inf excludes an entry");
/// Which rows count.
pub(super) const ROW_MASK: InputSpec = InputSpec::new(
    "mask",
    Domain::Mask,
    &[&["N"]],
    "1 where the row counts, 0 where it is absent; without it every row counts",
)
.optional();
/// The upstream gradient of a value per row.
pub(super) const COTANGENT: InputSpec =
    InputSpec::new("cotangent", Domain::Real, &[&["N"]], "upstream gradient of each row's value; without it all are 1")
        .optional();
/// τ.
pub const TEMPERATURE: ParamSpec =
    ParamSpec::number("temperature", r"\tau", 1.0, Range::POSITIVE, "divides the logits before the softmax");
/// The gradient by the logits.
pub(super) const D_LOGITS: OutputSpec =
    OutputSpec::gradient("d_logits", "logits", &["N", "V"], "gradient by the logits; 0 where an entry is excluded");

/// The mask and the cotangents of N rows.
pub(super) struct Rows<'c, R> {
    count: usize,
    mask: Option<&'c [u8]>,
    cotangent: Option<&'c [R]>,
}

impl<'c, R: Real> Rows<'c, R> {
    pub(super) fn new(call: &Call<'c, R>) -> Self {
        Rows {
            count: call.dim("N"),
            mask: call.optional_bytes(ROW_MASK.name),
            cotangent: call.optional_real(COTANGENT.name),
        }
    }

    /// Whether a row counts.
    pub(super) fn keeps(&self, row: usize) -> bool {
        self.mask.is_none_or(|bytes| bytes.get(row).is_some_and(|byte| *byte != 0))
    }

    /// The rows that count.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).filter(|row| self.keeps(*row))
    }

    /// The cotangent of a row's value.
    pub(super) fn cotangent(&self, row: usize) -> Result<R, Error> {
        match self.cotangent.map(|values| values.get(row).copied().unwrap_or(R::zero())) {
            None => Ok(R::one()),
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(Error::NonFinite { argument: COTANGENT.name, index: row }),
        }
    }
}

/// Take an output's buffer and clear it, so that rows which do not count hold +0.
pub(super) fn cleared<'c, R: Real>(call: &mut Call<'c, R>, name: &str) -> Option<&'c mut [R]> {
    let buffer = call.output(name)?;
    buffer.fill(R::zero());
    Some(buffer)
}

/// Write one element of an optional buffer.
pub(super) fn set<R>(buffer: &mut Option<&mut [R]>, index: usize, value: R) {
    if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
        *slot = value;
    }
}

/// One row of an optional matrix buffer.
pub(super) fn row_mut<'b, R>(buffer: &'b mut Option<&mut [R]>, width: usize, row: usize) -> Option<&'b mut [R]> {
    let start = row.saturating_mul(width);
    buffer.as_deref_mut()?.get_mut(start..start.saturating_add(width))
}

/// A function of one row with a scalar value: value and gradient, row by row, the rows on as many threads as the engine has.
pub(super) fn map_rows<'c, R: Real, E: Engine>(
    engine: E,
    call: &mut Call<'c, R>,
    value_name: &str,
    value: impl Fn(usize, &SoftmaxRow<'c, R>) -> R + Sync,
    write_gradient: impl Fn(usize, &SoftmaxRow<'c, R>, R, R, &mut [R]) + Sync,
) -> Result<(), Error> {
    let rows = Rows::new(call);
    let (logits, width) = (call.real(LOGITS.name)?, call.dim("V"));
    let temperature = call.number(TEMPERATURE.name)?;
    let values = cleared(call, value_name);
    let gradients = cleared(call, D_LOGITS.name);
    let one = |row: usize, slot: Option<&mut R>, gradient: Option<&mut [R]>| {
        if !rows.keeps(row) {
            return Ok(());
        }
        let offset = row.saturating_mul(width);
        let softmax = SoftmaxRow::judge_by(engine, LOGITS.name, offset, row_of(logits, width, row), temperature)?;
        let result = value(row, &softmax);
        if let Some(slot) = slot {
            *slot = result;
        }
        let cotangent = rows.cotangent(row)?;
        if let Some(gradient) = gradient {
            write_gradient(row, &softmax, result, cotangent, gradient);
        }
        Ok(())
    };
    walk(engine, 0..rows.count, width, values, gradients, &one)
}

/// Call `one` with every row and its part of the outputs. The first error is that of the first row that has one.
fn walk<R: Real, E: Engine>(
    engine: E,
    rows: core::ops::Range<usize>,
    width: usize,
    mut values: Option<&mut [R]>,
    mut gradients: Option<&mut [R]>,
    one: &(impl Fn(usize, Option<&mut R>, Option<&mut [R]>) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    if rows.len() > 1 && engine.divides(rows.len().saturating_mul(width)) {
        let half = rows.len() / 2;
        let middle = rows.start.saturating_add(half);
        let (first_values, second_values) = cut(values, half);
        let (first_gradients, second_gradients) = cut(gradients, half.saturating_mul(width));
        let (first, second) = engine.both(
            || walk(engine, rows.start..middle, width, first_values, first_gradients, one),
            || walk(engine, middle..rows.end, width, second_values, second_gradients, one),
        );
        return first.and(second);
    }
    for (place, row) in rows.enumerate() {
        let slot = values.as_deref_mut().and_then(|values| values.get_mut(place));
        one(row, slot, row_mut(&mut gradients, width, place))?;
    }
    Ok(())
}

//! One row of logits, judged once, and the walk over a batch of them.

use crate::Error;
use crate::batch::row_of;
use crate::num::{LogPartition, Real, tree_sum_map};
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
        if let Some(index) = logits.iter().position(|logit| logit.is_nan() || *logit == R::infinity()) {
            return Err(Error::NonFinite { argument, index: offset.saturating_add(index) });
        }
        let partition = LogPartition::new(logits, temperature).ok_or(Error::EmptyMask { argument })?;
        Ok(SoftmaxRow { logits, partition })
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
        tree_sum_map(self.logits, |logit| {
            let log_prob = self.log_prob(*logit);
            let probability = log_prob.exp();
            if probability == R::zero() { R::zero() } else { term(probability, log_prob) }
        })
    }

    /// Write cotangent·slope(p, ln p)/τ for every entry, +0 for excluded ones.
    pub(super) fn write_gradient(&self, gradient: &mut [R], cotangent: R, slope: impl Fn(R, R) -> R) {
        let temperature = self.partition.temperature();
        for (slot, logit) in gradient.iter_mut().zip(self.logits) {
            *slot = if *logit == R::neg_infinity() {
                R::zero()
            } else {
                let log_prob = self.log_prob(*logit);
                cotangent * slope(log_prob.exp(), log_prob) / temperature
            };
        }
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

    /// The rows that count.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> + 'c {
        let mask = self.mask;
        (0..self.count).filter(move |row| mask.is_none_or(|bytes| bytes.get(*row).is_some_and(|byte| *byte != 0)))
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

/// A function of one row with a scalar value: value and gradient, row by row.
pub(super) fn map_rows<'c, R: Real>(
    call: &mut Call<'c, R>,
    value_name: &str,
    value: impl Fn(usize, &SoftmaxRow<'c, R>) -> R,
    write_gradient: impl Fn(usize, &SoftmaxRow<'c, R>, R, R, &mut [R]),
) -> Result<(), Error> {
    let rows = Rows::new(call);
    let (logits, width) = (call.real(LOGITS.name)?, call.dim("V"));
    let temperature = call.number(TEMPERATURE.name)?;
    let mut values = cleared(call, value_name);
    let mut gradients = cleared(call, D_LOGITS.name);
    for row in rows.kept() {
        let offset = row.saturating_mul(width);
        let softmax = SoftmaxRow::judge(LOGITS.name, offset, row_of(logits, width, row), temperature)?;
        let result = value(row, &softmax);
        set(&mut values, row, result);
        let cotangent = rows.cotangent(row)?;
        if let Some(gradient) = row_mut(&mut gradients, width, row) {
            write_gradient(row, &softmax, result, cotangent, gradient);
        }
    }
    Ok(())
}

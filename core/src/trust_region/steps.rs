//! What the methods over a batch of N steps share: the mask, sums, inputs and parameters.

use crate::Error;
use crate::batch::{Mask, TokenShape};
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Domain, InputSpec, OutputSpec, ParamSpec, Range};

/// The steps that count.
pub(super) struct Steps<'a> {
    mask: Mask<'a>,
    count: usize,
}

impl<'a> Steps<'a> {
    /// Of a call; an error where none counts.
    pub(super) fn from_call<R: Real>(call: &Call<'a, R>, argument: &'static str) -> Result<Self, Error> {
        let mask = Mask::new(TokenShape { rows: 1, columns: call.dim("N") }, call.optional_bytes(STEP_MASK.name))?;
        match mask.count() {
            0 => Err(Error::EmptyMask { argument }),
            count => Ok(Steps { mask, count }),
        }
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = usize> + 'a {
        self.mask.kept(0)
    }

    pub(super) fn keeps(&self, step: usize) -> bool {
        self.mask.keeps(step)
    }

    /// How many steps count.
    pub(super) fn count<R: Real>(&self) -> R {
        R::from_count(self.count)
    }

    /// Σ over the steps that count, exactly; terms beyond the range count as its end.
    pub(super) fn sum<R: Real>(&self, term: impl Fn(usize) -> R) -> R {
        let mut total = ExactSum::new();
        self.kept().for_each(|step| total.add(term(step).limited()));
        total.value::<R>().limited()
    }

    /// An input's number at a step, finite.
    pub(super) fn finite<R: Real>(&self, name: &'static str, values: &[R], width: usize) -> Result<(), Error> {
        for step in self.kept() {
            let row = crate::batch::row_of(values, width, step);
            if let Some(column) = row.iter().position(|value| !value.is_finite()) {
                return Err(Error::NonFinite { argument: name, index: step * width + column });
            }
        }
        Ok(())
    }

    /// An input of one number per step, finite where the step counts.
    pub(super) fn column<'c, R: Real>(&self, call: &Call<'c, R>, name: &'static str) -> Result<&'c [R], Error> {
        let values = call.real(name)?;
        self.finite(name, values, 1)?;
        Ok(values)
    }

    /// The same of an input that may be left out.
    pub(super) fn optional_column<'c, R: Real>(
        &self,
        call: &Call<'c, R>,
        name: &'static str,
    ) -> Result<Option<&'c [R]>, Error> {
        if call.has(name) { self.column(call, name).map(Some) } else { Ok(None) }
    }
}

/// Take an output's buffer, cleared, so that steps which do not count hold +0.
pub(super) fn cleared<'c, R: Real>(call: &mut Call<'c, R>, name: &str) -> Option<&'c mut [R]> {
    let buffer = call.output(name)?;
    buffer.fill(R::zero());
    Some(buffer)
}

/// One element of a slice; +0 past its end.
#[inline(always)]
pub(super) fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

pub(super) const STEP_MASK: InputSpec = InputSpec::new(
    "mask",
    Domain::Mask,
    &[&["N"]],
    "1 where the step counts, 0 where it is absent; without it every step counts",
)
.optional();
pub(super) const LOG_PROB: InputSpec =
    InputSpec::new("log_prob", Domain::LogProb, &[&["N"]], "log-probability of the action taken (nats)");
pub(super) const REWARD: InputSpec = InputSpec::new("reward", Domain::Reward, &[&["N"]], "reward of each step");
pub(super) const DONE: InputSpec = InputSpec::new(
    "done",
    Domain::Done,
    &[&["N"]],
    "1 where the episode ended with this step; the value behind it is then absent. Without it no episode ends",
)
.optional();
pub(super) const DISCOUNT: ParamSpec =
    ParamSpec::number("discount", r"\gamma", 0.99, Range::UNIT, "discount factor per step");
pub(super) const LOSS: OutputSpec = OutputSpec::value("loss", &[], "the loss, a mean over the steps that count");
pub(super) const D_LOG_PROB: OutputSpec =
    OutputSpec::gradient("d_log_prob", "log_prob", &["N"], "derivative of the loss by each log-probability");

//! Trajectories in rows: rewards, discounts, and where an episode terminates, is truncated, or is padded.
//!
//! Every return of this family walks a row from its last step to its first. The conventions are shared by all of them:
//!
//! - An absent step (mask 0) is skipped: the step before it is followed by the step after it. So tokens that a tool
//!   wrote into a response, and padding, carry value and trace over unchanged.
//! - *Terminated*: the episode ended here by itself; what follows is worth 0 and nothing is carried over.
//! - *Truncated*: the episode was cut here; the step still bootstraps from the value of its own next state, and nothing
//!   is carried over from the step that stands behind it.
//! - The last step of a row is followed by `bootstrap_value`, or by 0 where there is none.

use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::spec::{Call, Domain, InputSpec, ParamSpec, Range};

/// The discount factor of a step.
#[derive(Clone, Copy, Debug)]
pub enum Discount<'a, R> {
    /// One γ for all steps.
    Constant(R),
    /// γ_t of each step, multiplying what follows step t.
    PerStep(&'a [R]),
}

/// Rewards in rows, how they are discounted, and where episodes end.
#[derive(Clone, Copy, Debug)]
pub struct Trajectories<'a, R> {
    /// Which steps are there.
    pub mask: Mask<'a>,
    /// r_t: reward of each step.
    pub reward: &'a [R],
    /// γ.
    pub discount: Discount<'a, R>,
    /// 1 where the episode terminates at this step.
    pub terminated: Option<&'a [u8]>,
    /// 1 where the episode is truncated at this step.
    pub truncated: Option<&'a [u8]>,
    /// Value of the state after each step, not read where the step terminates. Without it that of the next step
    /// present is used, which is wrong behind a truncation inside a row: there it is needed.
    pub next_value: Option<&'a [R]>,
    /// Value of the state after the last step of each row, where `next_value` is not given.
    pub bootstrap_value: Option<&'a [R]>,
}

/// One step as the recursions see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<R> {
    /// Flat index.
    pub slot: usize,
    pub reward: R,
    /// γ_t, and 0 where the step terminates.
    pub discount: R,
    /// Value of the next state; 0 where the step terminates.
    pub next_value: R,
    /// Whether nothing is carried over from the step behind: terminated, truncated, or the row's last.
    pub cut: bool,
}

#[inline(always)]
fn flag(bytes: Option<&[u8]>, slot: usize) -> bool {
    bytes.is_some_and(|bytes| bytes.get(slot).is_some_and(|byte| *byte != 0))
}

#[inline(always)]
pub(super) fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

impl<'a, R: Real> Trajectories<'a, R> {
    /// Check lengths, finite numbers and discounts. `value`: the state values that stand in for `next_value`, where
    /// the return uses any.
    pub fn check(&self, value: Option<&[R]>) -> Result<(), Error> {
        self.check_lengths(value)?;
        self.check_finite(value)?;
        self.check_ends()
    }

    pub(super) fn check_lengths(&self, value: Option<&[R]>) -> Result<(), Error> {
        let shape = self.mask.shape();
        shape.check(REWARD.name, self.reward)?;
        value.map_or(Ok(()), |value| shape.check(VALUE.name, value))
    }

    pub(super) fn check_finite(&self, value: Option<&[R]>) -> Result<(), Error> {
        self.mask.check_finite(REWARD.name, self.reward)?;
        value.map_or(Ok(()), |value| self.mask.check_finite(VALUE.name, value))
    }

    /// Discounts, and what stands behind each episode's end.
    pub(super) fn check_ends(&self) -> Result<(), Error> {
        let shape = self.mask.shape();
        match self.discount {
            Discount::Constant(gamma) => {
                let number = gamma.to_f64();
                if !Range::UNIT.contains(number) {
                    return Err(Error::OutOfRange { argument: GAMMA.name, value: number, legal: Range::UNIT.text });
                }
            }
            Discount::PerStep(discount) => {
                shape.check(DISCOUNT.name, discount)?;
                let illegal = |(slot, value): &(usize, &R)| {
                    self.mask.keeps(*slot) && !Range::UNIT.contains(Real::to_f64(**value))
                };
                if let Some((index, value)) = discount.iter().enumerate().find(illegal) {
                    let (value, legal) = (Real::to_f64(*value), Range::UNIT.text);
                    return Err(Error::ElementOutOfRange { argument: DISCOUNT.name, index, value, legal });
                }
            }
        }
        for (spec, flags) in [(TERMINATED, self.terminated), (TRUNCATED, self.truncated)] {
            if let Some(flags) = flags {
                shape.check(spec.name, flags)?;
            }
        }
        if let Some(next_value) = self.next_value {
            shape.check(NEXT_VALUE.name, next_value)?;
            let illegal = |(slot, value): &(usize, &R)| {
                !value.is_finite() && self.mask.keeps(*slot) && !flag(self.terminated, *slot)
            };
            return match next_value.iter().enumerate().find(illegal) {
                Some((index, _)) => Err(Error::NonFinite { argument: NEXT_VALUE.name, index }),
                None => Ok(()),
            };
        }
        if self.truncated.is_some() {
            for row in 0..shape.rows {
                let mut open = false;
                for slot in self.mask.kept(row) {
                    if open {
                        return Err(Error::MissingInput { argument: NEXT_VALUE.name });
                    }
                    open = flag(self.truncated, slot) && !flag(self.terminated, slot);
                }
            }
        }
        if let Some(bootstrap) = self.bootstrap_value {
            shape.check_rows(BOOTSTRAP_VALUE.name, bootstrap)?;
            for (index, value) in bootstrap.iter().enumerate() {
                let last = self.mask.kept(index).last();
                if !value.is_finite() && last.is_some_and(|slot| !flag(self.terminated, slot)) {
                    return Err(Error::NonFinite { argument: BOOTSTRAP_VALUE.name, index });
                }
            }
        }
        Ok(())
    }

    /// The steps of a row, last first. `value`: the state value at a flat index, which stands in for `next_value`.
    #[inline(always)]
    pub(super) fn reversed(&self, row: usize, value: impl Fn(usize) -> R, mut visit: impl FnMut(Step<R>)) {
        let columns = self.mask.shape().columns;
        let start = row.saturating_mul(columns);
        let mut next = None;
        for slot in (start..start.saturating_add(columns)).rev() {
            if self.mask.keeps(slot) {
                visit(self.step_before(row, slot, next, &value));
                next = Some(slot);
            }
        }
    }

    /// The step at a flat index of a row. Finds the step behind it by a scan.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub(super) fn step(&self, row: usize, slot: usize, value: impl Fn(usize) -> R) -> Step<R> {
        self.step_before(row, slot, self.next_kept(row, slot), &value)
    }

    /// The step that follows within the same episode.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub(super) fn follower(&self, row: usize, slot: usize) -> Option<usize> {
        if flag(self.terminated, slot) || flag(self.truncated, slot) { None } else { self.next_kept(row, slot) }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn next_kept(&self, row: usize, slot: usize) -> Option<usize> {
        let columns = self.mask.shape().columns;
        let end = row.saturating_mul(columns).saturating_add(columns);
        (slot.saturating_add(1)..end).find(|slot| self.mask.keeps(*slot))
    }

    #[inline(always)]
    fn step_before(&self, row: usize, slot: usize, next: Option<usize>, value: impl Fn(usize) -> R) -> Step<R> {
        let terminated = flag(self.terminated, slot);
        let discount = match self.discount {
            Discount::Constant(gamma) => gamma,
            Discount::PerStep(discount) => at(discount, slot),
        };
        let next_value = if terminated {
            R::zero()
        } else if let Some(next_value) = self.next_value {
            at(next_value, slot)
        } else if let Some(next) = next {
            value(next)
        } else {
            self.bootstrap_value.map_or(R::zero(), |bootstrap| at(bootstrap, row))
        };
        Step {
            slot,
            reward: at(self.reward, slot),
            discount: if terminated { R::zero() } else { discount },
            next_value,
            cut: terminated || flag(self.truncated, slot) || next.is_none(),
        }
    }

    /// γ, where one holds for all steps and an episode ends only at its row's end.
    pub(super) fn plain(&self) -> Option<R> {
        match self.discount {
            Discount::Constant(gamma)
                if self.terminated.is_none() && self.truncated.is_none() && self.next_value.is_none() =>
            {
                Some(gamma)
            }
            _ => None,
        }
    }

    pub(super) fn from_call(call: &Call<'a, R>) -> Result<Self, Error> {
        Ok(Trajectories {
            mask: call.mask()?,
            reward: call.real(REWARD.name)?,
            discount: match call.optional_real(DISCOUNT.name) {
                Some(discount) => Discount::PerStep(discount),
                None => Discount::Constant(call.number(GAMMA.name)?),
            },
            terminated: call.optional_bytes(TERMINATED.name),
            truncated: call.optional_bytes(TRUNCATED.name),
            next_value: call.optional_real(NEXT_VALUE.name),
            bootstrap_value: call.optional_real(BOOTSTRAP_VALUE.name),
        })
    }
}

/// How a recursion computes: in the number type itself, or with room to spare.
pub(super) trait Arithmetic<R: Real, N: Real> {
    /// A number of the caller.
    fn read(value: R) -> N;
    /// A coefficient without units (a discount, a trace, a ratio).
    fn coefficient(value: R) -> N;
    /// A result for the caller.
    fn write(value: N) -> R;
    /// An intermediate result.
    fn settle(value: N) -> N;
}

/// The number type itself.
pub(super) struct Plain;

impl<R: Real> Arithmetic<R, R> for Plain {
    #[inline(always)]
    fn read(value: R) -> R {
        value
    }
    #[inline(always)]
    fn coefficient(value: R) -> R {
        value
    }
    #[inline(always)]
    fn write(value: R) -> R {
        value
    }
    #[inline(always)]
    fn settle(value: R) -> R {
        value
    }
}

/// `f64` in units of 2⁶⁴, limited to the largest number: for rows whose intermediate results leave the range, so that
/// finite inputs never give NaN. The result is rounded (or overflows) once, at the end.
pub(super) struct Roomy;

const UNIT: f64 = 18_446_744_073_709_551_616.0;

impl<R: Real> Arithmetic<R, f64> for Roomy {
    fn read(value: R) -> f64 {
        Real::to_f64(value) / UNIT
    }
    fn coefficient(value: R) -> f64 {
        Real::to_f64(value)
    }
    fn write(value: f64) -> R {
        R::from_f64(value * UNIT)
    }
    fn settle(value: f64) -> f64 {
        Real::clip(value, -f64::MAX, f64::MAX)
    }
}

pub(super) const REWARD: InputSpec =
    InputSpec::new("reward", Domain::Reward, &[&["B", "T"]], "reward r_t of each step (token)");
pub(super) const VALUE: InputSpec =
    InputSpec::new("value", Domain::Value, &[&["B", "T"]], "V(s_t): value of the state that each step leaves");
pub(super) const NEXT_VALUE: InputSpec = InputSpec::new(
    "next_value",
    Domain::Value,
    &[&["B", "T"]],
    "V(s_{t+1}): value of the state that each step reaches, not read where it terminates; without it the value of the \
     next step present stands in (needed where a row is truncated before its end)",
)
.optional();
pub(super) const BOOTSTRAP_VALUE: InputSpec = InputSpec::new(
    "bootstrap_value",
    Domain::Value,
    &[&["B"]],
    "value of the state after each row's last step, where next_value is not given; without it 0",
)
.optional();
pub(super) const TERMINATED: InputSpec = InputSpec::new(
    "terminated",
    Domain::Done,
    &[&["B", "T"]],
    "1 where the episode ends at this step by itself: what follows is worth 0",
)
.optional();
pub(super) const TRUNCATED: InputSpec = InputSpec::new(
    "truncated",
    Domain::Done,
    &[&["B", "T"]],
    "1 where the episode is cut at this step: it bootstraps from its next state's value, and the trace ends",
)
.optional();
pub(super) const DISCOUNT: InputSpec = InputSpec::new(
    "discount",
    Domain::Probability,
    &[&["B", "T"]],
    "discount factor of each step, in place of gamma; it multiplies what follows the step",
)
.optional();
pub(super) const GAMMA: ParamSpec = ParamSpec::number("gamma", r"\gamma", 1.0, Range::UNIT, "discount factor");

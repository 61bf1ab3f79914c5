//! The discounted reward-to-go of every step.

use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{
    self, Arithmetic, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// G_t = r_t + γ·G_{t+1}: the discounted sum of the rewards from step t on, the Monte Carlo return (Sutton & Barto 2018,
/// eq. 3.8–3.9).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]); `out`: G, [B, T], +0 under the mask. A
/// terminated step is followed by 0, a truncated one by its next value, a row's last by its bootstrap value or 0. Not
/// differentiated. Errors: those of [`Trajectories::check`].
///
/// ```
/// use plumbline_core::advantage::{Discount, Trajectories, discounted_return};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 3 }, None)?;
/// let trajectories = Trajectories {
///     mask, reward: &[1.0, 2.0, 4.0], discount: Discount::Constant(0.5), terminated: None, truncated: None,
///     next_value: None, bootstrap_value: None,
/// };
/// let mut returns = [0.0; 3];
/// discounted_return(&trajectories, &mut returns)?;
/// assert_eq!(returns, [3.0, 4.0, 4.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn discounted_return<R: Real>(trajectories: &Trajectories<'_, R>, out: &mut [R]) -> Result<(), Error> {
    discounted_return_with(trajectories, true, out)
}

/// The same; without `carry_over_gaps` nothing is carried over an absent step that stands between two present ones.
pub(super) fn discounted_return_with<R: Real>(
    trajectories: &Trajectories<'_, R>,
    carry_over_gaps: bool,
    out: &mut [R],
) -> Result<(), Error> {
    trajectories.check(None)?;
    let shape = trajectories.mask.shape();
    shape.check("returns", out)?;
    for (row, out) in out.chunks_mut(shape.columns.max(1)).enumerate() {
        whole_row(trajectories, row, carry_over_gaps, out);
    }
    Ok(())
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn whole_row<R: Real>(trajectories: &Trajectories<'_, R>, row: usize, carry_over_gaps: bool, out: &mut [R]) {
    if !one_row::<R, R, Plain>(trajectories, row, carry_over_gaps, out) {
        one_row::<R, f64, Roomy>(trajectories, row, carry_over_gaps, out);
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn one_row<R: Real, N: Real, A: Arithmetic<R, N>>(
    trajectories: &Trajectories<'_, R>,
    row: usize,
    carry_over_gaps: bool,
    out: &mut [R],
) -> bool {
    out.fill(R::zero());
    let start = row.saturating_mul(trajectories.mask.shape().columns);
    let (mut to_go, mut finite, mut behind) = (N::zero(), true, None);
    trajectories.reversed(
        row,
        |_| R::zero(),
        |step| {
            let gap = behind.is_some_and(|behind| behind != step.slot + 1);
            let follows = if step.cut {
                A::read(step.next_value)
            } else if gap && !carry_over_gaps {
                N::zero()
            } else {
                to_go
            };
            let discount = A::coefficient(step.discount);
            to_go = A::read(step.reward);
            if discount != N::zero() {
                to_go = A::settle(to_go + discount * follows);
            }
            behind = Some(step.slot);
            finite &= to_go.is_finite();
            if let Some(out) = out.get_mut(step.slot.saturating_sub(start)) {
                *out = A::write(to_go);
            }
        },
    );
    finite
}

/// [`discounted_return`], row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DiscountedReturn;

impl<R: Real> RowScan<R, 1> for DiscountedReturn {
    const NAME: &'static str = "advantage.discounted_return";
    const OPERATIONS: &'static [&'static str] = &["advantage.discounted_return"];
    const VALUE: Option<&'static str> = None;
    const OUTPUTS: [&'static str; 1] = ["returns"];

    fn from_call(_: &Call<'_, R>) -> Result<Option<Self>, Error> {
        Ok(Some(DiscountedReturn))
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [returns]: [&mut [R]; 1]) {
        whole_row(&steps.trajectories, row, true, returns);
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    match call.output("returns") {
        Some(out) => discounted_return(&trajectories, out),
        None => Ok(()),
    }
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.discounted_return",
    family: Family::Advantage,
    title: "Discounted return (Monte Carlo)",
    summary: "The discounted sum of the rewards from each step on.",
    formula: r"G_t = r_t + \gamma_t (1 - \mathrm{terminated}_t)\, G_{t+1} = \sum_{k \ge 0} \gamma^k r_{t+k}",
    gradient: "",
    notes: "A masked step is skipped: the return is carried over it. A truncated step, and a row's last one, is followed \
            by the value of its next state (0 where none is given). With gamma 1 it is the reward-to-go. No library \
            differs.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, MIT Press, ISBN 978-0-262-03924-6",
        place: "eq. 3.8–3.9",
    }],
    inputs: &[trajectory::REWARD, NEXT_VALUE, BOOTSTRAP_VALUE, TERMINATED, TRUNCATED, DISCOUNT, InputSpec::MASK],
    params: &[GAMMA],
    defaults: &[],
    outputs: &[OutputSpec::value("returns", &["B", "T"], "return from each step on; +0 under the mask")],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::Discount;
    use super::*;
    use crate::batch::{Mask, TokenShape};

    const REWARD: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

    fn base(mask: Option<&[u8]>) -> Trajectories<'_, f64> {
        Trajectories {
            mask: Mask::new(TokenShape { rows: 1, columns: 4 }, mask).unwrap(),
            reward: &REWARD,
            discount: Discount::Constant(0.5),
            terminated: None,
            truncated: None,
            next_value: None,
            bootstrap_value: Some(&[16.0]),
        }
    }

    fn run(trajectories: Trajectories<'_, f64>, carry: bool) -> [f64; 4] {
        let mut out = [9.0; 4];
        discounted_return_with(&trajectories, carry, &mut out).unwrap();
        out
    }

    #[test]
    fn ends_gaps_and_discounts() {
        assert_eq!(run(base(None), true), [5.0, 8.0, 12.0, 16.0]);
        assert_eq!(run(Trajectories { terminated: Some(&[0, 1, 0, 1]), ..base(None) }, true), [2.0, 2.0, 8.0, 8.0]);
        let next = [f64::NAN, 100.0, f64::NAN, f64::NAN];
        let truncated = Trajectories {
            truncated: Some(&[0, 1, 0, 0]),
            terminated: Some(&[1, 0, 1, 1]),
            next_value: Some(&next),
            ..base(None)
        };
        assert_eq!(run(truncated, true), [1.0, 52.0, 4.0, 8.0]);
        let per_step = Trajectories { discount: Discount::PerStep(&[1.0, 0.0, 0.25, 0.5]), ..base(None) };
        assert_eq!(run(per_step, true), [3.0, 2.0, 8.0, 16.0]);
        assert_eq!(run(base(Some(&[1, 0, 1, 0])), true), [7.0, 0.0, 12.0, 0.0]);
        assert_eq!(run(base(Some(&[1, 0, 1, 0])), false), [1.0, 0.0, 12.0, 0.0]);
        assert_eq!(run(base(Some(&[0, 0, 0, 0])), true).map(f64::to_bits), [0; 4]);
    }
}

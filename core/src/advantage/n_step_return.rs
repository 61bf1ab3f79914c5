//! The n-step return.

use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{
    self, Arithmetic, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories,
    VALUE, at,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, Value, evaluate_with};

/// G_t:t+n = r_t + γ r_{t+1} + … + γⁿ⁻¹ r_{t+n−1} + γⁿ V(s_{t+n}) (Sutton & Barto 2018, eq. 7.1).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]); `value`: V(s_t), [B, T]; `n` ≥ 1; `out`:
/// [B, T], +0 under the mask. Where the episode ends after k < n steps the return has k rewards and bootstraps, where it
/// was truncated, with γᵏ. Cost: B·T·n. Not differentiated. Errors: those of [`Trajectories::check`], `OutOfRange` of n.
///
/// ```
/// use plumbline_core::advantage::{Discount, Trajectories, n_step_return};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 3 }, None)?;
/// let trajectories = Trajectories {
///     mask, reward: &[1.0, 2.0, 4.0], discount: Discount::Constant(0.5), terminated: None, truncated: None,
///     next_value: None, bootstrap_value: Some(&[16.0]),
/// };
/// let mut returns = [0.0; 3];
/// n_step_return(&trajectories, &[0.0, 0.0, 8.0], 2, &mut returns)?;
/// assert_eq!(returns, [4.0, 8.0, 12.0]); // 1 + 1 + 2, 2 + 2 + 4, and one step: 4 + 8
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn n_step_return<R: Real>(
    trajectories: &Trajectories<'_, R>,
    value: &[R],
    n: usize,
    out: &mut [R],
) -> Result<(), Error> {
    trajectories.check(Some(value))?;
    let shape = trajectories.mask.shape();
    shape.check("returns", out)?;
    if n == 0 {
        return Err(Error::OutOfRange { argument: N.name, value: 0.0, legal: ">= 1" });
    }
    for (row, out) in out.chunks_mut(shape.columns.max(1)).enumerate() {
        whole_row(trajectories, row, value, n, out);
    }
    Ok(())
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn whole_row<R: Real>(trajectories: &Trajectories<'_, R>, row: usize, value: &[R], n: usize, out: &mut [R]) {
    let start = row.saturating_mul(trajectories.mask.shape().columns);
    for (column, out) in out.iter_mut().enumerate() {
        let first = start + column;
        *out = R::zero();
        if !trajectories.mask.keeps(first) {
            continue;
        }
        let (mut last, mut steps) = (first, 1);
        while steps < n
            && let Some(next) = trajectories.follower(row, last)
        {
            (last, steps) = (next, steps + 1);
        }
        *out = match one_return::<R, R, Plain>(trajectories, row, value, first, last) {
            Some(result) => result,
            None => one_return::<R, f64, Roomy>(trajectories, row, value, first, last).unwrap_or(R::zero()),
        };
    }
}

/// From the last step back to the first; `None` where a number leaves the range.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn one_return<R: Real, N: Real, A: Arithmetic<R, N>>(
    trajectories: &Trajectories<'_, R>,
    row: usize,
    value: &[R],
    first: usize,
    last: usize,
) -> Option<R> {
    let mut follows = None;
    for slot in (first..=last).rev().filter(|slot| trajectories.mask.keeps(*slot)) {
        let step = trajectories.step(row, slot, |slot| at(value, slot));
        let discount = A::coefficient(step.discount);
        let behind = follows.unwrap_or(A::read(step.next_value));
        let mut to_go = A::read(step.reward);
        if discount != N::zero() {
            to_go = A::settle(to_go + discount * behind);
        }
        if !to_go.is_finite() {
            return None;
        }
        follows = Some(to_go);
    }
    follows.map(A::write)
}

/// [`n_step_return`], row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NStepReturn {
    /// n.
    pub n: usize,
}

impl<R: Real> RowScan<R, 1> for NStepReturn {
    const NAME: &'static str = "advantage.n_step_return";
    const OPERATIONS: &'static [&'static str] = &["advantage.n_step_return"];
    const VALUE: Option<&'static str> = Some(VALUE.name);
    const OUTPUTS: [&'static str; 1] = ["returns"];

    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error> {
        Ok(Some(NStepReturn { n: call.integer(N.name)? }))
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [returns]: [&mut [R]; 1]) {
        whole_row(&steps.trajectories, row, steps.value, self.n, returns);
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    let (value, n) = (call.real(VALUE.name)?, call.integer(N.name)?);
    match call.output("returns") {
        Some(out) => n_step_return(&trajectories, value, n, out),
        None => Ok(()),
    }
}

const N: ParamSpec =
    ParamSpec::integer("n", "n", 5, 1, u32::MAX as i64, "how many rewards are summed before the value stands in");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.n_step_return",
    family: Family::Advantage,
    title: "n-step return",
    summary: "The discounted sum of n rewards and the value of the state after them.",
    formula: r"G_{t:t+n} = \sum_{k=0}^{n-1} \gamma^k r_{t+k} + \gamma^n V(s_{t+n})",
    gradient: "",
    notes: "The discount of the bootstrap is the power of the rewards summed, also where the episode ends before n of them. \
            A masked step is skipped. With n beyond the episode's length it is the Monte Carlo return, with n = 1 the TD(0) \
            target. No library differs.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, MIT Press, ISBN 978-0-262-03924-6",
        place: "eq. 7.1",
    }],
    inputs: &[trajectory::REWARD, VALUE, NEXT_VALUE, BOOTSTRAP_VALUE, TERMINATED, TRUNCATED, DISCOUNT, InputSpec::MASK],
    params: &[GAMMA, N],
    defaults: &[("gamma", Value::Number(0.99))],
    outputs: &[OutputSpec::value("returns", &["B", "T"], "n-step return of each step; +0 under the mask")],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::{Discount, discounted_return};
    use super::*;
    use crate::batch::{Mask, TokenShape};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn base<'a>(columns: usize, reward: &'a [f64], mask: Option<&'a [u8]>) -> Trajectories<'a, f64> {
        Trajectories {
            mask: Mask::new(TokenShape { rows: 1, columns }, mask).unwrap(),
            reward,
            discount: Discount::Constant(0.9),
            terminated: None,
            truncated: None,
            next_value: None,
            bootstrap_value: None,
        }
    }

    /// mistakes.md L05, L06: γⁿ on the bootstrap, and γᵏ where the episode is cut after k steps.
    #[test]
    fn power_of_the_bootstrap() {
        let mut out = [0.0f64; 3];
        let three = Trajectories { bootstrap_value: Some(&[10.0]), ..base(3, &[1.0, 2.0, 3.0], None) };
        n_step_return(&three, &[0.0; 3], 3, &mut out).unwrap();
        assert!((out[0] - 12.52).abs() < 1e-12);
        let next = [0.0, 10.0, 0.0];
        let cut = Trajectories { truncated: Some(&[0, 1, 0]), next_value: Some(&next), ..three };
        n_step_return(&cut, &[0.0; 3], 3, &mut out).unwrap();
        assert!((out[0] - (1.0 + 1.8 + 8.1)).abs() < 1e-12);
        let error = n_step_return(&three, &[0.0; 3], 0, &mut out);
        assert_eq!(error, Err(Error::OutOfRange { argument: "n", value: 0.0, legal: ">= 1" }));
    }

    proptest! {
        #[test]
        fn one_step_is_the_td_target_and_many_the_monte_carlo_return(
            steps in proptest::collection::vec((-2.0f64..2.0, -2.0f64..2.0, 0u8..4, 0u8..4), 1..9),
        ) {
            let reward: Vec<f64> = steps.iter().map(|step| step.0).collect();
            let value: Vec<f64> = steps.iter().map(|step| step.1).collect();
            let mask: Vec<u8> = steps.iter().map(|step| step.2.min(1)).collect();
            let terminated: Vec<u8> = steps.iter().map(|step| u8::from(step.3 == 0)).collect();
            let trajectories = Trajectories { terminated: Some(&terminated), ..base(steps.len(), &reward, Some(&mask)) };
            let (mut long, mut monte_carlo, mut one) =
                (vec![9.0; steps.len()], vec![9.0; steps.len()], vec![9.0; steps.len()]);
            n_step_return(&trajectories, &value, 100, &mut long).unwrap();
            discounted_return(&trajectories, &mut monte_carlo).unwrap();
            prop_assert_eq!(&long, &monte_carlo);
            n_step_return(&trajectories, &value, 1, &mut one).unwrap();
            for slot in 0..steps.len() {
                let next = (slot + 1..steps.len()).find(|next| mask[*next] != 0);
                let follows = next.filter(|_| terminated[slot] == 0).map_or(0.0, |next| value[next]);
                let want = if mask[slot] == 0 { 0.0 } else { reward[slot] + 0.9 * follows };
                prop_assert_eq!(one[slot], want);
            }
        }
    }
}

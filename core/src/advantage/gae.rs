//! Generalised advantage estimation.

use super::row_scan::{RowScan, ScanSteps};
use super::trajectory::{
    self, Arithmetic, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, Plain, Roomy, TERMINATED, TRUNCATED, Trajectories,
    VALUE, at,
};
use super::whiten::{self, Whiten, whiten_in_place};
use crate::Error;
use crate::batch::{Mask, count_nonzero};
use crate::num::Real;
use crate::spec::{
    Call, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};

/// Â_t = δ_t + γλ·Â_{t+1} with δ_t = r_t + γ·V(s_{t+1}) − V(s_t): an exponentially weighted mean of the n-step
/// advantages (GAE; Schulman et al. 2016, eq. 16).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]: what is absent is skipped, a terminated step is
/// followed by 0, a truncated one by its own next value, and neither carries the trace over). `value`: V(s_t), [B, T];
/// `gae_lambda`: λ in [0, 1]; `out`: Â, [B, T], +0 under the mask. λ = 1 gives the discounted return less the value,
/// λ = 0 the temporal-difference error. Not differentiated. Errors: those of [`Trajectories::check`], `OutOfRange` of λ.
///
/// Differs in: verl since 0.5 (whitens the advantages after the returns are formed; before, masked tokens were steps
/// like any other).
///
/// ```
/// use plumbline_core::advantage::{Discount, Trajectories, gae};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 2 }, None)?;
/// let trajectories = Trajectories {
///     mask, reward: &[1.0, 2.0], discount: Discount::Constant(0.5), terminated: None, truncated: None,
///     next_value: None, bootstrap_value: Some(&[8.0]),
/// };
/// let mut advantage = [0.0; 2];
/// gae(&trajectories, &[1.0, 4.0], 0.5, &mut advantage)?;
/// assert_eq!(advantage, [2.5, 2.0]); // δ = [1 + 2 − 1, 2 + 4 − 4], and 2 + 0.25·2
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn gae<R: Real>(
    trajectories: &Trajectories<'_, R>,
    value: &[R],
    gae_lambda: R,
    out: &mut [R],
) -> Result<(), Error> {
    trajectories.check_lengths(Some(value))?;
    trajectories.mask.shape().check("advantage", out)?;
    trajectories.check_ends()?;
    let lambda = gae_lambda.to_f64();
    if !Range::UNIT.contains(lambda) {
        return Err(Error::OutOfRange { argument: LAMBDA.name, value: lambda, legal: Range::UNIT.text });
    }
    let plain = trajectories.plain();
    // Where every kept number enters its own step's result, finite results tell that all of them are finite: they are
    // looked through only after a result that is not.
    let mut checked = plain.is_none();
    if checked {
        trajectories.check_finite(Some(value))?;
    }
    let columns = trajectories.mask.shape().columns.max(1);
    for (block, out) in out.chunks_mut(columns.saturating_mul(LANES).max(1)).enumerate() {
        let first = block * LANES;
        if let Some(gamma) = plain.filter(|gamma| *gamma * gae_lambda != R::zero() && out.len() == columns * LANES) {
            let next =
                core::array::from_fn(|lane| trajectories.bootstrap_value.map_or(R::zero(), |v| at(v, first + lane)));
            let rows = Rows::new(trajectories, value, first);
            if plain_block(rows, next, gamma, gamma * gae_lambda, out) {
                continue;
            }
        }
        for (lane, out) in out.chunks_mut(columns).enumerate() {
            let row = first + lane;
            if !general_row::<R, R, Plain>(trajectories, row, value, gae_lambda, out) {
                if !checked {
                    trajectories.check_finite(Some(value))?;
                    checked = true;
                }
                general_row::<R, f64, Roomy>(trajectories, row, value, gae_lambda, out);
            }
        }
    }
    Ok(())
}

/// Rows that are walked together: one row's steps wait for each other, those of different rows do not.
const LANES: usize = 8;
/// Columns that are on the way at a time: long runs through memory, which a processor foresees, and few enough that their
/// results stay in its caches.
const SPAN: usize = 1024;

/// [`LANES`] rows.
struct Rows<'a, R> {
    columns: usize,
    reward: &'a [R],
    value: &'a [R],
    mask: Option<&'a [u8]>,
}

impl<'a, R: Real> Rows<'a, R> {
    fn new(trajectories: &Trajectories<'a, R>, value: &'a [R], first: usize) -> Self {
        let columns = trajectories.mask.shape().columns;
        let slots = first * columns..(first + LANES) * columns;
        Rows {
            columns,
            reward: trajectories.reward.get(slots.clone()).unwrap_or(&[]),
            value: value.get(slots.clone()).unwrap_or(&[]),
            mask: trajectories.mask.bytes().map(|bytes| bytes.get(slots).unwrap_or(&[])),
        }
    }

    /// Columns `start..end` of one of the rows.
    #[inline(always)]
    fn part<T>(&self, rows: &'a [T], lane: usize, start: usize, end: usize) -> &'a [T] {
        rows.get(lane * self.columns + start..lane * self.columns + end).unwrap_or(&[])
    }

    /// How many steps the columns hold, where they are the first ones.
    fn leading(&self, lane: usize, start: usize, end: usize) -> Option<usize> {
        let Some(mask) = self.mask else { return Some(end - start) };
        let bytes = self.part(mask, lane, start, end);
        let count = count_nonzero(bytes);
        (count_nonzero(bytes.get(..count).unwrap_or(&[])) == count).then_some(count)
    }
}

/// What a row carries from a step to the one before it.
#[derive(Clone, Copy)]
struct Carried<R> {
    next_value: R,
    advantage: R,
    /// Whether there was a step.
    started: bool,
}

/// [`LANES`] rows in which episodes end only at the row's end, each by the same recursion as [`general_row`], side by side.
/// Returns whether all results are finite.
fn plain_block<R: Real>(rows: Rows<'_, R>, next_value: [R; LANES], gamma: R, trace: R, out: &mut [R]) -> bool {
    let columns = rows.columns;
    // The last step of a row adds −0 to its error: nothing, not even where the error is −0.
    let mut carried = next_value.map(|next_value| Carried { next_value, advantage: -R::zero(), started: false });
    let mut finite = true;
    let mut end = columns;
    while end > 0 {
        let start = end.saturating_sub(SPAN);
        let mut out_rows = out.chunks_exact_mut(columns.max(1));
        let mut results: [&mut [R]; LANES] =
            core::array::from_fn(|_| out_rows.next().and_then(|row| row.get_mut(start..end)).unwrap_or(&mut []));
        let leading: [Option<usize>; LANES] = core::array::from_fn(|lane| rows.leading(lane, start, end));
        let steps_lead = |(carried, leading): (&Carried<R>, &Option<usize>)| {
            leading.is_some_and(|count| count == end - start || !carried.started)
        };
        if carried.iter().zip(&leading).all(steps_lead) {
            for (lane, ((results, carried), count)) in results.iter_mut().zip(&mut carried).zip(leading).enumerate() {
                let steps_end = start + count.unwrap_or(0);
                let reward = rows.part(rows.reward, lane, start, steps_end);
                let value = rows.part(rows.value, lane, start, steps_end);
                errors(results, reward, value, carried.next_value, gamma);
                carried.next_value = value.first().copied().unwrap_or(carried.next_value);
                carried.started |= !value.is_empty();
            }
            let mut advantage = carried.map(|carried| carried.advantage);
            accumulate(&mut results, &mut advantage, trace);
            for ((carried, advantage), (results, count)) in
                carried.iter_mut().zip(advantage).zip(results.iter_mut().zip(leading))
            {
                carried.advantage = advantage;
                results.get_mut(count.unwrap_or(0)..).unwrap_or(&mut []).fill(R::zero());
            }
        } else {
            for (lane, (results, carried)) in results.iter_mut().zip(&mut carried).enumerate() {
                let reward = rows.part(rows.reward, lane, start, end);
                let value = rows.part(rows.value, lane, start, end);
                let keep = rows.part(rows.mask.unwrap_or(&[]), lane, start, end);
                for (((result, reward), value), keep) in results.iter_mut().zip(reward).zip(value).zip(keep).rev() {
                    *result = R::zero();
                    if *keep != 0 {
                        *result = error(*reward, *value, carried.next_value, gamma) + trace * carried.advantage;
                        *carried = Carried { next_value: *value, advantage: *result, started: true };
                    }
                }
            }
        }
        finite &= results.iter().all(|results| all_finite(results));
        end = start;
    }
    finite
}

/// δ_t = r_t + γ·V(s_{t+1}) − V(s_t).
#[inline(always)]
fn error<R: Real>(reward: R, value: R, next_value: R, gamma: R) -> R {
    reward + gamma * next_value - value
}

/// The errors of the first steps of a part of a row, and behind them −0, which leaves a trace of −0. A function of its own,
/// because only then does the compiler know that its arrays do not overlap.
#[inline(never)]
fn errors<R: Real>(results: &mut [R], reward: &[R], value: &[R], behind: R, gamma: R) {
    let next_values = value.get(1..).unwrap_or(&[]);
    for ((result, reward), (value, next_value)) in results.iter_mut().zip(reward).zip(value.iter().zip(next_values)) {
        *result = error(*reward, *value, *next_value, gamma);
    }
    if let (Some(reward), Some(value)) = (reward.last(), value.last())
        && let Some(result) = results.get_mut(next_values.len())
    {
        *result = error(*reward, *value, behind, gamma);
    }
    results.get_mut(value.len()..).unwrap_or(&mut []).fill(-R::zero());
}

/// Â_t = δ_t + γλ·Â_{t+1} in rows side by side.
#[inline(never)]
fn accumulate<R: Real>(rows: &mut [&mut [R]; LANES], advantage: &mut [R; LANES], trace: R) {
    let mut carried = *advantage;
    for column in (0..rows.first().map_or(0, |row| row.len())).rev() {
        for (row, carried) in rows.iter_mut().zip(&mut carried) {
            if let Some(slot) = row.get_mut(column) {
                *carried = *slot + trace * *carried;
                *slot = *carried;
            }
        }
    }
    *advantage = carried;
}

fn all_finite<R: Real>(values: &[R]) -> bool {
    values.iter().fold(true, |all, value| all & value.is_finite())
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn general_row<R: Real, N: Real, A: Arithmetic<R, N>>(
    trajectories: &Trajectories<'_, R>,
    row: usize,
    value: &[R],
    lambda: R,
    out: &mut [R],
) -> bool {
    out.fill(R::zero());
    let start = row.saturating_mul(trajectories.mask.shape().columns);
    let (mut carried, mut finite) = (N::zero(), true);
    trajectories.reversed(
        row,
        |slot| at(value, slot),
        |step| {
            let reward = A::read(step.reward);
            let bootstrapped = A::coefficient(step.discount) * A::read(step.next_value);
            let delta = reward + bootstrapped - A::read(at(value, step.slot));
            let trace = A::coefficient(step.discount * lambda);
            carried = if step.cut || trace == N::zero() { delta } else { A::settle(delta + trace * carried) };
            finite &= carried.is_finite();
            if let Some(out) = out.get_mut(step.slot.saturating_sub(start)) {
                *out = A::write(carried);
            }
        },
    );
    finite
}

/// R̂_t = Â_t + V(s_t), the target of the value function, in place of the advantages.
pub fn add_value<R: Real>(advantage: &mut [R], value: &[R], mask: Mask<'_>) {
    for (slot, (advantage, value)) in advantage.iter_mut().zip(value).enumerate() {
        if mask.keeps(slot) {
            *advantage += *value;
        }
    }
}

/// [`gae`] and its returns, row by row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Gae<R> {
    /// λ.
    pub gae_lambda: R,
}

impl<R: Real> RowScan<R, 2> for Gae<R> {
    const NAME: &'static str = "advantage.gae";
    const OPERATIONS: &'static [&'static str] = &["advantage.gae"];
    const VALUE: Option<&'static str> = Some(VALUE.name);
    const OUTPUTS: [&'static str; 2] = ["advantage", "returns"];

    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error> {
        // Whitening is over all rows.
        if call.flag(WHITEN.name) { Ok(None) } else { Ok(Some(Gae { gae_lambda: call.number(LAMBDA.name)? })) }
    }

    #[inline(always)]
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, [advantage, returns]: [&mut [R]; 2]) {
        let trajectories = &steps.trajectories;
        if !general_row::<R, R, Plain>(trajectories, row, steps.value, self.gae_lambda, advantage) {
            general_row::<R, f64, Roomy>(trajectories, row, steps.value, self.gae_lambda, advantage);
        }
        let start = row.saturating_mul(trajectories.mask.shape().columns);
        for (column, (returns, advantage)) in returns.iter_mut().zip(advantage.iter()).enumerate() {
            let slot = start + column;
            *returns = *advantage;
            if trajectories.mask.keeps(slot) {
                *returns += at(steps.value, slot);
            }
        }
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    let value = call.real(VALUE.name)?;
    let lambda = call.number(LAMBDA.name)?;
    let whitening = if call.flag(WHITEN.name) { Some(Whiten::from_call(call)?) } else { None };
    let (advantage, returns) = (call.output("advantage"), call.output("returns"));
    match (advantage, returns) {
        (Some(advantage), returns) => {
            gae(&trajectories, value, lambda, advantage)?;
            if let Some(returns) = returns {
                returns.iter_mut().zip(advantage.iter()).for_each(|(slot, advantage)| *slot = *advantage);
                add_value(returns, value, trajectories.mask);
            }
            match whitening {
                Some(whitening) => whiten_in_place(advantage, trajectories.mask, whitening),
                None => Ok(()),
            }
        }
        (None, Some(returns)) => {
            gae(&trajectories, value, lambda, returns)?;
            add_value(returns, value, trajectories.mask);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

const LAMBDA: ParamSpec = ParamSpec::number(
    "gae_lambda",
    r"\lambda",
    0.95,
    Range::UNIT,
    "weight of longer returns: 0 is the temporal-difference error, 1 the Monte Carlo advantage",
);
const WHITEN: ParamSpec =
    ParamSpec::flag("whiten", false, "whether the advantages (not the returns) are whitened over the batch's tokens");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.gae",
    family: Family::Advantage,
    title: "Generalised advantage estimation",
    summary: "Exponentially weighted mean of n-step advantages, by one backward recursion.",
    formula: r"\hat A_t = \delta_t + \gamma_t\lambda\,(1 - d_t)\,\hat A_{t+1},\quad
\delta_t = r_t + \gamma_t (1 - \mathrm{terminated}_t)\, V(s_{t+1}) - V(s_t),\quad
d_t = \mathrm{terminated}_t \lor \mathrm{truncated}_t,\quad \hat R_t = \hat A_t + V(s_t)",
    gradient: "",
    notes: "Flags belong to the step that ends the episode. A masked step (a tool's tokens inside a response, padding) is \
            skipped: value and trace are carried over it. A row's end without bootstrap_value is a terminal state. \
            Advantages and returns are constants of the losses that use them. verl whitens the advantages after the \
            returns are formed and leaves non-zero advantages under the mask, where here +0 stands; before 0.5 it took \
            masked tokens for steps. TRL has no critic since 1.13.",
    sources: &[Source {
        title: "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
        reference: "arXiv:1506.02438",
        place: "eq. 11–16",
    }],
    inputs: &[trajectory::REWARD, VALUE, NEXT_VALUE, BOOTSTRAP_VALUE, TERMINATED, TRUNCATED, DISCOUNT, InputSpec::MASK],
    params: &[GAMMA, LAMBDA, WHITEN, whiten::EPS, whiten::COUNT_EPS, whiten::ONE_TOKEN],
    defaults: &[("gamma", Value::Number(0.99))],
    outputs: &[
        OutputSpec::value("advantage", &["B", "T"], "advantage of each step; +0 under the mask"),
        OutputSpec::value("returns", &["B", "T"], "unwhitened advantage plus value: the value function's target"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "not whitened", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "gamma and lambda 1 unless set; whitened",
            settings: &[
                ("gamma", Value::Number(1.0)),
                ("gae_lambda", Value::Number(1.0)),
                ("whiten", Value::Flag(true)),
            ],
        },
        Dialect {
            name: "verl-0.5",
            note: "as verl-0.9: the first release that skips masked tokens",
            settings: &[
                ("gamma", Value::Number(1.0)),
                ("gae_lambda", Value::Number(1.0)),
                ("whiten", Value::Flag(true)),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::Discount;
    use super::*;
    use crate::batch::TokenShape;
    use crate::spec::{Data, Input, Output, evaluate as evaluate_operation};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const REWARD: [f64; 3] = [1.0; 3];
    const VALUES: [f64; 3] = [0.5, 0.6, 0.7];
    const NEXT: [f64; 3] = [0.6, 0.7, 0.8];

    fn trajectory<'a>(columns: usize, reward: &'a [f64], mask: Option<&'a [u8]>) -> Trajectories<'a, f64> {
        let shape = TokenShape { rows: reward.len() / columns, columns };
        Trajectories {
            mask: Mask::new(shape, mask).unwrap(),
            reward,
            discount: Discount::Constant(0.9),
            terminated: None,
            truncated: None,
            next_value: None,
            bootstrap_value: None,
        }
    }

    fn run(trajectories: &Trajectories<'_, f64>, value: &[f64], lambda: f64) -> Vec<f64> {
        let mut out = vec![9.0; value.len()];
        gae(trajectories, value, lambda, &mut out).unwrap();
        out
    }

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 6e-6, "{got} is not {want}");
        }
    }

    /// mistakes.md, base case of section G, and G05, G06, G08, G09, G12.
    #[test]
    fn separating_numbers_of_reported_mistakes() {
        let base = Trajectories { next_value: Some(&NEXT), ..trajectory(3, &REWARD, None) };
        close(&run(&base, &VALUES, 0.8), &[2.31037, 1.7644, 1.02]);
        let terminated = |flags: &'static [u8]| Trajectories { terminated: Some(flags), ..base };
        close(&run(&terminated(&[0, 0, 1]), &VALUES, 0.8), &[1.93712, 1.246, 0.3]);
        close(&run(&terminated(&[0, 1, 0]), &VALUES, 0.8), &[1.328, 0.4, 1.02]);
        let truncated = Trajectories { truncated: Some(&[0, 0, 1]), ..base };
        close(&run(&truncated, &VALUES, 0.8), &[2.31037, 1.7644, 1.02]);
        let truncated = Trajectories { truncated: Some(&[0, 1, 0]), ..base };
        close(&run(&truncated, &VALUES, 0.8), &[1.04 + 0.72 * 1.03, 1.03, 1.02]);
        // Values of the row itself and a bootstrap value are the same numbers here.
        let carried = Trajectories { bootstrap_value: Some(&[0.8]), ..trajectory(3, &REWARD, None) };
        close(&run(&carried, &VALUES, 0.8), &[2.31037, 1.7644, 1.02]);
        // λ = 0, γ = 0.99, terminal reward: target of the first state is γ·V(s₁).
        let reward = [0.0, 1.0];
        let ended = Trajectories {
            discount: Discount::Constant(0.99),
            terminated: Some(&[0, 1]),
            ..trajectory(2, &reward, None)
        };
        let mut returns = run(&ended, &[0.5, 0.8], 0.0);
        add_value(&mut returns, &[0.5, 0.8], ended.mask);
        close(&returns, &[0.792, 1.0]);
        // Score on the last of three valid tokens.
        let reward = [0.0, 0.0, 2.0, 0.0, 0.0];
        let response =
            Trajectories { discount: Discount::Constant(1.0), ..trajectory(5, &reward, Some(&[1, 1, 1, 0, 0])) };
        close(&run(&response, &[0.0; 5], 0.95), &[1.805, 1.9, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn masked_steps_are_skipped_and_never_read() {
        let junk = f64::NAN;
        let reward = [1.0, junk, 2.0, junk];
        let response = trajectory(4, &reward, Some(&[1, 0, 1, 0]));
        let got = run(&response, &[0.5, junk, 0.6, junk], 0.8);
        let compact = trajectory(2, &[1.0, 2.0], None);
        let want = run(&compact, &[0.5, 0.6], 0.8);
        assert_eq!([got[0], got[2]], [want[0], want[1]]);
        assert_eq!([got[1].to_bits(), got[3].to_bits()], [0, 0]);
        // A value behind a terminated step is not read either.
        let next = [f64::NAN, f64::INFINITY];
        let ended = Trajectories { next_value: Some(&next), terminated: Some(&[1, 1]), ..compact };
        assert_eq!(run(&ended, &[0.5, 0.5], 0.8), [0.5, 1.5]);
    }

    #[test]
    fn errors() {
        let mut out = [0.0; 3];
        let open = Trajectories { truncated: Some(&[0, 1, 0]), ..trajectory(3, &REWARD, None) };
        let missing = Err(Error::MissingInput { argument: "next_value" });
        assert_eq!(gae(&open, &VALUES, 0.9, &mut out), missing);
        let last = Trajectories { truncated: Some(&[0, 0, 1]), ..open };
        assert_eq!(gae(&last, &VALUES, 0.9, &mut out), Ok(()));
        let base = trajectory(3, &REWARD, None);
        let lambda = gae(&base, &VALUES, 1.5, &mut out);
        assert_eq!(lambda, Err(Error::OutOfRange { argument: "gae_lambda", value: 1.5, legal: "in [0, 1]" }));
        let value = gae(&base, &[0.5, f64::NAN, 0.7], 0.9, &mut out);
        assert_eq!(value, Err(Error::NonFinite { argument: "value", index: 1 }));
        let discount = Trajectories { discount: Discount::PerStep(&[0.9, 1.1, 0.9]), ..base };
        let got = gae(&discount, &VALUES, 0.9, &mut out);
        let want = Error::ElementOutOfRange { argument: "discount", index: 1, value: 1.1, legal: "in [0, 1]" };
        assert_eq!(got, Err(want));
        assert_eq!(
            gae(&Trajectories { discount: Discount::Constant(-0.1), ..base }, &VALUES, 0.9, &mut out),
            Err(Error::OutOfRange { argument: "gamma", value: -0.1, legal: "in [0, 1]" })
        );
    }

    #[test]
    fn results_beyond_the_range_are_infinite_and_never_nan() {
        let reward = [0.0, 0.0, 1.0];
        let value = [1.5e308, -1.5e308, 1.5e308];
        for lambda in [0.0, 0.5] {
            let out = run(&trajectory(3, &reward, None), &value, lambda);
            assert_eq!(out, [f64::NEG_INFINITY, f64::INFINITY, -1.5e308]);
        }
        // λ = 1 telescopes to the return, below 1, less the value.
        for (got, value) in run(&trajectory(3, &reward, None), &value, 1.0).iter().zip(value) {
            assert!((got / -value - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn whitened_by_name() {
        let inputs = [
            Input { name: "reward", shape: &[1, 3], data: Data::Real(&REWARD) },
            Input { name: "value", shape: &[1, 3], data: Data::Real(&VALUES) },
        ];
        let (mut advantage, mut returns, mut alone) = ([0.0; 3], [0.0; 3], [0.0; 3]);
        let operation = crate::catalog::find("advantage.gae").unwrap();
        let mut outputs =
            [Output { name: "returns", data: &mut returns }, Output { name: "advantage", data: &mut advantage }];
        evaluate_operation(operation, Some("verl-0.9"), &[], &inputs, &mut outputs).unwrap();
        // γ = λ = 1: returns are rewards to go; advantages [2.5, 1.4, 0.3] have mean 1.4 and deviation 1.1.
        close(&returns, &[3.0, 2.0, 1.0]);
        close(&advantage, &[1.0, 0.0, -1.0]);
        let mut outputs = [Output { name: "returns", data: &mut alone }];
        evaluate_operation(operation, Some("verl-0.9"), &[], &inputs, &mut outputs).unwrap();
        assert_eq!(alone, returns);
    }

    /// Next values that are the row's own next kept values: the same numbers by the general path.
    fn spelled_out(value: &[f32], bootstrap: &[f32], mask: &[u8], columns: usize) -> Vec<f32> {
        let mut next = vec![f32::NAN; value.len()];
        for (row, bootstrap) in bootstrap.iter().enumerate() {
            let mut carried = *bootstrap;
            for slot in (row * columns..(row + 1) * columns).rev() {
                if mask[slot] != 0 {
                    next[slot] = carried;
                    carried = value[slot];
                }
            }
        }
        next
    }

    #[test]
    fn rows_side_by_side_have_the_bits_of_the_general_path() {
        for (rows, columns) in [(8, 1), (8, 16), (9, 37), (19, 15), (8, 1024), (8, 2100)] {
            let number = |index: usize, factor: usize| (index * factor % 1009) as f32 / 500.0 - 1.0;
            let reward: Vec<f32> = (0..rows * columns).map(|index| number(index, 7919)).collect();
            let value: Vec<f32> = (0..rows * columns).map(|index| number(index, 104_729)).collect();
            let bootstrap: Vec<f32> =
                (0..rows).map(|index| if index == 3 { -0.0 } else { number(index, 31) }).collect();
            let shape = TokenShape { rows, columns };
            let full = vec![1; rows * columns];
            let prefix: Vec<u8> =
                (0..rows * columns).map(|i| u8::from(i % columns < i / columns % 9 * columns / 8)).collect();
            let holes: Vec<u8> = (0..rows * columns).map(|i| u8::from(i * 7919 % 11 > 4)).collect();
            for (mask, given) in [(&full, None), (&full, Some(&full)), (&prefix, Some(&prefix)), (&holes, Some(&holes))]
            {
                for (gamma, lambda, zero) in [(0.9, 0.8, false), (0.9, 0.0, false), (0.0, 0.5, false), (1.0, 1.0, true)]
                {
                    let mut reward: Vec<f32> = if zero { vec![-0.0; reward.len()] } else { reward.clone() };
                    let mut value: Vec<f32> = if zero { vec![0.0; value.len()] } else { value.clone() };
                    for slot in (0..mask.len()).filter(|slot| mask[*slot] == 0) {
                        (reward[slot], value[slot]) = (f32::NAN, f32::INFINITY);
                    }
                    let next = spelled_out(&value, &bootstrap, mask, columns);
                    let together = Trajectories {
                        mask: Mask::new(shape, given.map(|bytes| &bytes[..])).unwrap(),
                        reward: &reward,
                        discount: Discount::Constant(gamma),
                        terminated: None,
                        truncated: None,
                        next_value: None,
                        bootstrap_value: Some(&bootstrap),
                    };
                    let general = Trajectories { next_value: Some(&next), ..together };
                    let (mut a, mut b) = (vec![9.0; rows * columns], vec![9.0; rows * columns]);
                    gae(&together, &value, lambda, &mut a).unwrap();
                    gae(&general, &value, lambda, &mut b).unwrap();
                    assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()), "{rows} x {columns}");
                }
            }
            let mut broken = reward.clone();
            broken[rows * columns - 1] = f32::INFINITY;
            let trajectories = Trajectories {
                mask: Mask::new(shape, None).unwrap(),
                reward: &broken,
                discount: Discount::Constant(0.9),
                terminated: None,
                truncated: None,
                next_value: None,
                bootstrap_value: None,
            };
            let result = gae(&trajectories, &value, 0.8, &mut vec![0.0; rows * columns]);
            assert_eq!(result, Err(Error::NonFinite { argument: "reward", index: rows * columns - 1 }));
        }
    }

    proptest! {
        #[test]
        fn lambda_one_telescopes_and_zero_is_the_error(
            steps in proptest::collection::vec((-2.0f64..2.0, -2.0f64..2.0), 1..9),
            gamma in 0.0f64..=1.0,
            bootstrap in -2.0f64..2.0,
        ) {
            let (reward, value): (Vec<f64>, Vec<f64>) = steps.into_iter().unzip();
            let n = reward.len();
            let bootstrap = [bootstrap];
            let base = Trajectories {
                discount: Discount::Constant(gamma),
                bootstrap_value: Some(&bootstrap),
                ..trajectory(n, &reward, None)
            };
            let (one, zero) = (run(&base, &value, 1.0), run(&base, &value, 0.0));
            let mut to_go = bootstrap[0];
            for t in (0..n).rev() {
                to_go = reward[t] + gamma * to_go;
                // Each of n steps rounds numbers below 4 a handful of times.
                prop_assert!((one[t] - (to_go - value[t])).abs() <= 8.0 * (n as f64) * 20.0 * f64::EPSILON);
                let next = if t + 1 < n { value[t + 1] } else { bootstrap[0] };
                prop_assert_eq!(zero[t], reward[t] + gamma * next - value[t]);
            }
        }

        #[test]
        fn concatenated_episodes_are_separate_ones(
            steps in proptest::collection::vec((-2.0f64..2.0, -2.0f64..2.0, -2.0f64..2.0, 0u8..4), 2..9),
            cut in 1usize..8,
        ) {
            let reward: Vec<f64> = steps.iter().map(|step| step.0).collect();
            let value: Vec<f64> = steps.iter().map(|step| step.1).collect();
            let next: Vec<f64> = steps.iter().map(|step| step.2).collect();
            let cut = cut.min(steps.len() - 1);
            for terminates in [true, false] {
                let mut flags = vec![0; steps.len()];
                flags[cut - 1] = 1;
                let mut mask: Vec<u8> = steps.iter().map(|step| step.3.min(1)).collect();
                mask[cut - 1] = 1;
                let ends = |flags| if terminates { (Some(flags), None) } else { (None, Some(flags)) };
                let (terminated, truncated) = ends(&flags[..]);
                let whole = Trajectories {
                    next_value: Some(&next), terminated, truncated, ..trajectory(steps.len(), &reward, Some(&mask))
                };
                let whole = run(&whole, &value, 0.7);
                let mut parts = Vec::new();
                for range in [0..cut, cut..steps.len()] {
                    let (terminated, truncated) = ends(&flags[range.clone()]);
                    let part = Trajectories {
                        next_value: Some(&next[range.clone()]), terminated, truncated,
                        ..trajectory(range.len(), &reward[range.clone()], Some(&mask[range.clone()]))
                    };
                    parts.extend(run(&part, &value[range], 0.7));
                }
                let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
                prop_assert_eq!(bits(&whole), bits(&parts));
            }
        }
    }
}

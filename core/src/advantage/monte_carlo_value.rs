//! State values as averages of returns.

use super::lambda_return::{STATE, check_states};
use super::trajectory::{self, BOOTSTRAP_VALUE, DISCOUNT, GAMMA, NEXT_VALUE, TERMINATED, TRUNCATED, Trajectories};
use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Choice, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, choice, evaluate_with};

choice! {
    /// Which visits of a state are averaged.
    pub enum Visits {
        /// The first in each episode.
        First = "first",
        /// All.
        Every = "every",
    }
}

/// V(s) = mean of G_t over the (first) visits of s: Monte Carlo prediction (Sutton & Barto 2018, §5.1).
///
/// `trajectories`: rewards, γ and the ends of episodes ([`Trajectories`]); a row's end ends an episode. `state`: s_t,
/// [B, T]; `value` and `visits`: one number per state, 0 where the state was never visited. Each state walks the batch by
/// itself, which costs S·B·T and no memory. Sums are exact, so the order of the episodes changes no bit. Errors: those of
/// [`Trajectories::check`], `ElementOutOfRange` of `state`.
///
/// ```
/// use plumbline_core::advantage::{Discount, Trajectories, Visits, monte_carlo_value};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 3 }, None)?;
/// let trajectories = Trajectories {
///     mask, reward: &[1.0, 2.0, 4.0], discount: Discount::Constant(1.0), terminated: None, truncated: None,
///     next_value: None, bootstrap_value: None,
/// };
/// let (mut value, mut visits) = ([0.0; 2], [0.0; 2]);
/// monte_carlo_value(&trajectories, &[0, 1, 0], Visits::Every, Some(&mut value), Some(&mut visits))?;
/// assert_eq!((value, visits), ([5.5, 6.0], [2.0, 1.0])); // returns 7, 6, 4
/// monte_carlo_value(&trajectories, &[0, 1, 0], Visits::First, Some(&mut value), None)?;
/// assert_eq!(value, [7.0, 6.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn monte_carlo_value<R: Real>(
    trajectories: &Trajectories<'_, R>,
    state: &[u32],
    which: Visits,
    mut value: Option<&mut [R]>,
    mut visits: Option<&mut [R]>,
) -> Result<(), Error> {
    trajectories.check(None)?;
    let shape = trajectories.mask.shape();
    shape.check(STATE.name, state)?;
    let states = value.as_deref().or(visits.as_deref()).map_or(0, <[R]>::len);
    if let Some(visits) = visits.as_deref()
        && visits.len() != states
    {
        return Err(Error::LengthMismatch { argument: "visits", expected: states, got: visits.len() });
    }
    check_states(state, trajectories.mask, states)?;
    for target in 0..states {
        let (mut total, mut count) = (ExactSum::new(), 0usize);
        for row in 0..shape.rows {
            let (mut to_go, mut first) = (R::zero(), None);
            trajectories.reversed(
                row,
                |_| R::zero(),
                |step| {
                    if step.cut
                        && let Some(first) = first.take()
                    {
                        // An episode that stands behind this step is complete.
                        total.add(first);
                        count += 1;
                    }
                    let follows = if step.cut { step.next_value } else { to_go };
                    to_go = step.reward;
                    if step.discount != R::zero() {
                        // Limited, so that returns beyond the range on both sides do not add up to NaN.
                        to_go = (to_go + step.discount * follows).clip(R::min_value(), R::max_value());
                    }
                    if state.get(step.slot).is_some_and(|state| *state as usize == target) {
                        match which {
                            Visits::First => first = Some(to_go),
                            Visits::Every => {
                                total.add(to_go);
                                count += 1;
                            }
                        }
                    }
                },
            );
            if let Some(first) = first {
                total.add(first);
                count += 1;
            }
        }
        let mean = if count == 0 { R::zero() } else { total.value::<R>() / R::from_count(count) };
        for (out, result) in [(value.as_deref_mut(), mean), (visits.as_deref_mut(), R::from_count(count))] {
            if let Some(out) = out.and_then(|out| out.get_mut(target)) {
                *out = result;
            }
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let trajectories = Trajectories::from_call(call)?;
    // The states of absent steps are not looked at.
    let state = call.optional_index(STATE.name).ok_or(Error::MissingInput { argument: STATE.name })?;
    let which = call.choice("visits_counted")?;
    let (value, visits) = (call.output("value"), call.output("visits"));
    monte_carlo_value(&trajectories, state, which, value, visits)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.monte_carlo_value",
    family: Family::Advantage,
    title: "Monte Carlo prediction (first-visit, every-visit)",
    summary: "The value of each state as the average of the returns that followed its visits.",
    formula: r"V(s) = \frac{1}{N(s)} \sum_{t \in \mathcal T(s)} G_t,\quad G_t = r_t + \gamma_t G_{t+1}",
    gradient: "",
    notes: "First-visit counts a state once per episode, every-visit each time (biased for finitely many episodes). A row's \
            end ends an episode, as do the flags inside it. A state that was never visited has value 0 and 0 visits. No \
            library differs.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, MIT Press, ISBN 978-0-262-03924-6",
        place: "§5.1, first-visit MC prediction",
    }],
    inputs: &[trajectory::REWARD, STATE, NEXT_VALUE, BOOTSTRAP_VALUE, TERMINATED, TRUNCATED, DISCOUNT, InputSpec::MASK],
    params: &[
        GAMMA,
        ParamSpec::choice(
            "visits_counted",
            Visits::First.name(),
            Visits::NAMES,
            "which visits of a state are averaged: the first in each episode, or every one",
        ),
        ParamSpec::integer("S", "S", 1, 1, u32::MAX as i64, "number of states"),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("value", &["S"], "average return of each state; 0 without a visit"),
        OutputSpec::value("visits", &["S"], "how many returns were averaged"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::Discount;
    use super::*;
    use crate::batch::{Mask, TokenShape};
    use crate::spec::{Data, Given, GivenValue, Input, Output, evaluate as evaluate_operation};

    #[test]
    fn episodes_end_by_flags_and_rows() {
        let trajectories = Trajectories {
            mask: Mask::new(TokenShape { rows: 2, columns: 4 }, Some(&[1, 1, 1, 1, 1, 0, 1, 0])).unwrap(),
            reward: &[1.0, 2.0, 4.0, 8.0, 16.0, f64::NAN, 32.0, f64::NAN],
            discount: Discount::Constant(1.0),
            terminated: Some(&[0, 1, 0, 0, 0, 0, 0, 0]),
            truncated: None,
            next_value: None,
            bootstrap_value: None,
        };
        let state = [0, 0, 0, 1, 1, 99, 1, 99];
        let (mut value, mut visits) = ([9.0; 3], [9.0; 3]);
        // Returns: [3, 2 | 12, 8] and [48, 32].
        let mut run = |which| {
            monte_carlo_value(&trajectories, &state, which, Some(&mut value), Some(&mut visits)).unwrap();
            (value, visits)
        };
        assert_eq!(run(Visits::First), ([7.5, 28.0, 0.0], [2.0, 2.0, 0.0]));
        assert_eq!(run(Visits::Every), ([17.0 / 3.0, 88.0 / 3.0, 0.0], [3.0, 3.0, 0.0]));
    }

    #[test]
    fn by_name_and_bad_states() {
        let inputs = [
            Input { name: "reward", shape: &[1, 2], data: Data::Real(&[1.0, 2.0]) },
            Input { name: "state", shape: &[1, 2], data: Data::Index(&[1, 0]) },
        ];
        let mut value = [9.0; 2];
        let mut run = |states: f64| {
            let given = [Given { name: "S", value: GivenValue::Number(states) }];
            let data = &mut value[..states as usize];
            let operation = crate::catalog::find("advantage.monte_carlo_value").unwrap();
            evaluate_operation(operation, None, &given, &inputs, &mut [Output { name: "value", data }])
        };
        assert_eq!(run(2.0), Ok(()));
        assert!(matches!(run(1.0), Err(Error::ElementOutOfRange { argument: "state", index: 0, .. })));
        assert_eq!(value, [2.0, 3.0]);
    }
}

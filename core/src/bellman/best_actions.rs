//! The best actions of many states at once.

use core::iter::Zip;
use core::slice::Iter;

use super::mdp::{Mdp, Rewards, Transitions, at, best};
use crate::num::{Real, tree_sum};

/// How many terms are computed at once: several times what a processor waits for together.
const TERMS: usize = 256;

impl<'a, R: Real> Mdp<'a, R> {
    /// [`Mdp::best_action`] of the states from `first` on, as many as `highest` holds: their action values go there, the
    /// actions to `taken(state, action)`.
    ///
    /// The terms of many entries are computed before the first is summed. Successors lie anywhere, and a processor that has
    /// many of them to wait for waits once.
    ///
    /// ```
    /// use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions};
    /// let transitions = Transitions::Sparse { row_start: &[0, 1, 2, 3], next_state: &[0, 1, 0, 1], probability: &[1.0; 4] };
    /// let mdp = Mdp::new([2, 2], transitions, Rewards::PerAction(&[0.0, 1.0, 4.0, 2.0]), None, 0.5)?;
    /// let (mut highest, mut actions) = ([0.0; 2], [0; 2]);
    /// mdp.best_actions(0, &[8.0, 2.0], &mut highest, |state, action| actions[state] = action);
    /// assert_eq!((highest, actions), ([4.0, 8.0], [0, 0])); // 4 and 2; 8 and 3
    /// # Ok::<(), plumbline_core::Error>(())
    /// ```
    pub fn best_actions(&self, first: usize, value: &[R], highest: &mut [R], mut taken: impl FnMut(usize, usize)) {
        let mut terms = [R::zero(); TERMS];
        let (mut state, mut slots) = (first, highest.iter_mut());
        while !slots.as_slice().is_empty() {
            let Some(rows) = self.plain_rows(state, slots.len()) else {
                let (action, value) = self.best_action(state, value);
                taken(state, action);
                slots.by_ref().take(1).for_each(|slot| *slot = value);
                state += 1;
                continue;
            };
            // As in `Mdp::sparse_sum`: an absent entry's term is ±0, and a value that is not finite shows in the sum.
            for (term, (successor, probability)) in terms.iter_mut().zip(rows.next_state.iter().zip(rows.probability)) {
                *term = *probability * (self.discount * at(value, *successor as usize));
            }
            let (mut rest, mut begin) = (&terms[..], rows.begin);
            for (slot, mut pairs) in slots.by_ref().take(rows.states).zip(rows.pairs()) {
                let (action, value) = best(self.actions, |action| {
                    let Some((end, reward)) = pairs.next() else { return R::neg_infinity() };
                    let (terms, others) =
                        rest.split_at_checked((*end as usize).wrapping_sub(begin)).unwrap_or_default();
                    (rest, begin) = (others, *end as usize);
                    let sum = match terms {
                        [a, b, c, d] => R::zero() + ((*a + *c) + (*b + *d)),
                        _ => tree_sum(terms),
                    };
                    let result = *reward + sum;
                    if result.is_finite() { result } else { self.careful_action_value(state, action, value) }
                });
                taken(state, action);
                *slot = value;
                state += 1;
            }
        }
    }

    /// The rows of some states from `state` on, at most `most`. `None` where a transition has a reward or an end of its own,
    /// where the first state alone has more than [`TERMS`] entries, and for the last state.
    #[inline(always)]
    fn plain_rows(&self, state: usize, most: usize) -> Option<PlainRows<'a, R>> {
        let (Transitions::Sparse { row_start, next_state, probability }, Rewards::PerAction(reward), None) =
            (self.transitions, self.reward, self.done)
        else {
            return None;
        };
        let (actions, pair) = (self.actions.max(1), state * self.actions);
        let (begin, ends) = row_start.get(pair..)?.split_first()?;
        let begin = *begin as usize;
        let fits = |ends: &&[u32]| ends.last().is_some_and(|end| *end as usize <= begin + TERMS);
        let states = ends.chunks_exact(actions.max(1)).take(most).take_while(fits).count();
        let ends = ends.get(..states * actions)?;
        let entries = begin..*ends.last()? as usize;
        Some(PlainRows {
            actions,
            states,
            begin,
            ends,
            reward: reward.get(pair..pair + states * actions)?,
            next_state: next_state.get(entries.clone())?,
            probability: probability.get(entries)?,
        })
    }

    /// [`Mdp::action_value`], out of the way of the loop that seldom needs it.
    #[cold]
    #[inline(never)]
    fn careful_action_value(&self, state: usize, action: usize, value: &[R]) -> R {
        self.action_value(state, action, value)
    }
}

/// The rows of some states: of each pair where its entries end and its mean reward, and the entries of all.
struct PlainRows<'a, R> {
    actions: usize,
    states: usize,
    begin: usize,
    ends: &'a [u32],
    reward: &'a [R],
    next_state: &'a [u32],
    probability: &'a [R],
}

impl<'a, R> PlainRows<'a, R> {
    /// Of each state the pairs: where the entries end, and the reward.
    fn pairs(self) -> impl Iterator<Item = Zip<Iter<'a, u32>, Iter<'a, R>>> {
        let states = self.ends.chunks_exact(self.actions.max(1)).zip(self.reward.chunks_exact(self.actions.max(1)));
        states.map(|(ends, rewards)| ends.iter().zip(rewards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// Rows of the given lengths; entries of probability 0 among them.
    fn check(lengths: &[usize], actions: usize, values: &[f64], scale: f64) {
        let states = values.len();
        let mut row_start = Vec::new();
        let (mut next_state, mut probability) = (Vec::new(), Vec::new());
        for length in lengths {
            row_start.push(next_state.len() as u32);
            for entry in 0..*length {
                let index = next_state.len();
                next_state.push((index * 7919 % states) as u32);
                probability.push(if entry % 3 == 2 { 0.0 } else { 1.0 / *length as f64 });
            }
        }
        let reward: Vec<f64> = (0..lengths.len()).map(|pair| scale * ((pair * 31 % 17) as f64 - 8.0)).collect();
        let transitions =
            Transitions::Sparse { row_start: &row_start, next_state: &next_state, probability: &probability };
        let mdp = Mdp::new([states, actions], transitions, Rewards::PerAction(&reward), None, 0.9375).unwrap();
        for first in [0, 1, states - 1] {
            let (mut highest, mut chosen) = (vec![0.0; states - first], vec![usize::MAX; states]);
            mdp.best_actions(first, values, &mut highest, |state, action| chosen[state] = action);
            for state in first..states {
                let (action, value) = mdp.best_action(state, values);
                assert_eq!((chosen[state], highest[state - first].to_bits()), (action, value.to_bits()), "{state}");
            }
        }
    }

    #[test]
    fn long_rows_and_sums_beyond_the_range() {
        let lengths: Vec<usize> = (0..60).map(|pair| [4, 0, 300, 1, 256, 257, 2, 4][pair % 8]).collect();
        let values: Vec<f64> = (0..20).map(|state| f64::from(state) - 7.5).collect();
        check(&lengths, 3, &values, 1.0);
        let huge: Vec<f64> = (0..20).map(|state| if state % 2 == 0 { f64::MAX } else { -f64::MAX }).collect();
        check(&lengths, 3, &huge, f64::MAX / 8.0);
        let infinite: Vec<f64> =
            (0..20).map(|state| [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0][state % 4]).collect();
        check(&lengths, 3, &infinite, 1.0);
    }

    proptest! {
        #[test]
        fn same_bits_as_state_by_state(
            (actions, lengths) in (1usize..5).prop_flat_map(|actions| {
                (Just(actions), proptest::collection::vec(0usize..7, actions * 40))
            }),
            values in proptest::collection::vec(-10.0f64..10.0, 40),
        ) {
            check(&lengths, actions, &values, 1.0);
        }
    }
}

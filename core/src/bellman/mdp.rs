//! A finite Markov decision process as the caller holds it: transitions dense or sparse, rewards, ends of episodes.

use core::ops::Range as Span;

use crate::Error;
use crate::batch::row_of;
use crate::num::{ExactSum, Real, tree_sum, tree_sum_by};
use crate::spec::{Call, Domain, InputSpec, OutputSpec, ParamSpec, Range};

/// Transition probabilities p(s'|s, a).
#[derive(Clone, Copy, Debug)]
pub enum Transitions<'a, R> {
    /// [S, A, S], one number for every triple.
    Dense(&'a [R]),
    /// Compressed sparse rows over the pairs (s, a).
    Sparse {
        /// [S, A]: where each pair's entries begin; they end where the next pair's begin, the last at K.
        row_start: &'a [u32],
        /// \[K\]: s' of each entry.
        next_state: &'a [u32],
        /// \[K\]: p of each entry.
        probability: &'a [R],
    },
}

/// Rewards.
#[derive(Clone, Copy, Debug)]
pub enum Rewards<'a, R> {
    /// [S, A]: the mean reward of each action.
    PerAction(&'a [R]),
    /// One reward per transition, in the layout of the transitions.
    PerTransition(&'a [R]),
}

/// A checked Markov decision process of S states and A actions.
///
/// An entry of probability 0 is absent: its reward is not read. The value behind a transition that ends the episode is not
/// read either. Rows of probabilities may sum to less than 1: the missing mass ends the episode without a reward of its
/// own.
#[derive(Clone, Copy, Debug)]
pub struct Mdp<'a, R> {
    states: usize,
    pub(super) actions: usize,
    pub(super) transitions: Transitions<'a, R>,
    pub(super) reward: Rewards<'a, R>,
    pub(super) done: Option<&'a [u8]>,
    pub(super) discount: R,
}

/// One transition of an action in a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// s'.
    pub next_state: usize,
    /// Its place among the entries, for rewards and ends per transition.
    pub slot: usize,
}

impl<'a, R: Real> Mdp<'a, R> {
    /// Check the parts against each other.
    ///
    /// Errors: `EmptyMask` without a state or action, `LengthMismatch`, `NonFinite`, `ElementOutOfRange` of a
    /// probability outside [0, 1], of a row whose probabilities sum to more than 1 (beyond rounding), of a successor that
    /// is no state, of row starts that do not begin at 0 or decrease, `OutOfRange` of the discount.
    pub fn new(
        [states, actions]: [usize; 2],
        transitions: Transitions<'a, R>,
        reward: Rewards<'a, R>,
        done: Option<&'a [u8]>,
        discount: R,
    ) -> Result<Self, Error> {
        let pairs = states.saturating_mul(actions);
        if pairs == 0 {
            return Err(Error::EmptyMask { argument: TRANSITION.name });
        }
        if !(discount >= R::zero() && discount <= R::one()) {
            let legal = Range::UNIT.text;
            return Err(Error::OutOfRange { argument: DISCOUNT.name, value: discount.to_f64(), legal });
        }
        let mdp = Mdp { states, actions, transitions, reward, done, discount };
        let entries = match transitions {
            Transitions::Dense(probability) => {
                let expected = pairs.saturating_mul(states);
                length(TRANSITION.name, probability, expected)?;
                expected
            }
            Transitions::Sparse { row_start, next_state, probability } => {
                length(ROW_START.name, row_start, pairs)?;
                length(NEXT_STATE.name, next_state, probability.len())?;
                let mut before = 0;
                for (index, start) in row_start.iter().enumerate() {
                    let least = if index == 0 { 0 } else { before };
                    let most = if index == 0 { 0 } else { probability.len() };
                    let start_index = *start as usize;
                    if start_index < least || start_index > most {
                        let legal = "0 at first, then not decreasing, at most the number of entries";
                        let value = f64::from(*start);
                        return Err(Error::ElementOutOfRange { argument: ROW_START.name, index, value, legal });
                    }
                    before = start_index;
                }
                if let Some((index, state)) = next_state.iter().enumerate().find(|(_, s)| **s as usize >= states) {
                    let (value, legal) = (f64::from(*state), "below the number of states");
                    return Err(Error::ElementOutOfRange { argument: NEXT_STATE.name, index, value, legal });
                }
                probability.len()
            }
        };
        if let Some(done) = done {
            length(DONE.name, done, entries)?;
        }
        let probability = mdp.probabilities();
        for pair in 0..pairs {
            let span = mdp.span(pair);
            check_distribution(TRANSITION.name, span.start, probability.get(span).unwrap_or(&[]))?;
        }
        let (rewards, expected) = match reward {
            Rewards::PerAction(rewards) => (rewards, pairs),
            Rewards::PerTransition(rewards) => (rewards, entries),
        };
        length(REWARD.name, rewards, expected)?;
        let per_action = matches!(reward, Rewards::PerAction(_));
        let read = |slot: usize| per_action || at(probability, slot) != R::zero();
        match rewards.iter().enumerate().find(|(slot, reward)| !reward.is_finite() && read(*slot)) {
            Some((index, _)) => Err(Error::NonFinite { argument: REWARD.name, index }),
            None => Ok(mdp),
        }
    }

    /// The same from parts that [`Mdp::new`] has accepted before. Nothing is checked: other parts give numbers without
    /// meaning.
    #[inline(always)]
    pub fn trusted(
        [states, actions]: [usize; 2],
        transitions: Transitions<'a, R>,
        reward: Rewards<'a, R>,
        done: Option<&'a [u8]>,
        discount: R,
    ) -> Self {
        Mdp { states, actions, transitions, reward, done, discount }
    }

    pub(crate) fn from_call(call: &Call<'a, R>) -> Result<Self, Error> {
        let probability = call.real(TRANSITION.name)?;
        let rank = call.rank(TRANSITION.name);
        let transitions = if rank == 1 {
            let (row_start, next_state) = (call.index(ROW_START.name)?, call.index(NEXT_STATE.name)?);
            Transitions::Sparse { row_start, next_state, probability }
        } else {
            Transitions::Dense(probability)
        };
        let rewards = call.real(REWARD.name)?;
        let reward = match call.rank(REWARD.name) {
            2 => Rewards::PerAction(rewards),
            given if given == rank => Rewards::PerTransition(rewards),
            _ => return Err(Error::ShapeMismatch { argument: REWARD.name }),
        };
        let done = call.optional_bytes(DONE.name);
        if done.is_some() && call.rank(DONE.name) != rank {
            return Err(Error::ShapeMismatch { argument: DONE.name });
        }
        Mdp::new([call.dim("S"), call.dim("A")], transitions, reward, done, call.number(DISCOUNT.name)?)
    }

    /// S.
    pub fn states(&self) -> usize {
        self.states
    }

    /// A.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The state and the action of a pair by its flat index.
    pub fn pair(&self, pair: usize) -> (usize, usize) {
        // Where there are no actions there are no pairs; checked, so that no division is left that could panic.
        (pair.checked_div(self.actions).unwrap_or(0), pair.checked_rem(self.actions).unwrap_or(0))
    }

    /// γ.
    pub fn discount(&self) -> R {
        self.discount
    }

    fn probabilities(&self) -> &'a [R] {
        match self.transitions {
            Transitions::Dense(probability) | Transitions::Sparse { probability, .. } => probability,
        }
    }

    /// Where the entries of a pair (s, a) lie.
    #[inline(always)]
    fn span(&self, pair: usize) -> Span<usize> {
        match self.transitions {
            Transitions::Dense(_) => pair * self.states..(pair + 1) * self.states,
            Transitions::Sparse { row_start, probability, .. } => {
                let start = row_start.get(pair).map_or(probability.len(), |start| *start as usize);
                start..row_start.get(pair + 1).map_or(probability.len(), |end| *end as usize)
            }
        }
    }

    /// s' of an entry.
    #[inline(always)]
    fn successor(&self, span: &Span<usize>, slot: usize) -> usize {
        match self.transitions {
            Transitions::Dense(_) => slot - span.start,
            Transitions::Sparse { next_state, .. } => next_state.get(slot).map_or(0, |state| *state as usize),
        }
    }

    /// The transitions of an action that have a probability above 0.
    pub fn transitions(&self, state: usize, action: usize) -> impl Iterator<Item = Transition> + '_ {
        let span = self.span(state * self.actions + action);
        span.clone()
            .filter(|slot| self.probability(*slot) != R::zero())
            .map(move |slot| Transition { next_state: self.successor(&span, slot), slot })
    }

    /// p of an entry.
    #[inline(always)]
    pub fn probability(&self, slot: usize) -> R {
        at(self.probabilities(), slot)
    }

    /// Whether the episode ends with an entry.
    #[inline(always)]
    pub fn ends(&self, slot: usize) -> bool {
        self.done.is_some_and(|done| done.get(slot).is_some_and(|byte| *byte != 0))
    }

    /// The reward of one transition; that of its action where rewards are means.
    pub fn transition_reward(&self, pair: usize, slot: usize) -> R {
        match self.reward {
            Rewards::PerAction(rewards) => at(rewards, pair),
            Rewards::PerTransition(rewards) => at(rewards, slot),
        }
    }

    /// q(s, a) = Σ_s' p(s'|s, a) [r + γ (1 − done) v(s')], limited to the finite numbers.
    ///
    /// The sum over the pair's entries is the canonical tree; a mean reward of the action is added to it.
    #[inline]
    pub fn action_value(&self, state: usize, action: usize, value: &[R]) -> R {
        self.backed_up(state, action, |next_state| at(value, next_state))
    }

    /// Σ_s' p(s'|s, a) r: the mean reward of an action.
    pub fn expected_reward(&self, state: usize, action: usize) -> R {
        self.backed_up(state, action, |_| R::zero())
    }

    #[inline(always)]
    fn backed_up(&self, state: usize, action: usize, value: impl Fn(usize) -> R) -> R {
        let pair = state * self.actions + action;
        let span = self.span(pair);
        let probabilities = self.probabilities();
        let term = |slot: usize| {
            let probability = at(probabilities, slot);
            if probability == R::zero() {
                return R::zero();
            }
            let future = if self.ends(slot) { R::zero() } else { self.discount * value(self.successor(&span, slot)) };
            let immediate = match self.reward {
                Rewards::PerAction(_) => R::zero(),
                Rewards::PerTransition(rewards) => at(rewards, slot),
            };
            probability * (immediate + future)
        };
        let base = match self.reward {
            Rewards::PerAction(rewards) => at(rewards, pair),
            Rewards::PerTransition(_) => R::zero(),
        };
        if let (Transitions::Sparse { next_state, .. }, Rewards::PerAction(_), None) =
            (self.transitions, self.reward, self.done)
        {
            let part = |values: &'a [R]| values.get(span.clone()).unwrap_or(&[]);
            let next_state = next_state.get(span.clone()).unwrap_or(&[]);
            let result = base + self.sparse_sum(part(probabilities), next_state, &value);
            if result.is_finite() {
                return result;
            }
        }
        let result = base + tree_sum_by(span.len(), |entry| term(span.start + entry));
        if result.is_finite() {
            return result;
        }
        // Beyond the range on the way: exactly, each term limited.
        let mut exact = ExactSum::new();
        exact.add(base);
        for slot in span.clone() {
            exact.add(term(slot).limited());
        }
        exact.value::<R>().limited()
    }

    /// The sum of a pair's terms where no transition has a reward or an end of its own, by slices and without a choice per
    /// entry: large sweeps spend their time here. An absent entry's term, 0·γ·v, is ±0, and the canonical sum, which ends
    /// by adding +0, forgets the sign; a v that is not finite makes the sum NaN or infinite, and the caller sums with choices.
    #[inline(always)]
    fn sparse_sum(&self, probability: &[R], next_state: &[u32], value: impl Fn(usize) -> R) -> R {
        let term = |probability: R, state: u32| probability * (self.discount * value(state as usize));
        match (probability, next_state) {
            ([a], [i]) => R::zero() + term(*a, *i),
            ([a, b], [i, j]) => R::zero() + (term(*a, *i) + term(*b, *j)),
            ([a, b, c], [i, j, k]) => R::zero() + ((term(*a, *i) + term(*c, *k)) + term(*b, *j)),
            ([a, b, c, d], [i, j, k, l]) => R::zero() + ((term(*a, *i) + term(*c, *k)) + (term(*b, *j) + term(*d, *l))),
            _ => tree_sum_by(probability.len(), |entry| {
                probability.get(entry).zip(next_state.get(entry)).map_or(R::zero(), |(p, state)| term(*p, *state))
            }),
        }
    }

    /// Σ_a π(a|s) q(s, a) of one state. An action of probability 0 is not looked at.
    #[inline]
    pub fn state_value(&self, state: usize, policy: &[R], value: &[R]) -> R {
        let row = row_of(policy, self.actions, state);
        expected_value(self.actions, |action| at(row, action), |action| self.action_value(state, action, value))
    }

    /// The largest action value of a state and the lowest action that has it.
    #[inline(always)]
    pub fn best_action(&self, state: usize, value: &[R]) -> (usize, R) {
        best(self.actions, |action| self.action_value(state, action, value))
    }
}

/// Σ_a π(a) q(a), limited to the finite numbers; q of an action of probability 0 is not asked for.
#[inline]
pub fn expected_value<R: Real>(actions: usize, policy: impl Fn(usize) -> R, action_value: impl Fn(usize) -> R) -> R {
    tree_sum_by(actions, |action| match policy(action) {
        probability if probability == R::zero() => R::zero(),
        probability => probability * action_value(action),
    })
    .limited()
}

/// The largest of `count` action values and the lowest action that has it.
///
/// ```
/// use plumbline_core::bellman::mdp::best;
/// assert_eq!(best(4, |action| [1.0, 3.0, 3.0, 2.0][action]), (1, 3.0));
/// ```
#[inline(always)]
pub fn best<R: Real>(count: usize, mut action_value: impl FnMut(usize) -> R) -> (usize, R) {
    (0..count).fold((0, R::neg_infinity()), |(best, highest), action| {
        let candidate = action_value(action);
        if candidate > highest { (action, candidate) } else { (best, highest) }
    })
}

/// max |a − b|.
pub fn max_distance<R: Real>(left: &[R], right: &[R]) -> R {
    left.iter().zip(right).fold(R::zero(), |largest, (a, b)| (*a - *b).abs().larger(largest))
}

/// γ/(1−γ) times the last change: how far the result of a γ-contraction still is from its fixed point in the max norm,
/// infinity for γ = 1 unless nothing changed.
///
/// ```
/// use plumbline_core::bellman::mdp::error_bound;
/// assert_eq!(error_bound(0.5, 0.75), 1.5);
/// assert_eq!(error_bound(0.5, 1.0), f64::INFINITY);
/// ```
pub fn error_bound<R: Real>(residual: R, discount: R) -> R {
    if residual == R::zero() || discount == R::zero() { R::zero() } else { residual * discount / (R::one() - discount) }
}

/// One element of a slice; +0 past its end.
#[inline(always)]
pub(crate) fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

pub(super) fn length<T>(argument: &'static str, values: &[T], expected: usize) -> Result<(), Error> {
    match values.len() {
        got if got != expected => Err(Error::LengthMismatch { argument, expected, got }),
        _ => Ok(()),
    }
}

/// Probabilities in [0, 1] that do not sum to more than 1: rounding of each is allowed for.
pub(super) fn check_distribution<R: Real>(argument: &'static str, offset: usize, row: &[R]) -> Result<(), Error> {
    if let Some((column, probability)) = row.iter().enumerate().find(|(_, p)| !(R::zero()..=R::one()).contains(p)) {
        let index = offset + column;
        if !probability.is_finite() {
            return Err(Error::NonFinite { argument, index });
        }
        let value = Real::to_f64(*probability);
        return Err(Error::ElementOutOfRange { argument, index, value, legal: Range::UNIT.text });
    }
    let sum = tree_sum(row);
    if sum > R::one() + R::from_count(row.len() + 4) * R::epsilon() {
        let legal = "a row that sums to 1 (or less, where the episode may end)";
        return Err(Error::ElementOutOfRange { argument, index: offset, value: sum.to_f64(), legal });
    }
    Ok(())
}

/// A policy's probabilities [S, A], every row checked.
pub(super) fn checked_policy<'a, R: Real>(call: &Call<'a, R>) -> Result<&'a [R], Error> {
    let policy = call.real(POLICY.name)?;
    for state in 0..call.dim("S") {
        let actions = call.dim("A");
        check_distribution(POLICY.name, state * actions, row_of(policy, actions, state))?;
    }
    Ok(policy)
}

/// p(s'|s, a).
pub const TRANSITION: InputSpec = InputSpec::new(
    "transition",
    Domain::Probability,
    &[&["S", "A", "S"], &["K"]],
    "probability of each successor, dense; or of each of K entries in compressed sparse rows. A row that sums to less than 1 \
     ends the episode with the missing mass",
);
/// r.
pub const REWARD: InputSpec = InputSpec::new(
    "reward",
    Domain::Reward,
    &[&["S", "A"], &["S", "A", "S"], &["K"]],
    "mean reward of each action, or reward of each transition in the layout of `transition`",
);
/// s' of sparse entries.
pub const NEXT_STATE: InputSpec = InputSpec::new(
    "next_state",
    Domain::Index("S"),
    &[&["K"]],
    "successor of each sparse entry; not read with dense transitions",
)
.optional();
/// Where sparse rows begin.
pub const ROW_START: InputSpec = InputSpec::new(
    "row_start",
    Domain::Count,
    &[&["S", "A"]],
    "first entry of each state and action, 0 at first and not decreasing; not read with dense transitions",
)
.optional();
/// Ends of episodes.
pub const DONE: InputSpec = InputSpec::new(
    "done",
    Domain::Done,
    &[&["S", "A", "S"], &["K"]],
    "1 where the episode ends with that transition (the value behind it is absent); without it no transition ends one",
)
.optional();
/// v.
pub const VALUE: InputSpec = InputSpec::new("value", Domain::Value, &[&["S"]], "value of each state");
/// π.
pub const POLICY: InputSpec =
    InputSpec::new("policy", Domain::Probability, &[&["S", "A"]], "probability of each action in each state");
/// γ.
pub const DISCOUNT: ParamSpec = ParamSpec::number("discount", r"\gamma", 0.9, Range::UNIT, "discount factor per step");
/// The result of every evaluation.
pub const STATE_VALUE: OutputSpec = OutputSpec::value("value", &["S"], "value of each state").workspace();
/// q.
pub const ACTION_VALUE: OutputSpec = OutputSpec::value("q", &["S", "A"], "value of each action in each state");
/// The greedy action.
pub const ACTION: OutputSpec =
    OutputSpec::value("action", &["S"], "greedy action of each state, the lowest of equal ones");

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A random dense process whose rows sum to 1 with some zeros and some ends.
    #[derive(Clone, Debug)]
    pub(in super::super) struct Owned {
        pub states: usize,
        pub actions: usize,
        pub probability: Vec<f64>,
        pub reward: Vec<f64>,
        pub done: Vec<u8>,
        pub discount: f64,
    }

    impl Owned {
        pub fn view(&self) -> Mdp<'_, f64> {
            Mdp::new(
                [self.states, self.actions],
                Transitions::Dense(&self.probability),
                Rewards::PerTransition(&self.reward),
                Some(&self.done),
                self.discount,
            )
            .unwrap()
        }
    }

    pub(in super::super) fn processes() -> impl Strategy<Value = Owned> {
        (1usize..5, 1usize..4, 0.0f64..0.98).prop_flat_map(|(states, actions, discount)| {
            let entries = states * actions * states;
            let weights = prop::collection::vec(prop_oneof![Just(0.0), 0.1f64..1.0], entries);
            let rewards = prop::collection::vec(-2.0f64..2.0, entries);
            let ends = prop::collection::vec(prop_oneof![4 => Just(0u8), 1 => Just(1u8)], entries);
            (weights, rewards, ends).prop_map(move |(mut probability, reward, done)| {
                for row in probability.chunks_mut(states) {
                    let sum: f64 = row.iter().sum();
                    if sum > 0.0 {
                        row.iter_mut().for_each(|p| *p /= sum);
                    }
                }
                Owned { states, actions, probability, reward, done, discount }
            })
        })
    }

    /// A policy for a process: rows of positive probabilities from a seed.
    pub(in super::super) fn policy(process: &Owned, seed: &[f64]) -> Vec<f64> {
        let mut policy: Vec<f64> =
            (0..process.states * process.actions).map(|k| 0.05 + seed[k % seed.len()].abs()).collect();
        for row in policy.chunks_mut(process.actions) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sparse_and_dense_agree_and_absent_things_are_not_read() {
        // State 0: action 0 stays or moves, half and half; action 1 ends. State 1 goes back.
        let rewards = [1.0, 3.0, f64::NAN, 7.0, 4.0, f64::NAN, -1.0, f64::NAN];
        let dense = Mdp::new(
            [2, 2],
            Transitions::Dense(&[0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]),
            Rewards::PerTransition(&rewards),
            Some(&[0, 0, 0, 1, 0, 0, 0, 0]),
            0.5,
        )
        .unwrap();
        let sparse = Mdp::new(
            [2, 2],
            Transitions::Sparse {
                row_start: &[0, 2, 3, 4],
                next_state: &[0, 1, 1, 0, 0],
                probability: &[0.5, 0.5, 1.0, 1.0, 1.0],
            },
            Rewards::PerTransition(&[1.0, 3.0, 7.0, 4.0, -1.0]),
            Some(&[0, 0, 1, 0, 0]),
            0.5,
        )
        .unwrap();
        let value = [8.0, 4.0];
        for mdp in [dense, sparse] {
            let q = [0, 1, 2, 3].map(|pair| mdp.action_value(pair / 2, pair % 2, &value));
            assert_eq!(q, [5.0, 7.0, 8.0, 3.0]);
            assert_eq!(mdp.expected_reward(0, 0), 2.0);
            assert_eq!(mdp.best_action(1, &value), (0, 8.0));
            assert_eq!(mdp.state_value(0, &[0.25, 0.75, 1.0, 0.0], &value), 6.5);
        }
    }

    #[test]
    fn malformed_processes_are_errors() {
        let rewards = Rewards::PerAction(&[0.0]);
        let new = |transitions, reward| Mdp::<f64>::new([1, 1], transitions, reward, None, 0.5).err();
        let sparse = |row_start, next_state, probability| {
            new(Transitions::Sparse { row_start, next_state, probability }, rewards)
        };
        assert_eq!(
            new(Transitions::Dense(&[f64::NAN]), rewards),
            Some(Error::NonFinite { argument: "transition", index: 0 })
        );
        assert!(matches!(
            new(Transitions::Dense(&[1.5]), rewards),
            Some(Error::ElementOutOfRange { argument: "transition", value: 1.5, .. })
        ));
        assert!(matches!(
            sparse(&[0], &[0, 0], &[0.75, 0.5]),
            Some(Error::ElementOutOfRange { argument: "transition", value: 1.25, .. })
        ));
        assert!(matches!(sparse(&[1], &[0], &[1.0]), Some(Error::ElementOutOfRange { argument: "row_start", .. })));
        assert!(matches!(sparse(&[0], &[1], &[1.0]), Some(Error::ElementOutOfRange { argument: "next_state", .. })));
        assert!(matches!(sparse(&[0], &[0], &[1.0, 0.0]), Some(Error::LengthMismatch { argument: "next_state", .. })));
        assert_eq!(
            new(Transitions::Dense(&[1.0]), Rewards::PerAction(&[f64::INFINITY])),
            Some(Error::NonFinite { argument: "reward", index: 0 })
        );
        let empty = Mdp::<f64>::new([0, 1], Transitions::Dense(&[]), Rewards::PerAction(&[]), None, 0.5);
        assert_eq!(empty.err(), Some(Error::EmptyMask { argument: "transition" }));
    }

    #[test]
    fn values_beyond_the_range_are_limited_and_never_nan() {
        let big = f64::MAX;
        let rewards = [big, -big, big, 0.0];
        let mdp =
            Mdp::new([2, 1], Transitions::Dense(&[0.5, 0.5, 1.0, 0.0]), Rewards::PerTransition(&rewards), None, 1.0)
                .unwrap();
        assert_eq!(mdp.action_value(0, 0, &[big, -big]), 0.0);
        assert_eq!(mdp.action_value(1, 0, &[big, -big]), big);
    }

    #[test]
    fn short_rows_have_the_bits_of_the_tree_and_absent_entries_read_no_value() {
        let probability: std::vec::Vec<f64> =
            (0..40u32).map(|i| if i % 7 == 3 { 0.0 } else { 0.011 * f64::from(i % 5 + 1) }).collect();
        let next_state: std::vec::Vec<u32> = (0..40u32).map(|i| i * 5 % 6).collect();
        let rewards = [-0.0; 6];
        for length in 0..=20u32 {
            let row_start = [0, length, length, length, length, length];
            let (p, next) = (&probability[..length as usize], &next_state[..length as usize]);
            let transitions = Transitions::Sparse { row_start: &row_start, next_state: next, probability: p };
            let mdp = Mdp::new([6, 1], transitions, Rewards::PerAction(&rewards), None, 0.7).unwrap();
            for value in [[1.0, -0.3, 1e-9, 7.7, -0.0, 2.0 / 3.0], [-0.0; 6], [0.1, f64::INFINITY, 0.3, 0.7, 0.9, 1e17]]
            {
                let terms =
                    p.iter().zip(next).map(|(p, s)| if *p == 0.0 { 0.0 } else { p * (0.0 + 0.7 * value[*s as usize]) });
                let tree = tree_sum(&terms.collect::<std::vec::Vec<f64>>());
                let expected = (-0.0 + tree).limited();
                assert_eq!(mdp.action_value(0, 0, &value).to_bits(), expected.to_bits(), "{length} entries");
            }
        }
    }

    proptest! {
        #[test]
        fn both_operators_contract_and_are_monotone(
            process in testing::processes(),
            left in prop::collection::vec(-5.0f64..5.0, 4),
            right in prop::collection::vec(-5.0f64..5.0, 4),
            seed in prop::collection::vec(0.0f64..1.0, 12),
        ) {
            let mdp = process.view();
            let policy = testing::policy(&process, &seed);
            let states = process.states;
            let higher: std::vec::Vec<f64> = left.iter().zip(&right).map(|(a, b)| a.max(*b)).collect();
            let before = max_distance(&left[..states], &right[..states]);
            for state in 0..states {
                for apply in [
                    &(|v: &[f64]| mdp.best_action(state, v).1) as &dyn Fn(&[f64]) -> f64,
                    &|v: &[f64]| mdp.state_value(state, &policy, v),
                ] {
                    // Values stay below 7 in size; a backup of at most 4 × 4 terms rounds by at most a few ulp of that.
                    let rounding = 64.0 * f64::EPSILON * 7.0;
                    prop_assert!((apply(&left) - apply(&right)).abs() <= process.discount * before + rounding);
                    prop_assert!(apply(&higher) >= apply(&left) - rounding);
                }
            }
        }
    }
}

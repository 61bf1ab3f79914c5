//! Backups of a Markov decision process, dense or in compressed sparse rows: a thread a state, or a thread a pair of state and
//! action.

use plumbline_core::batch::row_of;
use plumbline_core::bellman::conversion::v_from_q;
use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions};
use plumbline_core::num::Real;

use crate::Kernel;
use crate::memory::{Number, Reader, Writer};
use crate::tile::each_thread;
use crate::warp::Warp;

/// A process whose parts have been judged.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Process<R> {
    /// p(s'|s, a): [S, A, S], or \[K\].
    pub probability: Reader<R>,
    /// r: [S, A], or in the layout of the transitions.
    pub reward: Reader<R>,
    /// s' of each sparse entry; without elements where transitions are dense.
    pub next_state: Reader<u32>,
    /// Where the entries of each pair begin, [S, A].
    pub row_start: Reader<u32>,
    /// Which transitions end the episode.
    pub done: Reader<u8>,
    /// S.
    pub states: usize,
    /// A.
    pub actions: usize,
    /// γ.
    pub discount: R,
    /// Whether transitions are sparse.
    pub sparse: u32,
    /// Whether rewards are means of actions.
    pub reward_per_action: u32,
}

impl<R: Real> Process<R> {
    #[inline(always)]
    fn mdp(&self) -> Mdp<'_, R> {
        let (probability, reward) = (self.probability.slice(), self.reward.slice());
        let transitions = if self.sparse != 0 {
            Transitions::Sparse { row_start: self.row_start.slice(), next_state: self.next_state.slice(), probability }
        } else {
            Transitions::Dense(probability)
        };
        let reward =
            if self.reward_per_action != 0 { Rewards::PerAction(reward) } else { Rewards::PerTransition(reward) };
        let done = if self.done.given() { Some(self.done.slice()) } else { None };
        Mdp::trusted([self.states, self.actions], transitions, reward, done, self.discount)
    }
}

/// One synchronous sweep over the states, each by its best action.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Backup<R> {
    /// The process.
    pub process: Process<R>,
    /// v, \[S\].
    pub value: Reader<R>,
    /// The backed-up values, \[S\].
    pub backup: Writer<R>,
    /// The lowest best action, \[S\].
    pub action: Writer<R>,
    /// How many actions are as good, \[S\].
    pub ties: Writer<R>,
}

impl<R: Number> Kernel for Backup<R> {
    const NAME: &'static str = "bellman_backup";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (mdp, value) = (self.process.mdp(), self.value.slice());
        each_thread(warp, self.process.states, |state| {
            let (action, highest) = mdp.best_action(state, value);
            self.backup.set(state, highest);
            self.action.set(state, R::from_count(action));
            if self.ties.given() {
                let mut equal = 0;
                for action in 0..mdp.actions() {
                    equal += usize::from(mdp.action_value(state, action, value) == highest);
                }
                self.ties.set(state, R::from_count(equal));
            }
        });
    }
}

/// The value of every pair of state and action.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ActionValues<R> {
    /// The process.
    pub process: Process<R>,
    /// v, \[S\].
    pub value: Reader<R>,
    /// q, [S, A].
    pub q: Writer<R>,
}

impl<R: Number> Kernel for ActionValues<R> {
    const NAME: &'static str = "bellman_action_values";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (mdp, value) = (self.process.mdp(), self.value.slice());
        let actions = self.process.actions.max(1);
        each_thread(warp, self.process.states * actions, |pair| {
            self.q.set(pair, mdp.action_value(pair / actions, pair % actions, value));
        });
    }
}

/// The value of every state from those of its actions: under a policy, or the best one's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StateValues<R> {
    /// q, [S, A].
    pub q: Reader<R>,
    /// π, [S, A]; without elements the best action counts.
    pub policy: Reader<R>,
    /// v, \[S\].
    pub value: Writer<R>,
    /// S.
    pub states: usize,
    /// A.
    pub actions: usize,
}

impl<R: Number> Kernel for StateValues<R> {
    const NAME: &'static str = "bellman_state_values";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let (q, policy) = (self.q.slice(), self.policy.slice());
        each_thread(warp, self.states, |state| {
            let policy = if self.policy.given() { Some(row_of(policy, self.actions, state)) } else { None };
            self.value.set(state, v_from_q(row_of(q, self.actions, state), policy));
        });
    }
}

//! Sweeps over the states of a large process, split over threads.

use plumbline_core::bellman::mdp::{Mdp, max_distance};
use plumbline_core::bellman::modified_policy_iteration::{Sweep, turns};
use plumbline_core::bellman::sweep::{Outcome, Stopping, iterate};
use plumbline_core::num::Real;
use rayon::prelude::*;

/// States of a part: enough that handing it out costs nothing beside it, few enough that threads finish together.
pub const PART: usize = 4096;

/// One synchronous sweep: every state's value becomes `backup` of the values before it, which are left in `previous`; the
/// largest change is returned. Each part of `part` states is one thread's.
pub fn sweep<R: Real>(value: &mut [R], previous: &mut [R], part: usize, backup: impl Fn(usize, &[R]) -> R + Sync) -> R {
    let nothing = &mut vec![(); value.len()];
    sweep_by_parts(value, previous, nothing, part, |first, values, new, _| {
        for (state, slot) in (first..).zip(new) {
            *slot = backup(state, values);
        }
    })
}

/// The same with a `backup(first, previous, new, found)` that writes the values of the states from `first` on, and what else
/// it finds for each state to its part of `found` \[S\].
pub fn sweep_by_parts<R: Real, T: Send>(
    value: &mut [R],
    previous: &mut [R],
    found: &mut [T],
    part: usize,
    backup: impl Fn(usize, &[R], &mut [R], &mut [T]) + Sync,
) -> R {
    let part = part.max(1);
    previous.par_chunks_mut(part).zip(value.par_chunks(part)).for_each(|(old, new)| old.copy_from_slice(new));
    let previous = &*previous;
    value
        .par_chunks_mut(part)
        .zip(found.par_chunks_mut(part))
        .zip(previous.par_chunks(part))
        .enumerate()
        .map(|(index, ((values, found), before))| {
            backup(index * part, previous, values, found);
            max_distance(values, before)
        })
        .reduce(R::zero, |left, right| left.larger(right))
}

/// The core's `value_iteration` with synchronous sweeps, on all threads of the current pool.
///
/// `value` \[S\] holds the start and the result, `previous` \[S\] the values before the last sweep.
///
/// ```
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, sweep::Stopping};
/// use plumbline_parallel::sweep::value_iteration;
/// // Stay for 1, or end for 1.5.
/// let (p, r, done) = ([1.0, 1.0], [1.0, 1.5], [0, 1]);
/// let mdp = Mdp::new([1, 2], Transitions::Dense(&p), Rewards::PerAction(&r), Some(&done), 0.5)?;
/// let mut value = [0.0];
/// let outcome = value_iteration(&mdp, &mut value, &mut [0.0], Stopping { tolerance: 0.125, limit: 10 });
/// assert_eq!((value, outcome.iterations), ([1.875], 3)); // 1.5, 1.75, 1.875: the last change is the tolerance
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn value_iteration<R: Real>(
    mdp: &Mdp<'_, R>,
    value: &mut [R],
    previous: &mut [R],
    stopping: Stopping<R>,
) -> Outcome<R> {
    iterate(stopping, || improve(mdp, value, previous, &mut vec![(); mdp.states()], |_| ()))
}

/// A sweep of value iteration that also writes what `found` makes of the actions it takes.
fn improve<R: Real, T: Send>(
    mdp: &Mdp<'_, R>,
    value: &mut [R],
    previous: &mut [R],
    taken: &mut [T],
    found: impl Fn(usize) -> T + Sync,
) -> R {
    sweep_by_parts(value, previous, taken, PART, |first, values, new, taken| {
        mdp.best_actions(first, values, new, |state, action| {
            if let Some(slot) = taken.get_mut(state - first) {
                *slot = found(action);
            }
        });
    })
}

/// The core's `evaluate_iterative` with synchronous sweeps, on all threads of the current pool.
///
/// `policy` [S, A]; `value` \[S\] holds the start and the result, `previous` \[S\] the values before the last sweep.
pub fn evaluate_iterative<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: &[R],
    value: &mut [R],
    previous: &mut [R],
    stopping: Stopping<R>,
) -> Outcome<R> {
    iterate(stopping, || sweep(value, previous, PART, |state, values| mdp.state_value(state, policy, values)))
}

/// The core's `modified_policy_iteration`, on all threads of the current pool.
///
/// `value` \[S\] holds the start and the result, `previous` \[S\] the values before the last sweep; `evaluation_sweeps` is
/// m ≥ 1. Memory for an action of each state is allocated.
pub fn modified_policy_iteration<R: Real>(
    mdp: &Mdp<'_, R>,
    value: &mut [R],
    previous: &mut [R],
    evaluation_sweeps: usize,
    stopping: Stopping<R>,
) -> Outcome<R> {
    let mut actions = vec![0; mdp.states()];
    turns(stopping, evaluation_sweeps, |kind| match kind {
        Sweep::Improve => improve(mdp, value, previous, &mut actions, |action| action),
        Sweep::Evaluate => sweep_by_parts(value, previous, &mut actions, PART, |first, values, new, actions| {
            for ((state, slot), action) in (first..).zip(new).zip(&*actions) {
                *slot = mdp.action_value(state, *action, values);
            }
        }),
    })
}

//! Sweeps over the states of a large process, split over threads.

use plumbline_core::bellman::mdp::{Mdp, max_distance};
use plumbline_core::bellman::sweep::{Outcome, Stopping, iterate};
use plumbline_core::num::Real;
use rayon::prelude::*;

/// States of a part: enough that handing it out costs nothing beside it, few enough that threads finish together.
pub const PART: usize = 4096;

/// One synchronous sweep: every state's value becomes `backup` of the values before it, which are left in `previous`; the
/// largest change is returned. Each part of `part` states is one thread's.
pub fn sweep<R: Real>(value: &mut [R], previous: &mut [R], part: usize, backup: impl Fn(usize, &[R]) -> R + Sync) -> R {
    let part = part.max(1);
    previous.par_chunks_mut(part).zip(value.par_chunks(part)).for_each(|(old, new)| old.copy_from_slice(new));
    let previous = &*previous;
    value
        .par_chunks_mut(part)
        .zip(previous.par_chunks(part))
        .enumerate()
        .map(|(index, (values, before))| {
            for (state, slot) in (index * part..).zip(values.iter_mut()) {
                *slot = backup(state, previous);
            }
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
    iterate(stopping, || sweep(value, previous, PART, |state, values| mdp.best_action(state, values).1))
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

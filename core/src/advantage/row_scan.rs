//! Returns that every row has to itself: the form in which a kernel computes them, a thread a row.

use super::trajectory::Trajectories;
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Operation, Params};

/// What a scan reads of the steps, [B, T]. What an operation has no use for is empty.
#[derive(Clone, Copy, Debug)]
pub struct ScanSteps<'a, R> {
    /// Rewards, discounts and the ends of episodes.
    pub trajectories: Trajectories<'a, R>,
    /// V(s_t), or Q(s_t, a_t) where action values are learnt.
    pub value: &'a [R],
    /// log π of the actions.
    pub log_prob: Option<&'a [R]>,
    /// log μ of the actions.
    pub old_log_prob: Option<&'a [R]>,
    /// Whether an action is the greedy one.
    pub greedy: Option<&'a [u8]>,
}

/// A return whose rows do not depend on each other, with its settings. A kernel is handed the settings as they lie in memory,
/// so the type is `repr(C)`. The steps have been judged before, as the operation judges them.
pub trait RowScan<R: Real, const O: usize>: Copy {
    /// The name of its kernel.
    const NAME: &'static str;
    /// The operations that are settings of it.
    const OPERATIONS: &'static [&'static str];
    /// The input that stands in [`ScanSteps::value`].
    const VALUE: Option<&'static str>;
    /// The outputs, [B, T].
    const OUTPUTS: [&'static str; O];

    /// The settings that a call's parameters give; none where the call asks for more than rows by themselves.
    fn from_call(call: &Call<'_, R>) -> Result<Option<Self>, Error>;
    /// The results of a row, +0 for absent steps.
    fn row(&self, steps: &ScanSteps<'_, R>, row: usize, outputs: [&mut [R]; O]);
}

/// The scan with the settings that the parameters give.
pub fn scan_of<R: Real, S: RowScan<R, O>, const O: usize>(
    operation: &'static Operation,
    params: Params,
) -> Result<Option<S>, Error> {
    S::from_call(&Call::of_params(operation, params)?)
}

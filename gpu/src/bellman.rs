//! Backups of a Markov decision process on arrays in the device's memory.
#![allow(unsafe_code)]

use plumbline_core::Error as CoreError;
use plumbline_gpu_kernels::bellman::{ActionValues, Backup, Process, StateValues};
use plumbline_gpu_kernels::memory::{Number, Reader, Writer};
use plumbline_gpu_kernels::warp::LANES;

use crate::array::Plain;
use crate::{Array, Device, Error};

/// A process in the device's memory. Its numbers are those that [`plumbline_core::bellman::mdp::Mdp::new`] accepts: a kernel
/// does not judge them, and gives numbers without meaning for others.
#[derive(Debug)]
pub struct ProcessArrays<'a, D: Device, R> {
    /// p(s'|s, a): [S, A, S] where transitions are dense, \[K\] where they are sparse.
    pub probability: &'a Array<D, R>,
    /// r: [S, A], or in the layout of the transitions.
    pub reward: &'a Array<D, R>,
    /// Where the entries of each pair begin, [S, A], and s' of each entry, \[K\], where transitions are sparse.
    pub sparse: Option<[&'a Array<D, u32>; 2]>,
    /// Which transitions end the episode, in their layout.
    pub done: Option<&'a Array<D, u8>>,
    /// S and A.
    pub shape: [usize; 2],
    /// Whether rewards are means of actions.
    pub reward_per_action: bool,
    /// γ.
    pub discount: R,
}

impl<D: Device, R: Number + Plain> ProcessArrays<'_, D, R> {
    fn views(&self, device: &D) -> Process<R> {
        let [row_start, next_state] = match self.sparse {
            Some(arrays) => arrays.map(|array| array.reader(device)),
            None => [Reader::NONE; 2],
        };
        Process {
            probability: self.probability.reader(device),
            reward: self.reward.reader(device),
            next_state,
            row_start,
            done: self.done.map_or(Reader::NONE, |done| done.reader(device)),
            states: self.shape[0],
            actions: self.shape[1],
            discount: self.discount,
            sparse: u32::from(self.sparse.is_some()),
            reward_per_action: u32::from(self.reward_per_action),
        }
    }
}

fn whole<D: Device, T: Plain>(argument: &'static str, array: &Array<D, T>, expected: usize) -> Result<(), Error> {
    let got = array.length();
    if got == expected { Ok(()) } else { Err(CoreError::LengthMismatch { argument, expected, got }.into()) }
}

/// One synchronous sweep by the best action of every state. `choice`: the lowest best action and the number of those as good,
/// where they are asked for. Under a policy it is [`action_values`], then [`state_values`].
pub fn backup<D: Device, R: Number + Plain>(
    device: &D,
    process: &ProcessArrays<'_, D, R>,
    value: &Array<D, R>,
    backup: &mut Array<D, R>,
    choice: [Option<&mut Array<D, R>>; 2],
) -> Result<(), Error> {
    let [states, _] = process.shape;
    whole("value", value, states)?;
    whole("backup", backup, states)?;
    let [action, ties] = choice.map(|array| array.map_or(Writer::NONE, |array| array.writer(device)));
    let kernel = Backup {
        process: process.views(device),
        value: value.reader(device),
        backup: backup.writer(device),
        action,
        ties,
    };
    // SAFETY: the arrays are the device's own, and those that are written are borrowed by no one else.
    unsafe { device.launch(device.grid(states.div_ceil(LANES)), &kernel) }
}

/// The value of every pair of state and action from the values of the states.
pub fn action_values<D: Device, R: Number + Plain>(
    device: &D,
    process: &ProcessArrays<'_, D, R>,
    value: &Array<D, R>,
    q: &mut Array<D, R>,
) -> Result<(), Error> {
    let [states, actions] = process.shape;
    let pairs = states.saturating_mul(actions);
    whole("value", value, states)?;
    whole("q", q, pairs)?;
    let kernel = ActionValues { process: process.views(device), value: value.reader(device), q: q.writer(device) };
    // SAFETY: as above.
    unsafe { device.launch(device.grid(pairs.div_ceil(LANES)), &kernel) }
}

/// The value of every state from those of its actions: under a policy, or the best one's.
pub fn state_values<D: Device, R: Number + Plain>(
    device: &D,
    [states, actions]: [usize; 2],
    q: &Array<D, R>,
    policy: Option<&Array<D, R>>,
    value: &mut Array<D, R>,
) -> Result<(), Error> {
    let pairs = states.saturating_mul(actions);
    whole("q", q, pairs)?;
    whole("value", value, states)?;
    if let Some(policy) = policy {
        whole("policy", policy, pairs)?;
    }
    let kernel = StateValues {
        q: q.reader(device),
        policy: policy.map_or(Reader::NONE, |policy| policy.reader(device)),
        value: value.writer(device),
        states,
        actions,
    };
    // SAFETY: as above.
    unsafe { device.launch(device.grid(states.div_ceil(LANES)), &kernel) }
}

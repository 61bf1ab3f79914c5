//! Temporal-difference and Q-learning: target, error, loss and the gradient of the online estimate, over a batch of
//! transitions. Targets are constants: no gradient flows into what they bootstrap from. Behind the end of an episode
//! nothing is read.

pub mod categorical;
pub mod continuous;
pub mod dueling;
pub mod n_step;
pub mod prioritised_replay;
pub mod q_learning;
pub mod quantile;
pub mod sarsa;
pub mod state_value;
pub mod target_update;
pub mod transition;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    state_value::SPECS,
    sarsa::SPECS,
    q_learning::SPECS,
    n_step::SPECS,
    dueling::SPECS,
    categorical::SPECS,
    quantile::SPECS,
    continuous::SPECS,
    prioritised_replay::SPECS,
    target_update::SPECS,
];

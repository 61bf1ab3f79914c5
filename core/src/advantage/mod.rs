//! Advantages and returns: what a token or an action is credited with, from rewards and values.

pub mod batch_std;
pub mod gae;
pub mod group_mean;
pub mod group_mean_std;
pub mod grouped;
pub mod rloo;
pub mod trajectory;
pub mod whiten;

pub use batch_std::batch_std;
pub use gae::{add_value, gae};
pub use group_mean::group_mean;
pub use group_mean_std::{GroupMeanStd, group_mean_std};
pub use grouped::{Deviation, EpsPlacement, GroupOfOne, GroupedRewards, broadcast};
pub use rloo::rloo;
pub use trajectory::{Discount, Trajectories};
pub use whiten::{Center, Moments, OneToken, Whiten, WhitenSums, whiten, whiten_in_place};

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] =
    &[group_mean_std::SPECS, group_mean::SPECS, batch_std::SPECS, rloo::SPECS, whiten::SPECS, gae::SPECS];

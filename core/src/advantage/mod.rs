//! Advantages and returns: what a token or an action is credited with, from rewards and values.

pub mod batch_std;
pub mod discounted_return;
pub mod gae;
pub mod gdpo;
pub mod gpg;
pub mod group_mean;
pub mod group_mean_std;
pub mod grouped;
pub mod lambda_return;
pub mod monte_carlo_value;
pub mod n_step_return;
pub mod off_policy_return;
pub mod opo;
pub mod optimal_token_baseline;
pub mod passk;
pub mod reinforce_plus_plus;
pub mod remax;
pub mod rloo;
pub mod row_scan;
pub mod trajectory;
pub mod vtrace;
pub mod whiten;

pub use batch_std::batch_std;
pub use discounted_return::discounted_return;
pub use gae::{add_value, gae};
pub use gdpo::{BatchNormalisation, Gdpo, gdpo};
pub use gpg::{GpgCount, gpg};
pub use group_mean::group_mean;
pub use group_mean_std::{GroupMeanStd, group_mean_std};
pub use grouped::{Deviation, EpsPlacement, GroupOfOne, GroupedRewards, broadcast};
pub use lambda_return::{TraceKind, lambda_return, td_lambda_increment};
pub use monte_carlo_value::{Visits, monte_carlo_value};
pub use n_step_return::n_step_return;
pub use off_policy_return::{ActionValueSteps, OffPolicyTrace, off_policy_return};
pub use opo::opo;
pub use optimal_token_baseline::{Alignment, TokenBaseline, TokenBaselineInputs, optimal_token_baseline};
pub use passk::passk;
pub use reinforce_plus_plus::{ReinforcePlusPlus, reinforce_plus_plus, reinforce_plus_plus_baseline};
pub use remax::remax;
pub use rloo::rloo;
pub use trajectory::{Discount, Trajectories};
pub use vtrace::{Vtrace, vtrace};
pub use whiten::{Center, Moments, OneToken, Whiten, WhitenSums, whiten, whiten_in_place};

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    group_mean_std::SPECS,
    group_mean::SPECS,
    batch_std::SPECS,
    rloo::SPECS,
    opo::SPECS,
    gpg::SPECS,
    passk::SPECS,
    gdpo::SPECS,
    remax::SPECS,
    reinforce_plus_plus::SPECS,
    optimal_token_baseline::SPECS,
    whiten::SPECS,
    discounted_return::SPECS,
    gae::SPECS,
    n_step_return::SPECS,
    lambda_return::SPECS,
    vtrace::SPECS,
    off_policy_return::SPECS,
    monte_carlo_value::SPECS,
];

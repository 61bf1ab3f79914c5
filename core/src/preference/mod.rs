//! Preference and reward-model losses: pairs of a chosen and a rejected response, single labelled responses, rankings.

mod arithmetic;
pub mod bradley_terry;
pub mod bradley_terry_fit;
pub mod cal_dpo;
pub mod dpo_aot;
pub mod dpo_bco_pair;
pub mod dpo_discopop;
pub mod dpo_exo_pair;
pub mod dpo_hinge;
pub mod dpo_ipo;
pub mod dpo_pointwise;
pub mod dpo_robust;
pub mod dpo_sigmoid;
pub mod last_token_score;
pub mod likelihood;
pub mod minillm;
pub mod online;
pub mod orpo;
pub mod pairs;
pub mod ranking;
pub mod reference_free;
pub mod reward_metrics;
pub mod rpo;
pub mod running_mean;
pub mod scores;
pub mod token_level;
pub mod unpaired;

use crate::spec::Operation;

/// The operations of this family, file by file.
pub static OPERATIONS: &[&[Operation]] = &[
    last_token_score::SPECS,
    bradley_terry::SPECS,
    ranking::SPECS,
    bradley_terry_fit::SPECS,
    scores::SPECS,
    dpo_sigmoid::SPECS,
    dpo_hinge::SPECS,
    dpo_ipo::SPECS,
    dpo_exo_pair::SPECS,
    dpo_robust::SPECS,
    dpo_discopop::SPECS,
    dpo_pointwise::SPECS,
    dpo_bco_pair::SPECS,
    dpo_aot::SPECS,
    likelihood::SPECS,
    rpo::SPECS,
    token_level::SPECS,
    cal_dpo::SPECS,
    reference_free::SPECS,
    orpo::SPECS,
    unpaired::SPECS,
    online::SPECS,
    minillm::SPECS,
    reward_metrics::SPECS,
];

#[cfg(test)]
mod properties;

//! The formulas that become kernels by a template. An entry is named after its operation.

/// Hand the elementwise formulas to a macro: the entries for `f32` and `f64`, core's formula for the number type `R` that stands
/// where the macro is used, how many inputs and outputs.
#[macro_export]
macro_rules! elementwise_formulas {
    ($with:ident) => {
        $with! {
            surrogate_reinforce_f32, surrogate_reinforce_f64: plumbline_core::surrogate::reinforce::Reinforce, 2, 3;
            surrogate_importance_weighted_f32, surrogate_importance_weighted_f64: plumbline_core::surrogate::importance_weighted::ImportanceWeighted, 3, 3;
            surrogate_importance_weighted_detached_f32, surrogate_importance_weighted_detached_f64: plumbline_core::surrogate::importance_weighted::ImportanceWeightedDetached, 3, 3;
            surrogate_ppo_clip_f32, surrogate_ppo_clip_f64: plumbline_core::surrogate::ppo_clip::PpoClip<R>, 3, 3;
            surrogate_ppo_clip_log_f32, surrogate_ppo_clip_log_f64: plumbline_core::surrogate::ppo_clip_log::PpoClipLog<R>, 3, 3;
            surrogate_cispo_f32, surrogate_cispo_f64: plumbline_core::surrogate::cispo::Cispo<R>, 3, 3;
            surrogate_masked_is_f32, surrogate_masked_is_f64: plumbline_core::surrogate::masked_is::MaskedIs<R>, 3, 3;
            surrogate_gmpo_f32, surrogate_gmpo_f64: plumbline_core::surrogate::gmpo::Gmpo<R>, 3, 3;
            surrogate_sapo_f32, surrogate_sapo_f64: plumbline_core::surrogate::sapo::Sapo<R>, 3, 3;
            surrogate_vespo_f32, surrogate_vespo_f64: plumbline_core::surrogate::vespo::Vespo<R>, 3, 3;
            surrogate_dppo_f32, surrogate_dppo_f64: plumbline_core::surrogate::dppo::Dppo<R>, 3, 3;
            surrogate_clip_cov_f32, surrogate_clip_cov_f64: plumbline_core::surrogate::cov::ClipCov<R>, 3, 3;
            surrogate_kl_cov_f32, surrogate_kl_cov_f64: plumbline_core::surrogate::cov::KlCov<R>, 3, 3;
            surrogate_dro_f32, surrogate_dro_f64: plumbline_core::surrogate::dro::Dro<R>, 3, 3;
            ratio_token_f32, ratio_token_f64: plumbline_core::ratio::token::TokenRatio<R>, 2, 2;
            kl_k3_importance_weighted_f32, kl_k3_importance_weighted_f64: plumbline_core::kl::importance_weighted::ImportanceWeightedK3, 3, 2;
            kl_reward_penalty_f32, kl_reward_penalty_f64: plumbline_core::kl::reward_penalty::RewardPenalty<R>, 3, 2;
            preference_f_divergence_score_f32, preference_f_divergence_score_f64: plumbline_core::preference::scores::DivergenceScore<R>, 1, 2;
            reward_calibrate_f32, reward_calibrate_f64: plumbline_core::reward::standardise::Calibrate<R>, 1, 1;
        }
    };
}

/// Hand the returns to a macro: the entries for `f32` and `f64`, core's scan for the number type `R`, how many outputs.
#[macro_export]
macro_rules! scans {
    ($with:ident) => {
        $with! {
            advantage_discounted_return_f32, advantage_discounted_return_f64:
                plumbline_core::advantage::discounted_return::DiscountedReturn, 1;
            advantage_gae_f32, advantage_gae_f64: plumbline_core::advantage::gae::Gae<R>, 2;
            advantage_lambda_return_f32, advantage_lambda_return_f64:
                plumbline_core::advantage::lambda_return::LambdaReturn<R>, 1;
            advantage_n_step_return_f32, advantage_n_step_return_f64:
                plumbline_core::advantage::n_step_return::NStepReturn, 1;
            advantage_vtrace_f32, advantage_vtrace_f64: plumbline_core::advantage::vtrace::VtraceRows<R>, 2;
            advantage_off_policy_return_f32, advantage_off_policy_return_f64:
                plumbline_core::advantage::off_policy_return::OffPolicyReturn<R>, 1;
        }
    };
}

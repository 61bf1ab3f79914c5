//! The KL penalty inside the reward.

use super::estimator::{DIFFERENCE_CLAMP, KlEstimator, VALUE_CLAMP, VERL_CLAMPS};
use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Dialect, Domain, Elementwise, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source,
    evaluate_elements, evaluate_with,
};

/// r − β·k: the reward of one token after the penalty, where k is an estimate of KL(π_old‖π_ref) at it.
///
/// The estimate is a number of the sampling-time policy: no gradient flows. With β = 0 an infinite estimate costs nothing.
///
/// ```
/// use plumbline_core::kl::reward_penalty::penalised_reward;
/// assert_eq!(penalised_reward(1.0, 0.5, 0.25), 0.875);
/// ```
#[inline(always)]
pub fn penalised_reward<R: Real>(reward: R, kl_coefficient: R, kl: R) -> R {
    if kl_coefficient == R::zero() { reward } else { reward - kl_coefficient * kl }
}

const KL_COEFFICIENT: ParamSpec = ParamSpec::number(
    "kl_coefficient",
    r"\beta",
    0.02,
    Range::NON_NEGATIVE,
    "weight of the penalty (reward per nat); the default is that of InstructGPT",
);
const ESTIMATOR: ParamSpec =
    ParamSpec::choice("kl_estimator", KlEstimator::K1.name(), KlEstimator::NAMES, "which estimate is subtracted");

/// [`penalised_reward`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RewardPenalty<R> {
    /// Which estimate is subtracted.
    pub estimator: KlEstimator,
    /// β.
    pub kl_coefficient: R,
    /// The limit of the log-ratio; infinite where there is none.
    pub difference_clamp: R,
    /// The limit of the estimate; infinite where there is none.
    pub value_clamp: R,
}

impl<R: Real> Elementwise<R, 3, 2> for RewardPenalty<R> {
    const OPERATION: &'static str = "kl.reward_penalty";
    const INPUTS: [&'static str; 3] = ["reward", "old_log_prob", "ref_log_prob"];
    const OUTPUTS: [&'static str; 2] = ["penalised_reward", "kl"];

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(RewardPenalty {
            estimator: call.choice(ESTIMATOR.name)?,
            kl_coefficient: call.number(KL_COEFFICIENT.name)?,
            difference_clamp: call.optional_number(DIFFERENCE_CLAMP.name).unwrap_or(R::infinity()),
            value_clamp: call.optional_number(VALUE_CLAMP.name).unwrap_or(R::infinity()),
        })
    }

    #[inline(always)]
    fn apply(&self, _: bool, [reward, old_log_prob, ref_log_prob]: [R; 3]) -> [R; 2] {
        let limit = |clamp: R| (clamp < R::infinity()).then_some(clamp);
        let (difference_clamp, value_clamp) = (limit(self.difference_clamp), limit(self.value_clamp));
        let [kl, _] = self.estimator.estimate(old_log_prob - ref_log_prob, difference_clamp, value_clamp);
        [penalised_reward(reward, self.kl_coefficient, kl), kl]
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, RewardPenalty<R>, 3, 2>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.reward_penalty",
    family: Family::Kl,
    title: "KL penalty in the reward",
    summary: "Subtracts a KL estimate between the sampling-time and the reference policy from each token's reward.",
    formula: r"r_t \leftarrow r_t - \beta\,k\big(\log\pi_{\mathrm{old}}(a_t) - \log\pi_{\mathrm{ref}}(a_t)\big)",
    gradient: "",
    notes: "Nothing is trainable here: the estimate is part of the reward. verl subtracts at every token, with its \
            clamps inside k3; TRL's RLOO subtracts the sum of k1 over the response from the response's reward, which \
            has the same total.",
    sources: &[
        Source {
            title: "Fine-Tuning Language Models from Human Preferences",
            reference: "arXiv:1909.08593",
            place: "Equation 2",
        },
        Source {
            title: "Training language models to follow instructions with human feedback",
            reference: "arXiv:2203.02155",
            place: "Equation 2",
        },
    ],
    inputs: &[
        InputSpec::new("reward", Domain::Reward, &[&["B", "T"]], "reward of each token before the penalty"),
        InputSpec::new(
            "old_log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of the sampled token, sampling-time policy (nats)",
        ),
        InputSpec::new("ref_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the reference policy (nats)"),
        InputSpec::MASK,
    ],
    params: &[KL_COEFFICIENT, ESTIMATOR, DIFFERENCE_CLAMP, VALUE_CLAMP],
    defaults: &[],
    outputs: &[
        OutputSpec::value("penalised_reward", &["B", "T"], "reward of each token after the penalty; 0 under the mask"),
        OutputSpec::value("kl", &["B", "T"], "the estimate at each token (nats)"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "k1, no clamp", settings: &[] },
        Dialect { name: "verl-0.9", note: "k3 clamped: difference to 20, result to 10", settings: VERL_CLAMPS },
    ],
    evaluate: evaluate_with!(evaluate),
}];

//! The whole PPO step of RLHF in one call: KL in the reward, GAE, the clipped policy loss, the clipped value loss, the
//! entropy bonus, and the pretraining term.

use super::policy::{EntropyAggregation, EntropyTerm, PolicyBatch, PolicyObjective, PolicyOutputs, Spread, Surrogate};
use super::value_loss::value_loss;
use crate::Error;
use crate::advantage::{Discount, OneToken, Trajectories, Whiten, add_value, gae, whiten_in_place};
use crate::kl::estimator::KlEstimator;
use crate::kl::reward_penalty::penalised_reward;
use crate::num::{ExactSum, Real};
use crate::reduce::{REDUCTION_PARAMS, Reduction};
use crate::reward::assemble::assemble;
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value,
    evaluate_with,
};
use crate::surrogate::ppo_clip::PPO;
use crate::surrogate::{CLIP_RATIO_C, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, ClipRange};

/// Rewards r_t = −β·k(log π_old − log π_ref), plus the score at the last token, into `reward`.
fn rewards<R: Real>(call: &Call<'_, R>, reward: &mut [R]) -> Result<(), Error> {
    let mask = call.mask()?;
    let (old, reference) = (call.real("old_log_prob")?, call.real("ref_log_prob")?);
    mask.check_finite("old_log_prob", old)?;
    mask.check_finite("ref_log_prob", reference)?;
    assemble(call.real("score")?, None, mask, reward)?;
    let (coefficient, estimator): (R, KlEstimator) = (call.number("kl_coefficient")?, call.choice("kl_estimator")?);
    for (slot, ((reward, old), reference)) in reward.iter_mut().zip(old).zip(reference).enumerate() {
        if mask.keeps(slot) {
            let [kl, _] = estimator.estimate(*old - *reference, None, None);
            *reward = penalised_reward(*reward, coefficient, kl);
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask = call.mask()?;
    let reward = call.workspace("reward")?;
    let advantage = call.workspace("advantage")?;
    let returns = call.workspace("return")?;

    rewards(call, reward)?;
    let old_value = call.real("old_value")?;
    let trajectories = Trajectories {
        mask,
        reward,
        discount: Discount::Constant(call.number("discount")?),
        terminated: None,
        truncated: None,
        next_value: None,
        bootstrap_value: None,
    };
    gae(&trajectories, old_value, call.number("gae_lambda")?, advantage)?;
    returns.iter_mut().zip(advantage.iter()).for_each(|(slot, advantage)| *slot = *advantage);
    add_value(returns, old_value, mask);
    if call.flag("whiten_advantage") {
        let whiten = Whiten {
            shift_mean: true,
            ddof: 1,
            eps: call.number("whiten_eps")?,
            one_token: OneToken::Error,
            count_eps: call.number("whiten_count_eps")?,
        };
        whiten_in_place(advantage, mask, whiten)?;
    }

    let reduction = Reduction::from_call(call)?;
    let entropy_coefficient: R = call.number("entropy_coefficient")?;
    let low = call.optional_number("clip_ratio_low").map_or(R::zero(), |low| R::one() - low);
    let clip = ClipRange { low, high: R::one() + call.number("clip_ratio_high")? };
    let objective = PolicyObjective {
        log_ratio_range: match call.optional_number("log_ratio_clamp") {
            Some(limit) => (R::zero() - limit, limit),
            None => (R::neg_infinity(), R::infinity()),
        },
        entropy: if entropy_coefficient == R::zero() {
            None
        } else {
            Some(EntropyTerm { coefficient: entropy_coefficient, aggregation: EntropyAggregation::Same })
        },
        ..PolicyObjective::new(
            Surrogate::PpoClip {
                clip,
                ratio_max: R::infinity(),
                dual: call.optional_number("clip_ratio_c").unwrap_or(R::infinity()),
            },
            reduction,
        )
    };
    let batch = PolicyBatch {
        old_log_prob: call.optional_real("old_log_prob"),
        entropy: call.optional_real("entropy"),
        ..PolicyBatch::new(call.real("log_prob")?, Spread::PerToken(advantage), mask)
    };
    let mut outputs = PolicyOutputs {
        d_log_prob: call.output("d_log_prob"),
        d_entropy: call.output("d_entropy"),
        ..PolicyOutputs::default()
    };
    let policy = objective.loss(&batch, &mut outputs)?;

    let value_coefficient: R = call.number("value_coefficient")?;
    let value_clip = call.optional_number("value_clip_range").unwrap_or(R::max_value());
    let mut d_value = call.output("d_value");
    let value = value_loss(
        call.real("value")?,
        old_value,
        returns,
        value_clip,
        &mask,
        None,
        &reduction,
        d_value.as_deref_mut(),
    )?;
    for slope in d_value.into_iter().flatten() {
        *slope *= value_coefficient;
    }

    let pretraining = pretraining(call)?;
    let mut loss = policy.loss + value_coefficient * value.loss;
    if let Some(pretraining) = pretraining {
        loss += pretraining;
    }
    for (name, value) in [
        ("loss", loss),
        ("policy_loss", policy.policy_loss),
        ("value_loss", value.loss),
        ("entropy_loss", policy.entropy_loss),
        ("pretraining_loss", pretraining.unwrap_or(R::zero())),
        ("clip_fraction", policy.metrics.clip_fraction),
        ("value_clip_fraction", value.clip_fraction),
        ("approx_kl_k1", policy.metrics.approx_kl_k1),
    ] {
        call.write(name, value);
    }
    Ok(())
}

/// The pretraining term, γ times the mean negative log-likelihood of pretraining tokens, and its gradient.
fn pretraining<R: Real>(call: &mut Call<'_, R>) -> Result<Option<R>, Error> {
    let Some(log_prob) = call.optional_finite("pretraining_log_prob")? else { return Ok(None) };
    if log_prob.is_empty() {
        return Ok(None);
    }
    let coefficient: R = call.number("pretraining_coefficient")?;
    let count = R::from_count(log_prob.len());
    let mut sum = ExactSum::new();
    for value in log_prob {
        sum.add(*value);
    }
    if let Some(gradient) = call.output("d_pretraining_log_prob") {
        gradient.fill(R::zero() - coefficient / count);
    }
    Ok(Some(R::zero() - coefficient * (sum.value::<R>() / count)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "objective.ppo_rlhf",
    family: Family::Objective,
    title: "PPO for RLHF",
    summary: "One PPO step from score and values: KL in the reward, GAE, clipped policy and value losses, entropy, pretraining.",
    formula: r"L = L_{\mathrm{clip}}(\hat A) + c_v L_v(\hat A + v_{\mathrm{old}}) - c_H \bar H - \gamma_{\mathrm{ptx}} \overline{\log\pi_{\mathrm{ptx}}},\quad r_t = -\beta k(\pi_{\mathrm{old}}, \pi_{\mathrm{ref}}) + [t = \text{last}]\, s",
    gradient: r"\partial L/\partial \log\pi = \partial L_{\mathrm{clip}},\quad \partial L/\partial v = c_v\, \partial L_v",
    notes: "Rewards, advantages and returns are constants: they come from the policies and values at sampling time. Returns are \
            taken before the advantages are whitened. It works in its outputs reward, advantage and return.",
    sources: &[
        PPO,
        Source {
            title: "Training language models to follow instructions with human feedback",
            reference: "arXiv:2203.02155",
            place: "Eq. 2 (reward with KL, pretraining term)",
        },
        Source {
            title: "Fine-Tuning Language Models from Human Preferences",
            reference: "arXiv:1909.08593",
            place: "Eq. 2 (KL in the reward)",
        },
    ],
    inputs: &[
        InputSpec::new(
            "log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of each sampled token, current policy (nats)",
        ),
        InputSpec::new("old_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the policy that sampled it"),
        InputSpec::new("ref_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the reference policy"),
        InputSpec::new("score", Domain::Reward, &[&["B"]], "score of each response by the reward model"),
        InputSpec::new("value", Domain::Value, &[&["B", "T"]], "predicted value at each token, current critic"),
        InputSpec::new("old_value", Domain::Value, &[&["B", "T"]], "value predicted when the response was sampled"),
        InputSpec::MASK,
        InputSpec::new(
            "entropy",
            Domain::NonNegative,
            &[&["B", "T"]],
            "entropy at each token; needed where entropy_coefficient is not 0",
        )
        .optional(),
        InputSpec::new("pretraining_log_prob", Domain::LogProb, &[&["P"]], "log-probabilities of pretraining tokens")
            .optional(),
    ],
    params: &{
        let [a, b, c, d, e, f, g, h] = REDUCTION_PARAMS;
        [
            ParamSpec::number(
                "kl_coefficient",
                r"\beta",
                0.02,
                Range::NON_NEGATIVE,
                "weight of the KL in the reward (reward per nat)",
            ),
            ParamSpec::choice(
                "kl_estimator",
                KlEstimator::K1.name(),
                KlEstimator::NAMES,
                "estimate of the KL in the reward",
            ),
            ParamSpec::number("discount", r"\gamma", 1.0, Range::UNIT, "discount factor per token"),
            ParamSpec::number("gae_lambda", r"\lambda", 0.95, Range::UNIT, "trace decay of the advantage"),
            ParamSpec::flag("whiten_advantage", true, "whether the advantages are whitened over the batch's tokens"),
            ParamSpec::number(
                "whiten_eps",
                r"\epsilon_w",
                1e-8,
                Range::NON_NEGATIVE,
                "added to the variance in the whitening",
            ),
            ParamSpec::number(
                "whiten_count_eps",
                r"\epsilon_n",
                0.0,
                Range::NON_NEGATIVE,
                "added to the token count in the whitening's means",
            ),
            CLIP_RATIO_LOW,
            CLIP_RATIO_HIGH,
            CLIP_RATIO_C,
            ParamSpec::optional(
                "log_ratio_clamp",
                r"x_{\max}",
                None,
                Range::POSITIVE,
                "limit of the log-ratio's size (nats); off by default",
            ),
            ParamSpec::optional(
                "value_clip_range",
                r"\epsilon_v",
                Some(0.2),
                Range::NON_NEGATIVE,
                "how far a value may move; off: plain squared error",
            ),
            ParamSpec::number("value_coefficient", r"c_v", 0.1, Range::NON_NEGATIVE, "weight of the value loss"),
            ParamSpec::number("entropy_coefficient", r"c_H", 0.0, Range::ANY, "weight of the entropy bonus"),
            ParamSpec::number(
                "pretraining_coefficient",
                r"\gamma_{\mathrm{ptx}}",
                27.8,
                Range::NON_NEGATIVE,
                "weight of the pretraining term; InstructGPT's is the default",
            ),
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ]
    },
    defaults: &[],
    outputs: &[
        OutputSpec::value("loss", &[], "the whole loss"),
        OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "gradient of the loss by log_prob"),
        OutputSpec::gradient("d_value", "value", &["B", "T"], "gradient of the loss by value"),
        OutputSpec::gradient("d_entropy", "entropy", &["B", "T"], "gradient of the loss by entropy"),
        OutputSpec::gradient(
            "d_pretraining_log_prob",
            "pretraining_log_prob",
            &["P"],
            "gradient of the loss by pretraining_log_prob",
        ),
        OutputSpec::value("reward", &["B", "T"], "reward of each token").workspace(),
        OutputSpec::value("advantage", &["B", "T"], "advantage of each token").workspace(),
        OutputSpec::value("return", &["B", "T"], "return of each token, the value's target").workspace(),
        OutputSpec::value("policy_loss", &[], "the aggregated policy term"),
        OutputSpec::value("value_loss", &[], "the aggregated value loss, before its coefficient"),
        OutputSpec::value("entropy_loss", &[], "the aggregated entropy, before its coefficient"),
        OutputSpec::value("pretraining_loss", &[], "the pretraining term with its coefficient"),
        OutputSpec::value("clip_fraction", &[], "fraction of tokens whose policy loss the clip decided"),
        OutputSpec::value("value_clip_fraction", &[], "fraction of tokens whose value loss the clip decided"),
        OutputSpec::value("approx_kl_k1", &[], "mean of log pi_old - log pi over tokens (nats)"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "InstructGPT", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "dual clip 3, log-ratio limited to 20, value clip 0.5, lambda 1, KL 0.001",
            settings: &[
                ("clip_ratio_c", Value::Number(3.0)),
                ("log_ratio_clamp", Value::Number(20.0)),
                ("value_clip_range", Value::Number(0.5)),
                ("value_coefficient", Value::Number(1.0)),
                ("gae_lambda", Value::Number(1.0)),
                ("kl_coefficient", Value::Number(0.001)),
                ("length_eps", Value::Number(1e-8)),
                ("whiten_count_eps", Value::Number(1e-8)),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

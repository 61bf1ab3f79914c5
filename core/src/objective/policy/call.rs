//! The objective in the catalog: its inputs, parameters and outputs, and the evaluation by name.

use super::{
    EntropyAggregation, EntropyTerm, KlTerm, KlWeight, PolicyBatch, PolicyObjective, PolicyOutputs, RatioLevel, Spread,
    Surrogate, SurrogateKind,
};
use crate::Error;
use crate::advantage::{
    Deviation, EpsPlacement, GroupMeanStd, GroupOfOne, GroupedRewards, batch_std, group_mean, group_mean_std, rloo,
};
use crate::batch::Groups;
use crate::engine::{Engine, Portable};
use crate::kl::estimator::KlEstimator;
use crate::num::Real;
use crate::reduce::{REDUCTION_PARAMS, Reduction};
use crate::spec::{Call, Choice, Domain, InputSpec, Operation, OutputSpec, ParamSpec, Params, Range, choice};
use crate::surrogate::dppo::{Divergence, DppoBounds, PROBABILITY_EPS};
use crate::surrogate::ppo_clip_log::log_bounds;
use crate::surrogate::{CLIP_BOUNDS, CLIP_RATIO_C, CLIP_RATIO_HIGH, CLIP_RATIO_LOW, RATIO_MAX};
use crate::surrogate::{ClipRange, cov, dro, sapo, vespo};

choice! {
    /// Where the advantage comes from.
    pub enum AdvantageSource {
        /// The input `advantage`.
        Given = "given",
        /// GRPO: the reward's z-score within its group.
        GroupMeanStd = "group_mean_std",
        /// Dr. GRPO: the reward less its group's mean.
        GroupMean = "group_mean",
        /// Leave-one-out.
        Rloo = "rloo",
        /// The reward less its group's mean, divided by the batch's deviation.
        BatchStd = "batch_std",
    }
}

/// The inputs of every policy objective.
pub(crate) const INPUTS: &[InputSpec] = &[
    InputSpec::new(
        "log_prob",
        Domain::LogProb,
        &[&["B", "T"]],
        "log-probability of each sampled token under the current policy (nats)",
    ),
    InputSpec::new(
        "old_log_prob",
        Domain::LogProb,
        &[&["B", "T"]],
        "the same under the policy that sampled it; without it every ratio is 1 and its gradient remains",
    )
    .optional(),
    InputSpec::new(
        "ref_log_prob",
        Domain::LogProb,
        &[&["B", "T"]],
        "the same under the reference policy; needed where kl_coefficient is not 0",
    )
    .optional(),
    InputSpec::new(
        "advantage",
        Domain::Advantage,
        &[&["B", "T"], &["B"]],
        "advantage of each token, or of each response; needed where advantage_estimator is given",
    )
    .optional(),
    InputSpec::new("reward", Domain::Reward, &[&["B"]], "reward of each response, for the other advantage estimators")
        .optional(),
    InputSpec::new(
        "group",
        Domain::Group,
        &[&["B"]],
        "prompt of each response, for the group estimators and group_mean_token_mean",
    )
    .optional(),
    InputSpec::MASK,
    InputSpec::new(
        "importance_weight",
        Domain::NonNegative,
        &[&["B", "T"], &["B"]],
        "weight that multiplies the policy term of each token or response (an off-policy correction)",
    )
    .optional(),
    InputSpec::new(
        "keep",
        Domain::Mask,
        &[&["B", "T"]],
        "0 where a token's policy term is left out while it still counts in the denominators",
    )
    .optional(),
    InputSpec::new("selected", Domain::Mask, &[&["B", "T"]], "1 where a token was selected (clip_cov, kl_cov)")
        .optional(),
    InputSpec::new(
        "entropy",
        Domain::NonNegative,
        &[&["B", "T"]],
        "entropy of the current policy at each token (nats); needed where entropy_coefficient is not 0",
    )
    .optional(),
];

/// The parameters of every policy objective.
pub(crate) const PARAMS: &[ParamSpec] = &{
    let [aggregation, empty_row, length_eps, length_normaliser, token_count, sequence_count, world_size, loss_scale] =
        REDUCTION_PARAMS;
    [
        ParamSpec::choice(
            "advantage_estimator",
            "given",
            AdvantageSource::NAMES,
            "where the advantage comes from: the input, or the rewards and their groups",
        ),
        ParamSpec::number(
            "advantage_eps",
            r"\epsilon_A",
            0.0,
            Range::NON_NEGATIVE,
            "added to the deviation that a group advantage is divided by",
        ),
        ParamSpec::integer(
            "advantage_ddof",
            "",
            1,
            0,
            1,
            "subtracted from the count in that deviation's variance: 1 sample, 0 population",
        ),
        ParamSpec::choice(
            "group_of_one",
            GroupOfOne::Error.name(),
            GroupOfOne::NAMES,
            "what a response alone in its group gets: an error, 0, or its reward",
        ),
        ParamSpec::choice("ratio_level", "token", RatioLevel::NAMES, "what the importance ratio is a ratio of"),
        ParamSpec::optional(
            "log_ratio_min",
            r"x_{\min}",
            None,
            Range::NON_POSITIVE,
            "lower limit of the log-ratio, at its level, before the exponential (nats); off by default",
        ),
        ParamSpec::optional(
            "log_ratio_max",
            r"x_{\max}",
            None,
            Range::NON_NEGATIVE,
            "upper limit of the log-ratio, at its level, before the exponential (nats); off by default",
        ),
        ParamSpec::optional(
            "token_log_ratio_clamp",
            r"x_{\mathrm{tok}}",
            None,
            Range::POSITIVE,
            "limit of each token's log-ratio before the sum of a sequence level (nats); off by default",
        ),
        ParamSpec::number(
            "ratio_length_eps",
            r"\epsilon_\rho",
            0.0,
            Range::NON_NEGATIVE,
            "added to the response length in the mean log-ratio of a sequence level",
        ),
        ParamSpec::choice("surrogate", "ppo_clip", SurrogateKind::NAMES, "the per-token loss"),
        CLIP_RATIO_LOW,
        CLIP_RATIO_HIGH,
        CLIP_BOUNDS,
        CLIP_RATIO_C,
        RATIO_MAX,
        sapo::TEMPERATURE_POSITIVE,
        sapo::TEMPERATURE_NEGATIVE,
        vespo::K_POSITIVE,
        vespo::LAMBDA_POSITIVE,
        vespo::K_NEGATIVE,
        vespo::LAMBDA_NEGATIVE,
        PROBABILITY_EPS,
        dro::DRO_BETA,
        cov::KL_COV_COEFFICIENT,
        ParamSpec::number("kl_coefficient", r"\beta", 0.0, Range::NON_NEGATIVE, "weight of the KL term; 0 is none"),
        ParamSpec::choice("kl_estimator", "k3", KlEstimator::NAMES, "estimator of the KL to the reference policy"),
        ParamSpec::optional(
            "kl_difference_clamp",
            r"c_{\mathrm{KL}}",
            None,
            Range::POSITIVE,
            "k3 only: limit of the log-ratio's size before the exponential (nats); off by default",
        ),
        ParamSpec::optional(
            "kl_value_clamp",
            r"v_{\mathrm{KL}}",
            None,
            Range::POSITIVE,
            "k3 only: limit of the estimate (nats); off by default",
        ),
        ParamSpec::choice("kl_weight", "none", KlWeight::NAMES, "whether the KL estimate is weighted by the ratio"),
        ParamSpec::number(
            "entropy_coefficient",
            r"c_H",
            0.0,
            Range::ANY,
            "weight of the entropy, which is subtracted from the loss; 0 is none",
        ),
        ParamSpec::choice(
            "entropy_aggregation",
            "same",
            EntropyAggregation::NAMES,
            "what the entropy is averaged over",
        ),
        aggregation,
        empty_row,
        length_eps,
        length_normaliser,
        token_count,
        sequence_count,
        world_size,
        loss_scale,
    ]
};

const fn outputs(stopped: bool) -> [OutputSpec; 18] {
    let gradient = OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "gradient of the loss by log_prob");
    [
        OutputSpec::value("loss", &[], "policy_loss + kl_coefficient * kl_loss - entropy_coefficient * entropy_loss"),
        if stopped { gradient.stopped() } else { gradient },
        OutputSpec::gradient("d_entropy", "entropy", &["B", "T"], "gradient of the loss by entropy"),
        OutputSpec::value("token_loss", &["B", "T"], "loss of each token before aggregation"),
        OutputSpec::value("token_weight", &["B", "T"], "weight of each token in the loss"),
        OutputSpec::value("advantage", &["B"], "the advantage of each response, as estimated from the rewards")
            .workspace(),
        OutputSpec::value("policy_loss", &[], "the aggregated policy term"),
        OutputSpec::value("kl_loss", &[], "the aggregated KL estimate, before its coefficient (nats)"),
        OutputSpec::value("entropy_loss", &[], "the averaged entropy, before its coefficient (nats)"),
        OutputSpec::value("clip_fraction", &[], "fraction of tokens whose loss a clip decided"),
        OutputSpec::value("clip_fraction_high", &[], "fraction with A > 0 and the ratio above the upper bound"),
        OutputSpec::value("clip_fraction_low", &[], "fraction with A < 0 and the ratio below the lower bound"),
        OutputSpec::value("dual_clip_fraction", &[], "fraction limited by the dual clip or the cap of the ratio"),
        OutputSpec::value("approx_kl_k1", &[], "mean of log pi_old - log pi over tokens (nats)"),
        OutputSpec::value("approx_kl_k3", &[], "mean of ratio - 1 - log ratio over tokens (nats)"),
        OutputSpec::value("ratio_mean", &[], "mean ratio over tokens"),
        OutputSpec::value("ratio_min", &[], "smallest ratio"),
        OutputSpec::value("ratio_max", &[], "largest ratio"),
    ]
}

/// The outputs of objectives whose gradient is the derivative of their value.
pub(crate) const OUTPUTS: &[OutputSpec] = &outputs(false);
/// The outputs of objectives with a stopped weight.
pub(crate) const STOPPED_OUTPUTS: &[OutputSpec] = &outputs(true);

fn surrogate<R: Real>(call: &Call<'_, R>) -> Result<Surrogate<R>, Error> {
    let (low, high) = (call.optional_number("clip_ratio_low"), call.number("clip_ratio_high")?);
    let infinite = R::infinity();
    let dppo = |divergence| -> Result<Surrogate<R>, Error> {
        Ok(Surrogate::Dppo {
            divergence,
            bounds: DppoBounds {
                low: low.unwrap_or(infinite),
                high,
                cap: call.optional_number("clip_ratio_c").unwrap_or(infinite),
                probability_eps: call.number("probability_eps")?,
            },
        })
    };
    Ok(match call.choice("surrogate")? {
        SurrogateKind::Reinforce => Surrogate::Reinforce,
        SurrogateKind::ImportanceWeighted => Surrogate::ImportanceWeighted,
        SurrogateKind::ImportanceWeightedDetached => Surrogate::ImportanceWeightedDetached,
        SurrogateKind::PpoClip => Surrogate::PpoClip {
            clip: ClipRange::from_call(call)?,
            ratio_max: call.optional_number("ratio_max").unwrap_or(infinite),
            dual: call.optional_number("clip_ratio_c").unwrap_or(infinite),
        },
        SurrogateKind::PpoClipLog => {
            let (low, high) = log_bounds(low, high);
            Surrogate::PpoClipLog { low, high }
        }
        SurrogateKind::Cispo => Surrogate::Cispo { clip: ClipRange::from_call(call)? },
        SurrogateKind::MaskedIs => Surrogate::MaskedIs { clip: ClipRange::from_call(call)? },
        SurrogateKind::Gmpo => Surrogate::Gmpo { low: low.unwrap_or(infinite), high },
        SurrogateKind::Sapo => Surrogate::Sapo {
            temperature_positive: call.number("sapo_temperature_positive")?,
            temperature_negative: call.number("sapo_temperature_negative")?,
        },
        SurrogateKind::Vespo => {
            let (positive, negative) = vespo::shapes(call)?;
            Surrogate::Vespo { positive, negative }
        }
        SurrogateKind::DppoTv => dppo(Divergence::TotalVariation)?,
        SurrogateKind::DppoKl => dppo(Divergence::Kl)?,
        SurrogateKind::ClipCov => Surrogate::ClipCov { clip: ClipRange::from_call(call)? },
        SurrogateKind::KlCov => Surrogate::KlCov { coefficient: call.number("kl_cov_coefficient")? },
        SurrogateKind::Dro => Surrogate::Dro { beta: call.number("dro_beta")? },
    })
}

fn objective<R: Real>(call: &Call<'_, R>) -> Result<PolicyObjective<R>, Error> {
    let coefficient = call.number("kl_coefficient")?;
    let kl = if coefficient == R::zero() {
        None
    } else {
        Some(KlTerm {
            coefficient,
            estimator: call.choice("kl_estimator")?,
            difference_clamp: call.optional_number("kl_difference_clamp"),
            value_clamp: call.optional_number("kl_value_clamp"),
            weight: call.choice("kl_weight")?,
        })
    };
    let coefficient = call.number("entropy_coefficient")?;
    let entropy = if coefficient == R::zero() {
        None
    } else {
        Some(EntropyTerm { coefficient, aggregation: call.choice("entropy_aggregation")? })
    };
    Ok(PolicyObjective {
        ratio_level: call.choice("ratio_level")?,
        log_ratio_range: (
            call.optional_number("log_ratio_min").unwrap_or(R::neg_infinity()),
            call.optional_number("log_ratio_max").unwrap_or(R::infinity()),
        ),
        token_log_ratio_clamp: call.optional_number("token_log_ratio_clamp").unwrap_or(R::infinity()),
        ratio_length_eps: call.number("ratio_length_eps")?,
        surrogate: surrogate(call)?,
        kl,
        entropy,
        reduction: Reduction::from_call(call)?,
    })
}

/// The objective that an operation with these parameters is, and where its advantage comes from; `None` where the operation
/// is no setting of the policy objective.
///
/// ```
/// use plumbline_core::{catalog, spec::Params};
/// use plumbline_core::objective::policy::{RatioLevel, setting};
/// let gspo = catalog::find("objective.gspo").unwrap();
/// let params = Params::resolve(gspo, None, &[])?;
/// let (objective, _) = setting::<f64>(gspo, params).unwrap()?;
/// assert_eq!(objective.ratio_level, RatioLevel::Sequence);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn setting<R: Real>(
    operation: &'static Operation,
    params: Params,
) -> Option<Result<(PolicyObjective<R>, AdvantageSource), Error>> {
    operation.param("advantage_estimator")?;
    Some(
        Call::of_params(operation, params)
            .and_then(|call| Ok((objective(&call)?, call.choice("advantage_estimator")?))),
    )
}

/// Group advantages from the rewards, into the buffer of the output `advantage`.
fn estimate_advantage<R: Real>(call: &Call<'_, R>, source: AdvantageSource, advantage: &mut [R]) -> Result<(), Error> {
    let groups = Groups::new(call.index("group")?);
    let rewards = GroupedRewards::new(call.real("reward")?, groups, None)?;
    let group_of_one = call.choice("group_of_one")?;
    let config = GroupMeanStd {
        deviation: Deviation {
            ddof: call.integer("advantage_ddof")?,
            eps: call.number("advantage_eps")?,
            eps_placement: EpsPlacement::StdPlusEps,
        },
        group_of_one,
    };
    match source {
        AdvantageSource::Given => Ok(()),
        AdvantageSource::GroupMeanStd => group_mean_std(rewards, config, advantage),
        AdvantageSource::GroupMean => group_mean(rewards, group_of_one, advantage),
        AdvantageSource::Rloo => rloo(rewards, group_of_one, advantage),
        AdvantageSource::BatchStd => batch_std(rewards, config, advantage),
    }
}

fn spread<'a, R: Real>(call: &Call<'a, R>, name: &'static str) -> Option<Spread<'a, R>> {
    let values = call.optional_real(name)?;
    Some(if call.rank(name) == 2 { Spread::PerToken(values) } else { Spread::PerRow(values) })
}

/// The evaluation of every policy objective.
pub(crate) fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_by(Portable, call)
}

/// The same, the pass called by an engine.
pub(crate) fn evaluate_by<R: Real>(engine: impl Engine, call: &mut Call<'_, R>) -> Result<(), Error> {
    let objective = objective(call)?;
    let source: AdvantageSource = call.choice("advantage_estimator")?;
    let mut estimated = None;
    if source != AdvantageSource::Given {
        let buffer = call.workspace("advantage")?;
        estimate_advantage(call, source, buffer)?;
        estimated = Some(&*buffer);
    }
    let advantage = match estimated {
        Some(values) => Spread::PerRow(values),
        None => spread(call, "advantage").ok_or(Error::MissingInput { argument: "advantage" })?,
    };
    let batch = PolicyBatch {
        log_prob: call.real("log_prob")?,
        old_log_prob: call.optional_real("old_log_prob"),
        ref_log_prob: call.optional_real("ref_log_prob"),
        advantage,
        mask: call.mask()?,
        groups: call.optional_index("group").map(Groups::new),
        importance_weight: spread(call, "importance_weight"),
        keep: call.optional_bytes("keep"),
        selected: call.optional_bytes("selected"),
        entropy: call.optional_real("entropy"),
    };
    if source == AdvantageSource::Given
        && let (Spread::PerRow(values), Some(buffer)) = (advantage, call.output("advantage"))
    {
        for (slot, value) in buffer.iter_mut().zip(values) {
            *slot = *value;
        }
    }
    let mut outputs = PolicyOutputs {
        d_log_prob: call.output("d_log_prob"),
        d_entropy: call.output("d_entropy"),
        token_loss: call.output("token_loss"),
        token_weight: call.output("token_weight"),
    };
    let result = objective.loss_by(engine, &batch, &mut outputs)?;
    for (name, value) in result.named() {
        call.write(name, value);
    }
    Ok(())
}

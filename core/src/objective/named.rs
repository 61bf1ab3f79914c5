//! The named objectives: settings of the five choices.

use super::policy::{INPUTS, OUTPUTS, PARAMS, STOPPED_OUTPUTS, evaluate};
use crate::spec::{Dialect, Family, Kernel, Operation, Source, Value, evaluate_with};
use crate::surrogate::cispo::MINIMAX_M1;
use crate::surrogate::cov::ENTROPY_MECHANISM;
use crate::surrogate::dppo::DPPO;
use crate::surrogate::dro::DRO;
use crate::surrogate::gmpo::GMPO;
use crate::surrogate::ppo_clip::PPO;
use crate::surrogate::sapo::SAPO;
use crate::surrogate::vespo::VESPO;

type Settings = &'static [(&'static str, Value)];

const fn name(text: &'static str) -> Value {
    Value::Name(text)
}
const fn number(value: f64) -> Value {
    Value::Number(value)
}

/// What verl 0.9 adds to every objective, and then what is said.
macro_rules! verl {
    ($($setting:expr),* $(,)?) => {
        &[
            ("length_eps", number(1e-8)),
            ("kl_difference_clamp", number(20.0)),
            ("kl_value_clamp", number(10.0)),
            ("advantage_eps", number(1e-6)),
            ("group_of_one", name("reward")),
            $($setting),*
        ]
    };
}
/// The same with verl's limit of the token's log-ratio.
macro_rules! verl_limited {
    ($($setting:expr),* $(,)?) => {
        verl![("log_ratio_min", number(-20.0)), ("log_ratio_max", number(20.0)), $($setting),*]
    };
}
/// What TRL 1.16 adds to every GRPO loss, and then what is said.
macro_rules! trl {
    ($($setting:expr),* $(,)?) => {
        &[
            ("empty_row", name("count_as_zero")),
            ("kl_weight", name("ratio")),
            ("entropy_aggregation", name("kept_token_mean")),
            ("advantage_eps", number(1e-4)),
            ("group_of_one", name("zero")),
            $($setting),*
        ]
    };
}

const fn paper(note: &'static str, settings: Settings) -> Dialect {
    Dialect { name: "paper", note, settings }
}
const fn verl_0_9(note: &'static str, settings: Settings) -> Dialect {
    Dialect { name: "verl-0.9", note, settings }
}
const fn trl_1_16(note: &'static str, settings: Settings) -> Dialect {
    Dialect { name: "trl-1.16", note, settings }
}

/// verl 0.5: the limits of today, the divisors of old.
const VERL_0_5: Dialect = Dialect {
    name: "verl-0.5",
    note: "log-ratio limited to 20, dual clip 3; empty responses count as zero; seq_mean_token_sum_norm divides by the padded \
           width alone (sequence_count 1)",
    settings: &[
        ("log_ratio_min", number(-20.0)),
        ("log_ratio_max", number(20.0)),
        ("clip_ratio_c", number(3.0)),
        ("empty_row", name("count_as_zero")),
        ("kl_difference_clamp", number(20.0)),
        ("kl_value_clamp", number(10.0)),
        ("advantage_eps", number(1e-6)),
        ("group_of_one", name("reward")),
    ],
};
/// verl 0.3: only the token mean, and k3's limit.
const VERL_0_3: Dialect = Dialect {
    name: "verl-0.3",
    note: "one epsilon, no limit of the log-ratio, no dual clip; k3 limited to 10",
    settings: &[("kl_value_clamp", number(10.0)), ("advantage_eps", number(1e-6)), ("group_of_one", name("reward"))],
};

const VERL_NOTE: &str = "log-ratio limited to 20, k3 limited to 20 and 10, 1e-8 added to the response length";
const TRL_NOTE: &str = "empty responses count as zero; the KL term is weighted by the ratio with its gradient";

const GRPO: Source = Source {
    title: "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    reference: "arXiv:2402.03300",
    place: "Eq. 3",
};
const DR_GRPO: Source = Source {
    title: "Understanding R1-Zero-Like Training: A Critical Perspective",
    reference: "arXiv:2503.20783",
    place: "Section 3.2",
};
const DAPO: Source = Source {
    title: "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    reference: "arXiv:2503.14476",
    place: "Eq. 8",
};
const GSPO: Source =
    Source { title: "Group Sequence Policy Optimization", reference: "arXiv:2507.18071", place: "Eq. 5" };
const LUSPO: Source = Source {
    title: "Length-Unbiased Sequence Policy Optimization",
    reference: "arXiv:2602.05261",
    place: "the length-weighted sequence objective",
};
const RLOO: Source = Source {
    title: "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    reference: "arXiv:2402.14740",
    place: "Section 3.3 (RLOO)",
};
const REINFORCE_PLUS_PLUS: Source = Source {
    title: "REINFORCE++: An Efficient RLHF Algorithm with Robustness to Both Prompt and Reward Models",
    reference: "arXiv:2501.03262",
    place: "Section 3",
};
const REMAX: Source = Source {
    title: "ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large Language Models",
    reference: "arXiv:2310.10505",
    place: "Algorithm 1",
};
const GPG: Source = Source {
    title: "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
    reference: "arXiv:2504.02546",
    place: "Eq. 5",
};
const WILLIAMS: Source = Source {
    title: "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
    reference: "Williams 1992, doi:10.1007/BF00992696",
    place: "Eq. 4",
};
const BNPO: Source = Source {
    title: "BNPO: Beta Normalization Policy Optimization",
    reference: "arXiv:2506.02864",
    place: "the loss averaged over the batch's tokens, as TRL names it",
};

const FORMULA: &str = r"L = \frac{s}{D} \sum_i \frac{1}{d_i} \sum_t m_{it} \left( w_{it}\, \ell_{it} + \beta\, k_{it} \right) - c_H \bar H";
const GRADIENT: &str = r"\frac{\partial L}{\partial \log\pi_{it}} = \frac{s\, m_{it}}{D\, d_i} \left( w_{it} \frac{\partial \ell}{\partial \log\pi_{it}} + \beta \frac{\partial k_{it}}{\partial \log\pi_{it}} \right)";

/// The composition with every axis explicit; the named objectives differ from it in `defaults` and `dialects`.
const POLICY: Operation = Operation {
    id: "objective.policy",
    family: Family::Objective,
    title: "Policy objective (any composition)",
    summary: "The five choices of a policy loss, each a parameter: advantage, ratio, surrogate, added terms, divisor.",
    formula: FORMULA,
    gradient: GRADIENT,
    notes: "At a sequence level the ratio's gradient spreads over the response: 1/L_i of it to each token (sequence), all of \
            it (sequence_product), or to each token its own (sequence_token). What a surrogate stops is not differentiated. \
            A sum over infinities of both signs, which only an unclipped ratio can bring, is NaN.",
    sources: &[PPO, GRPO],
    inputs: INPUTS,
    params: PARAMS,
    defaults: &[],
    outputs: STOPPED_OUTPUTS,
    dialects: &[
        paper("no limits, no epsilon", &[]),
        verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0))]),
        trl_1_16(TRL_NOTE, trl![]),
    ],
    evaluate: evaluate_with!(evaluate, Some(Kernel::PolicyObjective)),
};

const SEQ_MEAN_TOKEN_MEAN: (&str, Value) = ("aggregation", name("seq_mean_token_mean"));
const TOKEN_MEAN: (&str, Value) = ("aggregation", name("token_mean"));

/// verl's `gspo` is the token form.
const VERL_GSPO: Dialect = verl_0_9(
    "the token form; log-ratio of the response at most 10",
    verl![
        ("ratio_level", name("sequence_token")),
        ("log_ratio_max", number(10.0)),
        ("clip_ratio_low", number(0.2)),
        ("clip_ratio_high", number(0.2)),
        TOKEN_MEAN,
    ],
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    POLICY,
    Operation {
        id: "objective.reinforce",
        title: "REINFORCE",
        summary: "The policy gradient summed over each response, averaged over responses.",
        notes: "On policy only: there is no ratio.",
        sources: &[WILLIAMS],
        defaults: &[("surrogate", name("reinforce")), ("aggregation", name("seq_mean_token_sum"))],
        outputs: OUTPUTS,
        dialects: &[
            paper("sum over the steps of an episode, mean over episodes", &[]),
            verl_0_9("the REINFORCE loss of its bypass mode", verl![]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.gpg",
        title: "GPG",
        summary: "The plain policy gradient averaged over tokens; its advantage carries the correction for easy groups.",
        notes: "verl: policy loss `gpg`.",
        sources: &[GPG],
        defaults: &[("surrogate", name("reinforce"))],
        outputs: OUTPUTS,
        dialects: &[paper("mean over tokens", &[]), verl_0_9("no ratio, no limit", verl![])],
        ..POLICY
    },
    Operation {
        id: "objective.ppo",
        title: "PPO",
        summary: "The clipped surrogate averaged over tokens.",
        notes: "verl always applies the dual clip with c = 3 and limits the log-ratio to 20; the paper does neither.",
        sources: &[PPO],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[
            paper("one epsilon, no dual clip", &[]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0))]),
            VERL_0_5,
            VERL_0_3,
        ],
        ..POLICY
    },
    Operation {
        id: "objective.grpo",
        title: "GRPO",
        summary: "The clipped surrogate with k3 inside, averaged over each response and then over responses.",
        notes: "The paper's coefficient of the KL term is 0.04; verl's default aggregation is token_mean; TRL's loss_type grpo \
                averages over all responses, empty ones included.",
        sources: &[GRPO],
        defaults: &[SEQ_MEAN_TOKEN_MEAN],
        outputs: OUTPUTS,
        dialects: &[
            paper("beta 0.04, k3, one epsilon", &[("kl_coefficient", number(0.04))]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0)), TOKEN_MEAN]),
            trl_1_16(TRL_NOTE, trl![]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.dr_grpo",
        title: "Dr. GRPO",
        summary: "GRPO without its length and difficulty biases: centred advantages, a constant length as divisor.",
        notes: "The advantage is the reward less its group's mean (advantage_estimator group_mean). The divisor is the number \
                of responses times a constant length; verl takes the padded width unless told, TRL the maximum completion length.",
        sources: &[DR_GRPO],
        defaults: &[("aggregation", name("seq_mean_token_sum_norm"))],
        outputs: OUTPUTS,
        dialects: &[
            paper("constant length", &[]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0))]),
            trl_1_16(TRL_NOTE, trl![]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.dapo",
        title: "DAPO",
        summary: "Clip-higher and a mean over all tokens, so that long responses count by their tokens.",
        notes: "The paper's Eq. 8 averages over the tokens of one prompt's group and then over prompts \
                (group_mean_token_mean); implementations average over the batch. TRL divides by the token count of the \
                whole generation batch (token_count).",
        sources: &[DAPO],
        defaults: &[("clip_ratio_high", number(0.28))],
        outputs: OUTPUTS,
        dialects: &[
            paper("token mean inside each group, mean over groups", &[("aggregation", name("group_mean_token_mean"))]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0))]),
            trl_1_16("one epsilon unless epsilon_high is set", trl![("clip_ratio_high", number(0.2))]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.bnpo",
        title: "BNPO (as TRL names it)",
        summary: "The clipped surrogate averaged over the tokens of the local batch.",
        notes: "TRL's loss_type bnpo; its value depends on how the batch is split.",
        sources: &[BNPO],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[trl_1_16(TRL_NOTE, trl![])],
        ..POLICY
    },
    Operation {
        id: "objective.cispo",
        title: "CISPO",
        summary: "REINFORCE weighted by the clipped, stopped token ratio, averaged over tokens.",
        notes: "The paper leaves the lower bound open and tunes the upper one. verl clips on both sides around 1; TRL has the \
                upper bound only and reads it as the ratio itself.",
        sources: &[MINIMAX_M1],
        defaults: &[("surrogate", name("cispo")), ("clip_ratio_low", Value::None)],
        dialects: &[
            paper("no lower bound", &[]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_low", number(0.2))]),
            trl_1_16("upper bound only, given as the ratio itself", trl![("clip_bounds", name("absolute"))]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.gspo",
        title: "GSPO",
        summary: "PPO's clip on the geometric-mean ratio of the response.",
        notes: "TRL's form is this one (importance_sampling_level sequence); verl implements the token form, whose gradient \
                differs where the advantages of a response's tokens differ.",
        sources: &[GSPO],
        defaults: &[
            ("ratio_level", name("sequence")),
            ("clip_ratio_low", number(3e-4)),
            ("clip_ratio_high", number(4e-4)),
            SEQ_MEAN_TOKEN_MEAN,
        ],
        dialects: &[
            paper("epsilons 3e-4 and 4e-4", &[]),
            VERL_GSPO,
            trl_1_16(TRL_NOTE, trl![("clip_ratio_low", number(0.2)), ("clip_ratio_high", number(0.2))]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.gspo_token",
        title: "GSPO-token",
        summary: "The value of GSPO with the gradient of each token its own.",
        notes: "verl: policy loss `gspo`; it limits the response's log-ratio to at most 10.",
        sources: &[Source { place: "Eq. 13", ..GSPO }],
        defaults: &[
            ("ratio_level", name("sequence_token")),
            ("clip_ratio_low", number(3e-4)),
            ("clip_ratio_high", number(4e-4)),
            SEQ_MEAN_TOKEN_MEAN,
        ],
        dialects: &[paper("epsilons 3e-4 and 4e-4", &[]), VERL_GSPO],
        ..POLICY
    },
    Operation {
        id: "objective.gmpo",
        title: "GMPO",
        summary: "The geometric mean of one-sided clipped token ratios, one loss a response.",
        notes: "The clip is in log space. verl's `geo_mean` averages over all responses, empty ones included, adds 1e-8 to \
                the length in both means and ignores the aggregation mode.",
        sources: &[GMPO],
        defaults: &[
            ("surrogate", name("gmpo")),
            ("ratio_level", name("sequence")),
            ("clip_ratio_low", number(0.4)),
            ("clip_ratio_high", number(0.4)),
            SEQ_MEAN_TOKEN_MEAN,
        ],
        outputs: OUTPUTS,
        dialects: &[
            paper("bounds of 0.4 nats", &[]),
            verl_0_9(
                "1e-8 added to the length of the means; empty responses count",
                verl![
                    ("length_eps", number(0.0)),
                    ("ratio_length_eps", number(1e-8)),
                    ("empty_row", name("count_as_zero")),
                    ("clip_ratio_low", number(0.2)),
                    ("clip_ratio_high", number(0.2)),
                ],
            ),
            trl_1_16(
                "bounds of 0.4 nats; the KL term has no weight; an empty response would count as -A",
                trl![("kl_weight", name("none"))],
            ),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.sapo",
        title: "SAPO",
        summary: "A soft gate on the token ratio, averaged over each response and then over responses.",
        notes: "verl and TRL agree but for the log-ratio's limit; verl ignores the aggregation mode.",
        sources: &[SAPO],
        defaults: &[("surrogate", name("sapo")), SEQ_MEAN_TOKEN_MEAN],
        outputs: OUTPUTS,
        dialects: &[
            paper("temperatures 1 and 1.05", &[]),
            verl_0_9(VERL_NOTE, verl_limited![]),
            trl_1_16(TRL_NOTE, trl![]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.luspo",
        title: "LUSPO",
        summary: "GSPO's sequence loss weighted by the response's length.",
        notes: "The sequence loss is summed over the response's tokens and averaged over responses.",
        sources: &[LUSPO],
        defaults: &[("ratio_level", name("sequence")), ("aggregation", name("seq_mean_token_sum"))],
        outputs: OUTPUTS,
        dialects: &[paper("mean over responses of length times the sequence loss", &[]), trl_1_16(TRL_NOTE, trl![])],
        ..POLICY
    },
    Operation {
        id: "objective.vespo",
        title: "VESPO",
        summary: "REINFORCE weighted by a stopped gamma-shaped function of the response's product ratio.",
        notes: "Importance weights join the ratio instead of multiplying the loss: a weight of each token into the sum, a \
                weight of the response once. The KL term is weighted by the token's own ratio. TRL limits each token's \
                log-ratio to 20 and the response's to [ln 1e-8, 20].",
        sources: &[VESPO],
        defaults: &[("surrogate", name("vespo")), ("ratio_level", name("sequence_product"))],
        dialects: &[
            paper("no limits", &[]),
            trl_1_16(
                "log-ratios limited to 20, the sum from below to ln 1e-8",
                trl![
                    ("token_log_ratio_clamp", number(20.0)),
                    ("log_ratio_min", number(-18.420_680_743_952_367)),
                    ("log_ratio_max", number(20.0)),
                ],
            ),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.dppo",
        title: "DPPO",
        summary: "REINFORCE with a capped, stopped ratio, cut off where a token's probability has moved too far.",
        notes: "The clip parameters are thresholds of the divergence; surrogate dppo_tv or dppo_kl says which.",
        sources: &[DPPO],
        defaults: &[("surrogate", name("dppo_tv")), ("clip_ratio_c", number(20.0))],
        dialects: &[
            paper("cap 20", &[]),
            verl_0_9("cap 3, log-ratio limited to 20", verl_limited![("clip_ratio_c", number(3.0))]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.dro",
        title: "DRO",
        summary: "The policy gradient with half the squared log-ratio as a penalty, averaged over tokens.",
        notes: "verl: policy loss `dro`, without a default for beta.",
        sources: &[DRO],
        defaults: &[("surrogate", name("dro"))],
        outputs: OUTPUTS,
        dialects: &[paper("the policy term", &[]), verl_0_9("no limit of the log-ratio", verl![])],
        ..POLICY
    },
    Operation {
        id: "objective.clip_cov",
        title: "Clip-Cov",
        summary: "PPO's clip with the tokens of extreme covariance taken out, averaged over tokens.",
        notes: "Which tokens those are is the input `selected`. verl does not limit the log-ratio here.",
        sources: &[ENTROPY_MECHANISM],
        defaults: &[("surrogate", name("clip_cov"))],
        outputs: OUTPUTS,
        dialects: &[paper("one epsilon", &[]), verl_0_9("no limit of the log-ratio, no dual clip", verl![])],
        ..POLICY
    },
    Operation {
        id: "objective.kl_cov",
        title: "KL-Cov",
        summary: "The importance-weighted loss with a pull to the old policy on the tokens of highest covariance.",
        notes: "Which tokens those are is the input `selected`. verl does not limit the log-ratio here.",
        sources: &[ENTROPY_MECHANISM],
        defaults: &[("surrogate", name("kl_cov"))],
        outputs: OUTPUTS,
        dialects: &[paper("coefficient as given", &[]), verl_0_9("coefficient 0.1, no limit", verl![])],
        ..POLICY
    },
    Operation {
        id: "objective.rloo",
        title: "RLOO",
        summary: "Leave-one-out advantages with the response as one action.",
        notes: "The paper's loss is REINFORCE on the whole response; TRL clips the product ratio of the response as PPO does.",
        sources: &[RLOO],
        defaults: &[
            ("surrogate", name("reinforce")),
            ("ratio_level", name("sequence_product")),
            ("aggregation", name("seq_mean_token_sum")),
        ],
        outputs: OUTPUTS,
        dialects: &[
            paper("sum over the response, mean over responses", &[]),
            trl_1_16(
                "PPO's clip on the ratio of the whole response",
                trl![("surrogate", name("ppo_clip")), SEQ_MEAN_TOKEN_MEAN],
            ),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.reinforce_plus_plus",
        title: "REINFORCE++",
        summary: "PPO's clip on advantages that are whitened over the whole batch, without a critic.",
        notes: "The advantage is the discounted return, whitened over the batch's tokens (advantage.reinforce_plus_plus).",
        sources: &[REINFORCE_PLUS_PLUS],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[
            paper("PPO's clip, mean over tokens", &[]),
            verl_0_9(VERL_NOTE, verl_limited![("clip_ratio_c", number(3.0))]),
        ],
        ..POLICY
    },
    Operation {
        id: "objective.remax",
        title: "ReMax",
        summary: "REINFORCE whose baseline is the reward of the greedy response.",
        notes: "The advantage is the reward less that of the greedy response (advantage.remax).",
        sources: &[REMAX],
        defaults: &[("surrogate", name("reinforce")), ("aggregation", name("seq_mean_token_sum"))],
        outputs: OUTPUTS,
        dialects: &[
            paper("sum over the response, mean over responses", &[]),
            verl_0_9(
                "PPO's clip, mean over tokens",
                verl_limited![("surrogate", name("ppo_clip")), ("clip_ratio_c", number(3.0)), TOKEN_MEAN],
            ),
        ],
        ..POLICY
    },
];

//! Pair losses without a reference: CPO, SimPO and AlphaPO. One loss of the two responses' rewards; they differ in what the reward
//! of a log-prob is (summed or per token, logarithmic or AlphaPO's power) and in the target margin.

use super::arithmetic::times;
use super::dpo_hinge::hinge;
use super::dpo_ipo::ipo;
use super::dpo_sigmoid::logistic;
use super::likelihood::{LIKELIHOOD_COUNT, LIKELIHOOD_MEAN, NLL_LOSS, Responses, TOKEN_MEAN, negative_log_likelihood};
use super::pairs::{
    ACCURACY, BETA, CHOSEN_LENGTH, CHOSEN_LOG_PROB, CHOSEN_REWARD, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB,
    LABEL_SMOOTHING, LOSS, MARGIN, PAIR_COUNT, PAIR_LOSS, PAIR_MASK, Pair, PairBuffers, PairMeans, PairTerm,
    REJECTED_LENGTH, REJECTED_LOG_PROB, REJECTED_REWARD, WEIGHT, batch_of, pair_count, write_means,
};
use super::scores::LengthNormalisation;
use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// The loss of the difference of rewards.
    pub enum MarginLoss {
        /// Logistic, with label smoothing.
        Sigmoid = "sigmoid",
        /// Hinge.
        Hinge = "hinge",
        /// Squared distance from 1/(2β).
        Ipo = "ipo",
    }
}

choice! {
    /// Whether β multiplies the target margin.
    pub enum GammaPlacement {
        /// β·Δ − γ.
        Outside = "outside",
        /// β·(Δ − γ).
        Inside = "inside",
    }
}

/// What a reference-free loss is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceFree<R> {
    /// β.
    pub beta: R,
    /// The loss of the margin.
    pub loss: MarginLoss,
    /// ε of the logistic loss.
    pub label_smoothing: R,
    /// Whether log-probs are divided by the length first.
    pub length_normalisation: LengthNormalisation,
    /// α of AlphaPO's reward; 0 is the logarithm.
    pub alpha: R,
    /// γ: how much larger the chosen reward should be.
    pub gamma: R,
    /// Where γ stands.
    pub gamma_placement: GammaPlacement,
}

/// AlphaPO's reward of a log-prob ℓ without β, (1 − e^(−αℓ))/α, and its derivative e^(−αℓ); at α = 0 the limit ℓ, 1.
///
/// Gupta et al., "AlphaPO: Reward Shape Matters for LLM Alignment", arXiv:2501.03884, Eq. (5), ℓ = log π(y)/|y|.
///
/// ```
/// use plumbline_core::preference::reference_free::alpha_reward;
/// assert_eq!(alpha_reward(-3.0, 0.0), [-3.0, 1.0]);
/// // α = 1, ℓ = −ln 2: 1 − 2.
/// assert_eq!(alpha_reward(-core::f64::consts::LN_2, 1.0), [-1.0, 2.0]);
/// ```
#[inline(always)]
pub fn alpha_reward<R: Real>(log_prob: R, alpha: R) -> [R; 2] {
    if alpha == R::zero() {
        return [log_prob, R::one()];
    }
    let exponent = -(alpha * log_prob);
    [-exponent.exp_m1() / alpha, exponent.exp()]
}

impl<R: Real> ReferenceFree<R> {
    /// Rewards of the two responses without β, each with its derivative by the summed log-prob.
    fn rewards(&self, pair: &Pair<R>) -> [[R; 2]; 2] {
        let side = |log_prob: R, length: R| match self.length_normalisation {
            LengthNormalisation::None => alpha_reward(log_prob, self.alpha),
            LengthNormalisation::Score => alpha_reward(log_prob, self.alpha).map(|part| part / length),
            LengthNormalisation::LogRatio => {
                let [value, derivative] = alpha_reward(log_prob / length, self.alpha);
                [value, derivative / length]
            }
        };
        [side(pair.chosen_log_ratio, pair.chosen_length), side(pair.rejected_log_ratio, pair.rejected_length)]
    }

    /// The loss of one pair and its derivatives by the two summed log-probs.
    ///
    /// Sigmoid: the logistic loss of βΔ − γ (or β(Δ − γ)); hinge: max(0, 1 − (βΔ − γ)); IPO: (Δ − γ/β − 1/(2β))². The pair's
    /// log-ratios are log-probs here.
    pub fn term(&self, pair: &Pair<R>) -> PairTerm<R> {
        let [[chosen, d_chosen], [rejected, d_rejected]] = self.rewards(pair);
        let difference = super::arithmetic::difference(chosen, rejected);
        let margin = match self.gamma_placement {
            GammaPlacement::Outside => self.beta * difference - self.gamma,
            GammaPlacement::Inside => self.beta * (difference - self.gamma),
        };
        let [value, slope] = match self.loss {
            MarginLoss::Sigmoid => logistic(margin, self.label_smoothing),
            MarginLoss::Hinge => hinge(margin),
            MarginLoss::Ipo => {
                let [value, slope] = ipo(margin / self.beta, self.beta);
                [value, slope / self.beta]
            }
        };
        let slope = self.beta * slope;
        PairTerm { value, d_chosen: times(slope, d_chosen), d_rejected: -times(slope, d_rejected) }
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let loss = ReferenceFree {
        beta: call.number("beta")?,
        loss: call.choice("loss_type")?,
        label_smoothing: call.number("label_smoothing")?,
        length_normalisation: call.choice("length_normalisation")?,
        alpha: call.number("alpha")?,
        gamma: call.number("gamma")?,
        gamma_placement: call.choice("gamma_placement")?,
    };
    let coefficient: R = call.number("likelihood_coefficient")?;
    let has_likelihood = coefficient != R::zero();
    if (loss.length_normalisation != LengthNormalisation::None || has_likelihood) && !call.has("chosen_length") {
        return Err(Error::MissingInput { argument: "chosen_length" });
    }
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    let mut d_chosen = call.output("d_chosen_log_prob");
    let buffers = PairBuffers {
        pair_loss: call.output("pair_loss"),
        d_chosen_log_prob: d_chosen.as_deref_mut(),
        d_rejected_log_prob: call.output("d_rejected_log_prob"),
    };
    let rewards = |pair: &Pair<R>| loss.rewards(pair).map(|[reward, _]| loss.beta * reward);
    let means: PairMeans<R> = batch.sum_with_rewards(count, buffers, rewards, |pair| loss.term(pair))?.means(count);
    let mut nll = R::zero();
    if has_likelihood {
        let responses =
            Responses { log_prob: batch.chosen_log_prob, length: call.index("chosen_length")?, mask: batch.mask };
        let (mean, tokens) = (call.choice("likelihood_mean")?, call.optional_number("likelihood_count"));
        nll = negative_log_likelihood(&responses, mean, tokens, coefficient, d_chosen)?;
    }
    write_means(call, PairMeans { loss: means.loss + coefficient * nll, ..means });
    call.write("nll_loss", nll);
    Ok(())
}

const INPUTS: &[InputSpec] = &[
    CHOSEN_LOG_PROB,
    REJECTED_LOG_PROB,
    InputSpec {
        meaning: "number of tokens of the chosen response; needed where something is divided by it, 0 counts as 1",
        ..CHOSEN_LENGTH
    },
    REJECTED_LENGTH,
    WEIGHT,
    PAIR_MASK,
];
const PARAMS: &[ParamSpec] = &[
    BETA,
    ParamSpec::choice("loss_type", "sigmoid", MarginLoss::NAMES, "the loss of the difference of rewards"),
    LABEL_SMOOTHING,
    ParamSpec::choice(
        "length_normalisation",
        "none",
        LengthNormalisation::NAMES,
        "what is divided by the number of tokens of the response: nothing, its reward, or its log-prob before the reward is taken",
    ),
    ParamSpec::number("alpha", r"\alpha", 0.0, Range::ANY, "shape of AlphaPO's reward; 0 is the logarithm"),
    ParamSpec::number(
        "gamma",
        r"\gamma",
        0.0,
        Range::ANY,
        "target margin: how much larger the chosen reward should be",
    ),
    ParamSpec::choice(
        "gamma_placement",
        "outside",
        GammaPlacement::NAMES,
        "outside: beta * difference - gamma; inside: beta * (difference - gamma)",
    ),
    ParamSpec::number(
        "likelihood_coefficient",
        r"\lambda",
        0.0,
        Range::NON_NEGATIVE,
        "weight of the chosen responses' negative log-likelihood",
    ),
    LIKELIHOOD_MEAN,
    PAIR_COUNT,
    LIKELIHOOD_COUNT,
];
const OUTPUTS: &[OutputSpec] = &[
    LOSS,
    PAIR_LOSS,
    D_CHOSEN_LOG_PROB,
    D_REJECTED_LOG_PROB,
    NLL_LOSS,
    CHOSEN_REWARD,
    REJECTED_REWARD,
    MARGIN,
    ACCURACY,
];
const GRADIENT: &str = r"\beta\,\ell'(\beta\Delta - \gamma)\,(r'_w, -r'_l)/N - \lambda\,(1/\text{normaliser}, 0)";
const SIMPO_PER_TOKEN: (&str, Value) = ("length_normalisation", Value::Name("log_ratio"));

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.cpo",
        family: Family::Preference,
        title: "CPO",
        summary: "DPO's loss without a reference, plus the likelihood of the chosen responses.",
        formula: r"-\log\sigma(\beta[\log\pi_\theta(y_w) - \log\pi_\theta(y_l)]) - \lambda\,\log\pi_\theta(y_w)",
        gradient: GRADIENT,
        notes: "`pair_loss` is the preference term alone. With loss_type ipo TRL divides log-probs by the length: set \
                length_normalisation to log_ratio. TRL's likelihood is a mean over all tokens of the batch.",
        sources: &[Source {
            title: "Contrastive Preference Optimization: Pushing the Boundaries of LLM Performance in Machine Translation",
            reference: "arXiv:2401.08417",
            place: "Eq. (3) and (5)",
        }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[("likelihood_coefficient", Value::Number(1.0))],
        outputs: OUTPUTS,
        dialects: &[
            Dialect {
                name: "paper",
                note: "log-likelihood summed over the tokens of a response",
                settings: &[("likelihood_mean", Value::Name("response_sum"))],
            },
            Dialect {
                name: "trl-1.16",
                note: "likelihood averaged over all tokens of the batch",
                settings: &[TOKEN_MEAN],
            },
        ],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "preference.simpo",
        family: Family::Preference,
        title: "SimPO",
        summary: "The logistic loss of the difference of length-averaged log-probs beyond a target margin, without a reference.",
        formula: r"-\log\sigma\!\left(\frac{\beta}{|y_w|}\log\pi_\theta(y_w) - \frac{\beta}{|y_l|}\log\pi_\theta(y_l) - \gamma\right)",
        gradient: GRADIENT,
        notes: "The target margin stands outside beta in the paper and in TRL (which subtracts gamma/beta before it multiplies); some \
                codes put it inside. TRL's trainer adds the likelihood with weight cpo_alpha = 1 unless it is set to 0.",
        sources: &[Source {
            title: "SimPO: Simple Preference Optimization with a Reference-Free Reward",
            reference: "arXiv:2405.14734",
            place: "Eq. (6)",
        }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[SIMPO_PER_TOKEN, ("beta", Value::Number(2.0)), ("gamma", Value::Number(1.0))],
        outputs: OUTPUTS,
        dialects: &[
            Dialect { name: "paper", note: "no likelihood term", settings: &[] },
            Dialect {
                name: "trl-1.16",
                note: "beta 0.1, gamma 0.5 and the likelihood with weight 1, averaged over all tokens of the batch",
                settings: &[
                    ("beta", Value::Number(0.1)),
                    ("gamma", Value::Number(0.5)),
                    ("likelihood_coefficient", Value::Number(1.0)),
                    TOKEN_MEAN,
                ],
            },
        ],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "preference.alpha_po",
        family: Family::Preference,
        title: "AlphaPO",
        summary: "SimPO with a power of the length-averaged probability as reward instead of its logarithm.",
        formula: r"-\log\sigma(\beta[r_\alpha(y_w) - r_\alpha(y_l)] - \gamma),\quad r_\alpha(y) = \frac{1 - \bar\pi_\theta(y)^{-\alpha}}{\alpha},\ \bar\pi_\theta(y) = \pi_\theta(y)^{1/|y|}",
        gradient: GRADIENT,
        notes: "alpha = 0 is SimPO. For alpha > 0 the reward of an unlikely response tends to minus infinity exponentially. TRL takes \
                the power of the probability itself, which underflows where the log-prob is below about -745 (f64).",
        sources: &[Source {
            title: "AlphaPO: Reward Shape Matters for LLM Alignment",
            reference: "arXiv:2501.03884",
            place: "Eq. (5)",
        }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[
            SIMPO_PER_TOKEN,
            ("beta", Value::Number(2.0)),
            ("gamma", Value::Number(1.0)),
            ("alpha", Value::Number(0.25)),
        ],
        outputs: OUTPUTS,
        dialects: &[
            Dialect { name: "paper", note: "no likelihood term", settings: &[] },
            Dialect {
                name: "trl-1.16",
                note: "beta 0.1, gamma 0.5 and the likelihood with weight 1, averaged over all tokens of the batch",
                settings: &[
                    ("beta", Value::Number(0.1)),
                    ("gamma", Value::Number(0.5)),
                    ("likelihood_coefficient", Value::Number(1.0)),
                    TOKEN_MEAN,
                ],
            },
        ],
        evaluate: evaluate_with!(evaluate),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn simpo(gamma_placement: GammaPlacement) -> ReferenceFree<f64> {
        ReferenceFree {
            beta: 2.0,
            loss: MarginLoss::Sigmoid,
            label_smoothing: 0.0,
            length_normalisation: LengthNormalisation::LogRatio,
            alpha: 0.0,
            gamma: 1.0,
            gamma_placement,
        }
    }

    #[test]
    fn placement_of_gamma() {
        // Averages −0.5 and −0.9: Δ = 0.4, β = 2, γ = 1.
        let pair = Pair { chosen_log_ratio: -5.0, rejected_log_ratio: -3.6, chosen_length: 10.0, rejected_length: 4.0 };
        assert!((simpo(GammaPlacement::Outside).term(&pair).value - 0.798139).abs() < 5e-7);
        assert!((simpo(GammaPlacement::Inside).term(&pair).value - 1.463282).abs() < 5e-7);
    }

    #[test]
    fn alpha_tends_to_the_logarithm_and_never_overflows_to_nan() {
        let [value, slope] = alpha_reward(-2.0f64, 1e-9);
        assert!((value + 2.0).abs() < 1e-8 && (slope - 1.0).abs() < 1e-8);
        let alpha = ReferenceFree {
            alpha: 1.0,
            length_normalisation: LengthNormalisation::None,
            ..simpo(GammaPlacement::Outside)
        };
        let far =
            Pair { chosen_log_ratio: -1000.0, rejected_log_ratio: -1000.0, chosen_length: 1.0, rejected_length: 1.0 };
        let term = alpha.term(&far);
        // Equal rewards: −ln σ(−γ), though both are −∞.
        assert!((term.value - 1.3132616875182228).abs() < 1e-15);
        assert_eq!([term.d_chosen, term.d_rejected], [f64::NEG_INFINITY, f64::INFINITY]);
    }
}

//! The scoring stage that the pairwise losses share: from log-ratios to scores under an f-divergence, and their
//! difference.

use super::arithmetic::{difference, times};
use super::pairs::{Pair, PairTerm};
use crate::Error;
use crate::num::{Real, logsigmoid, sigmoid};
use crate::spec::{
    Call, Choice, Dialect, Domain, Elementwise, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source,
    Value, choice, evaluate_elements, evaluate_with,
};

choice! {
    /// The divergence that holds the policy to the reference.
    pub enum Divergence {
        /// KL(π‖π_ref): plain DPO.
        ReverseKl = "reverse_kl",
        /// KL(π_ref‖π).
        ForwardKl = "forward_kl",
        /// Jensen–Shannon.
        Js = "js",
        /// The α-divergence.
        Alpha = "alpha",
    }
}

choice! {
    /// What is divided by the response's length.
    pub enum LengthNormalisation {
        /// Nothing.
        None = "none",
        /// The score.
        Score = "score",
        /// The log-ratio, before it is scored.
        LogRatio = "log_ratio",
    }
}

/// How a log-ratio becomes a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRule<R> {
    /// The divergence.
    pub divergence: Divergence,
    /// α of the α-divergence.
    pub alpha: R,
    /// Upper limit of the α-divergence's exponent.
    pub exponent_cap: Option<R>,
    /// What is divided by the length.
    pub length_normalisation: LengthNormalisation,
}

impl<R: Real> ScoreRule<R> {
    /// Plain DPO: the score is the log-ratio.
    pub fn reverse_kl() -> Self {
        ScoreRule {
            divergence: Divergence::ReverseKl,
            alpha: R::half(),
            exponent_cap: None,
            length_normalisation: LengthNormalisation::None,
        }
    }

    /// The rule that a call's parameters describe; an error where it needs lengths that were not given.
    pub(super) fn of_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let length_normalisation = call.choice("length_normalisation")?;
        if length_normalisation != LengthNormalisation::None && !call.has("chosen_length") {
            return Err(Error::MissingInput { argument: "chosen_length" });
        }
        Ok(ScoreRule {
            divergence: call.choice("f_divergence")?,
            alpha: call.number("f_divergence_alpha")?,
            exponent_cap: call.optional_number("exponent_cap"),
            length_normalisation,
        })
    }
}

/// The score of one log-ratio x = log u, u = π/π_ref, and its derivative by x.
///
/// A divergence with generator f scores by f′(u) up to a constant (Wang et al., "Beyond Reverse KL: Generalizing Direct
/// Preference Optimization with Diverse Divergence Constraints", arXiv:2309.16240, Theorem 1 and Table 1):
/// reverse KL x · forward KL 1 − e⁻ˣ · JS ln 2 + ln σ(x) · α (e^((α−1)x) − 1)/(α − 1), with the limit x at α = 1.
/// Their derivatives: 1 · e⁻ˣ · σ(−x) · e^((α−1)x).
///
/// Where the exponent is capped, the score is constant above the cap and its derivative 0; exactly at the cap it is that
/// from below, as PyTorch's clamp has it. Uncapped scores may be infinite, never NaN.
///
/// ```
/// use plumbline_core::preference::scores::{Divergence, ScoreRule, score};
/// let forward = ScoreRule { divergence: Divergence::ForwardKl, ..ScoreRule::reverse_kl() };
/// // 1 − e^(−ln 2) = ½, and so is its derivative.
/// assert_eq!(score(core::f64::consts::LN_2, forward), [0.5, 0.5]);
/// ```
///
/// Differs in: TRL up to 0.x wrote the α-divergence as (1 − u^(−a))/a, which is this with α = 1 − a, and capped its
/// exponent at ln(largest number) cut to four decimals (88.7228 in f32, 709.7827 in f64), TRL 1.16 caps it at 80; TRL 1.16
/// takes |α − 1| < 10⁻⁶ as α = 1, here only α = 1 is.
#[inline(always)]
pub fn score<R: Real>(log_ratio: R, rule: ScoreRule<R>) -> [R; 2] {
    match rule.divergence {
        Divergence::ReverseKl => [log_ratio, R::one()],
        Divergence::ForwardKl => [-(-log_ratio).exp_m1(), (-log_ratio).exp()],
        Divergence::Js => [R::from_f64(core::f64::consts::LN_2) + logsigmoid(log_ratio), sigmoid(-log_ratio)],
        Divergence::Alpha => {
            let order = rule.alpha - R::one();
            if order == R::zero() {
                return [log_ratio, R::one()];
            }
            let exponent = order * log_ratio;
            match rule.exponent_cap {
                Some(cap) if exponent > cap => [cap.exp_m1() / order, R::zero()],
                _ => [exponent.exp_m1() / order, exponent.exp()],
            }
        }
    }
}

/// Chosen minus rejected score, each normalised as the rule says, with the derivatives by the two log-ratios.
/// Two infinite scores of the same sign are compared as equal.
#[inline(always)]
pub fn score_difference<R: Real>(pair: &Pair<R>, rule: ScoreRule<R>) -> PairTerm<R> {
    let side = |log_ratio: R, length: R| match rule.length_normalisation {
        LengthNormalisation::None => score(log_ratio, rule),
        LengthNormalisation::Score => score(log_ratio, rule).map(|part| part / length),
        LengthNormalisation::LogRatio => {
            let [value, derivative] = score(log_ratio / length, rule);
            [value, derivative / length]
        }
    };
    let [chosen, d_chosen] = side(pair.chosen_log_ratio, pair.chosen_length);
    let [rejected, d_rejected] = side(pair.rejected_log_ratio, pair.rejected_length);
    PairTerm { value: difference(chosen, rejected), d_chosen, d_rejected: -d_rejected }
}

/// A loss of the score difference as a loss of the pair: the chain rule. `loss` returns value and derivative.
#[inline(always)]
pub fn loss_of_difference<R: Real>(pair: &Pair<R>, rule: ScoreRule<R>, loss: impl FnOnce(R) -> [R; 2]) -> PairTerm<R> {
    let scores = score_difference(pair, rule);
    let [value, slope] = loss(scores.value);
    PairTerm { value, d_chosen: times(slope, scores.d_chosen), d_rejected: times(slope, scores.d_rejected) }
}

/// A loss of the reward margin, β times the score difference. `loss` returns value and derivative.
#[inline(always)]
pub fn loss_of_margin<R: Real>(
    pair: &Pair<R>,
    rule: ScoreRule<R>,
    beta: R,
    loss: impl FnOnce(R) -> [R; 2],
) -> PairTerm<R> {
    loss_of_difference(pair, rule, |scores| {
        let [value, slope] = loss(beta * scores);
        [value, beta * slope]
    })
}

/// Parameter: the divergence.
pub(super) const F_DIVERGENCE: ParamSpec = ParamSpec::choice(
    "f_divergence",
    "reverse_kl",
    Divergence::NAMES,
    "divergence that holds the policy to the reference; it decides how a log-ratio is scored",
);
/// Parameter: its order.
pub(super) const F_DIVERGENCE_ALPHA: ParamSpec = ParamSpec::number(
    "f_divergence_alpha",
    r"\alpha",
    0.5,
    Range::ANY,
    "order of the alpha-divergence; 1 is reverse KL, 0 forward KL; unused by the others",
);
/// Parameter: the limit of its exponent.
pub(super) const EXPONENT_CAP: ParamSpec = ParamSpec::optional(
    "exponent_cap",
    r"c",
    None,
    Range::POSITIVE,
    "upper limit of the alpha-divergence's exponent; off: none",
);
/// Parameter: what is divided by the length, nothing by default.
pub(super) const LENGTH_NORMALISATION: ParamSpec = ParamSpec::choice(
    "length_normalisation",
    "none",
    LengthNormalisation::NAMES,
    "what is divided by the number of tokens of the response: nothing, its score, or its log-ratio before scoring",
);

/// What TRL 1.16 sets in the scoring stage.
pub(super) const TRL_1_16_CAP: (&str, Value) = ("exponent_cap", Value::Number(80.0));
/// What TRL 0.12 sets in the scoring stage, in single precision.
pub(super) const TRL_0_12_CAP: (&str, Value) = ("exponent_cap", Value::Number(88.7228));

/// The dialect of TRL 0.12 where it differs in nothing else.
pub(super) const TRL_0_12: Dialect = Dialect {
    name: "trl-0.12",
    note: "exponent of the alpha-divergence capped at 88.7228 (f32; 709.7827 in f64)",
    settings: &[TRL_0_12_CAP],
};
/// The dialect of TRL 1.16 where it differs in nothing else.
pub(super) const TRL_1_16: Dialect =
    Dialect { name: "trl-1.16", note: "exponent of the alpha-divergence capped at 80", settings: &[TRL_1_16_CAP] };
/// The paper's form.
pub(super) const PAPER: Dialect = Dialect { name: "paper", note: "as written", settings: &[] };

/// [`score`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DivergenceScore<R> {
    /// Which divergence.
    pub divergence: Divergence,
    /// Order of the alpha-divergence.
    pub alpha: R,
    /// Upper limit of its exponent; infinite where there is none.
    pub exponent_cap: R,
}

impl<R: Real> Elementwise<R, 1, 2> for DivergenceScore<R> {
    const OPERATION: &'static str = "preference.f_divergence_score";
    const INPUTS: [&'static str; 1] = ["log_ratio"];
    const OUTPUTS: [&'static str; 2] = ["score", "d_log_ratio"];

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(DivergenceScore {
            divergence: call.choice("f_divergence")?,
            alpha: call.number("f_divergence_alpha")?,
            exponent_cap: call.optional_number("exponent_cap").unwrap_or(R::infinity()),
        })
    }

    #[inline(always)]
    fn apply(&self, _: bool, [log_ratio]: [R; 1]) -> [R; 2] {
        let rule = ScoreRule {
            divergence: self.divergence,
            alpha: self.alpha,
            exponent_cap: Some(self.exponent_cap),
            length_normalisation: LengthNormalisation::None,
        };
        score(log_ratio, rule)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, DivergenceScore<R>, 1, 2>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.f_divergence_score",
    family: Family::Preference,
    title: "f-divergence score",
    summary: "The score that a response's log-ratio gets under a divergence: the derivative of its generator.",
    formula: r"s(x) = f'(e^x) + \text{const}:\quad x,\ 1 - e^{-x},\ \log 2 + \log\sigma(x),\ \frac{e^{(\alpha-1)x}-1}{\alpha-1}",
    gradient: r"s'(x) = 1,\ e^{-x},\ \sigma(-x),\ e^{(\alpha-1)x}",
    notes: "Above a capped exponent the score is constant (derivative 0; at the cap that from below). Older TRL writes the \
            alpha-divergence as (1 - u^{-a})/a, which is alpha = 1 - a here.",
    sources: &[Source {
        title: "Beyond Reverse KL: Generalizing Direct Preference Optimization with Diverse Divergence Constraints",
        reference: "arXiv:2309.16240",
        place: "Theorem 1, Table 1",
    }],
    inputs: &[
        InputSpec::new(
            "log_ratio",
            Domain::LogRatio,
            &[&["N"]],
            "log-probability of the response under the policy minus that under the reference (nats)",
        ),
        InputSpec::new("mask", Domain::Mask, &[&["N"]], "1 where there is a response, 0 where it is absent").optional(),
    ],
    params: &[F_DIVERGENCE, F_DIVERGENCE_ALPHA, EXPONENT_CAP],
    defaults: &[],
    outputs: &[
        OutputSpec::value("score", &["N"], "score of each response (nats)"),
        OutputSpec::gradient("d_log_ratio", "log_ratio", &["N"], "derivative of each score by its log-ratio"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "no cap", settings: &[] },
        Dialect { name: "trl-1.16", note: "exponent capped at 80", settings: &[TRL_1_16_CAP] },
        Dialect {
            name: "trl-0.12",
            note: "exponent capped at 88.7228 (f32; 709.7827 in f64)",
            settings: &[TRL_0_12_CAP],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(divergence: Divergence) -> ScoreRule<f64> {
        ScoreRule { divergence, ..ScoreRule::reverse_kl() }
    }

    #[test]
    fn hand_values() {
        let ln2 = core::f64::consts::LN_2;
        assert_eq!(score(3.0, rule(Divergence::ReverseKl)), [3.0, 1.0]);
        // At u = 1 every divergence scores 0 with slope 1, Jensen–Shannon ½.
        for divergence in [Divergence::ReverseKl, Divergence::ForwardKl, Divergence::Alpha] {
            assert_eq!(score(0.0, rule(divergence)), [0.0, 1.0]);
        }
        let [js, slope] = score(0.0, rule(Divergence::Js));
        assert!(js.abs() < 1e-16 && slope == 0.5);
        // α = ½, u = 4: (4^(−½) − 1)/(−½) = 1, slope 4^(−½) = ½.
        let [alpha, slope] = score(2.0 * ln2, rule(Divergence::Alpha));
        assert!((alpha - 1.0).abs() < 1e-15 && (slope - 0.5).abs() < 1e-15);
    }

    #[test]
    fn older_form_of_alpha_is_a_reparametrisation() {
        // (1 − u^(−a))/a with a = 0.7 is α = 0.3.
        let old = |x: f64| -Real::exp_m1(-0.7 * x) / 0.7;
        let new = ScoreRule { alpha: 1.0 - 0.7, ..rule(Divergence::Alpha) };
        for x in [-2.0, -0.1, 0.0, 0.4, 3.0] {
            assert!((score(x, new)[0] - old(x)).abs() < 1e-14);
        }
    }

    #[test]
    fn limits_of_alpha() {
        let forward = ScoreRule { alpha: 0.0, ..rule(Divergence::Alpha) };
        let reverse = ScoreRule { alpha: 1.0, ..rule(Divergence::Alpha) };
        for x in [-3.0, 0.5, 2.0] {
            assert_eq!(score(x, forward), score(x, rule(Divergence::ForwardKl)));
            assert_eq!(score(x, reverse), [x, 1.0]);
        }
    }

    #[test]
    fn capped_exponent_is_flat_above_and_open_at_the_cap() {
        let capped = ScoreRule { alpha: 2.0, exponent_cap: Some(80.0), ..rule(Divergence::Alpha) };
        assert_eq!(score(81.0, capped)[1], 0.0);
        assert_eq!(score(81.0, capped)[0], score(80.0, capped)[0]);
        assert_eq!(score(80.0, capped)[1], Real::exp(80.0f64));
    }

    #[test]
    fn infinite_scores_give_no_nan() {
        let pair =
            Pair { chosen_log_ratio: -1000.0, rejected_log_ratio: -1000.0, chosen_length: 1.0, rejected_length: 1.0 };
        let scores = score_difference(&pair, rule(Divergence::ForwardKl));
        assert_eq!(scores.value, 0.0);
        assert_eq!(scores.d_chosen, f64::INFINITY);
    }
}

//! What a surrogate returns, and what its catalog entries share.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Elementwise, InputSpec, OutputSpec, ParamSpec, Range, choice, evaluate_elements};

/// The loss of one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term<R> {
    /// The loss ℓ.
    pub loss: R,
    /// Its derivative: by the log-ratio where the gradient flows through the ratio, by the token's own log-probability
    /// where the ratio is stopped. For a token-level ratio the two are the same.
    pub derivative: R,
    /// Whether a clip decided the loss (for a stopped weight: whether the weight was limited).
    pub clipped: bool,
    /// Whether that was the upper clip on a positive advantage.
    pub clipped_high: bool,
    /// Whether that was the lower clip on a negative advantage.
    pub clipped_low: bool,
    /// Whether the bound c·|A| of the dual clip (or the cap of a truncated weight) decided.
    pub dual_clipped: bool,
}

impl<R: Real> Term<R> {
    /// A term that no clip touched.
    #[inline(always)]
    pub fn free(loss: R, derivative: R) -> Self {
        Term { loss, derivative, clipped: false, clipped_high: false, clipped_low: false, dual_clipped: false }
    }

    /// Loss, derivative, and 1 where a clip decided the loss.
    #[inline(always)]
    pub(super) fn numbers(self) -> [R; 3] {
        [self.loss, self.derivative, if self.clipped { R::one() } else { R::zero() }]
    }
}

/// a·b, but 0 where either is 0 even if the other is infinite: a weight of nothing carries nothing.
#[inline(always)]
pub(crate) fn product<R: Real>(a: R, b: R) -> R {
    if a == R::zero() || b == R::zero() { R::zero() } else { a * b }
}

choice! {
    /// How the clip parameters are read.
    pub enum ClipBounds {
        /// As distances from 1: the bounds are 1 − low and 1 + high.
        Relative = "relative",
        /// As the bounds themselves.
        Absolute = "absolute",
    }
}

/// The interval that a ratio is clipped to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipRange<R> {
    /// The lower bound of the ratio; 0 is no bound.
    pub low: R,
    /// The upper bound of the ratio.
    pub high: R,
}

impl<R: Real> ClipRange<R> {
    /// [1 − ε_low, 1 + ε_high].
    pub fn relative(clip_ratio_low: R, clip_ratio_high: R) -> Self {
        ClipRange { low: R::one() - clip_ratio_low, high: R::one() + clip_ratio_high }
    }

    /// Read `clip_ratio_low`, `clip_ratio_high` and `clip_bounds` from a call.
    pub fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let (low, high) = (call.optional_number("clip_ratio_low"), call.number("clip_ratio_high")?);
        Ok(match call.choice("clip_bounds")? {
            ClipBounds::Relative => {
                ClipRange { low: low.map_or(R::zero(), |low| R::one() - low), high: R::one() + high }
            }
            ClipBounds::Absolute => ClipRange { low: low.unwrap_or(R::zero()), high },
        })
    }
}

/// The lower clip parameter.
pub(crate) const CLIP_RATIO_LOW: ParamSpec = ParamSpec::optional(
    "clip_ratio_low",
    r"\epsilon_{\mathrm{low}}",
    Some(0.2),
    Range::NON_NEGATIVE,
    "how far below 1 the ratio may fall before it is clipped (the bound itself with absolute bounds); off: no lower bound",
);
/// The upper clip parameter.
pub(crate) const CLIP_RATIO_HIGH: ParamSpec = ParamSpec::number(
    "clip_ratio_high",
    r"\epsilon_{\mathrm{high}}",
    0.2,
    Range::NON_NEGATIVE,
    "how far above 1 the ratio may rise before it is clipped (the bound itself with absolute bounds)",
);
/// How the two are read.
pub(crate) const CLIP_BOUNDS: ParamSpec = ParamSpec::choice(
    "clip_bounds",
    "relative",
    <ClipBounds as crate::spec::Choice>::NAMES,
    "whether the clip parameters are distances from 1 or the bounds themselves",
);
/// The dual clip.
pub(crate) const CLIP_RATIO_C: ParamSpec = ParamSpec::optional(
    "clip_ratio_c",
    r"c",
    None,
    Range::ABOVE_ONE,
    "dual clip: for a negative advantage the loss is at most c|A|; for DPPO the cap of the ratio; off by default",
);
/// The cap of the unclipped ratio.
pub(crate) const RATIO_MAX: ParamSpec = ParamSpec::optional(
    "ratio_max",
    r"\delta",
    None,
    Range::ABOVE_ONE,
    "two-sided clip: the unclipped ratio is limited to this (TRL's delta); off by default",
);

/// The inputs of a surrogate that compares two policies.
pub(super) const fn inputs() -> [InputSpec; 4] {
    [
        InputSpec::new(
            "log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of the sampled token under the current policy (nats)",
        ),
        InputSpec::new(
            "old_log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "the same under the policy that sampled it (nats)",
        ),
        InputSpec::new(
            "advantage",
            Domain::Advantage,
            &[&["B", "T"], &["B"]],
            "advantage of the token, or of its whole response (then the same for each of its tokens)",
        ),
        InputSpec::MASK,
    ]
}

/// The outputs of a surrogate whose gradient is the derivative of its value.
pub(super) const OUTPUTS: &[OutputSpec] = &[
    OutputSpec::value("token_loss", &["B", "T"], "loss of each token"),
    OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "derivative of each loss by its log_prob"),
    CLIPPED,
];
/// The outputs of a surrogate with a stopped weight.
pub(super) const STOPPED_OUTPUTS: &[OutputSpec] = &[
    OutputSpec::value("token_loss", &["B", "T"], "loss of each token"),
    OutputSpec::gradient(
        "d_log_prob",
        "log_prob",
        &["B", "T"],
        "derivative of each loss by its log_prob, the weight held constant",
    )
    .stopped(),
    CLIPPED,
];
const CLIPPED: OutputSpec = OutputSpec::value("clipped", &["B", "T"], "1 where a clip decided the loss, else 0");

/// What a surrogate sees of one token.
#[derive(Clone, Copy, Debug)]
pub struct SurrogateToken<R> {
    /// log π.
    pub log_prob: R,
    /// log ρ.
    pub log_ratio: R,
    /// ρ.
    pub ratio: R,
    /// A.
    pub advantage: R,
    /// Whether it is among the selected ones.
    pub selected: bool,
}

/// A surrogate that compares two policies token by token, with its settings.
pub trait TokenSurrogate<R: Real>: Copy {
    /// The identifier of the operation.
    const OPERATION: &'static str;
    /// The optional input that selects tokens.
    const SELECTED: Option<&'static str> = None;

    /// The settings that a call's parameters give, and a judgement of its inputs where there are any.
    fn from_call(call: &Call<'_, R>) -> Result<Self, Error>;
    /// Loss and derivative of a token.
    fn term(&self, token: SurrogateToken<R>) -> Term<R>;
}

impl<R: Real, S: TokenSurrogate<R>> Elementwise<R, 3, 3> for S {
    const OPERATION: &'static str = S::OPERATION;
    const INPUTS: [&'static str; 3] = ["log_prob", "old_log_prob", "advantage"];
    const OUTPUTS: [&'static str; 3] = ["token_loss", "d_log_prob", "clipped"];
    const MARK: Option<&'static str> = S::SELECTED;

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        S::from_call(call)
    }

    #[inline(always)]
    fn apply(&self, selected: bool, [log_prob, old_log_prob, advantage]: [R; 3]) -> [R; 3] {
        let log_ratio = log_prob - old_log_prob;
        self.term(SurrogateToken { log_prob, log_ratio, ratio: log_ratio.exp(), advantage, selected }).numbers()
    }
}

/// The evaluation of such a surrogate.
pub(super) fn evaluate_tokens<R: Real, S: TokenSurrogate<R>>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, S, 3, 3>(call)
}

#[cfg(test)]
pub(super) mod check {
    use super::Term;

    /// The derivative of a surrogate whose gradient flows through the ratio, against a central difference in the
    /// log-ratio with step 1e-6: truncation 1e-12·f''' and rounding 1e-16/1e-6 leave about 1e-9 relative.
    pub fn derivative(log_ratio: f64, formula: impl Fn(f64, f64) -> Term<f64>) {
        let at = |x: f64| formula(x, libm::exp(x));
        let step = 1e-6;
        let difference = (at(log_ratio + step).loss - at(log_ratio - step).loss) / (2.0 * step);
        let derivative = at(log_ratio).derivative;
        let scale = 1.0 + derivative.abs() + at(log_ratio).loss.abs();
        assert!((difference - derivative).abs() < 1e-8 * scale, "{difference} against {derivative} at {log_ratio}");
    }
}

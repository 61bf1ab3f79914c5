//! VESPO: a stopped gamma-shaped weight of the sequence ratio.

use super::term::{STOPPED_OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs, product};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// VESPO.
pub(crate) const VESPO: Source = Source {
    title: "VESPO: Variational Sequence-Level Soft Policy Optimization",
    reference: "arXiv:2602.10693",
    place: "Eq. 14",
};

/// Shape parameters of the weight for one sign of the advantage.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GammaShape<R> {
    /// The exponent k of w.
    pub k: R,
    /// The rate λ.
    pub lambda: R,
}

/// The VESPO loss ℓ = −sg(φ(w))·A·log π, derivative −φ(w)·A by log π, with φ(w) = e^λ·wᵏ·e^(−λw) (VESPO, Eq. 14).
///
/// `log_ratio` is log w, the sum of the response's log-ratios (the caller limits it), `ratio` w itself. The shape is
/// `positive` for A ≥ 0, `negative` for A < 0. φ(1) = 1. An infinite w has weight 0.
///
/// ```
/// use plumbline_core::surrogate::vespo::{GammaShape, vespo};
/// let shape = GammaShape { k: 2.0, lambda: 3.0 };
/// assert_eq!(vespo(0.0, 1.0, -0.5, 2.0, shape, shape).derivative, -2.0);
/// ```
#[inline(always)]
pub fn vespo<R: Real>(
    log_ratio: R,
    ratio: R,
    log_prob: R,
    advantage: R,
    positive: GammaShape<R>,
    negative: GammaShape<R>,
) -> Term<R> {
    let zero = R::zero();
    let (k, lambda) = if advantage < zero { (negative.k, negative.lambda) } else { (positive.k, positive.lambda) };
    let exponent = lambda + k * log_ratio - lambda * ratio;
    // log w stays finite, so an overflowed w makes the exponent −∞ and the weight 0.
    let weight = exponent.exp();
    let derivative = zero - product(weight, advantage);
    Term::free(product(derivative, log_prob), derivative)
}

/// k for A ≥ 0.
pub(crate) const K_POSITIVE: ParamSpec =
    ParamSpec::number("vespo_k_positive", r"k_{+}", 2.0, Range::NON_NEGATIVE, "exponent of the weight for A >= 0");
/// λ for A ≥ 0.
pub(crate) const LAMBDA_POSITIVE: ParamSpec =
    ParamSpec::number("vespo_lambda_positive", r"\lambda_{+}", 3.0, Range::POSITIVE, "rate of the weight for A >= 0");
/// k for A < 0.
pub(crate) const K_NEGATIVE: ParamSpec =
    ParamSpec::number("vespo_k_negative", r"k_{-}", 3.0, Range::NON_NEGATIVE, "exponent of the weight for A < 0");
/// λ for A < 0.
pub(crate) const LAMBDA_NEGATIVE: ParamSpec =
    ParamSpec::number("vespo_lambda_negative", r"\lambda_{-}", 2.0, Range::POSITIVE, "rate of the weight for A < 0");

/// The shapes for both signs, read from a call.
pub(crate) fn shapes<R: Real>(call: &Call<'_, R>) -> Result<(GammaShape<R>, GammaShape<R>), Error> {
    Ok((
        GammaShape { k: call.number("vespo_k_positive")?, lambda: call.number("vespo_lambda_positive")? },
        GammaShape { k: call.number("vespo_k_negative")?, lambda: call.number("vespo_lambda_negative")? },
    ))
}

/// [`vespo`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Vespo<R> {
    /// The shape for A ≥ 0.
    pub positive: GammaShape<R>,
    /// The shape for A < 0.
    pub negative: GammaShape<R>,
}

impl<R: Real> TokenSurrogate<R> for Vespo<R> {
    const OPERATION: &'static str = "surrogate.vespo";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let (positive, negative) = shapes(call)?;
        Ok(Vespo { positive, negative })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        vespo(token.log_ratio, token.ratio, token.log_prob, token.advantage, self.positive, self.negative)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Vespo<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.vespo",
    family: Family::Surrogate,
    title: "VESPO's gamma weight, one token",
    summary: "REINFORCE weighted by a stopped function of the ratio that rises as a power and falls exponentially.",
    formula: r"\ell = -\mathrm{sg}(\varphi(w))\, A \log\pi_\theta(a),\quad \varphi(w) = e^{\lambda} w^{k} e^{-\lambda w}",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -\varphi(w) A",
    notes: "w is the ratio of the whole response (objective.vespo); here each token is a response of its own. TRL limits log w \
            to [ln 1e-8, 20].",
    sources: &[VESPO],
    inputs: &inputs(),
    params: &[K_POSITIVE, LAMBDA_POSITIVE, K_NEGATIVE, LAMBDA_NEGATIVE],
    defaults: &[],
    outputs: STOPPED_OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_by_hand() {
        let (positive, negative) = (GammaShape { k: 2.0, lambda: 3.0 }, GammaShape { k: 3.0, lambda: 2.0 });
        // φ(2) = e³·4·e⁻⁶ = 4e⁻³ for A ≥ 0; e²·8·e⁻⁴ = 8e⁻² for A < 0.
        let log_two = libm::log(2.0);
        let term = vespo(log_two, 2.0, -1.0, 1.0, positive, negative);
        assert!((term.loss - 4.0 * libm::exp(-3.0)).abs() < 1e-15);
        let term = vespo(log_two, 2.0, -1.0, -1.0, positive, negative);
        assert!((term.derivative - 8.0 * libm::exp(-2.0)).abs() < 1e-15);
        assert_eq!(vespo(1000.0, f64::INFINITY, -1.0, 1.0, positive, negative).derivative, 0.0);
    }
}

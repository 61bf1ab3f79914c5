//! Importance-weighted policy gradient, with the gradient through the weight and with the weight stopped.

use super::term::{OUTPUTS, STOPPED_OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs, product};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, Source, evaluate_with};

const TRPO: Source =
    Source { title: "Trust Region Policy Optimization", reference: "arXiv:1502.05477", place: "Eq. 14" };
const OFF_POLICY_ACTOR_CRITIC: Source =
    Source { title: "Off-Policy Actor-Critic", reference: "arXiv:1205.4839", place: "Eq. 6" };

/// The importance-weighted loss ℓ = −ρ·A, derivative −ρ·A by log ρ (TRPO, Eq. 14: the surrogate without its constraint).
///
/// `ratio` ρ = π/π_old ≥ 0, `advantage` A. Where A is 0 the result is 0 even if ρ has overflowed.
///
/// ```
/// use plumbline_core::surrogate::importance_weighted::importance_weighted;
/// let term = importance_weighted(1.5, 2.0);
/// assert_eq!((term.loss, term.derivative), (-3.0, -3.0));
/// ```
#[inline(always)]
pub fn importance_weighted<R: Real>(ratio: R, advantage: R) -> Term<R> {
    let loss = R::zero() - product(ratio, advantage);
    Term::free(loss, loss)
}

/// The same with the weight stopped: ℓ = −sg(ρ)·A·log π, derivative −ρ·A by log π (off-policy actor-critic, Eq. 6).
///
/// The gradient equals that of [`importance_weighted`] at a token-level ratio; the value differs.
///
/// ```
/// use plumbline_core::surrogate::importance_weighted::importance_weighted_detached;
/// let term = importance_weighted_detached(1.5, -0.5, 2.0);
/// assert_eq!((term.loss, term.derivative), (1.5, -3.0));
/// ```
#[inline(always)]
pub fn importance_weighted_detached<R: Real>(ratio: R, log_prob: R, advantage: R) -> Term<R> {
    let derivative = R::zero() - product(ratio, advantage);
    Term::free(product(derivative, log_prob), derivative)
}

/// [`importance_weighted`], which has no settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ImportanceWeighted;

impl<R: Real> TokenSurrogate<R> for ImportanceWeighted {
    const OPERATION: &'static str = "surrogate.importance_weighted";

    fn from_call(_: &Call<'_, R>) -> Result<Self, Error> {
        Ok(ImportanceWeighted)
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        importance_weighted(token.ratio, token.advantage)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, ImportanceWeighted>(call)
}

/// [`importance_weighted_detached`], which has no settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ImportanceWeightedDetached;

impl<R: Real> TokenSurrogate<R> for ImportanceWeightedDetached {
    const OPERATION: &'static str = "surrogate.importance_weighted_detached";

    fn from_call(_: &Call<'_, R>) -> Result<Self, Error> {
        Ok(ImportanceWeightedDetached)
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        importance_weighted_detached(token.ratio, token.log_prob, token.advantage)
    }
}

fn evaluate_detached<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, ImportanceWeightedDetached>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "surrogate.importance_weighted",
        family: Family::Surrogate,
        title: "Importance-weighted policy gradient (TRPO's surrogate)",
        summary: "The ratio times the advantage, without a clip.",
        formula: r"\ell = -\rho A,\quad \rho = \pi_\theta(a)/\pi_{\mathrm{old}}(a)",
        gradient: r"\partial \ell / \partial \log\pi_\theta = -\rho A",
        notes: "0 where A is 0, whatever the ratio. The same in every library.",
        sources: &[TRPO],
        inputs: &inputs(),
        params: &[],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate),
    },
    Operation {
        id: "surrogate.importance_weighted_detached",
        family: Family::Surrogate,
        title: "Importance-weighted REINFORCE, weight stopped",
        summary: "The stopped ratio times the advantage times the log-probability.",
        formula: r"\ell = -\mathrm{sg}(\rho)\, A \log\pi_\theta(a)",
        gradient: r"\partial \ell / \partial \log\pi_\theta = -\rho A",
        notes: "The gradient equals that of the unstopped form; the value does not.",
        sources: &[OFF_POLICY_ACTOR_CRITIC],
        inputs: &inputs(),
        params: &[],
        defaults: &[],
        outputs: STOPPED_OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_detached),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::term::check;

    #[test]
    fn derivative_and_overflow() {
        for advantage in [-1.5, 2.0] {
            check::derivative(0.7, |_, ratio| importance_weighted(ratio, advantage));
        }
        assert_eq!(importance_weighted(f64::INFINITY, 0.0).loss, 0.0);
        assert_eq!(importance_weighted(f64::INFINITY, 1.0).loss, f64::NEG_INFINITY);
        assert_eq!(importance_weighted_detached(f64::INFINITY, 0.0, 1.0).loss, 0.0);
    }
}

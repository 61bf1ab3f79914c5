//! DRO: the policy gradient with a quadratic pull towards the old policy.

use super::term::{OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// DRO.
pub(crate) const DRO: Source = Source {
    title: "Offline Regularised Reinforcement Learning for Large Language Models Alignment",
    reference: "arXiv:2405.19107",
    place: "Eq. 4 (policy term)",
};

/// The DRO loss ℓ = −(A·log π − β/2·(log π − log π_old)²), derivative −A + β·(log π − log π_old) by log π.
///
/// `log_prob` log π (nats), `log_ratio` its difference to the old policy, `advantage` A, `beta` β > 0.
///
/// ```
/// use plumbline_core::surrogate::dro::dro;
/// let term = dro(-1.0, 0.5, 2.0, 0.4);
/// assert_eq!((term.loss, term.derivative), (2.05, -1.8));
/// ```
#[inline(always)]
pub fn dro<R: Real>(log_prob: R, log_ratio: R, advantage: R, beta: R) -> Term<R> {
    let zero = R::zero();
    Term::free(R::half() * beta * (log_ratio * log_ratio) - advantage * log_prob, beta * log_ratio + (zero - advantage))
}

/// β.
pub(crate) const DRO_BETA: ParamSpec =
    ParamSpec::number("dro_beta", r"\beta", 0.1, Range::POSITIVE, "weight of the squared log-ratio");

/// [`dro`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dro<R> {
    /// β.
    pub beta: R,
}

impl<R: Real> TokenSurrogate<R> for Dro<R> {
    const OPERATION: &'static str = "surrogate.dro";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Dro { beta: call.number("dro_beta")? })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        dro(token.log_prob, token.log_ratio, token.advantage, self.beta)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Dro<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.dro",
    family: Family::Surrogate,
    title: "DRO (direct reward optimisation)",
    summary: "The policy gradient with half the squared log-ratio as a penalty.",
    formula: r"\ell = -\left(A \log\pi_\theta - \tfrac{\beta}{2} (\log\pi_\theta - \log\pi_{\mathrm{old}})^2\right)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -A + \beta (\log\pi_\theta - \log\pi_{\mathrm{old}})",
    notes: "No ratio and no clip. verl's policy loss `dro` has no default for beta.",
    sources: &[DRO],
    inputs: &inputs(),
    params: &[DRO_BETA],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

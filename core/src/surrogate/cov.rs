//! The entropy-mechanism surrogates: tokens of extreme covariance are detached (clip_cov) or pulled to the old policy
//! (kl_cov). Which tokens those are is an input, never a hidden draw.

use super::ppo_clip::ppo_clip;
use super::term::{
    CLIP_RATIO_HIGH, CLIP_RATIO_LOW, ClipRange, OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs,
    product,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, ParamSpec, Range, Source, evaluate_with};

/// The entropy mechanism.
pub(crate) const ENTROPY_MECHANISM: Source = Source {
    title: "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
    reference: "arXiv:2505.22617",
    place: "Eq. 10 to 13",
};

/// Clip-Cov: PPO's clipped loss, but 0 with no gradient for a selected token (entropy mechanism, Eq. 10 and 11).
///
/// ```
/// use plumbline_core::surrogate::{ClipRange, cov::clip_cov};
/// let clip = ClipRange { low: 0.8, high: 1.2 };
/// assert_eq!(clip_cov(1.1, 1.0, true, clip).loss, 0.0);
/// assert_eq!(clip_cov(1.1, 1.0, false, clip).loss, -1.1);
/// ```
#[inline(always)]
pub fn clip_cov<R: Real>(ratio: R, advantage: R, selected: bool, clip: ClipRange<R>) -> Term<R> {
    let term = ppo_clip(ratio, advantage, clip, R::infinity(), R::infinity());
    if selected { Term { loss: R::zero(), derivative: R::zero(), ..term } } else { term }
}

/// KL-Cov: −ρ·A, plus coefficient·|log ρ| for a selected token (entropy mechanism, Eq. 12 and 13).
///
/// The derivative by log ρ is −ρA, plus coefficient·sign(log ρ) for a selected token (0 at 0, as PyTorch's abs).
///
/// ```
/// use plumbline_core::surrogate::cov::kl_cov;
/// assert_eq!(kl_cov(-0.5, 0.5, 2.0, true, 0.1).loss, -0.95);
/// ```
#[inline(always)]
pub fn kl_cov<R: Real>(log_ratio: R, ratio: R, advantage: R, selected: bool, coefficient: R) -> Term<R> {
    let zero = R::zero();
    let plain = zero - product(ratio, advantage);
    let sign = if log_ratio > zero {
        R::one()
    } else if log_ratio < zero {
        zero - R::one()
    } else {
        zero
    };
    if selected {
        Term::free(plain + coefficient * log_ratio.abs(), plain + coefficient * sign)
    } else {
        Term::free(plain, plain)
    }
}

/// The weight of the pull.
pub(crate) const KL_COV_COEFFICIENT: ParamSpec = ParamSpec::number(
    "kl_cov_coefficient",
    r"\beta_{\mathrm{cov}}",
    0.1,
    Range::NON_NEGATIVE,
    "weight of |log ratio| on the selected tokens",
);

const SELECTED: InputSpec = InputSpec::new(
    "selected",
    Domain::Mask,
    &[&["B", "T"]],
    "1 where the token was selected for its covariance of advantage and log-probability; without it none is",
)
.optional();

/// [`clip_cov`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ClipCov<R> {
    /// The bounds of the ratio.
    pub clip: ClipRange<R>,
}

impl<R: Real> TokenSurrogate<R> for ClipCov<R> {
    const OPERATION: &'static str = "surrogate.clip_cov";
    const SELECTED: Option<&'static str> = Some(SELECTED.name);

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        let low = call.optional_number("clip_ratio_low").map_or(R::zero(), |low| R::one() - low);
        Ok(ClipCov { clip: ClipRange { low, high: R::one() + call.number("clip_ratio_high")? } })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        clip_cov(token.ratio, token.advantage, token.selected, self.clip)
    }
}

fn evaluate_clip<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, ClipCov<R>>(call)
}

/// [`kl_cov`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KlCov<R> {
    /// Weight of |log ρ| on the selected tokens.
    pub coefficient: R,
}

impl<R: Real> TokenSurrogate<R> for KlCov<R> {
    const OPERATION: &'static str = "surrogate.kl_cov";
    const SELECTED: Option<&'static str> = Some(SELECTED.name);

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(KlCov { coefficient: call.number("kl_cov_coefficient")? })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        kl_cov(token.log_ratio, token.ratio, token.advantage, token.selected, self.coefficient)
    }
}

fn evaluate_kl<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, KlCov<R>>(call)
}

const fn inputs_with_selection() -> [InputSpec; 5] {
    let [log_prob, old_log_prob, advantage, mask] = inputs();
    [log_prob, old_log_prob, advantage, mask, SELECTED]
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "surrogate.clip_cov",
        family: Family::Surrogate,
        title: "Clip-Cov",
        summary: "PPO's clipped surrogate with the tokens of extreme covariance taken out of loss and gradient.",
        formula: r"\ell = (1 - s)\, \max\left(-\rho A, -\mathrm{clip}(\rho, 1-\epsilon_{\mathrm{low}}, 1+\epsilon_{\mathrm{high}}) A\right)",
        gradient: r"\partial \ell / \partial \log\pi_\theta = (1 - s)\, \partial \ell_{\mathrm{PPO}}",
        notes: "The selection s is an input; verl draws it at random among the tokens whose covariance lies in a band. The \
                selected tokens stay in the denominator.",
        sources: &[ENTROPY_MECHANISM],
        inputs: &inputs_with_selection(),
        params: &[CLIP_RATIO_LOW, CLIP_RATIO_HIGH],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_clip),
    },
    Operation {
        id: "surrogate.kl_cov",
        family: Family::Surrogate,
        title: "KL-Cov",
        summary: "The importance-weighted loss, with a pull towards the old policy on the tokens of highest covariance.",
        formula: r"\ell = -\rho A + s\, \beta_{\mathrm{cov}} |\log\rho|",
        gradient: r"\partial \ell / \partial \log\pi_\theta = -\rho A + s\, \beta_{\mathrm{cov}}\, \mathrm{sign}(\log\rho)",
        notes: "The selection s is an input. The derivative of the absolute value at 0 is 0.",
        sources: &[ENTROPY_MECHANISM],
        inputs: &inputs_with_selection(),
        params: &[KL_COV_COEFFICIENT],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_kl),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::term::check;

    #[test]
    fn derivative_of_the_pull() {
        for log_ratio in [-0.7, 0.4] {
            for selected in [false, true] {
                check::derivative(log_ratio, |x, ratio| kl_cov(x, ratio, -1.5, selected, 0.3));
            }
        }
        assert_eq!(kl_cov(0.0, 1.0, 2.0, true, 0.3).derivative, -2.0);
    }
}

//! SAPO: a smooth gate instead of a clip.

use super::term::{OUTPUTS, SurrogateToken, Term, TokenSurrogate, evaluate_tokens, inputs, product};
use crate::Error;
use crate::num::{Real, sigmoid};
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// SAPO.
pub(crate) const SAPO: Source =
    Source { title: "Soft Adaptive Policy Optimization", reference: "arXiv:2511.20347", place: "Eq. 5 and 6" };

/// The gated loss ℓ = −A·(4/τ)·σ(τ(ρ − 1)) and its derivative by log ρ, −A·4·σ(1 − σ)·ρ, with τ by the sign of A (SAPO,
/// Eq. 5 and 6).
///
/// At ρ = 1 the derivative is −A: the gate is REINFORCE there and fades on both sides. `ratio` ρ ≥ 0, `advantage` A,
/// `temperature_positive` τ for A > 0, `temperature_negative` for A ≤ 0; both > 0. An overflowed ratio has derivative 0.
///
/// ```
/// use plumbline_core::surrogate::sapo::sapo;
/// let term = sapo(1.0, 1.0, 1.0, 1.05);
/// assert_eq!((term.loss, term.derivative), (-2.0, -1.0));
/// ```
#[inline(always)]
pub fn sapo<R: Real>(ratio: R, advantage: R, temperature_positive: R, temperature_negative: R) -> Term<R> {
    let zero = R::zero();
    let temperature = if advantage > zero { temperature_positive } else { temperature_negative };
    let x = temperature * (ratio - R::one());
    let four = R::two() + R::two();
    let (gate, complement) = (sigmoid(x), sigmoid(zero - x));
    let slope = product(complement * gate, ratio);
    Term::free(zero - four / temperature * gate * advantage, zero - four * slope * advantage)
}

/// The temperature of positive advantages.
pub(crate) const TEMPERATURE_POSITIVE: ParamSpec = ParamSpec::number(
    "sapo_temperature_positive",
    r"\tau_{+}",
    1.0,
    Range::POSITIVE,
    "steepness of the gate where the advantage is positive",
);
/// The temperature of the others.
pub(crate) const TEMPERATURE_NEGATIVE: ParamSpec = ParamSpec::number(
    "sapo_temperature_negative",
    r"\tau_{-}",
    1.05,
    Range::POSITIVE,
    "steepness of the gate where the advantage is not positive",
);

/// [`sapo`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sapo<R> {
    /// τ for A > 0.
    pub temperature_positive: R,
    /// τ for A ≤ 0.
    pub temperature_negative: R,
}

impl<R: Real> TokenSurrogate<R> for Sapo<R> {
    const OPERATION: &'static str = "surrogate.sapo";

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Sapo {
            temperature_positive: call.number("sapo_temperature_positive")?,
            temperature_negative: call.number("sapo_temperature_negative")?,
        })
    }

    #[inline(always)]
    fn term(&self, token: SurrogateToken<R>) -> Term<R> {
        sapo(token.ratio, token.advantage, self.temperature_positive, self.temperature_negative)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_tokens::<R, Sapo<R>>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.sapo",
    family: Family::Surrogate,
    title: "SAPO's soft gate",
    summary: "A sigmoid of the ratio in place of the clip: the gradient fades smoothly away from 1.",
    formula: r"\ell = -\frac{4}{\tau}\,\sigma(\tau(\rho-1))\, A,\quad \tau = \tau_{+} \text{ for } A>0 \text{ else } \tau_{-}",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -4\,\sigma(1-\sigma)\,\rho A",
    notes: "verl limits the log-ratio to 20 before the exponential, where the gate is saturated anyway. TRL holds its \
            negative temperature in single precision, so that 1.05 is 1.0499999523….",
    sources: &[SAPO],
    inputs: &inputs(),
    params: &[TEMPERATURE_POSITIVE, TEMPERATURE_NEGATIVE],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::term::check;

    #[test]
    fn values_derivative_and_saturation() {
        // An issue thread's case: ρ = 1.5, A<0, τ₋ = 1.05 gives 2.39359, with τ₊ it would be 2.48984.
        assert!((sapo(1.5f64, -1.0, 1.0, 1.05).loss - 2.393_59).abs() < 5e-6);
        assert!((sapo(1.5f64, -1.0, 1.0, 1.0).loss - 2.489_84).abs() < 5e-6);
        for log_ratio in [-2.0, -0.1, 0.3, 1.7] {
            for advantage in [-1.5, 2.0] {
                check::derivative(log_ratio, |_, ratio| sapo(ratio, advantage, 1.3, 0.7));
            }
        }
        let term = sapo(f64::INFINITY, -1.0, 1.0, 2.0);
        assert_eq!((term.loss, term.derivative), (2.0, 0.0));
    }
}

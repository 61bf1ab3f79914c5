//! DiscoPOP: a logistic and an exponential loss, mixed by the log-ratio.

use core::cmp::Ordering;

use super::arithmetic::times;
use super::pairs::{BETA, INPUTS_WITH_LENGTHS, OUTPUTS, PAIR_COUNT, evaluate_pairs};
use super::scores::{
    EXPONENT_CAP, F_DIVERGENCE, F_DIVERGENCE_ALPHA, LENGTH_NORMALISATION, PAPER, ScoreRule, TRL_1_16, loss_of_margin,
};
use crate::Error;
use crate::num::{Real, logsigmoid, sigmoid, softplus};
use crate::spec::{Call, Family, Operation, ParamSpec, Range, Source, evaluate_with};

/// The DiscoPOP (log-ratio modulated) loss of a reward margin x, (1 − m)·(−ln σ(x)) + m·e⁻ˣ with m = σ(x/τ), and its derivative
/// by x, m(1 − m)/τ·(e⁻ˣ + ln σ(x)) − m·e⁻ˣ − (1 − m)·σ(−x).
///
/// x = β·(s_w − s_l), τ > 0. Lu et al., "Discovering Preference Optimization Algorithms with and for Large Language Models",
/// arXiv:2406.08414, Eq. (5). m·e⁻ˣ is evaluated as e^(ln σ(x/τ) − x), so that for τ < 1 no margin overflows.
///
/// ```
/// use plumbline_core::preference::dpo_discopop::discopop;
/// // At x = 0 both parts count half: (ln 2 + 1)/2.
/// let [loss, slope] = discopop(0.0f64, 1.0);
/// assert!((loss - 0.8465735902799727).abs() < 1e-15);
/// assert!((slope - (0.25 * (1.0 - core::f64::consts::LN_2) - 0.75)).abs() < 1e-15);
/// ```
#[inline(always)]
pub fn discopop<R: Real>(margin: R, tau: R) -> [R; 2] {
    let scaled = margin / tau;
    let (modulation, complement) = (sigmoid(scaled), sigmoid(-scaled));
    // ln m − x tends to −x(1 − 1/τ) at large negative x; at an infinite margin, where it would be ∞ − ∞, the limit is written out.
    let exponential = if margin == R::infinity() {
        R::zero()
    } else if margin == R::neg_infinity() {
        match tau.partial_cmp(&R::one()) {
            Some(Ordering::Less) => R::zero(),
            Some(Ordering::Equal) => R::one(),
            _ => R::infinity(),
        }
    } else {
        (logsigmoid(scaled) - margin).exp()
    };
    let logistic = softplus(-margin);
    [
        times(complement, logistic) + exponential,
        times(exponential, complement / tau - R::one())
            - times(modulation * complement / tau, logistic)
            - complement * sigmoid(-margin),
    ]
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let rule = ScoreRule::of_call(call)?;
    let beta = call.number("beta")?;
    let tau = call.number("discopop_tau")?;
    evaluate_pairs(call, |pair| loss_of_margin(pair, rule, beta, |margin| discopop(margin, tau)))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_discopop",
    family: Family::Preference,
    title: "DiscoPOP",
    summary: "A logistic and an exponential preference loss, mixed by a sigmoid of the reward margin.",
    formula: r"-(1-\sigma(x/\tau))\log\sigma(x) + \sigma(x/\tau)\,e^{-x},\quad x = \beta\Delta",
    gradient: r"\beta\left[\tfrac{1}{\tau}m(1-m)(e^{-x} + \log\sigma(x)) - m e^{-x} - (1-m)\sigma(-x)\right](s'_w, -s'_l)/N,\quad m = \sigma(x/\tau)",
    notes: "The loss is not convex: it has a local minimum at a negative margin. For tau > 1 it is unbounded as the margin \
            tends to minus infinity. The plain product form gives NaN at large negative margins.",
    sources: &[Source {
        title: "Discovering Preference Optimization Algorithms with and for Large Language Models",
        reference: "arXiv:2406.08414",
        place: "Eq. (5)",
    }],
    inputs: INPUTS_WITH_LENGTHS,
    params: &[
        BETA,
        ParamSpec::number("discopop_tau", r"\tau", 0.05, Range::POSITIVE, "temperature of the modulation"),
        F_DIVERGENCE,
        F_DIVERGENCE_ALPHA,
        EXPONENT_CAP,
        LENGTH_NORMALISATION,
        PAIR_COUNT,
    ],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[PAPER, TRL_1_16],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_margins_are_finite() {
        // m·e⁻ˣ = e^(1000 − 20000) at x = −1000, τ = 0.05: nothing is left but the logistic part.
        assert_eq!(discopop(-1000.0f64, 0.05), [1000.0, -1.0]);
        assert_eq!(discopop(1000.0f64, 0.05), [0.0, 0.0]);
        assert_eq!(discopop(f64::NEG_INFINITY, 0.05), [f64::INFINITY, -1.0]);
        assert_eq!(discopop(f64::INFINITY, 0.05), [0.0, 0.0]);
        assert_eq!(discopop(-2000.0f64, 3.0), [f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(discopop(f64::NEG_INFINITY, 3.0), [f64::INFINITY, f64::NEG_INFINITY]);
    }
}

//! REINFORCE: the advantage times the log-probability.

use super::term::{OUTPUTS, Term};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Elementwise, Family, InputSpec, Operation, Source, evaluate_elements, evaluate_with};

/// The policy-gradient loss of one token, ℓ = −A·log π, derivative −A by log π (Williams 1992, Eq. 4).
///
/// `log_prob` is the sampled token's log-probability (nats), `advantage` its advantage or return. Any finite numbers are
/// legal. It is also the loss of A2C's actor and of GPG; without a ratio it is right on policy only.
///
/// ```
/// use plumbline_core::surrogate::reinforce::reinforce;
/// let term = reinforce(-0.5, 2.0);
/// assert_eq!((term.loss, term.derivative), (1.0, -2.0));
/// ```
#[inline(always)]
pub fn reinforce<R: Real>(log_prob: R, advantage: R) -> Term<R> {
    Term::free(R::zero() - advantage * log_prob, R::zero() - advantage)
}

/// [`reinforce`], which has no settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reinforce;

impl<R: Real> Elementwise<R, 2, 3> for Reinforce {
    const OPERATION: &'static str = "surrogate.reinforce";
    const INPUTS: [&'static str; 2] = ["log_prob", "advantage"];
    const OUTPUTS: [&'static str; 3] = ["token_loss", "d_log_prob", "clipped"];

    fn from_call(_: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Reinforce)
    }

    #[inline(always)]
    fn apply(&self, _: bool, [log_prob, advantage]: [R; 2]) -> [R; 3] {
        reinforce(log_prob, advantage).numbers()
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, Reinforce, 2, 3>(call)
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "surrogate.reinforce",
    family: Family::Surrogate,
    title: "REINFORCE (policy gradient)",
    summary: "The advantage times the log-probability of the sampled token: the score-function estimator.",
    formula: r"\ell = -A \log\pi_\theta(a)",
    gradient: r"\partial \ell / \partial \log\pi_\theta = -A",
    notes: "Also the actor's loss of A2C and GPG. No library differs; verl calls it `gpg`.",
    sources: &[
        Source {
            title: "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
            reference: "Williams 1992, doi:10.1007/BF00992696",
            place: "Eq. 4",
        },
        Source {
            title: "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
            reference: "arXiv:2504.02546",
            place: "Eq. 5",
        },
    ],
    inputs: &[
        InputSpec::new("log_prob", Domain::LogProb, &[&["B", "T"]], "log-probability of the sampled token (nats)"),
        InputSpec::new(
            "advantage",
            Domain::Advantage,
            &[&["B", "T"], &["B"]],
            "advantage of the token, or of its whole response (then the same for each of its tokens)",
        ),
        InputSpec::MASK,
    ],
    params: &[],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

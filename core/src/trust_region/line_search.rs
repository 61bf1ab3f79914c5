//! The backtracking line search that accepts a trust-region step.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// Whether a candidate is accepted: the surrogate improves by more than `needed` ≥ 0 and the mean KL is within its limit
/// (Schulman et al. 2015, Appendix C). A number that is not finite is refused.
///
/// ```
/// use plumbline_core::trust_region::line_search::accepts;
/// assert!(accepts(0.5, 0.0, 0.01, 0.01));
/// assert!(!accepts(0.0, 0.0, 0.001, 0.01)); // no improvement
/// assert!(!accepts(0.5, 0.0, 0.02, 0.01)); // too far
/// assert!(!accepts(f64::INFINITY, 0.0, 0.0, 0.01));
/// ```
pub fn accepts<R: Real>(improvement: R, needed: R, kl: R, max_kl: R) -> bool {
    improvement.is_finite() && kl.is_finite() && improvement > needed && kl <= max_kl
}

fn scalar<R: Real>(call: &Call<'_, R>, name: &'static str) -> Result<R, Error> {
    call.finite(name)?.first().copied().ok_or(Error::MissingInput { argument: name })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (surrogate, kl, old) = (call.real("surrogate")?, call.real("kl")?, scalar(call, "old_surrogate")?);
    let expected = if call.has(EXPECTED.name) { scalar(call, EXPECTED.name)?.larger(R::zero()) } else { R::zero() };
    let (max_kl, shrink): (R, R) = (call.number("max_kl")?, call.number("backtrack_ratio")?);
    let share: R = call.number("accept_ratio")?;
    let (mut fraction, mut improvement, mut candidate) = (R::one(), R::zero(), surrogate.len());
    for (index, (value, divergence)) in surrogate.iter().zip(kl).enumerate() {
        if accepts(*value - old, share * (expected * fraction), *divergence, max_kl) {
            (improvement, candidate) = (*value - old, index);
            break;
        }
        fraction *= shrink;
    }
    let accepted = candidate < surrogate.len();
    call.write("step_fraction", if accepted { fraction } else { R::zero() });
    call.write("accepted", if accepted { R::one() } else { R::zero() });
    call.write("candidate", R::from_count(candidate));
    call.write("improvement", improvement);
    Ok(())
}

const EXPECTED: InputSpec = InputSpec::new(
    "expected_improvement",
    Domain::Real,
    &[&[]],
    "improvement of the whole step by the linear model, gradient times step; 0 without it or where negative",
)
.optional();

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.line_search",
    family: Family::TrustRegion,
    title: "Line search of a trust region",
    summary: "The first of a row of shrinking steps that improves the surrogate and keeps the mean KL divergence within its limit.",
    formula: r"k^* = \min\{k : L_k - L_{\mathrm{old}} > \max(0, \alpha\,\nu^k\,\Delta),\ \mathrm{KL}_k \le \delta\},\quad
\text{fraction} = \nu^{k^*}",
    gradient: "",
    notes: "The surrogate is the one to be raised. Candidate k is the step times ν^k. Without an accepted candidate the fraction is 0: the \
            old parameters stay. Candidates behind the accepted one are not looked at, and one that is not finite is refused. \
            accept_ratio 0 asks for any improvement, as the paper does; 0.1 is what many programs ask of the linear model. No dialects.",
    sources: &[Source {
        title: "Trust Region Policy Optimization",
        reference: "arXiv:1502.05477",
        place: "Appendix C, the line search",
    }],
    inputs: &[
        InputSpec::new(
            "surrogate",
            Domain::Real,
            &[&["K"]],
            "surrogate objective at each candidate, the whole step first",
        ),
        InputSpec::new(
            "kl",
            Domain::Real,
            &[&["K"]],
            "mean KL divergence from the old policy at each candidate (nats)",
        ),
        InputSpec::new("old_surrogate", Domain::Real, &[&[]], "surrogate objective at the old parameters"),
        EXPECTED,
    ],
    params: &[
        ParamSpec::number("max_kl", r"\delta", 0.01, Range::POSITIVE, "limit of the mean KL divergence (nats)"),
        ParamSpec::number(
            "backtrack_ratio",
            r"\nu",
            0.8,
            Range::open(0.0, 1.0, "in (0, 1)"),
            "what each candidate's step is of the one before",
        ),
        ParamSpec::number(
            "accept_ratio",
            r"\alpha",
            0.0,
            Range::UNIT,
            "share of the linear model's improvement that is asked for",
        ),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("step_fraction", &[], "share of the whole step that is taken; 0 where none is accepted"),
        OutputSpec::value("accepted", &[], "1 where a candidate is accepted, else 0"),
        OutputSpec::value("candidate", &[], "index of the accepted candidate; their number where none is"),
        OutputSpec::value("improvement", &[], "its improvement of the surrogate; 0 where none is accepted"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn the_first_that_improves_within_the_limit() {
        let case = Case::new(SPECS, "trust_region.line_search")
            .real("surrogate", &[4], &[f64::NAN, 3.0, 1.5, 1.25])
            .real("kl", &[4], &[9.0, 0.5, 0.125, 0.0625])
            .real("old_surrogate", &[], &[1.0])
            .number("max_kl", 0.25)
            .number("backtrack_ratio", 0.5);
        assert_eq!(case.get("step_fraction").unwrap(), [0.25]);
        assert_eq!(case.get("candidate").unwrap(), [2.0]);
        assert_eq!(case.get("improvement").unwrap(), [0.5]);
        // ¾ of the linear model's 4 · ¼ = 1 is asked for at candidate 2, ¾ · ½ at candidate 3.
        let strict = case.real("expected_improvement", &[], &[4.0]).number("accept_ratio", 0.75);
        assert_eq!(strict.get("accepted").unwrap(), [0.0]);
        assert_eq!(strict.get("step_fraction").unwrap(), [0.0]);
        assert_eq!(strict.get("candidate").unwrap(), [4.0]);
    }
}

//! The n-step target.

use crate::Error;
use crate::num::{Real, tree_sum_by};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};
use crate::td::transition::{
    DISCOUNT, ERROR_LOSS, Estimate, HUBER_THRESHOLD, LOSS, TARGET, TD_ERROR, WEIGHT, at, ended, finite, learn,
};

/// γ⁰, γ¹, … one factor at a time.
fn power<R: Real>(base: R, exponent: usize) -> R {
    (0..exponent).fold(R::one(), |product, _| product * base)
}

/// The n-step target r₀ + γr₁ + … + γ^(m−1) r_(m−1) + γ^m·bootstrap over the m rewards of the window; without bootstrap
/// where the episode ended inside it.
///
/// ```
/// use plumbline_core::td::n_step::n_step_target;
/// assert_eq!(n_step_target(&[1.0, 2.0, 3.0], 0.5, Some(8.0)), 3.75);
/// assert_eq!(n_step_target(&[1.0, 2.0], 0.5, None), 2.0);
/// ```
pub fn n_step_target<R: Real>(rewards: &[R], discount: R, bootstrap: Option<R>) -> R {
    let sum = tree_sum_by(rewards.len(), |step| power(discount, step) * at(rewards, step));
    match bootstrap {
        Some(value) => sum + power(discount, rewards.len()) * value,
        None => sum,
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let discount: R = call.number("discount")?;
    let (rewards, bootstrap) = (call.real("reward")?, call.real("bootstrap_value")?);
    let (done, present) = (call.optional_bytes("done"), call.optional_bytes("mask"));
    let steps = call.dim("S");
    learn(call, Estimate::Value, |_, n| {
        // The window runs to the first end or to the first absent step, whichever comes first.
        let (mut length, mut over) = (0, false);
        while length < steps && !over {
            let slot = n * steps + length;
            if present.is_some_and(|bytes| bytes.get(slot) == Some(&0)) {
                break;
            }
            finite("reward", rewards, slot)?;
            over = ended(done, slot);
            length += 1;
        }
        if length == 0 {
            return Err(Error::EmptyMask { argument: "mask" });
        }
        let window = crate::batch::row_of(rewards, steps, n).get(..length).unwrap_or(&[]);
        let value = if over { None } else { Some(finite("bootstrap_value", bootstrap, n)?) };
        Ok(n_step_target(window, discount, value))
    })
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "td.n_step",
    family: Family::TemporalDifference,
    title: "n-step target",
    summary: "Rewards of a window, discounted, and beyond it the discounted bootstrap value.",
    formula: r"y = \sum_{k=0}^{m-1}\gamma^k r_k + \gamma^m(1 - d)\,V(s_m),\quad \delta = y - V(s_0),\quad L = \frac1N\sum w\,\ell(\delta)",
    gradient: r"\partial L/\partial V(s_0) = -\frac{w}{N}\,\ell'(\delta)",
    notes: "The bootstrap value is what the method at hand takes: V, Q(s, a), the maximum, double Q's, the policy's mean. The \
            power of γ is the number m of rewards really in the window: it is shorter where the episode ends inside (then \
            without bootstrap) or where the mask cuts it (then with). No dialects.",
    sources: &[Source {
        title: "Reinforcement Learning: An Introduction, 2nd edition",
        reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
        place: "Eq. 7.1",
    }],
    inputs: &[
        InputSpec::new("value", Domain::Value, &[&["N"]], "estimate at the window's first state, the one that learns"),
        InputSpec::new("reward", Domain::Reward, &[&["N", "S"]], "rewards of each window, in time"),
        InputSpec::new("bootstrap_value", Domain::Value, &[&["N"]], "value of the state after the window, a constant"),
        InputSpec::new("done", Domain::Done, &[&["N", "S"]], "1 where the episode ended with that step").optional(),
        InputSpec::new(
            "mask",
            Domain::Mask,
            &[&["N", "S"]],
            "1 where the window has that step; it starts with at least one",
        )
        .optional(),
        WEIGHT,
    ],
    params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
    defaults: &[],
    outputs: &[
        LOSS,
        TARGET,
        TD_ERROR,
        OutputSpec::gradient("d_value", "value", &["N"], "derivative of the loss by each value"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn powers_follow_the_window() {
        let case = Case::new(SPECS, "td.n_step")
            .real("value", &[3], &[0.0; 3])
            .real("reward", &[3, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, f64::NAN, 1.0, 2.0, f64::NAN])
            .real("bootstrap_value", &[3], &[10.0, 10.0, f64::NAN])
            .mask("done", &[3, 3], &[0, 0, 0, 0, 0, 0, 0, 1, 1])
            .mask("mask", &[3, 3], &[1, 1, 1, 1, 1, 0, 1, 1, 1])
            .number("discount", 0.9);
        let got = case.get("target").unwrap();
        // 1 + 1.8 + 2.43 + 7.29; 1 + 1.8 + 8.1; 1 + 1.8.
        for (got, expected) in got.iter().zip([12.52, 10.9, 2.8]) {
            assert!((got - expected).abs() < 1e-14, "{got} is not {expected}");
        }
        case.check_gradient("value");
        let empty = case.mask("mask", &[3, 3], &[0; 9]).get("target");
        assert_eq!(empty, Err(Error::EmptyMask { argument: "mask" }));
    }
}

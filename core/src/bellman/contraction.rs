//! How much a Bellman operator brings two value functions together.

use super::mdp::{
    DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, TRANSITION, VALUE, checked_policy, max_distance,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// ‖T v − T w‖∞ of the expectation operator of a policy [S, A], or of the optimality operator without one.
///
/// ```
/// use plumbline_core::bellman::{contraction::distance_after, mdp::{Mdp, Rewards, Transitions}};
/// let mdp = Mdp::new([1, 1], Transitions::Dense(&[1.0]), Rewards::PerAction(&[1.0]), None, 0.5)?;
/// assert_eq!(distance_after(&mdp, None, &[4.0], &[-2.0]), 3.0);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn distance_after<R: Real>(mdp: &Mdp<'_, R>, policy: Option<&[R]>, value: &[R], other: &[R]) -> R {
    (0..mdp.states()).fold(R::zero(), |largest, state| {
        let [a, b] = [value, other].map(|value| match policy {
            Some(policy) => mdp.state_value(state, policy, value),
            None => mdp.best_action(state, value).1,
        });
        (a - b).abs().larger(largest)
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, value, other) = (Mdp::from_call(call)?, call.finite(VALUE.name)?, call.finite("other_value")?);
    let policy = if call.has(POLICY.name) { Some(checked_policy(call)?) } else { None };
    // Values of opposite sign at the end of the range are farther apart than a number can tell.
    let [before, after] =
        [max_distance(value, other), distance_after(&mdp, policy, value, other)].map(|d| d.smaller(R::max_value()));
    call.write("ratio", if before == R::zero() { R::zero() } else { after / before });
    call.write("distance_before", before);
    call.write("distance_after", after);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.contraction",
    family: Family::Bellman,
    title: "Contraction of a Bellman operator",
    summary: "The factor by which one backup brings two value functions closer in the max norm.",
    formula: r"\frac{\lVert T v - T w\rVert_\infty}{\lVert v - w\rVert_\infty} \le \gamma",
    gradient: "",
    notes: "Of the policy's expectation operator, or of the optimality operator without a policy. Equal value functions give \
            ratio 0. Rounding may put the ratio above γ by a few ulp of the values over their distance. No library differs.",
    sources: &[Source {
        title: "Markov Decision Processes: Discrete Stochastic Dynamic Programming",
        reference: "Puterman 1994, ISBN 978-0-471-72782-8",
        place: "Proposition 6.2.4",
    }],
    inputs: &[
        TRANSITION,
        REWARD,
        VALUE,
        InputSpec::new("other_value", Domain::Value, &[&["S"]], "the other value of each state"),
        POLICY.optional(),
        NEXT_STATE,
        ROW_START,
        DONE,
    ],
    params: &[DISCOUNT],
    defaults: &[],
    outputs: &[
        OutputSpec::value("ratio", &[], "distance after the backup over distance before; 0 of equal values"),
        OutputSpec::value("distance_before", &[], "largest difference of the two value functions"),
        OutputSpec::value("distance_after", &[], "largest difference of their backups"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::mdp::testing::processes;
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn by_hand_with_and_without_policy() {
        let case = Case::new(SPECS, "bellman.contraction")
            .real("transition", &[2, 2, 2], &[0.5, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
            .real("reward", &[2, 2], &[2.0, 7.0, 4.0, -1.0])
            .real("value", &[2], &[8.0, 4.0])
            .real("other_value", &[2], &[0.0, 0.0])
            .number("discount", 0.5);
        // T*: [9, 8] against [7, 4]; the even policy's [7, 5.5] against [4.5, 1.5].
        assert_eq!(case.get("distance_before").unwrap(), [8.0]);
        assert_eq!(case.get("distance_after").unwrap(), [4.0]);
        assert_eq!(case.get("ratio").unwrap(), [0.5]);
        let even = case.real("policy", &[2, 2], &[0.5; 4]);
        assert_eq!(even.get("distance_after").unwrap(), [4.0]);
        assert_eq!(even.real("other_value", &[2], &[8.0, 4.0]).get("ratio").unwrap(), [0.0]);
    }

    proptest! {
        #[test]
        fn never_more_than_the_discount(process in processes(), v in prop::array::uniform4(-9.0f64..9.0), w in prop::array::uniform4(-9.0f64..9.0)) {
            let mdp = process.view();
            let before = max_distance(&v[..process.states], &w[..process.states]);
            let after = distance_after(&mdp, None, &v, &w);
            prop_assert!(after <= process.discount * before + 64.0 * f64::EPSILON * 11.0);
        }
    }
}

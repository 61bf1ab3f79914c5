//! How often a policy is in each state.

use super::evaluate_direct::MATRIX;
use super::mdp::{
    DISCOUNT, DONE, Mdp, NEXT_STATE, POLICY, REWARD, ROW_START, TRANSITION, at, check_distribution, checked_policy,
};
use super::policy_model::{add_successors, evaluation_system};
use crate::Error;
use crate::num::{Real, solve_linear, tree_sum};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, choice, evaluate_with,
};

choice! {
    /// What is measured.
    pub enum Occupancy {
        /// (1 − γ) Σ_t γᵗ P(s_t = s).
        Discounted = "discounted",
        /// Σ_t γᵗ P(s_t = s).
        Visits = "visits",
        /// The share of visits, which sums to 1.
        Share = "share",
        /// The distribution that a step leaves as it is.
        Stationary = "stationary",
    }
}

/// η(s) = Σ_t γᵗ P(s_t = s, no end before t) = ((I − γ(1 − done) P_πᵀ)⁻¹ μ)(s): discounted visits (Sutton & Barto 2018, Eq. 9.2).
///
/// `policy(s, a)` are the probabilities; `visits` \[S\] holds the start distribution μ and receives η; `matrix` [S, S] is
/// workspace. With γ = 1 they are finite where every state reaches an end, else the error `Singular` of `transition`.
///
/// ```
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, occupancy::discounted_visits};
/// let (p, r) = ([0.0, 1.0, 0.0, 1.0], [0.0, 0.0]);
/// let mdp = Mdp::new([2, 1], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5)?;
/// let mut visits = [1.0, 0.0];
/// discounted_visits(&mdp, |_, _| 1.0, &mut [0.0; 4], &mut visits)?;
/// assert_eq!(visits, [1.0, 1.0]); // once; then ½ + ¼ + …
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn discounted_visits<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: impl Fn(usize, usize) -> R,
    matrix: &mut [R],
    visits: &mut [R],
) -> Result<(), Error> {
    evaluation_system(mdp, policy, true, matrix);
    solve_linear(TRANSITION.name, matrix, visits)
}

/// d = Pᵀd, Σ d = 1, where an episode's end (and missing mass) is followed by a start: the stationary distribution.
///
/// `start` \[S\] is μ; `distribution` \[S\] receives d; `matrix` [S, S] is workspace. The last equation is replaced by Σ d = 1.
/// The error `Singular` of `transition` where it is not unique.
///
/// ```
/// use plumbline_core::bellman::{mdp::{Mdp, Rewards, Transitions}, occupancy::stationary_distribution};
/// let (p, r) = ([0.5, 0.5, 1.0, 0.0], [0.0, 0.0]);
/// let mdp = Mdp::new([2, 1], Transitions::Dense(&p), Rewards::PerAction(&r), None, 0.5)?;
/// let mut d = [0.0f64; 2];
/// stationary_distribution(&mdp, |_, _| 1.0, &[1.0, 0.0], &mut [0.0; 4], &mut d)?;
/// assert!((d[0] - 2.0 / 3.0).abs() < 1e-15 && (d[1] - 1.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn stationary_distribution<R: Real>(
    mdp: &Mdp<'_, R>,
    policy: impl Fn(usize, usize) -> R,
    start: &[R],
    matrix: &mut [R],
    distribution: &mut [R],
) -> Result<(), Error> {
    let states = mdp.states();
    matrix.fill(R::zero());
    for state in 0..states {
        let mut add = |next: usize, weight: R| {
            if let Some(element) = matrix.get_mut(next * states + state) {
                *element += weight;
            }
        };
        let mut goes_on = R::zero();
        let kept = |slot: usize| if mdp.ends(slot) { R::zero() } else { R::one() };
        add_successors(
            mdp,
            state,
            |action| policy(state, action),
            kept,
            |next, weight| {
                goes_on += weight;
                add(next, weight);
            },
        );
        // What does not go on starts again; rounding must not make it negative.
        let restarts = (R::one() - goes_on).larger(R::zero());
        for (next, probability) in start.iter().enumerate() {
            add(next, restarts * *probability);
        }
        add(state, -R::one());
    }
    for (state, slot) in distribution.iter_mut().enumerate() {
        let last = state + 1 == states;
        *slot = if last { R::one() } else { R::zero() };
        if let Some(element) = matrix.get_mut((states - 1) * states + state) {
            *element = R::one();
        }
    }
    solve_linear(TRANSITION.name, matrix, distribution)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mdp, policy) = (Mdp::from_call(call)?, checked_policy(call)?);
    let start = start_distribution(call)?;
    let kind: Occupancy = call.choice("occupancy_kind")?;
    let (occupancy, matrix) = (call.workspace("occupancy")?, call.workspace(MATRIX.name)?);
    let probability = |state: usize, action: usize| at(policy, state * mdp.actions() + action);
    if kind == Occupancy::Stationary {
        stationary_distribution(&mdp, probability, start, matrix, occupancy)?;
    } else {
        occupancy.iter_mut().zip(start).for_each(|(slot, start)| *slot = *start);
        discounted_visits(&mdp, probability, matrix, occupancy)?;
        let total = tree_sum(occupancy);
        for slot in occupancy.iter_mut() {
            *slot = match kind {
                Occupancy::Discounted => *slot * (R::one() - mdp.discount()),
                Occupancy::Share => *slot / total,
                Occupancy::Visits | Occupancy::Stationary => *slot,
            };
        }
    }
    if let Some(pairs) = call.output("action_occupancy") {
        for (pair, slot) in pairs.iter_mut().enumerate() {
            *slot = at(occupancy, mdp.pair(pair).0) * at(policy, pair);
        }
    }
    Ok(())
}

/// The checked start distribution of a call; an error where nothing starts.
pub(super) fn start_distribution<'a, R: Real>(call: &Call<'a, R>) -> Result<&'a [R], Error> {
    let start = call.real(START.name)?;
    check_distribution(START.name, 0, start)?;
    if start.iter().all(|probability| *probability == R::zero()) {
        return Err(Error::EmptyMask { argument: START.name });
    }
    Ok(start)
}

/// μ.
pub(super) const START: InputSpec = InputSpec::new(
    "start_distribution",
    Domain::Probability,
    &[&["S"]],
    "probability of each state at the start of an episode",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "bellman.occupancy",
    family: Family::Bellman,
    title: "State occupancy of a policy",
    summary: "How often a policy is in each state: discounted, as visits per episode, as a share of them, or in the long run.",
    formula: r"\eta = (I - \gamma(1 - d)P_\pi^\top)^{-1}\mu,\quad d_\gamma = (1 - \gamma)\,\eta,\quad
\frac{\eta}{\sum_s \eta(s)},\quad d_\pi = P_\pi^\top d_\pi",
    gradient: "",
    notes: "`visits` is η, what the policy-gradient theorem weighs states by; `discounted` sums to 1 where no episode ends, `share` \
            always does (to the sum of μ). `stationary` does not look at the discount; an end is followed by a start, and a chain \
            with several closed classes is `Singular`. No library differs.",
    sources: &[
        Source {
            title: "Reinforcement Learning: An Introduction, 2nd edition",
            reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
            place: "Eq. 9.2-9.3; section 10.3 (stationary)",
        },
        Source {
            title: "Policy Gradient Methods for Reinforcement Learning with Function Approximation",
            reference: "Sutton et al. 2000, Advances in Neural Information Processing Systems 12",
            place: "Theorem 1, the weighting of states",
        },
    ],
    inputs: &[TRANSITION, REWARD, POLICY, START, NEXT_STATE, ROW_START, DONE],
    params: &[
        DISCOUNT,
        ParamSpec::choice(
            "occupancy_kind",
            Occupancy::Discounted.name(),
            Occupancy::NAMES,
            "discounted, visits, share (of the visits) or stationary",
        ),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("occupancy", &["S"], "occupancy of each state").workspace(),
        OutputSpec::value("action_occupancy", &["S", "A"], "occupancy of each state and action"),
        MATRIX,
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::super::evaluate_direct::evaluate_direct;
    use super::super::mdp::testing::{policy, processes};
    use super::super::mdp::{Rewards, Transitions};
    use super::super::policy_model::policy_reward;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_closed_classes_have_no_stationary_distribution() {
        let mdp = Mdp::new([2, 1], Transitions::Dense(&[1.0, 0.0, 0.0, 1.0]), Rewards::PerAction(&[0.0; 2]), None, 0.5)
            .unwrap();
        let result = stationary_distribution(&mdp, |_, _| 1.0, &[1.0, 0.0], &mut [0.0; 4], &mut [0.0; 2]);
        assert!(matches!(result, Err(Error::Singular { argument: "transition", .. })));
    }

    proptest! {
        #[test]
        fn visits_times_rewards_are_the_value_of_the_start(process in processes(), seed in prop::collection::vec(0.0f64..1.0, 12)) {
            let (mdp, policy) = (process.view(), policy(&process, &seed));
            let states = process.states;
            let probability = |s: usize, a: usize| policy[s * process.actions + a];
            let (mut matrix, mut value, mut visits) = ([0.0; 16], [0.0; 4], [0.0; 4]);
            visits[states - 1] = 1.0;
            evaluate_direct(&mdp, probability, &mut matrix[..states * states], &mut value[..states]).unwrap();
            discounted_visits(&mdp, probability, &mut matrix[..states * states], &mut visits[..states]).unwrap();
            let total: f64 = (0..states).map(|s| visits[s] * policy_reward(&mdp, s, |a| probability(s, a))).sum();
            // Both are below 100; the eliminations' errors are amplified by at most 50.
            prop_assert!((total - value[states - 1]).abs() < 50.0 * 256.0 * f64::EPSILON * 100.0);
        }

        #[test]
        fn a_step_leaves_the_stationary_distribution_as_it_is(
            weights in prop::collection::vec(0.1f64..1.0, 9), ends in prop::collection::vec(0u8..2, 9)
        ) {
            let mut p = weights;
            for row in p.chunks_mut(3) {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
            }
            let mdp = Mdp::new([3, 1], Transitions::Dense(&p), Rewards::PerAction(&[0.0; 3]), Some(&ends), 0.5).unwrap();
            let (start, mut d) = ([0.25, 0.25, 0.5], [0.0; 3]);
            stationary_distribution(&mdp, |_, _| 1.0, &start, &mut [0.0; 9], &mut d).unwrap();
            prop_assert!((d.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            for next in 0..3 {
                let step: f64 = (0..3)
                    .map(|s| {
                        let ended: f64 = (0..3).filter(|n| ends[3 * s + n] != 0).map(|n| p[3 * s + n]).sum();
                        let on = if ends[3 * s + next] != 0 { 0.0 } else { p[3 * s + next] };
                        d[s] * (on + ended * start[next])
                    })
                    .sum();
                prop_assert!((step - d[next]).abs() < 1e-13);
            }
        }
    }
}

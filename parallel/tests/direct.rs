//! The library's solution agrees with the core's elimination.
#![cfg(feature = "nalgebra")]

use plumbline_core::Error;
use plumbline_core::bellman::evaluate_direct::evaluate_direct as by_elimination;
use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions, max_distance};
use plumbline_parallel::direct::evaluate_direct;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn both_solutions_agree(
        states in 1usize..40,
        seed in proptest::collection::vec(0.01f64..1.0, 40 * 40 * 2),
        reward in proptest::collection::vec(-1.0f64..1.0, 40 * 2),
        discount in 0.0f64..0.99,
    ) {
        let mut probability = seed[..states * 2 * states].to_vec();
        for row in probability.chunks_mut(states) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        let rewards = Rewards::PerAction(&reward[..states * 2]);
        let mdp = Mdp::new([states, 2], Transitions::Dense(&probability), rewards, None, discount).unwrap();
        let policy = |_: usize, action: usize| [0.25, 0.75][action];
        let (mut theirs, mut ours) = (vec![0.0; states], vec![0.0; states]);
        evaluate_direct(&mdp, policy, &mut theirs).unwrap();
        by_elimination(&mdp, policy, &mut vec![0.0; states * states], &mut ours).unwrap();
        // Backward errors of about n·ε·‖A‖ with ‖A‖ < 2, amplified by ‖A⁻¹‖ ≤ 1/(1 − γ), on values of at most 1/(1 − γ).
        let bound = 8.0 * states as f64 * f64::EPSILON * 2.0 / ((1.0 - discount) * (1.0 - discount));
        prop_assert!(max_distance(&theirs, &ours) <= bound);
    }
}

#[test]
fn by_hand_and_without_a_solution() {
    let (p, r) = ([0.0, 1.0, 0.0, 1.0], [1.0, 2.0]);
    let mdp = |discount| Mdp::new([2, 1], Transitions::Dense(&p), Rewards::PerAction(&r), None, discount).unwrap();
    let mut value = [0.0; 2];
    evaluate_direct(&mdp(0.5), |_, _| 1.0, &mut value).unwrap();
    assert_eq!(value, [3.0, 4.0]); // 2/(1 − ½) = 4; 1 + ½·4 = 3
    let endless = evaluate_direct(&mdp(1.0), |_, _| 1.0, &mut value);
    assert_eq!(endless, Err(Error::Singular { argument: "transition", index: 1 }));
    let short = evaluate_direct(&mdp(0.5), |_, _| 1.0, &mut value[..1]);
    assert_eq!(short, Err(Error::LengthMismatch { argument: "value", expected: 2, got: 1 }));
}

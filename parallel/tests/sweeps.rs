//! Sweeps on threads have the bits of the core's.
#![cfg(feature = "rayon")]

use plumbline_core::bellman::evaluate_iterative::evaluate_iterative;
use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions};
use plumbline_core::bellman::modified_policy_iteration::modified_policy_iteration;
use plumbline_core::bellman::sweep::{Stopping, sweep};
use plumbline_core::bellman::value_iteration::value_iteration;

const STATES: usize = 9001;
const ACTIONS: usize = 3;

/// A process whose pairs have 0 to 5 successors, rewards and ends per transition.
struct Process {
    row_start: Vec<u32>,
    next_state: Vec<u32>,
    probability: Vec<f64>,
    reward: Vec<f64>,
    done: Vec<u8>,
}

impl Process {
    fn new() -> Self {
        let noise = |index: usize, factor: usize| (index * factor % 10_007) as f64 / 10_007.0;
        let mut row_start = Vec::new();
        let mut counts = Vec::new();
        let mut entries = 0;
        for pair in 0..STATES * ACTIONS {
            row_start.push(entries as u32);
            counts.extend(std::iter::repeat_n(pair % 6, pair % 6));
            entries += pair % 6;
        }
        Process {
            row_start,
            next_state: (0..entries).map(|entry| (entry * 7919 % STATES) as u32).collect(),
            probability: (0..entries).map(|entry| (0.1 + 0.9 * noise(entry, 4999)) / counts[entry] as f64).collect(),
            reward: (0..entries).map(|entry| noise(entry, 6007) - 0.5).collect(),
            done: (0..entries).map(|entry| u8::from(entry % 13 == 5)).collect(),
        }
    }

    fn transitions(&self) -> Transitions<'_, f64> {
        Transitions::Sparse { row_start: &self.row_start, next_state: &self.next_state, probability: &self.probability }
    }

    fn view(&self) -> Mdp<'_, f64> {
        let reward = Rewards::PerTransition(&self.reward);
        Mdp::new([STATES, ACTIONS], self.transitions(), reward, Some(&self.done), 0.9375).unwrap()
    }

    /// With mean rewards and without ends, which sweeps take another way.
    fn plain(&self) -> Mdp<'_, f64> {
        let reward = Rewards::PerAction(self.reward.get(..STATES * ACTIONS).unwrap());
        Mdp::new([STATES, ACTIONS], self.transitions(), reward, None, 0.9375).unwrap()
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

#[test]
fn iterations_have_the_bits_of_the_core_on_any_number_of_threads() {
    let process = Process::new();
    for mdp in [process.view(), process.plain()] {
        iterations_have_the_bits_of_the_core(mdp);
    }
}

fn iterations_have_the_bits_of_the_core(mdp: Mdp<'_, f64>) {
    let policy: Vec<f64> = (0..STATES * ACTIONS).map(|pair| [0.5, 0.125, 0.375][pair % ACTIONS]).collect();
    let stopping = Stopping { tolerance: 1e-9, limit: 40 };
    let (mut best, mut best_before) = (vec![0.0; STATES], vec![0.0; STATES]);
    let best_outcome = value_iteration(&mdp, &mut best, Some(&mut best_before), stopping);
    let (mut kept, mut kept_before) = (vec![0.0; STATES], vec![0.0; STATES]);
    let kept_outcome = evaluate_iterative(&mdp, &policy, &mut kept, Some(&mut kept_before), stopping);
    let (mut turned, mut turned_before) = (vec![0.0; STATES], vec![0.0; STATES]);
    let turned_outcome =
        modified_policy_iteration(&mdp, &mut turned, &mut turned_before, &mut vec![0.0; STATES], 4, stopping);
    assert!(best_outcome.iterations > 5 && kept_outcome.iterations > 5 && turned_outcome.iterations > 2);
    assert!(turned_outcome.iterations < best_outcome.iterations);
    assert!(best.iter().any(|value| *value > 0.1));
    for threads in [1, 2, 3, 7] {
        let (mut value, mut previous) = (vec![0.0; STATES], vec![0.0; STATES]);
        let outcome = on_threads(threads, || {
            plumbline_parallel::sweep::value_iteration(&mdp, &mut value, &mut previous, stopping)
        });
        assert_eq!(outcome, best_outcome);
        assert_eq!((bits(&value), bits(&previous)), (bits(&best), bits(&best_before)));
        let (mut value, mut previous) = (vec![0.0; STATES], vec![0.0; STATES]);
        let outcome = on_threads(threads, || {
            plumbline_parallel::sweep::modified_policy_iteration(&mdp, &mut value, &mut previous, 4, stopping)
        });
        assert_eq!(outcome, turned_outcome);
        assert_eq!((bits(&value), bits(&previous)), (bits(&turned), bits(&turned_before)));
        let (mut value, mut previous) = (vec![0.0; STATES], vec![0.0; STATES]);
        let outcome = on_threads(threads, || {
            plumbline_parallel::sweep::evaluate_iterative(&mdp, &policy, &mut value, &mut previous, stopping)
        });
        assert_eq!(outcome, kept_outcome);
        assert_eq!((bits(&value), bits(&previous)), (bits(&kept), bits(&kept_before)));
    }
}

#[test]
fn parts_of_any_size_have_the_bits_of_the_whole() {
    let process = Process::new();
    let mdp = process.view();
    let start: Vec<f64> = (0..STATES).map(|state| (state % 17) as f64 - 8.0).collect();
    let (mut whole, mut before) = (start.clone(), vec![0.0; STATES]);
    let residual = sweep(&mut whole, Some(&mut before), |state, values| mdp.best_action(state, values).1);
    assert!(residual > 1.0);
    for part in [0, 1, 7, 1000, 4096, STATES, 2 * STATES] {
        let (mut value, mut previous) = (start.clone(), vec![0.0; STATES]);
        let got = on_threads(3, || {
            plumbline_parallel::sweep::sweep(&mut value, &mut previous, part, |state, values| {
                mdp.best_action(state, values).1
            })
        });
        assert_eq!(got.to_bits(), residual.to_bits());
        assert_eq!((bits(&value), bits(&previous)), (bits(&whole), bits(&start)));
    }
}

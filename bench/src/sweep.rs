//! A sweep of value iteration over a sparse process: core beside a vectorised numpy sweep and one pass over the same arrays.

use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions};
use plumbline_core::bellman::sweep::synchronous_sweep;

use crate::Arguments;
use crate::batch::Random;
use crate::clock::Clock;
use crate::python::{Python, apart};
use crate::report::{Measured, against, measured_on, table};

const SCRIPT: &str = include_str!("../numpy_sweep.py");
const ACTIONS: usize = 4;
const SUCCESSORS: usize = 4;
const DISCOUNT: f64 = 0.99;

/// Measure, and return the table.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let states = arguments.rows.unwrap_or(1_000_000);
    let (pairs, entries) = (states * ACTIONS, states * ACTIONS * SUCCESSORS);
    let size = u32::try_from(entries).map_err(|_| "--rows: at most 2^28 states")?;
    let mut random = Random::new();
    let row_start: Vec<u32> = (0..size).step_by(SUCCESSORS).collect();
    // Anywhere: no successor is near its state.
    let next_state: Vec<u32> = (0..entries).map(|_| random.below(states) as u32).collect();
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| f64::from(random.between(0.0, 1.0))).collect() };
    let mut probability = draw(entries);
    for row in probability.chunks_mut(SUCCESSORS) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|probability| *probability /= sum);
    }
    let (reward, start_value) = (draw(pairs), draw(states));
    let mut numpy = match &arguments.python {
        Some(python) => {
            let bytes = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
            let arrays = [
                ("probability", bytes(&probability)),
                ("reward", bytes(&reward)),
                ("value", bytes(&start_value)),
                ("next_state", next_state.iter().flat_map(|state| state.to_le_bytes()).collect()),
            ];
            let settings = [states, ACTIONS, SUCCESSORS].map(|number| number.to_string());
            let settings = [&settings[..], &[DISCOUNT.to_string()]].concat();
            Some(Python::start(python, SCRIPT, &arrays, &settings)?)
        }
        None => None,
    };
    let transitions = Transitions::Sparse { row_start: &row_start, next_state: &next_state, probability: &probability };
    let mdp = Mdp::new([states, ACTIONS], transitions, Rewards::PerAction(&reward), None, DISCOUNT)
        .map_err(|error| error.to_string())?;
    let mut core = Measured::new("core, one thread");
    let mut threads = Measured::new("plumbline-parallel, all threads (wall clock)");
    let mut stream = Measured::new("one pass over the same arrays, one thread");
    let mut vectorised = Measured::new("numpy");
    let (mut value, mut previous) = (start_value.clone(), vec![0.0; states]);
    let (mut threaded, mut before) = (start_value.clone(), vec![0.0; states]);
    for round in 0..arguments.rounds {
        eprint!("\rround {} of {}", round + 1, arguments.rounds);
        value.copy_from_slice(&start_value);
        let start = Clock::start();
        let residual =
            synchronous_sweep(&mut value, &mut previous, |values, new| mdp.best_actions(0, values, new, |_, _| ()));
        core.add(start.elapsed());

        threaded.copy_from_slice(&start_value);
        let start = std::time::Instant::now();
        let other = plumbline_parallel::sweep::sweep_by_parts(
            &mut threaded,
            &mut before,
            &mut vec![(); states],
            plumbline_parallel::sweep::PART,
            |first, values, new, _| mdp.best_actions(first, values, new, |_, _| ()),
        );
        threads.add(start.elapsed());
        if threaded != value || residual != other {
            return Err("threads change the result".into());
        }

        let start = Clock::start();
        let words = [&row_start, &next_state].map(|array| array.iter().fold(0, |sum: u32, x| sum.wrapping_add(*x)));
        let numbers = [&probability, &reward, &start_value].map(|array| sum_of_bits(array));
        std::hint::black_box((words, numbers));
        previous.copy_from_slice(&start_value);
        std::hint::black_box(&mut previous);
        stream.add(start.elapsed());

        if let Some(numpy) = &mut numpy {
            vectorised.add(numpy.time("sweep")?);
        }
    }
    eprint!("\r{:30}\r", "");
    let mut text = format!(
        "A sweep of value iteration: {states} states × {ACTIONS} actions × {SUCCESSORS} successors anywhere, `f64`.\n\n"
    );
    let comparison = against(&core, &[&stream, &vectorised]) + &against(&threads, &[&stream, &vectorised]);
    text.push_str(&table(&[core, threads, stream, vectorised], entries, "a transition"));
    text.push_str(&comparison);
    let mut versions = None;
    if let Some(mut numpy) = numpy {
        numpy.stop()?;
        let bytes = numpy.array("swept")?;
        let theirs = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        let distance = apart(value.iter().copied(), theirs);
        text.push_str(&format!("\nSame numbers: at most {distance:.1e} of the largest apart.\n"));
        versions = Some(numpy.versions.clone());
    }
    text.push_str(&measured_on(versions.as_deref()));
    Ok(text)
}

/// What keeps it from the speed of the stream.
pub const LIMIT: &str = "\
The successors lie anywhere, so that each of their values is a load of its own from the third-level cache or beyond, where the
stream reads one after the other. Core fetches the values of 256 entries before it sums the first, so that as many loads as the
processor can have are on their way at once; that number, and the time of one, are the limit. It shares the cache with whatever
else the machine does: the fastest rounds say what the code takes, the median what the machine was doing.
";

/// Reads every number; as integers, so that the additions can be done in any order and the pass is limited by memory.
fn sum_of_bits(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(value.to_bits()))
}

//! Policy evaluation and Q-learning on a microcontroller with 32 KiB of flash and 8 KiB of memory.
//!
//! The world is the 4 × 4 grid of Sutton and Barto, example 4.1: every step costs 1, the two corners end the episode, a step
//! into the wall stays. The random policy is evaluated by sweeps; then Q-learning finds the shortest ways.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hio};
use plumbline_core::bellman::evaluate_iterative::evaluate_iterative;
use plumbline_core::bellman::mdp::{Mdp, Rewards, Transitions};
use plumbline_core::bellman::sweep::Stopping;
use plumbline_core::td::q_learning::max_value;
use plumbline_core::td::transition::one_step_target;
use report::{Console, Stack};

const SIDE: usize = 4;
const STATES: usize = SIDE * SIDE;
const ACTIONS: usize = 4;
const PAIRS: usize = STATES * ACTIONS;

/// What the random policy's values are (Sutton and Barto, figure 4.1, in the limit), row by row.
const EXPECTED: [f32; STATES] =
    [0.0, -14.0, -20.0, -22.0, -14.0, -18.0, -20.0, -20.0, -20.0, -20.0, -18.0, -14.0, -22.0, -20.0, -14.0, 0.0];

unsafe extern "C" {
    /// Where the linker script's statics end.
    static mut __sheap: u32;
    /// Where the stack begins.
    static mut _stack_start: u32;
}

#[entry]
fn main() -> ! {
    // SAFETY: the linker script puts nothing but the stack between the end of the statics and the stack's start.
    let stack = unsafe { Stack::new(&raw mut __sheap, &raw mut _stack_start) };
    stack.paint();
    let mut output = hio::hstdout().ok();
    let mut put = |bytes: &[u8]| {
        if let Some(output) = &mut output {
            let _ = output.write_all(bytes);
        }
    };
    let mut console = Console::new(&mut put);
    let evaluated = evaluate(&mut console);
    let learned = learn(&mut console);
    console.write("stack ");
    console.write_number(stack.deepest());
    console.write("\n");
    debug::exit(if evaluated && learned { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {}
}

/// The state that a step leads to.
fn step(state: usize, action: usize) -> usize {
    let (row, column) = (state / SIDE, state % SIDE);
    match action {
        0 if row > 0 => state - SIDE,
        1 if column + 1 < SIDE => state + 1,
        2 if row + 1 < SIDE => state + SIDE,
        3 if column > 0 => state - 1,
        _ => state,
    }
}

fn ends(state: usize) -> bool {
    state == 0 || state == STATES - 1
}

fn evaluate(console: &mut Console<'_>) -> bool {
    let (mut row_start, mut next_state, mut reward, mut done) =
        ([0u32; PAIRS], [0u32; PAIRS], [-1.0f32; PAIRS], [0u8; PAIRS]);
    let entries = row_start.iter_mut().zip(&mut next_state).zip(reward.iter_mut().zip(&mut done)).enumerate();
    for (pair, ((start, next), (reward, done))) in entries {
        let (state, action) = (pair / ACTIONS, pair % ACTIONS);
        (*start, *next) = (pair as u32, step(state, action) as u32);
        if ends(state) {
            (*reward, *done) = (0.0, 1);
        }
    }
    let probability = [1.0f32; PAIRS];
    let transitions = Transitions::Sparse { row_start: &row_start, next_state: &next_state, probability: &probability };
    let rewards = Rewards::PerAction(&reward);
    let Ok(mdp) = Mdp::new([STATES, ACTIONS], transitions, rewards, Some(&done), 1.0) else { return false };
    let mut value = [0.0f32; STATES];
    let stopping = Stopping { tolerance: 1e-4, limit: 1000 };
    let outcome = evaluate_iterative(&mdp, &[0.25; PAIRS], &mut value, None, stopping);
    console.write("policy evaluation: ");
    console.write_number(outcome.iterations);
    console.write(" sweeps, bits of the values");
    for value in value {
        console.write(" ");
        console.write_hash(u64::from(value.to_bits()));
    }
    console.write("\n");
    // The last sweeps shrink the error by about 5 % each: it is below 20 times the last change.
    outcome.converged && value.iter().zip(EXPECTED).all(|(value, expected)| (value - expected).abs() < 2e-3)
}

fn learn(console: &mut Console<'_>) -> bool {
    let mut q = [[0.0f32; ACTIONS]; STATES];
    let mut noise = 1u32;
    let mut steps = 0usize;
    for episode in 0..200 {
        let mut state = 1 + episode % (STATES - 2);
        while !ends(state) && steps < 100_000 {
            // Any exploration will do: what is learned is the value of the best actions.
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            let action = (noise >> 8) as usize % ACTIONS;
            let next = step(state, action);
            let bootstrap = if ends(next) { None } else { q.get(next).map(|values| max_value(values)) };
            let target = one_step_target(-1.0, 1.0, bootstrap);
            if let Some(estimate) = q.get_mut(state).and_then(|values| values.get_mut(action)) {
                *estimate += 0.5 * (target - *estimate);
            }
            state = next;
            steps += 1;
        }
    }
    console.write("Q-learning: ");
    console.write_number(steps);
    console.write(" steps\n");
    // The best value of a state is minus the number of steps to the nearer corner.
    q.iter().enumerate().filter(|(state, _)| !ends(*state)).all(|(state, values)| {
        let to_first = state / SIDE + state % SIDE;
        let distance = to_first.min(2 * (SIDE - 1) - to_first);
        (max_value(values) + distance as f32).abs() < 1e-3
    })
}

/// Nothing reaches this: the build looks for the names of what panics.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

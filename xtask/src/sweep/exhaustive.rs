//! The comparison itself, over all bit patterns, on several threads.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plumbline_core::num::Real;

/// Inputs are handed out in blocks of 2²⁰.
const BLOCK_BITS: u32 = 20;
const BLOCKS: u32 = 1 << (32 - BLOCK_BITS);
/// So many differing inputs are printed.
const SHOWN: usize = 20;

struct Function {
    name: &'static str,
    ours: fn(f32) -> f32,
    oracle: fn(f32) -> f32,
}

const FUNCTIONS: [Function; 2] = [
    Function { name: "exp", ours: <f32 as Real>::exp, oracle: core_math::expf },
    Function { name: "ln", ours: <f32 as Real>::ln, oracle: core_math::logf },
];

/// Compare every function on every input; true where none differs.
pub fn run(threads: Option<usize>) -> Result<bool, String> {
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()));
    let mut exact = true;
    for function in &FUNCTIONS {
        let start = Instant::now();
        let different = sweep(function, threads)?;
        println!(
            "{}: {} of 4294967296 inputs differ from the correctly rounded result ({:.0} s, {threads} threads)",
            function.name,
            different.len(),
            start.elapsed().as_secs_f64(),
        );
        for bits in different.iter().take(SHOWN) {
            let x = f32::from_bits(*bits);
            let (ours, oracle) = ((function.ours)(x).to_bits(), (function.oracle)(x).to_bits());
            println!("  {}({x:e} = {bits:#010x}): {ours:#010x}, correct {oracle:#010x}", function.name);
        }
        exact &= different.is_empty();
    }
    Ok(exact)
}

/// The inputs, in order, for which the bits differ; any NaN equals any NaN.
fn sweep(function: &Function, threads: usize) -> Result<Vec<u32>, String> {
    let next = AtomicU32::new(0);
    let mut different = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(function, &next))).collect();
        if std::io::stderr().is_terminal() {
            show_progress(function.name, &next);
        }
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| "a thread of the sweep panicked".to_string())?);
        }
        Ok::<_, String>(all)
    })?;
    different.sort_unstable();
    Ok(different)
}

fn work(function: &Function, next: &AtomicU32) -> Vec<u32> {
    let mut different = Vec::new();
    loop {
        let block = next.fetch_add(1, Ordering::Relaxed);
        if block >= BLOCKS {
            return different;
        }
        for low in 0..1 << BLOCK_BITS {
            let bits = block << BLOCK_BITS | low;
            let x = f32::from_bits(bits);
            let (ours, oracle) = ((function.ours)(x), (function.oracle)(x));
            if ours.to_bits() != oracle.to_bits() && !(ours.is_nan() && oracle.is_nan()) {
                different.push(bits);
            }
        }
    }
}

fn show_progress(name: &str, next: &AtomicU32) {
    loop {
        let done = next.load(Ordering::Relaxed).min(BLOCKS);
        eprint!("\r{name}: {:3} %", done * 100 / BLOCKS);
        if done == BLOCKS {
            eprint!("\r{:20}\r", "");
            return;
        }
        // A lost progress line is no reason to stop.
        let _ = std::io::stderr().flush();
        std::thread::sleep(Duration::from_millis(500));
    }
}

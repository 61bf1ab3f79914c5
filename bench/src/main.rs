//! Core beside the libraries' own functions and the machine's limits, on the same tensors in the same run, in turns.

mod batch;
mod clock;
mod gae;
mod logits;
mod ours;
mod python;
mod report;
mod sweep;
mod threads;
mod verl;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use plumbline_simd::Level;

use batch::Batch;
use clock::Clock;
use report::{Measured, Report};

/// Measure, print a table, and write it as a page of the book where asked.
#[derive(Parser)]
#[command(name = "cargo xtask bench", disable_version_flag = true)]
struct Arguments {
    /// What is measured.
    #[arg(value_enum, default_value = "ppo")]
    subject: Subject,
    /// Responses [256 for ppo, 1024 for gae, 64 for wasm]; rows [4096 for logits]; states [1000000 for sweep].
    #[arg(long)]
    rows: Option<usize>,
    /// Tokens of each; entries of a row [32000 for logits].
    #[arg(long)]
    columns: Option<usize>,
    /// Rounds; in each round everything is measured once, in turn.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// A Python with torch and verl (torch for logits, numpy for sweep); without it only core and the machine's limits are measured.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Write the result to this file as Markdown (all but wasm).
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// PPO with a k3 penalty: value and gradient.
    Ppo,
    /// Generalised advantage estimation.
    Gae,
    /// Log-probability, entropy and their gradient from logits.
    Logits,
    /// A sweep of value iteration over a sparse process.
    Sweep,
    /// PPO with a k3 penalty in the npm package (`cargo xtask wasm` builds it; needs Node.js).
    Wasm,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::from(1)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.rows == Some(0) || arguments.columns == Some(0) || arguments.rounds == 0 {
        return Err("--rows, --columns and --rounds are at least 1".into());
    }
    if arguments.page.is_some() && arguments.subject == Subject::Wasm {
        return Err("--page is for the subjects ppo, gae, logits and sweep".into());
    }
    let (text, page) = match arguments.subject {
        Subject::Ppo => return ppo(arguments),
        Subject::Wasm => return wasm::run(arguments).map(|text| print!("{text}")),
        Subject::Gae => {
            let text = gae::run(arguments)?;
            let page = report::page("gae", "generalised advantage estimation", &text, gae::LIMIT, "verl and torch");
            (text, page)
        }
        Subject::Logits => {
            let text = logits::run(arguments)?;
            let page = report::page("logits", "from logits", &text, logits::LIMIT, "torch");
            (text, page)
        }
        Subject::Sweep => {
            let text = sweep::run(arguments)?;
            let page = report::page("sweep", "a sweep over a sparse process", &text, sweep::LIMIT, "numpy");
            (text, page)
        }
    };
    print!("{text}");
    match &arguments.page {
        Some(path) => write(path, &page),
        None => Ok(()),
    }
}

/// PPO with a k3 penalty, value and gradient, one thread: core beside verl's own loss, a copy of the same bytes and bare
/// exponentials.
fn ppo(arguments: &Arguments) -> Result<(), String> {
    let batch = Batch::new(arguments.rows.unwrap_or(256), arguments.columns.unwrap_or(4096));
    let mut verl = match &arguments.python {
        Some(python) => Some(verl::Verl::start(python, &batch)?),
        None => None,
    };
    let levels: Vec<Level> = Level::supported().collect();
    let mut core: Vec<Measured> =
        levels.iter().map(|level| Measured::new(format!("core, {}: value and gradient", level.name()))).collect();
    let mut copy = Measured::new("copy of the same bytes");
    let mut exponentials = Measured::new("one exponential a token (core)");
    let mut eager = Measured::new("verl, eager");
    let mut compiled = Measured::new("verl, torch.compile");
    let best = Level::best();
    let mut on_threads = [1, 2]
        .map(|threads| Measured::new(format!("plumbline-parallel, {}, threads: {threads} (the busiest)", best.name())));
    let pools = [threads::pool(1)?, threads::pool(2)?];
    let mut gradient = vec![0.0; batch.tokens()];
    let mut loss = 0.0;
    let mut scratch = vec![0.0f32; batch.tokens()];
    for round in 0..arguments.rounds {
        eprint!("\rround {} of {}", round + 1, arguments.rounds);
        let mut first: Option<(f32, Vec<f32>)> = None;
        for (level, measured) in levels.iter().zip(&mut core) {
            let start = Clock::start();
            loss = ours::ppo_with_k3(*level, &batch, &mut gradient)?;
            measured.add(start.elapsed());
            match &first {
                None => first = Some((loss, gradient.clone())),
                Some(first) if *first == (loss, gradient.clone()) => {}
                Some(_) => return Err(format!("{} has other bits", level.name())),
            }
        }

        for (pool, measured) in pools.iter().zip(&mut on_threads) {
            let (result, time) = threads::busiest(pool, || ours::ppo_with_k3_on_threads(best, &batch, &mut gradient));
            loss = result?;
            measured.add(time);
            if first.as_ref().is_some_and(|first| *first != (loss, gradient.clone())) {
                return Err("a number of threads has other bits".into());
            }
        }

        let start = Clock::start();
        ours::copy(&batch, &gradient, &mut scratch);
        copy.add(start.elapsed());

        let start = Clock::start();
        ours::exponentials(&batch.old_log_prob, &mut scratch);
        exponentials.add(start.elapsed());

        if let Some(verl) = &mut verl {
            eager.add(verl.time("eager")?);
            compiled.add(verl.time("compile")?);
        }
    }
    eprint!("\r{:30}\r", "");
    let agreement = match verl {
        Some(verl) => Some(verl.finish(loss, &gradient)?),
        None => None,
    };
    core.extend([eager, compiled, exponentials, copy]);
    core.extend(on_threads);
    let report = Report::new(&batch, arguments.rounds, levels.len(), &core, agreement);
    print!("{}", report.table());
    if let Some(page) = &arguments.page {
        write(page, &report.page())?;
    }
    Ok(())
}

fn write(page: &Path, text: &str) -> Result<(), String> {
    std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()))
}

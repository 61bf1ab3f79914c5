//! Log-probability, entropy and their gradient from logits: core at every level, and on two threads, beside torch's and one
//! read and one write of the matrix.

use plumbline_core::Error;
use plumbline_core::engine::Engine;
use plumbline_core::logits::token::{TokenLogits, TokenOutputs};
use plumbline_parallel::threads::Threads;
use plumbline_simd::{Level, Task, token_logits};

use crate::Arguments;
use crate::batch::Random;
use crate::clock::Clock;
use crate::python::{Python, apart, bytes_f32, numbers_f32};
use crate::report::{Measured, against, measured_on, table};
use crate::threads::{busiest, pool};

const SCRIPT: &str = include_str!("../torch_logits.py");

/// The results of a pass.
#[derive(Clone, PartialEq)]
struct Results {
    log_prob: Vec<f32>,
    entropy: Vec<f32>,
    d_logits: Vec<f32>,
}

impl Results {
    fn new(rows: usize, width: usize) -> Self {
        Results { log_prob: vec![0.0; rows], entropy: vec![0.0; rows], d_logits: vec![0.0; rows * width] }
    }

    fn outputs(&mut self) -> TokenOutputs<'_, f32> {
        TokenOutputs {
            log_prob: Some(&mut self.log_prob),
            entropy: Some(&mut self.entropy),
            d_logits: Some(&mut self.d_logits),
        }
    }

    /// A number that another bit anywhere changes.
    fn fingerprint(&self) -> u64 {
        let all = self.log_prob.iter().chain(&self.entropy).chain(&self.d_logits);
        all.fold(0, |hash: u64, number| {
            (hash ^ u64::from(number.to_bits())).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
        })
    }
}

struct OnThreads<'t, 'i, 'o> {
    batch: &'t TokenLogits<'i, f32>,
    outputs: &'t mut TokenOutputs<'o, f32>,
}

impl Task for OnThreads<'_, '_, '_> {
    type Output = Result<(), Error>;

    fn run<E: Engine>(self, engine: E) -> Result<(), Error> {
        self.batch.evaluate_by(Threads::new(engine), self.outputs)
    }
}

/// Measure, and return the text.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let (rows, width) = (arguments.rows.unwrap_or(4096), arguments.columns.unwrap_or(32_000));
    let mut random = Random::new();
    let logits: Vec<f32> = (0..rows * width).map(|_| random.between(-8.0, 8.0)).collect();
    let action: Vec<u32> = (0..rows).map(|_| random.below(width) as u32).collect();
    let mut torch = match &arguments.python {
        Some(python) => {
            let action = action.iter().flat_map(|index| index.to_le_bytes()).collect();
            let arrays = [("logits", bytes_f32(&logits)), ("action", action)];
            Some(Python::start(python, SCRIPT, &arrays, &[rows.to_string(), width.to_string()])?)
        }
        None => None,
    };
    let batch = TokenLogits {
        logits: &logits,
        width,
        action: &action,
        mask: None,
        temperature: 1.0,
        log_prob_cotangent: None,
        entropy_cotangent: None,
    };
    let levels: Vec<Level> = Level::supported().collect();
    let name = |level: &Level| format!("core, {}", level.name());
    let mut core: Vec<Measured> = levels.iter().map(|level| Measured::new(name(level))).collect();
    let best = Level::best();
    let mut one = Measured::new(format!("plumbline-parallel, {}, one thread", best.name()));
    let mut two = Measured::new(format!("plumbline-parallel, {}, two threads", best.name()));
    let pools = [pool(1)?, pool(2)?];
    let mut eager = Measured::new("torch");
    let mut copy = Measured::new("one read and one write of the matrix");
    let mut results = Results::new(rows, width);
    for round in 0..arguments.rounds {
        eprint!("\rround {} of {}", round + 1, arguments.rounds);
        let mut first = None;
        let mut same = |results: &Results, who: &str| match *first.get_or_insert(results.fingerprint()) {
            fingerprint if fingerprint == results.fingerprint() => Ok(()),
            _ => Err(format!("{who} has other bits")),
        };
        for (level, measured) in levels.iter().zip(&mut core) {
            let start = Clock::start();
            token_logits(*level, &batch, &mut results.outputs()).map_err(|error| error.to_string())?;
            measured.add(start.elapsed());
            same(&results, level.name())?;
        }
        for (pool, measured) in pools.iter().zip([&mut one, &mut two]) {
            let mut outputs = results.outputs();
            let task = OnThreads { batch: &batch, outputs: &mut outputs };
            let (result, time) = busiest(pool, || best.run(task));
            result.map_err(|error| error.to_string())?;
            measured.add(time);
            same(&results, "a number of threads")?;
        }
        if let Some(torch) = &mut torch {
            eager.add(torch.time("eager")?);
        }
        // Last, as it overwrites the gradient.
        if round + 1 < arguments.rounds || torch.is_none() {
            let start = Clock::start();
            results.d_logits.copy_from_slice(&logits);
            std::hint::black_box(&mut results.d_logits);
            copy.add(start.elapsed());
        }
    }
    eprint!("\r{:30}\r", "");
    let mut text = format!(
        "Token log-probability, entropy and the gradient of both by the logits, {rows} × {width}, `f32`, {} rounds. One \
         thread where no number of threads is named; times are time on the processor, with several threads that of the \
         busiest. torch computes log_softmax, gather and entropy, and its autograd the gradient. All of ours have the same \
         bits.\n\n",
        arguments.rounds
    );
    let units = rows * width;
    let widest = core.len() - 1;
    let comparison = against(&core[widest], &[&eager, &copy]) + &against(&two, &[&one]);
    core.extend([one, two, eager, copy]);
    text.push_str(&table(&core, units, "an element"));
    text.push_str(&comparison);
    let mut versions = None;
    if let Some(mut torch) = torch {
        torch.stop()?;
        for (name, ours) in
            [("log_prob", &results.log_prob), ("entropy", &results.entropy), ("d_logits", &results.d_logits)]
        {
            let bytes = torch.array(name)?;
            let distance = apart(ours.iter().map(|x| f64::from(*x)), numbers_f32(&bytes).map(f64::from));
            text.push_str(&format!("\nSame numbers: {name} at most {distance:.1e} of the largest apart."));
        }
        text.push('\n');
        versions = Some(torch.versions.clone());
    }
    text.push_str(&measured_on(versions.as_deref()));
    Ok(text)
}

/// What keeps it from the speed of the memory.
pub const LIMIT: &str = "\
Each element takes two correctly rounded exponentials (one in the normaliser, one of its log-probability) and four divisions by
the temperature; a row of logits stays in the second-level cache between its passes, so that the matrix is read once and its
gradient written once. The arithmetic, not the memory, is the limit.
";

//! Generalised advantage estimation, one thread: core beside verl's and a copy of the arrays that each touches.

use plumbline_core::advantage::{Discount, Trajectories, gae};
use plumbline_core::batch::{Mask, TokenShape};
use plumbline_core::catalog;
use plumbline_core::spec::{Data, Given, GivenValue, Input, Output, evaluate};

use crate::Arguments;
use crate::batch::Random;
use crate::clock::Clock;
use crate::python::{Python, apart, bytes_f32, numbers_f32};
use crate::report::{Measured, against, measured_on, table};

const SCRIPT: &str = include_str!("../verl_gae.py");
const GAMMA: f32 = 0.99;
const LAMBDA: f32 = 0.95;

/// Measure, and return the table.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let (rows, columns) = (arguments.rows.unwrap_or(1024), arguments.columns.unwrap_or(4096));
    let slots = rows * columns;
    let mut random = Random::new();
    let mut draw = || -> Vec<f32> { (0..slots).map(|_| random.between(-1.0, 1.0)).collect() };
    let (reward, value) = (draw(), draw());
    let mask = vec![1; slots];
    let mut verl = match &arguments.python {
        Some(python) => {
            let arrays = [("reward", bytes_f32(&reward)), ("value", bytes_f32(&value))];
            let settings = [rows.to_string(), columns.to_string(), GAMMA.to_string(), LAMBDA.to_string()];
            Some(Python::start(python, SCRIPT, &arrays, &settings)?)
        }
        None => None,
    };
    let trajectories = Trajectories {
        mask: Mask::new(TokenShape { rows, columns }, None).map_err(|error| error.to_string())?,
        reward: &reward,
        discount: Discount::Constant(GAMMA),
        terminated: None,
        truncated: None,
        next_value: None,
        bootstrap_value: None,
    };
    let mut advantages = Measured::new("core: advantages");
    let mut masked = Measured::new("core: advantages, with a mask");
    let mut everything = Measured::new("core: mask, whitened advantages, returns (all that verl's does)");
    let mut copy = Measured::new("copy of reward, value, advantages");
    let mut copy_everything = Measured::new("copy of mask, reward, value, advantages, returns");
    let mut eager = Measured::new("verl");
    let (mut advantage, mut whitened, mut returns) = (vec![0.0f32; slots], vec![0.0f32; slots], vec![0.0f32; slots]);
    let (mut scratch, mut scratch_mask) = (vec![0.0f32; slots], vec![0u8; slots]);
    for round in 0..arguments.rounds {
        eprint!("\rround {} of {}", round + 1, arguments.rounds);
        let start = Clock::start();
        gae(&trajectories, &value, LAMBDA, &mut advantage).map_err(|error| error.to_string())?;
        advantages.add(start.elapsed());

        let start = Clock::start();
        for source in [&reward, &value, &advantage] {
            scratch.copy_from_slice(source);
            std::hint::black_box(&mut scratch);
        }
        copy.add(start.elapsed());

        let with_mask = Trajectories {
            mask: Mask::new(TokenShape { rows, columns }, Some(&mask)).map_err(|error| error.to_string())?,
            ..trajectories
        };
        let start = Clock::start();
        gae(&with_mask, &value, LAMBDA, &mut whitened).map_err(|error| error.to_string())?;
        masked.add(start.elapsed());
        if whitened != advantage {
            return Err("a mask of ones changes the advantages".into());
        }

        let start = Clock::start();
        as_verl(rows, columns, [&reward, &value], &mask, [&mut whitened, &mut returns])?;
        everything.add(start.elapsed());

        let start = Clock::start();
        for source in [&reward, &value, &whitened, &returns] {
            scratch.copy_from_slice(source);
            std::hint::black_box(&mut scratch);
        }
        scratch_mask.copy_from_slice(&mask);
        std::hint::black_box(&mut scratch_mask);
        copy_everything.add(start.elapsed());

        if let Some(verl) = &mut verl {
            eager.add(verl.time("eager")?);
        }
    }
    eprint!("\r{:30}\r", "");
    let mut text = format!("Generalised advantage estimation, {rows} × {columns}, `f32`, one thread.\n\n");
    let comparison = against(&advantages, &[&copy, &eager]) + &against(&everything, &[&copy_everything, &eager]);
    text.push_str(&table(&[advantages, masked, everything, copy, copy_everything, eager], slots, "a token"));
    text.push_str(&comparison);
    let mut versions = None;
    if let Some(mut verl) = verl {
        verl.stop()?;
        for (name, ours) in [("advantage", &whitened), ("returns", &returns)] {
            let bytes = verl.array(name)?;
            let distance = apart(ours.iter().map(|x| f64::from(*x)), numbers_f32(&bytes).map(f64::from));
            text.push_str(&format!("\nSame numbers: {name} at most {distance:.1e} of the largest apart."));
        }
        text.push('\n');
        versions = Some(verl.versions.clone());
    }
    text.push_str(&measured_on(versions.as_deref()));
    Ok(text)
}

/// What keeps it from the speed of the copy.
pub const LIMIT: &str = "\
A row's recursion waits for itself, two operations a token: core runs several rows side by side, so that the waiting of one is
the work of another. What is left is the memory's time.
";

/// What verl's function computes: returns, and advantages whitened over the mask.
fn as_verl(
    rows: usize,
    columns: usize,
    [reward, value]: [&[f32]; 2],
    mask: &[u8],
    [advantage, returns]: [&mut [f32]; 2],
) -> Result<(), String> {
    let operation = catalog::find("advantage.gae").ok_or("advantage.gae is not in the catalog")?;
    let shape = [rows, columns];
    let inputs = [
        Input { name: "reward", shape: &shape, data: Data::Real(reward) },
        Input { name: "value", shape: &shape, data: Data::Real(value) },
        Input { name: "mask", shape: &shape, data: Data::Mask(mask) },
    ];
    let given = [
        Given { name: "gamma", value: GivenValue::Number(f64::from(GAMMA)) },
        Given { name: "gae_lambda", value: GivenValue::Number(f64::from(LAMBDA)) },
    ];
    let mut outputs = [Output { name: "advantage", data: advantage }, Output { name: "returns", data: returns }];
    evaluate(operation, Some("verl-0.9"), &given, &inputs, &mut outputs).map_err(|error| error.to_string())
}

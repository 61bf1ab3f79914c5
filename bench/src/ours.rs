//! What is measured in this process.

use plumbline_core::catalog;
use plumbline_core::engine::Engine;
use plumbline_core::num::Real;
use plumbline_core::spec::{Data, Given, GivenValue, Input, Output, evaluate_by};
use plumbline_parallel::threads::Threads;
use plumbline_simd::{Level, Task};

use crate::batch::Batch;

/// Weight of the KL term, verl's default.
pub const KL_COEFFICIENT: f64 = 0.001;

/// The loss of PPO in verl's dialect with a k3 penalty, and its gradient.
pub fn ppo_with_k3(level: Level, batch: &Batch, gradient: &mut [f32]) -> Result<f32, String> {
    level.run(Ppo { batch, gradient, threads: false })
}

/// The same on the threads of the current pool.
pub fn ppo_with_k3_on_threads(level: Level, batch: &Batch, gradient: &mut [f32]) -> Result<f32, String> {
    level.run(Ppo { batch, gradient, threads: true })
}

struct Ppo<'t> {
    batch: &'t Batch,
    gradient: &'t mut [f32],
    threads: bool,
}

impl Task for Ppo<'_> {
    type Output = Result<f32, String>;

    fn run<E: Engine>(self, engine: E) -> Result<f32, String> {
        match self.threads {
            true => ppo(Threads::new(engine), self.batch, self.gradient),
            false => ppo(engine, self.batch, self.gradient),
        }
    }
}

fn ppo(engine: impl Engine, batch: &Batch, gradient: &mut [f32]) -> Result<f32, String> {
    let operation = catalog::find("objective.ppo").ok_or("objective.ppo is not in the catalog")?;
    let shape = [batch.rows, batch.columns];
    let real = |name, values| Input { name, shape: &shape, data: Data::Real(values) };
    let inputs = [
        real("log_prob", &batch.log_prob),
        real("old_log_prob", &batch.old_log_prob),
        real("ref_log_prob", &batch.ref_log_prob),
        real("advantage", &batch.advantage),
        Input { name: "mask", shape: &shape, data: Data::Mask(&batch.mask) },
    ];
    let given = [
        Given { name: "kl_coefficient", value: GivenValue::Number(KL_COEFFICIENT) },
        Given { name: "kl_estimator", value: GivenValue::Name("k3") },
    ];
    let mut loss = [0.0];
    let mut outputs = [Output { name: "loss", data: &mut loss }, Output { name: "d_log_prob", data: gradient }];
    evaluate_by(engine, operation, Some("verl-0.9"), &given, &inputs, &mut outputs)
        .map_err(|error| error.to_string())?;
    let [loss] = loss;
    Ok(loss)
}

/// Copy as many bytes as the loss reads and writes in `f32`: four inputs and the gradient.
pub fn copy(batch: &Batch, gradient: &[f32], target: &mut [f32]) {
    for source in [&batch.log_prob, &batch.old_log_prob, &batch.ref_log_prob, &batch.advantage, gradient] {
        target.copy_from_slice(source);
        std::hint::black_box(&mut *target);
    }
}

/// One exponential for each number.
pub fn exponentials(source: &[f32], target: &mut [f32]) {
    for (slot, x) in target.iter_mut().zip(source) {
        *slot = <f32 as Real>::exp(*x);
    }
    std::hint::black_box(target);
}

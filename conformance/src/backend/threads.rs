//! Core on several threads.

use std::cell::OnceCell;

use plumbline_core::Error;
use plumbline_core::engine::Portable;
use plumbline_core::num::Dtype;
use plumbline_core::spec::evaluate_by as core_evaluate_by;
use plumbline_evaluate::{Evaluator, Invocation, Outputs, Request, evaluate_by, operation_named};
use plumbline_parallel::threads::Threads;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::core::caught;
use super::{Backend, Failure};

/// `plumbline-parallel` with a number of threads and a size of parts.
#[derive(Debug)]
pub struct Parallel {
    name: &'static str,
    threads: usize,
    part: usize,
    pool: OnceCell<Result<ThreadPool, String>>,
}

impl Parallel {
    /// One thread and two, with parts small enough that the cases are divided; three with every row a part.
    pub fn all() -> impl Iterator<Item = Parallel> {
        [("threads-1", 1, 64), ("threads-2", 2, 64), ("threads-3-rows", 3, 0)]
            .into_iter()
            .map(|(name, threads, part)| Parallel { name, threads, part, pool: OnceCell::new() })
    }

    fn pool(&self) -> Result<&ThreadPool, String> {
        let build = || ThreadPoolBuilder::new().num_threads(self.threads).build().map_err(|error| error.to_string());
        self.pool.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

impl Backend for Parallel {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dtypes(&self) -> &'static [Dtype] {
        &[Dtype::F32, Dtype::F64]
    }

    fn ready(&self) -> Result<(), String> {
        self.pool().map(|_| ())
    }

    fn evaluate(&self, request: &Request<'_>) -> Result<Outputs, Failure> {
        let pool = self.pool().map_err(Failure::Broke)?;
        if operation_named(request.operation)?.evaluate.kernel.is_none() {
            return Err(Failure::Skipped("same path as core".to_owned()));
        }
        let engine = By(Threads::with_part(Portable, self.part));
        caught(|| pool.install(|| evaluate_by(&engine, request)))
    }
}

struct By(Threads<Portable>);

impl Evaluator for By {
    fn single(&self, call: Invocation<'_, '_, f32>) -> Result<(), Error> {
        core_evaluate_by(self.0, call.operation, call.dialect, call.given, call.inputs, call.outputs)
    }

    fn double(&self, call: Invocation<'_, '_, f64>) -> Result<(), Error> {
        core_evaluate_by(self.0, call.operation, call.dialect, call.given, call.inputs, call.outputs)
    }
}

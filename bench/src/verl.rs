//! verl's own loss, measured in a Python process.

use std::path::Path;
use std::time::Duration;

use crate::batch::Batch;
use crate::ours::KL_COEFFICIENT;
use crate::python::{Python, apart, bytes_f32, numbers_f32};

const SCRIPT: &str = include_str!("../verl_loss.py");

/// The process.
pub struct Verl(Python);

/// How far verl's numbers are from core's.
pub struct Agreement {
    /// Versions of verl and torch.
    pub versions: String,
    /// |loss − verl's loss| / |verl's loss|.
    pub loss: f64,
    /// Largest difference of a gradient element, relative to the largest element.
    pub gradient: f64,
}

impl Verl {
    /// Start it and wait until it has loaded (and compiled) everything.
    pub fn start(python: &Path, batch: &Batch) -> Result<Self, String> {
        let arrays = [
            ("log_prob", bytes_f32(&batch.log_prob)),
            ("old_log_prob", bytes_f32(&batch.old_log_prob)),
            ("ref_log_prob", bytes_f32(&batch.ref_log_prob)),
            ("advantage", bytes_f32(&batch.advantage)),
        ];
        let arguments = [batch.rows.to_string(), batch.columns.to_string(), KL_COEFFICIENT.to_string()];
        Python::start(python, SCRIPT, &arrays, &arguments).map(Verl)
    }

    /// One measurement of `eager` or `compile`.
    pub fn time(&mut self, what: &str) -> Result<Duration, String> {
        self.0.time(what)
    }

    /// End it and compare its last loss and gradient.
    pub fn finish(mut self, loss: f32, gradient: &[f32]) -> Result<Agreement, String> {
        let theirs: f64 = self.0.stop()?.parse().map_err(|_| "verl answered no loss")?;
        let bytes = self.0.array("gradient")?;
        Ok(Agreement {
            loss: (f64::from(loss) - theirs).abs() / theirs.abs(),
            gradient: apart(gradient.iter().map(|x| f64::from(*x)), numbers_f32(&bytes).map(f64::from)),
            versions: self.0.versions,
        })
    }
}

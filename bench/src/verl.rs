//! verl's own loss in a Python process that measures when it is told to.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::batch::Batch;
use crate::ours::KL_COEFFICIENT;

const SCRIPT: &str = include_str!("../verl_loss.py");

/// The process, with the tensors that it reads from files.
pub struct Verl {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: TempDir,
    versions: String,
}

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
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let write = |name: &str, values: &[f32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            std::fs::write(folder.path().join(name), bytes).map_err(|error| error.to_string())
        };
        write("log_prob", &batch.log_prob)?;
        write("old_log_prob", &batch.old_log_prob)?;
        write("ref_log_prob", &batch.ref_log_prob)?;
        write("advantage", &batch.advantage)?;
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .arg(folder.path())
            .args([batch.rows.to_string(), batch.columns.to_string(), KL_COEFFICIENT.to_string()])
            .envs([("CUDA_VISIBLE_DEVICES", ""), ("OMP_NUM_THREADS", "1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let to = child.stdin.take().ok_or("no standard input")?;
        let from = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut verl = Verl { child, to, from, folder, versions: String::new() };
        verl.versions = verl.line()?;
        Ok(verl)
    }

    /// One measurement of `eager` or `compile`.
    pub fn time(&mut self, what: &str) -> Result<Duration, String> {
        writeln!(self.to, "{what}").and_then(|()| self.to.flush()).map_err(|error| error.to_string())?;
        let nanoseconds = self.line()?;
        nanoseconds.parse().map(Duration::from_nanos).map_err(|_| format!("verl answered `{nanoseconds}`"))
    }

    /// End it and compare its last loss and gradient.
    pub fn finish(mut self, loss: f32, gradient: &[f32]) -> Result<Agreement, String> {
        writeln!(self.to, "stop").and_then(|()| self.to.flush()).map_err(|error| error.to_string())?;
        let theirs: f64 = self.line()?.parse().map_err(|_| "verl answered no loss")?;
        self.child.wait().map_err(|error| error.to_string())?;
        let bytes = std::fs::read(self.folder.path().join("gradient")).map_err(|error| error.to_string())?;
        let (mut largest, mut apart) = (0f64, 0f64);
        for (ours, bytes) in gradient.iter().zip(bytes.chunks_exact(4)) {
            let mut four = [0; 4];
            four.copy_from_slice(bytes);
            let theirs = f64::from(f32::from_le_bytes(four));
            largest = largest.max(theirs.abs());
            apart = apart.max((f64::from(*ours) - theirs).abs());
        }
        Ok(Agreement {
            versions: self.versions,
            loss: (f64::from(loss) - theirs).abs() / theirs.abs(),
            gradient: apart / largest,
        })
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err("the Python process ended; its message stands above".into()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

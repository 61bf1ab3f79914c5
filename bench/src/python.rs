//! A Python process that holds the same numbers and measures when it is told to.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// The process, with the arrays that it reads from files.
///
/// A script gets the folder of the arrays and further arguments. It answers one line with the versions of its libraries,
/// then for each line with a subject's name the nanoseconds of one pass, and for `stop` one last line.
pub struct Python {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: TempDir,
    /// The libraries' versions.
    pub versions: String,
}

impl Python {
    /// Start it and wait until it has loaded everything.
    pub fn start(
        python: &Path,
        script: &str,
        arrays: &[(&str, Vec<u8>)],
        arguments: &[String],
    ) -> Result<Self, String> {
        Self::start_program(python, &["-c", script], arrays, arguments)
    }

    /// The same for a script in another language: `program` with `flags` runs it.
    pub fn start_program(
        program: &Path,
        flags: &[&str],
        arrays: &[(&str, Vec<u8>)],
        arguments: &[String],
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (name, bytes) in arrays {
            std::fs::write(folder.path().join(name), bytes).map_err(|error| error.to_string())?;
        }
        let mut child = Command::new(program)
            .args(flags)
            .arg(folder.path())
            .args(arguments)
            .envs([("CUDA_VISIBLE_DEVICES", ""), ("OMP_NUM_THREADS", "1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let to = child.stdin.take().ok_or("no standard input")?;
        let from = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut process = Python { child, to, from, folder, versions: String::new() };
        process.versions = process.line()?;
        Ok(process)
    }

    /// One measurement of a subject.
    pub fn time(&mut self, subject: &str) -> Result<Duration, String> {
        let nanoseconds = self.ask(subject)?;
        nanoseconds.parse().map(Duration::from_nanos).map_err(|_| format!("Python answered `{nanoseconds}`"))
    }

    /// Let it write its results and end; its last line.
    pub fn stop(&mut self) -> Result<String, String> {
        let last = self.ask("stop")?;
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(last)
    }

    /// An array that it wrote.
    pub fn array(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.folder.path().join(name)).map_err(|error| error.to_string())
    }

    fn ask(&mut self, line: &str) -> Result<String, String> {
        writeln!(self.to, "{line}").and_then(|()| self.to.flush()).map_err(|error| error.to_string())?;
        self.line()
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

/// The bytes of an array as the process reads them.
pub fn bytes_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The numbers of an array that the process wrote.
pub fn numbers_f32(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.chunks_exact(4).map(|bytes| {
        let mut four = [0; 4];
        four.copy_from_slice(bytes);
        f32::from_le_bytes(four)
    })
}

/// How far `theirs` is from `ours`: the largest difference, relative to the largest of ours.
pub fn apart(ours: impl Iterator<Item = f64>, theirs: impl Iterator<Item = f64>) -> f64 {
    let (mut largest, mut apart) = (0f64, 0f64);
    for (ours, theirs) in ours.zip(theirs) {
        largest = largest.max(ours.abs());
        apart = apart.max((ours - theirs).abs());
    }
    apart / largest
}

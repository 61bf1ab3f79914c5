//! The table, on the terminal and as a page.

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use crate::batch::Batch;
use crate::ours::KL_COEFFICIENT;
use crate::verl::Agreement;

/// The times of one subject, one a round.
pub struct Measured {
    name: String,
    times: Vec<Duration>,
}

impl Measured {
    /// A subject without times.
    pub fn new(name: impl Into<String>) -> Self {
        Measured { name: name.into(), times: Vec::new() }
    }

    /// Add a round's time.
    pub fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// The median in nanoseconds; `None` where nothing was measured.
    fn median(&self) -> Option<f64> {
        let mut times: Vec<f64> = self.times.iter().map(|time| time.as_nanos() as f64).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }

    fn fastest(&self) -> Option<f64> {
        self.times.iter().min().map(|time| time.as_nanos() as f64)
    }
}

/// The times for one of `units`, and the ratios to the first subject's.
pub fn table(measured: &[Measured], units: usize, unit: &str) -> String {
    let ours = measured.first();
    let ours = ours.and_then(Measured::median).zip(ours.and_then(Measured::fastest));
    let mut text =
        format!("| | ns {unit}, median | fastest | median / core's | fastest / core's |\n|---|---|---|---|---|\n");
    for subject in measured {
        let (Some(median), Some(fastest), Some(ours)) = (subject.median(), subject.fastest(), ours) else {
            continue;
        };
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            subject.name,
            median / units as f64,
            fastest / units as f64,
            median / ours.0,
            fastest / ours.1
        );
    }
    text
}

/// How many times as long as one subject the others took, by medians and by the fastest rounds.
pub fn against(ours: &Measured, others: &[&Measured]) -> String {
    let mut text = format!("\nTimes as long as {}:", ours.name);
    for other in others {
        if let (Some(median), Some(fastest)) = (other.median().zip(ours.median()), other.fastest().zip(ours.fastest()))
        {
            let _ = write!(text, " {} {:.2} (fastest {:.2}),", other.name, median.0 / median.1, fastest.0 / fastest.1);
        }
    }
    text.pop();
    text.push_str(".\n");
    text
}

/// What was measured, of the first subject and of those it is compared with.
pub struct Report<'m> {
    rows: usize,
    columns: usize,
    rounds: usize,
    levels: usize,
    measured: &'m [Measured],
    agreement: Option<Agreement>,
}

impl<'m> Report<'m> {
    /// A report; the first subjects, as many as there are levels, are core's.
    pub fn new(
        batch: &Batch,
        rounds: usize,
        levels: usize,
        measured: &'m [Measured],
        agreement: Option<Agreement>,
    ) -> Self {
        Report { rows: batch.rows, columns: batch.columns, rounds, levels, measured, agreement }
    }

    /// The times and ratios.
    pub fn table(&self) -> String {
        let mut text = table(self.measured, self.rows * self.columns, "a token");
        if let Some((widest, _)) = self.measured[..self.levels].split_last() {
            text.push_str(&against(widest, &self.measured[self.levels..].iter().collect::<Vec<_>>()));
        }
        if let Some(agreement) = &self.agreement {
            let _ = write!(
                text,
                "\nSame numbers: the losses are {:.1e} apart (relative), the gradients {:.1e} of their largest element.\n",
                agreement.loss, agreement.gradient
            );
        }
        text
    }

    /// The page of the book.
    pub fn page(&self) -> String {
        let mut text = String::from("<!-- Written by `cargo xtask bench`. -->\n\n# Benchmarks\n\n");
        let _ = write!(
            text,
            "PPO with a k3 penalty (coefficient {KL_COEFFICIENT}), value and gradient by the log-probabilities, in verl's \
             dialect (dual clip, limited log-ratios), token mean: {} × {} tokens, `f32`, one thread, from given \
             log-probabilities. Everything is measured in one process pair on the same tensors, in turns, {} rounds. Core is \
             built for the baseline of its target; `plumbline-simd` compiles its stages again for wider vectors and has the \
             same bits at every level. Core also computes its metrics. verl \
             runs its own functions (`compute_policy_loss_vanilla`, `kl_penalty`, `agg_loss`) and autograd. The copy moves \
             four inputs and the gradient, 20 bytes a token. Times are time on the processor: waiting for it is taken out.\n\n",
            self.rows, self.columns, self.rounds
        );
        text.push_str(&self.table());
        text.push_str(&measured_on(self.agreement.as_ref().map(|agreement| agreement.versions.as_str())));
        text.push_str("\n```sh\ncargo xtask bench --python PYTHON --write   # a Python with verl and torch\n```\n");
        text
    }
}

/// A subject's page of the book: what was measured, why it is not faster, and the command, which needs a Python with `needs`.
pub fn page(subject: &str, title: &str, text: &str, why: &str, needs: &str) -> String {
    format!(
        "<!-- Written by `cargo xtask bench {subject}`. -->\n\n# Benchmark: {title}\n\n{text}\n{why}\n```sh\ncargo xtask bench \
         {subject} --python PYTHON --write   # a Python with {needs}\n```\n"
    )
}

/// When and where, with the versions of the libraries beside.
pub fn measured_on(versions: Option<&str>) -> String {
    let versions = versions.map_or_else(String::new, |versions| format!(", {versions}"));
    format!("\nMeasured on {}: {}, {}{versions}.\n", date(), processor(), compiler())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn date() -> String {
    output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "an unknown date".into())
}

fn compiler() -> String {
    let version = output("rustc", &["--version"]).unwrap_or_else(|| "rustc".into());
    version.split(" (").next().unwrap_or("rustc").to_owned()
}

fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}

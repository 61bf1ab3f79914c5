//! `plumbline diagnose`: a batch and the loss that was printed for it; nothing is run.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_conformance::batch_file;
use plumbline_conformance::report::answer_as_text;
use plumbline_diagnosis::one_shot::{Conclusion, Printed, answer_as_json, prepare};
use plumbline_evaluate::Param;

use super::{Ending, Trouble, emit, emit_json};

/// Numbers that are looked at before the search ends: some seconds on two cores.
const EFFORT: u64 = 450_000_000;

/// Options of `diagnose`.
#[derive(Debug, Args)]
#[command(
    after_help = r#"FILE holds your batch: JSON, numpy's .npz, or safetensors; `-` reads standard input. Arrays go by the catalog's names
(log_prob, old_log_prob, ref_log_prob, advantage, mask, reward, group, chosen_log_prob, ...) or common ones (logprobs,
old_log_probs, response_mask, advantages, ...); `loss` is the number that your framework printed, `d_log_prob` (or `grad`)
its gradient. In JSON, `params`, `operation` and `dialect` may stand beside them.

Examples:
  plumbline diagnose batch.npz --loss 0.01234
  plumbline diagnose batch.json --op objective.grpo --dialect trl-1.16
  plumbline diagnose batch.safetensors --loss -0.3217 --params clip_ratio_low=0.2,clip_ratio_high=0.28

The digits of the printed number decide how near is near enough. Exit code 0: it is what was meant, or (with no --op) a
known operation in a known dialect; 1: it is not."#
)]
pub struct Arguments {
    /// The file with the batch.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The number that was printed, with all its digits.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    loss: Option<String>,
    /// The operation that is meant (default: all that take these inputs).
    #[arg(long = "op", value_name = "ID")]
    operation: Option<String>,
    /// The dialect that is meant.
    #[arg(long, value_name = "D")]
    dialect: Option<String>,
    /// Parameters that are known: NAME=VALUE, separated by commas.
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = param)]
    params: Vec<(String, Param)>,
    /// Try every point, however long it takes on a large batch.
    #[arg(long)]
    thorough: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn param(text: &str) -> Result<(String, Param), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is wanted")?;
    let value = match value {
        "none" | "null" | "None" => Param::None,
        "true" | "True" => Param::Flag(true),
        "false" | "False" => Param::Flag(false),
        _ => value.parse().map_or_else(|_| Param::Name(value.to_owned()), Param::Number),
    };
    Ok((name.trim().to_owned(), value))
}

/// Answer it.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let name = arguments.file.display().to_string();
    let told = |error: &dyn std::fmt::Display| Trouble(format!("{name}: {error}"));
    let loss = match &arguments.loss {
        Some(text) => Some(Printed::parse(text).ok_or_else(|| Trouble(format!("--loss: `{text}` is no number")))?),
        None => None,
    };
    let bar = ProgressBar::new_spinner().with_message("reading");
    let bytes = read(&arguments.file).map_err(|error| told(&format!("cannot be read: {error}")))?;
    let file = batch_file::read(&bytes).map_err(|error| told(&error))?;
    drop(bytes);
    let effort = (!arguments.thorough).then_some(EFFORT);
    let (mut question, mut notes) = file.question(loss, effort).map_err(|error| told(&error))?;
    question.operation = arguments.operation.clone().or(question.operation);
    question.dialect = arguments.dialect.clone().or(question.dialect);
    for (name, value) in &arguments.params {
        question.params.retain(|(other, _)| other != name);
        question.params.push((name.clone(), value.clone()));
    }
    let inquiry = prepare(&question).map_err(|error| told(&error))?;
    drop(question);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} points, {elapsed}").map_err(Trouble::new)?;
    bar.set_style(style);
    let mut answer = inquiry.answer(&|count, job| on_all_cores(count, job, &bar));
    bar.finish_and_clear();
    notes.append(&mut answer.notes);
    answer.notes = notes;
    if arguments.json {
        emit_json(&answer_as_json(&answer, &name))?;
    } else {
        emit(&answer_as_text(&answer, &name))?;
    }
    Ok(if answer.conclusion == Conclusion::Known { Ending::Holds } else { Ending::Fails })
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(file)
}

/// Jobs 0 to `count`, each thread taking the next one.
fn on_all_cores(count: usize, job: &(dyn Fn(usize) + Sync), bar: &ProgressBar) {
    bar.set_length(bar.position() + count as u64);
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    job(index);
                    bar.inc(1);
                }
            });
        }
    });
}

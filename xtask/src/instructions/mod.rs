//! Instruction counts of representative kernels: repeatable where times are not. Counted by valgrind inside the C library's
//! `plumbline_evaluate`, on one set of numbers, and compared with the committed baseline.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::capi;
use crate::process::{output_of, program, root, succeeds};
use crate::step::{Outcome, Step, debian_packages};

/// Options of `cargo xtask instructions`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the counts as the new baseline; the commit that does so explains why they changed.
    #[arg(long)]
    update: bool,
}

/// The kernels: operation, precision, optional inputs, sizes.
const KERNELS: [(&str, &str, &str, &[&str]); 10] = [
    ("logits.log_softmax", "32", "", &["N=16", "V=2000"]),
    ("logits.entropy", "32", "", &["N=16", "V=2000"]),
    ("kl.k3", "32", "mask", &["B=16", "T=512"]),
    ("ratio.token", "32", "mask", &["B=16", "T=512"]),
    ("objective.ppo", "32", "old_log_prob,advantage,mask", &["B=16", "T=512"]),
    ("objective.grpo", "64", "old_log_prob,advantage,mask", &["B=16", "T=512"]),
    ("objective.gspo", "32", "old_log_prob,advantage,mask", &["B=16", "T=512"]),
    ("advantage.gae", "32", "mask", &["B=16", "T=512"]),
    ("preference.dpo_sigmoid", "32", "", &["N=2048"]),
    ("bellman.optimality_v", "64", "", &["S=64", "A=4"]),
];

/// How far a count may move, as a share.
const LIMIT: f64 = 0.03;

/// Run it.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.update {
        let text = baseline_text(&count()?.ok_or("valgrind or gcc is missing, or the library does not build")?);
        fs::write(baseline_path(), text).map_err(|error| error.to_string())?;
        return Ok(true);
    }
    match compare()? {
        Outcome::Passed => Ok(true),
        Outcome::Failed => Ok(false),
        Outcome::Skipped(missing) => Err(format!("not compared: {missing}")),
    }
}

/// The steps of `cargo xtask test`.
pub fn steps() -> Vec<Step> {
    vec![Step::new("instruction counts", compare)]
}

fn baseline_path() -> PathBuf {
    root().join("xtask/instructions.txt")
}

/// What the counts depend on beside the source.
fn compiler() -> String {
    let version = output_of(program("rustc").arg("--version")).unwrap_or_else(|| "no rustc".into());
    format!("{}, {}", version.split(" (").next().unwrap_or_default(), std::env::consts::ARCH)
}

fn baseline_text(counts: &BTreeMap<String, u64>) -> String {
    let mut text = format!(
        "# Instructions inside plumbline_evaluate, counted by valgrind; `cargo xtask instructions --update` writes them.\n\
         compiler: {}\n",
        compiler()
    );
    for (name, count) in counts {
        let _ = writeln!(text, "{name} {count}");
    }
    text
}

fn compare() -> Result<Outcome, String> {
    let text = fs::read_to_string(baseline_path()).map_err(|error| format!("xtask/instructions.txt: {error}"))?;
    if let Err(how) = debian_packages(&["gcc", "valgrind"], &["/usr/bin/gcc", "/usr/bin/valgrind"]) {
        return Ok(Outcome::Skipped(how));
    }
    let Some(counts) = count()? else { return Ok(Outcome::Failed) };
    let mut holds = true;
    for (name, count) in &counts {
        let before = text.lines().find_map(|line| line.strip_prefix(name.as_str())?.trim().parse::<u64>().ok());
        let Some(before) = before else {
            println!("{name}: {count}, not in the baseline");
            holds = false;
            continue;
        };
        let change = *count as f64 / before as f64 - 1.0;
        let is_far = change.abs() > LIMIT;
        println!("{name:<28} {count:>12} {:>+7.2} %{}", 100.0 * change, if is_far { "  CHANGED" } else { "" });
        holds &= !is_far;
    }
    if !holds {
        println!(
            "A count moved by more than {:.0} %. Where that is meant, run `cargo xtask instructions --update` and say in the \
             commit why; where it is not, look for what the last changes made longer.",
            100.0 * LIMIT
        );
        let theirs = text.lines().find_map(|line| line.strip_prefix("compiler: ")).unwrap_or("unknown");
        if theirs != compiler() {
            println!("The baseline is of {theirs}, this is {}: another compiler makes other code.", compiler());
        }
    }
    Ok(Outcome::of(holds))
}

/// The counts by kernel; `None` where something does not build or run.
fn count() -> Result<Option<BTreeMap<String, u64>>, String> {
    let place = root().join("target/instructions");
    let prefix = place.join("prefix");
    if !capi::install(&prefix)? {
        return Ok(None);
    }
    let kernel = place.join("kernel");
    let mut compile = program("gcc");
    compile.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "xtask/src/instructions/kernel.c"]);
    compile.arg(format!("-I{}", prefix.join("include").display())).arg(prefix.join("lib/libplumbline.a"));
    if !succeeds(compile.args(capi::NATIVE.split(' ')).arg("-o").arg(&kernel))? {
        return Ok(None);
    }
    let mut counts = BTreeMap::new();
    for (operation, dtype, optional, sizes) in KERNELS {
        let file = place.join(format!("{operation}.{dtype}"));
        let mut valgrind = program("valgrind");
        valgrind.args(["--quiet", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=plumbline_evaluate"]);
        valgrind.arg(format!("--callgrind-out-file={}", file.display())).arg(&kernel);
        if !succeeds(valgrind.args([operation, dtype, optional]).args(sizes))? {
            return Ok(None);
        }
        counts.insert(format!("{operation}.f{dtype}"), total(&file)?);
    }
    Ok(Some(counts))
}

/// The sum that a file of callgrind ends in.
fn total(file: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    let count = total.and_then(|total| total.trim().parse().ok()).filter(|count| *count > 1000);
    count.ok_or_else(|| format!("{} holds no count", file.display()))
}

//! `plumbline check`: an implementation, run as a program, against the core.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_conformance::protocol::{Answer, Declared, Request, Start, Subject};
use plumbline_conformance::report::{
    Checked, Curve, CurvePoint, Report, Sweep, as_html, as_json, as_junit, as_text, read_known, shell_quoted, sweeps,
};
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Operation, ParamKind, Value};
use plumbline_diagnosis::vectors::{Case, Purpose, Taken, cases_for, retain};
use plumbline_diagnosis::{
    Diagnosis, Meaning, Observation, Observed, Tolerance, Verdict, diagnose, output_shape, outputs,
};
use plumbline_evaluate::nearest::nearest;
use plumbline_evaluate::operation_named;

use super::{Ending, Trouble, emit, emit_json, replace};

/// After so many breaks in one operation its other cases are not tried.
const MOST_BREAKS: usize = 3;
/// The least time an implementation has to start: importing a framework takes a while.
const LEAST_START: Duration = Duration::from_secs(60);

/// Options of `check`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this operation (may be repeated; default: all that the implementation declares).
    #[arg(long = "op", value_name = "ID")]
    operations: Vec<String>,
    /// The dialect that is meant, instead of the declared one.
    #[arg(long, value_name = "D")]
    dialect: Option<String>,
    /// Seed of the random cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seconds that one case may take.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    timeout: f64,
    /// Only the case of this name (see a report's "Reproduce" line).
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Also write the result as JUnit XML to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write the result as one self-contained HTML page, with plots, to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Known deviations: {"known": [{"operation": ID, "cause": CAUSE, "reason": WHY}]}. They fail nothing; one that no longer
    /// occurs does.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// The program that speaks the protocol (docs/src/protocol.md), with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 86_400.0 => Ok(number),
        _ => Err("seconds: a number above 0, at most 86400".into()),
    }
}

/// Run the check.
pub fn run(arguments: &Arguments) -> Result<Ending, Trouble> {
    let limit = Duration::from_secs_f64(arguments.timeout);
    let mut runner = Runner { command: &arguments.command, limit, subject: None, seq: 0 };
    for id in &arguments.operations {
        operation_named(id).map_err(Trouble::new)?;
    }
    let known = match &arguments.known {
        None => Vec::new(),
        Some(path) => {
            let told = |error: &dyn std::fmt::Display| Trouble(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
            read_known(&text).map_err(|error| told(&error))?
        }
    };
    let start = match runner.start()? {
        Ok(start) => start,
        Err(words) => {
            anstream::eprintln!("plumbline: the implementation did not start: {words}");
            return Ok(Ending::Broke);
        }
    };
    let declared = chosen(&start, &arguments.operations)?;
    let mut report = Report {
        name: start.name.clone(),
        version: start.version.clone(),
        dtype: start.dtype.name().into(),
        seed: arguments.seed,
        command: shell_quoted(&arguments.command),
        operations: Vec::new(),
        stale: Vec::new(),
    };
    for declared in declared {
        let checked = check(arguments, &mut runner, &start, declared)?;
        report.operations.push(checked);
    }
    if let Some(subject) = runner.subject.take() {
        subject.stop();
    }
    report.apply_known(&known, arguments.operations.is_empty());
    if arguments.case.is_some() {
        // One case does not show everything that is listed.
        report.stale.clear();
    }
    if let Some(path) = &arguments.junit {
        replace(path, as_junit(&report).map_err(Trouble::new)?.as_bytes())?;
    }
    if let Some(path) = &arguments.html {
        replace(path, as_html(&report).as_bytes())?;
    }
    if arguments.json {
        emit_json(&as_json(&report))?;
    } else {
        emit(&as_text(&report))?;
    }
    Ok(match (report.is_broken(), report.conforms()) {
        (true, _) => Ending::Broke,
        (false, true) => Ending::Holds,
        (false, false) => Ending::Fails,
    })
}

/// The declared operations that are asked for.
fn chosen<'a>(start: &'a Start, asked: &[String]) -> Result<Vec<&'a Declared>, Trouble> {
    if asked.is_empty() {
        if start.operations.is_empty() {
            return Err(Trouble::new(format!("`{}` declares no operation", start.name)));
        }
        return Ok(start.operations.iter().collect());
    }
    let find = |id: &String| {
        start.operations.iter().find(|declared| declared.id == *id).ok_or_else(|| {
            let known: Vec<&str> = start.operations.iter().map(|declared| declared.id.as_str()).collect();
            Trouble::new(format!("`{}` does not implement {id}; it declares {}", start.name, known.join(", ")))
        })
    };
    asked.iter().map(find).collect()
}

fn check(
    arguments: &Arguments,
    runner: &mut Runner<'_>,
    start: &Start,
    declared: &Declared,
) -> Result<Checked, Trouble> {
    let meaning = meaning(declared, arguments.dialect.as_deref())?;
    let operation = meaning.operation;
    let taken = Taken { names: declared.takes.clone() };
    for name in declared.takes.iter().flatten() {
        if operation.input(name).is_none() && operation.param(name).is_none() {
            return Err(unknown(operation, name, "takes"));
        }
    }
    let empty = Case { id: String::new(), purpose: Purpose::Regular, overrides: Vec::new(), inputs: Vec::new() };
    let base = meaning.parameters(&empty).map_err(|error| Trouble::new(format!("{}: {error}", declared.id)))?;
    let accept = |case: &Case| meaning.accepts(case);
    let mut cases = cases_for(operation, &base, &taken, arguments.seed, start.dtype, &accept);
    if declared.finite_padding {
        cases.retain(|case| !matches!(case.purpose, Purpose::UnderMask { junk, .. } if !junk.number().is_finite()));
    }
    if let Some(name) = &arguments.case {
        if !cases.iter().any(|case| case.id == *name) {
            let known: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
            return Err(Trouble::new(format!("{} has no case `{name}`; it has {}", declared.id, known.join(", "))));
        }
        retain(&mut cases, name);
    }
    let progress = ProgressBar::new(cases.len() as u64)
        .with_style(ProgressStyle::with_template("{prefix} {pos}/{len} {msg}").map_err(Trouble::new)?)
        .with_prefix(declared.id.clone());
    let mut seen: Vec<Observation> = Vec::with_capacity(cases.len());
    let mut breaks = 0;
    for case in cases {
        progress.inc(1);
        let observed =
            if breaks >= MOST_BREAKS { Observed::NotAsked } else { runner.observe(&meaning, start, &case)? };
        breaks += usize::from(matches!(observed, Observed::Broken(_)));
        seen.push(Observation { case, observed });
    }
    progress.set_message("diagnosis");
    let tolerance = match declared.precision.unwrap_or(start.dtype) {
        Dtype::F32 => Tolerance::SINGLE,
        Dtype::F64 => Tolerance::DOUBLE,
    };
    let diagnosis: Diagnosis = diagnose(&meaning, meaning.dialect.is_some(), &seen, tolerance);
    let mut curves = Vec::new();
    if arguments.html.is_some() && breaks == 0 {
        progress.set_message("curves");
        let cases: Vec<&Case> = seen.iter().map(|seen| &seen.case).collect();
        let shown = diagnosis.findings.first().map_or("", |finding| finding.case.as_str());
        for sweep in sweeps(&meaning, &cases, shown) {
            curves.push(runner.curve(&meaning, start, &sweep)?);
        }
    }
    progress.finish_and_clear();
    if diagnosis.verdict == Verdict::NotCompared && seen.is_empty() {
        anstream::eprintln!("plumbline: no inputs could be made for {}", declared.id);
    }
    Ok(Checked {
        id: declared.id.clone(),
        dialect: meaning.dialect.map(str::to_owned),
        settings: meaning.settings.clone(),
        finite_padding: declared.finite_padding,
        known: vec![None; diagnosis.findings.len()],
        diagnosis,
        curves,
    })
}

/// What the implementation means to compute.
fn meaning(declared: &Declared, dialect: Option<&str>) -> Result<Meaning, Trouble> {
    let operation = operation_named(&declared.id).map_err(Trouble::new)?;
    let dialect = match dialect.or(declared.dialect.as_deref()) {
        None => None,
        Some(name) => Some(operation.dialect(name).map(|dialect| dialect.name).ok_or_else(|| {
            let known: Vec<&str> = operation.dialects.iter().map(|dialect| dialect.name).collect();
            Trouble::new(format!("{} has no dialect `{name}`; it has {}", operation.id, known.join(", ")))
        })?),
    };
    let settings = declared
        .settings
        .iter()
        .map(|(name, value)| {
            let (_, param) = operation.param(name).ok_or_else(|| unknown(operation, name, "settings"))?;
            let value = setting(param.kind, value)
                .ok_or_else(|| Trouble::new(format!("{}: `{name}` cannot be {value}", operation.id)))?;
            Ok((param.name, value))
        })
        .collect::<Result<Vec<_>, Trouble>>()?;
    Ok(Meaning { operation, dialect, settings })
}

fn unknown(operation: &'static Operation, name: &str, list: &str) -> Trouble {
    let inputs = operation.inputs.iter().map(|input| input.name);
    let known: Vec<&str> = inputs.chain(operation.params.iter().map(|param| param.name)).collect();
    let hint = nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("; is `{near}` meant?"));
    Trouble::new(format!("{}: `{list}` names `{name}`, which is no input or parameter{hint}", operation.id))
}

fn setting(kind: ParamKind, value: &serde_json::Value) -> Option<Value> {
    match kind {
        ParamKind::OptionalNumber { .. } if value.is_null() => Some(Value::None),
        ParamKind::Number { .. } | ParamKind::OptionalNumber { .. } => value.as_f64().map(Value::Number),
        ParamKind::Integer { .. } => value.as_i64().map(Value::Integer),
        ParamKind::Flag { .. } => value.as_bool().map(Value::Flag),
        ParamKind::Choice { names, .. } => {
            names.iter().find(|name| Some(**name) == value.as_str()).map(|name| Value::Name(name))
        }
    }
}

/// The implementation, started when it is needed and started again when it broke.
struct Runner<'a> {
    command: &'a [String],
    limit: Duration,
    subject: Option<Subject>,
    seq: u64,
}

impl Runner<'_> {
    /// Start it and hear what it is; the inner error says in words how it broke.
    fn start(&mut self) -> Result<Result<Start, String>, Trouble> {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let mut subject = Subject::start(self.command)
            .map_err(|error| Trouble::new(format!("`{program}` cannot be started: {error}")))?;
        Ok(match subject.greet(self.limit.max(LEAST_START)) {
            Ok(start) => {
                self.subject = Some(subject);
                Ok(start)
            }
            Err(broke) => Err(broke.0),
        })
    }

    fn observe(&mut self, meaning: &Meaning, start: &Start, case: &Case) -> Result<Observed, Trouble> {
        if self.subject.is_none()
            && let Err(words) = self.start()?
        {
            return Ok(Observed::Broken(format!("after a break it did not start again: {words}")));
        }
        let Some(subject) = self.subject.as_mut() else { return Ok(Observed::NotAsked) };
        self.seq += 1;
        let operation = meaning.operation;
        let params = meaning.parameters(case).map_err(Trouble::new)?;
        let want = meaning.outputs_for(&params, case, start.gradients);
        let request = Request::Run { seq: self.seq, operation, dtype: start.dtype, params: &params, case, want: &want };
        let shape = |name: &str| output_shape(operation, &params, &case.inputs, name);
        Ok(match subject.run(&request, self.limit, &shape) {
            Ok(Answer::Outputs(outputs)) => Observed::Outputs(outputs),
            Ok(Answer::Skip(reason)) => Observed::Skipped(reason),
            Ok(Answer::Error(error)) => Observed::Raised(format!("it raised {error}")),
            Err(broke) => {
                self.subject = None;
                Observed::Broken(broke.0)
            }
        })
    }

    /// Both sides along a sweep; what the implementation does not give is NaN.
    fn curve(&mut self, meaning: &Meaning, start: &Start, sweep: &Sweep) -> Result<Curve, Trouble> {
        let value = meaning.operation.outputs.first().map(|output| output.name).unwrap_or_default();
        let names = [value, sweep.gradient];
        let mut points = Vec::new();
        for (place, case) in sweep.places.iter().zip(&sweep.cases) {
            // A value with one number for each slot is drawn at the slot that is moved.
            let at = |numbers: &[f64]| {
                let slot = if numbers.len() == 1 { 0 } else { sweep.slot };
                numbers.get(slot).copied().unwrap_or(f64::NAN)
            };
            let right = meaning
                .parameters(case)
                .and_then(|params| outputs(meaning.operation, &params, &case.inputs, &names))
                .map_or([f64::NAN; 2], |all| [at(&all[0]), at(&all[1])]);
            let given = match self.observe(meaning, start, case)? {
                Observed::Outputs(given) => names.map(|name| {
                    given.iter().find(|(other, _)| other == name).map_or(f64::NAN, |(_, tensor)| at(&tensor.values))
                }),
                _ => [f64::NAN; 2],
            };
            points.push(CurvePoint { place: *place, right, given });
        }
        Ok(Curve { title: sweep.title.clone(), axis: sweep.axis(), value, gradient: sweep.gradient, points })
    }
}

//! `cargo xtask mutants`: every mistake of the collection as an implementation, diagnosed, and counted.
//!
//! A mutant is written as an implementation would hold it: in plain arithmetic with derivatives carried along
//! ([`scalar`]), or as the core's own computation on other inputs. It knows nothing of the search's changes.

mod controls;
mod not_applicable;
mod policy;
mod random;
mod report;
mod rows;
mod scalar;
mod subject;

use std::time::Instant;

use plumbline_diagnosis::{Diagnosis, FindingKind, Verdict};

use rows::Mutant;

/// Options of `cargo xtask mutants`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Only the mutants whose row begins with this.
    #[arg(long, value_name = "ROW")]
    row: Option<String>,
    /// Print what was found on each.
    #[arg(long)]
    verbose: bool,
    /// Seed of the random cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Instead: so many random compositions of changes with random parameters, each looked for among the explanations.
    #[arg(long, value_name = "COUNT")]
    random: Option<usize>,
}

/// What became of one mutant.
struct Outcome {
    mutant: &'static Mutant,
    detected: bool,
    /// The place of the first right name among those printed, from 1.
    place: Option<usize>,
    names: Vec<String>,
    seconds: f64,
}

/// What became of all.
struct Matrix {
    /// The collection's mistakes and variants.
    collection: Vec<Outcome>,
    /// Those that were kept apart.
    held_out: Vec<Outcome>,
    /// How many right implementations were tried.
    controls: usize,
    /// Those that were not said to conform, with what was said.
    false_alarms: Vec<String>,
}

/// Run them all; true where the figures are what they must be.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    if cfg!(debug_assertions) {
        return crate::process::optimised();
    }
    if let Some(count) = arguments.random {
        return random::run(count, arguments.seed, arguments.json);
    }
    let matrix = matrix(arguments.row.as_deref(), arguments.seed)?;
    if arguments.json {
        println!("{}", report::json(&matrix)?);
    } else {
        println!("{}", report::text(&matrix, arguments.verbose));
    }
    Ok(matrix.holds())
}

fn matrix(row: Option<&str>, seed: u64) -> Result<Matrix, String> {
    let chosen = |mutant: &&'static Mutant| row.is_none_or(|row| mutant.row.starts_with(row));
    let run = |mutants: Vec<&'static Mutant>| -> Result<Vec<Outcome>, String> {
        mutants.into_iter().filter(chosen).map(|mutant| outcome(mutant, seed)).collect()
    };
    let (collection, held_out) = (run(rows::all())?, run(rows::held_out())?);
    let (mut controls, mut false_alarms) = (0, Vec::new());
    if row.is_none() {
        let every = controls::every_dialect();
        for control in controls::CONTROLS.iter().chain(&every) {
            controls += 1;
            let diagnosis = control.subject.diagnosis(seed)?;
            if diagnosis.verdict != Verdict::Conforms {
                let dialect = control.subject.dialect.unwrap_or("defaults");
                let said = names(&diagnosis).join(" ; ");
                false_alarms.push(format!("{} {dialect}: {}: {said}", control.subject.operation, control.title));
            }
        }
    }
    Ok(Matrix { collection, held_out, controls, false_alarms })
}

impl Matrix {
    /// All detected, at least 90 % named first and 97 % among the first three, no false alarm.
    fn holds(&self) -> bool {
        let figures = Figures::of(&self.collection);
        figures.detected == figures.mutants
            && figures.named_first * 10 >= figures.mutants * 9
            && figures.named_top3 * 100 >= figures.mutants * 97
            && self.false_alarms.is_empty()
    }
}

/// The counts of some mutants.
struct Figures {
    mutants: usize,
    detected: usize,
    named_first: usize,
    named_top3: usize,
}

impl Figures {
    fn of(outcomes: &[Outcome]) -> Figures {
        let count = |holds: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| holds(outcome)).count();
        Figures {
            mutants: outcomes.len(),
            detected: count(&|outcome| outcome.detected),
            named_first: count(&|outcome| outcome.place == Some(1)),
            named_top3: count(&|outcome| outcome.place.is_some_and(|place| place <= 3)),
        }
    }
}

fn outcome(mutant: &'static Mutant, seed: u64) -> Result<Outcome, String> {
    let start = Instant::now();
    let diagnosis = mutant.subject.diagnosis(seed).map_err(|error| format!("{}: {error}", mutant.row))?;
    let names = names(&diagnosis);
    let place = names.iter().position(|name| mutant.names.iter().any(|wanted| fits(wanted, name)));
    Ok(Outcome {
        mutant,
        detected: !names.is_empty(),
        place: place.map(|place| place + 1),
        names,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The names in the order in which a reader meets them; a finding without an explanation stands for its kind.
fn names(diagnosis: &Diagnosis) -> Vec<String> {
    if let Verdict::ConformsToDialect(name) = diagnosis.verdict {
        return vec![format!("dialect:{name}")];
    }
    let mut names = Vec::new();
    for finding in &diagnosis.findings {
        let says_nothing = finding.kind == FindingKind::UnderMask && diagnosis.findings.len() > 1;
        if finding.explanations.is_empty() && !says_nothing {
            names.push(format!("kind:{}", finding.kind.name()));
        }
        names.extend(finding.explanations.iter().map(|explanation| explanation.ids.join("+")));
    }
    names
}

/// Whether a name is the wanted one, `*` standing for anything.
fn fits(wanted: &str, name: &str) -> bool {
    let mut parts = wanted.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return name == wanted };
    let mut ends_open = false;
    for part in parts {
        ends_open = part.is_empty();
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return name == wanted,
        }
    }
    rest.is_empty() || ends_open || name == wanted
}

#[cfg(test)]
mod tests {
    use super::{Figures, fits, matrix, not_applicable, random, rows};

    #[test]
    fn a_star_stands_for_anything() {
        assert!(fits("masked-junk:old_log_prob:*", "masked-junk:old_log_prob:value"));
        assert!(fits("term:kl_coefficient*-1", "term:kl_coefficient*-1"));
        assert!(!fits("factor:4", "factor:40"));
        assert!(!fits("input:*:negated", "input:advantage:centred"));
    }

    #[test]
    fn rows_are_mutants_or_have_a_reason() {
        for (row, reason) in not_applicable::ROWS {
            assert!(!rows::all().iter().any(|mutant| mutant.row == *row), "{row} is both");
            assert!(reason.len() > 20, "{row}");
        }
        let mut names: Vec<&str> = rows::all().into_iter().chain(rows::held_out()).map(|mutant| mutant.row).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a row stands twice");
    }

    /// The figures of the book, on the letters that are quick; the whole runs by `cargo xtask mutants`.
    #[test]
    fn mistakes_are_detected_and_named() {
        let (mut mutants, mut first, mut top3) = (0, 0, 0);
        for letter in ["B", "F", "G", "M", "N"] {
            let figures = Figures::of(&matrix(Some(letter), 1).unwrap().collection);
            assert_eq!(figures.detected, figures.mutants, "{letter}");
            mutants += figures.mutants;
            first += figures.named_first;
            top3 += figures.named_top3;
        }
        assert!(mutants >= 70, "{mutants}");
        assert!(first * 10 >= mutants * 9, "{first} of {mutants} named first");
        assert!(top3 * 100 >= mutants * 95, "{top3} of {mutants} among the first three");
    }

    #[test]
    fn random_compositions_are_found_again() {
        let found = random::sample(12, 5).unwrap();
        assert_eq!(found.missed, Vec::<String>::new());
        assert_eq!(found.tried, 12);
    }
}

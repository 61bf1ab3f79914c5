//! What a golden run found.

use plumbline_core::num::Dtype;
use serde_json::{Value, json};

use crate::compare::Agreement;
use plumbline_evaluate::tensor::{to_bits, to_json, to_text};

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every expected output agrees.
    Holds,
    /// At least one does not, or the backend refused the case.
    Fails,
    /// The backend does not have the operation or the precision.
    Skipped,
    /// The backend broke down.
    Broke,
}

/// Something wrong with one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The output, where one is concerned.
    pub output: Option<String>,
    /// What is wrong.
    pub kind: FindingKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FindingKind {
    /// Elements outside their bound.
    Differs {
        /// How the arrays compare.
        agreement: Box<Agreement>,
        /// The precision that the case is in.
        dtype: Dtype,
    },
    /// The output has another shape.
    Shape {
        /// The shape that was expected.
        expected: Vec<usize>,
        /// The shape that came.
        got: Vec<usize>,
    },
    /// The output did not come.
    Missing,
    /// The backend refused, skipped or broke; its words.
    NoAnswer(String),
}

impl Finding {
    /// In words, with both numbers.
    pub fn text(&self) -> String {
        let output = self.output.as_deref().unwrap_or_default();
        match &self.kind {
            FindingKind::NoAnswer(words) => words.clone(),
            FindingKind::Missing => format!("`{output}` did not come"),
            FindingKind::Shape { expected, got } => format!("`{output}` has shape {got:?}, expected is {expected:?}"),
            FindingKind::Differs { agreement, dtype } => {
                let Some(first) = &agreement.first else { return format!("`{output}` differs") };
                let place = if first.position.is_empty() { String::new() } else { format!(" at {:?}", first.position) };
                format!(
                    "`{output}`{place}: expected {} ({}), got {} ({}), apart {:.3e}, allowed {:.3e}; {} of {} elements \
                     differ, worst relative {:.3e}, worst ulp {}",
                    to_text(first.expected, *dtype),
                    to_bits(first.expected, *dtype),
                    to_text(first.got, *dtype),
                    to_bits(first.got, *dtype),
                    first.absolute,
                    first.allowed,
                    agreement.outside,
                    agreement.elements,
                    agreement.worst_relative,
                    agreement.worst_ulp,
                )
            }
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let mut object = json!({ "output": self.output, "message": self.text() });
        if let FindingKind::Differs { agreement, dtype } = &self.kind
            && let Some(first) = &agreement.first
        {
            object["position"] = json!(first.position);
            object["expected"] = to_json(first.expected, *dtype);
            object["got"] = to_json(first.got, *dtype);
            object["expected_bits"] = json!(to_bits(first.expected, *dtype));
            object["got_bits"] = json!(to_bits(first.got, *dtype));
            object["apart"] = to_json(first.absolute, Dtype::F64);
            object["allowed"] = to_json(first.allowed, Dtype::F64);
            object["elements"] = json!(agreement.elements);
            object["outside"] = json!(agreement.outside);
            object["worst_relative"] = to_json(agreement.worst_relative, Dtype::F64);
            object["worst_ulp"] = json!(agreement.worst_ulp);
        }
        object
    }
}

/// The largest deviations seen in one precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worst {
    /// How many elements were compared.
    pub elements: usize,
    /// How many of them agree only by the absolute part of the bound, because their terms cancel.
    pub cancelled: usize,
    /// In units of the last place, cancelled elements left out.
    pub ulp: u64,
    /// Relative, cancelled elements left out.
    pub relative: f64,
}

impl Worst {
    /// Take in one comparison.
    pub fn add(&mut self, agreement: &Agreement) {
        self.elements += agreement.elements;
        self.cancelled += agreement.cancelled;
        self.ulp = self.ulp.max(agreement.worst_ulp);
        self.relative = self.relative.max(agreement.worst_relative);
    }

    fn merge(&mut self, other: &Worst) {
        self.elements += other.elements;
        self.cancelled += other.cancelled;
        self.ulp = self.ulp.max(other.ulp);
        self.relative = self.relative.max(other.relative);
    }

    fn json(&self) -> Value {
        json!({
            "elements": self.elements,
            "cancelled": self.cancelled,
            "worst_ulp": self.ulp,
            "worst_relative": to_json(self.relative, Dtype::F64),
        })
    }
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseReport {
    /// The case's identifier.
    pub id: String,
    /// The file that it stands in.
    pub file: String,
    /// The operation.
    pub operation: String,
    /// The dialect.
    pub dialect: String,
    /// The family that the operation's identifier begins with.
    pub family: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// Deviations from oracles that computed in single and in double precision.
    pub worst: [Worst; 2],
}

/// What came of the cases of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyReport {
    /// Its name.
    pub family: String,
    /// How many cases it has.
    pub cases: usize,
    /// How many of them do not hold (those that broke included).
    pub failed: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// Deviations from oracles that computed in single and in double precision.
    pub worst: [Worst; 2],
}

/// What a golden run found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The backend's name.
    pub backend: String,
    /// Every case, in the order of the files.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// How many cases do not hold (those that broke included).
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Fails | Verdict::Broke)).count()
    }

    /// How many cases broke the backend.
    pub fn broke(&self) -> usize {
        self.cases.iter().filter(|case| case.verdict == Verdict::Broke).count()
    }

    /// How many cases were skipped.
    pub fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| case.verdict == Verdict::Skipped).count()
    }

    /// By family, in the order of their names.
    pub fn families(&self) -> Vec<FamilyReport> {
        let mut families: Vec<FamilyReport> = Vec::new();
        for case in &self.cases {
            let place = match families.binary_search_by(|family| family.family.as_str().cmp(&case.family)) {
                Ok(place) => place,
                Err(place) => {
                    let family = case.family.clone();
                    let new = FamilyReport { family, cases: 0, failed: 0, skipped: 0, worst: Default::default() };
                    families.insert(place, new);
                    place
                }
            };
            let family = &mut families[place];
            family.cases += 1;
            match case.verdict {
                Verdict::Holds => {}
                Verdict::Skipped => family.skipped += 1,
                Verdict::Fails | Verdict::Broke => family.failed += 1,
            }
            for (total, worst) in family.worst.iter_mut().zip(&case.worst) {
                total.merge(worst);
            }
        }
        families
    }

    /// As one JSON object.
    pub fn json(&self) -> Value {
        let family = |family: &FamilyReport| {
            json!({
                "family": family.family,
                "cases": family.cases,
                "failed": family.failed,
                "skipped": family.skipped,
                "f32": family.worst[0].json(),
                "f64": family.worst[1].json(),
            })
        };
        let listed = |verdicts: &[Verdict]| -> Vec<Value> {
            let cases = self.cases.iter().filter(|case| verdicts.contains(&case.verdict));
            cases
                .map(|case| {
                    json!({
                        "case": case.id,
                        "file": case.file,
                        "operation": case.operation,
                        "dialect": case.dialect,
                        "findings": case.findings.iter().map(Finding::json).collect::<Vec<_>>(),
                    })
                })
                .collect()
        };
        json!({
            "backend": self.backend,
            "cases": self.cases.len(),
            "failed": self.failed(),
            "skipped": self.skipped(),
            "broke": self.broke(),
            "families": self.families().iter().map(family).collect::<Vec<_>>(),
            "failures": listed(&[Verdict::Fails, Verdict::Broke]),
            "skips": listed(&[Verdict::Skipped]),
        })
    }
}

//! The results of `plumbline check` and `plumbline diagnose`, for people and for programs.

mod curve;
mod html;
mod json;
mod junit;
mod known;
mod one_shot;
mod style;
mod text;

use plumbline_core::spec::Value;
use plumbline_diagnosis::{Diagnosis, Verdict};

pub use curve::{Curve, CurvePoint, Sweep, sweeps};
pub use html::as_html;
pub use json::as_json;
pub use junit::as_junit;
pub use known::{Known, read_known};
pub use one_shot::answer_as_text;
pub use text::as_text;

/// The result on one operation.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The operation's identifier.
    pub id: String,
    /// The dialect that was meant.
    pub dialect: Option<String>,
    /// Parameters that it fixes, where they differ from the dialect's.
    pub settings: Vec<(&'static str, Value)>,
    /// Whether it relies on finite numbers under the mask, so that NaN was not tried there.
    pub finite_padding: bool,
    /// What was found.
    pub diagnosis: Diagnosis,
    /// For each finding, why it is accepted where it is.
    pub known: Vec<Option<String>>,
    /// Value and gradient against a log-probability, where they were asked for.
    pub curves: Vec<Curve>,
}

impl Checked {
    /// Whether something is wrong and all of it is known.
    pub fn is_known(&self) -> bool {
        !self.known.is_empty() && self.known.iter().all(Option::is_some)
    }

    /// Whether every number is right or known to be wrong.
    pub fn holds(&self) -> bool {
        self.is_known() || matches!(self.diagnosis.verdict, Verdict::Conforms | Verdict::ConformsToDialect(_))
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The implementation's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The precision that it declared.
    pub dtype: String,
    /// The seed of the random cases.
    pub seed: u64,
    /// The command that was run, quoted for a shell.
    pub command: String,
    /// The operations, in the order of the declaration.
    pub operations: Vec<Checked>,
    /// Known deviations that no longer occur.
    pub stale: Vec<Known>,
}

impl Report {
    /// Whether some operation broke, and not in a way that is known.
    pub fn is_broken(&self) -> bool {
        self.operations.iter().any(|checked| checked.diagnosis.verdict == Verdict::Broken && !checked.is_known())
    }

    /// Whether every operation conforms (to what was declared, or to a dialect) or deviates as is known, and every known
    /// deviation is still there.
    pub fn conforms(&self) -> bool {
        self.stale.is_empty() && self.operations.iter().all(Checked::holds)
    }

    /// The command that repeats one case.
    pub fn reproduce(&self, checked: &Checked, case: &str) -> String {
        let dialect = checked.dialect.as_ref().map_or(String::new(), |dialect| format!(" --dialect {dialect}"));
        format!("plumbline check --op {}{dialect} --seed {} --case {case} -- {}", checked.id, self.seed, self.command)
    }
}

/// The verdict in words.
pub fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Conforms => "conforms".into(),
        Verdict::ConformsToDialect(name) => format!("conforms to dialect {name}"),
        Verdict::Differs => "differs".into(),
        Verdict::Broken => "broken".into(),
        Verdict::NotCompared => "not compared".into(),
    }
}

/// Words quoted for a POSIX shell where they need it.
pub fn shell_quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c));
        if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::shell_quoted;

    #[test]
    fn commands_are_quoted_for_the_shell() {
        let words = ["python3", "my adapter.py", "it's", ""].map(String::from);
        assert_eq!(shell_quoted(&words), r"python3 'my adapter.py' 'it'\''s' ''");
    }
}

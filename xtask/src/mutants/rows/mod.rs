//! The mistakes, by the part of the loss that they are about. Each is written as an implementation would make it.

mod advantage;
mod aggregation;
mod distributional;
mod held_out;
mod kl;
mod log_prob;
mod masks;
mod preference;
mod returns;
mod surrogate;
mod temporal_difference;
mod value;

use plumbline_core::num::Dtype;
use plumbline_core::spec::Value;

use super::subject::{Answer, Given, Subject};

/// A mistake or a variant, as an implementation that holds it.
pub struct Mutant {
    /// Which one: the letter of its part and a number.
    pub row: &'static str,
    /// What it does.
    pub title: &'static str,
    /// Whether it is a legitimate variant, to be named and not failed.
    pub variant: bool,
    /// Names that say what it is; a trailing `*` stands for any ending.
    pub names: &'static [&'static str],
    /// The implementation.
    pub subject: Subject,
}

impl Mutant {
    const fn new(
        row: &'static str,
        title: &'static str,
        target: (&'static str, Option<&'static str>, &'static [&'static str]),
        names: &'static [&'static str],
        compute: fn(&Given<'_>) -> Answer,
    ) -> Mutant {
        let (operation, dialect, takes) = target;
        Mutant {
            row,
            title,
            variant: false,
            names,
            subject: Subject { operation, dialect, takes, settings: &[], dtype: Dtype::F64, compute },
        }
    }

    const fn variant(self) -> Mutant {
        Mutant { variant: true, ..self }
    }

    const fn fixing(self, settings: &'static [(&'static str, Value)]) -> Mutant {
        Mutant { subject: Subject { settings, ..self.subject }, ..self }
    }

    const fn single_precision(self) -> Mutant {
        Mutant { subject: Subject { dtype: Dtype::F32, ..self.subject }, ..self }
    }
}

/// An operation, its declared dialect, and the optional inputs and parameters that the implementation takes.
type Target = (&'static str, Option<&'static str>, &'static [&'static str]);

/// All of them.
pub fn all() -> Vec<&'static Mutant> {
    [
        aggregation::MUTANTS,
        masks::MUTANTS,
        surrogate::MUTANTS,
        kl::MUTANTS,
        advantage::MUTANTS,
        returns::MUTANTS,
        value::MUTANTS,
        preference::MUTANTS,
        temporal_difference::MUTANTS,
        distributional::MUTANTS,
        log_prob::MUTANTS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Those that were written with their names before the search was run on them.
pub fn held_out() -> Vec<&'static Mutant> {
    held_out::MUTANTS.iter().collect()
}

/// Slots of a batch seen as rows.
fn by_rows(values: &[f64], columns: usize) -> Vec<Vec<f64>> {
    values.chunks(columns.max(1)).map(<[f64]>::to_vec).collect()
}

const POLICY: &[&str] = &[
    "log_prob",
    "old_log_prob",
    "ref_log_prob",
    "advantage",
    "mask",
    "clip_ratio_low",
    "clip_ratio_high",
    "kl_coefficient",
];
const WEIGHTED: &[&str] =
    &["log_prob", "old_log_prob", "advantage", "mask", "importance_weight", "clip_ratio_low", "clip_ratio_high"];
const DUAL: &[&str] =
    &["log_prob", "old_log_prob", "advantage", "mask", "clip_ratio_low", "clip_ratio_high", "clip_ratio_c"];
pub(super) const GRPO: Target = ("objective.grpo", Some("paper"), POLICY);
const PPO: Target = ("objective.ppo", Some("paper"), WEIGHTED);
pub(super) const GSPO: Target = ("objective.gspo", Some("paper"), &["log_prob", "old_log_prob", "advantage", "mask"]);

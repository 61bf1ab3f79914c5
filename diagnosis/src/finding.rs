//! What a diagnosis says.

use super::change::Change;

/// The verdict on one operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All numbers agree.
    Conforms,
    /// All numbers agree with another dialect than the operation's defaults, and none was declared.
    ConformsToDialect(&'static str),
    /// Some number differs.
    Differs,
    /// The implementation broke the protocol, raised, or died.
    Broken,
    /// No case was compared.
    NotCompared,
}

/// What a finding is about, in the order in which evidence is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A crash, a hang, an answer that is none.
    Broken,
    /// The implementation raised an error on legal input.
    Raised,
    /// NaN or an infinity where a finite number is right.
    NotFinite,
    /// What stands under the mask changes the result.
    MaskedJunk,
    /// The numbers are those of other points of the space.
    Explained,
    /// The numbers are those of no point that is known, and they depend on what must not matter.
    Invariance,
    /// The numbers are those of no point that is known.
    Unknown,
    /// Ordinary cases are right, an edge or a range is not, and no point that is known does that.
    EdgeOnly,
    /// An output beside value and gradient differs.
    OtherOutput,
    /// A remark, no deviation: numbers other than 0 stand in an output's masked slots.
    UnderMask,
}

impl FindingKind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Broken => "broken",
            FindingKind::Raised => "raised",
            FindingKind::NotFinite => "not-finite",
            FindingKind::MaskedJunk => "masked-junk",
            FindingKind::Explained => "explained",
            FindingKind::Invariance => "invariance",
            FindingKind::Unknown => "unknown",
            FindingKind::EdgeOnly => "edge-only",
            FindingKind::OtherOutput => "other-output",
            FindingKind::UnderMask => "under-mask",
        }
    }
}

/// One explanation that reproduces all numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Identifiers of its changes.
    pub ids: Vec<String>,
    /// In words that follow "the numbers are right if".
    pub text: String,
    /// How far from what was meant: less is simpler.
    pub cost: u32,
    /// The changes, where it is made of changes alone.
    pub changes: Vec<Change>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// In plain words, with numbers.
    pub text: String,
    /// The explanations that fit equally, simplest first.
    pub explanations: Vec<Explanation>,
    /// A case that shows it.
    pub case: String,
}

/// The number that differs most.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// The case.
    pub case: String,
    /// The output.
    pub output: String,
    /// The position in the output.
    pub position: Vec<usize>,
    /// What the implementation gave.
    pub got: f64,
    /// What is right.
    pub expected: f64,
    /// The difference relative to the larger of the expected number and 1.
    pub difference: f64,
}

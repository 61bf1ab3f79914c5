//! What is answered.

use super::Printed;

/// What the numbers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// What was meant, or (where nothing was said to be meant) an operation of the catalog in one of its dialects.
    Known,
    /// Something else: another operation or dialect than was meant, a change, a factor.
    Changed,
    /// The value is one of those; the gradient is not its.
    GradientDiffers,
    /// Nothing that is known.
    Unknown,
}

impl Conclusion {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Conclusion::Known => "known",
            Conclusion::Changed => "changed",
            Conclusion::GradientDiffers => "gradient-differs",
            Conclusion::Unknown => "unknown",
        }
    }
}

/// An operation in a dialect; without one, at its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The operation.
    pub operation: &'static str,
    /// The dialect.
    pub dialect: Option<&'static str>,
}

/// How the given gradient stands to a point's.
#[derive(Clone, Debug, PartialEq)]
pub enum GradientFit {
    /// None was given.
    NotGiven,
    /// It is the same.
    Same,
    /// It is not; in words.
    Differs(String),
    /// The point's is not known: it takes differences, which a batch of this size is too large for.
    NotCompared,
}

/// A point that gives the number.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Its names: operations and dialects that mean the same parameters.
    pub names: Vec<Name>,
    /// Identifiers of what is changed; none for a point that has a name.
    pub changes: Vec<String>,
    /// What is changed, in words that follow "if"; empty for none.
    pub text: String,
    /// What it gives (of several numbers the first).
    pub value: f64,
    /// How its gradient stands.
    pub gradient: GradientFit,
    /// How far from what was meant: less is simpler.
    pub cost: u32,
}

/// A point that comes near and does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// Its names.
    pub names: Vec<Name>,
    /// What is changed, in words.
    pub text: String,
    /// What it gives (of several numbers the first).
    pub value: f64,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What the numbers say.
    pub conclusion: Conclusion,
    /// Given names and the catalog's, where they differ, and what else was made of the input.
    pub notes: Vec<String>,
    /// The size of the batch in words.
    pub batch: String,
    /// What was printed.
    pub printed: Printed,
    /// What was said to be meant.
    pub meant: Option<Name>,
    /// What is meant gives this (of several numbers the first).
    pub meant_value: Option<f64>,
    /// All points of the simplest kind that fit, simplest first.
    pub fits: Vec<Fit>,
    /// Where none fits: the nearest.
    pub nearest: Vec<Near>,
    /// In words: what tells the fitting points apart, or that nothing on this batch does.
    pub apart: Option<String>,
    /// How many points were tried.
    pub tried: usize,
    /// How many were left out because the effort was spent.
    pub left_out: usize,
    /// How many further ones were left out that change nothing on the rows that were sampled.
    pub idle_left_out: usize,
    /// How many of the tried points would fit a number of this precision by chance.
    pub by_chance: f64,
}

impl Answer {
    /// Whether so many points were tried for so few digits that a fit means little.
    pub fn may_be_chance(&self) -> bool {
        !self.fits.is_empty() && self.by_chance >= 0.5
    }
}

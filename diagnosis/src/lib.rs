//! From an implementation's numbers to what it computes.
//!
//! A [`Meaning`] is a function from a case to value and gradient: an operation with its parameters. A [`Change`] turns
//! one meaning into another: an axis of the catalog (a dialect, another name or size of a parameter, another operation
//! of the family) or a mistake (a swapped operand, an ignored mask, a mean of means). [`Point`]s of the space are a
//! meaning with some changes; all of them are evaluated by composing the core. [`diagnose`] looks at the evidence in
//! order, then for the simplest points that reproduce the numbers, and reports all that fit equally well. The inputs that
//! tell the points apart are [`vectors`].

mod candidates;
mod change;
mod coefficient;
mod composed;
mod edit;
mod evidence;
mod factor;
mod finding;
mod invariance;
mod judge;
mod meaning;
pub mod one_shot;
mod parts;
mod scaled;
mod search;
mod separation;
mod space;
mod tolerance;
pub mod vectors;
mod words;

pub use candidates::single_changes;
pub use change::{Change, LogRatioEdit, OutputEdit, Parts, Place, Power, Split};
pub use edit::Edit;
pub use finding::{Explanation, Finding, FindingKind, Verdict, Worst};
pub use judge::{Diagnosis, Observation, Observed, diagnose};
pub use meaning::{Meaning, Numbers, Trainable, output_shape, outputs};
pub use search::{may_be_paired, same_axis};
pub use separation::{Gap, Separation, separation, separations, vectors_of};
pub use space::Point;
pub use tolerance::Tolerance;

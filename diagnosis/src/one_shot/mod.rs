//! What one batch and the number that a framework printed for it tell: nothing is run but the core.
//!
//! [`prepare`] checks a [`Question`] (arrays by whatever names the framework has for them, the printed loss, perhaps its
//! gradient); [`Inquiry::answer`] tries the catalog's operations and dialects on the batch, then single changes of each and
//! factors, and stops at the simplest kind that gives the number. All that fit are in the [`Answer`], with how many of the
//! tried ones would fit by chance. There is no file system here and no thread: the caller says how the work is [`Execute`]d,
//! so that it runs in a browser too.

mod answer;
mod arrays;
mod candidates;
mod factors;
mod inquiry;
mod json;
mod names;
mod printed;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Conclusion, Fit, GradientFit, Name, Near};
pub use inquiry::{Inquiry, Unanswerable, prepare};
pub use json::answer_as_json;
pub use names::{Member, canonical, is_result, member};
pub use printed::{Printed, Written};

use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::Tensor;

/// Does jobs 0 to `count`, in any order, at once or one after the other.
pub type Execute<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// One job after the other.
pub fn in_turn(count: usize, job: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(job);
}

/// A batch and what was printed for it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The arrays, under the framework's names or the catalog's.
    pub inputs: Vec<(String, Tensor)>,
    /// The printed loss (or another main output).
    pub result: Printed,
    /// Gradients of its sum, by the inputs they belong to; an empty name is the first trainable input.
    pub gradients: Vec<(String, Printed)>,
    /// The operation that is meant.
    pub operation: Option<String>,
    /// The dialect that is meant.
    pub dialect: Option<String>,
    /// Parameters that are known.
    pub params: Vec<(String, Param)>,
    /// How many numbers may be looked at before the search ends, or no limit. On a batch of 256 × 4096 one point takes a
    /// million of them.
    pub effort: Option<u64>,
}

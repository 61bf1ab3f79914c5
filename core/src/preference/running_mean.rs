//! The running mean of implicit rewards that BCO's losses shift by.

use super::arithmetic::difference;
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Choice, Domain, InputSpec, OutputSpec, ParamSpec, choice};

choice! {
    /// Where the reward shift δ comes from.
    pub enum RewardShift {
        /// It is 0.
        Zero = "zero",
        /// The mean reward of this batch and those before it.
        Running = "running",
        /// It is `running_mean` as given: for a shard, the mean of the full batch.
        Given = "given",
    }
}

/// The mean and count of a stream after `count_new` more numbers whose mean is `mean_new`; with nothing before and
/// nothing new, 0.
///
/// ```
/// use plumbline_core::preference::running_mean::merge_means;
/// assert_eq!(merge_means(1.0, 3.0, 5.0, 1.0), [2.0, 4.0]);
/// ```
#[inline(always)]
pub fn merge_means<R: Real>(mean: R, count: R, mean_new: R, count_new: R) -> [R; 2] {
    let total = count + count_new;
    if total == R::zero() {
        return [R::zero(), total];
    }
    [mean + difference(mean_new, mean) * (count_new / total), total]
}

/// Mean and count before this batch, from the call's optional inputs.
pub(super) fn state_of<R: Real>(call: &Call<'_, R>) -> Result<[R; 2], Error> {
    let scalar = |name| -> Result<R, Error> {
        Ok(call.optional_finite(name)?.and_then(|values| values.first().copied()).unwrap_or(R::zero()))
    };
    let (mean, count) = (scalar("running_mean")?, scalar("running_count")?);
    if count < R::zero() {
        return Err(Error::OutOfRange { argument: "running_count", value: count.to_f64(), legal: ">= 0" });
    }
    Ok([mean, count])
}

/// Input: the mean before this batch.
pub(super) const RUNNING_MEAN: InputSpec =
    InputSpec::new("running_mean", Domain::Reward, &[&[]], "mean implicit reward before this batch; without it 0")
        .optional();
/// Input: how much it is the mean of.
pub(super) const RUNNING_COUNT: InputSpec =
    InputSpec::new("running_count", Domain::NonNegative, &[&[]], "how much that mean was taken over; without it 0")
        .optional();
/// Parameter: where the shift comes from.
pub(super) const REWARD_SHIFT: ParamSpec = ParamSpec::choice(
    "reward_shift",
    "running",
    RewardShift::NAMES,
    "the shift delta of the rewards: 0, their mean over this batch and those before it, or running_mean as given (for a shard)",
);
/// Output: the shift.
pub(super) const SHIFT: OutputSpec = OutputSpec::value("shift", &[], "the reward shift delta that was used");
/// Output: the count after this batch.
pub(super) const NEXT_COUNT: OutputSpec =
    OutputSpec::value("next_count", &[], "the running count after this batch; the running mean is then the shift");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_the_mean_of_everything() {
        let [mean, count] = merge_means(0.0f64, 0.0, 2.5, 2.0);
        assert_eq!([mean, count], [2.5, 2.0]);
        let [mean, count] = merge_means(mean, count, -0.5, 4.0);
        assert!((mean - 0.5).abs() < 1e-15);
        assert_eq!(count, 6.0);
        assert_eq!(merge_means(0.0f64, 0.0, 7.0, 0.0), [0.0, 0.0]);
    }
}

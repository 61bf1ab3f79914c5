//! Rewards on a standard scale: by fixed numbers, or by the mean and deviation of all rewards seen so far.

use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Domain, Elementwise, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_elements,
    evaluate_with,
};

/// z = (r − μ)/σ: a reward model's scale set by the mean and deviation measured once, on reference responses (Ziegler et
/// al. 2019, §2.1). Not differentiated. σ > 0 is the caller's to see to; the catalog checks it.
///
/// ```
/// use plumbline_core::reward::calibrate;
/// assert_eq!(calibrate(5.0, 3.0, 4.0), 0.5);
/// ```
#[inline(always)]
pub fn calibrate<R: Real>(reward: R, mean: R, deviation: R) -> R {
    let apart = reward - mean;
    if apart.is_finite() {
        return apart / deviation;
    }
    // The difference of two finite numbers may lie beyond the range, and its quotient within it.
    (reward * R::half() - mean * R::half()) / deviation * R::two()
}

/// Count, mean and sum of squared distances of the numbers seen so far (Welford 1962); two of them merge (Chan, Golub and
/// LeVeque 1979).
///
/// Kept in `f64` for both number types. One number at a time, results depend on the order in the last bits; a batch that
/// is given whole does not.
///
/// ```
/// use plumbline_core::reward::Running;
/// let mut all = Running::default();
/// all.push_batch(&[1.0, 3.0])?;
/// all.push(5.0);
/// assert_eq!((all.count, all.mean, all.variance(1)), (3.0, 3.0, Some(4.0)));
/// # Ok::<(), plumbline_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Running {
    /// How many numbers.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// Σ (x − mean)².
    pub squares: f64,
}

impl Running {
    /// Take in one number (Welford's step).
    pub fn push(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    /// Take in a batch; the order inside it does not matter.
    pub fn push_batch<R: Real>(&mut self, values: &[R]) -> Result<(), Error> {
        self.push_all(values, |_| true)
    }

    fn push_all<R: Real>(&mut self, values: &[R], keeps: impl Fn(usize) -> bool) -> Result<(), Error> {
        let (mut sum, mut count) = (ExactSum::new(), 0usize);
        let kept = || values.iter().enumerate().filter(|(index, _)| keeps(*index));
        for (index, value) in kept() {
            if !value.is_finite() {
                return Err(Error::NonFinite { argument: "reward", index });
            }
            sum.add(*value);
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let mean = sum.value::<f64>() / count as f64;
        let mut squares = ExactSum::new();
        for (_, value) in kept() {
            let distance = Real::to_f64(*value) - mean;
            squares.add(distance * distance);
        }
        self.merge(Running { count: count as f64, mean, squares: squares.value() });
        Ok(())
    }

    /// Take in what another accumulator has seen.
    pub fn merge(&mut self, other: Running) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        self.mean += apart * (other.count / count);
        self.squares += other.squares + apart * apart * (self.count * other.count / count);
        self.count = count;
    }

    /// Variance with `count − ddof` in the denominator; `None` where that is not positive.
    pub fn variance(&self, ddof: usize) -> Option<f64> {
        let freedom = self.count - ddof as f64;
        (freedom > 0.0).then_some(self.squares / freedom)
    }
}

/// [`calibrate`] with its settings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Calibrate<R> {
    /// What is subtracted.
    pub mean: R,
    /// What is divided by.
    pub deviation: R,
}

impl<R: Real> Elementwise<R, 1, 1> for Calibrate<R> {
    const OPERATION: &'static str = "reward.calibrate";
    const INPUTS: [&'static str; 1] = ["reward"];
    const OUTPUTS: [&'static str; 1] = ["standardised"];

    fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Calibrate { mean: call.number("mean")?, deviation: call.number("deviation")? })
    }

    #[inline(always)]
    fn apply(&self, _: bool, [reward]: [R; 1]) -> [R; 1] {
        [calibrate(reward, self.mean, self.deviation)]
    }
}

fn evaluate_calibrate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_elements::<R, Calibrate<R>, 1, 1>(call)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let reward = call.real("reward")?;
    let mask = call.optional_bytes("mask");
    let keeps = |index: usize| mask.is_none_or(|bytes| bytes.get(index).is_some_and(|byte| *byte != 0));
    let scalar = |name: &'static str| -> Result<f64, Error> {
        Ok(call.optional_finite(name)?.and_then(|values| values.first()).map_or(0.0, |value| Real::to_f64(*value)))
    };
    let mut seen =
        Running { count: scalar("seen_count")?, mean: scalar("seen_mean")?, squares: scalar("seen_squares")? };
    for (argument, value) in [("seen_count", seen.count), ("seen_squares", seen.squares)] {
        if value < 0.0 {
            return Err(Error::ElementOutOfRange { argument, index: 0, value, legal: Range::NON_NEGATIVE.text });
        }
    }
    seen.push_all(reward, keeps)?;
    let (ddof, eps) = (call.integer("ddof")?, Real::to_f64(call.number("eps")?));
    let shift = if call.flag("subtract_mean") { seen.mean } else { 0.0 };
    let limit = call.optional_number("clip").map(Real::to_f64);
    if let Some(out) = call.output("standardised") {
        let variance = match seen.variance(ddof) {
            Some(variance) => variance,
            None if seen.count == 0.0 => return Err(Error::EmptyMask { argument: "reward" }),
            None => return Err(Error::TooFew { argument: "reward", got: seen.count as usize, needed: ddof + 1 }),
        };
        let deviation = Real::sqrt(variance) + eps;
        for (index, (out, reward)) in out.iter_mut().zip(reward).enumerate() {
            *out = R::zero();
            if keeps(index) {
                let centred = Real::to_f64(*reward) - shift;
                // Beyond 1e154 the squares overflow; the deviation is then infinite and the result 0.
                let flat = centred == 0.0 || deviation == f64::INFINITY;
                let scaled = if flat { 0.0 } else { centred / deviation };
                *out = R::from_f64(limit.map_or(scaled, |limit| Real::clip(scaled, -limit, limit)));
            }
        }
    }
    call.write("count", R::from_f64(seen.count));
    call.write("mean", R::from_f64(seen.mean));
    call.write("squares", R::from_f64(seen.squares));
    Ok(())
}

const REWARD: InputSpec = InputSpec::new("reward", Domain::Reward, &[&["B"]], "reward of each response");
const MASK: InputSpec =
    InputSpec::new("mask", Domain::Mask, &[&["B"]], "1 where the response has a reward; without it all have one")
        .optional();
const STANDARDISED: OutputSpec = OutputSpec::value("standardised", &["B"], "reward on the standard scale");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "reward.calibrate",
        family: Family::Reward,
        title: "Calibration by a fixed mean and deviation",
        summary: "Shift and scale rewards by a mean and a deviation that were measured once.",
        formula: r"z = (r - \mu) / \sigma",
        gradient: "",
        notes: "Scale and shift are constants: unlike whitening, the result does not depend on the rest of the batch. No \
                library differs.",
        sources: &[Source {
            title: "Fine-Tuning Language Models from Human Preferences",
            reference: "arXiv:1909.08593",
            place: "§2.1, normalisation of the reward model",
        }],
        inputs: &[REWARD, MASK],
        params: &[
            ParamSpec::number("mean", r"\mu", 0.0, Range::ANY, "subtracted"),
            ParamSpec::number("deviation", r"\sigma", 1.0, Range::POSITIVE, "divided by"),
        ],
        defaults: &[],
        outputs: &[STANDARDISED],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_calibrate),
    },
    Operation {
        id: "reward.standardise",
        family: Family::Reward,
        title: "Standardisation by running statistics",
        summary: "Take the batch into the statistics of all rewards seen, then shift and scale it by them.",
        formula: r"z = \frac{r - \bar r}{\sqrt{M / (n - \mathrm{ddof})} + \epsilon},\quad
n = n_a + n_b,\quad \bar r = \bar r_a + (\bar r_b - \bar r_a)\frac{n_b}{n},\quad
M = M_a + M_b + (\bar r_b - \bar r_a)^2 \frac{n_a n_b}{n}",
        gradient: "",
        notes: "The statistics (count, mean, sum of squared distances) go in and come out, so a stream is standardised \
                batch after batch, and shards are merged. The order inside a batch does not matter.",
        sources: &[
            Source {
                title: "Note on a Method for Calculating Corrected Sums of Squares and Products",
                reference: "Welford 1962, Technometrics 4(3)",
                place: "the recurrence",
            },
            Source {
                title: "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances",
                reference: "Chan, Golub and LeVeque 1979, STAN-CS-79-773",
                place: "eq. 2.1",
            },
        ],
        inputs: &[
            REWARD,
            MASK,
            InputSpec::new("seen_count", Domain::NonNegative, &[&[]], "n of the rewards seen before; without it 0")
                .optional(),
            InputSpec::new("seen_mean", Domain::Real, &[&[]], "their mean; without it 0").optional(),
            InputSpec::new(
                "seen_squares",
                Domain::NonNegative,
                &[&[]],
                "M: their squared distances from it; without it 0",
            )
            .optional(),
        ],
        params: &[
            ParamSpec::integer("ddof", "", 1, 0, 1, "subtracted from the count in the variance"),
            ParamSpec::number("eps", r"\epsilon", 1e-8, Range::NON_NEGATIVE, "added to the deviation"),
            ParamSpec::flag(
                "subtract_mean",
                true,
                "whether the mean is subtracted (otherwise rewards are only scaled)",
            ),
            ParamSpec::optional("clip", "", None, Range::POSITIVE, "largest absolute value of the result"),
        ],
        defaults: &[],
        outputs: &[
            STANDARDISED,
            OutputSpec::value("count", &[], "n of all rewards seen"),
            OutputSpec::value("mean", &[], "their mean"),
            OutputSpec::value("squares", &[], "M: their squared distances from it"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Data, Given, GivenValue, Input, Output, evaluate as evaluate_operation};
    use proptest::prelude::*;

    #[test]
    fn calibration() {
        assert_eq!(calibrate(f64::MAX, -f64::MAX, f64::MAX), 2.0);
        assert_eq!(calibrate(1.0f32, 3.0, 4.0), -0.5);
    }

    #[test]
    fn a_stream_in_two_batches() {
        let operation = crate::catalog::find("reward.standardise").unwrap();
        let (mut z, mut count, mut mean, mut squares) = ([9.0; 3], [0.0], [0.0], [0.0]);
        let reward = Input { name: "reward", shape: &[3], data: Data::Real(&[1.0, f64::NAN, 3.0]) };
        let mask = Input { name: "mask", shape: &[3], data: Data::Mask(&[1, 0, 1]) };
        let seen = [
            Input { name: "seen_count", shape: &[], data: Data::Real(&[1.0]) },
            Input { name: "seen_mean", shape: &[], data: Data::Real(&[5.0]) },
        ];
        let mut outputs = [
            Output { name: "standardised", data: &mut z },
            Output { name: "count", data: &mut count },
            Output { name: "mean", data: &mut mean },
            Output { name: "squares", data: &mut squares },
        ];
        let given = [Given { name: "eps", value: GivenValue::Number(0.0) }];
        evaluate_operation(operation, None, &given, &[reward, mask, seen[0], seen[1]], &mut outputs).unwrap();
        assert_eq!((z, count, mean, squares), ([-1.0, 0.0, 0.0], [3.0], [3.0], [8.0]));
        let mut one = [0.0];
        let single = Input { name: "reward", shape: &[1], data: Data::Real(&[2.0]) };
        let error =
            evaluate_operation(operation, None, &[], &[single], &mut [Output { name: "standardised", data: &mut one }]);
        assert_eq!(error, Err(Error::TooFew { argument: "reward", got: 1, needed: 2 }));
    }

    proptest! {
        #[test]
        fn one_by_one_whole_and_merged_agree(
            values in proptest::collection::vec(-100.0f64..100.0, 2..40),
            cut in 0usize..40,
        ) {
            let (mut single, mut whole, mut left, mut right) =
                (Running::default(), Running::default(), Running::default(), Running::default());
            values.iter().for_each(|value| single.push(*value));
            whole.push_batch(&values).unwrap();
            let cut = cut.min(values.len());
            left.push_batch(&values[..cut]).unwrap();
            right.push_batch(&values[cut..]).unwrap();
            left.merge(right);
            for other in [single, left] {
                prop_assert_eq!(other.count, whole.count);
                // Each of up to 40 steps rounds a mean below 100 and squares below 40·200² a few times.
                prop_assert!((other.mean - whole.mean).abs() < 40.0 * 4.0 * 100.0 * f64::EPSILON);
                prop_assert!((other.squares - whole.squares).abs() < 40.0 * 8.0 * 1.6e6 * f64::EPSILON);
            }
        }
    }
}

//! Importance weights divided by their mean.

use crate::Error;
use crate::batch::Mask;
use crate::num::{ExactSum, Real};
use crate::ratio::inputs::{LENGTH_EPS, at};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// What the mean of the weights runs over.
    pub enum MeanLevel {
        /// All tokens.
        Token = "token",
        /// Responses, each by the mean of its tokens' weights.
        Sequence = "sequence",
    }
}

/// The mean that weights are divided by: over all tokens, Σ m w / (Σ m + ε), or over the responses that have a token, of
/// their means Σ_t m w / (L + ε). An error where there is no token.
pub fn mean_weight<R: Real>(mask: &Mask<'_>, weight: &[R], level: MeanLevel, length_eps: R) -> Result<R, Error> {
    let count = mask.count();
    if count == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    Ok(match level {
        MeanLevel::Token => mask.sum(|slot| at(weight, slot)) / (R::from_count(count) + length_eps),
        MeanLevel::Sequence => {
            let mut total = ExactSum::new();
            let mut rows = 0;
            for row in 0..mask.shape().rows {
                let length = mask.length(row);
                if length > 0 {
                    rows += 1;
                    total.add(mask.row_sum(row, |slot| at(weight, slot)) / (R::from_count(length) + length_eps));
                }
            }
            total.value::<R>() / R::from_count(rows)
        }
    })
}

/// A weight divided by the batch's mean weight, unless that mean is at most `smallest_mean`; then the weight as it is.
///
/// ```
/// use plumbline_core::ratio::batch_normalised::normalised_weight;
/// assert_eq!(normalised_weight(3.0, 2.0, 0.0), 1.5);
/// assert_eq!(normalised_weight(0.0, 0.0, 0.0), 0.0);
/// ```
#[inline(always)]
pub fn normalised_weight<R: Real>(weight: R, mean: R, smallest_mean: R) -> R {
    if mean > smallest_mean { weight / mean } else { weight }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask = call.mask()?;
    let weight = call.real("importance_weight")?;
    mask.check_finite("importance_weight", weight)?;
    if let Some(index) = weight.iter().enumerate().position(|(slot, weight)| *weight < R::zero() && mask.keeps(slot)) {
        let value = at(weight, index).to_f64();
        return Err(Error::ElementOutOfRange { argument: "importance_weight", index, value, legal: ">= 0" });
    }
    let smallest: R = call.number("smallest_mean")?;
    let mean = mean_weight(&mask, weight, call.choice("level")?, call.number("length_eps")?)?;
    if let Some(buffer) = call.output("normalised_weight") {
        mask.write(buffer, |slot| normalised_weight(at(weight, slot), mean, smallest));
    }
    call.write("mean_weight", mean);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.batch_normalised",
    family: Family::Ratio,
    title: "Batch-normalised importance weights",
    summary: "Importance weights divided by their mean over the batch, so that they average to 1.",
    formula: r"\tilde w_{it} = w_{it}\Big/\frac{\sum m_{it} w_{it}}{\sum m_{it}}",
    gradient: "",
    notes: "Self-normalised importance sampling. At sequence level the mean is over the responses with a token, of each \
            one's mean weight. Where the mean is at most smallest_mean the weights are left as they are. verl adds 1e-8 to \
            the counts and leaves weights alone where the mean is at most 1e-8.",
    sources: &[Source {
        title: "Monte Carlo theory, methods and examples",
        reference: "Owen 2013, artowen.su.domains/mc",
        place: "Section 9.2, self-normalised importance sampling",
    }],
    inputs: &[
        InputSpec::new("importance_weight", Domain::NonNegative, &[&["B", "T"]], "the weight of each token"),
        InputSpec::MASK,
    ],
    params: &[
        ParamSpec::choice("level", "token", MeanLevel::NAMES, "what the mean of the weights runs over"),
        LENGTH_EPS,
        ParamSpec::number(
            "smallest_mean",
            r"\delta",
            0.0,
            Range::NON_NEGATIVE,
            "the largest mean that is not divided by",
        ),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("normalised_weight", &["B", "T"], "the weight of each token, divided by the mean"),
        OutputSpec::value("mean_weight", &[], "the mean"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "exact counts", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "1e-8 is added to the counts; a mean of at most 1e-8 is not divided by",
            settings: &[("length_eps", Value::Number(1e-8)), ("smallest_mean", Value::Number(1e-8))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    fn case() -> Case {
        Case::new(SPECS, "ratio.batch_normalised")
            .real("importance_weight", &[3, 2], &[1.0, 3.0, 5.0, f64::NAN, -1.0, f64::INFINITY])
            .mask("mask", &[3, 2], &[1, 1, 1, 0, 0, 0])
    }

    #[test]
    fn token_and_sequence_means() {
        assert_eq!(case().get("mean_weight").unwrap(), [3.0]);
        assert_eq!(case().get("normalised_weight").unwrap(), [1.0 / 3.0, 1.0, 5.0 / 3.0, 0.0, 0.0, 0.0]);
        // Row means 2 and 5; the empty row has none.
        assert_eq!(case().choice("level", "sequence").get("mean_weight").unwrap(), [3.5]);
    }

    #[test]
    fn nothing_and_negative() {
        let empty = case().mask("mask", &[3, 2], &[0; 6]).get("mean_weight");
        assert_eq!(empty, Err(Error::EmptyMask { argument: "mask" }));
        let negative = case().mask("mask", &[3, 2], &[1, 0, 0, 0, 1, 0]).get("mean_weight");
        let argument = "importance_weight";
        assert_eq!(negative, Err(Error::ElementOutOfRange { argument, index: 4, value: -1.0, legal: ">= 0" }));
        let zero = case().real("importance_weight", &[3, 2], &[0.0; 6]);
        assert_eq!(zero.get("normalised_weight").unwrap(), [0.0; 6]);
    }
}

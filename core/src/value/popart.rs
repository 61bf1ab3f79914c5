//! Returns in normalised units, and PopArt's update that keeps the outputs while the units change.

use crate::Error;
use crate::batch::Mask;
use crate::num::{Real, half_square};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};
use crate::value::inputs::{D_VALUE, LOSS, RETURN, TOKEN_LOSS, mean_loss};

const POPART: Source = Source {
    title: "Learning values across many orders of magnitude",
    reference: "arXiv:1602.07714",
    place: "Eq. 6–7 (statistics), Proposition 1 (preserving outputs), Algorithm 1",
};

/// Half the squared error of a value in normalised units against the return in them, ½(v − (R − μ)/σ)², and its derivative.
///
/// ```
/// assert_eq!(plumbline_core::value::popart::normalised_error(0.5, 7.0, 3.0, 2.0), [1.125, -1.5]);
/// ```
#[inline(always)]
pub fn normalised_error<R: Real>(value: R, target: R, mean: R, std: R) -> [R; 2] {
    half_square(value - (target - mean) / std)
}

/// Running statistics of returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReturnStatistics<R> {
    /// μ: running mean.
    pub mean: R,
    /// ν: running mean of squares.
    pub second_moment: R,
}

impl<R: Real> ReturnStatistics<R> {
    /// One step: (1 − β)·old + β·batch, for the mean and for the mean of squares.
    pub fn step(self, batch_mean: R, batch_second_moment: R, step_size: R) -> Self {
        let keep = R::one() - step_size;
        ReturnStatistics {
            mean: keep * self.mean + step_size * batch_mean,
            second_moment: keep * self.second_moment + step_size * batch_second_moment,
        }
    }

    /// σ = √(ν − μ²), but at least `smallest`.
    pub fn std(self, smallest: R) -> R {
        let variance = self.second_moment - self.mean * self.mean;
        if variance > smallest * smallest { variance.sqrt() } else { smallest }
    }
}

/// The weight and the bias of the last layer after the units change from (μ, σ) to (μ′, σ′), such that σ′(w′h + b′) + μ′
/// is what σ(wh + b) + μ was: w′ = σw/σ′, b′ = (σb + μ − μ′)/σ′.
///
/// ```
/// use plumbline_core::value::popart::{preserved_bias, preserved_weight};
/// assert_eq!(preserved_weight(3.0, 2.0, 4.0), 1.5);
/// assert_eq!(preserved_bias(1.0, [5.0, 2.0], [3.0, 4.0]), 1.0); // (2·1 + 5 − 3)/4
/// ```
#[inline(always)]
pub fn preserved_weight<R: Real>(weight: R, old_std: R, std: R) -> R {
    old_std * weight / std
}

/// The bias that goes with [`preserved_weight`]; each pair is [mean, deviation].
#[inline(always)]
pub fn preserved_bias<R: Real>(bias: R, [old_mean, old_std]: [R; 2], [mean, std]: [R; 2]) -> R {
    (old_std * bias + old_mean - mean) / std
}

fn evaluate_loss<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (mean, std): (R, R) = (call.number("return_mean")?, call.number("return_std")?);
    mean_loss(call, ["value", "return"], |[value, target]| normalised_error(value, target, mean, std))?;
    let mask = call.mask()?;
    let value = call.real("value")?;
    if let Some(buffer) = call.output("unnormalised_value") {
        mask.write(buffer, |slot| std * value.get(slot).copied().unwrap_or(R::zero()) + mean);
    }
    Ok(())
}

fn evaluate_update<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask: Mask<'_> = call.mask()?;
    let returns = call.real("return")?;
    mask.check_finite("return", returns)?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let smallest: R = call.number("smallest_std")?;
    let old = ReturnStatistics { mean: call.number("return_mean")?, second_moment: call.number("second_moment")? };
    let at = |slot: usize| returns.get(slot).copied().unwrap_or(R::zero());
    let count = R::from_count(mask.count());
    let new = old.step(mask.sum(at) / count, mask.sum(|slot| at(slot) * at(slot)) / count, call.number("step_size")?);
    let (old_std, std) = (old.std(smallest), new.std(smallest));
    let weights = call.finite("weight")?;
    if let Some(buffer) = call.output("new_weight") {
        for (element, weight) in buffer.iter_mut().zip(weights) {
            *element = preserved_weight(*weight, old_std, std);
        }
    }
    let biases = call.finite("bias")?;
    if let Some(buffer) = call.output("new_bias") {
        for (element, bias) in buffer.iter_mut().zip(biases) {
            *element = preserved_bias(*bias, [old.mean, old_std], [new.mean, std]);
        }
    }
    call.write("new_mean", new.mean);
    call.write("new_second_moment", new.second_moment);
    call.write("new_std", std);
    Ok(())
}

const MEAN: ParamSpec = ParamSpec::number("return_mean", r"\mu", 0.0, Range::ANY, "running mean of the returns");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "value.normalised_return",
        family: Family::Value,
        title: "Value loss in normalised units",
        summary: "Half the squared distance of a normalised value from the normalised return.",
        formula: r"L = \frac{1}{n}\sum \tfrac12\Big(v - \frac{R - \mu}{\sigma}\Big)^2,\qquad \hat V = \sigma v + \mu",
        gradient: r"\partial L/\partial v = \frac1n\Big(v - \frac{R - \mu}{\sigma}\Big)",
        notes: "Mind the units: v is what the network puts out; advantages, bootstraps and explained variance need \
                unnormalised_value = σv + μ. No dialects.",
        sources: &[POPART],
        inputs: &[
            InputSpec::new(
                "value",
                Domain::Value,
                &[&["B", "T"]],
                "the network's output at each token (normalised units)",
            ),
            RETURN,
            InputSpec::MASK,
        ],
        params: &[
            MEAN,
            ParamSpec::number("return_std", r"\sigma", 1.0, Range::POSITIVE, "running deviation of the returns"),
        ],
        defaults: &[],
        outputs: &[
            LOSS,
            D_VALUE,
            TOKEN_LOSS,
            OutputSpec::value("unnormalised_value", &["B", "T"], "the value in units of the return"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_loss),
    },
    Operation {
        id: "value.popart_update",
        family: Family::Value,
        title: "PopArt update",
        summary: "New running statistics of the returns, and the last layer rescaled so that its unnormalised output stays.",
        formula: r"\mu' = (1-\beta)\mu + \beta\bar R,\quad \nu' = (1-\beta)\nu + \beta\overline{R^2},\quad
            \sigma' = \sqrt{\nu' - \mu'^2},\quad w' = \frac{\sigma}{\sigma'}w,\quad b' = \frac{\sigma b + \mu - \mu'}{\sigma'}",
        gradient: "",
        notes: "A deviation below smallest_std is replaced by it. No dialects.",
        sources: &[POPART],
        inputs: &[
            InputSpec::new("weight", Domain::Real, &[&["K"]], "weights of the last layer"),
            InputSpec::new("bias", Domain::Real, &[&["H"]], "biases of the last layer, one per value head"),
            RETURN,
            InputSpec::MASK,
        ],
        params: &[
            MEAN,
            ParamSpec::number("second_moment", r"\nu", 1.0, Range::NON_NEGATIVE, "running mean of the squared returns"),
            ParamSpec::number("step_size", r"\beta", 3e-4, Range::UNIT, "weight of the new batch"),
            ParamSpec::number("smallest_std", r"\sigma_{\min}", 1e-4, Range::POSITIVE, "least deviation that is used"),
        ],
        defaults: &[],
        outputs: &[
            OutputSpec::value("new_weight", &["K"], "the rescaled weights"),
            OutputSpec::value("new_bias", &["H"], "the rescaled biases"),
            OutputSpec::value("new_mean", &[], "the new running mean"),
            OutputSpec::value("new_second_moment", &[], "the new running mean of squares"),
            OutputSpec::value("new_std", &[], "the new deviation"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_update),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn normalised_units() {
        let case = Case::new(SPECS, "value.normalised_return")
            .real("value", &[1, 2], &[0.5, f64::NAN])
            .real("return", &[1, 2], &[7.0, 0.0])
            .mask("mask", &[1, 2], &[1, 0])
            .number("return_mean", 3.0)
            .number("return_std", 2.0);
        assert_eq!(case.get("loss").unwrap(), [1.125]);
        assert_eq!(case.get("unnormalised_value").unwrap(), [4.0, 0.0]);
        case.check_gradient("value");
    }

    proptest! {
        #[test]
        fn update_preserves_the_unnormalised_output(
            returns in proptest::collection::vec(-50.0..50.0f64, 4),
            weight in -2.0..2.0f64,
            bias in -2.0..2.0f64,
            feature in -2.0..2.0f64,
        ) {
            let case = Case::new(SPECS, "value.popart_update")
                .real("weight", &[1], &[weight])
                .real("bias", &[1], &[bias])
                .real("return", &[2, 2], &returns)
                .number("return_mean", 0.5)
                .number("second_moment", 3.25)
                .number("step_size", 0.1);
            let one = |name: &str| case.get(name).unwrap()[0];
            let before = 3f64.sqrt() * (weight * feature + bias) + 0.5;
            let after = one("new_std") * (one("new_weight") * feature + one("new_bias")) + one("new_mean");
            prop_assert!((before - after).abs() <= 1e-12);
        }
    }
}

//! How much of the returns' variance the value explains.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};
use crate::value::inputs::{RETURN, VALUE};

/// 1 − Var(R − v)/Var(R) from the two variances. Where the returns do not vary: 1 if the residual does not vary either,
/// else 0.
///
/// ```
/// assert_eq!(plumbline_core::value::explained_variance::explained_variance(0.5, 2.0), 0.75);
/// ```
#[inline(always)]
pub fn explained_variance<R: Real>(residual_variance: R, return_variance: R) -> R {
    if return_variance > R::zero() {
        R::one() - residual_variance / return_variance
    } else if residual_variance > R::zero() {
        R::zero()
    } else {
        R::one()
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask = call.mask()?;
    let (value, target) = (call.real("value")?, call.real("return")?);
    mask.check_finite("value", value)?;
    mask.check_finite("return", target)?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let count = R::from_count(mask.count());
    let at = |values: &[R], slot: usize| values.get(slot).copied().unwrap_or(R::zero());
    let kept = || (0..mask.shape().slots()).filter(|slot| mask.keeps(*slot));
    let largest =
        kept().fold(R::zero(), |size, slot| at(value, slot).abs().larger(at(target, slot).abs()).larger(size));
    // Where a square would overflow or vanish both variances are taken of scaled numbers; their ratio does not change.
    let margin = R::from_f64(1e-6);
    let squares = largest < R::max_value().sqrt() * margin && largest * margin > R::min_positive_value().sqrt();
    let scale = if squares || largest == R::zero() { R::one() } else { largest };
    let variance = |term: &dyn Fn(usize) -> R| {
        // Measured from the smallest, whatever the order of rows, so that numbers that are all equal have variance 0
        // exactly.
        let smallest = kept().fold(R::infinity(), |smallest, slot| term(slot).smaller(smallest));
        let shifted = |slot: usize| term(slot) - smallest;
        let mean = mask.sum(shifted) / count;
        mask.sum(|slot| {
            let distance = shifted(slot) - mean;
            distance * distance
        }) / count
    };
    let residual = variance(&|slot| at(target, slot) / scale - at(value, slot) / scale);
    let total = variance(&|slot| at(target, slot) / scale);
    call.write("explained_variance", explained_variance(residual, total));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "value.explained_variance",
    family: Family::Value,
    title: "Explained variance",
    summary: "The share of the returns' variance that the value accounts for: 1 is perfect, 0 no better than a constant.",
    formula: r"\mathrm{EV} = 1 - \frac{\mathrm{Var}(R - v)}{\mathrm{Var}(R)}",
    gradient: "",
    notes: "Over the unmasked tokens. A constant offset of the value does not lower it. Returns that do not vary give 1 where \
            the residual does not vary, else 0 (others give NaN there). No dialects.",
    sources: &[Source {
        title: "OpenAI Baselines",
        reference: "github.com/openai/baselines",
        place: "common/math_util.py, explained_variance",
    }],
    inputs: &[VALUE, RETURN, InputSpec::MASK],
    params: &[],
    defaults: &[],
    outputs: &[OutputSpec::value("explained_variance", &[], "the share, at most 1")],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    fn of(value: &[f64], target: &[f64]) -> f64 {
        let shape = [1, value.len()];
        let case = Case::new(SPECS, "value.explained_variance").real("value", &shape, value);
        case.real("return", &shape, target).get("explained_variance").unwrap()[0]
    }

    #[test]
    fn known_values() {
        assert_eq!(of(&[1.0, 2.0, 4.0], &[1.0, 2.0, 4.0]), 1.0);
        assert_eq!(of(&[3.0, 3.0], &[1.0, 2.0]), 0.0);
        // Residuals (1, −1), returns (2, −2): 1 − 1/4.
        assert_eq!(of(&[1.0, -1.0], &[2.0, -2.0]), 0.75);
        assert_eq!(of(&[1.0, 2.0], &[5.0, 5.0]), 0.0);
        assert_eq!(of(&[5.0, 5.0], &[5.0, 5.0]), 1.0);
        assert_eq!(of(&[0.3, 0.4, 0.1], &[0.1, 0.1, 0.1]), 0.0);
        assert_eq!(of(&[1e-200, 2e-200], &[1e-200, 2e-200]), 1.0);
    }

    proptest! {
        #[test]
        fn finite_inputs_never_give_nan(values in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6)) {
            let share = of(&values[..3], &values[3..]);
            prop_assert!(!share.is_nan() && share <= 1.0);
        }
    }
}

//! Squared error of the value.

use crate::Error;
use crate::num::{Real, half_square};
use crate::spec::{Call, Family, InputSpec, Operation, evaluate_with};
use crate::value::inputs::{D_VALUE, LOSS, PPO, RETURN, TOKEN_LOSS, VALUE, mean_loss};

/// Half the squared error of a value, ½(v − R)², and its derivative v − R.
///
/// ```
/// assert_eq!(plumbline_core::value::mse::squared_error(1.0, 3.0), [2.0, -2.0]);
/// ```
#[inline(always)]
pub fn squared_error<R: Real>(value: R, target: R) -> [R; 2] {
    half_square(value - target)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    mean_loss(call, ["value", "return"], |[value, target]| squared_error(value, target))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "value.mse",
    family: Family::Value,
    title: "Squared-error value loss",
    summary: "Half the squared distance of the predicted value from the return.",
    formula: r"L = \frac{1}{n}\sum \tfrac12 (v - R)^2",
    gradient: r"\partial L/\partial v = (v - R)/n",
    notes: "The factor ½ is that of verl, TRL, OpenRLHF and NeMo-RL; the paper prints the square without it. No dialects: \
            the factor belongs to the value coefficient of the objective.",
    sources: &[PPO],
    inputs: &[VALUE, RETURN, InputSpec::MASK],
    params: &[],
    defaults: &[],
    outputs: &[LOSS, D_VALUE, TOKEN_LOSS],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    #[test]
    fn masked_tokens_are_absent() {
        let case = Case::new(SPECS, "value.mse")
            .real("value", &[2, 2], &[1.0, f64::NAN, 2.5, f64::INFINITY])
            .real("return", &[2, 2], &[3.0, 1.0, 1.5, f64::NAN])
            .mask("mask", &[2, 2], &[1, 0, 1, 0]);
        assert_eq!(case.get("loss").unwrap(), [1.25]);
        assert_eq!(case.get("d_value").unwrap(), [-1.0, 0.0, 0.5, 0.0]);
        assert_eq!(case.get("token_loss").unwrap(), [2.0, 0.0, 0.5, 0.0]);
        case.check_gradient("value");
        let empty = case.clone().mask("mask", &[2, 2], &[0; 4]).get("loss");
        assert_eq!(empty, Err(Error::EmptyMask { argument: "mask" }));
        let junk = case.mask("mask", &[2, 2], &[1; 4]).get("loss");
        assert_eq!(junk, Err(Error::NonFinite { argument: "value", index: 1 }));
    }
}

//! Squared error of the value with a cap.

use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Family, InputSpec, Operation, ParamSpec, Range, Source, evaluate_with};
use crate::value::inputs::{D_VALUE, LOSS, RETURN, TOKEN_LOSS, VALUE, mean_loss};

/// The squared error of a value, at most `cap`: min((v − R)², cap), and its derivative 2(v − R) up to and at the cap, 0
/// beyond.
///
/// ```
/// assert_eq!(plumbline_core::value::capped::capped_error(3.0, 1.0, 0.5), [0.5, 0.0]);
/// assert_eq!(plumbline_core::value::capped::capped_error(1.5, 1.0, 0.5), [0.25, 1.0]);
/// ```
#[inline(always)]
pub fn capped_error<R: Real>(value: R, target: R, cap: R) -> [R; 2] {
    let error = value - target;
    let square = error * error;
    if square <= cap { [square, R::two() * error] } else { [cap, R::zero()] }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let cap: R = call.number("cap")?;
    mean_loss(call, ["value", "return"], |[value, target]| capped_error(value, target, cap))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "value.capped",
    family: Family::Value,
    title: "Capped squared-error value loss",
    summary: "The squared distance of the value from the return, cut off at a cap.",
    formula: r"L = \frac{1}{n}\sum \min\big((v - R)^2,\ c\big)",
    gradient: r"\partial L/\partial v = \frac{2(v - R)}{n}\,[(v-R)^2 \le c]",
    notes: "No factor ½. This is what RLlib's vf_clip_param does, where others clip the move of the value: tokens far off \
            stop learning instead of moving slowly. At the cap the derivative stands. No dialects.",
    sources: &[Source {
        title: "RLlib documentation: PPO",
        reference: "docs.ray.io/en/latest/rllib/rllib-algorithms.html",
        place: "vf_clip_param",
    }],
    inputs: &[VALUE, RETURN, InputSpec::MASK],
    params: &[ParamSpec::number(
        "cap",
        "c",
        10.0,
        Range::POSITIVE,
        "largest squared error of a token (squared units of the return)",
    )],
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
    fn beyond_the_cap_nothing_is_learnt() {
        assert_eq!(capped_error(2.0, 1.0, 1.0), [1.0, 2.0]);
        let case = Case::new(SPECS, "value.capped")
            .real("value", &[1, 3], &[3.0, 0.5, f64::NAN])
            .real("return", &[1, 3], &[1.0, 1.0, 0.0])
            .mask("mask", &[1, 3], &[1, 1, 0])
            .number("cap", 0.5);
        assert_eq!(case.get("loss").unwrap(), [0.375]);
        assert_eq!(case.get("d_value").unwrap(), [0.0, -0.5, 0.0]);
        case.check_gradient("value");
    }
}

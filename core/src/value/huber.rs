//! Huber loss of the value.

use crate::Error;
use crate::num::{Real, huber};
use crate::spec::{Call, Family, InputSpec, Operation, ParamSpec, Range, Source, evaluate_with};
use crate::value::inputs::{D_VALUE, LOSS, RETURN, TOKEN_LOSS, VALUE, mean_loss};

/// Huber's function of the value's error, and its derivative: ½(v − R)² up to |v − R| = κ, κ(|v − R| − ½κ) beyond.
///
/// ```
/// assert_eq!(plumbline_core::value::huber::huber_error(1.0, 3.0, 0.5), [0.875, -0.5]);
/// ```
#[inline(always)]
pub fn huber_error<R: Real>(value: R, target: R, threshold: R) -> [R; 2] {
    huber(value - target, threshold)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let threshold: R = call.number("huber_threshold")?;
    mean_loss(call, ["value", "return"], |[value, target]| huber_error(value, target, threshold))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "value.huber",
    family: Family::Value,
    title: "Huber value loss",
    summary: "Squared error near the return, absolute error far from it.",
    formula: r"L = \frac{1}{n}\sum \begin{cases}\tfrac12 e^2 & |e| \le \kappa\\ \kappa(|e| - \tfrac12\kappa) & |e| > \kappa\end{cases},\quad e = v - R",
    gradient: r"\partial L/\partial v = \mathrm{clip}(e, -\kappa, \kappa)/n",
    notes: "torch's huber_loss; its smooth_l1_loss is this divided by κ. No dialects.",
    sources: &[Source {
        title: "Robust Estimation of a Location Parameter",
        reference: "Huber 1964, doi:10.1214/aoms/1177703732",
        place: "Section 4",
    }],
    inputs: &[VALUE, RETURN, InputSpec::MASK],
    params: &[ParamSpec::number(
        "huber_threshold",
        r"\kappa",
        1.0,
        Range::POSITIVE,
        "error at which the loss turns linear (units of the return)",
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
    fn two_branches() {
        let case = Case::new(SPECS, "value.huber")
            .real("value", &[1, 2], &[3.0, 1.25])
            .real("return", &[1, 2], &[1.0, 1.0])
            .number("huber_threshold", 0.5);
        assert_eq!(case.get("token_loss").unwrap(), [0.875, 0.03125]);
        assert_eq!(case.get("d_value").unwrap(), [0.25, 0.125]);
        case.check_gradient("value");
    }
}

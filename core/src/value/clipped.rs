//! PPO's clipped value loss.

use core::cmp::Ordering;

use crate::Error;
use crate::num::{Real, half_square};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};
use crate::value::inputs::{D_VALUE, LOSS, RETURN, TOKEN_LOSS, VALUE, mean_loss};

/// One token's clipped value loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedTerm<R> {
    /// The loss.
    pub loss: R,
    /// Its derivative by the value.
    pub d_value: R,
    /// Whether the clipped error was the larger one.
    pub clipped: bool,
}

/// The larger of the squared errors of the value and of the value kept within ±ε of its old one,
/// ½ max((v − R)², (clip(v, v_old − ε, v_old + ε) − R)²).
///
/// Where the clipped error is larger the derivative is 0 (the clip passes none), else v − R. At a tie half of each branch's
/// derivative is taken, as autograd of a maximum does: v − R inside and at the bounds of the clip, ½(v − R) outside.
///
/// ```
/// use plumbline_core::value::clipped::clipped_error;
/// let term = clipped_error(1.0, 0.0, 1.2, 0.2);
/// assert_eq!((term.loss, term.d_value, term.clipped), (0.5, 0.0, true)); // max(0.04, 1)/2
/// ```
///
/// Differs in: verl 0.9 clips by torch.min and torch.max, which at exactly the bound pass half the gradient (so ¾(v − R)
/// in all); TRL clamps.
#[inline(always)]
pub fn clipped_error<R: Real>(value: R, old_value: R, target: R, clip_range: R) -> ClippedTerm<R> {
    let kept = value.clip(old_value - clip_range, old_value + clip_range);
    let [loss, slope] = half_square(value - target);
    let [clipped_loss, _] = half_square(kept - target);
    match clipped_loss.partial_cmp(&loss) {
        Some(Ordering::Greater) => ClippedTerm { loss: clipped_loss, d_value: R::zero(), clipped: true },
        Some(Ordering::Equal) if kept != value => ClippedTerm { loss, d_value: R::half() * slope, clipped: false },
        _ => ClippedTerm { loss, d_value: slope, clipped: false },
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let range: R = call.number("clip_range")?;
    mean_loss(call, ["value", "old_value", "return"], |[value, old, target]| {
        let term = clipped_error(value, old, target, range);
        [term.loss, term.d_value]
    })?;
    let mask = call.mask()?;
    let at = |values: &[R], slot: usize| values.get(slot).copied().unwrap_or(R::zero());
    let (value, old, target) = (call.real("value")?, call.real("old_value")?, call.real("return")?);
    let clipped = (0..mask.shape().slots())
        .filter(|slot| mask.keeps(*slot))
        .filter(|slot| clipped_error(at(value, *slot), at(old, *slot), at(target, *slot), range).clipped)
        .count();
    let eps: R = call.number("length_eps")?;
    call.write("clip_fraction", R::from_count(clipped) / (R::from_count(mask.count()) + eps));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "value.clipped",
    family: Family::Value,
    title: "Clipped value loss (PPO)",
    summary: "The larger of the squared errors of the value and of the value kept near its old one.",
    formula: r"L = \frac{1}{n}\sum \tfrac12\max\big((v-R)^2,\ (\mathrm{clip}(v, v_{\mathrm{old}}-\epsilon, v_{\mathrm{old}}+\epsilon)-R)^2\big)",
    gradient: r"\partial L/\partial v = \frac{v - R}{n}\,[(v-R)^2 \ge (\mathrm{clip}(v)-R)^2]",
    notes: "The maximum is right: the minimum would reward leaving the range. v_old is the value at sampling time, not \
            recomputed. clip_fraction counts tokens whose clipped error is strictly larger. At a tie outside the range half \
            the derivative passes. verl adds 1e-8 to the token count of the clip fraction, and passes half the clip's gradient \
            exactly at a bound, where TRL and this function pass it whole.",
    sources: &[Source {
        title: "Implementation Matters in Deep Policy Gradients: A Case Study on PPO and TRPO",
        reference: "arXiv:2005.12729",
        place: "Section 3, value function clipping",
    }],
    inputs: &[
        VALUE,
        InputSpec::new("old_value", Domain::Value, &[&["B", "T"]], "value predicted when the response was sampled"),
        RETURN,
        InputSpec::MASK,
    ],
    params: &[
        ParamSpec::number(
            "clip_range",
            r"\epsilon",
            0.2,
            Range::NON_NEGATIVE,
            "how far a value may move from its old one (units of the return)",
        ),
        ParamSpec::number("length_eps", "", 0.0, Range::NON_NEGATIVE, "added to the token count of the clip fraction"),
    ],
    defaults: &[],
    outputs: &[
        LOSS,
        D_VALUE,
        TOKEN_LOSS,
        OutputSpec::value("clip_fraction", &[], "share of tokens whose clipped error is the larger one"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "exact token count", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "1e-8 is added to the token count of the clip fraction; the clip range is 0.5 by default",
            settings: &[("clip_range", Value::Number(0.5)), ("length_eps", Value::Number(1e-8))],
        },
        Dialect { name: "trl-1.12", note: "as the paper", settings: &[] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn regions_and_ties() {
        let term = |value, old, target| {
            let term = clipped_error(value, old, target, 0.25);
            [term.loss, term.d_value, f64::from(u8::from(term.clipped))]
        };
        // Inside: the plain error.
        assert_eq!(term(1.0, 0.875, 2.0), [0.5, -1.0, 0.0]);
        // Moved towards the target beyond the range: no gradient.
        assert_eq!(term(1.0, 0.0, 1.0), [0.28125, 0.0, 1.0]);
        // Moved away from the target: the unclipped error is larger and pulls back.
        assert_eq!(term(1.0, 0.0, -1.0), [2.0, 2.0, 0.0]);
        // The target midway between value 1 and bound 0.25: a tie outside the range.
        assert_eq!(term(1.0, 0.0, 0.625), [0.0703125, 0.1875, 0.0]);
        // At the bound.
        assert_eq!(term(0.25, 0.0, 1.25), [0.5, -1.0, 0.0]);
    }

    proptest! {
        #[test]
        fn never_below_the_plain_error(value in -3.0..3.0f64, old in -3.0..3.0f64, target in -3.0..3.0f64) {
            let term = clipped_error(value, old, target, 0.2);
            let [plain, _] = half_square(value - target);
            prop_assert!(term.loss >= plain);
            prop_assert_eq!(term.clipped, term.loss > plain);
            Case::new(SPECS, "value.clipped")
                .real("value", &[1, 1], &[value])
                .real("old_value", &[1, 1], &[old])
                .real("return", &[1, 1], &[target])
                .check_gradient("value");
        }
    }
}

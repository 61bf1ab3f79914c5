//! The clipped value loss with the aggregation of the policy loss beside it.

use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::{ExactSum, Real};
use crate::reduce::{EmptyRow, REDUCTION_PARAMS, Reduction, Totals};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};
use crate::value::clipped::clipped_error;

/// The result of [`value_loss`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueLoss<R> {
    /// The aggregated loss.
    pub loss: R,
    /// Share of tokens whose clipped error is the larger one.
    pub clip_fraction: R,
}

/// PPO's clipped value loss (½ of the larger squared error, see [`clipped_error`]) of a batch, aggregated as a policy loss.
///
/// `value`, `old_value` and `target` are [B, T] (units of the return); `clip_range` may be infinite for the plain squared error.
/// The gradient by `value` goes to `d_value` where that is given, +0 under the mask. Errors: `LengthMismatch`, `NonFinite`
/// of an unmasked number, `EmptyMask`.
///
/// ```
/// use plumbline_core::batch::{Mask, TokenShape};
/// use plumbline_core::objective::value_loss::value_loss;
/// use plumbline_core::reduce::{Aggregation, Reduction};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 2 }, Some(&[1, 1])).unwrap();
/// let mean = Reduction::new(Aggregation::TokenMean);
/// let mut gradient = [0.0; 2];
/// let result = value_loss(&[1.0, 3.0], &[0.0, 3.0], &[1.2, 1.0], 0.2, &mask, None, &mean, Some(&mut gradient)).unwrap();
/// // max(0.04, 1)/2 and 4/2: the mean is 1.25.
/// assert_eq!(result.loss, 1.25);
/// assert_eq!(gradient, [0.0, 1.0]);
/// ```
#[expect(
    clippy::too_many_arguments,
    reason = "the three arrays, their view and the two settings are the formula's own"
)]
pub fn value_loss<R: Real>(
    value: &[R],
    old_value: &[R],
    target: &[R],
    clip_range: R,
    mask: &Mask<'_>,
    groups: Option<Groups<'_>>,
    reduction: &Reduction<R>,
    d_value: Option<&mut [R]>,
) -> Result<ValueLoss<R>, Error> {
    let shape = mask.shape();
    for (argument, values) in [("value", value), ("old_value", old_value), ("return", target)] {
        shape.check(argument, values)?;
        mask.check_finite(argument, values)?;
    }
    let divisor = reduction.divisor(&Totals::of(mask, groups))?;
    let at = |values: &[R], slot: usize| values.get(slot).copied().unwrap_or(R::zero());
    let term = |slot: usize| clipped_error(at(value, slot), at(old_value, slot), at(target, slot), clip_range);
    let mut sum = ExactSum::new();
    let mut clipped = 0;
    let mut gradient = d_value;
    if let Some(gradient) = gradient.as_deref_mut() {
        shape.check("d_value", gradient)?;
        gradient.fill(R::zero());
    }
    for row in 0..shape.rows {
        let length = mask.length(row);
        if length == 0 {
            continue;
        }
        let row_divisor = reduction.row_divisor(row, length, mask, groups);
        sum.add(mask.row_sum(row, |slot| term(slot).loss) / row_divisor);
        clipped += mask.kept(row).filter(|slot| term(*slot).clipped).count();
        if let Some(gradient) = gradient.as_deref_mut() {
            let weight = reduction.scale() / divisor / row_divisor;
            for slot in mask.kept(row) {
                if let Some(element) = gradient.get_mut(slot) {
                    *element = term(slot).d_value * weight;
                }
            }
        }
    }
    Ok(ValueLoss {
        loss: sum.value::<R>() / divisor * reduction.scale(),
        clip_fraction: R::from_count(clipped) / R::from_count(mask.count()),
    })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let reduction = Reduction::from_call(call)?;
    let clip_range = call.optional_number("clip_range").unwrap_or(R::max_value());
    let mask = call.mask()?;
    let groups = call.optional_index("group").map(Groups::new);
    let (value, old_value, target) = (call.real("value")?, call.real("old_value")?, call.real("return")?);
    let gradient = call.output("d_value");
    let result = value_loss(value, old_value, target, clip_range, &mask, groups, &reduction, gradient)?;
    call.write("loss", result.loss);
    call.write("clip_fraction", result.clip_fraction);
    Ok(())
}

/// How far a value may move.
pub(super) const VALUE_CLIP_RANGE: ParamSpec = ParamSpec::optional(
    "clip_range",
    r"\epsilon_v",
    Some(0.2),
    Range::NON_NEGATIVE,
    "how far a value may move from its old one (units of the return); off: the plain squared error",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "objective.value_loss",
    family: Family::Objective,
    title: "Clipped value loss, aggregated",
    summary: "PPO's clipped value loss divided as a policy loss is.",
    formula: r"L = \frac{s}{D} \sum_i \frac{1}{d_i} \sum_t m_{it}\, \tfrac12 \max\left((v-R)^2, (\mathrm{clip}(v, v_{\mathrm{old}} \pm \epsilon_v)-R)^2\right)",
    gradient: r"\partial L / \partial v_{it} = \frac{s\, m_{it}}{D\, d_i} (v - R) \text{ where the unclipped error decides, else } 0",
    notes: "The per-token loss is value.clipped, the divisors are those of reduce.aggregate. The factor one half is inside.",
    sources: &[Source {
        title: "Implementation Matters in Deep Policy Gradients: A Case Study on PPO and TRPO",
        reference: "arXiv:2005.12729",
        place: "Section 3, value function clipping",
    }],
    inputs: &[
        InputSpec::new("value", Domain::Value, &[&["B", "T"]], "predicted value at each token (units of the return)"),
        InputSpec::new("old_value", Domain::Value, &[&["B", "T"]], "value predicted when the response was sampled"),
        InputSpec::new("return", Domain::Value, &[&["B", "T"]], "return at each token, a constant"),
        InputSpec::MASK,
        InputSpec::new("group", Domain::Group, &[&["B"]], "prompt of each response, for group_mean_token_mean")
            .optional(),
    ],
    params: &{
        let [a, b, c, d, e, f, g, h] = REDUCTION_PARAMS;
        [VALUE_CLIP_RANGE, a, b, c, d, e, f, g, h]
    },
    defaults: &[],
    outputs: &[
        OutputSpec::value("loss", &[], "the aggregated loss"),
        OutputSpec::gradient("d_value", "value", &["B", "T"], "gradient of the loss by value"),
        OutputSpec::value("clip_fraction", &[], "share of tokens whose clipped error is the larger one"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "mean over tokens", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "clip range 0.5; 1e-8 is added to the response length",
            settings: &[("clip_range", Value::Number(0.5)), ("length_eps", Value::Number(1e-8))],
        },
        Dialect {
            name: "verl-0.5",
            note: "clip range 0.5; empty responses count as zero",
            settings: &[("clip_range", Value::Number(0.5)), ("empty_row", Value::Name(EmptyRow::CountAsZero.name()))],
        },
        Dialect {
            name: "verl-0.3",
            note: "clip range 0.5; mean over tokens only",
            settings: &[("clip_range", Value::Number(0.5))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

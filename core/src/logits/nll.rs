//! Token cross-entropy with label shift and ignore mask: the per-token loss of supervised fine-tuning.

use super::row::{SoftmaxRow, TEMPERATURE, cleared, row_mut, set};
use super::token_logprob::{token_logprob, write_token_logprob_gradient};
use crate::Error;
use crate::batch::row_of;
use crate::num::Real;
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, evaluate_with};

/// The position whose logits predict the label at `position`: the one before it where labels are shifted, itself where the
/// caller has shifted them already; `None` for a first label that nothing predicts.
///
/// ```
/// use plumbline_core::logits::nll::predictor;
/// assert_eq!([predictor(3, true), predictor(0, true), predictor(3, false)], [Some(2), None, Some(3)]);
/// ```
pub fn predictor(position: usize, label_shift: bool) -> Option<usize> {
    if label_shift { position.checked_sub(1) } else { Some(position) }
}

/// −ln softmax(z/τ)[label], the loss of one label; its gradient by the logits is (p − onehot)/τ.
///
/// ```
/// use plumbline_core::logits::{nll::nll, row::SoftmaxRow};
/// assert_eq!(nll(&SoftmaxRow::new(&[1.0, 1.0], 1.0).unwrap(), 0), core::f64::consts::LN_2);
/// ```
pub fn nll<R: Real>(row: &SoftmaxRow<'_, R>, label: usize) -> R {
    R::zero() - token_logprob(row, label)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let shape = call.tokens();
    let mask = call.mask()?;
    let (logits, width) = (call.real("logits")?, call.dim("V"));
    let labels = call.optional_index("label").ok_or(Error::MissingInput { argument: "label" })?;
    let cotangents = call.optional_real(COTANGENT.name);
    let temperature = call.number(TEMPERATURE.name)?;
    let label_shift = call.flag(LABEL_SHIFT.name);
    let mut losses = cleared(call, "token_loss");
    let mut gradients = cleared(call, "d_logits");
    let mut counted = cleared(call, "counted");
    for row in 0..shape.rows {
        let start = row.saturating_mul(shape.columns);
        for column in 0..shape.columns {
            let slot = start.saturating_add(column);
            let Some(source) = predictor(column, label_shift) else { continue };
            if !mask.keeps(slot) {
                continue;
            }
            let label = labels.get(slot).map_or(0, |label| *label as usize);
            if label >= width {
                let legal = "below the number of entries";
                return Err(Error::ElementOutOfRange { argument: "label", index: slot, value: label as f64, legal });
            }
            let matrix_row = start.saturating_add(source);
            let offset = matrix_row.saturating_mul(width);
            let softmax = SoftmaxRow::judge("logits", offset, row_of(logits, width, matrix_row), temperature)?;
            set(&mut losses, slot, nll(&softmax, label));
            set(&mut counted, slot, R::one());
            let cotangent = cotangents.map_or(R::one(), |values| values.get(slot).copied().unwrap_or(R::zero()));
            if !cotangent.is_finite() {
                return Err(Error::NonFinite { argument: COTANGENT.name, index: slot });
            }
            if let Some(gradient) = row_mut(&mut gradients, width, matrix_row) {
                write_token_logprob_gradient(&softmax, label, -cotangent, gradient);
            }
        }
    }
    Ok(())
}

const COTANGENT: InputSpec = InputSpec::new(
    "cotangent",
    Domain::Real,
    &[&["B", "T"]],
    "upstream gradient of each label's loss (its weight in an aggregation); without it all are 1",
)
.optional();
const LABEL_SHIFT: ParamSpec = ParamSpec::flag(
    "label_shift",
    true,
    "whether the logits at t predict the label at t + 1; false where the caller has shifted already",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "logits.nll",
    family: Family::Logits,
    title: "token cross-entropy",
    summary: "The negative log-likelihood of each label, with the shift of causal models and labels that are ignored.",
    formula: r"\ell_t = -\log\operatorname{softmax}(z_{t-1}/\tau)[y_t]",
    gradient: r"\partial z_{t-1,j}: c_t\,(p_j - \mathbf 1[j = y_t])/\tau",
    notes: "The loss stands at the label's place. The mask says which labels count (0 where libraries write -100): the logits that \
            predict an ignored label, the last ones and the first label of a shifted row are not read. The mean over counted \
            tokens, or any other aggregation, is `reduce.aggregate` of token_loss under `counted`, whose token weights are the \
            cotangent here. TRL's SFT (`nll`) is the token mean.",
    sources: &[Source {
        title: "Training language models to follow instructions with human feedback",
        reference: "arXiv:2203.02155",
        place: "section 3.5, supervised fine-tuning",
    }],
    inputs: &[
        InputSpec::new(
            "logits",
            Domain::Logit,
            &[&["B", "T", "V"]],
            "logits at every position; -inf excludes an entry",
        ),
        InputSpec::new("label", Domain::Index("V"), &[&["B", "T"]], "token at every position; not read under the mask"),
        COTANGENT,
        InputSpec {
            meaning: "1 where the label counts, 0 where it is ignored; without it every label counts",
            ..InputSpec::MASK
        },
    ],
    params: &[LABEL_SHIFT, TEMPERATURE],
    defaults: &[],
    outputs: &[
        OutputSpec::value("token_loss", &["B", "T"], "loss of each label (nats); 0 where it does not count"),
        OutputSpec::gradient("d_logits", "logits", &["B", "T", "V"], "gradient by the logits"),
        OutputSpec::value("counted", &["B", "T"], "1 where a label counts and something predicts it, 0 elsewhere"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Data, Given, GivenValue, Input, Output, evaluate as evaluate_operation};

    fn run(logits: &[f64], label: &[u32], mask: &[u8], shift: bool) -> Result<([f64; 4], [f64; 12]), Error> {
        let (mut loss, mut gradient) = ([9.0; 4], [9.0; 12]);
        evaluate_operation(
            &SPECS[0],
            None,
            &[Given { name: "label_shift", value: GivenValue::Flag(shift) }],
            &[
                Input { name: "logits", shape: &[1, 4, 3], data: Data::Real(logits) },
                Input { name: "label", shape: &[1, 4], data: Data::Index(label) },
                Input { name: "mask", shape: &[1, 4], data: Data::Mask(mask) },
            ],
            &mut [Output { name: "token_loss", data: &mut loss }, Output { name: "d_logits", data: &mut gradient }],
        )?;
        Ok((loss, gradient))
    }

    #[test]
    fn labels_are_shifted_and_ignored_ones_touch_nothing() {
        // Labels 1 and 2 count; 3 is ignored, 0 is predicted by nothing. Their logits and label ids are junk.
        let ln = |x: f64| Real::ln(x);
        let mut logits = [f64::NAN; 12];
        logits[..6].copy_from_slice(&[ln(2.0), ln(1.0), ln(1.0), ln(1.0), ln(3.0), f64::NEG_INFINITY]);
        let (loss, gradient) = run(&logits, &[77, 0, 1, 99], &[1, 1, 1, 0], true).unwrap();
        assert!((loss[1] - ln(2.0)).abs() < 1e-15 && (loss[2] - ln(4.0 / 3.0)).abs() < 1e-15);
        assert_eq!([loss[0], loss[3]], [0.0, 0.0]);
        let expected = [-0.5, 0.25, 0.25, 0.25, -0.25, 0.0];
        for (value, expected) in gradient.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-15, "{gradient:?}");
        }
        assert!(gradient[5..].iter().all(|value| value.to_bits() == 0));
        assert_eq!(
            run(&logits, &[0, 0, 7, 0], &[1, 1, 1, 0], true).unwrap_err(),
            Error::ElementOutOfRange { argument: "label", index: 2, value: 7.0, legal: "below the number of entries" }
        );
        // Unshifted, label 2 is predicted by the third row of logits, which is junk.
        assert_eq!(
            run(&logits, &[0, 0, 1, 0], &[1, 1, 1, 0], false).unwrap_err(),
            Error::NonFinite { argument: "logits", index: 6 }
        );
    }
}

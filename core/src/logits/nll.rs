//! Token cross-entropy with label shift and ignore mask: the per-token loss of supervised fine-tuning.

use super::row::{SoftmaxRow, TEMPERATURE, cleared, row_mut, set};
use super::token_logprob::{token_logprob, write_token_logprob_gradient};
use crate::Error;
use crate::batch::{Mask, TokenShape, row_of};
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

/// −ln softmax(z/τ)\[label\], the loss of one label; its gradient by the logits is (p − onehot)/τ.
///
/// ```
/// use plumbline_core::logits::{nll::nll, row::SoftmaxRow};
/// assert_eq!(nll(&SoftmaxRow::new(&[1.0, 1.0], 1.0).unwrap(), 0), core::f64::consts::LN_2);
/// ```
pub fn nll<R: Real>(row: &SoftmaxRow<'_, R>, label: usize) -> R {
    R::zero() - token_logprob(row, label)
}

/// Logits at every position, labels, and which labels count.
#[derive(Clone, Copy, Debug)]
pub struct LabelledLogits<'a, R> {
    logits: &'a [R],
    width: usize,
    labels: &'a [u32],
    mask: Mask<'a>,
    temperature: R,
    label_shift: bool,
}

/// A label that counts, with the logits that predict it.
#[derive(Clone, Copy, Debug)]
pub struct Prediction<'a, R> {
    /// Which row of the logits, counted through the batch, predicts the label.
    pub source: usize,
    /// Those logits.
    pub row: SoftmaxRow<'a, R>,
    /// The label.
    pub label: usize,
}

impl<'a, R: Real> LabelledLogits<'a, R> {
    /// Read the logits, the labels, their mask, the shift and the temperature from a call.
    pub(crate) fn from_call(call: &Call<'a, R>) -> Result<Self, Error> {
        Ok(LabelledLogits {
            logits: call.real("logits")?,
            width: call.dim("V"),
            labels: call.optional_index("label").ok_or(Error::MissingInput { argument: "label" })?,
            mask: call.mask()?,
            temperature: call.number(TEMPERATURE.name)?,
            label_shift: call.flag(LABEL_SHIFT.name),
        })
    }

    /// The shape of the labels.
    pub fn shape(&self) -> TokenShape {
        self.mask.shape()
    }

    /// The number of entries.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the label at that place counts and something predicts it.
    pub fn counts(&self, row: usize, column: usize) -> bool {
        predictor(column, self.label_shift).is_some() && self.mask.keeps(self.slot(row, column))
    }

    /// How many labels of a row count.
    pub fn length(&self, row: usize) -> usize {
        (0..self.shape().columns).filter(|column| self.counts(row, *column)).count()
    }

    /// The label at a place, judged; `None` where it does not count.
    pub fn prediction(&self, row: usize, column: usize) -> Result<Option<Prediction<'a, R>>, Error> {
        let Some(source) = predictor(column, self.label_shift).filter(|_| self.counts(row, column)) else {
            return Ok(None);
        };
        let slot = self.slot(row, column);
        let label = self.labels.get(slot).map_or(0, |label| *label as usize);
        if label >= self.width {
            let legal = "below the number of entries";
            return Err(Error::ElementOutOfRange { argument: "label", index: slot, value: label as f64, legal });
        }
        let source = self.slot(row, source);
        let offset = source.saturating_mul(self.width);
        let row = SoftmaxRow::judge("logits", offset, row_of(self.logits, self.width, source), self.temperature)?;
        Ok(Some(Prediction { source, row, label }))
    }

    fn slot(&self, row: usize, column: usize) -> usize {
        row.saturating_mul(self.shape().columns).saturating_add(column)
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let labelled = LabelledLogits::from_call(call)?;
    let cotangents = call.optional_real(COTANGENT.name);
    let mut losses = cleared(call, "token_loss");
    let mut gradients = cleared(call, "d_logits");
    let mut counted = cleared(call, "counted");
    for row in 0..labelled.shape().rows {
        for column in 0..labelled.shape().columns {
            let Some(Prediction { source, row: softmax, label }) = labelled.prediction(row, column)? else { continue };
            let slot = labelled.slot(row, column);
            set(&mut losses, slot, nll(&softmax, label));
            set(&mut counted, slot, R::one());
            let cotangent = cotangents.map_or(R::one(), |values| values.get(slot).copied().unwrap_or(R::zero()));
            if !cotangent.is_finite() {
                return Err(Error::NonFinite { argument: COTANGENT.name, index: slot });
            }
            if let Some(gradient) = row_mut(&mut gradients, labelled.width(), source) {
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
/// The logits.
pub const LABELLED_LOGITS: InputSpec =
    InputSpec::new("logits", Domain::Logit, &[&["B", "T", "V"]], "logits at every position; -inf excludes an entry");
/// The labels.
pub const LABEL: InputSpec =
    InputSpec::new("label", Domain::Index("V"), &[&["B", "T"]], "token at every position; not read under the mask");
/// Which labels count.
pub const LABEL_MASK: InputSpec = InputSpec {
    meaning: "1 where the label counts, 0 where it is ignored; without it every label counts",
    ..InputSpec::MASK
};
/// Whether the labels still have to be shifted.
pub const LABEL_SHIFT: ParamSpec = ParamSpec::flag(
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
            predict an ignored label, the last ones and the first label of a shifted row are not read. The aggregated \
            loss is `objective.sft`.",
    sources: &[Source {
        title: "Training language models to follow instructions with human feedback",
        reference: "arXiv:2203.02155",
        place: "section 3.5, supervised fine-tuning",
    }],
    inputs: &[LABELLED_LOGITS, LABEL, COTANGENT, LABEL_MASK],
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

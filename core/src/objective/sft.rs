//! Supervised fine-tuning: token cross-entropy, aggregated.

use crate::Error;
use crate::logits::nll::{LABEL, LABEL_MASK, LABEL_SHIFT, LABELLED_LOGITS, LabelledLogits, Prediction, nll};
use crate::logits::row::TEMPERATURE;
use crate::logits::token_logprob::write_token_logprob_gradient;
use crate::num::{ExactSum, Real, tree_sum_by};
use crate::reduce::{Aggregation, REDUCTION_PARAMS, Reduction, Totals};
use crate::spec::{Call, Family, Operation, OutputSpec, ParamSpec, Source, evaluate_with};

/// The counts of the labels that count.
fn totals<R: Real>(labelled: &LabelledLogits<'_, R>) -> Totals {
    let shape = labelled.shape();
    let mut totals = Totals { rows: shape.rows, columns: shape.columns, ..Totals::default() };
    for row in 0..shape.rows {
        let length = labelled.length(row);
        totals.tokens += length;
        totals.nonempty_rows += usize::from(length > 0);
    }
    totals
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let labelled = LabelledLogits::from_call(call)?;
    let reduction = Reduction::from_call(call)?;
    let divisor = reduction.divisor(&totals(&labelled))?;
    let mut gradients = call.output("d_logits");
    if let Some(gradients) = gradients.as_deref_mut() {
        gradients.fill(R::zero());
    }
    let mut token_losses = call.output("token_loss");
    if let Some(token_losses) = token_losses.as_deref_mut() {
        token_losses.fill(R::zero());
    }
    let (columns, width) = (labelled.shape().columns, labelled.width());
    let mask = call.mask()?;
    let mut total = ExactSum::new();
    for row in 0..labelled.shape().rows {
        let length = labelled.length(row);
        if length == 0 {
            continue;
        }
        let row_divisor = reduction.row_divisor(row, length, &mask, None);
        let weight = reduction.scale() / divisor / row_divisor;
        let mut failure = None;
        let sum = tree_sum_by(columns, |column| match labelled.prediction(row, column) {
            Ok(Some(Prediction { source, row: softmax, label })) => {
                let loss = nll(&softmax, label);
                let slot = row.saturating_mul(columns).saturating_add(column);
                if let Some(place) = token_losses.as_deref_mut().and_then(|losses| losses.get_mut(slot)) {
                    *place = loss;
                }
                let start = source.saturating_mul(width);
                let gradient = gradients.as_deref_mut().and_then(|all| all.get_mut(start..start.saturating_add(width)));
                if let Some(gradient) = gradient {
                    write_token_logprob_gradient(&softmax, label, -weight, gradient);
                }
                loss
            }
            Ok(None) => R::zero(),
            Err(error) => {
                failure = failure.or(Some(error));
                R::zero()
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        total.add(sum / row_divisor);
    }
    call.write("loss", total.value::<R>() / divisor * reduction.scale());
    Ok(())
}

/// The modes that need no groups.
const AGGREGATION: ParamSpec = ParamSpec::choice(
    "aggregation",
    Aggregation::TokenMean.name(),
    &[
        Aggregation::TokenMean.name(),
        Aggregation::TokenSum.name(),
        Aggregation::SeqMeanTokenSum.name(),
        Aggregation::SeqMeanTokenMean.name(),
        Aggregation::SeqMeanTokenSumNorm.name(),
    ],
    "what the sum of per-token losses is divided by",
);
const PARAMS: [ParamSpec; 10] = {
    let [_, empty_row, length_eps, length_normaliser, token_count, sequence_count, world_size, loss_scale] =
        REDUCTION_PARAMS;
    [
        LABEL_SHIFT,
        TEMPERATURE,
        AGGREGATION,
        empty_row,
        length_eps,
        length_normaliser,
        token_count,
        sequence_count,
        world_size,
        loss_scale,
    ]
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "objective.sft",
    family: Family::Objective,
    title: "supervised fine-tuning",
    summary: "Token cross-entropy with the shift of causal models, ignored labels and any aggregation over the labels that count.",
    formula: r"L = \frac{s}{D} \sum_i \frac{1}{d_i} \sum_t m_{it}\,\big(-\log\operatorname{softmax}(z_{i,t-1}/\tau)[y_{it}]\big)",
    gradient: r"\partial z_{i,t-1,j}: \frac{s}{D\,d_i}\,m_{it}\,(p_j - \mathbf 1[j = y_{it}])/\tau",
    notes: "The divisors count the labels that count: neither ignored ones nor a first label that nothing predicts. \
            TRL's SFT (`nll`) is the token mean with the global \
            count of labels as token_count.",
    sources: &[Source {
        title: "Training language models to follow instructions with human feedback",
        reference: "arXiv:2203.02155",
        place: "section 3.5, supervised fine-tuning",
    }],
    inputs: &[LABELLED_LOGITS, LABEL, LABEL_MASK],
    params: &PARAMS,
    defaults: &[],
    outputs: &[
        OutputSpec::value("loss", &[], "the aggregated loss (nats per label for a mean)"),
        OutputSpec::gradient("d_logits", "logits", &["B", "T", "V"], "gradient of the loss by the logits"),
        OutputSpec::value("token_loss", &["B", "T"], "loss of each label (nats); 0 where it does not count"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Data, Given, GivenValue, Input, Output, evaluate as evaluate_operation};

    #[test]
    fn divisors_count_the_labels_that_count() {
        // Every label costs ln 2. Row 0 has labels at 1 and 2, row 1 at 2 only; the labels at 0 are predicted by nothing.
        let logits = [0.0f64; 12];
        let run = |aggregation, mask: &[u8]| {
            let (mut loss, mut gradient) = ([9.0], [9.0; 12]);
            evaluate_operation(
                &SPECS[0],
                None,
                &[Given { name: "aggregation", value: GivenValue::Name(aggregation) }],
                &[
                    Input { name: "logits", shape: &[2, 3, 2], data: Data::Real(&logits) },
                    Input { name: "label", shape: &[2, 3], data: Data::Index(&[0, 1, 0, 0, 0, 1]) },
                    Input { name: "mask", shape: &[2, 3], data: Data::Mask(mask) },
                ],
                &mut [Output { name: "loss", data: &mut loss }, Output { name: "d_logits", data: &mut gradient }],
            )
            .map(|()| (loss[0], gradient))
        };
        let mask = [1, 1, 1, 1, 0, 1];
        let ln_two = core::f64::consts::LN_2;
        let (loss, gradient) = run("token_mean", &mask).unwrap();
        assert_eq!(loss, ln_two);
        let (up, down) = (0.5 / 3.0, -0.5 / 3.0);
        let expected = [up, down, down, up, 0.0, 0.0, 0.0, 0.0, up, down, 0.0, 0.0];
        for (got, expected) in gradient.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-16, "{gradient:?}");
        }
        assert_eq!(run("token_sum", &mask).unwrap().0, 3.0 * ln_two);
        assert_eq!(run("seq_mean_token_sum", &mask).unwrap().0, 1.5 * ln_two);
        assert_eq!(run("seq_mean_token_mean", &mask).unwrap().0, ln_two);
        // A batch whose only labels are first ones has nothing to reduce.
        assert_eq!(run("token_mean", &[1, 0, 0, 1, 0, 0]).unwrap_err(), Error::EmptyMask { argument: "mask" });
    }
}

//! Aggregation of a matrix of per-token losses, with the weight of every token, and partial sums that merge.

use super::aggregation::REDUCTION_PARAMS;
use super::{Aggregation, EmptyRow, Reduction, Totals};
use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::{ExactSum, Real, tree_sum_by};
use crate::spec::{Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, Source, Value, evaluate_with};

/// The sum of a shard, Σ_i (Σ_t m_it ℓ_it)/d_i: exact across rows, so that shards merge to the bits of the whole batch.
pub fn partial<R: Real>(
    token_loss: &[R],
    mask: &Mask<'_>,
    groups: Option<Groups<'_>>,
    reduction: &Reduction<R>,
) -> Result<ExactSum, Error> {
    mask.shape().check("token_loss", token_loss)?;
    let columns = mask.shape().columns;
    let mut sum = ExactSum::new();
    for row in 0..mask.shape().rows {
        let length = mask.length(row);
        if length == 0 {
            continue;
        }
        let mut offending = None;
        let row_sum = tree_sum_by(columns, |column| {
            let slot = row * columns + column;
            if !mask.keeps(slot) {
                return R::zero();
            }
            let value = token_loss.get(slot).copied().unwrap_or(R::zero());
            if !value.is_finite() && offending.is_none() {
                offending = Some(slot);
            }
            value
        });
        if let Some(index) = offending {
            return Err(Error::NonFinite { argument: "token_loss", index });
        }
        sum.add(row_sum / reduction.row_divisor(row, length, mask, groups));
    }
    Ok(sum)
}

/// Aggregate per-token losses ℓ [B, T] into one loss: s/D · Σ_i (Σ_t m_it ℓ_it)/d_i with the divisors of [`Reduction`].
///
/// The derivative by ℓ_it is the token's weight, s/(D·d_i), and +0 under the mask; [`token_weight`] gives it.
/// A batch without tokens is [`Error::EmptyMask`]; a non-finite unmasked loss is [`Error::NonFinite`].
///
/// Differs in: verl adds 10⁻⁸ to L_i in `seq_mean_token_mean` (`length_eps`); TRL and verl before 0.6 count empty
/// responses (`empty_row`).
///
/// ```
/// use plumbline_core::batch::{Mask, TokenShape};
/// use plumbline_core::reduce::{Aggregation, Reduction, aggregate::aggregate};
/// let mask = [1, 0, 0, 1, 1, 1];
/// let mask = Mask::new(TokenShape { rows: 2, columns: 3 }, Some(&mask)).unwrap();
/// let losses = [4.0, f64::NAN, 0.0, 1.0, 1.0, 1.0];
/// let mean = |mode| aggregate(&losses, &mask, None, &Reduction::new(mode)).unwrap();
/// assert_eq!(mean(Aggregation::TokenMean), 1.75);
/// assert_eq!(mean(Aggregation::SeqMeanTokenMean), 2.5);
/// ```
pub fn aggregate<R: Real>(
    token_loss: &[R],
    mask: &Mask<'_>,
    groups: Option<Groups<'_>>,
    reduction: &Reduction<R>,
) -> Result<R, Error> {
    let divisor = reduction.divisor(&Totals::of(mask, groups))?;
    let sum = partial(token_loss, mask, groups, reduction)?;
    Ok(sum.value::<R>() / divisor * reduction.scale())
}

/// The weight of every token in the loss, s/(D·d_i), written to `weights` [B, T]; +0 under the mask.
pub fn token_weight<R: Real>(
    mask: &Mask<'_>,
    groups: Option<Groups<'_>>,
    reduction: &Reduction<R>,
    totals: &Totals,
    weights: &mut [R],
) -> Result<(), Error> {
    mask.shape().check("token_weight", weights)?;
    let divisor = reduction.divisor(totals)?;
    let columns = mask.shape().columns;
    for (row, row_weights) in weights.chunks_mut(columns.max(1)).enumerate() {
        let length = mask.length(row);
        let weight = if length == 0 {
            R::zero()
        } else {
            reduction.scale() / divisor / reduction.row_divisor(row, length, mask, groups)
        };
        for (column, slot) in row_weights.iter_mut().enumerate() {
            *slot = if mask.keeps(row * columns + column) { weight } else { R::zero() };
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let reduction = Reduction::from_call(call)?;
    let mask = call.mask()?;
    let groups = call.optional_index("group").map(Groups::new);
    let loss = aggregate(call.real("token_loss")?, &mask, groups, &reduction)?;
    call.write("loss", loss);
    if let Some(weights) = call.output("d_token_loss") {
        token_weight(&mask, groups, &reduction, &Totals::of(&mask, groups), weights)?;
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "reduce.aggregate",
    family: Family::Reduce,
    title: "Aggregation of per-token losses",
    summary: "One loss from a matrix of per-token losses; the mode decides how long and short responses weigh.",
    formula: r"L = \frac{s}{D} \sum_i \frac{1}{d_i} \sum_t m_{it}\,\ell_{it}",
    gradient: r"\partial L / \partial \ell_{it} = m_{it}\, s / (D\, d_i)",
    notes: "Divisors by mode: token_mean D = number of tokens; token_sum D = 1; seq_mean_token_sum D = number of \
            responses; seq_mean_token_mean also d_i = L_i + length_eps; seq_mean_token_sum_norm D = number of responses \
            times L_max; group_mean_token_mean d_i = tokens of the row's group, D = number of groups.",
    sources: &[
        Source {
            title: "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
            reference: "arXiv:2503.14476",
            place: "Eq. 12 (token-level loss)",
        },
        Source {
            title: "Understanding R1-Zero-Like Training: A Critical Perspective",
            reference: "arXiv:2503.20783",
            place: "Section 3 (length bias, constant normaliser)",
        },
    ],
    inputs: &[
        InputSpec::new("token_loss", Domain::Real, &[&["B", "T"]], "loss of each token"),
        InputSpec::MASK,
        InputSpec::new("group", Domain::Group, &[&["B"]], "prompt of each response, for group_mean_token_mean")
            .optional(),
    ],
    params: &REDUCTION_PARAMS,
    defaults: &[],
    outputs: &[
        OutputSpec::value("loss", &[], "the aggregated loss"),
        OutputSpec::gradient("d_token_loss", "token_loss", &["B", "T"], "the weight of each token in the loss"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "means over non-empty responses, no epsilon", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "1e-8 is added to the response length",
            settings: &[("length_eps", Value::Number(1e-8))],
        },
        Dialect {
            name: "verl-0.5",
            note: "empty responses count as zero",
            settings: &[("empty_row", Value::Name(EmptyRow::CountAsZero.name()))],
        },
        Dialect {
            name: "trl-1.16",
            note: "empty responses count as zero; the mean inside a response is GRPO's default",
            settings: &[
                ("empty_row", Value::Name(EmptyRow::CountAsZero.name())),
                ("aggregation", Value::Name(Aggregation::SeqMeanTokenMean.name())),
            ],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;
    use proptest::prelude::*;
    use std::vec::Vec;

    const SHAPE: TokenShape = TokenShape { rows: 3, columns: 4 };
    const MASK: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
    const LOSSES: [f64; 12] = [3.0, 5.0, f64::NAN, 9.0, 7.0, f64::INFINITY, 7.0, 7.0, 1.0, 2.0, 3.0, 6.0];

    fn loss(reduction: Reduction<f64>, groups: Option<Groups<'_>>) -> f64 {
        aggregate(&LOSSES, &Mask::new(SHAPE, Some(&MASK)).unwrap(), groups, &reduction).unwrap()
    }

    #[test]
    fn every_mode_by_hand() {
        // Row sums 8 and 12, lengths 2 and 4, one empty row.
        assert_eq!(loss(Reduction::new(Aggregation::TokenMean), None), 20.0 / 6.0);
        assert_eq!(loss(Reduction::new(Aggregation::TokenSum), None), 20.0);
        assert_eq!(loss(Reduction::new(Aggregation::SeqMeanTokenSum), None), 10.0);
        assert_eq!(loss(Reduction::new(Aggregation::SeqMeanTokenMean), None), 3.5);
        assert_eq!(loss(Reduction::new(Aggregation::SeqMeanTokenSumNorm), None), 2.5);
        let groups = Groups::new(&[5, 5, 2]);
        // Group means 8/2 and 12/4.
        assert_eq!(loss(Reduction::new(Aggregation::GroupMeanTokenMean), Some(groups)), 3.5);
        let one_group = Groups::new(&[5, 5, 5]);
        assert_eq!(loss(Reduction::new(Aggregation::GroupMeanTokenMean), Some(one_group)), 8.0 / 6.0 + 12.0 / 6.0);
    }

    #[test]
    fn dialect_parameters_by_hand() {
        let mean = Reduction::new(Aggregation::SeqMeanTokenMean);
        assert_eq!(loss(Reduction { empty_row: EmptyRow::CountAsZero, ..mean }, None), 7.0 / 3.0);
        assert_eq!(loss(Reduction { length_eps: 2.0, ..mean }, None), (8.0 / 4.0 + 12.0 / 6.0) / 2.0);
        assert_eq!(loss(Reduction { sequence_count: Some(10.0), ..mean }, None), 0.7);
        let token = Reduction::new(Aggregation::TokenMean);
        assert_eq!(loss(Reduction { token_count: Some(40.0), world_size: 4.0, ..token }, None), 2.0);
        let norm = Reduction::new(Aggregation::SeqMeanTokenSumNorm);
        assert_eq!(loss(Reduction { length_normaliser: Some(100.0), loss_scale: 0.5, ..norm }, None), 0.05);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let reduction = Reduction::new(Aggregation::TokenMean);
        let empty = Mask::new(SHAPE, Some(&[0; 12])).unwrap();
        assert_eq!(aggregate(&LOSSES, &empty, None, &reduction), Err(Error::EmptyMask { argument: "mask" }));
        let full = Mask::new(SHAPE, None).unwrap();
        assert_eq!(
            aggregate(&LOSSES, &full, None, &reduction),
            Err(Error::NonFinite { argument: "token_loss", index: 2 })
        );
        assert_eq!(
            aggregate(&LOSSES[..5], &full, None, &reduction),
            Err(Error::LengthMismatch { argument: "token_loss", expected: 12, got: 5 })
        );
        let grouped = Reduction::new(Aggregation::GroupMeanTokenMean);
        assert_eq!(aggregate(&[0.0; 12], &full, None, &grouped), Err(Error::MissingInput { argument: "group" }));
    }

    proptest! {
        #[test]
        fn weights_are_the_gradient_and_shards_merge(
            values in proptest::collection::vec(-10.0f64..10.0, 30),
            mask in proptest::collection::vec(0u8..2, 30),
            cut in 0usize..=5,
        ) {
            let shape = TokenShape { rows: 5, columns: 6 };
            let mask_view = Mask::new(shape, Some(&mask)).unwrap();
            prop_assume!(mask_view.count() > 0);
            let ids = [1u32, 1, 4, 9, 9];
            let groups = Groups::new(&ids);
            for mode in <Aggregation as crate::spec::Choice>::MEMBERS {
                let reduction = Reduction { length_eps: 0.25, ..Reduction::new(*mode) };
                let totals = Totals::of(&mask_view, Some(groups));
                let loss = aggregate(&values, &mask_view, Some(groups), &reduction).unwrap();
                let mut weights = [0.0; 30];
                token_weight(&mask_view, Some(groups), &reduction, &totals, &mut weights).unwrap();
                let by_weights: f64 = weights.iter().zip(&values).map(|(weight, value)| weight * value).sum();
                // 30 products of numbers below 10, each within a few roundings.
                prop_assert!((loss - by_weights).abs() <= 1e-13 * 300.0);

                if *mode == Aggregation::GroupMeanTokenMean {
                    continue;
                }
                let shard = |rows: core::ops::Range<usize>| {
                    let slots = rows.start * 6..rows.end * 6;
                    let shape = TokenShape { rows: rows.len(), columns: 6 };
                    let mask = Mask::new(shape, Some(&mask[slots.clone()])).unwrap();
                    (partial(&values[slots], &mask, None, &reduction).unwrap(), Totals::of(&mask, None))
                };
                let ((mut sum, left), (right_sum, right)) = (shard(0..cut), shard(cut..5));
                sum.merge(&right_sum);
                let merged = left.merge(right);
                prop_assert_eq!(Totals { groups: totals.groups, ..merged }, totals);
                let value = sum.value::<f64>() / reduction.divisor(&merged).unwrap() * reduction.scale();
                prop_assert_eq!(value.to_bits(), loss.to_bits());
                let rows: Vec<usize> = (0..5).rev().collect();
                let permuted: Vec<f64> = rows.iter().flat_map(|row| values[row * 6..row * 6 + 6].to_vec()).collect();
                let permuted_mask: Vec<u8> = rows.iter().flat_map(|row| mask[row * 6..row * 6 + 6].to_vec()).collect();
                let view = Mask::new(shape, Some(&permuted_mask)).unwrap();
                prop_assert_eq!(aggregate(&permuted, &view, None, &reduction).unwrap().to_bits(), loss.to_bits());
            }
        }
    }
}

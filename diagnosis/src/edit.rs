//! How an input differs from the case's.

use plumbline_core::num::Real;

use crate::vectors::Case;
use plumbline_evaluate::tensor::Tensor;

/// How an input differs from the case's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It is not used.
    Ignored,
    /// Its sign is turned.
    Negated,
    /// It is 0.
    Zero,
    /// Each step sees its successor's number.
    FromNextStep,
    /// Each step sees its predecessor's number.
    FromPreviousStep,
    /// Each row's mean over its unmasked tokens.
    RowMean,
    /// Each row's mean over all slots, masked ones too.
    RowMeanPadded,
    /// The mean over the batch.
    BatchMean,
    /// The batch's mean is subtracted.
    Centred,
    /// Whitened over the batch.
    Whitened {
        /// Whether with the sample's deviation, else with the population's.
        sample: bool,
        /// The power of ten that is added to the deviation, where one is.
        eps: Option<i32>,
    },
    /// Each step sees its successor's number, the last one the first's.
    RolledFromNext,
    /// Each step sees its predecessor's number, the first one the last's.
    RolledFromPrevious,
    /// Every step of a row has its last step's number.
    LastOfRow,
    /// Each column's mean over the batch is subtracted.
    ColumnCentred,
    /// Its square.
    Squared,
    /// 1 everywhere.
    One,
    /// 1 minus it.
    Complement,
    /// Its softmax over the last dimension.
    Softmax,
    /// The sum over the whole batch.
    BatchTotal,
    /// The ratio of the policies is a factor of it.
    TimesRatio,
    /// The same numbers in ascending order.
    Rearranged,
    /// A mask that also drops the last row.
    DropsLastRow,
    /// A mask that keeps every slot: padding is counted.
    KeepsAll,
    /// A mask that also drops each row's last token.
    DropsLast,
    /// A mask that also drops each row's first token.
    DropsFirst,
    /// A mask that also keeps the slot after each row's last token.
    KeepsOneMore,
    /// One group for all.
    OneGroup,
    /// Each member a group of its own.
    OwnGroups,
}

impl Edit {
    pub(crate) fn id(self) -> String {
        match self {
            Edit::Whitened { eps: Some(eps), .. } => format!("{}:eps=1e{eps}", self.plain_id()),
            _ => self.plain_id().into(),
        }
    }

    fn plain_id(self) -> &'static str {
        match self {
            Edit::Ignored => "ignored",
            Edit::Negated => "negated",
            Edit::Zero => "zero",
            Edit::FromNextStep => "from-next-step",
            Edit::FromPreviousStep => "from-previous-step",
            Edit::RowMean => "row-mean",
            Edit::RowMeanPadded => "row-mean-padded",
            Edit::BatchMean => "batch-mean",
            Edit::Centred => "centred",
            Edit::Whitened { sample: true, .. } => "whitened-sample",
            Edit::Whitened { sample: false, .. } => "whitened-population",
            Edit::RolledFromNext => "rolled-from-next-step",
            Edit::RolledFromPrevious => "rolled-from-previous-step",
            Edit::LastOfRow => "last-of-row",
            Edit::ColumnCentred => "column-centred",
            Edit::Squared => "squared",
            Edit::One => "one",
            Edit::Complement => "complement",
            Edit::Softmax => "softmax",
            Edit::BatchTotal => "batch-total",
            Edit::TimesRatio => "times-ratio",
            Edit::Rearranged => "rearranged",
            Edit::DropsLastRow => "drops-last-row",
            Edit::KeepsAll => "ignored",
            Edit::DropsLast => "drops-last",
            Edit::DropsFirst => "drops-first",
            Edit::KeepsOneMore => "keeps-one-more",
            Edit::OneGroup => "one-group",
            Edit::OwnGroups => "own-groups",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Edit::Ignored => "is not used",
            Edit::Negated => "has the wrong sign",
            Edit::Zero => "is taken as 0",
            Edit::FromNextStep => "is read one step late (off by one)",
            Edit::FromPreviousStep => "is read one step early (off by one)",
            Edit::RowMean => "is averaged over each row's tokens first",
            Edit::RowMeanPadded => "is averaged over each row's slots, padding included",
            Edit::BatchMean => "is averaged over the batch first",
            Edit::Centred => "has the batch's mean subtracted first",
            Edit::Whitened { sample: true, .. } => "is whitened over the batch first (sample deviation)",
            Edit::Whitened { sample: false, .. } => "is whitened over the batch first (population deviation)",
            Edit::RolledFromNext => "is read one step late, the first wrapping into the last (off by one)",
            Edit::RolledFromPrevious => "is read one step early, the last wrapping into the first (off by one)",
            Edit::LastOfRow => "of each row's last step serves for all of its steps",
            Edit::ColumnCentred => "has each column's mean over the batch subtracted (wrong axis)",
            Edit::Squared => "is applied twice (squared)",
            Edit::One => "is missing (taken as 1)",
            Edit::Complement => "stands for 1 minus itself",
            Edit::Softmax => "goes through a softmax first (probabilities where logits are meant)",
            Edit::BatchTotal => "is summed over the whole batch (wrong denominator)",
            Edit::TimesRatio => "already holds the ratio of the policies (factor doubled)",
            Edit::Rearranged => "is paired with the wrong members (sorted)",
            Edit::DropsLastRow => "loses the last row (a partial window is dropped)",
            Edit::KeepsAll => "is ignored: padding is counted",
            Edit::DropsLast => "loses each row's last token (off by one)",
            Edit::DropsFirst => "loses each row's first token (off by one)",
            Edit::KeepsOneMore => "keeps the first padding slot of each row (off by one)",
            Edit::OneGroup => "is ignored: the whole batch is one group",
            Edit::OwnGroups => "is ignored: every member is a group of its own",
        }
    }

    /// Whether it is for masks.
    pub(crate) fn is_of_masks(self) -> bool {
        matches!(self, Edit::KeepsAll | Edit::DropsLast | Edit::DropsFirst | Edit::KeepsOneMore | Edit::DropsLastRow)
    }

    /// The edited inputs; `None` where the edit has no meaning for them.
    pub fn apply(self, case: &Case, name: &str) -> Option<Vec<(&'static str, Tensor)>> {
        let mut inputs = case.inputs.clone();
        let position = inputs.iter().position(|(candidate, _)| *candidate == name)?;
        if self == Edit::Ignored {
            inputs.remove(position);
            return Some(inputs);
        }
        let kept = case.kept(name);
        let tensor = &mut inputs[position].1;
        let shape = tensor.shape.clone();
        let values = &mut tensor.values;
        match self {
            Edit::Negated => values.iter_mut().for_each(|value| *value = -*value),
            Edit::Zero => values.fill(0.0),
            Edit::FromNextStep | Edit::RolledFromNext => {
                let columns = *shape.get(1)?;
                for row in values.chunks_mut(columns.max(1)) {
                    row.rotate_left(1);
                    if let Some(last) = row.last_mut().filter(|_| self == Edit::FromNextStep) {
                        *last = 0.0;
                    }
                }
            }
            Edit::FromPreviousStep | Edit::RolledFromPrevious => {
                let columns = *shape.get(1)?;
                for row in values.chunks_mut(columns.max(1)) {
                    row.rotate_right(1);
                    if let Some(first) = row.first_mut().filter(|_| self == Edit::FromPreviousStep) {
                        *first = 0.0;
                    }
                }
            }
            Edit::LastOfRow => {
                let columns = *shape.get(1)?;
                for row in values.chunks_mut(columns.max(1)) {
                    let last = *row.last()?;
                    row.fill(last);
                }
            }
            Edit::ColumnCentred => {
                let [rows, columns] = shape[..] else { return None };
                for column in 0..columns {
                    let mean = (0..rows).map(|row| values[row * columns + column]).sum::<f64>() / rows as f64;
                    (0..rows).for_each(|row| values[row * columns + column] -= mean);
                }
            }
            Edit::Squared => values.iter_mut().for_each(|value| *value *= *value),
            Edit::One => values.fill(1.0),
            Edit::Complement => values.iter_mut().for_each(|value| *value = 1.0 - *value),
            Edit::Softmax => {
                let width = (*shape.last()?).max(1);
                for row in values.chunks_mut(width) {
                    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    row.iter_mut().for_each(|value| *value = Real::exp(*value - largest));
                    let whole: f64 = row.iter().sum();
                    row.iter_mut().for_each(|value| *value /= whole);
                }
            }
            Edit::BatchTotal => {
                let whole: f64 = values.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).sum();
                values.fill(whole);
            }
            Edit::TimesRatio => {
                let (new, old) = (&case.input("log_prob")?.values, &case.input("old_log_prob")?.values);
                if shape.len() == 1 && !values.is_empty() {
                    // One number for each row becomes one for each token.
                    let columns = new.len() / values.len();
                    *values = values.iter().flat_map(|value| vec![*value; columns]).collect();
                    tensor.shape.push(columns);
                }
                if new.len() != values.len() || old.len() != values.len() {
                    return None;
                }
                for (value, (new, old)) in values.iter_mut().zip(new.iter().zip(old)) {
                    *value *= Real::exp(new - old);
                }
            }
            Edit::Rearranged => values.sort_unstable_by(f64::total_cmp),
            Edit::DropsLastRow => {
                let [rows, columns] = shape[..] else { return None };
                values.get_mut(rows.checked_sub(1)? * columns..)?.fill(0.0);
            }
            // One number for each row is its mean.
            Edit::RowMean | Edit::RowMeanPadded if shape.len() == 1 => {}
            Edit::RowMean | Edit::RowMeanPadded => {
                let columns = *shape.get(1)?;
                for (row, kept) in values.chunks_mut(columns.max(1)).zip(kept.chunks(columns.max(1))) {
                    let all = self == Edit::RowMeanPadded;
                    let mean = mean_of(row, |slot| all || kept[slot]).unwrap_or(0.0);
                    row.fill(mean);
                }
            }
            Edit::BatchMean => {
                let mean = mean_of(values, |slot| kept[slot])?;
                values.fill(mean);
            }
            Edit::Centred | Edit::Whitened { .. } => {
                let mean = mean_of(values, |slot| kept[slot])?;
                let members = kept.iter().filter(|kept| **kept).count() as f64;
                let squares: f64 = values
                    .iter()
                    .zip(&kept)
                    .filter(|(_, kept)| **kept)
                    .map(|(value, _)| (value - mean) * (value - mean))
                    .sum();
                let deviation = match self {
                    Edit::Whitened { sample, eps } => {
                        let degrees = if sample { members - 1.0 } else { members };
                        (squares / degrees).sqrt() + eps.map_or(0.0, |eps| power(10.0, eps))
                    }
                    _ => 1.0,
                };
                if !deviation.is_normal() {
                    return None;
                }
                for (value, _) in values.iter_mut().zip(&kept).filter(|(_, kept)| **kept) {
                    *value = (*value - mean) / deviation;
                }
            }
            Edit::KeepsAll => values.fill(1.0),
            Edit::DropsLast | Edit::DropsFirst | Edit::KeepsOneMore => {
                let columns = *shape.get(1)?;
                for row in values.chunks_mut(columns.max(1)) {
                    let last = row.iter().rposition(|kept| *kept != 0.0);
                    match (self, last) {
                        (Edit::DropsLast, Some(last)) => row[last] = 0.0,
                        (Edit::DropsFirst, Some(_)) => {
                            let first = row.iter().position(|kept| *kept != 0.0)?;
                            row[first] = 0.0;
                        }
                        (Edit::KeepsOneMore, last) => {
                            if let Some(slot) = row.get_mut(last.map_or(0, |last| last + 1)) {
                                *slot = 1.0;
                            }
                        }
                        _ => {}
                    }
                }
            }
            Edit::OneGroup => values.fill(0.0),
            Edit::OwnGroups => {
                values.iter_mut().enumerate().for_each(|(index, group)| *group = index as f64);
            }
            Edit::Ignored => return None,
        }
        Some(inputs)
    }
}

/// A whole power, by repeated multiplication.
pub(crate) fn power(base: f64, exponent: i32) -> f64 {
    let power = (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * base);
    if exponent < 0 { 1.0 / power } else { power }
}

fn mean_of(values: &[f64], kept: impl Fn(usize) -> bool) -> Option<f64> {
    let chosen: Vec<f64> = values.iter().enumerate().filter(|(slot, _)| kept(*slot)).map(|(_, value)| *value).collect();
    if chosen.is_empty() { None } else { Some(chosen.iter().sum::<f64>() / chosen.len() as f64) }
}

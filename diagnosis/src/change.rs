//! The algebra: what turns one meaning into another.

use plumbline_core::spec::{Operation, Value};

use crate::vectors::Case;
use plumbline_evaluate::tensor::Tensor;

/// One change. Changes of parameters and of the operation are the catalog's own axes; the others are kinds of mistake.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The parameters of another dialect.
    Dialect(&'static str),
    /// Another operation of the family.
    Operation(&'static str),
    /// A parameter has one value, whatever the case says.
    Set(&'static str, Value),
    /// A parameter is the case's times a factor.
    Scale(&'static str, f64),
    /// Two parameters have exchanged their roles.
    ExchangeParams(&'static str, &'static str),
    /// An input is not the case's.
    Input(&'static str, Edit),
    /// Two inputs have exchanged their roles.
    ExchangeInputs(&'static str, &'static str),
    /// The distance between two inputs is taken the other way round: the second stands on the other side of the first.
    Reflect(&'static str, &'static str),
    /// The output for the negated input, negated: minimum and maximum exchanged.
    Mirror(&'static str),
    /// The batch is cut into parts, and the mean of the parts' results is taken.
    Parts(Split),
    /// The gradient also flows through what should be held fixed: it is the total derivative of the value.
    Unstopped,
    /// No gradient.
    NoGradient,
    /// The value is as it was, and the gradient is that of another change.
    GradientOf(Box<Change>),
}

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
    /// Whitened over the batch with the sample deviation.
    WhitenedSample,
    /// Whitened over the batch with the population deviation.
    WhitenedPopulation,
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

/// How a batch is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each row by itself.
    Rows,
    /// The first half of the rows (rounded up) and the rest.
    RowHalves,
    /// The first half of the columns and the rest.
    ColumnHalves,
}

impl Split {
    /// All of them.
    pub const ALL: [Split; 3] = [Split::Rows, Split::RowHalves, Split::ColumnHalves];
}

impl Change {
    /// A stable identifier, for programs and tests.
    pub fn id(&self) -> String {
        match self {
            Change::Dialect(name) => format!("dialect:{name}"),
            Change::Operation(id) => format!("operation:{id}"),
            Change::Set(name, value) => format!("param:{name}={}", plain(*value)),
            Change::Scale(name, factor) => format!("param:{name}*{factor}"),
            Change::ExchangeParams(first, second) => format!("exchanged:{first},{second}"),
            Change::Input(name, edit) => format!("input:{name}:{}", edit.id()),
            Change::ExchangeInputs(first, second) => format!("exchanged:{first},{second}"),
            Change::Reflect(first, second) => format!("reversed:{first}-{second}"),
            Change::Mirror(name) => format!("min-max-exchanged:{name}"),
            Change::Parts(Split::Rows) => "mean-of-means:rows".into(),
            Change::Parts(Split::RowHalves) => "mean-of-means:row-halves".into(),
            Change::Parts(Split::ColumnHalves) => "mean-of-means:column-halves".into(),
            Change::Unstopped => "stop-gradient:missing".into(),
            Change::NoGradient => "gradient:none".into(),
            Change::GradientOf(change) => format!("gradient-of:{}", change.id()),
        }
    }

    /// The change in words that follow "the numbers are right if". `setting` gives a parameter's intended value in words.
    pub fn words(&self, setting: &dyn Fn(&str) -> String) -> String {
        match self {
            Change::Dialect(name) => format!("the dialect `{name}` is meant"),
            Change::Operation(id) => format!("the operation is `{id}`"),
            Change::Set(name, Value::None) => format!("`{name}` is switched off (intended: {})", setting(name)),
            Change::Set(name, value) => {
                format!("`{name}` is {} (intended: {})", plain(*value), setting(name))
            }
            Change::Scale(name, factor) => {
                format!("`{name}` is {} times what was asked for", super::factor::fraction(*factor))
            }
            Change::ExchangeParams(first, second) => format!("`{first}` and `{second}` are exchanged"),
            Change::Input(name, edit) => format!("`{name}` {}", edit.words()),
            Change::ExchangeInputs(first, second) => {
                format!("`{first}` and `{second}` are exchanged (swapped argument)")
            }
            Change::Reflect(first, second) => {
                format!("`{second}` - `{first}` stands where `{first}` - `{second}` should (swapped operand)")
            }
            Change::Mirror(name) => {
                format!("minimum and maximum are exchanged (the result for the negated `{name}`, negated)")
            }
            Change::Parts(split) => {
                let parts = match split {
                    Split::Rows => "each row is averaged by itself and the mean of the rows' results is taken",
                    Split::RowHalves => {
                        "the batch is cut into two micro-batches of rows and their results are averaged"
                    }
                    Split::ColumnHalves => "the columns are cut in two and the halves' results are averaged",
                };
                format!("{parts} (mean of means: the parts' token counts are not taken into account)")
            }
            Change::Unstopped => {
                "the gradient also flows through what should be held fixed (missing stop-gradient)".into()
            }
            Change::NoGradient => "no gradient reaches the input (a stop-gradient too many)".into(),
            Change::GradientOf(change) => {
                format!("the value is right but the gradient is the one that results if {}", change.words(setting))
            }
        }
    }
}

impl Edit {
    fn id(self) -> &'static str {
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
            Edit::WhitenedSample => "whitened-sample",
            Edit::WhitenedPopulation => "whitened-population",
            Edit::KeepsAll => "ignored",
            Edit::DropsLast => "drops-last",
            Edit::DropsFirst => "drops-first",
            Edit::KeepsOneMore => "keeps-one-more",
            Edit::OneGroup => "one-group",
            Edit::OwnGroups => "own-groups",
        }
    }

    fn words(self) -> &'static str {
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
            Edit::WhitenedSample => "is whitened over the batch first (sample deviation)",
            Edit::WhitenedPopulation => "is whitened over the batch first (population deviation)",
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
        matches!(self, Edit::KeepsAll | Edit::DropsLast | Edit::DropsFirst | Edit::KeepsOneMore)
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
            Edit::FromNextStep | Edit::FromPreviousStep => {
                let columns = *shape.get(1)?;
                for row in values.chunks_mut(columns.max(1)) {
                    if self == Edit::FromNextStep {
                        row.rotate_left(1);
                        if let Some(last) = row.last_mut() {
                            *last = 0.0;
                        }
                    } else {
                        row.rotate_right(1);
                        if let Some(first) = row.first_mut() {
                            *first = 0.0;
                        }
                    }
                }
            }
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
            Edit::Centred | Edit::WhitenedSample | Edit::WhitenedPopulation => {
                let mean = mean_of(values, |slot| kept[slot])?;
                let members = kept.iter().filter(|kept| **kept).count() as f64;
                let squares: f64 = values
                    .iter()
                    .zip(&kept)
                    .filter(|(_, kept)| **kept)
                    .map(|(value, _)| (value - mean) * (value - mean))
                    .sum();
                let deviation = match self {
                    Edit::Centred => 1.0,
                    Edit::WhitenedSample => (squares / (members - 1.0)).sqrt(),
                    _ => (squares / members).sqrt(),
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

fn mean_of(values: &[f64], kept: impl Fn(usize) -> bool) -> Option<f64> {
    let chosen: Vec<f64> = values.iter().enumerate().filter(|(slot, _)| kept(*slot)).map(|(_, value)| *value).collect();
    if chosen.is_empty() { None } else { Some(chosen.iter().sum::<f64>() / chosen.len() as f64) }
}

/// A parameter's value in plain text.
pub fn plain(value: Value) -> String {
    match value {
        Value::None => "none".into(),
        Value::Number(number) => format!("{number}"),
        Value::Integer(number) => format!("{number}"),
        Value::Flag(flag) => format!("{flag}"),
        Value::Name(name) => name.into(),
    }
}

/// Whether two operations can stand for each other: the same main output and the same inputs by name.
pub fn are_interchangeable(first: &Operation, second: &Operation) -> bool {
    let same_output = match (first.outputs.first(), second.outputs.first()) {
        (Some(first), Some(second)) => first.shape == second.shape,
        _ => false,
    };
    first.id != second.id
        && first.family == second.family
        && same_output
        && second.inputs.iter().filter(|input| !input.optional).all(|input| first.input(input.name).is_some())
}

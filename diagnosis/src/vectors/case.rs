//! One case: named inputs, and the parameters that differ from the implementation's own setting.

use plumbline_core::Error;
use plumbline_core::spec::{Given, GivenValue, Operation, Params, Value};

use plumbline_evaluate::tensor::Tensor;

/// What stands under the mask of a case that probes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Junk {
    /// Not a number.
    Nan,
    /// Infinity.
    Infinity,
    /// A large finite number.
    Large,
}

impl Junk {
    /// The kinds, in the order in which they are probed.
    pub const ALL: [Junk; 3] = [Junk::Large, Junk::Nan, Junk::Infinity];

    /// The number.
    pub fn number(self) -> f64 {
        match self {
            Junk::Nan => f64::NAN,
            Junk::Infinity => f64::INFINITY,
            Junk::Large => 37.0,
        }
    }

    /// Its name in case identifiers.
    pub fn name(self) -> &'static str {
        match self {
            Junk::Nan => "nan",
            Junk::Infinity => "inf",
            Junk::Large => "large",
        }
    }
}

/// How a case is made from another one so that the result must not change, or only with its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The rows stand in the opposite order.
    ReversedRows,
    /// One more column of padding.
    PaddedColumn,
    /// Every reward is larger by the same number.
    ShiftedRewards,
    /// The first half of the rows (rounded up) alone: a shard.
    FirstShard,
    /// The other rows alone.
    OtherShard,
    /// The trace does not decay.
    TraceOfOne,
    /// There is no trace.
    TraceOfZero,
}

impl Relation {
    /// All of them.
    pub const ALL: [Relation; 7] = [
        Relation::ReversedRows,
        Relation::PaddedColumn,
        Relation::ShiftedRewards,
        Relation::FirstShard,
        Relation::OtherShard,
        Relation::TraceOfOne,
        Relation::TraceOfZero,
    ];

    /// Its name in case identifiers.
    pub fn name(self) -> &'static str {
        match self {
            Relation::ReversedRows => "reversed-rows",
            Relation::PaddedColumn => "padded-column",
            Relation::ShiftedRewards => "shifted-rewards",
            Relation::FirstShard => "first-shard",
            Relation::OtherShard => "other-shard",
            Relation::TraceOfOne => "trace-of-one",
            Relation::TraceOfZero => "trace-of-zero",
        }
    }

    /// What was done, in words.
    pub fn words(self) -> &'static str {
        match self {
            Relation::ReversedRows => "the order of the rows is turned round",
            Relation::PaddedColumn => "one more column of padding is added",
            Relation::ShiftedRewards => "every reward is raised by the same number",
            Relation::FirstShard => "only the first half of the rows is there",
            Relation::OtherShard => "only the second half of the rows is there",
            Relation::TraceOfOne => "the trace decay is 1",
            Relation::TraceOfZero => "the trace decay is 0",
        }
    }
}

/// What a case is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Ordinary numbers, chosen or drawn.
    Regular,
    /// A row without any unmasked token.
    EmptyRow,
    /// Log-ratios, log-probabilities or scores far from where they usually are.
    FarRatio,
    /// An edge: one token, whole numbers, members of one class only.
    Edge,
    /// The case `clean` again, changed in a way that the result must not depend on.
    Related {
        /// The way.
        relation: Relation,
        /// Position of the case that it is made from.
        clean: usize,
    },
    /// The case `clean` again, with junk under the mask of one input.
    UnderMask {
        /// The input that holds the junk.
        input: &'static str,
        /// The junk.
        junk: Junk,
        /// Position of the same case without it.
        clean: usize,
    },
}

/// One case of an operation.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its identifier within the operation.
    pub id: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Parameters that differ from the setting that the implementation declared.
    pub overrides: Vec<(&'static str, Value)>,
    /// The inputs.
    pub inputs: Vec<(&'static str, Tensor)>,
}

impl Case {
    /// The input of that name.
    pub fn input(&self, name: &str) -> Option<&Tensor> {
        self.inputs.iter().find(|(candidate, _)| *candidate == name).map(|(_, tensor)| tensor)
    }

    /// The numbers of the input of that name, to be changed.
    pub fn values_mut(&mut self, name: &str) -> Option<&mut Vec<f64>> {
        self.inputs.iter_mut().find(|(candidate, _)| *candidate == name).map(|(_, tensor)| &mut tensor.values)
    }

    /// For each slot of an input, whether the mask keeps it: all are kept where the mask has another shape.
    pub fn kept(&self, input: &str) -> Vec<bool> {
        let Some(tensor) = self.input(input) else { return Vec::new() };
        match self.input("mask").filter(|mask| mask.shape == tensor.shape) {
            Some(mask) => mask.values.iter().map(|value| *value != 0.0).collect(),
            None => vec![true; tensor.values.len()],
        }
    }

    /// Rows and columns of the batch of tokens: the mask's shape, or that of the first input of rank two.
    pub fn rows_and_columns(&self) -> Option<(usize, usize)> {
        let mask = self.input("mask").map(|tensor| tensor.shape.as_slice());
        let first = self.inputs.iter().map(|(_, tensor)| tensor.shape.as_slice()).find(|shape| shape.len() == 2);
        match mask.filter(|shape| shape.len() == 2).or(first) {
            Some([rows, columns]) => Some((*rows, *columns)),
            _ => None,
        }
    }
}

/// Complete parameters by position: the operation's defaults, the dialect's settings, then `layers` in order. Fails
/// where one is illegal.
pub fn resolve(
    operation: &'static Operation,
    dialect: Option<&str>,
    layers: &[&[(&'static str, Value)]],
) -> Result<Vec<Value>, Error> {
    let given: Vec<Given<'_>> = layers
        .iter()
        .flat_map(|layer| layer.iter())
        .map(|(name, value)| Given { name, value: as_given(*value) })
        .collect();
    let params = Params::resolve(operation, dialect, &given)?;
    Ok((0..operation.params.len()).map(|position| params.get(position)).collect())
}

/// A parameter's value as a caller gives it.
pub fn as_given(value: Value) -> GivenValue<'static> {
    match value {
        Value::None => GivenValue::None,
        Value::Number(number) => GivenValue::Number(number),
        Value::Integer(number) => GivenValue::Number(number as f64),
        Value::Flag(flag) => GivenValue::Flag(flag),
        Value::Name(name) => GivenValue::Name(name),
    }
}

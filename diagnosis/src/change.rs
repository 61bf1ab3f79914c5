//! The algebra: what turns one meaning into another.

use plumbline_core::spec::{Operation, Value};

use super::edit::Edit;

/// One change. Changes of parameters and of the operation are the catalog's own axes; the others are kinds of mistake.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The parameters of another dialect.
    Dialect(&'static str),
    /// Another operation of the family.
    Operation(&'static str),
    /// Another operation of the family whose own parameter takes what was asked for another one, or its square.
    OperationBy {
        /// The operation.
        id: &'static str,
        /// Its parameter.
        to: &'static str,
        /// The parameter whose number it takes.
        from: &'static str,
        /// Whether squared.
        squared: bool,
    },
    /// A parameter has one value, whatever the case says.
    Set(&'static str, Value),
    /// A parameter is the case's times a factor.
    Scale(&'static str, f64),
    /// A parameter is applied twice.
    Square(&'static str),
    /// A parameter divides where it should multiply.
    Reciprocal(&'static str),
    /// A parameter has another one's value.
    CopyParam {
        /// The parameter.
        to: &'static str,
        /// The other one.
        from: &'static str,
    },
    /// Two parameters have exchanged their roles.
    ExchangeParams(&'static str, &'static str),
    /// Clip bounds that are meant for the logarithm bound the ratio.
    RatioBoundsForLog,
    /// An input is not the case's.
    Input(&'static str, Edit),
    /// All inputs whose names begin so are not used.
    Ignored(&'static str),
    /// Another input stands in for an input.
    Copy {
        /// The input.
        to: &'static str,
        /// The one that stands in.
        from: &'static str,
        /// What is done to it.
        edit: Option<Edit>,
        /// Only there.
        at: Place,
    },
    /// For all inputs whose names hold a word, the inputs whose names lack it stand in.
    CopyFamily(&'static str),
    /// An input is 0 where a flag is set.
    ZeroWhere(&'static str, &'static str),
    /// A mask also drops what another mask drops.
    And(&'static str, &'static str),
    /// A flag is also set where another flag is.
    Or(&'static str, &'static str),
    /// Every length is the sum of all lengths of the batch.
    LengthsTotal,
    /// Masked slots count, as zeros.
    MaskedAsZeros,
    /// Flags only stop the bootstrap: the trace runs on.
    TraceNeverCut,
    /// Two inputs have exchanged their roles.
    ExchangeInputs(&'static str, &'static str),
    /// The distance between two inputs is taken the other way round: the second stands on the other side of the first.
    Reflect(&'static str, &'static str),
    /// The log-ratio of the policies is changed before anything is computed from it.
    LogRatio(LogRatioEdit),
    /// The output for the negated input, negated: minimum and maximum exchanged.
    Mirror(&'static str),
    /// The batch is cut into parts, and the mean of the parts' results is taken.
    Parts(Split),
    /// A row's result is the sum or mean of the results of its tokens by themselves.
    TokenByToken {
        /// Mean, not sum.
        mean: bool,
    },
    /// Every row meets every row's number of an input: (B) against (B, 1).
    Broadcast(&'static str),
    /// An input's mean is added outside, with this sign, and not used inside.
    Outside(&'static str, f64),
    /// The value is an input's mean (or the input itself) with this factor.
    Only(&'static str, f64),
    /// One term of the sum is computed under another change.
    Term(&'static str, Box<Change>),
    /// A coefficient multiplies everything but its term.
    Misplaced(&'static str),
    /// The clipped gain is computed under another change, the unclipped one is not.
    Branch(Box<Change>),
    /// The dual clip acts for both signs of the advantage.
    DualClipUngated,
    /// The dual clip's bound is its reciprocal.
    DualClipReciprocal,
    /// The power of the discount that the bootstrap value has.
    Power(Power),
    /// What is done to the result.
    Output(OutputEdit),
    /// The gradient also flows through what should be held fixed: it is the total derivative of the value.
    Unstopped,
    /// No gradient.
    NoGradient,
    /// The value is as it was, and the gradient is that of another change.
    GradientOf(Box<Change>),
}

/// Where an input is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere.
    All,
    /// Where a flag is set.
    Where(&'static str),
    /// At each row's last step.
    LastStep,
}

/// How the log-ratio of the policies is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRatioEdit {
    /// Limited to the clip range on both sides.
    ClippedBothSides,
    /// Each column's mean over the batch is subtracted.
    ColumnCentred,
}

/// The discount of a bootstrap value behind a window of rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The discount itself.
    Once,
    /// The power of the full window, also where it was cut.
    FullWindow,
}

/// What is done to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEdit {
    /// The first member of each group is subtracted: it is the baseline.
    MinusFirst,
    /// The mean over the batch is subtracted.
    Centred,
    /// Whitened over the batch, or over the tokens: each row counts by its length.
    Whitened {
        /// Whether over the tokens.
        by_length: bool,
        /// The power of ten that is added to the deviation, where one is.
        eps: Option<i32>,
    },
    /// An input of the same shape is added.
    Plus(&'static str),
    /// An input of the same shape is subtracted.
    Minus(&'static str),
}

/// How a batch is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Into which parts.
    pub parts: Parts,
    /// Whether the parts are weighted by their rows.
    pub by_rows: bool,
}

/// The parts of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Each row by itself.
    Rows,
    /// Two rows at a time.
    RowPairs,
    /// The first half of the rows (rounded up) and the rest.
    RowHalves,
    /// The first half of the columns and the rest.
    ColumnHalves,
    /// Each run of unmasked tokens.
    Runs,
}

impl Split {
    /// All of them.
    pub const ALL: [Split; 7] = [
        Split { parts: Parts::Rows, by_rows: false },
        Split { parts: Parts::RowHalves, by_rows: false },
        Split { parts: Parts::RowPairs, by_rows: false },
        Split { parts: Parts::ColumnHalves, by_rows: false },
        Split { parts: Parts::RowHalves, by_rows: true },
        Split { parts: Parts::RowPairs, by_rows: true },
        Split { parts: Parts::Runs, by_rows: false },
    ];
}

impl Parts {
    fn id(self) -> &'static str {
        match self {
            Parts::Rows => "rows",
            Parts::RowPairs => "row-pairs",
            Parts::RowHalves => "row-halves",
            Parts::ColumnHalves => "column-halves",
            Parts::Runs => "runs",
        }
    }
}

impl Change {
    /// A stable identifier, for programs and tests.
    pub fn id(&self) -> String {
        match self {
            Change::Dialect(name) => format!("dialect:{name}"),
            Change::Operation(id) => format!("operation:{id}"),
            Change::OperationBy { id, to, from, squared } => {
                format!("operation:{id}:{to}<-{from}{}", if *squared { "^2" } else { "" })
            }
            Change::Set(name, Value::Number(value)) if *value == super::candidates::UNREACHED => {
                format!("param:{name}=unreached")
            }
            Change::Set(name, value) => format!("param:{name}={}", plain(*value)),
            Change::Scale(name, factor) => format!("param:{name}*{factor}"),
            Change::Square(name) => format!("param:{name}:squared"),
            Change::Reciprocal(name) => format!("param:{name}:reciprocal"),
            Change::CopyParam { to, from } => format!("param:{to}<-{from}"),
            Change::ExchangeParams(first, second) => format!("exchanged:{first},{second}"),
            Change::RatioBoundsForLog => "param:clip-bounds:ratio-for-log".into(),
            Change::Input(name, edit) => format!("input:{name}:{}", edit.id()),
            Change::Ignored(prefix) => format!("inputs:{prefix}*:ignored"),
            Change::Copy { to, from, edit, at } => {
                let edit = edit.map_or(String::new(), |edit| format!(":{}", edit.id()));
                let at = match at {
                    Place::All => String::new(),
                    Place::Where(flag) => format!(":where-{flag}"),
                    Place::LastStep => ":last-step".into(),
                };
                format!("copied:{to}<-{from}{edit}{at}")
            }
            Change::CopyFamily(word) => format!("copied:{word}*<-*"),
            Change::ZeroWhere(name, flag) => format!("input:{name}:zero-where-{flag}"),
            Change::And(mask, other) => format!("input:{mask}:and-{other}"),
            Change::Or(flag, other) => format!("input:{flag}:or-{other}"),
            Change::LengthsTotal => "inputs:*length:batch-total".into(),
            Change::MaskedAsZeros => "input:mask:as-zeros".into(),
            Change::TraceNeverCut => "trace:never-cut".into(),
            Change::ExchangeInputs(first, second) => format!("exchanged:{first},{second}"),
            Change::Reflect(first, second) => format!("reversed:{first}-{second}"),
            Change::LogRatio(LogRatioEdit::ClippedBothSides) => "log-ratio:clipped-both-sides".into(),
            Change::LogRatio(LogRatioEdit::ColumnCentred) => "log-ratio:column-centred".into(),
            Change::Mirror(name) => format!("min-max-exchanged:{name}"),
            Change::Parts(Split { parts, by_rows }) => {
                format!("mean-of-means:{}{}", parts.id(), if *by_rows { "-by-rows" } else { "" })
            }
            Change::TokenByToken { mean } => format!("token-by-token:{}", if *mean { "mean" } else { "sum" }),
            Change::Broadcast(name) => format!("broadcast:{name}"),
            Change::Outside(name, sign) => format!("outside:{name}:{}", if *sign < 0.0 { "minus" } else { "plus" }),
            Change::Only(name, factor) => format!("only:{name}*{factor}"),
            Change::Term(name, change) => format!("term:{name}:{}", change.id()),
            Change::Misplaced(name) => format!("misplaced:{name}"),
            Change::Branch(change) => format!("branch:clipped:{}", change.id()),
            Change::DualClipUngated => "dual-clip:ungated".into(),
            Change::DualClipReciprocal => "dual-clip:reciprocal".into(),
            Change::Power(Power::Once) => "power:discount-once".into(),
            Change::Power(Power::FullWindow) => "power:discount-full-window".into(),
            Change::Output(edit) => match edit {
                OutputEdit::MinusFirst => "output:baseline:first".into(),
                OutputEdit::Centred => "output:centred".into(),
                OutputEdit::Whitened { by_length, eps } => {
                    let eps = eps.map_or(String::new(), |eps| format!(":eps=1e{eps}"));
                    format!("output:whitened{}{eps}", if *by_length { "-by-length" } else { "" })
                }
                OutputEdit::Plus(input) => format!("output:plus-{input}"),
                OutputEdit::Minus(input) => format!("output:minus-{input}"),
            },
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
            Change::OperationBy { id, to, from, squared } => {
                let square = if *squared { "the square of " } else { "" };
                format!("the operation is `{id}`, whose `{to}` is {square}`{from}`")
            }
            Change::Set(name, Value::None) => format!("`{name}` is switched off (intended: {})", setting(name)),
            Change::Set(name, Value::Number(value)) if *value == super::candidates::UNREACHED => {
                format!("`{name}` is never reached, as if switched off (intended: {})", setting(name))
            }
            Change::Set(name, value) => {
                format!("`{name}` is {} (intended: {})", plain(*value), setting(name))
            }
            Change::Scale(name, factor) => {
                format!("`{name}` is {} times what was asked for", super::factor::fraction(*factor))
            }
            Change::Square(name) => format!("`{name}` is applied twice (intended: {})", setting(name)),
            Change::Reciprocal(name) => {
                format!("`{name}` divides where it should multiply (intended: {})", setting(name))
            }
            Change::CopyParam { to, from } => format!("`{to}` has the value of `{from}`"),
            Change::ExchangeParams(first, second) => format!("`{first}` and `{second}` are exchanged"),
            Change::RatioBoundsForLog => {
                "the clip bounds are bounds of the ratio (1 - low, 1 + high) where they should bound its logarithm"
                    .into()
            }
            Change::Input(name, edit) => format!("`{name}` {}", edit.words()),
            Change::Ignored(prefix) => format!("the inputs `{prefix}*` are not used"),
            Change::Copy { to, from, edit, at } => {
                let edit = edit.map_or(String::new(), |edit| format!(", which {}", edit.words()));
                let at = match at {
                    Place::All => String::new(),
                    Place::Where(flag) => format!(" where `{flag}` is set"),
                    Place::LastStep => " at each row's last step".into(),
                };
                format!("`{from}` stands where `{to}` should{at}{edit} (wrong operand)")
            }
            Change::CopyFamily(word) => {
                format!("the inputs without `{word}` in their names stand where those with it should (wrong operand)")
            }
            Change::ZeroWhere(name, flag) => format!("`{name}` is lost where `{flag}` is set"),
            Change::And(mask, other) => {
                format!("what `{other}` drops is dropped from `{mask}` too, so that it leaves the denominators")
            }
            Change::Or(flag, other) => format!("`{other}` is taken for `{flag}`"),
            Change::LengthsTotal => {
                "the length of the whole batch stands for each response's (wrong denominator)".into()
            }
            Change::MaskedAsZeros => {
                "masked slots count as steps of zeros (the mask is applied by multiplication)".into()
            }
            Change::TraceNeverCut => {
                "flags stop the bootstrap only and the trace runs on over the episode's end".into()
            }
            Change::ExchangeInputs(first, second) => {
                format!("`{first}` and `{second}` are exchanged (swapped argument)")
            }
            Change::Reflect(first, second) => {
                format!("`{second}` - `{first}` stands where `{first}` - `{second}` should (swapped operand)")
            }
            Change::LogRatio(LogRatioEdit::ClippedBothSides) => {
                "the log-ratio is clipped on both sides whatever the sign of the advantage".into()
            }
            Change::LogRatio(LogRatioEdit::ColumnCentred) => {
                "the log-ratio has each column's mean over the batch subtracted (wrong axis)".into()
            }
            Change::Mirror(name) => {
                format!("minimum and maximum are exchanged (the result for the negated `{name}`, negated)")
            }
            Change::Parts(Split { parts, by_rows }) => {
                let parts = match parts {
                    Parts::Rows => "each row is treated by itself and the rows' results are averaged",
                    Parts::RowPairs => "the batch is cut into micro-batches of two rows and their results are averaged",
                    Parts::RowHalves => {
                        "the batch is cut into two micro-batches of rows and their results are averaged"
                    }
                    Parts::ColumnHalves => "the columns are cut in two and each half is treated by itself",
                    Parts::Runs => {
                        "each run of unmasked tokens is treated by itself (the state is lost at masked tokens)"
                    }
                };
                let weight = if *by_rows { ", weighted by their rows" } else { "" };
                format!("{parts}{weight} (mean of means: the parts' token counts are not taken into account)")
            }
            Change::TokenByToken { mean } => format!(
                "each token is computed by itself and the {} over the row is taken at the end (wrong order)",
                if *mean { "mean" } else { "sum" }
            ),
            Change::Broadcast(name) => {
                format!("every row meets every row's `{name}` (a broadcast of (B) against (B, 1))")
            }
            Change::Outside(name, sign) => {
                let verb = if *sign < 0.0 { "subtracted from" } else { "added to" };
                format!("`{name}` is {verb} the result, outside the function that it belongs in")
            }
            Change::Only(name, factor) => format!("the result is nothing but {factor} times `{name}`, averaged"),
            Change::Term(name, change) => {
                format!("for the term of `{name}` alone {}", change.words(setting))
            }
            Change::Misplaced(name) => format!("`{name}` multiplies everything but its own term"),
            Change::Branch(change) => format!("for the clipped branch alone {}", change.words(setting)),
            Change::DualClipUngated => {
                "the dual clip acts for positive advantages too (its condition is missing)".into()
            }
            Change::DualClipReciprocal => "the dual clip's bound is the reciprocal of what was asked for".into(),
            Change::Power(Power::Once) => {
                "the bootstrap value is discounted once, not by the power of the steps before it".into()
            }
            Change::Power(Power::FullWindow) => {
                "the bootstrap value has the full window's power of the discount although the window was cut".into()
            }
            Change::Output(edit) => match edit {
                OutputEdit::MinusFirst => "the first member of each group is the baseline".into(),
                OutputEdit::Centred => "the result has its mean over the batch subtracted".into(),
                OutputEdit::Whitened { by_length: false, .. } => "the result is whitened again over the batch".into(),
                OutputEdit::Whitened { by_length: true, .. } => {
                    "the result is whitened again over the tokens, each row counting by its length".into()
                }
                OutputEdit::Plus(input) => format!("`{input}` is added to the result"),
                OutputEdit::Minus(input) => format!("`{input}` is subtracted from the result"),
            },
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

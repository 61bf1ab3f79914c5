//! The description of an operation.

use super::call::Call;
use crate::Error;

/// Which part of the field an operation belongs to; the rooms of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// From logits to log-probabilities, entropies and full divergences.
    Logits,
    /// Per-token KL estimators and controllers.
    Kl,
    /// Importance ratios and off-policy corrections.
    Ratio,
    /// Per-token policy surrogates.
    Surrogate,
    /// Aggregation of per-token losses, whitening.
    Reduce,
    /// Advantages and returns.
    Advantage,
    /// Rewards and their shaping.
    Reward,
    /// Value losses.
    Value,
    /// Preference and reward-model losses.
    Preference,
    /// Bellman operators and dynamic programming.
    Bellman,
    /// Temporal-difference and Q-learning targets.
    TemporalDifference,
    /// Policy gradients, actor-critic, trust region.
    TrustRegion,
    /// Whole losses of a trainer.
    Objective,
}

impl Family {
    /// All families, in the order of the book.
    pub const ALL: [Family; 13] = [
        Family::Logits,
        Family::Kl,
        Family::Ratio,
        Family::Surrogate,
        Family::Reduce,
        Family::Advantage,
        Family::Reward,
        Family::Value,
        Family::Preference,
        Family::Bellman,
        Family::TemporalDifference,
        Family::TrustRegion,
        Family::Objective,
    ];

    /// The name that identifiers begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Logits => "logits",
            Family::Kl => "kl",
            Family::Ratio => "ratio",
            Family::Surrogate => "surrogate",
            Family::Reduce => "reduce",
            Family::Advantage => "advantage",
            Family::Reward => "reward",
            Family::Value => "value",
            Family::Preference => "preference",
            Family::Bellman => "bellman",
            Family::TemporalDifference => "td",
            Family::TrustRegion => "trust_region",
            Family::Objective => "objective",
        }
    }
}

/// A text for people, where the crate holds these; else nothing.
const fn described(text: &'static str) -> &'static str {
    if cfg!(feature = "descriptions") { text } else { "" }
}

/// A shape as a list of named dimensions, such as `["B", "T"]`; the empty list is a scalar.
pub type Shape = &'static [&'static str];

/// What the numbers of an input are. It fixes the kind of its data and the values that examples draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Domain {
    /// Any real number.
    Real,
    /// A log-probability (≤ 0 where it is one; estimators accept any number).
    LogProb,
    /// A difference of log-probabilities.
    LogRatio,
    /// An unnormalised log-probability.
    Logit,
    /// An advantage.
    Advantage,
    /// A reward or score.
    Reward,
    /// A state value, action value or return.
    Value,
    /// A number in [0, 1].
    Probability,
    /// A number > 0.
    Positive,
    /// A number ≥ 0.
    NonNegative,
    /// One byte per element: 0 or 1.
    Mask,
    /// One byte per step: 1 where the episode ends there.
    Done,
    /// A group identifier.
    Group,
    /// An index below the size of the named dimension.
    Index(&'static str),
    /// A count.
    Count,
}

/// One input of an operation.
#[derive(Clone, Copy, Debug)]
pub struct InputSpec {
    /// Its name, a term of the field.
    pub name: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// The shapes that are accepted; a lower rank is broadcast as `meaning` says.
    pub shapes: &'static [Shape],
    /// What its numbers are.
    pub domain: Domain,
    /// Whether it may be left out.
    pub optional: bool,
}

impl InputSpec {
    /// A required input of one shape.
    pub const fn new(name: &'static str, domain: Domain, shapes: &'static [Shape], meaning: &'static str) -> Self {
        InputSpec { name, meaning: described(meaning), shapes, domain, optional: false }
    }
    /// The same input, but it may be left out.
    pub const fn optional(self) -> Self {
        InputSpec { optional: true, ..self }
    }
    /// The mask over tokens that nearly every operation takes: masked slots are absent.
    pub const MASK: InputSpec = InputSpec::new(
        "mask",
        Domain::Mask,
        &[&["B", "T"]],
        "1 where the slot holds a token of the response, 0 where it is absent; without it every slot counts",
    )
    .optional();
}

/// One output of an operation.
#[derive(Clone, Copy, Debug)]
pub struct OutputSpec {
    /// Its name. A gradient is named `d_` and the input it belongs to.
    pub name: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// For a gradient: the input it differentiates by. What is differentiated is the sum of the operation's first
    /// output (weighted by the input `cotangent` where the operation has one).
    pub gradient_of: Option<&'static str>,
    /// Whether the gradient leaves out a stopped factor, so that it is not the derivative of the printed value.
    pub stop_gradient: bool,
    /// Whether the operation works in this buffer, so that a caller provides it with every call that its dimensions are known
    /// in, wanted or not.
    pub workspace: bool,
}

impl OutputSpec {
    /// A value.
    pub const fn value(name: &'static str, shape: Shape, meaning: &'static str) -> Self {
        OutputSpec {
            name,
            meaning: described(meaning),
            shape,
            gradient_of: None,
            stop_gradient: false,
            workspace: false,
        }
    }
    /// The gradient with respect to `input`.
    pub const fn gradient(name: &'static str, input: &'static str, shape: Shape, meaning: &'static str) -> Self {
        OutputSpec { gradient_of: Some(input), ..OutputSpec::value(name, shape, meaning) }
    }
    /// The same gradient, declared to leave out a stopped factor.
    pub const fn stopped(self) -> Self {
        OutputSpec { stop_gradient: true, ..self }
    }
    /// The same output, declared to be a buffer that the operation works in.
    pub const fn workspace(self) -> Self {
        OutputSpec { workspace: true, ..self }
    }
}

/// A legal range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Whether the lower end itself is legal.
    pub low_inclusive: bool,
    /// Upper end.
    pub high: f64,
    /// Whether the upper end itself is legal.
    pub high_inclusive: bool,
    /// The range in words, for messages.
    pub text: &'static str,
}

impl Range {
    /// Any finite number.
    pub const ANY: Range = Range::open(f64::NEG_INFINITY, f64::INFINITY, "any finite number");
    /// x > 0.
    pub const POSITIVE: Range = Range::open(0.0, f64::INFINITY, "> 0");
    /// x ≥ 0.
    pub const NON_NEGATIVE: Range =
        Range { low: 0.0, low_inclusive: true, high: f64::INFINITY, high_inclusive: false, text: ">= 0" };
    /// x ≤ 0.
    pub const NON_POSITIVE: Range =
        Range { low: f64::NEG_INFINITY, low_inclusive: false, high: 0.0, high_inclusive: true, text: "<= 0" };
    /// 0 ≤ x ≤ 1.
    pub const UNIT: Range = Range { low: 0.0, low_inclusive: true, high: 1.0, high_inclusive: true, text: "in [0, 1]" };
    /// 0 ≤ x < 1.
    pub const UNIT_BELOW_ONE: Range =
        Range { low: 0.0, low_inclusive: true, high: 1.0, high_inclusive: false, text: "in [0, 1)" };
    /// x > 1.
    pub const ABOVE_ONE: Range = Range::open(1.0, f64::INFINITY, "> 1");
    /// 0 ≤ x < ½ (label smoothing).
    pub const BELOW_HALF: Range =
        Range { low: 0.0, low_inclusive: true, high: 0.5, high_inclusive: false, text: "in [0, 0.5)" };

    /// An open interval.
    pub const fn open(low: f64, high: f64, text: &'static str) -> Range {
        Range { low, low_inclusive: false, high, high_inclusive: false, text }
    }
    /// A closed interval.
    pub const fn closed(low: f64, high: f64, text: &'static str) -> Range {
        Range { low, low_inclusive: true, high, high_inclusive: true, text }
    }
    /// Whether a finite value lies in the range.
    pub fn contains(self, value: f64) -> bool {
        value.is_finite()
            && (value > self.low || (self.low_inclusive && value == self.low))
            && (value < self.high || (self.high_inclusive && value == self.high))
    }
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Switched off (optional numbers only).
    None,
    /// A real number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// Yes or no.
    Flag(bool),
    /// One of the parameter's names.
    Name(&'static str),
}

/// A parameter's kind, with its default and legal range.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A real number.
    Number {
        /// Its default.
        default: f64,
        /// Its legal range.
        range: Range,
    },
    /// A real number that may be switched off.
    OptionalNumber {
        /// Its default.
        default: Option<f64>,
        /// Its legal range where it is on.
        range: Range,
    },
    /// A whole number.
    Integer {
        /// Its default.
        default: i64,
        /// The smallest legal value.
        low: i64,
        /// The largest legal value.
        high: i64,
    },
    /// Yes or no.
    Flag {
        /// Its default.
        default: bool,
    },
    /// One of several names.
    Choice {
        /// Its default.
        default: &'static str,
        /// All names.
        names: &'static [&'static str],
    },
}

impl ParamKind {
    /// The default as a value.
    pub const fn default(&self) -> Value {
        match *self {
            ParamKind::Number { default, .. } => Value::Number(default),
            ParamKind::OptionalNumber { default: Some(default), .. } => Value::Number(default),
            ParamKind::OptionalNumber { default: None, .. } => Value::None,
            ParamKind::Integer { default, .. } => Value::Integer(default),
            ParamKind::Flag { default } => Value::Flag(default),
            ParamKind::Choice { default, .. } => Value::Name(default),
        }
    }
}

/// One parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Its name, a term of the field.
    pub name: &'static str,
    /// The symbol that the formula uses (TeX).
    pub symbol: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// Kind, default and legal range.
    pub kind: ParamKind,
}

impl ParamSpec {
    /// A real number.
    pub const fn number(
        name: &'static str,
        symbol: &'static str,
        default: f64,
        range: Range,
        meaning: &'static str,
    ) -> Self {
        ParamSpec {
            name,
            symbol: described(symbol),
            meaning: described(meaning),
            kind: ParamKind::Number { default, range },
        }
    }
    /// A real number that may be switched off.
    pub const fn optional(
        name: &'static str,
        symbol: &'static str,
        default: Option<f64>,
        range: Range,
        meaning: &'static str,
    ) -> Self {
        ParamSpec {
            name,
            symbol: described(symbol),
            meaning: described(meaning),
            kind: ParamKind::OptionalNumber { default, range },
        }
    }
    /// A whole number.
    pub const fn integer(
        name: &'static str,
        symbol: &'static str,
        default: i64,
        low: i64,
        high: i64,
        meaning: &'static str,
    ) -> Self {
        ParamSpec {
            name,
            symbol: described(symbol),
            meaning: described(meaning),
            kind: ParamKind::Integer { default, low, high },
        }
    }
    /// Yes or no.
    pub const fn flag(name: &'static str, default: bool, meaning: &'static str) -> Self {
        ParamSpec { name, symbol: "", meaning: described(meaning), kind: ParamKind::Flag { default } }
    }
    /// One of several names.
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        names: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        ParamSpec { name, symbol: "", meaning: described(meaning), kind: ParamKind::Choice { default, names } }
    }
}

/// Where a formula comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Title of the paper or book.
    pub title: &'static str,
    /// Identifier: `arXiv:1707.06347`, an ISBN, a DOI.
    pub reference: &'static str,
    /// Place in it: an equation or section.
    pub place: &'static str,
}

/// A named setting of the parameters: what one library (or the paper) computes.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// `paper`, `verl-0.9`, `trl-1.16`, ….
    pub name: &'static str,
    /// What differs from the default, in words.
    pub note: &'static str,
    /// The parameters that differ from the operation's defaults.
    pub settings: &'static [(&'static str, Value)],
}

/// The function of an operation for both number types.
#[derive(Clone, Copy, Debug)]
pub struct Evaluate {
    /// In single precision.
    pub f32: fn(&mut Call<'_, f32>) -> Result<(), Error>,
    /// In double precision.
    pub f64: fn(&mut Call<'_, f64>) -> Result<(), Error>,
    /// The passes over many numbers that it consists of, where an engine can call them.
    pub kernel: Option<super::Kernel>,
}

/// An [`Evaluate`] from one generic function, and the kernel that it calls.
macro_rules! evaluate_with {
    ($function:path) => {
        $crate::spec::evaluate_with!($function, None)
    };
    ($function:path, $kernel:expr) => {{
        use $function as function;
        $crate::spec::Evaluate { f32: function::<f32>, f64: function::<f64>, kernel: $kernel }
    }};
}
pub(crate) use evaluate_with;

/// One operation of the catalog.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Identifier: family, dot, name.
    pub id: &'static str,
    /// The family it belongs to.
    pub family: Family,
    /// Its name in the literature.
    pub title: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The value (TeX).
    pub formula: &'static str,
    /// The gradient (TeX); empty where no input is trainable.
    pub gradient: &'static str,
    /// Ties, stopped gradients, edge cases, and how known libraries differ.
    pub notes: &'static str,
    /// Papers and equations.
    pub sources: &'static [Source],
    /// Inputs, the required ones first.
    pub inputs: &'static [InputSpec],
    /// Parameters.
    pub params: &'static [ParamSpec],
    /// Defaults that differ from those of `params`: how a named setting of a shared composition is told.
    pub defaults: &'static [(&'static str, Value)],
    /// Outputs, the main one first.
    pub outputs: &'static [OutputSpec],
    /// Named settings of the parameters.
    pub dialects: &'static [Dialect],
    /// The function.
    pub evaluate: Evaluate,
}

impl Operation {
    /// The same without the texts for people, where the crate does not hold these.
    pub(crate) const fn held(self) -> Self {
        Operation {
            title: described(self.title),
            summary: described(self.summary),
            formula: described(self.formula),
            gradient: described(self.gradient),
            notes: described(self.notes),
            sources: if cfg!(feature = "descriptions") { self.sources } else { &[] },
            ..self
        }
    }
    /// The input of that name.
    pub fn input(&self, name: &str) -> Option<&'static InputSpec> {
        self.inputs.iter().find(|input| input.name == name)
    }
    /// The parameter of that name and its position.
    pub fn param(&self, name: &str) -> Option<(usize, &'static ParamSpec)> {
        self.params.iter().enumerate().find(|(_, param)| param.name == name)
    }
    /// The output of that name.
    pub fn output(&self, name: &str) -> Option<&'static OutputSpec> {
        self.outputs.iter().find(|output| output.name == name)
    }
    /// The dialect of that name.
    pub fn dialect(&self, name: &str) -> Option<&'static Dialect> {
        self.dialects.iter().find(|dialect| dialect.name == name)
    }
    /// The default of a parameter in this operation.
    pub fn default_of(&self, param: &ParamSpec) -> Value {
        self.defaults.iter().find(|(name, _)| *name == param.name).map_or(param.kind.default(), |(_, value)| *value)
    }
}

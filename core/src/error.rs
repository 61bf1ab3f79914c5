//! The one error type: it names the argument and, where there is one, the index.

use core::fmt;

/// Why an operation could not be computed. Every variant names the argument at fault.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Error {
    /// An input that the operation needs was not given.
    MissingInput {
        /// The input's name.
        argument: &'static str,
    },
    /// An output that the operation also works in was not asked for.
    MissingWorkspace {
        /// The output's name.
        argument: &'static str,
    },
    /// An input, parameter or output was given that the operation does not have.
    UnknownArgument {
        /// Position of the unknown name in the caller's list.
        position: usize,
    },
    /// An input is of another kind (numbers, mask, indices) than the operation expects.
    WrongKind {
        /// The input's name.
        argument: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// A slice has another length than its shape asks for.
    LengthMismatch {
        /// The argument's name.
        argument: &'static str,
        /// The length that the other arguments imply.
        expected: usize,
        /// The length that was given.
        got: usize,
    },
    /// An input's shape is none of those that the operation accepts.
    ShapeMismatch {
        /// The argument's name.
        argument: &'static str,
    },
    /// An unmasked input value is NaN or infinite.
    NonFinite {
        /// The argument's name.
        argument: &'static str,
        /// Flat (row-major) index of the first such value.
        index: usize,
    },
    /// A number is outside its legal range.
    OutOfRange {
        /// The argument's name.
        argument: &'static str,
        /// The value that was given.
        value: f64,
        /// The legal range in words.
        legal: &'static str,
    },
    /// One element of a slice is outside its legal range.
    ElementOutOfRange {
        /// The argument's name.
        argument: &'static str,
        /// Flat (row-major) index of the first such element.
        index: usize,
        /// The value that was given.
        value: f64,
        /// The legal range in words.
        legal: &'static str,
    },
    /// A choice parameter was given a name that is not among its choices.
    UnknownChoice {
        /// The parameter's name.
        argument: &'static str,
    },
    /// The operation has no dialect of that name.
    UnknownDialect,
    /// A reduction has nothing to reduce: no unmasked element.
    EmptyMask {
        /// The argument whose mask is empty.
        argument: &'static str,
    },
    /// A group has fewer members than the operation needs.
    GroupTooSmall {
        /// Flat index of the group's first member.
        index: usize,
        /// How many members it has.
        size: usize,
        /// How many are needed.
        needed: usize,
    },
    /// An argument holds fewer (unmasked) elements than the operation needs.
    TooFew {
        /// The argument's name.
        argument: &'static str,
        /// How many it holds.
        got: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A linear system is singular to working precision.
    Singular {
        /// The argument that holds the matrix.
        argument: &'static str,
        /// The pivot at which the elimination failed.
        index: usize,
    },
    /// An iteration did not reach its tolerance within its limit.
    NoConvergence {
        /// The argument that sets the limit.
        argument: &'static str,
        /// The residual that was reached.
        residual: f64,
    },
}

impl Error {
    /// What kind of error it is, as one word for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Error::MissingInput { .. } => "missing_input",
            Error::MissingWorkspace { .. } => "missing_workspace",
            Error::UnknownArgument { .. } => "unknown_argument",
            Error::WrongKind { .. } => "wrong_kind",
            Error::LengthMismatch { .. } => "length_mismatch",
            Error::ShapeMismatch { .. } => "shape_mismatch",
            Error::NonFinite { .. } => "non_finite",
            Error::OutOfRange { .. } => "out_of_range",
            Error::ElementOutOfRange { .. } => "element_out_of_range",
            Error::UnknownChoice { .. } => "unknown_choice",
            Error::UnknownDialect => "unknown_dialect",
            Error::EmptyMask { .. } => "empty_mask",
            Error::GroupTooSmall { .. } => "group_too_small",
            Error::TooFew { .. } => "too_few",
            Error::Singular { .. } => "singular",
            Error::NoConvergence { .. } => "no_convergence",
        }
    }

    /// The name of the argument at fault, where the error has one.
    pub const fn argument(&self) -> Option<&'static str> {
        match *self {
            Error::MissingInput { argument }
            | Error::MissingWorkspace { argument }
            | Error::WrongKind { argument, .. }
            | Error::LengthMismatch { argument, .. }
            | Error::ShapeMismatch { argument }
            | Error::NonFinite { argument, .. }
            | Error::OutOfRange { argument, .. }
            | Error::ElementOutOfRange { argument, .. }
            | Error::UnknownChoice { argument }
            | Error::EmptyMask { argument }
            | Error::TooFew { argument, .. }
            | Error::Singular { argument, .. }
            | Error::NoConvergence { argument, .. } => Some(argument),
            Error::GroupTooSmall { .. } => Some("group"),
            Error::UnknownArgument { .. } | Error::UnknownDialect => None,
        }
    }

    /// The flat (row-major) index of the element at fault, where the error has one.
    pub const fn index(&self) -> Option<usize> {
        match *self {
            Error::NonFinite { index, .. }
            | Error::ElementOutOfRange { index, .. }
            | Error::GroupTooSmall { index, .. } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::MissingInput { argument } => write!(f, "`{argument}` is required but was not given"),
            Error::MissingWorkspace { argument } => {
                write!(f, "the output `{argument}` must be asked for: the operation works in it")
            }
            Error::UnknownArgument { position } => write!(f, "argument {position} is not one that the operation has"),
            Error::WrongKind { argument, expected } => write!(f, "`{argument}` must be {expected}"),
            Error::LengthMismatch { argument, expected, got } => {
                write!(f, "`{argument}` has {got} elements where the other arguments ask for {expected}")
            }
            Error::ShapeMismatch { argument } => {
                write!(f, "`{argument}` has a shape that the operation does not accept")
            }
            Error::NonFinite { argument, index } => write!(f, "`{argument}` at index {index} is not finite"),
            Error::OutOfRange { argument, value, legal } => write!(f, "`{argument}` is {value}, legal is {legal}"),
            Error::ElementOutOfRange { argument, index, value, legal } => {
                write!(f, "`{argument}` at index {index} is {value}, legal is {legal}")
            }
            Error::UnknownChoice { argument } => {
                write!(f, "`{argument}` was given a name that is not among its choices")
            }
            Error::UnknownDialect => write!(f, "the operation has no such dialect"),
            Error::EmptyMask { argument } => write!(f, "`{argument}` keeps nothing: there is nothing to reduce"),
            Error::GroupTooSmall { index, size, needed } => {
                write!(f, "`group`: the group that starts at index {index} has {size} member(s), {needed} are needed")
            }
            Error::TooFew { argument, got, needed } => {
                write!(f, "`{argument}` holds {got} unmasked element(s), {needed} are needed")
            }
            Error::Singular { argument, index } => write!(f, "`{argument}` is singular (pivot {index})"),
            Error::NoConvergence { argument, residual } => {
                write!(f, "not converged within `{argument}`: the residual is still {residual}")
            }
        }
    }
}

impl core::error::Error for Error {}

//! Why a request was refused, in words that name the argument.

use std::fmt;

use plumbline_core::Error;
use plumbline_core::spec::Shape;

use crate::describe::shape_text;

/// Why an evaluation was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// A name that is not known.
    Unknown {
        /// What it should have named: an operation, an input, a parameter, an output, a dialect, a choice.
        what: String,
        /// What is at fault: the unknown name itself or, for a choice, the parameter that it was given to.
        argument: String,
        /// The name that was given.
        given: String,
        /// The known name that it most resembles.
        nearest: Option<String>,
        /// All known names, where they are few enough to print.
        known: Vec<String>,
    },
    /// One element is not of the kind that the input needs.
    Element {
        /// The input's name.
        argument: String,
        /// Flat index of the element.
        index: usize,
        /// The value that was given.
        value: f64,
        /// What is legal.
        legal: &'static str,
    },
    /// An array whose shape is none of those accepted, or disagrees with another input's.
    Shape {
        /// The input's name.
        argument: String,
        /// The shape that was given.
        given: Vec<usize>,
        /// The shapes that are accepted.
        accepted: &'static [Shape],
        /// The sizes that the other inputs fix.
        sizes: Vec<(String, usize)>,
    },
    /// An output whose size the given inputs do not tell.
    Undetermined {
        /// The output's name.
        output: String,
        /// Its shape.
        shape: Shape,
    },
    /// An output that does not fit into memory.
    TooLarge {
        /// The output's name.
        output: String,
    },
    /// What core itself refused.
    Core(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Core(error)
    }
}

impl Refusal {
    /// What kind of refusal it is, as one word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::Unknown { .. } => "unknown_name",
            Refusal::Element { .. } => "element_out_of_range",
            Refusal::Shape { .. } => "shape_mismatch",
            Refusal::Undetermined { .. } => "undetermined_shape",
            Refusal::TooLarge { .. } => "too_large",
            Refusal::Core(error) => error.kind(),
        }
    }

    /// The name of the argument at fault, where one is.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Refusal::Unknown { argument, .. }
            | Refusal::Element { argument, .. }
            | Refusal::Shape { argument, .. }
            | Refusal::Undetermined { output: argument, .. }
            | Refusal::TooLarge { output: argument } => Some(argument),
            Refusal::Core(error) => error.argument(),
        }
    }

    /// The flat (row-major) index of the element at fault, where one is.
    pub fn index(&self) -> Option<usize> {
        match self {
            Refusal::Element { index, .. } => Some(*index),
            Refusal::Core(error) => error.index(),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unknown { what, given, nearest, known, .. } => {
                write!(f, "no {what} is called `{given}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None if known.is_empty() => Ok(()),
                    None => write!(f, "; known are {}", known.join(", ")),
                }
            }
            Refusal::Element { argument, index, value, legal } => {
                write!(f, "`{argument}` at index {index} is {value}, legal is {legal}")
            }
            Refusal::Shape { argument, given, accepted, sizes } => {
                let accepted: Vec<String> = accepted.iter().map(|shape| shape_text(shape)).collect();
                write!(f, "`{argument}` has shape {given:?}, accepted is {}", accepted.join(" or "))?;
                if !sizes.is_empty() {
                    let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
                    write!(f, " with {}", sizes.join(", "))?;
                }
                Ok(())
            }
            Refusal::Undetermined { output, shape } => {
                write!(f, "`{output}` has shape {}, which the given inputs do not determine", shape_text(shape))
            }
            Refusal::TooLarge { output } => write!(f, "`{output}` does not fit into memory"),
            Refusal::Core(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

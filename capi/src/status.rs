//! How a call ended.

use std::ffi::c_char;
use std::fmt::{self, Write as _};

use plumbline_core::Error;

use crate::text::PlumblineText;

/// How a call ended. Everything but `PLUMBLINE_STATUS_OK` is an error; after an error, what the outputs hold is unspecified.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlumblineStatus {
    /// Done.
    Ok = 0,
    /// A pointer that must lead somewhere is null.
    NullPointer = 1,
    /// A pointer is not aligned for what it leads to.
    Misaligned = 2,
    /// An output's buffer overlaps another buffer.
    Overlap = 3,
    /// A name is not UTF-8.
    BadText = 4,
    /// A number that says which of several is meant (a position, a dtype, a kind) means none of them.
    NoSuchItem = 5,
    /// No operation, input, parameter, output, dialect or choice has that name.
    UnknownName = 6,
    /// An input, a parameter or an output was given twice.
    Repeated = 7,
    /// A required input is missing.
    MissingInput = 8,
    /// An output in which the operation works (`workspace` in its description) was not asked for: provide its buffer.
    MissingWorkspace = 9,
    /// An input or a parameter is of another kind than the operation expects.
    WrongKind = 10,
    /// A buffer has another length than its shape asks for.
    LengthMismatch = 11,
    /// An input's shape is none of those that the operation accepts, or disagrees with another input's.
    ShapeMismatch = 12,
    /// A value that the mask keeps is NaN or infinite.
    NonFinite = 13,
    /// A number is outside its legal range.
    OutOfRange = 14,
    /// There is nothing, or too little, to compute from: an empty mask, a group that is too small.
    TooFew = 15,
    /// A linear system is singular.
    Singular = 16,
    /// An iteration did not reach its tolerance.
    NoConvergence = 17,
    /// The operation refused for a reason that this version has no number for; the message says it.
    Refused = 18,
    /// The library broke down: a defect, please report it.
    Internal = 19,
}

/// Stands in an error's `index` where no element is at fault.
pub const PLUMBLINE_NO_INDEX: i64 = -1;

/// How many bytes an error's message may take, the zero byte included.
pub const PLUMBLINE_MESSAGE_SIZE: usize = 256;

/// What is wrong; in memory of the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineError {
    /// The status that the function returned.
    pub status: PlumblineStatus,
    /// The operation's argument at fault, where there is one.
    pub argument: PlumblineText,
    /// Flat (row-major) index of the element at fault; `PLUMBLINE_NO_INDEX` where there is none.
    pub index: i64,
    /// One sentence, terminated by a zero byte.
    pub message: [c_char; PLUMBLINE_MESSAGE_SIZE],
}

impl PlumblineError {
    /// Nothing wrong.
    pub fn none() -> Self {
        PlumblineError {
            status: PlumblineStatus::Ok,
            argument: PlumblineText::NONE,
            index: PLUMBLINE_NO_INDEX,
            message: [0; PLUMBLINE_MESSAGE_SIZE],
        }
    }

    /// The message in Rust.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.message.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Why a call was refused, before it is told to the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refused<'a> {
    Null(&'static str),
    Misaligned(&'static str),
    Overlap(&'static str),
    BadText,
    NoSuchItem(&'static str),
    Unknown { what: &'static str, given: &'a str },
    Repeated(&'static str),
    Core(Error),
    Internal,
}

impl From<Error> for Refused<'_> {
    fn from(error: Error) -> Self {
        Refused::Core(error)
    }
}

impl Refused<'_> {
    pub(crate) fn status(&self) -> PlumblineStatus {
        match self {
            Refused::Null(_) => PlumblineStatus::NullPointer,
            Refused::Misaligned(_) => PlumblineStatus::Misaligned,
            Refused::Overlap(_) => PlumblineStatus::Overlap,
            Refused::BadText => PlumblineStatus::BadText,
            Refused::NoSuchItem(_) => PlumblineStatus::NoSuchItem,
            Refused::Unknown { .. } => PlumblineStatus::UnknownName,
            Refused::Repeated(_) => PlumblineStatus::Repeated,
            Refused::Internal => PlumblineStatus::Internal,
            Refused::Core(error) => match error {
                Error::MissingInput { .. } => PlumblineStatus::MissingInput,
                Error::MissingWorkspace { .. } => PlumblineStatus::MissingWorkspace,
                Error::UnknownArgument { .. } | Error::UnknownChoice { .. } | Error::UnknownDialect => {
                    PlumblineStatus::UnknownName
                }
                Error::WrongKind { .. } => PlumblineStatus::WrongKind,
                Error::LengthMismatch { .. } => PlumblineStatus::LengthMismatch,
                Error::ShapeMismatch { .. } => PlumblineStatus::ShapeMismatch,
                Error::NonFinite { .. } => PlumblineStatus::NonFinite,
                Error::OutOfRange { .. } | Error::ElementOutOfRange { .. } => PlumblineStatus::OutOfRange,
                Error::EmptyMask { .. } | Error::GroupTooSmall { .. } | Error::TooFew { .. } => PlumblineStatus::TooFew,
                Error::Singular { .. } => PlumblineStatus::Singular,
                Error::NoConvergence { .. } => PlumblineStatus::NoConvergence,
                _ => PlumblineStatus::Refused,
            },
        }
    }

    fn argument(&self) -> Option<&'static str> {
        match *self {
            Refused::Overlap(argument) | Refused::Repeated(argument) => Some(argument),
            Refused::Core(error) => error.argument(),
            _ => None,
        }
    }

    fn index(&self) -> i64 {
        let index = match *self {
            // The pivot at which the elimination failed; no element of an argument.
            Refused::Core(Error::Singular { index, .. }) => Some(index),
            Refused::Core(error) => error.index(),
            _ => None,
        };
        index.and_then(|index| i64::try_from(index).ok()).unwrap_or(PLUMBLINE_NO_INDEX)
    }

    /// As the caller reads it.
    pub(crate) fn told(&self) -> PlumblineError {
        let mut error = PlumblineError::none();
        error.status = self.status();
        error.argument = self.argument().map_or(PlumblineText::NONE, PlumblineText::new);
        error.index = self.index();
        // A message that does not fit ends early, at a whole character.
        let _ = write!(Message { buffer: &mut error.message, used: 0 }, "{self}");
        error
    }
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Refused::Null(what) => write!(f, "{what} is a null pointer"),
            Refused::Misaligned(what) => write!(f, "`{what}`: a pointer is not aligned for the numbers it leads to"),
            Refused::Overlap(what) => write!(f, "`{what}`: the output's buffer overlaps another buffer"),
            Refused::BadText => f.write_str("a name is not UTF-8"),
            Refused::NoSuchItem(what) => write!(f, "there is no such {what}"),
            Refused::Unknown { what, given } => write!(f, "no {what} is called `{given}`"),
            Refused::Repeated(what) => write!(f, "`{what}` was given twice"),
            Refused::Internal => f.write_str("the library broke down; this is a defect of Plumbline"),
            Refused::Core(error) => write!(f, "{error}"),
        }
    }
}

/// Writes characters for as long as they fit, and leaves the last byte zero.
struct Message<'a> {
    buffer: &'a mut [c_char; PLUMBLINE_MESSAGE_SIZE],
    used: usize,
}

impl fmt::Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            if self.used + bytes.len() >= self.buffer.len() {
                return Err(fmt::Error);
            }
            for (slot, byte) in self.buffer.iter_mut().skip(self.used).zip(bytes) {
                *slot = *byte as c_char;
            }
            self.used += bytes.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_argument_and_index() {
        let error = Refused::Core(Error::NonFinite { argument: "log_prob", index: 3 }).told();
        assert_eq!((error.status, error.index), (PlumblineStatus::NonFinite, 3));
        assert_eq!(error.argument.as_str(), Some("log_prob"));
        assert_eq!(error.text(), "`log_prob` at index 3 is not finite");
    }

    #[test]
    fn a_long_message_ends_early_and_at_a_whole_character() {
        let given = "é".repeat(200);
        let error = Refused::Unknown { what: "operation", given: &given }.told();
        let text = error.text();
        assert_eq!(error.message[PLUMBLINE_MESSAGE_SIZE - 1], 0);
        assert!(text.starts_with("no operation is called `éé") && text.ends_with('é'));
        assert!((PLUMBLINE_MESSAGE_SIZE - 3..PLUMBLINE_MESSAGE_SIZE).contains(&text.len()));
    }
}

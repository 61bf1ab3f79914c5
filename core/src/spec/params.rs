//! From what the caller gave to a complete, legal set of parameters.

use super::operation::{Operation, ParamKind, ParamSpec, Value};
use crate::Error;

/// The most parameters an operation may have.
pub const MAX_PARAMS: usize = 64;

/// A parameter as the caller gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// Its value.
    pub value: GivenValue<'a>,
}

/// The value of a parameter as the caller gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GivenValue<'a> {
    /// Switched off.
    None,
    /// A number (whole where the parameter is).
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Name(&'a str),
}

/// Complete, legal parameters, in the order of the operation's list.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    values: [Value; MAX_PARAMS],
}

impl Params {
    /// The operation's defaults, then the dialect's settings, then what the caller gave; each checked against its range.
    pub fn resolve(operation: &Operation, dialect: Option<&str>, given: &[Given<'_>]) -> Result<Params, Error> {
        let mut values = [Value::None; MAX_PARAMS];
        for (slot, param) in values.iter_mut().zip(operation.params) {
            *slot = operation.default_of(param);
        }
        if let Some(name) = dialect {
            let dialect = operation.dialect(name).ok_or(Error::UnknownDialect)?;
            for (name, value) in dialect.settings {
                if let Some((position, _)) = operation.param(name)
                    && let Some(slot) = values.get_mut(position)
                {
                    *slot = *value;
                }
            }
        }
        for (position_given, given) in given.iter().enumerate() {
            let (position, param) =
                operation.param(given.name).ok_or(Error::UnknownArgument { position: position_given })?;
            let value = checked(param, given.value)?;
            if let Some(slot) = values.get_mut(position) {
                *slot = value;
            }
        }
        Ok(Params { values })
    }

    /// The value at a position of the operation's list.
    pub fn get(&self, position: usize) -> Value {
        self.values.get(position).copied().unwrap_or(Value::None)
    }
}

fn checked(param: &'static ParamSpec, value: GivenValue<'_>) -> Result<Value, Error> {
    let argument = param.name;
    match (param.kind, value) {
        (ParamKind::Number { range, .. } | ParamKind::OptionalNumber { range, .. }, GivenValue::Number(value)) => {
            if range.contains(value) {
                Ok(Value::Number(value))
            } else {
                Err(Error::OutOfRange { argument, value, legal: range.text })
            }
        }
        (ParamKind::OptionalNumber { .. }, GivenValue::None) => Ok(Value::None),
        (ParamKind::Integer { low, high, .. }, GivenValue::Number(value)) => {
            let whole = value as i64;
            if whole as f64 == value && low <= whole && whole <= high {
                Ok(Value::Integer(whole))
            } else {
                Err(Error::OutOfRange { argument, value, legal: "a whole number within the parameter's limits" })
            }
        }
        (ParamKind::Flag { .. }, GivenValue::Flag(value)) => Ok(Value::Flag(value)),
        (ParamKind::Choice { names, .. }, GivenValue::Name(name)) => names
            .iter()
            .find(|candidate| **candidate == name)
            .map(|name| Value::Name(name))
            .ok_or(Error::UnknownChoice { argument }),
        (ParamKind::Number { .. } | ParamKind::OptionalNumber { .. }, _) => {
            Err(Error::WrongKind { argument, expected: "a number" })
        }
        (ParamKind::Integer { .. }, _) => Err(Error::WrongKind { argument, expected: "a whole number" }),
        (ParamKind::Flag { .. }, _) => Err(Error::WrongKind { argument, expected: "true or false" }),
        (ParamKind::Choice { .. }, _) => Err(Error::WrongKind { argument, expected: "one of the parameter's names" }),
    }
}

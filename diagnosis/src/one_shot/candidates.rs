//! The points that are tried: operations in their dialects, and single changes of each.

use plumbline_core::catalog;
use plumbline_core::spec::{Operation, ParamKind, Value};
use plumbline_evaluate::Param;

use super::Name;
use crate::candidates::changes_of_the_whole;
use crate::vectors::Case;
use crate::{Change, Edit, Meaning, Place};

/// A meaning, and all names that mean the same parameters of the same composition.
pub(super) struct Base {
    pub meaning: Meaning,
    pub params: Vec<Value>,
    pub names: Vec<Name>,
}

/// A base with a change, or without one.
pub(super) struct Candidate {
    pub base: usize,
    pub change: Option<Change>,
}

/// Every operation at its defaults and in each dialect (or in the one that is given), with the known parameters, each
/// setting once.
pub(super) fn bases(
    operations: &[&'static Operation],
    dialect: Option<&str>,
    known: &[(String, Param)],
    case: &Case,
) -> Vec<Base> {
    let mut bases: Vec<Base> = Vec::new();
    for operation in operations {
        let settings: Vec<(&'static str, Value)> = known
            .iter()
            .filter_map(|(name, value)| {
                let (_, param) = operation.param(name)?;
                Some((param.name, setting(param.kind, value)?))
            })
            .collect();
        let dialects: Vec<Option<&'static str>> = match dialect {
            Some(name) => operation.dialect(name).map(|dialect| vec![Some(dialect.name)]).unwrap_or_default(),
            None => operation.dialects.iter().map(|dialect| Some(dialect.name)).chain([None]).collect(),
        };
        for dialect in dialects {
            let meaning = Meaning { operation, dialect, settings: settings.clone() };
            let Ok(params) = meaning.parameters(case) else { continue };
            let name = Name { operation: operation.id, dialect };
            match bases.iter_mut().find(|base| is_same(base, operation, &params)) {
                // The defaults are worth a name where no dialect of the operation has them.
                Some(base) if dialect.is_some() || base.names.iter().all(|name| name.operation != operation.id) => {
                    base.names.push(name);
                }
                Some(_) => {}
                None => bases.push(Base { meaning, params, names: vec![name] }),
            }
        }
    }
    bases
}

fn is_same(base: &Base, operation: &'static Operation, params: &[Value]) -> bool {
    let other = base.meaning.operation;
    std::ptr::fn_addr_eq(other.evaluate.f64, operation.evaluate.f64)
        && other.params.iter().map(|param| param.name).eq(operation.params.iter().map(|param| param.name))
        && base.params == params
}

/// A parameter's value from what was given; `None` where it is of another kind.
pub(super) fn setting(kind: ParamKind, value: &Param) -> Option<Value> {
    match (kind, value) {
        (ParamKind::OptionalNumber { .. }, Param::None) => Some(Value::None),
        (ParamKind::Number { .. } | ParamKind::OptionalNumber { .. }, Param::Number(number)) => {
            Some(Value::Number(*number))
        }
        (ParamKind::Integer { .. }, Param::Number(number)) => {
            let whole = *number as i64;
            (whole as f64 == *number).then_some(Value::Integer(whole))
        }
        (ParamKind::Flag { .. }, Param::Flag(flag)) => Some(Value::Flag(*flag)),
        (ParamKind::Choice { names, .. }, Param::Name(chosen)) => {
            names.iter().find(|name| *name == chosen).map(|name| Value::Name(name))
        }
        _ => None,
    }
}

/// The single changes of each base in turn, the likeliest first. Of parameter settings that meet, the first is kept.
pub(super) fn changed(bases: &[Base], scope: &[usize], case: &Case) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let mut seen: Vec<(usize, Vec<Value>)> =
        bases.iter().map(|base| (base.meaning.operation.evaluate.f64 as usize, base.params.clone())).collect();
    for index in scope {
        let base = &bases[*index];
        let mut changes = changes_of_the_whole(&base.meaning, &[case]);
        changes.extend(settings_in_use(base));
        for change in changes {
            match &change {
                // Among the bases.
                Change::Operation(_) | Change::Dialect(_) => {}
                // One number bears only exchanges that someone might make: of parameters that share a word of their names.
                Change::ExchangeParams(first, second) if !share_a_word(first, second) => {}
                // Only a gradient tells.
                Change::Unstopped | Change::NoGradient | Change::GradientOf(_) => {}
                // So many that one number would fit some of them by accident.
                Change::Branch(_)
                | Change::Only(..)
                | Change::Outside(..)
                | Change::Output(_)
                | Change::OperationBy { .. }
                | Change::TokenByToken { .. } => {}
                Change::Copy { edit, at, .. } if edit.is_some() || *at != Place::All => {}
                Change::Input(_, Edit::Whitened { eps: Some(_), .. }) => {}
                Change::Set(..) | Change::Scale(..) | Change::ExchangeParams(..) => {
                    let point = crate::Point { meaning: &base.meaning, changes: vec![change.clone()] };
                    let Ok((operation, params)) = point.parameters(case) else { continue };
                    let key = (operation.evaluate.f64 as usize, params);
                    if !seen.contains(&key) {
                        seen.push(key);
                        all.push(Candidate { base: *index, change: Some(change) });
                    }
                }
                _ => all.push(Candidate { base: *index, change: Some(change) }),
            }
        }
    }
    let place = |base: usize| scope.iter().position(|index| *index == base);
    all.sort_by_key(|candidate| (place(candidate.base), candidate.change.as_ref().map(unlikeliness)));
    all
}

/// What people do most comes first.
fn unlikeliness(change: &Change) -> u8 {
    match change {
        Change::Set(..) | Change::Scale(..) | Change::ExchangeParams(..) => 0,
        Change::Reflect(..) | Change::ExchangeInputs(..) | Change::Parts(_) => 1,
        Change::Input(_, edit) if edit.is_of_masks() => 1,
        Change::Input(_, Edit::Ignored | Edit::Negated | Edit::Zero) | Change::Mirror(_) => 2,
        _ => 3,
    }
}

fn share_a_word(first: &str, second: &str) -> bool {
    first.split('_').any(|word| second.split('_').any(|other| other == word))
}

/// The numbers at which some operation or dialect of the catalog sets the parameters of a base.
fn settings_in_use(base: &Base) -> Vec<Change> {
    let mut changes = Vec::new();
    for (param, current) in base.meaning.operation.params.iter().zip(&base.params) {
        for operation in catalog::operations() {
            let Some((_, other)) = operation.param(param.name) else { continue };
            let dialects = operation.dialects.iter().flat_map(|dialect| dialect.settings);
            let set = dialects.filter(|(name, _)| *name == param.name).map(|(_, value)| *value);
            for value in set.chain([operation.default_of(other)]) {
                let change = Change::Set(param.name, value);
                if matches!(value, Value::Number(_)) && value != *current && !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
    }
    changes
}

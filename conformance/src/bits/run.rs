//! Run the cases through a backend.

use plumbline_bits::{Digest, Hash};
use plumbline_core::num::Dtype;
use plumbline_evaluate::{Request, Wanted};

use super::cases::Group;
use super::table::Row;
use crate::backend::{Backend, Failure};

/// How a group of cases ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its hashes.
    Row(Row),
    /// The backend does not compute the operation; why.
    Skipped(String),
    /// The backend broke down; how.
    Broke(String),
}

/// Compute all cases of a group and hash the results.
pub fn run(backend: &dyn Backend, group: &Group) -> Outcome {
    let mut hashes = [None; 2];
    let mut refused = 0;
    for (slot, dtype) in hashes.iter_mut().zip([Dtype::F32, Dtype::F64]) {
        if !backend.dtypes().contains(&dtype) {
            continue;
        }
        match hash(backend, group, dtype) {
            Ok((hash, count)) => {
                *slot = Some(hash);
                refused += count;
            }
            Err(outcome) => return outcome,
        }
    }
    let [f32, f64] = hashes;
    Outcome::Row(Row {
        operation: group.operation.id.to_owned(),
        set: group.set,
        cases: group.cases.len(),
        refused,
        inputs: group.inputs_hash(),
        f32,
        f64,
    })
}

fn hash(backend: &dyn Backend, group: &Group, dtype: Dtype) -> Result<(Hash, usize), Outcome> {
    let mut digest = Digest::new();
    let mut refused = 0;
    for case in &group.cases {
        let request = Request {
            operation: group.operation.id,
            dialect: case.dialect.as_deref(),
            dtype,
            params: &case.params,
            inputs: &case.inputs,
            outputs: Wanted::All,
        };
        match backend.evaluate(&request) {
            Ok(outputs) => {
                digest.case();
                for (name, tensor) in outputs {
                    match dtype {
                        // The numbers are those of the backend's precision, held as wider ones.
                        Dtype::F32 => digest.output(&name, tensor.values.iter().map(|value| *value as f32)),
                        Dtype::F64 => digest.output(&name, tensor.values.iter().copied()),
                    }
                }
            }
            Err(Failure::Refused(_)) => {
                digest.refused();
                refused += 1;
            }
            Err(Failure::Skipped(why)) => return Err(Outcome::Skipped(why)),
            Err(Failure::Broke(how)) => return Err(Outcome::Broke(how)),
        }
    }
    Ok((digest.finish(), refused))
}

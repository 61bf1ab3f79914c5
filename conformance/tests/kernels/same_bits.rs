//! Golden cases through core and through devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use plumbline_conformance::backend::{Backend, Core, Failure};
use plumbline_conformance::fixture::{self, Golden};
use plumbline_conformance::verify::dialect_of;
use plumbline_evaluate::{Outputs, Request, Wanted};

/// What was compared.
#[derive(Debug, Default)]
pub struct Tally {
    /// Cases with equal bits, by operation.
    pub equal: BTreeMap<String, usize>,
    /// Operations without a kernel.
    pub without: BTreeSet<String>,
}

/// Compare every golden case, with all outputs; the first difference is the error.
pub fn compare(backend: &dyn Backend) -> Result<Tally, String> {
    compare_family(backend, "")
}

/// Compare the golden cases of the operations that begin so.
pub fn compare_family(backend: &dyn Backend, family: &str) -> Result<Tally, String> {
    let mut tally = Tally::default();
    static FILES: OnceLock<Vec<Golden>> = OnceLock::new();
    let files = FILES.get_or_init(|| fixture::embedded().unwrap());
    let cases = files.iter().flat_map(|file| file.cases.iter().map(move |case| (file, case)));
    for (golden, case) in cases.filter(|(_, case)| case.operation.starts_with(family)) {
        let request = Request {
            operation: &case.operation,
            dialect: dialect_of(case),
            dtype: golden.dtype(),
            params: &case.params,
            inputs: &case.inputs,
            outputs: Wanted::All,
        };
        match backend.evaluate(&request) {
            Err(Failure::Skipped(_)) => {
                tally.without.insert(case.operation.clone());
            }
            got => {
                same_bits(&got, &Core.evaluate(&request)).map_err(|words| format!("{}: {words}", case.id))?;
                *tally.equal.entry(case.operation.clone()).or_default() += 1;
            }
        }
    }
    Ok(tally)
}

fn same_bits(got: &Result<Outputs, Failure>, expected: &Result<Outputs, Failure>) -> Result<(), String> {
    let (Ok(got), Ok(expected)) = (got, expected) else {
        return if got == expected { Ok(()) } else { Err(format!("{got:?}, core {expected:?}")) };
    };
    for ((name, got), (_, expected)) in got.iter().zip(expected) {
        for (index, (got, expected)) in got.values.iter().zip(&expected.values).enumerate() {
            if got.to_bits() != expected.to_bits() && !(got.is_nan() && expected.is_nan()) {
                return Err(format!("{name}[{index}] is {got:e}, core has {expected:e}"));
            }
        }
    }
    if got.len() == expected.len() { Ok(()) } else { Err("outputs are missing".to_owned()) }
}

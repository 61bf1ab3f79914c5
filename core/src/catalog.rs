//! The only list of operations: every room's operations, gathered.

use crate::spec::{Evaluate, Family, Operation};

/// The operations of every family that the crate's features choose (all by default), in the order of the book.
const FAMILIES: &[&[&[Operation]]] = &[
    #[cfg(feature = "logits")]
    crate::logits::OPERATIONS,
    #[cfg(feature = "kl")]
    crate::kl::OPERATIONS,
    #[cfg(feature = "ratio")]
    crate::ratio::OPERATIONS,
    #[cfg(feature = "surrogate")]
    crate::surrogate::OPERATIONS,
    #[cfg(feature = "reduce")]
    crate::reduce::OPERATIONS,
    #[cfg(feature = "advantage")]
    crate::advantage::OPERATIONS,
    #[cfg(feature = "reward")]
    crate::reward::OPERATIONS,
    #[cfg(feature = "value")]
    crate::value::OPERATIONS,
    #[cfg(feature = "preference")]
    crate::preference::OPERATIONS,
    #[cfg(feature = "bellman")]
    crate::bellman::OPERATIONS,
    #[cfg(feature = "td")]
    crate::td::OPERATIONS,
    #[cfg(feature = "trust_region")]
    crate::trust_region::OPERATIONS,
    #[cfg(feature = "objective")]
    crate::objective::OPERATIONS,
];

/// All of them in one list, which is put together when the crate is compiled: what an operation does not hold is not in a
/// program either.
static OPERATIONS: [Operation; count()] = gather();

const fn count() -> usize {
    let mut count = 0;
    let mut families = FAMILIES;
    while let [family, others @ ..] = families {
        let mut files = *family;
        while let [file, further @ ..] = files {
            count += file.len();
            files = further;
        }
        families = others;
    }
    count
}

#[allow(clippy::indexing_slicing, reason = "evaluated when the crate is compiled, and there is a place for each")]
const fn gather() -> [Operation; count()] {
    let mut all = [PLACE; count()];
    let mut place = 0;
    let mut families = FAMILIES;
    while let [family, others @ ..] = families {
        let mut files = *family;
        while let [file, further @ ..] = files {
            let mut operations = *file;
            while let [operation, rest @ ..] = operations {
                all[place] = operation.held();
                place += 1;
                operations = rest;
            }
            files = further;
        }
        families = others;
    }
    all
}

/// What stands in a place of the list before its operation does.
const PLACE: Operation = Operation {
    id: "",
    family: Family::Objective,
    title: "",
    summary: "",
    formula: "",
    gradient: "",
    notes: "",
    sources: &[],
    inputs: &[],
    params: &[],
    defaults: &[],
    outputs: &[],
    dialects: &[],
    evaluate: Evaluate { f32: |_| Ok(()), f64: |_| Ok(()), kernel: None },
};

/// All operations.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter()
}

/// The operation of that identifier.
pub fn find(id: &str) -> Option<&'static Operation> {
    operations().find(|operation| operation.id == id)
}

//! The only list of operations: every room's operations, gathered.

use crate::spec::Operation;

/// The operations of every family, in the order of the book.
pub static FAMILIES: &[&[&[Operation]]] = &[
    crate::logits::OPERATIONS,
    crate::kl::OPERATIONS,
    crate::ratio::OPERATIONS,
    crate::surrogate::OPERATIONS,
    crate::reduce::OPERATIONS,
    crate::advantage::OPERATIONS,
    crate::reward::OPERATIONS,
    crate::value::OPERATIONS,
    crate::preference::OPERATIONS,
    crate::bellman::OPERATIONS,
    crate::td::OPERATIONS,
    crate::trust_region::OPERATIONS,
    crate::objective::OPERATIONS,
];

/// All operations.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|file| file.iter())
}

/// The operation of that identifier.
pub fn find(id: &str) -> Option<&'static Operation> {
    operations().find(|operation| operation.id == id)
}

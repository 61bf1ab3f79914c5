//! The only list of operations: every room's operations, gathered.

use crate::spec::Operation;

/// The operations of every family that the crate's features choose (all by default), in the order of the book.
pub static FAMILIES: &[&[&[Operation]]] = &[
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

/// All operations.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|family| family.iter()).flat_map(|file| file.iter())
}

/// The operation of that identifier.
pub fn find(id: &str) -> Option<&'static Operation> {
    operations().find(|operation| operation.id == id)
}

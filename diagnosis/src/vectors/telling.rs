//! Cases that were picked because they tell points of the space apart that the cases of one seed do not.
//!
//! `cargo xtask vectors` compares all pairs of points on many drawn cases and writes down the cases that were needed.

/// An operation, a seed and the name of a case that is drawn from it, by line.
const TABLE: &str = include_str!("telling.txt");

/// The seeds and names of the picked cases of an operation.
pub(super) fn telling(operation: &str) -> impl Iterator<Item = (u64, &'static str)> + '_ {
    TABLE.lines().filter_map(move |line| {
        let mut words = line.split(' ');
        (words.next() == Some(operation)).then_some(())?;
        Some((words.next()?.parse().ok()?, words.next()?))
    })
}

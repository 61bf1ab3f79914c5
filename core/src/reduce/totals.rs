//! The counts that a reduction divides by. They merge, so that a shard can know the whole batch's.

use crate::batch::{Groups, Mask};

/// Counts over a batch, or over the shards of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Unmasked tokens.
    pub tokens: usize,
    /// Responses, empty ones included.
    pub rows: usize,
    /// Responses with at least one token.
    pub nonempty_rows: usize,
    /// Groups with at least one token (0 where there are no groups).
    pub groups: usize,
    /// The padded width.
    pub columns: usize,
}

impl Totals {
    /// The counts of one batch.
    pub fn of(mask: &Mask<'_>, groups: Option<Groups<'_>>) -> Totals {
        let shape = mask.shape();
        let (mut tokens, mut nonempty_rows) = (0, 0);
        for row in 0..shape.rows {
            let length = mask.length(row);
            tokens += length;
            nonempty_rows += usize::from(length > 0);
        }
        let groups = groups.map_or(0, |groups| {
            groups.leaders().filter(|leader| groups.members(*leader).any(|row| mask.length(row) > 0)).count()
        });
        Totals { tokens, rows: shape.rows, nonempty_rows, groups, columns: shape.columns }
    }

    /// The counts of two shards together. A group must lie whole in one shard.
    pub fn merge(self, other: Totals) -> Totals {
        Totals {
            tokens: self.tokens + other.tokens,
            rows: self.rows + other.rows,
            nonempty_rows: self.nonempty_rows + other.nonempty_rows,
            groups: self.groups + other.groups,
            columns: self.columns.max(other.columns),
        }
    }
}

//! A batch of B responses padded to T tokens, row after row, and the mask that says which tokens are there.

use crate::Error;

/// B rows of T columns, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenShape {
    /// B: the number of responses.
    pub rows: usize,
    /// T: the width that they are padded to.
    pub columns: usize,
}

impl TokenShape {
    /// The number of slots, B·T.
    pub fn slots(self) -> usize {
        self.rows.saturating_mul(self.columns)
    }

    /// Check that a slice holds one element per slot.
    pub fn check<T>(self, argument: &'static str, values: &[T]) -> Result<(), Error> {
        let expected = self.slots();
        if values.len() == expected {
            Ok(())
        } else {
            Err(Error::LengthMismatch { argument, expected, got: values.len() })
        }
    }

    /// Check that a slice holds one element per row.
    pub fn check_rows<T>(self, argument: &'static str, values: &[T]) -> Result<(), Error> {
        if values.len() == self.rows {
            Ok(())
        } else {
            Err(Error::LengthMismatch { argument, expected: self.rows, got: values.len() })
        }
    }
}

/// Row `row` of a row-major slice of the given width; empty where the slice is too short.
#[inline(always)]
pub fn row_of<T>(values: &[T], columns: usize, row: usize) -> &[T] {
    let start = row.saturating_mul(columns);
    values.get(start..start.saturating_add(columns)).unwrap_or(&[])
}

/// Which slots of a batch hold a token: one byte a slot, 0 for absent, anything else for present. Without bytes, all are.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    bytes: Option<&'a [u8]>,
    shape: TokenShape,
}

impl<'a> Mask<'a> {
    /// A mask over `shape`; `None` keeps every slot.
    pub fn new(shape: TokenShape, bytes: Option<&'a [u8]>) -> Result<Self, Error> {
        if let Some(bytes) = bytes {
            shape.check("mask", bytes)?;
        }
        Ok(Mask { bytes, shape })
    }

    /// The shape that the mask covers.
    pub fn shape(&self) -> TokenShape {
        self.shape
    }

    /// Whether the slot holds a token.
    #[inline(always)]
    pub fn keeps(&self, slot: usize) -> bool {
        self.bytes.is_none_or(|bytes| bytes.get(slot).is_some_and(|byte| *byte != 0))
    }

    /// The bytes of one row, where there are any.
    #[inline(always)]
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        self.bytes.map(|bytes| row_of(bytes, self.shape.columns, row))
    }

    /// L_i: how many tokens a row holds.
    pub fn length(&self, row: usize) -> usize {
        match self.row(row) {
            Some(bytes) => bytes.iter().map(|byte| usize::from(*byte != 0)).sum(),
            None => self.shape.columns,
        }
    }

    /// How many tokens the batch holds.
    pub fn count(&self) -> usize {
        match self.bytes {
            Some(bytes) => bytes.iter().map(|byte| usize::from(*byte != 0)).sum(),
            None => self.shape.slots(),
        }
    }

    /// How many rows hold at least one token.
    pub fn nonempty_rows(&self) -> usize {
        (0..self.shape.rows).filter(|row| self.length(*row) > 0).count()
    }
}

//! A batch of B responses padded to T tokens, row after row, and the mask that says which tokens are there.

use crate::Error;
use crate::num::{BLOCK, ExactSum, Real, tree_sum_by};

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

/// An output before and from a place.
pub(crate) fn cut<R>(buffer: Option<&mut [R]>, place: usize) -> (Option<&mut [R]>, Option<&mut [R]>) {
    match buffer.and_then(|buffer| buffer.split_at_mut_checked(place)) {
        Some((before, from)) => (Some(before), Some(from)),
        None => (None, None),
    }
}

/// How many bytes are not 0. At most 255 are counted in a byte at a time, which vectorises to whole registers of counters.
pub(crate) fn count_nonzero(bytes: &[u8]) -> usize {
    bytes
        .chunks(255)
        .map(|part| usize::from(part.iter().fold(0u8, |count, byte| count.wrapping_add(u8::from(*byte != 0)))))
        .sum()
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

    /// The bytes of all rows, where there are any.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        self.bytes
    }

    /// The bytes of one row, where there are any.
    #[inline(always)]
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        self.bytes.map(|bytes| row_of(bytes, self.shape.columns, row))
    }

    /// L_i: how many tokens a row holds.
    pub fn length(&self, row: usize) -> usize {
        match self.row(row) {
            Some(bytes) => count_nonzero(bytes),
            None => self.shape.columns,
        }
    }

    /// How many tokens the batch holds.
    pub fn count(&self) -> usize {
        match self.bytes {
            Some(bytes) => count_nonzero(bytes),
            None => self.shape.slots(),
        }
    }

    /// How many rows hold at least one token.
    pub fn nonempty_rows(&self) -> usize {
        (0..self.shape.rows).filter(|row| self.length(*row) > 0).count()
    }

    /// The flat indices of one row's tokens, ascending.
    pub fn kept(self, row: usize) -> impl Iterator<Item = usize> + 'a {
        let start = row.saturating_mul(self.shape.columns);
        (start..start.saturating_add(self.shape.columns)).filter(move |slot| self.keeps(*slot))
    }

    /// Check that every token's value is finite; what stands under the mask is not looked at.
    pub fn check_finite<R: Real>(&self, argument: &'static str, values: &[R]) -> Result<(), Error> {
        // A pass without branches settles the usual case; only where a number is not finite is its place looked up.
        if values.chunks(BLOCK).all(|block| block.iter().fold(true, |finite, value| finite & value.is_finite())) {
            return Ok(());
        }
        match values.iter().enumerate().find(|(slot, value)| !value.is_finite() && self.keeps(*slot)) {
            Some((index, _)) => Err(Error::NonFinite { argument, index }),
            None => Ok(()),
        }
    }

    /// The canonical sum over one row of a term per flat index; absent slots count as +0. Terms of both signs whose
    /// tree overflows are added exactly instead, so that finite terms never give NaN.
    pub fn row_sum<R: Real>(&self, row: usize, term: impl Fn(usize) -> R) -> R {
        let start = row.saturating_mul(self.shape.columns);
        let sum = tree_sum_by(self.shape.columns, |column| {
            let slot = start.saturating_add(column);
            if self.keeps(slot) { term(slot) } else { R::zero() }
        });
        if !sum.is_nan() {
            return sum;
        }
        self.exact_row_sum(row, &term)
    }

    /// The way out of an overflow; called, so that its loop is not a part of every sum.
    #[cold]
    #[inline(never)]
    fn exact_row_sum<R: Real>(&self, row: usize, term: &dyn Fn(usize) -> R) -> R {
        let mut exact = ExactSum::new();
        for slot in self.kept(row) {
            exact.add(term(slot));
        }
        exact.value()
    }

    /// The sum over all rows of a term per flat index: row sums, then exactly across rows. Finite terms never give NaN.
    pub fn sum<R: Real>(&self, term: impl Fn(usize) -> R) -> R {
        let mut total = ExactSum::new();
        for row in 0..self.shape.rows {
            total.add(self.row_sum(row, &term));
        }
        let sum: R = total.value();
        if sum.is_nan() { self.exact_sum(&term) } else { sum }
    }

    /// The same for all rows.
    #[cold]
    #[inline(never)]
    fn exact_sum<R: Real>(&self, term: &dyn Fn(usize) -> R) -> R {
        let mut exact = ExactSum::new();
        for slot in (0..self.shape.slots()).filter(|slot| self.keeps(*slot)) {
            exact.add(term(slot));
        }
        exact.value()
    }

    /// Write one row of a buffer that the caller may not have asked for: a value per flat index, +0 where absent.
    pub fn write_row<R: Real>(&self, row: usize, buffer: &mut Option<&mut [R]>, value: impl Fn(usize) -> R) {
        let start = row.saturating_mul(self.shape.columns);
        let elements = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(start..)).unwrap_or(&mut []);
        for (slot, element) in (start..).zip(elements.iter_mut().take(self.shape.columns)) {
            *element = if self.keeps(slot) { value(slot) } else { R::zero() };
        }
    }

    /// Write a value per flat index into a buffer, +0 where the slot is absent.
    pub fn write<R: Real>(&self, buffer: &mut [R], value: impl Fn(usize) -> R) {
        for (slot, element) in buffer.iter_mut().enumerate() {
            *element = if self.keeps(slot) { value(slot) } else { R::zero() };
        }
    }
}

/// Write one element of a buffer that the caller may not have asked for.
#[inline(always)]
pub fn set<R>(buffer: &mut Option<&mut [R]>, index: usize, value: R) {
    if let Some(element) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
        *element = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TokenShape = TokenShape { rows: 2, columns: 3 };

    #[test]
    fn absent_slots_touch_nothing() {
        let mask = Mask::new(SHAPE, Some(&[1, 0, 1, 0, 1, 0])).unwrap();
        let values = [1.0, f64::NAN, 2.0, f64::INFINITY, -0.5, f64::NAN];
        assert_eq!(mask.check_finite("value", &values), Ok(()));
        assert_eq!([mask.row_sum(0, |slot| values[slot]), mask.row_sum(1, |slot| values[slot])], [3.0, -0.5]);
        assert_eq!(mask.sum(|slot| values[slot]), 2.5);
        assert!(mask.kept(0).eq([0, 2]));
        let mut written = [7.0; 6];
        mask.write(&mut written, |slot| 2.0 * values[slot]);
        assert_eq!(written, [2.0, 0.0, 4.0, 0.0, -1.0, 0.0]);
        mask.write_row(1, &mut Some(&mut written[..]), |slot| values[slot]);
        assert_eq!(written, [2.0, 0.0, 4.0, 0.0, -0.5, 0.0]);
        let junk = Err(Error::NonFinite { argument: "value", index: 1 });
        assert_eq!(Mask::new(SHAPE, None).unwrap().check_finite("value", &values), junk);
    }

    #[test]
    fn finite_terms_that_overflow_on_the_way_still_add_up() {
        let mask = Mask::new(TokenShape { rows: 1, columns: 130 }, None).unwrap();
        let term = |slot: usize| match slot {
            0 | 64 => f64::MAX,
            1 | 65 => -f64::MAX,
            129 => 3.0,
            _ => 0.0,
        };
        assert_eq!(mask.row_sum(0, term), 3.0);
        let rows = Mask::new(TokenShape { rows: 2, columns: 2 }, None).unwrap();
        assert_eq!(rows.sum(|slot| if slot < 2 { f64::MAX } else { -f64::MAX }), 0.0);
    }
}

//! Dense linear algebra: the scalar product, and a system solved where it lies.

use core::mem;

use super::{ExactSum, Real, tree_sum_zip};
use crate::Error;

/// Solve `matrix` · x = `right_side` by elimination with partial pivoting; `right_side` becomes x.
///
/// `matrix` is n × n, row-major; of it the upper triangular factor and junk below it are left. The pivot is the largest
/// element of the column, the first of equal ones. A pivot of at most n·ε times the matrix's largest element, or a result
/// that is not finite, is the error `Singular` under the name `argument`. n³/3 multiplications, no memory.
///
/// ```
/// use plumbline_core::num::solve_linear;
/// let (mut matrix, mut x) = ([0.0, 2.0, 4.0, 2.0], [2.0, 10.0]);
/// solve_linear("matrix", &mut matrix, &mut x)?;
/// assert_eq!(x, [2.0, 1.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn solve_linear<R: Real>(argument: &'static str, matrix: &mut [R], right_side: &mut [R]) -> Result<(), Error> {
    let size = right_side.len();
    let expected = size.saturating_mul(size);
    if matrix.len() != expected {
        return Err(Error::LengthMismatch { argument, expected, got: matrix.len() });
    }
    let largest = matrix.iter().fold(R::zero(), |largest, element| element.abs().larger(largest));
    let threshold = largest * (R::from_count(size) * R::epsilon());
    for column in 0..size {
        let (mut pivot_row, mut pivot_size) = (column, R::zero());
        for row in column..size {
            let candidate = at(matrix, row * size + column).abs();
            if candidate > pivot_size {
                (pivot_row, pivot_size) = (row, candidate);
            }
        }
        if pivot_size <= threshold || !pivot_size.is_finite() {
            return Err(Error::Singular { argument, index: column });
        }
        let below = (column + 1) * size;
        let (upper, lower) = matrix.split_at_mut_checked(below).unwrap_or_default();
        let pivot = upper.get_mut(column * size..).unwrap_or_default();
        let (solved, rest) = right_side.split_at_mut_checked(column + 1).unwrap_or_default();
        if pivot_row > column {
            let other = lower.get_mut(pivot_row * size - below..).unwrap_or_default();
            pivot.iter_mut().zip(other).skip(column).for_each(|(one, other)| mem::swap(one, other));
            if let (Some(one), Some(other)) = (solved.last_mut(), rest.get_mut(pivot_row - column - 1)) {
                mem::swap(one, other);
            }
        }
        let pivot = &*pivot;
        for (row, right) in lower.chunks_exact_mut(size.max(1)).zip(rest) {
            let factor = at(row, column) / at(pivot, column);
            if factor != R::zero() {
                for (element, above) in row.iter_mut().zip(pivot).skip(column + 1) {
                    *element -= factor * *above;
                }
                *right -= factor * at(solved, column);
            }
        }
    }
    for column in (0..size).rev() {
        let row = matrix.get(column * size..(column + 1) * size).unwrap_or(&[]);
        let (head, known) = right_side.split_at_mut_checked(column + 1).unwrap_or_default();
        let rest = tree_sum_zip(row.get(column + 1..).unwrap_or(&[]), known, |factor, x| *factor * *x);
        if let Some(slot) = head.last_mut() {
            *slot = (*slot - rest) / at(row, column);
            if !slot.is_finite() {
                return Err(Error::Singular { argument, index: column });
            }
        }
    }
    Ok(())
}

/// The scalar product of two vectors, a tree by position, limited to the finite numbers. Finite elements never give NaN:
/// where the tree overflows, limited products are added exactly.
///
/// ```
/// use plumbline_core::num::dot;
/// assert_eq!(dot(&[1.0, 2.0], &[3.0, 4.0]), 11.0);
/// assert_eq!(dot(&[1e200, 1e200], &[1e200, -1e200]), 0.0);
/// ```
pub fn dot<R: Real>(left: &[R], right: &[R]) -> R {
    let sum = tree_sum_zip(left, right, |a, b| *a * *b);
    if sum.is_finite() {
        return sum;
    }
    let mut exact = ExactSum::new();
    for (a, b) in left.iter().zip(right) {
        exact.add((*a * *b).limited());
    }
    exact.value::<R>().limited()
}

#[inline(always)]
fn at<R: Real>(values: &[R], index: usize) -> R {
    values.get(index).copied().unwrap_or(R::zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn singular_and_misshaped_systems_are_errors() {
        let argument = "matrix";
        assert_eq!(
            solve_linear(argument, &mut [1.0, 2.0, 2.0, 4.0], &mut [1.0, 1.0]),
            Err(Error::Singular { argument, index: 1 })
        );
        assert_eq!(solve_linear(argument, &mut [0.0f32], &mut [1.0]), Err(Error::Singular { argument, index: 0 }));
        assert_eq!(
            solve_linear(argument, &mut [1.0, 2.0], &mut [1.0, 1.0]),
            Err(Error::LengthMismatch { argument, expected: 4, got: 2 })
        );
        assert_eq!(solve_linear::<f64>(argument, &mut [], &mut []), Ok(()));
        // (1 + 1e-20) − 1 vanishes: singular to working precision although not exactly so.
        assert!(solve_linear(argument, &mut [3.0, 1.0, 1.0, 1.0 / 3.0], &mut [1.0, 1.0]).is_err());
    }

    proptest! {
        #[test]
        fn solves_diagonally_dominant_systems(size in 1usize..9, seed in proptest::collection::vec(-1.0f64..1.0, 72)) {
            let mut matrix = seed[..size * size].to_vec();
            for k in 0..size {
                matrix[k * size + k] += 10.0;
            }
            // Rows in reverse, so that pivoting is needed.
            let matrix: std::vec::Vec<f64> = matrix.chunks(size).rev().flatten().copied().collect();
            let right = seed[64 - size..64].to_vec();
            let (mut work, mut x) = (matrix.clone(), right.clone());
            solve_linear("matrix", &mut work, &mut x).unwrap();
            for (row, expected) in matrix.chunks(size).zip(&right) {
                // Backward error of at most n·8ε·‖A‖‖x‖ for these matrices; ‖A‖ < 19, ‖x‖ < 1.
                let got: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
                prop_assert!((got - expected).abs() < size as f64 * 8.0 * f64::EPSILON * 19.0);
            }
        }
    }
}

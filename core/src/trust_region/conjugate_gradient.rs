//! The conjugate-gradient method.

use crate::Error;
use crate::batch::row_of;
use crate::num::{Real, dot};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// The buffers that the method works in, all as long as the right side.
#[derive(Debug)]
pub struct Buffers<'b, R> {
    /// Receives x.
    pub solution: &'b mut [R],
    /// Receives b − A·x as the recurrence has it.
    pub residual: &'b mut [R],
    /// The last search direction.
    pub direction: &'b mut [R],
    /// A times the last search direction.
    pub product: &'b mut [R],
}

/// Why the method stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The residual's norm is within the tolerance.
    Converged,
    /// The limit of iterations is reached.
    Limit,
    /// A direction has no positive curvature (the matrix is not positive definite to working precision), or a number left
    /// the range. The solution is that of the iteration before.
    Breakdown,
}

/// How the method ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<R> {
    /// Products with A that moved the solution.
    pub iterations: usize,
    /// ‖b − A·x‖₂ as the recurrence has it.
    pub residual_norm: R,
    /// Why it stopped.
    pub ending: Ending,
}

/// Solve A·x = b for a symmetric positive definite A that is given by `apply(p, product)` (Hestenes & Stiefel 1952).
///
/// It starts from x = 0, stops when ‖r‖₂ ≤ `tolerance` or after `limit` products. Scalar products are trees by position.
/// Nothing is allocated. Error: `LengthMismatch` of a buffer.
///
/// ```
/// use plumbline_core::trust_region::conjugate_gradient::{Buffers, Ending, conjugate_gradient};
/// let (mut x, mut r, mut p, mut q) = ([0.0; 2], [0.0; 2], [0.0; 2], [0.0; 2]);
/// let buffers = Buffers { solution: &mut x, residual: &mut r, direction: &mut p, product: &mut q };
/// let double = |p: &[f64], product: &mut [f64]| product.iter_mut().zip(p).for_each(|(out, p)| *out = 2.0 * p);
/// let outcome = conjugate_gradient(double, &[6.0, -4.0], buffers, 0.0, 10)?;
/// assert_eq!((x, outcome.iterations, outcome.ending), ([3.0, -2.0], 1, Ending::Converged));
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn conjugate_gradient<R: Real>(
    mut apply: impl FnMut(&[R], &mut [R]),
    right_side: &[R],
    buffers: Buffers<'_, R>,
    tolerance: R,
    limit: usize,
) -> Result<Outcome<R>, Error> {
    let Buffers { solution, residual, direction, product } = buffers;
    for (argument, buffer) in
        [("solution", &*solution), ("residual", &*residual), ("direction", &*direction), ("product", &*product)]
    {
        if buffer.len() != right_side.len() {
            return Err(Error::LengthMismatch { argument, expected: right_side.len(), got: buffer.len() });
        }
    }
    solution.fill(R::zero());
    product.fill(R::zero());
    for ((residual, direction), right) in residual.iter_mut().zip(direction.iter_mut()).zip(right_side) {
        (*residual, *direction) = (*right, *right);
    }
    let mut square = dot(residual, residual);
    let mut iterations = 0;
    let ending = loop {
        if square.sqrt() <= tolerance {
            break Ending::Converged;
        }
        if iterations >= limit {
            break Ending::Limit;
        }
        apply(direction, product);
        let curvature = dot(direction, product);
        let length = square / curvature;
        if curvature <= R::zero() || !length.is_finite() || square == R::max_value() {
            break Ending::Breakdown;
        }
        for (slot, p) in solution.iter_mut().zip(direction.iter()) {
            *slot = (*slot + length * *p).limited();
        }
        for (slot, q) in residual.iter_mut().zip(product.iter()) {
            *slot = (*slot - length * *q).limited();
        }
        iterations += 1;
        let next = dot(residual, residual);
        let growth = next / square;
        if !growth.is_finite() {
            square = next;
            break Ending::Breakdown;
        }
        for (slot, r) in direction.iter_mut().zip(residual.iter()) {
            *slot = (*r + growth * *slot).limited();
        }
        square = next;
    };
    Ok(Outcome { iterations, residual_norm: square.sqrt(), ending })
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (matrix, right_side) = (call.finite("matrix")?, call.finite("right_side")?);
    let (damping, tolerance): (R, R) = (call.number("damping")?, call.number("residual_tolerance")?);
    let limit = call.integer("max_iterations")?;
    let size = right_side.len();
    let buffers = Buffers {
        solution: call.workspace("solution")?,
        residual: call.workspace("residual")?,
        direction: call.workspace("direction")?,
        product: call.workspace("product")?,
    };
    let apply = |vector: &[R], product: &mut [R]| {
        for (row, (slot, own)) in product.iter_mut().zip(vector).enumerate() {
            *slot = (dot(row_of(matrix, size, row), vector) + damping * *own).limited();
        }
    };
    let outcome = conjugate_gradient(apply, right_side, buffers, tolerance, limit)?;
    let flag = |is: bool| if is { R::one() } else { R::zero() };
    call.write("residual_norm", outcome.residual_norm);
    call.write("iterations", R::from_count(outcome.iterations));
    call.write("converged", flag(outcome.ending == Ending::Converged));
    call.write("breakdown", flag(outcome.ending == Ending::Breakdown));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.conjugate_gradient",
    family: Family::TrustRegion,
    title: "Conjugate gradient",
    summary: "The solution of a symmetric positive definite system by products with its matrix alone.",
    formula: r"\alpha_k = \frac{r_k^\top r_k}{p_k^\top A p_k},\quad x_{k+1} = x_k + \alpha_k p_k,\quad r_{k+1} = r_k - \alpha_k A p_k,\quad
p_{k+1} = r_{k+1} + \frac{r_{k+1}^\top r_{k+1}}{r_k^\top r_k}\,p_k",
    gradient: "",
    notes: "From x = 0. The tolerance is on the residual's norm; programs that compare its square with 1e-10 mean 1e-5 here. Reaching the \
            limit is no error, nor is a direction without positive curvature: `converged` and `breakdown` tell, and the solution is the \
            last good one. Only the matrix's products enter: symmetry is not checked. The typed function takes a callback. No dialects.",
    sources: &[
        Source {
            title: "Methods of Conjugate Gradients for Solving Linear Systems",
            reference: "Hestenes and Stiefel 1952, doi:10.6028/jres.049.044",
            place: "Section 3, Eq. 3:1",
        },
        Source { title: "Trust Region Policy Optimization", reference: "arXiv:1502.05477", place: "Appendix C" },
    ],
    inputs: &[
        InputSpec::new("matrix", Domain::Real, &[&["P", "P"]], "a symmetric positive definite matrix"),
        InputSpec::new("right_side", Domain::Real, &[&["P"]], "the right side of the system"),
    ],
    params: &[
        ParamSpec::number(
            "damping",
            r"\lambda",
            0.0,
            Range::NON_NEGATIVE,
            "multiple of the identity added to the matrix",
        ),
        ParamSpec::number(
            "residual_tolerance",
            r"\epsilon",
            1e-5,
            Range::NON_NEGATIVE,
            "norm of the residual at which the iteration stops",
        ),
        ParamSpec::integer("max_iterations", "K", 10, 0, 1_000_000_000, "products with the matrix at most"),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("solution", &["P"], "the solution").workspace(),
        OutputSpec::value("residual", &["P"], "right side minus matrix times solution, by the recurrence").workspace(),
        OutputSpec::value("residual_norm", &[], "its Euclidean norm"),
        OutputSpec::value("iterations", &[], "products that moved the solution"),
        OutputSpec::value("converged", &[], "1 where the residual is within the tolerance, else 0"),
        OutputSpec::value("breakdown", &[], "1 where a direction had no positive curvature, else 0"),
        OutputSpec::value("direction", &["P"], "the last search direction").workspace(),
        OutputSpec::value("product", &["P"], "the matrix times the direction before").workspace(),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn solve(matrix: &[f64], right: &[f64], limit: usize) -> (std::vec::Vec<f64>, Outcome<f64>) {
        let size = right.len();
        let mut buffers = [[0.0; 6]; 4];
        let [x, r, p, q] = &mut buffers;
        let parts = Buffers {
            solution: &mut x[..size],
            residual: &mut r[..size],
            direction: &mut p[..size],
            product: &mut q[..size],
        };
        let apply = |vector: &[f64], product: &mut [f64]| {
            product.iter_mut().enumerate().for_each(|(row, slot)| *slot = dot(&matrix[row * size..][..size], vector));
        };
        let outcome = conjugate_gradient(apply, right, parts, 1e-12, limit).unwrap();
        (buffers[0][..size].to_vec(), outcome)
    }

    #[test]
    fn an_indefinite_matrix_breaks_down_and_says_so() {
        let (x, outcome) = solve(&[1.0, 0.0, 0.0, -1.0], &[0.0, 2.0], 10);
        assert_eq!((x[0], x[1], outcome.iterations, outcome.ending), (0.0, 0.0, 0, Ending::Breakdown));
        assert_eq!(outcome.residual_norm, 2.0);
        assert_eq!(solve(&[1.0], &[0.0], 10).1.ending, Ending::Converged);
        assert_eq!(solve(&[1.0], &[1.0], 0).1.ending, Ending::Limit);
        let (x, outcome) = solve(&[1.0], &[1e200], 5);
        assert_eq!((x[0], outcome.ending), (0.0, Ending::Breakdown));
    }

    proptest! {
        #[test]
        fn solves_random_positive_definite_systems(
            size in 1usize..7, seed in prop::collection::vec(-1.0f64..1.0, 36), right in prop::collection::vec(-1.0f64..1.0, 6)
        ) {
            // BᵀB + I: eigenvalues between 1 and 1 + 36.
            let matrix: std::vec::Vec<f64> = (0..size * size)
                .map(|slot| {
                    let (i, j) = (slot / size, slot % size);
                    (0..size).map(|k| seed[k * 6 + i] * seed[k * 6 + j]).sum::<f64>() + f64::from(u8::from(i == j))
                })
                .collect();
            // n steps in exact arithmetic; a few more for rounding.
            let (x, outcome) = solve(&matrix, &right[..size], 4 * size);
            prop_assert_eq!(outcome.ending, Ending::Converged);
            for row in 0..size {
                let got = dot(&matrix[row * size..][..size], &x);
                // The recurrence's residual drifts from the true one by about ε·κ·‖b‖ an iteration.
                prop_assert!((got - right[row]).abs() < 1e-12 + 24.0 * f64::EPSILON * 37.0 * 3.0);
            }
        }
    }
}

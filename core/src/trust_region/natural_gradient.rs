//! The natural gradient of a small policy.

use crate::Error;
use crate::num::{Real, dot, solve_linear};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// (F + λI)⁻¹ g by elimination in the caller's buffers (Kakade 2001, Eq. 3).
///
/// `matrix` [P, P] holds F and is used up; `gradient` \[P\] holds g and receives the result. Error: `Singular` of
/// `fisher_matrix`.
///
/// ```
/// use plumbline_core::trust_region::natural_gradient::natural_gradient;
/// let (mut matrix, mut gradient) = ([1.0, 0.0, 0.0, 3.0], [4.0, 8.0]);
/// natural_gradient(&mut matrix, &mut gradient, 1.0)?;
/// assert_eq!(gradient, [2.0, 2.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn natural_gradient<R: Real>(matrix: &mut [R], gradient: &mut [R], damping: R) -> Result<(), Error> {
    for element in matrix.iter_mut().step_by(gradient.len() + 1) {
        *element = (*element + damping).limited();
    }
    solve_linear("fisher_matrix", matrix, gradient)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (fisher, gradient) = (call.finite("fisher_matrix")?, call.finite("gradient")?);
    let damping = call.number("damping")?;
    let (result, matrix) = (call.workspace("natural_gradient")?, call.workspace("matrix")?);
    matrix.iter_mut().zip(fisher).for_each(|(slot, element)| *slot = *element);
    result.iter_mut().zip(gradient).for_each(|(slot, element)| *slot = *element);
    natural_gradient(matrix, result, damping)?;
    call.write("improvement", dot(gradient, result));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.natural_gradient",
    family: Family::TrustRegion,
    title: "Natural gradient",
    summary: "The gradient in the metric of the policy's Fisher information, by a direct solve.",
    formula: r"\tilde g = (F + \lambda I)^{-1} g",
    gradient: "",
    notes: "Gaussian elimination with partial pivoting, for small P; conjugate gradient takes its place where F is only known by its \
            products. A softmax policy's Fisher matrix is singular in its logits: damping is needed there. No dialects.",
    sources: &[
        Source {
            title: "A Natural Policy Gradient",
            reference: "Kakade 2001, Advances in Neural Information Processing Systems 14",
            place: "Section 2, the natural gradient",
        },
        Source {
            title: "Natural Gradient Works Efficiently in Learning",
            reference: "Amari 1998, doi:10.1162/089976698300017746",
            place: "Theorem 1",
        },
    ],
    inputs: &[
        InputSpec::new("fisher_matrix", Domain::Real, &[&["P", "P"]], "the Fisher information"),
        InputSpec::new("gradient", Domain::Real, &[&["P"]], "the gradient"),
    ],
    params: &[ParamSpec::number("damping", r"\lambda", 0.0, Range::NON_NEGATIVE, "multiple of the identity added")],
    defaults: &[],
    outputs: &[
        OutputSpec::value("natural_gradient", &["P"], "the natural gradient").workspace(),
        OutputSpec::value(
            "improvement",
            &[],
            "gradient times natural gradient: first-order improvement of a unit step",
        ),
        OutputSpec::value(
            "matrix",
            &["P", "P"],
            "what the elimination leaves, the triangular factor and junk below it",
        )
        .workspace(),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_singular_matrix_needs_damping() {
        // A softmax policy of two equally likely actions.
        let fisher = [0.25, -0.25, -0.25, 0.25];
        let (mut matrix, mut gradient) = (fisher, [1.0f64, -1.0]);
        let argument = "fisher_matrix";
        assert_eq!(natural_gradient(&mut matrix, &mut gradient, 0.0), Err(Error::Singular { argument, index: 1 }));
        let (mut matrix, mut gradient) = (fisher, [1.0f64, -1.0]);
        natural_gradient(&mut matrix, &mut gradient, 0.5).unwrap();
        // Its eigenvalue along (1, −1) is ½ + ½.
        assert!((gradient[0] - 1.0).abs() < 1e-15 && (gradient[1] + 1.0).abs() < 1e-15);
    }
}

//! The Fisher information of a categorical policy times a vector.

use super::steps::{STEP_MASK, Steps, at, cleared};
use crate::Error;
use crate::batch::row_of;
use crate::num::{LogPartition, Real, tree_sum_by, tree_sum_zip};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// (diag p − p pᵀ) v of one state: `product` holds p and receives p∘(v − p·v); vᵀ(diag p − p pᵀ)v = Σ p (v − p·v)² is
/// returned (Schulman et al. 2015, Appendix C).
///
/// It is the Hessian of KL(π_old‖π) at π = π_old by the logits. The quadratic form is a sum of squares and never negative.
///
/// ```
/// use plumbline_core::trust_region::fisher_vector_product::fisher_vector_product;
/// let mut product = [0.25, 0.75]; // the probabilities
/// assert_eq!(fisher_vector_product(&mut product, &[4.0, 0.0]), 3.0);
/// assert_eq!(product, [0.75, -0.75]);
/// ```
pub fn fisher_vector_product<R: Real>(product: &mut [R], vector: &[R]) -> R {
    let times = |p: R, x: R| if p == R::zero() { R::zero() } else { p * x };
    let mean = tree_sum_zip(product, vector, |p, v| times(*p, *v)).limited();
    let quadratic = tree_sum_zip(product, vector, |p, v| {
        let off = (*v - mean).limited();
        times(*p, off * off)
    });
    for (slot, v) in product.iter_mut().zip(vector) {
        *slot = times(*slot, (*v - mean).limited());
    }
    quadratic
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (logits, vector, width) = (call.real("logits")?, call.real("vector")?, call.dim("V"));
    let damping: R = call.number("damping")?;
    let steps = Steps::from_call(call, "logits")?;
    steps.finite("logits", logits, width)?;
    steps.finite("vector", vector, width)?;
    let product = call.workspace("product")?;
    product.fill(R::zero());
    let mut forms = cleared(call, "step_quadratic");
    let count = steps.count();
    let mut total = crate::num::ExactSum::new();
    for step in steps.kept() {
        let (logits, vector) = (row_of(logits, width, step), row_of(vector, width, step));
        let (Some(partition), Some(row)) =
            (LogPartition::new(logits, R::one()), product.get_mut(step * width..(step + 1) * width))
        else {
            continue;
        };
        for (slot, logit) in row.iter_mut().zip(logits) {
            *slot = partition.log_prob(*logit).exp();
        }
        let form = fisher_vector_product(row, vector).limited() / count;
        for (slot, v) in row.iter_mut().zip(vector) {
            *slot = (*slot / count + damping * *v).limited();
        }
        let damped = form + damping * tree_sum_by(width, |k| at(vector, k) * at(vector, k)).limited();
        total.add(damped.limited());
        crate::batch::set(&mut forms, step, damped.limited());
    }
    call.write("quadratic", total.value());
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "trust_region.fisher_vector_product",
    family: Family::TrustRegion,
    title: "Fisher-vector product of categorical policies",
    summary: "The policy's Fisher information, the Hessian of its mean KL divergence, times a vector in the space of logits.",
    formula: r"(Fv)_n = \frac1N\,\pi_n\circ(v_n - \pi_n^\top v_n) + \lambda v_n,\quad
v^\top F v = \frac1N\sum_n\sum_a \pi_n(a)\,(v_n(a) - \pi_n^\top v_n)^2 + \lambda\lVert v\rVert^2",
    gradient: "",
    notes: "In the space of logits; a network's own product sandwiches it between the Jacobian and its transpose. A vector that is the same \
            for all actions of a state is in its null space, hence the damping. Absent steps get +0. No dialects.",
    sources: &[
        Source { title: "Trust Region Policy Optimization", reference: "arXiv:1502.05477", place: "Appendix C" },
        Source {
            title: "A Natural Policy Gradient",
            reference: "Kakade 2001, Advances in Neural Information Processing Systems 14",
            place: "Section 2, the Fisher information matrix",
        },
    ],
    inputs: &[
        InputSpec::new("logits", Domain::Logit, &[&["N", "V"]], "logits of the policy in each state"),
        InputSpec::new("vector", Domain::Real, &[&["N", "V"]], "the vector, one number per logit"),
        STEP_MASK,
    ],
    params: &[ParamSpec::number(
        "damping",
        r"\lambda",
        0.0,
        Range::NON_NEGATIVE,
        "multiple of the vector that is added",
    )],
    defaults: &[],
    outputs: &[
        OutputSpec::value("product", &["N", "V"], "the Fisher information times the vector").workspace(),
        OutputSpec::value("quadratic", &[], "the vector times the product"),
        OutputSpec::value("step_quadratic", &["N"], "each step's part of it"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn by_hand_with_an_absent_step() {
        let case = Case::new(SPECS, "trust_region.fisher_vector_product")
            .real("logits", &[2, 2], &[0.0, 0.0, f64::NAN, 0.0])
            .real("vector", &[2, 2], &[4.0, 0.0, f64::INFINITY, 0.0])
            .mask("mask", &[2], &[1, 0])
            .number("damping", 0.5);
        assert_eq!(case.get("product").unwrap(), [3.0, -1.0, 0.0, 0.0]);
        assert_eq!(
            case.clone().mask("mask", &[2], &[0, 0]).get("product"),
            Err(Error::EmptyMask { argument: "logits" })
        );
    }

    proptest! {
        /// Against differences of the gradient of KL(π_old‖π) by the logits, which is π − π_old.
        #[test]
        fn it_is_the_hessian_of_the_divergence(z in prop::collection::vec(-2.0f64..2.0, 4), v in prop::collection::vec(-2.0f64..2.0, 4)) {
            let softmax = |shift: f64| {
                let moved: std::vec::Vec<f64> = z.iter().zip(&v).map(|(z, v)| z + shift * v).collect();
                let partition = LogPartition::new(&moved, 1.0).unwrap();
                moved.iter().map(|z| Real::exp(partition.log_prob(*z))).collect::<std::vec::Vec<f64>>()
            };
            let mut product = softmax(0.0);
            let form = fisher_vector_product(&mut product, &v);
            let (up, down) = (softmax(1e-5), softmax(-1e-5));
            for k in 0..4 {
                prop_assert!(((up[k] - down[k]) / 2e-5 - product[k]).abs() < 1e-8);
            }
            let direct: f64 = product.iter().zip(&v).map(|(a, b)| a * b).sum();
            prop_assert!((direct - form).abs() < 64.0 * f64::EPSILON * 16.0);
            prop_assert!(form >= 0.0);
        }
    }
}

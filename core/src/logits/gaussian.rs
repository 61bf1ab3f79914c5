//! Diagonal Gaussian policies: log-probability of an action, entropy, divergence.

use super::row::{COTANGENT, ROW_MASK, Rows, cleared, row_mut, set};
use crate::Error;
use crate::batch::{Mask, TokenShape, row_of};
use crate::num::{Real, exp_remainders};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// ½ ln 2π.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// x·e^(−l) with 0·∞ = 0.
#[inline(always)]
fn over_std<R: Real>(x: R, log_std: R) -> R {
    if x == R::zero() { R::zero() } else { x * (-log_std).exp() }
}

/// One dimension's log-density −½z² − ln σ − ½ ln 2π, z = (a − μ)/σ, and its derivatives by a, μ and ln σ:
/// −z/σ, z/σ, z² − 1.
///
/// ```
/// use plumbline_core::logits::gaussian::log_prob;
/// let [value, by_action, by_mean, by_log_std] = log_prob(3.0f64, 1.0, 0.0);
/// assert_eq!(value, -2.0 - 0.918_938_533_204_672_8);
/// assert_eq!([by_action, by_mean, by_log_std], [-2.0, 2.0, 3.0]);
/// ```
#[inline(always)]
pub fn log_prob<R: Real>(action: R, mean: R, log_std: R) -> [R; 4] {
    let z = over_std(action - mean, log_std);
    let slope = over_std(z, log_std);
    let square = z * z;
    // An infinite square outweighs any log σ.
    let rest = log_std + R::from_f64(HALF_LN_TWO_PI);
    [-(R::half() * square) - rest, -slope, slope, square - R::one()]
}

/// One dimension's entropy ln σ + ½ ln 2πe, and its derivative by ln σ, which is 1.
///
/// ```
/// use plumbline_core::logits::gaussian::entropy;
/// assert_eq!(entropy(0.0f64), [1.418_938_533_204_672_7, 1.0]);
/// ```
#[inline(always)]
pub fn entropy<R: Real>(log_std: R) -> [R; 2] {
    [log_std + (R::half() + R::from_f64(HALF_LN_TWO_PI)), R::one()]
}

/// One dimension's KL(N(μ, σ²)‖N(μ′, σ′²)) and its derivatives by μ, ln σ, μ′, ln σ′.
///
/// With δ = ln σ − ln σ′ and u = (μ − μ′)/σ′ it is ½(e^(2δ) − 1 − 2δ + u²); the derivatives are u/σ′, e^(2δ) − 1, −u/σ′ and
/// −(e^(2δ) − 1) − u². Both parts are ≥ 0 and the first does not cancel where the two deviations nearly agree.
///
/// ```
/// use plumbline_core::logits::gaussian::kl;
/// assert_eq!(kl(3.0f64, 0.0, 1.0, 0.0), [2.0, 2.0, 0.0, -2.0, -4.0]);
/// ```
#[inline(always)]
pub fn kl<R: Real>(mean: R, log_std: R, ref_mean: R, ref_log_std: R) -> [R; 5] {
    let distance = over_std(mean - ref_mean, ref_log_std);
    let slope = over_std(distance, ref_log_std);
    let [growth, remainder] = exp_remainders(R::two() * (log_std - ref_log_std));
    let square = distance * distance;
    [R::half() * (remainder + square), slope, growth, -slope, -growth - square]
}

/// For each row the sum over its dimensions of the first result of `formula`, and the other results, times the row's
/// cotangent, as gradients.
fn map_dimensions<R: Real, const I: usize, const O: usize>(
    call: &mut Call<'_, R>,
    value_name: &str,
    inputs: [&'static str; I],
    gradients: [&'static str; O],
    formula: impl Fn([R; I]) -> (R, [R; O]),
) -> Result<(), Error> {
    let rows = Rows::new(call);
    let shape = TokenShape { rows: call.dim("N"), columns: call.dim("D") };
    let everything = Mask::new(shape, None)?;
    let mut columns: [&[R]; I] = [&[]; I];
    for (column, name) in columns.iter_mut().zip(inputs) {
        *column = call.real(name)?;
    }
    let mut values = cleared(call, value_name);
    let mut buffers = gradients.map(|name| cleared(call, name));
    for row in rows.kept() {
        let offset = row.saturating_mul(shape.columns);
        for (column, name) in columns.iter().zip(inputs) {
            if let Some(index) = row_of(column, shape.columns, row).iter().position(|value| !value.is_finite()) {
                return Err(Error::NonFinite { argument: name, index: offset.saturating_add(index) });
            }
        }
        let at = |slot: usize| formula(columns.map(|column| column.get(slot).copied().unwrap_or(R::zero())));
        set(&mut values, row, everything.row_sum(row, |slot| at(slot).0));
        let cotangent = rows.cotangent(row)?;
        for dimension in 0..shape.columns {
            let (_, derivatives) = at(offset.saturating_add(dimension));
            for (buffer, derivative) in buffers.iter_mut().zip(derivatives) {
                if let Some(slot) = row_mut(buffer, shape.columns, row).and_then(|row| row.get_mut(dimension)) {
                    *slot = if cotangent == R::zero() { R::zero() } else { cotangent * derivative };
                }
            }
        }
    }
    Ok(())
}

fn evaluate_log_prob<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_dimensions(
        call,
        "log_prob",
        ["action", "mean", "log_std"],
        ["d_action", "d_mean", "d_log_std"],
        |[action, mean, log_std]| {
            let [value, by_action, by_mean, by_log_std] = log_prob(action, mean, log_std);
            (value, [by_action, by_mean, by_log_std])
        },
    )
}

fn evaluate_entropy<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_dimensions(call, "entropy", ["log_std"], ["d_log_std"], |[log_std]| {
        let [value, by_log_std] = entropy(log_std);
        (value, [by_log_std])
    })
}

fn evaluate_kl<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    map_dimensions(
        call,
        "kl",
        ["mean", "log_std", "ref_mean", "ref_log_std"],
        ["d_mean", "d_log_std", "d_ref_mean", "d_ref_log_std"],
        |[mean, log_std, ref_mean, ref_log_std]| {
            let [value, by_mean, by_log_std, by_ref_mean, by_ref_log_std] = kl(mean, log_std, ref_mean, ref_log_std);
            (value, [by_mean, by_log_std, by_ref_mean, by_ref_log_std])
        },
    )
}

const SHAPE: &[&str] = &["N", "D"];
const MEAN: InputSpec = InputSpec::new("mean", Domain::Real, &[SHAPE], "mean of each action dimension");
const LOG_STD: InputSpec =
    InputSpec::new("log_std", Domain::Real, &[SHAPE], "natural logarithm of each dimension's standard deviation");
const D_MEAN: OutputSpec = OutputSpec::gradient("d_mean", "mean", SHAPE, "gradient by the means");
const D_LOG_STD: OutputSpec =
    OutputSpec::gradient("d_log_std", "log_std", SHAPE, "gradient by the logarithms of the standard deviations");
const SUTTON: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "ISBN 978-0-262-03924-6",
    place: "Equation 13.19, section 13.7",
};
const COVER: Source = Source {
    title: "Elements of Information Theory, 2nd edition",
    reference: "ISBN 978-0-471-24195-9",
    place: "section 8.1 (entropy of a normal distribution), section 8.5 (relative entropy of densities)",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "logits.logprob_gaussian",
        family: Family::Logits,
        title: "log-probability of a diagonal Gaussian",
        summary: "The log-density of an action under independent normal dimensions, with gradients to mean, log deviation and action.",
        formula: r"\sum_d -\tfrac12 z_d^2 - \log\sigma_d - \tfrac12\log 2\pi,\quad z_d = (a_d - \mu_d)/\sigma_d",
        gradient: r"\partial\mu_d: z_d/\sigma_d,\quad \partial\log\sigma_d: z_d^2 - 1,\quad \partial a_d: -z_d/\sigma_d",
        notes: "Equal in PyTorch's Normal, summed over dimensions.",
        sources: &[SUTTON],
        inputs: &[
            InputSpec::new("action", Domain::Real, &[SHAPE], "the action taken"),
            MEAN,
            LOG_STD,
            COTANGENT,
            ROW_MASK,
        ],
        params: &[],
        defaults: &[],
        outputs: &[
            OutputSpec::value("log_prob", &["N"], "log-density of each row's action (nats)"),
            D_MEAN,
            D_LOG_STD,
            OutputSpec::gradient("d_action", "action", SHAPE, "gradient by the action (for reparameterised samples)"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_log_prob),
    },
    Operation {
        id: "logits.entropy_gaussian",
        family: Family::Logits,
        title: "entropy of a diagonal Gaussian",
        summary: "The differential entropy of independent normal dimensions.",
        formula: r"\sum_d \log\sigma_d + \tfrac12\log 2\pi e",
        gradient: r"\partial\log\sigma_d: 1",
        notes: "It may be negative. Equal in PyTorch's Normal, summed over dimensions.",
        sources: &[COVER],
        inputs: &[LOG_STD, COTANGENT, ROW_MASK],
        params: &[],
        defaults: &[],
        outputs: &[OutputSpec::value("entropy", &["N"], "entropy of each row (nats)"), D_LOG_STD],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_entropy),
    },
    Operation {
        id: "logits.kl_gaussian",
        family: Family::Logits,
        title: "Kullback–Leibler divergence of diagonal Gaussians",
        summary: "The divergence of two policies with independent normal dimensions, with gradients to both.",
        formula: r"\sum_d \tfrac12\big(e^{2\delta_d} - 1 - 2\delta_d + u_d^2\big),\quad \delta_d = \log\sigma_d - \log\sigma'_d,\quad
u_d = (\mu_d - \mu'_d)/\sigma'_d",
        gradient: r"\partial\mu_d: u_d/\sigma'_d,\quad \partial\log\sigma_d: e^{2\delta_d} - 1,\quad \partial\mu'_d: -u_d/\sigma'_d,\quad
\partial\log\sigma'_d: -(e^{2\delta_d} - 1) - u_d^2",
        notes: "KL(policy‖reference); exchange the inputs for the other direction. Equal in PyTorch's kl_divergence of two \
                Normals, summed over dimensions.",
        sources: &[COVER],
        inputs: &[
            MEAN,
            LOG_STD,
            InputSpec::new("ref_mean", Domain::Real, &[SHAPE], "the reference's means"),
            InputSpec::new("ref_log_std", Domain::Real, &[SHAPE], "logarithms of the reference's standard deviations"),
            COTANGENT,
            ROW_MASK,
        ],
        params: &[],
        defaults: &[],
        outputs: &[
            OutputSpec::value("kl", &["N"], "divergence of each row (nats)"),
            D_MEAN,
            D_LOG_STD,
            OutputSpec::gradient("d_ref_mean", "ref_mean", SHAPE, "gradient by the reference's means"),
            OutputSpec::gradient("d_ref_log_std", "ref_log_std", SHAPE, "gradient by the reference's log deviations"),
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_kl),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes_give_infinities_not_nan() {
        assert_eq!(log_prob(0.0f64, 0.0, -1000.0), [1000.0 - HALF_LN_TWO_PI, 0.0, 0.0, -1.0]);
        assert_eq!(log_prob(1.0f32, 0.0, -100.0)[0], f32::NEG_INFINITY);
        for [a, b] in [[-1000.0f64, 1000.0], [1000.0, -1000.0], [1e308, -1e308], [0.0, 0.0]] {
            for mean in [0.0, 1.0, 1e300] {
                assert!(kl(mean, a, 0.0, b).iter().all(|value| !value.is_nan()), "{mean} {a} {b}");
                assert!(log_prob(mean, 0.0, a).iter().all(|value| !value.is_nan()), "{mean} {a}");
            }
        }
    }

    proptest! {
        #[test]
        fn derivatives_are_those_of_the_values(
            a in -2.0f64..2.0, m in -2.0f64..2.0, s in -1.0f64..1.0, rm in -2.0f64..2.0, rs in -1.0f64..1.0
        ) {
            let h = 1e-5;
            let near = |slope: f64, derivative: f64| (slope - derivative).abs() < 1e-7 * (1.0 + derivative.abs());
            let [value, da, dm, ds] = log_prob(a, m, s);
            prop_assert!(near((log_prob(a + h, m, s)[0] - log_prob(a - h, m, s)[0]) / (2.0 * h), da));
            prop_assert!(near((log_prob(a, m + h, s)[0] - log_prob(a, m - h, s)[0]) / (2.0 * h), dm));
            prop_assert!(near((log_prob(a, m, s + h)[0] - log_prob(a, m, s - h)[0]) / (2.0 * h), ds));
            prop_assert!(value <= -s - HALF_LN_TWO_PI);
            let [value, dm, ds, drm, drs] = kl(m, s, rm, rs);
            prop_assert!(value >= 0.0);
            prop_assert!(near((kl(m + h, s, rm, rs)[0] - kl(m - h, s, rm, rs)[0]) / (2.0 * h), dm));
            prop_assert!(near((kl(m, s + h, rm, rs)[0] - kl(m, s - h, rm, rs)[0]) / (2.0 * h), ds));
            prop_assert!(near((kl(m, s, rm + h, rs)[0] - kl(m, s, rm - h, rs)[0]) / (2.0 * h), drm));
            prop_assert!(near((kl(m, s, rm, rs + h)[0] - kl(m, s, rm, rs - h)[0]) / (2.0 * h), drs));
        }
    }
}

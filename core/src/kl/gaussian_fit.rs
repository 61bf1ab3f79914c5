//! One Gaussian fitted to a mixture of Gaussians, in both directions of the divergence.

use super::k1::SCHULMAN;
use crate::Error;
use crate::num::{Real, tree_sum_by, tree_sum_map};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// Half the number of intervals of the quadrature.
const HALF_NODES: usize = 160;
/// Distance of the nodes in standard deviations: the rule spans ±10, beyond which 10⁻²³ of the mass lies.
const SPACING: f64 = 0.0625;
/// ½ ln 2π.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// The search ends where a Newton step is this small relative to the fit's scale.
const STEP_TOLERANCE: f64 = 1e-12;

/// Legal weights and standard deviations; means lie within ± the upper end. Wider numbers would overflow on the way.
const SCALE: Range = Range::closed(1e-6, 1e6, "in [1e-6, 1e6]");
const MEAN: Range = Range::closed(-1e6, 1e6, "in [-1e6, 1e6]");

/// A mixture Σ wₖ N(mₖ, sₖ²); the weights are taken relative to their sum.
#[derive(Clone, Copy, Debug)]
pub struct GaussianMixture<'a> {
    weight: &'a [f64],
    mean: &'a [f64],
    std: &'a [f64],
    weight_sum: f64,
}

/// A fitted Gaussian and its divergence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianFit {
    /// μ.
    pub mean: f64,
    /// σ.
    pub std: f64,
    /// The divergence in the direction that was minimised (nats).
    pub kl: f64,
}

/// Value, gradient and Hessian of KL(N(μ, σ²)‖mixture) by (μ, ln σ).
struct Objective {
    value: f64,
    gradient: [f64; 2],
    /// By μμ, μλ, λλ.
    hessian: [f64; 3],
}

/// E[f(z)] of a standard normal z by the trapezoidal rule, whose error for smooth f falls exponentially with the spacing.
fn normal_mean(f: impl Fn(f64) -> f64) -> f64 {
    tree_sum_by(2 * HALF_NODES + 1, |node| {
        let z = (node as f64 - HALF_NODES as f64) * SPACING;
        SPACING * Real::exp(-0.5 * z * z - HALF_LN_TWO_PI) * f(z)
    })
}

impl<'a> GaussianMixture<'a> {
    /// Check a mixture of at least one component.
    pub fn new(weight: &'a [f64], mean: &'a [f64], std: &'a [f64]) -> Result<Self, Error> {
        let expected = weight.len();
        for (argument, values) in [("component_mean", mean), ("component_std", std)] {
            if values.len() != expected {
                return Err(Error::LengthMismatch { argument, expected, got: values.len() });
            }
        }
        for (argument, values) in [("component_weight", weight), ("component_mean", mean), ("component_std", std)] {
            if let Some(index) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::NonFinite { argument, index });
            }
        }
        for (argument, values, range) in
            [("component_weight", weight, SCALE), ("component_mean", mean, MEAN), ("component_std", std, SCALE)]
        {
            if let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !range.contains(**value)) {
                return Err(Error::ElementOutOfRange { argument, index, value: *value, legal: range.text });
            }
        }
        if weight.is_empty() {
            return Err(Error::EmptyMask { argument: "component_weight" });
        }
        Ok(GaussianMixture { weight, mean, std, weight_sum: tree_sum_map(weight, |weight| *weight) })
    }

    /// (weight, mean, standard deviation) of each component, the weights adding up to 1.
    fn components(&self) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let sum = self.weight_sum;
        self.weight.iter().zip(self.mean).zip(self.std).map(move |((weight, mean), std)| (weight / sum, *mean, *std))
    }

    /// Σₖ wₖ f(mₖ, sₖ).
    fn over_components(&self, f: impl Fn(f64, f64) -> f64) -> f64 {
        self.components().map(|(weight, mean, std)| weight * f(mean, std)).sum()
    }

    /// ln p and its first two derivatives by x.
    fn log_density(&self, x: f64) -> [f64; 3] {
        let exponent = |(weight, mean, std): (f64, f64, f64)| {
            let z = (x - mean) / std;
            Real::ln(weight / std) - 0.5 * z * z
        };
        let largest = self.components().map(exponent).fold(f64::NEG_INFINITY, f64::larger);
        // Sums of the share, share·slope and share·(slope² + curvature) of each component.
        let mut sums = [0.0; 3];
        for component in self.components() {
            let (_, mean, std) = component;
            let share = Real::exp(exponent(component) - largest);
            let slope = (mean - x) / std / std;
            let terms = [share, share * slope, share * (slope * slope - 1.0 / std / std)];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += term;
            }
        }
        let [density, slope, curvature] = sums;
        let slope = slope / density;
        [largest + Real::ln(density) - HALF_LN_TWO_PI, slope, curvature / density - slope * slope]
    }

    /// The Gaussian that minimises KL(mixture‖N): it has the mixture's mean and variance.
    pub fn forward_fit(&self) -> GaussianFit {
        let mean = self.over_components(|mean, _| mean);
        let variance = self.over_components(|component, std| std * std + (component - mean) * (component - mean));
        let std = variance.sqrt();
        // E_mixture[ln mixture] − E_mixture[ln N], the latter in closed form.
        let negative_entropy = self.over_components(|mean, std| {
            normal_mean(|z| {
                let [log_density, ..] = self.log_density(mean + std * z);
                log_density
            })
        });
        let kl = negative_entropy + HALF_LN_TWO_PI + Real::ln(std) + 0.5;
        GaussianFit { mean, std, kl: kl.larger(0.0) }
    }

    fn reverse_objective(&self, mean: f64, log_std: f64) -> Objective {
        let std = Real::exp(log_std);
        let expect = |f: &dyn Fn(f64, [f64; 3]) -> f64| normal_mean(|z| f(z, self.log_density(mean + std * z)));
        let slope = expect(&|_, [_, s, _]| s);
        let tilt = expect(&|z, [_, s, _]| s * std * z);
        Objective {
            value: -(HALF_LN_TWO_PI + 0.5 + log_std) - expect(&|_, [l, ..]| l),
            gradient: [-slope, -1.0 - tilt],
            hessian: [
                -expect(&|_, [_, _, c]| c),
                -expect(&|z, [_, _, c]| c * std * z),
                -expect(&|z, [_, _, c]| c * std * std * z * z) - tilt,
            ],
        }
    }

    /// A Gaussian at which KL(N‖mixture) has a local minimum, by Newton's method with step halving from a start.
    fn reverse_fit_from(&self, start: (f64, f64), iterations: usize) -> Result<GaussianFit, Error> {
        let (mut mean, mut log_std) = (start.0, Real::ln(start.1));
        let mut at = self.reverse_objective(mean, log_std);
        for _ in 0..iterations {
            let [step_mean, step_log_std] = descent_step(&at);
            let mut scale = 1.0;
            let mut moved = false;
            while scale > STEP_TOLERANCE {
                let (next_mean, next_log_std) = (mean + scale * step_mean, log_std + scale * step_log_std);
                let next = self.reverse_objective(next_mean, next_log_std);
                if next.value < at.value {
                    (mean, log_std, at) = (next_mean, next_log_std, next);
                    moved = true;
                    break;
                }
                scale *= 0.5;
            }
            let std = Real::exp(log_std);
            let size = (step_mean / std).abs() + step_log_std.abs();
            // Where no step lowers the value any more, the rest is rounding.
            if size < STEP_TOLERANCE || (!moved && size < STEP_TOLERANCE.sqrt()) {
                // One more plain Newton step: the gradient resolves what the value no longer does.
                let [last_mean, last_log_std] = descent_step(&at);
                return Ok(GaussianFit {
                    mean: mean + last_mean,
                    std: Real::exp(log_std + last_log_std),
                    kl: at.value.larger(0.0),
                });
            }
        }
        let [by_mean, by_log_std] = at.gradient;
        Err(Error::NoConvergence { argument: MAX_ITERATIONS.name, residual: by_mean.abs() + by_log_std.abs() })
    }

    /// The Gaussian that minimises KL(N‖mixture): the best of the local minima reached from every component and from the
    /// forward fit (of equal ones the first).
    pub fn reverse_fit(&self, iterations: usize) -> Result<GaussianFit, Error> {
        let forward = self.forward_fit();
        let mut best = self.reverse_fit_from((forward.mean, forward.std), iterations)?;
        for (_, mean, std) in self.components() {
            let fit = self.reverse_fit_from((mean, std), iterations)?;
            // Mirror images differ by rounding only: the order of the components decides between them.
            if fit.kl < best.kl - 1e-12 {
                best = fit;
            }
        }
        Ok(best)
    }
}

/// The Newton step where the Hessian is positive definite, the negative gradient (limited to one unit) elsewhere.
fn descent_step(at: &Objective) -> [f64; 2] {
    let [by_mean, by_log_std] = at.gradient;
    let [a, b, c] = at.hessian;
    let determinant = a * c - b * b;
    if a > 0.0 && determinant > 0.0 {
        [(b * by_log_std - c * by_mean) / determinant, (b * by_mean - a * by_log_std) / determinant]
    } else {
        let scale = 1.0 / (1.0 + by_mean.abs() + by_log_std.abs());
        [-by_mean * scale, -by_log_std * scale]
    }
}

const MAX_ITERATIONS: ParamSpec =
    ParamSpec::integer("max_iterations", "", 200, 1, 100_000, "limit of Newton steps from each start");

/// The most components that the catalog's form accepts (it converts them to double precision without allocating).
const MAX_COMPONENTS: usize = 16;

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let iterations = call.integer(MAX_ITERATIONS.name)?;
    let count = call.dim("K");
    if count > MAX_COMPONENTS {
        return Err(Error::OutOfRange {
            argument: "component_weight",
            value: count as f64,
            legal: "at most 16 components",
        });
    }
    let mut columns = [[0.0; MAX_COMPONENTS]; 3];
    for (column, name) in columns.iter_mut().zip(["component_weight", "component_mean", "component_std"]) {
        for (slot, value) in column.iter_mut().zip(call.finite(name)?) {
            *slot = (*value).to_f64();
        }
    }
    let [weight, mean, std] = columns.each_ref().map(|column| column.get(..count).unwrap_or(&[]));
    let mixture = GaussianMixture::new(weight, mean, std)?;
    let forward = mixture.forward_fit();
    let reverse = mixture.reverse_fit(iterations)?;
    for (name, value) in [
        ("forward_mean", forward.mean),
        ("forward_std", forward.std),
        ("forward_kl", forward.kl),
        ("reverse_mean", reverse.mean),
        ("reverse_std", reverse.std),
        ("reverse_kl", reverse.kl),
    ] {
        call.write(name, R::from_f64(value));
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "kl.gaussian_fit",
    family: Family::Kl,
    title: "forward and reverse fit of a Gaussian to a mixture",
    summary: "The Gaussian nearest to a mixture of Gaussians in each direction of the divergence: one covers the modes, one picks one.",
    formula: r"\arg\min_{\mu,\sigma} \mathrm{KL}(p\,\|\,\mathcal N(\mu,\sigma^2)) = (\mathbb E_p[x], \mathrm{Std}_p[x]),\qquad
\arg\min_{\mu,\sigma} \mathrm{KL}(\mathcal N(\mu,\sigma^2)\,\|\,p),\qquad p = \sum_k w_k\,\mathcal N(m_k, s_k^2)",
    gradient: "",
    notes: "Forward means the mixture comes first. Expectations are trapezoidal sums over ±10 standard deviations at a \
            sixteenth of one; the reverse fit is the best local minimum reached by Newton's method from every component and \
            from the forward fit. Computed in double precision for either number type. At most 16 components. No library \
            computes this.",
    sources: &[
        Source {
            title: "Pattern Recognition and Machine Learning",
            reference: "ISBN 978-0-387-31073-2",
            place: "section 10.1.2, Figure 10.3",
        },
        Source { place: "the two directions", ..SCHULMAN },
    ],
    inputs: &[
        InputSpec::new(
            "component_weight",
            Domain::Positive,
            &[&["K"]],
            "weight of each component, relative to their sum",
        ),
        InputSpec::new("component_mean", Domain::Real, &[&["K"]], "mean of each component"),
        InputSpec::new("component_std", Domain::Positive, &[&["K"]], "standard deviation of each component"),
    ],
    params: &[MAX_ITERATIONS],
    defaults: &[],
    outputs: &[
        OutputSpec::value("forward_mean", &[], "mean of the fit that minimises KL(mixture‖Gaussian)"),
        OutputSpec::value("forward_std", &[], "its standard deviation"),
        OutputSpec::value("forward_kl", &[], "its divergence (nats)"),
        OutputSpec::value("reverse_mean", &[], "mean of the fit that minimises KL(Gaussian‖mixture)"),
        OutputSpec::value("reverse_std", &[], "its standard deviation"),
        OutputSpec::value("reverse_kl", &[], "its divergence (nats)"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_component_is_found_exactly() {
        let mixture = GaussianMixture::new(&[2.0], &[-1.5], &[0.7]).unwrap();
        for fit in [mixture.forward_fit(), mixture.reverse_fit(200).unwrap()] {
            assert!((fit.mean + 1.5).abs() < 1e-12 && (fit.std - 0.7).abs() < 1e-12 && fit.kl < 1e-14, "{fit:?}");
        }
    }

    #[test]
    fn far_modes_are_covered_forward_and_picked_in_reverse() {
        let mixture = GaussianMixture::new(&[0.7, 0.3], &[-5.0, 5.0], &[1.0, 0.5]).unwrap();
        let forward = mixture.forward_fit();
        // Mean 0.7·(−5) + 0.3·5 = −2; variance 0.7·(1 + 9) + 0.3·(0.25 + 49) = 21.775.
        assert!((forward.mean + 2.0).abs() < 1e-15 && (forward.std - 21.775f64.sqrt()).abs() < 1e-15);
        let reverse = mixture.reverse_fit(200).unwrap();
        // On one mode the divergence is −ln of its weight.
        assert!((reverse.mean + 5.0).abs() < 1e-4 && (reverse.std - 1.0).abs() < 1e-4, "{reverse:?}");
        assert!((reverse.kl + Real::ln(0.7f64)).abs() < 1e-4);
    }

    #[test]
    fn illegal_mixtures_are_typed_errors() {
        let legal = SCALE.text;
        assert_eq!(
            GaussianMixture::new(&[1.0, 0.0], &[0.0, 0.0], &[1.0, 1.0]).unwrap_err(),
            Error::ElementOutOfRange { argument: "component_weight", index: 1, value: 0.0, legal }
        );
        assert_eq!(GaussianMixture::new(&[], &[], &[]).unwrap_err(), Error::EmptyMask { argument: "component_weight" });
        assert_eq!(
            GaussianMixture::new(&[1.0], &[f64::NAN], &[1.0]).unwrap_err(),
            Error::NonFinite { argument: "component_mean", index: 0 }
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn no_nearby_gaussian_is_closer(
            weight in 0.1f64..0.9, gap in 0.0f64..4.0, first in 0.4f64..1.5, second in 0.4f64..1.5
        ) {
            let (weights, means, stds) = ([weight, 1.0 - weight], [-gap / 2.0, gap / 2.0], [first, second]);
            let mixture = GaussianMixture::new(&weights, &means, &stds).unwrap();
            let fit = mixture.reverse_fit(200).unwrap();
            let value = |mean: f64, std: f64| mixture.reverse_objective(mean, Real::ln(std)).value;
            prop_assert!((value(fit.mean, fit.std) - fit.kl).abs() < 1e-13);
            for (dm, ds) in [(1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3), (1e-3, 1e-3), (-1e-3, 1e-3)] {
                prop_assert!(value(fit.mean + dm, fit.std + ds) >= fit.kl - 1e-13);
            }
            // The gradient and the Hessian are those of the value.
            let (m, l, h) = (0.3, -0.2, 1e-4);
            let at = mixture.reverse_objective(m, l);
            let (up, down) = (mixture.reverse_objective(m + h, l), mixture.reverse_objective(m - h, l));
            prop_assert!(((up.value - down.value) / (2.0 * h) - at.gradient[0]).abs() < 1e-6);
            prop_assert!(((up.gradient[0] - down.gradient[0]) / (2.0 * h) - at.hessian[0]).abs() < 1e-5);
            prop_assert!(((up.gradient[1] - down.gradient[1]) / (2.0 * h) - at.hessian[1]).abs() < 1e-5);
            let (up, down) = (mixture.reverse_objective(m, l + h), mixture.reverse_objective(m, l - h));
            prop_assert!(((up.value - down.value) / (2.0 * h) - at.gradient[1]).abs() < 1e-6);
            prop_assert!(((up.gradient[1] - down.gradient[1]) / (2.0 * h) - at.hessian[2]).abs() < 1e-5);
        }
    }
}

//! QR-DQN and IQN: quantiles of the return.

use crate::Error;
use crate::batch::row_of;
use crate::num::{ExactSum, Real, huber, tree_sum_by};
use crate::spec::{
    Call, Choice, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};
use crate::td::transition::{
    DISCOUNT, DONE, LOSS, REWARD, WEIGHT, at, ended, finite_row, one_step_target, transitions,
};

choice! {
    /// How the losses of a transition's quantiles are put together.
    pub enum QuantileReduction {
        /// Their sum.
        Sum = "sum",
        /// Their mean.
        Mean = "mean",
    }
}

/// The quantile Huber loss of one pair, ρ(u) = |τ − \[u < 0\]|·H_κ(u) with u = target − quantile, and its derivative by the
/// *quantile*; divided by κ where `divide` is set. κ = 0 is the plain quantile loss |τ − \[u < 0\]|·|u|, whose derivative at
/// u = 0 is 0.
///
/// ```
/// use plumbline_core::td::quantile::quantile_huber;
/// assert_eq!(quantile_huber(2.0, 0.75, 0.5, true), [1.3125, -0.75]);
/// assert_eq!(quantile_huber(2.0, 0.75, 0.5, false), [0.65625, -0.375]);
/// assert_eq!(quantile_huber(-2.0, 0.75, 0.0, true), [0.5, 0.25]);
/// ```
#[inline(always)]
pub fn quantile_huber<R: Real>(error: R, fraction: R, threshold: R, divide: bool) -> [R; 2] {
    let tilt = (if error < R::zero() { fraction - R::one() } else { fraction }).abs();
    let [size, slope] = if threshold == R::zero() {
        let sign = if error == R::zero() { R::zero() } else { error.signum() };
        [error.abs(), sign]
    } else {
        let scale = if divide { threshold } else { R::one() };
        huber(error, threshold).map(|part| part / scale)
    };
    [tilt * size, -(tilt * slope)]
}

/// The middle of the i-th of K equal shares, τ̂_i = (2i + 1)/(2K) for i = 0 … K − 1.
pub fn midpoint<R: Real>(index: usize, quantiles: usize) -> R {
    R::from_count(2 * index + 1) / R::from_count(2 * quantiles)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>, fractions: Option<&[R]>) -> Result<(), Error> {
    let count = transitions(call, "reward")?;
    let (quantiles, targets) = (call.dim("K"), call.dim("M"));
    if targets == 0 {
        return Err(Error::ShapeMismatch { argument: "next_quantile" });
    }
    let (discount, threshold): (R, R) = (call.number("discount")?, call.number("huber_threshold")?);
    let divide = call.flag("divide_by_threshold");
    let reduction: QuantileReduction = call.choice("quantile_reduction")?;
    let (online, next) = (call.finite("quantile")?, call.real("next_quantile")?);
    let (rewards, done) = (call.finite("reward")?, call.optional_bytes("done"));
    let weights = call.optional_finite("importance_weight")?;
    let share = match reduction {
        QuantileReduction::Sum => R::from_count(targets),
        QuantileReduction::Mean => R::from_count(targets) * R::from_count(quantiles),
    };
    let mut outputs = ["transition_loss", "d_quantile"].map(|name| call.output(name));
    let [losses, gradient] = &mut outputs;
    let mut total = ExactSum::new();
    for n in 0..count {
        let next_row = if ended(done, n) { None } else { Some(finite_row("next_quantile", next, targets, n)?) };
        let row = row_of(online, quantiles, n);
        let pair = |i: usize, j: usize| {
            let target = one_step_target(at(rewards, n), discount, next_row.map(|row| at(row, j)));
            let fraction = fractions.map_or(midpoint(i, quantiles), |all| at(all, n * quantiles + i));
            quantile_huber(target - at(row, i), fraction, threshold, divide)
        };
        let weight = weights.map_or(R::one(), |weights| at(weights, n));
        let weighted = |part: R| if weight == R::zero() { R::zero() } else { weight * part };
        let loss = tree_sum_by(quantiles, |i| tree_sum_by(targets, |j| pair(i, j)[0])) / share;
        total.add(weighted(loss));
        crate::batch::set(losses, n, loss);
        for i in 0..quantiles {
            let slope = tree_sum_by(targets, |j| pair(i, j)[1]) / share;
            crate::batch::set(gradient, n * quantiles + i, weighted(slope) / R::from_count(count));
        }
    }
    call.write("loss", total.value::<R>() / R::from_count(count));
    Ok(())
}

fn evaluate_qr_dqn<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate(call, None)
}

fn evaluate_iqn<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let fractions = call.finite("fraction")?;
    if let Some(index) = fractions.iter().position(|tau| *tau < R::zero() || *tau > R::one()) {
        let value = at(fractions, index).to_f64();
        return Err(Error::ElementOutOfRange { argument: "fraction", index, value, legal: "in [0, 1]" });
    }
    evaluate(call, Some(fractions))
}

const QUANTILE: InputSpec = InputSpec::new(
    "quantile",
    Domain::Value,
    &[&["N", "K"]],
    "quantiles of the return of the action taken, the estimate that learns",
);
const NEXT: InputSpec = InputSpec::new(
    "next_quantile",
    Domain::Value,
    &[&["N", "M"]],
    "quantiles at the next state and its greedy action (target network), constants",
);
const THRESHOLD: ParamSpec = ParamSpec::number(
    "huber_threshold",
    r"\kappa",
    1.0,
    Range::NON_NEGATIVE,
    "error at which the loss turns linear (units of the return); 0 = plain quantile loss",
);
const DIVIDE: ParamSpec = ParamSpec::flag(
    "divide_by_threshold",
    false,
    "divide Huber's function by its threshold, so that slopes beyond it are ±τ",
);
const REDUCTION: ParamSpec = ParamSpec::choice(
    "quantile_reduction",
    "sum",
    QuantileReduction::NAMES,
    "over the online quantiles: sum or mean (over the target quantiles it is always the mean)",
);
const OUTPUTS: &[OutputSpec] = &[
    LOSS,
    OutputSpec::value("transition_loss", &["N"], "loss of each transition, without weight"),
    OutputSpec::gradient("d_quantile", "quantile", &["N", "K"], "derivative of the loss by each quantile"),
];
const GRADIENT: &str = r"\partial L/\partial\theta_i = -\frac{w}{N M}\sum_j |\tau_i - [u_{ij} < 0]|\,H_\kappa'(u_{ij})";

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.qr_dqn",
        family: Family::TemporalDifference,
        title: "Quantile-regression DQN",
        summary: "Quantile Huber loss of fixed quantiles of the return against the backed-up quantiles.",
        formula: r"L = \frac1N\sum w\sum_i \frac1M\sum_j |\hat\tau_i - [u_{ij} < 0]|\,H_\kappa(u_{ij}),\quad
            u_{ij} = r + \gamma(1-d)\theta_j(s', a^*) - \theta_i(s, a),\quad \hat\tau_i = \frac{2i - 1}{2K}",
        gradient: GRADIENT,
        notes: "The sum is over the online quantiles, the mean over the target ones; implementations that take the mean over \
                both are K times smaller. The QR-DQN paper does not divide by κ, the IQN paper does; for κ = 1 they agree. At \
                u = 0 the derivative is 0. No dialects.",
        sources: &[Source {
            title: "Distributional Reinforcement Learning with Quantile Regression",
            reference: "arXiv:1710.10044",
            place: "Eq. 9–10 and Algorithm 1",
        }],
        inputs: &[QUANTILE, NEXT, REWARD, DONE, WEIGHT],
        params: &[DISCOUNT, THRESHOLD, DIVIDE, REDUCTION],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_qr_dqn),
    },
    Operation {
        id: "td.iqn",
        family: Family::TemporalDifference,
        title: "Implicit quantile network",
        summary: "Quantile Huber loss of quantiles at sampled fractions against backed-up quantile samples.",
        formula: r"L = \frac1N\sum w\sum_i \frac1M\sum_j |\tau_i - [u_{ij} < 0]|\,\frac{H_\kappa(u_{ij})}{\kappa},\quad
            u_{ij} = r + \gamma(1-d)\theta_{\tau'_j}(s', a^*) - \theta_{\tau_i}(s, a)",
        gradient: r"\partial L/\partial\theta_i = -\frac{w}{N M\kappa}\sum_j |\tau_i - [u_{ij} < 0]|\,H_\kappa'(u_{ij})",
        notes: "The fractions τ_i belong to the online quantiles; the sampled fractions of the target do not enter. The division \
                by κ is part of the definition. At u = 0 the derivative is 0. No dialects.",
        sources: &[Source {
            title: "Implicit Quantile Networks for Distributional Reinforcement Learning",
            reference: "arXiv:1806.06923",
            place: "Eq. 3",
        }],
        inputs: &[
            QUANTILE,
            InputSpec::new(
                "fraction",
                Domain::Probability,
                &[&["N", "K"]],
                "the sampled fraction τ of each online quantile",
            ),
            NEXT,
            REWARD,
            DONE,
            WEIGHT,
        ],
        params: &[DISCOUNT, THRESHOLD, DIVIDE, REDUCTION],
        defaults: &[("divide_by_threshold", Value::Flag(true))],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_iqn),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // τ 0.9, u 2, κ 1: 0.9·1.5; the indicator belongs to u < 0.
        assert!((quantile_huber(2.0, 0.9f64, 1.0, false)[0] - 1.35).abs() < 1e-15);
        assert!((quantile_huber(-2.0, 0.9f64, 1.0, false)[0] - 0.15).abs() < 1e-15);
        // Quantiles 0 and 2 at τ ¼, ¾, target 1 (the episode ended): ¼·½ + ¼·½.
        let case = Case::new(SPECS, "td.qr_dqn")
            .real("quantile", &[1, 2], &[0.0, 2.0])
            .real("next_quantile", &[1, 3], &[f64::NAN; 3])
            .real("reward", &[1], &[1.0])
            .mask("done", &[1], &[1]);
        assert_eq!(case.get("loss").unwrap(), [0.25]);
        assert_eq!(case.get("d_quantile").unwrap(), [-0.25, 0.25]);
        assert_eq!(case.choice("quantile_reduction", "mean").get("loss").unwrap(), [0.125]);
        assert_eq!(quantile_huber(0.0, 0.9, 0.0, false)[1], 0.0);
    }

    proptest! {
        #[test]
        fn gradient_is_that_of_the_loss(
            quantile in proptest::array::uniform6(-3.0..3.0f64),
            next in proptest::array::uniform4(-3.0..3.0f64),
            fraction in proptest::array::uniform6(0.05..0.95f64),
        ) {
            Case::new(SPECS, "td.iqn")
                .real("quantile", &[2, 3], &quantile)
                .real("next_quantile", &[2, 2], &next)
                .real("fraction", &[2, 3], &fraction)
                .real("reward", &[2], &[0.5, -0.25])
                .number("huber_threshold", 0.7)
                .check_gradient("quantile");
        }
    }
}

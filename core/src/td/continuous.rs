//! Critics of SAC and TD3: the smaller of two target critics.

use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};
use crate::td::transition::{
    DISCOUNT, DONE, ERROR_LOSS, ErrorLoss, HUBER_THRESHOLD, LOSS, REWARD, TARGET, WEIGHT, at, ended, error_penalty,
    finite, one_step_target, transitions,
};

/// What SAC bootstraps from: the smaller target critic minus the temperature times the log-probability of the next action,
/// min(Q₁, Q₂) − α log π. TD3's is the same with α = 0.
///
/// ```
/// assert_eq!(plumbline_core::td::continuous::soft_bootstrap([3.0, 2.0], -4.0, 0.5), 4.0);
/// ```
#[inline(always)]
pub fn soft_bootstrap<R: Real>([first, second]: [R; 2], next_log_prob: R, temperature: R) -> R {
    first.smaller(second) - temperature * next_log_prob
}

fn learn_both<R: Real>(
    call: &mut Call<'_, R>,
    bootstrap: impl Fn(usize, [R; 2]) -> Result<R, Error>,
) -> Result<(), Error> {
    let count = transitions(call, "reward")?;
    let discount: R = call.number("discount")?;
    let loss: ErrorLoss = call.choice("error_loss")?;
    let threshold: R = call.number("huber_threshold")?;
    let online = [call.finite("q1")?, call.finite("q2")?];
    let (rewards, done) = (call.finite("reward")?, call.optional_bytes("done"));
    let next = [("next_q1", call.real("next_q1")?), ("next_q2", call.real("next_q2")?)];
    let weights = call.optional_finite("importance_weight")?;
    let mut targets = call.output("target");
    let mut errors = ["td_error1", "td_error2"].map(|name| call.output(name));
    let mut gradients = ["d_q1", "d_q2"].map(|name| call.output(name));
    let mut total = ExactSum::new();
    for n in 0..count {
        let value = if ended(done, n) {
            None
        } else {
            let [(first, q1), (second, q2)] = next;
            Some(bootstrap(n, [finite(first, q1, n)?, finite(second, q2, n)?])?)
        };
        let target = one_step_target(at(rewards, n), discount, value);
        crate::batch::set(&mut targets, n, target);
        let weight = weights.map_or(R::one(), |weights| at(weights, n));
        let weighted = |part: R| if weight == R::zero() { R::zero() } else { weight * part };
        for ((values, error), gradient) in online.iter().zip(&mut errors).zip(&mut gradients) {
            let td_error = target - at(values, n);
            let [penalty, slope] = error_penalty(td_error, loss, threshold);
            total.add(weighted(penalty));
            crate::batch::set(error, n, td_error);
            crate::batch::set(gradient, n, weighted(slope) / R::from_count(count));
        }
    }
    call.write("loss", total.value::<R>() / R::from_count(count));
    Ok(())
}

fn evaluate_td3<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    learn_both(call, |_, next| Ok(soft_bootstrap(next, R::zero(), R::zero())))
}

fn evaluate_sac<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let temperature: R = call.number("temperature")?;
    let log_prob = call.real("next_log_prob")?;
    learn_both(call, |n, next| Ok(soft_bootstrap(next, finite("next_log_prob", log_prob, n)?, temperature)))
}

const Q1: InputSpec = InputSpec::new("q1", Domain::Value, &[&["N"]], "the first critic's value of the action taken");
const Q2: InputSpec = InputSpec::new("q2", Domain::Value, &[&["N"]], "the second critic's value of the action taken");
const NEXT_Q1: InputSpec =
    InputSpec::new("next_q1", Domain::Value, &[&["N"]], "the first target critic's value of the next action");
const NEXT_Q2: InputSpec =
    InputSpec::new("next_q2", Domain::Value, &[&["N"]], "the second target critic's value of the next action");
const OUTPUTS: &[OutputSpec] = &[
    LOSS,
    TARGET,
    OutputSpec::value("td_error1", &["N"], "target minus the first critic's value"),
    OutputSpec::value("td_error2", &["N"], "target minus the second critic's value"),
    OutputSpec::gradient("d_q1", "q1", &["N"], "derivative of the loss by the first critic's values"),
    OutputSpec::gradient("d_q2", "q2", &["N"], "derivative of the loss by the second critic's values"),
];
const GRADIENT: &str = r"\partial L/\partial Q_k = -\frac{w}{N}\,\ell'(y - Q_k)";

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "td.sac",
        family: Family::TemporalDifference,
        title: "Soft actor-critic: the critics",
        summary: "Both critics are moved towards the reward plus the smaller target critic's soft value, discounted.",
        formula: r"y = r + \gamma(1 - d)\big(\min_k \bar Q_k(s', a') - \alpha\log\pi(a'|s')\big),\quad
            L = \frac1N\sum w\sum_{k=1}^2 \ell(y - Q_k(s, a))",
        gradient: GRADIENT,
        notes: "The entropy term stands inside the discount and ends with the episode. a′ is drawn from the current policy. The \
                loss is the sum over both critics. No dialects.",
        sources: &[Source {
            title: "Soft Actor-Critic Algorithms and Applications",
            reference: "arXiv:1812.05905",
            place: "Eq. 5–6 and Section 5 (two critics)",
        }],
        inputs: &[
            Q1,
            Q2,
            REWARD,
            NEXT_Q1,
            NEXT_Q2,
            InputSpec::new(
                "next_log_prob",
                Domain::Real,
                &[&["N"]],
                "log-density of the next action under the current policy (nats)",
            ),
            DONE,
            WEIGHT,
        ],
        params: &[
            DISCOUNT,
            ParamSpec::number(
                "temperature",
                r"\alpha",
                0.2,
                Range::NON_NEGATIVE,
                "weight of the entropy (units of the return per nat)",
            ),
            ERROR_LOSS,
            HUBER_THRESHOLD,
        ],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_sac),
    },
    Operation {
        id: "td.td3",
        family: Family::TemporalDifference,
        title: "Twin delayed DDPG: the critics",
        summary: "Both critics are moved towards the reward plus the smaller target critic's value, discounted.",
        formula: r"y = r + \gamma(1 - d)\min_k \bar Q_k(s', \tilde a),\quad L = \frac1N\sum w\sum_{k=1}^2 \ell(y - Q_k(s, a))",
        gradient: GRADIENT,
        notes: "ã is the target policy's action with clipped noise, made by the caller. The paper's penalty is the square without \
                ½. The loss is the sum over both critics. No dialects.",
        sources: &[Source {
            title: "Addressing Function Approximation Error in Actor-Critic Methods",
            reference: "arXiv:1802.09477",
            place: "Eq. 10 and Algorithm 1",
        }],
        inputs: &[Q1, Q2, REWARD, NEXT_Q1, NEXT_Q2, DONE, WEIGHT],
        params: &[DISCOUNT, ERROR_LOSS, HUBER_THRESHOLD],
        defaults: &[("error_loss", Value::Name("squared"))],
        outputs: OUTPUTS,
        dialects: &[],
        evaluate: evaluate_with!(evaluate_td3),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    fn case(id: &str) -> Case {
        Case::new(SPECS, id)
            .real("q1", &[2], &[4.0, 1.0])
            .real("q2", &[2], &[1.0, 1.0])
            .real("reward", &[2], &[1.0, 3.0])
            .real("next_q1", &[2], &[3.0, f64::NAN])
            .real("next_q2", &[2], &[2.0, 0.0])
            .mask("done", &[2], &[0, 1])
            .number("discount", 0.5)
    }

    #[test]
    fn the_smaller_critic_and_the_entropy_inside_the_discount() {
        let td3 = case("td.td3");
        assert_eq!(td3.get("target").unwrap(), [2.0, 3.0]);
        // Errors −2, 1, 2, 2, squared without ½: 13/2.
        assert_eq!(td3.get("loss").unwrap(), [6.5]);
        assert_eq!(td3.get("d_q1").unwrap(), [2.0, -2.0]);
        td3.check_gradient("q1");
        td3.check_gradient("q2");
        let sac = case("td.sac").real("next_log_prob", &[2], &[-4.0, f64::NAN]).number("temperature", 0.25);
        assert_eq!(sac.get("target").unwrap(), [2.5, 3.0]);
        sac.check_gradient("q2");
    }
}

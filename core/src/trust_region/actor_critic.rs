//! Actor-critic losses: Q actor-critic, advantage actor-critic (A2C), and A2C off policy.

use super::steps::{D_LOG_PROB, DISCOUNT, DONE, LOG_PROB, LOSS, REWARD, STEP_MASK, Steps, at, cleared};
use crate::Error;
use crate::batch::set;
use crate::num::{Real, half_square};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with};

/// One step's losses and derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<R> {
    /// −ρ A log π.
    pub actor: R,
    /// ½ρδ².
    pub critic: R,
    /// Of the actor's loss by log π: −ρ A.
    pub d_log_prob: R,
    /// Of the critic's loss by its estimate: −ρ δ.
    pub d_estimate: R,
}

/// δ = r + γ v' − v; without `next` the episode has ended.
///
/// ```
/// use plumbline_core::trust_region::actor_critic::td_error;
/// assert_eq!(td_error(1.0, 0.5, 3.0, Some(4.0)), 0.0);
/// assert_eq!(td_error(1.0, 0.5, 3.0, None), -2.0);
/// ```
#[inline(always)]
pub fn td_error<R: Real>(reward: R, discount: R, estimate: R, next: Option<R>) -> R {
    let target = next.map_or(reward, |next| reward + discount * next).limited();
    (target - estimate).limited()
}

/// The losses of one step; advantage, temporal-difference error and weight are constants of the actor's loss, the target
/// and the weight constants of the critic's (Sutton & Barto 2018, §13.5; Mnih et al. 2016; Degris et al. 2012).
///
/// ```
/// use plumbline_core::trust_region::actor_critic::step;
/// let step = step(-0.5, 2.0, 2.0, 0.5);
/// assert_eq!([step.actor, step.critic, step.d_log_prob, step.d_estimate], [0.5, 1.0, -1.0, -1.0]);
/// ```
#[inline(always)]
pub fn step<R: Real>(log_prob: R, advantage: R, td_error: R, weight: R) -> Step<R> {
    let weighted = |x: R| if weight == R::zero() { R::zero() } else { (weight * x).limited() };
    let d_log_prob = R::zero() - weighted(advantage);
    let actor = (d_log_prob * log_prob).limited();
    let [penalty, slope] = half_square(td_error);
    Step { actor, critic: weighted(penalty.limited()), d_log_prob, d_estimate: R::zero() - weighted(slope) }
}

/// Which method: its critic's inputs, and whether a behaviour policy is corrected for.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Q,
    Advantage,
    OffPolicy,
}

fn evaluate<R: Real>(call: &mut Call<'_, R>, method: Method) -> Result<(), Error> {
    let steps = Steps::from_call(call, LOG_PROB.name)?;
    let [estimate_name, next_name, gradient_name] = match method {
        Method::Q => ["q", "next_q", "d_q"],
        Method::Advantage | Method::OffPolicy => ["value", "next_value", "d_value"],
    };
    let (log_prob, reward) = (steps.column(call, LOG_PROB.name)?, steps.column(call, REWARD.name)?);
    let (estimate, next) = (steps.column(call, estimate_name)?, call.real(next_name)?);
    let behaviour = if method == Method::OffPolicy { Some(steps.column(call, OLD_LOG_PROB.name)?) } else { None };
    let largest_ratio = if method == Method::OffPolicy { call.optional_number(MAX_RATIO.name) } else { None };
    let (discount, coefficient): (R, R) = (call.number(DISCOUNT.name)?, call.number(CRITIC_COEFFICIENT.name)?);
    let done = call.optional_bytes(DONE.name);
    let ended = |n: usize| done.is_some_and(|done| done.get(n).is_some_and(|byte| *byte != 0));
    if let Some(index) = steps.kept().find(|n| !ended(*n) && !at(next, *n).is_finite()) {
        return Err(Error::NonFinite { argument: next_name, index });
    }
    let error = |n: usize| {
        let bootstrap = if ended(n) { None } else { Some(at(next, n)) };
        td_error(at(reward, n), discount, at(estimate, n), bootstrap)
    };
    let ratio = |n: usize| {
        let ratio = behaviour.map_or(R::one(), |old| (at(log_prob, n) - at(old, n)).exp());
        largest_ratio.map_or(ratio, |largest| ratio.smaller(largest)).limited()
    };
    let one = |n: usize| {
        let error = error(n);
        let advantage = if method == Method::Q { at(estimate, n) } else { error };
        step(at(log_prob, n), advantage, error, ratio(n))
    };
    let count = steps.count();
    let actor = steps.sum(|n| one(n).actor) / count;
    let critic = steps.sum(|n| one(n).critic) / count;
    call.write(LOSS.name, (actor + coefficient * critic).limited());
    call.write(ACTOR_LOSS.name, actor);
    call.write(CRITIC_LOSS.name, critic);
    let mut outputs = [D_LOG_PROB.name, gradient_name, TD_ERROR.name, RATIO.name].map(|name| cleared(call, name));
    let [by_log_prob, by_estimate, errors, ratios] = &mut outputs;
    for n in steps.kept() {
        let step = one(n);
        set(by_log_prob, n, step.d_log_prob / count);
        set(by_estimate, n, (coefficient * step.d_estimate).limited() / count);
        set(errors, n, error(n));
        set(ratios, n, ratio(n));
    }
    Ok(())
}

fn evaluate_q<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate(call, Method::Q)
}

fn evaluate_a2c<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate(call, Method::Advantage)
}

fn evaluate_off_policy<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate(call, Method::OffPolicy)
}

const VALUE: InputSpec =
    InputSpec::new("value", Domain::Value, &[&["N"]], "value of each state, the critic's estimate");
const NEXT_VALUE: InputSpec = InputSpec::new(
    "next_value",
    Domain::Value,
    &[&["N"]],
    "value of the next state, a constant; not read where the episode ended",
);
const OLD_LOG_PROB: InputSpec = InputSpec::new(
    "old_log_prob",
    Domain::LogProb,
    &[&["N"]],
    "log-probability of the action under the behaviour policy, a constant",
);
const CRITIC_COEFFICIENT: ParamSpec =
    ParamSpec::number("critic_coefficient", "c", 1.0, Range::NON_NEGATIVE, "weight of the critic's loss in the sum");
const MAX_RATIO: ParamSpec = ParamSpec::optional(
    "max_ratio",
    r"\bar\rho",
    None,
    Range::POSITIVE,
    "largest importance ratio, larger ones are cut to it; without it none is",
);
const ACTOR_LOSS: OutputSpec = OutputSpec::value("actor_loss", &[], "the actor's part of the loss");
const CRITIC_LOSS: OutputSpec =
    OutputSpec::value("critic_loss", &[], "the critic's part of the loss, without its coefficient");
const TD_ERROR: OutputSpec = OutputSpec::value("td_error", &["N"], "target minus estimate");
const RATIO: OutputSpec = OutputSpec::value("ratio", &["N"], "importance ratio of each step");
const D_VALUE: OutputSpec =
    OutputSpec::gradient("d_value", "value", &["N"], "derivative of the critic's part by each value").stopped();
const BOOK: Source = Source {
    title: "Reinforcement Learning: An Introduction, 2nd edition",
    reference: "Sutton and Barto 2018, ISBN 978-0-262-03924-6",
    place: "Section 13.5, Eq. 13.12-13.14",
};

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "trust_region.q_actor_critic",
        family: Family::TrustRegion,
        title: "Q actor-critic",
        summary: "The actor follows the critic's action value, the critic follows Sarsa's target.",
        formula: r"L = \frac1N\sum_n\Big(-\mathrm{sg}(q_n)\log\pi_n + \frac{c}{2}\delta_n^2\Big),\quad
\delta_n = r_n + \gamma(1 - d_n)\,\mathrm{sg}(q'_n) - q_n",
        gradient: r"\partial L/\partial\log\pi_n = -\frac{q_n}{N},\quad \partial L/\partial q_n = -\frac{c}{N}\delta_n",
        notes: "The action value is a constant of the actor's loss, so the gradient by it is the critic's alone. Without a baseline its \
                variance is that of plain returns. No dialects.",
        sources: &[
            Source {
                title: "Policy Gradient Methods for Reinforcement Learning with Function Approximation",
                reference: "Sutton et al. 2000, Advances in Neural Information Processing Systems 12",
                place: "Theorem 1-2",
            },
            BOOK,
        ],
        inputs: &[
            LOG_PROB,
            InputSpec::new("q", Domain::Value, &[&["N"]], "value of the action taken, the critic's estimate"),
            REWARD,
            InputSpec::new(
                "next_q",
                Domain::Value,
                &[&["N"]],
                "value of the action taken next, a constant; not read where the episode ended",
            ),
            DONE,
            STEP_MASK,
        ],
        params: &[DISCOUNT, CRITIC_COEFFICIENT],
        defaults: &[],
        outputs: &[
            LOSS,
            D_LOG_PROB,
            OutputSpec::gradient("d_q", "q", &["N"], "derivative of the critic's part by each action value").stopped(),
            ACTOR_LOSS,
            CRITIC_LOSS,
            TD_ERROR,
        ],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_q),
    },
    Operation {
        id: "trust_region.a2c",
        family: Family::TrustRegion,
        title: "Advantage actor-critic (A2C)",
        summary: "The actor follows the temporal-difference error as its advantage, the critic makes it small.",
        formula: r"L = \frac1N\sum_n\Big(-\mathrm{sg}(\delta_n)\log\pi_n + \frac{c}{2}\delta_n^2\Big),\quad
\delta_n = r_n + \gamma(1 - d_n)\,\mathrm{sg}(v'_n) - v_n",
        gradient: r"\partial L/\partial\log\pi_n = -\frac{\delta_n}{N},\quad \partial L/\partial v_n = -\frac{c}{N}\delta_n",
        notes: "The error is a constant of the actor's loss, the target one of the critic's. Programs that write δ² instead of ½δ² have \
                twice the coefficient. An entropy bonus is another term. No dialects.",
        sources: &[
            BOOK,
            Source {
                title: "Asynchronous Methods for Deep Reinforcement Learning",
                reference: "arXiv:1602.01783",
                place: "Section 4, asynchronous advantage actor-critic (one step)",
            },
        ],
        inputs: &[LOG_PROB, VALUE, REWARD, NEXT_VALUE, DONE, STEP_MASK],
        params: &[DISCOUNT, CRITIC_COEFFICIENT],
        defaults: &[],
        outputs: &[LOSS, D_LOG_PROB, D_VALUE, ACTOR_LOSS, CRITIC_LOSS, TD_ERROR],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_a2c),
    },
    Operation {
        id: "trust_region.off_policy_a2c",
        family: Family::TrustRegion,
        title: "Off-policy advantage actor-critic",
        summary: "A2C on another policy's steps: both losses are weighted by the importance ratio.",
        formula: r"L = \frac1N\sum_n \mathrm{sg}(\rho_n)\Big(-\mathrm{sg}(\delta_n)\log\pi_n + \frac{c}{2}\delta_n^2\Big),\quad
\rho_n = \min\Big(\frac{\pi(a_n|s_n)}{\pi_b(a_n|s_n)}, \bar\rho\Big)",
        gradient: r"\partial L/\partial\log\pi_n = -\frac{\rho_n\delta_n}{N},\quad \partial L/\partial v_n = -\frac{c}{N}\rho_n\delta_n",
        notes: "The ratio is a constant weight of both losses: no gradient flows through it, which for the uncut ratio is the gradient of \
                −ρδ. A cut ratio keeps its gradient −ρ̄δ. No dialects.",
        sources: &[
            Source {
                title: "Off-Policy Actor-Critic",
                reference: "arXiv:1205.4839",
                place: "Eq. 5 and Algorithm 1 (λ = 0)",
            },
            Source {
                title: "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures",
                reference: "arXiv:1802.01561",
                place: "Section 4.2 (the cut ratio)",
            },
        ],
        inputs: &[LOG_PROB, OLD_LOG_PROB, VALUE, REWARD, NEXT_VALUE, DONE, STEP_MASK],
        params: &[DISCOUNT, CRITIC_COEFFICIENT, MAX_RATIO],
        defaults: &[],
        outputs: &[LOSS, D_LOG_PROB.stopped(), D_VALUE, ACTOR_LOSS, CRITIC_LOSS, TD_ERROR, RATIO],
        dialects: &[],
        evaluate: evaluate_with!(evaluate_off_policy),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;

    fn case(id: &str) -> Case {
        Case::new(SPECS, id)
            .real("log_prob", &[3], &[-0.5, f64::NAN, -2.0])
            .real("reward", &[3], &[1.0, f64::NAN, 3.0])
            .mask("done", &[3], &[0, 0, 1])
            .mask("mask", &[3], &[1, 0, 1])
            .number("discount", 0.5)
            .number("critic_coefficient", 2.0)
    }

    #[test]
    fn q_actor_critic_and_a2c_by_hand() {
        let q = case("trust_region.q_actor_critic").real("q", &[3], &[2.0, f64::NAN, 5.0]).real(
            "next_q",
            &[3],
            &[4.0, f64::NAN, f64::INFINITY],
        );
        // Errors 1, −2; actor ½(2·½ + 5·2), critic ½(½ + 2).
        assert_eq!(q.get("td_error").unwrap(), [1.0, 0.0, -2.0]);
        assert_eq!(q.get("actor_loss").unwrap(), [5.5]);
        assert_eq!(q.get("critic_loss").unwrap(), [1.25]);
        assert_eq!(q.get("loss").unwrap(), [8.0]);
        assert_eq!(q.get("d_log_prob").unwrap(), [-1.0, 0.0, -2.5]);
        assert_eq!(q.get("d_q").unwrap(), [-1.0, 0.0, 2.0]);
        let a2c = case("trust_region.a2c").real("value", &[3], &[2.0, f64::NAN, 5.0]).real(
            "next_value",
            &[3],
            &[4.0, f64::NAN, f64::NAN],
        );
        // Actor ½(1·½ − 2·2).
        assert_eq!(a2c.get("actor_loss").unwrap(), [-1.75]);
        assert_eq!(a2c.get("d_log_prob").unwrap(), [-0.5, 0.0, 1.0]);
        assert_eq!(a2c.get("d_value").unwrap(), [-1.0, 0.0, 2.0]);
        let missing = a2c.mask("done", &[3], &[0, 0, 0]).get("loss");
        assert_eq!(missing, Err(Error::NonFinite { argument: "next_value", index: 2 }));
    }

    #[test]
    fn the_ratio_weighs_both_losses_and_is_cut() {
        let half = -Real::ln(2.0f64);
        let case = case("trust_region.off_policy_a2c")
            .real("value", &[3], &[2.0, 0.0, 5.0])
            .real("next_value", &[3], &[4.0, 0.0, 0.0])
            .real("old_log_prob", &[3], &[-0.5, f64::NAN, -2.0 + half])
            .number("max_ratio", 1.5);
        assert_eq!(case.get("ratio").unwrap(), [1.0, 0.0, 1.5]);
        assert_eq!(case.get("d_log_prob").unwrap(), [-0.5, 0.0, 1.5]);
        assert_eq!(case.get("d_value").unwrap(), [-1.0, 0.0, 3.0]);
        // ½(½ + 1.5·2)
        assert_eq!(case.get("critic_loss").unwrap(), [1.75]);
        let vanished = step(-1000.0, 3.0, f64::MAX, 0.0);
        assert_eq!([vanished.actor, vanished.critic, vanished.d_log_prob, vanished.d_estimate], [0.0; 4]);
    }
}

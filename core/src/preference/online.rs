//! Losses on responses that the policy itself has just sampled: Nash-MD and XPO.

use super::arithmetic::times;
use super::dpo_ipo::ipo;
use super::dpo_sigmoid::logistic;
use super::pairs::{BETA, LOSS, PAIR_LOSS};
use crate::Error;
use crate::num::{ExactSum, Real, tree_sum_by};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice,
    evaluate_with,
};

choice! {
    /// The preference loss inside XPO.
    pub enum XpoLoss {
        /// Logistic.
        Sigmoid = "sigmoid",
        /// Squared distance from 1/(2β).
        Ipo = "ipo",
    }
}

/// One token of the Nash-MD loss, β·sg(ℓ − ℓ_ref)·ℓ − (p − ½)·ℓ, and its gradient β(ℓ − ℓ_ref) − (p − ½).
///
/// ℓ, ℓ_ref: log-prob of the policy's own sampled token under policy and reference; p: probability that this response is preferred to
/// one of the geometric mixture of policy and reference. Munos et al., "Nash Learning from Human Feedback", arXiv:2312.00886,
/// Section 7 (the policy gradient of the regularised preference); ½ is a control variate. The log-ratio is stopped.
///
/// ```
/// use plumbline_core::preference::online::nash_md;
/// assert_eq!(nash_md(-1.0, -2.0, 0.75, 0.5), [-0.25, 0.25]);
/// ```
#[inline(always)]
pub fn nash_md<R: Real>(log_prob: R, ref_log_prob: R, win_probability: R, beta: R) -> [R; 2] {
    let slope = beta * (log_prob - ref_log_prob) - (win_probability - R::half());
    [times(slope, log_prob), slope]
}

fn evaluate_nash_md<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask = call.mask()?;
    let (log_prob, reference) = (call.real("log_prob")?, call.real("ref_log_prob")?);
    let probability = call.finite("win_probability")?;
    let beta: R = call.number("beta")?;
    let shape = mask.shape();
    if shape.rows == 0 {
        return Err(Error::EmptyMask { argument: "log_prob" });
    }
    let count = call.optional_number("response_count").unwrap_or(R::from_count(shape.rows));
    let (mut own, mut gradient) = (call.output("response_loss"), call.output("d_log_prob"));
    let (mut loss, mut kl) = (ExactSum::new(), ExactSum::new());
    for row in 0..shape.rows {
        let start = row * shape.columns;
        let win = probability.get(row).copied().unwrap_or(R::half());
        if !(R::zero()..=R::one()).contains(&win) {
            let value = win.to_f64();
            return Err(Error::ElementOutOfRange {
                argument: "win_probability",
                index: row,
                value,
                legal: "in [0, 1]",
            });
        }
        for slot in start..start + shape.columns {
            let result = if mask.keeps(slot) {
                for (argument, values) in [("log_prob", log_prob), ("ref_log_prob", reference)] {
                    if values.get(slot).is_none_or(|value| !value.is_finite()) {
                        return Err(Error::NonFinite { argument, index: slot });
                    }
                }
                let at = |values: &[R]| values.get(slot).copied().unwrap_or(R::zero());
                nash_md(at(log_prob), at(reference), win, beta)[1] / count
            } else {
                R::zero()
            };
            if let Some(slot) = gradient.as_deref_mut().and_then(|gradient| gradient.get_mut(slot)) {
                *slot = result;
            }
        }
        let token = |column: usize| {
            let slot = start + column;
            let at = |values: &[R]| values.get(slot).copied().unwrap_or(R::zero());
            mask.keeps(slot).then(|| (at(log_prob), at(reference)))
        };
        let value = tree_sum_by(shape.columns, |column| {
            token(column).map_or(R::zero(), |(log_prob, reference)| nash_md(log_prob, reference, win, beta)[0])
        });
        kl.add(tree_sum_by(shape.columns, |column| {
            token(column).map_or(R::zero(), |(log_prob, reference)| log_prob - reference)
        }));
        loss.add(value);
        if let Some(slot) = own.as_deref_mut().and_then(|own| own.get_mut(row)) {
            *slot = value;
        }
    }
    call.write("loss", loss.value::<R>() / count);
    call.write("kl", kl.value::<R>() / count);
    Ok(())
}

fn evaluate_xpo<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let names = ["log_prob", "ref_log_prob", "sampled_by_ref_log_prob", "ref_sampled_by_ref_log_prob"];
    let mut columns: [&[R]; 4] = [&[]; 4];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = call.real(name)?;
    }
    let [policy, reference, other, other_reference] = columns;
    let preferred = call.optional_bytes("preferred").ok_or(Error::MissingInput { argument: "preferred" })?;
    let mask = call.optional_bytes("mask");
    let (beta, alpha): (R, R) = (call.number("beta")?, call.number("xpo_alpha")?);
    let kind = call.choice("loss_type")?;
    let keeps = |index: usize| mask.is_none_or(|mask| mask.get(index).is_some_and(|byte| *byte != 0));
    let pairs = (0..policy.len()).filter(|index| keeps(*index)).count();
    if pairs == 0 {
        return Err(Error::EmptyMask { argument: "log_prob" });
    }
    let count = call.optional_number("pair_count").unwrap_or(R::from_count(pairs));
    let mut buffers = ["pair_loss", "d_log_prob", "d_sampled_by_ref_log_prob"].map(|name| call.output(name));
    let (mut loss, mut optimism) = (ExactSum::new(), ExactSum::new());
    for index in 0..policy.len() {
        let mut results = [R::zero(); 3];
        if keeps(index) {
            let mut values = [R::zero(); 4];
            for ((value, column), argument) in
                values.iter_mut().zip([policy, reference, other, other_reference]).zip(names)
            {
                *value = column.get(index).copied().unwrap_or(R::zero());
                if !value.is_finite() {
                    return Err(Error::NonFinite { argument, index });
                }
            }
            let [policy, reference, other, other_reference] = values;
            let sign = if preferred.get(index).is_some_and(|byte| *byte != 0) { R::one() } else { -R::one() };
            let difference = sign * super::arithmetic::difference(policy - reference, other - other_reference);
            let [value, slope] = match kind {
                XpoLoss::Sigmoid => {
                    let [value, slope] = logistic(beta * difference, R::zero());
                    [value, beta * slope]
                }
                XpoLoss::Ipo => ipo(difference, beta),
            };
            let bonus = alpha * other;
            loss.add(value);
            loss.add(bonus);
            optimism.add(bonus);
            results = [value + bonus, sign * slope / count, (alpha - sign * slope) / count];
        }
        for (buffer, result) in buffers.iter_mut().zip(results) {
            if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
                *slot = result;
            }
        }
    }
    call.write("loss", loss.value::<R>() / count);
    call.write("xpo_loss", optimism.value::<R>() / count);
    Ok(())
}

const N: &[&[&str]] = &[&["N"]];
const RESPONSE_COUNT: ParamSpec = ParamSpec::optional(
    "response_count",
    "N",
    None,
    Range::POSITIVE,
    "number of responses of the full batch where the inputs are a shard of it; off: those given",
);

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.nash_md",
        family: Family::Preference,
        title: "Nash-MD",
        summary: "The policy gradient of the probability of winning against a mixture policy, with a KL penalty to the reference.",
        formula: r"\sum_t m_t\left[\beta\,\mathrm{sg}\!\left(\log\tfrac{\pi_\theta(y_t)}{\pi_{\mathrm{ref}}(y_t)}\right) - (p - \tfrac12)\right]\log\pi_\theta(y_t)",
        gradient: r"\left[\beta\log\tfrac{\pi_\theta(y_t)}{\pi_{\mathrm{ref}}(y_t)} - (p - \tfrac12)\right]/B",
        notes: "The log-ratio is stopped, so the gradient is not the derivative of the printed value. An empty response counts as one \
                with loss 0. TRL 1.12 computes the same (1.16 has dropped it).",
        sources: &[Source {
            title: "Nash Learning from Human Feedback",
            reference: "arXiv:2312.00886",
            place: "Section 7, policy gradient of the regularised preference",
        }],
        inputs: &[
            InputSpec::new(
                "log_prob",
                Domain::LogProb,
                &[&["B", "T"]],
                "log-probability of the policy's own sampled tokens under the policy (nats)",
            ),
            InputSpec::new("ref_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the reference (nats)"),
            InputSpec::new(
                "win_probability",
                Domain::Probability,
                &[&["B"]],
                "probability that the response is preferred to one of the mixture",
            ),
            InputSpec::MASK,
        ],
        params: &[BETA, RESPONSE_COUNT],
        defaults: &[],
        outputs: &[
            OutputSpec { meaning: "mean over the responses", ..LOSS },
            OutputSpec::value("response_loss", &["B"], "loss of each response"),
            OutputSpec::gradient("d_log_prob", "log_prob", &["B", "T"], "gradient of the loss").stopped(),
            OutputSpec::value("kl", &[], "mean over responses of the summed log-ratio (nats)"),
        ],
        dialects: &[
            Dialect { name: "paper", note: "with the control variate 1/2", settings: &[] },
            Dialect { name: "trl-1.12", note: "as in the paper", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_nash_md),
    },
    Operation {
        id: "preference.xpo",
        family: Family::Preference,
        title: "XPO",
        summary: "Online DPO between the policy's and the reference's own responses, plus an optimism term.",
        formula: r"\ell(\Delta) + \alpha\log\pi_\theta(\tilde y),\quad \Delta = \pm\left[\log\tfrac{\pi_\theta(y)}{\pi_{\mathrm{ref}}(y)} - \log\tfrac{\pi_\theta(\tilde y)}{\pi_{\mathrm{ref}}(\tilde y)}\right]",
        gradient: r"\left(\pm\ell'(\Delta),\ \alpha \mp \ell'(\Delta)\right)/N",
        notes: "y was sampled from the policy, y~ from the reference; the sign is + where y is preferred. The optimism term lowers the \
                likelihood of what the reference would say. TRL 1.12 computes the same (1.16 has dropped it).",
        sources: &[Source {
            title: "Exploratory Preference Optimization: Harnessing Implicit Q*-Approximation for Sample-Efficient RLHF",
            reference: "arXiv:2405.21046",
            place: "Algorithm 1",
        }],
        inputs: &[
            InputSpec::new(
                "log_prob",
                Domain::LogProb,
                N,
                "log-probability of the policy's response under the policy (nats)",
            ),
            InputSpec::new("ref_log_prob", Domain::LogProb, N, "the same under the reference (nats)"),
            InputSpec::new(
                "sampled_by_ref_log_prob",
                Domain::LogProb,
                N,
                "log-probability of the reference's response under the policy (nats)",
            ),
            InputSpec::new("ref_sampled_by_ref_log_prob", Domain::LogProb, N, "the same under the reference (nats)"),
            InputSpec::new("preferred", Domain::Mask, N, "1 where the policy's response is preferred, else 0"),
            InputSpec::new("mask", Domain::Mask, N, "1 where there is a pair, 0 where it is absent").optional(),
        ],
        params: &[
            BETA,
            ParamSpec::number("xpo_alpha", r"\alpha", 1e-5, Range::NON_NEGATIVE, "weight of the optimism term"),
            ParamSpec::choice("loss_type", "sigmoid", XpoLoss::NAMES, "the preference loss"),
            super::pairs::PAIR_COUNT,
        ],
        defaults: &[],
        outputs: &[
            LOSS,
            PAIR_LOSS,
            OutputSpec::gradient("d_log_prob", "log_prob", &["N"], "gradient of the loss"),
            OutputSpec::gradient(
                "d_sampled_by_ref_log_prob",
                "sampled_by_ref_log_prob",
                &["N"],
                "gradient of the loss",
            ),
            OutputSpec::value("xpo_loss", &[], "mean of the optimism term, its weight included"),
        ],
        dialects: &[
            Dialect { name: "paper", note: "logistic loss", settings: &[] },
            Dialect { name: "trl-1.12", note: "as in the paper", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_xpo),
    },
];

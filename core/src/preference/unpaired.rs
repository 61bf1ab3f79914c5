//! Losses on single responses that are labelled desirable or undesirable: KTO, APO-zero (unpaired) and BCO.

use super::arithmetic::times;
use super::pairs::{BETA, LOSS};
use super::running_mean::{
    NEXT_COUNT, REWARD_SHIFT, RUNNING_COUNT, RUNNING_MEAN, RewardShift, SHIFT, merge_means, state_of,
};
use crate::Error;
use crate::num::{ExactSum, Real, sigmoid, softplus};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

/// The KTO loss of one response with log-ratio x, and its derivative by x: 1 − σ(β(x − z)) where desirable, 1 − σ(β(z − x)) where
/// not.
///
/// Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization", arXiv:2402.01306, Eq. (7) and (8); z ≥ 0 is the
/// reference point, an estimate of KL(π‖π_ref) that no gradient flows through. 1 − σ(u) is evaluated as σ(−u).
///
/// ```
/// use plumbline_core::preference::unpaired::kto;
/// assert_eq!(kto(1.0f64, 1.0, true, 0.5), [0.5, -0.125]);
/// assert_eq!(kto(1.0f64, 1.0, false, 0.5), [0.5, 0.125]);
/// ```
#[inline(always)]
pub fn kto<R: Real>(log_ratio: R, reference_point: R, desirable: bool, beta: R) -> [R; 2] {
    let u = beta * (log_ratio - reference_point);
    let (value, sign) = if desirable { (sigmoid(-u), -R::one()) } else { (sigmoid(u), R::one()) };
    [value, sign * beta * (sigmoid(u) * sigmoid(-u))]
}

/// The BCO loss of one response with reward a = β·log-ratio, and its derivative by the log-ratio: −ln σ(a − δ) where desirable,
/// −ln σ(−(a − δ)) where not; δ is a constant for the gradient.
///
/// Jung et al., "Binary Classifier Optimization for Large Language Model Alignment", arXiv:2404.04656.
///
/// ```
/// use plumbline_core::preference::unpaired::bco;
/// assert_eq!(bco(1.0f64, 0.5, true, 0.5), [core::f64::consts::LN_2, -0.25]);
/// ```
#[inline(always)]
pub fn bco<R: Real>(log_ratio: R, shift: R, desirable: bool, beta: R) -> [R; 2] {
    let u = beta * log_ratio - shift;
    if desirable { [softplus(-u), -(beta * sigmoid(-u))] } else { [softplus(u), beta * sigmoid(u)] }
}

choice! {
    /// What BCO's shift is the mean of.
    pub enum ShiftMean {
        /// All rewards of the batch.
        Responses = "responses",
        /// The mean desirable and the mean undesirable reward, half each.
        Classes = "classes",
    }
}

/// A batch of labelled responses.
struct Labelled<'c, R> {
    log_prob: &'c [R],
    reference: &'c [R],
    desirable: &'c [u8],
    weight: Option<&'c [R]>,
    mask: Option<&'c [u8]>,
}

impl<'c, R: Real> Labelled<'c, R> {
    fn of_call(call: &Call<'c, R>) -> Result<Self, Error> {
        Ok(Labelled {
            log_prob: call.real("log_prob")?,
            reference: call.real("ref_log_prob")?,
            desirable: call.optional_bytes("desirable").ok_or(Error::MissingInput { argument: "desirable" })?,
            weight: call.optional_real("weight"),
            mask: call.optional_bytes("mask"),
        })
    }

    /// The responses that are there: index, log-ratio, label, weight.
    fn kept(&self) -> impl Iterator<Item = Result<(usize, R, bool, R), Error>> + '_ {
        let keeps = |index: usize| self.mask.is_none_or(|mask| mask.get(index).is_some_and(|byte| *byte != 0));
        let rows = self.log_prob.iter().zip(self.reference).zip(self.desirable).enumerate();
        rows.filter(move |(index, _)| keeps(*index)).map(|(index, ((log_prob, reference), label))| {
            let weight = self.weight.and_then(|weight| weight.get(index)).copied().unwrap_or(R::one());
            for (argument, value) in [("log_prob", *log_prob), ("ref_log_prob", *reference), ("weight", weight)] {
                if !value.is_finite() {
                    return Err(Error::NonFinite { argument, index });
                }
            }
            Ok((index, *log_prob - *reference, *label != 0, weight))
        })
    }

    /// Write loss, gradient and the mean rewards; `loss` is value and derivative by the log-ratio.
    fn evaluate(&self, call: &mut Call<'_, R>, beta: R, loss: impl Fn(R, bool) -> [R; 2]) -> Result<(), Error> {
        let responses = self.kept().count();
        if responses == 0 {
            return Err(Error::EmptyMask { argument: "log_prob" });
        }
        let count = call.optional_number("response_count").unwrap_or(R::from_count(responses));
        let mut buffers = ["response_loss", "d_log_prob"].map(|name| call.output(name));
        for buffer in buffers.iter_mut().flatten() {
            buffer.fill(R::zero());
        }
        let mut total = ExactSum::new();
        let mut rewards = [ExactSum::new(), ExactSum::new()];
        let mut counts = [0usize; 2];
        for row in self.kept() {
            let (index, log_ratio, desirable, weight) = row?;
            let [value, slope] = loss(log_ratio, desirable).map(|part| times(weight, part));
            total.add(value);
            let [good, bad] = &mut rewards;
            let [good_count, bad_count] = &mut counts;
            let (sum, number) = if desirable { (good, good_count) } else { (bad, bad_count) };
            sum.add(beta * log_ratio);
            *number += 1;
            for (buffer, result) in buffers.iter_mut().zip([value, slope / count]) {
                if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
                    *slot = result;
                }
            }
        }
        call.write("loss", total.value::<R>() / count);
        for ((name, sum), number) in ["desirable_reward", "undesirable_reward"].into_iter().zip(rewards).zip(counts) {
            call.write(name, if number == 0 { R::zero() } else { sum.value::<R>() / R::from_count(number) });
        }
        Ok(())
    }
}

fn evaluate_kto<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let batch = Labelled::of_call(call)?;
    let beta: R = call.number("beta")?;
    let (good, bad): (R, R) = (call.number("desirable_weight")?, call.number("undesirable_weight")?);
    let reference_point = match call.optional_number("reference_point") {
        Some(given) => given,
        None => {
            let policy = call.optional_finite("kl_log_prob")?;
            let reference = call.optional_finite("ref_kl_log_prob")?;
            let [policy, reference] =
                super::pairs::both(policy, reference, ["kl_log_prob", "ref_kl_log_prob"])?.unwrap_or([&[], &[]]);
            let mut sum = ExactSum::new();
            for (policy, reference) in policy.iter().zip(reference) {
                sum.add(*policy - *reference);
            }
            let number = R::from_count(policy.len().max(1));
            (sum.value::<R>() / number).larger(R::zero())
        }
    };
    call.write("kl", reference_point);
    batch.evaluate(call, beta, |log_ratio, desirable| {
        let weight = if desirable { good } else { bad };
        kto(log_ratio, reference_point, desirable, beta).map(|part| times(weight, part))
    })
}

fn evaluate_apo_zero<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let batch = Labelled::of_call(call)?;
    let beta: R = call.number("beta")?;
    let (good, bad): (R, R) = (call.number("desirable_weight")?, call.number("undesirable_weight")?);
    batch.evaluate(call, beta, |log_ratio, desirable| {
        let weight = if desirable { good } else { bad };
        kto(log_ratio, R::zero(), desirable, beta).map(|part| times(weight, part))
    })
}

fn evaluate_bco<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let batch = Labelled::of_call(call)?;
    let beta: R = call.number("beta")?;
    let [mean, seen] = state_of(call)?;
    let mut sums = [ExactSum::new(), ExactSum::new()];
    let mut counts = [0usize; 2];
    for row in batch.kept() {
        let (_, log_ratio, desirable, _) = row?;
        let class = usize::from(!desirable);
        if let (Some(sum), Some(count)) = (sums.get_mut(class), counts.get_mut(class)) {
            sum.add(beta * log_ratio);
            *count += 1;
        }
    }
    let [good, bad] = &sums;
    let [good_count, bad_count] = counts;
    let all = R::from_count(good_count + bad_count);
    let own = match call.choice("shift_mean")? {
        ShiftMean::Classes if good_count > 0 && bad_count > 0 => {
            (good.value::<R>() / R::from_count(good_count) + bad.value::<R>() / R::from_count(bad_count)) / R::two()
        }
        _ => {
            let mut total = good.clone();
            total.merge(bad);
            if good_count + bad_count == 0 { R::zero() } else { total.value::<R>() / all }
        }
    };
    let [shift, next] = match call.choice("reward_shift")? {
        RewardShift::Zero => [R::zero(), seen],
        RewardShift::Given => [mean, seen],
        RewardShift::Running => merge_means(mean, seen, own, all),
    };
    call.write("shift", shift);
    call.write("next_count", next);
    batch.evaluate(call, beta, |log_ratio, desirable| bco(log_ratio, shift, desirable, beta))
}

const N: &[&[&str]] = &[&["N"]];
const LOG_PROB: InputSpec = InputSpec::new(
    "log_prob",
    Domain::LogProb,
    N,
    "log-probability of the response under the policy, summed over its tokens (nats)",
);
const REF_LOG_PROB: InputSpec =
    InputSpec::new("ref_log_prob", Domain::LogProb, N, "the same under the reference (nats)");
const DESIRABLE: InputSpec =
    InputSpec::new("desirable", Domain::Mask, N, "1 where the response is desirable, 0 where it is undesirable");
const WEIGHT: InputSpec =
    InputSpec::new("weight", Domain::NonNegative, N, "constant factor of each response's loss; without it 1")
        .optional();
const MASK: InputSpec =
    InputSpec::new("mask", Domain::Mask, N, "1 where there is a response, 0 where it is absent").optional();
const RESPONSE_COUNT: ParamSpec = ParamSpec::optional(
    "response_count",
    "N",
    None,
    Range::POSITIVE,
    "number of responses of the full batch where the inputs are a shard of it; off: those given",
);
const DESIRABLE_WEIGHT: ParamSpec =
    ParamSpec::number("desirable_weight", r"\lambda_D", 1.0, Range::NON_NEGATIVE, "weight of desirable responses");
const UNDESIRABLE_WEIGHT: ParamSpec =
    ParamSpec::number("undesirable_weight", r"\lambda_U", 1.0, Range::NON_NEGATIVE, "weight of undesirable responses");
const MEAN_LOSS: OutputSpec = OutputSpec { meaning: "mean over the responses", ..LOSS };
const RESPONSE_LOSS: OutputSpec =
    OutputSpec::value("response_loss", &["N"], "loss of each response, weights included; 0 where absent");
const D_LOG_PROB: OutputSpec = OutputSpec::gradient("d_log_prob", "log_prob", &["N"], "gradient of the loss");
const DESIRABLE_REWARD: OutputSpec = OutputSpec::value(
    "desirable_reward",
    &[],
    "mean implicit reward beta * log-ratio of the desirable responses; 0 where there is none",
);
const UNDESIRABLE_REWARD: OutputSpec =
    OutputSpec::value("undesirable_reward", &[], "the same of the undesirable responses");
const KTO_PAPER: &str = "KTO: Model Alignment as Prospect Theoretic Optimization";

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.kto",
        family: Family::Preference,
        title: "KTO",
        summary: "Single labelled responses, valued against a reference point by a sigmoid, with separate weights for the two labels.",
        formula: r"\lambda_D\,[1 - \sigma(\beta(x - z))]\ \text{or}\ \lambda_U\,[1 - \sigma(\beta(z - x))],\quad z = \max(0, \overline{\log\tfrac{\pi_\theta(y')}{\pi_{\mathrm{ref}}(y')}})",
        gradient: r"\mp\lambda\beta\,\sigma(u)\sigma(-u)/N,\quad u = \beta(x - z)",
        notes: "z comes from mismatched completions (kl_*), is clamped at 0 and carries no gradient; without them, or with none of \
                them, it is 0. A shard takes the full batch's z as reference_point. Equal in the paper and TRL 1.16.",
        sources: &[Source { title: KTO_PAPER, reference: "arXiv:2402.01306", place: "Eq. (7), (8)" }],
        inputs: &[
            LOG_PROB,
            REF_LOG_PROB,
            DESIRABLE,
            InputSpec::new(
                "kl_log_prob",
                Domain::LogProb,
                &[&["M"]],
                "log-probability of mismatched completions under the policy (nats)",
            )
            .optional(),
            InputSpec::new("ref_kl_log_prob", Domain::LogProb, &[&["M"]], "the same under the reference (nats)")
                .optional(),
            WEIGHT,
            MASK,
        ],
        params: &[
            BETA,
            DESIRABLE_WEIGHT,
            UNDESIRABLE_WEIGHT,
            ParamSpec::optional(
                "reference_point",
                "z_0",
                None,
                Range::NON_NEGATIVE,
                "the reference point, where it is known; off: from the mismatched completions",
            ),
            RESPONSE_COUNT,
        ],
        defaults: &[],
        outputs: &[
            MEAN_LOSS,
            RESPONSE_LOSS,
            D_LOG_PROB,
            OutputSpec::value("kl", &[], "the reference point that was used"),
            DESIRABLE_REWARD,
            UNDESIRABLE_REWARD,
        ],
        dialects: &[
            Dialect { name: "paper", note: "as written", settings: &[] },
            Dialect { name: "trl-1.16", note: "as in the paper", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_kto),
    },
    Operation {
        id: "preference.apo_zero_unpaired",
        family: Family::Preference,
        title: "APO-zero (unpaired)",
        summary: "APO-zero on single labelled responses: KTO with its reference point held at 0.",
        formula: r"\lambda_D\,[1 - \sigma(\beta x)]\ \text{or}\ \lambda_U\,\sigma(\beta x)",
        gradient: r"\mp\lambda\beta\,\sigma(\beta x)\sigma(-\beta x)/N",
        notes: "x is the log-ratio of the response. Equal in the paper and TRL 1.16.",
        sources: &[Source {
            title: "Anchored Preference Optimization and Contrastive Revisions: Addressing Underspecification in Alignment",
            reference: "arXiv:2408.06266",
            place: "Eq. (7), unpaired",
        }],
        inputs: &[LOG_PROB, REF_LOG_PROB, DESIRABLE, WEIGHT, MASK],
        params: &[BETA, DESIRABLE_WEIGHT, UNDESIRABLE_WEIGHT, RESPONSE_COUNT],
        defaults: &[],
        outputs: &[MEAN_LOSS, RESPONSE_LOSS, D_LOG_PROB, DESIRABLE_REWARD, UNDESIRABLE_REWARD],
        dialects: &[
            Dialect { name: "paper", note: "as written", settings: &[] },
            Dialect { name: "trl-1.16", note: "as in the paper", settings: &[] },
        ],
        evaluate: evaluate_with!(evaluate_apo_zero),
    },
    Operation {
        id: "preference.bco",
        family: Family::Preference,
        title: "BCO",
        summary: "A binary classifier of desirable and undesirable responses whose logit is the implicit reward, shifted by its mean.",
        formula: r"-\log\sigma(\beta x - \delta)\ \text{or}\ -\log\sigma(-(\beta x - \delta)),\quad \delta = \mathrm{sg}(\text{mean reward})",
        gradient: r"-\beta\,\sigma(\delta - \beta x)/N\ \text{or}\ \beta\,\sigma(\beta x - \delta)/N",
        notes: "No gradient flows through the shift. `weight` takes the density ratios of underlying-distribution matching on the \
                undesirable responses. The running mean counts responses. TRL keeps it in single precision.",
        sources: &[Source {
            title: "Binary Classifier Optimization for Large Language Model Alignment",
            reference: "arXiv:2404.04656",
            place: "binary classifier loss with reward shift",
        }],
        inputs: &[LOG_PROB, REF_LOG_PROB, DESIRABLE, WEIGHT, MASK, RUNNING_MEAN, RUNNING_COUNT],
        params: &[
            BETA,
            REWARD_SHIFT,
            ParamSpec::choice(
                "shift_mean",
                "classes",
                ShiftMean::NAMES,
                "what the shift is the mean of: all responses alike, or the two classes half each",
            ),
            RESPONSE_COUNT,
        ],
        defaults: &[],
        outputs: &[
            MEAN_LOSS,
            RESPONSE_LOSS,
            D_LOG_PROB.stopped(),
            DESIRABLE_REWARD,
            UNDESIRABLE_REWARD,
            SHIFT,
            NEXT_COUNT,
        ],
        dialects: &[
            Dialect { name: "paper", note: "the two classes' mean rewards, half each", settings: &[] },
            Dialect {
                name: "trl-1.12",
                note: "running mean over all responses",
                settings: &[("shift_mean", Value::Name("responses"))],
            },
        ],
        evaluate: evaluate_with!(evaluate_bco),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::find;
    use crate::spec::{Data, Input, Output, evaluate};

    #[test]
    fn reference_point_is_that_of_mismatched_completions() {
        // Log-ratio 3, KL 1, β = 0.1, undesirable: 1 − σ(0.1·(1 − 3)) = σ(0.2); desirable: σ(−0.2) = 0.450166.
        assert!((kto(3.0f64, 1.0, true, 0.1)[0] - 0.450166).abs() < 5e-7);
        assert!((kto(3.0f64, 1.0, false, 0.1)[0] - (1.0 - 0.450166)).abs() < 5e-7);
    }

    fn kto_of_one(kl: Option<(&[f64], &[f64])>) -> [f64; 2] {
        let real = |name, data: &'static [f64]| Input { name, shape: &[1], data: Data::Real(data) };
        let label = Input { name: "desirable", shape: &[1], data: Data::Mask(&[1]) };
        let mut inputs = std::vec![real("log_prob", &[-3.0]), real("ref_log_prob", &[-4.0]), label];
        let shape = [kl.map_or(0, |(policy, _)| policy.len())];
        if let Some((policy, reference)) = kl {
            inputs.push(Input { name: "kl_log_prob", shape: &shape, data: Data::Real(policy) });
            inputs.push(Input { name: "ref_kl_log_prob", shape: &shape, data: Data::Real(reference) });
        }
        let (mut loss, mut point) = ([0.0], [9.0]);
        let mut outputs = [Output { name: "loss", data: &mut loss }, Output { name: "kl", data: &mut point }];
        evaluate(find("preference.kto").unwrap(), None, &[], &inputs, &mut outputs).unwrap();
        [loss[0], point[0]]
    }

    #[test]
    fn no_mismatched_completion_is_a_reference_point_of_zero() {
        let expected = kto(1.0, 0.0, true, 0.1)[0];
        assert_eq!(kto_of_one(None), [expected, 0.0]);
        assert_eq!(kto_of_one(Some((&[], &[]))), [expected, 0.0]);
        // Clamped at 0 from below.
        assert_eq!(kto_of_one(Some((&[-5.0], &[-4.0]))), [expected, 0.0]);
        assert_eq!(kto_of_one(Some((&[-1.0, -2.0], &[-2.0, -3.0])))[1], 1.0);
    }

    #[test]
    fn far_log_ratios_are_finite() {
        for x in [-10_000.0f64, 10_000.0] {
            for label in [true, false] {
                assert!(kto(x, 0.0, label, 1.0).iter().all(|part| part.is_finite()));
                assert!(bco(x, 0.0, label, 1.0).iter().all(|part| part.is_finite()));
            }
        }
    }
}

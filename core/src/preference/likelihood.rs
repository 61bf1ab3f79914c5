//! The negative log-likelihood of the chosen responses that several preference losses add, and its normalisations.

use super::pairs::{CHOSEN_LENGTH, CHOSEN_LOG_PROB, D_CHOSEN_LOG_PROB, LOSS, PAIR_MASK};
use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// What the log-likelihood is divided by.
    pub enum LikelihoodMean {
        /// All tokens of the batch: long responses weigh more.
        Token = "token_mean",
        /// Each response by its own tokens, then the number of responses.
        Response = "response_mean",
        /// The number of responses only.
        Sum = "response_sum",
    }
}

/// Log-probs of N responses, summed over tokens, with the number of tokens that each sum runs over.
#[derive(Clone, Copy, Debug)]
pub struct Responses<'a, R> {
    /// Summed log-probs (nats).
    pub log_prob: &'a [R],
    /// Numbers of tokens.
    pub length: &'a [u32],
    /// Which responses are there; none is all.
    pub mask: Option<&'a [u8]>,
}

/// The mean negative log-likelihood and its gradient by each summed log-prob.
///
/// Token mean −Σ log π(y_i)/Σ L_i, response mean −(1/N) Σ log π(y_i)/L_i, response sum −(1/N) Σ log π(y_i); the gradient is minus
/// each response's share. `count` replaces N or Σ L_i where the slices are a shard. `factor` multiplies the gradient only, which
/// is *added* to `gradient`. A response of length 0 counts as length 1 in the response mean; a token mean of no token is
/// [`Error::EmptyMask`].
///
/// ```
/// use plumbline_core::preference::likelihood::{LikelihoodMean, Responses, negative_log_likelihood};
/// let responses = Responses { log_prob: &[-9.0, -1.0], length: &[10, 2], mask: None };
/// let mut gradient = [0.0; 2];
/// let mean = negative_log_likelihood(&responses, LikelihoodMean::Response, None, 1.0, Some(&mut gradient)).unwrap();
/// assert_eq!(mean, (0.9 + 0.5) / 2.0);
/// assert_eq!(gradient, [-0.05, -0.25]);
/// ```
pub fn negative_log_likelihood<R: Real>(
    responses: &Responses<'_, R>,
    mean: LikelihoodMean,
    count: Option<R>,
    factor: R,
    mut gradient: Option<&mut [R]>,
) -> Result<R, Error> {
    let Responses { log_prob, length, mask } = *responses;
    if length.len() != log_prob.len() {
        return Err(Error::LengthMismatch { argument: "chosen_length", expected: log_prob.len(), got: length.len() });
    }
    let kept = || {
        let keeps = move |index: &usize| mask.is_none_or(|mask| mask.get(*index).is_some_and(|byte| *byte != 0));
        log_prob
            .iter()
            .zip(length)
            .enumerate()
            .map(|(index, (value, length))| (index, *value, *length))
            .filter(move |(index, ..)| keeps(index))
    };
    let counted = match mean {
        LikelihoodMean::Token => kept().map(|(.., length)| length as usize).sum(),
        LikelihoodMean::Response | LikelihoodMean::Sum => kept().count(),
    };
    if counted == 0 {
        return Err(Error::EmptyMask { argument: "chosen_length" });
    }
    let count = count.unwrap_or(R::from_count(counted));
    let mut sum = ExactSum::new();
    for (index, value, length) in kept() {
        if !value.is_finite() {
            return Err(Error::NonFinite { argument: "chosen_log_prob", index });
        }
        let own = if mean == LikelihoodMean::Response { R::from_count(length.max(1) as usize) } else { R::one() };
        sum.add(value / own);
        if let Some(slot) = gradient.as_deref_mut().and_then(|gradient| gradient.get_mut(index)) {
            *slot += -factor / (own * count);
        }
    }
    Ok(-sum.value::<R>() / count)
}

/// Parameter: how the likelihood is normalised, per response by default.
pub(super) const LIKELIHOOD_MEAN: ParamSpec = ParamSpec::choice(
    "likelihood_mean",
    "response_mean",
    LikelihoodMean::NAMES,
    "what the log-likelihood is divided by: all tokens of the batch, each response's own tokens (then averaged over responses), or only the number of responses",
);
/// Parameter: the full batch's count.
pub(super) const LIKELIHOOD_COUNT: ParamSpec = ParamSpec::optional(
    "likelihood_count",
    "n",
    None,
    Range::POSITIVE,
    "tokens (token_mean) or responses of the full batch, where the inputs are a shard of it; off: those given",
);
/// Input: the chosen lengths, required.
pub(super) const LENGTH: InputSpec = InputSpec { optional: false, ..CHOSEN_LENGTH };
/// Setting of TRL: the token mean.
pub(super) const TOKEN_MEAN: (&str, Value) = ("likelihood_mean", Value::Name("token_mean"));
/// Output: the likelihood term.
pub(super) const NLL_LOSS: OutputSpec =
    OutputSpec::value("nll_loss", &[], "mean negative log-likelihood of the chosen responses, before its coefficient");

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let responses = Responses {
        log_prob: call.real("chosen_log_prob")?,
        length: call.index("chosen_length")?,
        mask: call.optional_bytes("mask"),
    };
    let mut gradient = call.output("d_chosen_log_prob");
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient.fill(R::zero());
    }
    let (mean, count) = (call.choice("likelihood_mean")?, call.optional_number("likelihood_count"));
    let loss = negative_log_likelihood(&responses, mean, count, R::one(), gradient)?;
    call.write("loss", loss);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.dpo_sft",
    family: Family::Preference,
    title: "Likelihood of the chosen responses",
    summary: "The mean negative log-likelihood of the chosen responses: supervised fine-tuning as one of DPO's losses.",
    formula: r"-\frac{\sum_i \log\pi_\theta(y_w^{(i)})}{\sum_i |y_w^{(i)}|}\ \text{or}\ -\frac1N\sum_i \frac{\log\pi_\theta(y_w^{(i)})}{|y_w^{(i)}|}",
    gradient: r"-1/\sum_i |y_w^{(i)}|\ \text{or}\ -1/(N\,|y_w^{(i)}|)",
    notes: "The rejected responses have no part in it. TRL averages over all tokens of the batch and offers it as a loss to be \
            mixed with others (MPO).",
    sources: &[Source {
        title: "Enhancing the Reasoning Ability of Multimodal Large Language Models via Mixed Preference Optimization",
        reference: "arXiv:2411.10442",
        place: "generation loss",
    }],
    inputs: &[CHOSEN_LOG_PROB, LENGTH, PAIR_MASK],
    params: &[LIKELIHOOD_MEAN, LIKELIHOOD_COUNT],
    defaults: &[],
    outputs: &[LOSS, D_CHOSEN_LOG_PROB],
    dialects: &[
        Dialect { name: "paper", note: "each response by its own length", settings: &[] },
        Dialect { name: "trl-1.16", note: "all tokens of the batch", settings: &[TOKEN_MEAN] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divided_by_the_length_once() {
        // Log-prob −9 over 10 tokens: 0.9; divided twice it would be 0.09.
        let responses = Responses { log_prob: &[-9.0f64], length: &[10], mask: None };
        for mean in [LikelihoodMean::Token, LikelihoodMean::Response] {
            assert_eq!(negative_log_likelihood(&responses, mean, None, 1.0, None).unwrap(), 0.9);
        }
        assert_eq!(negative_log_likelihood(&responses, LikelihoodMean::Sum, None, 1.0, None).unwrap(), 9.0);
    }

    #[test]
    fn doubling_the_batch_changes_nothing_and_shards_add_up() {
        let (log_prob, length) = ([-9.0f64, -1.0, -9.0, -1.0], [10, 2, 10, 2]);
        let whole = |n: usize, count| {
            let responses = Responses { log_prob: &log_prob[..n], length: &length[..n], mask: None };
            negative_log_likelihood(&responses, LikelihoodMean::Token, count, 1.0, None).unwrap()
        };
        assert_eq!(whole(2, None), whole(4, None));
        assert_eq!(whole(2, Some(24.0)) * 2.0, whole(4, None));
        let empty = Responses { log_prob: &[-1.0f64], length: &[0], mask: None };
        assert!(matches!(
            negative_log_likelihood(&empty, LikelihoodMean::Token, None, 1.0, None),
            Err(Error::EmptyMask { .. })
        ));
    }
}

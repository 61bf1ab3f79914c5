//! ORPO: the likelihood of the chosen response and the log odds ratio between the two.

use super::arithmetic::{difference, times};
use super::dpo_sigmoid::logistic;
use super::likelihood::{LIKELIHOOD_COUNT, LIKELIHOOD_MEAN, NLL_LOSS, Responses, TOKEN_MEAN, negative_log_likelihood};
use super::pairs::{
    ACCURACY, BETA, CHOSEN_LENGTH, CHOSEN_LOG_PROB, CHOSEN_REWARD, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB, LOSS,
    MARGIN, PAIR_COUNT, PAIR_LOSS, PAIR_MASK, Pair, PairBuffers, PairMeans, PairTerm, REJECTED_LENGTH,
    REJECTED_LOG_PROB, REJECTED_REWARD, batch_of, pair_count, write_means,
};
use crate::Error;
use crate::num::{Real, log1mexp};
use crate::spec::{Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// The log odds of a mean log-prob x ≤ 0, x − ln(1 − eˣ), and its derivative 1/(1 − eˣ).
///
/// Through log1mexp, so that neither x near 0 nor very negative x loses digits. At x = 0 (certainty) both are +∞.
///
/// ```
/// use plumbline_core::preference::orpo::log_odds;
/// let [odds, slope] = log_odds(-core::f64::consts::LN_2);
/// assert!(odds.abs() < 1e-15 && slope == 2.0);
/// ```
#[inline(always)]
pub fn log_odds<R: Real>(mean_log_prob: R) -> [R; 2] {
    [mean_log_prob - log1mexp(mean_log_prob), R::one() / mean_log_prob.exp_m1().abs()]
}

/// The odds-ratio loss of one pair, −λ·ln σ(log odds(ℓ_w) − log odds(ℓ_l)) with ℓ = log π(y)/|y|, and its derivatives by the summed
/// log-probs (which stand in the pair's log-ratios).
///
/// Hong et al., "ORPO: Monolithic Preference Optimization without Reference Model", arXiv:2403.07691, Eq. (4), (6), (7).
///
/// ```
/// use plumbline_core::preference::{orpo::odds_ratio, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: -2.0f64, rejected_log_ratio: -3.0, chosen_length: 2.0, rejected_length: 3.0 };
/// // Equal means: odds ratio 1, ln 2.
/// assert_eq!(odds_ratio(&pair, 1.0).value, core::f64::consts::LN_2);
/// ```
///
/// Differs in: TRL 1.16 computes this part in single precision; versions before the log1mexp form used ln(1 − eˣ), which gives NaN
/// or −∞ near 0, and other codes add 10⁻⁴ inside the logarithm.
#[inline(always)]
pub fn odds_ratio<R: Real>(pair: &Pair<R>, lambda: R) -> PairTerm<R> {
    let [chosen, d_chosen] = log_odds(pair.chosen_log_ratio / pair.chosen_length);
    let [rejected, d_rejected] = log_odds(pair.rejected_log_ratio / pair.rejected_length);
    let [value, slope] = logistic(difference(chosen, rejected), R::zero());
    let slope = lambda * slope;
    PairTerm {
        value: times(lambda, value),
        d_chosen: times(slope, d_chosen) / pair.chosen_length,
        d_rejected: -(times(slope, d_rejected) / pair.rejected_length),
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let lambda: R = call.number("beta")?;
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    for (argument, values) in
        [("chosen_log_prob", batch.chosen_log_prob), ("rejected_log_prob", batch.rejected_log_prob)]
    {
        if let Some((index, value)) =
            values.iter().enumerate().find(|(index, value)| batch.keeps(*index) && **value > R::zero())
            && value.is_finite()
        {
            return Err(Error::ElementOutOfRange { argument, index, value: Real::to_f64(*value), legal: "<= 0" });
        }
    }
    let text = match (call.optional_real("chosen_text_log_prob"), call.optional_index("chosen_text_length")) {
        (Some(log_prob), Some(length)) => Some((log_prob, length)),
        (None, None) => None,
        (Some(_), None) => return Err(Error::MissingInput { argument: "chosen_text_length" }),
        (None, Some(_)) => return Err(Error::MissingInput { argument: "chosen_text_log_prob" }),
    };
    let mut d_chosen = call.output("d_chosen_log_prob");
    let mut d_text = call.output("d_chosen_text_log_prob");
    let buffers = PairBuffers {
        pair_loss: call.output("pair_loss"),
        d_chosen_log_prob: d_chosen.as_deref_mut(),
        d_rejected_log_prob: call.output("d_rejected_log_prob"),
    };
    let rewards = |pair: &Pair<R>| {
        [
            lambda * (pair.chosen_log_ratio / pair.chosen_length),
            lambda * (pair.rejected_log_ratio / pair.rejected_length),
        ]
    };
    let means: PairMeans<R> =
        batch.sum_with_rewards(count, buffers, rewards, |pair| odds_ratio(pair, lambda))?.means(count);
    if let Some(d_text) = d_text.as_deref_mut() {
        d_text.fill(R::zero());
    }
    let (responses, gradient) = match text {
        Some((log_prob, length)) => (Responses { log_prob, length, mask: batch.mask }, d_text),
        None => {
            let length = call.index("chosen_length")?;
            (Responses { log_prob: batch.chosen_log_prob, length, mask: batch.mask }, d_chosen)
        }
    };
    let (mean, tokens) = (call.choice("likelihood_mean")?, call.optional_number("likelihood_count"));
    let nll = negative_log_likelihood(&responses, mean, tokens, R::one(), gradient)?;
    write_means(call, PairMeans { loss: means.loss + nll, ..means });
    call.write("nll_loss", nll);
    Ok(())
}

const N: &[&[&str]] = &[&["N"]];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.orpo",
    family: Family::Preference,
    title: "ORPO",
    summary: "The likelihood of the chosen response plus the logistic loss of the log odds ratio between the two responses.",
    formula: r"-\overline{\log\pi_\theta(y_w)} - \beta\log\sigma\!\left(\log\frac{p_w}{1-p_w} - \log\frac{p_l}{1-p_l}\right),\quad p = \pi_\theta(y)^{1/|y|}",
    gradient: r"\frac{\beta}{N}\,\sigma(-o)\left(-\frac{1}{|y_w|(1-p_w)},\ \frac{1}{|y_l|(1-p_l)}\right) - \text{likelihood's share}",
    notes: "The likelihood runs over prompt and response (chosen_text_*, as in the paper's code and TRL); without those inputs over \
            the response. `pair_loss` is the odds-ratio part. A positive log-prob is an error. A rejected response of probability 1 \
            has an infinite loss.",
    sources: &[Source {
        title: "ORPO: Monolithic Preference Optimization without Reference Model",
        reference: "arXiv:2403.07691",
        place: "Eq. (4), (6), (7)",
    }],
    inputs: &[
        CHOSEN_LOG_PROB,
        REJECTED_LOG_PROB,
        InputSpec {
            optional: false,
            meaning: "number of tokens of the chosen response, 0 counts as 1",
            ..CHOSEN_LENGTH
        },
        InputSpec { optional: false, ..REJECTED_LENGTH },
        InputSpec::new(
            "chosen_text_log_prob",
            Domain::LogProb,
            N,
            "log-probability of prompt and chosen response together, for the likelihood term (nats)",
        )
        .optional(),
        InputSpec::new("chosen_text_length", Domain::Count, N, "number of tokens that it runs over").optional(),
        PAIR_MASK,
    ],
    params: &[BETA, LIKELIHOOD_MEAN, PAIR_COUNT, LIKELIHOOD_COUNT],
    defaults: &[],
    outputs: &[
        LOSS,
        PAIR_LOSS,
        D_CHOSEN_LOG_PROB,
        D_REJECTED_LOG_PROB,
        OutputSpec::gradient(
            "d_chosen_text_log_prob",
            "chosen_text_log_prob",
            &["N"],
            "gradient of the loss; 0 where that input was not given",
        ),
        NLL_LOSS,
        CHOSEN_REWARD,
        REJECTED_REWARD,
        MARGIN,
        ACCURACY,
    ],
    dialects: &[
        Dialect { name: "paper", note: "likelihood averaged over each response's own tokens", settings: &[] },
        Dialect {
            name: "trl-1.16",
            note: "likelihood averaged over all tokens of the batch; rewards and margins are those of mean log-probs",
            settings: &[TOKEN_MEAN],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_certainty() {
        // Mean log-probs −10⁻⁵ and −½: log odds ratio 11.0802 (8.6825 where 1.0001 − eˣ is used).
        let ratio = log_odds(-1e-5f64)[0] - log_odds(-0.5f64)[0];
        assert!((ratio - 11.0802).abs() < 5e-5);
        // In single precision ln(1 − eˣ) is −20.723 at −10⁻⁹, not −∞.
        assert!((log_odds(-1e-9f32)[0] - 20.723).abs() < 5e-4);
        assert_eq!(log_odds(0.0f64), [f64::INFINITY, f64::INFINITY]);
        assert_eq!(log_odds(-1000.0f64), [-1000.0, 1.0]);
    }

    #[test]
    fn certainty_gives_no_nan() {
        let term = |chosen: f64, rejected: f64| {
            let pair = Pair {
                chosen_log_ratio: chosen,
                rejected_log_ratio: rejected,
                chosen_length: 1.0,
                rejected_length: 1.0,
            };
            odds_ratio(&pair, 0.5)
        };
        // A certain chosen response: nothing left to gain.
        assert_eq!([term(0.0, -1.0).value, term(0.0, -1.0).d_chosen], [0.0, 0.0]);
        assert_eq!(term(-1.0, 0.0).value, f64::INFINITY);
        assert_eq!(term(0.0, 0.0).value, 0.5 * core::f64::consts::LN_2);
    }
}

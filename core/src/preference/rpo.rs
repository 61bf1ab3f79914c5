//! DPO with the likelihood of the chosen response added (RPO of the iterative reasoning paper).

use super::dpo_sigmoid::{DPO, logistic};
use super::likelihood::{
    LENGTH, LIKELIHOOD_COUNT, LIKELIHOOD_MEAN, NLL_LOSS, Responses, TOKEN_MEAN, negative_log_likelihood,
};
use super::pairs::{
    ACCURACY, BETA, CHOSEN_LOG_PROB, CHOSEN_REWARD, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB, LABEL_SMOOTHING, LOSS,
    MARGIN, PAIR_COUNT, PAIR_LOSS, PAIR_MASK, PairBatch, PairBuffers, PairMeans, REF_CHOSEN_LOG_PROB,
    REF_REJECTED_LOG_PROB, REJECTED_LOG_PROB, REJECTED_REWARD, pair_count, write_means,
};
use super::scores::{ScoreRule, loss_of_difference};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, Operation, ParamSpec, Range, Source, evaluate_with};

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let batch = PairBatch {
        chosen_log_prob: call.real("chosen_log_prob")?,
        rejected_log_prob: call.real("rejected_log_prob")?,
        reference: super::pairs::both(
            call.optional_real("ref_chosen_log_prob"),
            call.optional_real("ref_rejected_log_prob"),
            ["ref_chosen_log_prob", "ref_rejected_log_prob"],
        )?,
        lengths: None,
        weight: None,
        mask: call.optional_bytes("mask"),
    };
    let count = pair_count(call, &batch)?;
    let (beta, label_smoothing) = (call.number("beta")?, call.number("label_smoothing")?);
    let alpha = call.number("rpo_alpha")?;
    let mut d_chosen = call.output("d_chosen_log_prob");
    let buffers = PairBuffers {
        pair_loss: call.output("pair_loss"),
        d_chosen_log_prob: d_chosen.as_deref_mut(),
        d_rejected_log_prob: call.output("d_rejected_log_prob"),
    };
    let means: PairMeans<R> = batch
        .sum(beta, count, buffers, |pair| {
            loss_of_difference(pair, ScoreRule::reverse_kl(), |scores| {
                let [value, slope] = logistic(beta * scores, label_smoothing);
                [value, beta * slope]
            })
        })?
        .means(count);
    let responses =
        Responses { log_prob: batch.chosen_log_prob, length: call.index("chosen_length")?, mask: batch.mask };
    let (mean, tokens) = (call.choice("likelihood_mean")?, call.optional_number("likelihood_count"));
    let nll = negative_log_likelihood(&responses, mean, tokens, alpha, d_chosen)?;
    write_means(call, PairMeans { loss: means.loss + alpha * nll, ..means });
    call.write("nll_loss", nll);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.rpo",
    family: Family::Preference,
    title: "RPO: DPO with likelihood",
    summary: "The DPO loss plus alpha times the mean negative log-likelihood of the chosen responses.",
    formula: r"-\log\sigma(\beta\Delta) - \alpha\,\frac{\log\pi_\theta(y_w)}{|y_w|}",
    gradient: r"\beta\,\ell'(\beta\Delta)(1, -1)/N - \alpha\,(1/(N|y_w|), 0)",
    notes: "alpha multiplies the likelihood, not the DPO term. The paper counts the tokens of the chain of thought and the answer. \
            `pair_loss` is the preference term alone.",
    sources: &[
        Source {
            title: "Iterative Reasoning Preference Optimization",
            reference: "arXiv:2404.19733",
            place: "Eq. (1)",
        },
        DPO,
    ],
    inputs: &[CHOSEN_LOG_PROB, REJECTED_LOG_PROB, LENGTH, REF_CHOSEN_LOG_PROB, REF_REJECTED_LOG_PROB, PAIR_MASK],
    params: &[
        BETA,
        LABEL_SMOOTHING,
        ParamSpec::number("rpo_alpha", r"\alpha", 1.0, Range::NON_NEGATIVE, "weight of the likelihood term"),
        LIKELIHOOD_MEAN,
        PAIR_COUNT,
        LIKELIHOOD_COUNT,
    ],
    defaults: &[],
    outputs: &[
        LOSS,
        PAIR_LOSS,
        D_CHOSEN_LOG_PROB,
        D_REJECTED_LOG_PROB,
        NLL_LOSS,
        CHOSEN_REWARD,
        REJECTED_REWARD,
        MARGIN,
        ACCURACY,
    ],
    dialects: &[
        Dialect { name: "paper", note: "likelihood averaged over each response's own tokens", settings: &[] },
        Dialect { name: "trl-0.12", note: "likelihood averaged over all tokens of the batch", settings: &[TOKEN_MEAN] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use crate::catalog::find;
    use crate::spec::{Data, Given, GivenValue, Input, Output, evaluate};

    #[test]
    fn alpha_weighs_the_likelihood_not_the_preference() {
        // Log-ratios +1 and −1, β = 0.1, likelihood 0.8, α = 0.5: 0.598139 + 0.4; the other way round 1.099069.
        let real = |name, data| Input { name, shape: &[1], data: Data::Real(data) };
        let length = Input { name: "chosen_length", shape: &[1], data: Data::Index(&[10]) };
        let inputs = [
            real("chosen_log_prob", &[-8.0f64]),
            real("rejected_log_prob", &[-5.0]),
            real("ref_chosen_log_prob", &[-9.0]),
            real("ref_rejected_log_prob", &[-4.0]),
            length,
        ];
        let given = [Given { name: "rpo_alpha", value: GivenValue::Number(0.5) }];
        let (mut loss, mut gradient) = ([0.0], [0.0]);
        let mut outputs =
            [Output { name: "loss", data: &mut loss }, Output { name: "d_chosen_log_prob", data: &mut gradient }];
        evaluate(find("preference.rpo").unwrap(), None, &given, &inputs, &mut outputs).unwrap();
        assert!((loss[0] - 0.998139).abs() < 5e-7);
        // −β·σ(−0.2) − α/10.
        assert!((gradient[0] + 0.1 * 0.45016600268752216 + 0.05).abs() < 1e-15);
    }
}

//! Alignment via optimal transport: DPO's loss on quantiles of the batch instead of on pairs.

use super::arithmetic::{difference, times};
use super::dpo_sigmoid::logistic;
use super::pairs::{
    ACCURACY, BETA, CHOSEN_LOG_PROB, CHOSEN_REWARD, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB, LABEL_SMOOTHING, LOSS,
    MARGIN, PAIR_COUNT, PAIR_MASK, Pair, PairBatch, PairBuffers, PairSums, REF_CHOSEN_LOG_PROB, REF_REJECTED_LOG_PROB,
    REJECTED_LOG_PROB, REJECTED_REWARD, batch_of, buffers_of, pair_count, write_means,
};
use crate::Error;
use crate::num::Real;
use crate::spec::{Call, Dialect, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, evaluate_with};

/// What is sorted within the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// The policy's and the reference's log-prob gaps between chosen and rejected response, each by itself.
    Paired,
    /// The log-ratios of the chosen and those of the rejected responses, each by itself.
    Unpaired,
}

/// The pair whose key follows `last` in ascending order; equal keys in order of position.
fn next_in_order<R: Real>(
    batch: &PairBatch<'_, R>,
    last: Option<(R, usize)>,
    key: impl Fn(&Pair<R>, &Pair<R>) -> R,
) -> Result<Option<(R, usize)>, Error> {
    let policy = PairBatch { reference: None, ..*batch };
    let mut best: Option<(R, usize)> = None;
    for index in (0..batch.slots()).filter(|index| batch.keeps(*index)) {
        let candidate = (key(&policy.pair(index)?, &batch.pair(index)?), index);
        let after = last.is_none_or(|last| candidate > last);
        if after && best.is_none_or(|best| candidate < best) {
            best = Some(candidate);
        }
    }
    Ok(best)
}

/// The AOT loss: the logistic loss of the differences of sorted samples, summed over the batch.
///
/// Paired: the k-th smallest policy gap log π(y_w) − log π(y_l) minus the k-th smallest reference gap. Unpaired: the k-th smallest
/// chosen log-ratio minus the k-th smallest rejected one. Melnyk et al., "Distributional Preference Alignment of LLMs via Optimal
/// Transport", arXiv:2406.05882, Section 3, with the logistic loss. `pair_loss[k]` belongs to the k-th smallest of the pairs
/// that are there (0 beyond), while each gradient goes back to the position of its own log-prob. Ties are sorted by position.
/// Finds each next element by a scan, so the time is quadratic in the number of pairs and nothing is allocated.
///
/// ```
/// use plumbline_core::preference::{dpo_aot::{Sorting, aot}, pairs::{PairBatch, PairBuffers}};
/// let batch = PairBatch {
///     chosen_log_prob: &[3.0f64, 1.0],
///     rejected_log_prob: &[0.0, 2.0],
///     reference: None,
///     lengths: None,
///     weight: None,
///     mask: None,
/// };
/// let mut gradient = [0.0; 2];
/// let buffers = PairBuffers { d_chosen_log_prob: Some(&mut gradient), ..PairBuffers::default() };
/// // Sorted (1, 3) against (0, 2): both differences are 1.
/// let sums = aot(&batch, Sorting::Unpaired, 1.0, 0.0, 2.0, buffers).unwrap();
/// assert!((sums.means::<f64>(2.0).loss - 0.31326168751822286).abs() < 1e-15);
/// assert_eq!(gradient[0], gradient[1]);
/// ```
pub fn aot<R: Real>(
    batch: &PairBatch<'_, R>,
    sorting: Sorting,
    beta: R,
    label_smoothing: R,
    count: R,
    buffers: PairBuffers<'_, R>,
) -> Result<PairSums, Error> {
    batch.check()?;
    let PairBuffers { mut pair_loss, mut d_chosen_log_prob, mut d_rejected_log_prob } = buffers;
    for buffer in [&mut pair_loss, &mut d_chosen_log_prob, &mut d_rejected_log_prob].into_iter().flatten() {
        buffer.fill(R::zero());
    }
    let mut write = |buffer: usize, index: usize, value: R| {
        let buffer = match buffer {
            0 => &mut pair_loss,
            1 => &mut d_chosen_log_prob,
            _ => &mut d_rejected_log_prob,
        };
        if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
            *slot = value;
        }
    };
    let upper_key = |policy: &Pair<R>, ratio: &Pair<R>| match sorting {
        Sorting::Paired => difference(policy.chosen_log_ratio, policy.rejected_log_ratio),
        Sorting::Unpaired => ratio.chosen_log_ratio,
    };
    // What the policy's gap exceeds the gap of log-ratios by is the reference's gap.
    let references = PairBatch {
        chosen_log_prob: batch.reference.map_or(batch.chosen_log_prob, |[chosen, _]| chosen),
        rejected_log_prob: batch.reference.map_or(batch.rejected_log_prob, |[_, rejected]| rejected),
        reference: None,
        ..*batch
    };
    let lower_batch = if sorting == Sorting::Paired { references } else { *batch };
    let lower_key = |reference: &Pair<R>, ratio: &Pair<R>| match sorting {
        Sorting::Paired if batch.reference.is_none() => R::zero(),
        Sorting::Paired => difference(reference.chosen_log_ratio, reference.rejected_log_ratio),
        Sorting::Unpaired => ratio.rejected_log_ratio,
    };
    let mut sums = PairSums::default();
    let (mut upper, mut lower) = (None, None);
    for position in 0..batch.slots() {
        upper = next_in_order(batch, upper, upper_key)?;
        lower = next_in_order(&lower_batch, lower, lower_key)?;
        let (Some((high, chosen)), Some((low, rejected))) = (upper, lower) else { break };
        let [value, slope] = logistic(beta * difference(high, low), label_smoothing);
        let gradient = times(beta, slope) / count;
        let pair = batch.pair(chosen)?;
        sums.add(value, beta * pair.chosen_log_ratio, beta * pair.rejected_log_ratio);
        write(0, position, value);
        write(1, chosen, gradient);
        write(2, if sorting == Sorting::Paired { chosen } else { rejected }, -gradient);
    }
    if sums.pairs() == 0 {
        return Err(Error::EmptyMask { argument: "chosen_log_prob" });
    }
    Ok(sums)
}

fn evaluate_sorted<R: Real>(call: &mut Call<'_, R>, sorting: Sorting) -> Result<(), Error> {
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    let (beta, label_smoothing) = (call.number("beta")?, call.number("label_smoothing")?);
    let buffers = buffers_of(call);
    let means = aot(&batch, sorting, beta, label_smoothing, count, buffers)?.means(count);
    write_means(call, means);
    Ok(())
}

fn evaluate_paired<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_sorted(call, Sorting::Paired)
}

fn evaluate_unpaired<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_sorted(call, Sorting::Unpaired)
}

const AOT: &str = "Distributional Preference Alignment of LLMs via Optimal Transport";
const INPUTS: &[InputSpec] =
    &[CHOSEN_LOG_PROB, REJECTED_LOG_PROB, REF_CHOSEN_LOG_PROB, REF_REJECTED_LOG_PROB, PAIR_MASK];
const PARAMS: &[ParamSpec] = &[BETA, LABEL_SMOOTHING, PAIR_COUNT];
const OUTPUTS: &[OutputSpec] = &[
    LOSS,
    OutputSpec::value("pair_loss", &["N"], "loss of each quantile, ascending; 0 past the number of pairs"),
    D_CHOSEN_LOG_PROB,
    D_REJECTED_LOG_PROB,
    CHOSEN_REWARD,
    REJECTED_REWARD,
    MARGIN,
    ACCURACY,
];
const DIALECTS: &[Dialect] = &[
    Dialect { name: "paper", note: "logistic loss", settings: &[] },
    Dialect { name: "trl-1.16", note: "as in the paper, with label smoothing", settings: &[] },
    Dialect {
        name: "trl-0.12",
        note: "as in the paper, with label smoothing (unpaired is called aot_pair)",
        settings: &[],
    },
];
const NOTES: &str = "Ties are sorted by position (PyTorch leaves their order open; it only decides which of the equal ones gets \
                     which gradient). Sorting needs the whole batch, so a shard gives the loss of its own pairs. TRL multiplies \
                     the k-th quantile by the k-th pair's WPO weight; no weight is offered here.";

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.dpo_aot",
        family: Family::Preference,
        title: "AOT (paired)",
        summary: "The logistic loss between the sorted log-prob gaps of the policy and those of the reference.",
        formula: r"\tfrac1N\sum_k \ell\!\left(\beta\,[g_{(k)} - g^{\mathrm{ref}}_{(k)}]\right),\quad g = \log\pi_\theta(y_w) - \log\pi_\theta(y_l),\ \ell(x) = -(1-\varepsilon)\log\sigma(x) - \varepsilon\log\sigma(-x)",
        gradient: r"\beta\,\ell'(x_{k(i)})\,(1, -1)/N",
        notes: NOTES,
        sources: &[Source { title: AOT, reference: "arXiv:2406.05882", place: "Section 3, AOT paired" }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: DIALECTS,
        evaluate: evaluate_with!(evaluate_paired),
    },
    Operation {
        id: "preference.dpo_aot_unpaired",
        family: Family::Preference,
        title: "AOT (unpaired)",
        summary: "The logistic loss between the sorted log-ratios of the chosen responses and those of the rejected ones.",
        formula: r"\tfrac1N\sum_k \ell\!\left(\beta\,[c_{(k)} - r_{(k)}]\right)",
        gradient: r"\beta\,(\ell'(x_{k_w(i)}), -\ell'(x_{k_l(i)}))/N",
        notes: NOTES,
        sources: &[Source { title: AOT, reference: "arXiv:2406.05882", place: "Section 3, AOT unpaired" }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: DIALECTS,
        evaluate: evaluate_with!(evaluate_unpaired),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_visited_once_even_where_keys_are_equal() {
        let batch = PairBatch {
            chosen_log_prob: &[-1.0, -1.0, -2.0, f64::NAN, -1.0],
            rejected_log_prob: &[-3.0, -3.0, -3.0, 0.0, -5.0],
            reference: None,
            lengths: None,
            weight: None,
            mask: Some(&[1, 1, 1, 0, 1]),
        };
        let (mut loss, mut gradient) = ([9.0; 5], [9.0; 5]);
        let buffers = PairBuffers {
            pair_loss: Some(&mut loss),
            d_chosen_log_prob: Some(&mut gradient),
            d_rejected_log_prob: None,
        };
        let sums = aot(&batch, Sorting::Paired, 0.5, 0.1, 4.0, buffers).unwrap();
        assert_eq!(sums.pairs(), 4);
        // Gaps 2, 2, 1, 4: sorted 1, 2, 2, 4 against a reference of zeros.
        let expected = [0.5, 1.0, 1.0, 2.0].map(|x| logistic(x, 0.1)[0]);
        assert_eq!(loss[..4], expected);
        assert_eq!((loss[4], gradient[3].to_bits()), (0.0, 0));
        assert_eq!(gradient[0], gradient[1]);
        assert_eq!(gradient[4], 0.5 * logistic(2.0, 0.1)[1] / 4.0);
    }
}

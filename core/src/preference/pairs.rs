//! Chosen and rejected responses: the view of a batch of pairs, and the mean of a pair loss over it with its gradient
//! and the metrics that every preference trainer prints. The losses themselves are in files of their own.

use super::arithmetic::{difference, times};
use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Domain, InputSpec, OutputSpec, ParamSpec, Range};

/// What a pair loss sees of one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<R> {
    /// log π(y_w) − log π_ref(y_w) of the chosen response (nats); log π(y_w) where there is no reference.
    pub chosen_log_ratio: R,
    /// The same of the rejected response.
    pub rejected_log_ratio: R,
    /// Number of tokens of the chosen response, at least 1.
    pub chosen_length: R,
    /// Number of tokens of the rejected response, at least 1.
    pub rejected_length: R,
}

/// The loss of one pair and its partial derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTerm<R> {
    /// The loss.
    pub value: R,
    /// Derivative by the chosen log-ratio, which is that by the policy's log-prob of the chosen response.
    pub d_chosen: R,
    /// The same for the rejected response.
    pub d_rejected: R,
}

/// N pairs by the summed log-probs of their responses.
#[derive(Clone, Copy, Debug)]
pub struct PairBatch<'a, R> {
    /// log π of the chosen responses, summed over their tokens.
    pub chosen_log_prob: &'a [R],
    /// log π of the rejected responses.
    pub rejected_log_prob: &'a [R],
    /// log π_ref of the chosen and the rejected responses; none is the reference-free form.
    pub reference: Option<[&'a [R]; 2]>,
    /// Number of tokens of the chosen and the rejected responses, where the loss divides by it; 0 counts as 1.
    pub lengths: Option<[&'a [u32]; 2]>,
    /// Constant factor of each pair's loss; none is 1.
    pub weight: Option<&'a [R]>,
    /// Which pairs are there; none is all.
    pub mask: Option<&'a [u8]>,
}

/// Where per-pair results go; absent buffers are skipped.
#[derive(Debug, Default)]
pub struct PairBuffers<'a, R> {
    /// The loss of each pair.
    pub pair_loss: Option<&'a mut [R]>,
    /// Gradient of the mean loss by each chosen log-prob.
    pub d_chosen_log_prob: Option<&'a mut [R]>,
    /// Gradient of the mean loss by each rejected log-prob.
    pub d_rejected_log_prob: Option<&'a mut [R]>,
}

/// Sums over pairs that merge across shards, and the means that they end in.
#[derive(Clone, Debug, Default)]
pub struct PairSums {
    loss: ExactSum,
    chosen_reward: ExactSum,
    rejected_reward: ExactSum,
    margin: ExactSum,
    correct: usize,
    pairs: usize,
}

/// Means over the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairMeans<R> {
    /// The loss.
    pub loss: R,
    /// Implicit reward β·log-ratio of the chosen responses.
    pub chosen_reward: R,
    /// Implicit reward of the rejected responses.
    pub rejected_reward: R,
    /// Chosen minus rejected reward.
    pub margin: R,
    /// Share of pairs whose chosen reward is the larger one; equal is not larger.
    pub accuracy: R,
}

impl PairSums {
    /// Add the sums of another shard.
    pub fn merge(&mut self, other: &PairSums) {
        self.loss.merge(&other.loss);
        self.chosen_reward.merge(&other.chosen_reward);
        self.rejected_reward.merge(&other.rejected_reward);
        self.margin.merge(&other.margin);
        self.correct += other.correct;
        self.pairs += other.pairs;
    }

    /// How many pairs were added.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The means over `count` pairs. Where losses of +∞ and −∞ meet, +∞ wins.
    pub fn means<R: Real>(&self, count: R) -> PairMeans<R> {
        let loss = self.loss.value::<R>();
        PairMeans {
            loss: if loss.is_nan() { R::infinity() } else { loss } / count,
            chosen_reward: self.chosen_reward.value::<R>() / count,
            rejected_reward: self.rejected_reward.value::<R>() / count,
            margin: self.margin.value::<R>() / count,
            accuracy: R::from_count(self.correct) / count,
        }
    }

    /// Add one pair. For the metrics a reward beyond the number type's range counts as its largest number.
    pub(super) fn add<R: Real>(&mut self, loss: R, chosen_reward: R, rejected_reward: R) {
        let in_range = |reward: R| reward.clip(R::min_value(), R::max_value());
        self.loss.add(loss);
        self.chosen_reward.add(in_range(chosen_reward));
        self.rejected_reward.add(in_range(rejected_reward));
        self.margin.add(in_range(difference(chosen_reward, rejected_reward)));
        self.correct += usize::from(chosen_reward > rejected_reward);
        self.pairs += 1;
    }
}

fn finite_at<R: Real>(argument: &'static str, values: &[R], index: usize) -> Result<R, Error> {
    match values.get(index) {
        Some(value) if value.is_finite() => Ok(*value),
        _ => Err(Error::NonFinite { argument, index }),
    }
}

fn check_length<T>(argument: &'static str, values: &[T], expected: usize) -> Result<(), Error> {
    if values.len() == expected { Ok(()) } else { Err(Error::LengthMismatch { argument, expected, got: values.len() }) }
}

impl<R: Real> PairBatch<'_, R> {
    /// N: the number of slots, absent pairs included.
    pub fn slots(&self) -> usize {
        self.chosen_log_prob.len()
    }

    /// Whether the pair is there.
    pub fn keeps(&self, index: usize) -> bool {
        self.mask.is_none_or(|mask| mask.get(index).is_some_and(|byte| *byte != 0))
    }

    /// How many pairs are there.
    pub fn pairs(&self) -> usize {
        (0..self.slots()).filter(|index| self.keeps(*index)).count()
    }

    /// Check that every slice has N elements.
    pub fn check(&self) -> Result<(), Error> {
        let slots = self.slots();
        check_length("rejected_log_prob", self.rejected_log_prob, slots)?;
        if let Some([chosen, rejected]) = self.reference {
            check_length("ref_chosen_log_prob", chosen, slots)?;
            check_length("ref_rejected_log_prob", rejected, slots)?;
        }
        if let Some([chosen, rejected]) = self.lengths {
            check_length("chosen_length", chosen, slots)?;
            check_length("rejected_length", rejected, slots)?;
        }
        if let Some(weight) = self.weight {
            check_length("weight", weight, slots)?;
        }
        if let Some(mask) = self.mask {
            check_length("mask", mask, slots)?;
        }
        Ok(())
    }

    /// One pair; an error where one of its numbers is not finite.
    pub fn pair(&self, index: usize) -> Result<Pair<R>, Error> {
        let chosen = finite_at("chosen_log_prob", self.chosen_log_prob, index)?;
        let rejected = finite_at("rejected_log_prob", self.rejected_log_prob, index)?;
        let [ref_chosen, ref_rejected] = match self.reference {
            Some([chosen, rejected]) => {
                [finite_at("ref_chosen_log_prob", chosen, index)?, finite_at("ref_rejected_log_prob", rejected, index)?]
            }
            None => [R::zero(); 2],
        };
        let length = |side: usize| {
            let lengths = self.lengths.and_then(|lengths| lengths.get(side).copied());
            R::from_count(lengths.and_then(|lengths| lengths.get(index)).map_or(1, |length| (*length).max(1)) as usize)
        };
        Ok(Pair {
            chosen_log_ratio: chosen - ref_chosen,
            rejected_log_ratio: rejected - ref_rejected,
            chosen_length: length(0),
            rejected_length: length(1),
        })
    }

    /// The pair's weight; an error where it is not finite.
    pub fn weight(&self, index: usize) -> Result<R, Error> {
        match self.weight {
            Some(weight) => finite_at("weight", weight, index),
            None => Ok(R::one()),
        }
    }

    /// Sum a pair loss over the batch and write the per-pair results. `count` is the number of pairs that gradients
    /// are divided by: that of this batch, or that of the full batch where this is a shard. The reward of a response
    /// is β times its log-ratio.
    pub fn sum(
        &self,
        beta: R,
        count: R,
        buffers: PairBuffers<'_, R>,
        loss: impl FnMut(&Pair<R>) -> PairTerm<R>,
    ) -> Result<PairSums, Error> {
        self.sum_with_rewards(
            count,
            buffers,
            |pair| [beta * pair.chosen_log_ratio, beta * pair.rejected_log_ratio],
            loss,
        )
    }

    /// The same with another definition of the chosen and the rejected reward.
    pub fn sum_with_rewards(
        &self,
        count: R,
        buffers: PairBuffers<'_, R>,
        rewards: impl Fn(&Pair<R>) -> [R; 2],
        mut loss: impl FnMut(&Pair<R>) -> PairTerm<R>,
    ) -> Result<PairSums, Error> {
        self.check()?;
        let PairBuffers { mut pair_loss, mut d_chosen_log_prob, mut d_rejected_log_prob } = buffers;
        let mut sums = PairSums::default();
        for index in 0..self.slots() {
            let mut results = [R::zero(); 3];
            if self.keeps(index) {
                let pair = self.pair(index)?;
                let weight = self.weight(index)?;
                let term = loss(&pair);
                let value = times(weight, term.value);
                results = [value, times(weight, term.d_chosen) / count, times(weight, term.d_rejected) / count];
                let [chosen, rejected] = rewards(&pair);
                sums.add(value, chosen, rejected);
            }
            for (buffer, result) in
                [&mut pair_loss, &mut d_chosen_log_prob, &mut d_rejected_log_prob].into_iter().zip(results)
            {
                if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(index)) {
                    *slot = result;
                }
            }
        }
        if sums.pairs == 0 {
            return Err(Error::EmptyMask { argument: "chosen_log_prob" });
        }
        Ok(sums)
    }
}

/// An optional pair of inputs: both or neither.
pub(super) fn both<T>(
    chosen: Option<T>,
    rejected: Option<T>,
    names: [&'static str; 2],
) -> Result<Option<[T; 2]>, Error> {
    let [chosen_name, rejected_name] = names;
    match (chosen, rejected) {
        (Some(chosen), Some(rejected)) => Ok(Some([chosen, rejected])),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::MissingInput { argument: chosen_name }),
        (Some(_), None) => Err(Error::MissingInput { argument: rejected_name }),
    }
}

/// The batch of pairs that a call's inputs describe.
pub(super) fn batch_of<'c, R: Real>(call: &Call<'c, R>) -> Result<PairBatch<'c, R>, Error> {
    let batch = PairBatch {
        chosen_log_prob: call.real("chosen_log_prob")?,
        rejected_log_prob: call.real("rejected_log_prob")?,
        reference: both(
            call.optional_real("ref_chosen_log_prob"),
            call.optional_real("ref_rejected_log_prob"),
            ["ref_chosen_log_prob", "ref_rejected_log_prob"],
        )?,
        lengths: both(
            call.optional_index("chosen_length"),
            call.optional_index("rejected_length"),
            ["chosen_length", "rejected_length"],
        )?,
        weight: call.optional_real("weight"),
        mask: call.optional_bytes("mask"),
    };
    batch.check()?;
    Ok(batch)
}

/// The number of pairs that means are taken over.
pub(super) fn pair_count<R: Real>(call: &Call<'_, R>, batch: &PairBatch<'_, R>) -> Result<R, Error> {
    match call.optional_number("pair_count") {
        Some(count) => Ok(count),
        None => match batch.pairs() {
            0 => Err(Error::EmptyMask { argument: "chosen_log_prob" }),
            pairs => Ok(R::from_count(pairs)),
        },
    }
}

/// Write the means that every pair loss reports.
pub(super) fn write_means<R: Real>(call: &mut Call<'_, R>, means: PairMeans<R>) {
    call.write("loss", means.loss);
    call.write("chosen_reward", means.chosen_reward);
    call.write("rejected_reward", means.rejected_reward);
    call.write("margin", means.margin);
    call.write("accuracy", means.accuracy);
}

/// The per-pair outputs that the caller asked for.
pub(super) fn buffers_of<'c, R: Real>(call: &mut Call<'c, R>) -> PairBuffers<'c, R> {
    PairBuffers {
        pair_loss: call.output("pair_loss"),
        d_chosen_log_prob: call.output("d_chosen_log_prob"),
        d_rejected_log_prob: call.output("d_rejected_log_prob"),
    }
}

/// Evaluate an operation that is the mean of a pair loss.
pub(super) fn evaluate_pairs<R: Real>(
    call: &mut Call<'_, R>,
    loss: impl FnMut(&Pair<R>) -> PairTerm<R>,
) -> Result<(), Error> {
    let batch = batch_of(call)?;
    let count = pair_count(call, &batch)?;
    let beta = call.number("beta")?;
    let buffers = buffers_of(call);
    let means = batch.sum(beta, count, buffers, loss)?.means(count);
    write_means(call, means);
    Ok(())
}

const N: &[&[&str]] = &[&["N"]];

/// Input: log π of the chosen responses.
pub(super) const CHOSEN_LOG_PROB: InputSpec = InputSpec::new(
    "chosen_log_prob",
    Domain::LogProb,
    N,
    "log-probability of the chosen response under the policy, summed over its tokens (nats)",
);
/// Input: log π of the rejected responses.
pub(super) const REJECTED_LOG_PROB: InputSpec =
    InputSpec::new("rejected_log_prob", Domain::LogProb, N, "the same of the rejected response (nats)");
/// Input: log π_ref of the chosen responses.
pub(super) const REF_CHOSEN_LOG_PROB: InputSpec = InputSpec::new(
    "ref_chosen_log_prob",
    Domain::LogProb,
    N,
    "log-probability of the chosen response under the reference (nats); without both references the loss is reference-free",
)
.optional();
/// Input: log π_ref of the rejected responses.
pub(super) const REF_REJECTED_LOG_PROB: InputSpec =
    InputSpec::new("ref_rejected_log_prob", Domain::LogProb, N, "the same of the rejected response (nats)").optional();
/// Input: tokens of the chosen responses.
pub(super) const CHOSEN_LENGTH: InputSpec = InputSpec::new(
    "chosen_length",
    Domain::Count,
    N,
    "number of tokens of the chosen response; needed where the loss divides by it, 0 counts as 1",
)
.optional();
/// Input: tokens of the rejected responses.
pub(super) const REJECTED_LENGTH: InputSpec =
    InputSpec::new("rejected_length", Domain::Count, N, "the same of the rejected response").optional();
/// Input: a constant factor of each pair.
pub(super) const WEIGHT: InputSpec = InputSpec::new(
    "weight",
    Domain::NonNegative,
    N,
    "constant factor of each pair's loss (no gradient flows to it); without it 1",
)
.optional();
/// Input: which pairs are there.
pub(super) const PAIR_MASK: InputSpec =
    InputSpec::new("mask", Domain::Mask, N, "1 where there is a pair, 0 where it is absent; without it all count")
        .optional();

/// The inputs of a loss over pairs with a reference, lengths included.
pub(super) const INPUTS_WITH_LENGTHS: &[InputSpec] = &[
    CHOSEN_LOG_PROB,
    REJECTED_LOG_PROB,
    REF_CHOSEN_LOG_PROB,
    REF_REJECTED_LOG_PROB,
    CHOSEN_LENGTH,
    REJECTED_LENGTH,
    WEIGHT,
    PAIR_MASK,
];
/// The same without lengths.
pub(super) const INPUTS: &[InputSpec] =
    &[CHOSEN_LOG_PROB, REJECTED_LOG_PROB, REF_CHOSEN_LOG_PROB, REF_REJECTED_LOG_PROB, WEIGHT, PAIR_MASK];

/// The outputs of a loss over pairs.
pub(super) const OUTPUTS: &[OutputSpec] =
    &[LOSS, PAIR_LOSS, D_CHOSEN_LOG_PROB, D_REJECTED_LOG_PROB, CHOSEN_REWARD, REJECTED_REWARD, MARGIN, ACCURACY];

/// Output: the mean loss.
pub(super) const LOSS: OutputSpec = OutputSpec::value("loss", &[], "mean over the pairs");
/// Output: each pair's loss.
pub(super) const PAIR_LOSS: OutputSpec =
    OutputSpec::value("pair_loss", &["N"], "loss of each pair, its weight included; 0 where absent");
/// Output: gradient by the chosen log-probs.
pub(super) const D_CHOSEN_LOG_PROB: OutputSpec =
    OutputSpec::gradient("d_chosen_log_prob", "chosen_log_prob", &["N"], "gradient of the loss");
/// Output: gradient by the rejected log-probs.
pub(super) const D_REJECTED_LOG_PROB: OutputSpec =
    OutputSpec::gradient("d_rejected_log_prob", "rejected_log_prob", &["N"], "gradient of the loss");
/// Output: mean chosen reward.
pub(super) const CHOSEN_REWARD: OutputSpec =
    OutputSpec::value("chosen_reward", &[], "mean implicit reward beta * log-ratio of the chosen responses");
/// Output: mean rejected reward.
pub(super) const REJECTED_REWARD: OutputSpec =
    OutputSpec::value("rejected_reward", &[], "mean implicit reward of the rejected responses");
/// Output: mean margin.
pub(super) const MARGIN: OutputSpec = OutputSpec::value("margin", &[], "mean of chosen minus rejected reward");
/// Output: accuracy.
pub(super) const ACCURACY: OutputSpec =
    OutputSpec::value("accuracy", &[], "share of pairs whose chosen reward is larger; a tie is not larger");

/// Parameter: β.
pub(super) const BETA: ParamSpec = ParamSpec::number(
    "beta",
    r"\beta",
    0.1,
    Range::POSITIVE,
    "scale of the implicit reward: how strongly the policy is held to the reference",
);
/// Parameter: label smoothing.
pub(super) const LABEL_SMOOTHING: ParamSpec = ParamSpec::number(
    "label_smoothing",
    r"\varepsilon",
    0.0,
    Range::BELOW_HALF,
    "probability that the two labels of a pair are swapped",
);
/// Parameter: the full batch's number of pairs.
pub(super) const PAIR_COUNT: ParamSpec = ParamSpec::optional(
    "pair_count",
    "N",
    None,
    Range::POSITIVE,
    "number of pairs that means are taken over where the inputs are a shard of a larger batch: the results of the shards then add up; off: the pairs given",
);

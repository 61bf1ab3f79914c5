//! The aggregation modes as data: a divisor for each row and one for the whole batch.
//!
//! Every mode has the form loss = s/D · Σ_i (Σ_t m_it ℓ_it) / d_i, so that the weight of a token, s/(D·d_i), is the same
//! for all tokens of a row:
//!
//! | mode | d_i | D |
//! |---|---|---|
//! | `token_mean` | 1 | number of tokens |
//! | `token_sum` | 1 | 1 |
//! | `seq_mean_token_sum` | 1 | number of responses |
//! | `seq_mean_token_mean` | L_i + `length_eps` | number of responses |
//! | `seq_mean_token_sum_norm` | 1 | number of responses · L_max |
//! | `group_mean_token_mean` | tokens in the row's group | number of groups |
//!
//! s is `world_size` · `loss_scale`. Whether an empty response is among "responses" is [`EmptyRow`].

use super::Totals;
use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::Real;
use crate::spec::{Call, Choice, ParamSpec, Range, choice};

choice! {
    /// What the sum of per-token losses is divided by.
    pub enum Aggregation {
        /// By the number of tokens in the batch.
        TokenMean = "token_mean",
        /// By nothing.
        TokenSum = "token_sum",
        /// Sum inside a response, mean over responses.
        SeqMeanTokenSum = "seq_mean_token_sum",
        /// Mean inside a response, mean over responses.
        SeqMeanTokenMean = "seq_mean_token_mean",
        /// Sum inside a response divided by a constant length, mean over responses.
        SeqMeanTokenSumNorm = "seq_mean_token_sum_norm",
        /// Mean over the tokens of a prompt's group, mean over groups.
        GroupMeanTokenMean = "group_mean_token_mean",
    }
}

choice! {
    /// Whether a response without tokens counts in a mean over responses.
    pub enum EmptyRow {
        /// It does not (the papers, verl from 0.6).
        Exclude = "exclude",
        /// It counts as zero (TRL, verl before 0.6).
        CountAsZero = "count_as_zero",
    }
}

/// An aggregation mode with everything it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Reduction<R> {
    /// The mode.
    pub aggregation: Aggregation,
    /// Whether empty responses count.
    pub empty_row: EmptyRow,
    /// Added to L_i where a response's mean is taken.
    pub length_eps: R,
    /// L_max of `seq_mean_token_sum_norm`; the padded width where it is not given.
    pub length_normaliser: Option<R>,
    /// The global token count, instead of the batch's own.
    pub token_count: Option<R>,
    /// The global number of responses, instead of the batch's own.
    pub sequence_count: Option<R>,
    /// Multiplies the loss: the number of ranks whose losses will be averaged.
    pub world_size: R,
    /// Multiplies the loss: 1/K where K micro-batch losses will be summed.
    pub loss_scale: R,
}

/// The parameters of a reduction in the catalog.
pub const REDUCTION_PARAMS: [ParamSpec; 8] = [
    ParamSpec::choice(
        "aggregation",
        "token_mean",
        Aggregation::NAMES,
        "what the sum of per-token losses is divided by",
    ),
    ParamSpec::choice(
        "empty_row",
        "exclude",
        EmptyRow::NAMES,
        "whether a response without tokens counts in a mean over responses",
    ),
    ParamSpec::number(
        "length_eps",
        r"\epsilon_L",
        0.0,
        Range::NON_NEGATIVE,
        "added to the response length in the mean inside a response",
    ),
    ParamSpec::optional(
        "length_normaliser",
        r"L_{\max}",
        None,
        Range::POSITIVE,
        "the constant length of seq_mean_token_sum_norm (tokens); the padded width where it is off",
    ),
    ParamSpec::optional(
        "token_count",
        r"N",
        None,
        Range::POSITIVE,
        "global number of tokens for token_mean; the batch's own where it is off",
    ),
    ParamSpec::optional(
        "sequence_count",
        r"n",
        None,
        Range::POSITIVE,
        "global number of responses for the means over responses; the batch's own where it is off",
    ),
    ParamSpec::number("world_size", r"w", 1.0, Range::POSITIVE, "multiplies the loss: ranks whose losses are averaged"),
    ParamSpec::number(
        "loss_scale",
        r"s",
        1.0,
        Range::POSITIVE,
        "multiplies the loss: 1/K where K micro-batch losses are summed",
    ),
];

impl<R: Real> Reduction<R> {
    /// The mode alone, over the batch's own counts.
    pub fn new(aggregation: Aggregation) -> Self {
        Reduction {
            aggregation,
            empty_row: EmptyRow::Exclude,
            length_eps: R::zero(),
            length_normaliser: None,
            token_count: None,
            sequence_count: None,
            world_size: R::one(),
            loss_scale: R::one(),
        }
    }

    /// Read [`REDUCTION_PARAMS`] from a call.
    pub fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Reduction {
            aggregation: call.choice("aggregation")?,
            empty_row: call.choice("empty_row")?,
            length_eps: call.number("length_eps")?,
            length_normaliser: call.optional_number("length_normaliser"),
            token_count: call.optional_number("token_count"),
            sequence_count: call.optional_number("sequence_count"),
            world_size: call.number("world_size")?,
            loss_scale: call.number("loss_scale")?,
        })
    }

    /// The divisor D of the whole batch. `EmptyMask` where there is nothing to reduce.
    pub fn divisor(&self, totals: &Totals) -> Result<R, Error> {
        if totals.tokens == 0 {
            return Err(Error::EmptyMask { argument: "mask" });
        }
        let rows = self.sequence_count.unwrap_or(R::from_count(match self.empty_row {
            EmptyRow::Exclude => totals.nonempty_rows,
            EmptyRow::CountAsZero => totals.rows,
        }));
        Ok(match self.aggregation {
            Aggregation::TokenMean => self.token_count.unwrap_or(R::from_count(totals.tokens)),
            Aggregation::TokenSum => R::one(),
            Aggregation::SeqMeanTokenSum | Aggregation::SeqMeanTokenMean => rows,
            Aggregation::SeqMeanTokenSumNorm => rows * self.length_normaliser.unwrap_or(R::from_count(totals.columns)),
            Aggregation::GroupMeanTokenMean => {
                if totals.groups == 0 {
                    return Err(Error::MissingInput { argument: "group" });
                }
                R::from_count(totals.groups)
            }
        })
    }

    /// The divisor d_i of a row that holds `length` > 0 tokens.
    pub fn row_divisor(&self, row: usize, length: usize, mask: &Mask<'_>, groups: Option<Groups<'_>>) -> R {
        match self.aggregation {
            Aggregation::SeqMeanTokenMean => R::from_count(length) + self.length_eps,
            Aggregation::GroupMeanTokenMean => {
                let tokens = groups.map_or(length, |groups| groups.members_of(row).map(|row| mask.length(row)).sum());
                R::from_count(tokens)
            }
            _ => R::one(),
        }
    }

    /// The factor s = world_size · loss_scale.
    pub fn scale(&self) -> R {
        self.world_size * self.loss_scale
    }
}

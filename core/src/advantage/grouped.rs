//! Rewards of responses that belong to groups, their statistics, and the choices that implementations make.
//!
//! Statistics are taken in `f64` for both number types, from sums that do not depend on order, and rounded once at the
//! end: permuting the responses permutes the results bit for bit.

use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Choice, Domain, InputSpec, OutputSpec, ParamKind, ParamSpec, Range, choice};

choice! {
    /// What a response gets whose group has no other (scored) member, where the statistic needs two.
    pub enum GroupOfOne {
        /// The typed error `GroupTooSmall`.
        Error = "error",
        /// No signal: the advantage is 0 (TRL).
        Zero = "zero",
        /// The reward itself: baseline 0, deviation 1 (verl).
        Reward = "reward",
    }
}

choice! {
    /// Where the small number goes that keeps the division by a deviation finite.
    pub enum EpsPlacement {
        /// std + eps.
        StdPlusEps = "std_plus_eps",
        /// max(std, eps).
        MaxStdEps = "max_std_eps",
        /// sqrt(var + eps).
        SqrtVarPlusEps = "sqrt_var_plus_eps",
    }
}

/// How a deviation is estimated and divided by.
#[derive(Clone, Copy, Debug)]
pub struct Deviation<R> {
    /// Subtracted from the count in the variance's denominator: 1 is the sample deviation (`torch.std`), 0 the
    /// population's.
    pub ddof: usize,
    /// The small number that keeps the division finite; may be 0, then a group without spread still gives 0.
    pub eps: R,
    /// Where `eps` goes.
    pub eps_placement: EpsPlacement,
}

impl<R: Real> Deviation<R> {
    pub(super) fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Deviation {
            ddof: call.integer(DDOF.name)?,
            eps: call.number("eps")?,
            eps_placement: call.choice(EPS_PLACEMENT.name)?,
        })
    }
}

/// One reward per response, the groups that the responses belong to, and which of them have a reward at all.
#[derive(Clone, Copy, Debug)]
pub struct GroupedRewards<'a, R> {
    values: &'a [R],
    groups: Groups<'a>,
    scored: Option<&'a [u8]>,
}

impl<'a, R: Real> GroupedRewards<'a, R> {
    /// A checked view. A response whose byte in `scored` is 0 has no reward: it is absent from every statistic, what
    /// stands in its place is not read, and its advantage is +0.
    ///
    /// Errors: `LengthMismatch` where `group` or `scored` is not as long as `reward`; `NonFinite` for a scored reward.
    pub fn new(values: &'a [R], groups: Groups<'a>, scored: Option<&'a [u8]>) -> Result<Self, Error> {
        let expected = values.len();
        if groups.rows() != expected {
            return Err(Error::LengthMismatch { argument: GROUP.name, expected, got: groups.rows() });
        }
        if let Some(bytes) = scored
            && bytes.len() != expected
        {
            return Err(Error::LengthMismatch { argument: SCORED.name, expected, got: bytes.len() });
        }
        let rewards = GroupedRewards { values, groups, scored };
        match (0..expected).find(|row| rewards.get(*row).is_some_and(|reward| !reward.is_finite())) {
            Some(index) => Err(Error::NonFinite { argument: REWARD.name, index }),
            None => Ok(rewards),
        }
    }

    pub(super) fn from_call(call: &Call<'a, R>) -> Result<Self, Error> {
        Self::new(call.real(REWARD.name)?, Groups::new(call.index(GROUP.name)?), call.optional_bytes(SCORED.name))
    }

    /// How many responses there are, scored or not.
    pub fn rows(&self) -> usize {
        self.values.len()
    }

    /// The reward of a response, where it has one.
    pub fn get(&self, row: usize) -> Option<R> {
        let scored = self.scored.is_none_or(|bytes| bytes.get(row).is_some_and(|byte| *byte != 0));
        if scored { self.values.get(row).copied() } else { None }
    }

    /// The first response of each group.
    pub fn leaders(self) -> impl Iterator<Item = usize> + 'a {
        self.groups.leaders()
    }

    /// The scored responses of a group with their rewards.
    pub fn members(self, leader: usize) -> impl Iterator<Item = (usize, R)> + Clone + 'a {
        self.groups.members(leader).filter_map(move |row| self.get(row).map(|reward| (row, reward)))
    }

    /// All scored responses with their rewards.
    pub fn scored(self) -> impl Iterator<Item = (usize, R)> + Clone + 'a {
        (0..self.values.len()).filter_map(move |row| self.get(row).map(|reward| (row, reward)))
    }

    pub(super) fn check_output(&self, out: &[R]) -> Result<(), Error> {
        if out.len() == self.rows() {
            Ok(())
        } else {
            Err(Error::LengthMismatch { argument: ADVANTAGE.name, expected: self.rows(), got: out.len() })
        }
    }

    /// Fill `out` with +0, then each group of two or more by `fill(group, write)`; smaller groups by the rule.
    pub(super) fn for_each_group(
        self,
        group_of_one: GroupOfOne,
        singleton_deviation: f64,
        out: &mut [R],
        mut fill: impl FnMut(usize, &mut [R]),
    ) -> Result<(), Error> {
        self.check_output(out)?;
        out.fill(R::zero());
        for leader in self.leaders() {
            let mut members = self.members(leader);
            let (Some((row, reward)), second) = (members.next(), members.next()) else { continue };
            if second.is_some() {
                fill(leader, out);
                continue;
            }
            match group_of_one {
                GroupOfOne::Error => return Err(Error::GroupTooSmall { index: leader, size: 1, needed: 2 }),
                GroupOfOne::Zero => {}
                GroupOfOne::Reward => set(out, row, R::from_f64(reward.to_f64() / singleton_deviation)),
            }
        }
        Ok(())
    }
}

pub(super) fn set<R>(out: &mut [R], index: usize, value: R) {
    if let Some(slot) = out.get_mut(index) {
        *slot = value;
    }
}

/// Count, mean and variance of some numbers. Mean and variance are those of the numbers times `scale`, a power of two
/// that is 1 unless the squares would leave the range of `f64`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    pub count: usize,
    pub scale: f64,
    pub mean: f64,
    pub variance: f64,
}

impl Statistics {
    pub fn new<R: Real>(values: impl Iterator<Item = R> + Clone, ddof: usize) -> Self {
        let (mut count, mut largest) = (0usize, 0.0f64);
        for value in values.clone() {
            count += 1;
            largest = largest.larger(value.abs().to_f64());
        }
        let scale = scale_for_squares(largest);
        let scaled = values.map(|value| value.to_f64() * scale);
        let (mut sum, mut low, mut high) = (ExactSum::new(), f64::INFINITY, f64::NEG_INFINITY);
        for value in scaled.clone() {
            sum.add(value);
            low = low.smaller(value);
            high = high.larger(value);
        }
        if count == 0 {
            return Statistics { count, scale, mean: 0.0, variance: 0.0 };
        }
        // Sum and quotient are each rounded; the limits make the mean of equal numbers that number.
        let mean = Real::clip(sum.value::<f64>() / count as f64, low, high);
        let mut squares = ExactSum::new();
        for value in scaled {
            squares.add((value - mean) * (value - mean));
        }
        let freedom = count.saturating_sub(ddof);
        let variance = if freedom == 0 { 0.0 } else { squares.value::<f64>() / freedom as f64 };
        Statistics { count, scale, mean, variance }
    }

    /// What a centred number is divided by, on this scale.
    pub fn denominator<R: Real>(&self, deviation: Deviation<R>) -> f64 {
        let eps = deviation.eps.to_f64() * self.scale;
        match deviation.eps_placement {
            EpsPlacement::StdPlusEps => Real::sqrt(self.variance) + eps,
            EpsPlacement::MaxStdEps => Real::sqrt(self.variance).larger(eps),
            EpsPlacement::SqrtVarPlusEps => Real::sqrt(self.variance + eps * self.scale),
        }
    }

    /// Value less mean, on this scale.
    pub fn centred<R: Real>(&self, value: R) -> f64 {
        value.to_f64() * self.scale - self.mean
    }
}

/// The power of two that keeps squares of numbers up to `largest` within the range of `f64`; 1 for ordinary numbers.
pub(super) fn scale_for_squares(largest: f64) -> f64 {
    if largest > TWO_POW_500 {
        TWO_POW_MINUS_600
    } else if largest < TWO_POW_MINUS_400 {
        TWO_POW_400
    } else {
        1.0
    }
}

/// A quotient of which 0 over 0 is 0.
pub(super) fn quotient(numerator: f64, denominator: f64) -> f64 {
    if numerator == 0.0 { 0.0 } else { numerator / denominator }
}

const TWO_POW_400: f64 = f64::from_bits((1023 + 400) << 52);
const TWO_POW_500: f64 = f64::from_bits((1023 + 500) << 52);
const TWO_POW_MINUS_400: f64 = f64::from_bits((1023 - 400) << 52);
const TWO_POW_MINUS_600: f64 = f64::from_bits((1023 - 600) << 52);

/// One number per response, at every token that the response holds; +0 under the mask.
pub fn broadcast<R: Real>(advantage: &[R], mask: Mask<'_>, out: &mut [R]) -> Result<(), Error> {
    let shape = mask.shape();
    shape.check_rows(ADVANTAGE.name, advantage)?;
    shape.check(TOKEN_ADVANTAGE.name, out)?;
    for (row, (slots, value)) in out.chunks_mut(shape.columns.max(1)).zip(advantage).enumerate() {
        fill_row(mask.row(row), *value, slots);
    }
    Ok(())
}

fn fill_row<R: Real>(mask: Option<&[u8]>, value: R, slots: &mut [R]) {
    match mask {
        None => slots.fill(value),
        Some(bytes) => {
            for (slot, byte) in slots.iter_mut().zip(bytes) {
                *slot = if *byte != 0 { value } else { R::zero() };
            }
        }
    }
}

/// [`broadcast`] of the numbers that stand at the head of the buffer, one per response: last row first, so that none is
/// overwritten before it is read.
pub(super) fn broadcast_in_place<R: Real>(tokens: &mut [R], mask: Mask<'_>) {
    let shape = mask.shape();
    for row in (0..shape.rows).rev() {
        let value = tokens.get(row).copied().unwrap_or(R::zero());
        if let Some(slots) = tokens.get_mut(row * shape.columns..(row + 1) * shape.columns) {
            fill_row(mask.row(row), value, slots);
        }
    }
}

/// Evaluate an estimator of one advantage per response and hand out what the caller asked for.
pub(super) fn evaluate_grouped<R: Real>(
    call: &mut Call<'_, R>,
    estimator: impl FnOnce(GroupedRewards<'_, R>, &mut [R]) -> Result<(), Error>,
) -> Result<(), Error> {
    let rewards = GroupedRewards::from_call(call)?;
    let mask = call.mask()?;
    let tokens = call.output(TOKEN_ADVANTAGE.name);
    match (call.output(ADVANTAGE.name), tokens) {
        (Some(advantage), None) => estimator(rewards, advantage),
        (Some(advantage), Some(tokens)) => {
            estimator(rewards, advantage)?;
            broadcast(advantage, mask, tokens)
        }
        (None, Some(tokens)) => {
            // The head of the buffer holds one number per response until its row is written.
            let Some(head) = tokens.get_mut(..rewards.rows()) else { return Ok(()) };
            estimator(rewards, head)?;
            broadcast_in_place(tokens, mask);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

pub(super) const REWARD: InputSpec =
    InputSpec::new("reward", Domain::Reward, &[&["B"]], "reward of each response, after all shaping");
pub(super) const GROUP: InputSpec =
    InputSpec::new("group", Domain::Group, &[&["B"]], "which prompt each response answers (any identifiers)");
pub(super) const SCORED: InputSpec = InputSpec::new(
    "scored",
    Domain::Mask,
    &[&["B"]],
    "1 where the response has a reward, 0 where it has none and is absent from every statistic; without it all have one",
)
.optional();
pub(super) const ADVANTAGE: OutputSpec =
    OutputSpec::value("advantage", &["B"], "advantage of each response; +0 where it has no reward");
pub(super) const TOKEN_ADVANTAGE: OutputSpec = OutputSpec::value(
    "token_advantage",
    &["B", "T"],
    "the same at every token of the response, +0 under the mask (needs `mask`, which has T)",
);
pub(super) const MASK_REQUIRED: InputSpec = InputSpec { optional: false, ..InputSpec::MASK };
pub(super) const INPUTS: &[InputSpec] = &[REWARD, GROUP, SCORED, InputSpec::MASK];
pub(super) const OUTPUTS: &[OutputSpec] = &[ADVANTAGE, TOKEN_ADVANTAGE];

pub(super) const DDOF: ParamSpec = ParamSpec::integer(
    "ddof",
    "",
    1,
    0,
    1,
    "subtracted from the count in the variance: 1 is the sample deviation, 0 the population's",
);
pub(super) const EPS_PLACEMENT: ParamSpec = ParamSpec::choice(
    "eps_placement",
    EpsPlacement::StdPlusEps.name(),
    EpsPlacement::NAMES,
    "where eps goes: std + eps, max(std, eps) or sqrt(var + eps)",
);
pub(super) const GROUP_OF_ONE: ParamSpec = ParamSpec::choice(
    "group_of_one",
    GroupOfOne::Error.name(),
    GroupOfOne::NAMES,
    "what a response alone in its group gets: an error, 0, or its reward (baseline 0, deviation 1)",
);
pub(super) const GROUP_OF_ONE_ZERO: ParamSpec = ParamSpec {
    kind: ParamKind::Choice { default: GroupOfOne::Zero.name(), names: GroupOfOne::NAMES },
    ..GROUP_OF_ONE
};
pub(super) const fn eps(default: f64) -> ParamSpec {
    ParamSpec::number(
        "eps",
        r"\epsilon",
        default,
        Range::NON_NEGATIVE,
        "keeps the division by a deviation finite (units of the reward; of its square for sqrt_var_plus_eps)",
    )
}

#[cfg(test)]
mod tests {

    use crate::catalog::find;
    use crate::spec::{Data, Input, Output, evaluate};
    use std::vec;
    use std::vec::Vec;

    fn tokens(also_rows: bool) -> Vec<f64> {
        let inputs = [
            Input { name: "reward", shape: &[3], data: Data::Real(&[4.0, 0.0, f64::NAN]) },
            Input { name: "group", shape: &[3], data: Data::Index(&[8, 8, 8]) },
            Input { name: "scored", shape: &[3], data: Data::Mask(&[1, 1, 0]) },
            Input { name: "mask", shape: &[3, 4], data: Data::Mask(&[1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0]) },
        ];
        let (mut rows, mut tokens) = (vec![9.0; 3], vec![9.0; 12]);
        let mut outputs = vec![Output { name: "token_advantage", data: &mut tokens }];
        if also_rows {
            outputs.push(Output { name: "advantage", data: &mut rows });
        }
        evaluate(find("advantage.group_mean").unwrap(), Some("paper"), &[], &inputs, &mut outputs).unwrap();
        tokens
    }

    #[test]
    fn the_advantage_of_a_response_at_each_of_its_tokens() {
        let want = [2.0, 2.0, 2.0, 2.0, -2.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(tokens(true), want);
        assert_eq!(tokens(false), want);
        assert!(tokens(false).iter().all(|value| *value != 0.0 || value.is_sign_positive()));
    }
}

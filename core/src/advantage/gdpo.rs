//! The advantage of GDPO: each reward normalised in its group by itself, then summed and normalised over the batch.

use super::grouped::{
    self, Deviation, EpsPlacement, GROUP, GroupOfOne, OUTPUTS, Statistics, broadcast, broadcast_in_place, quotient, set,
};
use super::whiten::OneToken;
use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, ParamSpec, Range, Source, Value, choice, evaluate_with,
};

choice! {
    /// What the summed advantages are normalised over.
    pub enum BatchNormalisation {
        /// Not at all.
        None = "none",
        /// The responses of the batch, each counted once (the paper, TRL).
        Responses = "responses",
        /// The tokens of the batch: a response counts as often as it has tokens (verl).
        Tokens = "tokens",
    }
}

/// The choices of [`gdpo`].
#[derive(Clone, Copy, Debug)]
pub struct Gdpo<R> {
    /// How each reward is scaled in its group.
    pub deviation: Deviation<R>,
    /// What a response gets that alone in its group has the reward.
    pub group_of_one: GroupOfOne,
    /// What the sum is normalised over.
    pub batch: BatchNormalisation,
    /// How the sum's deviation is estimated and divided by.
    pub batch_deviation: Deviation<R>,
    /// What becomes of a batch of one (response or token).
    pub one: OneToken,
}

/// A_i = normalise_batch(Σ_k w_k·(R_ik − mean_g)/(std_g + ε)): the rewards are normalised before they are added, so that
/// none drowns the others (GDPO; Liu et al. 2026, §3).
///
/// `reward`: R, [B, K], row-major; `weight`: w, K numbers, or 1 each; `scored`: [B, K], 0 where a response lacks a reward
/// (it is absent from that reward's statistics and adds nothing; a response without any reward gets +0 and is absent from
/// the batch); `mask`: [B, T], whose row sums are the lengths; `out`: A_i, one per response. Not differentiated. Errors:
/// `LengthMismatch`, `NonFinite`, `GroupTooSmall`, and, for the batch, `EmptyMask` and `TooFew`.
///
/// Differs in: verl (whitened over tokens by √(var + 10⁻⁸)), TRL `normalize_then_sum` (over responses by std + 10⁻⁴).
pub fn gdpo<R: Real>(
    reward: &[R],
    weight: Option<&[R]>,
    scored: Option<&[u8]>,
    groups: Groups<'_>,
    mask: Mask<'_>,
    config: Gdpo<R>,
    out: &mut [R],
) -> Result<(), Error> {
    let rows = groups.rows();
    let kinds = reward.len().checked_div(rows).unwrap_or(0);
    let table = Table { reward, scored, kinds };
    table.check(rows, weight, mask, out)?;
    out.fill(R::zero());
    for kind in 0..kinds {
        let weight = weight.map_or(1.0, |weights| weights.get(kind).map_or(0.0, |weight| Real::to_f64(*weight)));
        for leader in groups.leaders() {
            let members = groups.members(leader).filter_map(|row| Some((row, table.get(row, kind)?)));
            let statistics = Statistics::new(members.clone().map(|(_, reward)| reward), config.deviation.ddof);
            let add = |out: &mut [R], row: usize, term: f64| {
                let sum = out.get(row).map_or(0.0, |sum| Real::to_f64(*sum));
                set(out, row, R::from_f64(sum + weight * term));
            };
            if statistics.count > 1 {
                let denominator = statistics.denominator(config.deviation);
                for (row, reward) in members {
                    add(out, row, quotient(statistics.centred(reward), denominator));
                }
            } else if let Some((row, reward)) = members.clone().next() {
                let alone = Statistics { count: 1, scale: 1.0, mean: 0.0, variance: 1.0 };
                match config.group_of_one {
                    GroupOfOne::Error => return Err(Error::GroupTooSmall { index: leader, size: 1, needed: 2 }),
                    GroupOfOne::Zero => {}
                    GroupOfOne::Reward => add(out, row, reward.to_f64() / alone.denominator(config.deviation)),
                }
            }
        }
    }
    normalise_batch(table, mask, config, out)
}

#[derive(Clone, Copy)]
struct Table<'a, R> {
    reward: &'a [R],
    scored: Option<&'a [u8]>,
    kinds: usize,
}

impl<R: Real> Table<'_, R> {
    fn get(&self, row: usize, kind: usize) -> Option<R> {
        let index = row * self.kinds + kind;
        let scored = self.scored.is_none_or(|bytes| bytes.get(index).is_some_and(|byte| *byte != 0));
        if scored { self.reward.get(index).copied() } else { None }
    }

    fn any(&self, row: usize) -> bool {
        (0..self.kinds).any(|kind| self.get(row, kind).is_some())
    }

    fn check(&self, rows: usize, weight: Option<&[R]>, mask: Mask<'_>, out: &[R]) -> Result<(), Error> {
        let slots = rows * self.kinds;
        let lengths = [
            (grouped::REWARD.name, slots, self.reward.len()),
            (grouped::SCORED.name, slots, self.scored.map_or(slots, <[u8]>::len)),
            (WEIGHT.name, self.kinds, weight.map_or(self.kinds, <[R]>::len)),
            ("mask", rows, mask.shape().rows),
            (grouped::ADVANTAGE.name, rows, out.len()),
        ];
        for (argument, expected, got) in lengths {
            if expected != got {
                return Err(Error::LengthMismatch { argument, expected, got });
            }
        }
        if let Some(index) = weight.and_then(|weights| weights.iter().position(|weight| !weight.is_finite())) {
            return Err(Error::NonFinite { argument: WEIGHT.name, index });
        }
        for row in 0..rows {
            for kind in 0..self.kinds {
                if self.get(row, kind).is_some_and(|reward| !reward.is_finite()) {
                    return Err(Error::NonFinite { argument: grouped::REWARD.name, index: row * self.kinds + kind });
                }
            }
        }
        Ok(())
    }
}

fn normalise_batch<R: Real>(table: Table<'_, R>, mask: Mask<'_>, config: Gdpo<R>, out: &mut [R]) -> Result<(), Error> {
    let times = |row: usize| match config.batch {
        BatchNormalisation::None => 0,
        BatchNormalisation::Responses => usize::from(table.any(row)),
        BatchNormalisation::Tokens => {
            if table.any(row) {
                mask.length(row)
            } else {
                0
            }
        }
    };
    if config.batch == BatchNormalisation::None {
        return Ok(());
    }
    let (mut count, mut sum) = (0usize, ExactSum::new());
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (row, value) in out.iter().enumerate() {
        let (times, value) = (times(row), Real::to_f64(*value));
        if times > 0 {
            count += times;
            sum.add(times as f64 * value);
            (low, high) = (low.smaller(value), high.larger(value));
        }
    }
    let one = match (count, config.one) {
        (0, _) => return Err(Error::EmptyMask { argument: "mask" }),
        (1, OneToken::Error) => return Err(Error::TooFew { argument: grouped::REWARD.name, got: 1, needed: 2 }),
        (1, OneToken::Value) => return Ok(()),
        (1, OneToken::Zero) => true,
        _ => false,
    };
    let mean = Real::clip(sum.value::<f64>() / count as f64, low, high);
    let mut squares = ExactSum::new();
    for (row, value) in out.iter().enumerate() {
        let centred = Real::to_f64(*value) - mean;
        squares.add(times(row) as f64 * (centred * centred));
    }
    let freedom = count.saturating_sub(config.batch_deviation.ddof).max(1) as f64;
    let statistics = Statistics { count, scale: 1.0, mean, variance: squares.value::<f64>() / freedom };
    let denominator = statistics.denominator(config.batch_deviation);
    for (row, value) in out.iter_mut().enumerate() {
        let normalised = R::from_f64(quotient(statistics.centred(*value), denominator));
        *value = if one || !table.any(row) { R::zero() } else { normalised };
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let config = Gdpo {
        deviation: Deviation::from_call(call)?,
        group_of_one: call.choice("group_of_one")?,
        batch: call.choice("batch_normalisation")?,
        batch_deviation: Deviation {
            ddof: 1,
            eps: call.number("batch_eps")?,
            eps_placement: call.choice("batch_eps_placement")?,
        },
        one: call.choice("one")?,
    };
    let (reward, weight) = (call.real(REWARDS.name)?, call.optional_real(WEIGHT.name));
    let (scored, groups) = (call.optional_bytes(SCORED_KINDS.name), Groups::new(call.index(GROUP.name)?));
    let tokens = call.tokens();
    let mask = call.mask()?;
    let rows = tokens.rows;
    let (advantage, token_advantage) = (call.output("advantage"), call.output("token_advantage"));
    match (advantage, token_advantage) {
        (Some(advantage), token_advantage) => {
            gdpo(reward, weight, scored, groups, mask, config, advantage)?;
            match token_advantage {
                Some(out) => broadcast(advantage, mask, out),
                None => Ok(()),
            }
        }
        (None, Some(out)) => {
            let Some(head) = out.get_mut(..rows) else { return Ok(()) };
            gdpo(reward, weight, scored, groups, mask, config, head)?;
            broadcast_in_place(out, mask);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

const REWARDS: InputSpec =
    InputSpec::new("reward", Domain::Reward, &[&["B", "K"]], "reward of each response of each of K kinds");
const WEIGHT: InputSpec =
    InputSpec::new("reward_weight", Domain::Real, &[&["K"]], "weight of each kind; without it 1").optional();
const SCORED_KINDS: InputSpec = InputSpec::new(
    "scored",
    Domain::Mask,
    &[&["B", "K"]],
    "1 where the response has that reward, 0 where it lacks it; without it all have all",
)
.optional();

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.gdpo",
    family: Family::Advantage,
    title: "GDPO's decoupled advantage",
    summary: "Each reward normalised in its group by itself, then summed with weights and normalised over the batch.",
    formula: r"A_i = \operatorname{normalise}_{\mathrm{batch}}\left(\sum_k w_k
\frac{R_{ik} - \operatorname{mean}_g(R_k)}{\operatorname{std}_g(R_k) + \epsilon}\right)",
    gradient: "",
    notes: "With one kind and no batch normalisation it is GRPO's advantage. verl normalises over tokens, so a long \
            response weighs more in the batch's mean and deviation; the paper and TRL count each response once. verl \
            ignores algorithm-level settings when it is given token-level rewards alone: then K is 1.",
    sources: &[Source {
        title: "GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization",
        reference: "arXiv:2601.05242",
        place: "§3, decoupled normalisation and batch-wise normalisation",
    }],
    inputs: &[REWARDS, GROUP, WEIGHT, SCORED_KINDS, InputSpec::MASK],
    params: &[
        grouped::eps(1e-6),
        grouped::DDOF,
        grouped::EPS_PLACEMENT,
        grouped::GROUP_OF_ONE,
        ParamSpec::choice(
            "batch_normalisation",
            BatchNormalisation::Responses.name(),
            BatchNormalisation::NAMES,
            "what the sum is normalised over: nothing, the responses, or the tokens of the batch (needs mask)",
        ),
        ParamSpec::number(
            "batch_eps",
            r"\epsilon_b",
            1e-4,
            Range::NON_NEGATIVE,
            "keeps the division by the batch's deviation finite",
        ),
        ParamSpec::choice(
            "batch_eps_placement",
            EpsPlacement::StdPlusEps.name(),
            EpsPlacement::NAMES,
            "where batch_eps goes: std + eps, max(std, eps) or sqrt(var + eps)",
        ),
        ParamSpec::choice(
            "one",
            OneToken::Zero.name(),
            OneToken::NAMES,
            "what becomes of a batch that holds one response (or token): an error, 0, or the value as it was",
        ),
    ],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[
        Dialect { name: "paper", note: "normalised over the responses of the batch", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "whitened over tokens, sqrt(var + 1e-8); a response alone keeps its reward; one token raises",
            settings: &[
                ("group_of_one", Value::Name(GroupOfOne::Reward.name())),
                ("batch_normalisation", Value::Name(BatchNormalisation::Tokens.name())),
                ("batch_eps", Value::Number(1e-8)),
                ("batch_eps_placement", Value::Name(EpsPlacement::SqrtVarPlusEps.name())),
                ("one", Value::Name(OneToken::Error.name())),
            ],
        },
        Dialect {
            name: "trl-1.16",
            note: "multi_objective_aggregation=\"normalize_then_sum\": eps 1e-4 twice; a response alone gets 0",
            settings: &[("eps", Value::Number(1e-4)), ("group_of_one", Value::Name(GroupOfOne::Zero.name()))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;

    fn config(batch: BatchNormalisation) -> Gdpo<f64> {
        let deviation = Deviation { ddof: 1, eps: 0.0, eps_placement: EpsPlacement::StdPlusEps };
        Gdpo { deviation, group_of_one: GroupOfOne::Zero, batch, batch_deviation: deviation, one: OneToken::Error }
    }

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-14, "{got} is not {want}");
        }
    }

    #[test]
    fn kinds_weights_and_batch() {
        // Kind 0 is [1, 0], kind 1 is [0, 1000]: normalised ±√½ and ∓√½.
        let reward = [1.0, 0.0, 0.0, 1000.0];
        let mask = Mask::new(TokenShape { rows: 2, columns: 3 }, Some(&[1, 1, 1, 1, 0, 0])).unwrap();
        let groups = Groups::new(&[3, 3]);
        let mut out = [9.0; 2];
        gdpo(&reward, None, None, groups, mask, config(BatchNormalisation::None), &mut out).unwrap();
        close(&out, &[0.0, 0.0]);
        let weight = [3.0, 1.0];
        gdpo(&reward, Some(&weight), None, groups, mask, config(BatchNormalisation::None), &mut out).unwrap();
        close(&out, &[2f64.sqrt(), -(2f64.sqrt())]);
        gdpo(&reward, Some(&weight), None, groups, mask, config(BatchNormalisation::Responses), &mut out).unwrap();
        close(&out, &[0.5f64.sqrt(), -(0.5f64.sqrt())]);
        // Tokens [x, x, x, −x]: mean ½x, deviation x.
        gdpo(&reward, Some(&weight), None, groups, mask, config(BatchNormalisation::Tokens), &mut out).unwrap();
        close(&out, &[0.5, -1.5]);
    }

    #[test]
    fn absent_rewards() {
        let reward = [1.0, f64::NAN, 0.0, 5.0, f64::NAN, f64::NAN];
        let scored = [1, 0, 1, 1, 0, 0];
        let mask = Mask::new(TokenShape { rows: 3, columns: 1 }, None).unwrap();
        let mut out = [9.0; 3];
        let run =
            |config, out: &mut [f64]| gdpo(&reward, None, Some(&scored), Groups::new(&[0, 0, 0]), mask, config, out);
        run(config(BatchNormalisation::Responses), &mut out).unwrap();
        close(&out, &[0.5f64.sqrt(), -(0.5f64.sqrt()), 0.0]);
        let strict = Gdpo { group_of_one: GroupOfOne::Error, ..config(BatchNormalisation::None) };
        assert_eq!(run(strict, &mut out), Err(Error::GroupTooSmall { index: 0, size: 1, needed: 2 }));
        let kept = Gdpo { group_of_one: GroupOfOne::Reward, ..config(BatchNormalisation::None) };
        run(kept, &mut out).unwrap();
        close(&out, &[0.5f64.sqrt(), 5.0 - 0.5f64.sqrt(), 0.0]);
    }
}

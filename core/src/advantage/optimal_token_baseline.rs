//! The optimal token baseline: at every position the mean return of the group, weighted by the path's variance so far.

use super::grouped::{GROUP, MASK_REQUIRED, quotient};
use super::remax::reward_to_go;
use super::trajectory::{REWARD, at};
use crate::Error;
use crate::batch::{Groups, Mask};
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// Which tokens of a group's responses share a baseline.
    pub enum Alignment {
        /// Those in the same column.
        Column = "column",
        /// Those with as many unmasked tokens before them (multi-turn: a tool's tokens do not count).
        Token = "token",
    }
}

/// Inputs of [`optimal_token_baseline`].
#[derive(Clone, Copy, Debug)]
pub struct TokenBaselineInputs<'a, R> {
    /// Which slots hold a token.
    pub mask: Mask<'a>,
    /// r: reward at each token, [B, T].
    pub reward: &'a [R],
    /// Which prompt each response answers.
    pub groups: Groups<'a>,
    /// log π of each sampled token, [B, T] (nats).
    pub log_prob: &'a [R],
    /// Σ_a π(a)² at each token, [B, T].
    pub sum_p_squared: &'a [R],
    /// ρ̄: truncated importance weight of each token, [B, T].
    pub importance_weight: Option<&'a [R]>,
}

/// The choices of [`optimal_token_baseline`].
#[derive(Clone, Copy, Debug)]
pub struct TokenBaseline<R> {
    /// Which tokens share a baseline.
    pub alignment: Alignment,
    /// Whether the longest response has baseline 0 where it is alone.
    pub zero_tail: bool,
    /// Added to Σ W.
    pub eps: R,
}

/// A_it = G_it − B_t, B_t = Σ_j G_jt W_jt / (Σ_j W_jt + ε) over the group, with G the reward-to-go and
/// W_it = Σ_{s≤t} (1 − 2π_is + Σ_a π_is(a)²)·ρ̄_is², the squared norm of the score summed along the path (optimal token
/// baseline; verl 0.9's reference for it).
///
/// `out`: A, [B, T], +0 under the mask. A response alone in its group (or the only one with tokens) has baseline 0. Not
/// differentiated. Cost: B·T for columns; for tokens the k-th of a row is found by scanning it. Errors: `LengthMismatch`,
/// `NonFinite` of any input at a token.
///
/// Differs in: verl counts a response without tokens as a member of its group in the column form.
pub fn optimal_token_baseline<R: Real>(
    inputs: &TokenBaselineInputs<'_, R>,
    config: TokenBaseline<R>,
    out: &mut [R],
) -> Result<(), Error> {
    let (mask, shape) = (inputs.mask, inputs.mask.shape());
    if inputs.groups.rows() != shape.rows {
        return Err(Error::LengthMismatch { argument: GROUP.name, expected: shape.rows, got: inputs.groups.rows() });
    }
    let weight = inputs.importance_weight.map(|weight| (WEIGHT.name, weight));
    let tables = [(REWARD.name, inputs.reward), (LOG_PROB.name, inputs.log_prob), (SUM.name, inputs.sum_p_squared)];
    for (name, values) in tables.into_iter().chain(weight) {
        shape.check(name, values)?;
        mask.check_finite(name, values)?;
    }
    shape.check("advantage", out)?;
    path_variance(inputs, out);
    for leader in inputs.groups.leaders() {
        let members = inputs.groups.members(leader).filter(|row| mask.length(*row) > 0);
        one_group(inputs, config, members, out);
    }
    Ok(())
}

/// W, at the unmasked slots of `out`.
fn path_variance<R: Real>(inputs: &TokenBaselineInputs<'_, R>, out: &mut [R]) {
    out.fill(R::zero());
    for row in 0..inputs.mask.shape().rows {
        let mut total = R::zero();
        for slot in inputs.mask.kept(row) {
            let mut squared_score =
                R::one() - R::two() * at(inputs.log_prob, slot).exp() + at(inputs.sum_p_squared, slot);
            if let Some(weight) = inputs.importance_weight {
                squared_score *= at(weight, slot) * at(weight, slot);
            }
            total += squared_score;
            if let Some(out) = out.get_mut(slot) {
                *out = total;
            }
        }
    }
}

/// Positions from the last to the first. While a position is at work, its slots hold W and those of the position behind
/// it hold G (not yet less its baseline), so that no memory but `out` is needed.
fn one_group<R: Real>(
    inputs: &TokenBaselineInputs<'_, R>,
    config: TokenBaseline<R>,
    members: impl Iterator<Item = usize> + Clone,
    out: &mut [R],
) {
    let (mask, columns) = (inputs.mask, inputs.mask.shape().columns);
    let (mut size, mut longest, mut second, mut longest_row) = (0usize, 0usize, 0usize, 0usize);
    for row in members.clone() {
        let length = mask.length(row);
        size += 1;
        if length > longest {
            (second, longest, longest_row) = (longest, length, row);
        } else {
            second = second.max(length);
        }
    }
    let lone_tail = config.zero_tail && longest > second;
    let (positions, locate) = match config.alignment {
        Alignment::Column => (columns, locate_column as Locate),
        Alignment::Token => (longest, locate_token as Locate),
    };
    let has_baseline = |row: usize, position: usize| !(lone_tail && row == longest_row && position >= second);
    let mut baseline_behind = R::zero();
    for position in (0..positions).rev() {
        let (mut weighted, mut weights) = (ExactSum::new(), ExactSum::new());
        for row in members.clone() {
            let (slot, behind) = (locate(mask, row, position), locate(mask, row, position + 1));
            // Where the position behind is masked its slot still carries the return over.
            let mut to_go = behind.map_or(R::zero(), |behind| at(out, behind));
            if let Some(behind) = behind
                && let Some(finished) = out.get_mut(behind)
            {
                let baseline = if has_baseline(row, position + 1) { baseline_behind } else { R::zero() };
                *finished = if mask.keeps(behind) { to_go - baseline } else { R::zero() };
            }
            let Some(slot) = slot else { continue };
            if mask.keeps(slot) {
                to_go += at(inputs.reward, slot);
                let variance = at(out, slot).to_f64();
                weighted.add(Real::to_f64(to_go) * variance);
                weights.add(variance);
            }
            if let Some(current) = out.get_mut(slot) {
                *current = to_go;
            }
        }
        let baseline = quotient(weighted.value::<f64>(), weights.value::<f64>() + config.eps.to_f64());
        baseline_behind = if size > 1 { R::from_f64(baseline) } else { R::zero() };
    }
    for row in members {
        if let Some(first) = locate(mask, row, 0)
            && let Some(finished) = out.get_mut(first)
        {
            let baseline = if has_baseline(row, 0) { baseline_behind } else { R::zero() };
            *finished = if mask.keeps(first) { *finished - baseline } else { R::zero() };
        }
    }
}

type Locate = fn(Mask<'_>, usize, usize) -> Option<usize>;

fn locate_column(mask: Mask<'_>, row: usize, position: usize) -> Option<usize> {
    let columns = mask.shape().columns;
    (position < columns).then_some(row * columns + position)
}

fn locate_token(mask: Mask<'_>, row: usize, position: usize) -> Option<usize> {
    mask.kept(row).nth(position)
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let inputs = TokenBaselineInputs {
        mask: call.mask()?,
        reward: call.real(REWARD.name)?,
        groups: Groups::new(call.index(GROUP.name)?),
        log_prob: call.real(LOG_PROB.name)?,
        sum_p_squared: call.real(SUM.name)?,
        importance_weight: call.optional_real(WEIGHT.name),
    };
    let config = TokenBaseline {
        alignment: call.choice("alignment")?,
        zero_tail: call.flag("zero_tail"),
        eps: call.number("eps")?,
    };
    if let Some(out) = call.output("advantage") {
        optimal_token_baseline(&inputs, config, out)?;
    }
    match call.output("returns") {
        Some(out) => reward_to_go(inputs.reward, inputs.mask, out),
        None => Ok(()),
    }
}

const LOG_PROB: InputSpec = InputSpec::new(
    "old_log_prob",
    Domain::LogProb,
    &[&["B", "T"]],
    "log-probability of the sampled token, sampling policy (nats)",
);
const SUM: InputSpec = InputSpec::new(
    "sum_p_squared",
    Domain::Probability,
    &[&["B", "T"]],
    "sum over the vocabulary of the squared probabilities at each token",
);
const WEIGHT: InputSpec = InputSpec::new(
    "importance_weight",
    Domain::NonNegative,
    &[&["B", "T"]],
    "truncated importance weight of each token; its square scales the token's variance",
)
.optional();

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.optimal_token_baseline",
    family: Family::Advantage,
    title: "Optimal token baseline",
    summary: "The reward-to-go less the group's mean return at that position, weighted by the path's score variance.",
    formula: r"A_{it} = G_{it} - \frac{\sum_j G_{jt} W_{jt}}{\sum_j W_{jt} + \epsilon},\quad
W_{it} = \sum_{s \le t} m_{is}\,\bar\rho_{is}^2\left(1 - 2\pi_{is} + \sum_a \pi_{is}(a)^2\right)",
    gradient: "",
    notes: "1 - 2p + sum p² is the squared norm of the score with respect to the logits. Where one response of a group is \
            longer than all others its tail has no peer: with zero_tail its baseline there is 0 (verl counts the tail in \
            columns from the second length on, also where tokens inside a response are masked; so does this). Alignment \
            `token` is verl's multi-turn form: the k-th unmasked tokens of the group share a baseline.",
    sources: &[
        Source {
            title: "verl 0.9.1, compute_optimal_token_baseline_advantage and compute_multi_turn_optimal_token_baseline_advantage",
            reference: "github.com/volcengine/verl, tag v0.9.1",
            place: "verl/trainer/ppo/core_algos.py",
        },
        Source {
            title: "Variance Reduction Techniques for Gradient Estimates in Reinforcement Learning",
            reference: "Greensmith, Bartlett and Baxter 2004, JMLR 5",
            place: "§4, the baseline of least variance E[G‖∇log p‖²]/E[‖∇log p‖²]",
        },
    ],
    inputs: &[REWARD, GROUP, LOG_PROB, SUM, MASK_REQUIRED, WEIGHT],
    params: &[
        ParamSpec::choice(
            "alignment",
            Alignment::Column.name(),
            Alignment::NAMES,
            "which tokens of a group share a baseline: those in the same column, or with as many unmasked ones before",
        ),
        ParamSpec::flag("zero_tail", true, "whether the longest response has baseline 0 where it is alone"),
        ParamSpec::number("eps", r"\epsilon", 1e-8, Range::NON_NEGATIVE, "added to the sum of the weights"),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("advantage", &["B", "T"], "advantage of each token; +0 under the mask"),
        OutputSpec::value("returns", &["B", "T"], "reward-to-go of each token; +0 under the mask"),
    ],
    dialects: &[
        Dialect { name: "verl-0.9", note: "optimal_token_baseline", settings: &[] },
        Dialect {
            name: "verl-0.9-multi-turn",
            note: "tir_optimal_token_baseline: aligned by unmasked token",
            settings: &[("alignment", Value::Name(Alignment::Token.name()))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;

    const J: f64 = f64::NAN;
    const CONFIG: TokenBaseline<f64> = TokenBaseline { alignment: Alignment::Column, zero_tail: true, eps: 0.0 };

    fn inputs<'a>(
        columns: usize,
        mask: &'a [u8],
        reward: &'a [f64],
        groups: &'a [u32],
        log_prob: &'a [f64],
        sum: &'a [f64],
    ) -> TokenBaselineInputs<'a, f64> {
        TokenBaselineInputs {
            mask: Mask::new(TokenShape { rows: groups.len(), columns }, Some(mask)).unwrap(),
            reward,
            groups: Groups::new(groups),
            log_prob,
            sum_p_squared: sum,
            importance_weight: None,
        }
    }

    #[test]
    fn weights_by_the_path() {
        // π = 1, so each token's squared score is Σp² − 1: W is [1, 3] and [2, 2 + 0.5].
        let (mask, reward) = ([1, 1, 1, 1], [0.0, 3.0, 0.0, 1.0]);
        let (log_prob, sum) = ([0.0; 4], [2.0, 3.0, 3.0, 1.5]);
        let base = inputs(2, &mask, &reward, &[5, 5], &log_prob, &sum);
        let mut out = [9.0; 4];
        optimal_token_baseline(&base, CONFIG, &mut out).unwrap();
        let (first, second) = ((3.0 * 1.0 + 1.0 * 2.0) / 3.0, (3.0 * 3.0 + 1.0 * 2.5) / 5.5);
        assert_eq!(out, [3.0 - first, 3.0 - second, 1.0 - first, 1.0 - second]);
        // Weights scale by their square.
        let weight = [1.0, 1.0, 2.0, 2.0];
        let weighted = TokenBaselineInputs { importance_weight: Some(&weight), ..base };
        optimal_token_baseline(&weighted, CONFIG, &mut out).unwrap();
        assert_eq!(out[0], 3.0 - (3.0 + 8.0) / 9.0);
        // Alone there is no baseline.
        let alone = inputs(2, &mask, &reward, &[5, 6], &log_prob, &sum);
        optimal_token_baseline(&alone, CONFIG, &mut out).unwrap();
        assert_eq!(out, [3.0, 3.0, 1.0, 1.0]);
    }

    #[test]
    fn tails_gaps_and_alignment() {
        let mask = [1, 0, 1, 1, 1, 1, 0, 0];
        let reward = [1.0, J, 0.0, 4.0, 2.0, 6.0, J, J];
        let (log_prob, sum) = ([0.0, J, 0.0, 0.0, 0.0, 0.0, J, J], [2.0, J, 2.0, 2.0, 2.0, 2.0, J, J]);
        let base = inputs(4, &mask, &reward, &[0, 0], &log_prob, &sum);
        let mut out = [9.0; 8];
        // W is [1, ·, 2, 3] and [1, 2]; G is [5, ·, 4, 4] and [8, 6].
        optimal_token_baseline(&base, CONFIG, &mut out).unwrap();
        assert_eq!(out, [5.0 - 6.5, 0.0, 4.0, 4.0, 8.0 - 6.5, 0.0, 0.0, 0.0]);
        let full = TokenBaseline { zero_tail: false, ..CONFIG };
        optimal_token_baseline(&base, full, &mut out).unwrap();
        assert_eq!(out, [-1.5, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0]);
        let token = TokenBaseline { alignment: Alignment::Token, ..CONFIG };
        optimal_token_baseline(&base, token, &mut out).unwrap();
        assert_eq!(out, [-1.5, 0.0, 4.0 - 5.0, 4.0, 1.5, 6.0 - 5.0, 0.0, 0.0]);
        assert!(out.iter().zip(mask).all(|(value, kept)| kept != 0 || value.to_bits() == 0));
    }
}

//! The pass over the rows of a batch.

use super::batch::{PolicyBatch, PolicyOutputs, Spread};
use super::block::{Block, Lane, all_finite, finite, load, load_kept, part, store, whole};
use super::partial::PolicyPartial;
use super::surrogate::{GradientPath, Surrogate};
use super::token::{RowTotals, SequenceRatio};
use super::{EntropyAggregation, KlWeight, PolicyObjective};
use crate::Error;
use crate::batch::row_of;
use crate::engine::Engine;
use crate::kl::estimator::KlEstimator;
use crate::num::{BLOCK, Real, RowSum, halving_fold, halving_sum};
use crate::ratio::geometric_clipped::{LogClipRange, ZeroAdvantage, one_sided_clip};
use crate::reduce::Totals;
use crate::surrogate::product;

/// Add a batch's rows to `partial` and write its outputs.
pub(super) fn accumulate<R: Real, E: Engine>(
    engine: E,
    objective: &PolicyObjective<R>,
    batch: &PolicyBatch<'_, R>,
    totals: &Totals,
    divisor: R,
    outputs: &mut PolicyOutputs<'_, R>,
    partial: &mut PolicyPartial<R>,
) -> Result<(), Error> {
    let shape = batch.mask.shape();
    let mut block = Block::new();
    let entropy_weight = entropy_weight(objective, batch, totals);
    for row in 0..shape.rows {
        let length = batch.mask.length(row);
        let mut out = RowOutputs::of(outputs, row, shape.columns);
        if length == 0 {
            out.clear();
            continue;
        }
        let row_divisor = objective.reduction.row_divisor(row, length, &batch.mask, batch.groups);
        let view = RowView::of(batch, row, length, shape.columns)?;
        let mut pass = RowPass {
            engine,
            objective,
            row: view,
            block: &mut block,
            weight: objective.row_weight(divisor, row_divisor),
            entropy_weight,
            sums: RowSums::new(),
        };
        pass.run(&mut out, partial)?;
        let sums = pass.sums;
        partial.tokens += length;
        if batch.keep.is_none() {
            partial.kept_tokens += length;
        }
        partial.add_row(objective.row_terms(&sums.totals(), row_divisor));
    }
    Ok(())
}

/// The weight of a token's entropy where it is averaged over tokens; `None` where it follows the loss.
fn entropy_weight<R: Real>(objective: &PolicyObjective<R>, batch: &PolicyBatch<'_, R>, totals: &Totals) -> Option<R> {
    let tokens = match objective.entropy?.aggregation {
        EntropyAggregation::Same => return None,
        EntropyAggregation::TokenMean => totals.tokens,
        EntropyAggregation::KeptTokenMean => match batch.keep {
            Some(keep) => {
                keep.iter().enumerate().filter(|(slot, byte)| **byte != 0 && batch.mask.keeps(*slot)).count().max(1)
            }
            None => totals.tokens,
        },
    };
    objective.entropy_weight(tokens)
}

/// One row of the outputs.
struct RowOutputs<'o, R> {
    d_log_prob: Option<&'o mut [R]>,
    d_entropy: Option<&'o mut [R]>,
    token_loss: Option<&'o mut [R]>,
    token_weight: Option<&'o mut [R]>,
}

impl<'o, R: Real> RowOutputs<'o, R> {
    fn of(outputs: &'o mut PolicyOutputs<'_, R>, row: usize, columns: usize) -> Self {
        let range = row * columns..(row + 1) * columns;
        let cut = |buffer: &'o mut Option<&mut [R]>| buffer.as_deref_mut().and_then(|b| b.get_mut(range.clone()));
        RowOutputs {
            d_log_prob: cut(&mut outputs.d_log_prob),
            d_entropy: cut(&mut outputs.d_entropy),
            token_loss: cut(&mut outputs.token_loss),
            token_weight: cut(&mut outputs.token_weight),
        }
    }

    fn clear(&mut self) {
        for buffer in [&mut self.d_log_prob, &mut self.d_entropy, &mut self.token_loss, &mut self.token_weight]
            .into_iter()
            .flatten()
        {
            buffer.fill(R::zero());
        }
    }
}

/// One row of the inputs.
#[derive(Clone, Copy)]
struct RowView<'a, R> {
    row: usize,
    columns: usize,
    length: usize,
    mask: Option<&'a [u8]>,
    log_prob: &'a [R],
    old_log_prob: Option<&'a [R]>,
    ref_log_prob: Option<&'a [R]>,
    entropy: Option<&'a [R]>,
    advantage: RowSpread<'a, R>,
    importance_weight: Option<RowSpread<'a, R>>,
    keep: Option<&'a [u8]>,
    selected: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum RowSpread<'a, R> {
    Tokens(&'a [R]),
    Whole(R),
}

impl<'a, R: Real> RowSpread<'a, R> {
    fn of(spread: Spread<'a, R>, argument: &'static str, row: usize, columns: usize) -> Result<Self, Error> {
        match spread {
            Spread::PerToken(values) => Ok(RowSpread::Tokens(row_of(values, columns, row))),
            Spread::PerRow(values) => {
                let value = values.get(row).copied().unwrap_or(R::zero());
                if value.is_finite() {
                    Ok(RowSpread::Whole(value))
                } else {
                    Err(Error::NonFinite { argument, index: row })
                }
            }
        }
    }

    /// The numbers of a block.
    #[inline(always)]
    fn whole<'s>(&'s self, start: usize, padded: &'s mut Lane<R>) -> &'s Lane<R> {
        match self {
            RowSpread::Tokens(values) => whole(values, start, padded, R::zero()),
            RowSpread::Whole(value) => {
                *padded = [*value; BLOCK];
                padded
            }
        }
    }
}

impl<'a, R: Real> RowView<'a, R> {
    fn of(batch: &PolicyBatch<'a, R>, row: usize, length: usize, columns: usize) -> Result<Self, Error> {
        let of = |values: &'a [R]| row_of(values, columns, row);
        let weight = match batch.importance_weight {
            Some(weight) => Some(RowSpread::of(weight, "importance_weight", row, columns)?),
            None => None,
        };
        Ok(RowView {
            row,
            columns,
            length,
            mask: batch.mask.row(row),
            log_prob: of(batch.log_prob),
            old_log_prob: batch.old_log_prob.map(of),
            ref_log_prob: batch.ref_log_prob.map(of),
            entropy: batch.entropy.map(of),
            advantage: RowSpread::of(batch.advantage, "advantage", row, columns)?,
            importance_weight: weight,
            keep: batch.keep.map(|bytes| row_of(bytes, columns, row)),
            selected: batch.selected.map(|bytes| row_of(bytes, columns, row)),
        })
    }

    /// The error for the first non-finite token of a block's numbers, where there is one.
    #[cold]
    #[inline(never)]
    fn check(&self, argument: &'static str, start: usize, numbers: &Lane<R>, kept: &Lane<bool>) -> Result<(), Error> {
        match numbers.iter().zip(kept).position(|(number, kept)| *kept && !number.is_finite()) {
            Some(offset) => Err(Error::NonFinite { argument, index: self.row * self.columns + start + offset }),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn load_checked(
        &self,
        argument: &'static str,
        lane: &mut Lane<R>,
        from: &[R],
        start: usize,
        kept: &Lane<bool>,
    ) -> Result<(), Error> {
        load(lane, from, start, kept);
        if all_finite(lane) { Ok(()) } else { self.check(argument, start, lane, kept) }
    }

    #[inline(always)]
    fn spread_checked(
        &self,
        argument: &'static str,
        lane: &mut Lane<R>,
        from: &RowSpread<'_, R>,
        start: usize,
        kept: &Lane<bool>,
    ) -> Result<(), Error> {
        let mut padded = [R::zero(); BLOCK];
        load(lane, from.whole(start, &mut padded), 0, kept);
        if all_finite(lane) { Ok(()) } else { self.check(argument, start, lane, kept) }
    }
}

/// The sums of one row.
#[derive(Clone, Copy)]
struct RowSums<R> {
    policy: RowSum<R>,
    kl: RowSum<R>,
    entropy: RowSum<R>,
    log_ratio: RowSum<R>,
    k3: RowSum<R>,
    ratio: RowSum<R>,
    /// Σ of derivatives by the response's log-ratio.
    spread: RowSum<R>,
}

impl<R: Real> RowSums<R> {
    fn new() -> Self {
        let sum = RowSum::new();
        RowSums { policy: sum, kl: sum, entropy: sum, log_ratio: sum, k3: sum, ratio: sum, spread: sum }
    }

    fn totals(&self) -> RowTotals<R> {
        RowTotals {
            policy: self.policy.value(),
            kl: self.kl.value(),
            entropy: self.entropy.value(),
            log_ratio: self.log_ratio.value(),
            k3: self.k3.value(),
            ratio: self.ratio.value(),
        }
    }
}

struct RowPass<'p, 'a, R, E> {
    /// By whom it is called. Its type makes the closures of each engine's pass types of their own, called in one place and so
    /// inlined there.
    engine: E,
    objective: &'p PolicyObjective<R>,
    row: RowView<'a, R>,
    block: &'p mut Block<R>,
    weight: R,
    entropy_weight: Option<R>,
    sums: RowSums<R>,
}

impl<R: Real, E: Engine> RowPass<'_, '_, R, E> {
    #[inline(always)]
    fn run(&mut self, out: &mut RowOutputs<'_, R>, partial: &mut PolicyPartial<R>) -> Result<(), Error> {
        let objective = self.objective;
        let sequence = if objective.shares_ratio() { Some(self.sequence_ratio(partial)?) } else { None };
        let spreads = objective.spreads();
        let mut start = 0;
        while start < self.row.columns {
            self.load(start)?;
            self.ratios(sequence.as_ref());
            self.count_ratios(sequence.is_none(), partial);
            objective.surrogate.apply(self.engine, self.block, partial);
            self.stop_limited(sequence.as_ref());
            self.weigh(start, partial)?;
            self.estimate_kl(start, spreads)?;
            self.load_entropy(start)?;
            self.add_up(spreads);
            self.write(start, spreads, out);
            start += BLOCK;
        }
        if spreads && let (Some(sequence), Some(gradient)) = (sequence, out.d_log_prob.as_deref_mut()) {
            self.spread(&sequence, gradient)?;
        }
        Ok(())
    }

    /// log π, log π_old and A of the next block, and the token's log-ratio without and with its limits.
    #[inline(always)]
    fn load(&mut self, start: usize) -> Result<(), Error> {
        let row = &self.row;
        let (low, high) = self.objective.log_ratio_range;
        let block = &mut *self.block;
        load_kept(&mut block.kept, row.mask, start, row.columns - start);
        let mut padded = [[R::zero(); BLOCK]; 3];
        let [new_padded, old_padded, advantage_padded] = &mut padded;
        let new = whole(row.log_prob, start, new_padded, R::zero());
        // Without an old policy the log-ratio is that of the new one to itself.
        let old = row.old_log_prob.map_or(new, |old| whole(old, start, old_padded, R::zero()));
        let advantage = row.advantage.whole(start, advantage_padded);
        if !self.engine.run(&mut *block, |block| load_tokens(block, new, old, advantage, low, high)) {
            // Also where a difference of finite numbers overflows.
            row.check("log_prob", start, new, &block.kept)?;
            row.check("old_log_prob", start, old, &block.kept)?;
            row.check("advantage", start, advantage, &block.kept)?;
        }
        match row.selected {
            Some(bytes) => load_kept(&mut block.selected, Some(bytes), start, 0),
            None => block.selected = [false; BLOCK],
        }
        Ok(())
    }

    /// The response's own log-ratio: a sum over its tokens, divided by its length unless it is a product.
    #[inline(always)]
    fn sequence_ratio(&mut self, partial: &mut PolicyPartial<R>) -> Result<SequenceRatio<R>, Error> {
        let objective = self.objective;
        let (limit, zero) = (objective.token_log_ratio_clamp, R::zero());
        let (mut log_ratios, mut advantages) = (RowSum::new(), RowSum::new());
        let mut start = 0;
        while start < self.row.columns {
            self.load(start)?;
            let block = &mut *self.block;
            match objective.surrogate {
                Surrogate::Gmpo { low, high } => {
                    for ((slot, x), advantage) in
                        block.scratch.iter_mut().zip(&block.token_log_ratio).zip(&block.advantage)
                    {
                        let range = LogClipRange { low, high };
                        let [clipped, slope] = one_sided_clip(*x, *advantage, range, ZeroAdvantage::Neutral);
                        let passes = slope != zero;
                        *slot = clipped;
                        let (cut_high, cut_low) = (!passes & (*advantage > zero), !passes & (*advantage < zero));
                        partial.clipped += usize::from(cut_high | cut_low);
                        partial.clipped_high += usize::from(cut_high);
                        partial.clipped_low += usize::from(cut_low);
                    }
                    advantages.push(&block.advantage);
                }
                _ => {
                    for (slot, x) in block.scratch.iter_mut().zip(&block.token_log_ratio) {
                        *slot = x.clip(zero - limit, limit);
                    }
                }
            }
            log_ratios.push(&block.scratch);
            if let (Surrogate::Vespo { .. }, Some(weights @ RowSpread::Tokens(_))) =
                (objective.surrogate, &self.row.importance_weight)
            {
                let (low, high) = objective.log_ratio_range;
                self.row.spread_checked("importance_weight", &mut block.scratch, weights, start, &block.kept)?;
                for (slot, kept) in block.scratch.iter_mut().zip(&block.kept) {
                    *slot = if *kept { slot.ln().clip(low, high) } else { R::zero() };
                }
                log_ratios.push(&block.scratch);
            }
            start += BLOCK;
        }
        let whole_weight = match self.row.importance_weight {
            Some(RowSpread::Whole(weight)) => Some(weight),
            _ => None,
        };
        Ok(objective.sequence_ratio(log_ratios.value(), advantages.value(), self.row.length, whole_weight))
    }

    #[inline(always)]
    fn ratios(&mut self, sequence: Option<&SequenceRatio<R>>) {
        let block = &mut *self.block;
        match sequence {
            Some(sequence) => {
                block.log_ratio = [sequence.log_ratio; BLOCK];
                block.ratio = [sequence.ratio; BLOCK];
                if matches!(self.objective.surrogate, Surrogate::Gmpo { .. }) {
                    block.advantage = [sequence.advantage; BLOCK];
                }
            }
            None => self.engine.run(block, exponentials),
        }
    }

    /// Approximate KL and the extremes of the ratio.
    #[inline(always)]
    fn count_ratios(&mut self, at_token_level: bool, partial: &mut PolicyPartial<R>) {
        let [smallest, largest, sum, k3, log_ratio] =
            self.engine.run(&mut *self.block, move |block| count_ratios(block, at_token_level));
        partial.ratio_min = partial.ratio_min.smaller(smallest);
        partial.ratio_max = partial.ratio_max.larger(largest);
        self.sums.ratio.push_sum(sum);
        self.sums.k3.push_sum(k3);
        self.sums.log_ratio.push_sum(log_ratio);
    }

    /// Outside its limits the log-ratio is a constant: no gradient passes.
    #[inline(always)]
    fn stop_limited(&mut self, sequence: Option<&SequenceRatio<R>>) {
        if self.objective.surrogate.gradient_path() == GradientPath::LogProb {
            return;
        }
        let block = &mut *self.block;
        match sequence {
            Some(sequence) if sequence.limited => block.derivative = [R::zero(); BLOCK],
            Some(_) => {}
            None => {
                let (low, high) = self.objective.log_ratio_range;
                if low == R::neg_infinity() && high == R::infinity() {
                    return;
                }
                self.engine.run(block, move |block| stop_outside(block, low, high));
            }
        }
    }

    /// Importance weights and `keep`.
    #[inline(always)]
    fn weigh(&mut self, start: usize, partial: &mut PolicyPartial<R>) -> Result<(), Error> {
        let block = &mut *self.block;
        if let Some(weights) = &self.row.importance_weight
            && !matches!(self.objective.surrogate, Surrogate::Vespo { .. })
        {
            self.row.spread_checked("importance_weight", &mut block.scratch, weights, start, &block.kept)?;
            for ((loss, derivative), weight) in
                block.loss.iter_mut().zip(block.derivative.iter_mut()).zip(&block.scratch)
            {
                *loss = product(*loss, *weight);
                *derivative = product(*derivative, *weight);
            }
        }
        if let Some(keep) = self.row.keep {
            let mut kept_tokens = 0;
            for (((loss, derivative), byte), kept) in
                block.loss.iter_mut().zip(block.derivative.iter_mut()).zip(part(keep, start)).zip(&block.kept)
            {
                kept_tokens += usize::from(*kept && *byte != 0);
                *loss = if *byte != 0 { *loss } else { R::zero() };
                *derivative = if *byte != 0 { *derivative } else { R::zero() };
            }
            partial.kept_tokens += kept_tokens;
        }
        Ok(())
    }

    #[inline(always)]
    fn estimate_kl(&mut self, start: usize, spreads: bool) -> Result<(), Error> {
        let (Some(kl), Some(reference)) = (self.objective.kl, self.row.ref_log_prob) else { return Ok(()) };
        let block = &mut *self.block;
        let mut padded = [R::zero(); BLOCK];
        let reference = whole(reference, start, &mut padded, R::zero());
        if !self.engine.run(&mut *block, |block| load_difference(block, reference)) {
            self.row.check("ref_log_prob", start, reference, &block.kept)?;
        }
        // k3 is by far the commonest: it gets loops of its own, in which estimator and clamps are no choice.
        // Where the gradient also flows through the token's own ratio, ρ·k has the slope ρ·(k + k′); for k3 that sum is d, and
        // taken as such it does not overflow where k and k′ do.
        let flows = kl.weight == KlWeight::Ratio && !spreads;
        match (kl.estimator, kl.difference_clamp, kl.value_clamp) {
            (KlEstimator::K3, None, None) if flows => {
                estimate_each(self.engine, block, move |x| {
                    let [value, _] = KlEstimator::K3.estimate(x, None, None);
                    [value, x]
                });
            }
            (KlEstimator::K3, None, None) => {
                estimate_each(self.engine, block, move |x| KlEstimator::K3.estimate(x, None, None));
            }
            (KlEstimator::K3, difference, value) if !flows => {
                let (difference, value) = (difference.unwrap_or(R::max_value()), value.unwrap_or(R::infinity()));
                estimate_each(self.engine, block, move |x| KlEstimator::K3.estimate(x, Some(difference), Some(value)));
            }
            (estimator, difference, value) => {
                estimate_each(self.engine, block, move |x| {
                    let [value, slope] = estimator.estimate(x, difference, value);
                    [value, if flows { slope + value } else { slope }]
                });
            }
        }
        if kl.weight != KlWeight::None {
            // VESPO's ratio is a response's product; the KL estimate of a token takes the token's own (as TRL's does).
            let ratios = if matches!(self.objective.surrogate, Surrogate::Vespo { .. }) {
                for (slot, x) in block.scratch.iter_mut().zip(&block.token_log_ratio) {
                    *slot = x.exp();
                }
                &block.scratch
            } else {
                &block.ratio
            };
            for ((value, slope), ratio) in block.kl.iter_mut().zip(block.d_kl.iter_mut()).zip(ratios) {
                *value = product(*value, *ratio);
                *slope = product(*slope, *ratio);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn load_entropy(&mut self, start: usize) -> Result<(), Error> {
        let (Some(term), Some(entropy)) = (self.objective.entropy, self.row.entropy) else { return Ok(()) };
        let block = &mut *self.block;
        self.row.load_checked("entropy", &mut block.entropy, entropy, start, &block.kept)?;
        if let (EntropyAggregation::KeptTokenMean, Some(keep)) = (term.aggregation, self.row.keep) {
            for (slot, byte) in block.entropy.iter_mut().zip(part(keep, start)) {
                *slot = if *byte != 0 { *slot } else { R::zero() };
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn add_up(&mut self, spreads: bool) {
        let block = &mut *self.block;
        let [policy, kl] = self.engine.run(&*block, |block| [halving_sum(&block.loss), halving_sum(&block.kl)]);
        self.sums.policy.push_sum(policy);
        self.sums.kl.push_sum(kl);
        if self.objective.entropy.is_some() {
            self.sums.entropy.push(&block.entropy);
        }
        if spreads {
            let by_ratio = self.objective.surrogate.gradient_path() == GradientPath::Ratio;
            let kl = self.kl_through_ratio();
            for ((slot, derivative), value) in
                self.block.scratch.iter_mut().zip(&self.block.derivative).zip(&self.block.kl)
            {
                let policy = if by_ratio { *derivative } else { R::zero() };
                *slot = policy + kl.map_or(R::zero(), |coefficient| coefficient * *value);
            }
            self.sums.spread.push(&self.block.scratch);
        }
    }

    /// β where the KL term's gradient also flows through the ratio.
    #[inline(always)]
    fn kl_through_ratio(&self) -> Option<R> {
        self.objective.kl.filter(|kl| kl.weight == KlWeight::Ratio).map(|kl| kl.coefficient)
    }

    #[inline(always)]
    fn write(&mut self, start: usize, spreads: bool, out: &mut RowOutputs<'_, R>) {
        let objective = self.objective;
        let zero = R::zero();
        let block = &mut *self.block;
        if let Some(gradient) = out.d_log_prob.as_deref_mut() {
            let own = !(spreads && objective.surrogate.gradient_path() == GradientPath::Ratio);
            let coefficient = objective.kl.map_or(zero, |kl| kl.coefficient);
            match gradient.get_mut(start..).and_then(|gradient| gradient.first_chunk_mut()) {
                Some(gradient) => {
                    let (block, weight) = (&*block, self.weight);
                    self.engine
                        .run(gradient, move |gradient| token_gradients(block, gradient, own, coefficient, weight));
                }
                None => {
                    let mut padded = [zero; BLOCK];
                    token_gradients(block, &mut padded, own, coefficient, self.weight);
                    store(gradient, start, &padded);
                }
            }
        }
        if let Some(token_loss) = out.token_loss.as_deref_mut() {
            block.scratch = block.loss;
            if let Some(kl) = objective.kl {
                add_scaled(&mut block.scratch, &block.kl, kl.coefficient);
            }
            if let Some(entropy) = objective.entropy
                && entropy.aggregation == EntropyAggregation::Same
            {
                add_scaled(&mut block.scratch, &block.entropy, zero - entropy.coefficient);
            }
            store(token_loss, start, &block.scratch);
        }
        if let Some(weights) = out.token_weight.as_deref_mut() {
            for (slot, kept) in block.scratch.iter_mut().zip(&block.kept) {
                *slot = if *kept { self.weight } else { zero };
            }
            store(weights, start, &block.scratch);
        }
        if let Some(d_entropy) = out.d_entropy.as_deref_mut() {
            let coefficient = objective.entropy.map_or(zero, |entropy| entropy.coefficient);
            let slope = zero - coefficient * self.entropy_weight.unwrap_or(self.weight);
            let only_kept = objective.entropy.is_some_and(|e| e.aggregation == EntropyAggregation::KeptTokenMean);
            for (slot, kept) in block.scratch.iter_mut().zip(&block.kept) {
                *slot = if *kept { slope } else { zero };
            }
            if let (true, Some(keep)) = (only_kept, self.row.keep) {
                for (slot, byte) in block.scratch.iter_mut().zip(part(keep, start)) {
                    *slot = if *byte != 0 { *slot } else { zero };
                }
            }
            store(d_entropy, start, &block.scratch);
        }
    }

    /// Add each token's share of the response's derivative.
    fn spread(&mut self, sequence: &SequenceRatio<R>, gradient: &mut [R]) -> Result<(), Error> {
        let each = self.objective.spread_each(sequence, self.sums.spread.value(), self.weight);
        let limit = self.objective.token_log_ratio_clamp;
        let mut start = 0;
        while start < self.row.columns {
            self.load(start)?;
            let block = &*self.block;
            let tokens = block.token_log_ratio.iter().zip(&block.advantage).zip(&block.kept);
            let slots = gradient.get_mut(start..).unwrap_or(&mut []);
            for (slot, ((x, advantage), kept)) in slots.iter_mut().zip(tokens) {
                let passes = match self.objective.surrogate {
                    Surrogate::Gmpo { low, high } => {
                        let range = LogClipRange { low, high };
                        one_sided_clip(*x, *advantage, range, ZeroAdvantage::Neutral)[1] != R::zero()
                    }
                    _ => x.abs() <= limit,
                };
                if *kept && passes {
                    *slot += each;
                }
            }
            start += BLOCK;
        }
        Ok(())
    }
}

// The stages. What a stage reads conditionally it reads first and selects then: a processor without masked loads could not
// vectorise it otherwise.

/// The first stage: the tokens that are there, and their log-ratios. Returns whether all numbers are finite.
#[inline(always)]
fn load_tokens<R: Real>(
    block: &mut Block<R>,
    new: &Lane<R>,
    old: &Lane<R>,
    advantages: &Lane<R>,
    low: R,
    high: R,
) -> bool {
    let Block { kept, log_prob, token_log_ratio, log_ratio, advantage, .. } = block;
    let given = new.iter().zip(old).zip(advantages).zip(kept.iter());
    let slots = log_prob.iter_mut().zip(token_log_ratio).zip(log_ratio.iter_mut().zip(advantage));
    let mut all_finite = true;
    for ((((new, old), given), kept), ((log_prob, raw), (limited, advantage))) in given.zip(slots) {
        let (new, given, difference) = (*new, *given, *new - *old);
        let difference = if *kept { difference } else { R::zero() };
        let given = if *kept { given } else { R::zero() };
        *log_prob = if *kept { new } else { R::zero() };
        *advantage = given;
        *raw = difference;
        *limited = difference.clip(low, high);
        all_finite &= finite(difference) & finite(given);
    }
    all_finite
}

/// The exponential stage.
#[inline(always)]
fn exponentials<R: Real>(block: &mut Block<R>) {
    let Block { log_ratio, ratio, .. } = block;
    for (slot, x) in ratio.iter_mut().zip(log_ratio) {
        *slot = x.exp();
    }
}

/// What is counted of the ratios: the smallest, the largest and their sum; the sum of e^x − 1 − x and that of the tokens'
/// log-ratios x. Each first halving is done in one loop.
#[inline(always)]
fn count_ratios<R: Real>(block: &mut Block<R>, at_token_level: bool) -> [R; 5] {
    let zero = R::zero();
    if !at_token_level {
        let Block { token_log_ratio, scratch, .. } = &mut *block;
        for (slot, x) in scratch.iter_mut().zip(token_log_ratio) {
            *slot = (x.exp() - R::one()) - *x;
        }
    }
    let log_ratio = if at_token_level { &block.log_ratio } else { &block.token_log_ratio };
    let [mut smallest, mut largest, mut sum, mut k3, mut log_ratios] = [[zero; BLOCK / 2]; 5];
    let (low_ratio, high_ratio) = block.ratio.split_at(BLOCK / 2);
    let (low_kept, high_kept) = block.kept.split_at(BLOCK / 2);
    let (low_log_ratio, high_log_ratio) = log_ratio.split_at(BLOCK / 2);
    let (low_k3, high_k3) = block.scratch.split_at(BLOCK / 2);
    let low = low_ratio.iter().zip(low_kept).zip(low_log_ratio.iter().zip(low_k3));
    let high = high_ratio.iter().zip(high_kept).zip(high_log_ratio.iter().zip(high_k3));
    let results = smallest.iter_mut().zip(&mut largest).zip(&mut sum).zip(k3.iter_mut().zip(&mut log_ratios));
    for ((((a, a_kept), (x, a_k3)), ((b, b_kept), (y, b_k3))), (((smallest, largest), sum), (k3, log_ratio))) in
        low.zip(high).zip(results)
    {
        let or = |kept: bool, ratio: R, otherwise: R| if kept { ratio } else { otherwise };
        let remainder = |ratio: R, x: R, k3: R| if at_token_level { (ratio - R::one()) - x } else { k3 };
        let ((a, x, a_kept, a_k3), (b, y, b_kept, b_k3)) = ((*a, *x, *a_kept, *a_k3), (*b, *y, *b_kept, *b_k3));
        *smallest = or(a_kept, a, R::infinity()).smaller(or(b_kept, b, R::infinity()));
        let (a_or_zero, b_or_zero) = (or(a_kept, a, zero), or(b_kept, b, zero));
        *largest = a_or_zero.larger(b_or_zero);
        *sum = a_or_zero + b_or_zero;
        *k3 = remainder(a, x, a_k3) + remainder(b, y, b_k3);
        *log_ratio = x + y;
    }
    let add = |a: R, b: R| a + b;
    [
        halving_fold(&smallest, R::smaller),
        halving_fold(&largest, R::larger),
        halving_fold(&sum, add),
        halving_fold(&k3, add),
        halving_fold(&log_ratios, add),
    ]
}

/// No derivative where the log-ratio lies outside its limits.
#[inline(always)]
fn stop_outside<R: Real>(block: &mut Block<R>, low: R, high: R) {
    let Block { derivative, token_log_ratio, .. } = block;
    for (slot, x) in derivative.iter_mut().zip(token_log_ratio) {
        *slot = if (*x < low) | (*x > high) { R::zero() } else { *slot };
    }
}

/// log π − log π_ref of the tokens that are there, in `scratch`. Returns whether all are finite.
#[inline(always)]
fn load_difference<R: Real>(block: &mut Block<R>, reference: &Lane<R>) -> bool {
    let Block { kept, log_prob, scratch, .. } = block;
    let mut all_finite = true;
    for ((slot, log_prob), (reference, kept)) in scratch.iter_mut().zip(log_prob).zip(reference.iter().zip(kept)) {
        let difference = *log_prob - *reference;
        let difference = if *kept { difference } else { R::zero() };
        *slot = difference;
        all_finite &= finite(difference);
    }
    all_finite
}

/// The KL stage, of the differences in `scratch`. Those of absent tokens are 0, and so are their estimates; the slopes there
/// are not used. A choice by token would tempt the compiler to branch around the exponential, and not to vectorise.
#[inline(always)]
fn estimate_each<R: Real, E: Engine>(engine: E, block: &mut Block<R>, estimate: impl Fn(R) -> [R; 2]) {
    engine.run(block, move |block| {
        let Block { scratch, kl, d_kl, .. } = block;
        for ((value, slope), difference) in kl.iter_mut().zip(d_kl).zip(scratch.iter()) {
            [*value, *slope] = estimate(*difference);
        }
    });
}

/// The last stage: the gradient, of policy term (where it is the token's `own`) and KL term.
#[inline(always)]
fn token_gradients<R: Real>(block: &Block<R>, gradient: &mut Lane<R>, own: bool, coefficient: R, weight: R) {
    let Block { kept, derivative, d_kl, .. } = block;
    for ((slot, kept), (derivative, d_kl)) in gradient.iter_mut().zip(kept).zip(derivative.iter().zip(d_kl)) {
        let (policy, kl) = (*derivative, *d_kl);
        let policy = if own { policy } else { R::zero() };
        let sum = product(policy + coefficient * kl, weight);
        *slot = if *kept { sum } else { R::zero() };
    }
}

/// Add a multiple of a lane to a lane.
#[inline(always)]
fn add_scaled<R: Real>(lane: &mut Lane<R>, more: &Lane<R>, factor: R) {
    for (slot, value) in lane.iter_mut().zip(more) {
        *slot += factor * *value;
    }
}

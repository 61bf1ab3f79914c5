//! The pass over the rows of a batch.

use super::batch::{PolicyBatch, PolicyOutputs, Spread};
use super::block::{Block, Lane, all_finite, combine, load, load_kept, part, select, store, weigh};
use super::partial::PolicyPartial;
use super::surrogate::{GradientPath, Surrogate};
use super::token::{RowTotals, SequenceRatio};
use super::{EntropyAggregation, KlWeight, PolicyObjective};
use crate::Error;
use crate::batch::row_of;
use crate::kl::estimator::KlEstimator;
use crate::num::{BLOCK, Real, RowSum, halving_fold};
use crate::ratio::geometric_clipped::{LogClipRange, ZeroAdvantage, one_sided_clip};
use crate::reduce::Totals;
use crate::surrogate::product;

/// Add a batch's rows to `partial` and write its outputs.
pub(super) fn accumulate<R: Real>(
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

    #[inline(always)]
    fn load(&self, lane: &mut Lane<R>, start: usize, kept: &Lane<bool>) {
        match self {
            RowSpread::Tokens(values) => load(lane, part(values, start), kept),
            RowSpread::Whole(value) => {
                for (slot, kept) in lane.iter_mut().zip(kept) {
                    *slot = if *kept { *value } else { R::zero() };
                }
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

    /// The error for the first non-finite token of a lane that failed the check.
    #[cold]
    fn non_finite(&self, argument: &'static str, start: usize, lane: &Lane<R>) -> Error {
        let offset = lane.iter().position(|value| !value.is_finite()).unwrap_or(0);
        Error::NonFinite { argument, index: self.row * self.columns + start + offset }
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
        load(lane, part(from, start), kept);
        if all_finite(lane) { Ok(()) } else { Err(self.non_finite(argument, start, lane)) }
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
        from.load(lane, start, kept);
        if all_finite(lane) { Ok(()) } else { Err(self.non_finite(argument, start, lane)) }
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

struct RowPass<'p, 'a, R> {
    objective: &'p PolicyObjective<R>,
    row: RowView<'a, R>,
    block: &'p mut Block<R>,
    weight: R,
    entropy_weight: Option<R>,
    sums: RowSums<R>,
}

impl<R: Real> RowPass<'_, '_, R> {
    fn run(&mut self, out: &mut RowOutputs<'_, R>, partial: &mut PolicyPartial<R>) -> Result<(), Error> {
        let objective = self.objective;
        let sequence = if objective.shares_ratio() { Some(self.sequence_ratio(partial)?) } else { None };
        let spreads = objective.spreads();
        let mut start = 0;
        while start < self.row.columns {
            self.load(start)?;
            self.ratios(sequence.as_ref());
            self.count_ratios(sequence.is_none(), partial);
            objective.surrogate.apply(self.block, partial);
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

    /// log π, log π_old and A of the next block.
    #[inline(always)]
    fn load(&mut self, start: usize) -> Result<(), Error> {
        self.load_log_ratio(start)?;
        let block = &mut *self.block;
        self.row.spread_checked("advantage", &mut block.advantage, &self.row.advantage, start, &block.kept)?;
        match self.row.selected {
            Some(bytes) => load_kept(&mut block.selected, Some(part(bytes, start)), 0),
            None => block.selected = [false; BLOCK],
        }
        Ok(())
    }

    #[inline(always)]
    fn load_log_ratio(&mut self, start: usize) -> Result<(), Error> {
        let block = &mut *self.block;
        let row = &self.row;
        load_kept(&mut block.kept, row.mask.map(|bytes| part(bytes, start)), row.columns - start);
        row.load_checked("log_prob", &mut block.log_prob, row.log_prob, start, &block.kept)?;
        match row.old_log_prob {
            Some(old) => {
                row.load_checked("old_log_prob", &mut block.scratch, old, start, &block.kept)?;
                combine(&mut block.token_log_ratio, &block.log_prob, &block.scratch, |new, old| new - old);
            }
            None => block.token_log_ratio = [R::zero(); BLOCK],
        }
        Ok(())
    }

    /// The response's own log-ratio: a sum over its tokens, divided by its length unless it is a product.
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
            None => {
                let (low, high) = self.objective.log_ratio_range;
                let raw = &block.token_log_ratio;
                combine(&mut block.log_ratio, raw, raw, |x, _| x.clip(low, high));
                exp_each(&block.log_ratio, &mut block.ratio);
            }
        }
    }

    /// Approximate KL and the extremes of the ratio.
    #[inline(always)]
    fn count_ratios(&mut self, at_token_level: bool, partial: &mut PolicyPartial<R>) {
        let block = &mut *self.block;
        let (zero, one) = (R::zero(), R::one());
        select(&mut block.scratch, &block.ratio, &block.kept, R::infinity());
        partial.ratio_min = partial.ratio_min.smaller(halving_fold(&block.scratch, R::smaller));
        select(&mut block.scratch, &block.ratio, &block.kept, zero);
        partial.ratio_max = partial.ratio_max.larger(halving_fold(&block.scratch, R::larger));
        self.sums.ratio.push(&block.scratch);
        if at_token_level {
            combine(&mut block.scratch, &block.ratio, &block.log_ratio, |ratio, x| (ratio - one) - x);
        } else {
            combine(&mut block.scratch, &block.ratio, &block.token_log_ratio, |_, x| (x.exp() - one) - x);
        }
        self.sums.k3.push(&block.scratch);
        self.sums.log_ratio.push(if at_token_level { &block.log_ratio } else { &block.token_log_ratio });
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
                stop_outside(&mut block.derivative, &block.token_log_ratio, low, high);
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
        match self.row.keep {
            Some(keep) => {
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
            None => partial.kept_tokens += block.kept.iter().filter(|kept| **kept).count(),
        }
        Ok(())
    }

    #[inline(always)]
    fn estimate_kl(&mut self, start: usize, spreads: bool) -> Result<(), Error> {
        let (Some(kl), Some(reference)) = (self.objective.kl, self.row.ref_log_prob) else { return Ok(()) };
        let block = &mut *self.block;
        self.row.load_checked("ref_log_prob", &mut block.scratch, reference, start, &block.kept)?;
        // k3 is by far the commonest: it gets loops of its own, in which estimator and clamps are no choice.
        let Block { log_prob, scratch, kept, kl: values, d_kl: slopes, .. } = &mut *block;
        // Where the gradient also flows through the token's own ratio, ρ·k has the slope ρ·(k + k′); for k3 that sum is d, and
        // taken as such it does not overflow where k and k′ do.
        let flows = kl.weight == KlWeight::Ratio && !spreads;
        match (kl.estimator, kl.difference_clamp, kl.value_clamp) {
            (KlEstimator::K3, None, None) if flows => {
                estimate_each(log_prob, scratch, kept, values, slopes, |x| {
                    let [value, _] = KlEstimator::K3.estimate(x, None, None);
                    [value, x]
                });
            }
            (KlEstimator::K3, None, None) => {
                estimate_each(log_prob, scratch, kept, values, slopes, |x| KlEstimator::K3.estimate(x, None, None));
            }
            (KlEstimator::K3, difference, value) if !flows => {
                let (difference, value) = (difference.unwrap_or(R::max_value()), value.unwrap_or(R::infinity()));
                estimate_each(log_prob, scratch, kept, values, slopes, |x| {
                    KlEstimator::K3.estimate(x, Some(difference), Some(value))
                });
            }
            (estimator, difference, value) => {
                estimate_each(log_prob, scratch, kept, values, slopes, |x| {
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
        self.sums.policy.push(&block.loss);
        if self.objective.kl.is_some() {
            self.sums.kl.push(&block.kl);
        }
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
            let through_ratio = objective.surrogate.gradient_path() == GradientPath::Ratio;
            let own = !(spreads && through_ratio);
            block.scratch = if own { block.derivative } else { [zero; BLOCK] };
            if let Some(kl) = objective.kl {
                add_scaled(&mut block.scratch, &block.d_kl, kl.coefficient);
            }
            weigh(&mut block.scratch, &block.kept, self.weight);
            store(gradient, start, &block.scratch);
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

/// The KL stage. A function of its own, because only then does the compiler know that its arrays do not overlap, and
/// vectorise.
#[inline(never)]
fn estimate_each<R: Real>(
    log_prob: &Lane<R>,
    reference: &Lane<R>,
    kept: &Lane<bool>,
    kl: &mut Lane<R>,
    d_kl: &mut Lane<R>,
    estimate: impl Fn(R) -> [R; 2],
) {
    let tokens = log_prob.iter().zip(reference).zip(kept);
    for ((value, slope), ((log_prob, reference), kept)) in kl.iter_mut().zip(d_kl.iter_mut()).zip(tokens) {
        let [estimate, derivative] = estimate(*log_prob - *reference);
        *value = if *kept { estimate } else { R::zero() };
        *slope = if *kept { derivative } else { R::zero() };
    }
}

/// No derivative where the log-ratio lies outside its limits.
#[inline(never)]
fn stop_outside<R: Real>(derivative: &mut Lane<R>, log_ratio: &Lane<R>, low: R, high: R) {
    for (slot, x) in derivative.iter_mut().zip(log_ratio) {
        *slot = if (*x < low) | (*x > high) { R::zero() } else { *slot };
    }
}

/// Add a multiple of a lane to a lane.
#[inline(never)]
fn add_scaled<R: Real>(lane: &mut Lane<R>, more: &Lane<R>, factor: R) {
    for (slot, value) in lane.iter_mut().zip(more) {
        *slot += factor * *value;
    }
}

/// The exponential stage, a function of its own for the same reason.
#[inline(never)]
fn exp_each<R: Real>(log_ratio: &Lane<R>, ratio: &mut Lane<R>) {
    for (slot, x) in ratio.iter_mut().zip(log_ratio) {
        *slot = x.exp();
    }
}

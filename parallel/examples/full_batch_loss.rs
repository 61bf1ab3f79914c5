//! The exact loss and gradient of a batch from its shards, by the map and reduce of an existing engine (rayon).
//!
//! Three passes, as a data-parallel trainer would run them; what a reduce returns is what an all-reduce would carry:
//!
//! 1. each shard: advantages of its own groups (a group lies whole in one shard), counts → merged [`Totals`];
//! 2. whitening of the advantages: sums → merged mean, squares → merged deviation;
//! 3. each shard: its gradient and its sums, given the merged counts → merged [`PolicyPartial`] → the loss.
//!
//! Whatever the shards and threads, loss, metrics and gradient have the bits of the unsharded batch.

use std::ops::Range;

use plumbline_core::Error;
use plumbline_core::advantage::{
    Deviation, EpsPlacement, GroupMeanStd, GroupOfOne, GroupedRewards, OneToken, Whiten, WhitenSums, broadcast,
    group_mean_std,
};
use plumbline_core::batch::{Groups, Mask, TokenShape};
use plumbline_core::num::ExactSum;
use plumbline_core::objective::policy::{
    PolicyBatch, PolicyLoss, PolicyObjective, PolicyOutputs, PolicyPartial, Spread, Surrogate,
};
use plumbline_core::reduce::{Aggregation, Reduction, Totals};
use plumbline_core::spec::Choice;
use plumbline_core::surrogate::ClipRange;
use rayon::prelude::*;

/// Responses, tokens of each, responses to a prompt.
const ROWS: usize = 48;
const COLUMNS: usize = 40;
const GROUP: usize = 4;

const ADVANTAGE: GroupMeanStd<f32> = GroupMeanStd {
    deviation: Deviation { ddof: 1, eps: 1e-6, eps_placement: EpsPlacement::StdPlusEps },
    group_of_one: GroupOfOne::Zero,
};
const WHITEN: Whiten<f32> = Whiten { shift_mean: true, ddof: 1, eps: 1e-8, count_eps: 0.0, one_token: OneToken::Error };

/// What a trainer's batch holds.
struct Batch {
    log_prob: Vec<f32>,
    old_log_prob: Vec<f32>,
    reward: Vec<f32>,
    group: Vec<u32>,
    mask: Vec<u8>,
}

impl Batch {
    fn new() -> Self {
        let noise = |index: usize, factor: usize| (index * factor % 8191) as f32 / 8191.0;
        let tokens = ROWS * COLUMNS;
        let old_log_prob: Vec<f32> = (0..tokens).map(|slot| -0.1 - 2.0 * noise(slot, 6007)).collect();
        Batch {
            log_prob: (0..tokens).map(|slot| old_log_prob[slot] + noise(slot, 4999) - 0.5).collect(),
            old_log_prob,
            reward: (0..ROWS).map(|row| (noise(row, 3571) * 4.0).round()).collect(),
            group: (0..ROWS).map(|row| (row / GROUP) as u32).collect(),
            // Responses of 1 to T tokens.
            mask: (0..tokens).map(|slot| u8::from(slot % COLUMNS <= slot / COLUMNS * 7 % COLUMNS)).collect(),
        }
    }

    fn mask(&self, rows: &Range<usize>) -> Result<Mask<'_>, Error> {
        Mask::new(TokenShape { rows: rows.len(), columns: COLUMNS }, Some(&self.mask[tokens(rows)]))
    }

    fn view<'a>(&'a self, rows: &Range<usize>, advantage: &'a [f32]) -> Result<PolicyBatch<'a, f32>, Error> {
        Ok(PolicyBatch {
            old_log_prob: Some(&self.old_log_prob[tokens(rows)]),
            groups: Some(Groups::new(&self.group[rows.clone()])),
            ..PolicyBatch::new(&self.log_prob[tokens(rows)], Spread::PerToken(advantage), self.mask(rows)?)
        })
    }
}

fn tokens(rows: &Range<usize>) -> Range<usize> {
    rows.start * COLUMNS..rows.end * COLUMNS
}

/// Loss and gradient from shards of the given numbers of rows.
fn sharded(
    batch: &Batch,
    objective: &PolicyObjective<f32>,
    shard_rows: usize,
) -> Result<(PolicyLoss<f32>, Vec<f32>), Error> {
    let shards: Vec<Range<usize>> =
        (0..ROWS).step_by(shard_rows).map(|start| start..(start + shard_rows).min(ROWS)).collect();
    let mut advantage = vec![0.0; ROWS * COLUMNS];

    // 1. Advantages of whole groups, and the counts.
    let totals = shards
        .par_iter()
        .zip(advantage.par_chunks_mut(shard_rows * COLUMNS))
        .map(|(rows, advantage)| {
            let mut per_response = vec![0.0; rows.len()];
            let rewards =
                GroupedRewards::new(&batch.reward[rows.clone()], Groups::new(&batch.group[rows.clone()]), None)?;
            group_mean_std(rewards, ADVANTAGE, &mut per_response)?;
            broadcast(&per_response, batch.mask(rows)?, advantage)?;
            Ok(objective.totals(&batch.view(rows, advantage)?))
        })
        .try_reduce(Totals::default, |left, right| Ok(left.merge(right)))?;

    // 2. Whitened over the tokens of all shards: the mean first, then the squares around it.
    let sums = shards
        .par_iter()
        .zip(advantage.par_chunks(shard_rows * COLUMNS))
        .map(|(rows, advantage)| WhitenSums::new(advantage, batch.mask(rows)?))
        .try_reduce(WhitenSums::default, |mut left, right| {
            left.merge(&right);
            Ok(left)
        })?;
    let center = sums.center(WHITEN)?;
    let squares = shards
        .par_iter()
        .zip(advantage.par_chunks(shard_rows * COLUMNS))
        .map(|(rows, advantage)| Ok(center.squares(advantage, batch.mask(rows)?)))
        .try_reduce(ExactSum::new, |mut left, right| {
            left.merge(&right);
            Ok(left)
        })?;
    let moments = center.moments(&squares, WHITEN);

    // 3. Each shard's gradient and sums.
    let mut gradient = vec![0.0; ROWS * COLUMNS];
    let sums = shards
        .par_iter()
        .zip(advantage.par_chunks_mut(shard_rows * COLUMNS))
        .zip(gradient.par_chunks_mut(shard_rows * COLUMNS))
        .map(|((rows, advantage), gradient)| {
            advantage.iter_mut().for_each(|advantage| *advantage = moments.apply(*advantage));
            let mut outputs = PolicyOutputs { d_log_prob: Some(gradient), ..PolicyOutputs::default() };
            objective.partial(&batch.view(rows, advantage)?, &totals, &mut outputs)
        })
        .try_reduce_with(|mut left: PolicyPartial<f32>, right| {
            left.merge(&right);
            Ok(left)
        });
    let sums = sums.unwrap_or(Err(Error::EmptyMask { argument: "mask" }))?;
    Ok((objective.finish(&sums, &totals)?, gradient))
}

/// The largest loss among the aggregation modes, after checking that no sharding changes a bit of any.
fn every_sharding_agrees() -> Result<usize, Error> {
    let batch = Batch::new();
    let mut compared = 0;
    for aggregation in Aggregation::MEMBERS {
        let surrogate = Surrogate::ppo_clip(ClipRange::relative(0.2, 0.28));
        let objective = PolicyObjective::new(surrogate, Reduction::new(*aggregation));
        let (whole, whole_gradient) = sharded(&batch, &objective, ROWS)?;
        let bits = |gradient: &[f32]| gradient.iter().map(|slot| slot.to_bits()).collect::<Vec<u32>>();
        for groups in [1, 2, 3, 5, 7] {
            let (loss, gradient) = sharded(&batch, &objective, groups * GROUP)?;
            assert_eq!(loss.loss.to_bits(), whole.loss.to_bits());
            assert_eq!(loss, whole);
            assert_eq!(bits(&gradient), bits(&whole_gradient));
            compared += 1;
        }
        println!("{:24} {:+.9e}", aggregation.name(), whole.loss);
    }
    Ok(compared)
}

fn main() -> Result<(), Error> {
    let compared = every_sharding_agrees()?;
    println!("{compared} shardings: the bits of the whole batch");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_the_bits_of_the_whole_batch_on_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(every_sharding_agrees), Ok(30));
        }
        // The unsharded path, by the library's own call, agrees as well.
        let batch = Batch::new();
        let objective = PolicyObjective::new(
            Surrogate::ppo_clip(ClipRange::relative(0.2, 0.28)),
            Reduction::new(Aggregation::TokenMean),
        );
        let (loss, gradient) = sharded(&batch, &objective, 2 * GROUP).unwrap();
        let mask = batch.mask(&(0..ROWS)).unwrap();
        let (mut per_response, mut advantage) = (vec![0.0; ROWS], vec![0.0; ROWS * COLUMNS]);
        let rewards = GroupedRewards::new(&batch.reward, Groups::new(&batch.group), None).unwrap();
        group_mean_std(rewards, ADVANTAGE, &mut per_response).unwrap();
        broadcast(&per_response, mask, &mut advantage).unwrap();
        plumbline_core::advantage::whiten_in_place(&mut advantage, mask, WHITEN).unwrap();
        let mut whole_gradient = vec![0.0; ROWS * COLUMNS];
        let mut outputs = PolicyOutputs { d_log_prob: Some(&mut whole_gradient), ..PolicyOutputs::default() };
        let whole = objective.loss(&batch.view(&(0..ROWS), &advantage).unwrap(), &mut outputs).unwrap();
        assert_eq!(loss, whole);
        assert_eq!(gradient, whole_gradient);
    }
}

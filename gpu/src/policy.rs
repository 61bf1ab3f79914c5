//! The policy objective on arrays in the device's memory.
#![allow(unsafe_code)]

use plumbline_core::Error as CoreError;
use plumbline_core::num::BLOCK;
use plumbline_core::objective::policy::{PolicyLoss, PolicyMetrics, PolicyObjective};
use plumbline_core::reduce::Totals;
use plumbline_gpu_kernels::fault::Fault;
use plumbline_gpu_kernels::memory::{Number, Reader, Writer};
use plumbline_gpu_kernels::policy::{
    ADDERS, Add, Batch, Count, EXACT_SUM_BYTES, Finish, METRICS, Rows, SEQUENCE_COUNTS, SEQUENCE_SUMS, SequenceRows,
    SequenceTiles, Settings, Spread, TILE_COUNTS, TILE_SUMS, TOTALS, Tiles, Total, Weigh, Workspace,
};
use plumbline_gpu_kernels::tile::Tile;
use plumbline_gpu_kernels::warp::LANES;

use crate::array::Plain;
use crate::{Array, Device, Error, Grid};

/// Numbers given per token or per response.
#[derive(Debug)]
pub enum Values<'a, D: Device, R> {
    /// [B, T].
    PerToken(&'a Array<D, R>),
    /// \[B\].
    PerRow(&'a Array<D, R>),
}

/// What the objective reads, in the device's memory. Shapes as in
/// [`plumbline_core::objective::policy::PolicyBatch`].
#[derive(Debug)]
pub struct PolicyArrays<'a, D: Device, R> {
    /// log π.
    pub log_prob: &'a Array<D, R>,
    /// log π_old.
    pub old_log_prob: Option<&'a Array<D, R>>,
    /// log π_ref.
    pub ref_log_prob: Option<&'a Array<D, R>>,
    /// A.
    pub advantage: Values<'a, D, R>,
    /// Weights of the policy term.
    pub importance_weight: Option<Values<'a, D, R>>,
    /// H.
    pub entropy: Option<&'a Array<D, R>>,
    /// Which slots hold a token.
    pub mask: Option<&'a Array<D, u8>>,
    /// Which policy terms stay in.
    pub keep: Option<&'a Array<D, u8>>,
    /// Which tokens were selected.
    pub selected: Option<&'a Array<D, u8>>,
    /// The prompt of each response.
    pub group: Option<&'a Array<D, u32>>,
}

/// Where the objective writes, in the device's memory; each [B, T] and optional.
#[derive(Debug)]
pub struct PolicyResults<'a, D: Device, R> {
    /// Gradient by log π.
    pub d_log_prob: Option<&'a mut Array<D, R>>,
    /// Gradient by the entropy.
    pub d_entropy: Option<&'a mut Array<D, R>>,
    /// ℓ before aggregation.
    pub token_loss: Option<&'a mut Array<D, R>>,
    /// The weight of each token.
    pub token_weight: Option<&'a mut Array<D, R>>,
}

impl<D: Device, R> Default for PolicyResults<'_, D, R> {
    fn default() -> Self {
        PolicyResults { d_log_prob: None, d_entropy: None, token_loss: None, token_weight: None }
    }
}

/// What the objective works in, for batches of up to the shape that it was made for; used again from step to step.
#[derive(Debug)]
pub struct PolicyWorkspace<D: Device, R> {
    rows: usize,
    columns: usize,
    length: Array<D, u32>,
    kept: Array<D, u32>,
    totals: Array<D, u64>,
    row_divisor: Array<D, R>,
    row_weight: Array<D, R>,
    tile_sum: Array<D, R>,
    tile_count: Array<D, u32>,
    tile_ratio: Array<D, R>,
    row_term: Array<D, R>,
    row_count: Array<D, u32>,
    row_ratio: Array<D, R>,
    row_share: Array<D, R>,
    sequence_sum: Array<D, R>,
    sequence_count: Array<D, u32>,
    sequence: Array<D, R>,
    exact: Array<D, u64>,
    fault: Array<D, u64>,
    result: Array<D, R>,
}

impl<D: Device, R: Number + Plain> PolicyWorkspace<D, R> {
    /// For batches of `rows` responses of `columns` tokens.
    pub fn new(device: &D, rows: usize, columns: usize) -> Result<Self, Error> {
        let tiles = rows.saturating_mul(Tile::per_row(columns));
        Ok(PolicyWorkspace {
            rows,
            columns,
            length: Array::new(device, rows)?,
            kept: Array::new(device, rows)?,
            totals: Array::new(device, TOTALS)?,
            row_divisor: Array::new(device, rows)?,
            row_weight: Array::new(device, rows)?,
            tile_sum: Array::new(device, tiles * TILE_SUMS)?,
            tile_count: Array::new(device, tiles * TILE_COUNTS)?,
            tile_ratio: Array::new(device, tiles * 2)?,
            row_term: Array::new(device, rows * 6)?,
            row_count: Array::new(device, rows * TILE_COUNTS)?,
            row_ratio: Array::new(device, rows * 2)?,
            row_share: Array::new(device, rows)?,
            sequence_sum: Array::new(device, tiles * SEQUENCE_SUMS)?,
            sequence_count: Array::new(device, tiles * SEQUENCE_COUNTS)?,
            sequence: Array::new(device, rows * 5)?,
            exact: Array::new(device, 6 * ADDERS * (EXACT_SUM_BYTES / size_of::<u64>()))?,
            fault: Array::new(device, 1)?,
            result: Array::new(device, METRICS)?,
        })
    }

    fn views(&mut self, device: &D) -> Workspace<R> {
        Workspace {
            length: self.length.writer(device),
            kept: self.kept.writer(device),
            totals: self.totals.writer(device),
            row_divisor: self.row_divisor.writer(device),
            row_weight: self.row_weight.writer(device),
            tile_sum: self.tile_sum.writer(device),
            tile_count: self.tile_count.writer(device),
            tile_ratio: self.tile_ratio.writer(device),
            row_term: self.row_term.writer(device),
            row_count: self.row_count.writer(device),
            row_ratio: self.row_ratio.writer(device),
            row_share: self.row_share.writer(device),
            sequence_sum: self.sequence_sum.writer(device),
            sequence_count: self.sequence_count.writer(device),
            sequence: self.sequence.writer(device),
            exact: self.exact.writer(device),
            fault: self.fault.writer(device),
        }
    }

    /// Wait for the launches of [`policy_objective`] and read the loss, or what was wrong with the batch.
    pub fn result(&self, device: &D, objective: &PolicyObjective<R>) -> Result<PolicyLoss<R>, Error> {
        let (mut fault, mut totals, mut result) = ([Fault::NONE], [0; TOTALS], [R::zero(); METRICS]);
        self.fault.read(device, &mut fault)?;
        self.totals.read(device, &mut totals)?;
        let [tokens, nonempty_rows, _, groups] = totals.map(|count| count as usize);
        objective.reduction.divisor(&Totals {
            tokens,
            rows: self.rows,
            nonempty_rows,
            groups,
            columns: self.columns,
        })?;
        if let Some(fault) = Fault::of(fault[0]) {
            let per_row = Tile::per_row(self.columns);
            let column = fault.tile % per_row * BLOCK + fault.position;
            let names = ["log_prob", "old_log_prob", "advantage", "importance_weight", "ref_log_prob", "entropy"];
            let argument = names.get(fault.argument).copied().unwrap_or("log_prob");
            let index = fault.tile / per_row * self.columns + column;
            return Err(CoreError::NonFinite { argument, index }.into());
        }
        self.result.read(device, &mut result)?;
        let [loss, policy_loss, kl_loss, entropy_loss, clip, high, low, dual, k1, k3, mean, smallest, largest] = result;
        Ok(PolicyLoss {
            loss,
            policy_loss,
            kl_loss,
            entropy_loss,
            metrics: PolicyMetrics {
                clip_fraction: clip,
                clip_fraction_high: high,
                clip_fraction_low: low,
                dual_clip_fraction: dual,
                approx_kl_k1: k1,
                approx_kl_k3: k3,
                ratio_mean: mean,
                ratio_min: smallest,
                ratio_max: largest,
            },
        })
    }
}

/// Launch the objective over a batch of the workspace's shape: nothing waits. [`PolicyWorkspace::result`] has the loss, the
/// results' arrays the rest.
pub fn policy_objective<D: Device, R: Number + Plain>(
    device: &D,
    objective: &PolicyObjective<R>,
    arrays: &PolicyArrays<'_, D, R>,
    results: PolicyResults<'_, D, R>,
    workspace: &mut PolicyWorkspace<D, R>,
) -> Result<(), Error> {
    let (rows, columns) = (workspace.rows, workspace.columns);
    check(objective, arrays, &results, rows, columns)?;
    let batch = views(device, arrays, rows, columns);
    let settings = Settings::new(objective);
    workspace.fault.write(device, &[Fault::NONE])?;
    let views = workspace.views(device);
    let writer = |array: Option<&mut Array<D, R>>| array.map_or(Writer::NONE, |array| array.writer(device));
    let d_log_prob = writer(results.d_log_prob);
    let tiles = device.grid(rows.saturating_mul(Tile::per_row(columns)));
    let each_row = device.grid(rows.div_ceil(LANES));
    // SAFETY: all arrays are the device's own, as long as their readers and writers say, and of the shapes that `check` saw; none
    // is both read and written but the workspace's, whose elements each launch writes from one thread. Who holds the borrows
    // gives memory back in the order of the launches.
    unsafe {
        device.launch(device.grid(rows), &Count { batch, workspace: views })?;
        device.launch(Grid::ONE, &Total { batch, workspace: views })?;
        device.launch(each_row, &Weigh { batch, settings, workspace: views })?;
        if objective.shares_ratio() {
            device.launch(tiles, &SequenceTiles { batch, settings, workspace: views })?;
            device.launch(each_row, &SequenceRows { batch, settings, workspace: views })?;
        }
        device.launch(
            tiles,
            &Tiles {
                batch,
                settings,
                workspace: views,
                d_log_prob,
                d_entropy: writer(results.d_entropy),
                token_loss: writer(results.token_loss),
                token_weight: writer(results.token_weight),
            },
        )?;
        device.launch(each_row, &Rows { batch, settings, workspace: views })?;
        if objective.shares_ratio() {
            device.launch(tiles, &Spread { batch, settings, workspace: views, d_log_prob })?;
        }
        device.launch(device.grid(6), &Add { batch, workspace: views })?;
        device.launch(Grid::ONE, &Finish { batch, settings, workspace: views, result: workspace.result.writer(device) })
    }
}

fn views<D: Device, R: Number + Plain>(
    device: &D,
    arrays: &PolicyArrays<'_, D, R>,
    rows: usize,
    columns: usize,
) -> Batch<R> {
    let real = |array: Option<&Array<D, R>>| array.map_or(Reader::NONE, |array| array.reader(device));
    let bytes = |array: Option<&Array<D, u8>>| array.map_or(Reader::NONE, |array| array.reader(device));
    let spread = |values: Option<&Values<'_, D, R>>| match values {
        Some(Values::PerToken(values)) => (values.reader(device), 1),
        Some(Values::PerRow(values)) => (values.reader(device), 0),
        None => (Reader::NONE, 0),
    };
    let (advantage, advantage_per_token) = spread(Some(&arrays.advantage));
    let (importance_weight, weight_per_token) = spread(arrays.importance_weight.as_ref());
    Batch {
        log_prob: arrays.log_prob.reader(device),
        old_log_prob: real(arrays.old_log_prob),
        ref_log_prob: real(arrays.ref_log_prob),
        advantage,
        importance_weight,
        entropy: real(arrays.entropy),
        mask: bytes(arrays.mask),
        keep: bytes(arrays.keep),
        selected: bytes(arrays.selected),
        group: arrays.group.map_or(Reader::NONE, |group| group.reader(device)),
        rows,
        columns,
        advantage_per_token,
        weight_per_token,
    }
}

fn check<D: Device, R: Number + Plain>(
    objective: &PolicyObjective<R>,
    arrays: &PolicyArrays<'_, D, R>,
    results: &PolicyResults<'_, D, R>,
    rows: usize,
    columns: usize,
) -> Result<(), CoreError> {
    let slots = rows.saturating_mul(columns);
    let whole = |argument, length: Option<usize>, expected: usize| match length {
        Some(got) if got != expected => Err(CoreError::LengthMismatch { argument, expected, got }),
        _ => Ok(()),
    };
    let spread = |argument, values: Option<&Values<'_, D, R>>| match values {
        Some(Values::PerToken(values)) => whole(argument, Some(values.length()), slots),
        Some(Values::PerRow(values)) => whole(argument, Some(values.length()), rows),
        None => Ok(()),
    };
    let real = |array: Option<&Array<D, R>>| array.map(Array::length);
    let bytes = |array: Option<&Array<D, u8>>| array.map(Array::length);
    whole("log_prob", Some(arrays.log_prob.length()), slots)?;
    whole("old_log_prob", real(arrays.old_log_prob), slots)?;
    whole("ref_log_prob", real(arrays.ref_log_prob), slots)?;
    whole("entropy", real(arrays.entropy), slots)?;
    spread("advantage", Some(&arrays.advantage))?;
    spread("importance_weight", arrays.importance_weight.as_ref())?;
    whole("mask", bytes(arrays.mask), slots)?;
    whole("keep", bytes(arrays.keep), slots)?;
    whole("selected", bytes(arrays.selected), slots)?;
    whole("group", arrays.group.map(Array::length), rows)?;
    for (argument, array) in [
        ("d_log_prob", &results.d_log_prob),
        ("d_entropy", &results.d_entropy),
        ("token_loss", &results.token_loss),
        ("token_weight", &results.token_weight),
    ] {
        whole(argument, array.as_deref().map(Array::length), slots)?;
    }
    if objective.kl.is_some() && arrays.ref_log_prob.is_none() {
        return Err(CoreError::MissingInput { argument: "ref_log_prob" });
    }
    if objective.entropy.is_some() && arrays.entropy.is_none() {
        return Err(CoreError::MissingInput { argument: "entropy" });
    }
    Ok(())
}

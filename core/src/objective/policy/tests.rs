//! Properties of every surrogate × ratio level × aggregation.

use super::token::{PolicyCounts, RowTotals, SequenceInput, TokenInput, TokenOutput};
use super::*;
use crate::batch::{Groups, Mask, TokenShape};
use crate::num::{BLOCK, ExactSum, tree_sum_map};
use crate::spec::Choice;
use crate::surrogate::ClipRange;
use crate::surrogate::dppo::{Divergence, DppoBounds};
use crate::surrogate::vespo::GammaShape;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const ROWS: usize = 4;
const COLUMNS: usize = 5;
const SLOTS: usize = ROWS * COLUMNS;
const GROUP: [u32; ROWS] = [3, 3, 8, 8];

fn surrogates<R: Real>() -> Vec<Surrogate<R>> {
    let of = R::from_f64;
    let clip = ClipRange::relative(of(0.2), of(0.3));
    let bounds = DppoBounds { low: of(0.15), high: of(0.2), cap: of(3.0), probability_eps: of(1e-8) };
    vec![
        Surrogate::Reinforce,
        Surrogate::ImportanceWeighted,
        Surrogate::ImportanceWeightedDetached,
        Surrogate::PpoClip { clip, ratio_max: of(4.0), dual: of(3.0) },
        Surrogate::PpoClipLog { low: of(-0.22), high: of(0.26) },
        Surrogate::Cispo { clip },
        Surrogate::MaskedIs { clip },
        Surrogate::Gmpo { low: of(0.3), high: of(0.4) },
        Surrogate::Sapo { temperature_positive: of(1.0), temperature_negative: of(1.05) },
        Surrogate::Vespo {
            positive: GammaShape { k: of(2.0), lambda: of(3.0) },
            negative: GammaShape { k: of(3.0), lambda: of(2.0) },
        },
        Surrogate::Dppo { divergence: Divergence::TotalVariation, bounds },
        Surrogate::Dppo { divergence: Divergence::Kl, bounds },
        Surrogate::ClipCov { clip },
        Surrogate::KlCov { coefficient: of(0.1) },
        Surrogate::Dro { beta: of(0.7) },
    ]
}

/// The numbers of a batch, owned.
#[derive(Clone, Debug)]
struct Numbers<R> {
    rows: usize,
    columns: usize,
    log_prob: Vec<R>,
    old: Vec<R>,
    reference: Vec<R>,
    advantage: Vec<R>,
    weight: Vec<R>,
    entropy: Vec<R>,
    mask: Vec<u8>,
    keep: Vec<u8>,
    selected: Vec<u8>,
    group: Vec<u32>,
}

impl<R: Real> Numbers<R> {
    fn batch(&self) -> PolicyBatch<'_, R> {
        let shape = TokenShape { rows: self.rows, columns: self.columns };
        PolicyBatch {
            old_log_prob: Some(&self.old),
            ref_log_prob: Some(&self.reference),
            groups: Some(Groups::new(&self.group)),
            importance_weight: Some(Spread::PerToken(&self.weight)),
            keep: Some(&self.keep),
            selected: Some(&self.selected),
            entropy: Some(&self.entropy),
            ..PolicyBatch::new(
                &self.log_prob,
                Spread::PerToken(&self.advantage),
                Mask::new(shape, Some(&self.mask)).unwrap(),
            )
        }
    }

    fn map(&self, each: impl Fn(&Vec<R>) -> Vec<R>, bytes: impl Fn(&Vec<u8>) -> Vec<u8>) -> Self {
        Numbers {
            rows: self.rows,
            columns: self.columns,
            log_prob: each(&self.log_prob),
            old: each(&self.old),
            reference: each(&self.reference),
            advantage: each(&self.advantage),
            weight: each(&self.weight),
            entropy: each(&self.entropy),
            mask: bytes(&self.mask),
            keep: bytes(&self.keep),
            selected: bytes(&self.selected),
            group: self.group.clone(),
        }
    }

    /// The rows of these indices.
    fn take(&self, rows: &[usize]) -> Self {
        let columns = self.columns;
        let mut taken = self.map(
            |values| rows.iter().flat_map(|row| values[row * columns..(row + 1) * columns].to_vec()).collect(),
            |values| rows.iter().flat_map(|row| values[row * columns..(row + 1) * columns].to_vec()).collect(),
        );
        taken.rows = rows.len();
        taken.group = rows.iter().map(|row| self.group[*row]).collect();
        taken
    }

    /// The same batch with absent columns behind it.
    fn padded(&self, more: usize) -> Self {
        let mut padded = self.map(
            |values| {
                values.chunks(self.columns).flat_map(|row| [row.to_vec(), vec![R::nan(); more]].concat()).collect()
            },
            |bytes| bytes.chunks(self.columns).flat_map(|row| [row.to_vec(), vec![0; more]].concat()).collect(),
        );
        padded.columns += more;
        padded
    }
}

fn numbers(log_ratios: f64) -> impl Strategy<Value = Numbers<f64>> {
    let lane = |low: f64, high: f64| proptest::collection::vec(low..high, SLOTS);
    let bytes = || proptest::collection::vec(0u8..2, SLOTS);
    (
        lane(-3.0, -0.05),
        lane(-log_ratios, log_ratios),
        lane(-1.0, 1.0),
        lane(-2.0, 2.0),
        (lane(0.1, 2.0), lane(0.0, 3.0)),
        (bytes(), bytes(), bytes()),
    )
        .prop_map(|(log_prob, shift, distance, advantage, (weight, entropy), (mut mask, keep, selected))| {
            mask[0] = 1;
            Numbers {
                rows: ROWS,
                columns: COLUMNS,
                old: log_prob.iter().zip(&shift).map(|(new, shift)| new - shift).collect(),
                reference: log_prob.iter().zip(&distance).map(|(new, distance)| new - distance).collect(),
                log_prob,
                advantage,
                weight,
                entropy,
                mask,
                keep,
                selected,
                group: GROUP.to_vec(),
            }
        })
}

fn objectives<R: Real>() -> Vec<PolicyObjective<R>> {
    let mut all = Vec::new();
    for surrogate in surrogates() {
        for level in RatioLevel::MEMBERS {
            for aggregation in crate::reduce::Aggregation::MEMBERS {
                let mut reduction = Reduction::new(*aggregation);
                // The padded width is a divisor of one mode unless a length is given.
                reduction.length_normaliser = Some(R::from_f64(7.0));
                all.push(PolicyObjective { ratio_level: *level, ..PolicyObjective::new(surrogate, reduction) });
            }
        }
    }
    all
}

fn with_terms<R: Real>(objective: PolicyObjective<R>) -> PolicyObjective<R> {
    PolicyObjective {
        kl: Some(KlTerm {
            coefficient: R::from_f64(0.3),
            estimator: KlEstimator::K3,
            difference_clamp: None,
            value_clamp: None,
            weight: KlWeight::Ratio,
        }),
        entropy: Some(EntropyTerm { coefficient: R::from_f64(0.05), aggregation: EntropyAggregation::Same }),
        ..objective
    }
}

struct Outcome<R> {
    result: PolicyLoss<R>,
    gradient: Vec<R>,
    token_loss: Vec<R>,
}

fn run<R: Real>(objective: &PolicyObjective<R>, numbers: &Numbers<R>) -> Outcome<R> {
    let slots = numbers.rows * numbers.columns;
    let (mut gradient, mut token_loss) = (vec![R::nan(); slots], vec![R::nan(); slots]);
    let mut outputs = PolicyOutputs {
        d_log_prob: Some(&mut gradient),
        token_loss: Some(&mut token_loss),
        ..PolicyOutputs::default()
    };
    let result = objective.loss(&numbers.batch(), &mut outputs).unwrap();
    Outcome { result, gradient, token_loss }
}

fn bits<R: Real>(values: &[R]) -> Vec<u64> {
    values.iter().map(|value| value.bits()).collect()
}

fn in_f32(numbers: &Numbers<f64>) -> Numbers<f32> {
    let lane = |values: &[f64]| values.iter().map(|value| *value as f32).collect();
    Numbers {
        rows: numbers.rows,
        columns: numbers.columns,
        log_prob: lane(&numbers.log_prob),
        old: lane(&numbers.old),
        reference: lane(&numbers.reference),
        advantage: lane(&numbers.advantage),
        weight: lane(&numbers.weight),
        entropy: lane(&numbers.entropy),
        mask: numbers.mask.clone(),
        keep: numbers.keep.clone(),
        selected: numbers.selected.clone(),
        group: numbers.group.clone(),
    }
}

/// Junk under the mask, absent columns, permuted rows and shards change no bit.
fn same_bits<R: Real>(numbers: &Numbers<R>, cut: usize) {
    let mut junk = numbers.clone();
    for (slot, kept) in numbers.mask.iter().enumerate() {
        if *kept == 0 {
            let value = [R::nan(), R::infinity(), R::neg_infinity(), R::from_f64(-123.0)][slot % 4];
            for lane in [
                &mut junk.log_prob,
                &mut junk.old,
                &mut junk.reference,
                &mut junk.advantage,
                &mut junk.weight,
                &mut junk.entropy,
            ] {
                lane[slot] = value;
            }
            junk.keep[slot] ^= 1;
            junk.selected[slot] ^= 1;
        }
    }
    let padded = numbers.padded(131);
    let backwards: Vec<usize> = (0..ROWS).rev().collect();
    let permuted = numbers.take(&backwards);
    for objective in objectives().into_iter().map(with_terms) {
        let plain = run(&objective, numbers);
        let with_junk = run(&objective, &junk);
        assert_eq!(plain.result, with_junk.result, "{objective:?}");
        assert_eq!(bits(&plain.gradient), bits(&with_junk.gradient), "{objective:?}");
        assert_eq!(bits(&plain.token_loss), bits(&with_junk.token_loss));
        for (gradient, kept) in plain.gradient.iter().zip(&numbers.mask) {
            assert!(*kept != 0 || gradient.bits() == 0);
        }

        let wide = run(&objective, &padded);
        assert_eq!(plain.result, wide.result, "{objective:?}");
        let narrow: Vec<R> = wide.gradient.chunks(padded.columns).flat_map(|row| row[..COLUMNS].to_vec()).collect();
        assert_eq!(bits(&plain.gradient), bits(&narrow));

        let turned = run(&objective, &permuted);
        assert_eq!(plain.result, turned.result, "{objective:?}");
        let turned_back: Vec<R> = turned.gradient.chunks(COLUMNS).rev().flatten().copied().collect();
        assert_eq!(bits(&plain.gradient), bits(&turned_back));

        // Groups must lie whole in one shard: cut between them for the mode that needs them.
        let by_group = objective.reduction.aggregation == crate::reduce::Aggregation::GroupMeanTokenMean;
        let cut = if by_group { 2 } else { cut };
        let rows: Vec<usize> = (0..ROWS).collect();
        let (left, right) = (numbers.take(&rows[..cut]), numbers.take(&rows[cut..]));
        let totals = objective.totals(&left.batch()).merge(objective.totals(&right.batch()));
        let mut gradients = Vec::new();
        let mut merged: Option<PolicyPartial<R>> = None;
        for shard in [&right, &left] {
            let mut gradient = vec![R::zero(); shard.rows * COLUMNS];
            let mut outputs = PolicyOutputs { d_log_prob: Some(&mut gradient), ..PolicyOutputs::default() };
            let partial = objective.partial(&shard.batch(), &totals, &mut outputs).unwrap();
            merged = Some(match merged {
                None => partial,
                Some(mut sum) => {
                    sum.merge(&partial);
                    sum
                }
            });
            gradients.insert(0, gradient);
        }
        assert_eq!(objective.finish(&merged.unwrap(), &totals).unwrap(), plain.result, "{objective:?}");
        assert_eq!(bits(&gradients.concat()), bits(&plain.gradient));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn junk_padding_order_and_shards_change_no_bit(numbers in numbers(1.5), cut in 0usize..=ROWS) {
        same_bits(&numbers, cut);
        same_bits(&in_f32(&numbers), cut);
    }

    /// Central differences with step 1e-6 are good to about 1e-9 of the values involved (truncation h²f‴/6, rounding u/h).
    /// A stopped weight is held by moving log_prob and old_log_prob together. Tokens at a kink, where the one-sided
    /// differences disagree, are passed over.
    #[test]
    fn gradient_is_the_difference_quotient(numbers in numbers(0.8)) {
        let mut checked = 0usize;
        for objective in objectives::<f64>() {
            let stopped = matches!(
                objective.surrogate,
                Surrogate::ImportanceWeightedDetached
                    | Surrogate::Cispo { .. }
                    | Surrogate::MaskedIs { .. }
                    | Surrogate::Vespo { .. }
                    | Surrogate::Dppo { .. }
            );
            let own_gradient = objective.ratio_level == RatioLevel::SequenceToken;
            if own_gradient && !stopped {
                continue;
            }
            let objective = if stopped { objective } else { with_terms(objective) };
            let at = run(&objective, &numbers);
            for slot in (0..SLOTS).filter(|slot| numbers.mask[*slot] != 0) {
                let moved = |step: f64| {
                    let mut moved = numbers.clone();
                    moved.log_prob[slot] += step;
                    if stopped {
                        moved.old[slot] += step;
                    }
                    run(&objective, &moved).result.loss
                };
                let step = 1e-6;
                let (above, below) = (moved(step), moved(-step));
                let forward = (above - at.result.loss) / step;
                let backward = (at.result.loss - below) / step;
                let scale = 1.0 + forward.abs() + backward.abs();
                if (forward - backward).abs() > 1e-4 * scale {
                    continue;
                }
                checked += 1;
                let difference = (above - below) / (2.0 * step);
                prop_assert!(
                    (difference - at.gradient[slot]).abs() < 2e-8 * scale,
                    "{objective:?} slot {slot}: {difference} against {}", at.gradient[slot]
                );
            }
        }
        prop_assert!(checked > 200);
    }

    /// GSPO and GSPO-token agree in value, and in gradient where a response's tokens share their advantage.
    #[test]
    fn sequence_and_sequence_token_agree(numbers in numbers(0.8)) {
        let mut numbers = numbers;
        for row in numbers.advantage.chunks_mut(COLUMNS) {
            let first = row[0];
            row.fill(first);
        }
        numbers.weight.fill(1.0);
        numbers.keep.fill(1);
        for aggregation in crate::reduce::Aggregation::MEMBERS {
            let clip = Surrogate::ppo_clip(ClipRange::relative(0.2, 0.3));
            let sequence = PolicyObjective {
                ratio_level: RatioLevel::Sequence,
                ..PolicyObjective::new(clip, Reduction::new(*aggregation))
            };
            let token = PolicyObjective { ratio_level: RatioLevel::SequenceToken, ..sequence };
            let (sequence, token) = (run(&sequence, &numbers), run(&token, &numbers));
            prop_assert_eq!(sequence.result.loss, token.result.loss);
            for (a, b) in sequence.gradient.iter().zip(&token.gradient) {
                prop_assert!((a - b).abs() <= 1e-15 + 1e-14 * b.abs());
            }
        }
    }

    /// Log-ratios up to 1000 with advantages of one sign give numbers or the right infinity, never NaN.
    #[test]
    fn no_finite_input_gives_nan(numbers in numbers(1000.0), sign in prop::bool::ANY) {
        let mut numbers = numbers;
        for (slot, advantage) in numbers.advantage.iter_mut().enumerate() {
            *advantage = if slot % 3 == 0 { 0.0 } else if sign { advantage.abs() } else { -advantage.abs() };
        }
        let mut bare = numbers.clone();
        bare.weight.fill(0.0);
        for numbers in [numbers, bare] {
            let single = in_f32(&numbers);
            for objective in objectives::<f64>() {
                let outcome = run(&objective, &numbers);
                prop_assert!(!outcome.result.loss.is_nan(), "{objective:?}");
                prop_assert!(outcome.gradient.iter().all(|gradient| !gradient.is_nan()), "{objective:?}");
            }
            for objective in objectives::<f32>() {
                let outcome = run(&objective, &single);
                prop_assert!(!outcome.result.loss.is_nan(), "{objective:?}");
                prop_assert!(outcome.gradient.iter().all(|gradient| !gradient.is_nan()), "{objective:?}");
            }
        }
    }
}

/// The objective token by token, the sums between them by the canonical trees.
fn token_by_token<R: Real>(objective: &PolicyObjective<R>, numbers: &Numbers<R>) -> Outcome<R> {
    let batch = numbers.batch();
    let totals = objective.totals(&batch);
    let divisor = objective.reduction.divisor(&totals).unwrap();
    let at = |lane: Option<&[R]>, slot: usize| lane.map(|lane| lane[slot]);
    let each = |spread: Option<Spread<'_, R>>, slot: usize| {
        spread.map(|spread| match spread {
            Spread::PerToken(values) => values[slot],
            Spread::PerRow(values) => values[slot / numbers.columns],
        })
    };
    let input = |slot: usize| TokenInput {
        log_prob: batch.log_prob[slot],
        old_log_prob: at(batch.old_log_prob, slot),
        ref_log_prob: at(batch.ref_log_prob, slot),
        advantage: each(Some(batch.advantage), slot).unwrap(),
        importance_weight: each(batch.importance_weight, slot),
        keep: batch.keep.is_none_or(|keep| keep[slot] != 0),
        selected: batch.selected.is_some_and(|selected| selected[slot] != 0),
        entropy: at(batch.entropy, slot).unwrap_or(R::zero()),
    };
    let kept_tokens = (0..numbers.rows * numbers.columns)
        .filter(|slot| batch.mask.keeps(*slot) && batch.keep.is_none_or(|keep| keep[*slot] != 0))
        .count();
    let averaged = match objective.entropy.map(|term| term.aggregation) {
        Some(EntropyAggregation::KeptTokenMean) => kept_tokens.max(1),
        _ => totals.tokens,
    };
    let mut counts = PolicyCounts {
        tokens: totals.tokens,
        kept_tokens,
        clipped: 0,
        clipped_high: 0,
        clipped_low: 0,
        dual_clipped: 0,
        ratio_min: R::infinity(),
        ratio_max: R::zero(),
    };
    let (mut gradient, mut token_loss) = (Vec::new(), Vec::new());
    let mut sums: [ExactSum; 6] = core::array::from_fn(|_| ExactSum::new());
    for row in 0..numbers.rows {
        let slots = row * numbers.columns..(row + 1) * numbers.columns;
        let length = batch.mask.length(row);
        if length == 0 {
            gradient.extend(slots.clone().map(|_| R::zero()));
            token_loss.extend(slots.map(|_| R::zero()));
            continue;
        }
        let row_divisor = objective.reduction.row_divisor(row, length, &batch.mask, batch.groups);
        let weight = objective.row_weight(divisor, row_divisor);
        let kept = |slot: &usize| batch.mask.keeps(*slot);
        let sequence = objective.shares_ratio().then(|| {
            let inputs: Vec<_> = slots
                .clone()
                .map(|slot| {
                    kept(&slot).then(|| {
                        objective
                            .sequence_input(&input(slot), matches!(batch.importance_weight, Some(Spread::PerToken(_))))
                    })
                })
                .collect();
            let mut sum = R::zero();
            for block in inputs.chunks(BLOCK) {
                let of = |term: fn(&SequenceInput<R>) -> R| {
                    tree_sum_map(block, |input| input.as_ref().map_or(R::zero(), term))
                };
                sum += of(|input| input.log_ratio);
                sum += of(|input| input.log_weight.unwrap_or(R::zero()));
            }
            let advantage = tree_sum_map(&inputs, |input| input.map_or(R::zero(), |input| input.advantage));
            for input in inputs.iter().flatten() {
                counts.clipped += usize::from(input.clipped);
                counts.clipped_high += usize::from(input.clipped_high);
                counts.clipped_low += usize::from(input.clipped_low);
            }
            let whole = match batch.importance_weight {
                Some(Spread::PerRow(values)) => Some(values[row]),
                _ => None,
            };
            objective.sequence_ratio(sum, advantage, length, whole)
        });
        let outputs: Vec<_> = slots
            .clone()
            .map(|slot| {
                if kept(&slot) {
                    objective.token(&input(slot), sequence.as_ref(), weight, objective.entropy_weight(averaged))
                } else {
                    TokenOutput::absent()
                }
            })
            .collect();
        let of = |term: fn(&TokenOutput<R>) -> R| tree_sum_map(&outputs, term);
        let totals = RowTotals {
            policy: of(|output| output.policy),
            kl: of(|output| output.kl),
            entropy: of(|output| output.entropy),
            log_ratio: of(|output| output.log_ratio),
            k3: of(|output| output.k3),
            ratio: of(|output| output.ratio),
        };
        for (sum, term) in sums.iter_mut().zip(objective.row_terms(&totals, row_divisor)) {
            sum.add(term);
        }
        let each =
            sequence.map_or(R::zero(), |sequence| objective.spread_each(&sequence, of(|output| output.spread), weight));
        for (slot, output) in slots.zip(&outputs) {
            let takes = objective.spreads() && kept(&slot) && objective.takes_share(&input(slot));
            gradient.push(if takes { output.d_log_prob + each } else { output.d_log_prob });
            token_loss.push(output.token_loss);
            counts.clipped += usize::from(output.clipped);
            counts.clipped_high += usize::from(output.clipped_high);
            counts.clipped_low += usize::from(output.clipped_low);
            counts.dual_clipped += usize::from(output.dual_clipped);
            if kept(&slot) {
                counts.ratio_min = counts.ratio_min.smaller(output.ratio);
                counts.ratio_max = counts.ratio_max.larger(output.ratio);
            }
        }
    }
    let partial = PolicyPartial::from_sums(sums.map(|sum| sum.value()), counts);
    Outcome { result: objective.finish(&partial, &totals).unwrap(), gradient, token_loss }
}

fn tokens_and_rows_agree<R: Real>(numbers: &Numbers<R>) {
    for objective in objectives().into_iter().map(with_terms) {
        let (rows, tokens) = (run(&objective, numbers), token_by_token(&objective, numbers));
        assert_eq!(rows.result, tokens.result, "{objective:?}");
        assert_eq!(bits(&rows.gradient), bits(&tokens.gradient), "{objective:?}");
        assert_eq!(bits(&rows.token_loss), bits(&tokens.token_loss), "{objective:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn one_token_at_a_time_is_the_same_objective(numbers in numbers(1.5)) {
        tokens_and_rows_agree(&numbers);
        tokens_and_rows_agree(&in_f32(&numbers));
    }
}

#[test]
fn grpo_with_k3_by_hand() {
    // One response of two tokens, ratio 1 and 2 (clipped at 1.2), A = 3; reference distances ln 2 and 0, β = ½.
    let log_two = core::f64::consts::LN_2;
    let numbers = Numbers {
        rows: 1,
        columns: 2,
        log_prob: vec![-1.0, -0.5],
        old: vec![-1.0, -0.5 - log_two],
        reference: vec![-1.0 - log_two, -0.5],
        advantage: vec![3.0, 3.0],
        weight: vec![1.0; 2],
        entropy: vec![0.0; 2],
        mask: vec![1; 2],
        keep: vec![1; 2],
        selected: vec![0; 2],
        group: vec![0],
    };
    let clip = Surrogate::ppo_clip(ClipRange::relative(0.2, 0.2));
    let objective = PolicyObjective {
        kl: Some(KlTerm {
            coefficient: 0.5,
            estimator: KlEstimator::K3,
            difference_clamp: None,
            value_clamp: None,
            weight: KlWeight::None,
        }),
        ..PolicyObjective::new(clip, Reduction::new(crate::reduce::Aggregation::SeqMeanTokenMean))
    };
    let outcome = run(&objective, &numbers);
    // k3(ln 2) = ½ − 1 + ln 2, gradient 1 − ½.
    let k3 = log_two - 0.5;
    assert!((outcome.result.loss - ((-3.0 + 0.5 * k3) + -3.6) / 2.0).abs() < 1e-15);
    assert!((outcome.gradient[0] - (-3.0 + 0.25) / 2.0).abs() < 1e-15);
    assert_eq!(outcome.gradient[1], 0.0);
    assert_eq!(outcome.result.metrics.clip_fraction_high, 0.5);
    assert_eq!(outcome.result.metrics.ratio_max, 2.0);
    assert!((outcome.result.metrics.approx_kl_k1 + log_two / 2.0).abs() < 1e-15);
}

#[test]
fn errors_name_argument_and_index() {
    let shape = TokenShape { rows: 2, columns: 2 };
    let mask = Mask::new(shape, Some(&[1, 0, 1, 1])).unwrap();
    let objective = PolicyObjective::new(
        Surrogate::ppo_clip(ClipRange::relative(0.2, 0.2)),
        Reduction::new(crate::reduce::Aggregation::TokenMean),
    );
    let good = [-1.0; 4];
    let mut outputs = PolicyOutputs::default();
    let bad = [-1.0, f64::NAN, -1.0, f64::INFINITY];
    let batch = PolicyBatch::new(&bad, Spread::PerRow(&[1.0, 1.0]), mask);
    assert_eq!(objective.loss(&batch, &mut outputs), Err(Error::NonFinite { argument: "log_prob", index: 3 }));
    let batch = PolicyBatch::new(&good, Spread::PerRow(&[1.0, f64::NAN]), mask);
    assert_eq!(objective.loss(&batch, &mut outputs), Err(Error::NonFinite { argument: "advantage", index: 1 }));
    let batch =
        PolicyBatch { old_log_prob: Some(&good[..3]), ..PolicyBatch::new(&good, Spread::PerRow(&[1.0; 2]), mask) };
    let short = Error::LengthMismatch { argument: "old_log_prob", expected: 4, got: 3 };
    assert_eq!(objective.loss(&batch, &mut outputs), Err(short));
    let batch = PolicyBatch::new(&good, Spread::PerRow(&[1.0; 2]), mask);
    let missing = |argument| Err(Error::MissingInput { argument });
    assert_eq!(with_terms(objective).loss(&batch, &mut outputs), missing("ref_log_prob"));
    let empty = Mask::new(shape, Some(&[0; 4])).unwrap();
    let batch = PolicyBatch::new(&good, Spread::PerRow(&[1.0; 2]), empty);
    assert_eq!(objective.loss(&batch, &mut outputs), Err(Error::EmptyMask { argument: "mask" }));
}

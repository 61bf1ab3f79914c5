//! A policy objective on threads has the bits of core's, and its errors.
#![cfg(feature = "rayon")]

use plumbline_core::Error;
use plumbline_core::batch::{Mask, TokenShape};
use plumbline_core::engine::Portable;
use plumbline_core::objective::policy::{PolicyBatch, PolicyObjective, PolicyOutputs, Spread, Surrogate};
use plumbline_core::reduce::{Aggregation, Reduction};
use plumbline_core::surrogate::ClipRange;
use plumbline_parallel::threads::Threads;

#[test]
fn threads_change_no_bit_and_no_error() {
    // Rows of 9000 tokens: a part holds three.
    let (rows, columns) = (11, 9000);
    let slots = rows * columns;
    let number = |index: usize, factor: usize| (index * factor % 1009) as f32 / 500.0 - 1.0;
    let draw = |factor: usize| (0..slots).map(|index| number(index, factor)).collect::<Vec<f32>>();
    let (log_prob, old, mut advantage) = (draw(7919), draw(104_729), draw(31));
    let mask: Vec<u8> = (0..slots).map(|index| u8::from(index * 7919 % 11 > 2)).collect();
    let shape = TokenShape { rows, columns };
    let objective = PolicyObjective::new(
        Surrogate::ppo_clip(ClipRange::relative(0.2, 0.28)),
        Reduction::new(Aggregation::SeqMeanTokenMean),
    );
    let run = |advantage: &[f32], threads: usize| {
        let batch = PolicyBatch {
            old_log_prob: Some(&old),
            ..PolicyBatch::new(&log_prob, Spread::PerToken(advantage), Mask::new(shape, Some(&mask))?)
        };
        let mut gradient = vec![9.0f32; slots];
        let mut outputs = PolicyOutputs { d_log_prob: Some(&mut gradient), ..PolicyOutputs::default() };
        let result = if threads == 0 {
            objective.loss(&batch, &mut outputs)?
        } else {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| objective.loss_by(Threads::new(Portable), &batch, &mut outputs))?
        };
        let bits: Vec<u32> = gradient.iter().map(|number| number.to_bits()).collect();
        Ok::<_, Error>((result.loss.to_bits(), result.metrics.approx_kl_k3.to_bits(), bits))
    };
    let core = run(&advantage, 0).unwrap();
    for threads in [1, 2, 3] {
        assert!(run(&advantage, threads).unwrap() == core, "{threads} threads");
    }
    let kept = (slots - columns..slots).find(|slot| mask[*slot] != 0).unwrap();
    advantage[kept] = f32::NAN;
    let error = Some(Error::NonFinite { argument: "advantage", index: kept });
    assert_eq!((run(&advantage, 0).err(), run(&advantage, 2).err()), (error, error));
}

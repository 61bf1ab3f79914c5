//! Formulas that treat every element by itself.
#![allow(unsafe_code)]

use plumbline_core::kl::estimator::KlEstimator;
use plumbline_core::spec::Choice;

use crate::Kernel;
use crate::memory::{Number, Pack, Reader, Writer};
use crate::warp::{LANES, Warp};

/// Apply `formula` to each kept element of `inputs`: packs of 16 bytes where all arrays allow it, and what is left over element
/// by element. Under the mask nothing counts and +0 is written.
#[inline(always)]
fn map_elements<R: Number, W: Warp, const I: usize, const O: usize>(
    warp: &W,
    count: usize,
    mask: Reader<u8>,
    inputs: [Reader<R>; I],
    outputs: [Writer<R>; O],
    formula: impl Fn([R; I]) -> [R; O],
) {
    let width = R::Pack::COUNT;
    let mut packs = count / width;
    for input in &inputs {
        packs = packs.min(input.packs::<R::Pack>());
    }
    for output in &outputs {
        packs = packs.min(if output.given() { output.packs::<R::Pack>() } else { packs });
    }
    if mask.given() {
        packs = packs.min(mask.packs::<R::Bytes>());
    }
    let step = warp.count() * LANES;
    let mut first = warp.index() * LANES;
    while first < packs {
        warp.each(|lane| {
            let pack = first + lane;
            if pack >= packs {
                return;
            }
            // SAFETY: all inputs have at least `packs` packs.
            let loaded = inputs.map(|input| unsafe { input.pack::<R::Pack>(pack) });
            let kept = if mask.given() {
                // SAFETY: the mask has as many.
                unsafe { mask.pack(pack) }
            } else {
                R::Bytes::splat(1)
            };
            let results = R::map_pack(kept, loaded, &formula);
            for (writer, result) in outputs.iter().zip(&results) {
                writer.set_pack(pack, *result);
            }
        });
        first += step;
    }
    let mut first = packs * width + warp.index() * LANES;
    while first < count {
        warp.each(|lane| {
            let index = first + lane;
            if index >= count {
                return;
            }
            let results = if mask.at(index, 1) != 0 {
                formula(inputs.map(|input| input.at(index, R::zero())))
            } else {
                [R::zero(); O]
            };
            for (writer, result) in outputs.iter().zip(&results) {
                writer.set(index, *result);
            }
        });
        first += step;
    }
}

/// A per-token KL estimate with its derivative.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KlEstimate<R> {
    /// log π.
    pub log_prob: Reader<R>,
    /// log π_ref.
    pub ref_log_prob: Reader<R>,
    /// Which tokens are there.
    pub mask: Reader<u8>,
    /// The estimate.
    pub kl: Writer<R>,
    /// Its derivative by log π.
    pub d_log_prob: Writer<R>,
    /// How many tokens.
    pub count: usize,
    /// The estimator's place among the members.
    pub estimator: u32,
    /// The limit of the log-ratio; infinite where there is none.
    pub difference_clamp: R,
    /// The limit of the estimate; infinite where there is none.
    pub value_clamp: R,
}

impl<R: Number> Kernel for KlEstimate<R> {
    const NAME: &'static str = "kl_estimate";
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let estimator = KlEstimator::MEMBERS.get(self.estimator as usize).copied().unwrap_or(KlEstimator::K3);
        let given = |clamp: R| (clamp < R::infinity()).then_some(clamp);
        let (difference, value) = (given(self.difference_clamp), given(self.value_clamp));
        map_elements(
            warp,
            self.count,
            self.mask,
            [self.log_prob, self.ref_log_prob],
            [self.kl, self.d_log_prob],
            |[log_prob, reference]| estimator.estimate(log_prob - reference, difference, value),
        );
    }
}

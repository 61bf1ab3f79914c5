//! Formulas that treat every element by itself.
#![allow(unsafe_code)]

use plumbline_core::kl::estimator::KlEstimator;
use plumbline_core::spec::{Choice, Elementwise};

use crate::Kernel;
use crate::memory::{Number, Pack, Reader, Writer};
use crate::warp::{LANES, Warp};

/// Where the elements of an elementwise formula lie.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Elements<R, const I: usize, const O: usize> {
    /// Which elements are there.
    pub mask: Reader<u8>,
    /// Which elements are marked.
    pub marks: Reader<u8>,
    /// The inputs.
    pub inputs: [Reader<R>; I],
    /// The outputs.
    pub outputs: [Writer<R>; O],
    /// How many elements.
    pub count: usize,
    /// Elements of a row: an input with fewer than `count` elements has one for each row.
    pub columns: usize,
}

impl<R: Number, const I: usize, const O: usize> Elements<R, I, O> {
    #[inline(always)]
    fn per_row(&self, input: usize) -> bool {
        self.inputs[input].length() < self.count
    }

    /// The packs of 16 bytes that all arrays have, where no pack lies in two rows.
    #[inline(always)]
    fn packs(&self) -> usize {
        let width = R::Pack::COUNT;
        let mut packs = self.count / width;
        for (input, reader) in self.inputs.iter().enumerate() {
            let whole = !self.per_row(input) || self.columns.is_multiple_of(width);
            packs = packs.min(if !whole {
                0
            } else if self.per_row(input) {
                packs
            } else {
                reader.packs::<R::Pack>()
            });
        }
        for output in &self.outputs {
            packs = packs.min(if output.given() { output.packs::<R::Pack>() } else { packs });
        }
        for bytes in [&self.mask, &self.marks] {
            packs = packs.min(if bytes.given() { bytes.packs::<R::Bytes>() } else { packs });
        }
        packs
    }

    /// Apply `formula` to each kept element: packs of 16 bytes where all arrays allow it, and what is left over element by
    /// element. Under the mask nothing counts and +0 is written.
    #[inline(always)]
    fn map<W: Warp>(&self, warp: &W, formula: impl Fn(bool, [R; I]) -> [R; O]) {
        let width = R::Pack::COUNT;
        let (count, packs) = (self.count, self.packs());
        let bytes = |bytes: &Reader<u8>, pack: usize, otherwise: u8| {
            if bytes.given() {
                // SAFETY: `packs` says that there are as many.
                unsafe { bytes.pack(pack) }
            } else {
                R::Bytes::splat(otherwise)
            }
        };
        let step = warp.count() * LANES;
        let mut first = warp.index() * LANES;
        while first < packs {
            warp.each(|lane| {
                let pack = first + lane;
                if pack >= packs {
                    return;
                }
                let loaded = core::array::from_fn(|input| {
                    if self.per_row(input) {
                        let row = (pack * width).checked_div(self.columns).unwrap_or(0);
                        R::Pack::splat(self.inputs[input].at(row, R::zero()))
                    } else {
                        // SAFETY: as above.
                        unsafe { self.inputs[input].pack::<R::Pack>(pack) }
                    }
                });
                let results = R::map_pack(bytes(&self.mask, pack, 1), bytes(&self.marks, pack, 0), loaded, &formula);
                for (writer, result) in self.outputs.iter().zip(&results) {
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
                let results = if self.mask.at(index, 1) != 0 {
                    let row = index.checked_div(self.columns).unwrap_or(0);
                    let marked = self.marks.at(index, 0) != 0;
                    formula(
                        marked,
                        core::array::from_fn(|input| {
                            self.inputs[input].at(if self.per_row(input) { row } else { index }, R::zero())
                        }),
                    )
                } else {
                    [R::zero(); O]
                };
                for (writer, result) in self.outputs.iter().zip(&results) {
                    writer.set(index, *result);
                }
            });
            first += step;
        }
    }
}

/// One of core's elementwise formulas over arrays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Map<R, F, const I: usize, const O: usize> {
    /// The formula with its settings.
    pub formula: F,
    /// The arrays.
    pub elements: Elements<R, I, O>,
}

impl<R: Number, F: Elementwise<R, I, O>, const I: usize, const O: usize> Kernel for Map<R, F, I, O> {
    const NAME: &'static str = F::OPERATION;
    const SUFFIX: &'static str = R::SUFFIX;

    #[inline(always)]
    fn run<W: Warp>(&self, warp: &W) {
        let elements =
            if F::MARK.is_some() { self.elements } else { Elements { marks: Reader::NONE, ..self.elements } };
        elements.map(warp, |marked, inputs| self.formula.apply(marked, inputs));
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
        let elements = Elements {
            mask: self.mask,
            marks: Reader::NONE,
            inputs: [self.log_prob, self.ref_log_prob],
            outputs: [self.kl, self.d_log_prob],
            count: self.count,
            columns: self.count,
        };
        elements.map(warp, |_, [log_prob, reference]| estimator.estimate(log_prob - reference, difference, value));
    }
}

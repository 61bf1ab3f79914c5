//! Whitening: numbers of a batch of tokens, shifted to mean 0 and scaled to deviation 1.

use super::grouped::{quotient, scale_for_squares};
use crate::Error;
use crate::batch::Mask;
use crate::num::{ExactSum, Real};
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, choice,
    evaluate_with,
};

choice! {
    /// What becomes of a batch that holds one token, which has no sample deviation.
    pub enum OneToken {
        /// The typed error `TooFew` (verl raises).
        Error = "error",
        /// Mean 0 and no deviation: 0.
        Zero = "zero",
        /// The value as it was.
        Value = "value",
    }
}

/// The choices of [`whiten`].
#[derive(Clone, Copy, Debug)]
pub struct Whiten<R> {
    /// Whether the result has mean 0; otherwise the mean is added back after scaling.
    pub shift_mean: bool,
    /// Subtracted from the count in the variance: 1 is the sample variance, 0 the population's.
    pub ddof: usize,
    /// Added to the variance.
    pub eps: R,
    /// Added to the count that sums are divided by.
    pub count_eps: R,
    /// What becomes of a batch of one token, where `ddof` is 1.
    pub one_token: OneToken,
}

/// z = (x − mean)/√(var + ε) over the unmasked tokens of the batch, var with ddof 1; without `shift_mean`, z + mean.
///
/// `values`, `out`: [B, T] in the order of `mask`; under the mask nothing is read and +0 is written. Not
/// differentiated: advantages are constants of the loss. Row sums are canonical, sums across rows exact, so permuting
/// rows permutes the result bit for bit. A batch of equal values gives exactly 0. Errors: `LengthMismatch`,
/// `NonFinite`, `EmptyMask`, and `TooFew` where one token is declared an error.
///
/// Differs in: verl `masked_whiten` (ε = 10⁻⁸; 10⁻⁸ added to the count where the mask is a float; masked slots keep
/// −mean/std).
///
/// ```
/// use plumbline_core::advantage::{OneToken, Whiten, whiten};
/// use plumbline_core::batch::{Mask, TokenShape};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 4 }, Some(&[1, 1, 0, 1]))?;
/// let config = Whiten { shift_mean: true, ddof: 1, eps: 0.0, count_eps: 0.0, one_token: OneToken::Error };
/// let mut out = [0.0; 4];
/// whiten(&[1.0, 3.0, f64::NAN, 5.0], mask, config, &mut out)?;
/// assert_eq!(out, [-1.0, 0.0, 0.0, 1.0]); // mean 3, deviation 2
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn whiten<R: Real>(values: &[R], mask: Mask<'_>, config: Whiten<R>, out: &mut [R]) -> Result<(), Error> {
    let moments = moments(values, mask, config)?;
    mask.shape().check("whitened", out)?;
    mask.write(out, |slot| values.get(slot).map_or(R::zero(), |value| moments.apply(*value)));
    Ok(())
}

/// [`whiten`] where the values stand.
pub fn whiten_in_place<R: Real>(values: &mut [R], mask: Mask<'_>, config: Whiten<R>) -> Result<(), Error> {
    let moments = moments(values, mask, config)?;
    for (slot, value) in values.iter_mut().enumerate() {
        *value = if mask.keeps(slot) { moments.apply(*value) } else { R::zero() };
    }
    Ok(())
}

fn moments<R: Real>(values: &[R], mask: Mask<'_>, config: Whiten<R>) -> Result<Moments, Error> {
    let center = WhitenSums::new(values, mask)?.center(config)?;
    Ok(center.moments(&center.squares(values, mask), config))
}

/// First of the two partial sums of whitening, over a batch or one shard of it: count, sum and limits. It merges; the
/// merged sums give the [`Center`] that every shard then takes its squares around.
#[derive(Clone, Debug)]
pub struct WhitenSums {
    count: usize,
    low: f64,
    high: f64,
    /// In units of 2³², so that no number of tokens overflows.
    sum: ExactSum,
}

impl Default for WhitenSums {
    fn default() -> Self {
        WhitenSums { count: 0, low: f64::INFINITY, high: f64::NEG_INFINITY, sum: ExactSum::new() }
    }
}

const SUM_UNIT: f64 = 4_294_967_296.0;

impl WhitenSums {
    /// The sums of one shard.
    pub fn new<R: Real>(values: &[R], mask: Mask<'_>) -> Result<Self, Error> {
        mask.shape().check("values", values)?;
        mask.check_finite("values", values)?;
        let mut sums = WhitenSums::default();
        for row in 0..mask.shape().rows {
            let mut length = 0;
            for value in mask.kept(row).filter_map(|slot| values.get(slot).copied()) {
                length += 1;
                sums.low = sums.low.smaller(value.to_f64());
                sums.high = sums.high.larger(value.to_f64());
            }
            sums.count += length;
            if length > 0 {
                sums.sum.add(
                    mask.row_sum(row, |slot| values.get(slot).map_or(0.0, |value| Real::to_f64(*value) / SUM_UNIT)),
                );
            }
        }
        Ok(sums)
    }

    /// Add another shard.
    pub fn merge(&mut self, other: &WhitenSums) {
        self.count += other.count;
        self.low = self.low.smaller(other.low);
        self.high = self.high.larger(other.high);
        self.sum.merge(&other.sum);
    }

    /// The mean of all shards.
    pub fn center<R: Real>(&self, config: Whiten<R>) -> Result<Center, Error> {
        match self.count {
            0 => return Err(Error::EmptyMask { argument: "mask" }),
            1 if config.ddof == 1 && config.one_token == OneToken::Error => {
                return Err(Error::TooFew { argument: "values", got: 1, needed: 2 });
            }
            _ => {}
        }
        let mut mean = self.sum.value::<f64>() / (self.count as f64 + config.count_eps.to_f64()) * SUM_UNIT;
        if config.count_eps == R::zero() {
            // Sum and quotient are each rounded; the limits make the mean of equal numbers that number.
            mean = Real::clip(mean, self.low, self.high);
        }
        Ok(Center { count: self.count, mean, scale: scale_for_squares((-self.low).larger(self.high)) })
    }
}

/// The mean of a batch of tokens, that squares are taken around.
#[derive(Clone, Copy, Debug)]
pub struct Center {
    count: usize,
    mean: f64,
    /// A power of two that keeps the squares in range; 1 for ordinary numbers.
    scale: f64,
}

impl Center {
    fn centred<R: Real>(&self, value: R) -> f64 {
        value.to_f64() * self.scale - self.mean * self.scale
    }

    /// Second partial sum: the squared distances of one shard, to be merged with those of the others.
    pub fn squares<R: Real>(&self, values: &[R], mask: Mask<'_>) -> ExactSum {
        let mut squares = ExactSum::new();
        for row in 0..mask.shape().rows {
            squares.add(mask.row_sum(row, |slot| {
                let centred = values.get(slot).map_or(0.0, |value| self.centred(*value));
                centred * centred
            }));
        }
        squares
    }

    /// Mean and deviation, from the merged squares.
    pub fn moments<R: Real>(&self, squares: &ExactSum, config: Whiten<R>) -> Moments {
        let count = self.count as f64;
        let freedom = self.count.saturating_sub(config.ddof) as f64;
        let one = self.count == 1 && config.ddof == 1;
        let variance = squares.value::<f64>() / (count + config.count_eps.to_f64()) * (count / freedom);
        let deviation = Real::sqrt(variance + config.eps.to_f64() * self.scale * self.scale);
        Moments {
            center: *self,
            deviation: if one { 1.0 } else { deviation },
            shift_mean: config.shift_mean,
            one: one.then_some(config.one_token),
        }
    }
}

/// Mean and deviation of a batch of tokens.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    center: Center,
    deviation: f64,
    shift_mean: bool,
    one: Option<OneToken>,
}

impl Moments {
    /// One whitened value.
    pub fn apply<R: Real>(&self, value: R) -> R {
        match self.one {
            Some(OneToken::Value) => return value,
            Some(_) => return R::zero(),
            None => {}
        }
        let whitened = quotient(self.center.centred(value), self.deviation);
        R::from_f64(if self.shift_mean { whitened } else { whitened + self.center.mean })
    }
}

impl<R: Real> Whiten<R> {
    /// The parameters of an operation that whitens as its last step: mean shifted, sample variance.
    pub(super) fn from_call(call: &Call<'_, R>) -> Result<Self, Error> {
        Ok(Whiten {
            shift_mean: true,
            ddof: 1,
            eps: call.number(EPS.name)?,
            count_eps: call.number(COUNT_EPS.name)?,
            one_token: call.choice(ONE_TOKEN.name)?,
        })
    }
}

pub(super) const EPS: ParamSpec =
    ParamSpec::number("whiten_eps", r"\epsilon", 1e-8, Range::NON_NEGATIVE, "added to the variance (its units)");
pub(super) const COUNT_EPS: ParamSpec = ParamSpec::number(
    "count_eps",
    "",
    0.0,
    Range::NON_NEGATIVE,
    "added to the count that the sums are divided by (verl with a float mask: 1e-8)",
);
pub(super) const ONE_TOKEN: ParamSpec = ParamSpec::choice(
    "one_token",
    OneToken::Error.name(),
    OneToken::NAMES,
    "what becomes of a batch that holds one token: an error, 0, or the value as it was",
);

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let config =
        Whiten { shift_mean: call.flag("shift_mean"), ddof: call.integer("ddof")?, ..Whiten::from_call(call)? };
    let (values, mask) = (call.real("values")?, call.mask()?);
    match call.output("whitened") {
        Some(out) => whiten(values, mask, config, out),
        None => Ok(()),
    }
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "advantage.whiten",
    family: Family::Advantage,
    title: "Whitening over the batch's tokens",
    summary: "Shift the unmasked values of a batch to mean 0 and scale them to deviation 1.",
    formula: r"z_{it} = \frac{x_{it} - \bar x}{\sqrt{\operatorname{var}(x) + \epsilon}},\quad
\bar x = \frac{\sum m x}{\sum m},\quad \operatorname{var}(x) = \frac{\sum m (x - \bar x)^2}{\sum m - 1}",
    gradient: "",
    notes: "Every token counts once, so long responses weigh more. Mean and variance are those of the whole batch: whiten \
            shards by merging their sums, never each by itself. verl adds 1e-8 to the count, which vanishes in single \
            precision and with the integer masks that its trainer passes; set count_eps to reproduce a float64 mask. verl \
            leaves -mean/std under the mask; here it is +0.",
    sources: &[Source {
        title: "Fine-Tuning Language Models from Human Preferences",
        reference: "arXiv:1909.08593",
        place: "§2.1 and its code, whitening of rewards and advantages",
    }],
    inputs: &[InputSpec::new("values", Domain::Real, &[&["B", "T"]], "the number at each token"), InputSpec::MASK],
    params: &[
        ParamSpec::flag("shift_mean", true, "whether the result has mean 0; otherwise the mean is added back"),
        super::grouped::DDOF,
        EPS,
        COUNT_EPS,
        ONE_TOKEN,
    ],
    defaults: &[],
    outputs: &[OutputSpec::value("whitened", &["B", "T"], "the whitened number; +0 under the mask")],
    dialects: &[Dialect {
        name: "verl-0.9",
        note: "masked_whiten with an integer mask; one token raises",
        settings: &[],
    }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const CONFIG: Whiten<f64> =
        Whiten { shift_mean: true, ddof: 1, eps: 0.0, count_eps: 0.0, one_token: OneToken::Error };

    fn run(values: &[f64], columns: usize, mask: Option<&[u8]>, config: Whiten<f64>) -> Result<Vec<f64>, Error> {
        let shape = TokenShape { rows: values.len() / columns, columns };
        let mut out = vec![9.0; values.len()];
        whiten(values, Mask::new(shape, mask).unwrap(), config, &mut out)?;
        let mut in_place = values.to_vec();
        whiten_in_place(&mut in_place, Mask::new(shape, mask).unwrap(), config)?;
        assert_eq!(in_place, out);
        Ok(out)
    }

    /// mistakes.md F01, F02, F08.
    #[test]
    fn separating_numbers_of_reported_mistakes() {
        let out = run(&[1.0, 2.0, 9.0, 10.0], 4, None, CONFIG).unwrap();
        assert!((out[0] + 0.96676).abs() < 1e-5);
        let z = [1.5, 1.5, 1.5, -0.5, 0.0, 0.0, -0.5, 0.0, 0.0, -0.5, 0.0, 0.0];
        let out = run(&z, 3, Some(&[1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0]), CONFIG).unwrap();
        assert!((out[0] - 0.9129).abs() < 1e-4);
        let one = |one_token| run(&[0.3, f64::NAN], 2, Some(&[1, 0]), Whiten { one_token, ..CONFIG });
        assert_eq!(one(OneToken::Error), Err(Error::TooFew { argument: "values", got: 1, needed: 2 }));
        assert_eq!(one(OneToken::Zero), Ok(vec![0.0, 0.0]));
        assert_eq!(one(OneToken::Value), Ok(vec![0.3, 0.0]));
    }

    #[test]
    fn options() {
        let kept = Whiten { shift_mean: false, ..CONFIG };
        assert_eq!(run(&[1.0, 3.0, 5.0], 3, None, kept).unwrap(), [2.0, 3.0, 4.0]);
        let with_eps = Whiten { eps: 12.0, ..CONFIG };
        assert_eq!(run(&[1.0, 3.0, 5.0], 3, None, with_eps).unwrap(), [-0.5, 0.0, 0.5]);
        let population = Whiten { ddof: 0, ..CONFIG };
        assert_eq!(run(&[1.0, 3.0], 1, None, population).unwrap(), [-1.0, 1.0]);
        // Sum 8 over 3 + 1: mean 2; squares 1 + 1 + 4 over 4, times 3/2: deviation 1.5.
        let counted = Whiten { count_eps: 1.0, ..CONFIG };
        assert_eq!(run(&[1.0, 3.0, 4.0], 3, None, counted).unwrap(), [-1.0 / 1.5, 1.0 / 1.5, 2.0 / 1.5]);
    }

    #[test]
    fn edges() {
        assert_eq!(run(&[1.0], 1, Some(&[0]), CONFIG), Err(Error::EmptyMask { argument: "mask" }));
        assert_eq!(run(&[0.1; 7], 7, None, CONFIG).unwrap(), [0.0; 7]);
        let error = Err(Error::NonFinite { argument: "values", index: 1 });
        assert_eq!(run(&[1.0, f64::INFINITY], 2, None, CONFIG), error);
        let huge = run(&[f64::MAX, -f64::MAX, f64::MAX, -f64::MAX], 2, None, CONFIG).unwrap();
        assert!((huge[0] - 0.75f64.sqrt()).abs() < 1e-15 && (huge[1] + 0.75f64.sqrt()).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn masked_junk_row_order_and_shards_change_no_bit(
            slots in proptest::collection::vec((-3.0f64..3.0, any::<bool>()), 12),
            junk in any::<u64>(),
        ) {
            let mask: Vec<u8> = slots.iter().map(|slot| u8::from(slot.1)).collect();
            let values: Vec<f64> = slots.iter().map(|slot| slot.0).collect();
            prop_assume!(mask.iter().filter(|byte| **byte != 0).count() > 1);
            let straight = run(&values, 4, Some(&mask), CONFIG).unwrap();
            let dirty: Vec<f64> =
                slots.iter().map(|slot| if slot.1 { slot.0 } else { f64::from_bits(junk) }).collect();
            let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
            prop_assert_eq!(bits(&run(&dirty, 4, Some(&mask), CONFIG).unwrap()), bits(&straight));
            let turn = |values: &[f64]| { let mut v = values.to_vec(); v.rotate_left(4); v };
            let mut turned_mask = mask.clone();
            turned_mask.rotate_left(4);
            prop_assert_eq!(bits(&run(&turn(&values), 4, Some(&turned_mask), CONFIG).unwrap()), bits(&turn(&straight)));
            let shard = |rows: core::ops::Range<usize>| {
                let shape = TokenShape { rows: rows.len(), columns: 4 };
                let slots = rows.start * 4..rows.end * 4;
                (&values[slots.clone()], Mask::new(shape, Some(&mask[slots])).unwrap())
            };
            let (first, second) = (shard(0..1), shard(1..3));
            let mut sums = WhitenSums::new(first.0, first.1).unwrap();
            sums.merge(&WhitenSums::new(second.0, second.1).unwrap());
            let center = sums.center(CONFIG).unwrap();
            let mut squares = center.squares(first.0, first.1);
            squares.merge(&center.squares(second.0, second.1));
            let moments = center.moments(&squares, CONFIG);
            for ((value, kept), whole) in values.iter().zip(&mask).zip(&straight) {
                if *kept != 0 {
                    prop_assert_eq!(moments.apply(*value).to_bits(), whole.to_bits());
                }
            }
        }
    }
}

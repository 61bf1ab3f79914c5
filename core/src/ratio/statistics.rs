//! Means and spreads that the diagnostics of this family share.

use crate::batch::Mask;
use crate::num::{ExactSum, Real};
pub use crate::reduce::EmptyRow;
use crate::spec::{Choice, ParamSpec, Value};

/// The parameter that says what an empty response is.
pub const EMPTY_ROW: ParamSpec = ParamSpec::choice(
    "empty_row",
    "exclude",
    EmptyRow::NAMES,
    "what a response without tokens is to a statistic over responses",
);

/// What verl's diagnostics differ in.
pub const VERL_DIAGNOSTICS: &[(&str, Value)] = &[
    ("log_ratio_min", Value::Number(-20.0)),
    ("log_ratio_max", Value::Number(20.0)),
    ("length_eps", Value::Number(1e-8)),
    ("empty_row", Value::Name(EmptyRow::CountAsZero.name())),
];

/// A number for each token or response. It is called, not inlined: the diagnostics take many statistics, and a loop of its
/// own for each would be much code.
type Numbers<'n, R> = &'n dyn Fn(usize) -> R;

/// Σ m x / (Σ m + ε) over all tokens.
pub fn token_mean<R: Real>(mask: &Mask<'_>, length_eps: R, value: impl Fn(usize) -> R) -> R {
    mask.sum(&value as Numbers<'_, R>) / (R::from_count(mask.count()) + length_eps)
}

/// Σ_t m x / (L + ε) of one response; 0 where it is empty.
pub fn row_mean<R: Real>(mask: &Mask<'_>, row: usize, length_eps: R, value: impl Fn(usize) -> R) -> R {
    let length = mask.length(row);
    if length == 0 {
        R::zero()
    } else {
        mask.row_sum(row, &value as Numbers<'_, R>) / (R::from_count(length) + length_eps)
    }
}

/// The population deviation over all tokens about `mean` = Σ m x / (n + ε), as √(E\[x²\] − mean²) with E dividing by n + ε,
/// but computed from squared distances: E\[x²\] − mean² = (Σ m (x − mean)² + ε·mean²) / (n + ε). 0 for a single token.
pub fn token_deviation<R: Real>(mask: &Mask<'_>, length_eps: R, mean: R, value: impl Fn(usize) -> R) -> R {
    deviation(mask, length_eps, mean, &value)
}

fn deviation<R: Real>(mask: &Mask<'_>, length_eps: R, mean: R, value: Numbers<'_, R>) -> R {
    let count = mask.count();
    if count <= 1 {
        return R::zero();
    }
    let square = |slot: usize| {
        let distance = value(slot) - mean;
        distance * distance
    };
    let squares = mask.sum(&square as Numbers<'_, R>);
    ((squares + length_eps * mean * mean) / (R::from_count(count) + length_eps)).sqrt()
}

/// Whether a row takes part in a statistic over responses.
pub fn counts(mask: &Mask<'_>, row: usize, empty: EmptyRow) -> bool {
    empty == EmptyRow::CountAsZero || mask.length(row) > 0
}

/// A summary of one number per response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSummary<R> {
    /// The mean.
    pub mean: R,
    /// The sample deviation (divides by n − 1); 0 for one response, infinite where the mean is.
    pub deviation: R,
    /// The largest.
    pub max: R,
    /// The smallest.
    pub min: R,
}

/// Summarise one number per response, over the rows that take part. The mask has at least one token.
pub fn summarise_rows<R: Real>(mask: &Mask<'_>, empty: EmptyRow, value: impl Fn(usize) -> R) -> RowSummary<R> {
    summary_of(mask, empty, &value)
}

fn summary_of<R: Real>(mask: &Mask<'_>, empty: EmptyRow, value: Numbers<'_, R>) -> RowSummary<R> {
    let rows = || (0..mask.shape().rows).filter(|row| counts(mask, *row, empty));
    let mut total = ExactSum::new();
    let mut summary = RowSummary { mean: R::zero(), deviation: R::zero(), max: R::neg_infinity(), min: R::infinity() };
    let mut count = 0;
    for row in rows() {
        let number = value(row);
        total.add(number);
        summary.max = number.larger(summary.max);
        summary.min = number.smaller(summary.min);
        count += 1;
    }
    summary.mean = total.value::<R>() / R::from_count(count);
    if !summary.mean.is_finite() {
        summary.deviation = R::infinity();
    } else if count > 1 {
        let mut squares = ExactSum::new();
        for row in rows() {
            let distance = value(row) - summary.mean;
            squares.add(distance * distance);
        }
        summary.deviation = (squares.value::<R>() / R::from_count(count - 1)).sqrt();
    }
    summary
}

/// The share of the rows that take part for which a statement holds.
pub fn row_fraction<R: Real>(mask: &Mask<'_>, empty: EmptyRow, holds: impl Fn(usize) -> bool) -> R {
    let [hits, count] = rows_where(mask, empty, &holds);
    R::from_count(hits) / R::from_count(count)
}

/// How many of the rows that take part fulfil a statement, and how many take part.
fn rows_where(mask: &Mask<'_>, empty: EmptyRow, holds: &dyn Fn(usize) -> bool) -> [usize; 2] {
    let mut hits = 0;
    let mut count = 0;
    for row in (0..mask.shape().rows).filter(|row| counts(mask, *row, empty)) {
        count += 1;
        hits += usize::from(holds(row));
    }
    [hits, count]
}

/// The share of tokens for which a statement holds, with ε added to the count.
pub fn token_fraction<R: Real>(mask: &Mask<'_>, length_eps: R, holds: impl Fn(usize) -> bool) -> R {
    R::from_count(tokens_where(mask, &holds)) / (R::from_count(mask.count()) + length_eps)
}

fn tokens_where(mask: &Mask<'_>, holds: &dyn Fn(usize) -> bool) -> usize {
    (0..mask.shape().slots()).filter(|slot| mask.keeps(*slot) && holds(*slot)).count()
}

/// The largest and the smallest over all tokens.
pub fn token_extremes<R: Real>(mask: &Mask<'_>, value: impl Fn(usize) -> R) -> [R; 2] {
    extremes_of(mask, &value)
}

fn extremes_of<R: Real>(mask: &Mask<'_>, value: Numbers<'_, R>) -> [R; 2] {
    let mut extremes = [R::neg_infinity(), R::infinity()];
    for slot in (0..mask.shape().slots()).filter(|slot| mask.keeps(*slot)) {
        let number = value(slot);
        let [max, min] = extremes;
        extremes = [number.larger(max), number.smaller(min)];
    }
    extremes
}

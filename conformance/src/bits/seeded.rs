//! The seeded set: made from an operation's description and nothing else, so that every operation has cases.
//!
//! It is part of the contract. Changing how it is drawn changes the hash of the cases, and the table says so.

use plumbline_core::spec::{Domain, InputSpec, Operation, ParamKind, Shape};
use plumbline_diagnosis::vectors::Random;
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Param, is_real};

use super::Case;

/// Changing it draws another set.
const SEED: u64 = 7;

/// The sizes of the dimensions, by how large the case is.
#[derive(Clone, Copy)]
enum Size {
    /// A few elements.
    Small,
    /// Rows that are longer than the blocks in which core goes over them.
    LongRows,
    /// Many of everything that is not a row of tokens.
    Wide,
}

impl Size {
    fn of(self, dimension: &str, place: usize) -> usize {
        let others = [3, 4, 5, 2, 6];
        match (self, dimension) {
            (Size::Small, "B") => 4,
            (Size::Small, "T") => 5,
            (Size::LongRows, "B") => 6,
            (Size::LongRows, "T") => 301,
            (Size::Wide, "B") => 2,
            (Size::Wide, "T") => 3,
            (Size::Wide, "V") => 1031,
            (Size::Wide, "N" | "K" | "P") => 33,
            (Size::Wide, "S") => 9,
            _ => *others.get(place % others.len()).unwrap_or(&3),
        }
    }
}

/// Which optional inputs are given.
#[derive(Clone, Copy)]
enum Given {
    Required,
    Mask,
    One(&'static str),
    All,
}

/// The cases of an operation.
pub(super) fn cases(operation: &'static Operation) -> Vec<Case> {
    let mut maker = Maker { operation, random: Random::new(SEED, operation.id), cases: Vec::new() };
    let optional = operation.inputs.iter().filter(|input| input.optional);
    let base = [Given::Required, Given::Mask, Given::All];
    for given in base.into_iter().chain(optional.map(|input| Given::One(input.name))) {
        for size in [Size::Small, Size::LongRows, Size::Wide] {
            maker.add(given, size, None, &[], None);
        }
    }
    for dialect in operation.dialects {
        for given in base {
            maker.add(given, Size::Small, Some(dialect.name), &[], None);
        }
    }
    for param in operation.params {
        let values: Vec<Param> = match param.kind {
            ParamKind::Choice { names, .. } => names.iter().map(|name| Param::Name((*name).to_owned())).collect(),
            ParamKind::Flag { default } => vec![Param::Flag(!default)],
            ParamKind::OptionalNumber { range, .. } => vec![Param::None, Param::Number(inside(range.low, range.high))],
            ParamKind::Number { range, .. } => vec![Param::Number(inside(range.low, range.high))],
            ParamKind::Integer { low, high, .. } => vec![Param::Number(low.saturating_add(2).min(high) as f64)],
        };
        let default = Param::from(operation.default_of(param));
        for value in values.into_iter().filter(|value| *value != default) {
            for given in [Given::Mask, Given::All] {
                maker.add(given, Size::Small, None, &[(param.name, value.clone())], None);
            }
        }
    }
    for input in operation.inputs {
        for pick in 1..input.shapes.len() {
            for given in base {
                maker.add(given, Size::Small, None, &[], Some((input.name, pick)));
            }
        }
    }
    maker.cases
}

/// A number inside a range, and not far from 1 where the range is wide.
fn inside(low: f64, high: f64) -> f64 {
    let (low, high) = (low.max(-2.0), high.min(low.max(-2.0) + 3.0));
    low + (high - low) * 0.375
}

struct Maker {
    operation: &'static Operation,
    random: Random,
    cases: Vec<Case>,
}

impl Maker {
    fn add(
        &mut self,
        given: Given,
        size: Size,
        dialect: Option<&str>,
        params: &[(&str, Param)],
        pick: Option<(&str, usize)>,
    ) {
        let mut dimensions: Vec<&'static str> = Vec::new();
        for name in self.operation.inputs.iter().flat_map(|input| input.shapes.iter()).flat_map(|shape| shape.iter()) {
            if !dimensions.contains(name) {
                dimensions.push(name);
            }
        }
        let size_of = |name: &str| {
            // Sparse entries: as many as there are rows of them, so that each row can have one.
            let is_sparse = name == "K" && dimensions.contains(&"S") && dimensions.contains(&"A");
            let plain = |name: &str| {
                let place = dimensions.iter().position(|other| *other == name);
                place.map_or(1, |place| size.of(name, place))
            };
            if is_sparse { plain("S") * plain("A") } else { plain(name) }
        };
        // Most inputs are alternatives of others in their other shapes: where one is picked, all that can follow do.
        let mut inputs = Vec::new();
        for input in self.operation.inputs {
            let is_given = match given {
                Given::Required => false,
                Given::Mask => input.name == "mask",
                Given::One(name) => input.name == name || input.name == "mask",
                Given::All => true,
            };
            if input.optional && !is_given {
                continue;
            }
            let shape = shape_of(self.operation, input, pick);
            let sizes: Vec<usize> = shape.iter().map(|name| size_of(name)).collect();
            let values = self.values(input, shape, &sizes, &size_of);
            inputs.push((input.name.to_owned(), Tensor { shape: sizes, values }));
        }
        // Whole-number parameters with the name of a dimension keep their defaults: they are sizes of outputs.
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.cases.push(Case { dialect: dialect.map(str::to_owned), params, inputs });
    }

    fn values(
        &mut self,
        input: &InputSpec,
        shape: Shape,
        sizes: &[usize],
        size_of: &dyn Fn(&str) -> usize,
    ) -> Vec<f64> {
        let count: usize = sizes.iter().product();
        // A count of some of what another input counts comes after it.
        let is_first_count = self.operation.inputs.iter().find(|other| other.domain == Domain::Count);
        let least = if is_first_count.is_some_and(|first| first.name == input.name) { 4.0 } else { 1.0 };
        let columns = sizes.last().copied().unwrap_or(1).max(1);
        let random = &mut self.random;
        if let Domain::Index(dimension) = input.domain {
            let limit = size_of(dimension);
            // Where each element has an entry of its own, their order is the one that pointers into rows have.
            if limit == count {
                return (0..count).map(|index| index as f64).collect();
            }
            return (0..count).map(|_| random.below(limit) as f64).collect();
        }
        let mut values: Vec<f64> = (0..count)
            .map(|index| {
                let (row, column) = (index / columns, index % columns);
                match input.domain {
                    // Rows of different lengths with some holes; the first element of each is kept.
                    Domain::Mask if shape.len() == 2 => {
                        let length = columns - (row * columns / 5).min(columns - 1);
                        f64::from(u8::from(column == 0 || (column < length && random.below(9) > 0)))
                    }
                    Domain::Mask => f64::from(u8::from(random.below(4) > 0)),
                    Domain::Done => f64::from(u8::from(random.below(7) == 0)),
                    Domain::Group => (index / 2) as f64,
                    Domain::Count => least + random.below(4) as f64,
                    Domain::LogProb => random.between(-3.0, -0.01),
                    Domain::LogRatio => random.between(-0.75, 0.75),
                    Domain::Logit => random.between(-6.0, 6.0),
                    Domain::Probability => random.between(0.02, 0.98),
                    Domain::Positive => random.between(0.1, 3.0),
                    Domain::NonNegative => random.between(0.0, 2.5),
                    _ => random.between(-2.0, 2.0),
                }
            })
            .collect();
        let is_distribution = shape.last().is_some_and(|name| !["B", "T"].contains(name));
        if input.domain == Domain::Probability && is_distribution {
            for row in values.chunks_mut(columns) {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|value| *value /= sum);
            }
        }
        debug_assert!(is_real(input.domain) || values.iter().all(|value| *value >= 0.0));
        values
    }
}

/// The shape of an input: its first, or the picked one. Where another input's shape is picked, an input follows into the
/// dimensions that only the picked shape has.
fn shape_of(operation: &Operation, input: &InputSpec, pick: Option<(&str, usize)>) -> Shape {
    let first = input.shapes.first().copied().unwrap_or(&[]);
    let Some((name, pick)) = pick else { return first };
    let picked = operation.input(name).and_then(|picked| picked.shapes.get(pick)).copied().unwrap_or(&[]);
    if input.name == name {
        return picked;
    }
    let is_first = |dimension: &str| {
        operation.inputs.iter().filter_map(|input| input.shapes.first()).any(|shape| shape.contains(&dimension))
    };
    match picked.iter().find(|dimension| !is_first(dimension)) {
        Some(new) => input.shapes.iter().find(|shape| shape.contains(new)).copied().unwrap_or(first),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use plumbline_core::catalog;
    use plumbline_core::num::Dtype;
    use plumbline_evaluate::{Request, Wanted, evaluate};

    use super::*;

    #[test]
    fn every_operation_accepts_some_of_its_cases() {
        let mut none = Vec::new();
        let (mut accepted, mut all) = (0, 0);
        for operation in catalog::operations() {
            let cases = cases(operation);
            let taken = |case: &Case| {
                let request = Request {
                    operation: operation.id,
                    dialect: case.dialect.as_deref(),
                    dtype: Dtype::F64,
                    params: &case.params,
                    inputs: &case.inputs,
                    outputs: Wanted::All,
                };
                evaluate(&request).map_err(|refusal| refusal.to_string())
            };
            let results: Vec<_> = cases.iter().map(taken).collect();
            let good = results.iter().filter(|result| result.is_ok()).count();
            all += results.len();
            accepted += good;
            if good == 0 {
                none.push((operation.id, results.into_iter().find_map(Result::err)));
            }
        }
        assert!(none.is_empty(), "{accepted} of {all} accepted; none of {none:#?}");
        assert!(accepted * 2 > all, "{accepted} of {all}");
    }
}

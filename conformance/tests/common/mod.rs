//! Cases for the properties of every operation: the golden ones, and inputs made up from the catalog alone.

use std::collections::BTreeMap;

use plumbline_conformance::fixture::{self, Case};
use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, Operation, ParamKind};
use plumbline_evaluate::Param;
use plumbline_evaluate::tensor::{Tensor, round_to};

/// A generator with a fixed seed (xorshift64*): a failure names its case and comes back.
pub struct Random(pub u64);

impl Random {
    /// A generator of its own for each name, so that what one operation draws does not depend on the others.
    pub fn named(name: &str) -> Random {
        Random(
            name.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        )
    }
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// A whole number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }
    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// One of several.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Inputs by name.
pub type Inputs = Vec<(String, Tensor)>;

/// The golden cases of known operations, and for every operation `each` cases drawn from its description.
pub fn cases(each: usize) -> Vec<(Dtype, Case)> {
    let mut cases = golden_cases();
    for operation in catalog::operations() {
        let random = &mut Random::named(operation.id);
        for number in 0..each {
            let dtype = if number % 3 == 2 { Dtype::F32 } else { Dtype::F64 };
            cases.push((
                dtype,
                Case {
                    id: format!("drawn/{}/{number}", operation.id),
                    operation: operation.id.to_owned(),
                    dialect: operation.dialects.first().map_or("paper", |dialect| dialect.name).to_owned(),
                    flags: Vec::new(),
                    params: drawn_params(operation, random),
                    inputs: drawn(operation, random, 1.0, dtype),
                    expected: Vec::new(),
                    oracle_precision: None,
                },
            ));
        }
    }
    cases
}

/// The golden cases of known operations.
pub fn golden_cases() -> Vec<(Dtype, Case)> {
    let mut cases = Vec::new();
    for golden in fixture::embedded().unwrap() {
        let dtype = golden.dtype();
        let known = golden.cases.into_iter().filter(|case| catalog::find(&case.operation).is_some());
        cases.extend(known.map(|case| (dtype, case)));
    }
    cases
}

/// Inputs made up from the catalog alone: every dimension gets a size, every number is drawn by its domain and `scale`.
pub fn drawn(operation: &'static Operation, random: &mut Random, scale: f64, dtype: Dtype) -> Inputs {
    let mut sizes = BTreeMap::<&str, usize>::new();
    let mut inputs = Vec::new();
    for spec in operation.inputs {
        if spec.optional && random.below(3) == 0 {
            continue;
        }
        let shape = *random.pick(spec.shapes);
        let sizes: Vec<usize> =
            shape.iter().map(|name| *sizes.entry(name).or_insert_with(|| 1 + random.below(4))).collect();
        let count = sizes.iter().product();
        let number = |domain: Domain, random: &mut Random| match domain {
            Domain::LogProb => -scale * random.unit(),
            Domain::Probability => random.unit(),
            Domain::Positive | Domain::NonNegative => scale * (random.unit() + 1e-3),
            Domain::Mask => f64::from(u8::from(random.below(4) > 0)),
            Domain::Done => f64::from(u8::from(random.below(4) == 0)),
            Domain::Group | Domain::Count => random.below(3) as f64,
            Domain::Index(_) => random.below(2) as f64,
            _ => match random.below(8) {
                0 => 0.0,
                1 => scale,
                2 => -scale,
                _ => scale * (2.0 * random.unit() - 1.0),
            },
        };
        let values = (0..count).map(|_| round_to(number(spec.domain, random), dtype)).collect();
        inputs.push((spec.name.to_owned(), Tensor { shape: sizes, values }));
    }
    inputs
}

/// Legal parameters, each at its default or drawn.
pub fn drawn_params(operation: &'static Operation, random: &mut Random) -> Vec<(String, Param)> {
    let mut params = Vec::new();
    for spec in operation.params {
        if random.below(3) > 0 {
            continue;
        }
        let inside = |low: f64, high: f64, random: &mut Random| {
            let (low, high) = (low.max(-100.0), high.min(100.0));
            low + (high - low) * random.unit()
        };
        let value = match spec.kind {
            ParamKind::Number { range, .. } => Param::Number(inside(range.low, range.high, random)),
            ParamKind::OptionalNumber { range, .. } => match random.below(2) {
                0 => Param::None,
                _ => Param::Number(inside(range.low, range.high, random)),
            },
            ParamKind::Integer { low, high, .. } => Param::Number((low + random.below(4) as i64).min(high) as f64),
            ParamKind::Flag { .. } => Param::Flag(random.below(2) == 0),
            ParamKind::Choice { names, .. } => Param::Name((*random.pick(names)).to_owned()),
        };
        params.push((spec.name.to_owned(), value));
    }
    params
}

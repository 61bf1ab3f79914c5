//! Any operation of the catalog on any bits: what the fuzzer `operation` runs and the tests replay.

use std::collections::BTreeMap;

use plumbline_core::catalog;
use plumbline_core::num::Dtype;
use plumbline_core::spec::{Domain, InputSpec, ParamKind};
use plumbline_evaluate::tensor::Tensor;
use plumbline_evaluate::{Param, Request, Wanted, evaluate, is_real};

/// The first bytes choose operation, precision and dialect, the others sizes, parameters and numbers; behind the end all are 0.
/// Whatever they are, the evaluation must neither panic nor hang, and fill the outputs or refuse in one line. Returns the
/// operation's identifier where it was evaluated.
pub fn operation(bytes: &[u8]) -> Option<&'static str> {
    let mut bytes = Bytes(bytes);
    let operations: Vec<_> = catalog::operations().collect();
    let operation = operations[bytes.bits(2) as usize % operations.len()];
    let dtype = if bytes.next().is_multiple_of(2) { Dtype::F32 } else { Dtype::F64 };
    let dialect = operation.dialects.get(usize::from(bytes.next() % 4)).map(|dialect| dialect.name);
    let params: Vec<_> = operation
        .params
        .iter()
        .filter_map(|param| bytes.param(&param.kind).map(|value| (param.name.to_owned(), value)))
        .collect();
    let mut sizes = BTreeMap::new();
    let mut inputs = Vec::new();
    for input in operation.inputs {
        if !input.optional || bytes.next() % 2 == 1 {
            inputs.push((input.name.to_owned(), bytes.input(input, dtype, &mut sizes)));
        }
    }
    let request =
        Request { operation: operation.id, dialect, dtype, params: &params, inputs: &inputs, outputs: Wanted::All };
    match evaluate(&request) {
        Ok(outputs) => {
            for (name, tensor) in outputs {
                assert_eq!(tensor.values.len(), tensor.shape.iter().product::<usize>(), "{} {name}", operation.id);
            }
            Some(operation.id)
        }
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
            None
        }
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn bits(&mut self, count: usize) -> u64 {
        (0..count).fold(0, |bits, _| bits << 8 | u64::from(self.next()))
    }

    /// A number that is often ordinary, and of any bits otherwise.
    fn number(&mut self, dtype: Dtype) -> f64 {
        match (self.next(), dtype) {
            (kind, _) if kind < 160 => (f64::from(kind) - 80.0) / 16.0,
            (160..=191, _) => f64::from(self.next()) * 8.0 - 1020.0,
            (_, Dtype::F32) => f64::from(f32::from_bits(self.bits(4) as u32)),
            (_, Dtype::F64) => f64::from_bits(self.bits(8)),
        }
    }

    fn param(&mut self, kind: &ParamKind) -> Option<Param> {
        if self.next() % 4 != 1 {
            return None;
        }
        Some(match kind {
            ParamKind::OptionalNumber { .. } if self.next().is_multiple_of(4) => Param::None,
            ParamKind::Number { .. } | ParamKind::OptionalNumber { .. } => Param::Number(self.number(Dtype::F64)),
            // No more than a few steps above the least: the most that is legal may take hours.
            ParamKind::Integer { low, .. } => Param::Number((*low + i64::from(self.next() % 9) - 1) as f64),
            ParamKind::Flag { .. } => Param::Flag(self.next().is_multiple_of(2)),
            ParamKind::Choice { names, .. } => Param::Name(names[usize::from(self.next()) % names.len()].to_owned()),
        })
    }

    fn input(&mut self, input: &InputSpec, dtype: Dtype, sizes: &mut BTreeMap<&'static str, usize>) -> Tensor {
        let shape = input.shapes[usize::from(self.next()) % input.shapes.len()];
        let mut size = |name: &'static str| {
            let drawn = usize::from(self.next());
            // Seldom another size than the other inputs have.
            if drawn >= 250 { drawn - 250 } else { *sizes.entry(name).or_insert(drawn % 5) }
        };
        let shape: Vec<usize> = shape.iter().map(|name| size(name)).collect();
        let count = shape.iter().product();
        let values = (0..count).map(|_| match input.domain {
            Domain::Mask | Domain::Done => f64::from(u8::from(!self.next().is_multiple_of(4))),
            domain if is_real(domain) => self.number(dtype),
            _ => f64::from(self.next() % 6),
        });
        let values = values.collect();
        Tensor { shape, values }
    }
}

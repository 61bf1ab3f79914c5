//! Every level has the bits of core: all policy objectives, on seeded batches, with their choices at random.

use plumbline_core::catalog;
use plumbline_core::spec::{
    Data, Evaluable, Given, GivenValue, Input, Kernel, Operation, Output, ParamKind, evaluate as core_evaluate,
};
use plumbline_simd::{Level, evaluate};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, count: usize) -> usize {
        (((self.next() >> 32) * count as u64) >> 32) as usize
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 40) as f64 / (1u64 << 24) as f64)
    }
}

/// One batch: log-ratios mostly small, some far beyond every limit; masked slots hold what must not be read.
struct Batch<R> {
    rows: usize,
    columns: usize,
    real: Vec<(&'static str, Vec<R>)>,
    mask: Vec<u8>,
    selected: Vec<u8>,
    group: Vec<u32>,
}

impl<R: Evaluable> Batch<R> {
    fn new(random: &mut Random, rows: usize, columns: usize) -> Self {
        let slots = rows * columns;
        let mask: Vec<u8> = (0..slots).map(|_| u8::from(random.below(5) > 0)).collect();
        let log_prob: Vec<f64> = (0..slots).map(|_| random.between(-5.0, -0.01)).collect();
        let mut near = |size: f64| -> Vec<f64> {
            let shift = |random: &mut Random| match random.below(12) {
                0 => random.between(-120.0, 120.0),
                1 => 0.0,
                _ => random.between(-size, size),
            };
            log_prob.iter().map(|x| x + shift(random)).collect()
        };
        let (old, reference) = (near(0.5), near(1.0));
        let advantage = (0..slots).map(|_| f64::from(random.below(7) as u32) - 3.0).collect();
        let entropy = (0..slots).map(|_| random.between(0.0, 3.0)).collect();
        let weight = (0..slots).map(|_| random.between(0.1, 2.0)).collect();
        let named = [
            ("log_prob", log_prob.clone()),
            ("old_log_prob", old),
            ("ref_log_prob", reference),
            ("advantage", advantage),
            ("entropy", entropy),
            ("importance_weight", weight),
        ];
        let junk = |(slot, value): (usize, f64)| R::from_f64(if mask[slot] == 0 { f64::NAN } else { value });
        Batch {
            rows,
            columns,
            real: named.map(|(name, values)| (name, values.into_iter().enumerate().map(junk).collect())).into(),
            selected: (0..slots).map(|_| random.below(2) as u8).collect(),
            group: (0..rows).map(|row| row as u32 / 2).collect(),
            mask,
        }
    }

    /// The bits of all outputs, or the error.
    fn bits(
        &self,
        operation: &'static Operation,
        run: impl FnOnce(&[Input<'_, R>], &mut [Output<'_, R>]) -> Result<(), plumbline_core::Error>,
    ) -> Result<Vec<u64>, String> {
        let shape = [self.rows, self.columns];
        let mut inputs: Vec<Input<'_, R>> =
            self.real.iter().map(|(name, values)| Input { name, shape: &shape, data: Data::Real(values) }).collect();
        for (name, bytes) in [("mask", &self.mask), ("keep", &self.selected), ("selected", &self.selected)] {
            inputs.push(Input { name, shape: &shape, data: Data::Mask(bytes) });
        }
        let group = [self.rows];
        inputs.push(Input { name: "group", shape: &group, data: Data::Index(&self.group) });
        inputs.retain(|input| operation.input(input.name).is_some());
        let size =
            |shape: &[&str]| shape.iter().map(|axis| if *axis == "B" { self.rows } else { self.columns }).product();
        let mut buffers: Vec<(&str, Vec<R>)> = operation
            .outputs
            .iter()
            .filter(|output| output.name != "advantage")
            .map(|output| (output.name, vec![R::zero(); size(output.shape)]))
            .collect();
        let mut outputs: Vec<Output<'_, R>> =
            buffers.iter_mut().map(|(name, data)| Output { name, data: &mut data[..] }).collect();
        run(&inputs, &mut outputs).map_err(|error| error.to_string())?;
        Ok(buffers.iter().flat_map(|(_, values)| values.iter().map(|value| value.bits())).collect())
    }
}

/// A setting of an operation's choices and flags.
fn choices(random: &mut Random, operation: &'static Operation) -> Vec<Given<'static>> {
    let mut given = Vec::new();
    for param in operation.params {
        if param.name == "advantage_estimator" {
            continue;
        }
        let value = match param.kind {
            ParamKind::Choice { names, .. } if random.below(2) == 0 => {
                GivenValue::Name(names[random.below(names.len())])
            }
            ParamKind::Flag { .. } if random.below(2) == 0 => GivenValue::Flag(random.below(2) == 0),
            _ => continue,
        };
        given.push(Given { name: param.name, value });
    }
    for name in ["kl_coefficient", "entropy_coefficient"] {
        given.push(Given { name, value: GivenValue::Number(random.between(0.0, 0.5)) });
    }
    given
}

fn compare<R: Evaluable>(seed: u64) {
    let mut random = Random(seed);
    let (mut evaluated, mut refused) = (0, 0);
    let objective = |operation: &&Operation| operation.evaluate.kernel == Some(Kernel::PolicyObjective);
    for operation in catalog::operations().filter(objective) {
        for columns in [1, 5, 127, 128, 300] {
            let batch = Batch::<R>::new(&mut random, 4, columns);
            for _ in 0..6 {
                let given = choices(&mut random, operation);
                let core =
                    batch.bits(operation, |inputs, outputs| core_evaluate(operation, None, &given, inputs, outputs));
                match &core {
                    Ok(_) => evaluated += 1,
                    Err(_) => refused += 1,
                }
                for level in Level::supported() {
                    let bits = batch
                        .bits(operation, |inputs, outputs| evaluate(level, operation, None, &given, inputs, outputs));
                    assert!(bits == core, "{} at {}: {:?}", operation.id, level.name(), given);
                }
            }
        }
    }
    assert!(evaluated > 400 && refused * 4 < evaluated, "{evaluated} evaluated, {refused} refused");
}

#[test]
fn single_precision() {
    compare::<f32>(0x5eed);
}

#[test]
fn double_precision() {
    compare::<f64>(0xfeed);
}

#[test]
fn names_are_those_of_levels() {
    for level in Level::supported() {
        assert_eq!(Level::from_name(level.name()), Some(level));
        assert!(Level::NAMES.contains(&level.name()));
    }
    assert_eq!(Level::from_name("sse9"), None);
    assert_eq!(Level::supported().next(), Some(Level::PORTABLE));
}

//! What no batch may change, over every operation of the ratio and value families, bit for bit: what stands under the
//! mask, columns of padding, the order of the rows.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

use plumbline_core::catalog::operations;
use plumbline_core::spec::{Data, Domain, Family, Input, Operation, Output, evaluate};

const ROWS: usize = 4;
const LENGTHS: [usize; ROWS] = [3, 1, 4, 2];

/// A batch of named columns, every value chosen by row and column alone.
struct Batch {
    order: [usize; ROWS],
    width: usize,
    junk: Option<f64>,
}

/// A number in (0, 1) that depends on its three arguments only.
fn number(input: usize, row: usize, column: usize) -> f64 {
    let mixed = (input * 7919 + row * 104_729 + column * 1_299_709 + 12_345) % 1_000_003;
    mixed as f64 / 1_000_003.0
}

fn value(domain: Domain, input: usize, row: usize, column: usize) -> f64 {
    let x = number(input, row, column);
    match domain {
        Domain::NonNegative | Domain::Positive | Domain::Probability => 0.05 + 0.9 * x,
        Domain::LogProb => -2.0 * x - 0.01,
        _ => 4.0 * x - 2.0,
    }
}

impl Batch {
    fn run(&self, operation: &'static Operation, output: &str) -> Vec<u64> {
        let kept = |row: usize, column: usize| column < LENGTHS[row];
        let mut reals: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
        let mask: Vec<u8> =
            self.order.iter().flat_map(|row| (0..self.width).map(move |column| u8::from(kept(*row, column)))).collect();
        for (position, input) in operation.inputs.iter().enumerate() {
            let (shape, values) = match input.shapes[0] {
                ["B", "T"] => {
                    let slots = self.order.iter().flat_map(|row| (0..self.width).map(move |column| (*row, column)));
                    let values = slots.map(|(row, column)| match self.junk {
                        Some(junk) if !kept(row, column) => junk,
                        _ => value(input.domain, position, row, column),
                    });
                    (vec![ROWS, self.width], values.collect())
                }
                ["B"] => (vec![ROWS], self.order.iter().map(|row| value(input.domain, position, *row, 0)).collect()),
                _ => (vec![2], vec![0.25, -0.5]),
            };
            reals.push((shape, values));
        }
        let inputs: Vec<Input<'_, f64>> = operation
            .inputs
            .iter()
            .zip(&reals)
            .map(|(input, (shape, values))| Input {
                name: input.name,
                shape,
                data: if input.domain == Domain::Mask { Data::Mask(&mask) } else { Data::Real(values) },
            })
            .collect();
        let spec = operation.output(output).unwrap();
        let size = |name: &&str| match *name {
            "B" => ROWS,
            "T" => self.width,
            _ => 2,
        };
        let mut buffer = vec![f64::NAN; spec.shape.iter().map(size).product()];
        evaluate(operation, None, &[], &inputs, &mut [Output { name: spec.name, data: &mut buffer }])
            .unwrap_or_else(|error| panic!("{}: {error}", operation.id));
        buffer.iter().map(|number| number.to_bits()).collect()
    }
}

fn checked() -> impl Iterator<Item = (&'static Operation, &'static plumbline_core::spec::OutputSpec)> {
    operations()
        .filter(|operation| matches!(operation.family, Family::Ratio | Family::Value))
        .flat_map(|operation| operation.outputs.iter().map(move |output| (operation, output)))
}

const PLAIN: Batch = Batch { order: [0, 1, 2, 3], width: 5, junk: None };

#[test]
fn what_stands_under_the_mask_is_absent() {
    let mut compared = 0;
    for (operation, output) in checked() {
        let expected = PLAIN.run(operation, output.name);
        for junk in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300] {
            let got = Batch { junk: Some(junk), ..PLAIN }.run(operation, output.name);
            assert_eq!(got, expected, "{}: {} with {junk} under the mask", operation.id, output.name);
        }
        if output.shape == ["B", "T"] {
            for (slot, bits) in expected.iter().enumerate() {
                assert!(slot % 5 < LENGTHS[slot / 5] || *bits == 0, "{}: {} at {slot}", operation.id, output.name);
            }
        }
        compared += 1;
    }
    assert!(compared >= 60, "{compared} outputs");
}

#[test]
fn padding_changes_no_bit() {
    for (operation, output) in checked() {
        let narrow = PLAIN.run(operation, output.name);
        let wide = Batch { width: 133, ..PLAIN }.run(operation, output.name);
        let wide: Vec<u64> = if output.shape == ["B", "T"] {
            wide.chunks(133).flat_map(|row| row[..5].to_vec()).collect()
        } else {
            wide
        };
        assert_eq!(wide, narrow, "{}: {}", operation.id, output.name);
    }
}

#[test]
fn the_order_of_the_rows_changes_no_bit() {
    let order = [2, 0, 3, 1];
    for (operation, output) in checked() {
        let plain = PLAIN.run(operation, output.name);
        let permuted = Batch { order, ..PLAIN }.run(operation, output.name);
        let width = match output.shape {
            ["B", "T"] => 5,
            ["B"] => 1,
            _ => {
                assert_eq!(permuted, plain, "{}: {}", operation.id, output.name);
                continue;
            }
        };
        let expected: Vec<u64> = order.iter().flat_map(|row| plain[row * width..(row + 1) * width].to_vec()).collect();
        assert_eq!(permuted, expected, "{}: {}", operation.id, output.name);
    }
}

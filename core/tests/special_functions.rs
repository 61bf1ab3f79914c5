//! The special functions against tables with 50 digits (`tests/data/`, written by `python -m exporter.num_tables`): for
//! `f32` every result is correctly rounded, for `f64` none is further from that than one unit in the last place.
#![allow(clippy::unwrap_used)]

use plumbline_core::num::{Real, log1mexp, logsigmoid, sigmoid, softplus};

/// A function and its two tables.
struct Subject {
    name: &'static str,
    single: fn(f32) -> f32,
    double: fn(f64) -> f64,
    single_table: &'static str,
    double_table: &'static str,
}

macro_rules! subject {
    ($name:literal, $function:path) => {
        Subject {
            name: $name,
            single: $function,
            double: $function,
            single_table: include_str!(concat!("data/", $name, ".f32.txt")),
            double_table: include_str!(concat!("data/", $name, ".f64.txt")),
        }
    };
}

const SUBJECTS: &[Subject] = &[
    subject!("exp", Real::exp),
    subject!("ln", Real::ln),
    subject!("exp_m1", Real::exp_m1),
    subject!("ln_1p", Real::ln_1p),
    subject!("softplus", softplus),
    subject!("logsigmoid", logsigmoid),
    subject!("sigmoid", sigmoid),
    subject!("log1mexp", log1mexp),
];

/// The pairs (argument, result) of a table, in bits.
fn pairs(table: &str) -> impl Iterator<Item = (u64, u64)> {
    table.lines().map(|line| {
        let (argument, result) = line.split_once(' ').unwrap();
        (u64::from_str_radix(argument, 16).unwrap(), u64::from_str_radix(result, 16).unwrap())
    })
}

/// A number whose differences count representable numbers.
fn ordered(bits: u64, sign: u64) -> i128 {
    if bits & sign != 0 { -i128::from(bits - sign) } else { i128::from(bits) }
}

#[test]
fn single_precision_is_correctly_rounded() {
    for subject in SUBJECTS {
        let mut count = 0;
        for (argument, result) in pairs(subject.single_table) {
            let x = f32::from_bits(u32::try_from(argument).unwrap());
            let got = (subject.single)(x).to_bits();
            assert_eq!(u64::from(got), result, "{}({x:e})", subject.name);
            count += 1;
        }
        assert!(count >= 400, "{}: {count}", subject.name);
    }
}

#[test]
fn double_precision_is_within_one_unit_in_the_last_place() {
    for subject in SUBJECTS {
        let mut worst = (0, 0.0);
        for (argument, result) in pairs(subject.double_table) {
            let x = f64::from_bits(argument);
            let got = (subject.double)(x).to_bits();
            let distance = (ordered(got, 1 << 63) - ordered(result, 1 << 63)).unsigned_abs() as u64;
            if distance > worst.0 {
                worst = (distance, x);
            }
        }
        assert!(worst.0 <= 1, "{}({:e}): {} ulp", subject.name, worst.1, worst.0);
    }
}

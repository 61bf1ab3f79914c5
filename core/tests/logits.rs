//! Properties of the functions of a categorical distribution, through the catalog: gradients against central differences,
//! shift invariance, excluded entries, absent rows, large logits.
#![allow(clippy::unwrap_used)]

use plumbline_core::Error;
use plumbline_core::catalog::find;
use plumbline_core::num::Real;
use plumbline_core::spec::{Data, Evaluable, Given, GivenValue, Input, Output, evaluate};
use proptest::prelude::*;

const ROWS: usize = 3;
const WIDTH: usize = 5;
const EXCLUDED: f64 = f64::NEG_INFINITY;

/// An operation of this family with one value per row, and its second matrix of logits where it has one.
struct Subject {
    id: &'static str,
    value: &'static str,
    second: Option<&'static str>,
    params: &'static [(&'static str, GivenValue<'static>)],
}

const fn of_one(id: &'static str, value: &'static str) -> Subject {
    Subject { id, value, second: None, params: &[] }
}

const fn of_two(
    id: &'static str,
    value: &'static str,
    second: &'static str,
    params: &'static [(&'static str, GivenValue<'static>)],
) -> Subject {
    Subject { id, value, second: Some(second), params }
}

const KL_REVERSE: &[(&str, GivenValue<'static>)] = &[("direction", GivenValue::Name("reverse"))];
const SUBJECTS: &[Subject] = &[
    of_one("logits.token_logprob", "log_prob"),
    of_one("logits.logsumexp", "logsumexp"),
    of_one("logits.entropy", "entropy"),
    of_one("logits.sum_p_squared", "sum_p_squared"),
    of_two("logits.kl_full", "kl", "ref_logits", &[]),
    of_two("logits.kl_full", "kl", "ref_logits", KL_REVERSE),
    of_two("logits.jsd", "jsd", "teacher_logits", &[("beta", GivenValue::Number(0.3))]),
    of_two("logits.jsd", "jsd", "teacher_logits", &[("beta", GivenValue::Number(0.0))]),
    of_two("logits.jsd", "jsd", "teacher_logits", &[("beta", GivenValue::Number(1.0))]),
];

struct Outcome<R> {
    value: Vec<R>,
    gradient: Vec<R>,
    second_gradient: Vec<R>,
}

#[derive(Clone, Copy)]
struct Batch<'a, R> {
    logits: &'a [R],
    second: &'a [R],
    cotangent: &'a [R],
    mask: &'a [u8],
    temperature: f64,
}

fn run<R: Evaluable>(subject: &Subject, batch: &Batch<'_, R>) -> Result<Outcome<R>, Error> {
    let operation = find(subject.id).unwrap();
    let action = [1u32, 4, 0];
    let mut inputs = vec![
        Input { name: "logits", shape: &[ROWS, WIDTH], data: Data::Real(batch.logits) },
        Input { name: "cotangent", shape: &[ROWS], data: Data::Real(batch.cotangent) },
        Input { name: "mask", shape: &[ROWS], data: Data::Mask(batch.mask) },
    ];
    if operation.input("action").is_some() {
        inputs.push(Input { name: "action", shape: &[ROWS], data: Data::Index(&action) });
    }
    if let Some(name) = subject.second {
        inputs.push(Input { name, shape: &[ROWS, WIDTH], data: Data::Real(batch.second) });
    }
    let mut given: Vec<Given<'_>> = subject.params.iter().map(|(name, value)| Given { name, value: *value }).collect();
    given.push(Given { name: "temperature", value: GivenValue::Number(batch.temperature) });
    let mut value = vec![R::nan(); ROWS];
    let mut gradient = vec![R::nan(); ROWS * WIDTH];
    let second_name = subject.second.map(|name| format!("d_{name}"));
    let mut second_gradient = vec![R::zero(); if second_name.is_some() { ROWS * WIDTH } else { 0 }];
    let mut outputs =
        vec![Output { name: subject.value, data: &mut value }, Output { name: "d_logits", data: &mut gradient }];
    if let Some(name) = &second_name {
        outputs.push(Output { name, data: &mut second_gradient });
    }
    evaluate(operation, None, &given, &inputs, &mut outputs)?;
    Ok(Outcome { value, gradient, second_gradient })
}

fn matrix() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-4.0f64..4.0, ROWS * WIDTH)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gradients_are_those_of_the_values(
        logits in matrix(),
        second in matrix(),
        cotangent in prop::collection::vec(-2.0f64..2.0, ROWS),
        temperature in 0.5f64..2.0,
    ) {
        let h = 1e-5;
        let moved = |values: &[f64], index: usize, step: f64| {
            let mut values = values.to_vec();
            values[index] += step;
            values
        };
        for subject in SUBJECTS {
            let batch = Batch { logits: &logits, second: &second, cotangent: &cotangent, mask: &[1; ROWS], temperature };
            let total = |logits: &[f64], second: &[f64]| {
                let outcome = run(subject, &Batch { logits, second, ..batch }).unwrap();
                outcome.value.iter().zip(&cotangent).map(|(value, weight)| value * weight).sum::<f64>()
            };
            let outcome = run(subject, &batch).unwrap();
            for (index, derivative) in outcome.gradient.iter().enumerate() {
                let (up, down) = (moved(&logits, index, h), moved(&logits, index, -h));
                let slope = (total(&up, &second) - total(&down, &second)) / (2.0 * h);
                prop_assert!((slope - derivative).abs() < 1e-8, "{} {} {}", subject.id, slope, derivative);
            }
            for (index, derivative) in outcome.second_gradient.iter().enumerate() {
                let (up, down) = (moved(&second, index, h), moved(&second, index, -h));
                let slope = (total(&logits, &up) - total(&logits, &down)) / (2.0 * h);
                prop_assert!((slope - derivative).abs() < 1e-8, "{} {} {}", subject.id, slope, derivative);
            }
            // A shift of a row changes nothing (but logsumexp), so the gradient adds up to 0.
            if subject.id != "logits.logsumexp" {
                for row in outcome.gradient.chunks(WIDTH).chain(outcome.second_gradient.chunks(WIDTH)) {
                    prop_assert!(row.iter().sum::<f64>().abs() < 1e-14);
                }
                let shifted: Vec<f64> = logits.iter().map(|logit| logit + 7.5).collect();
                let shifted = run(subject, &Batch { logits: &shifted, ..batch }).unwrap();
                for (a, b) in shifted.value.iter().zip(&outcome.value) {
                    prop_assert!((a - b).abs() < 1e-13, "{}", subject.id);
                }
            }
            if subject.second.is_some() {
                prop_assert!(outcome.value.iter().all(|value| *value >= 0.0));
                let same = run(subject, &Batch { second: &logits, ..batch }).unwrap();
                prop_assert!(same.value.iter().all(|value| *value == 0.0), "{} {:?}", subject.id, same.value);
            }
        }
    }

    #[test]
    fn log_softmax_adds_up_to_one_and_pulls_back(logits in matrix(), cotangent in matrix(), temperature in 0.5f64..2.0) {
        let operation = find("logits.log_softmax").unwrap();
        let given = [Given { name: "temperature", value: GivenValue::Number(temperature) }];
        let log_softmax = |logits: &[f64]| {
            let (mut log_prob, mut gradient) = (vec![0.0; ROWS * WIDTH], vec![0.0; ROWS * WIDTH]);
            let inputs = [
                Input { name: "logits", shape: &[ROWS, WIDTH], data: Data::Real(logits) },
                Input { name: "cotangent", shape: &[ROWS, WIDTH], data: Data::Real(&cotangent) },
            ];
            let mut outputs =
                [Output { name: "log_prob", data: &mut log_prob }, Output { name: "d_logits", data: &mut gradient }];
            evaluate(operation, None, &given, &inputs, &mut outputs).unwrap();
            (log_prob, gradient)
        };
        let (log_prob, gradient) = log_softmax(&logits);
        for row in log_prob.chunks(WIDTH) {
            prop_assert!((row.iter().map(|value| Real::exp(*value)).sum::<f64>() - 1.0).abs() < 1e-15);
        }
        let total = |logits: &[f64]| {
            log_softmax(logits).0.iter().zip(&cotangent).map(|(value, weight)| value * weight).sum::<f64>()
        };
        for index in 0..ROWS * WIDTH {
            let (mut up, mut down) = (logits.clone(), logits.clone());
            up[index] += 1e-5;
            down[index] -= 1e-5;
            prop_assert!(((total(&up) - total(&down)) / 2e-5 - gradient[index]).abs() < 1e-8);
        }
    }

    #[test]
    fn absent_rows_and_excluded_entries_touch_nothing(
        logits in matrix(),
        second in matrix(),
        junk in prop::collection::vec(any::<f64>(), WIDTH),
    ) {
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let (mut logits, mut second) = (logits, second);
        logits[WIDTH + 2] = EXCLUDED;
        second[WIDTH + 2] = EXCLUDED;
        let (mut dirty, mut dirty_second) = (logits.clone(), second.clone());
        dirty[2 * WIDTH..].copy_from_slice(&junk);
        dirty_second[2 * WIDTH..].copy_from_slice(&junk);
        let far = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value.max(-1e30)).collect() };
        let (far, far_second) = (far(&logits), far(&second));
        for subject in SUBJECTS {
            let cotangent = [1.0, -0.5, f64::NAN];
            let batch =
                Batch { logits: &logits, second: &second, cotangent: &cotangent, mask: &[1, 1, 0], temperature: 1.3 };
            let clean = run(subject, &batch).unwrap();
            let with_junk = run(subject, &Batch { logits: &dirty, second: &dirty_second, ..batch }).unwrap();
            prop_assert_eq!(bits(&clean.value), bits(&with_junk.value));
            prop_assert_eq!(bits(&clean.gradient), bits(&with_junk.gradient));
            prop_assert_eq!(bits(&clean.second_gradient), bits(&with_junk.second_gradient));
            prop_assert_eq!(clean.value[2].to_bits(), 0);
            prop_assert!(clean.gradient[2 * WIDTH..].iter().all(|value| value.to_bits() == 0));
            // An excluded entry is one of probability 0: the same value as for a logit far below, gradient +0.
            prop_assert_eq!(clean.gradient[WIDTH + 2].to_bits(), 0);
            prop_assert!(clean.second_gradient.get(WIDTH + 2).is_none_or(|value| value.to_bits() == 0));
            prop_assert!(clean.value.iter().chain(&clean.gradient).all(|value| value.is_finite()));
            let with_far = run(subject, &Batch { logits: &far, second: &far_second, ..batch }).unwrap();
            prop_assert_eq!(bits(&with_far.value), bits(&clean.value));
        }
    }
}

#[test]
fn large_logits_stay_finite_in_both_precisions() {
    fn check<R: Evaluable>() {
        for size in [20.0, 88.0, 89.0, 100.0, 710.0, 1000.0] {
            let row = [size, -size, 0.0, size / 2.0, -size / 2.0];
            let logits: Vec<R> = row.iter().chain(&row).chain(&row).map(|value| R::from_f64(*value)).collect();
            let second: Vec<R> = logits.iter().map(|value| -*value).collect();
            let cotangent = [R::one(); ROWS];
            let batch =
                Batch { logits: &logits, second: &second, cotangent: &cotangent, mask: &[1; ROWS], temperature: 1.0 };
            for subject in SUBJECTS {
                let outcome = run(subject, &batch).unwrap();
                let mut all = outcome.value.iter().chain(&outcome.gradient).chain(&outcome.second_gradient);
                assert!(all.all(|value| value.is_finite()), "{} at {size}", subject.id);
            }
            // The first row's action lies 2·size below the largest logit, beside which e^(−size/2) is less than 5e-5.
            let log_prob = run(&SUBJECTS[0], &batch).unwrap().value[0];
            assert!((log_prob + R::from_f64(2.0 * size)).abs() <= R::from_f64(5e-5), "{log_prob} at {size}");
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn illegal_inputs_are_typed_errors() {
    let logits = [0.5; ROWS * WIDTH];
    let batch = Batch { logits: &logits, second: &logits, cotangent: &[1.0; ROWS], mask: &[1; ROWS], temperature: 1.0 };
    for subject in SUBJECTS {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut with_bad = logits;
            with_bad[7] = bad;
            let error = run(subject, &Batch { logits: &with_bad, ..batch }).err();
            assert_eq!(error, Some(Error::NonFinite { argument: "logits", index: 7 }));
        }
        let mut empty = logits;
        empty[WIDTH..2 * WIDTH].fill(EXCLUDED);
        let error = run(subject, &Batch { logits: &empty, ..batch }).err();
        assert_eq!(error, Some(Error::EmptyMask { argument: "logits" }));
        let error = run(subject, &Batch { cotangent: &[1.0, f64::NAN, 1.0], ..batch }).err();
        assert_eq!(error, Some(Error::NonFinite { argument: "cotangent", index: 1 }));
        let error = run(subject, &Batch { temperature: 0.0, ..batch }).err();
        assert!(matches!(error, Some(Error::OutOfRange { argument: "temperature", .. })));
    }
    // KL(p‖q) is infinite where q excludes what p keeps; the other direction and a true mixture are not.
    let mut second = logits;
    second[3] = EXCLUDED;
    let error = run(&SUBJECTS[4], &Batch { second: &second, ..batch }).err();
    assert_eq!(error, Some(Error::NonFinite { argument: "ref_logits", index: 3 }));
    assert!(run(&SUBJECTS[5], &Batch { second: &second, ..batch }).is_ok());
    assert!(run(&SUBJECTS[6], &Batch { second: &second, ..batch }).is_ok());
}

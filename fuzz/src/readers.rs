//! What the fuzzers run, and what the tests replay on the committed corpora: each reads bytes and must neither panic nor
//! hang; what it accepts must hold what it says.

#![allow(dead_code, reason = "each fuzzer uses one function")]

use plumbline_conformance::protocol::{Answer, read_answer, read_start};
use plumbline_conformance::{batch_file, report};
use plumbline_diagnosis::one_shot::{in_turn, prepare};

/// An implementation's greeting.
pub fn protocol_start(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(words) = read_start(text) {
        is_one_line(&words);
    }
}

/// An implementation's answer to a case.
pub fn protocol_answer(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let shape = |name: &str| match name {
        "loss" => Some(vec![]),
        "d_log_prob" => Some(vec![1, 2]),
        _ => None,
    };
    match read_answer(text, 4, "loss", &shape) {
        Err(words) => is_one_line(&words),
        Ok(Answer::Outputs(outputs)) => {
            for (name, tensor) in outputs {
                assert_eq!(Some(&tensor.shape), shape(&name).as_ref());
                assert_eq!(tensor.values.len(), tensor.shape.iter().product::<usize>());
            }
        }
        Ok(_) => {}
    }
}

/// A batch in any of the formats, and the question that it asks.
pub fn batch_file(bytes: &[u8]) {
    let file = match batch_file::read(bytes) {
        Ok(file) => file,
        Err(words) => return is_one_line(&words),
    };
    for (name, array) in &file.arrays {
        let count = array.tensor.shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        assert_eq!(count, Some(array.tensor.values.len()), "{name}");
    }
    // A limit, so that a batch that can be answered does not take the fuzzer's time.
    match file.question(None, Some(200)) {
        Err(words) => is_one_line(&words),
        Ok((question, _)) => match prepare(&question) {
            Err(error) => is_one_line(&error.message),
            Ok(inquiry) => {
                let answer = inquiry.answer(&in_turn);
                assert!(answer.by_chance >= 0.0);
            }
        },
    }
}

/// A list of known deviations.
pub fn known_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(words) = report::read_known(text) {
        assert!(!words.is_empty());
    }
}

/// Trouble is told in one line.
fn is_one_line(words: &str) {
    assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
}

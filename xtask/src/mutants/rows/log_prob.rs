//! N: log-probabilities of tokens.

use super::{Mutant, Target, by_rows};
use crate::mutants::subject::each;

const TOKEN: Target = ("logits.token_logprob", None, &["mask", "temperature"]);

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new("N01", "the temperature is left out", TOKEN, &["param:temperature=1"], |given| {
        given.core().number("temperature", 1.0).run()
    }),
    Mutant::new(
        "N02",
        "the log-probability is divided by the temperature after the softmax",
        TOKEN,
        &["param:temperature=1+factor:1/temperature"],
        |given| {
            let temperature = given.number("temperature");
            each(given.core().number("temperature", 1.0).run(), |value| value / temperature)
        },
    ),
    Mutant::new(
        "N03",
        "the logits of the label's own position",
        ("logits.nll", None, &["mask"]),
        &["param:label_shift=false"],
        |given| given.core().set("label_shift", plumbline_core::spec::Value::Flag(false)).run(),
    ),
    Mutant::new(
        "N04",
        "the mask is not shifted with the labels",
        ("objective.sft", None, &["mask"]),
        &["input:mask:from-next-step", "input:mask:from-previous-step"],
        |given| {
            let (_, columns) = given.size();
            let rows = by_rows(&given.values("mask"), columns);
            let shifted = rows.into_iter().flat_map(|row| {
                let mut moved = vec![0.0];
                moved.extend(&row[..columns - 1]);
                moved
            });
            given.core().input("mask", shifted.collect()).run()
        },
    ),
];

//! Keep only the tokens at which the policy was most uncertain.

use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::ratio::inputs::at;
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};

/// A number's bits as an integer of the same order.
fn key<R: Real>(value: R) -> u64 {
    let bits = (value.to_f64() + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn number<R: Real>(key: u64) -> R {
    R::from_f64(f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key }))
}

/// The keys of a batch's tokens.
fn keys<'v, R: Real>(mask: &'v Mask<'v>, values: &'v [R]) -> impl Iterator<Item = u64> + 'v {
    values.iter().enumerate().filter(|(slot, _)| mask.keeps(*slot)).map(|(_, value)| key(*value))
}

/// The quantile of the tokens' values at `probability`, linear between the two nearest order statistics: position
/// (n − 1)·probability of the ascending values. An order statistic is found by bisecting over bit patterns, so that
/// nothing is sorted or stored. An error where there is no token.
///
/// ```
/// use plumbline_core::{batch::{Mask, TokenShape}, ratio::top_entropy_mask::quantile};
/// let mask = Mask::new(TokenShape { rows: 1, columns: 4 }, None)?;
/// assert_eq!(quantile(&mask, &[4.0, 1.0, 3.0, 2.0], 0.5)?, 2.5);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn quantile<R: Real>(mask: &Mask<'_>, values: &[R], probability: f64) -> Result<R, Error> {
    let count = mask.count();
    if count == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let position = (count - 1) as f64 * probability;
    let below = position as usize;
    let (mut low, mut high) = (0u64, u64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if keys(mask, values).filter(|key| *key <= middle).count() > below {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let lower: R = number(low);
    let fraction = R::from_f64(position - below as f64);
    if fraction == R::zero() || keys(mask, values).filter(|key| *key <= low).count() > below + 1 {
        return Ok(lower);
    }
    let upper: R = number(keys(mask, values).filter(|key| *key > low).min().unwrap_or(low));
    // As a weighted sum the two ends never overflow, and their order is kept.
    Ok((lower * (R::one() - fraction) + upper * fraction).clip(lower, upper))
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let mask = call.mask()?;
    let entropy = call.real("entropy")?;
    mask.check_finite("entropy", entropy)?;
    let fraction: R = call.number("top_fraction")?;
    let threshold = quantile(&mask, entropy, 1.0 - fraction.to_f64())?;
    if let Some(keep) = call.output("keep") {
        mask.write(keep, |slot| if at(entropy, slot) >= threshold { R::one() } else { R::zero() });
    }
    call.write("threshold", threshold);
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.top_entropy_mask",
    family: Family::Ratio,
    title: "Top-entropy mask (80/20)",
    summary: "A mask that keeps the share of the batch's tokens at which the policy's entropy is highest.",
    formula: r"M_{it} = m_{it}\,[\,H_{it} \ge Q_{1-\rho}\,],\quad Q_p\ \text{the}\ p\text{-quantile of}\ H\ \text{over the batch's tokens}",
    gradient: "",
    notes: "The quantile is linear between order statistics, at position (n−1)p; ties with it are kept. Masked terms leave \
            the loss, its denominator stays. The paper keeps 20 %; TRL's top_entropy_quantile is the same share, 1 (all) \
            by default, and it takes the quantile in single precision over all processes.",
    sources: &[Source {
        title: "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement Learning for LLM Reasoning",
        reference: "arXiv:2506.01939",
        place: "Section 5, the objective with an entropy threshold",
    }],
    inputs: &[
        InputSpec::new("entropy", Domain::NonNegative, &[&["B", "T"]], "entropy of the policy at each token (nats)"),
        InputSpec::MASK,
    ],
    params: &[ParamSpec::number("top_fraction", r"\rho", 0.2, Range::UNIT, "the share of tokens that is kept")],
    defaults: &[],
    outputs: &[
        OutputSpec::value("keep", &["B", "T"], "the new mask: 1 where the token is kept"),
        OutputSpec::value("threshold", &[], "the smallest entropy that is kept (nats)"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "keeps 20 %", settings: &[] },
        Dialect { name: "trl-1.16", note: "keeps all by default", settings: &[("top_fraction", Value::Number(1.0))] },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;
    use crate::spec::testing::Case;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn keeps_the_top_fifth() {
        // Five tokens 0.1 … 0.5: position 4·0.8 = 3.2, threshold 0.42.
        let case = Case::new(SPECS, "ratio.top_entropy_mask")
            .real("entropy", &[2, 3], &[0.3, 0.5, 0.1, 0.2, f64::NAN, 0.4])
            .mask("mask", &[2, 3], &[1, 1, 1, 1, 0, 1]);
        assert_eq!(case.get("keep").unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert!((case.get("threshold").unwrap()[0] - 0.42).abs() < 1e-15);
        assert_eq!(case.clone().dialect("trl-1.16").get("keep").unwrap(), [1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(case.mask("mask", &[2, 3], &[0; 6]).get("keep"), Err(Error::EmptyMask { argument: "mask" }));
    }

    proptest! {
        #[test]
        fn equals_the_quantile_of_sorted_values(
            values in proptest::collection::vec(-5.0..5.0f64, 1..20),
            probability in 0.0..=1.0f64,
        ) {
            let mask = Mask::new(TokenShape { rows: 1, columns: values.len() }, None).unwrap();
            let mut sorted: Vec<f64> = values.clone();
            sorted.sort_by(f64::total_cmp);
            let position = (values.len() - 1) as f64 * probability;
            let below = position as usize;
            let above = (below + 1).min(values.len() - 1);
            let expected = sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64);
            // Two roundings of each form at magnitude at most 10.
            prop_assert!((quantile(&mask, &values, probability).unwrap() - expected).abs() <= 1e-14);
        }
    }
}

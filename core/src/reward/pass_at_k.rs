//! The unbiased estimate of pass@k.

use crate::Error;
use crate::num::{ExactSum, Real};
use crate::spec::{Call, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, evaluate_with};

/// 1 − C(n−c, k)/C(n, k): the probability that at least one of k responses, drawn from n without replacement, is among
/// the c correct ones; unbiased for the chance that one of k fresh responses is correct (Chen et al. 2021, eq. 1).
///
/// Computed as 1 − Π(1 − a/(n−i)), i < b, with {a, b} = {c, k} and b the smaller, through logarithms, so that neither a
/// binomial overflows nor a small result cancels: at most b + 4 roundings in `f64`, then one to the number type. Not
/// differentiated. Errors: `OutOfRange` of `k` (0, or above `samples`) and of `correct` (above `samples`).
///
/// ```
/// use plumbline_core::reward::pass_at_k;
/// let estimate: f64 = pass_at_k(4, 2, 2)?;
/// assert!((estimate - 5.0 / 6.0).abs() < 1e-15); // 1 − C(2,2)/C(4,2)
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn pass_at_k<R: Real>(samples: u32, correct: u32, k: u32) -> Result<R, Error> {
    if k == 0 || k > samples {
        return Err(Error::OutOfRange { argument: "k", value: f64::from(k), legal: "from 1 to samples" });
    }
    if correct > samples {
        let value = f64::from(correct);
        return Err(Error::OutOfRange { argument: "correct", value, legal: "from 0 to samples" });
    }
    if correct > samples - k {
        return Ok(R::one());
    }
    let (factors, taken) = (correct.min(k), f64::from(correct.max(k)));
    let mut log_none = 0.0f64;
    for index in 0..factors {
        log_none += Real::ln_1p(-taken / f64::from(samples - index));
    }
    Ok(R::from_f64(0.0 - Real::exp_m1(log_none)))
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (samples, correct) = (call.index("samples")?, call.index("correct")?);
    let k = call.integer("k")?;
    let k = u32::try_from(k).map_err(|_| Error::OutOfRange { argument: "k", value: k as f64, legal: "below 2^32" })?;
    let mut each = call.output("pass_at_k");
    let mut total = ExactSum::new();
    for (index, (samples, correct)) in samples.iter().zip(correct).enumerate() {
        let estimate: R = pass_at_k(*samples, *correct, k)?;
        total.add(estimate);
        if let Some(slot) = each.as_deref_mut().and_then(|each| each.get_mut(index)) {
            *slot = estimate;
        }
    }
    if samples.is_empty() {
        return Err(Error::EmptyMask { argument: "samples" });
    }
    call.write("mean", total.value::<R>() / R::from_count(samples.len()));
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "reward.pass_at_k",
    family: Family::Reward,
    title: "pass@k",
    summary: "The unbiased estimate of the chance that one of k responses is correct, from n responses of which c are.",
    formula: r"\operatorname{pass@}k = 1 - \binom{n-c}{k} \Big/ \binom{n}{k}",
    gradient: "",
    notes: "1 - (1 - c/n)^k is biased low. The estimate of several prompts is the mean of theirs.",
    sources: &[Source {
        title: "Evaluating Large Language Models Trained on Code",
        reference: "arXiv:2107.03374",
        place: "eq. 1, figure 3",
    }],
    inputs: &[
        InputSpec::new("samples", Domain::Count, &[&["P"]], "n: responses to each prompt"),
        InputSpec::new("correct", Domain::Count, &[&["P"]], "c: how many of them are correct"),
    ],
    params: &[ParamSpec::integer("k", "k", 1, 1, u32::MAX as i64, "how many responses may be tried")],
    defaults: &[],
    outputs: &[
        OutputSpec::value("pass_at_k", &["P"], "estimate for each prompt, in [0, 1]"),
        OutputSpec::value("mean", &[], "its mean over the prompts"),
    ],
    dialects: &[],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_by_enumeration() {
        let binomial = |n: u32, k: u32| (0..k).fold(1.0, |b, i| b * f64::from(n - i) / f64::from(i + 1));
        for n in 1..=9u32 {
            for c in 0..=n {
                for k in 1..=n {
                    let none = if n - c < k { 0.0 } else { binomial(n - c, k) / binomial(n, k) };
                    let got: f64 = pass_at_k(n, c, k).unwrap();
                    // Nine products and quotients, and the roundings that the function documents.
                    assert!((got - (1.0 - none)).abs() < 40.0 * f64::EPSILON, "{n} {c} {k}");
                }
            }
        }
    }

    #[test]
    fn large_counts_and_errors() {
        let small: f64 = pass_at_k(1_000_000_000, 1, 1).unwrap();
        assert!((small / 1e-9 - 1.0).abs() < 1e-15);
        let exact: f32 = pass_at_k(1_000_000_000, 1, 1).unwrap();
        assert_eq!(exact, 1e-9);
        assert_eq!(pass_at_k::<f64>(2000, 1900, 200).unwrap(), 1.0);
        assert_eq!(pass_at_k::<f64>(5, 0, 5).unwrap().to_bits(), 0);
        let range = |argument, value, legal| Err(Error::OutOfRange { argument, value, legal });
        assert_eq!(pass_at_k::<f64>(5, 6, 1), range("correct", 6.0, "from 0 to samples"));
        assert_eq!(pass_at_k::<f64>(5, 1, 6), range("k", 6.0, "from 1 to samples"));
        assert_eq!(pass_at_k::<f64>(5, 1, 0), range("k", 0.0, "from 1 to samples"));
    }
}

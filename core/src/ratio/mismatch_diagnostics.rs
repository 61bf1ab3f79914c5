//! How far the trainer's policy is from the inference engine's, on a batch of sampled tokens.

use crate::Error;
use crate::num::Real;
use crate::ratio::inputs::{
    LENGTH_EPS, LOG_RATIO_MAX, LOG_RATIO_MIN, OLD_LOG_PROB, ROLLOUT_LOG_PROB, at, bounds, pair,
};
use crate::ratio::rejection::Divergence;
use crate::ratio::sequence::row_log_ratio_sum;
use crate::ratio::statistics::{EMPTY_ROW, EmptyRow, VERL_DIAGNOSTICS, row_mean, summarise_rows, token_mean};
use crate::ratio::token::log_ratio;
use crate::spec::{Call, Dialect, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let clamp = bounds(call)?;
    let eps: R = call.number("length_eps")?;
    let empty: EmptyRow = call.choice("empty_row")?;
    let (mask, old, rollout) = pair(call, "old_log_prob", "rollout_log_prob")?;
    if mask.count() == 0 {
        return Err(Error::EmptyMask { argument: "mask" });
    }
    let d = |slot: usize| log_ratio(at(old, slot), at(rollout, slot));
    let squared = |log: R| (R::two() * clamp.clamp(log)[0]).exp();
    let log_perplexity = |log_prob: &[R], row: usize| -row_mean(&mask, row, eps, |slot| at(log_prob, slot));
    let difference = |row: usize| row_mean(&mask, row, eps, |slot| -d(slot));
    let mean = |value: &dyn Fn(usize) -> R| summarise_rows(&mask, empty, value).mean;
    let differences = summarise_rows(&mask, empty, difference);
    let metrics = [
        ("kl", token_mean(&mask, eps, |slot| Divergence::K1.at(d(slot)))),
        ("k3_kl", token_mean(&mask, eps, |slot| Divergence::K3.at(d(slot)))),
        ("training_perplexity", mean(&|row| log_perplexity(old, row).exp())),
        ("training_log_perplexity", mean(&|row| log_perplexity(old, row))),
        ("rollout_perplexity", mean(&|row| log_perplexity(rollout, row).exp())),
        ("rollout_log_perplexity", mean(&|row| log_perplexity(rollout, row))),
        ("log_perplexity_difference", differences.mean),
        ("log_perplexity_absolute_difference", mean(&|row| difference(row).abs())),
        ("log_perplexity_difference_max", differences.max),
        ("log_perplexity_difference_min", differences.min),
        ("perplexity_ratio", mean(&|row| difference(row).exp())),
        ("chi_squared_token", token_mean(&mask, eps, |slot| squared(d(slot))) - R::one()),
        ("chi_squared_sequence", mean(&|row| squared(row_log_ratio_sum(&mask, row, old, rollout))) - R::one()),
    ];
    for (name, value) in metrics {
        call.write(name, value);
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "ratio.mismatch_diagnostics",
    family: Family::Ratio,
    title: "Diagnostics of the mismatch between trainer and inference engine",
    summary: "KL estimates, perplexities and χ² divergences between the policy that drew the tokens and the one that \
              trains on them.",
    formula: r"\mathrm{KL} = \overline{-d},\quad k_3 = \overline{e^d - 1 - d},\quad
        \mathrm{PPL}_i = \exp\Big(-\frac{1}{L_i}\sum_t \log\pi\Big),\quad
        \chi^2_{\mathrm{token}} = \overline{e^{2d}} - 1,\quad
        \chi^2_{\mathrm{seq}} = \overline{\exp(2\textstyle\sum_t d_t)} - 1,\quad
        d = \log\pi_{\mathrm{old}} - \log\pi_{\mathrm{rollout}}",
    gradient: "",
    notes: "kl and k3_kl estimate KL(π_rollout‖π_old). Perplexities and the sequence χ² are means over responses of one \
            number per response, kl, k3_kl and the token χ² means over tokens. The difference of log-perplexities is \
            training minus rollout. The clamp acts on the χ² terms only. verl clamps there to ±20, adds 1e-8 to counts and \
            lets an empty response take part with a mean log-probability of 0.",
    sources: &[
        Source {
            title: "verl documentation: Rollout Correction",
            reference: "verl.readthedocs.io/en/latest/algo/rollout_corr_math.html",
            place: "off-policy metrics",
        },
        Source {
            title: "Approximating KL Divergence",
            reference: "Schulman 2020, joschu.net/blog/kl-approx",
            place: "k1, k3",
        },
    ],
    inputs: &[OLD_LOG_PROB, ROLLOUT_LOG_PROB, InputSpec::MASK],
    params: &[LOG_RATIO_MIN, LOG_RATIO_MAX, LENGTH_EPS, EMPTY_ROW],
    defaults: &[],
    outputs: &[
        OutputSpec::value("kl", &[], "mean of log π_rollout − log π_old over tokens (nats)"),
        OutputSpec::value("k3_kl", &[], "mean of the k3 estimate over tokens (nats)"),
        OutputSpec::value("training_perplexity", &[], "mean perplexity of the responses under the trainer"),
        OutputSpec::value("training_log_perplexity", &[], "mean of its logarithm (nats)"),
        OutputSpec::value("rollout_perplexity", &[], "mean perplexity of the responses under the engine"),
        OutputSpec::value("rollout_log_perplexity", &[], "mean of its logarithm (nats)"),
        OutputSpec::value("log_perplexity_difference", &[], "mean of training minus rollout log-perplexity (nats)"),
        OutputSpec::value("log_perplexity_absolute_difference", &[], "mean of its absolute value (nats)"),
        OutputSpec::value("log_perplexity_difference_max", &[], "its largest value (nats)"),
        OutputSpec::value("log_perplexity_difference_min", &[], "its smallest value (nats)"),
        OutputSpec::value("perplexity_ratio", &[], "mean of training over rollout perplexity"),
        OutputSpec::value("chi_squared_token", &[], "mean squared token ratio minus 1"),
        OutputSpec::value("chi_squared_sequence", &[], "mean squared product ratio of a response minus 1"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "exact counts, no clamp, empty responses left out", settings: &[] },
        Dialect {
            name: "verl-0.9",
            note: "log-ratios of the χ² terms clamped to ±20, 1e-8 added to counts, empty responses take part",
            settings: VERL_DIAGNOSTICS,
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing::Case;
    use proptest::prelude::*;

    #[test]
    fn hand_checked_numbers() {
        // d = (ln 2, 0) and (−ln 2): kl = 0, k3 = ((1 − ln 2) + 0 + (−½ + ln 2))/3 = 1/6.
        let two = core::f64::consts::LN_2;
        let case = Case::new(SPECS, "ratio.mismatch_diagnostics")
            .real("old_log_prob", &[3, 2], &[0.0, -1.0, -two, f64::NAN, 1.0, f64::NAN])
            .real("rollout_log_prob", &[3, 2], &[-two, -1.0, 0.0, 4.0, f64::NAN, 1.0])
            .mask("mask", &[3, 2], &[1, 1, 1, 0, 0, 0]);
        let one = |name: &str| case.get(name).unwrap()[0];
        let close = |name: &str, expected: f64| {
            assert!((one(name) - expected).abs() <= 4e-16, "{name}: {} is not {expected}", one(name));
        };
        close("kl", 0.0);
        close("k3_kl", 1.0 / 6.0);
        close("training_log_perplexity", (0.5 + two) / 2.0);
        close("log_perplexity_difference", two / 4.0);
        close("log_perplexity_difference_max", two);
        close("log_perplexity_difference_min", -two / 2.0);
        close("perplexity_ratio", (0.5f64.sqrt() + 2.0) / 2.0);
        close("chi_squared_token", (4.0 + 1.0 + 0.25) / 3.0 - 1.0);
        close("chi_squared_sequence", (4.0 + 0.25) / 2.0 - 1.0);
    }

    proptest! {
        #[test]
        fn finite_log_probs_never_give_nan(
            old in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6),
            rollout in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 6),
        ) {
            let case = Case::new(SPECS, "ratio.mismatch_diagnostics")
                .real("old_log_prob", &[2, 3], &old)
                .real("rollout_log_prob", &[2, 3], &rollout);
            for output in SPECS[0].outputs {
                prop_assert!(!case.get(output.name).unwrap()[0].is_nan(), "{}", output.name);
            }
        }
    }
}

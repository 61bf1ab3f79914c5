//! K: preference and reward-model losses.

use super::{Mutant, Target};
use crate::mutants::scalar::{Scalar, lift, mean, sum};
use crate::mutants::subject::{Given, combined};
use plumbline_core::num::Real;

const REFERENCES: &[&str] = &["ref_chosen_log_prob", "ref_rejected_log_prob", "beta"];
const DPO: Target = ("preference.dpo_sigmoid", Some("paper"), REFERENCES);
const LENGTHS: &[&str] = &["ref_chosen_log_prob", "ref_rejected_log_prob", "chosen_length", "rejected_length", "beta"];
const SUMMED_IPO: Target = ("preference.dpo_ipo", Some("paper"), LENGTHS);
const IPO: Target = ("preference.dpo_ipo", Some("trl-1.16"), LENGTHS);
const RPO: Target =
    ("preference.rpo", Some("paper"), &["ref_chosen_log_prob", "ref_rejected_log_prob", "beta", "rpo_alpha"]);
const REWARD_MODEL: Target = ("preference.bradley_terry", Some("paper"), &["margin"]);
const KTO: Target = ("preference.kto", Some("paper"), &["kl_log_prob", "ref_kl_log_prob", "beta"]);
const SIMPO: Target = ("preference.simpo", Some("paper"), &["chosen_length", "rejected_length", "beta", "gamma"]);
const ORPO: Target = ("preference.orpo", Some("paper"), &["beta"]);

fn margins(given: &Given<'_>) -> Vec<Scalar> {
    let (chosen, rejected) = (given.variables("chosen_log_prob"), given.variables("rejected_log_prob"));
    let (ref_chosen, ref_rejected) = (given.values("ref_chosen_log_prob"), given.values("ref_rejected_log_prob"));
    chosen
        .into_iter()
        .zip(rejected)
        .zip(ref_chosen.into_iter().zip(ref_rejected))
        .map(|((chosen, rejected), (ref_chosen, ref_rejected))| (chosen - ref_chosen) - (rejected - ref_rejected))
        .collect()
}

fn log_odds(mean_log_prob: Scalar, one: f64) -> Scalar {
    mean_log_prob.clone() - (lift(one) - mean_log_prob.exp()).ln()
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant::new(
        "K01",
        "log-probs averaged over tokens",
        SUMMED_IPO,
        &["param:length_normalisation=*", "dialect:*"],
        |given| given.core().name("length_normalisation", "score").run(),
    )
    .variant(),
    Mutant::new(
        "K02",
        "the packed batch's length divides every response",
        IPO,
        &["inputs:*length:batch-total"],
        |given| {
            let whole: f64 = given.values("chosen_length").iter().chain(&given.values("rejected_length")).sum();
            given.core().map("chosen_length", |_, _| whole).map("rejected_length", |_, _| whole).run()
        },
    ),
    Mutant::new(
        "K03",
        "the kind of loss is not passed on: hinge trains as sigmoid",
        ("preference.dpo_hinge", Some("paper"), REFERENCES),
        &["operation:preference.dpo_sigmoid"],
        |given| {
            let beta = given.number("beta");
            let losses = margins(given).into_iter().map(|margin| -(margin * beta).log_sigmoid());
            given.answer(vec![mean(losses.collect())])
        },
    ),
    Mutant::new(
        "K04",
        "the likelihood is divided by the length twice",
        RPO,
        &["input:chosen_length:squared"],
        |given| given.core().map("chosen_length", |_, length| length * length).run(),
    ),
    Mutant::new("K05", "chosen and rejected are swapped in the metrics", DPO, &["output:chosen_reward:*"], |given| {
        let mut answer = given.core().run_with(&["chosen_reward", "rejected_reward"])?;
        let (first, second) = (answer.len() - 2, answer.len() - 1);
        let kept = answer[first].1.clone();
        answer[first].1 = std::mem::replace(&mut answer[second].1, kept);
        Ok(answer)
    }),
    Mutant::new("K06", "beta is applied twice", DPO, &["param:beta:squared"], |given| {
        let beta = given.number("beta");
        let losses = margins(given).into_iter().map(|margin| -(margin * beta * beta).log_sigmoid());
        given.answer(vec![mean(losses.collect())])
    }),
    Mutant::new("K07", "the margin is divided by beta", DPO, &["param:beta:reciprocal"], |given| {
        let beta = given.number("beta");
        let losses = margins(given).into_iter().map(|margin| -(margin / beta).log_sigmoid());
        given.answer(vec![mean(losses.collect())])
    }),
    Mutant::new(
        "K10",
        "alpha multiplies the preference term, not the likelihood",
        RPO,
        &["misplaced:rpo_alpha"],
        |given| {
            let (beta, alpha) = (given.number("beta"), given.number("rpo_alpha"));
            let losses = margins(given).into_iter().map(|margin| -(margin * beta).log_sigmoid() * alpha);
            let (chosen, lengths) = (given.variables("chosen_log_prob"), given.values("chosen_length"));
            let likelihood = chosen.into_iter().zip(lengths).map(|(chosen, length)| -chosen / length.max(1.0));
            given.answer(vec![mean(losses.collect()) + mean(likelihood.collect())])
        },
    ),
    Mutant::new(
        "K11",
        "labels are not shifted against the logits",
        ("objective.sft", None, &["mask"]),
        &["param:label_shift=false"],
        |given| given.core().set("label_shift", plumbline_core::spec::Value::Flag(false)).run(),
    ),
    Mutant::new(
        "K13",
        "the mean over no undesirable response",
        ("preference.kto", Some("paper"), &["beta"]),
        &["kind:not-finite"],
        |given| {
            let none = given.values("desirable").iter().all(|desirable| *desirable != 0.0);
            crate::mutants::subject::each(given.core().run(), |value| if none { f64::NAN } else { value })
        },
    ),
    Mutant::new("K14", "the reference point comes from the responses themselves", KTO, &["copied:kl_*<-*"], |given| {
        let (log_prob, reference) = (given.values("log_prob"), given.values("ref_log_prob"));
        let own = log_prob.iter().zip(&reference).map(|(a, b)| a - b).sum::<f64>() / log_prob.len() as f64;
        given.core().number("reference_point", own.max(0.0)).run()
    }),
    Mutant::new("K15", "1.0001 for 1 in the odds", ORPO, &["log-odds:*"], |given| {
        let (chosen, rejected) = (given.variables("chosen_log_prob"), given.variables("rejected_log_prob"));
        let (lengths, others) = (given.values("chosen_length"), given.values("rejected_length"));
        let beta = given.number("beta");
        let losses = (0..chosen.len()).map(|pair| {
            let (w, l) = (chosen[pair].clone() / lengths[pair], rejected[pair].clone() / others[pair]);
            -w.clone() - (log_odds(w, 1.0001) - log_odds(l, 1.0001)).log_sigmoid() * beta
        });
        given.answer(vec![mean(losses.collect())])
    }),
    Mutant::new("K15b", "log(1 - exp(x)) near certainty", ORPO, &["kind:not-finite"], |given| {
        let rejected = given.values("rejected_log_prob");
        let lost = rejected
            .iter()
            .zip(given.values("rejected_length"))
            .any(|(x, length)| 1.0_f32 - Real::exp(*x / length) as f32 == 0.0);
        crate::mutants::subject::each(given.core().run(), |value| if lost { f64::INFINITY } else { value })
    })
    .single_precision(),
    Mutant::new("K16", "a floor that is 0 in the number type", ORPO, &["kind:not-finite"], |given| {
        let chosen = given.values("chosen_log_prob");
        let lost = chosen.iter().zip(given.values("chosen_length")).any(|(x, length)| {
            (1.0 - Real::exp(*x / length)).max(1e-46) as f32 == 0.0 || 1.0_f32 - Real::exp(*x / length) as f32 == 0.0
        });
        crate::mutants::subject::each(given.core().run(), |value| if lost { f64::NEG_INFINITY } else { value })
    })
    .single_precision(),
    Mutant::new(
        "K17",
        "errors stand in for log-probabilities with the wrong sign",
        ("preference.cpo", Some("paper"), &["chosen_length", "rejected_length", "beta"]),
        &["exchanged:chosen_log_prob,rejected_log_prob*", "reversed:chosen_log_prob-rejected_log_prob"],
        |given| {
            let beta = given.number("beta");
            let (chosen, rejected) = (given.variables("chosen_log_prob"), given.variables("rejected_log_prob"));
            let plain = given.core().number("likelihood_coefficient", 0.0);
            let likelihood = combined(&[(1.0, given.core().run()), (-1.0, plain.run())]);
            let losses = chosen.into_iter().zip(rejected).map(|(w, l)| -((l - w) * beta).log_sigmoid());
            combined(&[(1.0, given.answer(vec![mean(losses.collect())])), (1.0, likelihood)])
        },
    ),
    Mutant::new(
        "K18",
        "margins of shape (B, 1) against differences of shape (B)",
        REWARD_MODEL,
        &["broadcast:margin"],
        |given| {
            let (chosen, rejected) = (given.variables("chosen_score"), given.variables("rejected_score"));
            let differences: Vec<Scalar> = chosen.into_iter().zip(rejected).map(|(w, l)| w - l).collect();
            let pairs = given.values("margin").into_iter().flat_map(|margin| {
                differences
                    .iter()
                    .map(move |difference| -(difference.clone() - margin).log_sigmoid())
                    .collect::<Vec<_>>()
            });
            given.answer(vec![mean(pairs.collect())])
        },
    ),
    Mutant::new("K19", "the margin stands outside the sigmoid", REWARD_MODEL, &["outside:margin*"], |given| {
        let (chosen, rejected) = (given.variables("chosen_score"), given.variables("rejected_score"));
        let losses = chosen.into_iter().zip(rejected).zip(given.values("margin"));
        given.answer(vec![mean(losses.map(|((w, l), margin)| -(w - l).log_sigmoid() - margin).collect())])
    }),
    Mutant::new(
        "K20",
        "the mean over all tokens for the last token's score",
        ("preference.last_token_score", Some("paper"), &["mask"]),
        &["input:score:row-mean"],
        |given| {
            let (_, columns) = given.size();
            let scores = given.variables("score");
            let rows = scores.chunks(columns).zip(given.kept()).map(|(row, kept)| {
                let chosen: Vec<Scalar> =
                    row.iter().zip(kept).filter(|(_, kept)| *kept).map(|(s, _)| s.clone()).collect();
                if chosen.is_empty() { lift(0.0) } else { mean(chosen) }
            });
            given.answer(rows.collect())
        },
    )
    .variant(),
    Mutant::new(
        "K21",
        "the first padding identifier, wherever it stands, ends the response",
        ("preference.last_token_score", Some("transformers-5"), &["token_id"]),
        &["param:valid_by=*", "dialect:*"],
        |given| given.core().name("valid_by", "before_first_pad").run(),
    ),
    Mutant::new(
        "K22",
        "the logarithm of the logistic function underflows",
        REWARD_MODEL,
        &["kind:not-finite"],
        |given| {
            let (chosen, rejected) = (given.values("chosen_score"), given.values("rejected_score"));
            let margin = given.values("margin");
            let gone = (0..chosen.len()).any(|pair| {
                let x = chosen[pair] - rejected[pair] - margin.get(pair).copied().unwrap_or(0.0);
                (1.0 / (1.0 + Real::exp(-x))) as f32 == 0.0
            });
            let mut answer = given.core().run()?;
            if gone {
                answer[0].1[0] = f64::INFINITY;
            }
            Ok(answer)
        },
    )
    .single_precision(),
    Mutant::new(
        "K23",
        "the loss is replaced by the chosen response's likelihood",
        DPO,
        &["only:chosen_log_prob*-1"],
        |given| given.answer(vec![-mean(given.variables("chosen_log_prob"))]),
    ),
    Mutant::new(
        "K24",
        "the likelihood grows with the batch",
        RPO,
        &["term:rpo_alpha*B", "param:likelihood_count=1"],
        |given| {
            let beta = given.number("beta");
            let losses = margins(given).into_iter().map(|margin| -(margin * beta).log_sigmoid());
            let (chosen, lengths) = (given.variables("chosen_log_prob"), given.values("chosen_length"));
            let likelihood = chosen.into_iter().zip(lengths).map(|(chosen, length)| -chosen / length.max(1.0));
            given.answer(vec![mean(losses.collect()) + sum(likelihood) * given.number("rpo_alpha")])
        },
    ),
    Mutant::new("K25", "gamma inside beta", SIMPO, &["param:gamma_placement=inside"], |given| {
        let (beta, gamma) = (given.number("beta"), given.number("gamma"));
        let (chosen, rejected) = (given.variables("chosen_log_prob"), given.variables("rejected_log_prob"));
        let (lengths, others) = (given.values("chosen_length"), given.values("rejected_length"));
        let losses = (0..chosen.len()).map(|pair| {
            let margin = chosen[pair].clone() / lengths[pair] - rejected[pair].clone() / others[pair];
            -((margin - gamma) * beta).log_sigmoid()
        });
        given.answer(vec![mean(losses.collect())])
    })
    .variant(),
    Mutant::new(
        "K26",
        "conservative label smoothing for the robust one",
        (
            "preference.dpo_robust",
            Some("paper"),
            &["ref_chosen_log_prob", "ref_rejected_log_prob", "beta", "label_smoothing"],
        ),
        &["operation:preference.dpo_sigmoid"],
        |given| {
            let (beta, smoothing) = (given.number("beta"), given.number("label_smoothing"));
            let losses = margins(given).into_iter().map(|margin| {
                let x = margin * beta;
                -x.clone().log_sigmoid() * (1.0 - smoothing) - (-x).log_sigmoid() * smoothing
            });
            given.answer(vec![mean(losses.collect())])
        },
    )
    .variant(),
    Mutant::new("K05b", "the reference is left out", DPO, &["inputs:ref_*:ignored"], |given| {
        given.core().without("ref_chosen_log_prob").without("ref_rejected_log_prob").run()
    }),
];

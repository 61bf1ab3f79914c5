//! Pair losses that judge each response by its own log-ratio: NCA, SPPO and the two APO losses.

use super::arithmetic::difference;
use super::pairs::{BETA, INPUTS, OUTPUTS, PAIR_COUNT, Pair, PairTerm, evaluate_pairs};
use crate::Error;
use crate::num::{Real, sigmoid, softplus};
use crate::spec::{Call, Dialect, Family, Operation, ParamSpec, Source, evaluate_with};

/// Noise-contrastive alignment for pairs: −ln σ(a) − ½ ln σ(−a) − ½ ln σ(−b) with the rewards a = β·log-ratio of the chosen, b of
/// the rejected response.
///
/// Chen et al., "Noise Contrastive Alignment of Language Models with Explicit Rewards", arXiv:2402.05369, the
/// pairwise NCA loss (K = 2).
/// Derivatives: β(½σ(a) − σ(−a)) and ½β·σ(b). Unlike DPO it holds the chosen response's probability up.
///
/// ```
/// use plumbline_core::preference::{dpo_pointwise::nca_pair, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 0.0f64, rejected_log_ratio: 0.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = nca_pair(&pair, 1.0);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [2.0 * core::f64::consts::LN_2, -0.25, 0.25]);
/// ```
#[inline(always)]
pub fn nca_pair<R: Real>(pair: &Pair<R>, beta: R) -> PairTerm<R> {
    let (a, b) = (beta * pair.chosen_log_ratio, beta * pair.rejected_log_ratio);
    PairTerm {
        value: softplus(-a) + R::half() * softplus(a) + R::half() * softplus(b),
        d_chosen: beta * (R::half() * sigmoid(a) - sigmoid(-a)),
        d_rejected: R::half() * (beta * sigmoid(b)),
    }
}

/// SPPO with hard labels: (c − 1/(2β))² + (r + 1/(2β))² of the chosen log-ratio c and the rejected one r.
///
/// Wu et al., "Self-Play Preference Optimization for Language Model Alignment", arXiv:2405.00675, Eq. (4.7) with the win
/// probability 1 for the chosen and 0 for the rejected response, and η = 1/β. Derivatives: twice each error.
///
/// ```
/// use plumbline_core::preference::{dpo_pointwise::sppo_hard, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 1.0, rejected_log_ratio: -1.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = sppo_hard(&pair, 0.25);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [2.0, -2.0, 2.0]);
/// ```
#[inline(always)]
pub fn sppo_hard<R: Real>(pair: &Pair<R>, beta: R) -> PairTerm<R> {
    let target = R::half() / beta;
    let chosen = pair.chosen_log_ratio - target;
    let rejected = pair.rejected_log_ratio + target;
    PairTerm {
        value: chosen * chosen + rejected * rejected,
        d_chosen: R::two() * chosen,
        d_rejected: R::two() * rejected,
    }
}

/// APO-zero: 1 − σ(a) + σ(b), rewards a and b as above: raise the chosen, lower the rejected response.
///
/// D'Oosterlinck et al., "Anchored Preference Optimization and Contrastive Revisions", arXiv:2408.06266, Eq. (7). Derivatives:
/// −β·σ(a)σ(−a) and β·σ(b)σ(−b). 1 − σ(a) is evaluated as σ(−a).
///
/// ```
/// use plumbline_core::preference::{dpo_pointwise::apo_zero, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 0.0f64, rejected_log_ratio: 0.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = apo_zero(&pair, 1.0);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [1.0, -0.25, 0.25]);
/// ```
#[inline(always)]
pub fn apo_zero<R: Real>(pair: &Pair<R>, beta: R) -> PairTerm<R> {
    let (a, b) = (beta * pair.chosen_log_ratio, beta * pair.rejected_log_ratio);
    PairTerm {
        value: sigmoid(-a) + sigmoid(b),
        d_chosen: -(beta * (sigmoid(a) * sigmoid(-a))),
        d_rejected: beta * (sigmoid(b) * sigmoid(-b)),
    }
}

/// APO-down: σ(a) + 1 − σ(a − b): lower the chosen response, the rejected one more.
///
/// Same paper, Eq. (8). Derivatives: β(σ(a)σ(−a) − σ(x)σ(−x)) and β·σ(x)σ(−x) with x = a − b.
///
/// ```
/// use plumbline_core::preference::{dpo_pointwise::apo_down, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 0.0f64, rejected_log_ratio: 0.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = apo_down(&pair, 1.0);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [1.0, 0.0, 0.25]);
/// ```
#[inline(always)]
pub fn apo_down<R: Real>(pair: &Pair<R>, beta: R) -> PairTerm<R> {
    let a = beta * pair.chosen_log_ratio;
    let x = beta * difference(pair.chosen_log_ratio, pair.rejected_log_ratio);
    let slope = sigmoid(x) * sigmoid(-x);
    PairTerm {
        value: sigmoid(a) + sigmoid(-x),
        d_chosen: beta * (sigmoid(a) * sigmoid(-a) - slope),
        d_rejected: beta * slope,
    }
}

fn evaluate_nca_pair<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| nca_pair(pair, beta))
}

fn evaluate_sppo_hard<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| sppo_hard(pair, beta))
}

fn evaluate_apo_zero<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| apo_zero(pair, beta))
}

fn evaluate_apo_down<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| apo_down(pair, beta))
}

const PARAMS: &[ParamSpec] = &[BETA, PAIR_COUNT];
const AS_WRITTEN: &[Dialect] = &[
    Dialect { name: "paper", note: "as written", settings: &[] },
    Dialect { name: "trl-1.16", note: "as in the paper", settings: &[] },
    Dialect { name: "trl-0.12", note: "as in the paper", settings: &[] },
];
const APO: &str =
    "Anchored Preference Optimization and Contrastive Revisions: Addressing Underspecification in Alignment";

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.dpo_nca_pair",
        family: Family::Preference,
        title: "NCA (pairs)",
        summary: "Noise-contrastive alignment: each response is classified by its own reward, the chosen one half as noise.",
        formula: r"-\log\sigma(a) - \tfrac12\log\sigma(-a) - \tfrac12\log\sigma(-b),\quad a = \beta\log\tfrac{\pi_\theta(y_w)}{\pi_{\mathrm{ref}}(y_w)},\ b = \beta\log\tfrac{\pi_\theta(y_l)}{\pi_{\mathrm{ref}}(y_l)}",
        gradient: r"\beta\left(\tfrac12\sigma(a) - \sigma(-a),\ \tfrac12\sigma(b)\right)/N",
        notes: "Always under reverse KL. Smooth everywhere. No difference between the libraries is known.",
        sources: &[Source {
            title: "Noise Contrastive Alignment of Language Models with Explicit Rewards",
            reference: "arXiv:2402.05369",
            place: "pairwise NCA loss (K = 2)",
        }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: AS_WRITTEN,
        evaluate: evaluate_with!(evaluate_nca_pair),
    },
    Operation {
        id: "preference.dpo_sppo_hard",
        family: Family::Preference,
        title: "SPPO (hard labels)",
        summary: "The squared distances of the two log-ratios from plus and minus 1/(2 beta).",
        formula: r"\left(c - \tfrac{1}{2\beta}\right)^2 + \left(r + \tfrac{1}{2\beta}\right)^2",
        gradient: r"2\left(c - \tfrac{1}{2\beta},\ r + \tfrac{1}{2\beta}\right)/N",
        notes: "c and r are the log-ratios of chosen and rejected response. The paper's soft form takes an estimated win \
                probability; here it is 1 and 0. No difference between the libraries is known.",
        sources: &[Source {
            title: "Self-Play Preference Optimization for Language Model Alignment",
            reference: "arXiv:2405.00675",
            place: "Eq. (4.7), hard labels",
        }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: AS_WRITTEN,
        evaluate: evaluate_with!(evaluate_sppo_hard),
    },
    Operation {
        id: "preference.dpo_apo_zero",
        family: Family::Preference,
        title: "APO-zero",
        summary: "Raise the chosen response's likelihood and lower the rejected one's, each anchored at its own reward 0.",
        formula: r"1 - \sigma(a) + \sigma(b)",
        gradient: r"\beta\left(-\sigma(a)\sigma(-a),\ \sigma(b)\sigma(-b)\right)/N",
        notes: "a and b are the rewards of chosen and rejected response. Smooth everywhere. No difference between the libraries \
                is known.",
        sources: &[Source { title: APO, reference: "arXiv:2408.06266", place: "Eq. (7)" }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: AS_WRITTEN,
        evaluate: evaluate_with!(evaluate_apo_zero),
    },
    Operation {
        id: "preference.dpo_apo_down",
        family: Family::Preference,
        title: "APO-down",
        summary: "Lower the chosen response's likelihood, and the rejected one's more.",
        formula: r"\sigma(a) + 1 - \sigma(a - b)",
        gradient: r"\beta\left(\sigma(a)\sigma(-a) - \sigma(x)\sigma(-x),\ \sigma(x)\sigma(-x)\right)/N,\quad x = a - b",
        notes: "a and b are the rewards of chosen and rejected response. Smooth everywhere. No difference between the libraries \
                is known.",
        sources: &[Source { title: APO, reference: "arXiv:2408.06266", place: "Eq. (8)" }],
        inputs: INPUTS,
        params: PARAMS,
        defaults: &[],
        outputs: OUTPUTS,
        dialects: AS_WRITTEN,
        evaluate: evaluate_with!(evaluate_apo_down),
    },
];

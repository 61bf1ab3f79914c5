//! Cal-DPO: DPO whose implicit rewards are held to the scale of the true ones.

use super::arithmetic::difference;
use super::pairs::{BETA, INPUTS, OUTPUTS, PAIR_COUNT, Pair, PairTerm, evaluate_pairs};
use crate::Error;
use crate::num::{Real, sigmoid, softplus};
use crate::spec::{Call, Dialect, Family, Operation, Source, evaluate_with};

/// The Cal-DPO loss of a pair with log-ratios c and r: −ln σ(c − r) + (c − 1/(2β))² + (r + 1/(2β))².
///
/// Xiao et al., "Cal-DPO: Calibrated Direct Preference Optimization for Language Model Alignment", arXiv:2412.14516, Section 4:
/// the contrastive term on the log-ratios themselves (without β), and their squared distances from the rewards ±½ divided by β.
/// Derivatives: −σ(r − c) + 2(c − 1/(2β)) and σ(r − c) + 2(r + 1/(2β)).
///
/// ```
/// use plumbline_core::preference::{cal_dpo::cal_dpo, pairs::Pair};
/// let pair = Pair { chosen_log_ratio: 1.0f64, rejected_log_ratio: 1.0, chosen_length: 1.0, rejected_length: 1.0 };
/// let term = cal_dpo(&pair, 0.5);
/// assert_eq!([term.value, term.d_chosen, term.d_rejected], [core::f64::consts::LN_2 + 4.0, -0.5, 4.5]);
/// ```
#[inline(always)]
pub fn cal_dpo<R: Real>(pair: &Pair<R>, beta: R) -> PairTerm<R> {
    let margin = difference(pair.chosen_log_ratio, pair.rejected_log_ratio);
    let target = R::half() / beta;
    let chosen = pair.chosen_log_ratio - target;
    let rejected = pair.rejected_log_ratio + target;
    let slope = sigmoid(-margin);
    PairTerm {
        value: softplus(-margin) + chosen * chosen + rejected * rejected,
        d_chosen: R::two() * chosen - slope,
        d_rejected: R::two() * rejected + slope,
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let beta = call.number("beta")?;
    evaluate_pairs(call, |pair| cal_dpo(pair, beta))
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.cal_dpo",
    family: Family::Preference,
    title: "Cal-DPO",
    summary: "DPO plus the squared distances of the two log-ratios from plus and minus 1/(2 beta).",
    formula: r"-\log\sigma(c - r) + \left(c - \tfrac{1}{2\beta}\right)^2 + \left(r + \tfrac{1}{2\beta}\right)^2",
    gradient: r"\left(-\sigma(r - c) + 2(c - \tfrac{1}{2\beta}),\ \sigma(r - c) + 2(r + \tfrac{1}{2\beta})\right)/N",
    notes: "c and r are the log-ratios of chosen and rejected response. beta sets only the calibration targets. Neither verl nor \
            TRL has it, so it has no library dialect.",
    sources: &[Source {
        title: "Cal-DPO: Calibrated Direct Preference Optimization for Language Model Alignment",
        reference: "arXiv:2412.14516",
        place: "Section 4, the Cal-DPO loss",
    }],
    inputs: INPUTS,
    params: &[BETA, PAIR_COUNT],
    defaults: &[],
    outputs: OUTPUTS,
    dialects: &[Dialect { name: "paper", note: "as written", settings: &[] }],
    evaluate: evaluate_with!(evaluate),
}];

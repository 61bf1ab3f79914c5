//! Losses on a ranking of K responses: all its pairs (Bradley–Terry), and the whole of it (Plackett–Luce).

use super::pairs::LOSS;
use crate::Error;
use crate::batch::row_of;
use crate::num::{ExactSum, Real, log_add_exp, sigmoid, softplus};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, evaluate_with,
};

/// One ranking: scores from best to worst, and which of them are there.
#[derive(Clone, Copy, Debug)]
pub struct Ranking<'a, R> {
    /// Scores, the best response first.
    pub score: &'a [R],
    /// Which responses are there; none is all.
    pub mask: Option<&'a [u8]>,
}

impl<R: Real> Ranking<'_, R> {
    fn kept(&self) -> impl DoubleEndedIterator<Item = (usize, R)> + Clone {
        let mask = self.mask;
        let kept = move |place: &usize| mask.is_none_or(|mask| mask.get(*place).is_some_and(|byte| *byte != 0));
        self.score.iter().copied().enumerate().filter(move |(place, _)| kept(place))
    }

    /// How many responses are there.
    pub fn size(&self) -> usize {
        self.kept().count()
    }
}

fn add_to<R: Real>(gradient: &mut Option<&mut [R]>, place: usize, value: R) {
    if let Some(slot) = gradient.as_deref_mut().and_then(|gradient| gradient.get_mut(place)) {
        *slot += value;
    }
}

/// The mean logistic loss over all K(K−1)/2 pairs of a ranking, −(2/(K(K−1))) Σ_{i<j} ln σ(s_i − s_j).
///
/// Ouyang et al., arXiv:2203.02155, Eq. (1). `factor` times its gradient is added to `gradient`. A ranking of fewer than two
/// responses has no pair and gives none.
///
/// ```
/// use plumbline_core::preference::ranking::{Ranking, all_pairs};
/// let ranking = Ranking { score: &[0.0f64, 0.0, 0.0], mask: None };
/// let mut gradient = [0.0; 3];
/// let loss = all_pairs(&ranking, 1.0, Some(&mut gradient)).unwrap();
/// assert!((loss - core::f64::consts::LN_2).abs() < 1e-15);
/// assert!((gradient[0] + 1.0 / 3.0).abs() < 1e-15 && gradient[1] == 0.0);
/// ```
pub fn all_pairs<R: Real>(ranking: &Ranking<'_, R>, factor: R, mut gradient: Option<&mut [R]>) -> Option<R> {
    let size = ranking.size();
    if size < 2 {
        return None;
    }
    let pairs = R::from_count(size * (size - 1) / 2);
    let mut sum = ExactSum::new();
    for (position, (better, high)) in ranking.kept().enumerate() {
        for (worse, low) in ranking.kept().skip(position + 1) {
            let gap = high - low;
            sum.add(softplus(-gap));
            let slope = factor * sigmoid(-gap) / pairs;
            add_to(&mut gradient, better, -slope);
            add_to(&mut gradient, worse, slope);
        }
    }
    Some(sum.value::<R>() / pairs)
}

/// The Plackett–Luce negative log-likelihood of a ranking, Σ_i [logsumexp_{j≥i} s_j − s_i] over its first `depth` places.
///
/// Plackett, Applied Statistics 24 (1975), and Luce (1959); its use for preference optimisation is Rafailov et al.,
/// arXiv:2305.18290, Eq. (18). The derivative by s_j is Σ_{i≤j} softmax over the remaining responses, minus 1 where place j was
/// observed; it sums to 0 over a ranking. For K = 2 it is the Bradley–Terry loss. `factor` times the gradient is added to
/// `gradient`. A ranking of no response gives none; the last place left is certain and adds 0.
///
/// ```
/// use plumbline_core::preference::ranking::{Ranking, plackett_luce};
/// let ranking = Ranking { score: &[0.0f64, 0.0, 0.0], mask: None };
/// // ln 3 + ln 2.
/// assert!((plackett_luce(&ranking, None, 1.0, None).unwrap() - 1.791759469228055).abs() < 1e-15);
/// ```
pub fn plackett_luce<R: Real>(
    ranking: &Ranking<'_, R>,
    depth: Option<usize>,
    factor: R,
    mut gradient: Option<&mut [R]>,
) -> Option<R> {
    let size = ranking.size();
    if size == 0 {
        return None;
    }
    let depth = depth.unwrap_or(size);
    let mut sum = ExactSum::new();
    let mut remaining = R::neg_infinity();
    // From the worst place up, so that the log-sum over what remains grows by one score at a step.
    for (taken, (place, score)) in ranking.kept().rev().enumerate() {
        remaining = if taken == 0 { score } else { log_add_exp(remaining, score) };
        if size - taken > depth || taken == 0 {
            continue;
        }
        sum.add(remaining - score);
        add_to(&mut gradient, place, -factor);
        for (other, value) in ranking.kept().rev().take(taken + 1) {
            add_to(&mut gradient, other, factor * (value - remaining).exp());
        }
    }
    Some(sum.value())
}

fn evaluate_rankings<R: Real>(
    call: &mut Call<'_, R>,
    smallest: usize,
    loss: impl Fn(&Ranking<'_, R>, R, Option<&mut [R]>) -> Option<R>,
) -> Result<(), Error> {
    let score = call.real("score")?;
    let mask = call.optional_bytes("mask");
    let (rows, columns) = (call.dim("N"), call.dim("K"));
    let row = |index: usize| Ranking {
        score: row_of(score, columns, index),
        mask: mask.map(|mask| row_of(mask, columns, index)),
    };
    let rankings = (0..rows).filter(|index| row(*index).size() >= smallest).count();
    if rankings == 0 {
        return Err(Error::EmptyMask { argument: "score" });
    }
    let count = call.optional_number("ranking_count").unwrap_or(R::from_count(rankings));
    let mut own = call.output("ranking_loss");
    let mut gradient = call.output("d_score");
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient.fill(R::zero());
    }
    let mut sum = ExactSum::new();
    for index in 0..rows {
        let ranking = row(index);
        if let Some((place, _)) = ranking.kept().find(|(_, value)| !value.is_finite()) {
            return Err(Error::NonFinite { argument: "score", index: index * columns + place });
        }
        let start = index * columns;
        let slots = gradient.as_deref_mut().and_then(|gradient| gradient.get_mut(start..start + columns));
        let value = loss(&ranking, R::one() / count, slots);
        if let Some(value) = value {
            sum.add(value);
        }
        if let Some(slot) = own.as_deref_mut().and_then(|own| own.get_mut(index)) {
            *slot = value.unwrap_or(R::zero());
        }
    }
    call.write("loss", sum.value::<R>() / count);
    Ok(())
}

fn evaluate_all_pairs<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    evaluate_rankings(call, 2, |ranking, factor, gradient| all_pairs(ranking, factor, gradient))
}

fn evaluate_plackett_luce<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    // A depth of 0 in the catalog is the whole ranking.
    let depth = match call.integer("depth")? {
        0 => None,
        depth => Some(depth),
    };
    evaluate_rankings(call, 1, |ranking, factor, gradient| plackett_luce(ranking, depth, factor, gradient))
}

const INPUTS: &[InputSpec] = &[
    InputSpec::new(
        "score",
        Domain::Reward,
        &[&["N", "K"]],
        "scores of the responses to each prompt, the best one first",
    ),
    InputSpec::new("mask", Domain::Mask, &[&["N", "K"]], "1 where there is a response, 0 where it is absent")
        .optional(),
];
const RANKING_COUNT: ParamSpec = ParamSpec::optional(
    "ranking_count",
    "N",
    None,
    Range::POSITIVE,
    "number of rankings of the full batch where the inputs are a shard of it; off: those given",
);
const OUTPUTS: &[OutputSpec] = &[
    OutputSpec { meaning: "mean over the rankings", ..LOSS },
    OutputSpec::value("ranking_loss", &["N"], "loss of each ranking; 0 where there is nothing to compare"),
    OutputSpec::gradient("d_score", "score", &["N", "K"], "gradient of the loss"),
];

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.ranking_pairs",
        family: Family::Preference,
        title: "All pairs of a ranking",
        summary: "The Bradley–Terry loss averaged over all pairs of a ranking of K responses.",
        formula: r"-\binom{K}{2}^{-1} \sum_{i<j} \log\sigma(s_i - s_j)",
        gradient: r"\partial / \partial s_i = \tfrac1N\binom{K}{2}^{-1} \left[\sum_{j<i}\sigma(s_i - s_j) - \sum_{j>i}\sigma(s_j - s_i)\right]",
        notes: "Rankings of fewer than two responses are left out of the mean. Shifting a ranking's scores changes nothing, and its \
                gradient sums to 0. No library at hand has it as a loss; a batch of its pairs through a Bradley-Terry loss \
                weighs long rankings more.",
        sources: &[Source {
            title: "Training language models to follow instructions with human feedback",
            reference: "arXiv:2203.02155",
            place: "Eq. (1)",
        }],
        inputs: INPUTS,
        params: &[RANKING_COUNT],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[Dialect { name: "paper", note: "as written", settings: &[] }],
        evaluate: evaluate_with!(evaluate_all_pairs),
    },
    Operation {
        id: "preference.plackett_luce",
        family: Family::Preference,
        title: "Plackett–Luce",
        summary: "The negative log-likelihood of a ranking: each place is a choice among the responses that remain.",
        formula: r"\sum_{i=1}^{K} \left[\log\sum_{j \ge i} e^{s_j} - s_i\right]",
        gradient: r"\partial / \partial s_j = \tfrac1N\left[\sum_{i \le j} \frac{e^{s_j}}{\sum_{k \ge i} e^{s_k}} - 1\right]",
        notes: "Empty rankings are left out of the mean. Shifting a ranking's scores changes nothing, and its gradient sums to 0. \
                With implicit rewards beta * log-ratio as scores it is DPO for rankings.",
        sources: &[
            Source {
                title: "The Analysis of Permutations",
                reference: "Plackett, Applied Statistics 24 (1975)",
                place: "pp. 193-202",
            },
            Source {
                title: "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
                reference: "arXiv:2305.18290",
                place: "Eq. (18)",
            },
        ],
        inputs: INPUTS,
        params: &[
            ParamSpec::integer(
                "depth",
                "k",
                0,
                0,
                1_000_000,
                "how many of the first places were observed in order; 0: all of them",
            ),
            RANKING_COUNT,
        ],
        defaults: &[],
        outputs: OUTPUTS,
        dialects: &[Dialect { name: "paper", note: "as written", settings: &[] }],
        evaluate: evaluate_with!(evaluate_plackett_luce),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preference::bradley_terry::bradley_terry;
    use proptest::prelude::*;

    #[test]
    fn two_responses_are_bradley_terry() {
        let ranking = Ranking { score: &[1.5f64, -0.5], mask: None };
        let [value, by_chosen, by_rejected] = bradley_terry(1.5, -0.5, 0.0, 0.0);
        let mut gradient = [0.0; 2];
        assert_eq!(all_pairs(&ranking, 1.0, Some(&mut gradient)), Some(value));
        assert_eq!(gradient, [by_chosen, by_rejected]);
        let mut gradient = [0.0; 2];
        assert!((plackett_luce(&ranking, None, 1.0, Some(&mut gradient)).unwrap() - value).abs() < 1e-15);
        assert!((gradient[0] - by_chosen).abs() < 1e-15 && (gradient[1] - by_rejected).abs() < 1e-15);
    }

    #[test]
    fn depth_one_is_cross_entropy_of_the_best() {
        let ranking = Ranking { score: &[0.0f64, 0.0, 0.0, 0.0], mask: None };
        let mut gradient = [0.0; 4];
        let loss = plackett_luce(&ranking, Some(1), 1.0, Some(&mut gradient)).unwrap();
        assert!((loss - 2.0 * core::f64::consts::LN_2).abs() < 1e-15);
        assert!(gradient[1..].iter().all(|slope| (slope - 0.25).abs() < 1e-15));
        assert!((gradient[0] + 0.75).abs() < 1e-15);
    }

    #[test]
    fn masked_responses_and_too_short_rankings() {
        let ranking = Ranking { score: &[2.0f64, f64::NAN, 1.0], mask: Some(&[1, 0, 1]) };
        assert_eq!(all_pairs(&ranking, 1.0, None), Some(softplus(-1.0)));
        let one = Ranking { score: &[2.0f64], mask: None };
        assert_eq!(all_pairs(&one, 1.0, None), None);
        assert_eq!(plackett_luce(&one, None, 1.0, None), Some(0.0));
        let far = Ranking { score: &[-1000.0f64, 1000.0, 0.0], mask: None };
        assert_eq!(plackett_luce(&far, None, 1.0, None), Some(2000.0));
    }

    proptest! {
        #[test]
        fn gradients_sum_to_zero(scores in proptest::collection::vec(-20.0f64..20.0, 2..7)) {
            let ranking = Ranking { score: &scores, mask: None };
            let mut pairs = std::vec![0.0; scores.len()];
            let mut luce = pairs.clone();
            all_pairs(&ranking, 1.0, Some(&mut pairs)).unwrap();
            plackett_luce(&ranking, None, 1.0, Some(&mut luce)).unwrap();
            // At most K² terms of size 1, each rounded to 2^-53.
            prop_assert!(pairs.iter().sum::<f64>().abs() < 1e-13 && luce.iter().sum::<f64>().abs() < 1e-13);
        }
    }
}

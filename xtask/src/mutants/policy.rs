//! A trainer's policy loss as frameworks write it, in pieces that a mutant replaces: the surrogate of a token, its KL
//! estimator, and how tokens become one number.

use super::scalar::{Scalar, lift, mean, sum};
use super::subject::{Answer, Given};

/// A token as the surrogate sees it.
pub struct Token {
    /// Log-probability under the current policy.
    pub log_prob: Scalar,
    /// Its distance from the old policy's, at the ratio's level.
    pub log_ratio: Scalar,
    /// The advantage.
    pub advantage: f64,
    /// How far below 1 the ratio may fall.
    pub low: f64,
    /// How far above 1 it may rise.
    pub high: f64,
    /// The dual clip's bound, where it is on.
    pub dual: Option<f64>,
}

/// The terms of a batch's unmasked tokens.
pub struct Terms {
    /// Policy terms, row by row; only unmasked tokens.
    pub policy: Vec<Vec<Scalar>>,
    /// KL terms in the same places; zeros without a reference.
    pub kl: Vec<Vec<Scalar>>,
    /// The KL term's coefficient.
    pub beta: f64,
    /// Columns, padding included.
    pub columns: usize,
}

impl Terms {
    /// Policy and KL terms together.
    pub fn joined(&self) -> Vec<Vec<Scalar>> {
        self.joined_with(self.beta)
    }

    /// The same with another coefficient.
    pub fn joined_with(&self, beta: f64) -> Vec<Vec<Scalar>> {
        let row = |(policy, kl): (&Vec<Scalar>, &Vec<Scalar>)| {
            policy.iter().zip(kl).map(|(policy, kl)| policy.clone() + kl.clone() * beta).collect()
        };
        self.policy.iter().zip(&self.kl).map(row).collect()
    }
}

/// The pieces of a policy loss.
pub struct Policy<'a> {
    /// Log-ratios of a row from its tokens' own.
    pub level: &'a dyn Fn(Vec<Scalar>) -> Vec<Scalar>,
    /// The surrogate.
    pub surrogate: &'a dyn Fn(Token) -> Scalar,
    /// The KL estimator, of log-prob minus reference.
    pub kl: &'a dyn Fn(Scalar) -> Scalar,
    /// From tokens to one number.
    pub aggregate: &'a dyn Fn(&Terms) -> Scalar,
}

impl Policy<'_> {
    /// GRPO of the paper.
    pub const GRPO: Policy<'static> =
        Policy { level: &per_token, surrogate: &clipped, kl: &k3, aggregate: &|terms| row_means(&terms.joined()) };
    /// PPO with the mean over tokens.
    pub const PPO: Policy<'static> =
        Policy { level: &per_token, surrogate: &clipped, kl: &k3, aggregate: &|terms| token_mean(&terms.joined()) };
    /// GSPO: the ratio is the geometric mean over the response.
    pub const GSPO: Policy<'static> =
        Policy { level: &geometric_mean, surrogate: &clipped, kl: &k3, aggregate: &|terms| row_means(&terms.joined()) };

    /// The loss of the given batch.
    pub fn loss(&self, given: &Given<'_>) -> Answer {
        let (_, columns) = given.size();
        let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
        let (reference, weight) = (given.values("ref_log_prob"), given.values("importance_weight"));
        let advantage = given.values("advantage");
        let per_row = given.shape("advantage").len() == 1;
        let weight_per_row = given.shape("importance_weight").len() == 1;
        let default = if given.meaning.operation.param("clip_ratio_low").is_some() { f64::NAN } else { 0.0 };
        let bound = |name: &str| given.option(name).unwrap_or(default);
        let mut terms = Terms { policy: Vec::new(), kl: Vec::new(), beta: 0.0, columns };
        if !reference.is_empty() {
            terms.beta = given.option("kl_coefficient").unwrap_or(0.0);
        }
        for (row, kept) in given.kept().iter().enumerate() {
            let slots: Vec<usize> = (0..columns).filter(|t| kept[*t]).map(|t| row * columns + t).collect();
            let own = |slot: usize| match old.get(slot) {
                Some(old) => log_prob[slot].clone() - *old,
                None => log_prob[slot].clone() - log_prob[slot].detach(),
            };
            let ratios = (self.level)(slots.iter().map(|slot| own(*slot)).collect());
            let (mut policy, mut kl) = (Vec::new(), Vec::new());
            for (slot, log_ratio) in slots.into_iter().zip(ratios) {
                let token = Token {
                    log_prob: log_prob[slot].clone(),
                    log_ratio,
                    advantage: if per_row { advantage[row] } else { advantage[slot] },
                    low: bound("clip_ratio_low"),
                    high: bound("clip_ratio_high"),
                    dual: given.option("clip_ratio_c"),
                };
                let mut loss = (self.surrogate)(token);
                if !weight.is_empty() {
                    loss = loss * if weight_per_row { weight[row] } else { weight[slot] };
                }
                policy.push(loss);
                kl.push(match reference.get(slot) {
                    Some(reference) => (self.kl)(log_prob[slot].clone() - *reference),
                    None => lift(0.0),
                });
            }
            terms.policy.push(policy);
            terms.kl.push(kl);
        }
        given.answer(vec![(self.aggregate)(&terms)])
    }

    /// The token's loss itself, for the operations that stop there.
    pub fn tokens(&self, given: &Given<'_>) -> Answer {
        let kept = given.kept();
        let mut flat = Vec::new();
        let (_, columns) = given.size();
        let (log_prob, old) = (given.variables("log_prob"), given.values("old_log_prob"));
        let advantage = given.values("advantage");
        let per_row = given.shape("advantage").len() == 1;
        for (row, kept) in kept.iter().enumerate() {
            for (column, kept) in kept.iter().enumerate() {
                let slot = row * columns + column;
                if !kept {
                    flat.push(lift(0.0));
                    continue;
                }
                let token = Token {
                    log_prob: log_prob[slot].clone(),
                    log_ratio: log_prob[slot].clone() - old[slot],
                    advantage: if per_row { advantage[row] } else { advantage[slot] },
                    low: given.number("clip_ratio_low"),
                    high: given.number("clip_ratio_high"),
                    dual: given.option("clip_ratio_c"),
                };
                flat.push((self.surrogate)(token));
            }
        }
        given.answer(flat)
    }
}

/// Each token has its own ratio.
pub fn per_token(log_ratios: Vec<Scalar>) -> Vec<Scalar> {
    log_ratios
}

/// The mean log-ratio of the response, for each of its tokens.
pub fn geometric_mean(log_ratios: Vec<Scalar>) -> Vec<Scalar> {
    let count = log_ratios.len();
    vec![mean(log_ratios); count]
}

/// The clipped surrogate, with the dual clip where it is on.
pub fn clipped(token: Token) -> Scalar {
    let ratio = token.log_ratio.exp();
    let bounded = ratio.clone().clamp(1.0 - token.low, 1.0 + token.high);
    let loss = -(ratio * token.advantage).min(bounded * token.advantage);
    match token.dual {
        Some(dual) if token.advantage < 0.0 => loss.min(lift(-dual * token.advantage)),
        _ => loss,
    }
}

/// CISPO: the clipped weight, held fixed, times the log-probability.
pub fn cispo(token: Token) -> Scalar {
    let weight = token.log_ratio.exp().clamp(1.0 - token.low, 1.0 + token.high).detach();
    -(weight * token.advantage * token.log_prob)
}

/// k3 of the difference.
pub fn k3(difference: Scalar) -> Scalar {
    (-difference.clone()).exp() - 1.0 + difference
}

/// The mean over the responses that have a token of the mean over their tokens.
pub fn row_means(losses: &[Vec<Scalar>]) -> Scalar {
    mean(losses.iter().filter(|row| !row.is_empty()).map(|row| mean(row.clone())).collect())
}

/// The mean over all tokens.
pub fn token_mean(losses: &[Vec<Scalar>]) -> Scalar {
    mean(losses.concat())
}

/// The sum over all tokens.
pub fn token_sum(losses: &[Vec<Scalar>]) -> Scalar {
    sum(losses.concat())
}

/// The token means of pieces of so many rows; pieces without a token are left out.
pub fn pieces(losses: &[Vec<Scalar>], rows: usize) -> Vec<(usize, Scalar)> {
    losses
        .chunks(rows)
        .map(|piece| (piece.len(), piece.concat()))
        .filter(|(_, tokens)| !tokens.is_empty())
        .map(|(rows, tokens)| (rows, mean(tokens)))
        .collect()
}

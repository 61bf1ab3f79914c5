//! DPO from per-token log-probs, where the tokens themselves matter: LD-DPO and WPO.

use super::arithmetic::times;
use super::dpo_sigmoid::{DPO, logistic};
use super::pairs::{
    ACCURACY, BETA, CHOSEN_REWARD, LABEL_SMOOTHING, LOSS, MARGIN, PAIR_COUNT, PAIR_LOSS, PairMeans, PairSums,
    REJECTED_REWARD, both,
};
use crate::Error;
use crate::batch::row_of;
use crate::num::{Real, tree_sum_by};
use crate::spec::{
    Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, evaluate_with,
};

/// The tokens of one response.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a, R> {
    /// log π of each token (nats).
    pub log_prob: &'a [R],
    /// log π_ref of each token; none is 0.
    pub reference: Option<&'a [R]>,
    /// Which tokens are there; none is all.
    pub mask: Option<&'a [u8]>,
}

impl<R: Real> Tokens<'_, R> {
    fn keeps(&self, slot: usize) -> bool {
        self.mask.is_none_or(|mask| mask.get(slot).is_some_and(|byte| *byte != 0))
    }

    /// Number of tokens.
    pub fn length(&self) -> usize {
        (0..self.log_prob.len()).filter(|slot| self.keeps(*slot)).count()
    }

    /// Σ_t w_t·log π(y_t) with w_t = 1 for the first `shared` tokens and `tail` for the rest.
    pub fn desensitised(values: &[R], mask: Option<&[u8]>, shared: usize, tail: R) -> R {
        let mut before = 0;
        tree_sum_by(values.len(), |slot| {
            if mask.is_some_and(|mask| mask.get(slot).is_none_or(|byte| *byte == 0)) {
                return R::zero();
            }
            before += 1;
            let value = values.get(slot).copied().unwrap_or(R::zero());
            if before <= shared { value } else { times(tail, value) }
        })
    }

    /// WPO's factor of a response: the exponential of its mean of log π(y_t) − log Σ_v π(v)² (1 where it is empty).
    ///
    /// `collision` holds log Σ_v π(v)² of each token's distribution.
    pub fn alignment(&self, collision: &[R]) -> R {
        let sum = tree_sum_by(self.log_prob.len(), |slot| {
            let at = |values: &[R]| values.get(slot).copied().unwrap_or(R::zero());
            if self.keeps(slot) { at(self.log_prob) - at(collision) } else { R::zero() }
        });
        (sum / R::from_count(self.length().max(1))).exp()
    }
}

/// One side of all pairs: the inputs whose names begin with `chosen` or `rejected`.
struct Side<'c, R> {
    log_prob: &'c [R],
    reference: Option<&'c [R]>,
    collision: Option<&'c [R]>,
    mask: Option<&'c [u8]>,
    columns: usize,
    names: [&'static str; 3],
}

impl<R: Real> Side<'_, R> {
    /// The tokens of one response, after a check that they are finite.
    fn tokens(&self, row: usize) -> Result<Tokens<'_, R>, Error> {
        let tokens = Tokens {
            log_prob: row_of(self.log_prob, self.columns, row),
            reference: self.reference.map(|values| row_of(values, self.columns, row)),
            mask: self.mask.map(|mask| row_of(mask, self.columns, row)),
        };
        let columns = [Some(self.log_prob), self.reference, self.collision];
        for (argument, values) in self.names.into_iter().zip(columns) {
            let Some(values) = values else { continue };
            let own = row_of(values, self.columns, row);
            if let Some((slot, _)) =
                own.iter().enumerate().find(|(slot, value)| tokens.keeps(*slot) && !value.is_finite())
            {
                return Err(Error::NonFinite { argument, index: row * self.columns + slot });
            }
        }
        Ok(tokens)
    }

    fn collision(&self, row: usize) -> &[R] {
        self.collision.map_or(&[], |values| row_of(values, self.columns, row))
    }

    /// Write a gradient that is `slope` on the first `shared` tokens of a row and `tail·slope` on the rest.
    fn write(&self, buffer: &mut Option<&mut [R]>, row: usize, shared: usize, tail: R, slope: R) {
        let mut before = 0;
        for column in 0..self.columns {
            let slot = row * self.columns + column;
            let result = if self.mask.is_none_or(|mask| mask.get(slot).is_some_and(|byte| *byte != 0)) {
                before += 1;
                if before <= shared { slope } else { times(tail, slope) }
            } else {
                R::zero()
            };
            if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(slot)) {
                *slot = result;
            }
        }
    }
}

fn sides<'c, R: Real>(call: &Call<'c, R>) -> Result<[Side<'c, R>; 2], Error> {
    let references = both(
        call.optional_real("ref_chosen_log_prob"),
        call.optional_real("ref_rejected_log_prob"),
        ["ref_chosen_log_prob", "ref_rejected_log_prob"],
    )?;
    Ok([
        Side {
            log_prob: call.real("chosen_log_prob")?,
            reference: references.map(|[chosen, _]| chosen),
            collision: call.optional_real("chosen_log_sum_p_squared"),
            mask: call.optional_bytes("chosen_mask"),
            columns: call.dim("T"),
            names: ["chosen_log_prob", "ref_chosen_log_prob", "chosen_log_sum_p_squared"],
        },
        Side {
            log_prob: call.real("rejected_log_prob")?,
            reference: references.map(|[_, rejected]| rejected),
            collision: call.optional_real("rejected_log_sum_p_squared"),
            mask: call.optional_bytes("rejected_mask"),
            columns: call.dim("S"),
            names: ["rejected_log_prob", "ref_rejected_log_prob", "rejected_log_sum_p_squared"],
        },
    ])
}

/// What the two operations share: sums of log-probs, the logistic loss, token gradients. `tail` and `ref_tail` are the weights of
/// policy and reference beyond the shorter response's length; `weight` is a constant factor of the pair.
fn evaluate<R: Real>(
    call: &mut Call<'_, R>,
    tail: R,
    ref_tail: R,
    weight: impl Fn(&[Side<'_, R>; 2], usize) -> Result<R, Error>,
) -> Result<(), Error> {
    let both_sides = sides(call)?;
    let pairs = call.dim("N");
    if pairs == 0 {
        return Err(Error::EmptyMask { argument: "chosen_log_prob" });
    }
    let (beta, label_smoothing): (R, R) = (call.number("beta")?, call.number("label_smoothing")?);
    let count = call.optional_number("pair_count").unwrap_or(R::from_count(pairs));
    let (mut losses, mut weights) = (call.output("pair_loss"), call.output("weight"));
    let mut gradients = ["d_chosen_log_prob", "d_rejected_log_prob"].map(|name| call.output(name));
    let mut sums = PairSums::default();
    for row in 0..pairs {
        let [chosen, rejected] = &both_sides;
        let tokens = [chosen.tokens(row)?, rejected.tokens(row)?];
        let [chosen_tokens, rejected_tokens] = &tokens;
        let shared = chosen_tokens.length().min(rejected_tokens.length());
        let [chosen_ratio, rejected_ratio] = [chosen_tokens, rejected_tokens].map(|tokens| {
            let policy = Tokens::desensitised(tokens.log_prob, tokens.mask, shared, tail);
            match tokens.reference {
                Some(reference) => policy - Tokens::desensitised(reference, tokens.mask, shared, ref_tail),
                None => policy,
            }
        });
        let factor = weight(&both_sides, row)?;
        let [value, slope] =
            logistic(beta * super::arithmetic::difference(chosen_ratio, rejected_ratio), label_smoothing);
        let value = times(factor, value);
        let slope = times(factor, beta * slope) / count;
        sums.add(value, beta * chosen_ratio, beta * rejected_ratio);
        for (buffer, result) in [(&mut losses, value), (&mut weights, factor)] {
            if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(row)) {
                *slot = result;
            }
        }
        for ((side, gradient), slope) in both_sides.iter().zip(&mut gradients).zip([slope, -slope]) {
            side.write(gradient, row, shared, tail, slope);
        }
    }
    let means: PairMeans<R> = sums.means(count);
    super::pairs::write_means(call, means);
    Ok(())
}

fn evaluate_ld_dpo<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let tail = call.number("ld_alpha")?;
    let ref_tail = if call.flag("desensitise_reference") { tail } else { R::one() };
    evaluate(call, tail, ref_tail, |_, _| Ok(R::one()))
}

fn evaluate_wpo<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let limit = call.optional_number("weight_max");
    evaluate(call, R::one(), R::one(), |[chosen, rejected], row| {
        let weight = times(
            chosen.tokens(row)?.alignment(chosen.collision(row)),
            rejected.tokens(row)?.alignment(rejected.collision(row)),
        );
        Ok(limit.map_or(weight, |limit| weight.smaller(limit)))
    })
}

const CHOSEN: &[&[&str]] = &[&["N", "T"]];
const REJECTED: &[&[&str]] = &[&["N", "S"]];
const CHOSEN_TOKENS: InputSpec = InputSpec::new(
    "chosen_log_prob",
    Domain::LogProb,
    CHOSEN,
    "log-probability of each token of the chosen response under the policy (nats)",
);
const REJECTED_TOKENS: InputSpec =
    InputSpec::new("rejected_log_prob", Domain::LogProb, REJECTED, "the same of the rejected response (nats)");
const REF_CHOSEN_TOKENS: InputSpec = InputSpec::new(
    "ref_chosen_log_prob",
    Domain::LogProb,
    CHOSEN,
    "log-probability of each chosen token under the reference (nats); without both references the loss is reference-free",
)
.optional();
const REF_REJECTED_TOKENS: InputSpec =
    InputSpec::new("ref_rejected_log_prob", Domain::LogProb, REJECTED, "the same of the rejected response (nats)")
        .optional();
const CHOSEN_MASK: InputSpec = InputSpec::new(
    "chosen_mask",
    Domain::Mask,
    CHOSEN,
    "1 where the slot holds a token of the chosen response, 0 where it is absent",
)
.optional();
const REJECTED_MASK: InputSpec =
    InputSpec::new("rejected_mask", Domain::Mask, REJECTED, "the same of the rejected response").optional();
const D_CHOSEN: OutputSpec =
    OutputSpec::gradient("d_chosen_log_prob", "chosen_log_prob", &["N", "T"], "gradient of the loss");
const D_REJECTED: OutputSpec =
    OutputSpec::gradient("d_rejected_log_prob", "rejected_log_prob", &["N", "S"], "gradient of the loss");

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[
    Operation {
        id: "preference.ld_dpo",
        family: Family::Preference,
        title: "LD-DPO",
        summary: "DPO whose log-probs count the tokens beyond the shorter response's length only with weight alpha.",
        formula: r"-\log\sigma(\beta[\hat c - \hat r]),\quad \log\hat\pi(y) = \sum_{t \le l_p} \log\pi(y_t) + \alpha\sum_{t > l_p} \log\pi(y_t),\ l_p = \min(|y_w|, |y_l|)",
        gradient: r"\pm\beta\,\ell'(x)\,\{1, \alpha\}/N",
        notes: "alpha = 1 is DPO. The shared length counts unmasked tokens. TRL up to 0.24 weighs only the policy's tail and sums the \
                reference's fully; later versions weigh both.",
        sources: &[
            Source {
                title: "Length Desensitization in Direct Preference Optimization",
                reference: "arXiv:2409.06411",
                place: "Section 3.3, the modified likelihood",
            },
            DPO,
        ],
        inputs: &[CHOSEN_TOKENS, REJECTED_TOKENS, REF_CHOSEN_TOKENS, REF_REJECTED_TOKENS, CHOSEN_MASK, REJECTED_MASK],
        params: &[
            BETA,
            LABEL_SMOOTHING,
            ParamSpec::number("ld_alpha", r"\alpha", 0.5, Range::UNIT, "weight of the tokens beyond the shared length"),
            ParamSpec::flag("desensitise_reference", true, "whether the reference's tail is weighed too"),
            PAIR_COUNT,
        ],
        defaults: &[],
        outputs: &[LOSS, PAIR_LOSS, D_CHOSEN, D_REJECTED, CHOSEN_REWARD, REJECTED_REWARD, MARGIN, ACCURACY],
        dialects: &[
            Dialect { name: "trl-1.16", note: "policy and reference alike", settings: &[] },
            Dialect {
                name: "trl-0.24",
                note: "the reference is summed in full",
                settings: &[("desensitise_reference", Value::Flag(false))],
            },
        ],
        evaluate: evaluate_with!(evaluate_ld_dpo),
    },
    Operation {
        id: "preference.wpo",
        family: Family::Preference,
        title: "WPO",
        summary: "DPO with each pair weighted by how likely the current policy is to produce its responses.",
        formula: r"-w(y_w)\,w(y_l)\log\sigma(\beta\Delta),\quad w(y) = \mathrm{sg}\exp\!\left(\frac{1}{|y|}\sum_t \left[\log\pi_\theta(y_t) - \log\sum_v \pi_\theta(v)^2\right]\right)",
        gradient: r"\pm w(y_w)\,w(y_l)\,\beta\,\ell'(\beta\Delta)/N",
        notes: "No gradient flows through the weights. The correction by log sum p^2 is the paper's weight alignment; without those \
                inputs it is 0 and the weight is the mean-token probability. Any other pair loss takes the weights as its input \
                `weight`.",
        sources: &[Source {
            title: "WPO: Enhancing RLHF with Weighted Preference Optimization",
            reference: "arXiv:2406.11827",
            place: "Eq. (2) and the weight alignment of Section 3",
        }],
        inputs: &[
            CHOSEN_TOKENS,
            REJECTED_TOKENS,
            REF_CHOSEN_TOKENS,
            REF_REJECTED_TOKENS,
            InputSpec::new(
                "chosen_log_sum_p_squared",
                Domain::LogProb,
                CHOSEN,
                "log of the sum of squared probabilities of each chosen token's distribution",
            )
            .optional(),
            InputSpec::new(
                "rejected_log_sum_p_squared",
                Domain::LogProb,
                REJECTED,
                "the same of the rejected response",
            )
            .optional(),
            CHOSEN_MASK,
            REJECTED_MASK,
        ],
        params: &[
            BETA,
            LABEL_SMOOTHING,
            ParamSpec::optional("weight_max", "w_{\\max}", None, Range::POSITIVE, "upper limit of a pair's weight"),
            PAIR_COUNT,
        ],
        defaults: &[],
        outputs: &[
            LOSS,
            PAIR_LOSS,
            D_CHOSEN.stopped(),
            D_REJECTED.stopped(),
            OutputSpec::value("weight", &["N"], "weight of each pair"),
            CHOSEN_REWARD,
            REJECTED_REWARD,
            MARGIN,
            ACCURACY,
        ],
        dialects: &[
            Dialect { name: "paper", note: "no limit", settings: &[] },
            Dialect { name: "trl-1.16", note: "no limit", settings: &[] },
            Dialect { name: "trl-0.24", note: "limited to 1", settings: &[("weight_max", Value::Number(1.0))] },
        ],
        evaluate: evaluate_with!(evaluate_wpo),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_counts_with_alpha_and_masked_tokens_do_not_count() {
        let values = [-1.0, f64::NAN, -2.0, -4.0, -8.0];
        let mask: &[u8] = &[1, 0, 1, 1, 1];
        assert_eq!(Tokens::desensitised(&values, Some(mask), 2, 0.5), -1.0 - 2.0 - 2.0 - 4.0);
        assert_eq!(Tokens::desensitised(&values, Some(mask), 2, 0.0), -3.0);
        assert_eq!(Tokens::desensitised(&values, Some(mask), 9, 0.0), -15.0);
    }

    #[test]
    fn alignment_of_a_uniform_policy_is_one() {
        // Uniform over 4: every token has log-prob −ln 4, and log Σ p² = −ln 4.
        let quarter = -2.0 * core::f64::consts::LN_2;
        let tokens = Tokens { log_prob: &[quarter; 3], reference: None, mask: None };
        assert_eq!(tokens.alignment(&[quarter; 3]), 1.0);
        assert!((tokens.alignment(&[]) - 0.25).abs() < 1e-16);
    }
}

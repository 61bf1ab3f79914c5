//! MiniLLM: the reverse KL to a teacher as per-token advantages of the student's own samples.

use crate::Error;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Range, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// Where discounting starts.
    pub enum DiscountFrom {
        /// At the token whose advantage it is: γ^(i−t).
        Token = "token",
        /// At the first slot of the row: γ^i.
        Row = "row",
    }
}

/// How MiniLLM's advantages are formed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiniLlm<R> {
    /// γ ∈ [0, 1].
    pub gamma: R,
    /// Whether the sum is divided by the sum of its discounts.
    pub length_normalisation: bool,
    /// Where discounting starts.
    pub discount_from: DiscountFrom,
    /// What an absent slot adds to the sum of discounts, as a multiple of its discount.
    pub absent_length: R,
}

/// Advantages Â_t = Σ_{i≥t} γ^(i−t) r_i of one response, r_i = log π_teacher(y_i) − log π_student(y_i), optionally divided by
/// Σ_{i≥t} γ^(i−t).
///
/// Gu et al., "MiniLLM: Knowledge Distillation of Large Language Models", arXiv:2306.08543, Eq. (4), the long-term part R_{t+1} and
/// its length normalisation, Eq. (7). Expected reward-to-go of −KL(student‖teacher); used as the advantage of a policy gradient, and no
/// gradient flows through it. Absent slots have reward 0 and advantage +0; they keep their place, so their discount passes. γ = 0
/// leaves r_t (without normalisation).
///
/// ```
/// use plumbline_core::preference::minillm::{DiscountFrom, MiniLlm, advantages};
/// let rule = MiniLlm {
///     gamma: 0.5,
///     length_normalisation: false,
///     discount_from: DiscountFrom::Token,
///     absent_length: 0.0,
/// };
/// let mut out = [0.0; 3];
/// advantages(&[-1.0, -1.0, -3.0], &[-2.0, -1.0, -1.0], None, rule, &mut out).unwrap();
/// assert_eq!(out, [-0.5, 1.0, 2.0]);
/// ```
///
/// Differs in: TRL 1.12 discounts from the start of the row, γ^i instead of γ^(i−t), which only length normalisation undoes; counts
/// 10⁻⁴ for an absent slot in the sum of discounts; and lets the gradient flow through the advantage.
pub fn advantages<R: Real>(
    student: &[R],
    teacher: &[R],
    mask: Option<&[u8]>,
    rule: MiniLlm<R>,
    out: &mut [R],
) -> Result<(), Error> {
    if teacher.len() != student.len() {
        return Err(Error::LengthMismatch {
            argument: "teacher_log_prob",
            expected: student.len(),
            got: teacher.len(),
        });
    }
    let keeps = |slot: usize| mask.is_none_or(|mask| mask.get(slot).is_some_and(|byte| *byte != 0));
    let (mut reward_to_go, mut length) = (R::zero(), R::zero());
    for slot in (0..student.len()).rev() {
        let kept = keeps(slot);
        let reward = if kept {
            for (argument, values) in [("log_prob", student), ("teacher_log_prob", teacher)] {
                if values.get(slot).is_none_or(|value| !value.is_finite()) {
                    return Err(Error::NonFinite { argument, index: slot });
                }
            }
            let at = |values: &[R]| values.get(slot).copied().unwrap_or(R::zero());
            at(teacher) - at(student)
        } else {
            R::zero()
        };
        reward_to_go = reward + rule.gamma * reward_to_go;
        length = (if kept { R::one() } else { rule.absent_length }) + rule.gamma * length;
        let advantage = if rule.gamma == R::zero() {
            reward
        } else if rule.length_normalisation {
            reward_to_go / length
        } else if rule.discount_from == DiscountFrom::Row {
            // γ^slot by repeated multiplication: exact order, no logarithm.
            (0..slot).fold(reward_to_go, |value, _| value * rule.gamma)
        } else {
            reward_to_go
        };
        if let Some(slot) = out.get_mut(slot) {
            *slot = if kept { advantage } else { R::zero() };
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (student, teacher) = (call.real("log_prob")?, call.real("teacher_log_prob")?);
    let mask = call.optional_bytes("mask");
    let rule = MiniLlm {
        gamma: call.number("gamma")?,
        length_normalisation: call.flag("length_normalisation"),
        discount_from: call.choice("discount_from")?,
        absent_length: call.number("absent_length")?,
    };
    let columns = call.dim("T");
    let Some(out) = call.output("advantage") else { return Ok(()) };
    if columns == 0 {
        return Ok(());
    }
    for (row, out) in out.chunks_mut(columns).enumerate() {
        let [student, teacher] = [student, teacher].map(|values| crate::batch::row_of(values, columns, row));
        let mask = mask.map(|mask| crate::batch::row_of(mask, columns, row));
        advantages(student, teacher, mask, rule, out).map_err(|error| match error {
            Error::NonFinite { argument, index } => Error::NonFinite { argument, index: row * columns + index },
            other => other,
        })?;
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.minillm_advantage",
    family: Family::Preference,
    title: "MiniLLM advantage",
    summary: "Reverse-KL distillation as a policy gradient: the reward-to-go of the teacher's minus the student's log-prob.",
    formula: r"\hat A_t = \sum_{i \ge t} \gamma^{i-t} \log\frac{\pi_T(y_i)}{\pi_S(y_i)} \Big/ \sum_{i \ge t} \gamma^{i-t}",
    gradient: "",
    notes: "An advantage, not a loss: put it into a policy objective. TRL 1.12 discounts from the start of the row, counts 1e-4 for an \
            absent slot in the normaliser, and lets the gradient flow through it.",
    sources: &[Source {
        title: "MiniLLM: Knowledge Distillation of Large Language Models",
        reference: "arXiv:2306.08543",
        place: "Eq. (4) and (7)",
    }],
    inputs: &[
        InputSpec::new(
            "log_prob",
            Domain::LogProb,
            &[&["B", "T"]],
            "log-probability of the student's sampled tokens under the student (nats)",
        ),
        InputSpec::new("teacher_log_prob", Domain::LogProb, &[&["B", "T"]], "the same under the teacher (nats)"),
        InputSpec::MASK,
    ],
    params: &[
        ParamSpec::number("gamma", r"\gamma", 1.0, Range::UNIT, "discount per token"),
        ParamSpec::flag("length_normalisation", true, "divide by the sum of the discounts"),
        ParamSpec::choice(
            "discount_from",
            "token",
            DiscountFrom::NAMES,
            "where discounting starts: at the token whose advantage it is, or at the first slot of the row",
        ),
        ParamSpec::number(
            "absent_length",
            "",
            0.0,
            Range::NON_NEGATIVE,
            "what an absent slot counts in the sum of discounts",
        ),
    ],
    defaults: &[],
    outputs: &[OutputSpec::value("advantage", &["B", "T"], "advantage of each token (nats); 0 where absent")],
    dialects: &[
        Dialect { name: "paper", note: "as written", settings: &[] },
        Dialect {
            name: "trl-1.12",
            note: "discounted from the start of the row; absent slots count 1e-4 in the normaliser",
            settings: &[("discount_from", Value::Name("row")), ("absent_length", Value::Number(1e-4))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undiscounted_and_normalised_is_the_mean_to_go() {
        let rule = MiniLlm {
            gamma: 1.0f64,
            length_normalisation: true,
            discount_from: DiscountFrom::Token,
            absent_length: 0.0,
        };
        let mut out = [9.0; 4];
        advantages(&[-1.0, -2.0, -3.0, f64::NAN], &[0.0, 0.0, 0.0, 1.0], Some(&[1, 1, 1, 0]), rule, &mut out).unwrap();
        assert_eq!(out, [2.0, 2.5, 3.0, 0.0]);
        let row = MiniLlm { gamma: 0.5, length_normalisation: false, discount_from: DiscountFrom::Row, ..rule };
        advantages(&[-1.0, -2.0, -4.0], &[0.0; 3], None, row, &mut out[..3]).unwrap();
        assert_eq!(out[..3], [3.0, 2.0, 1.0]);
    }
}

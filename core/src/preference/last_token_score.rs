//! Which token's score is the score of the response.

use crate::Error;
use crate::batch::row_of;
use crate::num::Real;
use crate::spec::{
    Call, Choice, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, ParamSpec, Source, Value, choice,
    evaluate_with,
};

choice! {
    /// How the last valid token is found.
    pub enum ValidBy {
        /// The last slot whose mask is set.
        Mask = "mask",
        /// The last token that is not the pad token.
        LastNonPad = "last_non_pad",
        /// The token before the first pad token; the last slot where there is none, or it is the first.
        BeforeFirstPad = "before_first_pad",
    }
}

/// The slot of a row that its score is read at; `None` where no slot is valid. Masked slots are absent in every mode.
///
/// By mask it is right for left and right padding and for any pad token. Without a mask a token is valid where it is not the pad
/// token, so a pad token equal to the end-of-sequence token hides that the response ended; the token before the *first* pad token
/// is the older rule, which left padding and an end token inside the prompt mislead.
///
/// ```
/// use plumbline_core::preference::last_token_score::{ValidBy, last_token};
/// // a b E c d with pad = E (id 9): the last token is 4, not 1.
/// let tokens = [1, 2, 9, 3, 4];
/// assert_eq!(last_token(ValidBy::LastNonPad, 5, None, Some(&tokens), 9), Some(4));
/// assert_eq!(last_token(ValidBy::BeforeFirstPad, 5, None, Some(&tokens), 9), Some(1));
/// assert_eq!(last_token(ValidBy::Mask, 5, Some(&[0, 1, 1, 1, 0]), None, 9), Some(3));
/// ```
pub fn last_token(
    valid_by: ValidBy,
    width: usize,
    mask: Option<&[u8]>,
    token_id: Option<&[u32]>,
    pad: u32,
) -> Option<usize> {
    let kept = |slot: &usize| mask.is_none_or(|mask| mask.get(*slot).is_some_and(|byte| *byte != 0));
    let is_pad = |slot: &usize| token_id.and_then(|tokens| tokens.get(*slot)) == Some(&pad);
    let last = || (0..width).rev().find(kept);
    match valid_by {
        ValidBy::Mask => last(),
        ValidBy::LastNonPad => (0..width).rev().find(|slot| kept(slot) && !is_pad(slot)),
        ValidBy::BeforeFirstPad => match (0..width).find(|slot| kept(slot) && is_pad(slot)) {
            Some(first) => (0..first).rev().find(kept).or_else(last),
            None => last(),
        },
    }
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let shape = call.tokens();
    let score = call.real("score")?;
    let (mask, tokens) = (call.optional_bytes("mask"), call.optional_index("token_id"));
    let valid_by = call.choice("valid_by")?;
    if valid_by != ValidBy::Mask && tokens.is_none() {
        return Err(Error::MissingInput { argument: "token_id" });
    }
    let pad = u32::try_from(call.integer("pad_token_id")?).unwrap_or(u32::MAX);
    let (mut value, mut position, mut gradient) =
        (call.output("value"), call.output("position"), call.output("d_score"));
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient.fill(R::zero());
    }
    for row in 0..shape.rows {
        let own_mask = mask.map(|mask| row_of(mask, shape.columns, row));
        let own_tokens = tokens.map(|tokens| row_of(tokens, shape.columns, row));
        let slot = last_token(valid_by, shape.columns, own_mask, own_tokens, pad);
        let slot = slot.ok_or(Error::EmptyMask { argument: "mask" })?;
        let index = row * shape.columns + slot;
        let read = score.get(index).copied().filter(|score| score.is_finite());
        let read = read.ok_or(Error::NonFinite { argument: "score", index })?;
        for (buffer, at, result) in
            [(&mut value, row, read), (&mut position, row, R::from_count(slot)), (&mut gradient, index, R::one())]
        {
            if let Some(slot) = buffer.as_deref_mut().and_then(|buffer| buffer.get_mut(at)) {
                *slot = result;
            }
        }
    }
    Ok(())
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "preference.last_token_score",
    family: Family::Preference,
    title: "Score at the last token",
    summary: "A response's score is what the reward head says at its last valid token.",
    formula: r"s_i = h_{i,t_i},\quad t_i = \max\{t : m_{it} = 1\}",
    gradient: r"\partial s_i / \partial h_{it} = \mathbb{1}[t = t_i]",
    notes: "A row without a valid token is an error. By mask it is right for left and right padding, also where the pad token is the \
            end-of-sequence token; by token id such a pad token hides the response's own end token. Scores elsewhere are not \
            read.",
    sources: &[Source {
        title: "Fine-Tuning Language Models from Human Preferences",
        reference: "arXiv:1909.08593",
        place: "Section 2.1, the reward is read at the final token",
    }],
    inputs: &[
        InputSpec::new("score", Domain::Reward, &[&["B", "T"]], "output of the reward head at every token"),
        InputSpec::new(
            "mask",
            Domain::Mask,
            &[&["B", "T"]],
            "1 where the slot holds a token (of prompt or response), 0 where it is padding; without it every slot counts",
        )
        .optional(),
        InputSpec::new("token_id", Domain::Count, &[&["B", "T"]], "token ids, where validity is told from the pad token")
            .optional(),
    ],
    params: &[
        ParamSpec::choice("valid_by", "mask", ValidBy::NAMES, "how the last valid token is found"),
        ParamSpec::integer("pad_token_id", "", 0, 0, 4_294_967_295, "id of the pad token; unused where the mask decides"),
    ],
    defaults: &[],
    outputs: &[
        OutputSpec::value("value", &["B"], "score of each response"),
        OutputSpec::value("position", &["B"], "slot that it was read at"),
        OutputSpec::gradient("d_score", "score", &["B", "T"], "1 at the slot that was read, else 0"),
    ],
    dialects: &[
        Dialect { name: "paper", note: "by mask", settings: &[] },
        Dialect {
            name: "transformers-5",
            note: "sequence classification: the last token that is not the pad token",
            settings: &[("valid_by", Value::Name("last_non_pad"))],
        },
        Dialect {
            name: "transformers-4.40",
            note: "sequence classification: the token before the first pad token",
            settings: &[("valid_by", Value::Name("before_first_pad"))],
        },
    ],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_on_either_side() {
        for (mask, expected) in
            [([1, 1, 1, 0, 0], Some(2)), ([0, 0, 1, 1, 1], Some(4)), ([0, 1, 0, 0, 0], Some(1)), ([0; 5], None)]
        {
            assert_eq!(last_token(ValidBy::Mask, 5, Some(&mask), None, 0), expected);
        }
        // Left padding: the older rule falls back to the last slot, by accident the right one; right padding with the end
        // token as pad loses the response's own end token.
        assert_eq!(last_token(ValidBy::BeforeFirstPad, 4, None, Some(&[9, 9, 1, 2]), 9), Some(3));
        assert_eq!(last_token(ValidBy::LastNonPad, 4, None, Some(&[1, 2, 9, 9]), 9), Some(1));
        assert_eq!(last_token(ValidBy::LastNonPad, 2, None, Some(&[9, 9]), 9), None);
    }
}

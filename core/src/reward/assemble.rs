//! Token-level rewards from a score of the whole response.

use crate::Error;
use crate::batch::Mask;
use crate::num::Real;
use crate::spec::{Call, Dialect, Domain, Family, InputSpec, Operation, OutputSpec, Source, evaluate_with};

/// r_it = p_it + 1[t is the response's last token]·R_i: the score stands on the last unmasked token (InstructGPT's
/// token-level reward; Ouyang et al. 2022, eq. 2).
///
/// `score`: R, one per response; `token_reward`: p, [B, T], such as a KL penalty, or 0; `out`: r, [B, T], +0 under the
/// mask. A response without tokens has no place for its score, which is then not read. Not differentiated. Errors:
/// `LengthMismatch`, `NonFinite` of `score` (of a response with tokens) and of `token_reward`.
///
/// ```
/// use plumbline_core::batch::{Mask, TokenShape};
/// use plumbline_core::reward::assemble;
/// let mask = Mask::new(TokenShape { rows: 1, columns: 4 }, Some(&[1, 0, 1, 0]))?;
/// let mut reward = [9.0; 4];
/// assemble(&[2.0], None, mask, &mut reward)?;
/// assert_eq!(reward, [0.0, 0.0, 2.0, 0.0]);
/// # Ok::<(), plumbline_core::Error>(())
/// ```
pub fn assemble<R: Real>(score: &[R], token_reward: Option<&[R]>, mask: Mask<'_>, out: &mut [R]) -> Result<(), Error> {
    let shape = mask.shape();
    shape.check_rows("score", score)?;
    shape.check("reward", out)?;
    if let Some(values) = token_reward {
        shape.check("token_reward", values)?;
        mask.check_finite("token_reward", values)?;
    }
    mask.write(out, |slot| token_reward.and_then(|values| values.get(slot)).copied().unwrap_or(R::zero()));
    for (row, score) in score.iter().enumerate() {
        let Some(last) = mask.kept(row).last() else { continue };
        if !score.is_finite() {
            return Err(Error::NonFinite { argument: "score", index: row });
        }
        if let Some(reward) = out.get_mut(last) {
            *reward += *score;
        }
    }
    Ok(())
}

fn evaluate<R: Real>(call: &mut Call<'_, R>) -> Result<(), Error> {
    let (score, token_reward, mask) = (call.real("score")?, call.optional_real("token_reward"), call.mask()?);
    match call.output("reward") {
        Some(out) => assemble(score, token_reward, mask, out),
        None => Ok(()),
    }
}

/// This file's catalog entries.
pub static SPECS: &[Operation] = &[Operation {
    id: "reward.assemble",
    family: Family::Reward,
    title: "Token-level reward of a response's score",
    summary: "Put each response's score on its last unmasked token, added to token-level rewards where there are any.",
    formula: r"r_{it} = p_{it} + \mathbb 1[t = \max\{s : m_{is} = 1\}]\,R_i",
    gradient: "",
    notes: "The score stands on the last token that the mask keeps, the end-of-sequence token where the response has one, \
            never on the slot after it. A response without tokens keeps no score.",
    sources: &[Source {
        title: "Training language models to follow instructions with human feedback",
        reference: "arXiv:2203.02155",
        place: "§3.5, eq. 2",
    }],
    inputs: &[
        InputSpec::new("score", Domain::Reward, &[&["B"]], "score of each whole response"),
        InputSpec { optional: false, ..InputSpec::MASK },
        InputSpec::new("token_reward", Domain::Reward, &[&["B", "T"]], "reward of each token; without it 0").optional(),
    ],
    params: &[],
    defaults: &[],
    outputs: &[OutputSpec::value("reward", &["B", "T"], "reward of each token; +0 under the mask")],
    dialects: &[Dialect { name: "verl-0.9", note: "the reward managers' placement", settings: &[] }],
    evaluate: evaluate_with!(evaluate),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::TokenShape;

    #[test]
    fn last_token_and_what_is_not_read() {
        let bytes = [1, 1, 0, 0, 0, 0, 0, 1, 0];
        let mask = Mask::new(TokenShape { rows: 3, columns: 3 }, Some(&bytes)).unwrap();
        let penalty = [-0.5, -0.25, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, -1.0, f64::NAN];
        let mut out = [9.0; 9];
        assemble(&[2.0, f64::NAN, 3.0], Some(&penalty), mask, &mut out).unwrap();
        assert_eq!(out, [-0.5, 1.75, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let error = assemble(&[2.0, 0.0, f64::INFINITY], None, mask, &mut out);
        assert_eq!(error, Err(Error::NonFinite { argument: "score", index: 2 }));
    }
}

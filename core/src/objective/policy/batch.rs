//! The views of the caller's slices that an objective reads and writes.

use super::PolicyObjective;
use crate::Error;
use crate::batch::{Groups, Mask, TokenShape};
use crate::num::Real;

/// Numbers given per token, or per response and then the same for each of its tokens.
#[derive(Clone, Copy, Debug)]
pub enum Spread<'a, R> {
    /// One a token, [B, T].
    PerToken(&'a [R]),
    /// One a response, \[B\].
    PerRow(&'a [R]),
}

impl<'a, R> Spread<'a, R> {
    fn check(&self, argument: &'static str, shape: TokenShape) -> Result<(), Error> {
        match self {
            Spread::PerToken(values) => shape.check(argument, values),
            Spread::PerRow(values) => shape.check_rows(argument, values),
        }
    }
}

/// What a policy objective reads.
#[derive(Clone, Copy, Debug)]
pub struct PolicyBatch<'a, R> {
    /// Log-probabilities of the sampled tokens under the current policy, [B, T] (nats).
    pub log_prob: &'a [R],
    /// The same under the policy that sampled them; without it every ratio is 1 (its gradient remains).
    pub old_log_prob: Option<&'a [R]>,
    /// The same under the reference policy, for the KL term.
    pub ref_log_prob: Option<&'a [R]>,
    /// Advantages.
    pub advantage: Spread<'a, R>,
    /// Which slots hold a token.
    pub mask: Mask<'a>,
    /// Prompt of each response, for `group_mean_token_mean`.
    pub groups: Option<Groups<'a>>,
    /// Weights that multiply the policy term (an off-policy correction).
    pub importance_weight: Option<Spread<'a, R>>,
    /// 0 where a token's policy term is left out while it still counts in the denominators, [B, T].
    pub keep: Option<&'a [u8]>,
    /// 1 where a token was selected (clip_cov, kl_cov), [B, T].
    pub selected: Option<&'a [u8]>,
    /// Entropy of the policy at each token, [B, T] (nats).
    pub entropy: Option<&'a [R]>,
}

impl<'a, R: Real> PolicyBatch<'a, R> {
    /// A batch of what every objective needs.
    pub fn new(log_prob: &'a [R], advantage: Spread<'a, R>, mask: Mask<'a>) -> Self {
        PolicyBatch {
            log_prob,
            old_log_prob: None,
            ref_log_prob: None,
            advantage,
            mask,
            groups: None,
            importance_weight: None,
            keep: None,
            selected: None,
            entropy: None,
        }
    }

    /// Lengths, and that what the objective needs is there.
    pub(super) fn check(&self, objective: &PolicyObjective<R>) -> Result<(), Error> {
        let shape = self.mask.shape();
        shape.check("log_prob", self.log_prob)?;
        for (argument, values) in
            [("old_log_prob", self.old_log_prob), ("ref_log_prob", self.ref_log_prob), ("entropy", self.entropy)]
        {
            if let Some(values) = values {
                shape.check(argument, values)?;
            }
        }
        self.advantage.check("advantage", shape)?;
        if let Some(weight) = self.importance_weight {
            weight.check("importance_weight", shape)?;
        }
        for (argument, bytes) in [("keep", self.keep), ("selected", self.selected)] {
            if let Some(bytes) = bytes {
                shape.check(argument, bytes)?;
            }
        }
        if let Some(groups) = self.groups
            && groups.rows() != shape.rows
        {
            return Err(Error::LengthMismatch { argument: "group", expected: shape.rows, got: groups.rows() });
        }
        if objective.kl.is_some() && self.ref_log_prob.is_none() {
            return Err(Error::MissingInput { argument: "ref_log_prob" });
        }
        if objective.entropy.is_some() && self.entropy.is_none() {
            return Err(Error::MissingInput { argument: "entropy" });
        }
        Ok(())
    }
}

/// Where a policy objective writes; each buffer is [B, T] and optional.
#[derive(Debug, Default)]
pub struct PolicyOutputs<'a, R> {
    /// Gradient of the loss by `log_prob`.
    pub d_log_prob: Option<&'a mut [R]>,
    /// Gradient of the loss by `entropy`.
    pub d_entropy: Option<&'a mut [R]>,
    /// Loss of each token before aggregation: policy term plus weighted KL (and minus the entropy bonus where it is
    /// aggregated as the loss).
    pub token_loss: Option<&'a mut [R]>,
    /// The weight that each token carries in the loss.
    pub token_weight: Option<&'a mut [R]>,
}

impl<R: Real> PolicyOutputs<'_, R> {
    /// The same buffers, lent.
    pub(super) fn borrowed(&mut self) -> PolicyOutputs<'_, R> {
        PolicyOutputs {
            d_log_prob: self.d_log_prob.as_deref_mut(),
            d_entropy: self.d_entropy.as_deref_mut(),
            token_loss: self.token_loss.as_deref_mut(),
            token_weight: self.token_weight.as_deref_mut(),
        }
    }

    pub(super) fn check(&self, shape: TokenShape) -> Result<(), Error> {
        for (argument, buffer) in [
            ("d_log_prob", &self.d_log_prob),
            ("d_entropy", &self.d_entropy),
            ("token_loss", &self.token_loss),
            ("token_weight", &self.token_weight),
        ] {
            if let Some(buffer) = buffer {
                shape.check(argument, buffer)?;
            }
        }
        Ok(())
    }
}

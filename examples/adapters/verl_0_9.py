"""verl 0.9.1's own policy losses, KL penalties and aggregation.

    plumbline check -- python examples/adapters/verl_0_9.py

Needs the libraries of requirements.txt beside this file. verl's trainer hands over finite padding, and several of its
functions rely on it, so NaN under the mask is not tried.
"""

import os
import pathlib
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy
import torch
from verl.trainer.ppo import core_algos
from verl.workers.config import ActorConfig
from verl.workers.config.actor import PolicyLossConfig

from plumbline.adapter import Skip, implements, serve

MODES = {
    "token_mean": "token-mean",
    "token_sum": "token-sum",
    "seq_mean_token_sum": "seq-mean-token-sum",
    "seq_mean_token_mean": "seq-mean-token-mean",
    "seq_mean_token_sum_norm": "seq-mean-token-sum-norm",
}


def verl(operation, **options):
    return implements(operation, dialect="verl-0.9", finite_padding=True, inputs_as="torch", **options)


def per_token(values, like):
    """verl's functions take one number for each token."""
    return values if values is None or values.dim() == 2 else values[:, None].expand_as(like)


def policy_loss(name, log_prob, old_log_prob, advantage, mask, mode, weight=None, policy_options=None, **fields):
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        use_dynamic_bsz=True,
        policy_loss=PolicyLossConfig(**(policy_options or {})),
        **fields,
    )
    loss, _ = core_algos.get_policy_loss_fn(name)(
        old_log_prob=old_log_prob,
        log_prob=log_prob,
        advantages=per_token(advantage, log_prob),
        response_mask=mask,
        loss_agg_mode=mode,
        config=config,
        rollout_is_weights=per_token(weight, log_prob),
    )
    return loss


def clipped(operation, name, mode, weighted=True):
    """A loss with a lower and an upper bound."""
    if weighted:

        @verl(operation)
        def loss(log_prob, old_log_prob, advantage, mask, importance_weight, clip_ratio_low, clip_ratio_high):
            bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high}
            return policy_loss(name, log_prob, old_log_prob, advantage, mask, mode, importance_weight, **bounds)

    else:

        @verl(operation)
        def loss(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
            bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high}
            return policy_loss(name, log_prob, old_log_prob, advantage, mask, mode, **bounds)


@verl("objective.ppo")
def ppo(
    log_prob, old_log_prob, advantage, mask, importance_weight, clip_ratio_low, clip_ratio_high, clip_ratio_c, aggregation
):
    if aggregation not in MODES:
        raise Skip(f"verl has no aggregation {aggregation}")
    bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high, "clip_ratio_c": clip_ratio_c}
    mode = MODES[aggregation]
    return policy_loss("vanilla", log_prob, old_log_prob, advantage, mask, mode, importance_weight, **bounds)


@verl("objective.grpo")
def grpo(
    log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, clip_ratio_c, kl_coefficient
):
    bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high, "clip_ratio_c": clip_ratio_c}
    loss = policy_loss("vanilla", log_prob, old_log_prob, advantage, mask, "token-mean", **bounds)
    penalty = core_algos.kl_penalty(log_prob, ref_log_prob, "low_var_kl")
    return loss + kl_coefficient * core_algos.agg_loss(penalty, mask, "token-mean")


clipped("objective.dapo", "vanilla", "token-mean")
clipped("objective.dr_grpo", "vanilla", "seq-mean-token-sum-norm")
clipped("objective.gspo", "gspo", "token-mean")
clipped("objective.gspo_token", "gspo", "token-mean")
clipped("objective.cispo", "cispo", "token-mean")


@verl("objective.gmpo")
def gmpo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
    if advantage.dim() == 2:
        raise Skip("averages the advantages of a response's tokens")
    bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high}
    return policy_loss("geo_mean", log_prob, old_log_prob, advantage, mask, "seq-mean-token-mean", **bounds)


@verl("objective.sapo")
def sapo(log_prob, old_log_prob, advantage, mask, sapo_temperature_positive, sapo_temperature_negative):
    temperatures = {"tau_pos": sapo_temperature_positive, "tau_neg": sapo_temperature_negative}
    return policy_loss("sapo", log_prob, old_log_prob, advantage, mask, "seq-mean-token-mean", **temperatures)


@verl("objective.gpg")
def gpg(log_prob, advantage, mask):
    return policy_loss("gpg", log_prob, log_prob.detach(), advantage, mask, "token-mean")


@verl("objective.dro")
def dro(log_prob, old_log_prob, advantage, mask, dro_beta):
    if dro_beta == 0.0:
        raise Skip("wants a beta above 0")
    options = {"dro_beta": dro_beta}
    return policy_loss("dro", log_prob, old_log_prob, advantage, mask, "token-mean", policy_options=options)


@verl("objective.dppo")
def dppo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, clip_ratio_c):
    bounds = {"clip_ratio_low": clip_ratio_low, "clip_ratio_high": clip_ratio_high, "clip_ratio_c": clip_ratio_c}
    return policy_loss("dppo_tv", log_prob, old_log_prob, advantage, mask, "token-mean", **bounds)


def penalty(operation, name, **options):
    """One of verl's per-token KL penalties; its gradient by autograd through the masked sum."""

    @implements(operation, finite_padding=True, inputs_as="torch", **options)
    def kl(log_prob, ref_log_prob, mask):
        return core_algos.kl_penalty(log_prob, ref_log_prob, name) * mask


penalty("kl.k1", "kl")
penalty("kl.abs", "abs")
penalty("kl.k2", "mse")
penalty("kl.k3", "low_var_kl", dialect="verl-0.9")
penalty("kl.k1_plus", "kl+")
penalty("kl.abs_plus", "abs+")
penalty("kl.k3_plus", "low_var_kl+", dialect="verl-0.9")


@verl("advantage.group_mean_std")
def group_mean_std(reward, group):
    advantage, _ = core_algos.compute_grpo_outcome_advantage(
        token_level_rewards=reward[:, None],
        response_mask=torch.ones_like(reward)[:, None],
        index=numpy.array(group.tolist()),
        epsilon=1e-6,
    )
    return advantage[:, 0]


if __name__ == "__main__":
    serve(name="verl", version="0.9.1")

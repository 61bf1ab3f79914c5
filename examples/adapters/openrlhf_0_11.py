"""OpenRLHF 0.11.2's loss modules and KL estimators.

    cargo xtask adapters openrlhf

The package imports DeepSpeed, which wants a GPU's tool chain to install. Its `models/loss.py` and `models/utils.py` are
loaded alone from the wheel, with an empty module for DeepSpeed, of which the functions called here use nothing.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
from unpacked import load

from plumbline.adapter import Skip, implements, serve

loss = load("openrlhf", "models.loss", absent=["deepspeed"])
utils = load("openrlhf", "models.utils", absent=["deepspeed"])


def openrlhf(operation, **options):
    return implements(operation, inputs_as="torch", finite_padding=True, **options)


def tokens(advantage, log_prob):
    """One advantage for each token, as the trainer hands it over."""
    return advantage[:, None].expand_as(log_prob) if advantage.dim() == 1 else advantage


# The token's log-ratio is limited to 20; the dual clip is an option and off.
@openrlhf("objective.ppo", dialect="paper", settings={"log_ratio_min": -20.0, "log_ratio_max": 20.0})
def ppo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
    policy = loss.PolicyLoss(clip_ratio_low, clip_ratio_high)
    return policy(log_prob, old_log_prob, tokens(advantage, log_prob), mask)[0]


@openrlhf("objective.gspo", dialect="paper", settings={"length_eps": 1e-8})
def gspo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
    policy = loss.PolicyLoss(clip_ratio_low, clip_ratio_high, policy_loss_type="gspo")
    return policy(log_prob, old_log_prob, tokens(advantage, log_prob), mask)[0]


@openrlhf("reduce.aggregate", settings={"length_eps": 1e-8})
def aggregate(token_loss, mask, aggregation):
    levels = {"token_mean": True, "seq_mean_token_mean": False}
    if aggregation not in levels:
        raise Skip("has the means over tokens and over responses only")
    return loss.aggregate_loss(token_loss, mask, token_level_loss=levels[aggregation])


@openrlhf("value.clipped", dialect="paper")
def value(value, old_value, mask, clip_range, **others):
    return loss.ValueLoss(clip_eps=clip_range)(value, old_value, others["return"], mask)


@openrlhf("preference.bradley_terry", dialect="paper")
def bradley_terry(chosen_score, rejected_score, margin=None):
    return loss.PairWiseLoss()(chosen_score, rejected_score, margin)


@openrlhf("preference.dpo_sigmoid", dialect="paper")
def dpo(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob, beta, label_smoothing):
    return loss.DPOLoss(beta, label_smoothing)(
        chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob
    )[0]


@openrlhf("preference.dpo_ipo", dialect="paper")
def ipo(chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob, beta):
    return loss.DPOLoss(beta, ipo=True)(
        chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob
    )[0]


def estimator(operation, name, **options):
    """One of the KL estimators, which are computed in single precision; the gradient by autograd through the masked sum."""

    @openrlhf(operation, precision="f32", **options)
    def kl(log_prob, ref_log_prob, mask):
        return utils.compute_approx_kl(log_prob, ref_log_prob, kl_estimator=name) * mask


estimator("kl.k1", "k1")
estimator("kl.k2", "k2")
estimator("kl.k3", "k3", dialect="paper", settings={"value_clamp": 10.0})

if __name__ == "__main__":
    serve(name="OpenRLHF", version="0.11.2")

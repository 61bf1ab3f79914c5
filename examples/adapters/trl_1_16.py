"""TRL 1.16.0's own GRPO trainer: its `compute_loss`, for each loss type.

    plumbline check -- python examples/adapters/trl_1_16.py

Needs the libraries of requirements.txt beside this file. The trainer is made as the fixtures' exporter makes it: without
its constructor, with given log-probabilities in place of the model. TRL's sums multiply by the mask, so NaN under the
mask is not tried.
"""

import os
import pathlib
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "fixtures")]

import torch
from exporter.trl_grpo import trainer_with
from trl.trainer.grpo_trainer import GRPOTrainer

from plumbline.adapter import Skip, implements, serve


def compute_loss(loss_type, log_prob, old_log_prob, advantage, mask, ref_log_prob=None, weight=None, **attributes):
    settings = {"loss_type": loss_type, "bias_correction": True, "weight": weight}
    settings |= attributes.pop("settings", {})
    trainer = trainer_with(GRPOTrainer, log_prob, torch.zeros_like(log_prob), settings, {})
    attributes.setdefault("max_completion_length", log_prob.shape[1])
    for name, value in attributes.items():
        object.__setattr__(trainer, name, value)
    ones = torch.ones(log_prob.shape[0], 2, dtype=torch.long)
    inputs = {
        "prompt_ids": ones,
        "prompt_mask": ones,
        "completion_ids": torch.zeros_like(mask, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantage,
        "num_items_in_batch": mask.sum(),
        "old_per_token_logps": old_log_prob,
    }
    if ref_log_prob is not None:
        inputs["ref_per_token_logps"] = ref_log_prob
    if weight is not None:
        inputs["importance_sampling_ratio"] = weight if weight.dim() == 2 else weight[:, None]
    return trainer.compute_loss(None, inputs)


def trl(operation, **options):
    return implements(operation, dialect="trl-1.16", finite_padding=True, inputs_as="torch", **options)


def clipped(operation, loss_type, level="token"):
    """A loss type with PPO's bounds, TRL's upper limit of the ratio, the KL term and importance weights."""

    @trl(operation)
    def loss(
        log_prob,
        old_log_prob,
        ref_log_prob,
        advantage,
        mask,
        importance_weight,
        clip_ratio_low,
        clip_ratio_high,
        ratio_max,
        kl_coefficient,
    ):
        return compute_loss(
            loss_type,
            log_prob,
            old_log_prob,
            advantage,
            mask,
            ref_log_prob=ref_log_prob,
            weight=importance_weight,
            beta=kl_coefficient,
            epsilon_low=clip_ratio_low,
            epsilon_high=clip_ratio_high,
            importance_sampling_level=level,
            settings={"delta": ratio_max},
        )


clipped("objective.grpo", "grpo")
clipped("objective.bnpo", "bnpo")
clipped("objective.dr_grpo", "dr_grpo")
clipped("objective.dapo", "dapo")
clipped("objective.gspo", "grpo", level="sequence")
clipped("objective.luspo", "luspo", level="sequence")


@trl("objective.cispo")
def cispo(log_prob, old_log_prob, advantage, mask, importance_weight, clip_ratio_high):
    return compute_loss(
        "cispo", log_prob, old_log_prob, advantage, mask, weight=importance_weight, epsilon_high=clip_ratio_high
    )


@trl("objective.sapo", precision="f32")  # the trainer holds its temperatures in single precision
def sapo(log_prob, old_log_prob, advantage, mask, sapo_temperature_positive, sapo_temperature_negative):
    temperatures = {"temperatures": (sapo_temperature_positive, sapo_temperature_negative)}
    return compute_loss("sapo", log_prob, old_log_prob, advantage, mask, settings=temperatures)


@trl("objective.vespo")
def vespo(log_prob, old_log_prob, advantage, mask):
    if advantage.dim() == 2:
        raise Skip("reads one advantage for each response")
    return compute_loss("vespo", log_prob, old_log_prob, advantage, mask)


if __name__ == "__main__":
    serve(name="TRL", version="1.16.0")

"""The preference losses of TRL 1.16.0: the code of its DPO, KTO, reward, CPO and ORPO trainers, not a copy of it.

    plumbline check -- python examples/adapters/trl_1_16_preference.py [--dtype f32]

Needs torch and TRL as pinned in fixtures/exporter/requirements*.txt. A trainer is made without its constructor; a
stand-in for the model answers with the log-probs that the check sends, and the trainer's own `compute_loss` runs.
TRL computes four things in single precision whatever it is given: `exo_pair`'s label smoothing, ORPO's odds ratio, the
alpha-divergence and the accuracies. They are offered with `--dtype f32` only.
"""

import argparse
import contextlib
import os
import pathlib
import sys
from collections import defaultdict
from types import SimpleNamespace

# In your own project `plumbline` is installed; here it stands two folders up.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import trl
from accelerate import Accelerator
from trl.experimental.cpo.cpo_trainer import CPOTrainer
from trl.experimental.orpo.orpo_trainer import ORPOTrainer
from trl.trainer import dpo_trainer, kto_trainer
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.kto_trainer import KTOTrainer
from trl.trainer.reward_trainer import RewardTrainer

from plumbline.adapter import Skip, implements, serve

DIALECT = "trl-1.16"
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--dtype", choices=("f64", "f32"), default="f64")
DTYPE = parser.parse_args().dtype
SINGLE = DTYPE == "f32"

for module in (dpo_trainer, kto_trainer):
    module.disable_gradient_checkpointing = lambda *_, **__: contextlib.nullcontext()


def bare(trainer_class, **attributes):
    """A trainer without its constructor."""
    trainer = trainer_class.__new__(trainer_class)
    common = {
        "accelerator": Accelerator(cpu=True),
        "model": SimpleNamespace(training=True),
        "_metrics": {"train": defaultdict(list), "eval": defaultdict(list)},
        "_stored_metrics": {"train": defaultdict(list), "eval": defaultdict(list)},
        "aux_loss_enabled": False,
        "_total_train_tokens": 0,
        "_tp_size": 1,
    }
    for name, value in (common | attributes).items():
        object.__setattr__(trainer, name, value)
    return trainer


def accuracy(value):
    """TRL averages hits in single precision: a share of 1/3 is compared where that is the precision asked for."""
    return {"accuracy": value} if SINGLE else {}


def model_of(log_prob, mask, log_sum_sq_probs=None):
    """A model with a fused head: log-probs of the labels, 0 where masked."""
    zeros = torch.zeros_like(log_prob).detach()
    # Select, do not multiply: what stands under the mask may be NaN.
    kept = torch.where(mask != 0, log_prob, zeros)
    alignment = zeros if log_sum_sq_probs is None else torch.where(mask != 0, log_sum_sq_probs, zeros)
    output = SimpleNamespace(
        log_probs=kept,
        entropy=zeros,
        log_sum_sq_probs=alignment,
        mean_logits=zeros,
        is_top1=mask != 0,
        label_mask=mask != 0,
        aux_loss=None,
    )
    return lambda **_: output


def collated(mask):
    """What a collator makes: one prompt token more than there are log-probs."""
    completion = torch.cat([torch.zeros(len(mask), 1, dtype=torch.long), (mask != 0).long()], dim=1)
    return {
        "input_ids": torch.ones_like(completion),
        "attention_mask": torch.ones_like(completion),
        "completion_mask": completion,
    }


def spread(sums, lengths):
    """Responses of given lengths whose first token carries the whole log-prob."""
    width = max(1, int(lengths.max()))
    mask = (torch.arange(width) < lengths.clamp(min=1).unsqueeze(1)).long()
    return torch.cat([sums.unsqueeze(1), torch.zeros(len(sums), width - 1, dtype=sums.dtype)], dim=1), mask


def side_by_side(*parts):
    """Rows of both kinds, padded to one width."""
    width = max(part.shape[1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])


def dpo_on_tokens(loss_type, beta, policy, reference, mask, collision=None, **attributes):
    """DPOTrainer.compute_loss on per-token log-probs, chosen responses first."""
    settings = {
        "loss_types": [loss_type],
        "loss_weights": [1.0],
        "beta": beta,
        "ld_alpha": None,
        "f_divergence_type": "reverse_kl",
        "f_alpha_divergence_coef": 0.5,
        "label_smoothing": 0.0,
        "use_weighting": collision is not None,
        "precompute_ref_logps": False,
        "ref_model": model_of(reference, mask),
        "args": SimpleNamespace(
            discopop_tau=attributes.pop("discopop_tau", 0.05), gradient_checkpointing_kwargs=None, max_length=None
        ),
    } | attributes
    trainer = bare(DPOTrainer, **settings)
    loss = trainer.compute_loss(model_of(policy, mask, collision), collated(mask))
    metrics = {name: values[0] for name, values in trainer._metrics["train"].items()}
    return {
        "loss": loss,
        "chosen_reward": metrics["rewards/chosen"],
        "rejected_reward": metrics["rewards/rejected"],
        "margin": metrics["rewards/margins"],
        **accuracy(metrics["rewards/accuracies"]),
    }


def dpo(loss_type, beta, chosen, rejected, ref_chosen, ref_rejected, lengths=None, **attributes):
    """The same on summed log-probs."""
    zeros = torch.zeros_like(chosen).detach()
    ref_chosen = zeros if ref_chosen is None else ref_chosen
    ref_rejected = zeros if ref_rejected is None else ref_rejected
    ones = torch.ones(len(chosen), dtype=torch.long)
    chosen_length, rejected_length = lengths or (ones, ones)
    (chosen, chosen_mask), (rejected, rejected_mask) = spread(chosen, chosen_length), spread(rejected, rejected_length)
    ref_chosen, ref_rejected = spread(ref_chosen, chosen_length)[0], spread(ref_rejected, rejected_length)[0]
    return dpo_on_tokens(
        loss_type,
        beta,
        side_by_side(chosen, rejected),
        side_by_side(ref_chosen, ref_rejected),
        side_by_side(chosen_mask, rejected_mask),
        **attributes,
    )


DIVERGENCES = {
    "reverse_kl": "reverse_kl",
    "forward_kl": "forward_kl",
    "js": "js_divergence",
    "alpha": "alpha_divergence",
}


def divergence(name, alpha):
    if name == "alpha" and not SINGLE:
        raise Skip("TRL's alpha-divergence knows no double precision")
    return {"f_divergence_type": DIVERGENCES[name], "f_alpha_divergence_coef": alpha}


def register_scored(loss_type):
    """Loss types of the score difference, without further parameters."""

    @implements(f"preference.dpo_{loss_type}", dialect=DIALECT)
    def function(
        chosen_log_prob, rejected_log_prob, beta, f_divergence, f_divergence_alpha,
        ref_chosen_log_prob=None, ref_rejected_log_prob=None,
    ):
        return dpo(
            loss_type, beta, chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob,
            **divergence(f_divergence, f_divergence_alpha),
        )


def register_averaged(loss_type):
    """Loss types that divide by the response's length."""

    @implements(f"preference.dpo_{loss_type}", dialect=DIALECT)
    def function(
        chosen_log_prob, rejected_log_prob, chosen_length, rejected_length, beta, f_divergence, f_divergence_alpha,
        ref_chosen_log_prob=None, ref_rejected_log_prob=None,
    ):
        return dpo(
            loss_type, beta, chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob,
            (chosen_length, rejected_length), **divergence(f_divergence, f_divergence_alpha),
        )


def register_plain(loss_type):
    """Loss types of the two log-ratios."""

    @implements(f"preference.dpo_{loss_type}", dialect=DIALECT)
    def function(
        chosen_log_prob, rejected_log_prob, beta, ref_chosen_log_prob=None, ref_rejected_log_prob=None
    ):
        return dpo(
            loss_type, beta, chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob
        )


def register_smoothed(loss_type):
    """Loss types with label smoothing."""

    @implements(f"preference.dpo_{loss_type}", dialect=DIALECT)
    def function(
        chosen_log_prob, rejected_log_prob, beta, label_smoothing, ref_chosen_log_prob=None, ref_rejected_log_prob=None
    ):
        return dpo(
            loss_type, beta, chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob,
            label_smoothing=label_smoothing,
        )


for name in ("sigmoid", "hinge"):
    register_scored(name)
for name in ("ipo", "sigmoid_norm"):
    register_averaged(name)
for name in ("nca_pair", "bco_pair", "sppo_hard", "apo_zero", "apo_down"):
    register_plain(name)
for name in ("robust", "aot", "aot_unpaired", *(["exo_pair"] if SINGLE else [])):
    register_smoothed(name)


@implements("preference.dpo_discopop", dialect=DIALECT)
def discopop(
    chosen_log_prob, rejected_log_prob, beta, discopop_tau, ref_chosen_log_prob=None, ref_rejected_log_prob=None
):
    return dpo(
        "discopop", beta, chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob,
        discopop_tau=discopop_tau,
    )


@implements("preference.dpo_sft", dialect=DIALECT)
def sft(chosen_log_prob, chosen_length):
    zeros = torch.zeros_like(chosen_log_prob).detach()
    if int(chosen_length.sum()) == 0 or bool((chosen_length == 0).any()):
        raise Skip("a response without tokens has no log-prob in TRL")
    outputs = dpo("sft", 0.1, chosen_log_prob, zeros, None, None, (chosen_length, torch.ones_like(chosen_length)))
    return outputs["loss"]


def tokens(chosen, rejected, ref_chosen, ref_rejected, chosen_mask, rejected_mask):
    """Per-token inputs of both kinds of response."""
    ones = [torch.ones_like(side).detach() for side in (chosen, rejected)]
    masks = [one if mask is None else mask for one, mask in zip(ones, (chosen_mask, rejected_mask), strict=True)]
    references = [
        torch.zeros_like(side).detach() if reference is None else reference
        for side, reference in zip((chosen, rejected), (ref_chosen, ref_rejected), strict=True)
    ]
    return side_by_side(chosen, rejected), side_by_side(*references), side_by_side(*masks)


@implements("preference.ld_dpo", dialect=DIALECT)
def ld_dpo(
    chosen_log_prob, rejected_log_prob, beta, ld_alpha, ref_chosen_log_prob=None, ref_rejected_log_prob=None,
    chosen_mask=None, rejected_mask=None,
):
    batch = tokens(
        chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob, chosen_mask, rejected_mask
    )
    return dpo_on_tokens("sigmoid", beta, *batch, ld_alpha=ld_alpha)


@implements("preference.wpo", dialect=DIALECT)
def wpo(
    chosen_log_prob, rejected_log_prob, chosen_log_sum_p_squared, rejected_log_sum_p_squared, beta,
    ref_chosen_log_prob=None, ref_rejected_log_prob=None, chosen_mask=None, rejected_mask=None,
):
    batch = tokens(
        chosen_log_prob, rejected_log_prob, ref_chosen_log_prob, ref_rejected_log_prob, chosen_mask, rejected_mask
    )
    collision = side_by_side(chosen_log_sum_p_squared, rejected_log_sum_p_squared)
    return dpo_on_tokens("sigmoid", beta, *batch, collision=collision)


@implements("preference.bradley_terry", dialect=DIALECT)
def reward_model(chosen_score, rejected_score, centering_coefficient, margin=None):
    scores = torch.cat([chosen_score, rejected_score]).unsqueeze(1)
    trainer = bare(RewardTrainer, args=SimpleNamespace(center_rewards_coefficient=centering_coefficient))
    inputs = {"attention_mask": torch.ones(len(scores), 1, dtype=torch.long)}
    if margin is not None:
        inputs["margin"] = margin
    loss = trainer.compute_loss(lambda **_: SimpleNamespace(logits=scores), inputs)
    metrics = trainer._metrics["train"]
    return {"loss": loss, "score_margin": metrics["margin"][0], **accuracy(metrics["accuracy"][0])}


def kto_trainer_loss(loss_type, log_prob, reference, desirable, beta, weights, kl=None):
    ones = torch.ones(len(log_prob), 1, dtype=torch.long)
    models = [
        {1: model_of(own.unsqueeze(1), ones), 2: None if other is None else model_of(other.unsqueeze(1), torch.ones(len(other), 1))}
        for own, other in zip((log_prob, reference), kl or (None, None), strict=True)
    ]
    policy, ref = (
        (lambda input_ids, answers=answers, **arguments: answers[int(input_ids[0, 0])](**arguments)) for answers in models
    )
    trainer = bare(
        KTOTrainer,
        calculate_KL=kl is not None,
        loss_type=loss_type,
        beta=beta,
        desirable_weight=weights[0],
        undesirable_weight=weights[1],
        precompute_ref_logps=False,
        ref_model=ref,
        args=SimpleNamespace(gradient_checkpointing_kwargs=None, max_length=None),
    )
    inputs = collated(ones) | {"label": desirable != 0}
    if kl is not None:
        mismatched = collated(torch.ones(len(kl[0]), 1))
        inputs |= {f"KL_{name}": value for name, value in mismatched.items()}
        inputs["KL_input_ids"] = 2 * mismatched["input_ids"]
    loss = trainer.compute_loss(policy, inputs)
    outputs = {"loss": loss}
    if loss_type == "kto":
        outputs["kl"] = trainer._metrics["train"]["kl"][0]
    return outputs


@implements("preference.kto", dialect=DIALECT)
def kto(
    log_prob, ref_log_prob, desirable, beta, desirable_weight, undesirable_weight, kl_log_prob=None, ref_kl_log_prob=None
):
    kl = None if kl_log_prob is None or len(kl_log_prob) == 0 else (kl_log_prob, ref_kl_log_prob)
    return kto_trainer_loss("kto", log_prob, ref_log_prob, desirable, beta, (desirable_weight, undesirable_weight), kl)


@implements("preference.apo_zero_unpaired", dialect=DIALECT)
def apo_zero_unpaired(log_prob, ref_log_prob, desirable, beta, desirable_weight, undesirable_weight):
    weights = (desirable_weight, undesirable_weight)
    return kto_trainer_loss("apo_zero_unpaired", log_prob, ref_log_prob, desirable, beta, weights)


def reference_free(loss_type, chosen, rejected, lengths, per_token, beta, smoothing, alpha, gamma, coefficient):
    """CPOTrainer.compute_loss; what its forward pass returns is made of the summed log-probs."""
    chosen_length, rejected_length = (length.clamp(min=1) for length in lengths)
    means = (chosen / chosen_length, rejected / rejected_length) if per_token else (chosen, rejected)
    likelihood = torch.tensor(0.0)
    if coefficient:
        if int(lengths[0].sum()) == 0:
            raise Skip("no token to average over")
        likelihood = -chosen.sum() / lengths[0].sum()
    none = torch.zeros(1, dtype=chosen.dtype)
    trainer = bare(
        CPOTrainer,
        loss_type=loss_type,
        beta=beta,
        label_smoothing=smoothing,
        alpha=alpha,
        simpo_gamma=gamma,
        cpo_alpha=coefficient,
        _peft_has_been_casted_to_bf16=False,
        concatenated_forward=lambda *_: (*means, none, none, likelihood),
    )
    loss, metrics = trainer.compute_loss(None, {}, return_outputs=True)
    return {
        "loss": loss,
        "nll_loss": float(metrics["nll_loss"]),
        "chosen_reward": metrics["rewards/chosen"],
        "rejected_reward": metrics["rewards/rejected"],
        "margin": metrics["rewards/margins"],
        **accuracy(metrics["rewards/accuracies"]),
    }


@implements("preference.cpo", dialect=DIALECT)
def cpo(
    chosen_log_prob, rejected_log_prob, chosen_length, rejected_length, beta, loss_type, label_smoothing,
    likelihood_coefficient,
):
    if loss_type == "ipo":
        raise Skip("TRL's CPO averages log-probs where the loss is ipo")
    return reference_free(
        loss_type, chosen_log_prob, rejected_log_prob, (chosen_length, rejected_length), False, beta, label_smoothing,
        0.0, 0.0, likelihood_coefficient,
    )


@implements("preference.simpo", dialect=DIALECT)
def simpo(
    chosen_log_prob, rejected_log_prob, chosen_length, rejected_length, beta, label_smoothing, gamma,
    likelihood_coefficient,
):
    return reference_free(
        "simpo", chosen_log_prob, rejected_log_prob, (chosen_length, rejected_length), True, beta, label_smoothing,
        0.0, gamma, likelihood_coefficient,
    )


@implements("preference.alpha_po", dialect=DIALECT)
def alpha_po(
    chosen_log_prob, rejected_log_prob, chosen_length, rejected_length, beta, label_smoothing, alpha, gamma,
    likelihood_coefficient,
):
    return reference_free(
        "simpo", chosen_log_prob, rejected_log_prob, (chosen_length, rejected_length), True, beta, label_smoothing,
        alpha, gamma, likelihood_coefficient,
    )


if SINGLE:

    @implements("preference.orpo", dialect=DIALECT)
    def orpo(
        chosen_log_prob, rejected_log_prob, chosen_length, rejected_length, beta,
        chosen_text_log_prob=None, chosen_text_length=None,
    ):
        text, text_length = chosen_text_log_prob, chosen_text_length
        if text is None or text_length is None:
            text, text_length = chosen_log_prob, chosen_length
        if int(text_length.sum()) == 0:
            raise Skip("no token to average over")
        likelihood = -text.sum() / text_length.sum()
        none = torch.zeros(1, 2, 1, dtype=chosen_log_prob.dtype)
        means = (
            chosen_log_prob / chosen_length.clamp(min=1),
            rejected_log_prob / rejected_length.clamp(min=1),
        )
        trainer = bare(
            ORPOTrainer,
            beta=beta,
            args=SimpleNamespace(device=torch.device("cpu")),
            _peft_has_been_casted_to_bf16=False,
            concatenated_forward=lambda *_: (*means, none, none, likelihood),
        )
        loss, metrics = trainer.compute_loss(None, {}, return_outputs=True)
        return {
            "loss": loss,
            "nll_loss": metrics["nll_loss"],
            "chosen_reward": metrics["rewards/chosen"],
            "rejected_reward": metrics["rewards/rejected"],
            "margin": metrics["rewards/margins"],
            **accuracy(metrics["rewards/accuracies"]),
        }


if __name__ == "__main__":
    serve(name="TRL preference trainers", version=trl.__version__, dtype=DTYPE)

"""torchrl 0.11.1's value estimators.

    cargo xtask adapters torchrl

`objectives/value/functional.py` is loaded alone from the wheel (with tensordict installed): the rest of the package loads a
compiled extension that fits one version of torch only.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
from unpacked import load

from plumbline.adapter import Skip, implements, serve

functional = load("torchrl", "objectives.value.functional")


def column(number):
    """Features stand last."""
    return number[..., None]


def flags(terminated, truncated, like):
    """Where an episode ends by itself, and where it ends at all; a row's end is the end of what was collected."""
    terminated = torch.zeros_like(like, dtype=torch.bool) if terminated is None else terminated.bool()
    truncated = torch.zeros_like(like, dtype=torch.bool) if truncated is None else truncated.bool()
    return column(terminated), column(terminated | truncated)


def needed(next_value):
    if next_value is None:
        raise Skip("takes the next state's values as they are, never from the next step")
    return column(next_value)


# A number times flags as integers is of torch's default type, single precision, whatever the rewards are.
@implements("advantage.gae", dialect="paper", inputs_as="torch", precision="f32")
def gae(reward, value, next_value=None, terminated=None, truncated=None, *, gamma, gae_lambda):
    ended, done = flags(terminated, truncated, reward)
    advantage, returns = functional.generalized_advantage_estimate(
        gamma, gae_lambda, column(value), needed(next_value), column(reward), done, ended
    )
    return {"advantage": advantage[..., 0], "returns": returns[..., 0]}


@implements("advantage.lambda_return", inputs_as="torch")
def lambda_return(reward, next_value=None, terminated=None, truncated=None, *, gamma, trace_decay):
    ended, done = flags(terminated, truncated, reward)
    return functional.td_lambda_return_estimate(gamma, trace_decay, needed(next_value), column(reward), done, ended)[..., 0]


@implements("advantage.vtrace", dialect="paper", inputs_as="torch", precision="f32")
def vtrace(reward, value, log_prob, old_log_prob, next_value=None, terminated=None, truncated=None, *, gamma, clip_rho, clip_c):
    if clip_rho is None or clip_c is None:
        raise Skip("has no form without bounds")
    ended, done = flags(terminated, truncated, reward)
    numbers = [column(log_prob), column(old_log_prob), column(value), needed(next_value), column(reward)]
    _, returns = functional.vtrace_advantage_estimate(gamma, *numbers, done, ended, clip_rho, clip_c)
    return {"returns": returns[..., 0]}


if __name__ == "__main__":
    serve(name="torchrl", version="0.11.1", gradients=False)

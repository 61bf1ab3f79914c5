"""Advantages, whitening and a KL estimate in numpy, as short scripts have them.

    plumbline check -- python3 examples/adapters/numpy_losses.py
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy as np

from plumbline.adapter import implements, serve


@implements("advantage.group_mean_std", dialect="paper", inputs_as="numpy", settings={"group_of_one": "zero"})
def group_advantages(reward, group):
    advantage = np.zeros_like(reward)
    for prompt in np.unique(group):
        members = group == prompt
        if members.sum() > 1:
            centred = reward[members] - reward[members].mean()
            advantage[members] = centred / reward[members].std(ddof=1)
    return advantage


@implements("advantage.whiten", inputs_as="numpy", mask_as="bool")
def whiten(values, mask, whiten_eps):
    kept = values[mask]
    whitened = np.zeros_like(values)
    whitened[mask] = (kept - kept.mean()) / np.sqrt(kept.var(ddof=1) + whiten_eps)
    return whitened


@implements("kl.k3", dialect="paper", inputs_as="numpy", mask_as="bool")
def k3(log_prob, ref_log_prob, mask):
    distance = np.where(mask, ref_log_prob - log_prob, 0.0)
    return {"kl": np.expm1(distance) - distance, "d_log_prob": -np.expm1(distance)}


@implements("advantage.gae", dialect="paper", inputs_as="numpy", mask_as="bool")
def gae(reward, value, bootstrap_value=None, terminated=None, *, gamma, gae_lambda):
    rows, steps = reward.shape
    following = np.zeros(rows) if bootstrap_value is None else bootstrap_value
    ended = np.zeros_like(reward, dtype=bool) if terminated is None else terminated
    trace = np.zeros(rows)
    advantage = np.zeros_like(reward)
    for step in reversed(range(steps)):
        goes_on = ~ended[:, step]
        delta = reward[:, step] + gamma * np.where(goes_on, following, 0.0) - value[:, step]
        trace = delta + gamma * gae_lambda * np.where(goes_on, trace, 0.0)
        advantage[:, step] = trace
        following = value[:, step]
    return {"advantage": advantage, "returns": advantage + value}


if __name__ == "__main__":
    serve(name="numpy", version=np.__version__, gradients=True)

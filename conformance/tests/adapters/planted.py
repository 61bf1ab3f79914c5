"""Implementations with one mistake each, named on the command line; without one they conform.

The mistakes are of the kinds that were really made in public code. The gradient is that of the mistaken value, carried
through as autograd would (scalar.py).
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from plumbline.adapter import implements, serve
from scalar import Scalar, lift, maximum, minimum

MISTAKE = sys.argv[1] if len(sys.argv) > 1 else "none"


def mistaken(name):
    return MISTAKE == name


def number_of(per_row, row, token):
    """One number for each token, or one for each row."""
    return per_row[row][token] if isinstance(per_row[row], list) else per_row[row]


def kept_tokens(mask):
    tokens = [[token for token, kept in enumerate(row) if kept] for row in mask]
    if mistaken("mask-ignored"):
        return [list(range(len(row))) for row in mask]
    if mistaken("last-token-dropped"):
        return [row[:-1] for row in tokens]
    return tokens


def k3(log_prob, ref_log_prob):
    difference = log_prob - ref_log_prob
    if mistaken("kl-operands-swapped"):
        difference = -difference
    if mistaken("k1-for-k3"):
        return difference
    if mistaken("k2-for-k3"):
        return difference * difference / 2.0
    return (-difference).exp() - 1.0 + difference


def surrogate(log_ratio, advantage, low, high, log_prob, kind):
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - low, 1.0 + high)
    if kind == "cispo":
        weight = ratio.clamp(-math.inf, 1.0 + high)
        if not mistaken("cispo-gradient-through-weight"):
            weight = weight.detach()
        return -(weight * advantage * log_prob)
    if mistaken("max-for-min"):
        return -maximum(ratio * advantage, clipped * advantage)
    return -minimum(ratio * advantage, clipped * advantage)


def row_mean(values):
    return sum(values, lift(0.0)) / len(values)


def objective(log_prob, old_log_prob, ref_log_prob, advantage, mask, low, high, beta, kind, aggregation, cap, weights):
    """Clipped surrogate plus beta times k3, and its gradient."""
    if mistaken("clip-bounds-exchanged"):
        low, high = high, low
    lp = [[Scalar(value) for value in row] for row in log_prob]
    tokens = kept_tokens(mask)
    rows = [row for row in range(len(mask)) if tokens[row]]
    if mistaken("advantage-averaged-over-batch"):
        flat = [number_of(advantage, row, token) for row in rows for token in tokens[row]]
        per_row = not isinstance(advantage[0], list)
        mean = sum(advantage) / len(advantage) if per_row else sum(flat) / len(flat)
        advantage = [mean] * len(mask)
    policy, kl = {}, {}
    for row in rows:
        ratios = {token: lp[row][token] - old_log_prob[row][token] for token in tokens[row]}
        if mistaken("ratio-against-itself"):
            ratios = {token: lp[row][token] - lp[row][token].detach() for token in tokens[row]}
        if kind == "gspo":
            total = sum(ratios.values(), lift(0.0))
            if not mistaken("product-for-geometric-mean"):
                total = total / len(tokens[row])
            ratios = {token: total for token in tokens[row]}
        for token in tokens[row]:
            a = number_of(advantage, row, token)
            if mistaken("advantage-sign"):
                a = -a
            value = surrogate(ratios[token], a, low, high, lp[row][token], kind)
            if cap is not None and a < 0 and not mistaken("dual-clip-never-active"):
                value = minimum(value, lift(-cap * a))
            if weights is not None and not mistaken("importance-weight-unused"):
                value = value * number_of(weights, row, token)
            policy[row, token] = value
            if ref_log_prob is not None:
                kl[row, token] = k3(lp[row][token], ref_log_prob[row][token])
    beta_used = beta
    if mistaken("kl-subtracted"):
        beta_used = -beta
    if mistaken("kl-doubled"):
        beta_used = 2.0 * beta
    losses = {key: value + beta_used * kl[key] if kl else value for key, value in policy.items()}
    loss = aggregate(losses, rows, tokens, mask, aggregation)
    if mistaken("second-minus"):
        loss = -loss
    if mistaken("not-divided-by-accumulation-steps"):
        loss = loss * 4.0
    loss.backward()
    gradient = [[value.gradient for value in row] for row in lp]
    if mistaken("masked-nan"):
        # The mask is multiplied where it should select.
        spoiled = sum((0.0 * old for row, kept in zip(old_log_prob, mask) for old, k in zip(row, kept) if not k), 0.0)
        loss = loss + spoiled
    if mistaken("overflow"):
        far = max(abs(a - b) for r, s in zip(log_prob, old_log_prob) for a, b in zip(r, s))
        loss = loss * (math.nan if 20.0 < far < 30.0 else 1.0)
    return {"loss": loss.value, "d_log_prob": gradient}


def aggregate(losses, rows, tokens, mask, aggregation):
    total = sum(losses.values(), lift(0.0))
    if mistaken("token-mean-for-sequence-mean") or aggregation == "token_mean":
        if mistaken("mean-over-padding-too"):
            return total / sum(len(row) for row in mask)
        if mistaken("micro-batches-averaged"):
            half = (len(mask) + 1) // 2
            parts = [[key for key in losses if (key[0] < half) == first] for first in (True, False)]
            parts = [part for part in parts if part]
            return row_mean([row_mean([losses[key] for key in part]) for part in parts])
        return total / len(losses)
    if aggregation == "seq_mean_token_sum_norm":
        divisor = len(mask[0])
        return total / divisor if mistaken("not-divided-by-rows") else total / (divisor * len(rows))
    return row_mean([row_mean([losses[row, token] for token in tokens[row]]) for row in rows])


if MISTAKE in ("dual-clip-never-active", "micro-batches-averaged", "mean-over-padding-too", "importance-weight-unused"):

    @implements("objective.ppo", dialect="paper")
    def ppo(log_prob, old_log_prob, advantage, mask, importance_weight, clip_ratio_low, clip_ratio_high, clip_ratio_c):
        return objective(
            log_prob, old_log_prob, None, advantage, mask, clip_ratio_low, clip_ratio_high, 0.0, "ppo", "token_mean",
            clip_ratio_c, importance_weight,
        )

elif MISTAKE == "cispo-gradient-through-weight":

    @implements("objective.cispo", dialect="paper")
    def cispo(log_prob, old_log_prob, advantage, mask, clip_ratio_high):
        return objective(
            log_prob, old_log_prob, None, advantage, mask, 0.0, clip_ratio_high, 0.0, "cispo", "token_mean", None, None
        )

elif MISTAKE == "product-for-geometric-mean":

    @implements("objective.gspo", dialect="paper")
    def gspo(log_prob, old_log_prob, advantage, mask):
        return objective(
            log_prob, old_log_prob, None, advantage, mask, 3e-4, 4e-4, 0.0, "gspo", "seq_mean_token_mean", None, None
        )

elif MISTAKE == "not-divided-by-rows":

    @implements("objective.dr_grpo", dialect="paper")
    def dr_grpo(log_prob, old_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high):
        return objective(
            log_prob, old_log_prob, None, advantage, mask, clip_ratio_low, clip_ratio_high, 0.0, "ppo",
            "seq_mean_token_sum_norm", None, None,
        )

elif MISTAKE in ("population-deviation", "groups-ignored"):

    @implements("advantage.group_mean_std", dialect="trl-1.16")
    def group_mean_std(reward, group):
        ddof = 0 if mistaken("population-deviation") else 1
        advantage = []
        for mine, key in zip(reward, group):
            members = [r for r, other in zip(reward, group) if other == key or mistaken("groups-ignored")]
            mean = sum(members) / len(members)
            variance = sum((r - mean) ** 2 for r in members) / (len(members) - ddof)
            advantage.append((mine - mean) / (math.sqrt(variance) + 1e-4))
        return {"advantage": advantage}

elif MISTAKE == "k2-without-half":

    @implements("kl.k2")
    def k2(log_prob, ref_log_prob, mask):
        difference = [[(a - b) * k if k else 0.0 for a, b, k in zip(*rows)] for rows in zip(log_prob, ref_log_prob, mask)]
        return {
            "kl": [[d * d for d in row] for row in difference],
            "d_log_prob": [[2.0 * d for d in row] for row in difference],
        }

else:

    @implements("objective.grpo", dialect="paper")
    def grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient):
        return objective(
            log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient, "ppo",
            "seq_mean_token_mean", None, None,
        )


if __name__ == "__main__":
    serve(name="planted", version=MISTAKE)

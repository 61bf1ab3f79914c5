"""A GRPO loss in plain Python, with its gradient written out: it conforms.

    plumbline check -- python3 examples/adapters/grpo_pure_python.py

The loss of Shao et al. 2024 (DeepSeekMath, Eq. 3): per token the clipped surrogate minus beta times the KL estimate k3,
averaged over each response's tokens, then over the responses.
"""

import math
import pathlib
import sys

# In your own project `plumbline` is installed; here it stands two folders up.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from plumbline.adapter import implements, serve


@implements("objective.grpo", dialect="paper", inputs_as="list")
def grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient):
    loss = 0.0
    gradient = [[0.0] * len(row) for row in log_prob]
    responses = [row for row in range(len(mask)) if any(mask[row])]
    for row in responses:
        tokens = [token for token, kept in enumerate(mask[row]) if kept]
        weight = 1.0 / (len(responses) * len(tokens))
        for token in tokens:
            # One advantage for each response, or one for each token.
            per_row = advantage[row]
            a = per_row[token] if isinstance(per_row, list) else per_row
            value, derivative = clipped_surrogate(
                log_prob[row][token] - old_log_prob[row][token], a, clip_ratio_low, clip_ratio_high
            )
            kl, kl_derivative = k3(log_prob[row][token] - ref_log_prob[row][token])
            loss += weight * (value + kl_coefficient * kl)
            gradient[row][token] = weight * (derivative + kl_coefficient * kl_derivative)
    return {"loss": loss, "d_log_prob": gradient}


def clipped_surrogate(log_ratio, advantage, clip_ratio_low, clip_ratio_high):
    """-min(ratio A, clip(ratio) A) and its derivative by log_prob."""
    ratio = math.exp(log_ratio)
    clipped = min(max(ratio, 1.0 - clip_ratio_low), 1.0 + clip_ratio_high)
    if ratio * advantage <= clipped * advantage:
        return -ratio * advantage, -ratio * advantage
    return -clipped * advantage, 0.0


def k3(log_ratio):
    """exp(-d) - 1 + d and its derivative by log_prob."""
    return math.exp(-log_ratio) - 1.0 + log_ratio, 1.0 - math.exp(-log_ratio)


if __name__ == "__main__":
    serve(name="GRPO in plain Python", version="1")

"""The GRPO loss of grpo_pure_python.py with a mistake that was really made: can you see it?

    plumbline check -- python3 examples/adapters/grpo_planted_mistake.py

The check ends with exit code 1 and names the mistake.
"""

import math
import pathlib
import sys

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
            per_row = advantage[row]
            a = per_row[token] if isinstance(per_row, list) else per_row
            ratio = math.exp(log_prob[row][token] - old_log_prob[row][token])
            clipped = min(max(ratio, 1.0 - clip_ratio_low), 1.0 + clip_ratio_high)
            is_clipped = ratio * a > clipped * a
            value = -min(ratio * a, clipped * a)
            derivative = 0.0 if is_clipped else -ratio * a
            difference = log_prob[row][token] - ref_log_prob[row][token]
            kl = math.exp(difference) - 1.0 - difference
            kl_derivative = math.exp(difference) - 1.0
            loss += weight * (value + kl_coefficient * kl)
            gradient[row][token] = weight * (derivative + kl_coefficient * kl_derivative)
    return {"loss": loss, "d_log_prob": gradient}


if __name__ == "__main__":
    serve(name="GRPO with a planted mistake", version="1")

"""Two losses in plain Python, as they might stand in a project: one is right, one holds a mistake."""

import math


def grpo(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient):
    """GRPO as in Shao et al. 2024, Eq. 3, with its gradient: the mean over responses of the mean over their tokens."""
    return averaged(
        log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient,
        weight=lambda lengths, length: 1.0 / (len(lengths) * length),
    )


def grpo_by_tokens(log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient):
    """The same with the mean over all tokens of the batch: each response counts by its length."""
    return averaged(
        log_prob, old_log_prob, ref_log_prob, advantage, mask, clip_ratio_low, clip_ratio_high, kl_coefficient,
        weight=lambda lengths, length: 1.0 / sum(lengths),
    )


def averaged(log_prob, old_log_prob, ref_log_prob, advantage, mask, low, high, kl_coefficient, weight):
    loss = 0.0
    gradient = [[0.0] * len(row) for row in log_prob]
    lengths = [sum(1 for kept in row if kept) for row in mask if any(row)]
    for row, kept_row in enumerate(mask):
        tokens = [token for token, kept in enumerate(kept_row) if kept]
        for token in tokens:
            share = weight(lengths, len(tokens))
            # One advantage for each response, or one for each token.
            a = advantage[row][token] if isinstance(advantage[row], list) else advantage[row]
            ratio = math.exp(log_prob[row][token] - old_log_prob[row][token])
            clipped = min(max(ratio, 1.0 - low), 1.0 + high)
            is_clipped = ratio * a > clipped * a
            distance = log_prob[row][token] - ref_log_prob[row][token]
            value = -clipped * a if is_clipped else -ratio * a
            slope = 0.0 if is_clipped else -ratio * a
            loss += share * (value + kl_coefficient * (math.exp(-distance) - 1.0 + distance))
            gradient[row][token] = share * (slope + kl_coefficient * (1.0 - math.exp(-distance)))
    return {"loss": loss, "d_log_prob": gradient}

"""Two tests: the first passes, the second fails and says what the loss computes instead."""

from my_losses import grpo, grpo_by_tokens
from plumbline import assert_conforms


def test_grpo_is_the_papers():
    assert_conforms(grpo, "grpo", dialect="paper")


def test_grpo_by_tokens_is_the_papers(plumbline):
    plumbline.assert_conforms(grpo_by_tokens, "grpo", dialect="paper")

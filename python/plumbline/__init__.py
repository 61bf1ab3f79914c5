"""Check reinforcement-learning losses against Plumbline's reference: `assert_conforms` in a test, `plumbline.adapter` elsewhere."""

from plumbline.conforms import Report, assert_conforms, check

__all__ = ["Report", "assert_conforms", "check"]

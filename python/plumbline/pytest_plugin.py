"""The pytest plugin: a fixture `plumbline`, and an option for the seed."""

import pytest

from plumbline import conforms


def pytest_addoption(parser):
    parser.getgroup("plumbline").addoption(
        "--plumbline-seed", type=int, default=1, metavar="N", help="seed of the random cases that losses are checked on"
    )


class Plumbline:
    """`plumbline.check` and `plumbline.assert_conforms` with the seed of the command line."""

    def __init__(self, seed):
        self.seed = seed

    def check(self, function, operation, dialect=None, **options):
        """As `plumbline.check`."""
        return conforms.check(function, operation, dialect, **{"seed": self.seed, **options})

    def assert_conforms(self, function, operation, dialect=None, **options):
        """As `plumbline.assert_conforms`."""
        __tracebackhide__ = True
        return conforms.assert_conforms(function, operation, dialect, **{"seed": self.seed, **options})


@pytest.fixture
def plumbline(request):
    """Checks a loss: `plumbline.assert_conforms(my_loss, "grpo", dialect="trl-1.16")`."""
    return Plumbline(request.config.getoption("--plumbline-seed"))

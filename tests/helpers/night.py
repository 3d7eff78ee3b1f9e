"""Cases that are left to the night."""

import pytest


def at_night(*values):
    """A case of a parametrized test that repeats others with more draws, or takes as long as many of them."""
    return pytest.param(*values, marks=pytest.mark.nightly)

"""Cases that the README's command leaves out."""

import pytest


def at_night(*values):
    """A case of a parametrized test that repeats others with more draws, or takes as long as many of them."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def slow(*values):
    """A case of a parametrized test that takes a second or more where a shorter case shows the same."""
    return pytest.param(*values, marks=pytest.mark.slow)

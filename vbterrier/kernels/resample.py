"""Streams of random numbers that depend on the seed and on what they are for, on nothing else."""

from __future__ import annotations

import numpy as np


def stream(seed: int, *what: str) -> np.random.Generator:
    """A generator of its own for each seed and name, whatever else is drawn before, beside or after.

    Parameters
    ----------
    seed
        The user's seed, at least 0.
    what
        What the numbers are for: a query's id, the number of a replica.

    >>> float(stream(1, "q1").random()) == float(stream(1, "q1").random())
    True
    >>> float(stream(1, "q1").random()) == float(stream(1, "q2").random())
    False
    """
    # Lengths are part of the key, so that ("ab", "c") and ("a", "bc") differ.
    key = [number for word in what for number in (len(word), *word.encode())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))

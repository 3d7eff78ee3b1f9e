"""Streams of random numbers that depend on the seed and on what they are for, on nothing else; resamples from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Numbers of a block: 16 MB, below which starting a product costs more than it gains.
_BLOCK = 1 << 21
_DRAWN = 1 << 15
# Words of a seed, zeros among them, in front of the key in NumPy's SeedSequence.
_POOL = 4


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
    seed = int(seed)
    if seed < 0:
        raise ValueError(f"seed={seed}: expected non-negative integer")
    words = np.frombuffer(seed.to_bytes(4 * max(_POOL, -(-seed.bit_length() // 32)), "little"), dtype="<u4")
    # What SeedSequence(seed, spawn_key=key) makes of both, in half the time: it takes numbers one by one.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(np.append(words, np.array(key, np.uint32)))))


def resamples(n: int, n_resamples: int, draws: np.random.Generator) -> Iterator[Floats]:
    """How often each of n units is in each bootstrap resample, in blocks of shape (rows, n) that sum to n along a row.

    Sums over all resamples are then one product of matrices for each block, whatever is summed; how the resamples are
    cut into blocks does not change them.

    >>> sum(len(block) for block in resamples(3, 100, stream(1, "topics")))
    100
    >>> all((block.sum(axis=1) == 3).all() for block in resamples(3, 100, stream(1, "topics")))
    True
    """
    for rows in _blocks(n, n_resamples):
        counts = np.empty((rows, n))
        # What is drawn together stays in the processor's cache.
        for few in np.array_split(counts, max(1, min(rows, rows * n // _DRAWN))):
            drawn = draws.integers(n, size=few.shape, dtype=np.int32) + n * np.arange(len(few))[:, None]
            few[:] = np.bincount(drawn.ravel(), minlength=few.size).reshape(few.shape)
        yield counts


def resampled_means(values: Floats, n_resamples: int, draws: np.random.Generator) -> Floats:
    """Means of columns over resampled rows, the same rows for all columns, shape (n_resamples, m) from (n, m).

    >>> resampled_means(np.array([[1.0, 5.0], [1.0, 5.0]]), 2, stream(1, "topics")).tolist()
    [[1.0, 5.0], [1.0, 5.0]]
    """
    n = len(values)
    return np.concatenate([block @ values / n for block in resamples(n, n_resamples, draws)])


def random_signs(n: int, n_resamples: int, draws: np.random.Generator) -> Iterator[Floats]:
    """Signs of n units, 1 or -1 with even chances, in blocks of shape (rows, n).

    >>> [np.unique(block).tolist() for block in random_signs(2, 50, stream(1, "signs"))]
    [[-1.0, 1.0]]
    """
    for rows in _blocks(n, n_resamples):
        yield 1.0 - 2.0 * draws.integers(2, size=(rows, n), dtype=np.int32).astype(np.float64)


def _blocks(n: int, n_resamples: int) -> Iterator[int]:
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, n_resamples, step):
        yield min(step, n_resamples - start)

"""Nested resampling: topics drawn with replacement, and for each copy of a topic a draw of what is uncertain in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.resample import resamples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.uint16]

# More copies of one topic than any resample of topics has.
_MOST = np.iinfo(np.uint16).max


def resampled_counts(n: int, n_resamples: int, draws: np.random.Generator) -> Counts:
    """How often each of n topics is in each resample, shape (n, n_resamples), in two bytes each.

    >>> resampled_counts(3, 4, np.random.default_rng(1)).sum(axis=0).tolist()
    [3, 3, 3, 3]
    """
    blocks = [np.minimum(block, _MOST).astype(np.uint16) for block in resamples(n, n_resamples, draws)]
    return np.ascontiguousarray(np.concatenate(blocks).T)


def nested_noise(draws: Iterable[Floats], often: Counts) -> tuple[Floats, Floats, Floats]:
    """What draws within topics add to the mean of each resample of topics, and their moments.

    Every copy of a topic takes a draw of its own, so that the noise of a resample has the variance ``Σ_t c_t σ_t²/n²``,
    ``Σ_t σ_t²/n²`` on average over resamples.

    Parameters
    ----------
    draws
        For each of n topics the draws of m quantities, shape (m, B); one topic is held at a time.
    often
        How often each topic is in each of B resamples, shape (n, B).

    Returns
    -------
    (noise, means, variances)
        Deviations of the resampled means, shape (m, B); mean and unbiased variance of the draws, each of shape (m, n).

    Examples
    --------
    >>> noise, means, variances = nested_noise([np.array([[0.0, 1.0]])], np.array([[1, 1]], dtype=np.uint16))
    >>> noise.tolist(), means.tolist(), variances.tolist()
    ([[-0.5, 0.5]], [[0.5]], [[0.5]])
    """
    noise, moments = np.zeros((1, 1)), []
    for times, scores in zip(often, draws, strict=True):
        # Numbers that are all the same have no spread, whatever the rounding of their mean.
        same = np.ptp(scores, axis=1, keepdims=True) == 0
        mean = np.where(same, scores[:, :1], scores.mean(axis=1, keepdims=True))
        away = scores - mean
        moments.append((mean[:, 0], (away**2).sum(axis=1) / (scores.shape[1] - 1)))
        if noise.shape != scores.shape:
            noise = np.zeros(scores.shape)
        for copy in range(int(times.max()) if away.any() else 0):
            noise += np.where(times > copy, np.roll(away, copy, axis=1), 0.0)
    means, variances = np.stack(moments, axis=-1)
    return noise / len(often), means, variances


def resampled_variances(values: Floats, often: Counts) -> tuple[Floats, Floats]:
    """Means of rows of values over resampled topics, and their variances, each (m, n_resamples) from (m, n).

    Variances have the divisor n - 1 and a factor n/(n - 1) more: resamples are that much narrower than samples.

    >>> means, variances = resampled_variances(np.array([[1.0, 3.0]]), np.array([[1, 2], [1, 0]], dtype=np.uint16))
    >>> means.tolist(), variances.tolist()
    ([[2.0, 1.0]], [[4.0, 0.0]])
    """
    n = len(often)
    # About their mean, so that squares lose no digits.
    center = values.mean(axis=1, keepdims=True)
    weights = often.astype(np.float64) / n
    means = (values - center) @ weights
    squares = (values - center) ** 2 @ weights
    return means + center, np.maximum(squares - means**2, 0.0) * (n / (n - 1)) ** 2

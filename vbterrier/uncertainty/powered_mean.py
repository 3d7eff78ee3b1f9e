"""Means of labels that few queries have, with the help of a score that all have: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.parameters import choice, number
from vbterrier.kernels.power_tuning import left_out_slopes
from vbterrier.uncertainty.intervals import check_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ABOUT = ("population", "these")


@dataclass(frozen=True, eq=False)
class PoweredMean:
    """Estimates of means, the ends of their intervals and the weights of the score, arrays of one shape."""

    value: Floats
    low: Floats
    high: Floats
    lam: Floats


def prediction_powered_mean(
    labels: Any, scores: Any, others: Any, *, level: float = 0.95, lam: float | None = None, about: str = "population"
) -> PoweredMean:
    """The mean of labels that few queries have, with the help of a score that all have.

    ``mean_i [Y_i + λ (f̄ - f_i)]`` over the labelled queries, f̄ the mean score of all N queries: the labels, moved by
    as much as the labelled queries are easier or harder, by their scores, than all are.

    Parameters
    ----------
    labels, scores
        Y and f of the labelled queries, shape (..., n), n at least 2.
    others
        f of the queries without labels, shape (..., m).
    level
        Nominal coverage.
    lam
        λ; ``None`` to tune it. 0 takes the labels alone, 1 the score as it is, corrected by its mean error.
    about
        ``"population"``: the queries are a sample of a kind of queries, whose mean is wanted. ``"these"``: the mean of
        these very ``N = n + m`` queries.

    Returns
    -------
    PoweredMean
        Arrays of shape (...).

    Raises
    ------
    InputError
        Shapes that do not fit, fewer than two labels, a number that is missing or infinite.
    ParameterError
        An unknown ``about``, a level outside (0, 1), a λ that is no number.

    Notes
    -----
    See :func:`prediction_powered`, which does this for frames.

    Examples
    --------
    >>> found = prediction_powered_mean([1.0, 0.0, 1.0], [0.9, 0.1, 0.8], [0.5, 0.7, 0.9, 0.3], lam=1)
    >>> round(float(found.value), 3)
    0.667
    """
    choice("about", about, ABOUT)
    check_level(level)
    fixed = None if lam is None else number("lam", lam)
    y, f, rest = (_array(given, what) for given, what in ((labels, "labels"), (scores, "scores"), (others, "others")))
    n, m = y.shape[-1], rest.shape[-1]
    if f.shape != y.shape or rest.shape[:-1] != y.shape[:-1]:
        raise InputError(
            f"labels, scores and others have shapes {y.shape}, {f.shape} and {rest.shape}; wanted (..., n), (..., n) "
            "and (..., m)"
        )
    if n < 2:  # noqa: PLR2004 - two labels are the least that can differ
        raise InputError(f"{n} labels; an interval wants at least two")
    every = np.concatenate([f, rest], axis=-1)
    mean = every.mean(axis=-1, keepdims=True)
    # No label decides the weight of its own query. Given the other labelled queries, it is any one of those that are
    # left, whose mean score lies between its own and the mean of those without labels: so the estimate is unbiased.
    weights = np.full_like(y, fixed) if fixed is not None else np.maximum(left_out_slopes(y, f), 0.0)
    share = m / (n + m)
    unlabelled = rest.mean(axis=-1, keepdims=True) if m else mean
    value = (y + weights * share * (unlabelled - f)).mean(axis=-1)
    used = weights.mean(axis=-1)
    if about == "these":
        variance = share * (y - weights * (f - mean)).var(axis=-1, ddof=1) / n
    else:
        # What labels and what scores leave open: PPI's two terms, whose λ is ours times the share without labels.
        left = (y - weights * share * (f - mean)).var(axis=-1, ddof=1) / n
        variance = left + used**2 * share * every.var(axis=-1, ddof=1) / (n + m)
    reach = _quantile(n, level) * np.sqrt(variance)
    return PoweredMean(value, value - reach, value + reach, used)


def _array(given: Any, what: str) -> Floats:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim < 1 or not np.isfinite(values).all():
        raise InputError(f"{what}: wanted finite numbers, the queries along the last axis; leave out what has no value")
    return values


def _quantile(n: int, level: float) -> float:
    from scipy import special

    return float(special.stdtrit(n - 1, (1 + level) / 2))

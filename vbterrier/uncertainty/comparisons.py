"""Differences between systems on the same topics, with intervals and tests."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.contracts import require
from vbterrier.kernels.resample import stream
from vbterrier.uncertainty.intervals import N_RESAMPLES, topics_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COLUMNS = ("name_a", "name_b", "measure", "diff", "low", "high", "p_value", "p_adjusted", "n_qids", "test")
TEST = "sign-flip randomisation, Holm over pairs"
# Signs held in memory at a time.
_BATCH = 4_000_000
# Sums this close, relative to what they add up, are one sum in another order.
_EQUAL = 1e-12


def comparisons(
    values: pd.DataFrame,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    method: str = "percentile",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare every two systems, or all with a baseline, topic by topic.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value.
    baseline
        The system that all others are compared with; ``None`` for all pairs.
    level, method
        Of the bootstrap interval of the difference: ``"percentile"`` or ``"bca"``.
    n_resamples
        Resamples of the topics, and sign flips of the test.
    seed
        Decides both.

    Returns
    -------
    pandas.DataFrame
        The P frame: name_a, name_b, measure, diff (mean of a less that of b), low, high, p_value (two-sided, of the
        hypothesis that the sign of a topic's difference is chance), p_adjusted (Holm, over the pairs of one measure),
        n_qids, test. Two systems without a single topic that differs have p 1.

    Raises
    ------
    InputError
        Systems with different topics; a value that is missing.
    ParameterError
        A baseline that is not there.

    Examples
    --------
    >>> values = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "ES@5",
    ...                        "value": [0.5, 1.0, 0.25, 0.5]})
    >>> comparisons(values)[["name_a", "name_b", "diff"]].values.tolist()
    [['a', 'b', 0.375]]
    """
    require(values, ("name", "qid", "measure", "value"), "values")
    rows: list[tuple[Any, ...]] = []
    for measure, group in values.groupby("measure", sort=False):
        table = _wide(group, str(measure))
        pairs = pairs_of(list(table.columns), baseline)
        if not pairs:
            continue
        differences = np.stack([(table[a] - table[b]).to_numpy() for a, b in pairs])
        p_values = _sign_flips(differences, n_resamples, seed)
        for (a, b), difference, p, adjusted in zip(pairs, differences, p_values, holm(p_values), strict=True):
            ends = topics_interval(difference, level=level, method=method, n_resamples=n_resamples, seed=seed)
            mean = float(difference.mean())
            rows.append((a, b, measure, mean, ends.low, ends.high, p, adjusted, len(difference), TEST))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _wide(group: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A row a topic, a column a system."""
    table = group.pivot(index="qid", columns="name", values="value")[group["name"].unique()]
    if table.isna().any(axis=None):
        odd = table.index[table.isna().any(axis=1)]
        raise InputError(
            f"values: of {measure}, {len(odd)} topics ({examples(odd)}) lack a value for some system; compare systems "
            "on the topics that all have (topics='common')"
        )
    return table


def pairs_of(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Every two systems, or all with the baseline.

    Raises
    ------
    ParameterError
        A baseline that is not there.

    >>> pairs_of(["a", "b", "c"], "b")
    [('a', 'b'), ('c', 'b')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise ParameterError(
            f"baseline={baseline!r}: no such system; found {examples(names)}.{nearest(baseline, names)}"
        )
    return [(name, baseline) for name in names if name != baseline]


def _sign_flips(differences: Floats, n_resamples: int, seed: int) -> Floats:
    """Two-sided p of each row: the share of flips that are as far out, of all flips where ``n_resamples`` are enough.

    Random flips come with what was seen, which is one of them (Phipson and Smyth 2010), and are the same for all rows.
    """
    n = differences.shape[1]
    least = np.abs(differences.sum(axis=1)) - _EQUAL * np.abs(differences).sum(axis=1)
    if 2**n <= n_resamples:
        every = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return _as_far(every, differences, least) / len(every)
    draws = stream(seed, "sign flips")
    step = max(1, _BATCH // n)
    as_far = np.ones(len(differences))
    for done in range(0, n_resamples, step):
        as_far += _as_far(draws.integers(2, size=(min(step, n_resamples - done), n)), differences, least)
    return as_far / (n_resamples + 1)


def _as_far(flipped: NDArray[np.int64], differences: Floats, least: Floats) -> Floats:
    """How many flips move the sum of each row at least so far from 0, shape (n_pairs,)."""
    return np.asarray((np.abs((1.0 - 2.0 * flipped) @ differences.T) >= least).sum(axis=0), dtype=np.float64)


def holm(p_values: Floats) -> Floats:
    """Holm's step-down adjustment of p-values, shape (n,).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted

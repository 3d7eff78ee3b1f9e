"""Tests of paired differences, of many pairs of systems at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.resample import ENDLESS, random_signs, resamples, stream, studentised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vbterrier.annotations import Floats


# The tests, and what the P frame calls them.
TESTS = {
    "randomisation": "sign-flip randomisation",
    "t": "paired t",
    "wilcoxon": "Wilcoxon signed-rank",
    "bootstrap": "studentised bootstrap",
}
# Those that resample.
RESAMPLED = ("randomisation", "bootstrap")
# Statistics of resamples held in memory at a time.
_BATCH = 4_000_000
# A single topic has no spread that a difference could be large beside.
_LEAST = 2
# So few topics have their signed ranks flipped in all ways where some are tied, as SciPy does.
_FEW = 13
# Statistics this close are one in another order of summation.
_EQUAL = 1e-12


def paired_p(differences: Floats, test: str, *, n_resamples: int, seed: int) -> Floats:
    """Two-sided p of the hypothesis that the differences of a pair are around 0, shape (k,).

    Parameters
    ----------
    differences
        A row a topic, a column a pair, shape (n, k).
    test
        ``"randomisation"``: under the hypothesis, the sign of each topic's difference is chance. p is the share of sign
        flips whose mean is as far from 0: of all ``2^n`` where ``n_resamples`` are enough, otherwise of random ones, to
        which what was seen is added (Phipson and Smyth 2010). Exact where both systems could have swapped their scores.
        ``"bootstrap"``: the share of resampled topics, of differences moved to mean 0, whose t is as far out (Efron and
        Tibshirani 1993, section 16.4; for pairs of systems Sakai, SIGIR 2006, figure 1), what was seen added.
        ``"t"``: Student's. ``"wilcoxon"``: signed ranks as SciPy has them: differences of 0 are left out, the law is
        exact without ties up to 50 topics, with ties up to 13, and normal without a correction for continuity beyond.
    n_resamples
        Sign flips or resamples, the same for all pairs.
    seed
        Decides them.

    Returns
    -------
    numpy.ndarray
        1 where no topic differs, and for a single topic. Where all differ by the same, t is infinite and its p 0.

    >>> paired_p(np.array([[0.1], [0.3], [0.2]]), "randomisation", n_resamples=100, seed=0).tolist()
    [0.25]
    """
    if len(differences) < _LEAST:
        return np.ones(differences.shape[1])
    if test in RESAMPLED:
        return max_t(differences, test, n_resamples=n_resamples, seed=seed)[0]
    return _student(differences) if test == "t" else _wilcoxon(differences)


def max_t(differences: Floats, test: str, *, n_resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The p-value of each pair, and adjusted by the largest ``|t|`` of all pairs under joint sign flips or resamples.

    Westfall and Young's step-down (1993, algorithm 2.8): a pair is compared with the largest ``|t|`` among those that
    were seen no farther out than it. What pairs have in common, as a system, counts: over all pairs it corrects as
    Tukey's, against a baseline as Dunnett's. It bounds the chance of any false alarm where the hypotheses
    that are true are so jointly.

    Parameters
    ----------
    differences, test, n_resamples, seed
        As for :func:`paired_p`, of a test that resamples.

    Returns
    -------
    (numpy.ndarray, numpy.ndarray)
        Both of shape (k,); the second is never below the first.

    Notes
    -----
    Time is ``n_resamples · n · k``, in products of matrices. Memory is bounded.

    >>> same = np.array([[0.1, 0.1], [0.3, 0.3], [0.2, 0.2]])
    >>> [p.tolist() for p in max_t(same, "randomisation", n_resamples=100, seed=0)]
    [[0.25, 0.25], [0.25, 0.25]]
    """
    if len(differences) < _LEAST:
        return np.ones(differences.shape[1]), np.ones(differences.shape[1])
    order = np.argsort(_LAWS[test](differences, n_resamples, seed).seen, kind="stable")
    law = _LAWS[test](differences[:, order], n_resamples, seed)
    as_far, largest = np.zeros((2, len(order)))
    for block in law.blocks:
        before = np.zeros(len(block))
        step = max(1, _BATCH // len(block))
        for start in range(0, len(order), step):
            these = slice(start, start + step)
            drawn = law.drawn(block, these)
            least = law.seen[these, None] - _EQUAL * np.sqrt(len(differences))
            as_far[these] += np.count_nonzero(drawn >= least, axis=1)
            np.maximum(drawn[0], before, out=drawn[0])
            np.maximum.accumulate(drawn, axis=0, out=drawn)
            largest[these] += np.count_nonzero(drawn >= least, axis=1)
            before = drawn[-1]
    found = np.empty((2, len(order)))
    # A pair that was seen less far out is never the more certain one.
    stepped = np.maximum.accumulate(largest[::-1])[::-1]
    found[:, order] = (np.stack([as_far, stepped]) + law.n_seen) / (law.n_draws + law.n_seen)
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class _NullDistribution:
    """What ``|t|`` of each pair was seen, and what it would be under the hypothesis; both up to one rising function.

    Parameters
    ----------
    seen
        Shape (k,).
    blocks
        Signs or counts of topics, shape (rows, n).
    drawn
        From a block and a slice of pairs, shape (pairs, rows).
    n_draws
        Rows of all blocks.
    n_seen
        1 where what was seen joins the draws, 0 where it is one of them.
    """

    seen: Floats
    blocks: Iterator[Floats]
    drawn: Callable[[Floats, slice], Floats]
    n_draws: int
    n_seen: int


def _sign_flips(differences: Floats, n_resamples: int, seed: int) -> _NullDistribution:
    # Flips leave the sum of squares as it is, so that t rises with the mean of what is scaled by its root.
    size = np.sqrt((differences**2).sum(axis=0))
    unit = np.divide(differences, size, out=np.zeros_like(differences), where=size > 0).T
    n = unit.shape[1]
    every = 2**n <= n_resamples
    blocks = _every_sign(n) if every else random_signs(n, n_resamples, stream(seed, "sign flips"))

    def drawn(block: Floats, these: slice) -> Floats:
        return np.asarray(np.abs(unit[these] @ block.T))

    return _NullDistribution(np.abs(unit.sum(axis=1)), blocks, drawn, 2**n if every else n_resamples, 0 if every else 1)


def _every_sign(n: int) -> Iterator[Floats]:
    step = max(1, _BATCH // max(n, 1))
    for start in range(0, 2**n, step):
        numbers = np.arange(start, min(start + step, 2**n))[:, None]
        yield 1.0 - 2.0 * (numbers >> np.arange(n) & 1).astype(np.float64)


def _bootstrap(differences: Floats, n_resamples: int, seed: int) -> _NullDistribution:
    n = len(differences)
    mean, spread = differences.mean(axis=0), spread_of(differences)
    scaled = np.divide(differences - mean, spread, out=np.zeros_like(differences), where=spread > 0).T
    squares = scaled**2
    seen = np.divide(np.abs(mean), spread, out=np.where(mean == 0, 0.0, ENDLESS), where=spread > 0)

    def drawn(block: Floats, these: slice) -> Floats:
        return np.abs(studentised(scaled[these] @ block.T / n, squares[these] @ block.T / n))

    return _NullDistribution(seen, resamples(n, n_resamples, stream(seed, "bootstrap test")), drawn, n_resamples, 1)


_LAWS = {"randomisation": _sign_flips, "bootstrap": _bootstrap}


def spread_of(differences: Floats) -> Floats:
    """The standard deviation (divisor n) of each column, 0 where it differs from 0 by rounding alone, shape (k,).

    >>> spread_of(np.array([[0.1, 1.0], [0.1, -1.0], [0.1, 1.0], [0.1, -1.0]])).tolist()
    [0.0, 1.0]
    """
    spread = differences.std(axis=0)
    return np.where(spread > _EQUAL * np.abs(differences).max(axis=0, initial=0.0), spread, 0.0)


def t_of(differences: Floats, against: float = 0.0) -> Floats:
    """Student's t of the mean of each column against a number, shape (k,): 0, or infinite, where nothing varies.

    NaN for a single topic.

    >>> t_of(np.array([[1.0, 0.5, 0.0], [3.0, 0.5, 0.0]])).tolist()
    [2.0, inf, 0.0]
    """
    n = len(differences)
    distance, spread = differences.mean(axis=0) - against, spread_of(differences)
    distance = np.where(np.abs(distance) > _EQUAL * np.abs(differences).max(axis=0, initial=0.0), distance, 0.0)
    flat = np.where(distance == 0, 0.0, np.copysign(np.inf, distance)) if n >= _LEAST else distance * np.nan
    found: Floats = np.divide(distance * np.sqrt(n - 1), spread, out=flat, where=spread > 0)
    return found


def _student(differences: Floats) -> Floats:
    from scipy import special

    return np.asarray(2 * special.stdtr(len(differences) - 1, -np.abs(t_of(differences))))


def _wilcoxon(differences: Floats) -> Floats:
    from scipy import stats

    n = len(differences)
    largest = np.abs(differences).max(axis=0)
    found = np.ones(differences.shape[1])
    differs = np.flatnonzero(largest > 0)
    # Differences that are one number but for rounding are ties.
    scaled = np.round(differences[:, differs] / largest[differs], 12)
    ordered = np.sort(np.abs(scaled), axis=0)
    tied = (ordered[0] == 0) | (np.diff(ordered, axis=0) == 0).any(axis=0)
    if n <= _FEW and tied.any():
        size = np.abs(scaled[:, tied])
        ranks = np.sign(scaled[:, tied]) * (stats.rankdata(size, axis=0) - (size == 0).sum(axis=0))
        found[differs[tied]] = paired_p(ranks, "randomisation", n_resamples=2**n, seed=0)
        differs, scaled, tied = differs[~tied], scaled[:, ~tied], tied[~tied]
    # SciPy takes one null law for all columns of a call, exact if none has ties: no pair may change another's.
    for alike in (tied, ~tied):
        if alike.any():
            found[differs[alike]] = stats.wilcoxon(scaled[:, alike], axis=0).pvalue
    return found

"""Discriminative power and scores as a function of the number of queries."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, number, warn, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ranges import is_linearised
from vbterrier.frames.score_table import ScoreTable, answer_codes, refuse_ratios_of_means
from vbterrier.kernels import linking
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import resampled_means, stream
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vbterrier.annotations import Floats, Ints


ORDERS = ("given", "random")
# The kinds of queries and answers.
ANSWER_COLUMNS = ("gold", "answer")
# Default number of sizes.
_N_SIZES = 20
# Numbers in memory at a time: 32 MB.
_BLOCK_CELLS = 1 << 22
SIZE_COLUMNS = ("name", "measure", "n_qids", "mean", "low", "high", "level", "order", "n_subsets", "seed")
TESTS = ("bootstrap", "t")
BESTS = ("whole", "subset")
N_RESAMPLES = 1000
COLUMNS = (
    *("measure", "n_qids", "n_systems", "n_not_worse", "low", "high", "order", "n_subsets", "level", "test"),
    *("n_resamples", "seed", "share_significant", "best"),
)


def checked_sizes(sizes: Iterable[int] | None, n: int, least: int) -> list[int]:
    """Increasing numbers of queries; twenty by default."""
    if sizes is None:
        return sorted({max(round(n * part / _N_SIZES), min(least, n)) for part in range(1, _N_SIZES + 1)})
    valid = sorted({whole("sizes", size, low=least, high=n, meaning=", the number of queries") for size in sizes})
    if not valid:
        raise ParameterError("sizes: none; wanted numbers of queries, or None for twenty sizes")
    return valid


def query_orders(n: int, order: str, n_subsets: int, seed: int, held: int) -> Iterator[Ints]:
    """Permutations of all queries, whose prefixes are the subsets, in blocks of shape (rows, n).

    ``"given"``: their order of appearance; ``"random"``: ``n_subsets`` random orders. The caller keeps ``held`` numbers
    in memory for each subset.
    """
    if order == "given":
        yield np.arange(n)[None, :]
        return
    draws, step = stream(seed, "subsets"), max(1, _BLOCK_CELLS // max(held, n))
    for done in range(0, n_subsets, step):
        yield draws.random((min(step, n_subsets - done), n)).argsort(axis=1)


def band(values: Floats, level: float, order: str) -> Floats:
    """Quantile band of a share ``level`` of the subsets, which includes the mean, (2, ...) of (n_subsets, ...).

    NaN for the given order.
    """
    mean = values.mean(axis=0)
    if order == "given":
        return np.full((2, *mean.shape), np.nan)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.stack([np.minimum(low, mean), np.maximum(high, mean)])


def _tables(values: Any, *, by_id: bool) -> Iterator[tuple[str, list[str], Floats, Callable[[Floats], Floats]]]:
    """Yield measures, systems, contributions of queries, and the function of their means that gives the scores.

    Contributions have the shape (n, m) for values, whose means are the scores, and (n, 8 m) for answers of linkers,
    which are counted by kind.
    """
    if not set(ANSWER_COLUMNS) <= set(getattr(values, "columns", ())):
        scores = ScoreTable.of_frame(values)
        refuse_ratios_of_means(scores.measures)
        for view in scores.views(by_id=by_id):
            measure, names, table = view.measure, view.names, view.values
            if is_linearised(measure):
                raise InputError(
                    f"values: {measure} is a ratio of sums, which the values of some queries do not give; keep the "
                    "columns gold and answer of vbterrier.score, or pass the frame answers of a linking_report"
                )
            yield measure, names, table, lambda means: means
        return
    frame = pandas_frame(values, "values")
    if "measure" not in frame.columns:
        frame = pd.concat([frame.assign(measure=measure) for measure in linking.FIGURES], ignore_index=True)
    require(frame, ("name", "qid", "measure", *ANSWER_COLUMNS), "values")
    for measure, rows in frame.groupby(frame["measure"].astype(str), sort=False):
        figure = re.split(r"[(@]", measure, maxsplit=1)[0]
        if figure not in linking.FIGURES:
            yield from _tables(rows.drop(columns=list(ANSWER_COLUMNS)), by_id=by_id)
            continue
        coded = rows[["name", "qid", "measure"]].assign(value=answer_codes(rows).astype(np.float64))
        ((_, names, _, table, _),) = ScoreTable.of_frame(coded).views(by_id=by_id)
        counted = (table[:, :, None] == np.arange(linking.N_ANSWERS)).reshape(len(table), -1).astype(np.float64)
        shape, place = (len(names), linking.N_ANSWERS), linking.FIGURES.index(figure)
        undefined = 0.0 if "undefined='zero'" in measure else np.nan
        yield measure, names, counted, partial(_figures, shape=shape, place=place, undefined=undefined)


def _figures(means: Floats, *, shape: tuple[int, int], place: int, undefined: float) -> Floats:
    """A figure of m systems from the shares of their answers, (..., m) of (..., 8 m)."""
    values = linking.figure(means.reshape(*means.shape[:-1], *shape), place=place)
    return np.where(np.isnan(values), undefined, values)


@with_usual_errors
def score_by_size(
    values: Any,
    *,
    sizes: Iterable[int] | None = None,
    order: str = "given",
    n_subsets: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Mean scores of systems as a function of the number of queries.

    Parameters
    ----------
    values, sizes
        The V frame: name, qid, measure, value; or the frame ``answers`` of a
        :func:`vbterrier.linking.linking_report`; and numbers of queries, 1 to n, by default 20 from ``n/20`` to n.
        Linking measures are ratios of sums, computed from the sums of each subset: their V frame needs the columns gold
        and answer, as :func:`vbterrier.score` returns them.
    order
        ``"given"``: the first queries in their order of appearance, as in Figure 1 of the source; ``"random"``: random
        subsets.
    n_subsets, seed
        Number of random subsets of each size, and their seed. Subsets are nested over sizes, and the same for all
        systems.
    level
        Share of the subsets in the band.

    Returns
    -------
    pandas.DataFrame
        One row per measure, system and size: name, measure, n_qids, mean, low, high (NaN with ``order="given"``),
        level, order, n_subsets, seed.

    Raises
    ------
    InputError, ParameterError
        Systems with different topics, missing values; a size out of range, an unknown order.

    Notes
    -----
    The band refers to subsets of these queries and closes at the full set; it is not a confidence interval for other
    queries, see :func:`interval_width` and ``vbterrier.stats.intervals``. A figure that is undefined in a subset is
    NaN, or 0 for measures with ``undefined='zero'``.

    Source: Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 3.

    Examples
    --------
    >>> frame = pd.DataFrame({"name": "a", "qid": ["1", "2", "3"], "measure": "AP", "value": [0.0, 1.0, 0.5]})
    >>> score_by_size(frame, sizes=[1, 2, 3])["mean"].tolist()
    [0.0, 0.5, 0.5]
    """
    choice("order", order, ORDERS)
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    n_subsets = whole("n_subsets", n_subsets) if order == "random" else 1
    frames = [pd.DataFrame(columns=list(SIZE_COLUMNS))]
    for measure, names, table, figure in _tables(values, by_id=order == "random"):
        n_topics, n_all = checked_sizes(sizes, len(table), 1), len(table)
        blocks = query_orders(n_all, order, n_subsets, seed, n_all)
        parts = [np.stack([_membership(block[:, :n], n_all) @ table / n for n in n_topics], axis=1) for block in blocks]
        means = figure(np.concatenate(parts))
        low, high = band(means, level, order)
        keys = pd.MultiIndex.from_product([names, n_topics], names=["name", "n_qids"])
        summary = {"mean": means.mean(axis=0), "low": low, "high": high}
        columns = {column: numbers.T.ravel() for column, numbers in summary.items()}
        frames.append(pd.DataFrame(columns, index=keys).reset_index().assign(measure=measure))
    made = pd.concat(frames[1:] or frames, ignore_index=True)
    return made.assign(level=level, order=order, n_subsets=n_subsets, seed=seed)[list(SIZE_COLUMNS)]


def _membership(subsets: Ints, n: int) -> Floats:
    """Indicator matrix of the queries in each subset, shape (rows, n)."""
    members = np.zeros((len(subsets), n))
    np.put_along_axis(members, subsets, 1.0, axis=1)
    return members


@with_usual_errors
def discriminative_power(
    values: Any,
    *,
    sizes: Iterable[int] | None = None,
    order: str = "given",
    n_subsets: int = 50,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    test: str = "bootstrap",
    best: str = "whole",
    seed: int = 0,
) -> pd.DataFrame:
    """Discriminative power as a function of the number of queries: systems not significantly worse than the best.

    Parameters
    ----------
    values, sizes, order, n_subsets
        See :func:`score_by_size`; at least two systems, sizes from 2. The given order is that of Figure 4 of the
        source.
    level
        Tests are at the significance level ``1 - level``; also the share of the subsets in the band.
    n_resamples, seed
        Number of resamples of the queries of a subset, the same positions for all subsets of a size; seed of both.
    test
        One-tailed test of the paired differences from the best system. ``"bootstrap"``: p is the share of resamples
        (including the observed sample) with a mean difference of at most 0. ``"t"``: Student's paired t.
    best
        The reference system: the best over all queries (``"whole"``, as in the source), or the best of the subset
        (``"subset"``), which is biased in small subsets.

    Returns
    -------
    pandas.DataFrame
        One row per measure and size: measure, n_qids, n_systems, n_not_worse (mean over subsets, without the best
        system), low, high (NaN in the given order), order, n_subsets, level, test, n_resamples, seed,
        share_significant (of pairs of systems by the two-tailed test, mean over subsets), best.

    Raises
    ------
    InputError, ParameterError
        See :func:`score_by_size`; an unknown test or best.

    Notes
    -----
    As in the source, p-values are not corrected for the number of systems. The bootstrap exceeds its false positive
    rate of 5 % at level .95 for few queries: .105 of 10,000 pairs at 5 queries, .081 at 10, .058 at 25, .055 at 50
    (normal differences); ``"t"`` has .05. The cost is quadratic in the number of systems.

    Source: as for :func:`score_by_size`, section 3.3; Sakai: Evaluating evaluation metrics based on the bootstrap,
    SIGIR 2006 (``share_significant``).

    Examples
    --------
    >>> frame = pd.DataFrame({"name": ["a"] * 9 + ["b"] * 9, "qid": [*map(str, range(9))] * 2, "measure": "AP"})
    >>> frame["value"] = [0.6, 0.8, 0.7] * 3 + [0.5, 0.1, 0.2] * 3
    >>> discriminative_power(frame, sizes=[3, 9], test="t")["n_not_worse"].tolist()
    [1.0, 0.0]
    """
    choice("order", order, ORDERS)
    choice("test", test, TESTS)
    choice("best", best, BESTS)
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    n_subsets = whole("n_subsets", n_subsets) if order == "random" else 1
    n_resamples = whole("n_resamples", n_resamples) if test == "bootstrap" else 0
    rows: list[tuple[Any, ...]] = []
    for measure, names, table, figure in _tables(values, by_id=order == "random"):
        if test == "t" and table.shape[1] > len(names):
            raise ParameterError("test='t': ratios of sums have no values of queries; wanted test='bootstrap'")
        if len(names) < 2:  # noqa: PLR2004 - a pair
            warn(f"values: {measure} has one system; wanted at least two")
            continue
        top = int(np.nan_to_num(figure(table.mean(axis=0)), nan=-np.inf).argmax()) if best == "whole" else None
        held = table.shape[1] * max(n_resamples, len(table), len(names))
        n_topics = checked_sizes(sizes, len(table), 2)
        orders = query_orders(len(table), order, n_subsets, seed, held)
        subsets = ([np.sort(block[:, :n]) for n in n_topics] for block in orders)
        tested = [
            [_significant(table[rows], figure, top, level, n_resamples, seed) for rows in block] for block in subsets
        ]
        results = np.concatenate([np.stack(block, axis=1) for block in tested])
        low, high = band(results[..., 0], level, order)
        not_worse, share_significant = results.mean(axis=0).T
        about = (order, n_subsets, level, test, n_resamples, seed)
        rows += [
            (measure, n, len(names), *counted, *about, share, best)
            for n, *counted, share in zip(n_topics, not_worse, low, high, share_significant, strict=True)
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _significant(
    values: Floats,
    figure: Callable[[Floats], Floats],
    top: int | None,
    level: float,
    n_resamples: int,
    seed: int,
) -> Floats:
    """Systems not worse than the best, and share of significant pairs, shape (rows, 2).

    ``values``: the contributions of queries, shape (rows, n, columns).
    """
    p_values = _by_bootstrap(values, figure, n_resamples, seed) if n_resamples else _by_t(values)
    # In floating point, 1 - 0.9 is below 0.1.
    error = round(1 - level, 12)
    m = p_values.shape[2]
    scores = np.nan_to_num(figure(values.mean(axis=1)), nan=-np.inf)
    leader = scores.argmax(axis=1) if top is None else np.full(len(values), top)
    others = np.arange(m) != leader[:, None]
    against = np.take_along_axis(p_values, leader[:, None, None], axis=1)[:, 0]
    not_worse = ((against > error) & others).sum(axis=1).astype(np.float64)
    # Two-tailed: either direction at half the error, of which at most one is significant.
    share_significant = (p_values <= error / 2).sum(axis=(1, 2)) / (m * (m - 1) / 2)
    return np.stack([not_worse, share_significant], axis=1)


def _by_bootstrap(values: Floats, figure: Callable[[Floats], Floats], n_resamples: int, seed: int) -> Floats:
    """One-tailed p-values that the first system is better than the second, shape (rows, m, m)."""
    rows, n, n_columns = values.shape
    columns = values.transpose(1, 0, 2).reshape(n, rows * n_columns)
    sums = resampled_means(columns, n_resamples, stream(seed, "resamples", str(n)))
    means = figure(sums.reshape(len(sums), rows, n_columns))
    m = means.shape[2]
    means = means.reshape(len(sums), rows * m)
    not_better = np.full((rows, m, m), n_resamples)
    # One subset at a time, so that its resamples stay in the CPU cache for all pairs.
    for counts, drawn in zip(not_better, np.ascontiguousarray(means.T).reshape(rows, m, -1), strict=True):
        for first in range(m - 1):
            differences = drawn[first] - drawn[first + 1 :]
            # A figure that is undefined in a resample is no better than another.
            counts[first, first + 1 :] = (~(differences > ROUNDING)).sum(axis=1)
            counts[first + 1 :, first] = (~(differences < -ROUNDING)).sum(axis=1)
    return (1 + not_better) / (n_resamples + 1)


def _by_t(values: Floats) -> Floats:
    """One-tailed p-values of Student's paired t, shape (rows, m, m)."""
    from scipy import special

    rows, n, m = values.shape
    p_values = np.empty((rows, m, m))
    for first in range(m):
        differences = values[:, :, first, None] - values
        mean, std = differences.mean(axis=1), differences.std(axis=1, ddof=1)
        constant = std <= ROUNDING
        endless = np.where(np.abs(mean) <= ROUNDING, -np.inf, np.copysign(np.inf, mean))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(constant, endless, mean / std * n**0.5)
        p_values[:, first] = special.stdtr(n - 1, -t)
    return p_values

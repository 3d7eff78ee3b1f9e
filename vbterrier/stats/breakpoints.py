"""Breakpoints in the regression of topic gains on coverage."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, check_level, choice, excerpt, warn, whole
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import BLOCK_CELLS, stream
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.stats.regression import numeric_columns
from vbterrier.stats.topic_intervals import tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.results import Figures


# Terms of a segment with a smaller share of unexplained variance are collinear.
_MIN_UNEXPLAINED_SHARE = 1e-9


def explained_by_cuts(
    x: Floats, beside: Floats, y: Floats, weights: Floats, cuts: Ints, *, n_terms: int, least: float
) -> Floats:
    """The share of the residual variance of y that separate terms of x above each breakpoint explain, shape (b, c).

    ``1 - RSS_cut/RSS`` with RSS of ``y ~ beside`` and RSS_cut of ``y ~ beside + 1[x >= c] (+ x 1[x >= c])``, for
    increasing, standardised x, shape (n,), common regressors ``beside`` with the constant, shape (n, q), y and weights
    of shape (b or 1, n), and the first rows ``cuts`` of the upper segments. ``n_terms``: 1 for a separate level, 2 with
    a separate slope. NaN for breakpoints with a weight below ``least`` in a segment, with collinear terms, or without
    weight at their x (they equal the next breakpoint), and if the regression has no residuals.
    """
    terms = x[:, None] ** np.arange(n_terms)
    weighted = weights[:, :, None] * beside
    inverse = np.linalg.pinv(weighted.swapaxes(1, 2) @ beside, rcond=1e-12, hermitian=True)
    coef = inverse @ (weighted.swapaxes(1, 2) @ y[:, :, None])
    left = y - (beside @ coef)[:, :, 0]
    total = (weights * left**2).sum(axis=1, keepdims=True)
    squares = _above(weights[:, :, None, None] * terms[:, :, None] * terms[:, None, :], cuts)
    common = _above(weights[:, :, None, None] * terms[:, :, None] * beside[:, None, :], cuts)
    gram = squares - common @ inverse[:, None] @ common.swapaxes(2, 3)
    cross = _above((weights * left)[:, :, None] * terms, cuts)
    # Enough weight in both segments, and some at the x of the breakpoint.
    above = _above(weights, cuts)
    below = weights.sum(axis=1, keepdims=True) - above
    at = above - np.concatenate([above[:, 1:], np.zeros((len(above), 1))], axis=1)
    valid = (above >= least) & (below >= least) & (at > 0) & _independent(gram, squares)
    gram = np.where(valid[:, :, None, None], gram, np.eye(n_terms))
    reduction = (cross * np.linalg.solve(gram, cross[:, :, :, None])[:, :, :, 0]).sum(axis=2)
    # Residuals at the level of rounding errors are 0.
    something = total > 1e-20 * (weights * y**2).sum(axis=1, keepdims=True)
    share: Floats = np.full(reduction.shape, np.nan)
    np.divide(reduction, total, out=share, where=valid & something)
    return np.clip(share, 0.0, 1.0)


def _above(rows: Floats, cuts: Ints) -> Floats:
    """Sums over the rows of each upper segment, shape (b, c, ...)."""
    return np.flip(np.cumsum(np.flip(rows, axis=1), axis=1), axis=1)[:, cuts]


def _independent(gram: Floats, squares: Floats) -> Bools:
    """Breakpoints whose terms are not collinear with the common regressors or each other, shape (b, c)."""
    size, before = (np.diagonal(matrix, axis1=2, axis2=3) for matrix in (gram, squares))
    apart = np.all(size > _MIN_UNEXPLAINED_SHARE * before, axis=2)
    scale = np.sqrt(np.where(apart[:, :, None], size, 1.0))
    determinant = np.linalg.det(gram / (scale[:, :, :, None] * scale[:, :, None, :]))
    return np.asarray(apart & (determinant > _MIN_UNEXPLAINED_SHARE))


# The number of additional terms of the upper segment.
MODELS = {"step": 1, "lines": 2}


@dataclass(frozen=True, eq=False, repr=False)
class Breakpoint(Shown):
    """Result of :func:`breakpoint_sweep`.

    ``value``: the smallest coverage of the upper segment; NaN if no cut is possible. ``low, high, level``: its
    bootstrap interval. ``f_statistic``: the largest F of all cuts. ``p_value``: the proportion of permutations whose
    largest F is at least as large; it accounts for the search. ``p_unsearched``: the p-value of the F distribution for
    the best cut, ignoring the search: too small. ``sweep``: coverage (the smallest of the upper segment), n_below,
    n_above, mean_below, mean_above (of the gain), f_statistic, explained; a row for each cut. ``n_undefined``: topics
    left out because their coverage is undefined. ``n_qids, model, n_permutations, n_resamples, seed``: the topics, and
    the parameters of the call.
    """

    value: float
    low: float
    high: float
    level: float
    f_statistic: float
    p_value: float
    p_unsearched: float
    sweep: pd.DataFrame
    n_qids: int
    n_undefined: int
    model: str
    n_permutations: int
    n_resamples: int
    seed: int

    def _line(self) -> str:
        return f"{self.value:.4f}, {self.low:.4f} to {self.high:.4f}; p {self.p_value:.4f}; {self.n_qids} topics"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Breakpoint", self.to_frame(), value="value")
        yield Panel("Every cut", self.sweep)

    def _figures(self) -> Figures:
        return {"gain_by_coverage": lambda: {"at": self}}

    def to_frame(self) -> pd.DataFrame:
        """Return one row: all values except the sweep."""
        return pd.DataFrame([{one.name: getattr(self, one.name) for one in fields(self) if one.name != "sweep"}])


@with_usual_errors
def breakpoint_sweep(
    table: Any,
    gain: str,
    coverage: str,
    *,
    controls: Sequence[str] = (),
    model: str = "lines",
    min_segment: float = 0.1,
    level: float = 0.95,
    n_permutations: int = 1000,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Breakpoint:
    """Estimate the coverage at which the regression of gain on coverage changes, and test it accounting for the search.

    Every coverage c splits the topics in two, and ``F(c) = ((RSS - RSS_c)/p) / (RSS_c/(n - q - p))`` compares the model
    with p additional terms for the topics of coverage at least c with the model without them, of q terms. The
    breakpoint is the c of the largest F.

    Parameters
    ----------
    table, gain, coverage, controls
        A frame with a row for each topic, and its columns: controls, such as the baseline's AP, have the same
        coefficient in both segments. Topics whose coverage is undefined (NaN) are left out and counted.
    model
        ``"lines"``: a line in each segment, against one line. ``"step"``: a mean in each segment, against one mean; it
        detects any increase with coverage, also a linear one.
    min_segment
        The smallest fraction of the topics in each segment, above 0 and below 0.5.
    level, n_resamples, n_permutations, seed
        Nominal coverage of the interval, and number of resamples of the topics for it, 0 for none; number of
        permutations of the residuals of the model without a cut (Freedman and Lane 1983); the seed of both.

    Returns
    -------
    Breakpoint
        NaN, with a warning, if no cut leaves enough topics of different coverage in both segments, or if the model
        without a cut has no residuals.

    Notes
    -----
    The test assumes exchangeable residuals: it is exact for ``"step"`` without controls and approximate otherwise; it
    is invalid if the variance of the gain depends on coverage. A best cut exists even without a breakpoint, so
    interpret the interval only together with the p-value. 95 % intervals covered the position of a jump in .94 to .98
    of simulated cases (250 topics); that of a change of slope without a jump is much less precise.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 6.1, table 8, which does not state
    whether its p-value accounts for the search. Andrews, Econometrica 61, 1993: the largest F. Freedman and Lane, A
    nonstochastic interpretation of reported significance levels, JBES 1, 1983.

    Examples
    --------
    >>> coverage = np.linspace(0.5, 1, 50)
    >>> noise = np.random.default_rng(1).normal(0, 0.02, 50)
    >>> table = pd.DataFrame({"RelCov@20": coverage, "gain": 0.1 * (coverage >= 0.8) + noise})
    >>> result = breakpoint_sweep(table, "gain", "RelCov@20", model="step")
    >>> round(result.value, 2), round(result.p_value, 3), result.low <= result.value <= result.high
    (0.81, 0.001, True)
    """
    choice("model", model, MODELS)
    if not 0 < min_segment < 0.5:  # noqa: PLR2004 - two segments
        raise ParameterError(f"min_segment={excerpt(min_segment)}: wanted a fraction above 0 and below 0.5")
    check_level(level)
    whole("n_permutations", n_permutations)
    whole("n_resamples", n_resamples, low=0)
    whole("seed", seed, low=0)
    columns = numeric_columns(table, [gain, coverage, *controls], gaps=[coverage])
    defined = np.flatnonzero(~np.isnan(columns[coverage]))
    rows = defined[np.argsort(columns[coverage][defined], kind="stable")]
    x, y = columns[coverage][rows], columns[gain][rows]
    scaled = (x - x.mean()) / (x.std() or 1.0) if len(x) else x
    shared = [np.ones(len(x)), *([scaled] if model == "lines" else [])]
    for name in controls:
        # Centred and scaled to at most 1, for numerical accuracy.
        centred = columns[name][rows] - columns[name][rows].mean()
        shared.append(centred / (np.abs(centred).max(initial=0.0) or 1.0))
    search = _Search(scaled, np.stack(shared, axis=1), MODELS[model], max(1, min_segment * len(x)))
    sweep = _sweep(search, x, y)
    settings = {"n_permutations": n_permutations, "n_resamples": n_resamples, "seed": seed}
    counts: dict[str, Any] = {"n_qids": len(x), "n_undefined": len(columns[gain]) - len(x), "model": model, **settings}
    if not len(sweep):
        warn(f"{coverage}: no cut leaves enough topics of different coverage in both segments, or gain does not vary")
        return Breakpoint(np.nan, np.nan, np.nan, level, np.nan, np.nan, np.nan, sweep, **counts)
    from scipy import stats

    best = int(sweep["explained"].to_numpy().argmax())
    value, f_statistic, explained = (float(sweep[name].iloc[best]) for name in ("coverage", "f_statistic", "explained"))
    low, high = _limits(search, x, y, level, n_resamples, seed)
    p_value = _permutation_p(search, y, explained, n_permutations, seed)
    p_unsearched = float(stats.f.sf(f_statistic, search.n_terms, search.residual_df))
    return Breakpoint(value, low, high, level, f_statistic, p_value, p_unsearched, sweep, **counts)


@dataclass(frozen=True, eq=False)
class _Search:
    """All cuts of topics by increasing coverage x, with regressors shared by both segments, shape (n, q)."""

    x: Floats
    shared: Floats
    n_terms: int
    min_topics: float

    @property
    def cuts(self) -> Ints:
        """The first topic of each larger coverage, shape (c,)."""
        return np.flatnonzero(np.diff(self.x) > 0) + 1

    @property
    def residual_df(self) -> int:
        """Residual degrees of freedom of a model with a cut."""
        return len(self.x) - int(np.linalg.matrix_rank(self.shared)) - self.n_terms

    def explained_proportions(self, y: Floats, weights: Floats) -> Floats:
        """Return :func:`explained_by_cuts`, NaN for impossible cuts; shape (b, c)."""
        terms: dict[str, Any] = {"n_terms": self.n_terms, "least": self.min_topics}
        return explained_by_cuts(self.x, self.shared, y, weights, self.cuts, **terms)

    def best(self, y: Floats, weights: Floats) -> tuple[Ints, Floats]:
        """Return the best cut of each row and the proportion that it explains, 0 if there is none; shape (b,)."""
        share = np.nan_to_num(self.explained_proportions(y, weights), nan=0.0)
        return share.argmax(axis=1), share.max(axis=1)

    def batches(self, n: int) -> Iterator[int]:
        """Split n rows into batches that fit in memory."""
        step = max(1, BLOCK_CELLS // max(len(self.x) * self.n_terms * self.shared.shape[1], 1))
        for done in range(0, n, step):
            yield min(step, n - done)


def _permutation_p(search: _Search, y: Floats, observed: float, n_permutations: int, seed: int) -> float:
    """Return the proportion of permuted residuals whose best cut explains at least as much, counting the observed."""
    coef, *_ = np.linalg.lstsq(search.shared, y, rcond=None)
    residuals = y - search.shared @ coef
    draw, ones = stream(seed, "breakpoint permutations"), np.ones((1, len(y)))
    n_as_extreme = 1
    for size in search.batches(n_permutations):
        permuted = draw.permuted(np.broadcast_to(residuals, (size, len(residuals))), axis=1)
        _, explained = search.best(permuted, ones)
        n_as_extreme += int((explained >= observed - ROUNDING).sum())
    return n_as_extreme / (n_permutations + 1)


def _limits(search: _Search, x: Floats, y: Floats, level: float, n_resamples: int, seed: int) -> tuple[float, float]:
    """Return percentiles of the best cut over resampled topics."""
    draw, n = stream(seed, "breakpoint resamples"), len(x)
    replicas = []
    for size in search.batches(n_resamples):
        rows = draw.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        weights = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        cut, explained = search.best(y[None], weights)
        replicas.append(x[search.cuts[cut]][explained > 0])
    maxima = np.concatenate(replicas) if replicas else np.empty(0)
    if not len(maxima):
        return float("nan"), float("nan")
    # Limits are observed coverages, not interpolated.
    low, high = np.quantile(maxima, tail_probabilities(level), method="nearest")
    return float(low), float(high)


def _sweep(search: _Search, x: Floats, y: Floats) -> pd.DataFrame:
    """Return a row for each possible cut."""
    cuts = search.cuts
    names = ["coverage", "n_below", "n_above", "mean_below", "mean_above", "f_statistic", "explained"]
    if not len(cuts) or search.residual_df < 1:
        return pd.DataFrame(columns=names, dtype=np.float64)
    explained = search.explained_proportions(y[None], np.ones((1, len(x))))[0]
    possible = ~np.isnan(explained)
    cuts, explained = cuts[possible], explained[possible]
    total = np.concatenate([[0.0], np.cumsum(y)])
    with np.errstate(divide="ignore"):
        f_statistic = (explained / search.n_terms) / ((1 - explained) / search.residual_df)
    above = len(x) - cuts
    columns = (x[cuts], cuts, above, total[cuts] / cuts, (total[-1] - total[cuts]) / above, f_statistic, explained)
    return pd.DataFrame(dict(zip(names, columns, strict=True)))

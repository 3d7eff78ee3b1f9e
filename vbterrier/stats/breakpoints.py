"""Breakpoints of the gain of topics as a function of coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, warn
from vbterrier.frames.notebook import Panel, Shown
from vbterrier.frames.parameters import choice, whole
from vbterrier.kernels.resample import stream
from vbterrier.kernels.segments import explained_by_cuts
from vbterrier.stats.regression import numbers
from vbterrier.stats.topic_intervals import check_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.notebook import Figures


# Numbers held in memory at a time.
_BATCH = 4_000_000
# Shares this close are one share: sums in another order.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Search:
    """All cuts of some topics: coverage and regressors in its order, and what a segment needs."""

    x: Floats
    beside: Floats
    n_terms: int
    least: float

    @property
    def cuts(self) -> Ints:
        """The first topic of each larger coverage, shape (c,)."""
        return np.flatnonzero(np.diff(self.x) > 0) + 1

    @property
    def spare(self) -> int:
        """Degrees of freedom that a cut leaves."""
        return len(self.x) - int(np.linalg.matrix_rank(self.beside)) - self.n_terms

    def shares(self, y: Floats, weights: Floats) -> Floats:
        """What each cut explains, NaN where it is none; see ``kernels.segments.explained_by_cuts``; shape (b, c)."""
        return explained_by_cuts(self.x, self.beside, y, weights, self.cuts, n_terms=self.n_terms, least=self.least)

    def best(self, y: Floats, weights: Floats) -> tuple[Ints, Floats]:
        """The best cut of each row, and what it explains, 0 where there is none; shape (b,)."""
        found = np.nan_to_num(self.shares(y, weights), nan=0.0)
        return found.argmax(axis=1), found.max(axis=1)

    def f_of(self, explained: Floats) -> Floats:
        """F of shares explained."""
        with np.errstate(divide="ignore"):
            found: Floats = (explained / self.n_terms) / ((1 - explained) / self.spare)
        return found

    def p_of(self, f_statistic: float) -> float:
        """The law of F for one cut."""
        from scipy import stats

        return float(stats.f.sf(f_statistic, self.n_terms, self.spare))

    def batches(self, n: int) -> Iterator[int]:
        """The sizes of batches that make n."""
        step = max(1, _BATCH // max(len(self.x) * self.n_terms * self.beside.shape[1], 1))
        for done in range(0, n, step):
            yield min(step, n - done)


def permuted_p(search: Search, y: Floats, seen: float, n_permutations: int, seed: int) -> float:
    """The share of permuted residuals whose best cut explains as much, what was seen among them."""
    coef, *_ = np.linalg.lstsq(search.beside, y, rcond=None)
    left = y - search.beside @ coef
    draw, ones = stream(seed, "breakpoint permutations"), np.ones((1, len(y)))
    n_as_far = 1
    for size in search.batches(n_permutations):
        permuted = draw.permuted(np.broadcast_to(left, (size, len(left))), axis=1)
        _, explained = search.best(permuted, ones)
        n_as_far += int((explained >= seen - _EQUAL).sum())
    return n_as_far / (n_permutations + 1)


def ends(search: Search, x: Floats, y: Floats, level: float, n_resamples: int, seed: int) -> tuple[float, float]:
    """Percentiles of the best cut over resampled topics."""
    draw, n = stream(seed, "breakpoint resamples"), len(x)
    places = []
    for size in search.batches(n_resamples):
        rows = draw.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        weights = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        cut, explained = search.best(y[None], weights)
        places.append(x[search.cuts[cut]][explained > 0])
    found = np.concatenate(places) if places else np.empty(0)
    if not len(found):
        return float("nan"), float("nan")
    # Places are coverages that there are, not means of them.
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    return float(low), float(high)


# The terms that the upper segment has for itself.
MODELS = {"step": 1, "lines": 2}


@dataclass(frozen=True, eq=False, repr=False)
class Breakpoint(Shown):
    """What :func:`breakpoint_sweep` found.

    Parameters
    ----------
    value
        The smallest coverage of the upper segment; NaN where no cut could be tried.
    low, high, level
        The ends of its bootstrap interval, and their nominal coverage.
    f_statistic
        The largest F of all cuts.
    p_value
        The share of permutations whose largest F is as large: it accounts for the search.
    p_unsearched
        What the F law says of the best cut as if it had been known before: too small, for comparison with reports that
        print it.
    sweep
        coverage (the smallest of the upper segment), n_below, n_above, mean_below, mean_above (of the gain),
        f_statistic, explained; a row a cut.
    n_qids, n_undefined
        Topics, and those left out because their coverage is undefined.
    model, n_permutations, n_resamples, seed
        As asked for.
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
        yield Panel("Breakpoint", self.frame(), value="value")
        yield Panel("Every cut", self.sweep)

    def _figures(self) -> Figures:
        return {"gain_by_coverage": lambda: {"at": self}}

    def frame(self) -> pd.DataFrame:
        """All but the sweep, in one row."""
        return pd.DataFrame([{name: value for name, value in vars(self).items() if name != "sweep"}])


def breakpoint_sweep(
    table: Any,
    gain: str,
    coverage: str,
    *,
    controls: Sequence[str] = (),
    model: str = "lines",
    least: float = 0.1,
    level: float = 0.95,
    n_permutations: int = 1000,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Breakpoint:
    """Look for the coverage from which on gain behaves otherwise, and test it against having looked everywhere.

    Every coverage c cuts the topics in two, and ``F(c) = ((RSS - RSS_c)/p) / (RSS_c/(n - q - p))`` compares the model
    with p terms of its own for the topics of coverage at least c with the one without, of q terms. The breakpoint is
    the c of the largest F. The p-value is the share of permutations whose largest F, over all cuts again, is as large;
    what was seen counts among them.

    Parameters
    ----------
    table
        A row a topic.
    gain, coverage
        Columns. Topics whose coverage is undefined (NaN) are left out and counted.
    controls
        Columns that both segments share, as the baseline's AP.
    model
        ``"lines"``: a line in each segment, against one line. ``"step"``: a mean in each, against one mean; it finds
        any rise with coverage, a steady one too.
    least
        The least share of the topics in each segment, above 0 and below 0.5.
    level
        Nominal coverage of the interval.
    n_permutations
        Permutations of the residuals of the model without a cut (Freedman and Lane 1983).
    n_resamples
        Resamples of the topics for the interval of the place; 0 for none.
    seed
        Decides both.

    Returns
    -------
    Breakpoint
        NaN, with a warning, where no cut leaves enough topics of different coverage on both sides, or the model without
        a cut leaves nothing to explain.

    Raises
    ------
    InputError
        A column that is not there, a gain or control that is missing.
    ParameterError
        An illegal value.

    Notes
    -----
    The test takes residuals as exchangeable: exact for ``"step"`` without controls, close for the others; a gain that
    varies more at some coverages than at others breaks it. There is a best cut even where nothing breaks, so read the
    interval only beside the p-value. The bootstrap does not reproduce the law of the place of a jump, but 95 %
    percentiles held it in .94 to .98 of simulated cases (250 topics; jumps of one to two and a half standard
    deviations, bends). Where lines bend without a jump the place is told far less exactly. Linear in topics times
    permutations.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 6.1, table 8, whose p-value does not say that
    it accounts for the search. Andrews, Tests for parameter instability and structural change with unknown change
    point, Econometrica 61, 1993: the largest F. Freedman and Lane, A nonstochastic interpretation of reported
    significance levels, JBES 1, 1983.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> coverage = np.linspace(0.5, 1, 50)
    >>> noise = np.random.default_rng(1).normal(0, 0.02, 50)
    >>> table = pd.DataFrame({"RelCov@20": coverage, "gain": 0.1 * (coverage >= 0.8) + noise})
    >>> found = breakpoint_sweep(table, "gain", "RelCov@20", model="step")
    >>> round(found.value, 2), round(found.p_value, 3), found.low <= found.value <= found.high
    (0.81, 0.001, True)
    """
    _check(model, least, level, n_permutations, n_resamples, seed)
    columns = numbers(table, [gain, coverage, *controls], gaps=[coverage])
    known = np.flatnonzero(~np.isnan(columns[coverage]))
    rows = known[np.argsort(columns[coverage][known], kind="stable")]
    x, y = columns[coverage][rows], columns[gain][rows]
    scaled = (x - x.mean()) / (x.std() or 1.0) if len(x) else x
    both = [
        np.ones(len(x)),
        *([scaled] if model == "lines" else []),
        *(_unit(columns[name][rows]) for name in controls),
    ]
    search = Search(scaled, np.stack(both, axis=1), MODELS[model], max(1, least * len(x)))
    sweep = _swept(search, x, y)
    asked = {"n_permutations": n_permutations, "n_resamples": n_resamples, "seed": seed}
    counts: dict[str, Any] = {"n_qids": len(x), "n_undefined": len(columns[gain]) - len(x), "model": model, **asked}
    if not len(sweep):
        message = f"{coverage}: no cut leaves enough topics of different coverage on both sides, or no gain to explain"
        warn(message)
        return Breakpoint(np.nan, np.nan, np.nan, level, np.nan, np.nan, np.nan, sweep, **counts)
    best = int(sweep["explained"].to_numpy().argmax())
    value, f_statistic, explained = (float(sweep[name].iloc[best]) for name in ("coverage", "f_statistic", "explained"))
    low, high = ends(search, x, y, level, n_resamples, seed)
    return Breakpoint(
        value,
        low,
        high,
        level,
        f_statistic,
        permuted_p(search, y, explained, n_permutations, seed),
        search.p_of(f_statistic),
        sweep,
        **counts,
    )


def _swept(search: Search, x: Floats, y: Floats) -> pd.DataFrame:
    """A row for each cut that can be tried."""
    cuts = search.cuts
    names = ["coverage", "n_below", "n_above", "mean_below", "mean_above", "f_statistic", "explained"]
    if not len(cuts) or search.spare < 1:
        return pd.DataFrame(columns=names, dtype=np.float64)
    found = search.shares(y[None], np.ones((1, len(x))))[0]
    tried = ~np.isnan(found)
    cuts, found = cuts[tried], found[tried]
    total = np.concatenate([[0.0], np.cumsum(y)])
    columns = (
        x[cuts],
        cuts,
        len(x) - cuts,
        total[cuts] / cuts,
        (total[-1] - total[cuts]) / (len(x) - cuts),
        search.f_of(found),
        found,
    )
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def _unit(values: Floats) -> Floats:
    """Values around 0 of unit size, for the sake of digits."""
    centred = values - values.mean()
    scaled: Floats = centred / (np.abs(centred).max(initial=0.0) or 1.0)
    return scaled


def _check(model: str, least: float, level: float, n_permutations: int, n_resamples: int, seed: int) -> None:
    choice("model", model, MODELS)
    if not 0 < least < 0.5:  # noqa: PLR2004 - two segments of more than half there cannot be
        raise ParameterError(f"least={least!r}: wanted a share above 0 and below 0.5")
    check_level(level)
    whole("n_permutations", n_permutations)
    whole("n_resamples", n_resamples, low=0)
    whole("seed", seed, low=0)

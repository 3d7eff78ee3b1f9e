"""Ratios of means over topics."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.shown import Panel, Shown
from vbterrier.kernels.resample import stream
from vbterrier.uncertainty.intervals import N_RESAMPLES, check_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_UNBOUND = "no document that is not relevant is reached: the ratio has no bound"
# Resampled topics held in memory at a time.
_BATCH = 4_000_000


@dataclass(frozen=True)
class Ratio(Shown):
    """A ratio of means, the ends of its interval, and how many topics it is of."""

    value: float
    low: float
    high: float
    n_qids: int

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Ratio of means", pd.DataFrame([asdict(self)]), value="value", heads=0)


def disc_ratio(
    rel_cov: Any, nonrel_cov: Any, *, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Ratio:
    """The discrimination ratio of a collection: mean RelCov over mean NonRelCov, with an interval over topics.

    ``DiscRatio = mean_q RelCov / mean_q NonRelCov``. The ends are percentiles of the ratio over resampled topics, both
    values of a topic together.

    Parameters
    ----------
    rel_cov, nonrel_cov
        Both values of each topic, in one order, shape (n,); topics in which either is undefined are left out before.
    level
        Nominal coverage, 0 to 1.
    n_resamples
        Resamples of the topics.
    seed
        Decides the resamples.

    Returns
    -------
    Ratio
        Infinite, with a warning, where no topic reaches any other document; NaN where none reaches any document at all.

    Raises
    ------
    InputError
        Other numbers of topics on both sides, none at all, or a value outside [0, 1].
    ParameterError
        A level outside (0, 1), no resample.

    Notes
    -----
    Table 5 of the source holds these ratios of means, not means of ratios (.971/.888 = 1.09), of which the latter
    explode where NonRelCov is 0.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.3.

    Examples
    --------
    >>> found = disc_ratio([1.0, 0.8, 0.9], [0.6, 0.9, 0.5])
    >>> round(found.value, 3), found.low < found.value < found.high
    (1.35, True)
    """
    check_level(level)
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int) or n_resamples < 1:
        raise ParameterError(f"n_resamples={n_resamples!r}: wanted a whole number of at least 1")
    above, below = _shares(rel_cov, "rel_cov"), _shares(nonrel_cov, "nonrel_cov")
    if len(above) != len(below):
        raise InputError(f"rel_cov has {len(above)} topics, nonrel_cov {len(below)}; give both of the same topics")
    n, draw = len(above), stream(seed, "disc_ratio")
    value = float(_ratio(above.sum(), below.sum()))
    if not np.isfinite(value):
        what = "no document is reached: there is no ratio" if np.isnan(value) else _UNBOUND
        warnings.warn(what, DegenerateWarning, 2)
    replicas = np.empty(n_resamples)
    step = max(1, _BATCH // n)
    for start in range(0, n_resamples, step):
        rows = draw.integers(n, size=(min(step, n_resamples - start), n))
        replicas[start : start + step] = _ratio(above[rows].sum(axis=1), below[rows].sum(axis=1))
    known = replicas[~np.isnan(replicas)]
    if not len(known):
        return Ratio(value, np.nan, np.nan, n)
    # Order statistics, which are defined where some ratios are infinite.
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    return Ratio(value, float(low), float(high), n)


def _ratio(above: Any, below: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(above, below)


def _shares(values: Any, name: str) -> Floats:
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 1 or not len(shares):
        raise InputError(f"{name}: wanted a share of each of some topics, found an array of shape {shares.shape}")
    bad = ~((shares >= 0) & (shares <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: topic {row} has {shares[row]:g}, wanted 0 to 1; leave undefined topics out of both")
    return shares

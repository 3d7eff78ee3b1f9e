"""Pilot studies, and the width of intervals as a function of the number of queries."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, number, warn, whole
from vbterrier.frames.values import measure_tables, values_of
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vbterrier.annotations import Floats, Ints


# Fewer say nothing about kurtosis.
LEAST = 5
# Differences that spread less, relative to their size, differ in how they were rounded.
_EQUAL = 1e-12
# Numbers drawn at a time: 16 MB.
_BLOCK = 1 << 21


def kurtosis_of(values: Floats) -> float:
    """The kurtosis about a trimmed mean (Bonett 2006); below 5 values that of normal ones, 3.

    >>> round(kurtosis_of(np.array([0.0, 1.0, 2.0, 3.0, 4.0])), 2)
    1.7
    """
    k = len(values)
    if k < LEAST:
        return 3.0
    cut = int(k / (2 * (k - 4) ** 0.5))
    trimmed = np.sort(values)[cut : k - cut].mean()
    return float(k * ((values - trimmed) ** 4).sum() / ((values - values.mean()) ** 2).sum() ** 2)


class Pilot:
    """Differences of two systems on the queries of a pilot.

    Parameters
    ----------
    differences
        Shape (k,), k of at least 5, in any order: they are kept sorted.

    Raises
    ------
    InputError
        Too few differences; a missing one, or text; differences that are all alike, from which no spread can be learnt.
    """

    def __init__(self, differences: Any) -> None:
        try:
            values = np.asarray(differences, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"pilot: wanted a data frame of values, or an array of differences; {error}") from error
        if values.ndim != 1 or len(values) < LEAST:
            raise InputError(f"pilot: wanted {LEAST} differences at least, found an array of shape {values.shape}")
        if not np.isfinite(values).all():
            raise InputError(f"pilot: difference {int(np.argmin(np.isfinite(values)))} is no finite number")
        if np.ptp(values) <= _EQUAL * np.abs(values).max():
            raise InputError(
                f"pilot: both systems differ by {values[0]:g} on all {len(values)} queries: no spread, nothing to plan "
                "from; take other queries, or other systems"
            )
        self.values: Floats = np.sort(values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        """The observed difference."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """The standard deviation, with n - 1."""
        return float(self.values.std(ddof=1))

    @cached_property
    def kurtosis(self) -> float:
        """See :func:`kurtosis_of`."""
        return kurtosis_of(self.values)

    def std_interval(self, level: float) -> tuple[float, float]:
        """Where the standard deviation of such differences lies (Bonett 2006).

        ``log σ² = log(c s²) ± z c sqrt((γ - (k - 3)/k)/(k - 1))``, ``c = k/(k - z)``, with the kurtosis γ: unlike the
        interval by chi-square it holds where differences are not normal.

        Raises
        ------
        ParameterError
            A level too high for so few differences.
        """
        from scipy import special

        k, z = len(self), float(special.ndtri((1 + level) / 2))
        if z >= k:
            raise ParameterError(f"level={level}: too high for a pilot of {k} queries")
        correction = k / (k - z)
        reach = z * correction * ((self.kurtosis - (k - 3) / k) / (k - 1)) ** 0.5
        middle = self.std * correction**0.5
        return middle * float(np.exp(-reach / 2)), middle * float(np.exp(reach / 2))

    def resampled(self, sizes: Sequence[int], n_simulations: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
        """Mean and standard deviation of resamples of each size, less the observed difference; each (n_simulations,).

        Resamples grow: those of one size are the beginnings of those of the next. Differences are stretched by
        ``sqrt(k/(k - 1))``, so that their variance is the one that the pilot estimates.
        """
        draws = stream(seed, "pilot")
        centred = (self.values - self.mean) * (len(self) / (len(self) - 1)) ** 0.5
        both = np.stack([centred, centred**2], axis=1)
        sums, n = np.zeros((n_simulations, 2)), 0
        for size in sizes:
            for start, stop in _blocks(n_simulations, min(size - n, len(self))):
                sums[start:stop] += _drawn(both, size - n, stop - start, draws)
            n = size
            mean = sums[:, 0] / n
            # Differences are centred: their squares lose no digits to their mean.
            variance = np.maximum(sums[:, 1] / n - mean**2, 0.0) * n / (n - 1)
            yield mean, np.sqrt(variance)


def pilot_of(given: Any, pair: Sequence[str] | None, measure: str | None) -> Pilot:
    """The differences of two systems of a V frame under one measure, or of an array as they are.

    Raises
    ------
    ParameterError
        Systems or a measure that there are not, or several to choose from.
    """
    if not hasattr(given, "columns"):
        if pair is not None or measure is not None:
            raise ParameterError("pair and measure choose from a V frame: leave them out for differences")
        return Pilot(given)
    tables = {table.measure: table for table in measure_tables(given)}
    if measure is None and len(tables) != 1:
        raise ParameterError(f"values hold {len(tables)} measures ({examples(tables)}); choose with measure=")
    chosen = next(iter(tables)) if measure is None else _known("measure", measure, tables)
    names = tables[chosen].names
    if pair is None and len(names) != 2:  # noqa: PLR2004 - a pair
        raise ParameterError(f"values hold {len(names)} systems ({examples(names)}); choose two with pair=")
    one, other = _two(names if pair is None else pair, names)
    values = tables[chosen].values
    return Pilot(values[:, one] - values[:, other])


def paired_pilots(values: Any, baseline: str | None, measure: str | None) -> Iterator[tuple[str, str, str, Floats]]:
    """Measure, both names and the differences of every two systems of a V frame, or of all with the baseline.

    Raises
    ------
    ParameterError
        A baseline or a measure that is not there.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"name": ["a", "b"], "qid": "1", "measure": "AP", "value": [0.5, 0.25]})
    >>> list(paired_pilots(frame, "a", None))
    [('AP', 'b', 'a', array([-0.25]))]
    """
    tables = {table.measure: table for table in measure_tables(values)}
    for chosen in tables if measure is None else [_known("measure", measure, tables)]:
        _, names, scores, _ = tables[chosen]
        pairs = list(combinations(names, 2))
        if baseline is not None:
            _known("baseline", baseline, names)
            pairs = [(name, baseline) for name in names if name != baseline]
        for one, other in pairs:
            yield chosen, one, other, scores[:, names.index(one)] - scores[:, names.index(other)]


def _known(parameter: str, word: str, found: Iterable[str]) -> str:
    found = list(found)
    if word not in found:
        raise ParameterError(f"{parameter}={word!r}: not there; found {examples(found)}.{nearest(word, found)}")
    return word


def _two(pair: Sequence[str], names: list[str]) -> tuple[int, int]:
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:  # noqa: PLR2004 - a pair
        raise ParameterError(f"pair={pair!r}: wanted the names of two systems, as ('a', 'b')")
    one, other = (names.index(_known("pair", name, names)) for name in pair)
    return one, other


def _blocks(n_rows: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, n_rows, step):
        yield start, min(start + step, n_rows)


def _drawn(both: Floats, n: int, n_rows: int, draws: np.random.Generator) -> Floats:
    """Sums over n rows of ``both`` drawn with replacement, shape (n_rows, 2): one by one, or how often each."""
    k = len(both)
    if n < k:
        sums: Floats = both[draws.integers(k, size=(n_rows, n))].sum(axis=1)
        return sums
    counts: Floats = draws.multinomial(n, np.full(k, 1 / k), size=n_rows) @ both
    return counts


METHOD = "topics (t)"
# The kurtosis of normal scores.
_NORMAL = 3.0
COLUMNS = (
    *("name", "measure", "n_qids", "n_more", "width", "width_then", "ratio", "level", "method"),
    *("ratio_low", "ratio_high"),
)


def interval_width(
    values: Any, n_more: int | Iterable[int] = (10, 25, 50, 100), *, level: float = 0.95
) -> pd.DataFrame:
    """How wide the t interval of each mean is, and how wide it will be with so many more queries of the kind.

    ``width = 2 t(n - 1) s/√n`` and, were s to stay, ``width_then = 2 t(N - 1) s/√N`` with ``N = n + m`` queries. But s
    will move: ``s'²/s² = (n - 1 + m F)/(N - 1)`` with F of (m, n - 1) degrees of freedom for normal scores, which gives
    the ends of the ratio.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value; for differences of two systems, one whose values are these.
    n_more
        Numbers of further queries, at least 1.
    level
        Nominal coverage of the interval of the mean, and of the ends of the ratio.

    Returns
    -------
    pandas.DataFrame
        A row a system, measure and number: name, measure, n_qids, n_more, width, width_then, ratio (of the latter to
        the former), level, method, ratio_low, ratio_high (where the ratio will be). NaN for a single query; the ratio
        also where all scores are equal.

    Raises
    ------
    InputError
        A missing or repeated value, see the V frame.
    ParameterError
        A number below 1, a level outside (0, 1).

    Notes
    -----
    Scores are not normal: where tails are heavier, degrees of freedom are lowered by the kurtosis (Shoemaker 2003),
    estimated as by Bonett (2006) from five queries on. Simulated shares of nominal 95 % ends that hold the ratio, over
    10 to 250 queries and 1 to 200 more: normal scores .95 to .96; Beta(.5, 1) .97 to .99; half of them 0 .97 to .99;
    exponential .85 to .98; four of five 0 .84 to .97.

    References
    ----------
    Shoemaker: Fixing the F test for equal variances, The American Statistician 57 (2003).

    Examples
    --------
    >>> frame = pd.DataFrame({"name": "a", "qid": list("12345"), "measure": "AP", "value": [0.1, 0.5, 0.4, 0.9, 0.3]})
    >>> interval_width(frame, [5, 15])["ratio"].round(3).tolist()
    [0.576, 0.377]
    """
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    given = [n_more] if hasattr(n_more, "__index__") else list(n_more)
    more = np.array(sorted({whole("n_more", n) for n in given}), dtype=np.int64)
    if not len(more):
        raise ParameterError("n_more: none; wanted numbers of further queries")
    groups = values_of(values).groupby(["measure", "name"], sort=False)["value"]
    keys = [(name, measure, len(scores)) for (measure, name), scores in groups]
    spreads = np.array([_spread(scores.to_numpy()) for _, scores in groups]).reshape(-1, 3)
    if (spreads[:, 0] == 1).any():
        warn("an interval over topics needs at least two of them")
    n, std, kurtosis = spreads.T[:, :, None]
    found = {name: column.ravel() for name, column in _widths(n, std, kurtosis, more, level).items()}
    frame = pd.DataFrame([key for key in keys for _ in more], columns=["name", "measure", "n_qids"])
    frame = frame.assign(n_more=np.tile(more, len(keys)), level=level, method=METHOD, **found)
    return frame[list(COLUMNS)]


def _spread(scores: Floats) -> tuple[float, float, float]:
    """Number, standard deviation (NaN of one, 0 of equal ones), and kurtosis, not below that of normal scores."""
    if len(scores) == 1 or np.ptp(scores) == 0:
        return len(scores), np.nan if len(scores) == 1 else 0.0, _NORMAL
    return len(scores), float(scores.std(ddof=1)), max(kurtosis_of(scores), _NORMAL)


def _widths(n: Floats, std: Floats, kurtosis: Floats, more: Ints, level: float) -> dict[str, Floats]:
    """Columns of the frame, shape (n_groups, n_sizes) of (n_groups, 1) and (n_sizes,)."""
    from scipy import special

    total, tails = n + more, np.array([(1 - level) / 2, (1 + level) / 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        now, then = (2 * special.stdtrit(size - 1, tails[1]) / np.sqrt(size) for size in (n, total))
        ratio = np.where(std > 0, then / now, np.nan)
        # Those of a variance: n - 1 and m where the kurtosis is that of normal scores.
        freedom_then, freedom = 2 * more / (kurtosis - 1), 2 * n / (kurtosis - (n - 3) / (n - 1))
        spread = special.fdtri(freedom_then, freedom, tails[:, None, None])
        low, high = ratio * np.sqrt((n - 1 + more * spread) / (total - 1))
    widths = {"width": np.broadcast_to(now * std, ratio.shape), "width_then": then * std}
    return {**widths, "ratio": ratio, "ratio_low": low, "ratio_high": high}

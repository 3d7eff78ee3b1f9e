"""How far judges agree on labels beyond chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.notebook import Panel, Shown
from vbterrier.frames.parameters import whole
from vbterrier.kernels.resample import stream
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.topic_intervals import N_RESAMPLES, check_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Ints


def labels_of(labels: Any) -> pd.DataFrame:
    """Labels as a frame, a column a judge.

    Raises
    ------
    InputError
        Another shape, fewer than two judges.
    """
    if isinstance(labels, (list, tuple, np.ndarray)):
        array = np.asarray(labels)
        if array.ndim != 2:  # noqa: PLR2004 - items and judges
            raise InputError(f"labels: wanted a row an item and a column a judge, found the shape {array.shape}")
        frame = pd.DataFrame(array)
    else:
        frame = frame_of(labels, "labels")
    if frame.shape[1] < 2:  # noqa: PLR2004 - one judge agrees with nobody
        raise InputError(f"labels: found {frame.shape[1]} columns; agreement wants at least two judges, a column each")
    return frame


def codes_of(labels: pd.DataFrame, categories: Sequence[Any] | None, weights: str | None) -> tuple[Ints, int]:
    """Labels as places among the categories, shape (n_items, n_judges), and how many categories there are.

    Raises
    ------
    InputError
        No item; a label that is missing or not among the categories.
    ParameterError
        Weights for text without categories; a category twice.
    """
    if not len(labels):
        raise InputError("labels: no items; agreement is of labels that several judges gave to the same items")
    missing = labels.isna().to_numpy()
    if missing.any():
        row, column = (int(place[0]) for place in np.nonzero(missing))
        raise InputError(
            f"labels: item {row} has no label of judge {labels.columns[column]!r}; keep the items that all judged"
        )
    flat = labels.to_numpy().ravel()
    if categories is None:
        numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in labels.dtypes)
        if weights is not None and not numeric:
            raise ParameterError(f"weights={weights!r} want an order of labels; give categories, from low to high")
        known = pd.Index(pd.unique(pd.Series(flat))).sort_values()
    else:
        known = pd.Index(list(categories))
        if not known.is_unique:
            raise ParameterError(f"categories={list(categories)}: wanted each label once")
    codes = np.asarray(known.get_indexer(pd.Index(flat)), dtype=np.int64)
    if (codes < 0).any():
        odd = int(np.argmax(codes < 0))
        legal = ", ".join(map(_shown, known))
        raise InputError(f"labels: item {odd // labels.shape[1]} has {_shown(flat[odd])}, wanted one of {legal}")
    return codes.reshape(labels.shape), len(known)


def _shown(label: Any) -> str:
    """A label as Python writes it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


WEIGHTS = ("linear", "quadratic")
COLUMNS = ("judges", "statistic", "value", "low", "high", "level", "method", "n_items")
# Resampled items held in memory at a time.
_BATCH = 4_000_000
# What chance leaves to beat, of labels that are all the same: roundings.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Kappa(Shown):
    """Agreement beyond chance, at most 1; the ends of its interval; agreement as it is; how many items it is of."""

    value: float
    low: float
    high: float
    agreement: float
    n_items: int

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Agreement beyond chance", pd.DataFrame([asdict(self)]), value="value", heads=0)


def cohen_kappa(
    first: Any,
    second: Any,
    *,
    weights: str | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Kappa:
    """Cohen's kappa of two judges, ``(p_o - p_e)/(1 - p_e)``, with the normal interval of its large-sample error.

    Parameters
    ----------
    first, second
        The label that each gives to each item, shape (n,).
    weights
        ``None``: labels agree or not. ``"linear"``, ``"quadratic"``: how far apart they are counts, by their places
        among the categories or its square.
    categories
        All labels, from low to high. The labels that there are, rising, by default; text has no order of its own, so
        weights want them.
    level
        Nominal coverage of the interval.

    Returns
    -------
    Kappa
        NaN, with a warning, where chance agrees throughout: both give one and the same label to all; NaN ends, with a
        warning, where the error's formula gives 0. Its agreement is the share of equal labels, whatever the weights.

    Raises
    ------
    InputError
        Other numbers of items, none, a label that is missing or not among the categories.
    ParameterError
        Unknown weights, or weights for text without categories; a level outside (0, 1).

    References
    ----------
    Cohen, Educational and Psychological Measurement 20, 1960, and Psychological Bulletin 70, 1968 (weights). Fleiss,
    Cohen and Everitt, Psychological Bulletin 72, 1969 (error); by statsmodels.

    Examples
    --------
    >>> found = cohen_kappa([1, 1, 0, 0, 1, 0], [1, 1, 0, 1, 1, 0])
    >>> round(found.value, 3), round(found.agreement, 3)
    (0.667, 0.833)
    """
    check_level(level)
    if weights is not None and weights not in WEIGHTS:
        raise ParameterError(f"weights={weights!r}: wanted None, 'linear' or 'quadratic'")
    if len(first) != len(second):
        raise InputError(f"first has {len(first)} labels, second {len(second)}; give both judges the same items")
    codes, n = codes_of(pd.DataFrame({"first": np.asarray(first), "second": np.asarray(second)}), categories, weights)
    counts = np.bincount(codes[:, 0] * n + codes[:, 1], minlength=n * n).reshape(n, n)
    agreement = float(np.trace(counts) / len(codes))
    if _is_certain(codes):
        return Kappa(np.nan, np.nan, np.nan, agreement, len(codes))
    from scipy import special
    from statsmodels.stats.inter_rater import cohens_kappa

    with np.errstate(invalid="ignore", divide="ignore"):
        # It also divides by the error of no agreement, which may be 0.
        found = cohens_kappa(counts, wt=weights)
    value, variance = float(found.kappa), float(found.var_kappa)
    if variance <= _NOTHING:
        message = "all labels agree, or a judge gives one label to all: the interval's formula knows no error there"
        warn(message)
        return Kappa(value, np.nan, np.nan, agreement, len(codes))
    reach = float(special.ndtri((1 + level) / 2)) * float(np.sqrt(variance))
    return Kappa(value, value - reach, min(value + reach, 1.0), agreement, len(codes))


def fleiss_kappa(labels: Any, *, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0) -> Kappa:
    """Fleiss' kappa of two or more judges, with percentiles over resampled items.

    ``κ = (P - P_e)/(1 - P_e)``: P is the mean over items of the share of pairs of judges who agree, ``P_e = Σ_j p_j²``
    with the share p_j of label j among all labels.

    Parameters
    ----------
    labels
        A row an item, a column a judge: a frame, or an array of shape (n_items, n_judges).
    level
        Nominal coverage of the interval.
    n_resamples
        Resamples of the items.
    seed
        Decides the resamples.

    Returns
    -------
    Kappa
        NaN, with a warning, where all labels are one and the same. Its agreement is the share of items on which all
        judges agree.

    Raises
    ------
    InputError
        Fewer than two judges, no item, a label that is missing.
    ParameterError
        A level outside (0, 1), no resample.

    References
    ----------
    Fleiss, Psychological Bulletin 76, 1971; the value by statsmodels.

    Examples
    --------
    >>> found = fleiss_kappa([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> round(found.value, 3), found.agreement
    (0.657, 0.75)
    """
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)
    codes, n = codes_of(labels_of(labels), None, None)
    agreement = float((codes == codes[:, :1]).all(axis=1).mean())
    if _is_certain(codes):
        return Kappa(np.nan, np.nan, np.nan, agreement, len(codes))
    from statsmodels.stats import inter_rater

    counts = np.stack([(codes == code).sum(axis=1) for code in range(n)], axis=1)
    value = float(inter_rater.fleiss_kappa(counts))
    low, high = _resampled(counts, level, n_resamples, seed)
    return Kappa(value, low, high, agreement, len(codes))


def judge_agreement(
    labels: Any,
    *,
    weights: str | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """All that is usually said of judges' agreement: Cohen's kappa of every two, Fleiss' kappa and full agreement.

    Parameters
    ----------
    labels
        A row an item, a column a judge, named.
    weights, categories, level, n_resamples, seed
        As in :func:`cohen_kappa` and :func:`fleiss_kappa`.

    Returns
    -------
    pandas.DataFrame
        judges, statistic, value, low, high, level, method, n_items; a row for every two judges, one for Fleiss' kappa
        and one for the share of items on which all agree (interval of Clopper and Pearson).

    Raises
    ------
    InputError, ParameterError
        As there.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.6 (2).

    Examples
    --------
    >>> import pandas as pd
    >>> labels = pd.DataFrame({"a": [1, 0, 1, 0, 1], "b": [1, 0, 1, 1, 1], "c": [1, 0, 0, 0, 1]})
    >>> judge_agreement(labels)[["judges", "value"]].round(2).values.tolist()
    [['a, b', 0.55], ['a, c', 0.62], ['b, c', 0.29], ['a, b, c', 0.44], ['a, b, c', 0.6]]
    """
    frame = labels_of(labels)
    name = "Cohen's kappa" + (f" ({weights} weights)" if weights else "")
    rows: list[tuple[Any, ...]] = []
    for a, b in combinations(frame.columns, 2):
        two = cohen_kappa(frame[a], frame[b], weights=weights, categories=categories, level=level)
        rows.append((f"{a}, {b}", name, two.value, two.low, two.high, level, "normal", two.n_items))
    everyone = ", ".join(map(str, frame.columns))
    every = fleiss_kappa(frame, level=level, n_resamples=n_resamples, seed=seed)
    rows.append(
        (everyone, "Fleiss' kappa", every.value, every.low, every.high, level, "items (percentile)", len(frame))
    )
    ends = share_interval(round(every.agreement * len(frame)), len(frame), level)
    rows.append((everyone, "full agreement", every.agreement, *ends, level, "Clopper-Pearson", len(frame)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _is_certain(codes: Ints) -> bool:
    """Whether all labels are one, of which it warns: chance cannot but agree."""
    certain = bool((codes == codes[0, 0]).all())
    if certain:
        warn("all labels are the same: no agreement beyond chance can be seen")
    return certain


def _resampled(counts: Ints, level: float, n_resamples: int, seed: int) -> tuple[float, float]:
    """Percentiles of Fleiss' kappa over resampled items, given the judges for each label, shape (n_items, n)."""
    n, m = len(counts), int(counts[0].sum())
    # Each kappa is a function of means over items: of agreeing pairs and of labels.
    terms = np.column_stack([(counts * (counts - 1)).sum(axis=1) / (m * (m - 1)), counts / m])
    draw, step = stream(seed, "kappa"), max(1, _BATCH // n)
    found = np.empty(n_resamples)
    for done in range(0, n_resamples, step):
        size = min(step, n_resamples - done)
        rows = draw.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n)
        means = times @ terms / n
        chance = (means[:, 1:] ** 2).sum(axis=1)
        beyond = np.where(1 - chance > _NOTHING, 1 - chance, np.nan)
        found[done : done + size] = (means[:, 0] - chance) / beyond
    found = found[~np.isnan(found)]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]) if len(found) else (np.nan, np.nan)
    return float(low), float(high)

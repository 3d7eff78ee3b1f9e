"""Inter-annotator agreement: Cohen's and Fleiss' kappa, Krippendorff's alpha."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, check_level, excerpt, warn, whole
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import BLOCK_CELLS, stream
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.topic_intervals import N_RESAMPLES, tail_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vbterrier.annotations import Floats, Ints


COLUMNS = ("judges", "statistic", "value", "low", "high", "level", "method", "n_items")


@dataclass(frozen=True)
class Kappa(Shown):
    """Agreement beyond chance, at most 1; the limits of its interval; the observed agreement; the number of items."""

    value: float
    low: float
    high: float
    agreement: float
    n_items: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row: value, low, high, agreement, n_items."""
        return pd.DataFrame([asdict(self)])

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Agreement beyond chance", self.to_frame(), value="value", heads=0)


@with_usual_errors
def cohen_kappa(
    first: Any, second: Any, *, weights: str | None = None, categories: Sequence[Any] | None = None, level: float = 0.95
) -> Kappa:
    """Cohen's kappa between two judges, ``(p_o - p_e)/(1 - p_e)``, with a normal interval, by statsmodels.

    Source: Cohen, Educational and Psychological Measurement 20, 1960, and Psychological Bulletin 70, 1968 (weights).
    Fleiss, Cohen and Everitt, Psychological Bulletin 72, 1969 (large-sample standard error).

    Parameters
    ----------
    first, second, level
        The labels of each judge, shape (n_items,); nominal coverage of the interval.
    weights
        ``None``: labels are equal or not. ``"linear"``, ``"quadratic"``: disagreement is the distance of the labels
        among the categories, or its square.
    categories
        All labels, from low to high. By default the sorted labels that occur; required for weights of text labels.

    Returns
    -------
    Kappa
        NaN, with a warning, if both judges give the same label to all items; NaN limits, with a warning, if the
        standard error is 0. The observed agreement is the proportion of equal labels for any weights.

    Examples
    --------
    >>> result = cohen_kappa([1, 1, 0, 0, 1, 0], [1, 1, 0, 1, 1, 0])
    >>> round(result.value, 3), round(result.agreement, 3)
    (0.667, 0.833)
    """
    check_level(level)
    if weights not in (None, "linear", "quadratic"):
        raise ParameterError(f"weights={excerpt(weights)}: wanted None, 'linear' or 'quadratic'")
    if len(first) != len(second):
        raise InputError(f"first has {len(first)} labels, second {len(second)}; give the labels of the same items")
    codes, n = category_codes(
        label_frame(pd.DataFrame({"first": np.asarray(first), "second": np.asarray(second)})), categories, weights
    )
    counts = np.bincount(codes[:, 0] * n + codes[:, 1], minlength=n * n).reshape(n, n)
    agreement = float(np.trace(counts) / len(codes))
    if _is_certain(codes):
        return Kappa(np.nan, np.nan, np.nan, agreement, len(codes))
    from scipy import special
    from statsmodels.stats.inter_rater import cohens_kappa

    with np.errstate(invalid="ignore", divide="ignore"):
        # statsmodels also divides by the standard error under independence, which may be 0.
        kappa = cohens_kappa(counts, wt=weights)
    value, variance = float(kappa.kappa), float(kappa.var_kappa)
    if variance <= ROUNDING:
        warn("all labels agree, or a judge gives the same label to all items: the standard error is 0")
        return Kappa(value, np.nan, np.nan, agreement, len(codes))
    half_width = float(special.ndtri((1 + level) / 2)) * float(np.sqrt(variance))
    return Kappa(value, value - half_width, min(value + half_width, 1.0), agreement, len(codes))


@with_usual_errors
def fleiss_kappa(labels: Any, *, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0) -> Kappa:
    """Fleiss' kappa among two or more judges, with a percentile bootstrap interval over items, by statsmodels.

    ``κ = (P - P_e)/(1 - P_e)``: P is the mean over items of the proportion of agreeing pairs of judges, ``P_e =
    Σ_j p_j²`` with the proportion p_j of label j among all labels (Fleiss, Psychological Bulletin 76, 1971).

    Parameters
    ----------
    labels, level, n_resamples, seed
        A row for each item, a column for each judge: a frame, or an array of shape (n_items, n_judges); nominal
        coverage of the interval; number and seed of the resamples of the items.

    Returns
    -------
    Kappa
        NaN, with a warning, if all labels are the same. The observed agreement is the proportion of items on which all
        judges agree.

    Examples
    --------
    >>> result = fleiss_kappa([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> round(result.value, 3), result.agreement
    (0.657, 0.75)
    """
    _check(level, n_resamples, seed)
    codes, n = category_codes(label_frame(labels), None, None)
    agreement = float((codes == codes[:, :1]).all(axis=1).mean())
    if _is_certain(codes):
        return Kappa(np.nan, np.nan, np.nan, agreement, len(codes))
    from statsmodels.stats import inter_rater

    counts = np.stack([(codes == code).sum(axis=1) for code in range(n)], axis=1)
    value = float(inter_rater.fleiss_kappa(counts))
    n_items, m = codes.shape
    # Kappa is a function of means over items: the proportions of agreeing pairs and of labels.
    terms = np.column_stack([(counts * (counts - 1)).sum(axis=1) / (m * (m - 1)), counts / m])

    def kappa(sums: Floats) -> Floats:
        means = sums / n_items
        beyond = 1 - (means[:, 1:] ** 2).sum(axis=1)
        return np.asarray(1 - (1 - means[:, 0]) / np.where(beyond > ROUNDING, beyond, np.nan))

    low, high = _resample_limits(terms, kappa, stream(seed, "kappa"), level, n_resamples)
    return Kappa(value, low, high, agreement, len(codes))


@with_usual_errors
def krippendorff_alpha(
    labels: Any, *, groups: Any = None, level: float = 0.95, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Kappa:
    """Krippendorff's alpha of nominal labels with gaps, ``1 - D_o/D_e``, with a percentile bootstrap interval.

    ``D_o = 1/n Σ_u (m_u² - Σ_k c_uk²)/(m_u - 1)`` over items with m_u of at least 2 labels, c_uk of them k; ``D_e = (n²
    - Σ_k n_k²)/(n (n - 1))`` for n_k labels k among all n labels of these items (Krippendorff, Computing Krippendorff's
    alpha-reliability, University of Pennsylvania, 2011).

    Parameters
    ----------
    labels, level, n_resamples, seed
        As in :func:`fleiss_kappa`; missing labels are NaN or None.
    groups
        The group of each item, such as its query: groups are resampled, because their items depend on each other.

    Returns
    -------
    Kappa
        NaN, with a warning, if all labels are the same. The observed agreement is the proportion of items on which all
        their judges agree; ``n_items`` counts items with at least two labels.

    Examples
    --------
    >>> result = krippendorff_alpha([[1, 1, None], [0, 0, 0], [1, 0, 1], [0, None, None]])
    >>> round(result.value, 3), result.n_items
    (0.562, 3)
    """
    _check(level, n_resamples, seed)
    frame = label_frame(labels)
    flat, levels = pd.factorize(frame.to_numpy(dtype=object).ravel())
    codes = flat.reshape(frame.shape)
    counts = np.stack([(codes == code).sum(axis=1) for code in range(len(levels))], axis=1).reshape(len(frame), -1)
    size = counts.sum(axis=1)
    used = size > 1
    if not used.any():
        raise InputError("labels: no item has two labels; give the labels of several judges for the same items")
    counts, size = counts[used], size[used]
    agreement = float((counts.max(axis=1) == size).mean())
    if (counts.sum(axis=0) > 0).sum() == 1:
        warn("all labels are the same: agreement beyond chance is undefined")
        return Kappa(np.nan, np.nan, np.nan, agreement, len(size))
    terms = np.column_stack([(size**2 - (counts**2).sum(axis=1)) / (size - 1), counts])
    if groups is not None:
        group = pd.factorize(np.asarray(groups)[used])[0]
        terms = np.stack([np.bincount(group, column) for column in terms.T], axis=1)
    low, high = _resample_limits(terms, _alpha, stream(seed, "alpha"), level, n_resamples)
    return Kappa(float(_alpha(terms.sum(axis=0))), low, high, agreement, len(size))


@with_usual_errors
def judge_agreement(
    labels: Any,
    *,
    weights: str | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Inter-annotator agreement: Cohen's kappa of each pair of judges, Fleiss' kappa and full agreement.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.6 (2).

    Parameters
    ----------
    labels, weights, categories, level, n_resamples, seed
        As in :func:`cohen_kappa` and :func:`fleiss_kappa`; the columns of ``labels`` name the judges.

    Returns
    -------
    pandas.DataFrame
        judges, statistic, value, low, high, level, method, n_items; a row for each pair of judges, one for Fleiss'
        kappa and one for the proportion of items on which all agree (Clopper-Pearson interval).

    Examples
    --------
    >>> labels = pd.DataFrame({"a": [1, 0, 1, 0, 1], "b": [1, 0, 1, 1, 1], "c": [1, 0, 0, 0, 1]})
    >>> judge_agreement(labels)[["judges", "value"]].round(2).values.tolist()
    [['a, b', 0.55], ['a, c', 0.62], ['b, c', 0.29], ['a, b, c', 0.44], ['a, b, c', 0.6]]
    """
    frame = label_frame(labels)
    name = "Cohen's kappa" + (f" ({weights} weights)" if weights else "")
    rows: list[tuple[Any, ...]] = []
    for a, b in combinations(frame.columns, 2):
        two = cohen_kappa(frame[a], frame[b], weights=weights, categories=categories, level=level)
        rows.append((f"{a}, {b}", name, two.value, two.low, two.high, level, "normal", two.n_items))
    everyone, n = ", ".join(map(str, frame.columns)), len(frame)
    every = fleiss_kappa(frame, level=level, n_resamples=n_resamples, seed=seed)
    rows.append((everyone, "Fleiss' kappa", every.value, every.low, every.high, level, "items (percentile)", n))
    limits = share_interval(round(every.agreement * n), n, level)
    rows.append((everyone, "full agreement", every.agreement, *limits, level, "Clopper-Pearson", n))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _check(level: float, n_resamples: int, seed: int) -> None:
    check_level(level)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)


def label_frame(labels: Any) -> pd.DataFrame:
    """Return labels as a frame with a column for each of at least two judges."""
    if isinstance(labels, (list, tuple, np.ndarray)):
        array = np.asarray(labels)
        if array.ndim != 2:  # noqa: PLR2004 - items and judges
            raise InputError(
                f"labels: wanted a row for each item and a column for each judge, found the shape {array.shape}"
            )
        frame = pd.DataFrame(array)
    else:
        frame = pandas_frame(labels, "labels")
    if frame.shape[1] < 2:  # noqa: PLR2004 - two judges
        raise InputError(f"labels: found {frame.shape[1]} columns; agreement needs at least two judges, a column each")
    try:
        distinct = pd.unique(pd.Series(frame.to_numpy(dtype=object).ravel()).dropna())
    except TypeError as error:
        raise InputError(f"labels: wanted numbers or texts: {error}") from None
    texts = [label for label in distinct if isinstance(label, str)]
    if texts and len(texts) < len(distinct):
        number = next(label for label in distinct if not isinstance(label, str))
        raise InputError(
            f"labels: found the text {texts[0]!r} and {_text(number)}, which never agree; wanted labels of one kind, "
            "and columns of judges only (drop columns of queries and documents)"
        )
    return frame


def category_codes(labels: pd.DataFrame, categories: Sequence[Any] | None, weights: str | None) -> tuple[Ints, int]:
    """Encode labels as indices of categories, shape (n_items, n_judges), and return the number of categories."""
    if not len(labels):
        raise InputError("labels: no items; give the labels of several judges for the same items")
    missing = labels.isna().to_numpy()
    if missing.any():
        row, column = (int(place[0]) for place in np.nonzero(missing))
        raise InputError(
            f"labels: item {row} has no label of judge {labels.columns[column]!r}; keep items labelled by all judges"
        )
    flat = labels.to_numpy().ravel()
    if categories is None:
        numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in labels.dtypes)
        if weights is not None and not numeric:
            raise ParameterError(
                f"weights={excerpt(weights)} need an order of labels; give categories, from low to high"
            )
        levels = pd.Index(pd.unique(pd.Series(flat))).sort_values()
    else:
        levels = pd.Index(list(categories))
        if not levels.is_unique:
            raise ParameterError(f"categories={list(categories)}: wanted each label once")
    codes = np.asarray(levels.get_indexer(pd.Index(flat)), dtype=np.int64)
    if (codes < 0).any():
        odd = int(np.argmax(codes < 0))
        legal = ", ".join(map(_text, levels))
        raise InputError(f"labels: item {odd // labels.shape[1]} has {_text(flat[odd])}, wanted one of {legal}")
    return codes.reshape(labels.shape), len(levels)


def _text(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _is_certain(codes: Ints) -> bool:
    if certain := bool((codes == codes[0, 0]).all()):
        warn("all labels are the same: agreement beyond chance is undefined")
    return certain


def _resample_limits(
    terms: Floats, statistic: Callable[[Floats], Floats], draw: np.random.Generator, level: float, n_resamples: int
) -> tuple[float, float]:
    """Return percentiles of a statistic of the column sums of terms, shape (n, n_terms), over resampled rows."""
    n, step = len(terms), max(1, BLOCK_CELLS // len(terms))
    draws = np.empty(n_resamples)
    for done in range(0, n_resamples, step):
        size = min(step, n_resamples - done)
        rows = draw.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n)
        draws[done : done + size] = statistic(times @ terms)
    draws = draws[~np.isnan(draws)]
    low, high = np.quantile(draws, tail_probabilities(level)) if len(draws) else (np.nan, np.nan)
    return float(low), float(high)


def _alpha(sums: Floats) -> Floats:
    """Krippendorff's alpha from sums of disagreements and of the labels of each category, shape (..., 1 + n)."""
    n = sums[..., 1:].sum(axis=-1)
    expected = n**2 - (sums[..., 1:] ** 2).sum(axis=-1)
    return np.asarray(1 - (n - 1) * sums[..., 0] / np.where(expected > 0, expected, np.nan))

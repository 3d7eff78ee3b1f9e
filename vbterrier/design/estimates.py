"""What sampled queries say about all queries of their corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.design.sampling import QuerySample
from vbterrier.errors import InputError, choice, examples, number, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, numbers_of, require_same_kind
from vbterrier.kernels.sampling import total_variance

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


ESTIMATORS = ("hajek", "ht")
TARGETS = ("mean", "total")
# Draws of equal weight that an interval needs.
_FEW = 20
COLUMNS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed", "std_error")


def horvitz_thompson(
    sample: QuerySample, values: Any, *, of: str = "mean", estimator: str = "hajek", level: float = 0.95
) -> pd.DataFrame:
    r"""Estimate the mean (or total) over all queries of a corpus from values of sampled ones.

    ``"ht"`` (Horvitz and Thompson): ``t = Σ w_i y_i`` with ``w_i = 1/π_i``, or, with replacement, ``w_i = k_i/(n p_i)``
    of a query drawn ``k_i`` times (Hansen and Hurwitz); the mean is ``t/N``. ``"hajek"``: ``Σ w_i y_i / Σ w_i``, and N
    times that.

    Parameters
    ----------
    sample
        The queries, as :func:`sample_queries` drew them.
    values
        A V frame: name, qid, measure, value; each system and measure has every sampled query once.
    of
        ``"mean"`` or ``"total"``.
    estimator
        ``"ht"`` has no bias at all, ``"hajek"`` one of order 1/n; which of them varies less depends on whether values
        are alike (``"hajek"``), or as large as the probabilities (``"ht"``). Under ``uniform`` without strata they are
        one.
    level
        Nominal coverage, 0 to 1.

    Returns
    -------
    pandas.DataFrame
        A C frame, a row a system and measure: name, measure, value, low, high, level, method, n_qids, n_resamples (0),
        seed (0), and std_error. The interval is Student's t, with as many degrees of freedom as draws that vary less
        the strata.

    Raises
    ------
    InputError
        Values of other queries, of a query twice, or not of all; a value that is no finite number.
    ParameterError
        An unknown estimator or target, a level outside (0, 1).

    Warns
    -----
    DegenerateWarning
        A stratum of a single draw, which says nothing of its variance: std_error, low and high are NaN. Weights so
        unequal that the sample is worth few queries, ``(Σ w)²/Σ w²`` (Kish): below 20, and a fifth of the queries.

    Notes
    -----
    Variances, ``v = Σ_h n_h/(n_h - 1) Σ_i c_i (e_i - B_h)²`` with ``e_i = y_i/π_i`` (or ``y_i/(n_h p_i)``) and B_h the
    mean of e weighted by c; for ``"hajek"`` of ``y - mean`` in place of y:

    - with replacement: c = 1, which is without bias for ``"ht"``;
    - ``uniform`` without replacement: c = 1 - π, the variance of stratified random sampling, without bias, too;
    - ``weighted`` without replacement: c = 1 - π, Hájek's approximation, which needs no probabilities of pairs;
    - ``random-document`` and ``random-mention`` without replacement: c = 1, as one query of a document (or mention)
      does not tell how much its queries differ. On average it is too large by D times the variance of the documents'
      totals, n/D of what comes from there: nothing for a few hundred of a million documents.

    Simulated on AIDA-CoNLL (8,204 queries, 200 drawn, 1,000 samples), nominal 95 % intervals of the share of links held
    it, for hajek (ht): random-document .95 (.98), random-mention .95 (.90), uniform .95 (.95), weighted by frequency
    of the mention .94 (.95), and with replacement .92 (.95); of hajek, standard deviation .036, .035, .028, .058, .063,
    estimated as .037, .035, .029, .059, .059.

    ``random-mention`` is a poor way to the mean over queries where mentions are as unequal as names in news are: a
    few frequent ones stand for most queries. The mean over what a method draws, as the paper has it for both of its
    methods, is the plain mean of its queries, see :func:`vbterrier.stats.topics_interval`.

    Measures that are ratios of totals, as precision of links, are not means over queries: estimate both totals.

    References
    ----------
    Horvitz and Thompson, JASA 47, 1952. Hansen and Hurwitz, Annals of Mathematical Statistics 14, 1943. Hájek, Annals
    of Mathematical Statistics 35, 1964. Särndal, Swensson, Wretman: Model Assisted Survey Sampling, 1992, 4.3 and 5.7.

    Examples
    --------
    >>> from vbterrier.design.sampling import sample_queries
    >>> corpus = pd.DataFrame({"docno": [f"d{n}" for n in range(8)], "mention": list("aaaabbcd")})
    >>> sample = sample_queries(corpus, 3, method="random-mention", seed=1)
    >>> known = sample.frame.assign(name="mine", measure="P", value=(sample.frame["mention"] == "a") * 1.0)
    >>> horvitz_thompson(sample, known)[["measure", "value", "n_qids", "method"]].round(3).values.tolist()
    [['P', 0.571, 3, 'queries (hajek)']]
    """
    if not isinstance(sample, QuerySample):
        raise InputError(f"sample: wanted a QuerySample, as sample_queries draws, found {type(sample).__name__}")
    choice("estimator", estimator, ESTIMATORS)
    choice("of", of, TARGETS)
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    keys, y = _wide(sample, values)
    weights = sample.weights
    _warn_of_few(weights)
    total = weights @ y
    scale = 1.0 if of == "total" else 1 / sample.n_queries
    if estimator == "hajek":
        total *= sample.n_queries / weights.sum()
        # What is left varies as the ratio does, to the first order.
        y = (y - total / sample.n_queries) * (sample.n_queries / weights.sum())
    error, freedom = _errors(sample, y, weights)
    reach = _student(level, freedom) * error
    rows = {"value": total, "low": total - reach, "high": total + reach}
    frame = keys.assign(**{name: found * scale for name, found in rows.items()}, level=level)
    frame = frame.assign(method=f"queries ({estimator})", n_qids=len(sample), n_resamples=0, seed=0)
    return frame.assign(std_error=error * scale)[list(COLUMNS)]


def _warn_of_few(weights: Floats) -> None:
    worth = float(weights.sum() ** 2 / (weights**2).sum())
    if worth < min(_FEW, len(weights) / 5):
        warn(
            f"sample: weights are so unequal that its {len(weights)} queries are worth {worth:.1f}; do not rely on the "
            "interval, and draw by a method whose probabilities differ less, as 'uniform' does"
        )


def _errors(sample: QuerySample, y: Floats, weights: Floats) -> tuple[Floats, int]:
    """Standard errors of totals, shape (n_columns,), and their degrees of freedom."""
    n_draws = sample.frame["n_draws"].to_numpy(dtype=np.int64)
    stratum = pd.Index(sample.strata["stratum"]).get_indexer(sample.frame["stratum"])
    is_one_stage = not sample.replace and sample.method in ("uniform", "weighted")
    left = 1 - sample.frame["prob"].to_numpy(dtype=np.float64) if is_one_stage else np.ones(len(sample))
    variance, n_varying = total_variance(y * (weights / n_draws)[:, None], n_draws, left, stratum)
    single = sample.strata["stratum"][n_varying == 1]
    if len(single):
        warn(
            f"{len(single)} strata have a single draw ({examples(single)}), which says nothing of their variance; draw "
            "two at least, or join strata"
        )
    return np.sqrt(variance), int(np.maximum(n_varying - 1, 0).sum())


def _student(level: float, freedom: int) -> float:
    from scipy import special

    # Where nothing varies, the whole corpus is known.
    return float(special.stdtrit(freedom, (1 + level) / 2)) if freedom else 0.0


def _wide(sample: QuerySample, values: Any) -> tuple[pd.DataFrame, Floats]:
    """The systems and measures, and a value of each sampled query for each of them, shape (n_qids, n_columns)."""
    frame = frame_of(values, "values")
    require(frame, ("name", "qid", "measure", "value"), "values")
    if not len(frame):
        return pd.DataFrame({"name": pd.Series(dtype=str), "measure": pd.Series(dtype=str)}), np.empty((len(sample), 0))
    qid, wanted = ids_of(frame["qid"], "values column 'qid'"), ids_of(sample.frame["qid"], "sample column 'qid'")
    require_same_kind(qid, wanted, "values column 'qid'", "sample column 'qid'")
    row = pd.Index(wanted.text.to_pylist()).get_indexer(qid.text.to_pylist())
    if (row < 0).any():
        stranger = qid.text[int(np.argmax(row < 0))].as_py()
        raise InputError(
            f"values: query {stranger!r} (row {int(np.argmax(row < 0))}) was not sampled; leave its values out"
        )
    keys = frame[["name", "measure"]].drop_duplicates(ignore_index=True)
    column = frame[["name", "measure"]].merge(keys.assign(column=np.arange(len(keys))), how="left")["column"].to_numpy()
    found = numbers_of(frame["value"], "values column 'value'")
    y = np.full((len(sample), len(keys)), np.nan)
    y[row, column] = found
    times = np.zeros(y.shape, dtype=np.int64)
    np.add.at(times, (row, column), 1)
    if (times != 1).any():
        first, place = (int(index) for index in np.argwhere(times != 1)[0])
        name, measure = keys.iloc[place]
        raise InputError(
            f"values: {name!r}, {measure!r} has {times[first, place]} values of query {wanted.text[first].as_py()!r}, "
            f"wanted one of each of the {len(sample)} sampled queries; a query that was not judged is no zero"
        )
    if not np.isfinite(y).all():
        raise InputError("values column 'value': holds an infinite value, wanted finite numbers; repair it")
    return keys, y

"""Samples of queries, and estimates for all queries from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.design.strata import STAGES, MentionCorpus, Units, allocate, query_strata
from vbterrier.errors import InputError, ParameterError, choice, examples, number, warn, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import Ids, column_ids, column_numbers, require_same_kind
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.queries import queries_frame
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import bounded_limits, stream
from vbterrier.kernels.sampling import total_variance
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.design.strata import Allocation, Strata
    from vbterrier.frames.contracts import Bounds


METHODS = (*STAGES, "uniform", "weighted")
RESERVED = ("n_documents", "stratum", "prob", "n_draws")


@dataclass(frozen=True, eq=False, repr=False)
class QuerySample(Shown):
    """Queries sampled from a corpus of mentions, with the sampling design.

    ``queries``: one row per query, in the order of the draws within each stratum: qid, docno, mention, other columns
    of the mentions, n_documents (with the mention, in the corpus), stratum ("all" without strata), prob (the inclusion
    probability; with replacement the probability of one draw in its stratum), n_draws (1 without replacement).
    ``strata``: one row per stratum: stratum, n_queries (distinct queries in the corpus), n_drawable (the largest number
    of draws without replacement), n_draws.
    """

    queries: pd.DataFrame
    strata: pd.DataFrame
    method: str
    replace: bool
    seed: int

    def __len__(self) -> int:
        return len(self.queries)

    def to_frame(self) -> pd.DataFrame:
        """Return ``queries``: a row per query."""
        return self.queries

    def _line(self) -> str:
        n_strata = len(self.strata)
        by = f"{self.method}, {'with' if self.replace else 'without'} replacement"
        by += f", {n_strata} strata" if n_strata > 1 else ""
        return f"{len(self)} of {self.n_queries:,} queries; {by}; seed {self.seed}"

    def _verdict(self) -> Iterator[str]:
        where = f" of {len(self.strata)} strata" if len(self.strata) > 1 else ""
        how = f"{self.method}, {'with' if self.replace else 'without'} replacement, seed {self.seed}"
        yield f"{len(self)} of {count_text(self.n_queries, 'query')}{where} are drawn ({how})."

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries", self.queries)
        yield Panel("Strata", self.strata)

    @property
    def n_queries(self) -> int:
        """Number of distinct queries in the corpus."""
        return int(self.strata["n_queries"].sum())

    @property
    def weights(self) -> Floats:
        """Sampling weights of the queries, shape (n,): ``1/π``, or ``n_draws/(n_h p)``."""
        prob = self.queries["prob"].to_numpy(dtype=np.float64)
        if not self.replace:
            return 1 / prob
        drawn = self.strata.set_index("stratum")["n_draws"]
        n_h = drawn.loc[self.queries["stratum"]].to_numpy(dtype=np.float64)
        return np.asarray(self.queries["n_draws"].to_numpy(dtype=np.float64) / (n_h * prob))


@with_usual_errors
def sample_queries(
    mentions: Any,
    n: int,
    *,
    method: str = "random-document",
    replace: bool = False,
    strata: Strata = None,
    allocation: Allocation = "proportional",
    variances: Mapping[Any, float] | None = None,
    weights: str | None = None,
    seed: int = 0,
) -> QuerySample:
    r"""Sample queries (docno, mention) from a corpus of mentions, with their probabilities.

    ``random-document`` (RD): a uniform document, then one of its mentions. ``random-mention`` (RM): a uniform mention,
    then one of its documents. ``uniform``: a uniform query. ``weighted``: a query with probability proportional to its
    weight. For N queries, D documents with ``M_d`` mentions and M mentions in ``D_m`` documents:

    =================  =========================  ===================================  ==============
    method             one draw, with             in the sample, without replacement   largest n
                       replacement
    =================  =========================  ===================================  ==============
    random-document    ``1/(D M_d)``              ``n/(D M_d)``                        D
    random-mention     ``1/(M D_m)``              ``n/(M D_m)``                        M
    uniform            ``1/N``                    ``n/N``                              N
    weighted           ``w_i/Σ w``                ``min(1, λ w_i)``                    N
    =================  =========================  ===================================  ==============

    Parameters
    ----------
    mentions
        Columns docno, mention and optional columns such as entity_id; or the path of such a file. Rows with the same
        docno and mention are one query (a mention has one meaning in a document), of which the first row is used.
        Mentions are case-sensitive.
    n, seed
        Number of draws, and their seed. The draws depend on the seed, the method and the names of the strata, but not
        on the order of rows or on other columns.
    method
        The sampling method.
    replace
        Sample with replacement. Without replacement, RD draws at most one query per document and RM at most one per
        mention, which keeps the probabilities above exact.
    strata
        Strata that are sampled separately: a column; a number of bins of mention frequency with similar numbers of
        queries; or a function from the frame of distinct queries (with n_documents, the mention frequency) to labels.
    allocation
        Draws of each stratum: ``"proportional"`` to the expected draws without strata, ``"equal"``, ``"neyman"``
        (``N_h sqrt(variance_h)``, optimal for the mean under ``uniform``), or a mapping of strata to numbers. Every
        stratum gets at least two draws, or one if n or the stratum is too small.
    variances
        For ``"neyman"``: the variance of a value within each stratum, from a pilot.
    weights
        For ``"weighted"``: the column of weights, above 0. Of duplicated rows the first counts.

    Returns
    -------
    QuerySample
        ``queries``: a row per sampled query with its inclusion probability; ``strata``: a row per stratum.

    Raises
    ------
    InputError
        A missing column or value, no rows, weights that are not above 0, a reserved column name.
    ParameterError
        More draws than possible without replacement, an unknown method, a sample too small for its strata.

    Notes
    -----
    Without a column qid, the qid is a fingerprint of docno and mention, the same in all samples. Within a stratum, a
    larger n extends a smaller sample (except ``weighted`` without replacement), so that its judgments remain usable.
    ``weighted`` without replacement is systematic sampling in a random order, with exactly these probabilities.

    Source: Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 2.
    Hartley and Rao: Sampling with unequal probabilities and without replacement, Annals of Mathematical Statistics 33,
    1962. Neyman, JRSS 97, 1934.

    Examples
    --------
    >>> pairs = [("d1", "Paris"), ("d1", "Texas"), ("d2", "Paris"), ("d3", "Paris"), ("d3", "Rue Gracieuse")]
    >>> corpus = pd.DataFrame(pairs, columns=["docno", "mention"])
    >>> result = sample_queries(corpus, 2, method="random-mention", seed=1)
    >>> result
    QuerySample(2 of 5 queries; random-mention, without replacement; seed 1)
    >>> result.queries[["docno", "mention", "n_documents", "prob"]].round(3).values.tolist()
    [['d1', 'Texas', 1, 0.667], ['d3', 'Rue Gracieuse', 1, 0.667]]
    """
    whole("n", n)
    whole("seed", seed, low=0)
    choice("method", method, METHODS)
    if (weights is not None) != (method == "weighted"):
        raise ParameterError("weights and method='weighted' go together; give both or neither")
    if strata is None and (allocation != "proportional" or variances is not None):
        raise ParameterError("allocation and variances need strata; give strata")
    corpus = MentionCorpus(mentions)
    for name in RESERVED:
        if name in corpus.frame.columns:
            raise InputError(f"mentions: the sample has a column {name!r}; rename that of the mentions")
    extras = [name for name in corpus.frame.columns if name not in ("qid", "docno", "mention")]
    names, stratum = query_strata(corpus, strata, extras)
    taken = [name for name in dict.fromkeys(["entity_id", strata, weights]) if name in (*extras, "docno", "mention")]
    corpus.warn_of_conflicts([str(name) for name in taken])
    units = Units.of(corpus, method, stratum, len(names), weights)
    if not replace and n > len(units.sizes):
        raise ParameterError(
            f"n={n}: without replacement {method} can draw {len(units.sizes)} of these mentions, one for each "
            f"{STAGES.get(method, 'query')}; draw fewer, or with replace=True"
        )
    n_queries, shares = np.bincount(stratum), np.bincount(stratum, units.share(corpus, method)).astype(np.float64)
    sizes = allocate(
        names,
        n,
        allocation,
        capacity=np.full(len(names), n) if replace else units.n_units,
        shares=shares,
        n_queries=n_queries,
        variances=variances,
    )
    drawn = [
        units.draw(place, int(size), replace=replace, seed=seed, name=f"{method}, {name}")
        for place, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    frame = _sample_frame(corpus, extras, names, stratum, drawn)
    about = {"stratum": names, "n_queries": n_queries, "n_drawable": units.n_units, "n_draws": sizes}
    return QuerySample(frame, pd.DataFrame(about), method, replace, seed)


def _sample_frame(
    corpus: MentionCorpus, extras: list[str], names: list[str], stratum: Ints, drawn: list[tuple[Ints, Floats]]
) -> pd.DataFrame:
    query = np.concatenate([queries for queries, _ in drawn])
    number, distinct = pd.factorize(query)
    _, first = np.unique(number, return_index=True)
    rows = corpus.frame.iloc[corpus.rows[distinct]]
    frame: pd.DataFrame = rows[extras].reset_index(drop=True)
    docno, mention = (column_ids(rows[name], f"mentions column {name!r}") for name in ("docno", "mention"))
    if "qid" in rows.columns:
        qid = column_ids(rows["qid"], "mentions column 'qid'")
        if len(pc.unique(qid.text)) < len(qid):
            raise InputError("mentions column 'qid': two queries have the same qid; make it unique, or drop the column")
    else:
        # Fingerprints of docno and mention; the length distinguishes ("a", "bc") from ("ab", "c").
        length = pc.cast(pc.binary_length(docno.text), pa.large_string())
        text = pc.binary_join_element_wise(length, docno.text, mention.text, pa.scalar(" ", pa.large_string()))
        qid = Ids(pa.array([f"q{number:016x}" for number in Ids(text).fingerprints.tolist()], pa.large_string()))
    for place, (name, ids) in enumerate({"qid": qid, "docno": docno, "mention": mention}.items()):
        frame.insert(place, name, ids.text.to_pandas())
    frame["n_documents"] = corpus.frequency[distinct]
    frame["stratum"] = pd.Series(names, dtype=frame["qid"].dtype).iloc[stratum[distinct]].to_numpy()
    frame["prob"] = np.concatenate([prob for _, prob in drawn])[first]
    frame["n_draws"] = np.bincount(number)
    return frame


ESTIMATORS = ("hajek", "ht")
TARGETS = ("mean", "total")
# Effective sample size that an interval needs.
_MIN_EFFECTIVE_SIZE = 20
# Effective sample size, relative to the queries, below which weights are unequal.
_MIN_EFFECTIVE_SHARE = 0.8
COLUMNS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed", "std_error")


@with_usual_errors
def horvitz_thompson(
    sample: QuerySample,
    values: Any,
    *,
    of: str = "mean",
    estimator: str = "hajek",
    level: float = 0.95,
    interval: str = "auto",
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate the mean (or total) over all queries of a corpus from the values of sampled queries.

    ``"ht"`` (Horvitz and Thompson): ``t = Σ w_i y_i`` with ``w_i = 1/π_i``, or, with replacement, ``w_i = k_i/(n p_i)``
    of a query drawn ``k_i`` times (Hansen and Hurwitz); the mean is ``t/N``. ``"hajek"``: ``Σ w_i y_i / Σ w_i``; the
    total is N times the mean.

    Parameters
    ----------
    sample, values
        The queries, as :func:`sample_queries` drew them, and a V frame: name, qid, measure, value; one value per
        system, measure and sampled query.
    of, estimator
        ``"mean"`` or ``"total"``, by ``"ht"``, which is unbiased, or ``"hajek"``, which has a bias of order 1/n.
        ``"hajek"`` has a smaller variance if values are similar, ``"ht"`` if they are proportional to the
        probabilities.
    level
        Nominal coverage of the interval, between 0 and 1.
    interval
        ``"t"``: Student's t; its degrees of freedom are the number of varying draws minus the number of strata.
        ``"bounded"``: the limits of :func:`~vbterrier.kernels.resample.mean_draws`, with the sampling weights and
        one further draw of the largest weight in the sample, for measures with a known range; strata are ignored.
        ``"auto"``: bounded for measures with a known range and unequal weights, whose effective sample size ``(Σ w)²/Σ
        w²`` (Kish) is below .8 of the queries; t otherwise. See the notes.
    n_resamples, seed
        Number of draws of bounded limits, and their seed.

    Returns
    -------
    pandas.DataFrame
        A C frame, one row per system and measure: name, measure, value, low, high, level, method, n_qids, n_resamples
        (0 for t), seed, and std_error.

    Raises
    ------
    InputError, ParameterError
        Values of queries outside the sample, duplicated, missing or infinite values; an unknown option.

    Warns
    -----
    DegenerateWarning
        A stratum with a single draw, whose variance is unknown: std_error, and the limits of t, are NaN. Very unequal
        weights and limits by t: an effective sample size below 20 and below a fifth of the queries.

    Notes
    -----
    Variances, ``v = Σ_h n_h/(n_h - 1) Σ_i c_i (e_i - B_h)²`` with ``e_i = y_i/π_i`` (or ``y_i/(n_h p_i)``) and B_h the
    mean of e weighted by c; for ``"hajek"``, y is replaced by ``y - mean``:

    - with replacement: c = 1, unbiased for ``"ht"``;
    - ``uniform`` without replacement: c = 1 - π, the variance of stratified random sampling, unbiased;
    - ``weighted`` without replacement: c = 1 - π, Hájek's approximation, which needs no joint inclusion probabilities;
    - ``random-document`` and ``random-mention`` without replacement: c = 1, as one query per document (or mention)
      gives no variance within documents. On average this overestimates the variance by a share of n/D of the variance
      of the documents' totals: negligible for a few hundred of a million documents.

    ``random-mention`` estimates the mean over queries poorly if mention frequencies are skewed, as in news: a few
    frequent mentions represent most queries. The paper reports the unweighted mean of the sampled queries instead, see
    :func:`vbterrier.stats.intervals`. Few draws with unequal probabilities often miss the queries with large
    weights, which the t interval does not reflect: docs/explanation/statistics.md has the simulated coverage. Ratios of
    totals, such as the precision of links, are not means over queries: estimate both totals.

    Source: Horvitz and Thompson, JASA 47, 1952. Hansen and Hurwitz, Annals of Mathematical Statistics 14, 1943. Hájek,
    same journal 35, 1964. Särndal, Swensson, Wretman: Model Assisted Survey Sampling, 1992, 4.3 and 5.7.

    Examples
    --------
    >>> corpus = pd.DataFrame({"docno": [f"d{n}" for n in range(8)], "mention": list("aaaabbcd")})
    >>> sample = sample_queries(corpus, 3, method="random-mention", seed=1)
    >>> scores = sample.queries.assign(name="mine", measure="P", value=(sample.queries["mention"] == "a") * 1.0)
    >>> horvitz_thompson(sample, scores)[["measure", "value", "n_qids", "method"]].round(3).values.tolist()
    [['P', 0.571, 3, 'queries (hajek, bounded)']]
    """
    from scipy import special

    if not isinstance(sample, QuerySample):
        raise InputError(f"sample: wanted a QuerySample, as sample_queries returns, found {type(sample).__name__}")
    choice("estimator", estimator, ESTIMATORS)
    choice("of", of, TARGETS)
    choice("interval", interval, ("auto", "t", "bounded"))
    n_resamples, seed = whole("n_resamples", n_resamples), whole("seed", seed, low=0)
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    keys, y = _wide(sample, values)
    weights = sample.weights
    n_effective = float(weights.sum() ** 2 / (weights**2).sum())
    bounds = [score_bounds(str(measure)) for measure in keys["measure"]]
    bounded = np.isfinite(np.array(bounds, dtype=np.float64).reshape(-1, 2)).all(axis=1)
    if interval == "bounded" and not bounded.all():
        unknown = examples(keys["measure"].to_numpy()[~bounded].tolist())
        raise ParameterError(f"interval='bounded': the range of {unknown} is unknown; use interval='t'")
    is_bounded = bounded & (
        interval == "bounded" or (interval == "auto" and n_effective < _MIN_EFFECTIVE_SHARE * len(weights))
    )
    if not is_bounded.all() and n_effective < min(_MIN_EFFECTIVE_SIZE, len(weights) / 5):
        warn(
            f"sample: very unequal weights, its {len(weights)} queries have an effective size of {n_effective:.1f}; do "
            "not rely on the interval, and draw by a method with less unequal probabilities, such as 'uniform'"
        )
    total, scores = weights @ y, y
    scale = 1.0 if of == "total" else 1 / sample.n_queries
    if estimator == "hajek":
        total *= sample.n_queries / weights.sum()
        # Linearised residuals of the ratio.
        y = (y - total / sample.n_queries) * (sample.n_queries / weights.sum())
    error, freedom = _errors(sample, y, weights)
    # Without degrees of freedom, the whole corpus is known.
    half_width = (float(special.stdtrit(freedom, (1 + level) / 2)) if freedom else 0.0) * error
    low, high = total - half_width, total + half_width
    for place in np.flatnonzero(is_bounded):
        ends = _mean_limits(sample, scores[:, place], estimator, bounds[place], level, n_resamples, seed)
        low[place], high[place] = ends * sample.n_queries
    frame = keys.assign(value=total * scale, low=low * scale, high=high * scale, level=level)
    labels = np.where(is_bounded, f"queries ({estimator}, bounded)", f"queries ({estimator})")
    frame = frame.assign(method=labels, n_qids=len(sample), n_resamples=np.where(is_bounded, n_resamples, 0), seed=seed)
    return frame.assign(std_error=error * scale)[list(COLUMNS)]


def _mean_limits(
    sample: QuerySample, y: Floats, estimator: str, bounds: Bounds, level: float, n_resamples: int, seed: int
) -> Floats:
    """Limits of the mean over all queries, shape (2,)."""
    # A query that was drawn repeatedly is as many draws.
    times = sample.queries["n_draws"].to_numpy(dtype=np.int64)
    weights, values = np.repeat(sample.weights / times, times), np.repeat(y, times)
    draws, tails = stream(seed, "weighted means"), [(1 - level) / 2, (1 + level) / 2]
    if estimator == "hajek":
        return bounded_limits(values[:, None], bounds, tails, n_resamples, draws, weights)[:, 0]
    # The estimate is the mean of these, in any order of size.
    expanded = values * weights * (len(weights) / sample.n_queries)
    largest = weights.max() * (len(weights) / sample.n_queries)
    ends = min(bounds[0] * largest, 0.0), max(bounds[1] * largest, 0.0)
    return bounded_limits(expanded[:, None], ends, tails, n_resamples, draws)[:, 0]


def _errors(sample: QuerySample, y: Floats, weights: Floats) -> tuple[Floats, int]:
    """Standard errors of totals, shape (n_columns,), and their degrees of freedom."""
    n_draws = sample.queries["n_draws"].to_numpy(dtype=np.int64)
    stratum = pd.Index(sample.strata["stratum"]).get_indexer(sample.queries["stratum"])
    is_one_stage = not sample.replace and sample.method in ("uniform", "weighted")
    left = 1 - sample.queries["prob"].to_numpy(dtype=np.float64) if is_one_stage else np.ones(len(sample))
    variance, n_varying = total_variance(y * (weights / n_draws)[:, None], n_draws, left, stratum)
    single = sample.strata["stratum"][n_varying == 1]
    if len(single):
        warn(
            f"{len(single)} strata have a single draw ({examples(single)}), so that their variance is unknown; draw at "
            "least two, or merge strata"
        )
    return np.sqrt(variance), int(np.maximum(n_varying - 1, 0).sum())


def _wide(sample: QuerySample, values: Any) -> tuple[pd.DataFrame, Floats]:
    """Systems and measures, and the values of the sampled queries, shape (n_qids, n_columns)."""
    frame = pandas_frame(values, "values")
    require(frame, ("name", "qid", "measure", "value"), "values")
    if not len(frame):
        return pd.DataFrame({"name": pd.Series(dtype=str), "measure": pd.Series(dtype=str)}), np.empty((len(sample), 0))
    qid, sampled = (
        column_ids(frame["qid"], "values column 'qid'"),
        column_ids(sample.queries["qid"], "sample column 'qid'"),
    )
    require_same_kind(qid, sampled, "values column 'qid'", "sample column 'qid'")
    row = pd.Index(sampled.text.to_pylist()).get_indexer(qid.text.to_pylist())
    if (row < 0).any():
        at = int(np.argmax(row < 0))
        raise InputError(f"values: query {qid.text[at].as_py()!r} (row {at}) was not sampled; remove its values")
    keys = frame[["name", "measure"]].drop_duplicates(ignore_index=True)
    column = frame[["name", "measure"]].merge(keys.assign(column=np.arange(len(keys))), how="left")["column"].to_numpy()
    numbers = column_numbers(frame["value"], "values column 'value'")
    y = np.full((len(sample), len(keys)), np.nan)
    y[row, column] = numbers
    times = np.zeros(y.shape, dtype=np.int64)
    np.add.at(times, (row, column), 1)
    if (times != 1).any():
        first, place = (int(index) for index in np.argwhere(times != 1)[0])
        name, measure = keys.iloc[place]
        raise InputError(
            f"values: {name!r}, {measure!r} has {times[first, place]} values of query {sampled.text[first].as_py()!r}, "
            f"wanted one of each of the {len(sample)} sampled queries; a query without judgments is not a zero"
        )
    if not np.isfinite(y).all():
        raise InputError("values column 'value': contains an infinite value; wanted finite numbers")
    return keys, y


def sample_by_traffic(traffic: Any, n: int, *, seed: int = 0) -> pd.DataFrame:
    """Draw queries to rate by their traffic, for a weighted mean whose error is nearly that of equal weights.

    The heaviest queries are taken for certain while ``(n - k) w/W >= 1`` for the next one, the k taken so far and the
    traffic W of the rest, at most n/2 of them. The others are drawn with probabilities proportional to their weights,
    with replacement, so that each draw counts the same.

    Parameters
    ----------
    traffic
        All queries with their traffic: a frame (qid, weight) or a path, see
        :func:`vbterrier.frames.queries.queries_frame`. Further columns are kept.
    n
        Number of queries for certain and draws together, at least 2. Rate each query once, also if it is drawn often.
    seed
        Seed of the draws, at least 0. The draws do not depend on the order of rows.

    Returns
    -------
    pandas.DataFrame
        A W frame for ``Data(queries=...)``, heaviest first: qid, weight (its share of the estimated mean; the shares
        sum to 1), drawn (the number of draws, 0 for a query that was taken for certain), and the other columns of the
        traffic.

    Raises
    ------
    InputError, ParameterError
        No column weight; a weight that is negative or no number; fewer than two queries with traffic.

    Notes
    -----
    A uniform sample of queries lacks most of the head, which could lose everything, so that hardly any release passes;
    by traffic, as many pass as with equal weights. See docs/how-to/release-gate.md.

    Source: Hansen and Hurwitz, Annals of Mathematical Statistics 14, 1943 (draws by size).

    Examples
    --------
    >>> traffic = pd.DataFrame({"qid": [f"q{i}" for i in range(1, 1001)], "weight": [1 / i for i in range(1, 1001)]})
    >>> result = sample_by_traffic(traffic, 50)
    >>> int((result["drawn"] == 0).sum()), int(result["drawn"].sum()), round(float(result["weight"].sum()), 6)
    (8, 42, 1.0)
    """
    whole("n", n, low=2)
    whole("seed", seed, low=0)
    frame = queries_frame(traffic, "traffic")
    if "weight" not in frame.columns:
        raise InputError("traffic: wanted a column weight, the traffic of each query; found none")
    frame = frame[frame["weight"] > 0]
    if len(frame) < 2:  # noqa: PLR2004 - a sample varies
        raise InputError(f"traffic: {len(frame)} queries have a weight above 0; wanted at least two")
    # By weight, then id, so that the order of rows has no effect.
    frame = frame.sort_values(["weight", "qid"], ascending=[False, True], kind="stable", ignore_index=True)
    weight = frame["weight"].to_numpy()
    left = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    most = min(n // 2, len(frame))
    taken = np.arange(most)
    light = np.flatnonzero((n - taken) * weight[:most] < left[:most] * (1 - ROUNDING))
    n_certain = int(light[0]) if len(light) else most
    rest, n_draws = weight[n_certain:], n - n_certain
    draws = np.zeros(len(frame), dtype=np.int64)
    share = weight / weight.sum()
    if len(rest):
        source = stream(seed, "sample by traffic")
        draws[n_certain:] = source.multinomial(n_draws, rest / rest.sum())
        share[n_certain:] = draws[n_certain:] / n_draws * rest.sum() / weight.sum()
    kept = (np.arange(len(frame)) < n_certain) | (draws > 0)
    sample = frame.assign(weight=share, drawn=draws)[kept].reset_index(drop=True)
    return sample[["qid", "weight", "drawn", *sample.columns.difference(["qid", "weight", "drawn"], sort=False)]]

"""The W frame: how the queries of an evaluation were sampled, and how much each of them counts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, printable, warn
from vbterrier.frames.columns import QUERIES, SAMPLING
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses, require
from vbterrier.frames.files.reading import read_queries
from vbterrier.frames.ids import column_ids, column_integers, column_keys, column_numbers
from vbterrier.frames.pipelines import pipeline_input
from vbterrier.kernels.mean_limits import LEAST_DF, SampledQueries, moments
from vbterrier.remedies import sampling_by_traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Bools, Floats, Ints


# Shares of drawn queries that are proportional to their draws up to rounding in files.
_DRAW_TOLERANCE = 1e-4
# The columns beside qid, in the order of a frame.
COLUMNS = ("weight", "cluster", "segment", "drawn", "covariate")


def queries_frame(queries: Any, what: str = "queries") -> pd.DataFrame:
    """Return a checked W frame: one row a query, typed columns.

    Parameters
    ----------
    queries
        A path, see :func:`vbterrier.frames.read_queries`; or a frame, such as topics, with ``qid`` and any of

        - ``weight``: the share of the query among all, in any unit, such as its traffic: finite and at least 0, not all
          0; a query of weight 0 counts for nothing
        - ``cluster``: queries of one cluster, such as paraphrases, are sampled together; every query has one
        - ``segment``: a part of the queries that is reported separately; empty for none
        - ``drawn``: how often the query was drawn, a whole number of at least 0; 0 if it was included for certain
        - ``covariate``: a number that is known for more queries than are rated; it may be missing
    what
        The name of the frame in messages.

    Returns
    -------
    pandas.DataFrame
        Columns ``qid``, ``cluster``, ``segment`` (text), ``weight``, ``covariate`` (float64) and ``drawn`` (int64), as
        far as the frame has them, in the order of :data:`COLUMNS`; rows in the order of the frame.

    Raises
    ------
    InputError
        A frame without ``qid``, or with a value that is not one of its column; a query in two rows; two columns for one
        of these.

    Examples
    --------
    >>> table = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jaguar", "car"], "weight": ["3", "1.5"]})
    >>> queries_frame(table).values.tolist()
    [['q1', 3.0], ['q2', 1.5]]
    >>> queries_frame(table.assign(weight=[1, -1]))
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: queries: the weight of 'q2' is -1, wanted a finite number of at least 0
    """
    is_path = isinstance(queries, (str, os.PathLike))
    frame = read_queries(queries) if is_path else pandas_frame(queries, what, QUERIES)
    # Optional columns have the same names in frames as in files.
    frame = frame.set_axis(QUERIES.standard_names([str(name) for name in frame.columns]), axis=1)
    require(frame, ("qid", *(name for name in COLUMNS if name in frame.columns)), what)
    refuse_near_misses(frame, ("weight",), what, others=COLUMNS)
    qids = column_keys(frame["qid"], f"{what} column 'qid'").text.to_pylist()
    repeated = pd.Series(qids).duplicated()
    if repeated.any():
        raise InputError(f"{what}: query {qids[int(repeated.argmax())]!r} is duplicated; keep one row per query")
    columns = {name: _READERS[name](frame[name], what, qids) for name in COLUMNS if name in frame.columns}
    return pd.DataFrame({"qid": qids, **columns})


def selected_queries(
    queries: Any, qids: Sequence[str], *, call: str, honoured: Sequence[str], what: str = "queries"
) -> pd.DataFrame:
    """Return the rows of a W frame of some queries, in their order, for a call that honours some of its columns.

    Parameters
    ----------
    queries, what
        As in :func:`queries_frame`.
    qids
        The queries that are evaluated, each of which needs a row.
    call
        The name of the function or the command, for messages.
    honoured
        The columns that the call honours.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`queries_frame`, with the ids as index.

    Raises
    ------
    InputError
        As :func:`queries_frame`; a query without a row; only weights of 0.
    ParameterError
        A frame with a column that the call does not honour, or without any that it does.

    Examples
    --------
    >>> table = pd.DataFrame({"qid": ["q1", "q2"], "weight": [3, 1], "segment": ["head", "tail"]})
    >>> selected_queries(table, ["q2", "q1"], call="score", honoured=("weight", "segment"))["weight"].tolist()
    [1.0, 3.0]
    >>> selected_queries(table, ["q1"], call="rank_systems", honoured=("weight", "cluster"))
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: rank_systems: column 'segment' of queries has no effect; leave it out, weight, \
cluster are used
    """
    frame = queries_frame(queries, what)
    used = f"{', '.join(honoured)} {'is' if len(honoured) == 1 else 'are'} used" if honoured else "none is used"
    for name in frame.columns[1:]:
        if name not in honoured:
            raise ParameterError(f"{call}: column {name!r} of {what} has no effect; leave it out, {used}")
    if len(frame.columns) == 1:
        raise InputError(f"{what}: wanted a column {' or '.join(honoured)}; found qid alone")
    frame = frame.set_index("qid")
    lacking = [qid for qid in qids if qid not in frame.index]
    if lacking:
        zero = ", with weight 0 to leave them out" if "weight" in frame.columns else ""
        raise InputError(
            f"{what}: no row for {len(lacking)} of {len(qids)} queries ({examples(lacking)}); add them{zero}"
        )
    frame = frame.loc[list(qids)]
    if "weight" in frame.columns and len(frame) and not (frame["weight"] > 0).any():
        raise InputError(f"{what}: all {len(frame)} weights of these queries are 0; wanted at least one above 0")
    return frame


def queries_of_topics(topics: Any) -> pd.DataFrame | None:
    """The W frame that topics are, with the columns of :data:`COLUMNS` that they have; ``None`` without one.

    Parameters
    ----------
    topics
        A frame with a column ``qid`` or a path, see :func:`vbterrier.read_topics`; rows with documents repeat
        their topic. ``None`` gives ``None``.

    Raises
    ------
    InputError
        As :func:`queries_frame`.

    Examples
    --------
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jaguar", "car"], "weight": [3, 1]})
    >>> queries_of_topics(topics).values.tolist(), queries_of_topics(topics[["qid", "query"]])
    ([['q1', 3.0], ['q2', 1.0]], None)
    """
    if topics is None:
        return None
    frame = pipeline_input(topics)
    names = [name for name in COLUMNS if name in frame.columns]
    return queries_frame(frame[["qid", *names]].drop_duplicates(), "topics") if names else None


def require_unweighted(topics: pd.DataFrame, call: str, remedy: str = "leave it out") -> None:
    """Refuse topics with a column that means or tests would have to honour, for a call that does not."""
    for name in SAMPLING:
        if name in topics.columns:
            raise ParameterError(f"{call}: column {name!r} of topics has no effect; {remedy}")


def sampled_queries(frame: pd.DataFrame, what: str = "queries", unsampled: Floats | None = None) -> SampledQueries:
    """Sample that the queries of a checked W frame are: its weights, clusters, and draws by traffic.

    ``unsampled``: the weights of all other queries of the population, if they are known. Queries that weigh more than
    all of these are known for certain, if others remain as a sample of the rest.

    With ``drawn``, weights are shares of the mean as :func:`vbterrier.design.sample_by_traffic` states them: those of
    queries that were taken for certain are known, those of drawn queries are proportional to their draws.

    Raises
    ------
    InputError
        Draws without weights, with clusters, or with weights that are not proportional to them.

    Examples
    --------
    >>> table = pd.DataFrame({"qid": ["a", "b", "c"], "weight": [0.4, 0.2, 0.4], "drawn": [0, 1, 2]})
    >>> sampled_queries(queries_frame(table)).certain.tolist()
    [0.4, 0.0, 0.0]
    >>> table = pd.DataFrame({"qid": list("abcdefghij"), "weight": [9, *[1] * 9]})
    >>> sampled_queries(queries_frame(table), unsampled=np.array([1.0, 1.0])).certain[:2].tolist()
    [0.45, 0.0]
    """
    weights = frame["weight"].to_numpy() if "weight" in frame.columns else np.ones(len(frame))
    clusters = pd.factorize(frame["cluster"])[0] if "cluster" in frame.columns else None
    if "drawn" not in frame.columns:
        if unsampled is None or not len(unsampled) or clusters is not None:
            return SampledQueries(weights, clusters=clusters)
        unsampled = np.sort(unsampled)[::-1]
        certain = np.where(weights > unsampled[0], weights / (weights.sum() + unsampled.sum()), 0.0)
        if not (certain > 0).any() or (certain == 0).sum() < LEAST_DF:
            return SampledQueries(weights, unsampled=unsampled)
        return SampledQueries(weights, certain=certain, unsampled=unsampled)
    draws = frame["drawn"].to_numpy()
    if clusters is not None:
        raise InputError(f"{what}: columns drawn and cluster; wanted one of them: draws are of single queries")
    if "weight" not in frame.columns and (draws == 0).any():
        raise InputError(f"{what}: queries that were not drawn have no weight; wanted that of sample_by_traffic")
    if "weight" not in frame.columns:
        weights = draws.astype(np.float64)
    share, is_drawn = weights / weights.sum(), draws > 0
    per_draw = share[is_drawn] / draws[is_drawn]
    if len(per_draw) and np.ptp(per_draw) > _DRAW_TOLERANCE * per_draw.max():
        raise InputError(
            f"{what}: weights of drawn queries are not proportional to drawn; wanted the columns of sample_by_traffic, "
            "or weights without drawn"
        )
    copies = np.maximum(draws, 1).astype(np.float64)
    return SampledQueries(np.ones(len(frame)), copies=copies, certain=np.where(is_drawn, 0.0, share))


def warn_of_weights(table: pd.DataFrame | None) -> None:
    """Warn if weights take more than half of the queries, and leave fewer degrees of freedom than limits need."""
    if table is None or "weight" not in table.columns:
        return
    weights = table["weight"].to_numpy()
    weight_moments = moments(np.zeros((len(weights), 1)), weights)
    if weight_moments.df[0] < LEAST_DF and weight_moments.n_effective[0] < len(table) / 2:
        worth = max(round(float(weight_moments.n_effective[0])), 1)
        warn(
            f"by their weights, {len(table)} queries count as {worth}; sample by traffic ({sampling_by_traffic()}): "
            "intervals and tests do not cover differences of heavy queries that were not sampled"
        )


def sample_by(table: pd.DataFrame | None) -> Callable[[Sequence[str]], SampledQueries] | None:
    """The sample of some queries of a W frame, by their ids."""
    columns = [name for name in ("weight", "cluster") if table is not None and name in table.columns]
    if table is None or not columns:
        return None
    return lambda qids: sampled_queries(table.loc[list(qids), columns])


def _weights(column: pd.Series[Any], what: str, qids: list[str]) -> Floats:
    """Finite numbers of at least 0."""
    values = column_numbers(column, f"{what} column 'weight'", _owner(qids))
    _require(np.isfinite(values) & (values >= 0), "weight", column, what, qids)
    if len(values) and not (values > 0).any():
        raise InputError(f"{what}: all {len(values)} weights are 0; wanted at least one above 0")
    return values


def _draws(column: pd.Series[Any], what: str, qids: list[str]) -> Ints:
    """Whole numbers of at least 0."""
    values = column_integers(column, f"{what} column 'drawn'", _owner(qids))
    _require(values >= 0, "drawn", column, what, qids)
    return values


def _covariates(column: pd.Series[Any], what: str, qids: list[str]) -> Floats:
    """Finite numbers, NaN where there is none."""
    is_known = (column.notna() & (column.astype(str).str.strip() != "")).to_numpy(dtype=bool)
    values = np.full(len(column), np.nan)
    owners = [qids[row] for row in np.flatnonzero(is_known)]
    values[is_known] = column_numbers(column[is_known], f"{what} column 'covariate'", _owner(owners))
    _require(~np.isinf(values), "covariate", column, what, qids)
    return values


def _clusters(column: pd.Series[Any], what: str, qids: list[str]) -> list[str]:
    """Names, none of which is empty."""
    names = _segments(column, what, qids)
    if "" in names:
        raise InputError(f"{what}: query {qids[names.index('')]!r} has no cluster; give it one, such as its own id")
    return names


def _segments(column: pd.Series[Any], what: str, _qids: list[str]) -> list[str]:
    """Names, empty where there is none."""
    named = column.notna().to_numpy(dtype=bool)
    names = np.full(len(column), "", dtype=object)
    names[named] = column_ids(column[named], f"{what} column {column.name!r}").text.to_pylist()
    texts: list[str] = names.tolist()
    return texts


_READERS: dict[str, Callable[[pd.Series[Any], str, list[str]], Any]] = {
    "weight": _weights,
    "cluster": _clusters,
    "segment": _segments,
    "drawn": _draws,
    "covariate": _covariates,
}


def _owner(qids: list[str]) -> Callable[[int], str]:
    return lambda row: f" (query {qids[row]!r})"


def _require(fits: Bools, name: str, column: pd.Series[Any], what: str, qids: list[str]) -> None:
    """Refuse the first value outside the range of its column."""
    if not fits.all():
        row = int(np.argmin(fits))
        requirement = "a finite number" + ("" if name == "covariate" else " of at least 0")
        raise InputError(f"{what}: the {name} of {qids[row]!r} is {printable(column.iloc[row])}, wanted {requirement}")

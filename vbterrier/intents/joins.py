"""Candidate intents of several sources as one distribution for each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, choice, heard, number, warn
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import column_ids, require_same_kind
from vbterrier.frames.named import named_frame
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.intents.stage import WITHOUT_CANDIDATES, Candidates, IntentStage, warn_of_queries
from vbterrier.intents.truncation import Truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

METHODS = ("mean", "max", "append")
_KEY = ["qid", "entity_id"]


def join_intents(*sources: Any, method: str = "mean", weights: Sequence[float] | None = None) -> Any:
    """Join the candidate intents of several sources: each candidate once, with one distribution for each query.

    With ``p_s`` the probabilities of source s and ``w_s`` its weight:

    - ``"mean"`` (``a + b`` of stages): ``p(e) = Σ_s w_s p_s(e) / Σ_s w_s`` (linear opinion pool, Stone 1961)
    - ``"max"`` (``a | b``): ``p(e) ∝ max_s w_s p_s(e)``
    - ``"append"`` (``a ^ b``): the candidates of the first source, then those that only later ones have, none more
      probable than the least probable one before: ``p(e) ∝ min p_a · p_b(e) / max p_b`` over the new candidates

    A source that has no candidate of a query, or NIL alone, does not count for this query.

    Parameters
    ----------
    sources
        At least two: frames (qid, entity_id, prob), registered names or paths; or stages from topics to intents, such
        as :class:`vbterrier.CandidateIntents` and pipelines that begin with one.
    method
        ``"mean"``, ``"max"`` or ``"append"``.
    weights
        The weight of each source, above 0; all 1 by default. Not for ``"append"``.

    Returns
    -------
    pandas.DataFrame or Transformer
        Of frames: columns qid, entity_id, prob, then those that the sources have, from the first source with the
        candidate; queries in the order of the sources, candidates by descending probability. Of stages: a stage.

    Raises
    ------
    ParameterError, InputError
        Fewer than two sources, frames and stages together, another number of weights; probabilities that do not sum to
        1, a duplicated candidate, ids of different kinds.

    Examples
    --------
    >>> one = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.75, 0.25]})
    >>> two = pd.DataFrame({"qid": ["q1", "q2"], "entity_id": ["C", "D"], "prob": 1.0})
    >>> join_intents(one, two).values.tolist()
    [['q1', 'C', 0.5], ['q1', 'A', 0.375], ['q1', 'B', 0.125], ['q2', 'D', 1.0]]
    >>> join_intents(one, two, method="append")["prob"].round(2).tolist()
    [0.6, 0.2, 0.2, 1.0]
    """
    _check(sources, method, weights)
    if all(map(is_pipeline, sources)):
        return JoinedIntents(sources, method=method, weights=weights)
    if any(map(is_pipeline, sources)):
        raise ParameterError("join_intents: found frames and stages; run the stages on the topics first")
    frames = [named_frame("intents", one) for one in sources]
    return _joined_candidates(frames, method, weights)


def _check(sources: Sequence[Any], method: str, weights: Sequence[float] | None) -> None:
    choice("method", method, METHODS)
    if len(sources) < 2:  # noqa: PLR2004 - a pair
        raise ParameterError(f"join_intents: wanted at least two sources, found {len(sources)}")
    if weights is not None:
        if method == "append":
            raise ParameterError("weights= have no effect with method='append'; leave them out")
        if len(weights) != len(sources):
            raise ParameterError(f"weights: wanted {len(sources)}, one for each source, found {len(weights)}")
        for one in weights:
            number("weights", one, low=0, open_low=True)


def _joined_candidates(frames: Sequence[pd.DataFrame], method: str, weights: Sequence[float] | None) -> pd.DataFrame:
    parts = []
    first: Candidates | None = None
    for place, frame in enumerate(frames):
        candidates = Candidates(frame, name=f"intents {place + 1}")
        for column in _KEY:
            if first is not None:
                names = [f"{one.name} column {column!r}" for one in (first, candidates)]
                ids = [
                    column_ids(one.frame[column], name) for one, name in zip((first, candidates), names, strict=True)
                ]
                require_same_kind(ids[0], ids[1], names[0], names[1])
        first = first or candidates
        n_entities = np.bincount(candidates.topic[~candidates.nil], minlength=candidates.n)
        table = frame.assign(prob=candidates.prob, _source=place, _counts=n_entities[candidates.topic] > 0)
        parts.append(table)
    table = pd.concat(parts, ignore_index=True)
    # NIL alone counts for queries that no source has a candidate of.
    has_candidate = table.groupby("qid", sort=False)["_counts"].transform("any")
    table = table[table["_counts"] | ~has_candidate]
    weight = np.ones(len(frames)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = _appended_weights(table) if method == "append" else table["prob"] * weight[table["_source"]]
    by = table.assign(prob=share).groupby(_KEY, sort=False)["prob"]
    prob = (by.sum() if method == "mean" else by.max()).reset_index()
    prob["prob"] /= prob.groupby("qid", sort=False)["prob"].transform("sum")
    about = table.drop(columns=["prob", "_source", "_counts"]).drop_duplicates(_KEY)
    made = prob.merge(about, on=_KEY)
    order = pd.factorize(made["qid"])[0]
    # NIL is last, and ties are broken by id.
    keys = made["entity_id"].astype(str), -made["prob"], made["entity_id"].eq(NIL), order
    return made.iloc[np.lexsort(keys)].reset_index(drop=True)


def _appended_weights(table: pd.DataFrame) -> np.ndarray:
    """Weights of candidates by source, those of later sources below the least of the earlier ones; repeats have 0."""
    weight = np.zeros(len(table))
    rows = pd.Series(np.arange(len(table)), index=table.index)
    is_new = ~table.duplicated(_KEY)
    for _, part in table[is_new & (table["prob"] > 0)].groupby("qid", sort=False):
        least = np.inf
        for _, of_source in part.groupby("_source", sort=True):
            prob = of_source["prob"].to_numpy()
            scale = 1.0 if np.isinf(least) else least / prob.max()
            weight[rows[of_source.index]] = prob * scale
            least = min(least, float((prob * scale).min()))
    return weight


class IntentOperators:
    """Operators of stages from topics to intents: ``a + b``, ``a | b`` and ``a ^ b`` join their candidates.

    See :func:`join_intents`; ``a % 3`` keeps the three most probable candidates of each query.
    """

    def __add__(self, other: Any) -> Any:
        return join_intents(self, other)

    def __or__(self, other: Any) -> Any:
        return join_intents(self, other, method="max")

    def __xor__(self, other: Any) -> Any:
        return join_intents(self, other, method="append")

    def __mod__(self, cutoff: int) -> Any:
        return self >> Truncate(cutoff=cutoff)

    def __rshift__(self, right: Any) -> Any:
        if isinstance(right, IntentStage):
            return IntentPipeline(self, right)
        return super().__rshift__(right)  # type: ignore[misc]  # of PyTerrier's transformers


class IntentPipeline(IntentOperators, pt.Compose):  # type: ignore[misc]
    """A pipeline from topics to intents, with the operators of intents."""


class JoinedIntents(IntentOperators, IntentStage):
    """Join the candidates of several stages: Q -> I, see :func:`join_intents`."""

    def __init__(self, stages: Sequence[Any], *, method: str = "mean", weights: Sequence[float] | None = None) -> None:
        super().__init__()
        _check(stages, method, weights)
        self.stages, self.method = tuple(stages), method
        self.weights = None if weights is None else tuple(map(float, weights))

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the candidates of each query."""
        self.require_columns(inp, "qid", "query")
        frames, messages = heard(lambda: [stage.transform(inp) for stage in self.stages])
        for message in messages:
            # Queries without candidates of one source may have those of another.
            if not message.endswith(WITHOUT_CANDIDATES):
                warn(message)
        for stage, frame in zip(self.stages, frames, strict=True):
            if not {*_KEY, "prob"} <= set(frame.columns):
                raise InputError(
                    f"{stage!r}: gives no intents (qid, entity_id, prob), found {', '.join(frame.columns)}"
                )
        made = _joined_candidates(frames, self.method, self.weights)
        order = np.argsort(pd.Index(inp["qid"]).get_indexer(made["qid"]), kind="stable")
        made = made.iloc[order].reset_index(drop=True)
        alone = made["entity_id"].eq(NIL) & ~made.duplicated("qid", keep=False)
        warn_of_queries(made["qid"][alone].tolist(), WITHOUT_CANDIDATES)
        return made

    def __repr__(self) -> str:
        sign = {"mean": " + ", "max": " | ", "append": " ^ "}[self.method]
        shown = sign.join(map(repr, self.stages))
        return f"({shown})" if self.weights is None else f"JoinedIntents({shown}, weights={list(self.weights)})"

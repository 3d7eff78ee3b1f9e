"""Which candidate intents of a query the first documents of a ranking cover."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Ids, Lookup, ids_of, numbers_of, repeated_pairs, require_same_kind
from vbterrier.frames.topics import places, run_places
from vbterrier.kernels import vb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

TOLERANCE = 1e-6


class Intents:
    """The candidate intents of every query with their probabilities.

    Parameters
    ----------
    frame
        Columns qid, entity_id, prob.
    normalise
        Divide the probabilities of each query by their sum; otherwise a sum that is off by more than 1e-6 is an error.
    name
        What messages call it.

    Raises
    ------
    InputError
        A missing column or id, an intent that stands twice, a probability outside [0, 1], a sum that is not 1.

    Attributes
    ----------
    topics : list of str
        In order of appearance.
    topic : numpy.ndarray
        The place of each intent's topic, shape (n_intents,).
    prob : numpy.ndarray
        Probability of each intent, shape (n_intents,), 1 in sum over a topic.
    """

    def __init__(self, frame: Any, *, normalise: bool = False, name: str = "intents") -> None:
        self.name = name
        frame = frame_of(frame, name)
        require(frame, ("qid", "entity_id", "prob"), name)
        self.qid = ids_of(frame["qid"], f"{name} column 'qid'")
        self.entity = ids_of(frame["entity_id"], f"{name} column 'entity_id'")
        self.topics, self.topic = self.qid.codes()
        twice = repeated_pairs(self.topic, self.entity)
        if len(twice):
            raise InputError(
                f"{name}: intent {self.entity.text[int(twice[0])].as_py()!r} of query "
                f"{self.topics[self.topic[twice[0]]]!r} stands in rows {twice[0]} and {twice[1]}; add up their "
                "probabilities"
            )
        self.prob = self._checked(numbers_of(frame["prob"], f"{name} column 'prob'"), normalise=normalise)
        self.lookup = Lookup(self.topic, self.entity)

    def _checked(self, prob: Floats, *, normalise: bool) -> Floats:
        bad = (prob < 0) | (~np.isfinite(prob) if normalise else prob > 1 + TOLERANCE)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.name}: row {row} (query {self.topics[self.topic[row]]!r}, intent "
                f"{self.entity.text[row].as_py()!r}) has probability {prob[row]:g}, wanted 0 to 1; "
                "make scores probabilities first (a softmax, say)"
            )
        total = vb.per_topic(prob, self.topic, len(self.topics))
        off = (total <= 0) if normalise else np.abs(total - 1) > TOLERANCE
        if off.any():
            place = int(np.argmax(off))
            raise InputError(
                f"{self.name}: the probabilities of query {self.topics[place]!r} sum to {total[place]:g} "
                f"({int(off.sum())} queries are off); wanted 1: repair them"
                + ("" if normalise else ", or ask for normalise=True")
            )
        return prob / total[self.topic]


class Tags:
    """Which entities each document is about.

    Parameters
    ----------
    frame
        Columns docno, entity_id, and optionally weight in [0, 1] (1 where absent) and qid (tags for one query only).
    pooled
        Whether the frame holds all documents known to be about an entity, for an ideal ranking to be built of them.
    name
        What messages call it.
    """

    def __init__(self, frame: Any, *, pooled: bool = True, name: str = "tags") -> None:
        self.name, self.pooled = name, pooled
        frame = frame_of(frame, name)
        require(frame, ("docno", "entity_id"), name)
        self.docno = ids_of(frame["docno"], f"{name} column 'docno'")
        self.entity = ids_of(frame["entity_id"], f"{name} column 'entity_id'")
        self.weight = np.ones(len(frame))
        if "weight" in frame.columns:
            self.weight = numbers_of(frame["weight"], f"{name} column 'weight'")
            self._require_shares()
        self.topics: list[str] | None = None
        self.topic: Ints | None = None
        if "qid" in frame.columns:
            self.qid = ids_of(frame["qid"], f"{name} column 'qid'")
            self.topics, self.topic = self.qid.codes()
        self._lookup = Lookup(self.topic, self.docno)

    def _require_shares(self) -> None:
        bad = (self.weight < 0) | (self.weight > 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.name}: row {row} (document {self.docno.text[row].as_py()!r}) has weight {self.weight[row]:g}, "
                "wanted 0 to 1"
            )

    def find(self, intents: Intents, topic: Ints, docno: Ids, run: str) -> tuple[Ints, Ints]:
        """Match retrieved documents with tags: places among the documents, and rows here."""
        require_same_kind(self.docno, docno, f"{self.name} column 'docno'", f"{run} column 'docno'")
        if self.topics is None:
            return self._lookup.find(None, docno)
        require_same_kind(self.qid, intents.qid, f"{self.name} column 'qid'", f"{intents.name} column 'qid'")
        here = places(intents.topics, self.topics)[topic]
        known = np.flatnonzero(here >= 0)
        pairs, rows = self._lookup.find(here[known], docno.take(known))
        return known[pairs], rows

    def known_documents(self, intents: Intents) -> Ints | None:
        """How many documents are known to be about each intent, shape (n_intents,); ``None`` without a pool."""
        if not self.pooled:
            return None
        counted = self.weight > 0
        if self.topics is not None and self.topic is not None:
            here = places(self.topics, intents.topics)[self.topic]
            rows = np.flatnonzero((here >= 0) & counted)
            found = intents.lookup.find_one(here[rows], self.entity.take(rows))
        else:
            rows, found = self._all_topics(intents, np.flatnonzero(counted))
        met = found >= 0
        pairs = pd.DataFrame({"intent": found[met], "docno": self.docno.take(rows[met]).text.to_pylist()})
        return np.bincount(pairs.drop_duplicates()["intent"], minlength=len(intents.prob))

    def _all_topics(self, intents: Intents, rows: Ints) -> tuple[Ints, Ints]:
        """Tags without a query count for every query that has their entity among its intents."""
        pairs, found = Lookup(None, intents.entity).find(None, self.entity.take(rows))
        return rows[pairs], found


@dataclass(frozen=True, eq=False)
class Coverage:
    """The matches between the first documents of a run and the candidate intents of their queries.

    Parameters
    ----------
    intents
        The candidates.
    intent, rank, weight
        Intent, 0-based rank and weight of every match, each of shape (n_matches,).
    tags
        The tags.
    depth
        Ranks that were looked at.
    tagged
        Share of the retrieved documents of each topic that carry any tag, shape (n,).
    """

    intents: Intents
    intent: Ints
    rank: Ints
    weight: Floats
    tags: Tags
    depth: int
    tagged: Floats

    @cached_property
    def known(self) -> Ints | None:
        """Documents known to be about each intent, shape (n_intents,), or ``None``."""
        return self.tags.known_documents(self.intents)

    def gain(self, cutoff: int | None, kind: str) -> Floats:
        """Gain of each intent in [0, 1], shape (n_intents,): ``"binary"`` or ``"dcg"``."""
        if cutoff is None and kind == "dcg" and self.known is None:
            raise ParameterError(
                "gain='dcg' divides by the DCG of k matches where tags come with the run; give a cutoff k, as @10, or "
                "tags of the whole collection"
            )
        seen = self.rank < (self.depth if cutoff is None else cutoff)
        n_intents = len(self.intents.prob)
        if kind == "binary":
            return vb.binary_gain(self.intent[seen], self.weight[seen], n_intents)
        return vb.dcg_gain(
            self.intent[seen], self.weight[seen], self.rank[seen], known=self.known, depth=cutoff, n_intents=n_intents
        )

    def success(self, gain: Floats) -> Floats:
        """``ES = Σ π_i g_i`` of each topic, shape (n,)."""
        return self._sum(self.intents.prob * gain)

    def variance(self, gain: Floats, kind: str) -> Floats:
        """Variance of success of each topic: ``"bernoulli"``, or across ``"intent"``; shape (n,)."""
        success = self.success(gain)
        if kind == "bernoulli":
            return vb.bernoulli_variance(success)
        return np.maximum(self.success(gain**2) - success**2, 0.0)

    def _sum(self, values: Floats) -> Floats:
        return vb.per_topic(values, self.intents.topic, len(self.intents.topics))

    @cached_property
    def most_probable(self) -> Bools:
        """Which intents are the most probable of their topic, ties included, shape (n_intents,)."""
        best = np.zeros(len(self.intents.topics))
        np.maximum.at(best, self.intents.topic, self.intents.prob)
        return self.intents.prob >= best[self.intents.topic] - 1e-12

    def top_intent(self, gain: Floats) -> Floats:
        """Mean gain of the most probable intents of each topic, shape (n,)."""
        return self._sum(gain * self.most_probable) / self._sum(self.most_probable.astype(np.float64))


def cover(run: Run, intents: Intents, tags: Tags, depth: int | None) -> Coverage:
    """Match the first ``depth`` documents of every topic with its intents.

    A document that carries a tag twice counts with the larger weight.

    Raises
    ------
    InputError
        No topic in common, or ids that can never meet.
    """
    found = run_places(run, intents.topics, intents.qid, intents.name)
    top = run.top(depth)
    top.warn_of_ties(run.name)
    rows = np.full((len(intents.topics), top.depth), -1, dtype=np.int64)
    rows[found[found >= 0]] = top.rows[found >= 0]
    topic, rank = np.nonzero(rows >= 0)
    retrieved = run.docno.take(rows[topic, rank])
    document, tag = tags.find(intents, topic, retrieved, run.name)
    require_same_kind(
        intents.entity, tags.entity, f"{intents.name} column 'entity_id'", f"{tags.name} column 'entity_id'"
    )
    intent = intents.lookup.find_one(topic[document], tags.entity.take(tag))
    _warn_of_strangers(intents, tags, retrieved, met=len(document) > 0)
    weight = tags.weight[tag]
    met = (intent >= 0) & (weight > 0)
    matches = pd.DataFrame({"intent": intent[met], "rank": rank[document[met]], "weight": weight[met]})
    if matches.duplicated(["intent", "rank"]).any():
        matches = matches.groupby(["intent", "rank"])["weight"].max().reset_index()
    has_tag = np.zeros(len(topic), dtype=bool)
    has_tag[document] = True
    n = len(intents.topics)
    retrieved_per_topic = np.maximum(np.bincount(topic, minlength=n), 1)
    return Coverage(
        intents,
        matches["intent"].to_numpy(),
        matches["rank"].to_numpy(),
        matches["weight"].to_numpy(),
        tags,
        top.depth if depth is None else depth,
        np.bincount(topic, weights=has_tag, minlength=n) / retrieved_per_topic,
    )


def _warn_of_strangers(intents: Intents, tags: Tags, retrieved: Ids, *, met: bool) -> None:
    """Say that ids of two sources can hardly mean the same things, where everything scores 0 for it."""
    if not (len(retrieved) and len(tags.docno)):
        return
    if not np.isin(tags.entity.prints, intents.entity.prints).any():
        left, right, what = tags.entity, intents.entity, f"entity of {tags.name} is among the {intents.name}"
    elif not met and tags.pooled and tags.name != intents.name:
        left, right, what = tags.docno, retrieved, f"retrieved document has {tags.name}"
    else:
        return
    warnings.warn(
        f"no {what}, so every topic scores 0: {examples(left.text[:4].to_pylist())} against "
        f"{examples(right.text[:4].to_pylist())}; look for other id spaces, prefixes or queries",
        DegenerateWarning,
        stacklevel=3,
    )

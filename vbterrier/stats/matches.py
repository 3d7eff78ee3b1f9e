"""Matches of ranked documents with candidate intents, and their scores in every replica."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError
from vbterrier.frames.ids import Ids, column_ids
from vbterrier.kernels import vb
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.rankings import NO_RANK
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.stats.perturbations import Tagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints, Words
    from vbterrier.stats.candidates import CandidateArrays


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches of a system's documents with candidate intents.

    ``intent``: the row of the matched candidate in the frame of intents, shape (m,). ``rank``: 0-based rank of the
    document. ``weight``: weight of the tag in [0, 1]; 1 by default. ``docno``: the document of each match; needed if
    tags are perturbed. ``known``: number of documents known to be about each candidate, by row, for the ideal ranking
    of ``gain="dcg"``; ``None`` without a pool. ``nil, until``: the rows of NIL intents and the rank up to which each is
    covered: that of the first tagged document, or the largest 64-bit integer; perturbations of tags do not affect them.
    """

    intent: Ints
    rank: Ints
    weight: Floats | None = None
    docno: Sequence[str] | Ids | None = None
    known: Ints | None = None
    nil: Ints | None = None
    until: Ints | None = None


class AlignedMatches:
    """The matches of a system, named for messages, in the order of the candidates."""

    def __init__(self, matches: Matches, candidates: CandidateArrays, name: str) -> None:
        self.candidates, self.name = candidates, name
        n = len(candidates)
        rows = np.asarray(matches.intent, dtype=np.int64)
        place = np.empty(n, dtype=np.int64)
        place[candidates.rows] = np.arange(n)
        rank = np.asarray(matches.rank, dtype=np.int64)
        order = np.lexsort((rank, place[rows]))
        self.intent, self.rank = place[rows][order], rank[order]
        weight = np.ones(len(rows)) if matches.weight is None else np.asarray(matches.weight, dtype=np.float64)
        self.weight = weight[order]
        self.known = None if matches.known is None else np.asarray(matches.known, dtype=np.int64)[candidates.rows]
        self._docno, self._order = matches.docno, order
        self._until = np.full(n, -1, dtype=np.int64)
        if matches.nil is not None and matches.until is not None:
            self._until[place[matches.nil]] = matches.until

    def gain(self, cutoff: int | None, kind: str) -> Floats:
        """Return the gain of each candidate without perturbed tags, shape (1, n)."""
        tags = self.intent[None], self.weight[None]
        return self._gain(*tags, slice(None), slice(None), cutoff, kind, noisy=False)

    def tagged_block(self, first: int, last: int) -> tuple[Tagged, slice]:
        """Return the matches of consecutive queries and their slice among all matches."""
        starts = self.candidates.starts
        here = slice(*np.searchsorted(self.intent, [starts[first], starts[last]]).tolist())
        block = self.candidates.block(first, last)
        topic = self.candidates.topic[self.intent[here]] - first
        intent = self.intent[here] - starts[first]
        return Tagged(
            block, intent[None], self.weight[here][None], topic, {unit: keys[here] for unit, keys in self._keys.items()}
        ), here

    def noisy_gain(self, tagged: Tagged, here: slice, cutoff: int | None, kind: str) -> Floats:
        """Return the gain of each candidate of some queries in each replica, shape (b, n)."""
        return self._gain(tagged.intent, tagged.weight, here, tagged.candidates.span, cutoff, kind, noisy=True)

    @cached_property
    def _multiple_tags(self) -> bool:
        """True if some document has more than one tag."""
        pairs = pd.DataFrame({"topic": self.candidates.topic[self.intent], "rank": self.rank})
        return bool(pairs.duplicated().any())

    @cached_property
    def _keys(self) -> dict[str, Words]:
        source = self._docno
        docno = (
            source if isinstance(source, Ids) else column_ids(pd.Series(source, dtype=object), f"{self.name} 'docno'")
        )
        topic = self.candidates.qid.fingerprints[self.candidates.topic[self.intent]]
        entity = self.candidates.entity.take(self.intent).fingerprints
        mention = mix(entity ^ mix(docno.take(self._order).fingerprints ^ mix(topic)))
        return {"mention": mention, "entity": mix(entity ^ mix(topic)), "name": mix(topic)}

    def _gain(
        self, intent: Ints, weight: Floats, here: slice, span: slice, cutoff: int | None, kind: str, *, noisy: bool
    ) -> Floats:
        """Return the gains from matches of shape (b, m), computed for the n candidates of b replicas as one list."""
        until = self._until[span]
        n, b = len(until), max(len(intent), len(weight))
        rank = self.rank[here]
        retrieved = rank < (np.inf if cutoff is None else cutoff)
        row = np.arange(b)[:, None] * n
        places = (row + intent[:, retrieved]).ravel()
        weights = np.broadcast_to(weight[:, retrieved], (b, int(retrieved.sum()))).ravel()
        if kind == "binary":
            gain = vb.binary_gain(places, weights, b * n)
        else:
            n_known = None if self.known is None else np.tile(self.known[span], b)
            if n_known is None and cutoff is None:
                raise ParameterError(
                    "gain='dcg' without a cutoff needs the number of known documents of each intent: give known with "
                    "the matches"
                )
            ranks = np.tile(rank[retrieved], b)
            if noisy and self._multiple_tags:
                places, ranks, weights = _best_of_each(places, ranks, weights)
            ratio = vb.dcg_gain(places, weights, ranks, n_known=n_known, cutoff=cutoff, n_intents=b * n)
            # There can be more confused tags than known documents.
            gain = np.minimum(ratio, 1.0) if noisy else ratio
        gain = gain.reshape(b, n)
        nil = until >= 0
        gain[:, nil] = until[nil] >= (NO_RANK if cutoff is None else cutoff)
        return gain


def _best_of_each(places: Ints, ranks: Ints, weights: Floats) -> tuple[Ints, Ints, Floats]:
    """Keep the largest weight of each document and candidate, as several confused tags may name the same candidate."""
    depth = int(ranks.max(initial=0)) + 1
    pairs, which = np.unique(places * depth + ranks, return_inverse=True)
    best = np.zeros(len(pairs))
    np.maximum.at(best, which, weights)
    return pairs // depth, pairs % depth, best


@dataclass(frozen=True)
class Statistic:
    """A score of a ranking over candidate intents, with the parameters of the measure of the same name."""

    measure: str = "VB"
    cutoff: int | None = 10
    alpha: float = 1.0
    gain: str = "binary"
    variance: str = "bernoulli"
    clip: bool = False
    monotone: bool = False

    def __str__(self) -> str:
        parameters = ",".join(
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name not in {"measure", "cutoff"} and getattr(self, field.name) != field.default
        )
        text = f"{self.measure}({parameters})" if parameters else self.measure
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    @property
    def kind(self) -> tuple[int | None, str]:
        """The cutoff and the gain: statistics of one kind share their gains."""
        return self.cutoff, self.gain

    def of(self, success: WeightedSuccess | PooledSuccess) -> Floats:
        """Return the score of each query and replica, shape (b, n_topics), or of pooled queries."""
        if self.measure == "TopIntent":
            return success.top
        if self.measure == "ES":
            return success.mean
        variance = success.variance if self.variance == "intent" else vb.bernoulli_variance(success.mean)
        if self.measure == "VarPenalty":
            return np.sqrt(variance)
        return vb.vb(success.mean, variance, self.alpha, monotone=self.monotone, clip=self.clip)


class WeightedSuccess:
    """Statistics of the gains of candidates, weighted by their probabilities.

    Sums of weights are divided by sums of the same weights in the same order, so that ES is exactly 1 if every
    candidate is covered. ``weights``: π divided by the largest π of the query, shape (b or 1, n), with the sum
    ``total`` of each query. ``topic``: the index of each candidate's query, increasing.
    """

    def __init__(self, weights: Floats, total: Floats, gain: Floats, topic: Ints) -> None:
        self._weights, self._total, self._gain, self._topic = weights, total, gain, topic

    @cached_property
    def mean(self) -> Floats:
        """``ES = Σ π_i g_i``."""
        return self._sum(self._weights * self._gain) / self._total

    @cached_property
    def variance(self) -> Floats:
        """The variance of gains across intents, ``Σ π_i g_i² - ES²``."""
        second_moment = self._sum(self._weights * self._gain**2) / self._total
        return np.maximum(second_moment - self.mean**2, 0.0)

    @cached_property
    def top(self) -> Floats:
        """Mean gain of the most probable candidates."""
        best = (self._weights >= 1.0 - ROUNDING).astype(np.float64)
        with np.errstate(invalid="ignore"):
            # In the jackknife, a query may have no candidates.
            return self._sum(best * self._gain) / self._sum(best)

    def _sum(self, values: Floats) -> Floats:
        return vb.per_topic(values, self._topic, self._total.shape[-1])


@dataclass(frozen=True, eq=False)
class PooledSuccess:
    """Success over the joint intents of several queries: a query is drawn, then one of its intents.

    Means over queries of ES, of ``Σ π_i g_i²`` and of the gain of the most probable intent.
    """

    mean: Floats
    square: Floats
    top: Floats

    @property
    def variance(self) -> Floats:
        """The variance of gains across the joint intents, ``Σ P(q, i) g_qi² - ES²``."""
        return np.maximum(self.square - self.mean**2, 0.0)

"""Which candidate intents of a query the first documents of a ranking cover."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError, examples
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.topics import run_places
from vbterrier.intents.tables import Intents, Tags, called
from vbterrier.kernels import vb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranked import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["Coverage", "Intents", "Tags", "cover"]

# The rank of what was not retrieved: beyond every cutoff.
NEVER = np.iinfo(np.int64).max


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
        Share of the retrieved documents of each topic that carry any tag of some weight, shape (n,).
    first_tagged
        0-based rank of the first such document of each topic, shape (n,); :data:`NEVER` where there is none.
    nil
        The entity of intents that are served by showing no entity at all; empty for none. A tag of that entity names
        no entity either.
    """

    intents: Intents
    intent: Ints
    rank: Ints
    weight: Floats
    tags: Tags
    depth: int
    tagged: Floats
    first_tagged: Ints
    nil: str = ""

    @cached_property
    def known(self) -> Ints | None:
        """Documents known to be about each intent, shape (n_intents,), or ``None``."""
        return self.tags.known_documents(self.intents)

    def gain(self, cutoff: int | None, kind: str) -> Floats:
        """Gain of each intent in [0, 1], shape (n_intents,): ``"binary"`` or ``"dcg"``.

        That of the NIL intent is 1 where none of the first k documents carries a tag, else 0, of either kind.
        """
        if cutoff is None and kind == "dcg" and self.known is None:
            raise ParameterError(
                "gain='dcg' divides by the DCG of k matches where tags come with the run; give a cutoff k, as @10, or "
                "tags of the whole collection"
            )
        reach = self.depth if cutoff is None else cutoff
        seen = self.rank < reach
        n_intents = len(self.intents.prob)
        if kind == "binary":
            gain = vb.binary_gain(self.intent[seen], self.weight[seen], n_intents)
        else:
            gain = vb.dcg_gain(
                self.intent[seen],
                self.weight[seen],
                self.rank[seen],
                known=self.known,
                depth=cutoff,
                n_intents=n_intents,
            )
        if self.nil:
            nil = self.intents.called(self.nil)
            gain[nil] = self.first_tagged[self.intents.topic[nil]] >= reach
        return gain

    def success(self, gain: Floats) -> Floats:
        """``ES = Σ π_i g_i`` of each topic, shape (n,): exactly 1 where every intent is covered."""
        return self._sum(self.intents.prob * gain) / self._sum(self.intents.prob)

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


def cover(run: Run, intents: Intents, tags: Tags, depth: int | None, *, nil: str = "") -> Coverage:
    """Match the first ``depth`` documents of every topic with its intents.

    A document that carries a tag twice counts with the larger weight. ``nil`` is the entity of the NIL intents, see
    :class:`Coverage`.

    Raises
    ------
    InputError
        No topic in common, or ids that can never meet.
    """
    if nil and not len(intents.called(nil)):
        warnings.warn(f"nil={nil!r}: no intent of {intents.name} is called so", DegenerateWarning, stacklevel=2)
    found = _places_of(run, intents, nil)
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
    _warn_of_strangers(intents, tags, retrieved, met=len(document) > 0, nil=nil)
    weight = tags.weight[tag]
    met = (intent >= 0) & (weight > 0)
    matches = pd.DataFrame({"intent": intent[met], "rank": rank[document[met]], "weight": weight[met]})
    if matches.duplicated(["intent", "rank"]).any():
        matches = matches.groupby(["intent", "rank"])["weight"].max().reset_index()
    some = weight > 0
    if nil:
        some[called(tags.entity.take(tag), nil)] = False
    # One rank more, so that a topic without tags and a run without documents have a first one too.
    carries = np.zeros((len(rows), top.depth + 1), dtype=bool)
    carries[topic[document[some]], rank[document[some]]] = True
    return Coverage(
        intents,
        matches["intent"].to_numpy(),
        matches["rank"].to_numpy(),
        matches["weight"].to_numpy(),
        tags,
        top.depth if depth is None else depth,
        carries.sum(axis=1) / np.maximum(np.count_nonzero(rows >= 0, axis=1), 1),
        np.where(carries.any(axis=1), carries.argmax(axis=1), NEVER),
        nil,
    )


def _places_of(run: Run, intents: Intents, nil: str) -> Ints:
    """The place of each topic of the run among those of the intents; an empty run serves the NIL intents alone."""
    if run.topics or not nil:
        return run_places(run, intents.topics, intents.qid, intents.name)
    warnings.warn(f"{run.name}: empty; no intent but {nil!r} is covered", DegenerateWarning, stacklevel=3)
    return np.empty(0, dtype=np.int64)


def _warn_of_strangers(intents: Intents, tags: Tags, retrieved: Ids, *, met: bool, nil: str) -> None:
    """Say that ids of two sources can hardly mean the same things, where everything scores 0 for it."""
    outcome = f"no intent but {nil!r} is covered" if nil else "every topic scores 0"
    # Judgments of subtopics that cover none are a finding, not an oversight.
    if tags.pooled and tags.name != intents.name and not len(tags.docno):
        warnings.warn(f"{tags.name}: no rows, so {outcome}", DegenerateWarning, stacklevel=3)
    if not (len(retrieved) and len(tags.docno)):
        return
    if not np.isin(tags.entity.prints, intents.entity.prints).any():
        left, right, what = tags.entity, intents.entity, f"entity of {tags.name} is among the {intents.name}"
    elif not met and tags.pooled and tags.name != intents.name:
        left, right, what = tags.docno, retrieved, f"retrieved document has {tags.name}"
    else:
        return
    warnings.warn(
        f"no {what}, so {outcome}: {examples(left.text[:4].to_pylist())} against "
        f"{examples(right.text[:4].to_pylist())}; look for other id spaces, prefixes or queries",
        DegenerateWarning,
        stacklevel=3,
    )

"""Coverage of candidate intents by a ranking, and its maximum under the same tags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, excerpt, warn
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import TagFrame, documents_frame, intent_probabilities, require_once
from vbterrier.frames.id_spaces import NIL, entity_ids
from vbterrier.frames.ids import (
    FEW_ROWS,
    MANY_ROWS,
    Ids,
    Lookup,
    column_ids,
    require_same_kind,
    warn_of_near_matches,
)
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import places, run_places
from vbterrier.intents.parts import PARTS, listed_parts
from vbterrier.kernels.rankings import NO_RANK
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.kernels.vb import (
    bernoulli_variance,
    best_success,
    binary_gain,
    dcg_gain,
    distinct_matches,
    graded_gain,
    joint_coverage,
    per_topic,
)

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ranking import Run


class Intents:
    """The candidate intents of every query, with ``topic`` (an index) and ``prob`` of shape (n_intents,).

    Unless ``normalise``, a sum of the probabilities of a query that differs from 1 by more than 1e-6 is an error.
    With ``together``, intents are covered by documents that have all their ids, the column parts, together.
    """

    def __init__(self, frame: Any, *, normalise: bool = False, together: bool = False, name: str = "intents") -> None:
        self.name = name
        frame = pandas_frame(frame, name)
        require(frame, ("qid", "entity_id", "prob"), name)
        self.qid = column_ids(frame["qid"], f"{name} column 'qid'")
        plain = entity_ids(column_ids(frame["entity_id"], f"{name} column 'entity_id'"), f"{name} column 'entity_id'")
        self.entity, self.space = plain.ids, plain.space
        self.topics, self.topic = self.qid.codes()
        require_once(self.topics, self.topic, self.entity, name)
        prob, total = intent_probabilities(
            frame["prob"], self.topics, self.topic, self.entity, name, normalise=normalise
        )
        self.prob = prob / total[self.topic]
        # The ids that tags name, and the intents with each: those of the parts, if intents have some.
        self.ids, self.lookup = self.entity, Lookup(self.topic, self.entity)
        # The topic of each id, and its share of the probability, that of a part is equal for all parts of an intent.
        self.id_topic, self.id_prob = self.topic, self.prob
        self.members: tuple[Ints, Ints] | None = None
        if not together:
            if PARTS in frame.columns:
                raise InputError(
                    f"{name}: are several ids at once (column parts); use a measure with parts=, as "
                    "ES(parts='together')@10, or convert them with vbterrier.intents.split_parts"
                )
            return
        lists = listed_parts(frame)[PARTS]
        of_intent = np.repeat(np.arange(len(lists)), lists.str.len())
        plain = entity_ids(column_ids(lists.explode(), f"{name} column {PARTS!r}"), f"{name} column {PARTS!r}")
        ids, self.space = plain.ids, plain.space
        pairs = pd.DataFrame({"topic": self.topic[of_intent], "id": ids.codes()[1]})
        member: Ints = np.asarray(pairs.groupby(["topic", "id"], sort=False).ngroup(), dtype=np.int64)
        _, first = np.unique(member, return_index=True)
        self.ids = ids.take(first)
        self.lookup = Lookup(pairs["topic"].to_numpy()[first], self.ids)
        starts: Ints = np.searchsorted(of_intent, np.arange(len(lists) + 1)).astype(np.int64)
        self.members = member, starts
        self.id_topic = pairs["topic"].to_numpy(np.int64)[first]
        sizes = np.diff(starts)
        self.id_prob = np.asarray(np.bincount(member, (self.prob / sizes)[of_intent], len(first)), dtype=np.float64)

    def of_entity(self, entity: str) -> Ints:
        """Return the indices of the intents of an entity."""
        return _positions(self.entity, entity)


class Tags(TagFrame):
    """The entities of documents; all known documents of an entity if ``pooled``, so that an ideal ranking exists."""

    def __init__(self, frame: Any, *, pooled: bool = True, name: str = "tags") -> None:
        super().__init__(frame, name=name)
        self.pooled = pooled
        self._entities: dict[str, Ids] = {}

    def entities_in_space(self, intents: Intents) -> Ids:
        """Return the entities in the spelling of the id space of intents; ids of another space are refused."""
        if intents.space not in self._entities:
            plain = entity_ids(self.entity, f"{self.name} column 'entity_id'", space=intents.space)
            self._entities[intents.space] = plain.ids
        return self._entities[intents.space]

    def find(self, intents: Intents, topic: Ints, docno: Ids, run: str) -> tuple[Ints, Ints]:
        """Match retrieved documents with tags: positions of documents, and rows of tags."""
        require_same_kind(self.docno, docno, f"{self.name} column 'docno'", f"{run} column 'docno'")
        if self.topics is None:
            return self._lookup.find(None, docno)
        require_same_kind(self.qid, intents.qid, f"{self.name} column 'qid'", f"{intents.name} column 'qid'")
        return self._lookup.find(places(intents.topics, self.topics)[topic], docno)

    def known_documents(self, intents: Intents) -> Ints | None:
        """Return the number of known documents of each intent, shape (n_intents,); ``None`` unless pooled."""
        if not self.pooled or intents.members is not None:
            return None
        rows, intent_of_row = self.of_intents(intents)
        pairs = pd.DataFrame({"intent": intent_of_row, "docno": self.docno.take(rows).text.to_pylist()})
        return np.bincount(pairs.drop_duplicates()["intent"], minlength=len(intents.prob))

    def of_intents(self, intents: Intents) -> tuple[Ints, Ints]:
        """Match tags of positive weight with ids of intents, retrieved or not: rows of tags, ascending, and ids."""
        counted = np.flatnonzero(self.weight > 0)
        if self.topics is None or self.topic is None:
            # Tags without a query apply to every query with their entity among its intents.
            pairs, intent_of_row = Lookup(None, intents.ids).find(None, self.entities_in_space(intents).take(counted))
            return counted[pairs], intent_of_row
        here = places(self.topics, intents.topics)[self.topic[counted]]
        pairs, intent_of_row = intents.lookup.find(here, self.entities_in_space(intents).take(counted))
        return counted[pairs], intent_of_row


def _positions(ids: Ids, name: str) -> Ints:
    """Return the positions of an id."""
    return np.flatnonzero(pc.equal(ids.text, name).to_numpy(zero_copy_only=False))


class Ties(NamedTuple):
    """Tags by the decision about their mentions, as shares; NaN if the tagger did not say.

    ``tied``: decided by a tie, guesses, of all tags. ``abstained``: mentions that have no tag because of a tie, of all
    tags and these.
    """

    tied: float = math.nan
    abstained: float = math.nan

    @classmethod
    def of_documents(cls, tags: Tags, document: Ints, tag: Ints) -> Ties:
        """The shares among some tags, each with the position of its document."""
        if tags.tied is None or not len(tag):
            return cls()
        n_abstained = np.zeros(int(document.max()) + 1, dtype=np.int64)
        if tags.n_abstained is not None:
            np.maximum.at(n_abstained, document, tags.n_abstained[tag])
        counted = tag[tags.weight[tag] > 0]
        n_tied, n = int(tags.tied[counted].sum()), len(counted)
        return cls(n_tied / max(n, 1), int(n_abstained.sum()) / max(n + int(n_abstained.sum()), 1))

    def sentence(self) -> str:
        """A sentence about these shares; empty if there are no ties."""
        parts = []
        if self.tied > 0:
            parts.append(f"{self.tied:.0%} of the tags are decided by a tie and are guesses")
        if self.abstained > 0:
            parts.append(f"{self.abstained:.0%} of the mentions have no tag because of a tie or none fits")
        return "; ".join(parts)


# The name of tags that are diversity judgments.
JUDGED = "qrels"


@dataclass(frozen=True, eq=False)
class Coverage:
    """Matches between the first documents of a run and the candidate intents of their queries."""

    intents: Intents
    # intent, rank, weight: intent, 0-based rank and weight of every match, each of shape (n_matches,); of intents with
    # parts that are covered together, the ranks at which their coverage rises, and the coverage there.
    intent: Ints
    rank: Ints
    weight: Floats
    tags: Tags
    depth: int  # the number of ranks that were matched
    tagged: Floats  # share of the retrieved documents of each topic that have a candidate as a tag, shape (n,)
    first_tagged: Ints  # 0-based rank of the first document of each topic with any tag, shape (n,); NO_RANK if none
    ties: Ties  # of all tags of the retrieved documents
    guesses: tuple[Ints, Ints]  # topic and 0-based rank of every tag that a tie decided, each of shape (n_guesses,)
    # The entity of intents that are covered by showing no entity; empty for none. Tags of this entity are ignored.
    nil: str = ""

    @property
    def has_judged(self) -> bool:
        """True if a document covers an intent by diversity judgments, which are then its tags."""
        return self.tags.name == JUDGED and len(self.intent) > 0

    def oracle(self, cutoff: int | None) -> float:
        """Return the mean expected success of the best ranking under the same tags; NaN unless all tags are known.

        An intent with parts that are covered together is never covered to a larger extent than the mean of its parts,
        whose maximum this is.
        """
        if not self.tags.pooled:
            return math.nan
        success, _ = _best_success(self.intents, self.tags, cutoff, self.nil, *self.tags.of_intents(self.intents))
        return float(success.mean())

    @cached_property
    def known_document_counts(self) -> Ints | None:
        """The number of known documents of each intent, shape (n_intents,), or ``None``."""
        return self.tags.known_documents(self.intents)

    def gain(self, cutoff: int | None, kind: str, neighbours: tuple[Ints, Ints, Floats] | None = None) -> Floats:
        """Return the gain of each intent in [0, 1], shape (n_intents,): ``"binary"`` or ``"dcg"``.

        The gain of the NIL intent is 1 if none of the first k documents has a tag, otherwise 0. With ``neighbours`` of
        :func:`vbterrier.intents.similarities.neighbour_pairs`, similar intents count in part.
        """
        if kind == "dcg" and self.intents.members is not None:
            raise ParameterError(
                "gain='dcg' counts documents that cover an intent alone; use gain='binary' with parts='together', or "
                "parts='all', 'part' or 'split'"
            )
        if cutoff is None and kind == "dcg" and self.known_document_counts is None:
            raise ParameterError(
                "gain='dcg' divides by the DCG of k matches if tags come from the run; use a cutoff k, such as @10, or "
                "tags of the whole collection"
            )
        reach = self.depth if cutoff is None else cutoff
        seen = self.rank < reach
        n_intents = len(self.intents.prob)
        if kind == "binary":
            gain = binary_gain(self.intent[seen], self.weight[seen], n_intents)
        else:
            seen_matches = self.intent[seen], self.weight[seen], self.rank[seen]
            gain = dcg_gain(*seen_matches, n_known=self.known_document_counts, cutoff=cutoff, n_intents=n_intents)
        nil = self.intents.of_entity(self.nil) if self.nil else np.empty(0, dtype=np.int64)
        if neighbours is not None:
            gain[nil] = 0.0
            gain = graded_gain(gain, *neighbours)
        if len(nil):
            gain[nil] = self.first_tagged[self.intents.topic[nil]] >= reach
        return gain

    def success(self, gain: Floats) -> Floats:
        """Return ``ES = Σ π_i g_i`` of each topic, shape (n,): exactly 1 if every intent is covered."""
        return self._sum(self.intents.prob * gain) / self._sum(self.intents.prob)

    def most_success(self, gain: Floats, cutoff: int) -> Floats:
        """Return ``ES`` of each topic, shape (n,), if its guesses up to a cutoff cover the most probable open intents.

        ``gain`` is that without guesses. Each guess may be any intent of its query, so that t guesses add at most the t
        largest ``π_i (1 - g_i)``.
        """
        topic, rank = self.guesses
        n = len(self.intents.topics)
        n_guesses = np.bincount(topic[rank < cutoff], minlength=n)
        open_mass = self.intents.prob * (1.0 - gain)
        order = np.lexsort((-open_mass, self.intents.topic))
        intent_topic = self.intents.topic[order]
        place = np.arange(len(intent_topic)) - np.searchsorted(intent_topic, intent_topic)
        added = np.where(place < n_guesses[intent_topic], open_mass[order], 0.0)
        most: Floats = np.minimum(self.success(gain) + np.bincount(intent_topic, weights=added, minlength=n), 1.0)
        return most

    def variance(self, gain: Floats, kind: str) -> Floats:
        """Return the variance of success of each topic: ``"bernoulli"``, or across ``"intent"``; shape (n,)."""
        success = self.success(gain)
        if kind == "bernoulli":
            return bernoulli_variance(success)
        return np.maximum(self.success(gain**2) - success**2, 0.0)

    def _sum(self, values: Floats) -> Floats:
        return per_topic(values, self.intents.topic, len(self.intents.topics))

    @cached_property
    def most_probable(self) -> Bools:
        """True for the most probable intents of each topic, ties included, shape (n_intents,)."""
        best = np.zeros(len(self.intents.topics))
        np.maximum.at(best, self.intents.topic, self.intents.prob)
        return self.intents.prob >= best[self.intents.topic] - ROUNDING

    def top_intent(self, gain: Floats) -> Floats:
        """Return the mean gain of the most probable intents of each topic, shape (n,)."""
        return self._sum(gain * self.most_probable) / self._sum(self.most_probable.astype(np.float64))


def cover(run: Run, intents: Intents, tags: Tags, cutoff: int | None, *, nil: str = "") -> Coverage:
    """Match the first ``cutoff`` documents of every topic with its intents, repeated tags with their largest weight."""
    if nil and not len(intents.of_entity(nil)):
        warn(f"nil={nil!r}: {intents.name} have no intent with this entity")
    places_of_topics: Ints = np.empty(0, dtype=np.int64)
    if run.topics or not nil:
        places_of_topics = run_places(run, intents.topics, intents.qid, intents.name)
    else:
        warn(f"{run.name}: empty; no intent but {nil!r} is covered")
    top = run.top(cutoff)
    top.warn_of_ties(run.name)
    rows, topic, rank, retrieved = top.of_topics(places_of_topics, len(intents.topics))
    document, tag = tags.find(intents, topic, retrieved, run.name)
    is_untagged = np.ones(len(retrieved), dtype=bool)
    is_untagged[document] = False
    untagged = retrieved.take(np.flatnonzero(is_untagged)[:FEW_ROWS])
    warn_of_near_matches(untagged, Ids(tags.docno.text.slice(0, MANY_ROWS)), run.name, "documents", tags.name)
    column = "entity_id" if intents.members is None else PARTS
    names = f"{intents.name} column {column!r}", f"{tags.name} column 'entity_id'"
    require_same_kind(intents.ids, tags.entity, *names)
    entity = tags.entities_in_space(intents)
    intent = intents.lookup.find_one(topic[document], entity.take(tag))
    if not (intent >= 0).any():
        _warn_of_mismatch(intents, tags, retrieved, met=len(document) > 0, nil=nil)
    other = entity.take(tag[intent < 0])
    warn_of_near_matches(other, intents.ids, tags.name, "entities", intents.name)
    weight = tags.weight[tag]
    met = (intent >= 0) & (weight > 0)
    covered, place, extent = distinct_matches(intent[met], rank[document[met]], weight[met])
    if intents.members is not None:
        covered, place, extent = joint_coverage(covered, place, extent, *intents.members)
    some = weight > 0
    if nil:
        some[_positions(entity.take(tag), nil)] = False
    # One rank more, so that argmax is defined for a run without documents.
    has_tag = np.zeros((len(rows), top.depth + 1), dtype=bool)
    has_tag[topic[document[some]], rank[document[some]]] = True
    has_candidate = np.zeros_like(has_tag)
    has_candidate[topic[document[met]], rank[document[met]]] = True
    guessed = document[some & (tags.tied[tag] if tags.tied is not None else False)]
    return Coverage(
        intents,
        covered,
        place,
        extent,
        tags,
        top.depth if cutoff is None else cutoff,
        has_candidate.sum(axis=1) / np.maximum(np.count_nonzero(rows >= 0, axis=1), 1),
        np.where(has_tag.any(axis=1), has_tag.argmax(axis=1), NO_RANK),
        Ties.of_documents(tags, document, tag),
        (topic[guessed], rank[guessed]),
        nil,
    )


def _warn_of_mismatch(intents: Intents, tags: Tags, retrieved: Ids, *, met: bool, nil: str) -> None:
    """Warn if ids do not match, so that all scores are 0."""
    outcome = f"no intent but {nil!r} is covered" if nil else "every topic scores 0"
    # Diversity qrels without a covering document are valid.
    if tags.pooled and tags.name != intents.name and not len(tags.docno):
        warn(f"{tags.name}: no rows, so {outcome}")
    if not (len(retrieved) and len(tags.docno)):
        return
    # Queries without candidates, which may be all of a batch, are reported where candidates are generated.
    if pc.all(pc.equal(intents.ids.text, NIL)).as_py():
        return
    if not np.isin(tags.entities_in_space(intents).fingerprints, intents.ids.fingerprints).any():
        left, right, what = tags.entity, intents.ids, f"entity of {tags.name} is among the {intents.name}"
    elif not met and tags.pooled and tags.name != intents.name:
        left, right, what = tags.docno, retrieved, f"retrieved document has {tags.name}"
    else:
        return
    warn(
        f"no {what}, so {outcome}: {examples(left.text[:4].to_pylist())} against "
        f"{examples(right.text[:4].to_pylist())}; check id spaces, prefixes and queries"
    )


def oracle_success(
    intents: Any, tags: Any, cutoff: int | None, *, documents: Any = None, normalise: bool = False, nil: str = ""
) -> pd.DataFrame:
    """Return the expected success of an ideal ranking of each query under the same tags.

    ``ES* = max_{|S| = k} Σ_i π_i max_{d in S} w_id`` with k = ``cutoff``, the binary gain of :data:`vbterrier.ES`: the
    upper bound of all systems with these tags. ``1 - ES*`` is due to the tagger and the collection, ``ES* - ES`` to the
    system.

    Parameters
    ----------
    intents, tags
        Columns qid, entity_id, prob, and columns docno, entity_id, and optionally weight and qid; or registered names,
        or paths. The ideal ranking may use all documents of the tags.
    cutoff
        The number of documents in the ranking, at least 1; ``None`` for all.
    documents
        Use these documents only: ids, or a frame with docno, and with qid if they differ between queries. With the
        documents of a run, the result is its best reranking.
    normalise, nil
        As in :data:`vbterrier.ES`; with ``nil``, the maximum over the best ranking and an empty one.

    Returns
    -------
    pandas.DataFrame
        Columns qid, ``success`` in [0, 1], ``method``: ``"exact"``, or ``"greedy"`` if many documents with many weights
        share intents, so that the search of at most a tenth of a second per topic stops without a solution; greedy
        values are at least ``1 - 1/e`` of the maximum.

    Raises
    ------
    ParameterError, InputError
        A cutoff below 1; illegal intents or tags, ids of different kinds.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.5, 0.25, 0.25]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["A", "B"]})
    >>> [oracle_success(intents, tags, cutoff)["success"].tolist() for cutoff in (1, 10)]
    [[0.5], [0.75]]
    """
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, (int, np.integer)) or cutoff < 1):
        raise ParameterError(
            f"cutoff={excerpt(cutoff)}: wanted a whole number of at least 1, or None for all documents"
        )
    all_intents, all_tags = (
        Intents(named_frame("intents", intents), normalise=normalise),
        Tags(named_frame("tags", tags)),
    )
    require_same_kind(all_intents.entity, all_tags.entity, "intents column 'entity_id'", "tags column 'entity_id'")
    if all_tags.topics is not None:
        require_same_kind(all_intents.qid, all_tags.qid, "intents column 'qid'", "tags column 'qid'")
    rows, intent = all_tags.of_intents(all_intents)
    if documents is not None:
        shown = _allowed_positions(documents, all_intents, all_intents.topic[intent], all_tags.docno.take(rows))
        rows, intent = rows[shown], intent[shown]
    success, exact = _best_success(all_intents, all_tags, cutoff, nil, rows, intent)
    method = np.where(exact, "exact", "greedy").astype(object)
    return pd.DataFrame({"qid": all_intents.topics, "success": success, "method": method})


def _best_success(
    intents: Intents, tags: Tags, cutoff: int | None, nil: str, rows: Ints, ids: Ints
) -> tuple[Floats, Bools]:
    """Return the largest success of each topic, and True if it is exact, from rows of tags and their ids of intents."""
    prob = intents.id_prob.copy()
    absent = _positions(intents.ids, nil) if nil else np.empty(0, dtype=np.int64)
    nothing = per_topic(prob[absent], intents.id_topic[absent], len(intents.topics))
    prob[absent] = 0.0
    _, document = tags.docno.take(rows).codes()
    success, exact = best_success(
        prob, intents.id_topic, len(intents.topics), intent=ids, document=document, weight=tags.weight[rows], k=cutoff
    )
    # Sums of probabilities are subject to rounding.
    return np.minimum(np.maximum(success, nothing), 1.0), exact


def _allowed_positions(documents: Any, intents: Intents, topic: Ints, docno: Ids) -> Ints:
    """Return the positions of the allowed pairs of topic and document."""
    frame = documents_frame(documents)
    allowed = column_ids(frame["docno"], "documents column 'docno'")
    require_same_kind(docno, allowed, "tags column 'docno'", "documents column 'docno'")
    if "qid" not in frame.columns:
        pairs, _ = Lookup(None, allowed).find(None, docno)
        return np.unique(pairs)
    qid = column_ids(frame["qid"], "documents column 'qid'")
    require_same_kind(intents.qid, qid, "intents column 'qid'", "documents column 'qid'")
    topics, code = qid.codes()
    pairs, _ = Lookup(places(topics, intents.topics)[code], allowed).find(topic, docno)
    return np.unique(pairs)

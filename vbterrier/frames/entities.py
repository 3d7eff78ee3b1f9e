"""Validation of frames of entities: candidate intents, and tags of documents, as checked arrays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, excerpt
from vbterrier.frames.columns import TAGS
from vbterrier.frames.contracts import is_frame, pandas_frame, refuse_near_misses, require
from vbterrier.frames.ids import Lookup, column_flags, column_ids, column_keys, column_numbers, repeated_pairs
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ids import Ids


WEIGHT_REMEDY = (
    "convert scores to probabilities first: exp(x) of log probabilities, 1 / (1 + exp(-x)) of logits, or a softmax "
    "over the candidates of each mention; or leave the column out, which counts every link as 1"
)


def require_once(topics: Sequence[str], topic: Ints, entity: Ids, name: str) -> None:
    """Refuse duplicate candidates of a query."""
    twice = repeated_pairs(topic, entity)
    if len(twice):
        first, second = (int(row) for row in twice[:2])
        raise InputError(
            f"{name}: {owner(topics, topic, entity, first)} is in rows {first} and {second}; keep one, or add up "
            "their probabilities, as Dedup() does"
        )


def intent_probabilities(
    column: Any, topics: Sequence[str], topic: Ints, entity: Ids, name: str, *, normalise: bool = False
) -> tuple[Floats, Floats]:
    """Return the probabilities of candidates, shape (n,), and their sum for each query, shape (n_topics,).

    The tolerance of a sum is 1e-6 for each candidate, for probabilities that were rounded to six decimals.
    """
    prob = column_numbers(column, f"{name} column 'prob'", lambda row: f" ({owner(topics, topic, entity, row)})")
    sizes = np.bincount(topic, minlength=len(topics))
    bad = (prob < 0) | (~np.isfinite(prob) if normalise else prob > 1 + PROBABILITY_ROUNDING)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name}: row {row} ({owner(topics, topic, entity, row)}) has probability {prob[row]:g}, wanted 0 to 1; "
            "convert scores to probabilities first, with a softmax as Calibrate() does"
        )
    total = per_topic(prob, topic, len(topics))
    off = ((total <= 0) & (sizes > 0)) if normalise else np.abs(total - 1) > PROBABILITY_ROUNDING * sizes
    if off.any():
        place = int(np.argmax(off))
        requirement = "more than 0" if normalise else "1: divide them by their sum, as normalise=True of a measure does"
        n_off = int(off.sum())
        raise InputError(
            f"{name}: the probabilities of query {topics[place]!r} sum to {total[place]:g} "
            f"({n_off} {'query is' if n_off == 1 else 'queries are'} off); wanted {requirement}"
        )
    return prob, total


def owner(topics: Sequence[str], topic: Ints, entity: Ids, row: int) -> str:
    """Name the candidate of a row and its query in messages."""
    return f"candidate {entity.text[row].as_py()!r} of query {topics[topic[row]]!r}"


def _counts(frame: pd.DataFrame, column: str, name: str) -> Ints:
    """A column of whole numbers from 0."""
    numbers = column_numbers(frame[column], f"{name} column {column!r}")
    bad = (numbers < 0) | ~np.isfinite(numbers) | (np.floor(numbers) != numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name}: row {row} has {column} {numbers[row]:g}, wanted a whole number of at least 0")
    return numbers.astype(np.int64)


_LINKS = ("qid", "docno", "start", "end", "mention", "entity_id", "score")


def _tags_of_links(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a frame of tags; of :func:`vbterrier.frames.read_entity_links`, the best entity of each mention.

    The qid of such a frame is a mention of the document, and the scores are weights if there are any.
    """
    if not len(frame) or not set(_LINKS) <= set(frame.columns):
        return frame
    docno, qid = frame["docno"].astype(str), frame["qid"].astype(str)
    if not all(q.startswith(f"{d}:") or q == d for q, d in zip(qid, docno, strict=True)):
        return frame
    score = column_numbers(frame["score"].fillna(-np.inf), f"{name} column 'score'")
    order = np.argsort(-score, kind="stable")
    best = np.sort(order[~qid.iloc[order].duplicated().to_numpy()])
    tags = frame.iloc[best].drop(columns=["qid", "score"])
    weight = score[best]
    return tags.assign(weight=1.0 if np.isneginf(weight).any() else weight)


class TagFrame:
    """Tags of documents, for all queries or, with qid, for single ones; weights in [0, 1] are 1 where absent.

    ``tied``: True for tags that a tie between candidates decided. ``n_abstained``: mentions of the document that have
    no tag because of a tie or none fits. Both have the shape (n_tags,); ``None`` if the tagger did not say.
    """

    def __init__(self, frame: Any, *, name: str = "tags") -> None:
        self.name = name
        frame = _tags_of_links(pandas_frame(frame, name, TAGS), name)
        require(frame, ("docno", "entity_id"), name)
        # The score of a ranked list is that of its documents.
        refuse_near_misses(frame, ("weight", "qid"), name, others=("score",) * ("rank" in frame.columns))
        self.docno = column_keys(frame["docno"], f"{name} column 'docno'")
        self.entity = column_ids(frame["entity_id"], f"{name} column 'entity_id'")
        self.weight = np.ones(len(frame))
        if "weight" in frame.columns:
            # A copy, so that later changes of the frame have no effect.
            self.weight = column_numbers(frame["weight"], f"{name} column 'weight'").copy()
        bad = (self.weight < 0) | (self.weight > 1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{name}: row {row} (document {self.docno.text[row].as_py()!r}) has weight {self.weight[row]:.9g}, "
                f"wanted 0 to 1; {WEIGHT_REMEDY}"
            )
        self.topics: list[str] | None = None
        self.topic: Ints | None = None
        if "qid" in frame.columns:
            self.qid = column_keys(frame["qid"], f"{name} column 'qid'")
            self.topics, self.topic = self.qid.codes()
        self.tied: Bools | None = None
        self.n_abstained: Ints | None = None
        if "tied" in frame.columns:
            self.tied = column_flags(frame["tied"], f"{name} column 'tied'")
        if "n_abstained" in frame.columns:
            self.n_abstained = _counts(frame, "n_abstained", name)

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.topic, self.docno)


def documents_frame(documents: Any, columns: Sequence[str] = ("docno",)) -> pd.DataFrame:
    """Return the frame of a parameter ``documents``: ids, or a frame with these columns."""
    if isinstance(documents, str):
        raise InputError(f"documents={excerpt(documents)}: wanted ids or a frame; put a single id in a list")
    if not is_frame(documents):
        documents = pd.DataFrame({"docno": pd.Series(list(documents), dtype=object)})
    frame = pandas_frame(documents, "documents")
    require(frame, columns, "documents")
    return frame

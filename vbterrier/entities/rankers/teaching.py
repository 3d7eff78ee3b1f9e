"""Rows of an entity run with labels to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.entities.rankers.base import warn
from vbterrier.entities.rankers.boosting import Examples
from vbterrier.entities.rankers.idf import pool_df
from vbterrier.entities.table import ALPHA, TAU
from vbterrier.errors import examples
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.labels import LabelFrame
from vbterrier.frames.topics import places
from vbterrier.kernels.coverage import observable_relevance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.entities.rankers.base import Placed

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

UNKNOWN = -1
# A support so small that every entity has it.
_NO_DISCOUNT = 1e-9


@dataclass(frozen=True, eq=False)
class Taught:
    """An entity run with features and labels.

    Parameters
    ----------
    placed
        The run.
    table
        Its features, shape (n_rows, n_features).
    label
        Of each row, -1 for those that teach nothing, shape (n_rows,).
    judged
        What judgments say of the rows that teach, by name: no feature may repeat any of it.
    """

    placed: Placed
    table: Floats
    label: Ints
    judged: dict[str, Floats]

    @property
    def rows(self) -> Bools:
        """Which rows teach, shape (n_rows,)."""
        taught: Bools = self.label != UNKNOWN
        return taught

    def examples(self, among: Bools | None = None) -> Examples:
        """The rows that teach, of some, by the ids of topic and entity, whatever order they came in."""
        run = self.placed.run
        rows = np.flatnonzero(self.rows if among is None else self.rows & among)
        by_name = np.argsort(np.argsort(np.array(run.topics)))
        topic = by_name[run.topic[rows]]
        rows = rows[np.lexsort((run.docno.take(rows).ranks(), topic))]
        sizes = np.bincount(topic)
        return Examples(self.table[rows], self.label[rows], sizes[sizes > 0])


def from_entities(placed: Placed, table: Floats, qrels: Any, rel: int) -> Taught:  # noqa: ARG001 - as from_documents
    """Labels as they are given for entities, as qrels or as ``entity_labels`` gives them; below 0 counts as none."""
    frame = frame_of(qrels, "qrels")
    if "docno" not in frame and {"entity_id", "label"} <= set(frame.columns):
        frame = frame[frame["label"].notna()].rename(columns={"entity_id": "docno"})
    labels = LabelFrame(frame)
    require_same_kind(labels.qid, placed.run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, placed.run.docno, "qrels column 'docno'", "entity run column 'docno'")
    label = np.full(len(placed.run), UNKNOWN)
    if len(labels.label):
        row = labels.lookup.find_one(places(placed.run.topics, labels.topics)[placed.run.topic], placed.run.docno)
        label = np.where(row >= 0, np.maximum(labels.label, UNKNOWN)[row], UNKNOWN)
    return Taught(placed, table, label, {"the label": label[label != UNKNOWN].astype(np.float64)})


def from_documents(placed: Placed, table: Floats, qrels: Any, rel: int) -> Taught:
    """Labels of entities from those of the pool's documents (Chatterjee, arXiv 2604.05204, equation 5).

    1 where relevant documents of the pool alone mention the entity, 0 where others alone do, none where both do, in
    topics that were not judged, and for entities outside the pool.
    """
    pool, run = placed.pool, placed.run
    labels = LabelFrame(qrels)
    require_same_kind(labels.qid, run.topic_ids, "qrels column 'qid'", "entity run column 'qid'")
    require_same_kind(labels.docno, pool.docno, "qrels column 'docno'", "links column 'docno'")
    place = places(pool.topics, labels.topics)
    unjudged = places(run.topics, labels.topics) < 0
    if unjudged.any():
        lost = [run.topics[each] for each in np.flatnonzero(unjudged).tolist()]
        warn(f"entity run: {len(lost)} topics are not in qrels and teach nothing ({examples(lost)})")
    relevant = np.zeros(len(pool), dtype=bool)
    if len(labels.label):
        row = labels.lookup.find_one(place[pool.topic], pool.docno)
        relevant = (row >= 0) & (labels.label[row] >= rel)
    df = pool_df(pool)
    df_relevant = np.bincount(pool.pair[relevant[pool.document]], minlength=len(df))
    of_pair = np.where(df_relevant == df, 1, np.where(df_relevant == 0, 0, UNKNOWN))
    known = (placed.pair >= 0) & ~unjudged[run.topic]
    label = np.where(known, placed.of_pairs(of_pair), UNKNOWN).astype(np.int64)
    rows = label != UNKNOWN
    return Taught(placed, table, label, _judged(placed, rows, label, relevant, df_relevant))


def _judged(placed: Placed, rows: Bools, label: Ints, relevant: Bools, df_relevant: Ints) -> dict[str, Floats]:
    """What judgments say of some rows."""
    pool = placed.pool
    topic, pair = placed.topic[rows], placed.pair[rows]
    n_documents = np.diff(pool.topic_starts)[topic] if len(topic) else topic
    n_relevant = np.bincount(pool.topic[relevant], minlength=len(pool.topics))[topic] if len(topic) else topic
    ours = df_relevant[pair]
    others = pool_df(pool)[pair] - ours
    counts = ours, others, n_relevant, n_documents - n_relevant
    odds = observable_relevance(*counts, alpha=ALPHA, tau=_NO_DISCOUNT)
    with np.errstate(invalid="ignore", divide="ignore"):
        lift = np.nan_to_num(label[rows] / (n_relevant / n_documents))
        reach = np.nan_to_num(ours / n_relevant)
    return {
        "the label": label[rows].astype(np.float64),
        "the number of relevant documents": ours.astype(np.float64),
        "the number of other documents": others.astype(np.float64),
        "lift": lift,
        "relevance coverage": reach,
        "log odds of relevance": odds,
        "OER": observable_relevance(*counts, alpha=ALPHA, tau=TAU),
    }

"""Ranked lists: trec_eval's order, the one tie rule, and the cut to the first k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, numbers_of, owner_of, repeated_pairs
from vbterrier.frames.parameters import choice
from vbterrier.kernels import fingerprints, ranking

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.annotations import Ints


TIES_WORTH_A_WARNING = 0.05
DUPLICATES = ("error", "first")
# Topics times ranks that are laid out as one table.
MOST_PLACES = 200_000_000


@dataclass(frozen=True, eq=False)
class Top:
    """The first ranks of every topic of a run.

    Parameters
    ----------
    topics
        The topics, in order of appearance.
    rows
        The row of the run at each rank, -1 where the list is shorter, shape (n_topics, depth).
    n_tied
        How many of the filled places share their score with another document of their topic.
    """

    topics: list[str]
    rows: Ints
    n_tied: int

    @property
    def depth(self) -> int:
        """The number of ranks."""
        return int(self.rows.shape[1])

    @property
    def tied_share(self) -> float:
        """Share of the filled places whose score another document of their topic has too."""
        return self.n_tied / max(int(np.count_nonzero(self.rows >= 0)), 1)

    def warn_of_ties(self, name: str) -> None:
        """Say once of a run that its score depends on the order of ties, where that is more than a trifle."""
        warn_of_ties(name, self.tied_share, self.depth)


def warn_of_ties(name: str, share: float, depth: int) -> None:
    """Say once of a run that its score depends on the order of ties, where they are more than a trifle."""
    if share > TIES_WORTH_A_WARNING:
        warn(
            f"{name}: {share:.0%} of the first {depth} places are tied; their order is trec_eval's, "
            "by docno, and other tools may order them otherwise"
        )


class Run:
    """A run as arrays: checked once, cut as often as needed.

    Parameters
    ----------
    frame
        Columns qid, docno, score; others pass through.
    name
        What messages call it.
    duplicates
        ``"error"`` refuses a document that stands twice in a topic; ``"first"`` keeps its best rank and warns.

    Raises
    ------
    InputError
        A missing column or id, a score that is no number, a document that stands twice in a topic.
    """

    def __init__(self, frame: Any, *, name: str = "run", duplicates: str = "error") -> None:
        choice("duplicates", duplicates, DUPLICATES)
        self.name = name
        self._read(frame_of(frame, name))
        rows = repeated_pairs(self.topic, self.docno)
        if len(rows) and duplicates == "error":
            raise InputError(self._duplicate(rows))
        if len(rows):
            worse = self._worse(rows)
            warn(f"{name}: {len(worse)} repeated documents dropped, each at its lower rank")
            kept = np.ones(len(self), dtype=bool)
            kept[worse] = False
            self._read(self.frame[kept].reset_index(drop=True))

    def _read(self, frame: pd.DataFrame) -> None:
        require(frame, ("qid", "docno", "score"), self.name)
        self.frame = frame
        # Of topics the distinct ids alone are kept: a column in several pieces is copied to be read.
        self.topic_ids, self.topic = ids_of(frame["qid"], f"{self.name} column 'qid'").distinct()
        self.topics: list[str] = self.topic_ids.text.to_pylist()
        self.docno = ids_of(frame["docno"], f"{self.name} column 'docno'")
        owner = owner_of(self.topics, self.topic, self.docno)
        self.score = numbers_of(frame["score"], f"{self.name} column 'score'", owner)
        # trec_eval keeps scores as C floats: what differs only beyond them is a tie.
        with np.errstate(over="ignore"):
            self._single = self.score.astype(np.float32)
        # What was known of rows that have gone.
        for known in ("_together", "_spans", "_falling"):
            vars(self).pop(known, None)

    def __len__(self) -> int:
        return len(self.score)

    def only(self, topics: Collection[str]) -> Run:
        """The run without its other topics."""
        wanted = set(topics)
        kept = np.array([topic in wanted for topic in self.topics], dtype=bool)
        if kept.all():
            return self
        return Run(self.frame[kept[self.topic]].reset_index(drop=True), name=self.name)

    @cached_property
    def _together(self) -> bool:
        """Whether the rows of each topic stand together, topics in order of appearance."""
        return not bool((self.topic[1:] < self.topic[:-1]).any())

    @cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        """Where each topic begins among rows by topic, and behind its last one."""
        if self._together:
            starts = np.searchsorted(self.topic, np.arange(len(self.topics)))
            return starts, np.append(starts[1:], len(self))[: len(starts)]
        stops = np.cumsum(np.bincount(self.topic, minlength=len(self.topics)))
        return np.concatenate([[0], stops[:-1]]), stops

    @cached_property
    def _falling(self) -> tuple[Ints | None, NDArray[np.float32]]:
        """Rows by topic and falling score, ``None`` where they stand so, and their scores."""
        starts, _ = self._spans
        rows = None if self._together else np.argsort(self.topic, kind="stable")
        score = self._single if rows is None else self._single[rows]
        if not ranking.is_falling(score, starts):
            rows = np.lexsort((-self._single, self.topic))
            score = self._single[rows]
        return rows, score

    def ordered(self, depth: int | None = None) -> tuple[Ints, Ints, Ints]:
        """Rows by topic, each topic's first ``depth`` in trec_eval's order; where each begins, and its sizes."""
        (starts, stops), (rows, score) = self._spans, self._falling
        within = int((stops - starts).max(initial=0)) if depth is None else depth
        tied = ranking.tied_groups(score, starts, stops, within)
        ordered = np.arange(len(self)) if rows is None else rows
        if tied.any():
            places, settled = self._settled(starts[tied], stops[tied])
            ordered = ordered.copy()
            ordered[places] = settled
        return ordered, starts, stops - starts

    def top(self, depth: int | None = None) -> Top:
        """Cut each topic to its first ``depth`` documents in trec_eval's order; ``None`` keeps all.

        Raises
        ------
        InputError
            A table of topics by ranks that would not fit into memory: one list is far longer than the others.
        """
        (starts, stops), (rows, score) = self._spans, self._falling
        longest = int((stops - starts).max(initial=0))
        depth = longest if depth is None else min(depth, longest)
        if len(starts) * depth > MOST_PLACES:
            raise InputError(
                f"{self.name}: {len(starts)} topics and a list of {depth} documents are too many to lay out; give a "
                "cutoff, as @1000"
            )
        cut = ranking.top_rows(starts, stops, depth)
        found = cut if rows is None else np.where(cut >= 0, rows[cut], -1)
        n_tied = ranking.n_tied(score, cut, starts, stops)
        tied = ranking.tied_groups(score, starts, stops, depth)
        if tied.any():
            # Equal scores change places with each other alone: scores stay in order.
            _, settled = self._settled(starts[tied], stops[tied])
            ends = np.cumsum((stops - starts)[tied])
            among = ranking.top_rows(np.append(0, ends[:-1]), ends, depth)
            found[tied] = np.where(among >= 0, settled[among], -1)
        return Top(self.topics, found, n_tied)

    def _settled(self, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
        """Places of some topics among rows by topic, and the rows there, equal scores in descending order of docno."""
        owner, places = ranking.spans(starts, stops)
        rows, _ = self._falling
        among = places if rows is None else rows[places]
        return places, among[np.lexsort((-self.docno.take(among).ranks(), -self._single[among], owner))]

    def ranks(self) -> Ints:
        """The 0-based place of every row in its topic, in trec_eval's order, shape (n_rows,)."""
        rows, starts, sizes = self.ordered()
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[rows] = np.arange(len(rows)) - np.repeat(starts, sizes)
        return ranks

    def _duplicate(self, rows: Ints) -> str:
        first, second = int(rows[0]), int(rows[1])
        places = sorted(1 + int(self.ranks()[row]) for row in (first, second))
        qid, docno = self.topics[self.topic[first]], self.docno.text[first].as_py()
        return (
            f"{self.name}: document {docno!r} stands twice for query {qid!r}, at ranks {places[0]} and {places[1]} "
            f"({len(rows)} rows repeat); each document may stand once: repair the run, or pass duplicates='first' to "
            "keep the best rank"
        )

    def _worse(self, rows: Ints) -> Ints:
        """Of rows that repeat, those that are not the best of their document."""
        rows = rows[np.argsort(self.ranks()[rows], kind="stable")]
        prints = fingerprints.keys(self.topic[rows], self.docno.take(rows).fingerprints)
        _, best = np.unique(prints, return_index=True)
        return np.delete(rows, best)


def ranked(run: Any, depth: int | None = None, *, duplicates: str = "error", name: str = "run") -> pd.DataFrame:
    """Order a run as trec_eval does and cut it.

    Scores are compared as 32-bit floats, the highest first; equal scores by docno, the last in the order of bytes
    first. The given ranks and the order of rows count for nothing.

    Parameters
    ----------
    run
        Columns qid, docno, score; others pass through.
    depth
        How many documents of each topic to keep; ``None`` keeps all.
    duplicates
        ``"error"``, or ``"first"`` to keep the best rank of a document that stands twice.
    name
        What messages call the run.

    Returns
    -------
    pandas.DataFrame
        The kept rows, topics in order of appearance, with ``rank`` from 0.

    Raises
    ------
    InputError
        A missing column or id, a score that is no number, a document that stands twice in a topic.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "c", "b"], "score": [1.0, 1.0, 2.0]})
    >>> ranked(run)[["docno", "rank"]].values.tolist()
    [['b', 0], ['c', 1], ['a', 2]]
    """
    checked = Run(run, name=name, duplicates=duplicates)
    rows, starts, sizes = checked.ordered(depth)
    rank = np.arange(len(rows)) - np.repeat(starts, sizes)
    kept = slice(None) if depth is None else rank < depth
    return checked.frame.iloc[rows[kept]].reset_index(drop=True).assign(rank=rank[kept])

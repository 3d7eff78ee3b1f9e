"""Runs and ranked lists in trec_eval's order: scores as float32, ties by docno."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.errors import InputError, agreeing, choice, examples, warn
from vbterrier.frames.affixes import affix_text
from vbterrier.frames.columns import RUN
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.blocks import READ
from vbterrier.frames.files.parts import is_parts, table_of_parts
from vbterrier.frames.ids import (
    column_numbers,
    distinct_blocks,
    lazy_ids,
    repeated_pairs,
    require_same_kind,
    row_describer,
)
from vbterrier.frames.pipelines import is_pipeline, pipeline_results, retrieved_runs
from vbterrier.frames.systems import ONE, EvaluatedColumns, columns_of_systems, named_once, split_systems, varies
from vbterrier.kernels import fingerprints, rankings
from vbterrier.remedies import FIRST_DUPLICATE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Ints
    from vbterrier.frames.ids import Ids


# A larger share of tied documents gives a warning.
# Topics whose first document is the query itself; a single one may be a coincidence.
_LEAST_OWN = 2
MAX_TIED_SHARE = 0.05
DUPLICATES = ("error", "first", "everywhere")
# Limit of topics times ranks in one table.
MAX_PLACES = 200_000_000
# Runs are sorted whole unless the lists are this many times as long as the cutoff.
_MIN_LENGTH_RATIO = 4
# Columns of runs that evaluations keep: those that they read, and the index of a document in answers of _rank_eval,
# which lists of documents to rate have, too.
_KEPT_COLUMNS = frozenset((*READ, "index"))


@dataclass(frozen=True, eq=False)
class Top:
    """The first ranks of every topic of a run."""

    topics: list[str]  # the topics, in order of appearance
    rows: Ints  # the row of the run at each rank, -1 beyond the end of the list, shape (n_topics, depth)
    n_tied: int  # number of these documents that share their score with another document of their topic
    all_docno: Ids  # the documents of all rows of the run

    @property
    def depth(self) -> int:
        """The number of ranks."""
        return int(self.rows.shape[1])

    @cached_property
    def topic_and_rank(self) -> tuple[Ints, Ints]:
        """The topic and the rank of each document, by topic and rank, each of shape (n,)."""
        topic, rank = np.nonzero(self.rows >= 0)
        # Callers share these arrays.
        topic.flags.writeable = rank.flags.writeable = False
        return topic, rank

    @cached_property
    def docno(self) -> Ids:
        """The documents, by topic and rank, shape (n,)."""
        return self.all_docno.take(self.rows[self.topic_and_rank])

    def of_topics(self, place: Ints, n_topics: int) -> tuple[Ints, Ints, Ints, Ids]:
        """Return the documents of other topics than those of the run, or of these topics in another order.

        - ``place``: the position of each topic of the run among the other topics, -1 for topics that are left out,
          shape (n_own_topics,)

        Returns (rows, topic, rank, docno): the row of the run at each rank, shape (n_topics, depth), and the topic, the
        rank and the id of each document, each of shape (n,), in the order of the topics of the run.
        """
        rows = np.full((n_topics, self.depth), -1, dtype=np.int64)
        is_present = place >= 0
        rows[place[is_present]] = self.rows[is_present]
        filled, rank = self.topic_and_rank
        topic, docno = place[filled], self.docno
        if not is_present.all():
            kept = np.flatnonzero(topic >= 0)
            topic, rank, docno = topic[kept], rank[kept], docno.take(kept)
        return rows, topic, rank, docno

    @property
    def tied_share(self) -> float:
        """Share of these documents whose score another document of their topic has."""
        return self.n_tied / max(int(np.count_nonzero(self.rows >= 0)), 1)

    def warn_of_ties(self, name: str) -> None:
        """Warn if more than 5 % of the documents are tied, so that scores depend on the order of ties."""
        warn_of_ties(name, self.tied_share, self.depth)


def warn_of_ties(name: str, share: float, depth: int) -> None:
    """Warn if the share of tied documents exceeds 5 %."""
    if share > MAX_TIED_SHARE:
        warn(
            f"{name}: {share:.0%} of the first {depth} places are tied; their order is trec_eval's, "
            "by docno, and other tools may order them differently"
        )


class _Lists(NamedTuple):
    """Rows of a run by topic: the first row of each topic, the row after its last one, rows (``None``: all), scores."""

    starts: Ints
    stops: Ints
    rows: Ints | None
    score: NDArray[np.float32]

    def descending(self) -> _Lists:
        """Return the rows of each topic by descending score."""
        order = rankings.descending(self.score, self.starts, self.stops)
        return self._replace(rows=order if self.rows is None else self.rows[order], score=self.score[order])

    def leading(self, depth: int) -> _Lists:
        """Return the rows of each topic with one of the ``depth`` highest scores, ties included."""
        sizes = self.stops - self.starts
        least = np.repeat(rankings.kth_largest(self.score, self.starts, self.stops, depth), sizes)
        kept = np.flatnonzero(self.score >= least)
        stops = np.searchsorted(kept, self.stops)
        starts = np.concatenate([[0], stops[:-1]])
        return _Lists(starts, stops, kept if self.rows is None else self.rows[kept], self.score[kept])


class Run:
    """A run as arrays, checked once.

    - ``frame``: columns qid, docno, score; others pass through
    - ``duplicates``: ``"everywhere"`` refuses duplicate documents of a topic; ``"error"`` refuses them among the
      documents that are looked at, see :meth:`refuse_duplicates`; ``"first"`` keeps their best rank and warns

    The order needs topics and scores only. Ids of documents become text, and are checked, at ranks that are looked at,
    and at ties that decide them, unless they are text of Arrow.
    """

    def __init__(self, frame: Any, *, name: str = "run", duplicates: str = "everywhere") -> None:
        choice("duplicates", duplicates, DUPLICATES)
        self.name = name
        self._read_columns(pandas_frame(frame, name, RUN))
        # No topic has duplicates in its first documents up to this rank.
        self._distinct_to: float = 0
        if duplicates == "first":
            self._drop_duplicates()
        elif duplicates == "everywhere":
            self.refuse_duplicates()

    def _drop_duplicates(self) -> None:
        """Keep the best rank of duplicate documents, and warn."""
        self._distinct_to = math.inf
        rows = repeated_pairs(self.topic, self.docno)
        if len(rows):
            # All rows of a repeated document but the one at its best rank.
            rows = rows[np.argsort(self.ranks()[rows], kind="stable")]
            keys = fingerprints.keys(self.topic[rows], self.docno.take(rows).fingerprints)
            worse = np.delete(rows, np.unique(keys, return_index=True)[1])
            warn(f"{self.name}: {len(worse)} repeated documents dropped, each at its lower rank")
            kept = np.ones(len(self), dtype=bool)
            kept[worse] = False
            # Cached values are those of all rows.
            for cached in _cached_names():
                vars(self).pop(cached, None)
            self._read_columns(self.frame[kept].reset_index(drop=True))

    def warn_of_ranks(self) -> None:
        """Warn of topics whose ranks are in the opposite order of their scores, such as distances given as scores."""
        topics = self.reversed_topics()
        if topics:
            warn(f"{self.name}: {self.text_of_reversed(topics)}")

    def text_of_reversed(self, topics: list[str]) -> str:
        """Description of the topics of :meth:`reversed_topics`, with the remedy."""
        return (
            f"ranks contradict scores in {len(topics)} of {len(self.topics)} topics ({examples(topics)}): the first "
            "ranks have the lowest scores, as distances do; documents are ordered by score, as in trec_eval: negate "
            "the scores if lower is better, and otherwise repair the ranks"
        )

    def reversed_topics(self) -> list[str]:
        """Return the topics with different scores whose scores never fall from rank to rank.

        Empty without a column ``rank``; documents of equal ranks have no order.
        """
        if "rank" not in self.frame.columns:
            return []
        is_sorted = self._is_descending or "_descending" in vars(self)
        starts, stops, rows, score = self._descending if is_sorted else self._grouped_lists
        order = np.arange(len(self)) if rows is None else rows
        starts, stops = starts[starts < stops], stops[starts < stops]
        # Rows in another order are not sorted for this check: as a rule, no topic is compared as a whole.
        highest, lowest = (starts, stops - 1) if is_sorted else rankings.extreme_places(score, starts, stops)
        # Only topics with a smaller rank at the lowest score than at the highest are looked at.
        inverse = np.greater(*self._file_ranks(order[np.stack([highest, lowest])].ravel()).reshape(2, -1))
        suspects = np.flatnonzero(inverse & (score[highest] != score[lowest]))
        if not len(suspects):
            return []
        owner, places = rankings.spans(starts[suspects], stops[suspects])
        among = order[places]
        rank = self._file_ranks(among)
        by_rank = np.lexsort((-self._single[among], rank, owner))
        among, rank = among[by_rank], rank[by_rank]
        falls = (self.score[among[1:]] < self.score[among[:-1]]) & (rank[1:] > rank[:-1])
        agreeing = owner[1:][falls & (owner[1:] == owner[:-1])]
        contradicting = np.delete(suspects, np.unique(agreeing))
        return [self.topics[self.topic[order[starts[place]]]] for place in contradicting]

    def _file_ranks(self, rows: Ints) -> NDArray[np.float64]:
        """The column ``rank`` of some rows, NaN for what is no number."""
        column = self.frame["rank"]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
            # Several times faster for small frames.
            return column.to_numpy()[rows].astype(np.float64)
        return pd.to_numeric(column.iloc[rows], errors="coerce").to_numpy(np.float64, na_value=np.nan)

    def refuse_duplicates(self, cutoff: int | None = None) -> None:
        """Refuse duplicates among the first ``cutoff`` documents of each topic, ``None``: among all.

        :meth:`top` does so for the documents that it returns.
        """
        if cutoff is not None and cutoff < self.longest:
            self.top(cutoff)
        else:
            self._require_distinct(None)

    def _require_distinct(self, top: Top | None) -> None:
        """Refuse duplicates among the first documents of each topic; ``None`` for all rows.

        All rows of a run are compared if a column may name several systems, as of a table that was not split.
        """
        depth = math.inf if top is None or top.depth >= self.longest or self._may_be_several else top.depth
        if depth <= self._distinct_to:
            return
        if top is None or depth == math.inf:
            rows = repeated_pairs(self.topic, self.docno)
        else:
            rows = repeated_pairs(top.topic_and_rank[0], top.docno)
            rows = top.rows[top.topic_and_rank][rows] if len(rows) else rows
        if len(rows):
            raise InputError(self._duplicate(rows))
        self._distinct_to = depth

    def _read_columns(self, frame: pd.DataFrame) -> None:
        require(frame, ("qid", "docno", "score"), self.name)
        self._tops: dict[int, Top] = {}
        # The greatest depth whose rows were sorted, and these rows, which contain those of smaller depths.
        self._best: tuple[int, _Lists] | None = None
        self.frame = frame
        # Only distinct topic ids are kept: reading a chunked column copies it.
        self._blocks = distinct_blocks(frame["qid"], f"{self.name} column 'qid'")
        self.topic_ids = self._blocks.ids
        self.topics: list[str] = self.topic_ids.text.to_pylist()
        self.docno = lazy_ids(frame["docno"], f"{self.name} column 'docno'")
        self.score = column_numbers(frame["score"], f"{self.name} column 'score'", self._owner)
        # trec_eval stores scores as C floats: scores that are equal in single precision are tied.
        with np.errstate(over="ignore", under="ignore"):
            self._single = self.score.astype(np.float32)

    def __getstate__(self) -> dict[str, Any]:
        # Processes compute cached values from the rows, which are sent once.
        state, cached = {**vars(self), "_tops": {}, "_best": None}, _cached_names()
        return {name: value for name, value in state.items() if name not in cached}

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def topic(self) -> Ints:
        """The topic of each row as an index into ``topics``; a grouped run is cut without it."""
        return self._blocks.distinct(len(self))[1]

    def _owner(self, row: int) -> str:
        return row_describer(self.topics, self.topic, self.docno)(row)

    def first(self, cutoff: int | None) -> pd.DataFrame:
        """Return the rows up to a cutoff, topics in order of appearance, with ``rank`` from 0; ``None`` for all."""
        self.refuse_duplicates(cutoff)
        rows, starts, sizes = self.ordered_rows(cutoff)
        rank = np.arange(len(rows)) - np.repeat(starts, sizes)
        kept = slice(None) if cutoff is None else rank < cutoff
        return self.frame.iloc[rows[kept]].reset_index(drop=True).assign(rank=rank[kept])

    def only(self, topics: Collection[str]) -> Run:
        """Return the run restricted to some topics."""
        selection = set(topics)
        kept = np.array([topic in selection for topic in self.topics], dtype=bool)
        if kept.all():
            return self
        part = Run(self.frame[kept[self.topic]].reset_index(drop=True), name=self.name, duplicates="error")
        part._distinct_to = self._distinct_to
        return part

    @cached_property
    def _may_be_several(self) -> bool:
        """True if a column that may name the systems of rows has several values."""
        return any(varies(self.frame[name]) for name in columns_of_systems(self.frame.columns, None))

    @cached_property
    def _is_grouped(self) -> bool:
        """True if the rows of each topic are contiguous."""
        return not bool((self._blocks.number[1:] < self._blocks.number[:-1]).any())

    @cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        """The first row of each topic in the rows by topic, and the row after its last one."""
        if self._is_grouped:
            starts = self._blocks.starts[np.searchsorted(self._blocks.number, np.arange(len(self.topics)))]
            return starts, np.append(starts[1:], len(self))[: len(starts)]
        stops = np.cumsum(np.bincount(self.topic, minlength=len(self.topics)))
        return np.concatenate([[0], stops[:-1]]), stops

    @cached_property
    def longest(self) -> int:
        """The number of documents of the longest list."""
        starts, stops = self._spans
        return int((stops - starts).max(initial=0))

    @cached_property
    def _grouped_lists(self) -> _Lists:
        """Rows by topic, in the order of the run."""
        rows = None if self._is_grouped else rankings.grouped_order(self.topic, len(self.topics))
        return _Lists(*self._spans, rows, self._single if rows is None else self._single[rows])

    @cached_property
    def _is_descending(self) -> bool:
        """True if scores never rise within the rows of a topic."""
        return rankings.is_falling(self._grouped_lists.score, self._grouped_lists.starts)

    @cached_property
    def _descending(self) -> _Lists:
        """Rows by topic and descending score."""
        return self._grouped_lists if self._is_descending else self._grouped_lists.descending()

    def _leading(self, depth: int) -> _Lists:
        """Rows by topic and descending score, at least the first ``depth`` of each topic and those that tie there."""
        if self._is_descending or "_descending" in vars(self) or depth * _MIN_LENGTH_RATIO >= self.longest:
            return self._descending
        best = self._best
        if best is None or best[0] < depth:
            best = self._best = depth, self._grouped_lists.leading(depth).descending()
        return best[1]

    def ordered_rows(self, cutoff: int | None = None) -> tuple[Ints, Ints, Ints]:
        """Return rows by topic, up to ``cutoff`` in trec_eval's order, and the start and size of each topic."""
        starts, stops, rows, score = lists = self._descending
        tied = rankings.tied_groups(score, starts, stops, self.longest if cutoff is None else cutoff)
        ordered = np.arange(len(self)) if rows is None else rows
        if tied.any():
            places, settled, _ = self._tie_order(lists, tied, cutoff)
            ordered = ordered.copy()
            ordered[places] = settled
        return ordered, starts, stops - starts

    def best_scored(self, cutoff: int) -> Ints:
        """Return the rows of the best scores of each topic, -1 beyond the end of a list, shape (n_topics, cutoff).

        Ties have any order and duplicates are not refused: for descriptions of a run, not for measures.
        """
        starts, stops, rows, _ = self._leading(cutoff)
        cut = rankings.top_rows(starts, stops, cutoff)
        return cut if rows is None else np.where(cut >= 0, rows[cut], -1)

    def top(self, cutoff: int | None = None) -> Top:
        """Cut each topic to its first ``cutoff`` documents in trec_eval's order; ``None`` keeps all."""
        depth = self.longest if cutoff is None else min(cutoff, self.longest)
        if depth in self._tops:
            return self._tops[depth]
        if len(self.topics) * depth > MAX_PLACES:
            raise InputError(
                f"{self.name}: {len(self.topics)} topics and a list of {depth} documents exceed the limit of "
                f"{MAX_PLACES:,} places of a table; give a cutoff, as @1000"
            )
        starts, stops, rows, score = lists = self._leading(depth)
        cut = rankings.top_rows(starts, stops, depth)
        top_rows = cut if rows is None else np.where(cut >= 0, rows[cut], -1)
        n_tied = 0
        tied = rankings.tied_groups(score, starts, stops, depth)
        if tied.any():
            n_tied = rankings.n_tied(score, cut[tied], starts[tied], stops[tied])
            _, settled, sizes = self._tie_order(lists, tied, depth)
            ends = np.cumsum(sizes)
            among = rankings.top_rows(np.append(0, ends[:-1]), ends, depth)
            top_rows[tied] = np.where(among >= 0, settled[among], -1)
        # Callers share this array.
        top_rows.flags.writeable = False
        top = Top(self.topics, top_rows, n_tied, self.docno)
        self._require_distinct(top)
        if 2 * sum(kept.rows.size for kept in [*self._tops.values(), top]) <= len(self):
            # More cuts would hold a second copy of most ids.
            self._tops[depth] = top
        return top

    def _tie_order(self, lists: _Lists, tied: NDArray[np.bool_], cutoff: int | None) -> tuple[Ints, Ints, Ints]:
        """The order of documents down to the last one that ties with the cutoff, in some topics.

        Returns (places, rows, sizes): Their positions in the rows by topic, their rows in descending order of docno
        within ties, and their number in each topic.
        """
        starts, stops, rows, score = lists
        starts, stops = starts[tied], stops[tied]
        owner, places = rankings.spans(starts, stops)
        if cutoff is not None:
            last = score[np.minimum(starts + cutoff, stops) - 1]
            deciding = score[places] >= last[owner]
            owner, places = owner[deciding], places[deciding]
        among = places if rows is None else rows[places]
        settled = among.copy()
        equal = (score[places[1:]] == score[places[:-1]]) & (owner[1:] == owner[:-1])
        # Scores fall: only rows beside an equal one can change places, within their group.
        part = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        group = np.cumsum(np.append(True, ~equal))[part]
        settled[part] = among[part[np.lexsort((-self.docno.take(among[part]).ranks(), group))]]
        return places, settled, np.bincount(owner, minlength=len(starts))

    def fingerprint(self, cutoff: int | None, topics: Collection[str]) -> bytes:
        """Bytes that determine the first documents of some topics and their ranks, in any order of rows."""
        top = self.top(cutoff)
        topic, rank = top.topic_and_rank
        prints = fingerprints.of_groups(topic, top.docno.fingerprints, rank.astype(np.uint64), len(top.topics))
        kept = [(name, word) for name, word in zip(top.topics, prints, strict=True) if name in topics]
        return fingerprints.of_named_groups([name for name, _ in kept], np.array([word for _, word in kept], np.uint64))

    def ranks(self) -> Ints:
        """Return the 0-based rank of every row in its topic, in trec_eval's order, shape (n_rows,)."""
        rows, starts, sizes = self.ordered_rows()
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[rows] = np.arange(len(rows)) - np.repeat(starts, sizes)
        return ranks

    def row_ranks(self, rows: Ints) -> Ints:
        """Return :meth:`ranks` of some rows, shape (n,)."""
        starts, stops, order, score = self._descending
        if order is None and not rankings.tied_groups(score, starts, stops, self.longest).any():
            return rows - starts[self.topic[rows]]
        return self.ranks()[rows]

    def ranks_by_docno(self) -> Ints:
        """Return ranks as :meth:`ranks`, with ties of scores in double precision by ascending docno."""
        rows, starts, sizes = self.ordered_rows()
        # Ties in single precision include those in double precision, and have their documents in descending order.
        topic = np.repeat(np.arange(len(starts)), sizes)
        order = np.lexsort((-np.arange(len(rows)), -self.score[rows], topic))
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[rows[order]] = np.arange(len(rows)) - np.repeat(starts, sizes)
        return ranks

    def _duplicate(self, rows: Ints) -> str:
        first, second = int(rows[0]), int(rows[1])
        places = sorted(1 + int(self.ranks()[row]) for row in (first, second))
        qid, docno = self.topics[self.topic[first]], self.docno.text[first].as_py()
        return (
            f"{self.name}: document {docno!r} is duplicated for query {qid!r}, at ranks {places[0]} and {places[1]} "
            f"({agreeing(len(rows), 'rows repeat')}); {self._remedy(rows)}"
        )

    def _remedy(self, rows: Ints) -> str:
        """The remedy for repeated documents, which may be those of several systems."""
        for column in columns_of_systems(self.frame.columns, None):
            names = self.frame[column].iloc[rows].astype(str).unique()
            if len(names) > 1:
                return (
                    f"column {column!r} has several values ({examples(names)}): if they are systems, make a run of "
                    "each, or evaluate them with vbterrier.score, which does"
                )
        # Any caller can reduce the run first.
        return f"repair the run, or keep the best rank with {FIRST_DUPLICATE.text()}"


def _cached_names() -> set[str]:
    """The names of the cached properties of a run."""
    return {name for name, value in vars(Run).items() if isinstance(value, cached_property)}


def own_queries(run: Run, qrels: pd.DataFrame) -> list[str]:
    """Return the topics whose first document has the id of the topic, if they are most topics.

    Collections whose queries are documents, such as ArguAna, are evaluated without them. Topics whose own document is
    judged relevant are left out; ``qrels`` has the columns qid, docno and label.
    """
    top = run.top(1)
    topics = run.topic_ids.take(top.topic_and_rank[0]).text
    self_retrieved = topics.filter(pc.equal(top.docno.text, topics)).to_pylist()
    if len(self_retrieved) < _LEAST_OWN or 2 * len(self_retrieved) <= len(run.topics):
        return []
    judged = qrels[qrels["qid"].astype(str).isin(self_retrieved)]
    relevant = judged[
        (judged["qid"].astype(str) == judged["docno"].astype(str))
        & (pd.to_numeric(judged["label"], errors="coerce") > 0)
    ]
    others = set(self_retrieved).difference(relevant["qid"].astype(str))
    return [topic for topic in self_retrieved if topic in others] if 2 * len(others) > len(run.topics) else []


def text_of_own_queries(run: Run, topics: list[str]) -> str:
    """Description of the topics of :func:`own_queries`, with the remedy."""
    return (
        f"the first document has the id of its own query in {len(topics)} of {len(run.topics)} topics "
        f"({examples(topics)}), and is not judged relevant: the query itself was retrieved; remove it from the "
        "rankings before scoring, as collections whose queries are documents ask for"
    )


def ranked(run: Any, cutoff: int | None = None, *, duplicates: str = "error", name: str = "run") -> pd.DataFrame:
    """Order a run as trec_eval does, and cut it.

    Documents are sorted by descending score in single precision, ties by descending docno in byte order. The column
    ``rank`` and the order of rows are ignored.

    Parameters
    ----------
    run
        Columns qid, docno, score; others pass through.
    cutoff
        Number of documents per topic; ``None`` keeps all.
    duplicates
        ``"error"`` refuses duplicate documents among those that are kept, ``"everywhere"`` in the whole run;
        ``"first"`` keeps their best rank.
    name
        The name of the run in messages.

    Returns
    -------
    pandas.DataFrame
        The kept rows, topics in order of appearance, with ``rank`` from 0.

    Raises
    ------
    InputError
        A missing column or id, a score that is not a number, a duplicate document.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "c", "b"], "score": [1.0, 1.0, 2.0]})
    >>> ranked(run)[["docno", "rank"]].values.tolist()
    [['b', 0], ['c', 1], ['a', 2]]
    """
    return Run(run, name=name, duplicates=duplicates).first(cutoff)


def checked_run(name: str, source: Any, duplicates: str) -> Run:
    """Return the run of a frame; a run, which is checked, stays as it is."""
    return source if isinstance(source, Run) else Run(source, name=f"run {name!r}", duplicates=duplicates)


def places(topics: Sequence[str], among: Sequence[str]) -> Ints:
    """Return the position of each wanted topic in another list, -1 if it is missing, shape (n_wanted,)."""
    index = {topic: place for place, topic in enumerate(among)}
    return np.array([index.get(topic, -1) for topic in topics], dtype=np.int64)


def run_places(run: Run, topics: Sequence[str], qid: Ids, name: str, *, effect: str = "") -> Ints:
    """Return the position of each topic of a run in the topics to evaluate, -1 for topics that are not evaluated.

    ``effect`` ends the warning of topics that are not evaluated.
    """
    if not topics:
        raise InputError(f"{name}: no rows; a run is evaluated over the topics of this frame")
    require_same_kind(qid, run.topic_ids, f"{name} column 'qid'", f"{run.name} column 'qid'")
    place = places(run.topics, topics)
    if not run.topics:
        warn(f"{run.name}: empty; {f'all {len(topics)} topics score' if len(topics) > 1 else 'its topic scores'} 0")
    elif (place < 0).all():
        raise InputError(
            f"no topic in common: {run.name} has {examples(run.topics)}; {name} has {examples(topics)}; "
            + (
                affix_text([(run.topics, topics)], "the run", name)
                or "look for other prefixes, leading zeros, trailing blanks or another Unicode form"
            )
        )
    elif (place < 0).any():
        extra = [topic for topic, place in zip(run.topics, place, strict=True) if place < 0]
        problem = agreeing(len(extra), f"topics are not in {name} and are left out")
        affix = affix_text([(extra, sorted(set(topics).difference(run.topics)))], "the run", name)
        warn(f"{run.name}: {problem} ({examples(extra)}){effect}{f'; {affix}' if affix else ''}")
    return place


def loaded_run(name: str, run: Any, duplicates: str = "everywhere", *, extra: bool = True) -> Run:
    """Return the one run in a frame or a file; a pipeline, which needs topics, is an error, and so are several.

    ``extra``: as in :func:`system_tables`.
    """
    if is_pipeline(run):
        run = pipeline_results(name, run, None)
    tables = system_tables(name, run, extra=extra)
    if len(tables) > 1:
        raise InputError(
            f"run {name!r}: wanted one run, found {len(tables)} systems ({examples(tables)}); give one of them"
        )
    return Run(next(iter(tables.values())), name=f"run {name!r}", duplicates=duplicates)


def system_tables(name: str, run: Any, system: str | None = None, *, extra: bool = True) -> dict[str, Any]:
    """Return the runs in a frame, a file or the files of one run by name; ``system`` as in :func:`split_systems`.

    Without ``extra``, files are read without the columns that no evaluation reads, such as texts.
    """
    what = f"run {name!r}"
    if is_parts(run):
        frame = table_of_parts(run, None if extra else EvaluatedColumns(_KEPT_COLUMNS, system))
        if not extra and system not in (None, ONE, *frame.columns):
            # The message lists all columns.
            frame = table_of_parts(run)
    else:
        frame = pandas_frame(run, what, RUN)
    return split_systems(name, frame, system, what)


def runs_by_name(runs: Any, topics: Any = None) -> dict[str, Run]:
    """Return runs by name from a mapping of names to frames (qid, docno, score), paths of TREC runs, or pipelines.

    Pipelines are run on the topics, a frame or a path.
    """
    if not hasattr(runs, "items") or hasattr(runs, "columns"):
        raise InputError(f"runs: wanted a mapping of name to run, found {type(runs).__name__}; pass {{'mine': run}}")
    piped = {name for name, run in runs.items() if is_pipeline(run)}
    loaded = {
        run_name: Run(frame, name=f"run {run_name!r}")
        for run_name, frame in named_once(
            pair
            for name, run in retrieved_runs(runs, topics).items()
            for pair in ([(name, run)] if name in piped else system_tables(name, run, extra=False).items())
        ).items()
    }
    if not loaded:
        raise InputError("runs: none; name at least one run")
    return loaded

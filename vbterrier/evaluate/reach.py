"""Rankings and judgments beside what the first entities of a run reach in a pool."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.documents import Finder, Links, Listed
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.errors import DegenerateWarning, InputError, examples
from vbterrier.frames.ids import ids_of, integers_of
from vbterrier.frames.runs import loaded_run
from vbterrier.frames.topics import places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]


def linked(links: Any, pool: Any) -> LinkedPool:
    """The linked pool of a call: as given, or made of tags and a run.

    Raises
    ------
    InputError
        Tags without a run.
    """
    given = Links(links).given
    if isinstance(given, LinkedPool):
        return given
    if pool is None:
        raise InputError(
            "links: found tags without a pool, wanted what documents of which pool mention; give pool=, the run that "
            "is the candidate pool, or link_pool(pool, tags)"
        )
    return link_pool(loaded_run("pool", pool, "error"), given)


class Reach:
    """Which documents of a pool the first k entities of a run reach, for runs and judgments."""

    def __init__(self, pool: LinkedPool, entities: Run, k: int) -> None:
        self.pool, self._finder = pool, Finder(pool)
        self.reached: Bools = Listed.of(pool, entities, k).reached
        if not self.reached.any():
            raise InputError(
                f"entities: no document of the pool mentions any of the first {k} entities of its topic (entities: "
                f"{examples(entities.docno.text[:4].to_pylist())}; links: "
                f"{examples(pool.entities.text[:4].to_pylist())}); look for other spaces of ids"
            )

    def document(self, topics: list[str], topic: Ints, docno: Any, where: str) -> Ints:
        """The number of each document in the pool, -1 outside."""
        return self._finder.find(topics, topic, docno, where)

    def _of(self, run: Run) -> Ints:
        return self.document(run.topics, run.topic, run.docno, f"{run.name} column 'docno'")

    def pooled(self, run: Run) -> pd.DataFrame:
        """The rows of a run whose documents are in the pool."""
        return run.frame.iloc[np.flatnonzero(self._of(run) >= 0)]

    def reachable(self, run: Run) -> pd.DataFrame:
        """The rows of a run whose documents can be reached."""
        document = self._of(run)
        if len(document) and (document < 0).all():
            raise InputError(
                f"{run.name}: none of its documents is in the pool of links (run: "
                f"{examples(run.docno.text[:4].to_pylist())}; links: "
                f"{examples(self.pool.docno.text[:4].to_pylist())}); link the pool that systems rank"
            )
        return run.frame.iloc[np.flatnonzero((document >= 0) & self.reached[document])]


class Judged:
    """Judgments beside what can be reached.

    Parameters
    ----------
    frame
        qid, docno, label.
    reach
        What can be reached.
    rel
        The lowest relevant label.
    """

    def __init__(self, frame: pd.DataFrame, reach: Reach, rel: int) -> None:
        self.frame, self.reach = frame, reach
        qid, self._docno = (ids_of(frame[name], f"qrels column {name!r}") for name in ("qid", "docno"))
        self.topics, self.topic = qid.codes()
        self._label = integers_of(frame["label"], "qrels column 'label'")
        self._relevant: Bools = self._label >= rel
        self._document = reach.document(self.topics, self.topic, self._docno, "qrels column 'docno'")
        self._pooled: Bools = self._document >= 0
        self._reachable: Bools = self._pooled & reach.reached[self._document]

    def _n(self, rows: Bools) -> Ints:
        """How many documents of each topic some rows judge, shape (n_topics,)."""
        pairs = pd.DataFrame({"topic": self.topic[rows], "docno": self._docno.prints[rows]}).drop_duplicates()
        n: Ints = np.bincount(pairs["topic"].to_numpy(), minlength=len(self.topics))
        return n

    @property
    def unreached(self) -> Bools:
        """Which topics have relevant documents, but none that can be reached, shape (n_topics,)."""
        without: Bools = (self._n(self._relevant) > 0) & (self._n(self._relevant & self._reachable) == 0)
        return without

    def pooled_only(self) -> pd.DataFrame:
        """The judgments of documents in the pool."""
        return self._restricted(self._pooled, np.ones(len(self.frame), dtype=bool))

    def conditional(self, unreached: str) -> pd.DataFrame:
        """The judgments of documents that can be reached.

        Raises
        ------
        InputError
            No topic has a relevant document among them.
        """
        without = self.unreached
        every = np.ones(len(self.frame), dtype=bool)
        if not without.any():
            return self._restricted(self._reachable, every)
        found = (
            f"{int(without.sum())} of {len(without)} topics have relevant documents, but none that entities reach "
            f"({examples([self.topics[place] for place in np.flatnonzero(without)])})"
        )
        if unreached == "zero":
            _warn(f"{found}; they stay as topics without relevant documents")
            return self._restricted(self._reachable, every)
        if without.all():
            raise InputError(f"{found}: nothing is left to evaluate conditionally; select more entities")
        _warn(f"{found}; they are left out of the conditional setting")
        return self._restricted(self._reachable, ~without[self.topic])

    def _restricted(self, kept: Bools, among: Bools) -> pd.DataFrame:
        """Some of the rows; a topic that would have none keeps its rows as not relevant, so that it still counts."""
        bare = (np.bincount(self.topic[kept], minlength=len(self.topics)) == 0)[self.topic]
        label = np.where(bare, np.minimum(self._label, 0), self._label)
        rows = np.flatnonzero((kept | bare) & among)
        return self.frame.assign(label=label).iloc[rows].reset_index(drop=True)

    def coverage(self) -> pd.DataFrame:
        """A row a topic: what is in the pool, relevant, and reached."""
        pool, reached = self.reach.pool, self.reach.reached
        place = places(self.topics, pool.topics)
        n_pool, n_reachable = (
            np.where(place >= 0, np.bincount(pool.topic[rows], minlength=len(pool.topics) + 1)[place], 0)
            for rows in (np.ones(len(pool), dtype=bool), reached)
        )
        n_relevant = self._n(self._relevant & self._pooled)
        n_both = self._n(self._relevant & self._reachable)
        with np.errstate(invalid="ignore"):
            shares = n_both / n_relevant, (n_reachable - n_both) / (n_pool - n_relevant)
        return pd.DataFrame(
            {
                "qid": self.topics,
                "RelCov": shares[0],
                "NonRelCov": shares[1],
                "n_pool": n_pool,
                "n_reachable": n_reachable,
                "n_relevant": self._n(self._relevant),
                "n_relevant_pool": n_relevant,
                "n_relevant_reachable": n_both,
                "unreached": self.unreached,
            }
        )


def judged_topics(run: pd.DataFrame, judgments: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run whose topics are judged: of those that a setting leaves out, it has told already."""
    return run[run["qid"].isin(judgments["qid"])]


def _warn(message: str) -> None:
    warnings.warn(message, DegenerateWarning, stacklevel=4)

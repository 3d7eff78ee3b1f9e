"""One evaluation: what stands in the qrels slot, a run, and all that several measures of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from vbterrier.entities.pool import COLUMNS, LinkedPool
from vbterrier.entities.selection import Selection
from vbterrier.entities.table import EntityTable
from vbterrier.errors import InputError
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, require_same_kind
from vbterrier.judgments.pool import JudgedTop, Judgments

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from vbterrier.frames.ranked import Run

    T = TypeVar("T")


class Once:
    """Values computed when they are first asked for, and kept."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made at the first time."""
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value


class Slot(Once):
    """The frame given as qrels: judgments, intents or a pool's links, prepared once for many runs.

    Parameters
    ----------
    frame
        Any frame with a column qid.
    intents, tags
        Candidate intents and tags that stand beside judgments; ``None`` to look for them in the frame and the run.

    Raises
    ------
    InputError
        No column qid, or no row.
    """

    def __init__(
        self, frame: pd.DataFrame, *, intents: pd.DataFrame | None = None, tags: pd.DataFrame | None = None
    ) -> None:
        super().__init__()
        self.intents, self.tags = intents, tags
        require(frame, ("qid",), "qrels")
        if not len(frame):
            raise InputError("qrels: no rows; a run is evaluated over the topics that stand here")
        self.frame = frame
        self.qid = ids_of(frame["qid"], "qrels column 'qid'")
        self.topics, _ = self.qid.codes()

    @classmethod
    def of_links(cls, pool: LinkedPool) -> Slot:
        """A slot that holds a linked pool, which no frame of all its links need be made of."""
        slot = cls(pd.DataFrame({"qid": pool.topics}))
        slot.once("links", lambda: pool)
        return slot

    @property
    def is_links(self) -> bool:
        """Whether the frame is that of a linked pool, a K frame."""
        return {"docno", "entity_id", "label", "rank"} <= set(self.frame.columns)

    @property
    def is_diversity(self) -> bool:
        """Whether intents would be read off the iterations of judgments."""
        return self.intents is None and {"iteration", "docno", "label"} <= set(self.frame.columns)

    def judgments(self, *, drop_negative: bool = False) -> Judgments:
        """The frame as judgments."""
        return self.once(("judgments", drop_negative), lambda: Judgments(self.frame, drop_negative=drop_negative))

    def linked(self) -> LinkedPool:
        """The frame as a linked pool.

        Raises
        ------
        InputError
            It is no K frame, or holds what a pool cannot.
        """
        return self.once("links", self._linked)

    def _linked(self) -> LinkedPool:
        if not self.is_links:
            found = ", ".join(map(str, self.frame.columns))
            raise InputError(
                f"qrels: measures of entity runs want a pool's links there, a frame with {', '.join(COLUMNS)}; found "
                f"{found}; make it with vbterrier.link_pool(pool, tags, qrels).frame()"
            )
        return LinkedPool.from_frame(self.frame, name="qrels")

    def entity_table(self, rel: int) -> EntityTable:
        """The entities of the linked pool beside relevance."""
        return self.once(("entities", rel), lambda: EntityTable(self.linked(), rel))


class Scoring(Once):
    """A run against a slot.

    Parameters
    ----------
    slot
        What stands in the qrels slot.
    run
        The run.
    depth
        The largest cutoff of the measures to come, ``None`` if one has none.
    """

    def __init__(self, slot: Slot, run: Run, depth: int | None) -> None:
        super().__init__()
        self.slot, self.run, self.depth = slot, run, depth

    def judged(self, cutoff: int | None, *, drop_negative: bool = False) -> JudgedTop:
        """The first ``cutoff`` documents with their judgments."""
        judgments = self.slot.judgments(drop_negative=drop_negative)
        deepest = self.once(("judged", drop_negative), lambda: judgments.judge(self.run, self.depth))
        return self.once(("cut", drop_negative, cutoff), lambda: deepest.cut(cutoff))

    def selection(self) -> Selection:
        """The run as one of entities on the linked pool."""

        def make() -> Selection:
            pool = self.slot.linked()
            require_same_kind(self.slot.qid, self.run.topic_ids, "qrels column 'qid'", f"{self.run.name} column 'qid'")
            return Selection(pool, self.run, self.depth)

        return self.once("selection", make)

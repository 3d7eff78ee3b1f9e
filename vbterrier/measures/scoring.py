"""One evaluation: what stands in the qrels slot, a run, and all that several measures of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import InputError
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of
from vbterrier.judgments.pool import JudgedTop, Judgments

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import pandas as pd

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
    """The frame given as qrels: judgments, intents or diversity judgments, prepared once for many runs.

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
        self.topics, _ = ids_of(frame["qid"], "qrels column 'qid'").codes()

    @property
    def is_diversity(self) -> bool:
        """Whether intents would be read off the iterations of judgments."""
        return self.intents is None and {"iteration", "docno", "label"} <= set(self.frame.columns)

    def judgments(self, *, drop_negative: bool = False) -> Judgments:
        """The frame as judgments."""
        return self.once(("judgments", drop_negative), lambda: Judgments(self.frame, drop_negative=drop_negative))


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

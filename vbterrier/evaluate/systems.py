"""The scores of one system: its run read, and evaluated."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from vbterrier.evaluate.streamed import streamed_runs
from vbterrier.evaluate.topicwise import Work, planned
from vbterrier.frames.files.blocks import is_parts
from vbterrier.frames.runs import loaded_run
from vbterrier.linking.answers import answers
from vbterrier.log import timed
from vbterrier.measures import Measure
from vbterrier.measures.base import evaluate
from vbterrier.measures.foreign import foreign_values
from vbterrier.parallel import Workers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import ir_measures

    from vbterrier.evaluate.pieces import Streamed
    from vbterrier.frames.ranked import Run
    from vbterrier.measures.scoring import Slot

    Row = tuple[str, str, str, float]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Scorer:
    """What every run is evaluated against, and how it is read.

    Parameters
    ----------
    judged
        All judgments, with intents and tags.
    measures
        What is asked for.
    duplicates, memory, resume
        As in :func:`vbterrier.score`.
    is_linking
        Whether runs are answers of linkers.
    """

    judged: Slot
    measures: Sequence[ir_measures.Measure]
    duplicates: str = "error"
    is_linking: bool = field(default=False, kw_only=True)
    memory: int | str | None = field(default=None, kw_only=True)
    resume: str | os.PathLike[str] | None = field(default=None, kw_only=True)

    def is_shared_out(self, named: Sequence[tuple[str, Any]], n_workers: int) -> bool:
        """Whether the parts of each run are for all workers: there are fewer runs than workers, and some in parts."""
        return self.is_in_parts and len(named) < n_workers and any(is_parts(run) for _, run in named)

    @property
    def is_in_parts(self) -> bool:
        """Whether runs in files are read in chunks."""
        return self.memory is not None or self.resume is not None

    def loaded(
        self, named: Iterable[tuple[str, Any]], *, workers: Workers | None = None, progress: bool = False
    ) -> tuple[dict[str, Run], dict[str, Streamed]]:
        """Runs by name, and of those that are read in chunks what was evaluated meanwhile, by workers if there are."""
        if self.is_in_parts:
            work = Work("", planned(self.measures), self.judged, self.duplicates)
            return streamed_runs(named, work, self.memory, self.resume, workers or Workers(), progress=progress)
        if self.is_linking:
            read = {name: answers(run, name=f"run {name!r}", duplicates=self.duplicates) for name, run in named}
        else:
            read = {name: loaded_run(name, run, self.duplicates) for name, run in named}
        return read, {}

    def rows(self, name: str, run: Run, slot: Slot, parts: Streamed | None) -> list[Row]:
        """Rows of V: each measure's values of the topics of a slot."""
        with timed(_LOG, "scored run %s", name) as found:
            found.append(f"{len(slot.topics):,} topics, {', '.join(map(str, self.measures))}")
            if parts is None:
                return _rows(name, run, slot, self.measures)
            return [*_rows(name, run, slot, parts.work.plan.last), *parts.rows(name, slot)]


def _rows(name: str, run: Run, slot: Slot, measures: Sequence[ir_measures.Measure]) -> list[Row]:
    ours = [measure for measure in measures if isinstance(measure, Measure)]
    theirs = [measure for measure in measures if not isinstance(measure, Measure)]
    found = chain(evaluate(ours, slot, run) if ours else (), foreign_values(theirs, slot, run, warned=bool(ours)))
    texts = {id(measure): str(measure) for measure in measures}
    return [(name, qid, texts.get(id(measure)) or str(measure), value) for qid, measure, value in found]

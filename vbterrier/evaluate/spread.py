"""Many systems scored by several processes, or by the workers of a cluster: a run is the unit of work."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.elsewhere import register, registered_sets
from vbterrier.evaluate.inputs import aligned, require_one_tagger, restricted
from vbterrier.evaluate.topicwise import heard, planned
from vbterrier.frames.files.blocks import is_parts
from vbterrier.parallel import Shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from vbterrier.evaluate.systems import Row, Scorer
    from vbterrier.measures.scoring import Slot
    from vbterrier.parallel import Workers


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known here of a run that was read elsewhere.

    Parameters
    ----------
    name
        What messages call it.
    topics
        Its topics, in order of appearance.
    frame
        The distinct taggers of its documents.
    rows
        Rows of V.
    told
        What was warned of.
    """

    name: str
    topics: list[str]
    frame: pd.DataFrame
    rows: list[Row] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.topics)


def spread(
    scorer: Scorer,
    named: Sequence[tuple[str, Any]],
    topics: str,
    workers: Workers,
    *,
    progress: bool = False,
) -> tuple[Slot, dict[str, Seen], list[Row]]:
    """The slot with the topics to average over, what is known of the runs, and rows of V.

    Raises
    ------
    InputError
        As :func:`vbterrier.score`.
    """
    if scorer.is_in_parts:
        planned(scorer.measures)
    items = [(name, _absolute(run)) for name, run in named]
    sets = registered_sets(scorer.measures)
    work = partial(workers.mapped, progress=progress)
    slot = scorer.judged
    with Shared((scorer, sets)) as shared:
        if topics == "common":
            # Which topics are common is known when all runs are read.
            read = work(partial(_seen, shared, None), items, description="reading")
            slot = restricted(slot, _checked(read, items, slot, topics), topics)
        with Shared(slot) as common:
            scored = work(partial(_seen, shared, common), items, description="scoring")
            loaded = _checked(scored, items, slot, "same" if topics == "same" else "all")
    for run in loaded.values():
        for message in run.told:
            warnings.warn(message, DegenerateWarning, stacklevel=3)
    return slot, loaded, [row for run in loaded.values() for row in run.rows]


def _checked(results: Iterable[Seen], items: Sequence[tuple[str, Any]], slot: Slot, topics: str) -> dict[str, Any]:
    """Results by name, refused as soon as two do not go together."""
    loaded: dict[str, Any] = {}
    for (name, _), run in zip(items, results, strict=True):
        loaded[name] = run
        first = next(iter(loaded))
        require_one_tagger(loaded.values())
        if topics == "same":
            restricted(slot, {first: loaded[first], name: loaded[name]}, topics)
    return loaded


def _seen(shared: Shared, common: Shared | None, item: tuple[str, Any]) -> Seen:
    """By a worker: a run read, and evaluated on the topics of a slot, if there is one."""
    scorer, sets = shared.value
    register(sets)
    return _evaluated(scorer, None if common is None else common.value, *item)


def _evaluated(scorer: Scorer, slot: Slot | None, name: str, given: Any) -> Seen:
    def read_and_scored() -> tuple[Any, list[Row]]:
        loaded, in_parts = scorer.loaded([(name, given)])
        run = loaded[name]
        if slot is None:
            return run, []
        aligned(scorer.judged, loaded, "all")
        known = set(slot.topics)
        evaluated = run.only(known) if len(known) < len(scorer.judged.topics) else run
        return evaluated, scorer.rows(name, evaluated, slot, in_parts.get(name))

    (run, rows), told = heard(read_and_scored)
    columns = [column for column in ("tagger",) if column in run.frame.columns]
    return Seen(run.name, run.topics, run.frame[columns].drop_duplicates(), rows, told)


def _absolute(run: Any) -> Any:
    """Paths as they are known to other processes, which may work in other folders."""
    if not is_parts(run):
        return run
    return [Path(path).absolute() for path in run] if isinstance(run, (list, tuple)) else Path(run).absolute()

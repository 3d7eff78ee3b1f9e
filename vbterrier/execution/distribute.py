"""Distribution of runs over processes or the workers of a cluster."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import printable, warn
from vbterrier.execution.chunks import Work, heard, planned, register, registered_sets
from vbterrier.execution.parallel import Workers
from vbterrier.execution.pending import Shared
from vbterrier.execution.streaming import streamed_runs
from vbterrier.frames.files.blocks import blocks, is_parts, is_table, parts_of, qids
from vbterrier.frames.files.reading import read_run
from vbterrier.frames.ranking import loaded_run
from vbterrier.linking.quality import answers
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values, prepare
from vbterrier.measures.target import aligned, deepest, require_one_tagger, restricted
from vbterrier.measures.unjudged import uses_evidence

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import ir_measures

    from vbterrier.execution.checkpoint import Streamed
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget

    Row = tuple[str, str, str, float]


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Evaluation of runs against one target.

    ``judged``: all judgments, with intents and tags. ``measures``: the measures. ``duplicates, memory, resume``: see
    :func:`vbterrier.score`. ``is_linking``: runs are answers of linkers.
    """

    judged: EvaluationTarget
    measures: Sequence[ir_measures.Measure]
    duplicates: str = "error"
    is_linking: bool = field(default=False, kw_only=True)
    memory: int | str | None = field(default=None, kw_only=True)
    resume: str | os.PathLike[str] | None = field(default=None, kw_only=True)

    @property
    def is_in_parts(self) -> bool:
        """True if runs in files are read in chunks."""
        return self.memory is not None or self.resume is not None

    def is_shared_out(self, named: Sequence[tuple[str, Any]], n_workers: int) -> bool:
        """Return True if all workers work on the chunks of each run: there are fewer runs than workers."""
        return self.is_in_parts and len(named) < n_workers and any(is_parts(run) for _, run in named)

    def loaded(
        self, named: Iterable[tuple[str, Any]], *, workers: Workers | None = None, progress: bool = False
    ) -> tuple[dict[str, Run], dict[str, Streamed]]:
        """Return runs by name, and the results of those that are read in chunks, evaluated by workers if given."""
        if self.is_in_parts:
            work = Work("", planned(self.measures), self.judged, self.duplicates)
            return streamed_runs(named, work, self.memory, self.resume, workers or Workers(), progress=progress)
        if self.is_linking:
            read = {name: answers(run, name=f"run {name!r}", duplicates=self.duplicates) for name, run in named}
        else:
            read = {name: loaded_run(name, run, self.duplicates) for name, run in named}
            depth = deepest(self.measures)
            for run in read.values():
                # Before the first of them is evaluated.
                run.refuse_duplicates(depth)
        return read, {}

    def prepare(self, target: EvaluationTarget) -> None:
        """Compute what the measures need of a target, once for all runs."""
        for measure in self.measures:
            if isinstance(measure, Measure):
                measure.prepare(target)
            else:
                prepare(measure, target)

    def rows(self, name: str, run: Run, target: EvaluationTarget, parts: Streamed | None) -> list[Row]:
        """Rows of V: the value of each measure for each topic of a target."""
        started = time.perf_counter()
        measures = self.measures if parts is None else parts.work.plan.last
        internal = [measure for measure in measures if isinstance(measure, Measure)]
        external = [measure for measure in measures if not isinstance(measure, Measure)]
        # Values refer to the measures given here, whose text is computed once.
        texts = {id(measure): str(measure) for measure in measures}
        rows: list[Row] = []
        for qid, measure, value in evaluate(internal, target, run) if internal else ():
            rows.append((name, qid, texts.get(id(measure)) or str(measure), value))
        for qid, measure, value in external_values(external, target, run, warned=bool(internal)):
            rows.append((name, qid, texts.get(id(measure)) or str(measure), value))
        if parts is not None:
            rows += parts.rows(name, target)
        scope = f"{len(target.topics):,} topics, {', '.join(map(str, self.measures))}"
        _LOG.info("scored run %s, %s (%.2f s)", printable(name), scope, time.perf_counter() - started)
        return rows


_BLOCK = 1 << 24


@dataclass(frozen=True, eq=False)
class RunSummary:
    """Summary of a run that was read by a worker.

    ``name``: the name of the run in messages. ``topics``: its topics, in order of appearance. ``frame``: the distinct
    taggers of its documents. ``rows``: rows of V. ``messages``: warnings.
    """

    name: str
    topics: list[str]
    frame: pd.DataFrame
    rows: list[Row] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.topics)


def distribute(
    scorer: Scorer,
    named: Sequence[tuple[str, Any]],
    on_topics: str,
    workers: Workers,
    *,
    progress: bool = False,
) -> tuple[EvaluationTarget, dict[str, RunSummary], list[Row]]:
    """Return the target with the topics to average over, summaries of the runs, and rows of V.

    Raises InputError: see :func:`vbterrier.score`.
    """
    if scorer.is_in_parts:
        planned(scorer.measures)
    items = [(name, _absolute(run)) for name, run in named]
    sets = registered_sets(scorer.measures)
    work = partial(workers.mapped, progress=progress)
    target = scorer.judged
    if on_topics == "same" and not scorer.is_linking:
        _require_same(workers, items, target)
    with Shared((scorer, sets)) as shared:
        if on_topics == "common":
            # The common topics are known when all runs are read.
            read = work(partial(_summary, shared, None), items, description="reading")
            target = restricted(target, _checked(read, items, target, on_topics), on_topics)
        if uses_evidence(scorer.measures):
            # The model is fitted to all runs in this process; workers get the fitted model.
            target.evidence = aligned(target, scorer.loaded(named)[0], "all")[1]
            scorer.prepare(target)
        with Shared(target) as common:
            scored = work(partial(_summary, shared, common), items, description="scoring")
            loaded = _checked(scored, items, target, "same" if on_topics == "same" else "all")
    for run in loaded.values():
        for message in run.messages:
            warn(message)
    return target, loaded, [row for run in loaded.values() for row in run.rows]


@dataclass(frozen=True, eq=False)
class _Topics:
    topics: list[str]


def _require_same(workers: Workers, items: Sequence[tuple[str, Any]], target: EvaluationTarget) -> None:
    """Refuse runs of different topics before the evaluation, which takes much longer than reading topics."""
    frames = {name: run for name, run in items if isinstance(run, pd.DataFrame)}
    # Frames without the column qid are refused by the evaluation.
    known = {
        name: _Topics(list(map(str, frame["qid"].dropna().unique())) if "qid" in frame.columns else [])
        for name, frame in frames.items()
    }
    files = [(name, run) for name, run in items if name not in known]
    if len(items) < 2 or not all(_is_file(run) for _, run in files):  # noqa: PLR2004 - one agrees with itself
        return
    found = workers.mapped(_topics_of_files, [run for _, run in files])
    known |= {name: _Topics(topics) for (name, _), topics in zip(files, found, strict=True)}
    seen: dict[str, Any] = {name: known[name] for name, _ in items}
    restricted(target, seen, "same")


def _is_file(run: Any) -> bool:
    return is_parts(run) and all(Path(path).is_file() for path in (run if isinstance(run, list) else [run]))


def _topics_of_files(run: Any) -> list[str]:
    """The topics of a run in order of appearance, read by a worker."""
    if is_table(run):
        return list(dict.fromkeys(read_run(run)["qid"]))
    read = blocks(parts_of(run), _BLOCK)
    return list(dict.fromkeys(topic for block in read for topic in qids(block.table).codes()[0]))


def _checked(
    results: Iterable[RunSummary], items: Sequence[tuple[str, Any]], target: EvaluationTarget, on_topics: str
) -> dict[str, Any]:
    """Results by name; refuse incompatible runs as soon as both are known."""
    loaded: dict[str, Any] = {}
    for (name, _), run in zip(items, results, strict=True):
        loaded[name] = run
        first = next(iter(loaded))
        require_one_tagger(loaded.values())
        if on_topics == "same":
            restricted(target, {first: loaded[first], name: loaded[name]}, on_topics)
    return loaded


def _summary(shared: Shared, common: Shared | None, item: tuple[str, Any]) -> RunSummary:
    """Read a run, and evaluate it on the topics of a target if given, on a worker."""
    scorer, sets = shared.value
    register(sets)
    name, given = item
    target: EvaluationTarget | None = None if common is None else common.value

    def read_and_scored() -> tuple[Any, list[Row]]:
        loaded, in_parts = scorer.loaded([(name, given)])
        run = loaded[name]
        if target is None:
            return run, []
        aligned(scorer.judged, loaded, "all")
        known = set(target.topics)
        evaluated = run.only(known) if len(known) < len(scorer.judged.topics) else run
        return evaluated, scorer.rows(name, evaluated, target, in_parts.get(name))

    (run, rows), messages = heard(read_and_scored)
    columns = [column for column in ("tagger",) if column in run.frame.columns]
    return RunSummary(run.name, run.topics, run.frame[columns].drop_duplicates(), rows, messages)


def _absolute(run: Any) -> Any:
    """Absolute paths, because other processes may work in other folders."""
    if not is_parts(run):
        return run
    return [Path(path).absolute() for path in run] if isinstance(run, (list, tuple)) else Path(run).absolute()

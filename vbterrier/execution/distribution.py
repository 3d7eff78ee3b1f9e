"""Evaluation of many runs by threads, processes or the workers of a cluster."""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from vbterrier.errors import heard, printable, warn
from vbterrier.execution.chunks import Work, measure_plan, register, registered_sets
from vbterrier.execution.parallel import Workers
from vbterrier.execution.pending import Shared
from vbterrier.execution.streaming import streamed_runs
from vbterrier.frames.entity_answers import answers
from vbterrier.frames.files.blocks import blocks, qids
from vbterrier.frames.files.parts import is_in_files, is_parts, is_table, run_paths
from vbterrier.frames.files.reading import run_table
from vbterrier.frames.ranking import Run, checked_run, system_tables
from vbterrier.frames.systems import named_once
from vbterrier.measures.base import Measure, values_by_topic
from vbterrier.measures.external import external_values, prepare
from vbterrier.measures.target import Scoring, align_topics, deepest, require_one_tagger, restricted_target
from vbterrier.measures.unjudged import Estimated, draw_models, needs_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.execution.checkpoint import Streamed
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.fitted import EvidenceModel

    Row = tuple[str, str, str, float]
    T = TypeVar("T")
    R = TypeVar("R")


_LOG = logging.getLogger(__name__)
# More threads would wait for memory.
_MOST_THREADS = 4
# Bytes of run files that one process should not hold.
MAX_LOCAL_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Scorer:
    """Evaluation of runs against one target, with intents and tags; other options as in :func:`vbterrier.score`."""

    judged: EvaluationTarget
    measures: Sequence[ir_measures.Measure]
    duplicates: str = "error"
    system: str | None = field(default=None, kw_only=True)
    is_linking: bool = field(default=False, kw_only=True)
    memory: int | str | None = field(default=None, kw_only=True)
    resume: str | os.PathLike[str] | None = field(default=None, kw_only=True)

    @property
    def is_in_parts(self) -> bool:
        """True if runs in files are read in chunks."""
        return self.memory is not None or self.resume is not None

    def is_shared_out(self, named: Sequence[tuple[str, Any]], n_workers: int) -> bool:
        """Return True if all workers work on the chunks of each run: there are fewer runs than workers."""
        return self.is_in_parts and len(named) < n_workers and any(is_in_files(run) for _, run in named)

    def is_distributed(self, named: Sequence[tuple[str, Any]], workers: Workers) -> bool:
        """Return True if workers read and evaluate the runs, one each; otherwise this process holds all of them."""
        if not workers.are_processes:
            return False
        if self.is_in_parts:
            return not needs_model(self.measures) and not self.is_shared_out(named, workers.n)
        if not workers.is_here:
            return True
        files = [Path(path) for _, run in named if _is_file(run) for path in (run if isinstance(run, list) else [run])]
        return sum(path.stat().st_size for path in files) > MAX_LOCAL_BYTES

    def load_runs(
        self, named: Iterable[tuple[str, Any]], *, workers: Workers | None = None, progress: bool = False
    ) -> tuple[dict[str, Run], dict[str, Streamed]]:
        """Return runs by name, and the results of those that are read in chunks, evaluated by workers if given."""
        if self.is_in_parts:
            work = Work("", measure_plan(self.measures), self.judged, self.duplicates)
            how: dict[str, Any] = {"system": self.system, "progress": progress}
            return streamed_runs(named, work, self.memory, self.resume, workers or Workers(), **how)
        if self.is_linking:
            return {name: answers(run, name=f"run {name!r}", duplicates=self.duplicates) for name, run in named}, {}
        depth = deepest(self.measures)

        def system_runs(item: tuple[str, Any]) -> list[tuple[str, Run]]:
            # Frames are runs of one system each, see named_runs.
            tables = system_tables(*item, self.system, extra=False) if is_in_files(item[1]) else dict([item])
            runs = [(name, checked_run(name, table, self.duplicates)) for name, table in tables.items()]
            for _, run in runs:
                run.refuse_duplicates(depth)
            return runs

        return named_once(chain.from_iterable(in_threads(system_runs, list(named)))), {}

    def prepare(self, target: EvaluationTarget) -> None:
        """Compute what the measures need of a target, once for all runs."""
        for measure in self.measures:
            if isinstance(measure, Measure):
                measure.prepare(target)
            else:
                prepare(measure, target)

    def rows(
        self,
        name: str,
        run: Run,
        target: EvaluationTarget,
        parts: Streamed | None,
        models: Mapping[str, EvidenceModel] | None = None,
    ) -> list[Row]:
        """Rows of V: the value of each measure for each topic of a target."""
        started = time.perf_counter()
        measures = self.measures if parts is None else parts.work.plan.last
        internal = [measure for measure in measures if isinstance(measure, Measure)]
        external = [measure for measure in measures if not isinstance(measure, Measure)]
        # Values refer to the measures given here, whose text is computed once.
        texts = {id(measure): str(measure) for measure in measures}
        rows: list[Row] = []
        for measure, by_topic in values_by_topic(internal, Scoring(target, run, deepest(internal), models)):
            rows += zip(repeat(name), by_topic, repeat(texts[id(measure)]), by_topic.values(), strict=False)
        for qid, measure, value in external_values(external, target, run, warned=bool(internal)):
            rows.append((name, qid, texts.get(id(measure)) or str(measure), value))
        if parts is not None:
            rows += parts.rows(name, target)
        scope = f"{len(target.topics):,} topics, {', '.join(map(str, self.measures))}"
        _LOG.info("scored run %s, %s (%.2f s)", printable(name), scope, time.perf_counter() - started)
        return rows


def in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the results of a function that mostly computes outside of Python's lock, as NumPy and Arrow do.

    Warnings are issued, and the first exception is raised, in the order of the items.
    """
    n_threads = min(_MOST_THREADS, os.cpu_count() or 1, len(items))
    if n_threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:
        # Limits of files are context variables.
        calls = [pool.submit(copy_context().run, heard, partial(function, item)) for item in items]
        try:
            results = [call.result() for call in calls]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for _, messages in results:
        for message in messages:
            warn(message)
    return [result for result, _ in results]


def score_rows(
    scorer: Scorer,
    named: Sequence[tuple[str, Any]],
    loaded: Mapping[str, Run],
    in_parts: Mapping[str, Streamed],
    target: EvaluationTarget,
    models: Mapping[str, EvidenceModel],
    workers: Workers | None,
) -> Iterator[list[Row]]:
    """Yield the rows of V of each run: of the first runs by this process, of all others by workers if that pays."""
    if workers is None or scorer.is_in_parts or not workers.are_processes:
        for name, run in loaded.items():
            yield scorer.rows(name, run, target, in_parts.get(name), models)
        return
    # Workers get models without their runs.
    draw_models((measure for measure in scorer.measures if isinstance(measure, Estimated)), models)
    # The systems of a table in a file are sent, and files of one run are read again.
    sources = dict(named)
    items = [(name, _absolute(sources[name]) if name in sources else run.frame) for name, run in loaded.items()]

    def here(item: tuple[str, Any]) -> tuple[list[Row], list[str]]:
        return scorer.rows(item[0], loaded[item[0]], target, None, models), []

    topics = None if target is scorer.judged else target.topics
    with Shared((scorer, registered_sets(scorer.measures), target, topics, models)) as shared:
        for rows, messages in workers.shared_out(partial(_worker_rows, shared), items, here):
            for message in messages:
                warn(message)
            yield rows


def _worker_rows(shared: Shared, item: tuple[str, Any]) -> tuple[list[Row], list[str]]:
    """Read a run and evaluate it, on a worker; the caller has checked the run."""
    scorer, sets, target, topics, models = shared.value
    register(sets)
    name, source = item
    loaded, _ = heard(lambda: scorer.load_runs([(name, source)])[0])
    run = loaded[name] if topics is None else loaded[name].only(topics)
    return heard(lambda: scorer.rows(name, run, target, None, models))


@dataclass(frozen=True, eq=False)
class RunSummary:
    """Summary of a run that was read by a worker: its name in messages, topics, rows of V and warnings.

    ``frame``: the distinct taggers of its documents.
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
    fit: Callable[[Mapping[str, Run], EvaluationTarget], Mapping[str, EvidenceModel]],
    *,
    progress: bool = False,
) -> tuple[EvaluationTarget, dict[str, RunSummary], list[Row], Mapping[str, EvidenceModel]]:
    """Return the target with the topics to average over, summaries of the runs, rows of V, and models.

    ``fit`` returns the models of the measures of the E family, fitted to all runs.
    """
    if scorer.is_in_parts:
        measure_plan(scorer.measures)
    items = [(name, _absolute(run)) for name, run in named]
    sets = registered_sets(scorer.measures)
    work = partial(workers.map_items, progress=progress)
    target = scorer.judged
    if on_topics == "same" and not scorer.is_linking:
        _require_same(workers, items, target)
    with Shared((scorer, sets)) as shared:
        if on_topics == "common":
            # The common topics are known when all runs are read.
            read = work(partial(_summary, shared, None), items, description="reading")
            target = restricted_target(target, _compatible_results(read, target, on_topics), on_topics)
        models: Mapping[str, EvidenceModel] = {}
        estimated = [measure for measure in scorer.measures if isinstance(measure, Estimated)]
        if estimated:
            # Models are fitted to all runs in this process; workers get their draws.
            models = fit(scorer.load_runs(named)[0] if needs_model(estimated) else {}, scorer.judged)
            draw_models(estimated, models)
            scorer.prepare(target)
        with Shared((target, models)) as common:
            scored = work(partial(_summary, shared, common), items, description="scoring")
            loaded = _compatible_results(scored, target, "same" if on_topics == "same" else "all")
    for run in loaded.values():
        for message in run.messages:
            warn(message)
    return target, loaded, [row for run in loaded.values() for row in run.rows], models


def _require_same(workers: Workers, items: Sequence[tuple[str, Any]], target: EvaluationTarget) -> None:
    """Refuse runs of different topics before the evaluation, which takes much longer than reading topics."""
    frames = {name: run for name, run in items if isinstance(run, pd.DataFrame)}
    # Frames without the column qid are refused by the evaluation.
    summaries = {
        name: SimpleNamespace(topics=list(map(str, frame["qid"].dropna().unique())) if "qid" in frame.columns else [])
        for name, frame in frames.items()
    }
    files = [(name, run) for name, run in items if name not in summaries]
    if len(items) < 2 or not all(_is_file(run) for _, run in files):  # noqa: PLR2004 - one agrees with itself
        return
    topics_of_files = workers.map_items(_topics_of_files, [run for _, run in files])
    summaries |= {
        name: SimpleNamespace(topics=topics) for (name, _), topics in zip(files, topics_of_files, strict=True)
    }
    seen: dict[str, Any] = {name: summaries[name] for name, _ in items}
    restricted_target(target, seen, "same")


def _is_file(run: Any) -> bool:
    return is_parts(run) and all(Path(path).is_file() for path in (run if isinstance(run, list) else [run]))


def _topics_of_files(run: Any) -> list[str]:
    """The topics of a run in order of appearance, read by a worker."""
    if is_table(run):
        return list(dict.fromkeys(run_table(run)["qid"]))
    read = blocks(run_paths(run), 1 << 24)
    return list(dict.fromkeys(topic for block in read for topic in qids(block.table).codes()[0]))


def _compatible_results(
    results: Iterable[dict[str, RunSummary]], target: EvaluationTarget, on_topics: str
) -> dict[str, Any]:
    """Results by name; refuse incompatible runs as soon as both are known."""
    loaded: dict[str, Any] = {}
    for runs in results:
        for name, run in runs.items():
            loaded = named_once([*loaded.items(), (name, run)])
            first = next(iter(loaded))
            require_one_tagger(loaded.values())
            if on_topics == "same":
                pair: dict[str, Any] = {first: loaded[first], name: run}
                restricted_target(target, pair, on_topics)
    return loaded


def _summary(shared: Shared, common: Shared | None, item: tuple[str, Any]) -> dict[str, RunSummary]:
    """Read a run, or those of several systems, and evaluate them on the topics of a target if given, on a worker."""
    scorer, sets = shared.value
    register(sets)
    target, models = (None, None) if common is None else common.value
    (loaded, in_parts), of_reading = heard(lambda: scorer.load_runs([item]))

    def evaluate_run(name: str) -> tuple[Any, list[Row]]:
        run = loaded[name]
        if target is None:
            return run, []
        align_topics(scorer.judged, {name: run}, "all")
        topics = set(target.topics)
        run = run.only(topics) if len(topics) < len(scorer.judged.topics) else run
        return run, scorer.rows(name, run, target, in_parts.get(name), models)

    summaries = {}
    for name in loaded:
        (run, rows), messages = heard(partial(evaluate_run, name))
        columns = [column for column in ("tagger",) if column in run.frame.columns]
        messages_of_run = of_reading + messages
        summaries[name] = RunSummary(run.name, run.topics, run.frame[columns].drop_duplicates(), rows, messages_of_run)
        of_reading = []
    return summaries


def _absolute(run: Any) -> Any:
    """Absolute paths, because other processes may work in other folders."""
    if not is_parts(run):
        return run
    return [Path(path).absolute() for path in run] if isinstance(run, (list, tuple)) else Path(run).absolute()

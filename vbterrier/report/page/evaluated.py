"""Inputs, options and numbers of a report."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    examples,
    heard,
    nearest,
    require_system,
    warn,
)
from vbterrier.evaluate.comparison import Comparison, compare
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.default_measures import DIAGNOSTIC, default_measures, is_diversity, is_named
from vbterrier.evaluate.doctor import JudgmentNote, judgment_notes
from vbterrier.evaluate.inputs import evaluation_target, intents_and_tags, named_systems, split_runs, subtopic_frame
from vbterrier.evaluate.scores import Scores, score
from vbterrier.evaluate.unjudged_shares import DEFAULT_CUTOFF
from vbterrier.execution.chunks import Work, measure_plan
from vbterrier.execution.parallel import Workers
from vbterrier.execution.streaming import read_first_ranks
from vbterrier.frames.columns import DOCUMENTS, QRELS
from vbterrier.frames.contracts import flatten_qrels, pandas_frame, require, system_items
from vbterrier.frames.files.reading import evaluated_qrels, read_documents
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.named import named_frame
from vbterrier.frames.pipelines import retrieved_runs, topics_frame
from vbterrier.frames.ranking import Run, system_tables
from vbterrier.frames.systems import ONE, named_once
from vbterrier.measures.external import is_mean
from vbterrier.measures.target import EvaluationTarget, Scoring, align_topics, deepest
from vbterrier.measures.text import distinct_measures, measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, needs_model
from vbterrier.settings import Data, Execution, Inference, Options
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.pool import Judgments, machine_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures

    from vbterrier.evaluate.coverage import CoverageReport
    from vbterrier.intents.coverage import Coverage, Ties
    from vbterrier.unjudged.distribution import ScoreDistributions
    from vbterrier.unjudged.pool import JudgedTop, MachineLabels


LINK_MEASURES = ("RelCov@20", "NonRelCov@20", "DiscRatio@20")
_TOO_FEW_TOPICS_TEXT = "fewer than two topics have a value, so there is no interval"
_WITHHELD = "intervals are withheld"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReportContent(Options):
    """Content of a page besides runs and judgments: the argument ``content=`` of :func:`vbterrier.write_report`.

    Parameters
    ----------
    intents, tags
        Candidate intents (qid, entity_id, prob) and tags of documents (docno, entity_id[, weight, qid]): frames,
        registered names or paths.
    links
        The linked pool of entity runs: a :class:`~vbterrier.entities.LinkedPool`, its K frame, or the path of one. With
        ``qrels``, its documents get the labels of these.
    names
        Names of systems on the page, by the name of their run.
    title, command
        Title of the page, by default the names of the systems; the command line to show on it.
    """

    intents: Any = None
    tags: Any = None
    links: Any = None
    names: Mapping[str, str] | None = None
    title: str = ""
    command: Sequence[str] | None = None


@dataclass(frozen=True)
class ComparisonOptions:
    """Settings of the tests and intervals of a page, without missing values.

    ``tests`` are those of :func:`vbterrier.compare`; means have ``intervals`` of the same kind.
    """

    baseline: str | None
    on_topics: str
    tests: Inference

    @property
    def intervals(self) -> Inference:
        """The settings of intervals alone."""
        how = self.tests
        return Inference(interval=how.interval, level=how.level, n_resamples=how.n_resamples, seed=how.seed)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Runs and the data that they are evaluated with: qrels, intents and tags, or the links of entity runs."""

    # The first ranks alone if no measure reads more.
    runs: dict[str, Run]
    qrels: pd.DataFrame | None
    intents: pd.DataFrame | None
    tags: pd.DataFrame | None
    links: LinkedPool | None
    # What runs are evaluated against: judgments with intents, tags and subtopics, intents alone, or links.
    target: EvaluationTarget
    # Texts by qid.
    queries: dict[str, str]
    labels: Any = None
    subtopics: pd.DataFrame | None = None
    # Texts by docno.
    documents: dict[str, str] = field(default_factory=dict)
    # Of runs that were read whole.
    n_rows: Mapping[str, int] = field(default_factory=dict)
    pool_cutoff: int | None = None

    @property
    def is_diversity(self) -> bool:
        """True if documents are judged for several subtopics."""
        return self.qrels is not None and is_diversity(self.target)

    def measures(self, measures: Any, n_systems: int) -> list[ir_measures.Measure]:
        """Requested measures, or those that the inputs and the number of systems support."""
        if is_named(measures):
            return distinct_measures(measures)
        if self.links is not None:
            return measures_from(*LINK_MEASURES)
        has_intents = self.intents is not None
        target = None if self.qrels is None else self.target
        return measures_from(*default_measures(target, n_systems, has_intents=has_intents, subtopics=self.subtopics))


@dataclass(frozen=True, eq=False)
class CoveredIntents:
    """Intents of all topics, and the ranks at which one run covers them."""

    # qid, entity_id, prob; the same for all runs of a page.
    intents: pd.DataFrame
    # Ranks, from 1, of the documents about each intent.
    ranks: list[list[int]]
    # Mean share of documents up to the cutoff that have a tag; NaN if intents are those of judgments, without tags.
    tagged: float
    # Shares of tags by tie.
    ties: Ties
    # Mean expected success of the best ranking under the same tags; NaN if not all tags are known.
    oracle: float

    @classmethod
    def of_runs(
        cls, measure: Any, scorings: Mapping[str, Scoring], cutoff: int, inputs: Inputs
    ) -> dict[str, CoveredIntents]:
        """The intents of a measure, covered by each run."""
        coverages: dict[str, Coverage] = {name: measure.coverage(scoring) for name, scoring in scorings.items()}
        intents = next(iter(coverages.values())).intents
        qids = [intents.topics[place] for place in intents.topic]
        frame = pd.DataFrame({"qid": qids, "entity_id": intents.entity.text.to_pylist(), "prob": intents.prob})
        oracle, covered = next(iter(coverages.values())).oracle(cutoff), {}
        for name, coverage in coverages.items():
            has_tags = inputs.tags is not None or "entity_id" in scorings[name].run.frame.columns
            tagged = float(coverage.tagged.mean()) if has_tags else float("nan")
            seen = coverage.rank < cutoff
            intent, rank = coverage.intent[seen], coverage.rank[seen]
            ends = np.cumsum(np.bincount(intent, minlength=len(frame)))[:-1]
            ranks = np.split(1 + rank[np.lexsort((rank, intent))], ends)
            covered[name] = cls(frame, [part.tolist() for part in ranks], tagged, coverage.ties, oracle)
        return covered


@dataclass(frozen=True, eq=False)
class ReportNumbers:
    """All results that a page shows."""

    scores: Scores
    # All measures, and those by which systems are compared.
    measures: tuple[str, ...]
    compared: tuple[str, ...]
    # None for a single system.
    comparison: Comparison | None
    # Number of documents that are examined for judgments, tags and ties.
    cutoff: int
    # Documents up to the cutoff with their judgments, by system; empty without judgments.
    tops: dict[str, JudgedTop] = field(default_factory=dict)
    # Distributions of the first bootstrapped measure by system, and its name.
    distributions: dict[str, ScoreDistributions] = field(default_factory=dict)
    bootstrapped: str = ""
    # Intents that the documents up to the cutoff cover, by system; empty without intents.
    covered: dict[str, CoveredIntents] = field(default_factory=dict)
    # Share of documents up to the cutoff with tied scores, by system.
    ties: dict[str, float] = field(default_factory=dict)
    # Coverage of the linked pool, for entity runs.
    reach: CoverageReport | None = None
    # Warnings of the evaluation, and signs of why documents are unjudged.
    messages: tuple[str, ...] = ()
    notes: tuple[JudgmentNote, ...] = ()
    runs: dict[str, Run] = field(default_factory=dict)
    labels: MachineLabels | None = None
    # By topic and id, if known.
    intent_names: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Systems in the given order."""
        return [str(name) for name in self.scores.missing["name"]]

    @property
    def topics(self) -> list[str]:
        """Topics in the order of the judgments."""
        return [str(qid) for qid in self.scores.values["qid"].unique()]


def row_tuples(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of all rows, as Python numbers and strings."""
    return list(zip(*(frame[column].tolist() for column in columns), strict=True))


def wide_values(numbers: ReportNumbers, measure: str) -> pd.DataFrame:
    """Values of one measure: one row for each topic, one column for each system, NaN if undefined."""
    values = numbers.scores.values
    of_measure = values[values["measure"] == measure].astype({"qid": str, "name": str})
    wide = of_measure.pivot(index="qid", columns="name", values="value")
    return wide.reindex(index=numbers.topics, columns=numbers.names)


def read_inputs(
    runs: Any, qrels: Any, measures: Any, *, content: ReportContent, data: Data, execution: Execution
) -> tuple[Inputs, list[ir_measures.Measure]]:
    """Read data given as paths, and return the requested measures, or those that the inputs support.

    Of each run, one after the other, the ranks that measures with a cutoff depend on are kept.
    """
    labels, subtopics, topics, documents = data.labels, data.subtopics, data.topics, data.documents
    duplicates, memory, progress = data.duplicates, execution.memory, execution.progress
    if content.links is not None and (content.intents is not None or content.tags is not None):
        raise ParameterError("links exclude intents and tags: entity runs are evaluated on the linked pool alone")
    if qrels is None and content.intents is None and content.links is None:
        raise ParameterError("nothing to evaluate against: wanted qrels, intents (with tags), or links")
    systems = dict(system_items(named_systems(runs)))
    if not systems:
        raise InputError("no runs; name at least one")
    intents, tags = intents_and_tags(content.intents, content.tags)
    if documents is not None:
        is_path = isinstance(documents, (str, os.PathLike))
        documents = read_documents(documents) if is_path else pandas_frame(documents, "documents", DOCUMENTS)
        require(documents, ("docno", "text"), "documents")
    judged = None if qrels is None else _judgments(qrels)
    intents = None if intents is None else named_frame("intents", intents)
    tags = None if tags is None else named_frame("tags", tags)
    subtopics = None if subtopics is None else subtopic_frame(subtopics)
    pool = None if content.links is None else _linked_pool(content.links, judged)
    every = (
        EvaluationTarget.of_links(pool)
        if pool is not None
        else evaluation_target(judged, intents, tags, subtopics=subtopics)
    )
    inputs = Inputs(
        {},
        judged,
        intents,
        tags,
        pool,
        every,
        {} if topics is None else _texts(topics_frame(topics), "qid", "query"),
        labels,
        subtopics,
        {} if documents is None else _texts(documents, "docno", "text"),
        pool_cutoff=data.pool_cutoff,
    )
    # The number of systems in a single file decides the measures; several files are read one by one.
    systems = split_runs(systems, data.system, reads=memory is None and len(systems) == 1)
    reported = inputs.measures(measures, len(systems))
    systems = retrieved_runs(systems, topics)
    in_chunks: dict[str, dict[str, pd.DataFrame]] = {}
    if memory is not None:
        if inputs.links is not None:
            raise ParameterError("memory=: entity runs of a linked pool are read whole; leave it out")
        work = Work(
            "", measure_plan([*reported, *measures_from(f"Unjudged@{DEFAULT_POOL_CUTOFF}")]), inputs.target, duplicates
        )
        in_chunks = read_first_ranks(systems, work, memory, Workers(), system=data.system, progress=progress)
    # The number of ranks that measures and notes read; none if they read whole rankings.
    depth = None
    with suppress(ParameterError):
        depth = None if (plan := measure_plan(reported)).at_once else max(plan.depth, DEFAULT_POOL_CUTOFF)
    if inputs.links is not None:
        depth = None
    kept, n_rows = _cut_runs(systems, in_chunks, duplicates, depth, data.system)
    names = content.names or {}
    return replace(inputs, runs=_shown_names(kept, names), n_rows=_shown_names(n_rows, names, kept)), reported


def _cut_runs(
    systems: Mapping[str, Any],
    in_chunks: Mapping[str, Mapping[str, pd.DataFrame]],
    duplicates: str,
    depth: int | None,
    system: str | None,
) -> tuple[dict[str, Run], dict[str, int]]:
    """The first ranks of each system, and the numbers of rows of runs that are read whole, one after the other."""
    kept, n_rows = dict[str, Run](), dict[str, int]()
    for source_name, source in systems.items():
        tables = in_chunks.get(source_name, {source_name: source})
        if source_name not in in_chunks and isinstance(source, (str, os.PathLike)):
            tables = system_tables(source_name, source, system, extra=False)
        for name, table in tables.items():
            run = Run(table, name=f"run {name!r}", duplicates=duplicates)
            if source_name not in in_chunks:
                n_rows[name] = len(run)
            if depth is not None:
                rows, starts, sizes = run.ordered_rows(depth + 1)
                # One row more, to detect a tie with the last one.
                first = np.sort(rows[np.arange(len(rows)) - np.repeat(starts, sizes) <= depth])
                if len(first) < len(run):
                    run = Run(run.frame.iloc[first].reset_index(drop=True), name=run.name)
            kept = named_once([*kept.items(), (name, run)])
    return kept, n_rows


def _shown_names(by_run: dict[str, Any], names: Mapping[str, str], runs: Iterable[str] = ()) -> dict[str, Any]:
    """Values of runs by the names that the page shows; ``runs`` are the names of all runs."""
    shown: dict[str, Any] = {}
    new_names, run_names = {str(name): str(called) for name, called in names.items()}, {*by_run, *runs}
    for name in new_names:
        if name not in run_names:
            near = nearest(name, run_names)
            raise ParameterError(f"names: {name!r} is no run; found {examples(sorted(run_names))}.{near}")
    for name, value in by_run.items():
        called = new_names.get(name, name)
        if called in shown:
            raise ParameterError(f"names: two systems would be called {called!r}; give each its own name")
        shown[called] = value
    return shown


def _texts(frame: pd.DataFrame, key: str, column: str) -> dict[str, str]:
    return dict(zip(frame[key].astype(str), frame[column].astype(str), strict=True))


def _judgments(qrels: Any) -> pd.DataFrame:
    return evaluated_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else pandas_frame(qrels, "qrels", QRELS)


def _linked_pool(links: Any, qrels: Any) -> LinkedPool:
    """The linked pool, with the labels of the judgments if there are any."""
    from vbterrier.entities.pool import link_pool, read_links

    if isinstance(links, (str, os.PathLike)):
        pool = read_links(links)
    else:
        pool = links if isinstance(links, LinkedPool) else LinkedPool.from_frame(links)
    if qrels is None:
        return pool
    frame = pool.to_frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    tags = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return link_pool(documents.assign(score=-documents["rank"]), tags, _judgments(qrels))


def evaluate_inputs(
    inputs: Inputs, measures: Sequence[ir_measures.Measure], options: ComparisonOptions, *, progress: bool = False
) -> ReportNumbers:
    """Evaluate and compare the runs; each warning is kept for the page and issued once."""
    baseline = options.baseline
    if baseline is not None:
        require_system("baseline", baseline, inputs.runs)
    evaluate = _of_links if inputs.links is not None else partial(_of_runs, progress=progress)
    parts, caught = heard(lambda: evaluate(inputs, measures, options))
    texts = dict.fromkeys(" ".join(text.split()) for text in caught)
    # Entity runs are evaluated by all measures: warnings about measures that the page does not show are dropped.
    messages = [
        text
        for text in texts
        if not text.endswith(_TOO_FEW_TOPICS_TEXT) or any(f"'{measure}'" in text for measure in measures)
    ]
    if parts["scores"].intervals["low"].notna().all():
        messages = [text for text in messages if _WITHHELD not in text]
    for text in messages:
        warn(text)
    return ReportNumbers(**parts, measures=tuple(map(str, measures)), messages=tuple(messages))


def _of_links(inputs: Inputs, measures: Sequence[ir_measures.Measure], options: ComparisonOptions) -> dict[str, Any]:
    """Evaluate entity runs: DiscRatio is a ratio of means, and topics with an undefined measure are left out."""
    frames = {name: run.frame for name, run in inputs.runs.items()}
    reports = [
        coverage_report(
            frames, inputs.links, cutoff=cutoff, data=Data(on_topics=options.on_topics), inference=options.intervals
        )
        for cutoff in sorted({measure.params.get("cutoff", 0) for measure in measures} - {0}) or [20]
    ]
    names = list(map(str, measures))
    tables = (pd.concat([getattr(one, part) for one in reports]) for part in ("entities", "values"))
    means, values = (table.drop_duplicates(ignore_index=True) for table in tables)
    coverage_measures = list(means["measure"].unique())
    for name in names:
        if name not in coverage_measures:
            raise ParameterError(
                f"{name}: entity runs are measured by {', '.join(coverage_measures)}.{nearest(name, coverage_measures)}"
            )
    # DiscRatio, a ratio of means, has no values by topic, so systems cannot be compared by it.
    means, values = (table[table["measure"].isin(names)].reset_index(drop=True) for table in (means, values))
    scores = Scores(values, means, reports[0].missing)
    counts = values.groupby("measure")["name"].nunique()
    compared = [name for name in names if counts.get(name, 0) == len(inputs.runs)]
    comparison = None
    if len(inputs.runs) > 1 and compared:
        comparison = compare(
            scores,
            measures=compared,
            baseline=options.baseline,
            data=Data(on_topics="common"),
            inference=options.tests,
        )
    # Reports are in order of their cutoffs.
    cutoff = int(reports[-1].settings["cutoff"])
    ties = {name: run.top(cutoff).tied_share for name, run in inputs.runs.items()}
    evaluated_parts = {
        "scores": scores,
        "compared": tuple(compared),
        "comparison": comparison,
        "cutoff": cutoff,
        "ties": ties,
    }
    return {**evaluated_parts, "reach": reports[-1], "runs": inputs.runs}


def _of_runs(
    inputs: Inputs, measures: Sequence[ir_measures.Measure], options: ComparisonOptions, *, progress: bool
) -> dict[str, Any]:
    cutoff = deepest(measures) or DEFAULT_CUTOFF
    machine = inputs.labels
    scores = score(
        inputs.runs,
        inputs.target,
        measures,
        data=Data(
            labels=machine if needs_model(measures) else None,
            pool_cutoff=inputs.pool_cutoff,
            on_topics=options.on_topics,
            system=ONE,
        ),
        inference=options.intervals,
        execution=Execution(progress=progress),
    )
    compared = [str(measure) for measure in measures if is_mean(measure) and measure.NAME not in DIAGNOSTIC]
    # compare warns of measures that are undefined for all topics.
    scored_measures = set(scores.values["measure"])
    defined = tuple(name for name in compared if name in scored_measures)
    evaluated_parts: dict[str, Any] = {"scores": scores, "compared": defined, "cutoff": cutoff, "comparison": None}
    if len(inputs.runs) > 1 and defined:
        evaluated_parts["comparison"] = compare(
            scores, measures=compared, baseline=options.baseline, inference=options.tests
        )
    target, runs = align_topics(inputs.target, inputs.runs, options.on_topics)
    models = {} if scores.model is None else {"": scores.model}
    evaluated_parts |= {"runs": runs, "labels": machine_labels(machine)}
    evaluated_parts["ties"] = {name: run.top(cutoff).tied_share for name, run in runs.items()}
    scorings = {name: Scoring(target, run, deepest(measures), models) for name, run in runs.items()}
    if inputs.qrels is not None:
        judged = Judgments(flatten_qrels(target.frame)) if inputs.is_diversity else target.judgments()
        evaluated_parts["tops"] = {name: judged.judge(run, cutoff) for name, run in runs.items()}
        if any(top.n_unjudged.any() for top in evaluated_parts["tops"].values()):
            evaluated_parts["notes"] = tuple(judgment_notes(runs, judged))
    uncertain = next((one for one in measures if isinstance(one, UnjudgedMeasure)), None)
    if uncertain is not None:
        evaluated_parts["distributions"] = {name: uncertain.distribution(scoring) for name, scoring in scorings.items()}
        evaluated_parts["bootstrapped"] = str(uncertain)
    intents = next((one for one in measures if hasattr(one, "coverage")), None)
    if intents is not None:
        evaluated_parts["covered"] = CoveredIntents.of_runs(intents, scorings, cutoff, inputs)
        described = inputs.subtopics if inputs.intents is None else inputs.intents
        if described is not None and "name" in described.columns:
            kept = described.astype({"qid": str, "entity_id": str}).dropna(subset="name")
            rows = row_tuples(kept, "qid", "entity_id", "name")
            evaluated_parts["intent_names"] = {(qid, entity): str(name) for qid, entity, name in rows}
    return evaluated_parts

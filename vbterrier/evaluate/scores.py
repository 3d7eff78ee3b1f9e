"""Scores of many systems on the same topics, with intervals."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, product
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, choice, number, whole
from vbterrier.evaluate.default_measures import judgments_and_measures
from vbterrier.evaluate.inputs import evaluation_target, named_runs, named_systems
from vbterrier.evaluate.intent_notes import GUESSES, guessed_measures, notes_on_intents
from vbterrier.evaluate.pooling import pooled_moments, pooled_of_values
from vbterrier.evaluate.score_notes import (
    differences_of_judged_runs,
    missing_notes,
    negative_labels,
    notes_on_condensed,
    notes_on_models,
    notes_on_ratios,
    warning_notes,
    with_plain,
)
from vbterrier.evaluate.unjudged_shares import unjudged_caveats
from vbterrier.evaluate.verdicts import better, means_sentence
from vbterrier.execution.distribution import Scorer, distribute, score_rows
from vbterrier.execution.parallel import workers
from vbterrier.frames.answer import EMPTY_TOPICS_NOTE, MODEL_NOTE, NOTE, Caveat, Note, sentence
from vbterrier.frames.contracts import system_items
from vbterrier.frames.files.reading import evaluated_qrels, read_answers
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import MAX_BARS, Bar, IntervalPicture
from vbterrier.frames.queries import queries_of_topics, sample_by, selected_queries, warn_of_weights
from vbterrier.frames.results import Shown, of_means, systems_line
from vbterrier.frames.score_table import ScoreTable, linearised_on
from vbterrier.frames.values import KEY
from vbterrier.kernels import linking
from vbterrier.kernels.tolerances import WHOLE_ROUNDING
from vbterrier.log import tracked_items
from vbterrier.measures.bounds import Unjudged
from vbterrier.measures.external import aggregate_values, is_mean
from vbterrier.measures.intents import CandidateMeasure
from vbterrier.measures.linking import LinkingMeasure
from vbterrier.measures.target import (
    MAX_MISSING_SHARE,
    EvaluationTarget,
    align_topics,
    check_subtopics,
    require_one_tagger,
    warn_of_few_non_relevant,
)
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import (
    VARIANCE_PART,
    Estimated,
    evidence_models,
    require_use,
    variance_measure,
)
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    N_RESAMPLES,
    TOPIC_METHODS,
    UNSEEN,
    interval_rows,
    unjudged_interval,
)
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.kernels.mean_limits import SampledQueries
    from vbterrier.remedies import Call
    from vbterrier.stats.topic_statistics import PooledScores
    from vbterrier.unjudged.fitted import EvidenceModel


# Arguments that a comparison of the same runs has, too.
_NEXT_STEP_ARGUMENTS = (
    *("runs", "qrels", "measures", "intents", "tags", "labels", "pool_cutoff", "subtopics", "on_topics", "duplicates"),
    "system",
)


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Shown):
    """Result of :func:`score`.

    - ``values``: the V frame: name, qid, measure, value; a row for each system, topic and measure; of linking measures
      also ``gold`` (link, nil) and ``answer`` (right_link, wrong_link, nil, unanswered), from which
      :func:`vbterrier.design.score_by_size` computes ratios of sums over other queries; with measures of the E family
      also ``model``, the digest of the model of the measure, empty for other measures
    - ``intervals``: the C frame: name, measure, value (the mean), low, high, level, method, n_qids, n_resamples, seed;
      one row for each system, measure and method. ``method`` names the source of uncertainty: ``topics (...)`` for
      topics drawn from the same population, ``unjudged (normal)`` for the unjudged documents of these topics
    - ``missing``: name, n_qids, n_missing: the number of topics without any retrieved document; they score as an empty
      ranking
    - ``segments``: with segments of queries, ``intervals`` over the queries of each, with the columns segment and
      weight (its share); else empty
    - ``model``: the :class:`~vbterrier.unjudged.EvidenceModel` that was fitted to the runs of the call, or ``None``
    - ``notes``: sentences about models of unjudged documents, and about fully judged runs whose estimate differs from
      the measure of the judgments
    - ``guessed``: measures by which systems are not ordered, because the tags are mostly guesses; ``notes`` says so
    - ``joint``: with ``pool="collection"``, the :class:`~vbterrier.stats.topic_statistics.PooledScores` of which
      ``intervals`` has the scores; else ``None``
    - ``caveats``: of measures that treat many unjudged documents as non-relevant
    """

    values: pd.DataFrame
    intervals: pd.DataFrame
    missing: pd.DataFrame
    segments: pd.DataFrame = field(default_factory=pd.DataFrame, kw_only=True)
    model: EvidenceModel | None = field(default=None, kw_only=True)
    notes: tuple[Note, ...] = field(default=(), kw_only=True)
    joint: PooledScores | None = field(default=None, kw_only=True)
    guessed: tuple[str, ...] = field(default=(), kw_only=True)
    caveats: tuple[Caveat, ...] = field(default=(), kw_only=True)

    def to_frame(self) -> pd.DataFrame:
        """Return ``intervals``: the C frame, a row per system, measure and method."""
        return self.intervals

    def _line(self) -> str:
        return systems_line(self.intervals)

    def _verdict(self) -> Iterator[str]:
        rows_by_measure: dict[str, list[dict[Any, Any]]] = {}
        columns = {column: values.tolist() for column, values in self.intervals.items()}
        rows_by_pair: dict[tuple[str, str], dict[Any, Any]] = {}
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            rows_by_pair.setdefault((row["name"], row["measure"]), row)
        for row in rows_by_pair.values():
            rows_by_measure.setdefault(str(row["measure"]), []).append(row)
        for measure, rows in rows_by_measure.items():
            if measure in self.guessed:
                yield f"By {measure}, {GUESSES}."
                continue
            # Systems are in the order of their means, those without a mean last.
            sign = -1 if better(measure) == "lower" else 1
            yield means_sentence(
                measure, sorted(rows, key=lambda row: (math.isnan(row["value"]), -sign * row["value"]))
            )

    def _caveats(self) -> Iterator[Caveat]:
        yield from self.caveats
        notes = list(self.notes)
        empty: list[Caveat] = []
        for row in self.missing[self.missing["n_missing"] > 0].to_dict("records"):
            many = row["n_missing"] > MAX_MISSING_SHARE * row["n_qids"]
            # The note on such a run says the same, with the remedy.
            noted = next((note for note in notes if (note.kind, note.system) == (EMPTY_TOPICS_NOTE, row["name"])), None)
            if noted is not None:
                notes.remove(noted)
                empty.append(Caveat("Empty topics", sentence(noted), serious=many))
                continue
            text = f"{row['name']} retrieved nothing for {row['n_missing']} of {count_text(row['n_qids'], 'topic')}"
            empty.append(Caveat("Empty topics", f"{text}, scored as empty rankings.", serious=many))
        for note in notes:
            yield Caveat("Model" if note.kind == MODEL_NOTE else NOTE, sentence(note), serious=False)
        yield from empty

    def _next(self, call: Call) -> str:
        if call.name.rpartition(".")[2].rpartition(" ")[2] not in {"score", "evaluate_intents"}:
            return ""
        if len(set(self.intervals["name"])) > 1:
            return call.next("compare", "compare", (*_NEXT_STEP_ARGUMENTS, "queries"))
        return call.next("doctor", "evaluate.diagnose", ("runs", "qrels", "subtopics", "intents", "tags", "system"))

    def _picture(self) -> IntervalPicture | None:
        first = self.intervals[self.intervals["measure"] == self.intervals["measure"].iloc[0]]
        rows = first.drop_duplicates("name").sort_values("value", ascending=False, kind="stable").head(MAX_BARS)
        bars = [Bar(*row) for row in rows[["name", "value", "low", "high"]].itertuples(index=False, name=None)]
        unit = "topics" if self.joint is None else "joint intents"
        level = f"{100 * rows['level'].iloc[0]:g}% intervals over {unit}"
        return IntervalPicture(f"{rows['measure'].iloc[0]}, {level}", tuple(bars))

    def _panels(self) -> Iterator[Panel]:
        yield from self._means()

    def _means(self, **options: Any) -> Iterator[Panel]:
        if self.joint is not None:
            options |= {"title": "Scores of the joint intents of all queries"}
        yield from of_means(self.intervals, **options)
        if len(self.segments):
            yield Panel("Segments of queries", self.segments, value="value", heads=2)
        missing = self.missing[self.missing["n_missing"] > 0]
        if len(missing):
            yield Panel("Topics for which a system retrieved nothing", missing)

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.intervals}, "curve": lambda: {"scores": self.intervals}}

    def means(self) -> pd.DataFrame:
        """Mean scores: one row per system, one column per measure."""
        (row, names), (column, measures) = (pd.factorize(self.intervals[axis]) for axis in ("name", "measure"))
        table = np.full((len(names), len(measures)), nan)
        # The first interval of a system and measure counts; ``pivot`` takes ten times as long.
        table[row[::-1], column[::-1]] = self.intervals["value"].to_numpy()[::-1]
        return pd.DataFrame(table, index=names.rename("name"), columns=measures.rename("measure"))

    def best(self, share: float = 0.75, measure: str | None = None) -> list[str]:
        """Names of the best share of the systems by the mean of a measure, the first by default, best first.

        Fröbe et al. (ECIR 2023, section 4.1) keep 75 % of the runs of a track. Ties keep the order of the systems.
        """
        means = self.means()
        number("share", share, low=0, high=1)
        chosen = means.columns[0] if measure is None else str(measures_from(measure)[0])
        choice("measure", chosen, tuple(means.columns))
        order = means[chosen].sort_values(ascending=False, kind="stable")
        return [str(name) for name in order.index[: max(math.ceil(share * len(order) - WHOLE_ROUNDING), 1)]]


@with_defaults
def score(
    runs: Any,
    qrels: Any = None,
    measures: Sequence[str | ir_measures.Measure] = (),
    *,
    intents: Any = None,
    tags: Any = None,
    pool: str = "query",
    data: Data = Data(
        labels=None,
        model=None,
        pool_cutoff=None,
        subtopics=None,
        queries=None,
        topics=None,
        on_topics="same",
        duplicates="error",
        system=None,
    ),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
    execution: Execution = Execution(memory=None, n_jobs=1, client=None, resume=None, progress=False),
) -> Scores:
    """Evaluate systems with measures of this package and of ir_measures, with intervals of the means.

    Parameters
    ----------
    runs
        A mapping of name to run; or one run, or several paths, which are named after their files. A run is a frame
        (qid, docno, score) or a ``Dataset`` of pyarrow, the path of a file, of a folder of parts or a list of paths, a
        pattern such as ``"bm25/*.gz"``, or a PyTerrier pipeline, which needs the topics of ``data``; for linking
        measures alone, also the answers (qid, entity_id).
    qrels
        A frame or the path of TREC qrels; optional if ``intents`` are given. For entity measures, links with labels: a
        :class:`~vbterrier.entities.LinkedPool` or its frame. For linking measures alone, the gold
        standard: a frame (qid, entity_id) or a path, see :func:`vbterrier.frames.read_answers`.
    measures
        Measure objects or their names. By default, those that the judgments and intents support: ENDCG@10, nDCG@10 and
        Unjudged@10 with adhoc qrels, also BNDCG@10 for a single run; as in :func:`vbterrier.write_report`. An empty
        list is the default, too.
    intents
        For measures of ambiguous queries, and for diversity measures such as alpha_nDCG together with ``tags``: a frame
        (qid, entity_id, prob), a registered name or a path.
    tags
        Entities of documents: a frame (docno, entity_id[, weight, qid]), a registered name or a path; otherwise the
        column ``entity_id`` of the runs, or diversity qrels.
    pool
        ``"query"``: means over topics. ``"collection"``, for ES, VB, VarPenalty and TopIntent: ``intervals`` has the
        scores of the joint intents of all queries, as one evaluation, by default with percentile intervals; see
        :func:`vbterrier.evaluate_intents`.
    data
        A :class:`vbterrier.Data`: ``labels``, ``model``, ``pool_cutoff``, ``subtopics``, ``queries``, ``topics``,
        ``on_topics`` (``"same"``), ``duplicates`` (``"error"``), ``system``. Of queries, weight and cluster enter means
        and intervals, segment gives ``segments``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``; not ``"nested"``), ``level`` (0.95),
        ``n_resamples`` (2,000), ``seed`` (0).
    execution
        An :class:`vbterrier.Execution`: ``memory``, ``n_jobs`` (1), ``client``, ``resume``, ``progress`` (False).
        ``resume`` implies ``memory`` (1 GiB unless given). Each process evaluates a run, once the calling process
        expects to save more time by them than they need to start; with ``memory`` and fewer runs than processes, all
        processes share the chunks of each run. The calling process reads chunks for a cluster.

    Returns
    -------
    Scores
        ``values``: a row per system, topic and measure; ``intervals``: a row per system, measure and source of
        uncertainty; ``missing``: topics without retrieved documents. Its method ``means`` returns a table of systems
        and measures.

    Raises
    ------
    InputError, ParameterError
        Frames or files that cannot be evaluated; runs with different topics; duplicated system names; measures or
        options that do not exist.
    ServiceError
        A cluster that does not respond or disconnects.

    Notes
    -----
    Linking measures are ratios of sums over all queries, also of weighted queries and of the queries of a segment:
    intervals that resample recompute the ratio for each resample and without each query; ``"unseen"`` and ``"normal"``
    are Student's t over linearised values (the delta method, :data:`vbterrier.LinkP`), whose mean is the ratio.

    Results do not depend on the number of processes and workers. ``memory`` bounds each process; in the calling
    process, chunks queued for workers take at most an eighth of it.

    ``memory`` does not change any value. Of each topic, only the rows that measures read are kept: the first k rows for
    a cutoff k, the first 100 for the model of unjudged documents. External measures without a cutoff,
    or with one above 100, are evaluated topic by topic, and only their values are kept. Measures of this package
    without a cutoff are evaluated likewise if the value of a topic depends on that topic alone, and are otherwise
    refused. ``memory`` covers reading and evaluation, not judgments, intents, tags and kept rows. Runs whose topics are
    not contiguous are first split by topic into temporary files as large as the uncompressed run (in ``resume`` if
    given, else in the default temporary folder). One topic must fit into a sixteenth of ``memory``.

    The order of a run is determined by its queries and scores. Documents below the ranks that the measures look at have
    no effect on any value, so that their ids are neither compared nor, in columns of Python objects, checked;
    ``vbterrier doctor`` and ``duplicates="everywhere"`` check them all.

    ``resume`` identifies inputs by size, modification time and samples of the run files, judgments, measures and
    version, and refuses a folder with other inputs.

    Examples
    --------
    >>> judged = {"docno": ["a", "x", "b", "x"], "label": [1, 0, 1, 0]}
    >>> qrels = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], **judged})
    >>> run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "new"], "score": [1.0, 1.0]})
    >>> score({"mine": run}, qrels, ["BNDCG@10", "nDCG@10"]).means().round(3).loc["mine"].tolist()
    [0.75, 0.5]
    """
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    qrels, reported = judgments_and_measures(measures, runs, qrels, intents, data.subtopics)
    sampled = queries_of_topics(data.topics) if data.queries is None else data.queries
    _check_settings(sampled, reported, inference, pool)
    pooled = pooled_moments(pool, reported, interval) if pool != "query" else []
    # Intervals over unjudged documents need the variance of the mean.
    variances = [part for measure in reported if (part := variance_measure(measure)) is not None]
    # The notes on fully judged runs need the shares of unjudged documents.
    shares = [Unjudged(cutoff=measure.cutoff) for measure, _ in with_plain(reported)]
    # Ratios of sums are computed from the answers of resampled queries.
    answers = [measure.answers for measure in reported if isinstance(measure, LinkingMeasure)]
    computed = list(dict.fromkeys([*reported, *variances, *shares, *pooled, *answers]))
    used = {name: value for name, value in data.explicit_settings().items() if name != "queries"}
    runs_scored = scored_runs(
        runs,
        qrels,
        computed,
        intents=intents,
        tags=tags,
        data=Data(**used),
        execution=execution,
        check=lambda qids: _queries_table(sampled, qids, reported, interval),
    )
    table, target, models = runs_scored.table, runs_scored.target, runs_scored.models
    drawn: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    names, segments = list(runs_scored.runs), pd.DataFrame()
    joint = pooled_of_values(table, reported, names) if pooled else None
    if joint is not None:
        intervals = joint.intervals(method=interval, **drawn)
    else:
        queries = _queries_table(sampled, target.topics, reported, interval)
        intervals, segments = _by_segment(table, reported, names, interval, queries, **drawn)
    values = _shown_values(table, reported, models)
    notes = [
        *notes_on_models(reported, models, table),
        *map(Note, differences_of_judged_runs(reported, table) if shares else ()),
        *runs_scored.notes,
    ]
    return Scores(
        values,
        intervals,
        runs_scored.missing,
        model=models.get(""),
        notes=tuple(notes),
        joint=joint,
        segments=segments,
        guessed=guessed_measures(reported, notes, judged=qrels is not None),
        caveats=runs_scored.caveats(reported),
    )


class ScoredRuns(NamedTuple):
    """The scores of runs, and what they were computed from.

    ``target`` has the topics that the runs are evaluated on; ``notes`` are about runs, judgments and intents.
    """

    table: ScoreTable
    target: EvaluationTarget
    runs: Mapping[str, Any]
    models: Mapping[str, EvidenceModel]
    missing: pd.DataFrame
    notes: list[Note]
    # False if the runs were scored in parts or by workers.
    is_whole: bool

    def caveats(self, measures: Iterable[ir_measures.Measure]) -> tuple[Caveat, ...]:
        """Caveats of measures that treat unjudged documents as non-relevant."""
        return unjudged_caveats(measures, self.target, self.runs) if self.is_whole else ()


@with_defaults
def scored_runs(
    runs: Any,
    qrels: Any,
    measures: Sequence[ir_measures.Measure],
    *,
    intents: Any = None,
    tags: Any = None,
    data: Data = Data(
        labels=None,
        model=None,
        pool_cutoff=None,
        subtopics=None,
        topics=None,
        on_topics="same",
        duplicates="error",
        system=None,
    ),
    execution: Execution = Execution(memory=None, n_jobs=1, client=None, resume=None, progress=False),
    check: Callable[[Sequence[str]], object] | None = None,
) -> ScoredRuns:
    """Read runs and judgments, check and align them, and evaluate distinct measures; arguments as of :func:`score`.

    ``check`` takes the topics before the runs are scored in this process.
    """
    on_topics, progress = data.on_topics, execution.progress
    # Answers have their own file format, unless other measures need runs and qrels.
    linking = all(isinstance(measure, LinkingMeasure) for measure in measures)
    judged = evaluation_target(
        qrels, intents, tags, read_answers if linking else evaluated_qrels, subtopics=data.subtopics
    )
    of_model: dict[str, Any] = {"labels": data.labels, "model": data.model, "pool_cutoff": data.pool_cutoff}
    reported = [measure for measure in measures if measure.params.get("stat") != VARIANCE_PART]
    require_use(reported, **of_model)
    if any(isinstance(measure, CandidateMeasure) and measure.reads_subtopics for measure in measures):
        check_subtopics(judged)
    # Workers and chunks read files, and answers of linkers have their own reader.
    named = list(
        system_items(named_systems(runs))
        if linking
        else named_runs(runs, data.topics, data.system, reads=False).items()
    )
    warn_of_few_non_relevant(reported, judged)
    of_model["labels"] = machine_labels(data.labels)

    def fit_models(loaded_runs: Mapping[str, Run], target: EvaluationTarget) -> dict[str, EvidenceModel]:
        return evidence_models(measures, loaded_runs, target, **of_model)

    scorer = Scorer(
        judged,
        measures,
        data.duplicates,
        system=data.system,
        is_linking=linking,
        memory=execution.memory,
        resume=execution.resume,
    )
    models: Mapping[str, EvidenceModel]
    loaded: Mapping[str, Any]
    n_jobs = execution.n_jobs
    in_this_process = execution.client is None and type(n_jobs) is int and n_jobs == 1
    with nullcontext() if in_this_process else workers(n_jobs, execution.client) as team:
        if team is not None and scorer.is_distributed(named, team):
            target, loaded, rows, models = distribute(scorer, named, on_topics, team, fit_models, progress=progress)
        else:
            loaded, in_parts = scorer.load_runs(named, workers=team, progress=progress)
            require_one_tagger(loaded.values())
            models = fit_models(loaded, judged)
            target, loaded = align_topics(judged, loaded, on_topics)
            if check is not None:
                check(target.topics)
            scorer.prepare(target)
            of_runs: Iterable[list[Any]] = score_rows(scorer, named, loaded, in_parts, target, models, team)
            if progress and len(loaded) > 1:
                of_runs = tracked_items(of_runs, "scoring", shown=True, total=len(loaded), unit="run")
            rows = list(chain.from_iterable(of_runs))
    missing = missing_topics(target.topics, loaded)
    whole_runs = loaded if in_this_process and not scorer.is_in_parts else {}
    has_intents = judged.intents is not None or "prob" in judged.frame.columns
    notes = [
        # Linking measures count queries without an answer as their parameter unanswered says.
        *warning_notes(
            [] if any(getattr(each, "IS_OF_COLLECTION", False) for each in measures) else missing_notes(missing)
        ),
        *warning_notes(notes_on_condensed(measures, target, whole_runs)),
        *warning_notes(notes_on_ratios(measures)),
        *map(Note, negative_labels(target.frame)),
        *(notes_on_intents(judged, loaded) if has_intents else ()),
    ]
    return ScoredRuns(ScoreTable.of_rows(rows), target, loaded, models, missing, notes, bool(whole_runs))


def _shown_values(
    table: ScoreTable, measures: Sequence[ir_measures.Measure], models: Mapping[str, EvidenceModel]
) -> pd.DataFrame:
    """Return the V frame of the requested measures, with models and answers."""
    names = set(map(str, measures))
    values = table.of(name for name in table.measures if name in names).frame()
    if models:
        digests = {str(one): models[one["model"]].digest for one in measures if isinstance(one, Estimated)}
        values = values.assign(model=values["measure"].map(digests).fillna(""))
    if any(isinstance(one, LinkingMeasure) for one in measures):
        values = values.assign(**_answer_columns(values, table, measures))
    return values


def _answer_columns(
    values: pd.DataFrame, table: ScoreTable, measures: Sequence[ir_measures.Measure]
) -> dict[str, NDArray[np.object_]]:
    """Return the columns gold and answer of the values of linking measures, empty for others."""
    answers_by_measure = {str(each): str(each.answers) for each in measures if isinstance(each, LinkingMeasure)}
    answers = table.of(answers_by_measure.values()).frame()
    keys = zip(*(answers[key] for key in KEY), strict=True)
    codes = dict(zip(keys, answers["value"].astype(np.int64).tolist(), strict=True))
    rows = zip(*(values[key] for key in KEY), strict=True)
    code = [
        codes[name, qid, answers_by_measure[measure]] if measure in answers_by_measure else -1
        for name, qid, measure in rows
    ]
    columns = ("gold", [*np.repeat(linking.GOLD, len(linking.ANSWERS)), ""]), ("answer", [*linking.ANSWERS * 2, ""])
    return {name: np.array(words, dtype=object)[code] for name, words in columns}


def missing_topics(topics: Sequence[str], runs: Mapping[str, Any]) -> pd.DataFrame:
    """Number of topics for which each run retrieved nothing: name, n_qids, n_missing."""
    n_missing = [len(set(topics).difference(run.topics)) for run in runs.values()]
    return pd.DataFrame({"name": list(runs), "n_qids": len(topics), "n_missing": n_missing})


def _check_settings(queries: Any, measures: Iterable[ir_measures.Measure], inference: Inference, pool: str) -> None:
    """Refuse settings before runs are read; of queries, columns that have no effect."""
    choice("interval", inference.interval, TOPIC_METHODS)
    whole("n_resamples", inference.n_resamples, low=2)
    _queries_table(queries, (), measures, inference.interval, pool)


def _queries_table(
    queries: Any, qids: Sequence[str], measures: Iterable[ir_measures.Measure], interval: str, pool: str = "query"
) -> pd.DataFrame | None:
    """The W frame of the evaluated queries, by id; ``None`` without one."""
    if queries is None:
        return None
    if pool != "query":
        raise ParameterError(f"score: pool={pool!r} has no weights, clusters or segments of queries; leave out queries")
    others = [str(measure) for measure in measures if not is_mean(measure)]
    if others:
        raise ParameterError(f"score: {', '.join(others)} is no mean over queries and has no weights; leave it out")
    if interval != UNSEEN:
        raise ParameterError(f"score: interval={interval!r} has no weights, clusters or segments; use {UNSEEN!r}")
    return selected_queries(queries, qids, call="score", honoured=("weight", "cluster", "segment"))


def _by_segment(
    scores: ScoreTable,
    measures: Sequence[ir_measures.Measure],
    names: Sequence[str],
    interval: str,
    table: pd.DataFrame | None,
    **drawn: Any,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The C frame of all queries, and that of each segment."""
    warn_of_weights(table)
    sample = sample_by(table)
    whole_frame = _intervals(linearised_on(scores, sample), measures, names, interval, sample=sample, **drawn)
    parts = []
    if table is not None and "segment" in table.columns:
        weight = table["weight"] if "weight" in table.columns else pd.Series(1.0, index=table.index)
        for segment, rows in table[table["segment"] != ""].groupby("segment").groups.items():
            part = linearised_on(scores.on(set(rows)), sample)
            frame = _intervals(part, measures, names, interval, sample=sample, **drawn)
            parts.append(frame.assign(segment=str(segment), weight=weight.loc[rows].sum() / weight.sum()))
    return whole_frame, pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _intervals(
    scores: ScoreTable,
    measures: Sequence[ir_measures.Measure],
    names: Sequence[str],
    interval: str,
    *,
    sample: Callable[[Sequence[str]], SampledQueries] | None = None,
    level: float,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    averaged = scores.of(str(measure) for measure in measures if is_mean(measure))
    # One random stream for all systems and measures: equal values get equal intervals.
    drawn: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    made = interval_rows(averaged, interval, sample=sample, answers=scores, **drawn).values()
    interval_by_cell = {row[:2]: dict(zip(COLUMNS, row, strict=True)) for row in made}
    rows: list[tuple[Any, ...]] = []
    for name, measure in product(names, measures):
        values = scores.system_scores(name, str(measure))
        row = interval_by_cell.get((name, str(measure)))
        ends = [(nan, nan, "none", 0)]
        if row is not None:
            ends = [(row["low"], row["high"], row["method"], row["n_resamples"])]
        variance = variance_measure(measure)
        # Variances of weighted means are those of the gate alone.
        if variance is not None and len(values) and sample is None:
            end = unjudged_interval(values, scores.system_scores(name, str(variance)), level=level)
            ends.append((end.low, end.high, end.method, 0))
        mean = aggregate_values(measure, values) if len(values) else nan
        head = (name, str(measure), mean if sample is None or row is None else row["value"])
        rows += [(*head, low, high, level, method, len(values), used, seed) for low, high, method, used in ends]
    return pd.DataFrame(rows, columns=list(COLUMNS))

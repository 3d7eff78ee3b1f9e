"""VB-Scores of systems with intervals over queries and replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    choice,
    excerpt,
    unheard,
    warn,
    whole,
)
from vbterrier.evaluate.comparison import untested_pairs
from vbterrier.evaluate.inputs import (
    TAG_COLUMNS,
    document_tags,
    evaluation_target,
    intents_and_queries,
    intents_and_tags,
    named_systems,
    require_baseline,
    tagging_stage,
)
from vbterrier.evaluate.intent_notes import GUESSES, MOSTLY, guessed_measures, missing_note, tie_bounds, tie_note
from vbterrier.evaluate.pooling import check_pool, replica_statistic, shared_nil, shared_parts
from vbterrier.evaluate.replicas import (
    RerunSystems,
    gold_intervals,
    intent_replicas,
    rerun_notes,
    resolved_perturbations,
    runs_of_systems,
    runs_of_wordings,
)
from vbterrier.evaluate.retagging import RerunTagger
from vbterrier.evaluate.scores import Scores, score
from vbterrier.execution.chunks import Work, measure_plan
from vbterrier.execution.parallel import workers
from vbterrier.execution.streaming import read_first_ranks
from vbterrier.frames.answer import GUESSES_NOTE, Note
from vbterrier.frames.contracts import system_items
from vbterrier.frames.files.parts import is_in_files, is_table
from vbterrier.frames.notebook import Panel
from vbterrier.frames.pipelines import is_pipeline, topics_frame
from vbterrier.frames.queries import require_unweighted
from vbterrier.frames.ranking import Run, system_tables
from vbterrier.frames.systems import ONE, named_once
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.intents.parts import PARTS, READINGS, SPLIT, TOGETHER, split_parts, tags_of_parts
from vbterrier.intents.tagging_quality import TagQuality, tag_quality
from vbterrier.measures.intents import CandidateMeasure, IntentMeasure
from vbterrier.measures.target import deepest, require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data, Execution, Inference, Options, with_defaults
from vbterrier.stats.comparisons import comparisons, system_pairs
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.replicas import N_REPLICAS, REPLICA_METHODS, excludes_its_score
from vbterrier.stats.topic_intervals import N_RESAMPLES, TOPIC_METHODS, UNSEEN
from vbterrier.stats.variants import Variants, with_variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.results import Figures
    from vbterrier.remedies import Call
    from vbterrier.stats.replicas import Replicas
    from vbterrier.stats.tagger_model import TaggerModel


MEASURES = ("ES", "VB(alpha=0.5)", "VB", "TopIntent")
CUTOFFS = (1, 3, 5, 10)
# Number of distinct marks in figures.
_N_MARKS = 7


def first_covering_ranks(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoff: int | None
) -> pd.DataFrame:
    """Probability and first covered rank of every intent: the frame ``covered`` of :class:`IntentEvaluation`."""
    candidates, all_tags = Intents(intents, together=PARTS in intents.columns), Tags(tags)
    of_intents = intents[["qid", "entity_id"]].reset_index(drop=True).assign(prob=candidates.prob)
    by_topic = of_intents.groupby(candidates.topic)["prob"]
    of_intents["place"] = by_topic.rank(ascending=False, method="min").astype("int64")
    tables = []
    for name, run in runs.items():
        coverage = cover(run, candidates, all_tags, cutoff)
        first = np.full(len(of_intents), np.inf)
        np.minimum.at(first, coverage.intent, coverage.rank + 1.0)
        ranks = pd.array(np.where(np.isfinite(first), first, np.nan), dtype="Int64")
        tables.append(of_intents.assign(name=name, first_rank=ranks))
    return pd.concat(tables, ignore_index=True)[["name", "qid", "entity_id", "prob", "place", "first_rank"]]


def tag_coverage(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoffs: Sequence[int], nil: str
) -> pd.DataFrame:
    """Share of tagged documents, ES, and the best possible ES under the same tags."""
    together = PARTS in intents.columns
    candidates, all_tags = Intents(intents, together=together), Tags(tags)
    rows = []
    for cutoff in cutoffs:
        oracle = None
        for name, run in runs.items():
            coverage = cover(run, candidates, all_tags, cutoff, nil=nil)
            oracle = coverage.oracle(cutoff) if oracle is None else oracle
            success = coverage.success(coverage.gain(cutoff, "binary"))
            rows.append((name, cutoff, float(coverage.tagged.mean()), *coverage.ties, float(success.mean()), oracle))
    table = pd.DataFrame(rows, columns=["name", "cutoff", "tagged", "tied", "abstained", "ES", "oracle_ES"])
    if all_tags.tied is None:
        return table.drop(columns=["tied", "abstained"])
    if together or not all_tags.tied.any():
        return table
    return table.merge(tie_bounds(runs, intents, tags, cutoffs, nil), on=["name", "cutoff"])


@dataclass(frozen=True, eq=False, repr=False)
class IntentEvaluation(Scores):
    """Result of :func:`evaluate_intents`.

    - ``values``: the V frame, of each query also if queries are pooled
    - ``intervals``: the C frame; values are means over queries or, with ``pool="collection"``, pooled scores. ``topics
      (...)`` intervals refer to queries from the same population, ``replicas (...)`` intervals to perturbed candidates
      and tags of these queries. The column ``mean`` is the mean of the replicas, the centre of their interval;
      ``lists`` is ``"run again"`` for systems that were run for each wording of the queries, ``"fixed"`` for rankings
      that are the same in all replicas. ``gold tags (tagger model)`` intervals refer to the score of these queries
      under gold tags, ``mean`` is its estimate.
    - ``comparisons``: the P frame: all pairs of systems (or all systems with the baseline), topic by topic
    - ``per_query``: with replicas: name, qid, measure, value, mean, std, low, high, level, method, lists; else empty
    - ``covered``: name, qid, entity_id, prob, place (by probability, from 1; ties share the best), first_rank (rank of
      the first document that covers the intent, from 1; missing if no document up to the largest cutoff does)
    - ``tagging``: name, cutoff, tagged (mean share of documents up to the cutoff with a tag that is a candidate), tied
      (share of their tags that a tie decided: guesses), abstained (share of mentions without a tag because of a tie or
      because no candidate fits; both only if the tagger says so), ES, oracle_ES (of the best ranking under the same
      tags, an upper bound for every system; with ``parts="together"`` that of ``"split"``, which is larger); with
      guesses, ES_worst, ES_best, VB_worst and VB_best: if all of them are wrong, and if each is the most probable
      intent that no other document covers (not with ``parts="together"``)
    - ``missing``: name, n_qids, n_missing: the number of queries for which a system retrieved nothing
    - ``intents``, ``tags``: the frames used for scoring; tags of whole intents if these are several ids at once
    - ``replicas``, ``quality``: the scores of every replica, and precision and recall of the tags on a labelled sample,
      or ``None``
    - ``pool``: ``"query"`` or ``"collection"``
    """

    comparisons: pd.DataFrame
    per_query: pd.DataFrame
    covered: pd.DataFrame
    tagging: pd.DataFrame
    intents: pd.DataFrame
    tags: pd.DataFrame
    replicas: Replicas | None = None
    quality: TagQuality | None = None
    pool: str = "query"

    def _next(self, call: Call) -> str:
        # Functions for intents alone and for comparisons have different arguments.
        return super()._next(call) if call.options is not None else ""

    def _panels(self) -> Iterator[Panel]:
        yield from self._means()
        if len(self.comparisons):
            yield Panel("Differences", self.comparisons, value="diff", by="measure", rule=0, heads=2)
        yield Panel("Tag coverage and upper bounds", self.tagging)

    def _figures(self) -> Figures:
        pairs = {"differences": lambda: {"pairs": self.comparisons}} if len(self.comparisons) else {}
        coverage = {"coverage_map": lambda: {"intents": self.intents, "tags": self.tags}}
        # Draw one kind of interval if there are too many marks for both.
        marks, drawn = self.intervals.drop_duplicates(["measure", "method"]), self.intervals
        if len(marks) > _N_MARKS:
            drawn = drawn[drawn["method"] == marks["method"].iloc[0]]
        return {**super()._figures(), "forest": lambda: {"intervals": drawn}, **pairs, **coverage}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IntentOptions(Options):
    """Options of :func:`vbterrier.evaluate_intents`.

    Parameters
    ----------
    cutoff
        Cutoffs of measures without one, by default 1, 3, 5 and 10.
    pool
        ``"query"``, the default: means over queries. ``"collection"``: the queries are one evaluation with joint
        intents, ``P(q, i) = π_i / n`` (Table 1 of the paper), whose variance is that of success over all queries;
        rankings and cutoffs remain those of each query. If each query has one intent, VB equals ES by query, and only
        the pooled evaluation has a penalty. See :class:`~vbterrier.stats.topic_statistics.PooledScores`.
    parts
        For intents that are several ids at once, with a column ``parts`` (a list of ids; ``entity_id`` names the
        whole): a document covers an intent if it is tagged with ``"all"`` its ids (the default), or in ``"part"``, by
        the share of them; see :func:`vbterrier.intents.tags_of_parts`. Over the documents up to a cutoff: ``"split"``
        counts each part with ``π_i / n_i`` wherever it is found, ``"together"`` the least covered part of an intent;
        see :func:`vbterrier.intents.split_parts`. ``None``: the parameter ``parts`` of the measures, which names a
        reading other than ``"all"`` in the results.
    undefined
        Queries without candidates: ``"raise"``, the default, or ``"skip"`` to leave them out with a warning.
    n_replicas, perturb
        Number of replicas, 0 (the default) for none, and their perturbations, by default
        :class:`~vbterrier.stats.Dirichlet`, applied in this order: those of :mod:`vbterrier.stats`,
        :class:`Paraphrases`, :class:`RerunPipeline`, :class:`RerunSystems`, :class:`RerunTagger`.
    gold, tagger_model
        A labelled sample (docno, entity_id), to report precision and recall of the tags; the result of
        :func:`vbterrier.stats.fit_tagger` for these tags: intervals of the scores under gold tags, from 1,000 replicas
        by default. The labelled documents must be a random sample of the documents.

    Examples
    --------
    >>> IntentOptions(cutoff=10, pool="collection").pool
    'collection'
    """

    cutoff: Sequence[int] | int = CUTOFFS
    pool: str = "query"
    parts: str | None = None
    undefined: str = "raise"
    n_replicas: int = 0
    perturb: Sequence[Any] = (Dirichlet(),)
    gold: Any = None
    tagger_model: TaggerModel | None = None


@with_defaults
def evaluate_intents(
    runs: Any,
    topics: Any,
    measures: Sequence[str | ir_measures.Measure] = MEASURES,
    *,
    intents: Any,
    tagger: Any = None,
    baseline: str | None = None,
    options: IntentOptions = IntentOptions(),
    data: Data = Data(on_topics="same", duplicates="error", system=None),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
    execution: Execution = Execution(memory=None, n_jobs=1, client=None, progress=False),
) -> IntentEvaluation:
    """Score systems by how well they cover the intents of ambiguous queries, without relevance labels.

    Generate (or take) candidate intents of every query, tag the documents of all systems with one tagger, and compute
    each measure at each cutoff, with intervals over queries and, from replicas with perturbed candidates and tags (Ding
    2025, Algorithm 1), over the uncertainty of candidates and tags.

    Parameters
    ----------
    runs
        Pipelines, frames (qid, docno, score) or paths of TREC runs or spreadsheets, by name; or paths, named after
        their files. Pipelines are run again for each wording of :class:`vbterrier.evaluate.Paraphrases`, once for a
        wording of a query, and for each run of :class:`vbterrier.evaluate.RerunSystems`; the rankings of frames and
        files stay fixed.
    topics
        Columns qid and query; a frame or a path.
    intents
        A pipeline from topics to intents, as ``CandidateIntents(kb) >> Dedup() >> Truncate(mass=0.95)``; or a frame
        (qid, entity_id, prob), a registered name, a path or an :class:`vbterrier.IntentSet`.
    tagger
        Source of the entities of documents: :class:`vbterrier.TagEntities`, or any argument of it (a linker, a
        function, ``"docno"`` if documents are entities); a T frame (docno, entity_id[, weight, qid]), a registered
        name or a path; ``None`` for the column ``entity_id`` of the systems' results, or the tags of the IntentSet.
    measures
        Measures of this package, such as ``"WeightedAlphaNDCG"``, or, for intents with equal probabilities, diversity
        measures of ir_measures, such as ``"alpha_nDCG"``, on the same tags. A measure without a cutoff is computed at
        every ``cutoff`` of ``options``.
    baseline
        The system that all other systems are compared with; ``None`` for all pairs.
    options
        An :class:`vbterrier.evaluate.IntentOptions`: ``cutoff``, ``pool``, ``parts``, ``undefined``, ``n_replicas``,
        ``perturb``, ``gold``, ``tagger_model``.
    data
        A :class:`vbterrier.Data`: ``on_topics`` (``"same"``), ``duplicates`` (``"error"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0). Replicas and pooled scores, which are no means over a sample of queries, have percentile intervals
        where queries have ``"unseen"``; ``"percentile"``, ``"bca"`` or ``"normal"`` hold for both.
    execution
        An :class:`vbterrier.Execution`: ``memory``, ``n_jobs`` (1), ``client``, ``progress`` (False). With ``memory``,
        the documents down to the largest cutoff are kept. Processes run pipelines, and read run files in chunks, one
        file each; a cluster reads run files.

    Returns
    -------
    IntentEvaluation
        ``values`` by query; ``intervals`` by system, measure and source of uncertainty; ``comparisons`` of systems;
        ``tagging``: the effect of the tagger; ``replicas``.

    Examples
    --------
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Jordan achievements", "Jordan team"]})
    >>> intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["athlete", "country", "athlete"]})
    >>> run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d2"], "score": 1.0, "entity_id": "athlete"})
    >>> options = {"intents": intents.assign(prob=[0.8, 0.2, 1.0]), "measures": ["ES@10", "VB@10"]}
    >>> evaluate_intents({"literal": run}, topics, **options).means().round(3).loc["literal"].to_dict()
    {'ES@10': 0.9, 'VB@10': 0.7}
    """
    cutoff, pool, parts, undefined = options.cutoff, options.pool, options.parts, options.undefined
    n_replicas, perturb, gold, tagger_model = options.n_replicas, options.perturb, options.gold, options.tagger_model
    on_topics, duplicates = data.on_topics, data.duplicates
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    memory, n_jobs, client, progress = execution.memory, execution.n_jobs, execution.client, execution.progress
    reported = at_cutoffs(measures, cutoff)
    is_modelled = tagger_model is not None
    _check(reported, undefined, interval, pool, parts, n_replicas, is_modelled=is_modelled)
    nil, largest = shared_nil(reported), deepest(reported)
    asked_queries = _checked_topics(topics, runs, baseline, data.system)
    pipeline, tagger = intents_and_tags(intents, tagger)
    frame, queries = intents_and_queries(pipeline, asked_queries, undefined)
    # A stage that tags documents reads their texts.
    extra = tagging_stage(tagger) is not None
    work = Work(
        "", measure_plan(reported), evaluation_target(None, frame[["qid", "entity_id", "prob"]], None), duplicates
    )
    where: dict[str, Any] = {"memory": memory, "n_jobs": n_jobs, "client": client, "progress": progress}
    by_name = _systems(runs, baseline, work, system=data.system, extra=extra, **where)
    runs = runs_of_systems(by_name, queries, asked_queries, duplicates, n_jobs=n_jobs, progress=progress)
    frame, queries, runs = _on_common(frame, queries, runs) if on_topics == "common" else (frame, queries, runs)
    perturbations, reruns = list[Any](), dict[str, list[Run]]()
    if n_replicas:
        perturbations, wordings = resolved_perturbations(
            perturb, pipeline, frame, queries, by_name, n_replicas, seed, progress=progress
        )
        reruns = runs_of_wordings(by_name, runs, wordings, duplicates, n_jobs=n_jobs, progress=progress)
    others = {run.name: run for several in reruns.values() for run in several[1:]}
    if tagger is None:
        require_one_tagger([*runs.values(), *others.values()])
    tags = document_tags(tagger, {**runs, **others}, largest)
    quality = None if gold is None else tag_quality(tags, gold)
    # The tags of each run of a tagger that is run again in replicas.
    listed = perturb if isinstance(perturb, (list, tuple)) else [perturb]
    retagged = [
        tags_of_run
        for one in listed
        if n_replicas and isinstance(one, RerunTagger)
        for tags_of_run in one.tags(tagger, tags, {**runs, **others}, largest, seed, progress=progress)
    ]
    if PARTS in frame.columns:
        if parts is not None:
            reported = [
                measure(parts=parts) if isinstance(measure, CandidateMeasure) else measure for measure in reported
            ]
        frame, (tags, *retagged), perturbations = _resolved_parts(
            frame, [tags, *retagged], perturbations, shared_parts(reported), nil, is_modelled=is_modelled
        )
    scored = score(
        {name: run.frame.drop(columns=TAG_COLUMNS, errors="ignore") for name, run in runs.items()},
        measures=reported,
        intents=frame,
        tags=tags,
        pool=pool,
        data=Data(on_topics=on_topics, system=ONE),
        inference=inference,
        execution=Execution(progress=progress),
    )
    scores = _labelled_scores(scored, quality, reported)
    made, per_query, of_replicas, tagged_runs = None, pd.DataFrame(), pd.DataFrame(), (runs, frame, tags)
    # score() has given the same warnings already.
    with unheard():
        if n_replicas:
            made, of_replicas, per_query = intent_replicas(
                *tagged_runs,
                reported,
                perturbations,
                n_replicas=n_replicas,
                seed=seed,
                # Replicas are no sample of queries.
                method="percentile" if interval == UNSEEN else interval,
                level=level,
                progress=progress,
                reruns=reruns,
                retagged=retagged,
                pooled=pool == "collection",
            )
        first_ranks = first_covering_ranks(*tagged_runs, largest)
        tagged = tag_coverage(*tagged_runs, sorted({one.params.get("cutoff") for one in reported} - {None}), nil)
        pairs = (
            comparisons(scores.values, baseline=baseline, level=level, n_resamples=n_resamples, seed=seed)
            if scores.joint is None
            else scores.joint.comparisons(
                method=interval, baseline=baseline, level=level, n_resamples=n_resamples, seed=seed
            )
        )
        intervals = [scores.intervals, of_replicas] if n_replicas else [scores.intervals]
        if tagger_model is not None:
            intervals.append(
                gold_intervals(
                    *tagged_runs,
                    reported,
                    tagger_model,
                    scores.intervals,
                    n_replicas or N_REPLICAS,
                    level=level,
                    seed=seed,
                )
            )
    if made is not None:
        adds_errors = any(getattr(one, "adds_errors", False) for one in perturbations)
        is_rerun = not adds_errors and any(isinstance(one, (RerunSystems, RerunTagger)) for one in listed)
        _warn_of_noise(of_replicas, quality, adds_errors=adds_errors, is_rerun=is_rerun, is_modelled=is_modelled)
    return IntentEvaluation(
        scores.values,
        _adjacent(pd.concat(intervals, ignore_index=True)),
        scores.missing,
        comparisons=untested_pairs(pairs, scores.guessed),
        per_query=per_query,
        covered=first_ranks,
        tagging=tagged,
        intents=frame,
        tags=tags,
        replicas=made,
        quality=quality,
        pool=pool,
        joint=scores.joint,
        guessed=scores.guessed,
        notes=(
            *map(Note, missing_note(asked_queries["qid"], frame)),
            *scores.notes,
            *map(Note, tie_note(tagged)),
            *map(Note, rerun_notes(listed, n_replicas)),
        ),
    )


def _labelled_scores(scores: Scores, quality: TagQuality | None, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Scores with the measures that are guessed, by the measured precision of the tags if there are labels of tags."""
    if quality is None or not quality.n_tags:
        return scores
    notes = [note for note in scores.notes if note.kind != GUESSES_NOTE]
    if quality.micro.precision < MOSTLY:
        notes.insert(0, Note(f"{quality.micro.precision:.0%} of the tags are right: {GUESSES}", GUESSES_NOTE))
    return replace(scores, notes=tuple(notes), guessed=guessed_measures(measures, notes, judged=False))


def _checked_topics(topics: Any, systems: Any, baseline: str | None, system: str | None) -> pd.DataFrame:
    """The queries, if there are systems with the baseline among them."""
    if hasattr(systems, "__len__") and not len(systems):
        raise InputError("no systems; name at least one")
    require_baseline(systems, baseline, system)
    checked = topics_frame(topics)
    remedy = (
        "leave it out, and give .values of the result to vbterrier.compare with data=vbterrier.Data(queries=topics)"
    )
    require_unweighted(checked, "evaluate_intents", remedy)
    return checked


def _systems(
    systems: Any,
    baseline: str | None,
    work: Work,
    *,
    system: str | None,
    extra: bool,
    memory: int | str | None,
    n_jobs: int,
    client: Any,
    progress: bool,
) -> dict[str, Any]:
    """Pipelines and frames of runs by name; at least one, with the baseline among them.

    Runs in files are read down to the largest cutoff in bounded memory, or by several workers, if requested.
    """
    by_name = dict(system_items(named_systems(systems)))
    files = {name: source for name, source in by_name.items() if is_in_files(source)}
    if memory is None:
        # Tables with a header are read whole.
        files = {name: source for name, source in files.items() if not is_table(source)}
    in_chunks: dict[str, dict[str, pd.DataFrame]] = {}
    if files and not (memory is None and n_jobs == 1 and client is None):
        with workers(n_jobs, client) as team:
            in_chunks = read_first_ranks(files, work, memory, team, system=system, progress=progress)
    tables = {
        name: {name: source}
        if is_pipeline(source)
        else in_chunks.get(name) or system_tables(name, source, system, extra=extra)
        for name, source in by_name.items()
    }
    every = named_once(pair for runs in tables.values() for pair in runs.items())
    if not every:
        raise InputError("no systems; name at least one")
    system_pairs(list(every), baseline)
    return every


def _resolved_parts(
    intents: pd.DataFrame,
    tags: list[pd.DataFrame],
    perturbations: list[Any],
    reading: str,
    nil: str,
    *,
    is_modelled: bool,
) -> tuple[pd.DataFrame, list[pd.DataFrame], list[Any]]:
    """Intents and tags of single ids; of intents with parts that documents cover together, these and their tags."""
    if reading == SPLIT:
        return (
            split_parts(intents),
            tags,
            [
                Variants(list(map(split_parts, one.frames)), order=one.order, n_taggings=one.n_taggings)
                if isinstance(one, Variants)
                else one
                for one in perturbations
            ],
        )
    if nil or is_modelled:
        option = "nil=" if nil else "tagger_model="
        raise ParameterError(
            f"{option} needs the tags of single ids, and the intents are several ids at once (parts); ask for "
            "parts='split'"
        )
    if reading == TOGETHER:
        noisy = [one for one in perturbations if getattr(one, "target", "") == "tags"]
        if noisy:
            raise ParameterError(
                f"perturb: {noisy[0]} changes tags of single documents, which cover intents together; drop it, or ask "
                "for another parts="
            )
        return intents, tags, perturbations
    every = with_variants(intents, perturbations)[["qid", "entity_id", PARTS]]
    return intents.drop(columns=PARTS), [tags_of_parts(every, one, gain=reading) for one in tags], perturbations


def _adjacent(intervals: pd.DataFrame) -> pd.DataFrame:
    """Put the intervals of the same system and measure next to each other."""
    order = intervals.groupby(["name", "measure"], sort=False).ngroup().argsort(kind="stable")
    return intervals.iloc[order].reset_index(drop=True)


def _on_common(
    intents: pd.DataFrame, queries: pd.DataFrame, runs: dict[str, Run]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Run]]:
    """Restrict intents, queries and runs to the queries that all systems have."""
    common = set.intersection(*(set(run.topics) for run in runs.values()))
    if not common:
        raise InputError("no query is common to all systems")
    intents, queries = (
        frame[frame["qid"].astype(str).isin(common)].reset_index(drop=True) for frame in (intents, queries)
    )
    return intents, queries, {name: run.only(common) for name, run in runs.items()}


def _check(
    measures: Sequence[ir_measures.Measure],
    undefined: str,
    interval: str,
    pool: str,
    parts: str | None,
    n_replicas: int,
    *,
    is_modelled: bool,
) -> None:
    """Refuse options that do not exist, or not together, before any work is done."""
    whole("n_replicas", n_replicas, low=0)
    if parts is not None:
        choice("parts", parts, READINGS)
    if undefined not in ("raise", "skip"):
        raise ParameterError(f"undefined={excerpt(undefined)}: wanted 'raise' or 'skip'")
    choice("interval", interval, TOPIC_METHODS)
    if is_modelled and pool == "collection":
        raise ParameterError("tagger_model= estimates means over queries; ask for pool='query', or drop it")
    if n_replicas:
        choice("interval", interval, (UNSEEN, *REPLICA_METHODS))
    for measure in measures:
        if n_replicas and isinstance(measure, IntentMeasure):
            replica_statistic(measure)
    check_pool(pool, measures, interval)


def _warn_of_noise(
    intervals: pd.DataFrame, quality: TagQuality | None, *, adds_errors: bool, is_rerun: bool, is_modelled: bool
) -> None:
    """Warn of replicas that exclude the score, or that add errors to tags that have errors already."""
    is_gold = quality is not None and quality.micro.f1 == 1
    remedy = (
        "see the interval of the tagger model"
        if is_modelled
        else "its tags are correct, so that they simulate a tagger with these errors"
        if is_gold
        else "for an interval of the score under gold tags, label a random sample of documents and evaluate with the "
        "tagger_model of vbterrier.stats.fit_tagger"
    )
    outside = excludes_its_score(intervals)
    if outside.any():
        first = intervals[outside].iloc[0]
        reason = (
            "the first run, whose score it is, is an extreme one of those that were drawn; report the mean of the "
            "replicas, or ask for more runs (n_runs=)"
            if is_rerun
            else "the perturbations only add errors, so that these are intervals of scores under more errors, not of "
            f"the score; {remedy}"
        )
        warn(
            f"{int(outside.sum())} of {len(outside)} intervals of replicas exclude the score itself ({first['name']}, "
            f"{first['measure']}: {first['value']:.4f}, replicas {first['low']:.4f} to {first['high']:.4f}): {reason}"
        )
    elif quality is not None and not is_gold and adds_errors:
        warn(
            f"replicas add errors to tags that have errors already (precision {quality.micro.precision:.4f}, recall "
            f"{quality.micro.recall:.4f}), so that their intervals are those of scores under more errors; {remedy}"
        )


def at_cutoffs(measures: Any, cutoff: Sequence[int] | int) -> list[ir_measures.Measure]:
    """Measures at every cutoff; measures with a cutoff stay unchanged."""
    cutoffs = [cutoff] if isinstance(cutoff, (int, np.integer)) else list(cutoff)
    for one in cutoffs:
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one < 1:
            raise ParameterError(f"cutoff={excerpt(cutoff)}: wanted whole numbers of at least 1, as [1, 3, 5, 10]")
    if not cutoffs:
        raise ParameterError("cutoff=[]: wanted at least one cutoff")
    expanded = []
    for measure in measures_from(*(measures if isinstance(measures, (list, tuple)) else [measures])):
        takes = "cutoff" in measure.SUPPORTED_PARAMS and measure.params.get("cutoff") is None
        expanded += [measure @ int(one) for one in cutoffs] if takes else [measure]
    if not expanded:
        raise ParameterError("no measures; name at least one, as 'VB'")
    return list(dict.fromkeys(expanded))

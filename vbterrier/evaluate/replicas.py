"""Replicas of scores: perturbed intents, paraphrased queries, and systems that are run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, warn, whole
from vbterrier.evaluate.inputs import run_of_system
from vbterrier.evaluate.pooling import replica_statistic, shared_nil
from vbterrier.evaluate.retagging import RerunTagger
from vbterrier.execution.parallel import map_items
from vbterrier.frames.contracts import require
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.frames.ranking import places
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.intents.parts import PARTS
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked_items
from vbterrier.measures.intents import IntentMeasure
from vbterrier.measures.target import deepest
from vbterrier.stats.gold_scores import RetrievedPairs, gold_scores
from vbterrier.stats.matches import Matches
from vbterrier.stats.replicas import Replicas, left_out, moment_statistics, replicate
from vbterrier.stats.variants import ORDERS, Variants, with_variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.intents.coverage import Coverage
    from vbterrier.stats.tagger_model import TaggerModel


SEPARATOR = "|"
# Rankings of systems in replicas: run again for each wording of a query, or the same in all replicas.
RERUN, FIXED_LISTS = "run again", "fixed"
GOLD_TAGS = "gold tags (tagger model)"


def intent_replicas(
    runs: Mapping[str, Run],
    intents: pd.DataFrame,
    tags: pd.DataFrame,
    measures: Sequence[ir_measures.Measure],
    perturbations: Sequence[Any],
    *,
    n_replicas: int,
    seed: int,
    method: str,
    level: float,
    progress: bool,
    reruns: Mapping[str, Sequence[Run]],
    retagged: Sequence[pd.DataFrame] = (),
    pooled: bool,
) -> tuple[Replicas, pd.DataFrame, pd.DataFrame]:
    """Replicas of the measures over intents, their C frame (of pooled scores if ``pooled``), and a row for each query.

    Diversity measures, which ignore probabilities, have none. ``reruns``, ``retagged``: the runs of pipelines, or the
    tags, for each of the variants.
    """
    intent_measures = [measure for measure in measures if isinstance(measure, IntentMeasure)]
    if not intent_measures:
        raise ParameterError("replicas: no measure over intents among the measures; add ES or VB, or drop replicas")
    together = PARTS in intents.columns
    # Variants may have parts that were resolved in the tags.
    frame = with_variants(intents, perturbations).drop(columns=[] if together else PARTS, errors="ignore")
    candidates = Intents(frame, together=together)
    all_tags, cutoff, nil = Tags(tags), deepest(intent_measures), shared_nil(intent_measures)

    def run_matches(run: Run, own_tags: Tags = all_tags) -> Matches:
        return coverage_matches(cover(run, candidates, own_tags, cutoff, nil=nil), run)

    taggings = list(map(Tags, retagged)) or [all_tags]
    # The variants that runs and tags belong to: one for each of its frames and each tagging, then the given queries.
    n_frames = next((len(one.frames) for one in perturbations if getattr(one, "n_taggings", 1) > 1), 1)
    matches: dict[str, Matches | list[Matches]] = {}
    for name, run in runs.items():
        if name not in reruns and not len(retagged):
            matches[name] = run_matches(run)
            continue
        rankings = reruns.get(name, [run] * n_frames)
        of_rankings = {id(one): [run_matches(one, own_tags) for own_tags in taggings] for one in rankings}
        matches[name] = [*(one for each in rankings for one in of_rankings[id(each)]), run_matches(run)]
    statistics = list(dict.fromkeys(map(replica_statistic, intent_measures)))
    computed = list(dict.fromkeys([*statistics, *(moment_statistics(statistics) if pooled else [])]))
    made = replicate(frame, matches, perturbations, computed, n_replicas=n_replicas, seed=seed, progress=progress)
    every, made = made, made.only(statistics)
    resampled = method == "bca" and made.source == "intents"
    without = left_out(frame, matches, statistics) if resampled else None
    options = dict[str, Any](level=level, method=method)
    intervals = made.intervals(**options, left_out=without)
    if pooled:
        intervals = every.pool_queries(statistics).intervals(**options).assign(n_qids=len(made.topics))
    names = {str(replica_statistic(measure)): str(measure) for measure in intent_measures}
    tables = [intervals, made.frame(**options, left_out=without)]
    for at, table in enumerate(tables):
        lists = np.where(table["name"].isin(list(reruns)), RERUN, FIXED_LISTS)
        tables[at] = table.assign(measure=table["measure"].map(names), lists=lists)
    return made, tables[0], tables[1]


def coverage_matches(coverage: Coverage, run: Run) -> Matches:
    """The matches of a run, each with its document."""
    intents = coverage.intents
    topic = places(intents.topics, run.topics)[intents.topic[coverage.intent]]
    rows = run.top(coverage.depth).rows[topic, coverage.rank]
    nil = intents.of_entity(coverage.nil) if coverage.nil else None
    return Matches(
        coverage.intent,
        coverage.rank,
        coverage.weight,
        docno=run.docno.take(rows),
        known=coverage.known_document_counts,
        nil=nil,
        until=None if nil is None else coverage.first_tagged[intents.topic[nil]],
    )


def gold_intervals(
    runs: Mapping[str, Run],
    intents: pd.DataFrame,
    tags: pd.DataFrame,
    measures: Sequence[ir_measures.Measure],
    model: TaggerModel,
    points: pd.DataFrame,
    n_replicas: int,
    *,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """Estimates of mean scores under gold tags, with intervals, as C with the values of another C frame."""
    intent_measures = [measure for measure in measures if isinstance(measure, IntentMeasure)]
    graded = [str(measure) for measure in intent_measures if measure.params.get("gain") == "dcg"]
    if graded or shared_nil(intent_measures):
        raise ParameterError(
            f"tagger_model= estimates binary gains without NIL; evaluate "
            f"{examples(graded or map(str, intent_measures))} in a separate call"
        )
    if not intent_measures:
        raise ParameterError("tagger_model=: no measure over intents among the measures; add ES or VB")
    # The order of rows must not change the estimates.
    ordered = intents.assign(_qid=intents["qid"].astype(str), _entity=intents["entity_id"].astype(str))
    candidates = Intents(ordered.sort_values(["_qid", "_entity"], ignore_index=True))
    frames = {"tags": Tags(tags), "model": Tags(model.tags), "gold": Tags(model.gold)}
    statistics, depth, tables = (
        [replica_statistic(measure) for measure in intent_measures],
        deepest(intent_measures),
        [],
    )
    for name, run in runs.items():
        pairs = _retrieved_pairs(name, run, candidates, frames, set(model.labelled["docno"].unique()), depth)
        estimates, draws = gold_scores(pairs, statistics, n_replicas=n_replicas, seed=seed)
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1)
        numbers = {"low": low, "high": high, "mean": estimates.mean(axis=1)}
        tables.append(pd.DataFrame({"name": name, "measure": list(map(str, intent_measures)), **numbers}))
    key, n_qids = ["name", "measure"], len(candidates.topics)
    table = pd.concat(tables, ignore_index=True).merge(points[[*key, "value"]].drop_duplicates(key), on=key, how="left")
    return table.assign(level=level, method=GOLD_TAGS, n_qids=n_qids, n_resamples=n_replicas, seed=seed)


def _retrieved_pairs(
    name: str, run: Run, intents: Intents, frames: Mapping[str, Tags], labelled: set[str], depth: int | None
) -> RetrievedPairs:
    """Pairs of the retrieved documents of a run with the candidates of their queries."""
    top = run.top(depth)
    here = places(intents.topics, run.topics)
    rows = np.where(here[:, None] >= 0, top.rows[here], -1)
    count = np.count_nonzero(rows >= 0, axis=1)[intents.topic]
    intent = np.repeat(np.arange(len(intents.prob)), count)
    rank = np.arange(len(intent)) - np.repeat(np.cumsum(count) - count, count)
    docno = run.docno.take(rows[intents.topic[intent], rank])
    width = rows.shape[1] + 1
    covered_by = {}
    for kind, tags_of_kind in frames.items():
        covered = cover(run, intents, tags_of_kind, depth)
        covered_by[kind] = np.isin(intent * width + rank, covered.intent * width + covered.rank)
    texts = pd.Series(docno.text.to_pylist(), dtype=object)
    is_labelled = texts.isin(labelled).to_numpy()
    odd = np.flatnonzero(is_labelled & (covered_by["tags"] != covered_by["model"]))
    if len(odd):
        raise InputError(
            f"{name}: document {texts.iloc[odd[0]]!r} has other tags than those that the tagger model was fitted to; "
            "fit it to the tags of this evaluation: fit_tagger(tags, gold)"
        )
    return RetrievedPairs(
        intents.topics, intents.topic, intents.prob, intent, rank, covered_by["tags"], is_labelled, covered_by["gold"]
    )


@dataclass(frozen=True)
class Paraphrases:
    """Perturbation by paraphrases: each replica uses the query or one of its paraphrases (Ding 2025, Algorithm 1).

    The candidates are those of that wording, and so are the rankings of systems that are pipelines: each is run once
    for every wording of every query. Runs that are given as frames or files stay the same in all replicas.

    Parameters
    ----------
    source
        The column of the topics with the paraphrases: a list of texts, or one text with ``|`` between them; or a
        transformer that returns one row per wording (qid, query; other columns, such as constraints, replace those of
        the topics), such as :class:`vbterrier.intents.RelaxedQueries`.
    order
        ``"random"``, or ``"turn"``: replica b uses wording ``b mod n``.

    Examples
    --------
    >>> Paraphrases("suggestions")
    Paraphrases(source='suggestions', order='random')
    """

    source: Any = "paraphrases"
    order: str = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) and not is_pipeline(self.source):
            raise ParameterError(f"source={self.source!r}: wanted a column of the topics, or a transformer")
        choice("order", self.order, ORDERS)

    def wordings(
        self, pipeline: Any, intents: pd.DataFrame, topics: pd.DataFrame, *, progress: bool
    ) -> tuple[Variants, list[pd.DataFrame]]:
        """Candidates of the queries and of each wording, and the topics of each; given intents are those of all."""
        worded = self._wording_rows(topics)
        number = worded.groupby("qid", sort=False).cumcount()
        rounds = [worded[number == n] for n in range(int(number.max()) + 1)]
        others = [name for name in topics.columns if name not in worded.columns]
        inputs = [topics, *(topics[["qid", *others]].merge(some, on="qid") for some in rounds)]
        frames = [intents]
        for some in tracked_items(inputs[1:], "linking paraphrases", shown=progress):
            of_query = intents[intents["qid"].isin(some["qid"].unique())]
            frames.append(pipeline.transform(some) if is_pipeline(pipeline) else of_query)
        nonempty = [place for place, frame in enumerate(frames) if len(frame)]
        made = Variants([frames[place] for place in nonempty], order=self.order)
        _warn_without_candidates(self, inputs[1:], frames[1:])
        return made, [inputs[place] for place in nonempty]

    def _wording_rows(self, topics: pd.DataFrame) -> pd.DataFrame:
        """One row per wording, without empty and duplicated texts and the query itself."""
        if is_pipeline(self.source):
            worded = self.source.transform(topics)
            require(worded, ("qid", "query"), "paraphrases")
            unknown = worded["qid"][~worded["qid"].isin(topics["qid"].unique())]
            if len(unknown):
                raise InputError(
                    f"paraphrases: no topic has qid {examples(unknown)}; give each paraphrase the qid of its query"
                )
        else:
            require(topics, ("qid", "query", self.source), "topics")
            lists = [_list(value, self.source) for value in topics[self.source]]
            worded = pd.DataFrame({"qid": topics["qid"], "query": lists}).explode("query", ignore_index=True)
        columns = ["qid", "query", *(name for name in topics.columns if name in worded.columns.drop(["qid", "query"]))]
        worded = worded[columns]
        worded = worded[worded["query"].notna() & worded["query"].astype(str).str.strip().ne("")]
        every = pd.concat([topics[columns], worded]).map(lambda one: one if isinstance(one, str) else repr(one))
        original = every.duplicated().iloc[len(topics) :].to_numpy()
        distinct: pd.DataFrame = worded[~original]
        if not len(distinct):
            raise InputError(f"{self}: no query has a paraphrase; add some, or leave the perturbation out")
        return distinct


@dataclass(frozen=True)
class RerunSystems:
    """Perturbation that runs systems again, for systems that answer differently each time, such as language models.

    Each system that is a pipeline is run ``n_runs`` times more; replica b has the rankings of run ``b mod (n_runs +
    1)``. Candidates and tags of documents stay the same: taggers are run once (:class:`RerunTagger` runs them again,
    :class:`vbterrier.stats.TagConfusion` draws their errors). The interval of replicas is that of the scores of one run
    on these queries.

    Parameters
    ----------
    n_runs
        Number of runs beside the first. Topics have two more columns, ``replica`` and ``seed`` (a separate number for
        each query and run), which should be the only source of randomness.

    Examples
    --------
    >>> RerunSystems(4)
    RerunSystems(n_runs=4)
    """

    n_runs: int = 4

    def __post_init__(self) -> None:
        whole("n_runs", self.n_runs)

    def wordings(self, intents: pd.DataFrame, topics: pd.DataFrame, seed: int) -> tuple[Variants, list[pd.DataFrame]]:
        """The same candidates for each run, and the topics of each."""
        inputs = [topics, *_replica_topics(topics, self.n_runs, seed, "systems")]
        return Variants([intents] * len(inputs), order="turn"), inputs


def _replica_topics(topics: pd.DataFrame, n: int, seed: int, what: str) -> list[pd.DataFrame]:
    """The topics of each of n runs, with columns replica and seed."""
    seeds = [stream(seed, qid, what).integers(2**31, size=n) for qid in topics["qid"].astype(str)]
    return [topics.assign(replica=b, seed=[int(of_query[b]) for of_query in seeds]) for b in range(n)]


@dataclass(frozen=True)
class RerunPipeline:
    """Perturbation that reruns a random stage, such as a sampled language model, for every replica.

    Parameters
    ----------
    transformer
        From topics to intents; ``None`` for the pipeline of the intents. Topics have two more columns, ``replica`` and
        ``seed`` (a separate number for each query and replica), which should be the only source of randomness.

    Examples
    --------
    >>> RerunPipeline()
    RerunPipeline(transformer=None)
    """

    transformer: Any = None

    def __post_init__(self) -> None:
        if self.transformer is not None and not is_pipeline(self.transformer):
            raise ParameterError(
                f"RerunPipeline({self.transformer!r}): wanted a transformer from topics to intents, or None"
            )

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """Candidates of each replica."""
        pipeline = self.transformer if self.transformer is not None else pipeline
        inputs = _replica_topics(topics, n_replicas, seed, "rerun")
        frames = [pipeline.transform(some) for some in tracked_items(inputs, "running again", shown=progress)]
        made = Variants(frames, order="turn")
        _warn_without_candidates(self, inputs, frames)
        return made


def resolved_perturbations(
    perturbations: Any,
    pipeline: Any,
    intents: pd.DataFrame,
    topics: pd.DataFrame,
    systems: Mapping[str, Any],
    n_replicas: int,
    seed: int,
    *,
    progress: bool,
) -> tuple[list[Any], list[pd.DataFrame]]:
    """A list of perturbations, with the candidates of paraphrases and reruns generated, and the topics of wordings."""
    made: list[Any] = []
    wordings: list[pd.DataFrame] = []
    reruns = any(map(is_pipeline, systems.values()))
    listed = perturbations if isinstance(perturbations, (list, tuple)) else [perturbations]
    taggers, others = _replacing(listed, reruns=reruns)
    for perturbation in listed:
        worded = isinstance(perturbation, Paraphrases)
        generates = worded or (isinstance(perturbation, RerunPipeline) and perturbation.transformer is None)
        if generates and not is_pipeline(pipeline) and not (worded and reruns):
            raise ParameterError(
                f"{perturbation} generates new candidates, but intents= is not a pipeline; give the pipeline that "
                "generates intents, or Variants of frames" + ", or systems that are pipelines" * worded
            )
        if isinstance(perturbation, RerunTagger):
            # With wordings or runs, a replica has one of these and one of the taggings.
            if not others:
                made.append(perturbation.variants(intents))
        elif isinstance(perturbation, RerunSystems):
            if not reruns:
                raise ParameterError(f"{perturbation}: no system is a pipeline that can be run again; give pipelines")
            variants, wordings = perturbation.wordings(intents, topics, seed)
            made.append(variants)
        elif isinstance(perturbation, Paraphrases):
            variants, wordings = perturbation.wordings(pipeline, intents, topics, progress=progress)
            made.append(variants)
        elif isinstance(perturbation, RerunPipeline):
            made.append(perturbation.variants(pipeline, topics, n_replicas, seed, progress=progress))
        else:
            made.append(perturbation)
    if taggers and others:
        n_taggings = taggers[0].n_runs + 1
        made = [one.tagged(n_taggings) if isinstance(one, Variants) else one for one in made]
    return made, wordings


def _replacing(listed: Sequence[Any], *, reruns: bool) -> tuple[list[RerunTagger], list[Any]]:
    """The perturbation that runs the tagger again, and the one that replaces wordings, candidates or rankings."""
    taggers = [one for one in listed if isinstance(one, RerunTagger)]
    others = [one for one in listed if isinstance(one, (Paraphrases, RerunPipeline, RerunSystems, Variants))]
    is_linked = any(isinstance(one, (Paraphrases, RerunSystems)) for one in others)
    if len(taggers) > 1 or (len(others) > 1 and ((reruns and is_linked) or taggers)):
        one, other = (taggers if len(taggers) > 1 else others)[:2]
        raise ParameterError(
            f"perturb: {one} and {other} both replace the candidates, so that the rankings or tags of a replica would "
            "not belong to them; keep one, for example with all wordings in one column"
        )
    return taggers, others


def rerun_notes(perturbations: Sequence[Any], n_replicas: int) -> Iterator[str]:
    """Yield the number of distinct runs of systems or taggers if replicas repeat them."""
    for one in perturbations:
        if isinstance(one, (RerunTagger, RerunSystems)) and one.n_runs + 1 < n_replicas:
            what = "taggings" if isinstance(one, RerunTagger) else "runs of the systems"
            yield (
                f"{one}: {n_replicas} replicas hold {one.n_runs + 1} {what}, and their intervals are those of so few; "
                f"{type(one).__name__}({n_replicas - 1}) makes one for each replica"
            )


def runs_of_systems(
    systems: Mapping[str, Any],
    topics: pd.DataFrame,
    inputs: pd.DataFrame,
    duplicates: str = "error",
    *,
    n_jobs: int,
    progress: bool,
) -> dict[str, Run]:
    """The run of each system on the queries, pipelines in several processes; see :func:`run_of_system`."""
    pipelines = {name: system for name, system in systems.items() if is_pipeline(system)}
    results = _results(pipelines, [topics], n_jobs=n_jobs, progress=progress)
    return {
        name: run_of_system(name, results[name][0] if name in results else system, topics, inputs, duplicates)
        for name, system in systems.items()
    }


def runs_of_wordings(
    systems: Mapping[str, Any],
    first: Mapping[str, Run],
    wordings: Sequence[pd.DataFrame],
    duplicates: str = "error",
    *,
    n_jobs: int,
    progress: bool,
) -> dict[str, list[Run]]:
    """Runs of each pipeline, one for each frame of wordings; ``first`` are those of the queries, the first frame."""
    pipelines = {name: system for name, system in systems.items() if is_pipeline(system)}
    if not wordings or not pipelines:
        return {}
    results = _results(pipelines, wordings[1:], n_jobs=n_jobs, progress=progress)
    by_name = {}
    for name in pipelines:
        runs = [
            run_of_system(f"{name}, wording {number}", result, some, some, duplicates)
            for number, (result, some) in enumerate(zip(results[name], wordings[1:], strict=True), 1)
        ]
        pairs = zip(runs, wordings[1:], strict=True)
        empty = [qid for run, some in pairs for qid in some["qid"].astype(str) if qid not in run.topics]
        if empty:
            warn(
                f"run {name!r}: nothing retrieved for {len(empty)} of {sum(map(len, wordings[1:]))} wordings of "
                f"queries ({examples(dict.fromkeys(empty))}), which score as empty rankings"
            )
        by_name[name] = [first[name], *runs]
    fixed = [name for name in systems if name not in pipelines]
    if fixed:
        warn(
            f"replicas compare systems that are run again for each wording ({examples(pipelines)}) with lists that "
            f"stay fixed ({examples(fixed)}); give pipelines for all systems, or lists for all"
        )
    return by_name


def _results(
    pipelines: Mapping[str, Any], inputs: Sequence[pd.DataFrame], *, n_jobs: int, progress: bool
) -> dict[str, list[Any]]:
    """The results of each pipeline for each frame of topics."""
    if n_jobs != 1:
        from joblib.externals.loky.backend.reduction import dumps

        try:
            for name in pipelines:
                dumps(pipelines[name])
        except Exception as error:
            raise ParameterError(
                f"n_jobs={n_jobs}: system {name!r} cannot be sent to another process ({error}); use n_jobs=1"
            ) from error
    items = [(pipeline, some) for pipeline in pipelines.values() for some in inputs]
    shown = progress and len(items) > 1
    results = list(map_items(_result, items, n_jobs=n_jobs, progress=shown, description="running systems"))
    return {name: results[at * len(inputs) : (at + 1) * len(inputs)] for at, name in enumerate(pipelines)}


def _result(item: tuple[Any, pd.DataFrame]) -> Any:
    pipeline, topics = item
    return pipeline.transform(topics)


def _list(value: Any, column: str) -> list[str]:
    if isinstance(value, str):
        return [text.strip() for text in value.split(SEPARATOR)]
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    if pd.isna(value):
        return []
    raise InputError(
        f"topics column {column!r} contains {value!r}; wanted a list of texts, or a text with {SEPARATOR!r}"
    )


def _warn_without_candidates(perturbation: Any, inputs: Sequence[pd.DataFrame], frames: Sequence[pd.DataFrame]) -> None:
    """Warn of wordings and reruns without candidates, whose replicas use the candidates of other rounds."""
    without = [
        some["qid"][~some["qid"].isin(with_candidates["qid"].unique())]
        for some, with_candidates in zip(inputs, frames, strict=True)
    ]
    n = sum(map(len, without))
    if n:
        warn(
            f"{perturbation}: no candidates for {n} of {sum(map(len, inputs))} runs of a query "
            f"({examples(pd.concat(without).unique())}); these replicas use the candidates of its other runs"
        )

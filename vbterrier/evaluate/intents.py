"""VB-Scores of systems with intervals over queries and replicas."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, choice, warn, whole
from vbterrier.evaluate.inputs import TAGGED, intents_of, named_runs, run_of_system, tags_of, topics_of
from vbterrier.evaluate.replicas import names_of, nil_of, replicas_of, resolved
from vbterrier.evaluate.scores import TOPICS, Scores, score
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.notebook import Panel
from vbterrier.intents.coverage import Intents, Tags, cover, oracle_success
from vbterrier.intents.tagging_quality import TagQuality, tag_quality
from vbterrier.measures.artifact import IntentSet
from vbterrier.measures.base import deepest
from vbterrier.measures.target import require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.stats.comparisons import comparisons, pairs_of
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.replicas import REPLICA_METHODS, excludes_its_score
from vbterrier.stats.topic_intervals import N_RESAMPLES, TOPIC_METHODS, check_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.notebook import Figures
    from vbterrier.frames.ranking import Run
    from vbterrier.stats.replicas import Replicas


MEASURES = ("ES", "VB(alpha=0.5)", "VB", "TopIntent")
CUTOFFS = (1, 3, 5, 10)
# Number of distinct marks in figures.
_MARKS = 7


def first_covering_ranks(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoff: int | None
) -> pd.DataFrame:
    """Probability and first covered rank of every intent, by system and query.

    Returns
    -------
    pandas.DataFrame
        name, qid, entity_id, prob, place (by probability, from 1; ties share the best), first_rank (rank of the first
        document that covers the intent, from 1; missing if no document up to the cutoff covers it).
    """
    candidates, known = Intents(intents), Tags(tags)
    of_intents = pd.DataFrame(
        {"qid": intents["qid"].to_numpy(), "entity_id": intents["entity_id"].to_numpy(), "prob": candidates.prob}
    )
    by_topic = of_intents.groupby(candidates.topic)["prob"]
    of_intents["place"] = by_topic.rank(ascending=False, method="min").astype("int64")
    tables = []
    for name, run in runs.items():
        found = cover(run, candidates, known, cutoff)
        first = np.full(len(of_intents), np.inf)
        np.minimum.at(first, found.intent, found.rank + 1.0)
        ranks = pd.array(np.where(np.isfinite(first), first, 0).astype("int64"), dtype="Int64")
        ranks[~np.isfinite(first)] = pd.NA
        tables.append(of_intents.assign(name=name, first_rank=ranks))
    return pd.concat(tables, ignore_index=True)[["name", "qid", "entity_id", "prob", "place", "first_rank"]]


def tag_coverage(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoffs: Sequence[int], nil: str
) -> pd.DataFrame:
    """Share of tagged documents, and the best possible ES under the same tags.

    Returns
    -------
    pandas.DataFrame
        name, cutoff, tagged (mean share of documents up to the cutoff with any tag), ES, oracle_ES (mean over queries
        of the best ranking under the same tags: an upper bound for every system).
    """
    candidates, known = Intents(intents), Tags(tags)
    rows = []
    for cutoff in cutoffs:
        oracle = float(oracle_success(intents, tags, cutoff, nil=nil)["success"].mean())
        for name, run in runs.items():
            found = cover(run, candidates, known, cutoff, nil=nil)
            success = found.success(found.gain(cutoff, "binary"))
            rows.append((name, cutoff, float(found.tagged.mean()), float(success.mean()), oracle))
    return pd.DataFrame(rows, columns=["name", "cutoff", "tagged", "ES", "oracle_ES"])


@dataclass(frozen=True, eq=False, repr=False)
class IntentEvaluation(Scores):
    """Result of :func:`evaluate_intents`.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value.
    intervals
        The C frame: name, measure, value, low, high, level, method, n_qids, n_resamples, seed. ``topics (...)``
        intervals refer to queries from the same population, ``replicas (...)`` intervals to perturbed candidates and
        tags of these queries. The column ``mean`` is the mean of the replicas, the centre of their interval.
    comparisons
        The P frame: all pairs of systems (or all systems with the baseline), topic by topic.
    per_query
        With replicas: name, qid, measure, value, mean, std, low, high, level, method; otherwise empty.
    covered
        name, qid, entity_id, prob, place (by probability, from 1; ties share the best), first_rank (rank of the
        first document that covers the intent, from 1; missing if no document up to the largest cutoff does).
    tagging
        name, cutoff, tagged (mean share of documents up to the cutoff with any tag), ES, oracle_ES (of the best ranking
        under the same tags, an upper bound for every system).
    missing
        name, n_qids, n_missing: the number of queries for which a system retrieved nothing.
    intents, tags
        The frames used for scoring.
    replicas
        The scores of every replica, or ``None``.
    quality
        Precision and recall of the tags on a labelled sample, or ``None``.
    """

    comparisons: pd.DataFrame
    per_query: pd.DataFrame
    covered: pd.DataFrame
    tagging: pd.DataFrame
    intents: pd.DataFrame
    tags: pd.DataFrame
    replicas: Replicas | None = None
    quality: TagQuality | None = None

    def _panels(self) -> Iterator[Panel]:
        yield from super()._panels()
        if len(self.comparisons):
            yield Panel("Differences", self.comparisons, value="diff", by="measure", rule=0, heads=2)
        yield Panel("Tag coverage and upper bounds", self.tagging)

    def _figures(self) -> Figures:
        pairs = {"differences": lambda: {"pairs": self.comparisons}} if len(self.comparisons) else {}
        coverage = {"coverage_map": lambda: {"intents": self.intents, "tags": self.tags}}
        # Draw one kind of interval if there are too many marks for both.
        marks, drawn = self.intervals.drop_duplicates(["measure", "method"]), self.intervals
        if len(marks) > _MARKS:
            drawn = drawn[drawn["method"] == marks["method"].iloc[0]]
        return {**super()._figures(), "forest": lambda: {"intervals": drawn}, **pairs, **coverage}


def evaluate_intents(
    systems: Any,
    topics: Any,
    *,
    intents: Any,
    tagger: Any = None,
    measures: Sequence[str | ir_measures.Measure] = MEASURES,
    cutoff: Sequence[int] | int = CUTOFFS,
    n_replicas: int = 0,
    perturb: Sequence[Any] = (Dirichlet(),),
    baseline: str | None = None,
    gold: Any = None,
    on_topics: str = "same",
    undefined: str = "raise",
    interval: str = "percentile",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    progress: bool = False,
) -> IntentEvaluation:
    """Score systems by how well they cover the intents of ambiguous queries, without relevance labels.

    Generate (or take) candidate intents of every query, tag the documents of all systems with one tagger, and compute
    each measure at each cutoff, with intervals over queries and, from replicas with perturbed candidates and tags (Ding
    2025, Algorithm 1), over the uncertainty of candidates and tags.

    Parameters
    ----------
    systems
        Pipelines, frames (qid, docno, score) or paths of TREC runs, by name; or paths, named after their files.
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
        Measures of this package, or diversity measures such as ``"alpha_nDCG"`` on the same tags. A measure without a
        cutoff is computed at every ``cutoff``.
    cutoff
        One or several rank cutoffs.
    n_replicas
        Number of replicas; 0 for none.
    perturb
        Perturbations of the replicas, applied in this order: those of :mod:`vbterrier.stats`,
        :class:`vbterrier.evaluate.Paraphrases`, :class:`vbterrier.evaluate.RerunPipeline`.
    baseline
        The system that all other systems are compared with; ``None`` for all pairs.
    gold
        A labelled sample (docno, entity_id), to report precision and recall of the tags.
    on_topics
        ``"same"`` raises if systems differ in their queries, ``"all"`` scores a missing query as an empty ranking,
        ``"common"`` keeps the queries that all systems have.
    undefined
        Queries without candidates: ``"raise"``, or ``"skip"`` to leave them out with a warning.
    interval, level, n_resamples
        Intervals over queries: ``"percentile"``, ``"bca"`` or ``"normal"``; the same method applies to replicas.
    seed
        Seed of replicas and resamples.
    progress
        Show a progress bar.

    Returns
    -------
    IntentEvaluation

    Raises
    ------
    InputError
        Frames that cannot be evaluated; systems with different taggers; queries without candidates.
    ParameterError
        Invalid options.

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["Jordan achievements"]})
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0], "entity_id": "athlete"})
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # no interval for a single query
    ...     found = evaluate_intents({"literal": run}, topics, intents=intents, measures=["ES", "VB"], cutoff=[10])
    >>> found.means().round(3).loc["literal"].to_dict()
    {'ES@10': 0.8, 'VB@10': 0.4}
    """
    asked = at_cutoffs(measures, cutoffs_of(cutoff))
    if undefined not in ("raise", "skip"):
        raise ParameterError(f"undefined={undefined!r}: wanted 'raise' or 'skip'")
    for name, value, legal in (("on_topics", on_topics, TOPICS), ("interval", interval, TOPIC_METHODS)):
        choice(name, value, legal)
    if whole("n_replicas", n_replicas, low=0):
        choice("interval", interval, REPLICA_METHODS)
    check_level(level)
    nil, largest = nil_of(asked), deepest(asked)
    named_systems = dict(systems_of(named_runs(systems)))
    if not named_systems:
        raise InputError("no systems; name at least one")
    pairs_of(list(named_systems), baseline)
    asked_queries = topics_of(topics)
    if isinstance(intents, IntentSet):
        tagger = intents.tags() if tagger is None else tagger
        intents = intents.intents()
    pipeline = intents
    frame, queries = intents_of(pipeline, asked_queries, undefined)
    runs = {name: run_of_system(name, system, queries, asked_queries) for name, system in named_systems.items()}
    frame, queries, runs = _on_common(frame, queries, runs) if on_topics == "common" else (frame, queries, runs)
    if tagger is None:
        require_one_tagger(runs.values())
    perturbations = resolved(perturb, pipeline, queries, n_replicas, seed, progress=progress) if n_replicas else []
    tags = tags_of(tagger, runs, largest)
    scores = score(
        {name: run.frame.drop(columns=TAGGED, errors="ignore") for name, run in runs.items()},
        measures=asked,
        intents=frame,
        tags=tags,
        on_topics=on_topics,
        interval=interval,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
        progress=progress,
    )
    made, per_query, intervals = None, pd.DataFrame(), [scores.intervals]
    with warnings.catch_warnings():
        # score() has given the same warnings already.
        warnings.simplefilter("ignore", DegenerateWarning)
        if n_replicas:
            made, without = replicas_of(
                runs,
                frame,
                tags,
                asked,
                perturbations,
                n_replicas=n_replicas,
                seed=seed,
                method=interval,
                progress=progress,
            )
            names, asked_for = names_of(asked), dict[str, Any](level=level, method=interval, left_out=without)
            frames = (made.intervals(**asked_for), made.frame(**asked_for))
            of_replicas, per_query = (table.assign(measure=table["measure"].map(names)) for table in frames)
            intervals.append(of_replicas)
        first_ranks = first_covering_ranks(runs, frame, tags, largest)
        cutoffs = sorted({found for measure in asked if (found := measure.params.get("cutoff"))})
        tagged = tag_coverage(runs, frame, tags, cutoffs, nil)
        pairs = comparisons(scores.values, baseline=baseline, level=level, n_resamples=n_resamples, seed=seed)
    if made is not None and (outside := excludes_its_score(of_replicas)).any():
        first = of_replicas[outside].iloc[0]
        warn(
            f"{int(outside.sum())} of {len(outside)} intervals of replicas exclude the score itself ({first['name']}, "
            f"{first['measure']}: {first['value']:.4f}, replicas {first['low']:.4f} to {first['high']:.4f}): the "
            "perturbations only add errors, so that these are intervals of scores under more errors, not of the score"
        )
    # Intervals of the same system and measure are adjacent.
    both = pd.concat(intervals, ignore_index=True)
    order = both.groupby(["name", "measure"], sort=False).ngroup().argsort(kind="stable")
    return IntentEvaluation(
        values=scores.values,
        intervals=both.iloc[order].reset_index(drop=True),
        comparisons=pairs,
        per_query=per_query,
        covered=first_ranks,
        tagging=tagged,
        missing=scores.missing,
        intents=frame,
        tags=tags,
        replicas=made,
        quality=None if gold is None else tag_quality(tags, gold),
    )


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


def cutoffs_of(cutoff: Sequence[int] | int) -> list[int]:
    """Distinct cutoffs in the given order."""
    listed = [cutoff] if isinstance(cutoff, (int, np.integer)) else list(cutoff)
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one < 1:
            raise ParameterError(f"cutoff={cutoff!r}: wanted whole numbers of at least 1, as [1, 3, 5, 10]")
    if not listed:
        raise ParameterError("cutoff=[]: wanted at least one cutoff")
    return list(dict.fromkeys(map(int, listed)))


def at_cutoffs(
    measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure], cutoffs: Sequence[int]
) -> list[ir_measures.Measure]:
    """Measures at every cutoff; measures with a cutoff stay unchanged."""
    listed = measures_from(*(measures if isinstance(measures, (list, tuple)) else [measures]))
    if not listed:
        raise ParameterError("no measures; name at least one, as 'VB'")
    asked = []
    for measure in listed:
        takes = "cutoff" in measure.SUPPORTED_PARAMS and measure.params.get("cutoff") is None
        asked += [measure @ cutoff for cutoff in cutoffs] if takes else [measure]
    return list(dict.fromkeys(asked))

"""VB-Scores with intervals from queries and systems."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.inputs import TAGGED, intents_of, named_runs, run_of_system, tags_of, topics_of
from vbterrier.evaluate.replicas import names_of, nil_of, replicas_of, resolved
from vbterrier.evaluate.scores import TOPICS, Scores, score
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.notebook import Panel
from vbterrier.frames.parameters import choice, whole
from vbterrier.intents.coverage import Intents, Tags, cover, oracle_success
from vbterrier.intents.tagging_quality import TagQuality, tag_quality
from vbterrier.measures.artifact import IntentSet
from vbterrier.measures.base import deepest
from vbterrier.measures.target import require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.stats.comparisons import comparisons, pairs_of
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.replica_limits import REPLICA_METHODS
from vbterrier.stats.topic_intervals import N_RESAMPLES, TOPIC_METHODS, check_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.notebook import Figures
    from vbterrier.frames.ranking import Run
    from vbterrier.stats.replicas import Replicas


def covered(runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, depth: int | None) -> pd.DataFrame:
    """Every intent of every query by system: its probability, its place by it, and the rank that covers it first.

    Returns
    -------
    pandas.DataFrame
        name, qid, entity_id, prob, place (from 1, equal ones share the best), first_rank (from 1; missing where none of
        the first ``depth`` documents is about it).
    """
    candidates, known = Intents(intents), Tags(tags)
    of_intents = pd.DataFrame(
        {"qid": intents["qid"].to_numpy(), "entity_id": intents["entity_id"].to_numpy(), "prob": candidates.prob}
    )
    by_topic = of_intents.groupby(candidates.topic)["prob"]
    of_intents["place"] = by_topic.rank(ascending=False, method="min").astype("int64")
    tables = []
    for name, run in runs.items():
        found = cover(run, candidates, known, depth)
        first = np.full(len(of_intents), np.inf)
        np.minimum.at(first, found.intent, found.rank + 1.0)
        ranks = pd.array(np.where(np.isfinite(first), first, 0).astype("int64"), dtype="Int64")
        ranks[~np.isfinite(first)] = pd.NA
        tables.append(of_intents.assign(name=name, first_rank=ranks))
    return pd.concat(tables, ignore_index=True)[["name", "qid", "entity_id", "prob", "place", "first_rank"]]


def tagging(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoffs: Sequence[int], nil: str
) -> pd.DataFrame:
    """How much of a score the tags leave to each system.

    Returns
    -------
    pandas.DataFrame
        name, cutoff, tagged (mean share of documents up to the cutoff with any tag), ES, oracle_ES (mean over queries
        of the best ranking under the same tags: an upper bound for every system).
    """
    candidates, known = Intents(intents), Tags(tags)
    rows = []
    for k in cutoffs:
        oracle = float(oracle_success(intents, tags, k, nil=nil)["success"].mean())
        for name, run in runs.items():
            found = cover(run, candidates, known, k, nil=nil)
            success = found.success(found.gain(k, "binary"))
            rows.append((name, k, float(found.tagged.mean()), float(success.mean()), oracle))
    return pd.DataFrame(rows, columns=["name", "cutoff", "tagged", "ES", "oracle_ES"])


MEASURES = ("ES", "VB(alpha=0.5)", "VB", "TopIntent")
CUTOFFS = (1, 3, 5, 10)
# Marks that figures tell apart.
_MARKS = 7


@dataclass(frozen=True, eq=False, repr=False)
class IntentEvaluation(Scores):
    """What :func:`evaluate_intents` found.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value.
    intervals
        The C frame: name, measure, value, low, high, level, method, n_qids, n_resamples, seed. ``topics (...)`` is
        about other queries of the kind, ``replicas (...)`` about other candidates and tags of these queries; such rows
        have a column ``mean`` too, that of the replicas, around which the interval lies.
    comparisons
        The P frame: every two systems (or all with the baseline), topic by topic.
    per_query
        With replicas: name, qid, measure, value, mean, std, low, high, level, method; otherwise empty.
    covered
        name, qid, entity_id, prob, place (by probability, from 1; ties share the best), first_rank (of the first
        document about the intent, from 1; missing where none of the deepest k is).
    tagging
        name, cutoff, tagged (mean share of documents up to the cutoff with any tag), ES, oracle_ES (of the best ranking
        under the same tags, an upper bound for every system).
    missing
        name, n_qids, n_missing: queries that a system retrieved nothing for.
    intents, tags
        The frames that systems were scored with.
    replicas
        The scores of every replica, or ``None``.
    quality
        With a labelled sample: precision and recall of the tags, or ``None``.
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
        yield Panel("What the tags leave to a system", self.tagging)

    def _figures(self) -> Figures:
        pairs = {"differences": lambda: {"pairs": self.comparisons}} if len(self.comparisons) else {}
        seen = {"coverage_map": lambda: {"intents": self.intents, "tags": self.tags}}
        # One kind of interval, where both would be more marks than can be told apart.
        marks = self.intervals.drop_duplicates(["measure", "method"])
        few = (
            self.intervals[self.intervals["method"] == marks["method"].iloc[0]]
            if len(marks) > _MARKS
            else self.intervals
        )
        return {**super()._figures(), "forest": lambda: {"intervals": few}, **pairs, **seen}


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
    """Score systems by how well they serve all that ambiguous queries may mean, without relevance labels.

    Candidate intents are made (or taken) for every query, the first documents of all systems are tagged once, by one
    tagger, and each measure is computed at each cutoff, with intervals over queries and, from replicas under perturbed
    candidates and tags (Ding 2025, Algorithm 1), over what is uncertain about these very queries.

    Parameters
    ----------
    systems
        Pipelines, frames (qid, docno, score) or paths of TREC runs, by name; or paths, named after their files.
    topics
        Columns qid and query; a frame or a path.
    intents
        A pipeline of topics to intents, as ``CandidateIntents(kb) >> Dedup() >> Truncate(mass=0.95)``; or a frame (qid,
        entity_id, prob), a registered name, a path or an :class:`vbterrier.IntentSet`.
    tagger
        What tells the entities of documents: :class:`vbterrier.TagEntities`, or anything it takes (a linker, a
        function, ``"docno"`` where documents are entities); a T frame (docno, entity_id[, weight, qid]), a registered
        name or a path; ``None`` for the column ``entity_id`` of the systems' results, or the tags of the IntentSet.
    measures
        Names or objects, of this package or diversity measures such as ``"alpha_nDCG"`` on the same tags. Those without
        a cutoff are computed at every ``cutoff``.
    cutoff
        Cutoffs.
    n_replicas
        B, how many replicas; 0 for none.
    perturb
        What changes between replicas: perturbations of :mod:`vbterrier.stats` in the order they apply,
        :class:`vbterrier.evaluate.Paraphrases`, :class:`vbterrier.evaluate.RerunPipeline`.
    baseline
        The system that others are compared with; all pairs otherwise.
    gold
        A labelled sample (docno, entity_id): precision and recall of the tags are told beside the scores.
    on_topics
        ``"same"`` refuses systems that retrieve something for different queries, ``"all"`` scores what is missing as an
        empty ranking, ``"common"`` takes the queries for which every system has something.
    undefined
        Queries without candidates: ``"raise"``, or ``"skip"`` to leave them out with a warning.
    interval, level, n_resamples
        Of the intervals over queries: ``"percentile"``, ``"bca"`` or ``"normal"``; that of replicas has the same kind.
    seed
        Decides replicas and resamples.
    progress
        Show progress.

    Returns
    -------
    IntentEvaluation

    Raises
    ------
    InputError
        Frames that cannot be evaluated; systems tagged in different ways; queries without candidates.
    ParameterError
        Options that do not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["Jordan achievements"]})
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0], "entity_id": "athlete"})
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # one query says nothing of others
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
    nil, depth = nil_of(asked), deepest(asked)
    named_systems = dict(systems_of(named_runs(systems)))
    if not named_systems:
        raise InputError("no systems; name at least one")
    pairs_of(list(named_systems), baseline)
    everything = topics_of(topics)
    if isinstance(intents, IntentSet):
        tagger = intents.tags() if tagger is None else tagger
        intents = intents.intents()
    pipeline = intents
    frame, queries = intents_of(pipeline, everything, undefined)
    runs = {name: run_of_system(name, system, queries, everything) for name, system in named_systems.items()}
    frame, queries, runs = _on_common(frame, queries, runs) if on_topics == "common" else (frame, queries, runs)
    if tagger is None:
        require_one_tagger(runs.values())
    perturbations = resolved(perturb, pipeline, queries, n_replicas, seed, progress=progress) if n_replicas else []
    tags = tags_of(tagger, runs, depth)
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
        # What there is to warn of, the scores have warned of.
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
        shown = covered(runs, frame, tags, depth)
        shown_at = sorted({k for measure in asked if (k := measure.params.get("cutoff"))})
        told = tagging(runs, frame, tags, shown_at, nil)
        pairs = comparisons(
            scores.values, baseline=baseline, level=level, method=interval, n_resamples=n_resamples, seed=seed
        )
    return IntentEvaluation(
        values=scores.values,
        intervals=_side_by_side(intervals),
        comparisons=pairs,
        per_query=per_query,
        covered=shown,
        tagging=told,
        missing=scores.missing,
        intents=frame,
        tags=tags,
        replicas=made,
        quality=None if gold is None else tag_quality(tags, gold),
    )


def _on_common(
    intents: pd.DataFrame, queries: pd.DataFrame, runs: dict[str, Run]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Run]]:
    """Everything cut to the queries for which every system has something."""
    common = set.intersection(*(set(run.topics) for run in runs.values()))
    if not common:
        raise InputError("no query for which every system has something")
    intents, queries = (
        frame[frame["qid"].astype(str).isin(common)].reset_index(drop=True) for frame in (intents, queries)
    )
    return intents, queries, {name: run.only(common) for name, run in runs.items()}


def _side_by_side(intervals: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The intervals of each system and measure next to each other, in the order of the first frame."""
    both = pd.concat(intervals, ignore_index=True)
    place = both.groupby(["name", "measure"], sort=False).ngroup()
    return both.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def cutoffs_of(cutoff: Sequence[int] | int) -> list[int]:
    """Cutoffs, each once, in the order given."""
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
    """Measures at every cutoff, those that have one of their own as they are."""
    listed = measures_from(*(measures if isinstance(measures, (list, tuple)) else [measures]))
    if not listed:
        raise ParameterError("no measures; name at least one, as 'VB'")
    asked = []
    for measure in listed:
        takes = "cutoff" in measure.SUPPORTED_PARAMS and measure.params.get("cutoff") is None
        asked += [measure @ k for k in cutoffs] if takes else [measure]
    return list(dict.fromkeys(asked))

"""Inputs and numbers of a report."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.files import read_links
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.errors import DegenerateWarning, InputError, ParameterError, examples, nearest, warn
from vbterrier.evaluate.comparison import Comparison, compare
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.inputs import named_runs, target_of, topics_of
from vbterrier.evaluate.scores import Scores, score
from vbterrier.frames.contracts import frame_of, systems_of
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.named import named
from vbterrier.frames.runs import flatten_qrels, loaded_run
from vbterrier.intents.coverage import oracle_success
from vbterrier.intents.sources import from_diversity
from vbterrier.measures.base import deepest
from vbterrier.measures.external import is_mean
from vbterrier.measures.target import Scoring, aligned
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import Bootstrapped
from vbterrier.unjudged.pool import Judgments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures

    from vbterrier.evaluate.coverage_result import CoverageReport
    from vbterrier.frames.ranking import Run
    from vbterrier.intents.coverage import Coverage
    from vbterrier.unjudged.distribution import BootstrapDistribution
    from vbterrier.unjudged.pool import JudgedTop


def rows_of(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows, as Python's own numbers and texts.

    >>> import pandas as pd
    >>> rows_of(pd.DataFrame({"a": [1], "b": ["x"], "c": [2.5]}), "c", "a")
    [(2.5, 1)]
    """
    return list(zip(*(frame[column].tolist() for column in columns), strict=True))


def wide_of(found: ReportNumbers, measure: str) -> pd.DataFrame:
    """What systems score by one measure: a row a topic, a column a system, NaN where nothing is defined."""
    values = found.scores.values
    of_measure = values[values["measure"] == measure].astype({"qid": str, "name": str})
    wide = of_measure.pivot(index="qid", columns="name", values="value")
    return wide.reindex(index=found.topics, columns=found.names)


OF_QRELS = ("BNDCG@10", "nDCG@10", "Unjudged@10")
OF_INTENTS = ("ES@10", "VB@10")
OF_LINKS = ("RelCov@20", "NonRelCov@20", "DiscRatio@20")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Runs, and what they are evaluated against.

    Parameters
    ----------
    runs
        By name.
    qrels, intents, tags
        Frames; ``None`` where there are none.
    links
        The linked pool that entity runs are measured on, in place of the other three.
    queries
        The text of each topic, as far as it is known.
    """

    runs: dict[str, Run]
    qrels: pd.DataFrame | None
    intents: pd.DataFrame | None
    tags: pd.DataFrame | None
    links: LinkedPool | None
    queries: dict[str, str]

    @property
    def is_diversity(self) -> bool:
        """Whether documents are judged for several subtopics."""
        frame = self.qrels
        if frame is None or "iteration" not in frame.columns or frame["iteration"].nunique() < 2:  # noqa: PLR2004
            return False
        return bool(frame.duplicated(["qid", "docno"]).any())

    def measures(self, asked: Any) -> list[ir_measures.Measure]:
        """What is measured: what was asked for, or what the inputs support."""
        if asked is not None and (isinstance(asked, str) or not hasattr(asked, "__len__") or len(asked)):
            return measures_from(*([asked] if isinstance(asked, str) or not hasattr(asked, "__len__") else asked))
        if self.links is not None:
            return measures_from(*OF_LINKS)
        adhoc = OF_QRELS if self.qrels is not None and not self.is_diversity else ()
        return measures_from(*adhoc, *(OF_INTENTS if self.intents is not None or self.is_diversity else ()))


def inputs_of(
    runs: Any, qrels: Any, *, intents: Any, tags: Any, links: Any, topics: Any, duplicates: str = "error"
) -> Inputs:
    """Read what is given as paths.

    Raises
    ------
    InputError
        Files or frames that cannot be evaluated; no run.
    ParameterError
        Nothing to evaluate against, or too much.
    """
    if links is not None and (intents is not None or tags is not None):
        raise ParameterError("links are what entity runs are measured on: leave out intents and tags, or links")
    if qrels is None and intents is None and links is None:
        raise ParameterError("nothing to evaluate against: wanted qrels, intents (with tags), or links")
    loaded = {name: loaded_run(name, run, duplicates) for name, run in systems_of(named_runs(runs))}
    if not loaded:
        raise InputError("no runs; name at least one")
    return Inputs(
        loaded,
        None if qrels is None else _judgments(qrels),
        None if intents is None else named("intents", intents),
        None if tags is None else named("tags", tags),
        None if links is None else _linked(links, qrels),
        {} if topics is None else _queries(topics_of(topics)),
    )


def _judgments(qrels: Any) -> pd.DataFrame:
    return read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else frame_of(qrels, "qrels")


def _linked(links: Any, qrels: Any) -> LinkedPool:
    """The linked pool, with the labels of the judgments where there are any."""
    if isinstance(links, (str, os.PathLike)):
        found = read_links(links)
    else:
        found = links if isinstance(links, LinkedPool) else LinkedPool.from_frame(links)
    if qrels is None:
        return found
    frame = found.frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    tags = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return link_pool(documents.assign(score=-documents["rank"]), tags, _judgments(qrels))


def _queries(topics: pd.DataFrame) -> dict[str, str]:
    return dict(zip(topics["qid"].astype(str), topics["query"].astype(str), strict=True))


@dataclass(frozen=True, eq=False)
class Covered:
    """The intents of all topics, and where one run covers them.

    Parameters
    ----------
    intents
        qid, entity_id, prob; the same for all runs of a page.
    ranks
        The ranks, from 1, of the documents about each intent, a row of ``intents`` each.
    tagged
        Mean share of the first documents that carry a tag.
    oracle
        Mean expected success of the best ranking under the same tags; NaN where the tags are not all known.
    """

    intents: pd.DataFrame
    ranks: list[list[int]]
    tagged: float
    oracle: float


def covered_of(measure: Any, scorings: Mapping[str, Scoring], depth: int, given: Inputs) -> dict[str, Covered]:
    """The intents that a measure sees, in its own place and order."""
    found = {name: measure.coverage(scoring) for name, scoring in scorings.items()}
    first: Coverage = next(iter(found.values()))
    frame = pd.DataFrame(
        {
            "qid": [first.intents.topics[place] for place in first.intents.topic],
            "entity_id": first.intents.entity.text.to_pylist(),
            "prob": first.intents.prob,
        }
    )
    oracle = _oracle(frame, given, depth)
    return {
        name: Covered(frame, _ranks(coverage, depth), float(coverage.tagged.mean()), oracle)
        for name, coverage in found.items()
    }


def _ranks(coverage: Coverage, depth: int) -> list[list[int]]:
    """Rising ranks of each intent."""
    seen = coverage.rank < depth
    order = np.lexsort((coverage.rank[seen], coverage.intent[seen]))
    counts = np.bincount(coverage.intent[seen], minlength=len(coverage.intents.prob))
    ranks = 1 + coverage.rank[seen][order]
    return [part.tolist() for part in np.split(ranks, np.cumsum(counts)[:-1])]


def _oracle(intents: pd.DataFrame, given: Inputs, depth: int) -> float:
    tags = given.tags
    if tags is None and given.intents is None and given.is_diversity:
        _, tags = from_diversity(given.qrels)
        tags = tags[tags["qid"].astype(str).isin(intents["qid"])]
    if tags is None:
        return float("nan")
    return float(oracle_success(intents, tags, depth)["success"].mean())


DEPTH = 10
# What is said of runs beside their scores: no system is better for it.
DIAGNOSTIC = ("Unjudged",)
_FEW = "fewer than two topics have a value, so there is no interval"


@dataclass(frozen=True, eq=False)
class ReportNumbers:
    """What a page shows.

    Parameters
    ----------
    scores
        Values, means with intervals, and what is missing.
    measures, compared
        What was measured, and of it what systems are compared by.
    comparison
        What tests say; ``None`` of a single system.
    depth
        How many first documents are looked at.
    tops
        By system, the first documents with their judgments; empty without judgments.
    laws, distribution
        By system, the distributions of the first bootstrapped measure, and its name.
    covered
        By system, which intents the first documents cover; empty without intents.
    ties
        By system, the share of the first documents that share their score.
    reach
        Of entity runs, what the linked pool is.
    said
        What was warned of on the way.
    """

    scores: Scores
    measures: tuple[str, ...]
    compared: tuple[str, ...]
    comparison: Comparison | None
    depth: int
    tops: dict[str, JudgedTop] = field(default_factory=dict)
    distributions: dict[str, BootstrapDistribution] = field(default_factory=dict)
    bootstrapped: str = ""
    covered: dict[str, Covered] = field(default_factory=dict)
    ties: dict[str, float] = field(default_factory=dict)
    reach: CoverageReport | None = None
    said: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The systems, in the order in which they were given."""
        return [str(name) for name in self.scores.missing["name"]]

    @property
    def topics(self) -> list[str]:
        """The topics, in the order of the judgments."""
        return [str(qid) for qid in self.scores.values["qid"].unique()]


def evaluated(
    given: Inputs,
    asked: Sequence[ir_measures.Measure],
    *,
    baseline: str | None,
    test: str,
    correction: str,
    on_topics: str,
    progress: bool,
    **intervals: Any,
) -> ReportNumbers:
    """Evaluate, compare, and look at what stands behind the scores; warnings are kept, and warned of once."""
    if baseline is not None and baseline not in given.runs:
        known = list(given.runs)
        raise ParameterError(f"baseline {baseline!r} is no run; found {examples(known)}.{nearest(baseline, known)}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DegenerateWarning)
        tests = {"baseline": baseline, "test": test, "correction": correction}
        if given.links is not None:
            parts = _of_links(given, asked, on_topics, tests, intervals)
        else:
            parts = _of_runs(given, asked, on_topics, tests, intervals, progress=progress)
    said = dict.fromkeys(
        text for one in caught if _concerns(text := " ".join(str(one.message).split()), list(map(str, asked)))
    )
    for text in said:
        warn(text)
    return ReportNumbers(**parts, measures=tuple(map(str, asked)), said=tuple(said))


def _concerns(text: str, names: Sequence[str]) -> bool:
    """Whether a warning is about what is shown: entity runs are measured in all ways, and some of them are."""
    return not text.endswith(_FEW) or any(f"'{name}'" in text for name in names)


def _of_runs(
    given: Inputs,
    asked: Sequence[ir_measures.Measure],
    on_topics: str,
    tests: dict[str, Any],
    intervals: dict[str, Any],
    *,
    progress: bool,
) -> dict[str, Any]:
    frames = {name: run.frame for name, run in given.runs.items()}
    beside: dict[str, Any] = {"intents": given.intents, "tags": given.tags}
    scores = score(frames, given.qrels, asked, **beside, on_topics=on_topics, **intervals, progress=progress)
    compared = [str(measure) for measure in asked if is_mean(measure) and measure.NAME not in DIAGNOSTIC]
    found: dict[str, Any] = {"scores": scores, "compared": tuple(compared), "depth": deepest(asked) or DEPTH}
    found["comparison"] = _compared(scores, compared, len(given.runs), tests, intervals)
    target, runs = aligned(target_of(given.qrels, given.intents, given.tags), given.runs, on_topics)
    found["ties"] = {name: run.top(found["depth"]).tied_share for name, run in runs.items()}
    scorings = {name: Scoring(target, run, deepest(asked)) for name, run in runs.items()}
    if given.qrels is not None:
        found["tops"] = _tops(given, target.frame, runs, found["depth"])
    distribution = next((one for one in asked if isinstance(one, Bootstrapped)), None)
    if distribution is not None:
        found["distributions"] = {name: distribution.distribution(scoring) for name, scoring in scorings.items()}
        found["bootstrapped"] = str(distribution)
    intents = next((one for one in asked if hasattr(one, "coverage")), None)
    if intents is not None:
        found["covered"] = covered_of(intents, scorings, found["depth"], given)
    return found


def _tops(given: Inputs, frame: pd.DataFrame, runs: dict[str, Run], depth: int) -> dict[str, JudgedTop]:
    """The first documents with their judgments, for any subtopic."""
    judged = Judgments(flatten_qrels(frame) if given.is_diversity else frame)
    return {name: judged.judge(run, depth) for name, run in runs.items()}


def _compared(
    scores: Scores, measures: Sequence[str], n: int, tests: dict[str, Any], intervals: dict[str, Any]
) -> Comparison | None:
    if n < 2 or not measures:  # noqa: PLR2004
        return None
    return compare(scores, measures=list(measures), **tests, **intervals)


def _of_links(
    given: Inputs,
    asked: Sequence[ir_measures.Measure],
    on_topics: str,
    tests: dict[str, Any],
    intervals: dict[str, Any],
) -> dict[str, Any]:
    """Entity runs: a collection's DiscRatio is a ratio of means, and topics in which a measure is undefined are out."""
    frames = {name: run.frame for name, run in given.runs.items()}
    reports = [
        coverage_report(frames, given.links, cutoff=k, on_topics=on_topics, **intervals)
        for k in sorted({measure.params.get("cutoff", 0) for measure in asked} - {0}) or [20]
    ]
    names = list(map(str, asked))
    tables = (pd.concat([getattr(one, part) for one in reports]) for part in ("entities", "values"))
    means, values = (table.drop_duplicates(ignore_index=True) for table in tables)
    for name in names:
        known = list(means["measure"].unique())
        if name not in known:
            raise ParameterError(f"{name}: entity runs are measured by {', '.join(known)}.{nearest(name, known)}")
    kept = means[means["measure"].isin(names)].reset_index(drop=True)
    # A collection's DiscRatio has no values of topics, and is compared by none.
    values = values[values["measure"].isin(names)].reset_index(drop=True)
    scores = Scores(values, kept, reports[0].missing)
    counts = values.groupby("measure")["name"].nunique()
    compared = [name for name in names if counts.get(name, 0) == len(given.runs)]
    comparison = None
    if len(given.runs) > 1 and compared:
        comparison = compare(scores, measures=compared, on_topics="common", **tests, **intervals)
    return {
        "scores": scores,
        "compared": tuple(compared),
        "comparison": comparison,
        "depth": max(int(report.settings["cutoff"]) for report in reports),
        "ties": {name: run.top(int(reports[-1].settings["cutoff"])).tied_share for name, run in given.runs.items()},
        "reach": reports[-1],
    }

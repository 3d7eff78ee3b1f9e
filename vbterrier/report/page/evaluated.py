"""All numbers of a page, from the functions that anyone can call: ``score``, ``compare``, ``coverage_report``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import DegenerateWarning, ParameterError, examples, nearest
from vbterrier.evaluate.comparing import Comparison, compare
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.inputs import aligned, slot_of
from vbterrier.evaluate.scores import Scores, score
from vbterrier.frames.qrels import flatten_qrels
from vbterrier.judgments.pool import Judgments
from vbterrier.measures.base import deepest
from vbterrier.measures.foreign import is_mean
from vbterrier.measures.process import Bootstrapped
from vbterrier.measures.scoring import Scoring
from vbterrier.report.page.covered import Covered, covered_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

    from vbterrier.evaluate.coverage_result import CoverageReport
    from vbterrier.frames.ranked import Run
    from vbterrier.judgments.distribution import BootstrapDistribution
    from vbterrier.judgments.pool import JudgedTop
    from vbterrier.report.page.inputs import Inputs

DEPTH = 10
# What is said of runs beside their scores: no system is better for it.
DIAGNOSTIC = ("Unjudged",)
_FEW = "fewer than two topics have a value, so there is no interval"


@dataclass(frozen=True, eq=False)
class Found:
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
    laws, law
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
    laws: dict[str, BootstrapDistribution] = field(default_factory=dict)
    law: str = ""
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
) -> Found:
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
        warnings.warn(text, DegenerateWarning, stacklevel=3)
    return Found(**parts, measures=tuple(map(str, asked)), said=tuple(said))


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
    scores = score(frames, given.qrels, asked, **beside, topics=on_topics, **intervals, progress=progress)
    compared = [str(measure) for measure in asked if is_mean(measure) and measure.NAME not in DIAGNOSTIC]
    found: dict[str, Any] = {"scores": scores, "compared": tuple(compared), "depth": deepest(asked) or DEPTH}
    found["comparison"] = _compared(scores, compared, len(given.runs), tests, intervals)
    slot, runs = aligned(slot_of(given.qrels, given.intents, given.tags), given.runs, on_topics)
    found["ties"] = {name: run.top(found["depth"]).tied_share for name, run in runs.items()}
    scorings = {name: Scoring(slot, run, deepest(asked)) for name, run in runs.items()}
    if given.qrels is not None:
        found["tops"] = _tops(given, slot.frame, runs, found["depth"])
    law = next((one for one in asked if isinstance(one, Bootstrapped)), None)
    if law is not None:
        found["laws"] = {name: law.distribution(scoring) for name, scoring in scorings.items()}
        found["law"] = str(law)
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
        coverage_report(frames, given.links, k=k, topics=on_topics, **intervals)
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
        comparison = compare(scores, measures=compared, topics="common", **tests, **intervals)
    return {
        "scores": scores,
        "compared": tuple(compared),
        "comparison": comparison,
        "depth": max(int(report.settings["k"]) for report in reports),
        "ties": {name: run.top(int(reports[-1].settings["k"])).tied_share for name, run in given.runs.items()},
        "reach": reports[-1],
    }

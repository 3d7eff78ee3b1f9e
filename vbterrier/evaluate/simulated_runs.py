"""Estimators of a score on one run under one set of reduced judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.runs import places
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import BERR
from vbterrier.stats.agreement import EQUAL
from vbterrier.stats.topic_intervals import check_level
from vbterrier.unjudged.metrics import WEB_GRADE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget


LEVELS = (0.5, 0.8, 0.9, 0.95)
_LOWER, _UPPER = "nDCG@10", "NDCGBound(side='upper')@10"
_TRIPLE = "a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level)"

# The estimators that the paper compares, and ours. Condensed lists of trec_eval lack labels below 0, too.
STANDARD: dict[str, Any] = {
    "lower": _LOWER,
    "condensed": "nDCG(judged_only=True)@10",
    "naive upper": _UPPER,
    "mode, pool+run": "BNDCG(stat='mode',prior='pool+run')@10",
    "mean, pool": "BNDCG(prior='pool')@10",
    "mean, run": "BNDCG(prior='run',all_unjudged='pool')@10",
    "mean, pool+run": "BNDCG(prior='pool+run')@10",
    "mean, hierarchical": "BNDCG(prior='hierarchical')@10",
    "mean, learned": "BNDCG(prior='learned')@10",
}
# The ranges of the paper's Table 6, all from the naive lower bound up, each beside its estimate.
RANGES: dict[str, Any] = {
    "to naive upper": (_LOWER, _LOWER, _UPPER),
    "to condensed": ("nDCG(judged_only=True)@10", _LOWER, "nDCG(judged_only=True)@10"),
    **{
        f"to q{level}": (
            "BNDCG(stat='mode',prior='pool+run')@10",
            _LOWER,
            f"BNDCG(stat='q{level}',prior='pool+run')@10",
            level / 100,
        )
        for level in (75, 90, 95)
    },
}


@dataclass(frozen=True)
class Estimator:
    """A named estimate of a score, with its intervals.

    Parameters
    ----------
    name
        What tables call it.
    point
        The estimate.
    ends
        Level, low and high of each interval.
    """

    name: str
    point: ir_measures.Measure
    ends: tuple[tuple[float, ir_measures.Measure, ir_measures.Measure], ...] = ()

    @property
    def measures(self) -> list[ir_measures.Measure]:
        """All that it takes."""
        return [self.point, *(measure for _, low, high in self.ends for measure in (low, high))]


def estimators_of(given: Any, levels: Sequence[float]) -> list[Estimator]:
    """Estimators from what a user gives.

    Raises
    ------
    ParameterError
        No mapping; no estimator; one that reads otherwise than as a measure or its interval.
    """
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(f"estimators: wanted a mapping of name to {_TRIPLE}; found {given!r}")
    for level in levels:
        check_level(level)
    return [_estimator(str(name), value, levels) for name, value in given.items()]


def _estimator(name: str, given: Any, levels: Sequence[float]) -> Estimator:
    if not isinstance(given, (tuple, list)):
        (point,) = measures_from(given)
        return Estimator(name, point, _own_ends(point, levels))
    if len(given) not in {3, 4}:
        raise ParameterError(f"estimator {name!r}: wanted {_TRIPLE}; found {len(given)} values")
    point, low, high = measures_from(*given[:3])
    return Estimator(name, point, ((_level(name, low, high, given[3:]), low, high),))


def _own_ends(
    point: ir_measures.Measure, levels: Sequence[float]
) -> tuple[tuple[float, ir_measures.Measure, ir_measures.Measure], ...]:
    """The intervals of a measure that is a statistic of a distribution."""
    if not _is_statistic(point):
        return ()
    return tuple((level, point(stat="lo", level=level), point(stat="hi", level=level)) for level in levels)


def _is_statistic(measure: ir_measures.Measure) -> bool:
    return isinstance(measure, Measure) and {"stat", "level"} <= set(measure.SUPPORTED_PARAMS)


def _level(name: str, low: ir_measures.Measure, high: ir_measures.Measure, given: Sequence[Any]) -> float:
    """The nominal level of an interval: as given, as its ends say, else 1, as of bounds."""
    if given:
        if given[0] != 1:
            check_level(given[0])
        return float(given[0])
    said = {float(end["level"]) for end in (low, high) if _is_statistic(end) and end["stat"] in {"lo", "hi"}}
    if len(said) > 1:
        raise ParameterError(f"estimator {name!r}: its ends have the levels {sorted(said)}; give both the same")
    return said.pop() if said else 1.0


@dataclass(frozen=True, eq=False)
class Truth:
    """The scores of a run by complete judgments.

    Parameters
    ----------
    name
        The run's name.
    run
        The run, on these topics alone.
    topics
        The topics that it has and that have a relevant document.
    values
        The score of each, shape (n,).
    n_unknown
        Documents within the cutoff that even complete judgments lack, shape (n,).
    """

    name: str
    run: Run
    topics: list[str]
    values: Floats
    n_unknown: Ints


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """The estimates of one run under one set of incomplete judgments.

    Parameters
    ----------
    simulation
        The name of the judgments.
    truth
        The truth, on the topics of the block.
    n_unjudged
        Documents within the cutoff that the incomplete judgments lack, shape (n,).
    values
        By the text of each measure, its value for each topic, shape (n,).
    """

    simulation: str
    truth: Truth
    n_unjudged: Ints
    values: dict[str, Floats]


def truth_of(name: str, run: Run, slot: EvaluationTarget, measure: ir_measures.Measure) -> Truth:
    """Score a run by complete judgments."""
    run = run.only(_evaluable(slot))
    topics = _shared(_evaluable(slot), run.topics)
    exact = _in_full(measure, slot)
    values = _values(run, slot, [exact], topics)[str(exact)] if topics else np.empty(0)
    return Truth(name, run, topics, values, _n_unjudged(run, slot, measure, topics))


def _in_full(measure: ir_measures.Measure, slot: EvaluationTarget) -> ir_measures.Measure:
    """A measure with all digits: of ERR, gdeval prints five, too few to stand where an interval ends."""
    if type(measure) is not type(ir_measures.ERR) or slot.judgments().label.max(initial=0) > WEB_GRADE:
        return measure
    return BERR(cutoff=measure.params["cutoff"], prior={0: 1.0})


def block_of(
    simulation: str, slot: EvaluationTarget, truth: Truth, estimators: Sequence[Estimator], measure: ir_measures.Measure
) -> SimulatedRun:
    """Estimate the scores of a run from incomplete judgments."""
    topics = _shared(truth.topics, _evaluable(slot))
    place = {topic: at for at, topic in enumerate(truth.topics)}
    at = np.array([place[topic] for topic in topics], dtype=np.int64)
    known = Truth(truth.name, truth.run.only(topics), topics, truth.values[at], truth.n_unknown[at])
    asked = list(dict.fromkeys(part for estimator in estimators for part in estimator.measures))
    values = _values(known.run, slot, asked, topics) if topics else {str(part): np.empty(0) for part in asked}
    for estimator in estimators:
        for level, low, high in estimator.ends:
            if (values[str(low)] > values[str(high)] + EQUAL).any():
                raise ParameterError(
                    f"estimator {estimator.name!r}: {low} is above {high} on some topics of {simulation!r}, level "
                    f"{level:g}; give the lower end first"
                )
    return SimulatedRun(simulation, known, _n_unjudged(known.run, slot, measure, topics), values)


def estimates_frame(blocks: Sequence[SimulatedRun], estimators: Sequence[Estimator]) -> pd.DataFrame:
    """A row for each block, estimator and topic."""
    return _long(
        [
            (block, {"estimator": estimator.name, "estimate": block.values[str(estimator.point)]})
            for block in blocks
            for estimator in estimators
        ],
        ("estimator", "estimate"),
    )


def intervals_frame(blocks: Sequence[SimulatedRun], estimators: Sequence[Estimator]) -> pd.DataFrame:
    """A row for each block, estimator, level and topic."""
    ends = [(estimator.name, *end) for estimator in estimators for end in estimator.ends]
    return _long(
        [
            (block, {"estimator": name, "level": level, "low": block.values[str(low)], "high": block.values[str(high)]})
            for block in blocks
            for name, level, low, high in ends
        ],
        ("estimator", "level", "low", "high"),
    )


def truths_frame(truths: Iterable[Truth]) -> pd.DataFrame:
    """A row for each run and topic."""
    return pd.concat(
        [
            pd.DataFrame({"name": truth.name, "qid": truth.topics, "n_unknown": truth.n_unknown, "truth": truth.values})
            for truth in truths
        ],
        ignore_index=True,
    )


def _long(entries: Sequence[tuple[SimulatedRun, Mapping[str, Any]]], columns: Sequence[str]) -> pd.DataFrame:
    """What several estimates have in common, and their own columns: arrays of topics, or one value for all."""
    made = {
        "simulation": _column([(block, block.simulation) for block, _ in entries]),
        "name": _column([(block, block.truth.name) for block, _ in entries]),
        "qid": _column([(block, np.array(block.truth.topics, dtype=object)) for block, _ in entries]),
        "n_unjudged": _column([(block, block.n_unjudged) for block, _ in entries]),
        "n_unknown": _column([(block, block.truth.n_unknown) for block, _ in entries]),
        "truth": _column([(block, block.truth.values) for block, _ in entries]),
    }
    made |= {column: _column([(block, own[column]) for block, own in entries]) for column in columns}
    return pd.DataFrame(made)


def _column(parts: Sequence[tuple[SimulatedRun, Any]]) -> NDArray[Any]:
    return np.concatenate([np.broadcast_to(part, len(block.truth.topics)) for block, part in parts] or [np.empty(0)])


def _evaluable(slot: EvaluationTarget) -> list[str]:
    """The topics with a relevant document, without which a measure says nothing."""
    judgments = slot.judgments()
    relevant = judgments.counts[:, judgments.grades > 0].sum(axis=1) > 0
    return [topic for topic, some in zip(judgments.topics, relevant, strict=True) if some]


def _shared(topics: Sequence[str], others: Iterable[str]) -> list[str]:
    known = set(others)
    return [topic for topic in topics if topic in known]


def _n_unjudged(run: Run, slot: EvaluationTarget, measure: ir_measures.Measure, topics: Sequence[str]) -> Ints:
    """Documents without judgment within the cutoff, for each topic, shape (n,)."""
    if not topics:
        return np.empty(0, dtype=np.int64)
    counted = slot.judgments().judge(run, measure.params.get("cutoff")).n_unjudged
    return np.asarray(counted[places(topics, slot.topics)])


def _values(
    run: Run, slot: EvaluationTarget, measures: Sequence[ir_measures.Measure], topics: Sequence[str]
) -> dict[str, Floats]:
    """By the text of each measure, its value for each topic, shape (n,)."""
    ours = [measure for measure in measures if isinstance(measure, Measure)]
    theirs = [measure for measure in measures if not isinstance(measure, Measure)]
    found: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    for qid, measure, value in chain(
        evaluate(ours, slot, run) if ours else (), external_values(theirs, slot, run, warned=bool(ours))
    ):
        found[str(measure)][qid] = value
    for name, of in found.items():
        without = [topic for topic in topics if topic not in of]
        if without:
            raise InputError(
                f"{name} gives no value for {len(without)} topics of {run.name} ({examples(without)}); an estimator "
                "has to estimate every topic"
            )
    return {name: np.array([of[topic] for topic in topics]) for name, of in found.items()}

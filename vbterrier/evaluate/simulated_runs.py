"""Estimators of a score on one run under one set of reduced judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, check_level, examples
from vbterrier.frames.ranking import places
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.text import measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.fitted import EvidenceModel


LEVELS = (0.5, 0.8, 0.9, 0.95)
_SHARED = ("simulation", "name", "qid", "n_unjudged", "n_unknown", "truth")
_LOWER, _UPPER = "nDCG@10", "NDCGBound(side='upper',kind='naive')@10"
_TRIPLE = "a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level)"

# The estimators of the paper, and priors of this package. Condensed lists drop labels below 0, as in trec_eval.
STANDARD: dict[str, Any] = {
    "lower": _LOWER,
    "condensed": "nDCG(judged_only=True)@10",
    "naive upper": _UPPER,
    "mode, pool+run": "BNDCG(stat='mode',prior='pool+run')@10",
    "mean, pool": "BNDCG(prior='pool')@10",
    "mean, run": "BNDCG(prior='run',all_unjudged='pool')@10",
    "mean, pool+run": "BNDCG(prior='pool+run')@10",
    "estimated": "ENDCG@10",
}
# The ranges of Table 6 of the paper with their estimates; all start at the naive lower bound.
_MODE = "BNDCG(stat='mode',prior='pool+run')@10"
RANGES: dict[str, Any] = {
    "to naive upper": (_LOWER, _LOWER, _UPPER),
    "to condensed": ("nDCG(judged_only=True)@10", _LOWER, "nDCG(judged_only=True)@10"),
    **{
        f"to q{level}": (_MODE, _LOWER, f"BNDCG(stat='q{level}',prior='pool+run')@10", level / 100)
        for level in (75, 90, 95)
    },
}


@dataclass(frozen=True)
class ScoreEstimator:
    """A named estimate of a score, with its intervals."""

    name: str
    point: ir_measures.Measure
    ends: tuple[tuple[float, ir_measures.Measure, ir_measures.Measure], ...] = ()  # level, low, high of each interval


def parse_estimators(estimators: Any, levels: Sequence[float]) -> list[ScoreEstimator]:
    """Parse estimators."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise ParameterError(f"estimators: wanted a mapping of name to {_TRIPLE}; found {estimators!r}")
    for level in levels:
        check_level(level)
    return [_parse_estimator(str(name), value, levels) for name, value in estimators.items()]


def _parse_estimator(name: str, parts: Any, levels: Sequence[float]) -> ScoreEstimator:
    if not isinstance(parts, (tuple, list)):
        (point,) = measures_from(parts)
        levels = levels if _is_statistic(point) else ()
        ends = ((level, point(stat="lo", level=level), point(stat="hi", level=level)) for level in levels)
        return ScoreEstimator(name, point, tuple(ends))
    if len(parts) not in {3, 4}:
        raise ParameterError(f"estimator {name!r}: wanted {_TRIPLE}; found {len(parts)} values")
    point, low, high = measures_from(*parts[:3])
    # The nominal level: as given, else that of the ends, else 1 for bounds.
    levels_of_ends = {float(end["level"]) for end in (low, high) if _is_statistic(end) and end["stat"] in {"lo", "hi"}}
    if parts[3:]:
        if parts[3] != 1:
            check_level(parts[3])
        levels_of_ends = {float(parts[3])}
    if len(levels_of_ends) > 1:
        raise ParameterError(
            f"estimator {name!r}: its ends have the levels {sorted(levels_of_ends)}; give both ends the same level"
        )
    return ScoreEstimator(name, point, ((levels_of_ends.pop() if levels_of_ends else 1.0, low, high),))


def _is_statistic(measure: ir_measures.Measure) -> bool:
    return isinstance(measure, Measure) and {"stat", "level"} <= set(measure.SUPPORTED_PARAMS)


@dataclass(frozen=True, eq=False)
class TrueScores:
    """The scores of a run by complete judgments, on its topics with a relevant document."""

    name: str
    run: Run
    topics: list[str]
    values: Floats
    n_unknown: Ints  # number of documents up to the cutoff without a complete judgment


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """The estimates of one run under one set of incomplete judgments, with the true scores on the same topics."""

    simulation: str
    truth: TrueScores
    n_unjudged: Ints  # number of documents up to the cutoff without an incomplete judgment
    values: dict[str, Floats]  # by measure


def true_scores(name: str, run: Run, target: EvaluationTarget, measure: ir_measures.Measure) -> TrueScores:
    """Score a run by complete judgments."""
    evaluable = _evaluable(target)
    run = run.only(evaluable)
    retrieved = set(run.topics)
    topics = [topic for topic in evaluable if topic in retrieved]
    values = _values(run, target, [measure], topics)[str(measure)] if topics else np.empty(0)
    return TrueScores(name, run, topics, values, _n_unjudged(run, target, measure, topics))


def simulated_run(
    simulation: str,
    target: EvaluationTarget,
    truth: TrueScores,
    estimators: Sequence[ScoreEstimator],
    measure: ir_measures.Measure,
    models: Mapping[str, EvidenceModel],
) -> SimulatedRun:
    """Estimate the scores of a run from incomplete judgments."""
    evaluable = set(_evaluable(target))
    at = np.array([n for n, topic in enumerate(truth.topics) if topic in evaluable], dtype=np.int64)
    topics = [truth.topics[n] for n in at]
    evaluated = TrueScores(truth.name, truth.run.only(topics), topics, truth.values[at], truth.n_unknown[at])
    parts = ((one.point, *(end for _, *ends in one.ends for end in ends)) for one in estimators)
    distinct = list(dict.fromkeys(chain.from_iterable(parts)))
    values = (
        _values(evaluated.run, target, distinct, topics, models)
        if topics
        else {str(part): np.empty(0) for part in distinct}
    )
    for estimator in estimators:
        for level, low, high in estimator.ends:
            if (values[str(low)] > values[str(high)] + REPLICA_ROUNDING).any():
                raise ParameterError(
                    f"estimator {estimator.name!r}: {low} is above {high} on some topics of {simulation!r}, level "
                    f"{level:g}; give the lower end first"
                )
    return SimulatedRun(simulation, evaluated, _n_unjudged(evaluated.run, target, measure, topics), values)


def result_frames(
    simulated: Sequence[SimulatedRun], truths: Iterable[TrueScores], estimators: Sequence[ScoreEstimator]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Estimates by run, estimator and topic; intervals, also by level; true scores by run and topic."""
    estimates = [
        (run, {"estimator": estimator.name, "estimate": run.values[str(estimator.point)]})
        for run in simulated
        for estimator in estimators
    ]
    ends = [(estimator.name, *end) for estimator in estimators for end in estimator.ends]
    intervals = [
        (run, {"estimator": name, "level": level, "low": run.values[str(low)], "high": run.values[str(high)]})
        for run in simulated
        for name, level, low, high in ends
    ]
    complete = [
        pd.DataFrame({"name": truth.name, "qid": truth.topics, "n_unknown": truth.n_unknown, "truth": truth.values})
        for truth in truths
    ]
    columns = ("estimator", "level", "low", "high")
    return (
        _long(estimates, ("estimator", "estimate")),
        _long(intervals, columns),
        pd.concat(complete, ignore_index=True),
    )


def _long(entries: Sequence[tuple[SimulatedRun, Mapping[str, Any]]], columns: Sequence[str]) -> pd.DataFrame:
    """A long frame of shared and own columns, which are arrays over topics or scalars."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*_SHARED, *columns)}
    for run, fields in entries:
        truth = run.truth
        shared = (run.simulation, truth.name, np.array(truth.topics, dtype=object), run.n_unjudged, truth.n_unknown)
        row = {**dict(zip(_SHARED, (*shared, truth.values), strict=True)), **fields}
        for name, part in row.items():
            parts[name].append(np.broadcast_to(part, len(truth.topics)))
    return pd.DataFrame({name: np.concatenate(part or [np.empty(0)]) for name, part in parts.items()})


def _evaluable(target: EvaluationTarget) -> list[str]:
    """The topics with a relevant document."""
    judgments = target.judgments()
    relevant = judgments.counts[:, judgments.grades > 0].sum(axis=1) > 0
    return [topic for topic, some in zip(judgments.topics, relevant, strict=True) if some]


def _n_unjudged(run: Run, target: EvaluationTarget, measure: ir_measures.Measure, topics: Sequence[str]) -> Ints:
    """Number of unjudged documents up to the cutoff by topic."""
    if not topics:
        return np.empty(0, dtype=np.int64)
    counted = target.judgments().judge(run, measure.params.get("cutoff")).n_unjudged
    return np.asarray(counted[places(topics, target.topics)])


def _values(
    run: Run,
    target: EvaluationTarget,
    measures: Sequence[ir_measures.Measure],
    topics: Sequence[str],
    models: Mapping[str, EvidenceModel] | None = None,
) -> dict[str, Floats]:
    """Values of each measure by topic."""
    internal = [measure for measure in measures if isinstance(measure, Measure)]
    external = [measure for measure in measures if not isinstance(measure, Measure)]
    values: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    for qid, measure, value in chain(
        evaluate(internal, target, run, models) if internal else (),
        external_values(external, target, run, warned=bool(internal)),
    ):
        values[str(measure)][qid] = value
    for name, topic_values in values.items():
        without = [topic for topic in topics if topic not in topic_values]
        if without:
            raise InputError(
                f"{name} gives no value for {agreeing(len(without), 'topics')} of {run.name} "
                f"({examples(without)}); an estimator "
                "needs a value for every topic"
            )
    return {name: np.array([topic_values[topic] for topic in topics]) for name, topic_values in values.items()}

"""Scores of the joint intents of all queries, as one evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError, choice
from vbterrier.measures.intents import ES, CandidateMeasure, IntentMeasure, TopIntent, VarPenalty
from vbterrier.stats.matches import Statistic
from vbterrier.stats.replicas import REPLICA_METHODS
from vbterrier.stats.topic_intervals import UNSEEN
from vbterrier.stats.topic_statistics import PooledScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

    from vbterrier.frames.score_table import ScoreTable


POOLS = ("query", "collection")
# Parameters that all measures of a call share.
_CALL_PARAMETERS = ("intents", "tags", "rel", "normalise", "undefined")


def shared_parts(measures: Sequence[ir_measures.Measure]) -> str:
    """The coverage of intents with parts that all measures of a call over intents share."""
    readings = dict.fromkeys(measure["parts"] for measure in measures if isinstance(measure, CandidateMeasure))
    if len(readings) > 1:
        raise ParameterError("measures must share one parts=; evaluate measures with another parts= in a separate call")
    return str(next(iter(readings), "all"))


def shared_nil(measures: Sequence[ir_measures.Measure]) -> str:
    """The NIL intent of measures over the intents and tags of a call, which must not have their own."""
    intent_measures = [measure for measure in measures if isinstance(measure, IntentMeasure)]
    nil = {measure["nil"] for measure in intent_measures}
    if len(nil) > 1:
        raise ParameterError("measures must share one nil=; evaluate measures with another nil= in a separate call")
    for measure in intent_measures:
        options = [name for name in _CALL_PARAMETERS if measure[name] != measure.SUPPORTED_PARAMS[name].default]
        if options:
            raise ParameterError(
                f"{measure}: measures share the intents and tags of the call; drop {options[0]}=, or use "
                "vbterrier.score"
            )
    return str(nil.pop()) if nil else ""


def replica_statistic(measure: ir_measures.Measure) -> Statistic:
    """The statistic that replicates a measure; similarities of intents have none."""
    if measure.params.get("similarities"):
        raise ParameterError(
            f"{measure}: similarities= have no replicas, pooled scores or estimates of gold tags; use vbterrier.score"
        )
    of_statistics = ("cutoff", "alpha", "gain", "variance", "clip", "monotone")
    options = {name: value for name, value in measure.params.items() if name in of_statistics}
    return Statistic(measure.NAME, **{"cutoff": None, **options})


def check_pool(pool: str, measures: Sequence[ir_measures.Measure], interval: str) -> None:
    """Refuse measures and intervals that joint intents do not have."""
    choice("pool", pool, POOLS)
    if pool == "query":
        return
    choice("interval", interval, (UNSEEN, *REPLICA_METHODS))
    for measure in measures:
        if not isinstance(measure, IntentMeasure):
            raise ParameterError(
                f"pool='collection': {measure} has no pooled score; ask for ES, VB, VarPenalty or TopIntent"
            )
        replica_statistic(measure)


def pooled_moments(pool: str, measures: Sequence[ir_measures.Measure], interval: str) -> list[ir_measures.Measure]:
    """Return the measures of each query that pooled scores need, after :func:`check_pool`."""
    check_pool(pool, measures, interval)
    return _moment_measures(measures)


def _moment_measures(measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
    """Return ES, the standard deviation of the gains, and TopIntent for each cutoff and gain of the measures."""
    kinds = dict.fromkeys(replica_statistic(measure).kind for measure in measures)
    shared = {"nil": shared_nil(measures), "parts": shared_parts(measures)}
    return [
        measure(gain=gain, **shared, **options) @ cutoff if cutoff else measure(gain=gain, **shared, **options)
        for cutoff, gain in kinds
        for measure, options in ((ES, {}), (VarPenalty, {"variance": "intent"}), (TopIntent, {}))
    ]


def pooled_of_values(table: ScoreTable, measures: Sequence[ir_measures.Measure], names: Sequence[str]) -> PooledScores:
    """Return pooled scores from a table with the values of :func:`pooled_moments`."""
    qids = table.qids
    moments = np.stack([table.rows(str(moment), names, qids) for moment in _moment_measures(measures)], axis=1)
    success, spread, top = np.moveaxis(moments.reshape(len(names), -1, 3, len(qids)), 2, 0)
    statistics = {str(measure): replica_statistic(measure) for measure in measures}
    return PooledScores(np.stack([success, success**2 + spread**2, top], axis=2), list(names), statistics, qids)

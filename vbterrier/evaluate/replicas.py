"""Replicas of the scores of systems: their matches with candidate intents, and the measures that have replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError
from vbterrier.frames.topics import places
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.measures.ambiguous import is_ambiguous
from vbterrier.measures.base import deepest
from vbterrier.uncertainty.matches import Matches
from vbterrier.uncertainty.replicas import Replicas, left_out, replicate
from vbterrier.uncertainty.statistics import Statistic
from vbterrier.uncertainty.variants import with_variants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run
    from vbterrier.intents.coverage import Coverage

_OF_STATISTICS = ("cutoff", "alpha", "gain", "variance", "clip", "monotone")
# What is settled once for a whole call.
_OF_CALL = ("intents", "tags", "rel", "normalise", "undefined")


def replicas_of(
    runs: Mapping[str, Run],
    intents: pd.DataFrame,
    tags: pd.DataFrame,
    measures: Sequence[ir_measures.Measure],
    perturbations: Sequence[Any],
    *,
    n_replicas: int,
    seed: int,
    method: str,
    progress: bool,
) -> tuple[Replicas, NDArray[np.float64] | None]:
    """Replicas of the measures over intents; diversity measures, which know no probabilities, have none.

    Returns
    -------
    (replicas, left_out)
        The jackknife over intents is there where BCa intervals of resampled intents take their acceleration from it.

    Raises
    ------
    ParameterError
        No measure that has replicas; measures with other intents, tags or NIL than the call's.
    """
    asked = [measure for measure in measures if is_ambiguous(measure)]
    if not asked:
        raise ParameterError("replicas: no measure over intents among the measures; add ES or VB, or drop replicas")
    frame = with_variants(intents, perturbations)
    known, candidates, depth, nil = Tags(tags), Intents(frame), deepest(asked), nil_of(asked)
    matches = {name: matches_of(cover(run, candidates, known, depth, nil=nil), run) for name, run in runs.items()}
    statistics = [statistic_of(measure) for measure in asked]
    made = replicate(frame, matches, perturbations, statistics, n_replicas=n_replicas, seed=seed, progress=progress)
    resampled = method == "bca" and made.source == "intents"
    return made, left_out(frame, matches, statistics) if resampled else None


def nil_of(measures: Sequence[ir_measures.Measure]) -> str:
    """The NIL intent of measures over the intents and tags of a call.

    Raises
    ------
    ParameterError
        Measures that bring their own intents or tags, or ask to read them otherwise, or that differ in NIL.
    """
    asked = [measure for measure in measures if is_ambiguous(measure)]
    nil = {measure["nil"] for measure in asked}
    if len(nil) > 1:
        raise ParameterError("measures must share one nil=; evaluate others in a call of their own")
    for measure in asked:
        own = [name for name in _OF_CALL if measure[name] != measure.SUPPORTED_PARAMS[name].default]
        if own:
            raise ParameterError(
                f"{measure}: measures share the intents and tags of the call, as they are; drop {own[0]}=, or use "
                "vbterrier.score"
            )
    return str(nil.pop()) if nil else ""


def names_of(measures: Sequence[ir_measures.Measure]) -> dict[str, str]:
    """The text of each measure by that of its replicated twin, which knows no NIL."""
    return {str(statistic_of(measure)): str(measure) for measure in measures if is_ambiguous(measure)}


def statistic_of(measure: ir_measures.Measure) -> Statistic:
    """The replicated twin of a measure."""
    given = {name: value for name, value in measure.params.items() if name in _OF_STATISTICS}
    return Statistic(measure.NAME, **{"cutoff": None, **given})


def matches_of(coverage: Coverage, run: Run) -> Matches:
    """The matches of a run, each with its document."""
    intents = coverage.intents
    topic = places(intents.topics, run.topics)[intents.topic[coverage.intent]]
    rows = run.top(coverage.depth).rows[topic, coverage.rank]
    nil = intents.called(coverage.nil) if coverage.nil else None
    return Matches(
        coverage.intent,
        coverage.rank,
        coverage.weight,
        docno=run.docno.take(rows),
        known=coverage.known,
        nil=nil,
        until=None if nil is None else coverage.first_tagged[intents.topic[nil]],
    )

"""Sensitivity of scores over intents to temperature, weights of constraints and truncation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, number, whole
from vbterrier.evaluate.inputs import document_tags, intents_and_tags
from vbterrier.evaluate.pooling import replica_statistic, shared_nil
from vbterrier.evaluate.replicas import coverage_matches
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import runs_by_name
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.kernels.candidates import logarithm, peaks, proportional, softmax, truncation_mask, with_fixed_masses
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.tolerances import COMPARED_DECIMALS
from vbterrier.kernels.vb import per_topic
from vbterrier.measures.intents import IntentMeasure
from vbterrier.measures.target import deepest, require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.stats.candidates import CandidateArrays, State
from vbterrier.stats.matches import Statistic
from vbterrier.stats.perturbations import stability_bounds
from vbterrier.stats.replicas import replicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.stats.candidates import Draws


# Settings other than the reference: T = 1, weight 1, no truncation.
TEMPERATURES, WEIGHTS = (0.25, 0.5, 2.0, 4.0), (0.0, 0.5, 2.0, 4.0)
THRESHOLDS, SIZES, MASSES = (0.01, 0.05, 0.1, 0.2), (1, 2, 3, 5), (0.5, 0.8, 0.9, 0.95)


@with_usual_errors
def intent_sensitivity(
    runs: Any,
    intents: Any,
    measures: Sequence[str | ir_measures.Measure] = ("ES@10", "VB@10"),
    *,
    tags: Any = None,
    temperature: Sequence[float] = TEMPERATURES,
    weight: Sequence[float] | None = None,
    threshold: Sequence[float] = THRESHOLDS,
    n_intents: Sequence[int] = SIZES,
    mass: Sequence[float] = MASSES,
) -> pd.DataFrame:
    """Scores of systems under other temperatures, weights of constraints and truncations, one at a time.

    The paper asks for results across a small range of these settings if there are no labels (section 3.5).
    ``π' ∝ exp(log(π exp(Δ))/T - w Δ)`` with the violations Δ of constraints; truncations as in
    :class:`vbterrier.Truncate`. NIL keeps its mass. Rankings and tags stay the same.

    Parameters
    ----------
    runs, measures
        Frames (qid, docno, score) or paths of TREC runs, by name; measures over intents, or their names.
    intents, tags
        See :func:`vbterrier.score`; intents have a column delta for weights, as :class:`vbterrier.RelaxConstraints`
        writes it; tags may be a tagger.
    temperature, weight
        Values of T, relative to that of the given probabilities, above 0, and factors w of the weights of all
        constraints, at least 0 (0 ignores constraints; by default 0, 0.5, 2 and 4 if intents have a column delta). The
        reference is 1 for both.
    threshold, n_intents, mass
        Truncations: ``π >= τ``, the most probable intents, the smallest number of intents with this mass.

    Returns
    -------
    pandas.DataFrame
        A row for each system, measure, parameter and setting: name, measure, parameter, setting, reference (True for
        the intents as given), value (mean over queries), change (of the mean), largest_change (of a query, absolute),
        distance (mean over queries of ``Σ_i |π_i - π'_i|``), bound (mean over queries of the largest change that the
        distance allows, see :func:`vbterrier.stats.stability_bounds`; NaN for other measures than ES and VB with the
        Bernoulli variance), n_swaps (pairs of systems whose means change order), n_qids. To draw it:
        :func:`vbterrier.report.plots.sensitivity`.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1"], "entity_id": ["A"]})
    >>> chosen = {"temperature": [0.5], "threshold": [], "n_intents": [1], "mass": []}
    >>> result = intent_sensitivity({"mine": run}, intents, tags=tags, **chosen)
    >>> result[["measure", "parameter", "setting", "value"]].round(3).values.tolist()[:4]
    [['ES@10', 'temperature', 0.5, 0.941], ['ES@10', 'temperature', 1.0, 0.8], ['ES@10', 'n_intents', 1.0, 1.0], \
['ES@10', 'n_intents', 2.0, 0.8]]
    """
    reported = measures_from(*measures)
    intents, tags = intents_and_tags(intents, tags)
    frame = named_frame("intents", intents)
    runs = runs_by_name(runs)
    if tags is None:
        require_one_tagger(runs.values())
    other = [measure for measure in reported if not isinstance(measure, IntentMeasure)]
    if other or not reported:
        raise ParameterError(
            f"measures: found {examples(map(str, other)) or 'none'}, wanted measures over intents, as VB@10"
        )
    nil, cutoff = shared_nil(reported), deepest(reported)
    references = [replica_statistic(measure) for measure in reported]
    # Bounds are functions of expected success.
    success = [Statistic("ES", statistic.cutoff, gain=statistic.gain) for statistic in references]
    statistics = list(dict.fromkeys([*references, *success]))
    candidates, known_tags, arrays = Intents(frame), Tags(document_tags(tags, runs, cutoff)), CandidateArrays.of(frame)
    matches = {
        name: coverage_matches(cover(run, candidates, known_tags, cutoff, nil=nil), run) for name, run in runs.items()
    }
    if weight is not None and len(weight) and arrays.delta is None:
        raise InputError("intents: no column 'delta', which weight= multiplies; RelaxConstraints writes it")
    sizes = [whole("n_intents", size) for size in n_intents]
    factors = (WEIGHTS if weight is None else weight) if arrays.delta is not None else ()
    grid = [
        *_settings("temperature", temperature, 1.0, low=0, open_low=True),
        *_settings("weight", factors, 1.0, low=0),
        *_settings("threshold", threshold, 0.0, low=0, high=1),
        *_settings("n_intents", sizes, float(arrays.sizes.max(initial=1)), low=1),
        *_settings("mass", mass, 1.0, low=0, high=1, open_low=True),
    ]
    if not grid:
        raise ParameterError("no settings: wanted at least one temperature, weight, threshold, n_intents or mass")
    base = _under(arrays, "temperature", 1.0)
    prob = np.stack([base, *(base if same else _under(arrays, name, setting) for name, setting, same in grid)])
    values = replicate(frame, matches, [_Distributions(prob)], statistics, n_replicas=len(prob)).values
    distance = per_topic(np.abs(prob - prob[0]), arrays.topic, len(arrays.topics))
    means = np.round(values.mean(axis=3), COMPARED_DECIMALS)
    one, other_one = np.triu_indices(len(runs), 1)
    order = np.sign(means[one] - means[other_one])
    n_swaps = (order != order[:, :, :1]).sum(axis=0)
    settings = dict(pd.DataFrame(grid, columns=["parameter", "setting", "reference"]).items())
    tables = []
    for run_values, name in zip(values, runs, strict=True):
        for statistic, of_success, measure in zip(references, success, reported, strict=True):
            at = statistics.index(statistic)
            change = run_values[at, 1:] - run_values[at, 0]
            bound = _largest_changes(statistic, run_values[statistics.index(of_success), 0], distance[1:])
            columns = {"name": name, "measure": str(measure), **settings, "value": run_values[at, 1:].mean(axis=1)}
            columns |= {"change": change.mean(axis=1), "largest_change": np.abs(change).max(axis=1)}
            columns |= {"distance": distance[1:].mean(axis=1), "bound": bound.mean(axis=1), "n_swaps": n_swaps[at, 1:]}
            tables.append(pd.DataFrame(columns).assign(n_qids=len(arrays.topics)))
    return pd.concat(tables, ignore_index=True)


def _settings(name: str, settings: Sequence[float], reference: float, **legal: Any) -> list[tuple[str, float, bool]]:
    """Name, value and True for the reference of each setting, with the reference, ascending; empty for none."""
    numbers = {number(name, setting, **legal) for setting in np.atleast_1d(np.asarray(settings)).tolist()}
    return [(name, setting, setting == reference) for setting in sorted(numbers | {reference})] if numbers else []


def _under(candidates: CandidateArrays, parameter: str, setting: float) -> Floats:
    """The probabilities of all candidates under one setting, shape (n,)."""
    is_nil = pc.equal(candidates.entity.text, NIL).to_numpy(zero_copy_only=False).astype(bool)
    rows, n = np.flatnonzero(~is_nil), len(candidates.topics)
    base, topic = candidates.log_base[rows], candidates.topic[rows]
    penalty = 0.0 if candidates.delta is None else candidates.delta[rows]
    temperature, weight = (setting if parameter == name else 1.0 for name in ("temperature", "weight"))
    peak = peaks(base, topic, n)
    # Relative to the best candidate, so that no temperature makes all candidates of a query overflow.
    with np.errstate(over="ignore"):
        below = (base - np.where(np.isfinite(peak), peak, 0.0)[topic]) / temperature
        prob = softmax(below - penalty * weight, topic, n)
    if parameter in {"threshold", "n_intents", "mass"}:
        rule: dict[str, Any] = {"top": int(setting)} if parameter == "n_intents" else {parameter: setting}
        stays = truncation_mask(prob, topic, np.arange(len(rows)), **rule)
        prob = proportional(np.where(stays, prob, 0.0), topic, n)
    every, fixed = np.zeros((2, len(candidates)))
    every[rows] = prob
    fixed[is_nil] = State.from_candidates(candidates).prob[0, is_nil]
    return with_fixed_masses(every, fixed, candidates.topic, n)


@dataclass(frozen=True, eq=False)
class _Distributions:
    """Perturbation that gives each replica one of several distributions of the candidates, shape (b, n)."""

    prob: Floats

    def apply(self, state: State, draws: Draws) -> State:
        """Replace the probabilities."""
        base = logarithm(self.prob[draws.replicas][:, state.candidates.span])
        return replace(state, log_base=base, delta=None, violations=None)


def _largest_changes(statistic: Statistic, success: Floats, distance: Floats) -> Floats:
    """The largest change of each query that the distance of its distributions allows, NaN without a bound."""
    if statistic.measure not in ("ES", "VB") or statistic.variance != "bernoulli" or statistic.monotone:
        return np.full(distance.shape, np.nan)
    every = np.broadcast_to(success, distance.shape).ravel()
    bounds = stability_bounds(every, np.minimum(distance.ravel(), 2.0), alpha=statistic.alpha)
    return bounds[f"{statistic.measure}_change"].to_numpy().reshape(distance.shape)

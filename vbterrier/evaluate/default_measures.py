"""Measures that the inputs of an evaluation support, for calls that name none."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError, unheard
from vbterrier.evaluate.inputs import evaluation_target, named_systems, subtopic_frame
from vbterrier.frames.contracts import system_items
from vbterrier.intents.sources import names_subtopics, unequal
from vbterrier.measures.text import distinct_measures, measures_from
from vbterrier.unjudged.model import is_identified

if TYPE_CHECKING:
    import ir_measures
    import pandas as pd

    from vbterrier.measures.target import EvaluationTarget

QRELS_MEASURES = ("ENDCG@10", "nDCG@10", "Unjudged@10")
# For one run, which no other run accompanies as evidence.
SINGLE_RUN_MEASURES = ("ENDCG@10", "BNDCG@10", "nDCG@10", "Unjudged@10")
# For judgments of relevant documents alone.
POSITIVE_MEASURES = ("nDCG@10", "RR@10", "Unjudged@10")
INTENT_MEASURES = ("ES@10", "VB@10")
# Measures of pyndeval, if it is installed.
DIVERSITY_MEASURES = ("alpha_nDCG@10", "ERR_IA@10")
# For intents with different probabilities, which those ignore.
WEIGHTED_MEASURES = ("WeightedAlphaNDCG@10", "WeightedERRIA@10")
# Measures that describe runs: no system is better for a higher or lower value.
DIAGNOSTIC = ("Unjudged",)


def is_named(measures: Any) -> bool:
    """Return True if a caller names at least one measure."""
    return measures is not None and (isinstance(measures, str) or not hasattr(measures, "__len__") or len(measures) > 0)


def is_diversity(target: EvaluationTarget) -> bool:
    """Return True if documents are judged for several subtopics."""
    if "iteration" not in target.columns or not names_subtopics(target.iterations):
        return False
    return bool(target.frame.duplicated(["qid", "docno"]).any())


def default_measures(
    target: EvaluationTarget | None, n_systems: int, *, has_intents: bool, subtopics: pd.DataFrame | None = None
) -> tuple[str, ...]:
    """Return the names of the measures that judgments and intents support, those to report first."""
    diverse = target is not None and is_diversity(target)
    adhoc: tuple[str, ...] = ()
    if target is not None and not diverse:
        # The evaluation warns of them.
        with unheard():
            adhoc = QRELS_MEASURES if n_systems > 1 else SINGLE_RUN_MEASURES
            adhoc = adhoc if is_identified(target.judgments()) else POSITIVE_MEASURES
    has_subtopics = diverse and not has_intents
    diversity = DIVERSITY_MEASURES if has_subtopics and importlib.util.find_spec("pyndeval") else ()
    frames = (None if target is None else target.frame, subtopics)
    if has_subtopics and any(unequal(frame) for frame in frames if frame is not None):
        diversity = WEIGHTED_MEASURES
    return (*adhoc, *diversity, *(INTENT_MEASURES if has_intents or diverse else ()))


def judgments_and_measures(
    measures: Any, runs: Any, qrels: Any, intents: Any, subtopics: Any
) -> tuple[Any, list[ir_measures.Measure]]:
    """Return judgments, read if they decide on the measures, and the measures: named ones, or those they support."""
    if is_named(measures):
        return qrels, distinct_measures(measures)
    target = None if qrels is None else evaluation_target(qrels, None, None)
    if (target is None and intents is None) or (target is not None and "docno" not in target.columns):
        raise ParameterError("no measures; name at least one, as 'BNDCG@10', or give judgments of documents")
    n_systems = len(list(system_items(named_systems(runs))))
    every = None if subtopics is None else subtopic_frame(subtopics)
    names = default_measures(target, n_systems, has_intents=intents is not None, subtopics=every)
    return target, measures_from(*names)

"""One run under one set of incomplete judgments: its truth, and what estimators make of what is left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.topics import places
from vbterrier.judgments.metrics import WEB_GRADE
from vbterrier.measures import BERR, Measure
from vbterrier.measures.base import evaluate
from vbterrier.measures.foreign import foreign_values
from vbterrier.uncertainty.agreement import EQUAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.evaluate.simulations.estimators import Estimator
    from vbterrier.frames.ranked import Run
    from vbterrier.measures.scoring import Slot

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


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
class Block:
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


def truth_of(name: str, run: Run, slot: Slot, measure: ir_measures.Measure) -> Truth:
    """Score a run by complete judgments."""
    run = run.only(_evaluable(slot))
    topics = _shared(_evaluable(slot), run.topics)
    exact = _in_full(measure, slot)
    values = _values(run, slot, [exact], topics)[str(exact)] if topics else np.empty(0)
    return Truth(name, run, topics, values, _n_unjudged(run, slot, measure, topics))


def _in_full(measure: ir_measures.Measure, slot: Slot) -> ir_measures.Measure:
    """A measure with all digits: of ERR, gdeval prints five, too few to stand where an interval ends."""
    if type(measure) is not type(ir_measures.ERR) or slot.judgments().label.max(initial=0) > WEB_GRADE:
        return measure
    return BERR(cutoff=measure.params["cutoff"], prior={0: 1.0})


def block_of(
    simulation: str, slot: Slot, truth: Truth, estimators: Sequence[Estimator], measure: ir_measures.Measure
) -> Block:
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
    return Block(simulation, known, _n_unjudged(known.run, slot, measure, topics), values)


def estimates_frame(blocks: Sequence[Block], estimators: Sequence[Estimator]) -> pd.DataFrame:
    """A row for each block, estimator and topic."""
    return _long(
        [
            (block, {"estimator": estimator.name, "estimate": block.values[str(estimator.point)]})
            for block in blocks
            for estimator in estimators
        ],
        ("estimator", "estimate"),
    )


def intervals_frame(blocks: Sequence[Block], estimators: Sequence[Estimator]) -> pd.DataFrame:
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


def _long(entries: Sequence[tuple[Block, Mapping[str, Any]]], columns: Sequence[str]) -> pd.DataFrame:
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


def _column(parts: Sequence[tuple[Block, Any]]) -> NDArray[Any]:
    return np.concatenate([np.broadcast_to(part, len(block.truth.topics)) for block, part in parts] or [np.empty(0)])


def _evaluable(slot: Slot) -> list[str]:
    """The topics with a relevant document, without which a measure says nothing."""
    judgments = slot.judgments()
    relevant = judgments.counts[:, judgments.grades > 0].sum(axis=1) > 0
    return [topic for topic, some in zip(judgments.topics, relevant, strict=True) if some]


def _shared(topics: Sequence[str], others: Iterable[str]) -> list[str]:
    known = set(others)
    return [topic for topic in topics if topic in known]


def _n_unjudged(run: Run, slot: Slot, measure: ir_measures.Measure, topics: Sequence[str]) -> Ints:
    """Documents without judgment within the cutoff, for each topic, shape (n,)."""
    if not topics:
        return np.empty(0, dtype=np.int64)
    counted = slot.judgments().judge(run, measure.params.get("cutoff")).n_unjudged
    return np.asarray(counted[places(topics, slot.topics)])


def _values(run: Run, slot: Slot, measures: Sequence[ir_measures.Measure], topics: Sequence[str]) -> dict[str, Floats]:
    """By the text of each measure, its value for each topic, shape (n,)."""
    ours = [measure for measure in measures if isinstance(measure, Measure)]
    theirs = [measure for measure in measures if not isinstance(measure, Measure)]
    found: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    for qid, measure, value in chain(
        evaluate(ours, slot, run) if ours else (), foreign_values(theirs, slot, run, warned=bool(ours))
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

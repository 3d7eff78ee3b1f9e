"""What is uncertain within topics, drawn: unjudged documents, or replicas under perturbed intents and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.evaluate.inputs import require_one_tagger
from vbterrier.evaluate.replicas import matches_of, nil_of, statistic_of
from vbterrier.evaluate.sources import tags_of
from vbterrier.frames.named import named
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.judgments.joint import JointDistribution
from vbterrier.measures.base import deepest
from vbterrier.measures.scoring import Scoring
from vbterrier.parallel import tracked
from vbterrier.uncertainty.crossed import crossed_replicas, first_order
from vbterrier.uncertainty.variants import with_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures
    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run
    from vbterrier.measures.process import Bootstrapped
    from vbterrier.measures.scoring import Slot

    Floats = NDArray[np.float64]

UNJUDGED = "unjudged"


class Contrast:
    """Systems, or their differences: what rows of an array of systems become.

    Parameters
    ----------
    systems
        All names.
    pairs
        Names of two systems each; ``None`` for the systems themselves.
    """

    def __init__(self, systems: Sequence[str], pairs: Sequence[tuple[str, str]] | None) -> None:
        self.names = list(systems) if pairs is None else [f"{a} - {b}" for a, b in pairs]
        at = {name: place for place, name in enumerate(systems)}
        self._left, self._right = ([at[pair[side]] for pair in pairs or ()] for side in (0, 1))
        self.is_difference = pairs is not None

    def __call__(self, scores: Floats) -> Floats:
        """The same along the first axis."""
        return scores[self._left] - scores[self._right] if self.is_difference else scores


@dataclass(frozen=True, eq=False)
class Drawn:
    """Scores of m systems or differences on n topics, and draws of what is uncertain within each.

    Parameters
    ----------
    names
        Of the m.
    values
        The scores themselves, shape (m, n).
    expected, variances
        Over what is uncertain, where they are known exactly, shape (m, n).
    draws
        Topic after topic, shape (m, B).
    source
        As :func:`vbterrier.uncertainty.sources.combine_sources` takes it.
    """

    names: list[str]
    values: Floats
    expected: Floats | None
    variances: Floats | None
    draws: Iterable[Floats]
    source: str | dict[str, Floats]


def unjudged(
    measure: Bootstrapped,
    slot: Slot,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    *,
    n_draws: int,
    seed: int,
    progress: bool,
) -> Drawn:
    """Draws of what unjudged documents could be, one document being the same in all systems.

    Raises
    ------
    ParameterError
        A statistic other than the mean.
    """
    if measure["stat"] != "mean":
        raise ParameterError(f"{measure}: the scores themselves are drawn; leave out stat={measure['stat']!r}")
    laws, cuts = {}, {}
    for name, run in runs.items():
        scoring = Scoring(slot, run, measure.cutoff)
        laws[name], cuts[name] = measure.distribution(scoring), measure.judged(scoring)
    joint, contrast = JointDistribution(laws, cuts), Contrast(list(runs), pairs)
    # In an order that is not that of the qrels, so that it changes nothing.
    order = sorted(range(len(joint.topics)), key=joint.topics.__getitem__)
    expected = contrast(np.array([law.mean for law in laws.values()]))[:, order]
    variances = None if contrast.is_difference else np.array([law.std**2 for law in laws.values()])[:, order]
    shown = tracked(order, "drawing", shown=progress and len(order) > 1, unit="topic")
    draws = (contrast(joint.scores(topic, n_draws, seed)) for topic in shown)
    return Drawn(contrast.names, expected, expected, variances, draws, UNJUDGED)


def replicated(
    measure: ir_measures.Measure,
    slot: Slot,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    *,
    intents: Any,
    tags: Any,
    sources: Mapping[str, Sequence[Any]],
    n_draws: int,
    seed: int,
    progress: bool,
) -> Drawn:
    """Replicas under perturbed intents and tags, all systems meeting the same.

    Raises
    ------
    InputError
        Topics without intents; runs tagged in different ways.
    ParameterError
        No intents; measures that bring their own.
    """
    if intents is None:
        raise ParameterError(f"{measure}: give the intents whose uncertainty counts, a frame (qid, entity_id, prob)")
    nil, depth = nil_of([measure]), deepest([measure])
    if tags is None:
        require_one_tagger(runs.values())
    perturbations = [one for some in sources.values() for one in some]
    frame = with_variants(_of_topics(named("intents", intents), slot.topics), perturbations)
    known, candidates = Tags(tags_of(tags, runs, depth)), Intents(frame)
    matches = {name: matches_of(cover(run, candidates, known, depth, nil=nil), run) for name, run in runs.items()}
    made, again = crossed_replicas(
        frame, matches, sources, statistic_of(measure), n_replicas=n_draws, seed=seed, progress=progress
    )
    order, contrast = np.argsort(np.array(made.topics, dtype=object)), Contrast(list(runs), pairs)
    scores = contrast(made.values[:, 0])[..., order]
    parts = {
        name: first_order(np.moveaxis(scores, 1, 0), np.moveaxis(contrast(values)[..., order], 1, 0))
        for name, values in again.items()
    }
    values = contrast(made.point[:, 0])[:, order]
    return Drawn(contrast.names, values, None, None, np.moveaxis(scores, 2, 0), parts or next(iter(sources)))


def _of_topics(intents: pd.DataFrame, topics: Sequence[str]) -> pd.DataFrame:
    qid = intents["qid"].astype(str)
    without = sorted(set(topics).difference(qid))
    if without:
        raise InputError(f"intents: {len(without)} topics ({examples(without)}) have none; add some, or leave them out")
    return intents[qid.isin(set(topics))].reset_index(drop=True)

"""The candidates that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyterrier as pt

from vbterrier.errors import ParameterError
from vbterrier.frames.parameters import number, whole
from vbterrier.intents.frame import Candidates
from vbterrier.intents.stage import Stage
from vbterrier.kernels import candidates as kernels

if TYPE_CHECKING:
    import pandas as pd


class Truncate(Stage):
    """Keep the most probable candidates of each query and divide by what is left: I -> I (Ding 2025, section 3.2).

    Parameters
    ----------
    threshold
        Keep candidates with ``π >= τ`` (the paper: 0.05), in [0, 1].
    top
        Keep the K most probable (the paper: 3 or 5).
    mass
        Keep the smallest number of most probable candidates with ``Σ π >= ρ`` (the paper: 0.95), in (0, 1].

    Raises
    ------
    ParameterError
        None of the three, or an illegal value.
    InputError
        Probabilities that do not sum to 1, an entity that stands twice.

    Notes
    -----
    Each rule keeps a prefix of the candidates in the order of their probability; among equals (to 1e-12) the smallest
    id is first. Of several rules, each of the probabilities as they come, the shortest prefix counts, so their order
    does not matter. The most probable candidate always stays. The NIL intent stays with its mass: the rules are for the
    probabilities given that it is not meant. Duplicates are better merged before, see :class:`Dedup`.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.6, 0.36, 0.04]})
    >>> Truncate(threshold=0.05)(intents).round(3).values.tolist()
    [['q1', 'A', 0.625], ['q1', 'B', 0.375]]
    """

    def __init__(self, *, threshold: float | None = None, top: int | None = None, mass: float | None = None) -> None:
        super().__init__()
        if threshold is None and top is None and mass is None:
            raise ParameterError("Truncate(): wanted threshold=, top= or mass=")
        self.threshold = None if threshold is None else number("threshold", threshold, low=0, high=1)
        self.top = None if top is None else whole("top", top, low=1)
        self.mass = None if mass is None else number("mass", mass, low=0, high=1, open_low=True)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep candidates, rows in the order they stand."""
        pt.validate.columns(inp, includes=["qid", "entity_id", "prob"])
        candidates = Candidates(inp)
        rows, prob = candidates.entities, candidates.among_entities
        topic = candidates.topic[rows]
        stay = kernels.kept(
            prob, topic, candidates.tie[rows], threshold=self.threshold or 0.0, top=self.top, mass=self.mass
        )
        all_prob = candidates.beside_nil(kernels.proportional(np.where(stay, prob, 0.0), topic, candidates.n))
        all_stay = candidates.nil.copy()
        all_stay[rows] = stay
        return candidates.with_prob(all_prob)[all_stay].reset_index(drop=True)

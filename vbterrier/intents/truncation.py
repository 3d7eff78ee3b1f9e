"""Truncation of lists of candidate intents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError, number, whole
from vbterrier.intents.stage import Candidates, IntentStage
from vbterrier.kernels.candidates import proportional, truncation_mask

if TYPE_CHECKING:
    import pandas as pd


class Truncate(IntentStage):
    """Keep the most probable candidates of each query and renormalise: I -> I (Ding 2025, section 3.2).

    Parameters
    ----------
    threshold
        Keep candidates with ``π >= τ`` (the paper: 0.05), in [0, 1].
    cutoff
        Keep this number of most probable candidates (the paper: 3 or 5).
    mass
        Keep the smallest number of most probable candidates with ``Σ π >= ρ`` (the paper: 0.95), in (0, 1].

    Raises
    ------
    ParameterError, InputError
        None of the three; probabilities that do not sum to 1, a duplicated entity.

    Notes
    -----
    Each rule keeps a prefix of the candidates in descending order of the input probabilities, ties (within 1e-12)
    broken by id; several rules keep the shortest prefix, at least the most probable candidate. NIL keeps its mass: the
    rules apply to the probabilities given that it is not meant. Merge duplicates before, see :class:`Dedup`.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B", "C"], "prob": [0.6, 0.36, 0.04]})
    >>> Truncate(threshold=0.05)(intents).round(3).values.tolist()
    [['q1', 'A', 0.625], ['q1', 'B', 0.375]]
    """

    def __init__(self, *, threshold: float | None = None, cutoff: int | None = None, mass: float | None = None) -> None:
        super().__init__()
        if threshold is None and cutoff is None and mass is None:
            raise ParameterError("Truncate(): wanted threshold=, cutoff= or mass=")
        self.threshold = None if threshold is None else number("threshold", threshold, low=0, high=1)
        self.cutoff = None if cutoff is None else whole("cutoff", cutoff, low=1)
        self.mass = None if mass is None else number("mass", mass, low=0, high=1, open_low=True)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep candidates, rows in input order."""
        self.require_columns(inp, "qid", "entity_id", "prob")
        candidates = Candidates(inp)
        rows, prob = candidates.entities, candidates.among_entities
        topic, tie = candidates.topic[rows], candidates.tie[rows]
        is_kept = truncation_mask(prob, topic, tie, threshold=self.threshold or 0.0, top=self.cutoff, mass=self.mass)
        all_prob = candidates.beside_nil(proportional(np.where(is_kept, prob, 0.0), topic, candidates.n))
        all_kept = candidates.nil.copy()
        all_kept[rows] = is_kept
        return candidates.with_prob(all_prob)[all_kept].reset_index(drop=True)

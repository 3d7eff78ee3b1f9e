"""Perturbations of tags: what a tagger could have said of the same documents.

The noise of a tag depends on the seed, the query, the document and the entity alone, so that systems which retrieve one
document see the same of it: their comparison is paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.kernels.perturb import another
from vbterrier.uncertainty.perturb import check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.uncertainty.candidates import Candidates
    from vbterrier.uncertainty.state import Draws

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Tagged:
    """The matches of a system's documents with candidates, one row a replica, or one row for all.

    Parameters
    ----------
    candidates
        The candidates.
    intent, weight
        The place of the candidate and the weight of each match, shape (b or 1, m); weight 0 for a lost tag.
    topic
        The place of each match's query, shape (m,).
    keys
        A number for each query, document and entity, shape (m,).
    """

    candidates: Candidates
    intent: Ints
    weight: Floats
    topic: Ints
    keys: Words


@dataclass(frozen=True)
class TagConfusion:
    """Each tag is wrong with a probability: it names another candidate of the query, or is lost.

    Only tags that name a candidate are confused: what the tagger said of other entities stays outside. A wrong tag of a
    query with a single candidate is lost. Weights stay with the tag.

    Parameters
    ----------
    share
        The probability, 0 to 1.
    lost
        The share of wrong tags that are lost, 0 to 1.

    Examples
    --------
    >>> TagConfusion(0.2, lost=0.5)
    TagConfusion(share=0.2, lost=0.5)
    """

    target: ClassVar[str] = "tags"
    share: float = 0.1
    lost: float = 0.0

    def __post_init__(self) -> None:
        check_number(self, "share", 0.0, 1.0)
        check_number(self, "lost", 0.0, 1.0)

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Confuse tags."""
        if self.share == 0:
            return tagged
        wrong = draws.keyed("wrong", tagged.keys) < self.share
        lost = wrong & (draws.keyed("lost", tagged.keys) < self.lost)
        start, size = tagged.candidates.starts[tagged.topic], tagged.candidates.sizes[tagged.topic]
        other = another(draws.keyed("other", tagged.keys), tagged.intent, start, size)
        lost |= wrong & (size == 1)
        return replace(
            tagged,
            intent=np.where(wrong, other, tagged.intent),
            weight=np.where(lost, 0.0, tagged.weight),
        )


@dataclass(frozen=True)
class TagDropout:
    """Each tag holds, with weight 1, with the probability that its weight states; else it is lost.

    It reads the tagger's own confidence as what it claims to be. Tags of weight 1 always hold.

    Examples
    --------
    >>> TagDropout()
    TagDropout()
    """

    target: ClassVar[str] = "tags"

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Let tags hold or not."""
        holds = draws.keyed("holds", tagged.keys) < tagged.weight
        return replace(tagged, weight=holds.astype(np.float64))

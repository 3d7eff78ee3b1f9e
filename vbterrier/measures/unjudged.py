"""Measures of how much unjudged documents leave open: bounds of nDCG, their share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vbterrier.judgments.bounds import KINDS, SIDES, ndcg_bound
from vbterrier.judgments.metrics import DCG
from vbterrier.measures.base import Measure
from vbterrier.measures.params import CUTOFF, Param

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vbterrier.measures.scoring import Scoring

    Floats = NDArray[np.float64]


class _NDCGBound(Measure):
    """A bound of nDCG@k with unjudged documents: ``side`` lower or upper, ``kind`` naive, rbp, guaranteed or posthoc.

    See :func:`vbterrier.judgments.bounds.ndcg_bound`; in [0, 1]. Neither the naive nor the rbp pair always holds the
    truth, ``guaranteed`` does (Fröbe et al., ECIR 2023, section 3.3); ``posthoc``, which is ours, does if only the
    retrieved documents are judged.

    Parameters
    ----------
    max_grade
        The highest grade there is; the highest of the given qrels by default. Give it when topics come in batches.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.NDCGBound(side="upper", kind="posthoc") @ 10
    NDCGBound(side='upper',kind='posthoc')@10
    """

    __name__ = "NDCGBound"
    NAME = __name__
    BETTER = None
    PRETTY_NAME = "Bound of nDCG"
    SHORT_DESC = "how low or high nDCG can be, whatever the unjudged documents are"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "side": Param(str, "lower", choices=SIDES, desc="which bound"),
        "kind": Param(str, "naive", choices=KINDS, desc="what it assumes"),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "max_grade": Param(int, low=0, desc="the highest grade there is"),
    }

    def values(self, scoring: Scoring) -> Floats:
        """The bound of each topic."""
        judged = scoring.judged(self.cutoff)
        return ndcg_bound(judged, self["side"], self["kind"], dcg=self["dcg"], max_grade=self.params.get("max_grade"))


class _Unjudged(Measure):
    """The share of unjudged documents among the first k retrieved, in [0, 1]; 0 where nothing was retrieved.

    ``1 - Judged@k`` of ir_measures on topics that retrieved something.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.Unjudged @ 10
    Unjudged@10
    """

    __name__ = "Unjudged"
    NAME = __name__
    BETTER = None
    PRETTY_NAME = "Share of unjudged documents"
    SHORT_DESC = "how much of the ranking a score knows nothing about"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF}

    def values(self, scoring: Scoring) -> Floats:
        """The share of each topic."""
        return scoring.judged(self.cutoff).unjudged_share()


NDCGBound = _NDCGBound()
Unjudged = _Unjudged()

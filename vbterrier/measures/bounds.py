"""Bounds of nDCG with unjudged documents, and their share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vbterrier.errors import ParameterError
from vbterrier.measures.base import CUTOFF, Measure, Param
from vbterrier.unjudged.distribution import KINDS, SIDES, ndcg_bound
from vbterrier.unjudged.metrics import DCG

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import EvaluationTarget, Scoring


class _NDCGBound(Measure):
    """A bound of nDCG@k with unjudged documents: ``side`` lower or upper, ``kind`` naive, rbp, guaranteed or posthoc.

    See :func:`vbterrier.unjudged.distribution.ndcg_bound`; in [0, 1]. The kinds differ in the ideal ranking:

    ==============  ==========================================================  ==================================
    kind            ideal ranking                                               encloses the true value
    ==============  ==========================================================  ==================================
    ``naive``       of the pool, fixed                                          not always
    ``rbp``         of the pool and the retrieved documents, all of top grade   not always
    ``guaranteed``  of any pool: every document may be relevant                 always
    ``posthoc``     of the pool and the retrieved documents                     if only these are judged
    ==============  ==========================================================  ==================================

    ``naive``, ``rbp`` and ``guaranteed`` (the default): Fröbe et al., ECIR 2023, section 3.3; ``posthoc`` is an
    addition. All kinds but ``naive`` need ``max_grade``, the highest grade of the scale, which the judgments of a topic
    may not contain.

    >>> import vbterrier
    >>> vbterrier.NDCGBound(side="upper", max_grade=3) @ 10
    NDCGBound(side='upper',max_grade=3)@10
    """

    RANGE = (0.0, 1.0)
    BETTER = None
    PRETTY_NAME = "Bound of nDCG"
    SHORT_DESC = "lowest or highest nDCG for any grades of unjudged documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "side": Param(str, "lower", choices=SIDES, desc="which bound"),
        "kind": Param(str, "guaranteed", choices=KINDS, desc="assumption of the bound"),
        "dcg": Param(str, "log2", choices=DCG, desc="gain is the grade, or 2^grade - 1"),
        "max_grade": Param(int, low=0, desc="the highest grade of the scale"),
    }

    def prepare(self, target: EvaluationTarget) -> None:
        """Look up the judgments of a target."""
        _ = target.judgments().lookup

    def values(self, scoring: Scoring) -> Floats:
        judged, max_grade = scoring.judged_top(self.cutoff), self.params.get("max_grade")
        if max_grade is None and self["kind"] != "naive":
            raise ParameterError(
                f"{self}: give the highest grade of the scale, which unjudged documents may have, as "
                f"NDCGBound(max_grade={judged.judgments.grades[-1]}) for the highest one of these judgments"
            )
        return ndcg_bound(judged, self["side"], self["kind"], dcg=self["dcg"], max_grade=max_grade)


class _Unjudged(Measure):
    """Share of unjudged documents among the first k retrieved, in [0, 1]; 0 if nothing was retrieved.

    ``1 - Judged@k`` of ir_measures on topics with retrieved documents.

    >>> import vbterrier
    >>> vbterrier.Unjudged @ 10
    Unjudged@10
    """

    RANGE = (0.0, 1.0)
    BETTER = None
    PRETTY_NAME = "Share of unjudged documents"
    SHORT_DESC = "share of the ranking without judgments"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF}

    @property
    def is_topicwise(self) -> bool:
        """Always true."""
        return True

    def values(self, scoring: Scoring) -> Floats:
        return scoring.judged_top(self.cutoff).unjudged_share()


NDCGBound = _NDCGBound()
Unjudged = _Unjudged()

"""The reciprocal rank of the evaluation tool of MS MARCO."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.kernels import classic
from vbterrier.measures.base import CUTOFF, Measure, Param

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring


class _MarcoRR(Measure):
    """Reciprocal rank of the first relevant document up to rank k, ties ordered as by MS MARCO's tool, in [0, 1].

    Documents with equal scores (double precision) are ordered by ascending docno, as in the engine ``msmarco`` that
    ``RR@k`` has in ir_measures. All other measures, RR@k included, order them as trec_eval does: scores in single
    precision, then descending docno. Without ties both are equal.

    Source: Nguyen et al., MS MARCO: A Human Generated MAchine Reading COmprehension Dataset, 2016; MacAvaney et al.,
    Streamlining Evaluation with ir-measures, ECIR 2022.

    >>> import vbterrier
    >>> vbterrier.measures.MarcoRR @ 10
    MarcoRR@10
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Reciprocal rank of MS MARCO"
    SHORT_DESC = "1/rank of the first relevant document, ties by ascending docno"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "rel": Param(int, 1, low=1, desc="lowest label of a relevant document"),
    }

    @property
    def depth(self) -> int | None:
        """All ranks: ties at the cutoff may continue beyond it."""
        return None

    @property
    def is_topicwise(self) -> bool:
        """Always true."""
        return True

    def values(self, scoring: Scoring) -> Floats:
        # Checks of ids, and warnings of runs without any judged document.
        judgments = scoring.judged_top(scoring.depth).judgments
        ranks = judgments.judged_ranks(scoring.run, scoring.run.ranks_by_docno())
        relevant = (judgments.grades >= self["rel"])[ranks.level] & (ranks.rank < (self.cutoff or np.inf))
        return classic.reciprocal_rank(ranks.topic, ranks.rank, relevant, len(judgments.topics))


MarcoRR = _MarcoRR()

"""Diversity measures weighted by the probabilities of intents: ERR-IA and α-nDCG."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError
from vbterrier.kernels import novelty
from vbterrier.kernels.rankings import discounts
from vbterrier.kernels.vb import per_topic
from vbterrier.measures.base import CUTOFF, Param
from vbterrier.measures.intents import SOURCES, CandidateMeasure

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.intents.coverage import Coverage
    from vbterrier.measures.target import Scoring


_ALPHA = Param(
    float, 0.5, low=0, high=1, desc="probability that a document about an intent satisfies a user who means it"
)


class NoveltyMeasure(CandidateMeasure):
    """Base class of sums over documents whose gain for an intent falls with each document about it above them."""

    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, "alpha": _ALPHA, **SOURCES}

    def discounted(self, coverage: Coverage, discount: Floats) -> Floats:
        """``Σ_i π_i Σ_r d_r w_ir Π_{j<r} (1 - α w_ij)`` of each topic; ``discount``: d of each rank, shape (k,)."""
        intents, seen = coverage.intents, coverage.rank < len(discount)
        intent, rank, weight = coverage.intent[seen], coverage.rank[seen], coverage.weight[seen]
        novel = novelty.novel_weights(intent, rank, weight, self["alpha"], len(intents.prob))
        return per_topic(intents.prob[intent] * novel * discount[rank], intents.topic[intent], len(intents.topics))

    @property
    def required_cutoff(self) -> int:
        """The cutoff, without which the measure has no value."""
        if self.cutoff is None:
            raise ParameterError(f"{self.NAME}: needs a cutoff, as {self.NAME}@10")
        return self.cutoff


class _WeightedERRIA(NoveltyMeasure):
    """ERR-IA@k weighted by the probabilities of intents, in [0, 1] (Chapelle et al. 2009, section 6; 2011).

    ``Σ_i π_i Σ_{r<=k} (1/r) w_ir Π_{j<r} (1 - α w_ij) / Σ_{r<=k} (1/r) (1 - α)^(r-1)``: the expected reciprocal rank of
    each intent, in which a document of weight w satisfies with probability αw, divided by that of k documents about it.
    All intents count, with or without documents. For equal probabilities and intents that all have documents, it equals
    ``ERR_IA@k`` of ndeval, which ignores probabilities.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.measures.WeightedERRIA @ 10
    WeightedERRIA@10
    """

    PRETTY_NAME = "Intent-aware expected reciprocal rank, weighted by probabilities"
    SHORT_DESC = "expected reciprocal rank over the intents and their probabilities"

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        k = self.required_cutoff
        found = self.discounted(self.coverage(scoring), 1.0 / np.arange(1.0, k + 1))
        return found / novelty.reciprocal_norm(k, self["alpha"])


class _WeightedAlphaNDCG(NoveltyMeasure):
    """α-nDCG@k weighted by the probabilities of intents, in [0, 1] (Clarke et al. 2008, section 3).

    ``Σ_{r<=k} Σ_i π_i w_ir Π_{j<r} (1 - α w_ij) / log2(r + 1)``, divided by that of the greedy ranking of all tagged
    documents of the query; 0 if there are none. For equal probabilities it equals ``alpha_nDCG@k`` of ndeval, which
    ignores probabilities. The ideal ranking needs the tags of the collection: tags in the column ``entity_id`` of the
    run are not enough.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.measures.WeightedAlphaNDCG(alpha=0.9) @ 10
    WeightedAlphaNDCG(alpha=0.9)@10
    """

    PRETTY_NAME = "α-nDCG, weighted by probabilities"
    SHORT_DESC = "discounted gain that falls with repeated intents, over that of a greedy ranking"

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        coverage = self.coverage(scoring)
        found = self.discounted(coverage, discounts(self.required_cutoff))
        if not coverage.tags.pooled:
            raise ParameterError(
                f"{self}: divides by the ideal ranking of all documents, and the run has only its own tags; give tags= "
                "of the whole collection"
            )
        key = ("ideal", self.sources, self["alpha"], self.cutoff)
        ideal = scoring.target.memo(key, lambda: self._ideal(coverage))
        return np.divide(found, ideal, out=np.zeros(len(found)), where=ideal > 0)

    def _ideal(self, coverage: Coverage) -> Floats:
        """The α-DCG of the greedy ranking of each topic."""
        intents, tags = coverage.intents, coverage.tags
        rows, intent = tags.of_intents(intents)
        docno, code = tags.docno.take(rows).distinct()
        # Of equal gains, ndeval takes the larger id.
        pairs = pd.DataFrame({"topic": intents.topic[intent], "place": -docno.ranks()[code], "intent": intent})
        best = pairs.assign(weight=tags.weight[rows]).groupby(["topic", "place", "intent"], as_index=False).max()
        documents = best[["topic", "place"]].drop_duplicates()
        document = np.asarray(best.groupby(["topic", "place"], sort=True).ngroup(), dtype=np.int64)
        return novelty.ideal_alpha_dcg(
            intents.prob,
            best["intent"].to_numpy(dtype=np.int64),
            document,
            best["weight"].to_numpy(),
            documents["topic"].to_numpy(dtype=np.int64),
            alpha=self["alpha"],
            cutoff=self.required_cutoff,
            n_topics=len(intents.topics),
        )


WeightedERRIA = _WeightedERRIA()
WeightedAlphaNDCG = _WeightedAlphaNDCG()

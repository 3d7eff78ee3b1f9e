"""Diversity measures weighted by the probabilities of intents: ERR-IA, α-nDCG, NRBP, D-nDCG, D#-nDCG and I-rec."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.kernels import novelty
from vbterrier.kernels.rankings import discounts, stable_order
from vbterrier.kernels.vb import per_topic
from vbterrier.measures.base import CUTOFF, Param
from vbterrier.measures.intents import PARTS_TOGETHER, SOURCES, CandidateMeasure
from vbterrier.unjudged.metrics import DCG

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.intents.coverage import Coverage
    from vbterrier.measures.target import Scoring


_ALPHA = Param(
    float, 0.5, low=0, high=1, desc="probability that a document about an intent satisfies a user who means it"
)


class NoveltyMeasure(CandidateMeasure):
    """Base class of sums over documents whose gain for an intent falls with each document about it above them."""

    RANGE = (0.0, 1.0)
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, "alpha": _ALPHA, **SOURCES}

    def discounted_gains(self, coverage: Coverage, discount: Floats) -> Floats:
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
        total = self.discounted_gains(self.coverage(scoring), 1.0 / np.arange(1.0, k + 1))
        return total / novelty.reciprocal_norm(k, self["alpha"])


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
        gain = self.discounted_gains(coverage, discounts(self.required_cutoff))
        _require_pool(self, coverage)
        key = ("ideal", self.sources, self["alpha"], self.cutoff)
        ideal = scoring.target.memo(key, lambda: self._ideal(coverage))
        return np.divide(gain, ideal, out=np.zeros(len(gain)), where=ideal > 0)

    def _ideal(self, coverage: Coverage) -> Floats:
        """The α-DCG of the greedy ranking of each topic."""
        pool = _TaggedPool.of(coverage)
        return novelty.ideal_alpha_dcg(
            coverage.intents.prob,
            pool.intent,
            pool.document,
            pool.weight,
            pool.topic,
            alpha=self["alpha"],
            cutoff=self.required_cutoff,
            n_topics=len(coverage.intents.topics),
        )


class _WeightedNRBP(NoveltyMeasure):
    """Novelty- and rank-biased precision weighted by probabilities, in [0, 1] (Clarke et al. 2009, section 3).

    ``(1 - (1 - α) β) Σ_r β^(r-1) Σ_i π_i w_ir Π_{j<r} (1 - α w_ij)``: β is the probability that a user continues to
    the next document. Without a cutoff, the whole ranking counts. All intents count, with or without documents. For
    equal probabilities and intents that all have documents, it equals ``NRBP`` of ndeval, which ignores probabilities.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.measures.WeightedNRBP(beta=0.8) @ 10
    WeightedNRBP(beta=0.8)@10
    """

    PRETTY_NAME = "Novelty- and rank-biased precision, weighted by probabilities"
    SHORT_DESC = "rank-biased gain that falls with repeated intents, over that of documents about all of them"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        **NoveltyMeasure.SUPPORTED_PARAMS,
        "beta": Param(float, 0.5, low=0, high=1, desc="persistence of users, below 1"),
    }

    def check(self) -> None:
        """Refuse users who never stop, for whom the norm is infinite without novelty."""
        if self["beta"] == 1:
            raise ParameterError(f"{self.NAME}: beta=1.0: wanted a number of at least 0 and below 1")

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        coverage, beta = self.coverage(scoring), self["beta"]
        total = self.discounted_gains(coverage, beta ** np.arange(_n_ranks(coverage, self.cutoff)))
        return np.asarray(total * (1 - (1 - self["alpha"]) * beta))


_GAINS = {
    "dcg": Param(str, "log2", choices=DCG, desc="gain of a label of diversity qrels: the label, or 2^label - 1"),
}


class GradedMeasure(CandidateMeasure):
    """Base class of measures of the gains of documents for each intent: weights of tags, or labels of diversity qrels.

    The ratio of the gains of two documents matters, not their unit.
    """

    RANGE = (0.0, 1.0)
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **_GAINS, **SOURCES}

    @property
    def gains_of_labels(self) -> str:
        """The gains of the labels of diversity qrels."""
        return str(self["dcg"]) if "dcg" in self.SUPPORTED_PARAMS else ""

    def recall(self, coverage: Coverage, *, weighted: bool = False) -> Floats:
        """Share of the intents of each topic, or their probability, that a document up to the cutoff is about."""
        intents = coverage.intents
        seen = coverage.intent[coverage.rank < _n_ranks(coverage, self.cutoff)]
        weight = intents.prob if weighted else np.ones(len(intents.prob))
        covered = weight * (np.bincount(seen, minlength=len(weight)) > 0)
        n = len(intents.topics)
        return per_topic(covered, intents.topic, n) / per_topic(weight, intents.topic, n)

    def d_ndcg(self, scoring: Scoring, coverage: Coverage) -> Floats:
        """D-nDCG of each topic."""
        discount = discounts(_n_ranks(coverage, self.cutoff))
        seen = coverage.rank < len(discount)
        intent = coverage.intent[seen]
        intents, n = coverage.intents, len(coverage.intents.topics)
        gain = per_topic(
            intents.prob[intent] * coverage.weight[seen] * discount[coverage.rank[seen]], intents.topic[intent], n
        )
        _require_pool(self, coverage)

        def ideal() -> Floats:
            pool = _TaggedPool.of(coverage)
            gain = per_topic(intents.prob[pool.intent] * pool.weight, pool.document, len(pool.topic))
            return novelty.ideal_global_dcg(gain, pool.topic, cutoff=self.cutoff, n_topics=n)

        best = scoring.target.memo(("global ideal", self.sources, self.cutoff), ideal)
        # Sums in another order differ by rounding.
        return np.minimum(np.divide(gain, best, out=np.zeros(n), where=best > 0), 1.0)


class _DNDCG(GradedMeasure):
    """D-nDCG@k: nDCG of the global gains of documents, in [0, 1] (Sakai and Song 2011, section 3.1).

    The global gain of a document is ``GG(d) = Σ_i π_i g_i(d)``, its gain for each intent weighted by the probability of
    the intent; ``Σ_{r<=k} GG(d_r) / log2(r + 1)`` is divided by that of the documents of the query with the largest
    global gains, and is 0 if there are none. Gains are the labels of diversity qrels for each intent, or the weights of
    tags. Like WeightedAlphaNDCG, it needs the tags of the collection. It does not reward diversity by itself: see
    DSharpNDCG.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.measures.DNDCG(dcg="exp-log2") @ 10
    DNDCG(dcg='exp-log2')@10
    """

    PRETTY_NAME = "D-nDCG"
    SHORT_DESC = "nDCG of the gains of documents over all intents, weighted by probabilities"

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        return self.d_ndcg(scoring, self.coverage(scoring))


class _DSharpNDCG(GradedMeasure):
    """D#-nDCG@k ``= γ I-rec@k + (1 - γ) D-nDCG@k``, in [0, 1] (Sakai and Song 2011, section 3.2).

    See DNDCG and IRec. With ``weighted=True``, the recall is that of probability, the sum of π over the covered
    intents, so that an improbable intent counts less.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> rows = [("1", "a", 3), ("1", "b", 1), ("2", "b", 1)]
    >>> subtopics = pd.DataFrame(rows, columns=["iteration", "docno", "label"])
    >>> qrels = pd.concat([subtopics.assign(qid="q1"), subtopics.assign(qid="q2")])
    >>> run = pd.DataFrame({"qid": ["q1", "q2"], "docno": "a", "score": 1.0})
    >>> measures = ["DNDCG@1", "IRec@1", vbterrier.measures.DSharpNDCG(gamma=0.5) @ 1]
    >>> vbterrier.score(run, qrels, measures).means().iloc[0].tolist()
    [1.0, 0.5, 0.75]
    """

    PRETTY_NAME = "D#-nDCG"
    SHORT_DESC = "mean of the recall of intents and D-nDCG"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "gamma": Param(float, 0.5, low=0, high=1, desc="weight of the recall of intents"),
        "weighted": Param(bool, False, desc="weigh the recall of intents by their probabilities"),
        **_GAINS,
        **SOURCES,
    }

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        coverage, gamma = self.coverage(scoring), self["gamma"]
        recall = self.recall(coverage, weighted=self["weighted"])
        return np.asarray(gamma * recall + (1 - gamma) * self.d_ndcg(scoring, coverage))


class _IRec(GradedMeasure):
    """I-rec@k: share of the intents that one of the first k documents is about, in [0, 1] (Sakai and Song 2011).

    All intents count equally, with or without documents, and tags of any positive weight; ``ES@k`` is the recall
    weighted by probabilities. For intents that all have documents, it equals ``StRecall@k`` of ndeval.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.measures.IRec @ 10
    IRec@10
    """

    PRETTY_NAME = "Recall of intents"
    SHORT_DESC = "share of the intents that are covered, regardless of their probabilities"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **SOURCES, "parts": PARTS_TOGETHER}

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        return self.recall(self.coverage(scoring))


class _TaggedPool(NamedTuple):
    """All tagged documents of the topics: intent, document and weight of each tag, and the topic of each document."""

    intent: Ints
    document: Ints
    weight: Floats
    topic: Ints

    @classmethod
    def of(cls, coverage: Coverage) -> _TaggedPool:
        """The pool of the tags of a coverage, by topic, then by falling docno: of equal gains, ndeval takes the larger.

        Repeated tags count with their largest weight.
        """
        intents, tags = coverage.intents, coverage.tags
        rows, intent = tags.of_intents(intents)
        docno, code = tags.docno.take(rows).distinct()
        # One number a document of a topic, and tags in their order, then in that of their intents.
        pair, n_documents = intents.topic[intent] * len(docno) - docno.ranks()[code], len(intents.topics) * len(docno)
        order = stable_order(intent, len(intents.prob))[0]
        order = order[stable_order(pair[order] + len(docno), n_documents + len(docno))[0]]
        intent, pair, weight = intent[order], pair[order], tags.weight[rows][order]
        is_document = np.diff(pair, prepend=-len(docno) - 1) > 0
        is_tag = is_document | (np.diff(intent, prepend=-1) != 0)
        largest = np.maximum.reduceat(weight, np.flatnonzero(is_tag)) if len(weight) else weight
        document = np.cumsum(is_document) - 1
        return cls(intent[is_tag], document[is_tag], largest, intents.topic[intent[is_document]])


def _require_pool(measure: CandidateMeasure, coverage: Coverage) -> None:
    """Refuse tags of the run alone for a measure that divides by an ideal ranking."""
    if not coverage.tags.pooled:
        raise ParameterError(
            f"{measure}: divides by the ideal ranking of all documents, and the run has only its own tags; give tags= "
            "of the whole collection"
        )


def _n_ranks(coverage: Coverage, cutoff: int | None) -> int:
    """The cutoff, or the number of ranks of the deepest ranking."""
    return coverage.depth if cutoff is None else cutoff


WeightedERRIA = _WeightedERRIA()
WeightedAlphaNDCG = _WeightedAlphaNDCG()
WeightedNRBP = _WeightedNRBP()
DNDCG = _DNDCG()
DSharpNDCG = _DSharpNDCG()
IRec = _IRec()

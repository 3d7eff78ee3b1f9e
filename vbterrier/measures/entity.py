"""Measures of entity runs: coverage of the documents of a candidate pool, and discrimination of relevant documents.

The qrels are the K frame of a pool (:meth:`vbterrier.entities.LinkedPool.to_frame`): qid, docno, entity_id, label,
rank, weight. The docno of a run is an entity id. All measures and cutoffs of one evaluation share one pass over the
run. The mean of each measure is over the topics where it is defined, unless ``undefined="zero"`` or ``"raise"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.frames.entity_coverage import (
    ALPHA,
    BAIT,
    SHRINKAGE,
    SIGNAL,
    Oracle,
    at_cutoff,
    class_indicators,
    core_coverage,
    mean_of_first,
    of_selected,
    rank_correlation,
    ratio,
    reached_shares,
    share,
)
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.measures.base import CUTOFF, SKIP_UNDEFINED, Measure, Param

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.entity_coverage import EntityTable
    from vbterrier.measures.target import Scoring


_REL = Param(int, 1, low=1, desc="the lowest label of a relevant document")
_COVERAGE = {"cutoff": CUTOFF, "rel": _REL, "undefined": SKIP_UNDEFINED}
_EVIDENCE = {
    "alpha": Param(float, ALPHA, low=1e-9, desc="pseudo-count of the log odds"),
    "tau": Param(float, SHRINKAGE, low=1e-9, desc="how many documents make support"),
    "rel": _REL,
    "undefined": SKIP_UNDEFINED,
}


class _OfEntities(Measure):
    """A measure of an entity run against the links of a pool."""

    QREL_INPUTS: ClassVar[list[str]] = [TO_IR_MEASURES["qid"]]

    def table(self, scoring: Scoring) -> EntityTable:
        """The entities of the pool with their relevance statistics."""
        return scoring.target.entity_table(self["rel"])

    def pool_coverage(self, scoring: Scoring, *, relevant: bool) -> Floats:
        """Share of the relevant or of the non-relevant documents that the first k entities reach, shape (n_topics,)."""

        def shares() -> Floats:
            chosen = scoring.target.linked_pool.relevant(self["rel"])
            return reached_shares(scoring.selection(), chosen if relevant else ~chosen)

        return at_cutoff(scoring.memo(("reached", self["rel"], relevant), shares), self.cutoff)


class _OfEvidence(_OfEntities):
    """Base class of measures of the association between selected entities and relevance."""

    def oer(self, scoring: Scoring) -> Floats:
        """OER of each pair."""
        key = ("OER", self["rel"], self["alpha"], self["tau"])
        return scoring.target.memo(key, lambda: self.table(scoring).oer(self["alpha"], self["tau"]))

    def classes(self, scoring: Scoring) -> Ints:
        """The signal class of each pair."""
        key = ("classes", self["rel"], self["alpha"], self["tau"])
        return scoring.target.memo(key, lambda: self.table(scoring).classes(self["alpha"], self["tau"]))

    def selected_oer(self, scoring: Scoring) -> Floats:
        """OER of each selected entity, 0 for entities that no document of the topic mentions."""
        key = ("selected OER", self["rel"], self["alpha"], self["tau"])
        return scoring.memo(key, lambda: of_selected(scoring.selection(), self.oer(scoring)))

    def class_share(self, names: tuple[str, ...], scoring: Scoring, k: int | None) -> Floats:
        """Share of the first k entities in the named classes, shape (n_topics,)."""
        key = ("is", names, self["rel"], self["alpha"], self["tau"])
        evidence = scoring.memo(
            key, lambda: of_selected(scoring.selection(), class_indicators(self.classes(scoring), names))
        )
        return self.where_contrasted(mean_of_first(evidence, k), scoring)

    def where_contrasted(self, values: Floats, scoring: Scoring) -> Floats:
        """Replace values of topics without relevant or without non-relevant documents by NaN."""
        return np.where(self.table(scoring).contrasts, values, np.nan)


class _RelCov(_OfEntities):
    """Relevant coverage ``RelCov@k = |{d in R_q : Λ(d) ∩ E^k ≠ ∅}| / |R_q|``, in [0, 1].

    ``R_q`` are the relevant documents of the topic's pool, ``Λ(d)`` the entities of a document, ``E^k`` the first k
    entities of the run (Chatterjee, arXiv 2604.05204, section 2.3). Undefined without a relevant document in the pool.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Rome", "Paris"]})
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "label": [1, 1]})
    >>> links = vbterrier.entities.link_pool(pool, tags, qrels).to_frame().rename(columns={"qid": "query_id"})
    >>> run = pd.DataFrame({"query_id": ["q1"], "doc_id": ["Paris"], "score": [1.0]})
    >>> [metric.value for metric in (vbterrier.RelCov @ 20).iter_calc(links, run)]
    [0.5]
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Relevant coverage"
    SHORT_DESC = "share of the relevant documents that the selected entities reach"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COVERAGE

    def values(self, scoring: Scoring) -> Floats:
        return self.pool_coverage(scoring, relevant=True)


class _NonRelCov(_OfEntities):
    """Non-relevant coverage: :data:`RelCov` of the non-relevant documents of the pool, in [0, 1]; lower is better.

    Unjudged documents count as non-relevant. Undefined if all documents of the pool are relevant.

    >>> import vbterrier
    >>> vbterrier.NonRelCov(rel=2) @ 20
    NonRelCov(rel=2)@20
    """

    RANGE = (0.0, 1.0)
    BETTER = "lower"
    PRETTY_NAME = "Non-relevant coverage"
    SHORT_DESC = "share of the non-relevant documents that the selected entities reach"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COVERAGE

    def values(self, scoring: Scoring) -> Floats:
        return self.pool_coverage(scoring, relevant=False)


class _DiscRatio(_OfEntities):
    """Ratio ``RelCov@k / (NonRelCov@k + ε)`` of a topic, at least 0: a diagnostic of single topics.

    ``ε = epsilon``, or ``1/(2 |N_q|)`` for ``|N_q|`` non-relevant documents in the pool of the topic, half a document.
    The paper does not print its ε; with a small one, topics that reach no non-relevant document dominate the mean.

    The ratio of a collection is not the mean of these ratios, which topics without reached non-relevant documents
    dominate, but the ratio of the means: :func:`vbterrier.stats.disc_ratio`. Undefined without relevant or without
    non-relevant documents.

    >>> import vbterrier
    >>> vbterrier.DiscRatio @ 20
    DiscRatio@20
    """

    IS_RATIO_OF_MEANS = True
    PRETTY_NAME = "Discrimination ratio of topics (diagnostic)"
    SHORT_DESC = "a diagnostic: the ratio of a collection is mean RelCov over mean NonRelCov (disc_ratio)"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "epsilon": Param(float, low=1e-12, desc="added to NonRelCov; half a document of the pool without it"),
        "rel": _REL,
        "undefined": SKIP_UNDEFINED,
    }

    def values(self, scoring: Scoring) -> Floats:
        relevant, other = (self.pool_coverage(scoring, relevant=which) for which in (True, False))
        return ratio(relevant, other, self.table(scoring).n_other, self.params.get("epsilon"))


class _OER(_OfEvidence):
    """Mean observable entity relevance of the first k entities: a log odds ratio, shrunk for rare entities.

    ``OER(e) = (1 - exp(-df/τ)) (logit p(e|rel) - logit p(e|nonrel))``, ``p(e|rel) = (df_rel + α)/(|R_q| + 2α)``
    (Chatterjee, arXiv 2604.05204, section 2.5, which gives neither α nor τ). The mean is over the retrieved entities,
    at most k; entities that no document of the pool mentions have no support and count 0. Topics without retrieved
    entities score 0. Undefined without relevant or without non-relevant documents.

    >>> import vbterrier
    >>> vbterrier.OER(tau=10) @ 20
    OER(tau=10.0)@20
    """

    PRETTY_NAME = "Observable entity relevance"
    SHORT_DESC = "association of the selected entities with relevance"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **_EVIDENCE}

    def values(self, scoring: Scoring) -> Floats:
        return self.where_contrasted(mean_of_first(self.selected_oer(scoring), self.cutoff), scoring)


class _SignalRate(_OfEvidence):
    """Share of the first k entities that are core or conditional signals, in [0, 1].

    See :func:`vbterrier.kernels.coverage.signal_classes`. Entities that no document of the pool mentions are no signal.
    Topics without retrieved entities score 0.

    >>> import vbterrier
    >>> vbterrier.SignalRate @ 20
    SignalRate@20
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Signal rate"
    SHORT_DESC = "share of selected entities that indicate relevance"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **_EVIDENCE}

    def values(self, scoring: Scoring) -> Floats:
        return self.class_share(SIGNAL, scoring, self.cutoff)


class _BaitRate(_OfEvidence):
    """Share of the first k entities that are generic bait or anti-signals, in [0, 1]; lower is better.

    See :data:`SignalRate`; topics without retrieved entities score 0.

    >>> import vbterrier
    >>> vbterrier.BaitRate @ 20
    BaitRate@20
    """

    RANGE = (0.0, 1.0)
    BETTER = "lower"
    PRETTY_NAME = "Bait rate"
    SHORT_DESC = "share of selected entities that do not indicate relevance, or indicate non-relevance"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **_EVIDENCE}

    def values(self, scoring: Scoring) -> Floats:
        return self.class_share(BAIT, scoring, self.cutoff)


class _TopBait(_OfEvidence):
    """Bait as the first entity: ``BaitRate@1``, 0 or 1; its mean is the share of such topics.

    >>> import vbterrier
    >>> vbterrier.TopBait
    TopBait
    """

    RANGE = (0.0, 1.0)
    BETTER = "lower"
    PRETTY_NAME = "Top-1 bait"
    SHORT_DESC = "1 if the first entity does not indicate relevance, or indicates non-relevance"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _EVIDENCE

    @property
    def depth(self) -> int:
        """The first entity only."""
        return 1

    def values(self, scoring: Scoring) -> Floats:
        return self.class_share(BAIT, scoring, 1)


class _OERCorr(_OfEvidence):
    """Spearman correlation of the scores of the first k entities with their OER, in [-1, 1].

    Scores are compared as 32-bit floats, as in ranking; ties share their mean rank. Entities that no document of the
    pool mentions have an OER of 0. Undefined with fewer than three entities, with constant scores or OER, and without
    relevant or without non-relevant documents.

    >>> import vbterrier
    >>> vbterrier.OERCorr(undefined="zero") @ 20
    OERCorr(undefined='zero')@20
    """

    RANGE = (-1.0, 1.0)
    PRETTY_NAME = "Correlation with OER"
    SHORT_DESC = "rank correlation of entity scores with observable entity relevance"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {"cutoff": CUTOFF, **_EVIDENCE}

    def values(self, scoring: Scoring) -> Floats:
        oer, score = self.selected_oer(scoring)[:, : self.cutoff], scoring.selection().score[:, : self.cutoff]
        with np.errstate(over="ignore"):
            return rank_correlation(score.astype(np.float32).astype(np.float64), oer)


class _ObsCov(_OfEvidence):
    """Observable coverage: share of the relevant documents that mention a core entity, in [0, 1].

    All core entities of the pool of the topic count, independently of the run: the measure describes topics and their
    links, for comparison with the coverage of runs (Chatterjee, arXiv 2604.05204, section 6.1). Undefined without
    relevant or without non-relevant documents in the pool: such topics have no OER, and so no core entities.

    >>> import vbterrier
    >>> vbterrier.ObsCov
    ObsCov
    """

    RANGE = (0.0, 1.0)
    BETTER = None
    PRETTY_NAME = "Observable coverage"
    SHORT_DESC = "share of the relevant documents within reach of core entities"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _EVIDENCE

    @property
    def depth(self) -> int:
        """The measure does not depend on the run."""
        return 1

    def values(self, scoring: Scoring) -> Floats:
        key = ("core coverage", self["rel"], self["alpha"], self["tau"])
        return scoring.target.memo(key, lambda: core_coverage(self.table(scoring), self.classes(scoring)))


class _OracleCov(_OfEntities):
    """Relevant coverage of the best k entities of the pool, in [0, 1], independently of the run.

    The entities are selected greedily, which reaches at least ``1 - 1/e`` (63 %) of the maximum (Nemhauser, Wolsey and
    Fisher 1978), and in practice nearly all; ``exact`` solves the integer programme of each topic for which it may not
    be optimal, for small cases. Without k, the share of relevant documents with any entity. Undefined without a
    relevant document in the pool.

    >>> import vbterrier
    >>> vbterrier.OracleCov(exact=True) @ 20
    OracleCov(exact=True)@20
    """

    RANGE = (0.0, 1.0)
    BETTER = None
    PRETTY_NAME = "Oracle coverage"
    SHORT_DESC = "share of the relevant documents that the best entities of the pool reach"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "exact": Param(bool, False, desc="optimal instead of greedy selection"),
        "rel": _REL,
        "undefined": SKIP_UNDEFINED,
    }

    def values(self, scoring: Scoring) -> Floats:
        target, k = scoring.target, self.cutoff
        key = ("oracle", self["rel"], scoring.depth)
        oracle = target.memo(key, lambda: Oracle(target.linked_pool, self["rel"], scoring.depth))
        n = oracle.greedy(k)
        if self["exact"]:
            n = target.memo(("exact", self["rel"], k), lambda: oracle.exact(k))
        return share(n, self.table(scoring).n_relevant)


RelCov = _RelCov()
NonRelCov = _NonRelCov()
DiscRatio = _DiscRatio()
OER = _OER()
SignalRate = _SignalRate()
BaitRate = _BaitRate()
TopBait = _TopBait()
OERCorr = _OERCorr()
ObsCov = _ObsCov()
OracleCov = _OracleCov()

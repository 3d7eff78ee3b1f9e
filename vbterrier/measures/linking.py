"""Measures of entity linking with NIL: each query has one answer, an entity or none.

In place of qrels stands the gold standard (qid, entity_id); the first entity of each query of a run is its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.errors import InputError
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.kernels.linking import FIGURES
from vbterrier.linking.answers import (
    MULTIPLE_ANSWERS,
    NIL,
    UNANSWERED,
    Decisions,
    Gold,
    checked_nil,
    decide,
    warn_of_silence,
)
from vbterrier.measures.base import UNDEFINED, Measure, Param

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring


_TOTAL = {
    "nil": Param(str, NIL, desc="the word for no entity; with NIL, numbered clusters such as NIL0012 too"),
    "unanswered": Param(str, "nothing", choices=UNANSWERED, desc="what a query without an answer is"),
    "multiple_answers": Param(
        str, "raise", choices=MULTIPLE_ANSWERS, desc="several right entities: an error, or any of them"
    ),
}
_PART = {**_TOTAL, "undefined": UNDEFINED}


class LinkingMeasure(Measure):
    """A figure of a whole set of queries, and what each of them stands for in it."""

    QREL_INPUTS: ClassVar[list[str]] = [TO_IR_MEASURES["qid"]]

    @property
    def depth(self) -> int:
        """An answer is one."""
        return 1

    @property
    def _key(self) -> tuple[str, ...]:
        """What decides the answers: measures that agree in it share them."""
        return tuple(self[name] for name in _TOTAL)

    def check(self) -> None:
        """Refuse an empty word for NIL."""
        checked_nil(self["nil"])

    def decisions(self, scoring: Scoring) -> Decisions:
        """What the run answers, beside what is right."""
        nil, unanswered, multiple_answers = self._key
        gold = scoring.target.memo(
            ("gold", nil, multiple_answers),
            lambda: Gold(scoring.target.frame, nil=nil, multiple_answers=multiple_answers, name="qrels"),
        )
        return scoring.memo(("decisions", self._key), lambda: decide(scoring.run, gold, unanswered=unanswered))

    def values(self, scoring: Scoring) -> Floats:
        """What each query stands for."""
        every = scoring.memo(("influence", self._key), self.decisions(scoring).influence)
        return every[:, FIGURES.index(self.NAME)]


class _Part(LinkingMeasure):
    """Precision or recall of one kind, which is undefined where there is none of it."""

    def values(self, scoring: Scoring) -> Floats:
        """What each query stands for, NaN for all where the figure is undefined.

        Raises
        ------
        InputError
            It is undefined, unless asked for 0 or nothing.
        """
        values = super().values(scoring)
        if self["undefined"] == "raise" and np.isnan(values).any():
            kind = repr(self["nil"]) if self.NAME.startswith("Nil") else "an entity"
            found = f"{scoring.run.name} answers no query with" if self.NAME.endswith("P") else "no query has"
            raise InputError(f"{self} is undefined: {found} {kind}; ask for undefined='zero' or 'skip'")
        return values


class _Total(LinkingMeasure):
    """A figure with the precision of both kinds, which counts 0 for one that the system never answers."""

    def values(self, scoring: Scoring) -> Floats:
        """What each query stands for; warns where such a kind is right for some."""
        decisions = self.decisions(scoring)
        scoring.memo(("silence", self._key), lambda: warn_of_silence(decisions, self["nil"], scoring.run.name))
        return super().values(scoring)


class _LinkP(_Part):
    """Link precision: right links over links that the system predicts, NIL aside (Mertens et al. 2014, section 2.2).

    Figures of linking are ratios over all queries, and hosts can only average values of single ones. So the value of a
    query is what it stands for in the figure, ``v_q = θ + n ∇θ · x_q``
    (:func:`vbterrier.kernels.linking.influence`): the mean over all queries **is** the figure, and intervals and paired
    tests over the values are those of the delta method. A single value is no score: it may lie outside [0, 1], and
    depends on all answers of the system. ``pt.Experiment(batch_size=...)`` would average the figures of batches: leave
    it out.

    Undefined, for all queries at once, where the system predicts no link.

    Parameters
    ----------
    nil
        The word for no entity, in gold and answers; with ``"NIL"``, TAC's numbered clusters of NILs too.
    unanswered
        A query that the run has nothing for is ``"nothing"``, neither link nor NIL: it lowers recall, not precision. Or
        it is ``"nil"``.
    multiple_answers
        Queries with several right entities are refused (``"raise"``), or any of these is right (``"any"``).
    undefined
        ``"raise"``, ``"zero"`` or ``"skip"``.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> gold = pd.DataFrame({"query_id": ["q1", "q2", "q3"], "entity_id": ["Paris", "Rome", "NIL"]})
    >>> run = pd.DataFrame({"query_id": ["q1", "q2", "q3"], "doc_id": ["Paris", "Romeo", "NIL"], "score": 1.0})
    >>> vbterrier.LinkP.calc_aggregate(gold, run)
    0.5
    >>> [metric.value for metric in vbterrier.LinkP.iter_calc(gold, run)]
    [1.25, -0.25, 0.5]
    """

    __name__ = "LinkP"
    NAME = __name__
    PRETTY_NAME = "Link precision"
    SHORT_DESC = "share of the predicted links that are right"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _LinkR(_Part):
    """Link recall: right links over gold links; parameters and values of queries as of :data:`LinkP`.

    Undefined where no query has an entity.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.LinkR(multiple_answers="any")
    LinkR(multiple_answers='any')
    """

    __name__ = "LinkR"
    NAME = __name__
    PRETTY_NAME = "Link recall"
    SHORT_DESC = "share of the queries with an entity that are linked to it"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _NilP(_Part):
    """NIL precision: right NILs over NILs that the system predicts; parameters and values as of :data:`LinkP`.

    Undefined where the system predicts no NIL.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.NilP(unanswered="nil")
    NilP(unanswered='nil')
    """

    __name__ = "NilP"
    NAME = __name__
    PRETTY_NAME = "NIL precision"
    SHORT_DESC = "share of the predicted NILs that are right"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _NilR(_Part):
    """NIL recall: right NILs over gold NILs; parameters and values of queries as of :data:`LinkP`.

    Undefined where each query has an entity.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.NilR(undefined="skip")
    NilR(undefined='skip')
    """

    __name__ = "NilR"
    NAME = __name__
    PRETTY_NAME = "NIL recall"
    SHORT_DESC = "share of the queries without an entity that are told so"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _LinkingP(_Total):
    """Total precision ``P = (n_L P_L + n_N P_N)/(n_L + n_N)`` with the numbers of gold links and NILs, in [0, 1].

    Mertens et al. 2014, section 2.2; parameters and values of queries as of :data:`LinkP`. The precision of a kind that
    the system never answers counts 0, with a warning where the gold standard has that kind. Table 2 of the paper prints
    four totals that follow from its components (R of all three sets, P of Random Mention) and two that do not: P of the
    manual set, 87.1, where they make 86.6, and of Random Document, 87.0, where they make 86.4.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.LinkingP(nil="--NME--")
    LinkingP(nil='--NME--')
    """

    __name__ = "LinkingP"
    NAME = __name__
    PRETTY_NAME = "Linking precision with NIL"
    SHORT_DESC = "precision of links and of NILs, averaged with their numbers in the gold standard"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _TOTAL


class _LinkingR(LinkingMeasure):
    """Total recall ``R = (n_L R_L + n_N R_N)/(n_L + n_N)``: the share of queries that are answered rightly, in [0, 1].

    Mertens et al. 2014, section 2.2; parameters as of :data:`LinkP`. Its values are 0 or 1, unlike those of the other
    figures of linking.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.LinkingR
    LinkingR
    """

    __name__ = "LinkingR"
    NAME = __name__
    PRETTY_NAME = "Linking recall with NIL"
    SHORT_DESC = "share of the queries that are answered rightly"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _TOTAL


class _LinkingF1(_Total):
    """``F1 = 2PR/(P + R)`` of :data:`LinkingP` and :data:`LinkingR`, in [0, 1]; 0 where nothing is right.

    Mertens et al. 2014, section 2.2; parameters and values of queries as of :data:`LinkP`.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.LinkingF1 == vbterrier.LinkingF1(nil="NIL")
    True
    """

    __name__ = "LinkingF1"
    NAME = __name__
    PRETTY_NAME = "Linking F1 with NIL"
    SHORT_DESC = "harmonic mean of precision and recall over links and NILs"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _TOTAL


LinkP = _LinkP()
LinkR = _LinkR()
NilP = _NilP()
NilR = _NilR()
LinkingP = _LinkingP()
LinkingR = _LinkingR()
LinkingF1 = _LinkingF1()

"""Measures of entity linking with NIL: each query has one answer, an entity or NIL.

The qrels are the gold standard (qid, entity_id); the answer to a query is the first entity of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.entity_answers import (
    MULTIPLE_ANSWERS,
    UNANSWERED,
    Decisions,
    Gold,
    checked_nil,
    decide,
    warn_of_silence,
)
from vbterrier.frames.id_spaces import NIL
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.kernels.linking import FIGURES
from vbterrier.measures.base import UNDEFINED, Measure, Param

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring


_TOTAL = {
    "nil": Param(str, NIL, desc="a further id for no entity, beside NIL in the spellings of linkers"),
    "unanswered": Param(str, "nothing", choices=UNANSWERED, desc="treatment of queries without an answer"),
    "multiple_answers": Param(
        str, "raise", choices=MULTIPLE_ANSWERS, desc="several correct entities: an error, or any of them"
    ),
}
# The part of a measure that gives the answers of all queries.
ANSWER = "answer"
_PART = {**_TOTAL, "undefined": UNDEFINED}


class LinkingMeasure(Measure):
    """Base class of linking measures: statistics of a whole set of queries, with the contribution of each query."""

    QREL_INPUTS: ClassVar[list[str]] = [TO_IR_MEASURES["qid"]]
    IS_OF_COLLECTION = True

    @property
    def depth(self) -> int:
        """A query has one answer."""
        return 1

    @property
    def _key(self) -> tuple[str, ...]:
        """Key of the answers: measures with the same key share them."""
        return tuple(self[name] for name in _TOTAL)

    @property
    def answers(self) -> Measure:
        """The measure that gives the answers which this one counts."""
        made: Measure = LinkingR(**dict(zip(_TOTAL, self._key, strict=True)), part=ANSWER)
        return made

    def check(self) -> None:
        """Refuse an empty id for NIL."""
        checked_nil(self["nil"])

    def decisions(self, scoring: Scoring) -> Decisions:
        """The answers of the run and the correct answers."""
        nil, unanswered, multiple_answers = self._key
        gold = scoring.target.memo(
            ("gold", nil, multiple_answers),
            lambda: Gold(scoring.target.frame, nil=nil, multiple_answers=multiple_answers, name="qrels"),
        )
        return scoring.memo(("decisions", self._key), lambda: decide(scoring.run, gold, unanswered=unanswered))

    def values(self, scoring: Scoring) -> Floats:
        """Contribution of each query."""
        every = scoring.memo(("influence", self._key), self.decisions(scoring).influence)
        return every[:, FIGURES.index(self.NAME)]


class _Part(LinkingMeasure):
    """Precision or recall of links or of NILs, undefined if there are none."""

    IS_LINEARISED = True

    def values(self, scoring: Scoring) -> Floats:
        """Contribution of each query, NaN for all queries if the measure is undefined."""
        values = super().values(scoring)
        if self["undefined"] == "raise" and np.isnan(values).any():
            kind = repr(self["nil"]) if self.NAME.startswith("Nil") else "an entity"
            problems = {"P": f"{scoring.run.name} answers no query with", "R": "no query has"}
            problem = problems.get(self.NAME[-1], f"no query has, and {scoring.run.name} answers none with,")
            raise InputError(f"{self} is undefined: {problem} {kind}; ask for undefined='zero' or 'skip'")
        return values


class _Total(LinkingMeasure):
    """A measure of links and NILs; the precision of a kind that the system never answers is 0."""

    IS_LINEARISED = True

    def values(self, scoring: Scoring) -> Floats:
        decisions = self.decisions(scoring)
        scoring.memo(("silence", self._key), lambda: warn_of_silence(decisions, self["nil"], scoring.run.name))
        return super().values(scoring)


class _LinkP(_Part):
    """Link precision: correct links over predicted links, without NIL (Mertens et al. 2014, section 2.2).

    Only links of queries in the gold standard count: a link of any other mention is neither right nor wrong, and a
    warning reports it. For systems that find mentions themselves, :func:`vbterrier.linking.mention_report` counts them.

    Linking measures θ are ratios over all queries, but hosts can only average values of single queries. The value of a
    query is therefore its contribution to the measure, ``v_q = θ + n ∇θ · x_q``
    (:func:`vbterrier.kernels.linking.influence`): the mean over all queries **is** the measure, and intervals and
    paired tests over the values are those of the delta method; resamples recompute the ratio. Nominal 95 % intervals by
    Student's t over the values (``"normal"``) cover the value of the population with 50 and 250 queries in .89 and .94
    (LinkP), .92 and .95 (LinkF1), and .93 and .94 (LinkingF1) of 400 samples with the answers of the paper's Random
    Document set, the default (``"unseen"``) in .92 and .97, .97 and .97, and .97 and .97.

    A single value is not a score: it may be outside [0, 1] and depends on all answers of the system. ir_measures and
    ``pt.Experiment``, which may evaluate some of the queries, are refused; use :func:`vbterrier.score`,
    :func:`vbterrier.Experiment` or :func:`vbterrier.linking.linking_report`.

    Undefined for all queries if the system predicts no link.

    Parameters
    ----------
    nil
        A further id for no entity in gold standard and answers, beside those of every linker, as in
        :func:`vbterrier.linking.linking_report`.
    unanswered
        Treat a query without an answer as ``"nothing"``, neither link nor NIL, which lowers recall but not precision;
        or as ``"nil"``.
    multiple_answers
        Refuse queries with several correct entities (``"raise"``), or accept any of these (``"any"``).
    undefined
        ``"raise"``, ``"zero"`` or ``"skip"``.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014.

    Examples
    --------
    >>> import pandas as pd
    >>> import vbterrier
    >>> gold = pd.DataFrame({"qid": ["q1", "q2", "q3"], "entity_id": ["Paris", "Rome", "NIL"]})
    >>> answers = pd.DataFrame({"qid": ["q1", "q2", "q3"], "entity_id": ["Paris", "Romeo", "NIL"]})
    >>> values = vbterrier.score({"mine": answers}, gold, [vbterrier.LinkP]).values["value"]
    >>> values.tolist(), float(values.mean())
    ([1.25, -0.25, 0.5], 0.5)
    """

    PRETTY_NAME = "Link precision"
    SHORT_DESC = "share of the predicted links of the queries in the gold standard that are correct"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _LinkR(_Part):
    """Link recall: correct links over gold links; parameters and values of queries as in :data:`LinkP`.

    Undefined if no query has an entity.

    >>> import vbterrier
    >>> vbterrier.LinkR(multiple_answers="any")
    LinkR(multiple_answers='any')
    """

    PRETTY_NAME = "Link recall"
    SHORT_DESC = "share of the queries with an entity that are linked to it"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _LinkF1(_Part):
    """Link F1, ``2 right links/(predicted + gold links)``, the harmonic mean of :data:`LinkP` and :data:`LinkR`.

    In [0, 1]; parameters and values of queries as in :data:`LinkP`. Undefined without gold and predicted links.

    >>> import vbterrier
    >>> vbterrier.LinkF1(undefined="zero")
    LinkF1(undefined='zero')
    """

    PRETTY_NAME = "Link F1"
    SHORT_DESC = "harmonic mean of link precision and link recall"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _NilP(_Part):
    """NIL precision: correct NILs over predicted NILs; parameters and values of queries as in :data:`LinkP`.

    Undefined if the system predicts no NIL.

    >>> import vbterrier
    >>> vbterrier.NilP(unanswered="nil")
    NilP(unanswered='nil')
    """

    PRETTY_NAME = "NIL precision"
    SHORT_DESC = "share of the predicted NILs that are correct"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _NilR(_Part):
    """NIL recall: correct NILs over gold NILs; parameters and values of queries as in :data:`LinkP`.

    Undefined if each query has an entity.

    >>> import vbterrier
    >>> vbterrier.NilR(undefined="skip")
    NilR(undefined='skip')
    """

    PRETTY_NAME = "NIL recall"
    SHORT_DESC = "share of the queries without an entity that are answered NIL"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _PART


class _LinkingP(_Total):
    """Total precision ``P = (n_L P_L + n_N P_N)/(n_L + n_N)`` with the numbers of gold links and NILs, in [0, 1].

    Mertens et al. 2014, section 2.2; parameters and values of queries as in :data:`LinkP`. The precision of links or
    NILs that the system never answers counts 0, with a warning if the gold standard has them. In Table 2 of the paper,
    four totals follow from its components (R of all three sets, P of Random Mention) and two do not: P of the manual
    set is 87.1 instead of 86.6, P of Random Document 87.0 instead of 86.4.

    >>> import vbterrier
    >>> vbterrier.LinkingP(nil="--NME--")
    LinkingP(nil='--NME--')
    """

    PRETTY_NAME = "Linking precision with NIL"
    SHORT_DESC = "precision of links and of NILs, averaged with their numbers in the gold standard"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _TOTAL


class _LinkingR(LinkingMeasure):
    """Total recall ``R = (n_L R_L + n_N R_N)/(n_L + n_N)``: the share of correctly answered queries, in [0, 1].

    Mertens et al. 2014, section 2.2; parameters as in :data:`LinkP`. Its values are 0 or 1, unlike those of the other
    linking measures. With ``part="answer"``, the value of a query is the code of its answer, from which ratios of sums
    over any queries are computed: 4 for queries without an entity, plus 0 to 3 for a right link, a wrong link, NIL and
    no answer.

    >>> import vbterrier
    >>> vbterrier.LinkingR
    LinkingR
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Linking recall with NIL"
    SHORT_DESC = "share of the queries with a correct answer"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        **_TOTAL,
        "part": Param(
            str, "value", choices=("value", ANSWER), desc="1 for a correct answer, or the code of the answer"
        ),
    }

    @property
    def better(self) -> str | None:
        """No direction for codes."""
        return None if self["part"] == ANSWER else super().better

    def values(self, scoring: Scoring) -> Floats:
        """Return 1 for correct answers, or the codes of answers."""
        if self["part"] != ANSWER:
            return super().values(scoring)
        decisions = self.decisions(scoring)
        return (4.0 * decisions.gold_nil + decisions.answer).astype(np.float64)


class _LinkingF1(_Total):
    """``F1 = 2PR/(P + R)`` of :data:`LinkingP` and :data:`LinkingR`, in [0, 1]; 0 without a correct answer.

    Mertens et al. 2014, section 2.2; parameters and values of queries as in :data:`LinkP`.

    >>> import vbterrier
    >>> vbterrier.LinkingF1 == vbterrier.LinkingF1(nil="NIL")
    True
    """

    PRETTY_NAME = "Linking F1 with NIL"
    SHORT_DESC = "harmonic mean of precision and recall over links and NILs"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _TOTAL


LinkP = _LinkP()
LinkR = _LinkR()
LinkF1 = _LinkF1()
NilP = _NilP()
NilR = _NilR()
LinkingP = _LinkingP()
LinkingR = _LinkingR()
LinkingF1 = _LinkingF1()

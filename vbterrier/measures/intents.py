"""Measures of rankings for queries with several candidate intents."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.named import named
from vbterrier.frames.ranking import places
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.intents.coverage import Coverage, Intents, Tags, cover
from vbterrier.intents.sources import from_diversity, from_run
from vbterrier.kernels import vb
from vbterrier.measures.base import CUTOFF, UNDEFINED, Measure, Param

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring


GAINS = ("binary", "dcg")
VARIANCES = ("bernoulli", "intent")

_COMMON = {
    "cutoff": CUTOFF,
    "gain": Param(str, "binary", choices=GAINS, desc="an intent is served by one document, or the more the better"),
    "intents": Param(str, "", desc="registered name or path of the candidate intents"),
    "tags": Param(str, "", desc="registered name or path of the tags of documents"),
    "rel": Param(int, 1, low=1, desc="the lowest label of diversity qrels that covers an intent"),
    "normalise": Param(bool, False, desc="divide the probabilities of each query by their sum"),
    "nil": Param(str, "", desc="entity of the intent that is served where no retrieved document carries a tag"),
    "undefined": UNDEFINED,
}
_VARIANCE = Param(str, "bernoulli", choices=VARIANCES, desc="ES(1-ES), or the variance across intents")


class IntentMeasure(Measure):
    """A measure of which intents the first k documents cover.

    Intents and tags are taken from the first place that has them: the parameters ``intents`` and ``tags`` (a name
    registered with :func:`vbterrier.register_intents` or :func:`vbterrier.register_tags`, or a file); for tags, the
    column ``entity_id`` of the run; the frame given as qrels, (qid, entity_id, prob) or diversity qrels.
    """

    QREL_INPUTS: ClassVar[list[str]] = [TO_IR_MEASURES["qid"]]

    @property
    def _sources(self) -> str:
        """What decides intents and tags: measures that agree in it share them."""
        return repr([self[name] for name in ("intents", "tags", "rel", "normalise")])

    def coverage(self, scoring: Scoring) -> Coverage:
        """What all measures over the same intents and tags share."""
        return scoring.memo(("coverage", self._sources, self["nil"]), lambda: self._cover(scoring))

    def gains(self, scoring: Scoring) -> tuple[Coverage, Floats]:
        """The coverage and the gain of every intent."""
        coverage = self.coverage(scoring)
        return coverage, coverage.gain(self.cutoff, self["gain"])

    def values(self, scoring: Scoring) -> Floats:
        """The value of each topic, NaN for topics without intents."""
        if self["intents"] and self["undefined"] != "raise" and not len(self._named(scoring)):
            # A batch of topics that all have none.
            return np.full(len(scoring.target.topics), np.nan)
        here = places(scoring.target.topics, self.coverage(scoring).intents.topics)
        return np.where(here >= 0, self.per_topic(scoring)[here], np.nan)

    def per_topic(self, scoring: Scoring) -> Floats:
        """The value of each topic that has intents, in their order."""
        raise NotImplementedError

    def _cover(self, scoring: Scoring) -> Coverage:
        own_intents, own_tags = scoring.target.memo(
            ("subtopics", self["rel"], bool(self["intents"])), lambda: self._of_slot(scoring)
        )
        intents = scoring.target.memo(
            ("intents", self._sources),
            lambda: Intents(
                self._intents(scoring, own_intents),
                normalise=self["normalise"],
                name="intents" if self["intents"] or not scoring.target.is_diversity else "qrels",
            ),
        )
        if self._tags_of_run(scoring, own_tags):
            tags = Tags(from_run(scoring.run), pooled=False, name="run")
        else:
            tags = scoring.target.memo(("tags", self._sources), lambda: self._tags(scoring, own_tags))
        return cover(scoring.run, intents, tags, scoring.depth, nil=self["nil"])

    def _of_slot(self, scoring: Scoring) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
        """Intents and tags given beside qrels, or of the frame that was given as qrels."""
        target, frame = scoring.target, scoring.target.frame
        if target.intents is not None:
            return target.intents, target.tags
        if {"entity_id", "prob"} <= set(frame.columns):
            return frame, target.tags
        # Judgments for no subtopics say nothing of what documents of named intents are about.
        adhoc = self["intents"] and target.is_diversity and frame["iteration"].astype(str).eq("0").all()
        if target.is_diversity and not adhoc:
            intents, tags = from_diversity(frame, rel=self["rel"])
            return intents, tags if target.tags is None else target.tags
        return None, target.tags

    def _intents(self, scoring: Scoring, own: pd.DataFrame | None) -> pd.DataFrame:
        if self["intents"]:
            own = self._named(scoring)
            if not len(own):
                raise InputError(
                    f"{self}: intents={self['intents']!r} have none of the topics {scoring.target.topics[:3]}"
                )
        if own is None:
            raise InputError(
                f"{self}: found no intents; give intents= (a name registered with vbterrier.register_intents, or a "
                "file), or in place of qrels a frame with qid, entity_id, prob, or diversity qrels with an iteration "
                "column; "
                f"found {', '.join(map(str, scoring.target.frame.columns))}"
            )
        return own

    def _named(self, scoring: Scoring) -> pd.DataFrame:
        given = named("intents", self["intents"])
        return given[given["qid"].astype(str).isin(scoring.target.topics)]

    def _tags_of_run(self, scoring: Scoring, own: pd.DataFrame | None) -> bool:
        """Whether tags come with the run: subtopics of diversity qrels have their own, other intents ask the run."""
        there = "entity_id" in scoring.run.frame.columns or not len(scoring.run)
        if self["tags"] or scoring.target.tags is not None:
            return False
        return there and (own is None or bool(self["intents"]))

    def _tags(self, scoring: Scoring, own: pd.DataFrame | None) -> Tags:
        if self["tags"]:
            return Tags(named("tags", self["tags"]))
        if scoring.target.tags is not None:
            return Tags(scoring.target.tags)
        if own is None:
            raise InputError(
                f"{self}: found no tags; give tags= (a name registered with vbterrier.register_tags, or a file), a "
                "column entity_id in the run, or diversity qrels"
            )
        return Tags(own, name="qrels")


class _ES(IntentMeasure):
    """Expected success ``ES@k = Σ_i π_i g_i`` over the candidate intents, in [0, 1] (Ding 2025, section 3.4).

    ``π_i`` is the probability of intent i, ``g_i`` its gain: whether one of the first k documents is tagged with it
    (``gain="binary"``), or the DCG of its documents divided by that of ``min(k, n_i)`` of them in the first ranks
    (``gain="dcg"``; ``n_i`` = k when no pool of tags is known).

    A query may presuppose what does not exist (section 6). ``nil`` names the entity of an intent that stands for it
    among the candidates; its gain, of either kind, is 1 where none of the first k documents carries a tag of any other
    entity, also where nothing is retrieved, and 0 elsewhere. Without ``nil`` no name is special.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.ES(gain="dcg") @ 5
    ES(gain='dcg')@5
    >>> vbterrier.VB(nil="NIL") @ 5
    VB(nil='NIL')@5
    """

    __name__ = "ES"
    NAME = __name__
    PRETTY_NAME = "Expected success"
    SHORT_DESC = "probability that the user's intent is served"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COMMON

    def per_topic(self, scoring: Scoring) -> Floats:
        """ES of each topic."""
        coverage, gain = self.gains(scoring)
        return coverage.success(gain)


class _VarPenalty(IntentMeasure):
    """``sqrt(Var)`` of success over the candidate intents, in [0, 0.5] (Ding 2025, section 3.4).

    ``Var = ES(1 - ES)`` (``variance="bernoulli"``), or ``Σ π_i g_i² - ES²`` (``"intent"``); equal for binary gains
    without weights.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.VarPenalty @ 10
    VarPenalty@10
    """

    __name__ = "VarPenalty"
    NAME = __name__
    BETTER = None
    PRETTY_NAME = "Variance penalty"
    SHORT_DESC = "how unevenly success falls over the intents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {**_COMMON, "variance": _VARIANCE}

    def per_topic(self, scoring: Scoring) -> Floats:
        """The penalty of each topic."""
        coverage, gain = self.gains(scoring)
        return np.sqrt(coverage.variance(gain, self["variance"]))


class _VB(IntentMeasure):
    """VB-Score ``VB_α@k = ES - α sqrt(Var)`` (Ding 2025, section 3.4), in ``[(1 - sqrt(1 + α²))/2, 1]``.

    The paper says [0, 1]; its own Table 1 has negative scores, and so has this measure. With α > 0 it is not monotone
    in ES: it is lowest at ``ES = (1 - 1/sqrt(1 + α²))/2``, so a topic that fails completely (0) beats one with ES = .2
    (-.2 for α = 1). ``monotone=True`` takes the minimum over all p of at least ES of VB at p, so that more success
    never scores less; ``clip=True`` raises negative scores to 0.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.VB(alpha=0.5) @ 10
    VB(alpha=0.5)@10
    >>> vbterrier.VB(alpha=1) @ 10 == vbterrier.VB @ 10
    True
    """

    __name__ = "VB"
    NAME = __name__
    PRETTY_NAME = "VB-Score"
    SHORT_DESC = "expected success less a penalty for serving intents unevenly"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "alpha": Param(float, 1.0, low=0, desc="weight of the variance penalty"),
        **_COMMON,
        "variance": _VARIANCE,
        "clip": Param(bool, False, desc="raise negative scores to 0"),
        "monotone": Param(bool, False, desc="never score more success less"),
    }

    def check(self) -> None:
        """Refuse a monotone score with a variance that is no function of ES."""
        if self["monotone"] and self["variance"] == "intent":
            raise ParameterError("VB(monotone=True) is defined for variance='bernoulli' only; drop one of the two")

    def per_topic(self, scoring: Scoring) -> Floats:
        """VB of each topic."""
        coverage, gain = self.gains(scoring)
        variance = coverage.variance(gain, self["variance"])
        return vb.vb(coverage.success(gain), variance, self["alpha"], monotone=self["monotone"], clip=self["clip"])


class _TopIntent(IntentMeasure):
    """Whether the most probable intent is covered in the first k: its gain, in [0, 1]; the mean of several equal ones.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.TopIntent @ 1
    TopIntent@1
    """

    __name__ = "TopIntent"
    NAME = __name__
    PRETTY_NAME = "Most probable intent covered"
    SHORT_DESC = "whether the likeliest meaning is served"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COMMON

    def per_topic(self, scoring: Scoring) -> Floats:
        """The gain of the most probable intent of each topic."""
        coverage, gain = self.gains(scoring)
        return coverage.top_intent(gain)


ES = _ES()
VB = _VB()
VarPenalty = _VarPenalty()
TopIntent = _TopIntent()

"""Measures of rankings for queries with several candidate intents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import places
from vbterrier.hosts.ir_measures import TO_IR_MEASURES
from vbterrier.intents.coverage import JUDGED, Coverage, Intents, Tags, cover
from vbterrier.intents.parts import PART_GAINS, PARTS, READINGS, SPLIT, TOGETHER, split_parts, tags_of_parts
from vbterrier.intents.similarities import neighbour_pairs
from vbterrier.intents.sources import from_diversity, from_run
from vbterrier.intents.taggers import MAX_TIED_TAG_SHARE
from vbterrier.kernels import vb
from vbterrier.kernels.novelty import unit_gains
from vbterrier.measures.base import CUTOFF, UNDEFINED, Measure, Param

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from vbterrier.annotations import Floats
    from vbterrier.measures.target import Scoring


GAINS = ("binary", "dcg")
VARIANCES = ("bernoulli", "intent")

# Parameters that name the intents and tags of a measure.
SOURCES = {
    "intents": Param(str, "", desc="registered name or path of the candidate intents"),
    "tags": Param(str, "", desc="registered name or path of the tags of documents"),
    "rel": Param(int, 1, low=1, desc="the lowest label of diversity qrels that covers an intent"),
    "normalise": Param(bool, False, desc="divide the probabilities of each query by their sum"),
    "parts": Param(str, "all", choices=(*PART_GAINS, SPLIT), desc="coverage of intents that are several ids at once"),
    "undefined": UNDEFINED,
}
# The coverage of intents with parts that documents cover together is no sum over single documents.
PARTS_TOGETHER = Param(str, "all", choices=READINGS, desc=SOURCES["parts"].desc)
_COMMON = {
    "cutoff": CUTOFF,
    "gain": Param(str, "binary", choices=GAINS, desc="gain of a covered intent: 1, or a normalised DCG"),
    "intents": SOURCES["intents"],
    "tags": SOURCES["tags"],
    "similarities": Param(str, "", desc="registered name or path of the similarities of intents"),
    "rel": SOURCES["rel"],
    "normalise": SOURCES["normalise"],
    "nil": Param(str, "", desc="entity of the intent that is covered if no retrieved document carries a tag"),
    "parts": PARTS_TOGETHER,
    "undefined": UNDEFINED,
}
_VARIANCE = Param(str, "bernoulli", choices=VARIANCES, desc="ES(1-ES), or the variance across intents")


class CandidateMeasure(Measure):
    """Base class of measures over candidate intents and tags.

    Intents and tags are taken from the first of these sources: the parameters ``intents`` and ``tags`` (a name
    registered with :func:`vbterrier.register_intents` or :func:`vbterrier.register_tags`, or a file); for tags, the
    column ``entity_id`` of the run; the frame given as qrels, (qid, entity_id, prob) or diversity qrels.

    Intents that are several ids at once have a column ``parts``, a list of ids or text with ``|`` between, and
    ``parts=`` says what covers them: one document with ``"all"`` ids, one document by the share of the ids that it has
    (``"part"``, see :func:`vbterrier.intents.tags_of_parts`), or the first documents, each part for itself
    (``"split"``, see :func:`vbterrier.intents.split_parts`) or all of them ``"together"``.
    """

    QREL_INPUTS: ClassVar[list[str]] = [TO_IR_MEASURES["qid"]]

    @property
    def sources(self) -> str:
        """Key of intents and tags: measures with the same key share them."""
        names = ("intents", "tags", "rel", "normalise", "parts")
        return repr([self[name] for name in names] + [self.gains_of_labels])

    @property
    def gains_of_labels(self) -> str:
        """The gains of the labels of diversity qrels, ``"log2"`` or ``"exp-log2"``; empty if all tags count equally."""
        return ""

    @property
    def reads_subtopics(self) -> bool:
        """True if the intents of the measure are the subtopics of diversity judgments."""
        return not self["intents"]

    def coverage(self, scoring: Scoring) -> Coverage:
        """The coverage that all measures over the same intents and tags share."""
        return scoring.memo(("coverage", self.sources, self._nil), lambda: self._cover(scoring))

    @property
    def _nil(self) -> str:
        """The entity of the NIL intent; empty for none."""
        return str(self["nil"]) if "nil" in self.SUPPORTED_PARAMS else ""

    def values(self, scoring: Scoring) -> Floats:
        """The value of each topic, NaN for topics without intents."""
        if self["intents"] and self["undefined"] != "raise" and not len(self._named_intents(scoring)):
            # A batch of topics without intents.
            return np.full(len(scoring.target.topics), np.nan)
        here = places(scoring.target.topics, self.coverage(scoring).intents.topics)
        return np.where(here >= 0, self.per_topic(scoring)[here], np.nan)

    def per_topic(self, scoring: Scoring) -> Floats:
        """Value of each topic with intents, in the order of the intents."""
        raise NotImplementedError

    def _cover(self, scoring: Scoring) -> Coverage:
        own_intents, own_tags = scoring.target.memo(
            ("subtopics", self["rel"], bool(self["intents"]), self.gains_of_labels), lambda: self._of_slot(scoring)
        )
        whole = scoring.target.memo(("whole intents", self.sources), lambda: self._intents(scoring, own_intents))
        has_parts, reading = PARTS in whole.columns, self["parts"]
        intents = scoring.target.memo(
            ("intents", self.sources),
            lambda: Intents(
                split_parts(whole)
                if has_parts and reading == SPLIT
                else whole
                if reading == TOGETHER
                else whole.drop(columns=PARTS, errors="ignore"),
                normalise=self["normalise"],
                together=has_parts and reading == TOGETHER,
                name="intents" if self["intents"] or not scoring.target.is_diversity else "qrels",
            ),
        )

        def tags_with_parts(tags: pd.DataFrame) -> pd.DataFrame:
            return tags_of_parts(whole, tags, gain=reading) if has_parts and reading in PART_GAINS else tags

        # The column entity_id of the run has the tags; subtopics of diversity qrels have their own.
        there = "entity_id" in scoring.run.frame.columns or not len(scoring.run)
        has_tags = self["tags"] or scoring.target.tags is not None
        if there and not has_tags and (own_tags is None or self["intents"]):
            tags = Tags(tags_with_parts(from_run(scoring.run)), pooled=False, name="run")
        else:
            tags = scoring.target.memo(("tags", self.sources), lambda: self._tags(scoring, own_tags, tags_with_parts))
        covered = cover(scoring.run, intents, tags, scoring.depth, nil=self._nil)
        if covered.ties.tied > MAX_TIED_TAG_SHARE:
            warn(
                f"{scoring.run.name}: {covered.ties.sentence()}; tag with priors, or leave tied mentions out with "
                "TagOptions(on_ties='drop')"
            )
        return covered

    def _of_slot(self, scoring: Scoring) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
        """Intents and tags given with the qrels, or in their place."""
        target, frame = scoring.target, scoring.target.frame
        if target.intents is not None:
            return target.intents, target.tags
        if {"entity_id", "prob"} <= set(frame.columns):
            return frame, target.tags
        # Judgments without subtopics are no tags of documents for named intents.
        adhoc = self["intents"] and target.is_diversity and frame["iteration"].astype(str).eq("0").all()
        if target.is_diversity and not adhoc:
            exponential = self.gains_of_labels == "exp-log2"
            intents, tags = from_diversity(
                frame,
                rel=self["rel"],
                subtopics=target.subtopics,
                iterations=target.iterations,
                docno=target.docno,
                gain=(lambda labels: unit_gains(labels, exponential=exponential)) if self.gains_of_labels else None,
            )
            return intents, tags if target.tags is None else target.tags
        return None, target.tags

    def _intents(self, scoring: Scoring, intents: pd.DataFrame | None) -> pd.DataFrame:
        if self["intents"]:
            intents = self._named_intents(scoring)
            if not len(intents):
                raise InputError(
                    f"{self}: intents={self['intents']!r} have none of the topics {scoring.target.topics[:3]}"
                )
        if intents is None:
            raise InputError(
                f"{self}: found no intents; give intents= (a name registered with vbterrier.register_intents, or a "
                "file), or as qrels a frame with qid, entity_id, prob, or diversity qrels with an iteration "
                "column; "
                f"found {', '.join(map(str, scoring.target.frame.columns))}"
            )
        return intents

    def _named_intents(self, scoring: Scoring) -> pd.DataFrame:
        frame = named_frame("intents", self["intents"])
        return frame[frame["qid"].astype(str).isin(scoring.target.topics)]

    def _tags(
        self, scoring: Scoring, judgments: pd.DataFrame | None, joined: Callable[[pd.DataFrame], pd.DataFrame]
    ) -> Tags:
        if self["tags"]:
            return Tags(joined(named_frame("tags", self["tags"])))
        if scoring.target.tags is not None:
            return Tags(joined(scoring.target.tags))
        if judgments is None:
            raise InputError(
                f"{self}: found no tags; give tags= (a name registered with vbterrier.register_tags, or a file), a "
                "column entity_id in the run, or diversity qrels"
            )
        return Tags(joined(judgments), name=JUDGED)


class IntentMeasure(CandidateMeasure):
    """Base class of measures of the intents that the first k documents cover."""

    @property
    def is_topicwise(self) -> bool:
        """Always true."""
        return True

    def gains(self, scoring: Scoring) -> tuple[Coverage, Floats]:
        """The coverage and the gain of every intent."""
        coverage, name, neighbours = self.coverage(scoring), self["similarities"], None
        if name:
            key = ("neighbours", self.sources, name)
            neighbours = scoring.target.memo(
                key, lambda: neighbour_pairs(named_frame("similarities", name), coverage.intents)
            )
        return coverage, coverage.gain(self.cutoff, self["gain"], neighbours)

    def check(self) -> None:
        """Refuse similarities with a gain for which they are not defined."""
        if self["similarities"] and self["gain"] != "binary":
            raise ParameterError(f"{self.NAME}: similarities= are defined for gain='binary' only; drop one of the two")


class _ES(IntentMeasure):
    """Expected success ``ES@k = Σ_i π_i g_i`` over the candidate intents, in [0, 1] (Ding 2025, section 3.4).

    ``π_i`` is the probability of intent i, ``g_i`` its gain: 1 if one of the first k documents is tagged with it
    (``gain="binary"``), or the DCG of its documents divided by that of ``min(k, n_i)`` of them in the first ranks
    (``gain="dcg"``; ``n_i`` = k if no pool of tags is known). With binary gains, it is the subtopic recall (StRecall,
    I-rec) weighted by probabilities.

    A query may refer to an entity that does not exist (section 6). ``nil`` is the entity id of the intent for this
    case; its gain, of either kind, is 1 if none of the first k documents carries a tag of any other entity or
    nothing is retrieved, and 0 otherwise. Without ``nil`` no id is special.

    Intents may overlap (section 6, limitations). With ``similarities``, a frame (qid, entity_id, other_id,
    similarity) registered with :func:`vbterrier.frames.register_similarities` or a file, covering a neighbour counts in
    part: ``g_i = max_j s_ij max_d w_dj`` over the first k documents, the largest similarity of intent i and an intent
    covered so far, with ``s_ii = 1``, and 0 for pairs that are not given. Neighbours of neighbours do not count. If no
    pair is given, ES and VB do not change. Gains are then graded, so that ``variance="bernoulli"`` of VB is an upper
    bound of ``variance="intent"``. :func:`vbterrier.intents.similarities_from` computes similarities from vectors.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.ES(gain="dcg") @ 5
    ES(gain='dcg')@5
    >>> vbterrier.VB(nil="NIL") @ 5
    VB(nil='NIL')@5
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Expected success"
    SHORT_DESC = "probability that the intent of the user is covered"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COMMON

    def per_topic(self, scoring: Scoring) -> Floats:
        coverage, gain = self.gains(scoring)
        return coverage.success(gain)


class _VarPenalty(IntentMeasure):
    """``sqrt(Var)`` of success over the candidate intents, in [0, 0.5] (Ding 2025, section 3.4).

    ``Var = ES(1 - ES)`` (``variance="bernoulli"``), or ``Σ π_i g_i² - ES²`` (``"intent"``); equal for binary gains
    without weights.

    >>> import vbterrier
    >>> vbterrier.VarPenalty @ 10
    VarPenalty@10
    """

    RANGE = (0.0, 0.5)
    BETTER = None
    PRETTY_NAME = "Variance penalty"
    SHORT_DESC = "standard deviation of success over the intents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {**_COMMON, "variance": _VARIANCE}

    def per_topic(self, scoring: Scoring) -> Floats:
        coverage, gain = self.gains(scoring)
        return np.sqrt(coverage.variance(gain, self["variance"]))


class _VB(IntentMeasure):
    """VB-Score ``VB_α@k = ES - α sqrt(Var)`` (Ding 2025, section 3.4), in ``[(1 - sqrt(1 + α²))/2, 1]``.

    The paper gives the range [0, 1], but its Table 1 has negative scores, as this measure does. With α > 0 it is not
    monotone in ES: its minimum is at ``ES = (1 - 1/sqrt(1 + α²))/2``, so a topic with ES = 0 (score 0) has a higher
    score than a topic with ES = .2 (score -.2 for α = 1). ``monotone=True`` takes the minimum of VB over all success
    probabilities of at least ES, so that the score does not decrease with success; ``clip=True`` raises negative scores
    to 0.

    Examples
    --------
    >>> import vbterrier
    >>> vbterrier.VB(alpha=0.5) @ 10
    VB(alpha=0.5)@10
    >>> vbterrier.VB(alpha=1) @ 10 == vbterrier.VB @ 10
    True
    """

    PRETTY_NAME = "VB-Score"
    SHORT_DESC = "expected success minus a penalty for its variance over intents"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = {
        "cutoff": CUTOFF,
        "alpha": Param(float, 1.0, low=0, desc="weight of the variance penalty"),
        **_COMMON,
        "variance": _VARIANCE,
        "clip": Param(bool, False, desc="raise negative scores to 0"),
        "monotone": Param(bool, False, desc="make the score monotone in expected success"),
    }

    @classmethod
    def score_range(cls, measure: str) -> tuple[float, float]:
        """Return ``((1 - sqrt(1 + alpha^2))/2, 1)``."""
        match = re.search(r"alpha=([\d.e+-]+)", measure)
        return (1 - (1 + float(match[1] if match else 1.0) ** 2) ** 0.5) / 2, 1.0

    def check(self) -> None:
        """Refuse a monotone score with a variance that is not a function of ES."""
        super().check()
        if self["monotone"] and self["variance"] == "intent":
            raise ParameterError("VB(monotone=True) is defined for variance='bernoulli' only; drop one of the two")

    def per_topic(self, scoring: Scoring) -> Floats:
        coverage, gain = self.gains(scoring)
        variance = coverage.variance(gain, self["variance"])
        return vb.vb(coverage.success(gain), variance, self["alpha"], monotone=self["monotone"], clip=self["clip"])


class _TopIntent(IntentMeasure):
    """Gain of the most probable intent in the first k, in [0, 1]; the mean gain of several equally probable intents.

    >>> import vbterrier
    >>> vbterrier.TopIntent @ 1
    TopIntent@1
    """

    RANGE = (0.0, 1.0)
    PRETTY_NAME = "Most probable intent covered"
    SHORT_DESC = "gain of the most probable intent"
    SUPPORTED_PARAMS: ClassVar[dict[str, Param]] = _COMMON

    def per_topic(self, scoring: Scoring) -> Floats:
        coverage, gain = self.gains(scoring)
        return coverage.top_intent(gain)


ES = _ES()
VB = _VB()
VarPenalty = _VarPenalty()
TopIntent = _TopIntent()

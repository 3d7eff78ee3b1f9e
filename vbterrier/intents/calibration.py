"""Statistics of intent probabilities: ambiguity of queries, and calibration error against labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, number, warn, whole
from vbterrier.frames.contracts import pandas_frame, refuse_near_misses
from vbterrier.frames.ids import Lookup, column_numbers, require_same_kind
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.ranking import places
from vbterrier.frames.results import Shown, facts
from vbterrier.intents.stage import Candidates, warn_of_queries
from vbterrier.kernels.candidates import normalise_weights
from vbterrier.kernels.vb import bernoulli_variance, per_topic, vb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.results import Figures


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels aligned with candidates."""

    target: Floats  # the labelled distribution over the candidates, shape (n,): 0 for candidates without a label
    correct: Floats  # the labelled probability, or 1 for every candidate that is labelled correct; shape (n,)
    labelled: Bools  # True for topics with labels, shape (n_topics,)
    unlabelled: list[str]  # the topics without labels
    # missed, missed_topic: labelled mass of entities that are not candidates, and the index of their topic, shape
    # (n_missed,).
    missed: Floats
    missed_topic: Ints
    mismatch: str  # a message if no labelled entity is a candidate of its query, otherwise empty


def align_labels(candidates: Candidates, labels: Any) -> Targets:
    """Align labels with candidates; columns as in :func:`calibration_error`."""
    frame = pandas_frame(labels, "labels")
    if "entity_id" not in frame.columns and "docno" in frame.columns:
        frame = frame.rename(columns={"docno": "entity_id"})
    if "label" not in frame.columns:
        refuse_near_misses(frame, ("prob",), "labels")
    labels_of_candidates = Candidates(frame, name="labels")
    require_same_kind(
        labels_of_candidates.qid, candidates.qid, "labels column 'qid'", f"{candidates.name} column 'qid'"
    )
    require_same_kind(
        labels_of_candidates.entity, candidates.entity, "labels column 'entity_id'", f"{candidates.name} entities"
    )
    if "prob" in frame.columns:
        target = correct = labels_of_candidates.prob
    else:
        is_correct = column_numbers(frame["label"], "labels column 'label'") > 0 if "label" in frame.columns else True
        correct = np.where(is_correct, np.ones(len(frame)), 0.0)
        target = normalise_weights(correct, labels_of_candidates.topic, labels_of_candidates.n)
    topic = places(labels_of_candidates.topics, candidates.topics)
    if not (topic >= 0).any():
        raise InputError(f"labels: none of the {labels_of_candidates.n} queries is in the {candidates.name}")
    here = topic[labels_of_candidates.topic]
    rows_of_labels = Lookup(candidates.topic, candidates.entity).find_one(here, labels_of_candidates.entity)
    labelled = np.zeros(candidates.n, dtype=bool)
    labelled[topic[topic >= 0]] = True

    def of_candidates(values: Floats) -> Floats:
        aligned = np.zeros(len(candidates.topic))
        aligned[rows_of_labels[rows_of_labels >= 0]] = values[rows_of_labels >= 0]
        return aligned

    mismatch = ""
    if not (rows_of_labels >= 0).any():
        row = int(np.argmax(here >= 0))
        label = labels_of_candidates.entity.text[row].as_py()
        candidate = candidates.entity.text[int(np.argmax(candidates.topic == here[row]))].as_py()
        mismatch = f"no labelled entity is a candidate: {label!r} against {candidate!r}; check the entity ids"
    missed = (here >= 0) & (rows_of_labels < 0) & (target > 0)
    unlabelled = [candidates.topics[at] for at in np.flatnonzero(~labelled).tolist()]
    aligned = of_candidates(target), of_candidates(correct)
    return Targets(*aligned, labelled, unlabelled, target[missed], here[missed], mismatch)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationError(Shown):
    """Result of :func:`calibration_error`.

    ``brier``, ``log_loss`` and ``missed`` are means over queries. Columns of ``bins``, the input of
    :func:`vbterrier.report.plots.reliability`: ``low`` and ``high`` (lowest and highest π in the bin), ``predicted``
    and ``observed`` (the means of π and y), ``n`` (candidates).
    """

    ece: float  # expected calibration error ``Σ_b n_b/n |mean π - mean y|`` over bins of equal size, in [0, 1]
    brier: float  # ``Σ_i (π_i - y_i)²``, in [0, 2]
    log_loss: float  # ``-Σ_i y_i ln π_i``, at least 0
    n_queries: int  # queries with labels
    missed: float  # labelled mass of entities that are not candidates, in [0, 1]
    bins: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``bins``: a row per bin of candidates."""
        return self.bins

    def _line(self) -> str:
        return f"ECE {self.ece:.4f}, Brier {self.brier:.4f}; {count_text(self.n_queries, 'query')}"

    def _panels(self) -> Iterator[Panel]:
        names = ("ece", "brier", "log_loss", "missed", "n_queries")
        yield Panel("Calibration", facts({name: getattr(self, name) for name in names}))
        yield Panel("Bins", self.bins.rename(columns={"low": "from", "high": "to"}), heads=2)

    def _figures(self) -> Figures:
        return {"reliability": lambda: {"bins": self}}


def calibration_error(intents: Any, labels: Any, *, n_bins: int = 10, floor: float = 1e-12) -> CalibrationError:
    """Compare probabilities of intents with labels.

    Parameters
    ----------
    intents
        Columns qid, entity_id, prob.
    labels
        Columns qid and entity_id (or docno, as in qrels), and one of ``prob`` (a distribution over the entities of each
        query), ``label`` (above 0 is correct; uniform over the correct entities), or neither (every row is correct). A
        labelled entity that is not a candidate counts as a candidate of probability 0.
    n_bins
        The number of bins; fewer if candidates have equal probabilities, which share a bin.
    floor
        The lower bound of probabilities in ``ln``, which keeps the mean finite if an entity was missed.

    Returns
    -------
    CalibrationError
        ``ece``, ``brier``, ``log_loss`` and ``missed``; ``bins``: a row per bin of candidates.

    Raises
    ------
    InputError
        No query in common, probabilities that do not sum to 1, a duplicated entity.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.8, 0.2]})
    >>> result = calibration_error(intents, pd.DataFrame({"qid": ["q1"], "entity_id": ["A"]}), n_bins=2)
    >>> round(result.ece, 3), round(result.brier, 3), round(result.log_loss, 3)
    (0.2, 0.08, 0.223)
    """
    n_bins = whole("n_bins", n_bins, low=1)
    floor = number("floor", floor, low=0, high=1, open_low=True)
    candidates = Candidates(intents)
    targets = align_labels(candidates, labels)
    if targets.mismatch:
        warn(targets.mismatch)
    warn_of_queries(targets.unlabelled, "without labels, left out of the calibration error")
    rows = targets.labelled[candidates.topic]
    prob = np.concatenate([candidates.prob[rows], np.zeros(len(targets.missed))])
    label = np.concatenate([targets.target[rows], targets.missed])
    n = int(targets.labelled.sum())
    # Bins of about equal size by mean rank; equal probabilities share a bin.
    pairs = pd.DataFrame({"prob": prob, "label": label})
    rank = pairs["prob"].round(12).rank(method="average").to_numpy() - 0.5
    number_of_bin = np.minimum((rank / len(pairs) * n_bins).astype(np.int64), n_bins - 1)
    prob_columns = {"low": ("prob", "min"), "high": ("prob", "max"), "predicted": ("prob", "mean")}
    bins = pairs.groupby(number_of_bin).agg(**prob_columns, observed=("label", "mean"), n=("prob", "size"))
    bins = bins.reset_index(drop=True)
    gap = np.abs(bins["predicted"] - bins["observed"])
    return CalibrationError(
        ece=float(np.sum(gap * bins["n"]) / len(prob)),
        brier=float(np.sum((prob - label) ** 2) / n),
        log_loss=max(0.0, -math.fsum(label * np.log(np.maximum(prob, floor))) / n),
        n_queries=n,
        missed=float(targets.missed.sum() / n),
        bins=bins,
    )


def query_ambiguity(intents: Any, *, alpha: float = 1.0) -> pd.DataFrame:
    """Entropy, effective number of meanings and popularity bias of the queries of an I frame.

    ``H = -Σ π_i log2 π_i`` bits; ``n_effective = 2^H``, the number of equally probable intents with this entropy;
    ``top_prob = max π_i``: the expected success of a system that serves only the most popular intent. The higher it is,
    the more a measure over these intents rewards popularity. ``top_VB`` is the VB of that system.

    Parameters
    ----------
    intents
        Columns qid, entity_id, prob. NIL counts as an intent.
    alpha
        Weight of the penalty of VB, at least 0.

    Returns
    -------
    pandas.DataFrame
        A row for each query: qid, n_intents (of positive probability), entropy (bits), n_effective, top (the most
        probable intent, the smallest id of ties), top_prob, top_VB. Its ``describe()`` summarises a set of queries.

    Raises
    ------
    InputError
        See the contract of intents.

    References
    ----------
    Hill: Diversity and evenness, Ecology 54, 1973. Ding 2025, sections 2.1 (measures of ambiguity) and 8 (popularity
    bias of priors).

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "C"], "prob": [0.5, 0.5, 1.0]})
    >>> query_ambiguity(intents).drop(columns="n_intents").values.tolist()
    [['q1', 1.0, 2.0, 'A', 0.5, 0.0], ['q2', 0.0, 1.0, 'C', 1.0, 1.0]]
    """
    alpha = number("alpha", alpha, low=0)
    candidates = Candidates(intents)
    prob, topic = candidates.prob, candidates.topic
    bits = per_topic(-prob * np.log2(prob, out=np.zeros_like(prob), where=prob > 0), topic, candidates.n)
    entropy = np.maximum(bits, 0.0)
    order = np.lexsort((candidates.tie, -prob, topic))
    first = order[np.searchsorted(topic[order], np.arange(candidates.n))]
    return pd.DataFrame(
        {
            "qid": candidates.topics,
            "n_intents": per_topic((prob > 0).astype(np.float64), topic, candidates.n).astype(np.int64),
            "entropy": entropy,
            "n_effective": np.exp2(entropy),
            "top": candidates.entity.take(first).text.to_pylist(),
            "top_prob": prob[first],
            "top_VB": vb(prob[first], bernoulli_variance(prob[first]), alpha),
        }
    )

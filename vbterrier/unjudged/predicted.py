"""Predicted grades of unjudged documents from the ranks at which runs retrieve them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, choice, warn, whole
from vbterrier.frames.ids import Lookup
from vbterrier.frames.ranking import runs_by_name
from vbterrier.kernels import fingerprints
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked_items
from vbterrier.unjudged.evidence import Retrieved, first_documents
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Bools, Floats, Ints

    Model = Callable[[Floats], Floats]


# Judged documents up to this rank have weight 1, and the prior of a ranking has the weight of this many documents.
FULL_WEIGHT = 10
PRIOR_COUNT = 2.0
# The last features describe the ranking and the pool of a document.
N_CONTEXT = 2
# Candidate strengths of a Dirichlet distribution.
STRENGTHS = 2.0 ** np.arange(9)
# Distance of expected shares from 0 and 1, at which a beta distribution is undefined.
MIN_SHARE_DISTANCE = 1e-9
# Larger labels are unlikely to be grades, and cells are lists of this length.
MAX_GRADE = 1000


@dataclass(frozen=True, eq=False)
class RetrievalEvidence:
    """Features of items that may be relevant; an item is an entry of :class:`Retrieved`, or a document."""

    # Features that increase with relevance, shape (m, p).
    features: Floats
    topic: Ints
    level: Ints
    # The item of each entry, shape (n_entries,).
    item: Ints


def by_rank(entries: Retrieved) -> RetrievalEvidence:
    """Evidence with the feature ``-log2(1 + rank)`` of each entry."""
    return _entries(entries, -np.log2(1 + entries.rank))


def by_score(entries: Retrieved) -> RetrievalEvidence:
    """Evidence with the score of each entry, standardised per run and topic; 0 if scores are all equal."""
    score = np.concatenate([run.score[entries.run_entries(name)[1]] for name, run in entries.runs.items()])
    if not np.isfinite(score).all():
        at = int(np.argmin(np.isfinite(score)))
        run = list(entries.runs.values())[entries.run[at]]
        raise InputError(
            f"{run.name} column 'score': row {entries.row[at]} (document {entries.docno.text[at].as_py()!r}) is "
            "infinite; by='score' needs finite scores: correct it, or use by='rank'"
        )
    # Entries of one run and topic are consecutive.
    group = np.cumsum(np.append(0, (np.diff(entries.run) != 0) | (np.diff(entries.topic) != 0)))[: len(score)]
    starts = np.flatnonzero(np.append(True, np.diff(group) > 0)[: len(score)])
    size = np.bincount(group)
    largest = np.maximum.reduceat(np.abs(score), starts) if len(score) else score
    # Scaled first, so that squares of large scores stay finite.
    score = score / np.where(largest > 0, largest, 1.0)[group]
    score = score - (np.bincount(group, score) / size)[group]
    std = np.sqrt(np.bincount(group, score**2) / size)
    return _entries(entries, score / np.where(std > 0, std, 1.0)[group])


def by_votes(entries: Retrieved) -> RetrievalEvidence:
    """Evidence with three features of each document from all runs, see :func:`predict_grades`."""
    first = np.unique(fingerprints.keys(entries.topic, entries.docno.fingerprints), return_index=True)[1]
    # The lookup compares ids, not only fingerprints.
    item = Lookup(entries.topic[first], entries.docno.take(first)).find_one(entries.topic, entries.docno)
    best = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(best, item, entries.rank)
    n_runs = max(len(entries.runs), 1)
    discounted = np.bincount(item, 1 / np.log2(1 + entries.rank), minlength=len(first)) / n_runs
    share = np.bincount(item, minlength=len(first)) / n_runs
    features = np.column_stack([discounted, share, -np.log2(1 + best)])
    return RetrievalEvidence(features, entries.topic[first], entries.level[first], item)


def _entries(entries: Retrieved, feature: Floats) -> RetrievalEvidence:
    return RetrievalEvidence(feature[:, None], entries.topic, entries.level, np.arange(len(feature)))


def neighbours(entries: Retrieved, evidence: RetrievalEvidence) -> Floats:
    """The logit of the share of relevant documents among the judged ones of the same ranking, shape (m,).

    The item itself is excluded. Judged documents have weight ``min(1, (10/rank)^2)``, and two pseudo-documents have the
    share of all rankings. For documents in several rankings it is the mean.
    """
    from scipy.special import logit

    weight = np.where(entries.level >= 0, np.minimum(1.0, (FULL_WEIGHT / entries.rank) ** 2), 0.0)
    hit = np.where(entries.level > 0, weight, 0.0)
    overall = (hit.sum() + 0.5) / (weight.sum() + 1)
    ranking = entries.run * len(entries.topics) + entries.topic
    relevant, total = (np.bincount(ranking, part)[ranking] - part for part in (hit, weight))
    share = logit((np.maximum(relevant, 0) + PRIOR_COUNT * overall) / (np.maximum(total, 0) + PRIOR_COUNT))
    return np.asarray(np.bincount(evidence.item, share) / np.bincount(evidence.item))


def folds(topics: Sequence[str], judged: Ints, n_folds: int, seed: int) -> Ints:
    """The cross-validation fold of each topic; -1 for topics without judged documents, or if only one has them."""
    fold = np.full(len(topics), -1, dtype=np.int64)
    if len(judged) == 1:
        warn(f"only documents of topic {topics[judged[0]]!r} are judged: the topic predicts itself")
        return fold
    turn = sorted(judged.tolist(), key=lambda place: (stream(seed, "fold", topics[place]).random(), topics[place]))
    fold[turn] = np.arange(len(turn)) % n_folds
    return fold


def cross_fitted(method: str, features: Floats, level: Ints, fold: Ints, *, progress: bool = False) -> Floats:
    """Cross-fitted probabilities of relevance: models are fitted without the fold that they predict, shape (m,)."""
    is_judged = level >= 0
    chance = np.empty(len(features))
    alike = False
    for part in tracked_items(np.unique(fold).tolist(), "models", shown=progress, unit="fold"):
        held_out = fold == part
        learned = is_judged if part < 0 else is_judged & ~held_out
        relevant = level[learned] > 0
        if relevant.all() or not relevant.any():
            alike = True
            chance[held_out] = _share(relevant)
        else:
            chance[held_out] = METHODS[method](features[learned], relevant)(features[held_out])
    if alike:
        warn("all or none of the judged documents are relevant: all unjudged documents get the same probability")
    return chance


def _logistic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression with backward elimination of features with negative slopes."""
    from sklearn.linear_model import LogisticRegression

    kept = np.arange(features.shape[1])
    while len(kept):
        model = LogisticRegression(tol=1e-8, max_iter=1000).fit(features[:, kept], relevant)
        slopes = model.coef_[0]
        if (slopes >= 0).all():
            return lambda table: np.asarray(model.predict_proba(table[:, kept])[:, 1])
        kept = np.delete(kept, int(np.argmin(slopes)))
    return lambda table: np.full(len(table), _share(relevant))


def _isotonic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the logit of an isotonic regression on the first feature, and on the context features."""
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression

    least = 0.5 / (len(relevant) + 1)
    rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(features[:, 0], relevant)

    def calibrate_columns(columns: Floats) -> Floats:
        return np.column_stack([logit(rising.predict(columns[:, 0])), columns[:, -N_CONTEXT:]])

    model = _logistic(calibrate_columns(features), relevant)
    return lambda table: model(calibrate_columns(table))


def _share(relevant: Bools) -> float:
    return float((relevant.sum() + 0.5) / (len(relevant) + 1))


METHODS: dict[str, Callable[[Floats, Bools], Model]] = {"logistic": _logistic, "isotonic": _isotonic}


FEATURES = {"rank": by_rank, "score": by_score, "votes": by_votes}


@with_usual_errors
def predict_grades(
    runs: Any,
    qrels: Any,
    *,
    by: str = "rank",
    method: str = "logistic",
    cutoff: int = 100,
    n_folds: int = 5,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, pd.DataFrame]:
    """Probabilities of the grades of retrieved documents, learned from the judged documents of other topics.

    ``P(relevant) = 1/(1 + exp(-(a + b x + c logit(ranking) + d logit(pool))))``, where x is the feature ``by``,
    ``ranking`` is the share of relevant documents among the judged documents of the ranking with weights
    ``min(1, (10/rank)^2)``, and ``pool`` is the share in the topic's pool, both shrunk to the shares of all topics.
    Slopes are at least 0: features with negative slopes are removed. ``P(relevant)`` is divided among the grades above
    0 in proportion to the topic's pool, also shrunk. The judgment of a document is excluded from the shares that
    predict it, and models are fitted without the topics that they predict.

    Parameters
    ----------
    runs, qrels
        A mapping of name to run: a frame (qid, docno, score) or the path of a TREC run (models use all runs); and a
        frame with qid, docno, label (whole numbers; below 0 counts as 0).
    by
        ``"rank"``: x is ``-log2(1 + rank)``; ``"score"``: the score, standardised over the first ``cutoff`` documents
        of its run and topic; ``"votes"``: three features from all runs: the mean of ``1/log2(1 + rank)`` (0 for runs
        without the document), the share of runs that retrieve it, and ``-log2(1 + best rank)``. By votes, a document
        has the same probabilities in all runs, and ``ranking`` is the mean over the runs that retrieve it.
    method
        ``"logistic"``, or ``"isotonic"``: x (by votes the first of the three features) is replaced by the logit of an
        isotonic regression of relevance on x.
    cutoff, n_folds, seed, progress
        The rank up to which documents of each topic and run are used for fitting and predicted, the number of
        cross-validation folds of topics (with fewer topics, each topic is a fold), the seed of their assignment, and a
        progress bar over the folds.

    Returns
    -------
    dict of str to pandas.DataFrame
        Each run with a column ``grade_prob`` for ``prior="column"``: a list of the probabilities of grade 0, 1, ... to
        the highest grade of the qrels; ``None`` below rank ``cutoff`` and in topics without qrels. An existing column
        of that name is replaced.

    Raises
    ------
    InputError, ParameterError
        No runs; no judged document up to the cutoff; infinite scores with ``by="score"``; an illegal value.

    Notes
    -----
    A single judged topic predicts itself, and if all or none of the judged documents are relevant, all documents get
    the probability ``(n_relevant + 1/2)/(n + 1)``, both with a warning. Results do not depend on the order of rows,
    runs or topics. Apart from sorting, the cost is linear in rows.

    Predictions assume that unjudged documents are similar to judged documents at the same rank. For pools of other
    systems' documents they are too high (ANCE on TREC-COVID: .77 on average, with 38 % relevant). Votes correct part of
    this bias if the runs of those systems are included.

    Examples
    --------
    >>> places = [(f"q{topic}", f"d{i}", -i) for topic in range(20) for i in range(8)]
    >>> run = pd.DataFrame(places, columns=["qid", "docno", "score"])
    >>> qrels = run.assign(label=(run["score"] > -3).astype(int))[run["docno"] != "d4"]
    >>> predicted = predict_grades({"mine": run}, qrels)["mine"]
    >>> [round(relevant, 2) for _, relevant in predicted["grade_prob"][:8]]
    [0.99, 0.91, 0.65, 0.33, 0.15, 0.06, 0.03, 0.02]
    """
    choice("by", by, FEATURES)
    choice("method", method, METHODS)
    for name, number, low in (("cutoff", cutoff, 1), ("n_folds", n_folds, 2), ("seed", seed, 0)):
        whole(name, number, low=low)
    loaded = runs_by_name(runs)
    judgments = Judgments(qrels)
    if (top := judgments.grades[-1]) > MAX_GRADE:
        raise InputError(f"{judgments.name}: grade {top}; wanted at most {MAX_GRADE}; map labels to grades")
    entries = first_documents(loaded, judgments, cutoff)
    if not (entries.level >= 0).any():
        raise InputError(
            f"none of the first {cutoff} documents of {len(loaded)} runs is judged; use a larger cutoff, or "
            "prior='pool'"
        )
    evidence = FEATURES[by](entries)
    share, split = _pool_shares(entries.counts, evidence)
    features = np.column_stack([evidence.features, neighbours(entries, evidence), share])
    fold = folds(entries.topics, np.unique(evidence.topic[evidence.level >= 0]), n_folds, seed)
    chance = cross_fitted(method, features, evidence.level, fold[evidence.topic], progress=progress)
    above = chance[:, None] * split
    prob = np.zeros((len(chance), int(judgments.grades[-1]) + 1))
    prob[:, judgments.grades] = np.column_stack([1 - above.sum(axis=1), above])
    predicted = {}
    for name, run in loaded.items():
        entry, rows = entries.run_entries(name)
        cells = np.full(len(run), None, dtype=object)
        # fromiter keeps lists as cells; an assignment would build a matrix.
        cells[rows] = np.fromiter(prob[evidence.item[entry]].tolist(), dtype=object, count=len(rows))
        predicted[name] = run.frame.assign(**{COLUMN: pd.Series(cells, index=run.frame.index, dtype=object)})
    return predicted


def expected_strength(hits: Floats, trials: Floats, expected: Floats) -> float:
    """Estimate the strength of the beta distribution of shares of hits from beta-binomial counts.

    The strengths ``STRENGTHS`` have equal prior probabilities. The estimate has the posterior mean of the intraclass
    correlation, ``1/(s + 1)``. With few counts it is in the middle of the range, whereas the maximum-likelihood
    estimate is often the largest strength. Counts may be weighted.
    """
    from scipy.special import softmax

    posterior = softmax([beta_binomial(hits, trials, expected, strength).sum() for strength in STRENGTHS])
    return float(1 / (posterior / (STRENGTHS + 1)).sum() - 1)


def beta_binomial(hits: Floats, trials: Floats, expected: Floats, strength: Floats | float) -> Floats:
    """The beta-binomial log-likelihood of a strength, up to a constant."""
    from scipy.special import betaln

    share = np.clip(expected, MIN_SHARE_DISTANCE, 1 - MIN_SHARE_DISTANCE)
    a, b = strength * share, strength * (1 - share)
    log: Floats = betaln(a + hits, b + trials - hits) - betaln(a, b)
    return log


def _pool_shares(counts: Ints, evidence: RetrievalEvidence) -> tuple[Floats, Floats]:
    """The logit of the pool's share of relevant documents, shape (m,), and the share of each grade, (m, L - 1)."""
    from scipy.special import logit

    pools = counts.astype(np.float64)
    relevant, total = pools[:, 1:].sum(axis=1), pools.sum(axis=1)
    overall = (relevant.sum() + 0.5) / (total.sum() + 1)
    grades = pools[:, 1:].sum(axis=0) / max(relevant.sum(), 1)
    strength = expected_strength(relevant, total, np.full(len(total), overall))
    of_split = expected_strength(pools[:, 1:].ravel(), np.repeat(relevant, len(grades)), np.tile(grades, len(relevant)))
    # Without the item itself.
    remaining = counts[evidence.topic] - (evidence.level[:, None] == np.arange(counts.shape[1]))
    n_relevant = remaining[:, 1:].sum(axis=1)
    share: Floats = logit((n_relevant + strength * overall) / (remaining.sum(axis=1) + strength))
    split: Floats = (remaining[:, 1:] + of_split * grades) / (n_relevant + of_split)[:, None]
    return share, split

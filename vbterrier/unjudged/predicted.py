"""Predicted grades of unjudged documents from the ranks at which runs retrieve them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError, choice, warn, whole
from vbterrier.frames.ids import Ids, Lookup
from vbterrier.frames.runs import runs_of
from vbterrier.kernels import fingerprints
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked
from vbterrier.unjudged.learned_prior import expected_strength
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ranking import Run

    Model = Callable[[Floats], Floats]


# Judged documents tell of their ranking in full to this rank, and are told of as much as this many by all rankings.
FULLY = 10
WORTH = 2.0


@dataclass(frozen=True, eq=False)
class Retrieved:
    """The first documents of several runs: an entry for each run, topic and rank, all arrays of shape (m,).

    Their order is that of the names of the runs, of the topics as text, and of ranks: the order of the given frames has
    no part in it, so that not even rounding depends on it.

    Parameters
    ----------
    runs
        The runs, by name.
    topics
        The judged topics, as text sorted.
    counts
        Judged documents of each of them and grade, shape (n, L).
    run
        Which run.
    row
        The row of its frame.
    topic
        The topic's place among ``topics``.
    rank
        From 1.
    level
        The place of its grade among the judgments' grades, below 0 unjudged.
    docno
        The document.
    """

    runs: Mapping[str, Run]
    topics: list[str]
    counts: Ints
    run: Ints
    row: Ints
    topic: Ints
    rank: Ints
    level: Ints
    docno: Ids

    def rows_of(self, name: str) -> tuple[NDArray[np.bool_], Ints]:
        """Which entries are those of a run, and their rows in its frame."""
        own = self.run == list(self.runs).index(name)
        return own, self.row[own]


@dataclass(frozen=True, eq=False)
class RetrievalEvidence:
    """What is known of some things that may be relevant: entries, or documents.

    Parameters
    ----------
    features
        Numbers that rise with relevance, shape (m, p).
    topic, level
        As of :class:`Retrieved`, shape (m,).
    thing
        Which of the m each entry is, shape (n_entries,).
    """

    features: Floats
    topic: Ints
    level: Ints
    thing: Ints


def retrieved(runs: Mapping[str, Run], judgments: Judgments, depth: int) -> Retrieved:
    """The first ``depth`` documents of each judged topic of some runs."""
    runs = {name: runs[name] for name in sorted(runs, key=str)}
    turn = np.array(sorted(range(len(judgments.topics)), key=judgments.topics.__getitem__), dtype=np.int64)
    parts: list[tuple[Ints, ...]] = []
    docnos: list[Ids] = []
    for number, run in enumerate(runs.values()):
        top = judgments.judge(run, depth)
        rows, levels = top.rows[turn], top.levels[turn]
        topic, rank = np.nonzero(rows >= 0)
        row = rows[topic, rank]
        parts.append((np.full(len(row), number), row, topic, rank + 1, levels[topic, rank]))
        docnos.append(run.docno.take(row))
    columns = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    owner, row, topic, rank, level = columns
    docno = Ids(pa.concat_arrays([ids.text for ids in docnos]))
    topics = [judgments.topics[place] for place in turn]
    return Retrieved(runs, topics, judgments.counts[turn], owner, row, topic, rank, level, docno)


def by_rank(entries: Retrieved) -> RetrievalEvidence:
    """Entries with ``-log2(1 + rank)``."""
    return _entries(entries, -np.log2(1 + entries.rank))


def by_score(entries: Retrieved) -> RetrievalEvidence:
    """Entries with their score, standardised over the entries of their run and topic; 0 where scores are all equal.

    Raises
    ------
    InputError
        An infinite score.
    """
    score = np.concatenate([run.score[entries.rows_of(name)[1]] for name, run in entries.runs.items()])
    if not np.isfinite(score).all():
        at = int(np.argmin(np.isfinite(score)))
        run = list(entries.runs.values())[entries.run[at]]
        raise InputError(
            f"{run.name} column 'score': row {entries.row[at]} (document {entries.docno.text[at].as_py()!r}) is "
            "infinite; by='score' wants finite scores: repair it, or use by='rank'"
        )
    # Entries of one run and topic stand together.
    group = np.cumsum(np.append(0, (np.diff(entries.run) != 0) | (np.diff(entries.topic) != 0)))[: len(score)]
    starts = np.flatnonzero(np.append(True, np.diff(group) > 0)[: len(score)])
    size = np.bincount(group)
    largest = np.maximum.reduceat(np.abs(score), starts) if len(score) else score
    # Divided first, so that squares of large scores stay finite.
    score = score / np.where(largest > 0, largest, 1.0)[group]
    score = score - (np.bincount(group, score) / size)[group]
    spread = np.sqrt(np.bincount(group, score**2) / size)
    return _entries(entries, score / np.where(spread > 0, spread, 1.0)[group])


def by_votes(entries: Retrieved) -> RetrievalEvidence:
    """Documents with what all runs together say of them: the same in whatever run they stand.

    Mean of ``1/log2(1 + rank)`` over the runs (0 where a run lacks it), the share of runs that have it, and
    ``-log2(1 + best rank)``.
    """
    first = np.unique(fingerprints.keys(entries.topic, entries.docno.fingerprints), return_index=True)[1]
    # Compares the ids of all entries with that of the document that they are taken for.
    thing = Lookup(entries.topic[first], entries.docno.take(first)).find_one(entries.topic, entries.docno)
    best = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(best, thing, entries.rank)
    n_runs = max(len(entries.runs), 1)
    discounted = np.bincount(thing, 1 / np.log2(1 + entries.rank), minlength=len(first)) / n_runs
    share = np.bincount(thing, minlength=len(first)) / n_runs
    features = np.column_stack([discounted, share, -np.log2(1 + best)])
    return RetrievalEvidence(features, entries.topic[first], entries.level[first], thing)


def _entries(entries: Retrieved, feature: Floats) -> RetrievalEvidence:
    return RetrievalEvidence(feature[:, None], entries.topic, entries.level, np.arange(len(feature)))


def pool_of_others(counts: Ints, evidence: RetrievalEvidence) -> Ints:
    """Judged documents of each grade in the topic of each thing, itself left out, shape (m, L)."""
    own = evidence.level[:, None] == np.arange(counts.shape[1])
    return np.asarray(counts[evidence.topic] - own)


def neighbours(entries: Retrieved, evidence: RetrievalEvidence) -> Floats:
    """The logit of the share of relevant documents among the judged ones of the same ranking, shape (m,).

    The thing itself is left out; a judged document counts ``min(1, (10/rank)^2)``, and two more are as all rankings
    are. Of documents in several rankings, the mean.
    """
    from scipy.special import logit

    weight = np.where(entries.level >= 0, np.minimum(1.0, (FULLY / entries.rank) ** 2), 0.0)
    hit = np.where(entries.level > 0, weight, 0.0)
    overall = (hit.sum() + 0.5) / (weight.sum() + 1)
    ranking = entries.run * len(entries.topics) + entries.topic
    relevant, total = (np.bincount(ranking, part)[ranking] - part for part in (hit, weight))
    share = logit((np.maximum(relevant, 0) + WORTH * overall) / (np.maximum(total, 0) + WORTH))
    return np.asarray(np.bincount(evidence.thing, share) / np.bincount(evidence.thing))


# The last features are of what is around a document, not of itself.
N_AROUND = 2


def folds(topics: Sequence[str], judged: Ints, n_folds: int, seed: int) -> Ints:
    """The part of each topic; -1 where nothing can be learned from it, and of a topic that is the only one."""
    fold = np.full(len(topics), -1, dtype=np.int64)
    if len(judged) == 1:
        warn(f"documents of topic {topics[judged[0]]!r} alone are judged: it predicts itself")
        return fold
    turn = sorted(judged.tolist(), key=lambda place: (stream(seed, "fold", topics[place]).random(), topics[place]))
    fold[turn] = np.arange(len(turn)) % n_folds
    return fold


def cross_fitted(method: str, features: Floats, level: Ints, fold: Ints, *, progress: bool = False) -> Floats:
    """The probability of relevance by models that saw no document of the same part, shape (m,)."""
    known = level >= 0
    chance = np.empty(len(features))
    alike = False
    for part in tracked(np.unique(fold).tolist(), "models", shown=progress, unit="fold"):
        asked = fold == part
        learned = known if part < 0 else known & ~asked
        relevant = level[learned] > 0
        if relevant.all() or not relevant.any():
            alike = True
            chance[asked] = _share(relevant)
        else:
            chance[asked] = METHODS[method](features[learned], relevant)(features[asked])
    if alike:
        warn("judged documents to learn from are all relevant, or none is: unjudged ones get the same probability each")
    return chance


def _logistic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the features that relevance rises with: the one that it falls with most goes, in turn."""
    from sklearn.linear_model import LogisticRegression

    kept = np.arange(features.shape[1])
    while len(kept):
        model = LogisticRegression(tol=1e-8, max_iter=1000).fit(features[:, kept], relevant)
        slopes = model.coef_[0]
        if (slopes >= 0).all():
            return lambda asked: np.asarray(model.predict_proba(asked[:, kept])[:, 1])
        kept = np.delete(kept, int(np.argmin(slopes)))
    return lambda asked: np.full(len(asked), _share(relevant))


def _isotonic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the logit of an isotonic regression on the first feature, and on what is around."""
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression

    least = 0.5 / (len(relevant) + 1)
    rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(features[:, 0], relevant)

    def bent(given: Floats) -> Floats:
        return np.column_stack([logit(rising.predict(given[:, 0])), given[:, -N_AROUND:]])

    model = _logistic(bent(features), relevant)
    return lambda asked: model(bent(asked))


def _share(relevant: Bools) -> float:
    return float((relevant.sum() + 0.5) / (len(relevant) + 1))


METHODS: dict[str, Callable[[Floats, Bools], Model]] = {"logistic": _logistic, "isotonic": _isotonic}


FEATURES = {"rank": by_rank, "score": by_score, "votes": by_votes}
# Cells are lists from grade 0 to the highest: more are labels that mean something else.
MOST_GRADES = 1000


def predict_grades(
    runs: Any,
    qrels: Any,
    *,
    by: str = "rank",
    method: str = "logistic",
    depth: int = 100,
    n_folds: int = 5,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, pd.DataFrame]:
    """Probabilities of the grades of retrieved documents, learned from the judged documents of other topics.

    ``P(relevant) = 1/(1 + exp(-(a + b x + c logit(ranking) + d logit(pool))))`` with x what ``by`` says of a document;
    ``ranking`` the share of relevant documents among the judged ones of its ranking, which count
    ``min(1, (10/rank)^2)``; and ``pool`` that of its topic's pool; both shrunk to those of all topics. Slopes are at
    least 0: what relevance falls with is left out. Grades above 0 share ``P(relevant)`` as they share the relevant
    documents of the topic's pool, shrunk likewise. A document's own judgment counts for no share that predicts it, and
    a topic's predictions come from models that saw no document of it.

    Parameters
    ----------
    runs
        A mapping of name to run: a frame (qid, docno, score) or the path of a TREC run. All together are learned from.
    qrels
        Frame with qid, docno, label (whole numbers; below 0 counts as 0).
    by
        ``"rank"``: x is ``-log2(1 + rank)``; ``"score"``: the score, standardised over the first ``depth`` documents of
        its run and topic; ``"votes"``: what all runs say of the document: the mean of ``1/log2(1 + rank)`` (0 where a
        run lacks it), the share of runs that have it, and ``-log2(1 + best rank)``. By votes, a document has the same
        probabilities in all runs, ``ranking`` being the mean over those that have it.
    method
        ``"logistic"``; or ``"isotonic"``: for x (by votes the first of the three) stands the logit of the share of
        relevant documents, as the closest function that rises with x.
    depth
        How many documents of each topic and run are learned from and predicted.
    n_folds
        Into how many parts topics are dealt; with fewer topics, one topic a part.
    seed
        Decides the parts together with the topics' ids.
    progress
        Show a progress bar over the parts.

    Returns
    -------
    dict of str to pandas.DataFrame
        Each run as given, with column ``grade_prob`` for ``prior="column"``: a list of the probabilities of grade 0, 1,
        ... to the highest of the qrels; ``None`` beyond ``depth`` and in topics that the qrels lack. A column of that
        name is replaced.

    Raises
    ------
    InputError
        No run; none of the first documents is judged; infinite scores by score; see the contracts.
    ParameterError
        A value that is not legal.

    Notes
    -----
    A single judged topic predicts itself, and where documents to learn from are all relevant, or none is, each gets
    the same probability ``(n_relevant + 1/2)/(n + 1)``; warnings tell. Nothing depends on the order of rows, runs or
    topics. Cost is linear in rows but for sorting.

    What is learned holds for unjudged documents that are like judged ones at the same place, as where judgments are
    missing at random. Where a pool took what other systems had found, it is too high (for ANCE on TREC-COVID, .77 on
    average where 38 % were relevant): votes of those systems' runs correct some of that, if they are among the runs.

    Examples
    --------
    >>> import pandas as pd
    >>> documents = [f"d{i}" for i in range(8)]
    >>> topics = [f"q{i}" for i in range(20)]
    >>> places = [(q, d, -i) for q in topics for i, d in enumerate(documents)]
    >>> run = pd.DataFrame(places, columns=["qid", "docno", "score"])
    >>> qrels = run.assign(label=(run["score"] > -3).astype(int))[run["docno"] != "d4"]
    >>> predicted = predict_grades({"mine": run}, qrels)["mine"]
    >>> [round(relevant, 2) for _, relevant in predicted["grade_prob"][:8]]
    [0.99, 0.91, 0.65, 0.33, 0.15, 0.06, 0.03, 0.02]
    """
    _check(by, method, depth, n_folds, seed)
    loaded = runs_of(runs)
    judgments = Judgments(qrels)
    if judgments.grades[-1] > MOST_GRADES:
        raise InputError(
            f"{judgments.name}: grade {judgments.grades[-1]}; wanted at most {MOST_GRADES}; map labels to grades"
        )
    entries = retrieved(loaded, judgments, depth)
    if not (entries.level >= 0).any():
        raise InputError(
            f"none of the first {depth} documents of {len(loaded)} runs is judged: nothing can be learned; give a "
            "larger depth, or use prior='pool'"
        )
    evidence = FEATURES[by](entries)
    share, split = _pool_shares(entries.counts, evidence)
    features = np.column_stack([evidence.features, neighbours(entries, evidence), share])
    fold = folds(entries.topics, np.unique(evidence.topic[evidence.level >= 0]), n_folds, seed)
    chance = cross_fitted(method, features, evidence.level, fold[evidence.topic], progress=progress)
    above = chance[:, None] * split
    prob = np.zeros((len(chance), int(judgments.grades[-1]) + 1))
    prob[:, judgments.grades] = np.column_stack([1 - above.sum(axis=1), above])
    return {name: _with_column(run, *entries.rows_of(name), prob, evidence.thing) for name, run in loaded.items()}


def _with_column(run: Run, own: Bools, rows: Ints, prob: Floats, thing: Ints) -> pd.DataFrame:
    cells = np.full(len(run), None, dtype=object)
    # Lists as such: assigning them at once, NumPy would take them for a matrix.
    cells[rows] = np.fromiter(prob[thing[own]].tolist(), dtype=object, count=len(rows))
    return run.frame.assign(**{COLUMN: pd.Series(cells, index=run.frame.index, dtype=object)})


def _pool_shares(counts: Ints, evidence: RetrievalEvidence) -> tuple[Floats, Floats]:
    """The logit of the pool's share of relevant documents, shape (m,), and each grade's share of these, (m, L - 1)."""
    from scipy.special import logit

    pools = counts.astype(np.float64)
    relevant, total = pools[:, 1:].sum(axis=1), pools.sum(axis=1)
    overall = (relevant.sum() + 0.5) / (total.sum() + 1)
    grades = pools[:, 1:].sum(axis=0) / max(relevant.sum(), 1)
    worth = expected_strength(relevant, total, np.full(len(total), overall))
    split_worth = expected_strength(
        pools[:, 1:].ravel(), np.repeat(relevant, len(grades)), np.tile(grades, len(relevant))
    )
    others = pool_of_others(counts, evidence)
    known = others[:, 1:].sum(axis=1)
    share: Floats = logit((known + worth * overall) / (others.sum(axis=1) + worth))
    split: Floats = (others[:, 1:] + split_worth * grades) / (known + split_worth)[:, None]
    return share, split


def _check(by: str, method: str, depth: int, n_folds: int, seed: int) -> None:
    for name, value, legal in (("by", by, FEATURES), ("method", method, METHODS)):
        choice(name, value, legal)
    for name, number, low in (("depth", depth, 1), ("n_folds", n_folds, 2), ("seed", seed, 0)):
        whole(name, number, low=low)

"""Probabilities of grades that depend on where documents were retrieved, learned from the judged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.parameters import choice, whole
from vbterrier.frames.runs import runs_of
from vbterrier.judgments.pool import Judgments
from vbterrier.judgments.priors.column import COLUMN
from vbterrier.judgments.priors.cross_fitted import METHODS, cross_fitted, folds
from vbterrier.judgments.priors.hierarchical import expected_strength
from vbterrier.judgments.priors.retrieved import (
    Evidence,
    by_rank,
    by_score,
    by_votes,
    neighbours,
    pool_of_others,
    retrieved,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

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


def _pool_shares(counts: Ints, evidence: Evidence) -> tuple[Floats, Floats]:
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

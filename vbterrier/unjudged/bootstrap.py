"""Bounds and bootstrap distributions of scores, from frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError, whole
from vbterrier.frames.ranking import Run
from vbterrier.kernels import bounds
from vbterrier.kernels.bounds import PartlyJudged
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.pool import Judgments, grade_gains
from vbterrier.unjudged.priors import N_DRAWS, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vbterrier.annotations import Floats
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.pool import JudgedTop


SIDES = ("lower", "upper")
KINDS = ("naive", "rbp", "guaranteed", "posthoc")
# Unused grades up to this one are possible grades of unjudged documents; larger labels are weights rather than grades.
MOST_GRADES = 64

_BOUNDS: dict[tuple[str, str], Callable[[PartlyJudged], Floats]] = {
    ("lower", "naive"): bounds.naive_lower,
    ("upper", "naive"): bounds.naive_upper,
    ("lower", "rbp"): bounds.naive_lower,
    ("upper", "rbp"): bounds.rbp_upper,
    ("lower", "guaranteed"): bounds.guaranteed_lower,
    ("upper", "guaranteed"): bounds.guaranteed_upper,
    ("lower", "posthoc"): bounds.posthoc_lower,
    # The guaranteed upper bound depends on judgments of retrieved documents only.
    ("upper", "posthoc"): bounds.guaranteed_upper,
}


def ndcg_bound(judged: JudgedTop, side: str, kind: str, *, dcg: str = "log2", max_grade: int | None = None) -> Floats:
    """A bound of nDCG@k for every topic, shape (n,).

    Fröbe et al. (ECIR 2023, section 3.3) define all kinds but ``posthoc``.

    Parameters
    ----------
    judged
        The judged run.
    side
        ``"lower"`` or ``"upper"``.
    kind
        ``"naive"``: unjudged documents have grade 0 (lower), or the best grades left in the pool, in the order of ranks
        (upper), with a fixed ideal ranking. ``"rbp"``: they have grade 0, or all the top grade with a recomputed ideal
        ranking. ``"guaranteed"``: no judgments of any documents can exceed the bound. ``"posthoc"``: no judgments of
        the retrieved documents can exceed the bound.
    dcg
        ``"log2"`` (the gain is the grade) or ``"exp-log2"``.
    max_grade
        The highest grade that an unjudged document may have; ``None`` for the highest in the qrels.

    Raises
    ------
    ParameterError
        ``max_grade`` below a grade of the qrels.
    """
    highest = int(judged.judgments.grades[-1])
    top = highest if max_grade is None else max_grade
    if top < highest:
        raise ParameterError(f"max_grade={top}: {judged.judgments.name} hold grade {highest}; give at least that")
    judged = judged.regraded(np.append(np.arange(min(top, MOST_GRADES) + 1), top))
    grades = judged.judgments.grades
    gain = grade_gains(judged, dcg)
    return _BOUNDS[side, kind](
        PartlyJudged(judged.levels, judged.judgments.counts, gain, len(grades) - 1, judged.cutoff)
    )


def bootstrap_distribution(
    run: Any,
    qrels: Any,
    cutoff: int | None = 10,
    *,
    prior: str | Mapping[int, float] = "auto",
    dcg: str = "log2",
    method: str = "auto",
    compat: str = "",
    all_unjudged: str = "auto",
    n_draws: int = N_DRAWS,
    seed: int = 0,
    prior_strength: float | str = "auto",
    metric: Metric | None = None,
) -> BootstrapDistribution:
    """The distribution of a score over the possible grades of the unjudged documents of a run.

    Each unjudged document of the first k draws a grade from a prior. If the judged documents of that grade outside the
    first k are used up, it gets the next lower grade that has one left (grade 0 is unlimited). The score is
    ``nDCG@k = (DCG of the judged part + gains of the draws) / IDCG@k(pool)`` or another metric, with the ideal ranking
    of the pool; topics without a relevant document score 0. Distributions are computed exactly if possible.

    Parameters
    ----------
    run
        Frame with qid, docno, score; grade_prob with ``prior="column"``.
    qrels
        Frame with qid, docno, label (whole numbers; below 0 counts as 0).
    cutoff
        The rank cutoff k; ``None`` evaluates whole rankings.
    prior
        The prior over grades of unjudged documents. ``"learned"``: from the judged documents of the run and the pools
        of all topics, see :func:`vbterrier.unjudged.learned_prior.learned`. ``"hierarchical"``: the pool of the query,
        shrunk to the pool of all queries. The priors of the paper: ``"pool"`` (shares of the grades among the judged
        documents of the query), ``"run"`` (among those in the first k), ``"pool+run"`` (the mean of both).
        ``"column"``: individual priors from the run's column ``grade_prob``, each a list of the probabilities of grade
        0, 1, 2, ... or one number, the probability of relevance (divided among the grades above 0 in proportion to the
        pool). A mapping of grade to probability. ``"auto"``: ``"learned"``, or ``"pool+run"`` with ``compat``.
    dcg
        nDCG's gain: ``"log2"`` is the grade (trec_eval); ``"exp-log2"`` is ``2^grade - 1``.
    method
        ``"exact"``, ``"grid"`` (values on 32,768 cells, with a certified bracket around quantiles; only for scores that
        are sums over ranks) or ``"mc"`` (draws, with a 95 % band). ``"auto"`` is exact if that is cheap, then uses the
        grid, then draws.
    compat
        ``"ecir23"`` follows the authors' code where it departs from the paper: pool prior over all topics, grades 0 to
        3, probabilities of at least 1e-6, documents drawn in the order of docnos, labels below 0 treated as unjudged,
        grade 0 if all of the first k are unjudged; with ``method="mc"`` also its histogram mode and interpolated
        quantiles.
    all_unjudged
        The run prior if none of the first k is judged: ``"auto"`` (the pool's for ``pool+run``, an error for ``run``),
        ``"pool"``, or ``"zero"`` (grade 0).
    n_draws
        Number of draws per topic for ``"mc"``.
    seed
        The seed; draws depend on it and on the query's id only.
    prior_strength
        The pseudo-count of the prior in documents. The probabilities are uncertain, with a Dirichlet distribution of
        this pseudo-count, and shared by the documents of a topic, so draws follow Pólya's urn. The gains of two
        documents have the correlation ``1/(prior_strength + 1)``. A smaller value gives wider intervals and the same
        mean, unless the pool may have too few documents of a grade. ``inf`` treats the prior as known exactly.
        ``"auto"``: estimated with ``prior="learned"``, otherwise ``inf``.
    metric
        The metric, see :mod:`vbterrier.unjudged.metrics`; ``None`` for nDCG with ``dcg``.

    Returns
    -------
    BootstrapDistribution

    Raises
    ------
    InputError, ParameterError
        Invalid frames, an invalid prior, or a method that is too expensive for a topic.

    Notes
    -----
    With ``prior_strength=inf`` intervals ignore the uncertainty of the prior. The learned and the hierarchical prior of
    a topic depend on the other topics of the call, so evaluate all topics together. The cost is linear in rows. A topic
    with u unjudged documents and s possible grades has s^u atoms. If draws are independent and the score is a sum, at
    most s^(u/2) are sorted; otherwise all are, up to some 300,000, beyond which a grid or draws are used.

    References
    ----------
    Fröbe, Gienapp, Potthast, Hagen: Bootstrapped nDCG Estimation in the Presence of Unjudged Documents. ECIR 2023,
    section 3.2 and Algorithm 1. The default statistic of the measures is the mean instead of the paper's mode, because
    it is closer to the score under complete judgments on TREC-COVID.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [2, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "c"], "score": [3.0, 2.0, 1.0]})
    >>> scores, probabilities = bootstrap_distribution(run, qrels, 3, prior="pool").atoms("q1")
    >>> scores.round(3).tolist(), probabilities.round(3).tolist()
    ([0.76, 1.0], [0.5, 0.5])
    """
    process = Process(prior, dcg, method, compat, all_unjudged, n_draws, seed, prior_strength)
    if cutoff is not None:
        whole("cutoff", cutoff, meaning=", as in @10")
    judgments = Judgments(qrels, drop_negative=process.drops_negative)
    return BootstrapDistribution(judgments.judge(Run(run), cutoff), process, metric)

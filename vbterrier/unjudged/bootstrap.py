"""Bootstrap distributions and bounds of scores, from frames."""

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
# Grades that no judgment uses count as possible up to here; above, labels are weights rather than grades.
MOST_GRADES = 64

_BOUNDS: dict[tuple[str, str], Callable[[PartlyJudged], Floats]] = {
    ("lower", "naive"): bounds.naive_lower,
    ("upper", "naive"): bounds.naive_upper,
    ("lower", "rbp"): bounds.naive_lower,
    ("upper", "rbp"): bounds.rbp_upper,
    ("lower", "guaranteed"): bounds.guaranteed_lower,
    ("upper", "guaranteed"): bounds.guaranteed_upper,
    ("lower", "posthoc"): bounds.posthoc_lower,
    # Only retrieved documents enter the guaranteed upper bound, so judging just them changes nothing.
    ("upper", "posthoc"): bounds.guaranteed_upper,
}


def ndcg_bound(judged: JudgedTop, side: str, kind: str, *, dcg: str = "log2", max_grade: int | None = None) -> Floats:
    """A bound of nDCG@k for every topic, shape (n,) (Fröbe et al., ECIR 2023, section 3.3; ``posthoc`` is ours).

    Parameters
    ----------
    judged
        The cut run.
    side
        ``"lower"`` or ``"upper"``.
    kind
        ``"naive"``: unjudged documents are worth nothing, or the best grades that the pool still has outside the
        judged part, by rank, the ideal ranking fixed. ``"rbp"``: they are worth nothing, or all the top grade, the
        ideal ranking recomputed. ``"guaranteed"``: no judging of whatever documents can lead beyond it.
        ``"posthoc"``: no judging of the retrieved documents can.
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
        PartlyJudged(judged.levels, judged.judgments.counts, gain, len(grades) - 1, judged.depth)
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
    """The distribution of a score over what the unjudged documents of a run could be.

    Each unjudged document of the first k draws a grade from a prior; a grade that no judged document outside the
    first k has left is replaced by the next lower one that has (grade 0 never runs out). The score is
    ``nDCG@k = (DCG of the judged part + gains of the draws) / IDCG@k(pool)``, or another metric's; the pool's ideal
    never changes, and a topic without a relevant document scores 0. The distribution is computed, not sampled, wherever
    that is possible.

    Parameters
    ----------
    run
        Frame with qid, docno, score; grade_prob with ``prior="column"``.
    qrels
        Frame with qid, docno, label (whole numbers; below 0 counts as 0).
    cutoff
        k; ``None`` evaluates whole rankings.
    prior
        What an unjudged document may be. ``"learned"``: from the judged documents of the run and of the pools, over
        all topics, see :func:`vbterrier.unjudged.learned_prior.learned`. ``"hierarchical"``: this query's pool,
        shrunk to that of all queries. The paper's: ``"pool"`` (shares of the grades among this query's judged
        documents), ``"run"`` (among those in the first k), ``"pool+run"`` (their mean). ``"column"``: each unjudged
        document's own, from the run's column ``grade_prob``, a list of the probabilities of grade 0, 1, 2, ... or one
        number, the probability of being relevant (the grades above 0 then share it as they share the pool's relevant
        documents). A mapping of grade to probability. ``"auto"`` is ``"learned"``, and ``"pool+run"`` with ``compat``.
    dcg
        nDCG's gain: ``"log2"`` is the grade (trec_eval); ``"exp-log2"`` is ``2^grade - 1``.
    method
        ``"auto"``; ``"exact"``; ``"grid"`` (values on 32,768 cells, with a certified bracket around quantiles; for
        scores that are sums over ranks); ``"mc"`` (draws, with a 95 % band). Auto is exact while that is cheap, then
        the grid, then draws.
    compat
        ``"ecir23"`` follows the authors' code where it departs from the paper: pool prior over all topics, grades 0 to
        3, probabilities of at least 1e-6, documents visited by docno, labels below 0 are no judgments, grade 0 when all
        of the first k is unjudged; with ``method="mc"`` also its histogram mode and interpolated quantiles.
    all_unjudged
        The run prior where none of the first k is judged: ``"auto"`` (the pool's for ``pool+run``, an error for
        ``run``), ``"pool"``, or ``"zero"`` (grade 0).
    n_draws
        Draws of a topic, where draws are needed.
    seed
        Decides the draws together with the query's id, whatever the other queries are.
    prior_strength
        How many documents the prior is worth: its probabilities are themselves uncertain, Dirichlet with this
        pseudo-count, and shared by the documents of a topic, whose draws follow Pólya's urn. Any two documents' gains
        then correlate by ``1/(prior_strength + 1)``: intervals are wider the smaller it is; the mean stays, except
        where a grade may run out. ``inf`` takes the prior for certain. ``"auto"``: what was learned with
        ``prior="learned"``, ``inf`` with all others.
    metric
        What is scored, see :mod:`vbterrier.unjudged.metrics`; ``None`` for nDCG with ``dcg``.

    Returns
    -------
    BootstrapDistribution

    Raises
    ------
    InputError, ParameterError
        See the frames' contracts; a prior that is none; a method too large for a topic.

    Notes
    -----
    With ``prior_strength=inf`` the distribution knows nothing of the prior's own uncertainty: its intervals are about
    the draws alone. The learned and the hierarchical prior of a topic depend on the other topics of the call, so
    evaluate all of them together. Cost is linear in rows; a topic with u unjudged documents and s likely grades has
    s^u atoms, of which no more than s^(u/2) are ever sorted where draws are independent and the score is a sum;
    elsewhere all are, up to some 300,000, then a grid or draws take over.

    References
    ----------
    Fröbe, Gienapp, Potthast, Hagen: Bootstrapped nDCG Estimation in the Presence of Unjudged Documents. ECIR 2023,
    section 3.2 and Algorithm 1. The mean is our default statistic where the paper takes the mode: it is closer to the
    truth on TREC-COVID.

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

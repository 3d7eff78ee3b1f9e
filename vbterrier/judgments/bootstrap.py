"""Scores over what the unjudged documents of a run could be, from the frames that users have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.frames.parameters import whole
from vbterrier.frames.ranked import Run
from vbterrier.judgments.distribution import BootstrapDistribution
from vbterrier.judgments.pool import Judgments
from vbterrier.judgments.process import N_DRAWS, Process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.judgments.metrics import Metric

__all__ = ["BootstrapDistribution", "bootstrap_distribution"]


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
        all topics, see :func:`vbterrier.judgments.priors.learned.learned`. ``"hierarchical"``: this query's pool,
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
        What is scored, see :mod:`vbterrier.judgments.metrics`; ``None`` for nDCG with ``dcg``.

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

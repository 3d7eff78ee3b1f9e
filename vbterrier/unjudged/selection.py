"""Signs of the reasons why documents are unjudged, and the depth of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grade_regression import fit_logit
from vbterrier.unjudged.evidence import ratio
from vbterrier.unjudged.features import MOST_RUN_COLUMNS

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints
    from vbterrier.unjudged.evidence import Evidence
    from vbterrier.unjudged.features import Features


# Runs with a smaller variance of judging say nothing about its causes.
LEAST_EXPECTED = 0.5
# The first ranks, which every pool covers if it covers any.
FIRST_RANKS = 3
# The excess of judged documents there, of selected documents, and standard deviations of it between collections.
SELECTED_EXCESS, SELECTED_SPREAD, RANDOM_SPREAD = 0.7, 0.25, 0.05
# Runs with a larger share of unjudged documents are strange.
MAX_USUAL_UNJUDGED = 0.7
# Features that can explain which documents were judged, and prior precisions of their coefficients, of those of
# memberships in cuts (.25 made the gate twice as large), and of the intercept.
JUDGING_FEATURES = ("intercept", "rank", "best", "share", "support", "company")
FEATURE_RIDGE, MEMBER_RIDGE, INTERCEPT_RIDGE = 0.1, 0.05, 0.01
# A pool shows its depth if the judged share over a window of ranks before the cutoff is at least this share of that at
# the first ranks, and ends where the share over a window falls by more than this.
WINDOW, MIN_WINDOW_SHARE, LEAST_FALL = 5, 0.9, 0.05


def selection(evidence: Evidence) -> tuple[float, float]:
    """Signs that documents were selected for judging: ``(sigma, KS)``, each from 0 (at random) to 1.

    ``sigma`` is the probability that documents at the first ranks were preferred, with prior 1/2. The statistic is the
    excess of judged documents at the ranks 1 to 3 of each run over its cut, scaled to the sum of ``n_r j_r (1 - j_r)``
    over runs, with n_r the documents of run r in its cuts and j_r their judged share; its standard error is the larger
    of that over topics and the binomial one. Judging at random has the expectation 0, and selection one of .7 with a
    standard deviation of .25, as measured on six collections; larger values count as .7. The judged share of whole
    topics is subtracted, so that judging topic by topic is no selection, and runs of which nothing or everything is
    judged have no weight. Sums over runs are weighted by copies, and documents by their trust.

    KS is the largest difference between judged and unjudged documents in the distribution of their best rank; 1 for a
    pool with a fixed depth.
    """
    cut, k = evidence.in_cut, evidence.cutoff
    run, topic = evidence.run[cut], evidence.topic[evidence.item[cut]]
    size, judged = _judged_of_runs(evidence)
    n = size * evidence.weights.by_copies
    weight, trust = evidence.weights.by_copies[run], evidence.trust
    open_variance = (n * judged * (1 - judged)).sum()
    if open_variance <= 0:
        return 0.0, 0.0
    excess = (evidence.level[evidence.item[cut]] >= 0) - judged[run]
    n_topics = len(evidence.topics)
    of_topic = ratio(np.bincount(topic, excess * weight, n_topics), np.bincount(topic, weight, n_topics))
    first = evidence.rank[cut] <= FIRST_RANKS
    scale = n / np.maximum(np.bincount(run, first, len(n)), 1)
    sums = np.bincount(topic, (excess - of_topic[topic]) * first * scale[run], n_topics)
    with_documents = np.unique(topic).size
    error = np.sqrt(((sums - sums.sum() / with_documents) ** 2).sum()) / open_variance
    n_first, n_near = (trust[mask].sum() for mask in (evidence.best_rank <= FIRST_RANKS, evidence.near))
    share = open_variance / n.sum()
    error = max(error, np.sqrt(max(1 / n_first - 1 / n_near, 0.0) / max(share, 1e-9)))
    statistic = min(sums.sum() / open_variance, SELECTED_EXCESS)
    # The logarithm of the ratio of two normal densities.
    variances = SELECTED_SPREAD**2 + error**2, RANDOM_SPREAD**2 + error**2
    deviations = (statistic - SELECTED_EXCESS) ** 2 / variances[0], statistic**2 / variances[1]
    log_ratio = (deviations[1] - deviations[0] + np.log(variances[1] / variances[0])) / 2
    sigma = 1 / (1 + np.exp(-np.clip(log_ratio, -30, 30)))
    close = evidence.best_rank <= 2 * k
    by_rank = [
        np.bincount(evidence.best_rank[mask], trust[mask], minlength=2 * k + 1)
        for mask in (close & (evidence.level >= 0), close & (evidence.level < 0))
    ]
    if not all(counts.any() for counts in by_rank):
        return float(sigma), 0.0
    first, second = (np.cumsum(counts)[1:-1] / counts.sum() for counts in by_rank)
    return float(sigma), float(max(0.0, (first - second).max()))


def _judged_of_runs(evidence: Evidence) -> tuple[Floats, Floats]:
    """Documents of each distinct run in its cuts, and the share of them that is judged, shape (n_distinct,) each."""
    n = evidence.n_cut.sum(axis=1).astype(np.float64)
    return n, 1 - evidence.n_unjudged.sum(axis=1) / n


@dataclass(frozen=True, eq=False)
class Judging:
    """The relation of judging to the evidence.

    - ``unexplained``: the part of the variance of judging that ranks and runs do not explain, of the runs that retrieve
      a document up to the cutoff, 0 to 1, shape (m,); 0 below the cutoff
    - ``excess``: the unjudged share of a document's cuts minus the mean of the topic over all runs, shape (m,)
    - ``strange``: the part of the unjudged share of a document's runs over all topics above .7, 0 to 1, shape (m,)
    """

    unexplained: Floats
    excess: Floats
    strange: Floats


def explain_judging(evidence: Evidence, features: Features) -> Judging:
    """Explain which documents of the cuts are judged by a ridge regression on their ranks and runs.

    The judgments of a run of which all documents at the first ranks were pooled, or none, are explained by its ranks
    and by the other runs, and say nothing more about relevance. What remains unexplained was decided by something that
    the evidence lacks, most often by pooled systems, which retrieve relevant documents. Of run r, that is ``Σ p (1 - p)
    / (n_r j_r (1 - j_r))`` over its documents, with p the fitted probability that a document is judged. Means of topics
    weight runs by their judged documents, so that strange runs have no effect on others. Memberships of runs are
    multiplied by the root of their weight by copies, and documents have their trust as weights.
    """
    near, cut = evidence.near, evidence.in_cut
    columns = [place for place, name in enumerate(features.names) if name in JUDGING_FEATURES]
    design = features.fixed[near][:, columns]
    if 1 < evidence.n_distinct <= MOST_RUN_COLUMNS:
        design = np.column_stack([design, evidence.members[near] * np.sqrt(evidence.weights.by_copies)])
    ridge = np.where(np.arange(design.shape[1]) < len(columns), FEATURE_RIDGE, MEMBER_RIDGE)
    ridge[0] = INTERCEPT_RIDGE
    fitted = np.zeros(len(evidence))
    fitted[near] = fit_logit(design, evidence.level[near] >= 0, ridge, evidence.trust[near])
    n, judged = _judged_of_runs(evidence)
    variance = n * judged * (1 - judged)
    run, item = evidence.run[cut], evidence.item[cut]
    chance = fitted[item]
    del fitted
    residual = np.bincount(run, chance * (1 - chance), len(n))
    of_run = np.where(variance > LEAST_EXPECTED, np.minimum(residual / np.maximum(variance, 1e-9), 1.0), 0.0)
    share = evidence.n_unjudged / np.maximum(evidence.n_cut, 1)
    weight = (n * judged * evidence.weights.by_copies)[:, None] * (evidence.n_cut > 0)
    of_topic = ratio((weight * share).sum(axis=0), weight.sum(axis=0))
    excess = evidence.mean_in_cut(share[run, evidence.topic[item]])
    excess[near] -= of_topic[evidence.topic[near]]
    strange = np.maximum(1 - judged - MAX_USUAL_UNJUDGED, 0) / (1 - MAX_USUAL_UNJUDGED)
    return Judging(evidence.mean_in_cut(of_run[run]), excess, evidence.mean_in_cut(strange[run]))


def _by_rank(evidence: Evidence) -> tuple[Floats, Floats]:
    """Weighted documents and judged documents at each rank over all runs and topics, shape (depth,)."""
    weight, run, is_judged = evidence.weights.by_copies, evidence.run, evidence.level >= 0
    n = evidence.sums(lambda part: weight[run[part]], by_rank=True)
    judged = evidence.sums(lambda part: weight[run[part]] * is_judged[evidence.item[part]], by_rank=True)
    return n[1:], judged[1:]


def judged_shares(evidence: Evidence) -> Floats:
    """The share of judged documents at each rank over all runs and topics, shape (depth,); NaN at empty ranks."""
    n, judged = _by_rank(evidence)
    return ratio(judged, n, empty=np.nan)


def pool_depth(evidence: Evidence) -> int:
    """The depth to which runs were judged, the depth of the evidence if none shows.

    If the judged share of the last ranks of the cut, plus two standard errors, is below .9 of that of the ranks 1 to 3,
    the pool is shallower than the cutoff or has other runs, and does not show its depth. Otherwise it ends at the first
    rank from the cutoff on after which the judged share over five ranks falls by more than .05, plus two standard
    errors, and more than at the next ranks.
    """
    n, judged = _by_rank(evidence)
    depth, k = evidence.depth, evidence.cutoff
    topics = max(len(np.unique(evidence.topic)), 1)
    total, n_judged = (np.concatenate([[0.0], np.cumsum(values)]) for values in (n, judged))

    def share(start: Ints, stop: Ints) -> Floats:
        """Judged shares of the ranks ``start + 1`` to ``stop``, NaN without documents."""
        size = total[stop] - total[start]
        return ratio(n_judged[stop] - n_judged[start], size, empty=np.nan)

    top, last = share(np.array([0, max(k - WINDOW, 0)]), np.array([min(FIRST_RANKS, k), k]))
    # Two standard errors, since few topics show a share roughly.
    if not last + 2 * np.sqrt(max(last * (1 - last), 0.0) / (WINDOW * topics)) >= MIN_WINDOW_SHARE * top:
        return depth
    ends = np.arange(k, depth)
    before, after = share(np.maximum(ends - WINDOW, 0), ends), share(ends, np.minimum(ends + WINDOW, depth))
    size = np.minimum(total[np.minimum(ends + WINDOW, depth)] - total[ends], WINDOW * topics)
    error = np.sqrt(np.maximum(before * (1 - before) + after * (1 - after), 1e-9) / np.maximum(size, 1))
    fall = np.nan_to_num(before - after)
    following = np.max([np.append(fall[step:], np.zeros(min(step, len(fall)))) for step in range(1, WINDOW)], axis=0)
    falls = np.flatnonzero((fall > LEAST_FALL + 2 * np.nan_to_num(error)) & (fall >= following))
    return int(ends[falls[0]]) if len(falls) else depth

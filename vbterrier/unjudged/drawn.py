"""Distributions of scores under the evidence model, and joint draws of the scores of several systems."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vbterrier.errors import InputError, whole
from vbterrier.frames.notebook import counted
from vbterrier.frames.ranking import Run, places
from vbterrier.kernels.grades.distributions import Sample, atoms_of
from vbterrier.unjudged.distribution import BootstrapDistribution, metric_of
from vbterrier.unjudged.fitted import evidence_model
from vbterrier.unjudged.joint import JointDistribution
from vbterrier.unjudged.model import fit_model
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import N_DRAWS, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.unjudged.evidence import Evidence
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.model import GradeDraws
    from vbterrier.unjudged.pool import JudgedTop

    Draw = Callable[[int, int], GradeDraws]


# Levels of documents that are held in memory at a time.
MOST_LEVELS = 1 << 23


class DrawnDistribution(BootstrapDistribution):
    """The distribution of a score under the evidence model, as joint draws over topics and systems.

    ``draw`` returns the draws of a model, whose evidence contains the documents of ``judged``, for a number and a seed.
    """

    def __init__(self, judged: JudgedTop, process: Process, metric: Metric | None, draw: Draw) -> None:
        self.topics, self.cutoff, self.process = judged.judgments.topics, judged.cutoff, process
        self.metric = metric_of(metric, process)
        self.n_unjudged, self.grades = judged.n_unjudged, judged.judgments.grades
        self._judged, self._draw = judged, draw
        self._quantiles, self._intervals = {}, {}

    @property
    def source(self) -> str:
        """The evidence that the model is fitted to, and its horizon."""
        evidence = self._drawn.evidence
        return f"model of {counted(evidence.n_runs, 'run')} with horizon {evidence.depth}"

    @cached_property
    def draws(self) -> Floats:
        """Drawn scores, shape (n_draws, n_topics)."""
        return self.draws_of(self.process.n_draws, self.process.seed)

    @cached_property
    def documents(self) -> tuple[Ints, Ints, Ints]:
        """Topic, rank (from 0) and column in the draws of each unjudged document up to the cutoff."""
        evidence = self._drawn.evidence
        topic, rank = np.nonzero(self._judged.unjudged)
        return topic, rank, np.searchsorted(evidence.unjudged, _items(evidence, self._judged))

    @property
    def probabilities(self) -> Floats:
        """The probability of each level of each unjudged document up to the cutoff, shape (n_documents, L)."""
        levels = self._drawn.levels[:, self.documents[2]]
        return np.stack([(levels == level).mean(axis=0) for level in range(len(self.grades))], axis=1)

    def drawn_grades(self, columns: Ints) -> Floats:
        """The drawn grades of some columns, shape (n_draws, n_columns)."""
        return self.grades.astype(np.float64)[self._drawn.levels[:, columns]]

    @property
    def _drawn(self) -> GradeDraws:
        return self._draw(self.process.n_draws, self.process.seed)

    def draws_of(self, n_draws: int, seed: int) -> Floats:
        """Drawn scores for another number of draws or seed, shape (n_draws, n_topics)."""
        grades, judged = self._draw(n_draws, seed), self._judged
        evidence = grades.evidence
        if not len(evidence.unjudged):
            exact = self.metric.scores(judged, judged.levels, judged.judgments.counts)
            return np.broadcast_to(exact, (n_draws, len(self)))
        owner, (topic, rank, column) = places(self.topics, evidence.topics), self.documents
        scores = np.empty((n_draws, len(self)))
        step = max(MOST_LEVELS // max(n_draws * judged.levels.shape[1], 1), 1)
        for first in range(0, len(self), step):
            part = slice(first, min(first + step, len(self)))
            levels = np.broadcast_to(judged.levels[part], (n_draws, *judged.levels[part].shape)).copy()
            own = (topic >= part.start) & (topic < part.stop)
            levels[:, topic[own] - first, rank[own]] = grades.levels[:, column[own]]
            scores[:, part] = self.metric.scores(judged, levels, grades.counts[:, owner[part]])
        return scores

    @cached_property
    def distributions(self) -> list[ScoreDistribution]:
        """The draws of each topic as a distribution."""
        share = np.full(len(self.draws), 1 / len(self.draws))
        ordered = np.sort(np.ascontiguousarray(self.draws.T), axis=1)
        return [
            Sample(values, share, np.cumsum(share), "mc")
            if values[0] < values[-1]
            else atoms_of(values[:1], np.ones(1))
            for values in ordered
        ]

    def _compute_moments(self, *, with_variance: bool) -> tuple[Floats, Floats]:
        mean = self.draws.mean(axis=0)
        # Rounding of a mean of equal numbers is not uncertainty.
        constant = (self.draws == self.draws[0]).all(axis=0)
        mean = np.where(constant, self.draws[0], mean)
        return mean, np.where(constant, 0.0, self.draws.var(axis=0)) if with_variance else np.full(len(mean), np.nan)

    @cached_property
    def variance_part(self) -> Floats:
        """The part of each topic in the variance of the sum over topics, ``Σ_s Cov(X_t, X_s)``, shape (n,)."""
        centred = self.draws - self.draws.mean(axis=0)
        return np.asarray((centred * centred.sum(axis=1, keepdims=True)).mean(axis=0))


def _items(evidence: Evidence, judged: JudgedTop) -> Ints:
    """Positions of the unjudged documents of a judged run in the evidence, -1 for others."""
    topic, rank = np.nonzero(judged.unjudged)
    owner = places(judged.judgments.topics, evidence.topics)[topic]
    return evidence.lookup.find_one(owner, judged.run.docno.take(judged.rows[topic, rank]))


def covers(evidence: Evidence, judged: JudgedTop) -> bool:
    """Return True if the evidence has all unjudged documents of a judged run."""
    return bool((_items(evidence, judged) >= 0).all())


class DrawnJoint:
    """Joint draws of several systems' scores under one evidence model; the interface of ``JointDistribution``.

    Topics share the errors of the model, so draws with the same number belong together in all topics.
    """

    def __init__(self, distributions: Mapping[str, DrawnDistribution]) -> None:
        if not distributions:
            raise InputError("no systems; give the distribution of at least one")
        self.names = list(distributions)
        self.distributions = list(distributions.values())
        self.topics = self.distributions[0].topics
        for name, distribution in distributions.items():
            if distribution.topics != self.topics:
                raise InputError(f"systems {self.names[0]!r} and {name!r} have different topics")
        self._kept: dict[tuple[int, int], Floats] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"DrawnJoint({len(self)} systems, {len(self.topics)} topics)"

    def scores(self, topic: int, n_draws: int, seed: int = 0) -> Floats:
        """Draw scores of all systems in one topic, shape (n_systems, n_draws)."""
        if (n_draws, seed) not in self._kept:
            self._kept = {(n_draws, seed): np.stack([each.draws_of(n_draws, seed) for each in self.distributions])}
        return self._kept[n_draws, seed][:, :, topic]

    def covariance(self, name_a: str, name_b: str) -> Floats:
        """The covariance of two systems' scores in each topic, shape (n_topics,), from their draws."""
        a, b = (self.distributions[self.names.index(name)].draws for name in (name_a, name_b))
        return np.asarray(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).mean(axis=0))


Joint: TypeAlias = DrawnJoint | JointDistribution


def joint_of(distributions: Mapping[str, BootstrapDistribution], cuts: Mapping[str, JudgedTop]) -> Joint:
    """Return the joint distribution of several systems' scores, of which all or none are drawn."""
    drawn = {name: each for name, each in distributions.items() if isinstance(each, DrawnDistribution)}
    return DrawnJoint(drawn) if drawn else JointDistribution(distributions, cuts)


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
    horizon: int = 0,
    model: str = "",
    metric: Metric | None = None,
) -> BootstrapDistribution:
    """The distribution of a score over the possible grades of the unjudged documents of a run.

    By default, grades are drawn from the evidence model (:mod:`vbterrier.unjudged.model`) with the run as evidence, and
    the ideal ranking is drawn with them. With a named prior, each unjudged document of the first k draws a grade from
    it, or the next lower grade that has a judged document left outside the first k (grade 0 is unlimited; measures
    without an ideal ranking have no such limit). The score is then ``nDCG@k = (DCG of the judged part + gains of the
    draws) / IDCG@k(pool)`` or another metric; topics without a relevant document score 0. These distributions are
    computed exactly if possible.

    Parameters
    ----------
    run, qrels
        Frames with qid, docno, score, and grade_prob with ``prior="column"``; and with qid, docno, label (whole
        numbers; below 0 counts as 0).
    cutoff
        The rank cutoff k; ``None`` evaluates whole rankings.
    prior
        The prior over grades of unjudged documents. ``"learned"``: from the judged documents of the run and the pools
        of all topics, see :func:`vbterrier.unjudged.learned_prior.learned`. ``"hierarchical"``: the pool of the query,
        shrunk to the pool of all queries. The priors of the paper: ``"pool"`` (shares of the grades among the judged
        documents of the query), ``"run"`` (among those in the first k), ``"pool+run"`` (the mean of both).
        ``"column"``: individual priors from the run's column ``grade_prob``, each a list of the probabilities of grade
        0, 1, 2, ... or one number, the probability of relevance (divided among the grades above 0 in proportion to the
        pool). A mapping of grade to probability. ``"auto"``: ``"evidence"``, the evidence model, or ``"pool+run"`` with
        ``compat``.
    dcg, metric
        nDCG's gain, ``"log2"`` for the grade (trec_eval) or ``"exp-log2"`` for ``2^grade - 1``; or another metric, see
        :mod:`vbterrier.unjudged.metrics`.
    method
        ``"exact"``, ``"grid"`` (values on 32,768 cells, 4,096 for AP, ERR and Q, with a certified bracket around
        quantiles) or ``"mc"`` (draws, with a 95 % band). ``"auto"`` is exact if that is cheap, then uses the grid, then
        draws. AP, ERR and Q have no grid with individual priors or ``compat``.
    compat
        ``"ecir23"`` follows the authors' code where it departs from the paper: pool prior over all topics, grades 0 to
        3, probabilities of at least 1e-6, documents drawn in the order of docnos, labels below 0 treated as unjudged,
        grade 0 if all of the first k are unjudged; with ``method="mc"`` also its histogram mode and interpolated
        quantiles.
    all_unjudged, n_draws, seed
        The run prior if none of the first k is judged: ``"auto"`` (the pool's for ``pool+run``, an error for ``run``),
        ``"pool"``, or ``"zero"`` (grade 0); the number of draws per topic for ``"mc"``, and their seed; draws depend on
        it and on the query's id only.
    prior_strength
        The pseudo-count of the prior in documents. The probabilities have a Dirichlet distribution of this pseudo-count
        and are shared by the documents of a topic, so draws follow Pólya's urn, and the gains of two documents have the
        correlation ``1/(prior_strength + 1)``. A smaller value gives wider intervals and the same mean, unless the pool
        may have too few documents of a grade. ``inf`` treats the prior as known exactly. ``"auto"``: estimated with
        ``prior="learned"``, otherwise ``inf``.
    horizon, model
        For the evidence model, the depth to which all documents are meant to be judged (0 for the larger of the cutoff
        and the depth of the pool), and the name of a registered model, or a folder, whose runs are further evidence;
        see :func:`vbterrier.unjudged.fit`.

    Notes
    -----
    With ``prior_strength=inf`` intervals ignore the uncertainty of the prior. The learned and the hierarchical prior of
    a topic depend on the other topics of the call, so evaluate all topics together. The cost is linear in rows. A topic
    with u unjudged documents and s possible grades has s^u atoms. If draws are independent and the score is a sum, at
    most s^(u/2) are sorted; otherwise all are, up to some 300,000, beyond which a grid or draws are used.

    Source: Fröbe, Gienapp, Potthast, Hagen: Bootstrapped nDCG Estimation in the Presence of Unjudged Documents. ECIR
    2023, section 3.2 and Algorithm 1. The default statistic of the measures is the mean instead of the paper's mode,
    because it is closer to the score under complete judgments on TREC-COVID.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [2, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "c"], "score": [3.0, 2.0, 1.0]})
    >>> scores, probabilities = bootstrap_distribution(run, qrels, 3, prior="pool").atoms("q1")
    >>> scores.round(3).tolist(), probabilities.round(3).tolist()
    ([0.76, 1.0], [0.5, 0.5])
    """
    process = Process(prior, dcg, method, compat, all_unjudged, n_draws, seed, prior_strength, horizon, model)
    if cutoff is not None:
        whole("cutoff", cutoff, meaning=", as in @10")
    judgments = Judgments(qrels, drop_negative=process.drops_negative)
    judged = judgments.judge(Run(run), cutoff)
    if not process.uses_evidence:
        return BootstrapDistribution(judged, process, metric)
    named = evidence_model(model) if model else None
    evidence, labels = (named.runs, named.labels) if named else ({judged.run.name: judged.run}, None)
    fitted = fit_model(evidence, judgments, cutoff, horizon, labels)
    if not covers(fitted.evidence, judged):
        fitted = fit_model({**evidence, judged.run.name: judged.run}, judgments, cutoff, horizon, labels)
    return DrawnDistribution(judged, process, metric, fitted.draw)

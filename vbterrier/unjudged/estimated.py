"""Distributions of scores under the model of all evidence, and joint draws of the scores of several systems."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.notebook import counted
from vbterrier.frames.ranking import places
from vbterrier.kernels.grades.distributions import Sample, atoms_of
from vbterrier.unjudged.distribution import BootstrapDistribution, ScoreDistributions
from vbterrier.unjudged.joint import JointDistribution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.unjudged.evidence import Evidence
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.model import GradeDraws
    from vbterrier.unjudged.pool import JudgedTop

    Draw = Callable[[int, int], GradeDraws]


# Levels of documents that are held in memory at a time.
MOST_LEVELS = 1 << 23


class EstimatedDistribution(ScoreDistributions):
    """The distributions of scores under a model of all evidence, as joint draws over topics and systems.

    Attributes
    ----------
    drawn
        Draws of the grades of all unjudged documents of the model's runs.
    documents
        Topic, rank (from 0) and column in the draws of each unjudged document up to the cutoff.
    """

    def __init__(self, judged: JudgedTop, metric: Metric, draw: Draw, n_draws: int, seed: int) -> None:
        super().__init__(judged, metric, n_draws, seed)
        self._draw = draw

    @property
    def source(self) -> str:
        """The evidence that the model is fitted to, and its horizon."""
        evidence = self.drawn.evidence
        return f"model of {counted(evidence.n_runs, 'run')} with horizon {evidence.depth}"

    @property
    def drawn(self) -> GradeDraws:
        """The draws of grades."""
        return self._draw(self.n_draws, self.seed)

    @cached_property
    def documents(self) -> tuple[Ints, Ints, Ints]:
        """Topic, rank (from 0) and column in the draws of each unjudged document up to the cutoff."""
        evidence = self.drawn.evidence
        topic, rank = np.nonzero(self.judged.unjudged)
        return topic, rank, np.searchsorted(evidence.unjudged, items_of(evidence, self.judged))

    @cached_property
    def draws(self) -> Floats:
        """Drawn scores, shape (n_draws, n_topics)."""
        return self.draws_of(self.n_draws, self.seed)

    @property
    def probabilities(self) -> Floats:
        """The probability of each level of each unjudged document up to the cutoff, shape (n_documents, L)."""
        levels = self.drawn.levels[:, self.documents[2]]
        return np.stack([(levels == level).mean(axis=0) for level in range(len(self.grades))], axis=1)

    def drawn_grades(self, columns: Ints) -> Floats:
        """The drawn grades of some columns, shape (n_draws, n_columns)."""
        return self.grades.astype(np.float64)[self.drawn.levels[:, columns]]

    def draws_of(self, n_draws: int, seed: int) -> Floats:
        """Drawn scores for another number of draws or seed, shape (n_draws, n_topics).

        The draws of a topic are contiguous, so that their sum does not depend on the number of topics.
        """
        grades, judged = self._draw(n_draws, seed), self.judged
        evidence = grades.evidence
        if not len(evidence.unjudged):
            return np.broadcast_to(self.metric.of_judged(judged)[:, None], (len(self), n_draws)).T
        owner, (topic, rank, column) = places(self.topics, evidence.topics), self.documents
        scores = np.empty((len(self), n_draws)).T
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


def items_of(evidence: Evidence, judged: JudgedTop) -> Ints:
    """Positions of the unjudged documents of a judged run in the evidence, -1 for others."""
    topic, rank = np.nonzero(judged.unjudged)
    owner = places(judged.judgments.topics, evidence.topics)[topic]
    return evidence.lookup.find_one(owner, judged.run.docno.take(judged.rows[topic, rank]))


class EstimatedJoint:
    """Joint draws of several systems' scores under one evidence model; the interface of ``JointDistribution``.

    Topics share the errors of the model, so draws with the same number belong together in all topics.
    """

    def __init__(self, distributions: Mapping[str, EstimatedDistribution]) -> None:
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
        return f"EstimatedJoint({len(self)} systems, {len(self.topics)} topics)"

    def scores(self, topic: int, n_draws: int, seed: int = 0) -> Floats:
        """Draw scores of all systems in one topic, shape (n_systems, n_draws)."""
        if (n_draws, seed) not in self._kept:
            self._kept = {(n_draws, seed): np.stack([each.draws_of(n_draws, seed) for each in self.distributions])}
        return self._kept[n_draws, seed][:, :, topic]

    def covariance(self, name_a: str, name_b: str) -> Floats:
        """The covariance of two systems' scores in each topic, shape (n_topics,), from their draws."""
        a, b = (self.distributions[self.names.index(name)].draws for name in (name_a, name_b))
        return np.asarray(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).mean(axis=0))


Joint: TypeAlias = EstimatedJoint | JointDistribution


def joint_of(distributions: Mapping[str, ScoreDistributions]) -> Joint:
    """Return the joint distribution of several systems' scores, all bootstrapped or all estimated by one model."""
    estimated = {name: each for name, each in distributions.items() if isinstance(each, EstimatedDistribution)}
    if estimated:
        return EstimatedJoint(estimated)
    return JointDistribution(
        {name: each for name, each in distributions.items() if isinstance(each, BootstrapDistribution)}
    )

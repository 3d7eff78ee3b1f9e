"""Distributions of scores under the model of all evidence, and joint draws of the scores of several systems."""

from __future__ import annotations

import weakref
from functools import cached_property
from tempfile import TemporaryFile
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vbterrier.frames.notebook import count_text
from vbterrier.frames.ranking import places
from vbterrier.kernels.grades.distributions import Sample, atoms_from_unsorted, central_interval
from vbterrier.kernels.rankings import weighted_sums
from vbterrier.log import tracked_items
from vbterrier.unjudged.distribution import BootstrapDistribution, ScoreDistributions
from vbterrier.unjudged.joint import JointDistribution, SystemsOnTopics
from vbterrier.unjudged.metrics import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.unjudged.draws import GradeDraws
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.pool import JudgedTop

    Draw = Callable[[int, int], GradeDraws]
    Pair = tuple[Ints, Ints]
    Levels = NDArray[np.uint8]


# Levels of documents that are held in memory at a time.
BLOCK_CELLS = 1 << 21
# Drawn scores of a run that are kept in memory; more of them are kept in a temporary file.
MOST_SCORES = 1 << 21


class EstimatedDistribution(ScoreDistributions):
    """The distributions of scores under a model of all evidence, as joint draws over topics and systems.

    Attributes
    ----------
    drawn
        Draws of the grades of unjudged documents of the model's runs.
    documents
        Topic, rank (from 0) and position among the unjudged documents of the evidence of each unjudged document up to
        the cutoff.
    """

    def __init__(self, judged: JudgedTop, metric: Metric, draw: Draw, positions: Ints, n_draws: int, seed: int) -> None:
        super().__init__(judged, metric, n_draws, seed)
        self._draw = draw
        self.documents = (*np.nonzero(judged.unjudged_mask), positions)
        # The gain of each level and the weight of each rank of sums over ranks.
        self._terms = metric.terms(judged)
        self._is_small = len(self) * n_draws <= MOST_SCORES
        self._stored: _StoredScores | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Other processes draw the scores again.
        return {**vars(self), "_stored": None}

    @property
    def source(self) -> str:
        """The evidence that the model is fitted to, and the depth of complete judgments."""
        evidence = self.grade_draws.evidence
        return f"model of {count_text(evidence.n_runs, 'run')}, judged to depth {evidence.depth}"

    @property
    def grade_draws(self) -> GradeDraws:
        """The draws of grades, with those of all unjudged documents up to the cutoff."""
        return self._draw(self.n_draws, self.seed)

    @cached_property
    def draws(self) -> Floats:
        """Drawn scores, shape (n_draws, n_topics)."""
        return self.draw_scores(self.n_draws, self.seed)

    def forget(self) -> None:
        """Release the drawn scores, which are drawn again if they are needed."""
        vars(self).pop("draws", None)

    @property
    def probabilities(self) -> Floats:
        """The probability of each level of each unjudged document up to the cutoff, shape (n_documents, L)."""
        return np.asarray(self.grade_draws.shares[self.documents[2]])

    def drawn_grades(self, columns: Ints) -> Floats:
        """The drawn grades of some unjudged documents of the evidence, shape (n_draws, n_columns)."""
        drawn = self.grade_draws
        return self.grades.astype(np.float64)[drawn.levels[np.searchsorted(drawn.documents, columns)].T]

    def draw_scores(self, n_draws: int, seed: int) -> Floats:
        """Drawn scores for another number of draws or seed, shape (n_draws, n_topics).

        The draws of a topic are contiguous, so that their sum does not depend on the number of topics.
        """
        scores = np.empty((len(self), n_draws))
        for topics, part in self._score_blocks(n_draws, seed):
            scores[topics] = part
        return scores.T

    def _score_blocks(self, n_draws: int, seed: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield positions of topics, shape (t,), and their drawn scores, shape (t, n_draws), block by block."""
        drawn, judged = self._draw(n_draws, seed), self.judged
        if not len(drawn.evidence.unjudged_positions):
            yield np.arange(len(self)), np.tile(self.metric.of_judged(judged)[:, None], n_draws)
            return
        owner, (topic, rank, column) = places(self.topics, drawn.evidence.topics), self.documents
        order = np.argsort(owner)
        by_owner, rows = owner[order], np.argsort(owner[topic], kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        # Documents in the order of the topics of the evidence.
        topic, rank, stored = place[topic[rows]], rank[rows], np.searchsorted(drawn.documents, column[rows])
        for block in drawn.blocks(by_owner):
            low, high = np.searchsorted(by_owner, [block.topics.start, block.topics.stop]).tolist()
            step = max(BLOCK_CELLS // (n_draws * max(judged.levels.shape[1], 1)), 1) if self._terms is None else high
            for start in range(low, high, step):
                part = slice(start, min(start + step, high))
                these = slice(*np.searchsorted(topic, [part.start, part.stop]).tolist())
                levels = block.levels[stored[these] - block.documents.start]
                topics, place = order[part], by_owner[part] - block.topics.start
                if self._terms is None:
                    yield topics, self._whole(topics, block.counts[place], (topic[these] - start, rank[these]), levels)
                    continue
                gain, weights = self._terms
                judged_part = weighted_sums(at(gain, judged.levels[topics]), weights)
                scores = np.repeat(judged_part[:, None], n_draws, axis=1)
                if len(levels):
                    with_documents, starts = np.unique(topic[these] - start, return_index=True)
                    gains = gain.take(levels)
                    gains *= weights[rank[these]][:, None]
                    scores[with_documents] += np.add.reduceat(gains, starts, axis=0)
                if self.metric.has_ideal:
                    key = self.metric, judged.cutoff, block.topics.start
                    norm = drawn.norms.get(key)
                    if norm is None:
                        norm = self.metric.norm(judged, np.moveaxis(block.counts, 1, 2).astype(np.int64, copy=False))
                    if drawn.is_kept:
                        drawn.norms[key] = norm
                    scores /= norm[place]
                    # Sums in another order differ by rounding.
                    np.minimum(scores, 1.0, out=scores)
                yield topics, scores

    def _whole(self, topics: Ints, counts: Ints, where: Pair, levels: Levels) -> Floats:
        """Scores of a metric of whole rankings, shape (t, n_draws).

        ``counts``: complete pools, shape (t, L, n_draws). They have at least the judged documents and those of the
        ranking: documents of runs with little trust hardly count in the pools of others, and would have scores above 1.
        """
        every = np.repeat(self.judged.levels[topics][:, None], levels.shape[1] or counts.shape[2], axis=1)
        topic, rank = where
        every[topic, :, rank] = levels
        if self.metric.has_ideal and len(levels):
            open_, starts = np.unique(topic, return_index=True)
            of_judged = self.judged.judgments.counts[topics[open_]]
            for level in range(1, counts.shape[1]):
                of_ranking = np.add.reduceat(levels == level, starts, axis=0, dtype=np.int32)
                counts[open_, level] = np.maximum(counts[open_, level], of_ranking + of_judged[:, level, None])
        return self.metric.scores(self.judged, every, np.moveaxis(counts, 1, 2).astype(np.int64))

    def _parts(self) -> Iterator[tuple[Ints, Floats]]:
        """Topics and their drawn scores, shape (t, n_draws), some at a time."""
        if not self._is_small:
            if self._stored is None:
                self._stored = _StoredScores.of(self._score_blocks(self.n_draws, self.seed))
            # Without space for a file, they are drawn for each statistic.
            yield from self._score_blocks(self.n_draws, self.seed) if self._stored is None else self._stored
            return
        step = max(BLOCK_CELLS // (8 * self.n_draws), 1)
        for start in range(0, len(self), step):
            part = np.arange(start, min(start + step, len(self)))
            yield part, self.draws.T[start : start + step]

    @cached_property
    def distributions(self) -> list[ScoreDistribution]:
        """The draws of each topic as a distribution."""
        distributions: list[ScoreDistribution | None] = [None] * len(self)
        for topics, scores in self._parts():
            for topic, one in zip(topics.tolist(), _samples(scores), strict=True):
                distributions[topic] = one
        return [one for one in distributions if one is not None]

    def quantile(self, level: float) -> Floats:
        """The quantile of each topic, see :meth:`ScoreDistributions.quantile`."""
        if self._is_small or not 0 <= level <= 1:
            return super().quantile(level)
        levels = np.array([level])
        return self._each(lambda one: one.quantiles(levels)[0])

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """The central interval of each topic, see :meth:`ScoreDistributions.interval`."""
        if self._is_small or not 0 <= level <= 1:
            return super().interval(level)
        if level not in self._intervals:
            ends = self._each(lambda one: central_interval(one, level))
            self._intervals[level] = ends[:, 0], ends[:, 1]
        return self._intervals[level]

    def _each(self, statistic: Callable[[ScoreDistribution], Any]) -> Floats:
        """A statistic of the distribution of each topic, of which one block is in memory."""
        values: list[Any] = [None] * len(self)
        for topics, scores in self._parts():
            for topic, one in zip(topics.tolist(), _samples(scores), strict=True):
                values[topic] = statistic(one)
        return np.array(values)

    def _compute_moments(self, *, with_variance: bool) -> tuple[Floats, Floats]:
        mean, variance = np.full((2, len(self)), np.nan)
        for topics, scores in self._parts():
            # Rounding of a mean of equal numbers is not uncertainty.
            constant = (scores == scores[:, :1]).all(axis=1)
            mean[topics] = np.where(constant, scores[:, 0], scores.mean(axis=1))
            if with_variance:
                variance[topics] = np.where(constant, 0.0, scores.var(axis=1))
        return mean, variance

    @cached_property
    def variance_part(self) -> Floats:
        """The part of each topic in the variance of the sum over topics, ``Σ_s Cov(X_t, X_s)``, shape (n,)."""
        total, part = np.zeros(self.n_draws), np.zeros(len(self))
        for _, scores in self._parts():
            total += scores.sum(axis=0)
        # The covariance with a sum without its mean needs no other means.
        total -= total.mean()
        for topics, scores in self._parts():
            # Equal numbers have no variance, which the rounding of their mean would give them.
            varies = (scores != scores[:, :1]).any(axis=1)
            part[topics] = np.where(varies, scores @ total / self.n_draws, 0.0)
        return part


class _StoredScores:
    """Blocks of drawn scores in a temporary file: drawing them takes much longer than reading them."""

    def __init__(self) -> None:
        self._file, self._lock = TemporaryFile(prefix="vbterrier-"), Lock()  # noqa: SIM115 - as long as the scores
        weakref.finalize(self, self._file.close)
        self._blocks: list[tuple[Ints, int, tuple[int, ...]]] = []

    @classmethod
    def of(cls, blocks: Iterable[tuple[Ints, Floats]]) -> _StoredScores | None:
        """Store blocks of topics and scores; return ``None`` if a file cannot be made or written."""
        try:
            stored = cls()
            for topics, scores in blocks:
                stored._blocks.append((topics, stored._file.tell(), scores.shape))
                stored._file.write(np.ascontiguousarray(scores).data)
            stored._file.flush()
        except OSError:
            return None
        return stored

    def __iter__(self) -> Iterator[tuple[Ints, Floats]]:
        for topics, start, shape in self._blocks:
            scores = np.empty(shape)
            with self._lock:
                self._file.seek(start)
                self._file.readinto(scores.data)
            yield topics, scores


def _samples(scores: Floats) -> Iterator[ScoreDistribution]:
    """The distribution of each row of draws."""
    share = np.full(scores.shape[1], 1 / scores.shape[1])
    cumulated, one = np.cumsum(share), np.ones(1)
    for values in np.sort(scores, axis=1):
        yield Sample(values, share, cumulated, "mc") if values[0] < values[-1] else atoms_from_unsorted(values[:1], one)


class EstimatedJoint(SystemsOnTopics[EstimatedDistribution]):
    """Joint draws of several systems' scores under one evidence model.

    Topics share the errors of the model, so draws with the same number belong together in all topics.
    """

    def __init__(self, distributions: Mapping[str, EstimatedDistribution]) -> None:
        super().__init__(distributions)
        self._kept: dict[tuple[int, int], Floats] = {}

    def scores(self, topic: int, n_draws: int, seed: int = 0) -> Floats:
        """Draw scores of all systems in one topic, shape (n_systems, n_draws)."""
        if (n_draws, seed) not in self._kept:
            self._kept = {(n_draws, seed): np.stack([each.draw_scores(n_draws, seed) for each in self.distributions])}
        return self._kept[n_draws, seed][:, :, topic]

    @property
    def means(self) -> Floats:
        """See :attr:`SystemsOnTopics.means`; draws of one system are in memory at a time."""
        means = []
        for each in self.distributions:
            means.append(each.mean)
            each.forget()
        return np.array(means)

    def sums(
        self,
        topics: Sequence[int],
        weights: Sequence[Sequence[Any]],
        n_draws: int,
        seed: int = 0,
        *,
        shown: bool = False,
    ) -> list[Floats]:
        """See :meth:`JointDistribution.sums`; draws of one system are in memory at a time."""
        totals = [np.zeros((len(self), n_draws)) for _ in weights]
        for system, each in enumerate(tracked_items(self.distributions, "drawing", shown=shown, unit="system")):
            scores = each.draw_scores(n_draws, seed)
            for total, weight in zip(totals, weights, strict=True):
                for place, topic in enumerate(topics):
                    total[system] += scores[:, topic] * weight[place]
        return totals

    def covariance(self, name_a: str, name_b: str) -> Floats:
        """The covariance of two systems' scores in each topic, shape (n_topics,), from their draws."""
        a, b = (self.distributions[self._at(name)].draws for name in (name_a, name_b))
        return np.asarray(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).mean(axis=0))


Joint: TypeAlias = EstimatedJoint | JointDistribution


def joint_distribution(distributions: Mapping[str, ScoreDistributions]) -> Joint:
    """Return the joint distribution of several systems' scores, all bootstrapped or all estimated by one model."""
    estimated = {name: each for name, each in distributions.items() if isinstance(each, EstimatedDistribution)}
    if estimated:
        return EstimatedJoint(estimated)
    return JointDistribution(
        {name: each for name, each in distributions.items() if isinstance(each, BootstrapDistribution)}
    )

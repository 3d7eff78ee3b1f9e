"""Bootstrapped scores: their distribution over what the unjudged documents could be."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.shown import Panel, Shown
from vbterrier.judgments.layout import problem_of, visits_of
from vbterrier.judgments.metrics import DCG, NDCG
from vbterrier.judgments.priors import ECIR23_GRADES, OWN, prior_of
from vbterrier.kernels.grades import TooLargeError, central_interval, laws_of, moments
from vbterrier.kernels.grades.urn import urn
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.frames.shown import Figures
    from vbterrier.judgments.metrics import Metric
    from vbterrier.judgments.pool import JudgedTop
    from vbterrier.judgments.process import Process
    from vbterrier.kernels.grades.laws import Law

    Floats = NDArray[np.float64]

MOST_ATOMS = 50_000_000
COMMON_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Of the intervals that notebooks show unasked, and of how many topics at most.
LEVEL = 0.9
_SHOWN = 250


class BootstrapDistribution(Shown):
    """The distribution of a score for every topic, over what its unjudged documents could be.

    Made by :func:`vbterrier.bootstrap_distribution`. Arrays are parallel to ``topics``; what needs the whole
    distribution is computed when it is first asked for.

    Attributes
    ----------
    topics : list of str
        The topics of the qrels, in order of appearance.
    cutoff : int or None
        k.
    process : Process
        The parameters that made it.
    metric : Metric
        What the score is.
    n_unjudged : numpy.ndarray
        Unjudged documents in the first k, shape (n,).
    visits : numpy.ndarray
        The places (ranks from 0) of the unjudged documents in the order in which they are drawn, shape (n, u); the
        first ``n_unjudged`` of each topic count.
    prob : numpy.ndarray
        The prior over ``grades``, shape (n, L), or (n, u, L) where documents have their own, in the order of visits.
    strength : numpy.ndarray
        How many documents the prior of each topic is worth, shape (n,); infinite where it is taken for certain.
    grades : numpy.ndarray
        Grades, rising from 0, shape (L,).
    problem : Problem
        All this for the kernels.
    """

    def __init__(self, judged: JudgedTop, process: Process, metric: Metric | None = None) -> None:
        if metric is not None:
            _require_metric(metric, process)
        if process.compat:
            judged = judged.regraded(np.array(ECIR23_GRADES))
        self.topics = judged.judgments.topics
        self.cutoff = judged.depth
        self.process = process
        self.metric: Metric = NDCG(process.dcg) if metric is None else metric
        self.n_unjudged = judged.n_unjudged
        self.grades = judged.judgments.grades
        prior = prior_of(judged, process)
        self.prob = prior.prob if process.prior == OWN else prior.prob[:, 0]
        self.strength = np.full(len(self), math.inf) if prior.strength is None else prior.strength
        self.visits = visits_of(judged, by_docno=process.compat == "ecir23")
        self.problem = problem_of(judged, self.metric, self.visits, prior.prob, prior.strength)
        if process.method == "grid" and self.problem.value is not None:
            raise ParameterError(
                f"method='grid' adds up what ranks score, and {self.metric.name} is no such sum; use method='auto'"
            )
        self._quantiles: dict[float, Floats] = {}
        self._intervals: dict[float, tuple[Floats, Floats]] = {}

    def __len__(self) -> int:
        return len(self.topics)

    def _line(self) -> str:
        return f"{self.metric.name}@{self.cutoff}, {len(self)} topics, {self.process}"

    def _panels(self) -> Iterator[Panel]:
        # Intervals take every topic's whole distribution: of many topics, only where those are known already.
        if "laws" in vars(self) or len(self) <= _SHOWN:
            frame = self.frame(LEVEL).assign(level=LEVEL)
            exact = frame["certificate"] == 0
            frame = frame.drop(columns="certificate") if exact.all() else frame
            yield Panel("Topics", frame.rename(columns={"method": "by"}), value="mean")
        else:
            columns = {"qid": self.topics, "n_unjudged": self.n_unjudged, "mean": self.mean, "std": self.std}
            yield Panel("Topics", pd.DataFrame(columns))

    def _figures(self) -> Figures:
        return {"score_distributions": lambda: {"law": self}}

    @cached_property
    def laws(self) -> list[Law]:
        """The distribution of each topic."""
        try:
            return laws_of(self.problem, self.process.method, self._uniforms, legacy=bool(self.process.compat))
        except TooLargeError as error:
            raise ParameterError(
                f"method={self.process.method!r} cannot do query {self.topics[error.topic]!r} with its "
                f"{self.n_unjudged[error.topic]} unjudged documents; use method='auto', or a smaller cutoff"
            ) from error

    def _uniforms(self, topic: int) -> Floats:
        rng = stream(self.process.seed, self.topics[topic])
        return urn(rng, self.process.n_draws, int(self.n_unjudged[topic]), float(self.strength[topic]))

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return self._found_moments(spread=True)

    @cached_property
    def _means(self) -> Floats:
        """Without the variances, which cost more, where these were not asked for before."""
        return self._moments[0] if "_moments" in vars(self) else self._found_moments(spread=False)[0]

    def _found_moments(self, *, spread: bool) -> tuple[Floats, Floats]:
        sampled = self.process.method == "mc"
        mean, variance = (np.full(len(self), np.nan),) * 2 if sampled else moments(self.problem, spread=spread)
        unknown = np.flatnonzero(np.isnan(mean))
        if len(unknown):
            mean, variance = mean.copy(), variance.copy()
        for topic in unknown:
            values, probs = self.laws[topic].atoms()
            mean[topic] = values @ probs
            variance[topic] = (values - mean[topic]) ** 2 @ probs
        return mean, variance

    @property
    def mean(self) -> Floats:
        """Expected score of each topic, shape (n,)."""
        return self._means

    @property
    def std(self) -> Floats:
        """Standard deviation of each topic's score over what its unjudged documents could be, shape (n,)."""
        return np.sqrt(self._moments[1])

    @property
    def median(self) -> Floats:
        """The 0.5 quantile of each topic, shape (n,)."""
        return self.quantile(0.5)

    @cached_property
    def mode(self) -> Floats:
        """The most probable score of each topic, the largest of several, shape (n,)."""
        return np.array([law.mode() for law in self.laws])

    def quantile(self, level: float) -> Floats:
        """The smallest score whose probability of not being exceeded reaches ``level``, shape (n,).

        Raises
        ------
        ParameterError
            A level outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ParameterError(f"level={level}: wanted a number from 0 to 1")
        if level not in self._quantiles:
            # Levels that are often asked for next cost next to nothing, but where one is a search of its own.
            cheap = all(law.is_sorted for law in self.laws)
            levels = np.array([level, *(other for other in COMMON_LEVELS if cheap and other not in self._quantiles)])
            found = np.array([law.quantiles(levels) for law in self.laws]).reshape(len(self), len(levels))
            self._quantiles.update(zip(levels.tolist(), found.T, strict=True))
        return self._quantiles[level]

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """The central interval: values whose mid-probability is from ``(1 - level)/2`` to ``(1 + level)/2``.

        The mid-probability of x is ``P(X < x) + P(X = x)/2``. With few unjudged documents the quantiles at the same
        levels lie further apart and hold more than they promise; with many the two agree.

        Returns
        -------
        (low, high)
            Each of shape (n,).

        Raises
        ------
        ParameterError
            A level outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ParameterError(f"level={level}: wanted a number from 0 to 1")
        if level not in self._intervals:
            ends = np.array([central_interval(law, level) for law in self.laws]).reshape(len(self), 2)
            self._intervals[level] = ends[:, 0], ends[:, 1]
        return self._intervals[level]

    def certificate(self, level: float) -> Floats:
        """How wide the bracket is that certainly holds the quantile at ``level``, shape (n,); 0 where exact.

        For draws it is the width of the Dvoretzky-Kiefer-Wolfowitz band at 95 %.
        """
        return np.array([float(np.diff(law.brackets(np.array([level])), axis=0)[0, 0]) for law in self.laws])

    @property
    def methods(self) -> list[str]:
        """``"exact"``, ``"grid"`` or ``"mc"`` for each topic."""
        return [law.method for law in self.laws]

    def atoms(self, topic: str) -> tuple[Floats, Floats]:
        """Rising scores of one topic and their probabilities, each of shape (m,).

        Raises
        ------
        InputError
            A topic that was not evaluated.
        """
        if topic not in self.topics:
            raise InputError(f"query {topic!r} was not evaluated; there are {len(self)}, the first {self.topics[:3]}")
        law = self.laws[self.topics.index(topic)]
        if law.n_atoms > MOST_ATOMS:
            raise ParameterError(
                f"query {topic!r} has {law.n_atoms:,} atoms, too many to list; ask for quantiles, or use method='grid'"
            )
        return law.atoms()

    def frame(self, level: float = 0.9) -> pd.DataFrame:
        """A row a topic: qid, n_unjudged, mean, std, median, mode, low, high, method, certificate (of the interval)."""
        low, high = self.interval(level)
        widths = np.maximum(self.certificate((1 - level) / 2), self.certificate((1 + level) / 2))
        return pd.DataFrame(
            {
                "qid": self.topics,
                "n_unjudged": self.n_unjudged,
                "mean": self.mean,
                "std": self.std,
                "median": self.median,
                "mode": self.mode,
                "low": low,
                "high": high,
                "method": self.methods,
                "certificate": widths,
            }
        )


def _require_metric(metric: object, process: Process) -> None:
    if not hasattr(metric, "parts") or isinstance(metric, type):
        raise ParameterError(
            f"metric={metric!r}: wanted one of those in vbterrier.judgments.metrics, as AP(rel=1), or None for nDCG"
        )
    if process.dcg != DCG[0]:
        raise ParameterError(f"dcg={process.dcg!r} is nDCG's own; use metric=NDCG({process.dcg!r}), or no metric")

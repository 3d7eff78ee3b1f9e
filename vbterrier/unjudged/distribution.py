"""Distributions of bootstrapped scores, and bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, excerpt, whole
from vbterrier.frames.notebook import Panel
from vbterrier.frames.ranking import Run
from vbterrier.frames.results import Shown
from vbterrier.kernels import bounds
from vbterrier.kernels.bounds import PartlyJudged
from vbterrier.kernels.grades.choice import TooLargeError, topic_distributions
from vbterrier.kernels.grades.distributions import atoms_from_unsorted, central_interval
from vbterrier.kernels.grades.model import UnjudgedModel, urn
from vbterrier.kernels.grades.moments import moments
from vbterrier.kernels.rankings import row_sums
from vbterrier.kernels.resample import stream
from vbterrier.settings import Inference, with_defaults
from vbterrier.unjudged.metrics import NDCG, metric_text
from vbterrier.unjudged.pool import Judgments, grade_gains
from vbterrier.unjudged.priors import COLUMN_PRIOR, DEFAULT_PRIOR, ECIR23_GRADES, N_DRAWS, Process, grade_prior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.results import Figures
    from vbterrier.kernels.grades.distributions import ScoreDistribution
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.pool import JudgedTop


# Ranks of rankings that are held in memory at a time.
BLOCK_CELLS = 1 << 22
# The largest number of atoms that are listed.
MOST_ATOMS = 50_000_000
# Quantiles that are computed together with a requested one.
COMMON_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# The level of the intervals that notebooks display, and the largest number of topics for which they are computed.
DISPLAY_LEVEL = 0.9
_MAX_DISPLAYED_TOPICS = 250


class ScoreDistributions(Shown):
    """The distributions of a run's score over the possible grades of its unjudged documents, one for each topic.

    Arrays are parallel to ``topics``. Statistics that need the whole distributions are computed on first access. A
    topic without unjudged documents under a fixed ideal ranking has its score with probability 1.

    Attributes
    ----------
    judged
        The run up to the cutoff, with its judgments.
    topics, cutoff, metric
        The topics of the qrels in order of appearance, the cutoff k (or None), and the metric.
    n_unjudged, grades
        Unjudged documents in the first k, shape (n,), and the grades of the qrels, increasing from 0, shape (L,).
    n_draws, seed
        The number of draws of a topic where draws are used, and their seed.
    """

    def __init__(self, judged: JudgedTop, metric: Metric, n_draws: int, seed: int) -> None:
        self.judged, self.metric = judged, metric
        self.topics, self.cutoff = judged.judgments.topics, judged.cutoff
        self.n_unjudged, self.grades = judged.n_unjudged, judged.judgments.grades
        self.n_draws, self.seed = n_draws, seed
        self._quantiles: dict[float, Floats] = {}
        self._intervals: dict[float, tuple[Floats, Floats]] = {}

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def source(self) -> str:
        """The source of the grades of unjudged documents."""
        raise NotImplementedError

    @cached_property
    def distributions(self) -> list[ScoreDistribution]:
        """The distribution of each topic."""
        raise NotImplementedError

    def _compute_moments(self, *, with_variance: bool) -> tuple[Floats, Floats]:
        """Means, and variances (NaN unless requested), shape (n,) each."""
        raise NotImplementedError

    def _line(self) -> str:
        return f"{metric_text(self.metric)}@{self.cutoff}, {len(self)} topics, {self.source}"

    def _panels(self) -> Iterator[Panel]:
        # Intervals need the whole distributions, which take long for many topics.
        if "distributions" in vars(self.of_complete) or len(self) <= _MAX_DISPLAYED_TOPICS:
            frame = self.to_frame(DISPLAY_LEVEL).assign(level=DISPLAY_LEVEL)
            exact = frame["certificate"] == 0
            frame = frame.drop(columns="certificate") if exact.all() else frame
            yield Panel("Topics", frame.rename(columns={"method": "by"}), value="mean")
        else:
            columns = {"qid": self.topics, "n_unjudged": self.n_unjudged, "mean": self.mean, "std": self.std}
            yield Panel("Topics", pd.DataFrame(columns))

    def _figures(self) -> Figures:
        return {"score_distributions": lambda: {"distribution": self}}

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return self._compute_moments(with_variance=True)

    @cached_property
    def mean(self) -> Floats:
        """Expected score of each topic, shape (n,)."""
        # Variances cost more and are computed on request only.
        return self._moments[0] if "_moments" in vars(self) else self._compute_moments(with_variance=False)[0]

    @property
    def std(self) -> Floats:
        """Standard deviation of each topic's score over the grades of its unjudged documents, shape (n,)."""
        return np.sqrt(self._moments[1])

    @property
    def of_complete(self) -> ScoreDistributions:
        """The distributions of the scores of complete judgments, which intervals describe."""
        return self

    @property
    def variance_part(self) -> Floats:
        """The part of each topic in the variance of the sum over independent topics, for intervals, shape (n,)."""
        return self.of_complete._moments[1]  # noqa: SLF001 - of the same class

    @property
    def median(self) -> Floats:
        """The 0.5 quantile of each topic, shape (n,)."""
        return self.quantile(0.5)

    @cached_property
    def mode(self) -> Floats:
        """The most probable score of each topic, the largest of several, shape (n,)."""
        return np.array([distribution.mode() for distribution in self.distributions])

    def quantile(self, level: float) -> Floats:
        """The quantile of each topic: the smallest score whose CDF reaches ``level``, shape (n,).

        Raises ParameterError: a level outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ParameterError(f"level={level}: wanted a number from 0 to 1")
        if level not in self._quantiles:
            # Common levels are computed along with the first one unless each needs a search.
            cheap = all(distribution.is_sorted for distribution in self.distributions)
            levels = np.array([level, *(other for other in COMMON_LEVELS if cheap and other not in self._quantiles)])
            values = np.array([each.quantiles(levels) for each in self.distributions]).reshape(len(self), len(levels))
            self._quantiles.update(zip(levels.tolist(), values.T, strict=True))
        return self._quantiles[level]

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """The central interval: values with a mid-probability from ``(1 - level)/2`` to ``(1 + level)/2``.

        The mid-probability of x is ``P(X < x) + P(X = x)/2``. With few unjudged documents the quantiles at the same
        levels are further apart and cover more than ``level``; with many documents the two agree. Intervals are those
        of :attr:`of_complete`.

        Returns arrays of shape (n,). Raises ParameterError: a level outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ParameterError(f"level={level}: wanted a number from 0 to 1")
        if level not in self._intervals:
            distributions = self.of_complete.distributions
            ends = np.array([central_interval(each, level) for each in distributions]).reshape(len(self), 2)
            self._intervals[level] = ends[:, 0], ends[:, 1]
        return self._intervals[level]

    def certificate(self, level: float) -> Floats:
        """The width of a bracket that certainly contains the quantile at ``level``, shape (n,); 0 for exact quantiles.

        For draws it is the width of the Dvoretzky-Kiefer-Wolfowitz band at 95 %.
        """
        levels = np.array([level])
        return np.array([float(np.diff(each.brackets(levels), axis=0)[0, 0]) for each in self.distributions])

    @property
    def methods(self) -> list[str]:
        """``"exact"``, ``"grid"`` or ``"mc"`` for each topic."""
        return [distribution.method for distribution in self.distributions]

    def atoms(self, topic: str) -> tuple[Floats, Floats]:
        """Increasing scores of one topic and their probabilities, each of shape (m,).

        Raises InputError: a topic that was not evaluated. Raises ParameterError: a distribution with too many atoms.
        """
        if topic not in self.topics:
            raise InputError(f"query {topic!r} was not evaluated; found {len(self)} queries, first {self.topics[:3]}")
        distribution = self.distributions[self.topics.index(topic)]
        if distribution.n_atoms > MOST_ATOMS:
            raise ParameterError(
                f"query {topic!r} has {distribution.n_atoms:,} atoms, more than the {MOST_ATOMS:,} that can be "
                "listed; ask for quantiles, or use method='grid'"
            )
        return distribution.atoms()

    def to_frame(self, level: float = 0.9) -> pd.DataFrame:
        """Return a row per topic: qid, n_unjudged, mean, std, median, mode, low, high, method, certificate."""
        low, high = self.interval(level)
        frame = pd.DataFrame({"qid": self.topics, "n_unjudged": self.n_unjudged, "mean": self.mean, "std": self.std})
        frame = frame.assign(median=self.median, mode=self.mode, low=low, high=high, method=self.methods)
        ends = (self.of_complete.certificate(end) for end in ((1 - level) / 2, (1 + level) / 2))
        return frame.assign(certificate=np.maximum(*ends))


class BootstrapDistribution(ScoreDistributions):
    """The distributions of bootstrapped scores, each of its topic alone: the process of the paper.

    The result of :func:`bootstrap_distribution`. Moments, mode, quantiles and atoms are those of the process. Intervals
    are those of :attr:`of_complete`, whose prior is uncertain unless ``prior_strength`` is given.

    Attributes
    ----------
    process
        The parameters of the process.
    visits
        The ranks (from 0) of unjudged documents in drawing order, shape (n, u), of which the first ``n_unjudged`` of
        each topic are valid.
    prob
        The prior of the grades, shape (n, L), or (n, u, L) in drawing order if documents have individual priors.
    strength
        The pseudo-count of the prior in documents, shape (n,); infinite for independent draws.
    model : UnjudgedModel
        The input of the kernels.
    """

    def __init__(self, judged: JudgedTop, process: Process, metric: Metric | None = None) -> None:
        if process.compat:
            judged = judged.with_grades(np.array(ECIR23_GRADES))
        super().__init__(judged, resolve_metric(metric), process.n_draws, process.seed)
        self.process = process
        prior = grade_prior(judged, process)
        self.prob = prior.prob if process.prior == COLUMN_PRIOR else prior.prob[:, 0]
        self.strength = np.full(len(self), math.inf) if prior.strength is None else prior.strength
        self.visits = drawing_order(judged, by_docno=process.compat == "ecir23")
        self.model = unjudged_model(judged, self.metric, self.visits, prior.prob, prior.strength)
        if (
            process.method == "grid"
            and self.model.value
            and (process.prior == COLUMN_PRIOR or process.compat == "ecir23")
        ):
            raise ParameterError(
                f"method='grid': {self.metric.name} is no sum over ranks, so its documents need one prior and draws "
                "in the order of ranks; use method='auto'"
            )

    @property
    def source(self) -> str:
        """The prior and its parameters."""
        return self.process.summary

    @cached_property
    def of_complete(self) -> BootstrapDistribution:
        """The distributions of the scores of complete judgments, which intervals describe.

        Unless ``prior_strength`` is given, the priors of the paper have the pseudo-count ``DEFAULT_STRENGTH``, with
        which intervals cover these scores.
        """
        strength = self.process.interval_strength
        if strength == self.process.strength:
            return self
        return BootstrapDistribution(self.judged, replace(self.process, prior_strength=strength), self.metric)

    @cached_property
    def _of_judged(self) -> Floats:
        """The score of the judged documents, by the metric itself, shape (n,)."""
        return self.metric.of_judged(self.judged)

    @cached_property
    def distributions(self) -> list[ScoreDistribution]:
        """The distribution of each topic."""
        try:
            made = topic_distributions(
                self.model, self.process.method, self._uniforms, legacy=bool(self.process.compat)
            )
        except TooLargeError as error:
            raise ParameterError(
                f"method={self.process.method!r} is too expensive for query {self.topics[error.topic]!r} with "
                f"{self.n_unjudged[error.topic]} unjudged documents; use method='auto', or a smaller cutoff"
            ) from error
        # Rounding of other orders of summation is not part of the score of a fully judged ranking.
        exact, one = self._of_judged, np.ones(1)
        return [
            each if n else atoms_from_unsorted(exact[topic : topic + 1], one)
            for topic, (n, each) in enumerate(zip(self.n_unjudged.tolist(), made, strict=True))
        ]

    def _uniforms(self, topic: int) -> Floats:
        rng = stream(self.process.seed, self.topics[topic])
        return urn(rng, self.process.n_draws, int(self.n_unjudged[topic]), float(self.strength[topic]))

    def _compute_moments(self, *, with_variance: bool) -> tuple[Floats, Floats]:
        mean, variance = np.full((2, len(self)), np.nan)
        if self.process.method != "mc":
            mean, variance = (part.copy() for part in moments(self.model, with_variance=with_variance))
        judged = self.n_unjudged == 0
        if judged.any():
            mean[judged], variance[judged] = self._of_judged[judged], 0.0
        for topic in np.flatnonzero(np.isnan(mean) | (with_variance & np.isnan(variance))):
            values, probs = self.distributions[topic].atoms()
            mean[topic] = values @ probs if np.isnan(mean[topic]) else mean[topic]
            variance[topic] = (values - mean[topic]) ** 2 @ probs
        return mean, variance


@with_defaults
def bootstrap_distribution(
    run: Any,
    qrels: Any,
    cutoff: int | None = 10,
    *,
    prior: str | Mapping[int, float] = DEFAULT_PRIOR,
    method: str = "auto",
    compat: str = "",
    all_unjudged: str = "auto",
    prior_strength: float | str = "auto",
    metric: Metric | None = None,
    inference: Inference = Inference(n_draws=N_DRAWS, seed=0),
) -> BootstrapDistribution:
    """The distribution of a score over the possible grades of the unjudged documents of a run.

    In each topic, each unjudged document of the first k draws a grade from the prior, or the next lower grade that has
    a judged document left outside the first k (grade 0 is unlimited; measures without an ideal ranking have no such
    limit). The score is then ``nDCG@k = (DCG of the judged part + gains of the draws) / IDCG@k(pool)`` or another
    metric; topics without a relevant document score 0. Distributions are computed exactly if possible. The distribution
    of a topic depends on its ranking and its judgments alone.

    Parameters
    ----------
    run, qrels
        Frames with qid, docno, score, and grade_prob with ``prior="column"``; and with qid, docno, label (whole
        numbers; below 0 counts as 0).
    cutoff
        The rank cutoff k; ``None`` evaluates whole rankings.
    prior
        The prior over grades of unjudged documents. The priors of the paper: ``"pool"`` (shares of the grades among the
        judged documents of the query), ``"run"`` (among those in the first k), ``"pool+run"`` (the mean of both, the
        default). ``"column"``: individual priors from the run's column ``grade_prob``, each a list of the probabilities
        of grade 0, 1, 2, ... or one number, the probability of relevance (divided among the grades above 0 in
        proportion to the pool). A mapping of grade to probability.
    metric
        nDCG by default; another metric, or nDCG with the gain ``2^grade - 1``, see :mod:`vbterrier.unjudged.metrics`.
    method
        ``"exact"``, ``"grid"`` (values on 32,768 cells, 4,096 for AP, ERR and Q, with a certified bracket around
        quantiles) or ``"mc"`` (draws, with a 95 % band). ``"auto"`` is exact if that is cheap, then uses the grid, then
        draws. AP, ERR and Q have no grid with individual priors or ``compat``.
    compat
        ``"ecir23"`` follows the authors' code where it departs from the paper: pool prior over all topics, grades 0 to
        3, probabilities of at least 1e-6, documents drawn in the order of docnos, labels below 0 treated as unjudged,
        grade 0 if all of the first k are unjudged; with ``method="mc"`` also its histogram mode and interpolated
        quantiles.
    all_unjudged
        The run prior if none of the first k is judged: ``"auto"`` (the pool's for ``pool+run``, an error for ``run``),
        ``"pool"``, or ``"zero"`` (grade 0).
    prior_strength
        The pseudo-count of the prior in documents. The probabilities have a Dirichlet distribution of this pseudo-count
        and are shared by the documents of a topic, so draws follow Pólya's urn, and the gains of two documents have the
        correlation ``1/(prior_strength + 1)``. A smaller value gives wider intervals and the same mean, unless the pool
        may have too few documents of a grade. ``inf``: the prior is known exactly and draws are independent, as in the
        paper. ``"auto"``: ``inf``, except for intervals under the priors of the paper. These have
        ``DEFAULT_STRENGTH``, chosen such that 90 % intervals cover the DCG under complete judgments divided by the
        ideal DCG of the pool (docs/explanation/evidence-one-run.md).
    inference
        An :class:`vbterrier.Inference`: ``n_draws`` (1,000), ``seed`` (0). They are used for topics whose ``method`` is
        ``"mc"``; the draws of a topic depend on the seed and on the query's id only.

    Returns
    -------
    BootstrapDistribution
        The distribution of the score of each topic, with its moments, quantiles and intervals.

    Notes
    -----
    With ``prior_strength=inf`` intervals ignore the uncertainty of the prior, too. The cost is linear in rows. A topic
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
    n_draws, seed = inference.n_draws, inference.seed
    process = Process(prior, method, compat, all_unjudged, n_draws, seed, prior_strength)
    if cutoff is not None:
        whole("cutoff", cutoff, meaning=", as in @10")
    judged = Judgments(qrels, drop_negative=process.drops_negative).judge(Run(run), cutoff)
    return BootstrapDistribution(judged, process, metric)


def unjudged_model(
    judged: JudgedTop, metric: Metric, visits: Ints, prob: Floats, strength: Floats | None
) -> UnjudgedModel:
    """The model of the unjudged documents of a judged run; ``prob`` has the shape (n, 1, L), or (n, u, L) in order."""
    parts = metric.parts(judged)
    base = row_sums(parts.unit * parts.gain[np.maximum(judged.levels, 0)])
    weights = np.take_along_axis(np.where(judged.unjudged_mask, parts.unit, 0.0), visits, axis=1)
    left = judged.judgments.counts - judged.counts
    if not metric.has_ideal:
        # Without an ideal ranking, any number of unjudged documents may have any grade.
        left = np.full_like(left, judged.levels.shape[1])
    value = None if parts.score is None else _value(judged, visits, parts.score)
    # Increments need documents that are drawn in the order of the ranking.
    valid = np.arange(1, visits.shape[1]) < judged.n_unjudged[:, None]
    in_order = not (valid & (np.diff(visits, axis=1) < 0)).any()
    increments = parts.increments(visits) if parts.increments is not None and in_order else None
    return UnjudgedModel(base, weights, judged.n_unjudged, prob, left, parts.gain, strength, value, increments)


def _value(judged: JudgedTop, visits: Ints, score: Callable[[Ints, int], Floats]) -> Callable[[int, Ints], Floats]:
    """A function of the levels of unjudged documents that returns the scores of the rankings."""

    def value(topic: int, levels: Ints) -> Floats:
        places = visits[topic, : levels.shape[1]]
        step = max(1, BLOCK_CELLS // max(judged.levels.shape[1], 1))
        starts = range(0, max(len(levels), 1), step)
        return np.concatenate([part(topic, places, levels[start : start + step]) for start in starts])

    def part(topic: int, places: Ints, levels: Ints) -> Floats:
        rankings = np.tile(judged.levels[topic], (len(levels), 1))
        rankings[:, places] = levels
        return score(rankings, topic)

    return value


def drawing_order(judged: JudgedTop, *, by_docno: bool) -> Ints:
    """The ranks (from 0) of the unjudged documents in drawing order, then any ranks, shape (n, most unjudged)."""
    most = int(judged.n_unjudged.max(initial=0))
    turn = np.broadcast_to(np.arange(judged.levels.shape[1]), judged.levels.shape)
    if by_docno:
        topic, rank = np.nonzero(judged.unjudged_mask)
        turn = turn.copy()
        turn[topic, rank] = judged.run.docno.take(judged.rows[topic, rank]).ranks()
    behind = np.where(judged.unjudged_mask, turn, np.iinfo(np.int64).max)
    return np.argsort(behind, axis=1, kind="stable")[:, :most]


def resolve_metric(metric: Metric | None) -> Metric:
    """Return the given metric, or nDCG."""
    if metric is None:
        return NDCG()
    if not hasattr(metric, "parts") or isinstance(metric, type):
        raise ParameterError(
            f"metric={excerpt(metric)}: wanted an instance of a class of "
            "vbterrier.unjudged.metrics, as AP(rel=1), or None "
            "for nDCG"
        )
    return metric


SIDES = ("lower", "upper")
KINDS = ("naive", "rbp", "guaranteed", "posthoc")
# Unused grades up to this one are possible grades of unjudged documents; larger labels are weights rather than grades.
MAX_GRADE = 64

# Lower and upper bound of each kind; the guaranteed upper bound depends on judgments of retrieved documents only.
_BOUNDS: dict[str, tuple[Callable[[PartlyJudged], Floats], ...]] = {
    "naive": (bounds.naive_lower, bounds.naive_upper),
    "rbp": (bounds.naive_lower, bounds.rbp_upper),
    "guaranteed": (bounds.guaranteed_lower, bounds.guaranteed_upper),
    "posthoc": (bounds.posthoc_lower, bounds.guaranteed_upper),
}


def ndcg_bound(judged: JudgedTop, side: str, kind: str, *, dcg: str = "log2", max_grade: int | None = None) -> Floats:
    """A bound of nDCG@k for every topic, shape (n,).

    Fröbe et al. (ECIR 2023, section 3.3) define all kinds but ``posthoc``.

    - ``judged``, ``side``: the judged run, and ``"lower"`` or ``"upper"``
    - ``kind``: ``"naive"``: unjudged documents have grade 0 (lower), or the best grades left in the pool, in the order
      of ranks (upper), with a fixed ideal ranking. ``"rbp"``: they have grade 0, or all the top grade with a recomputed
      ideal ranking. ``"guaranteed"``: no judgments of any documents can exceed the bound. ``"posthoc"``: no judgments
      of the retrieved documents can exceed the bound
    - ``dcg``, ``max_grade``: ``"log2"`` (the gain is the grade) or ``"exp-log2"``, and the highest grade that an
      unjudged document may have; ``None`` for the highest in the qrels. A lower one raises ParameterError
    """
    highest = int(judged.judgments.grades[-1])
    top = highest if max_grade is None else max_grade
    if top < highest:
        raise ParameterError(f"max_grade={top}: {judged.judgments.name} hold grade {highest}; give at least that")
    judged = judged.with_grades(np.append(np.arange(min(top, MAX_GRADE) + 1), top))
    grades = judged.judgments.grades
    gain = grade_gains(judged, dcg)
    partly = PartlyJudged(judged.levels, judged.judgments.counts, gain, len(grades) - 1, judged.cutoff)
    return _BOUNDS[kind][SIDES.index(side)](partly)

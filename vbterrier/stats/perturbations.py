"""Perturbations of candidate intents and of tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, excerpt, number
from vbterrier.kernels.candidates import another, bootstrap_counts, log_gammas, peaks, survivors
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.vb import bernoulli_variance, vb, vb_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, Words
    from vbterrier.stats.candidates import CandidateArrays, Draws, State


MOST_JITTER = 10.0
# The units whose tags share an error.
UNITS = ("name", "entity", "mention")


@dataclass(frozen=True)
class Dirichlet:
    """Draw ``π' ~ Dirichlet(c π)``: π is as uncertain as proportions among c observations (``E π' = π``).

    ``Var π'_i = π_i (1 - π_i) / (c + 1)``. Candidates of probability 0 remain at 0.

    Parameters
    ----------
    concentration
        ``c``, above 0: the larger, the closer π' is to π.

    Examples
    --------
    >>> Dirichlet(20)
    Dirichlet(concentration=20)
    """

    concentration: float = 10.0

    def __post_init__(self) -> None:
        check_number(self, "concentration", 1e-9, np.finfo(np.float64).max)

    def apply(self, state: State, draws: Draws) -> State:
        """Draw new probabilities."""
        shape = self.concentration * state.prob
        tiled_shape = np.broadcast_to(shape, (draws.n, shape.shape[1]))
        larger = draws.each("gamma", lambda rng, _, columns: rng.standard_gamma(tiled_shape[:, columns] + 1.0))
        exponential = draws.each("exponential", lambda rng, size, _: rng.standard_exponential(size))
        log_prob = log_gammas(shape, larger, exponential)
        return state.with_base(log_prob if state.delta is None else log_prob + state.delta)


@dataclass(frozen=True)
class TemperatureJitter:
    """Draw ``π' ∝ exp(s / (τ T) - Δ)`` with ``log τ ~ N(0, scale²)``, one τ for each query and replica.

    The linker's part of π becomes flatter or steeper. Violations of constraints keep their weight.

    Parameters
    ----------
    scale
        Standard deviation of log τ, 0 to 10; at 0.5, τ is between 0.4 and 2.7 in 95 % of replicas.

    Examples
    --------
    >>> TemperatureJitter(0.5)
    TemperatureJitter(scale=0.5)
    """

    scale: float = 0.25

    def __post_init__(self) -> None:
        check_number(self, "scale", 0.0, MOST_JITTER)

    def apply(self, state: State, draws: Draws) -> State:
        """Divide the scores by a random temperature."""
        if self.scale == 0:
            return state
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        coolness = np.exp(-self.scale * draws.normal("log temperature", np.ones(n_topics, dtype=np.int64)))
        # Relative to the best candidate, so that no factor makes all candidates of a query overflow.
        below = state.log_base - peaks(state.log_base, topic, n_topics)[:, topic]
        with np.errstate(over="ignore"):
            return state.with_base(below * coolness[:, topic])


@dataclass(frozen=True)
class ScoreNoise:
    """Draw ``π' ∝ exp(s/T + ε - Δ)`` with ``ε ~ N(0, scale²)`` for each candidate: noise on the linker's scores.

    Parameters
    ----------
    scale
        Standard deviation in units of s/T, at least 0: at 1, the log odds of two candidates have that of 1.4.

    Examples
    --------
    >>> ScoreNoise(0.3)
    ScoreNoise(scale=0.3)
    """

    scale: float = 0.5

    def __post_init__(self) -> None:
        check_number(self, "scale", 0.0, 1e6)

    def apply(self, state: State, draws: Draws) -> State:
        """Add noise to the scores."""
        if self.scale == 0:
            return state
        return state.with_base(state.log_base + self.scale * draws.normal("score"))


@dataclass(frozen=True)
class DropConstraints:
    """Drop some constraints of each query, and the violations by which they lowered π.

    The column ``violations``, written by RelaxConstraints, holds a list of one weighted violation for each constraint
    of the query. A candidate whose π underflowed to 0 because of a large violation keeps π = 0.

    Parameters
    ----------
    which
        A probability: each constraint is dropped independently with this probability. ``"one"``: exactly one, chosen
        uniformly. ``"turn"``: replica b drops constraint ``b mod n``.

    Raises
    ------
    ParameterError
        Another value of ``which``.
    InputError
        When applied: intents without the column.

    Examples
    --------
    >>> DropConstraints("one")
    DropConstraints(which='one')
    """

    which: float | str = "one"

    def __post_init__(self) -> None:
        if self.which not in {"one", "turn"}:
            check_number(self, "which", 0.0, 1.0, "'one', 'turn' or ")

    def apply(self, state: State, draws: Draws) -> State:
        """Set the violations of the dropped constraints to 0."""
        if self.which == 0:
            return state
        if state.violations is None:
            raise InputError(
                "intents: DropConstraints needs the column 'violations', which RelaxConstraints writes; found none"
            )
        kept = self._draw_kept_mask(state.n_constraints, state.violations.shape[-1], draws)
        violations = state.violations * kept[:, state.candidates.topic]
        return replace(state, violations=violations, delta=violations.sum(axis=-1))

    def _draw_kept_mask(self, n_constraints: NDArray[np.int64], most: int, draws: Draws) -> NDArray[np.bool_]:
        """Draw a mask of the constraints that are kept, shape (b, n_topics, most)."""
        numbers = np.arange(most)
        filled = numbers < n_constraints[:, None]
        if isinstance(self.which, str):
            some = np.maximum(n_constraints, 1)
            drawn = draws.replicas[:, None] if self.which == "turn" else draws.uniform("constraint", np.ones_like(some))
            dropped = drawn % some if self.which == "turn" else (drawn * some).astype(np.int64)
            return np.asarray(numbers != dropped[..., None])
        kept = np.ones((draws.n, *filled.shape), dtype=bool)
        kept[:, filled] = draws.uniform("constraints", n_constraints) >= self.which
        return kept


@dataclass(frozen=True)
class DropCandidates:
    """Remove each candidate with a probability, as if the linker had not found it, but never all of a query.

    If all candidates of a query would be removed, one of them, chosen uniformly, is kept. The remaining π are
    renormalised.

    Parameters
    ----------
    share
        The probability, 0 to 1.

    Examples
    --------
    >>> DropCandidates(0.1)
    DropCandidates(share=0.1)
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        check_number(self, "share", 0.0, 1.0)

    def apply(self, state: State, draws: Draws) -> State:
        """Remove some candidates."""
        if self.share == 0:
            return state
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        stays = survivors(draws.uniform("candidate"), state.alive, self.share, topic, n_topics)
        return state.with_base(np.where(stays, state.log_base, -np.inf))


@dataclass(frozen=True)
class IntentBootstrap:
    """Nonparametric bootstrap over the candidates of a query: ``π'_i ∝ c_i π_i``.

    Candidates with π > 0 are drawn with replacement, as many as there are; ``c_i`` is the number of draws of candidate
    i. It measures how much a score varies between samples of candidate intents from the same population;
    :func:`vbterrier.stats.replicas.left_out` gives the acceleration of its BCa interval.

    Examples
    --------
    >>> IntentBootstrap()
    IntentBootstrap()
    """

    def apply(self, state: State, draws: Draws) -> State:
        """Weight candidates by their number of draws."""
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        counts = bootstrap_counts(draws.uniform("intent"), state.alive, topic, n_topics)
        with np.errstate(divide="ignore"):
            return state.with_base(state.log_base + np.log(counts))


@dataclass(frozen=True, eq=False)
class Tagged:
    """Matches of a system's documents with candidates: one row for each replica, or one row for all replicas.

    ``intent, weight``: the index of the candidate and the weight of each match, shape (b or 1, m); weight 0 for a lost
    tag. ``topic``: the index of each match's query, shape (m,). ``keys``: hashes that tags of the same unit share, each
    of shape (m,): of query, document and entity (``"mention"``), of query and entity (``"entity"``), of the query
    (``"name"``).
    """

    candidates: CandidateArrays
    intent: Ints
    weight: Floats
    topic: Ints
    keys: Mapping[str, Words]


@dataclass(frozen=True)
class TagConfusion:
    """Replace each tag, with a probability, by another candidate of the query, or lose it.

    Only tags that name a candidate are replaced. A wrong tag of a query with a single candidate is lost. Tags keep
    their weights. Each tag has the same probabilities for any ``by``.

    Parameters
    ----------
    share, lost
        The probability, and the proportion of wrong tags that are lost, each 0 to 1.
    by
        The unit whose tags share an error. ``"entity"``: in a replica, all documents of an entity of a query are tagged
        alike: right, with the same other candidate, or not at all. ``"name"``: so are all tags of a query, most of
        which get the same candidate. ``"mention"``: every tag is an independent draw.

    Notes
    -----
    Real linkers repeat their errors: a name linked to one wrong entity is linked to it in most documents. Independent
    errors cancel out over the documents of an entity, since one correct tag covers it, so that ``"mention"`` gives
    scores that are too high, and intervals that are too narrow; of the three units, ``"entity"`` comes closest to real
    linkers (see :doc:`/explanation/taggers`). :func:`fit_tagger` estimates errors from labelled documents.

    Examples
    --------
    >>> TagConfusion(0.2, lost=0.5)
    TagConfusion(share=0.2, lost=0.5, by='entity')
    """

    target: ClassVar[str] = "tags"
    adds_errors: ClassVar[bool] = True
    share: float = 0.1
    lost: float = 0.0
    by: str = "entity"

    def __post_init__(self) -> None:
        check_number(self, "share", 0.0, 1.0)
        check_number(self, "lost", 0.0, 1.0)
        choice("by", self.by, UNITS)

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Replace or lose some tags."""
        if self.share == 0:
            return tagged
        keys = tagged.keys[self.by]
        wrong = draws.uniform_by_key("wrong", keys) < self.share
        lost = wrong & (draws.uniform_by_key("lost", keys) < self.lost)
        start, size = tagged.candidates.starts[tagged.topic], tagged.candidates.sizes[tagged.topic]
        other = another(draws.uniform_by_key("other", keys), tagged.intent, start, size)
        lost |= wrong & (size == 1)
        weight = np.where(lost, 0.0, tagged.weight)
        return replace(tagged, intent=np.where(wrong, other, tagged.intent), weight=weight)


@dataclass(frozen=True)
class TagDropout:
    """Keep each tag, with weight 1, with a probability equal to its weight; otherwise lose it.

    The tagger's confidence is interpreted as a calibrated probability. Tags of weight 1 are always kept.

    Examples
    --------
    >>> TagDropout()
    TagDropout()
    """

    target: ClassVar[str] = "tags"

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Keep or lose each tag."""
        kept = draws.uniform_by_key("holds", tagged.keys["mention"]) < tagged.weight
        return replace(tagged, weight=kept.astype(np.float64))


def check_number(perturbation: Any, name: str, low: float, high: float, also: str = "") -> None:
    """Raise an error unless a parameter is a number from ``low`` to ``high``."""
    value = getattr(perturbation, name)
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        interval = f"a number from {low:g}" + (f" to {high:g}" if high <= 1e6 else "")  # noqa: PLR2004 - readable limits
        raise ParameterError(f"{type(perturbation).__name__}({name}={excerpt(value)}): wanted {also}{interval}")


@with_usual_errors
def stability_bounds(success: Any, distance: Any, *, alpha: float = 1.0, tau: float | None = None) -> pd.DataFrame:
    """Bounds of the change of ES and VB if the probabilities of intents change (Ding 2025, appendix, C1 and C2).

    With ``ε = Σ_i |π_i - π'_i|`` for the same intents and ranking:

    - C1: ``|ES' - ES| <= ε``. The paper's proof ignores that both distributions sum to 1: ``ε / 2`` also holds, and is
      attained if the moved mass goes from covered intents to uncovered ones.
    - C2: ``|VB' - VB| <= ε (1 + α (1 - 2τ) / (2 sqrt(τ (1 - τ))))`` if ES and ES' are in [τ, 1 - τ]. It says nothing
      for ES or ES' of 0 or 1, the most frequent values of binary gains, and ES' is unknown.
    - Without a condition: the range of VB over all ES' in ``[ES - ε/2, ES + ε/2]`` and [0, 1], which no bound that
      uses ES and ε alone can narrow.

    Candidates that appear or vanish need the probability 0 in the other distribution, and the gain that the ranking has
    for them. The claims are silent about graded gains with the variance across intents.

    Parameters
    ----------
    success, distance, alpha
        ES, in [0, 1], and ε, in [0, 2], numbers or shape (n,); weight of the penalty of VB, at least 0, with the
        Bernoulli variance.
    tau
        τ of C2, in (0, 0.5]; by default the largest that ε guarantees, ``min(ES, 1 - ES) - ε/2``.

    Returns
    -------
    pandas.DataFrame
        success, distance, C1 and C2 (as in the paper; C2 is NaN if its condition fails or cannot be guaranteed),
        ES_change (``ε/2``, no more than ES can change), ES_low, ES_high, VB_change (the largest change of VB), VB_low,
        VB_high.

    Raises
    ------
    ParameterError
        Values outside their ranges, arrays of different lengths.

    Examples
    --------
    >>> result = stability_bounds([0.8, 1.0], 0.1)
    >>> result[["C1", "C2", "ES_change", "VB_change"]].round(4).values.tolist()
    [[0.1, 0.198, 0.05, 0.0929], [0.1, nan, 0.05, 0.2679]]
    """
    if np.ndim(success) and np.ndim(distance) and np.shape(success) != np.shape(distance):
        raise ParameterError(f"distance has shape {np.shape(distance)}, wanted that of success, {np.shape(success)}")
    es, moved = np.broadcast_arrays(*(np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (success, distance)))
    for name, values, limit in (("success", es, 1), ("distance", moved, 2)):
        if not ((values >= 0) & (values <= limit)).all():
            span = f"{values.min():g} to {values.max():g}"
            raise ParameterError(f"{name}: wanted numbers from 0 to {limit}, found {span}")
    alpha = number("alpha", alpha, low=0)
    low, high = np.maximum(es - moved / 2, 0.0), np.minimum(es + moved / 2, 1.0)
    edge = np.minimum(low, 1 - high)
    if tau is not None:
        edge = np.full(len(es), number("tau", tau, low=0, high=0.5, open_low=True))
    holds = (edge > 0) & (low >= edge) & (1 - high >= edge)
    slope = np.full(len(es), np.nan)
    np.divide(1 - 2 * edge, 2 * np.sqrt(np.abs(edge * (1 - edge))), out=slope, where=holds)
    least, most = vb_range(es, moved / 2, alpha)
    score = vb(es, bernoulli_variance(es), alpha)
    bounds = {"C1": moved, "C2": moved * (1 + alpha * slope), "ES_change": np.maximum(es - low, high - es)}
    of_vb = {"VB_change": np.maximum(score - least, most - score), "VB_low": least, "VB_high": most}
    return pd.DataFrame({"success": es, "distance": moved, **bounds, "ES_low": low, "ES_high": high, **of_vb})

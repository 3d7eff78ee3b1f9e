"""Perturbations of candidate intents and of tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.candidates import peaks
from vbterrier.kernels.perturb import another, log_gammas, resampled, survivors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, Words
    from vbterrier.stats.candidates import CandidateArrays, Draws, State


MOST_JITTER = 10.0


@runtime_checkable
class Perturbation(Protocol):
    """Anything that changes the candidates of replicas; a class of one's own needs this method alone."""

    def apply(self, state: State, draws: Draws) -> State:
        """The state after it: arrays of one row a replica, or of one row for all."""


@dataclass(frozen=True)
class Dirichlet:
    """``π' ~ Dirichlet(c π)``: π as uncertain as shares counted on c observations (``E π' = π``).

    ``Var π'_i = π_i (1 - π_i) / (c + 1)``. Candidates of probability 0 stay there. Variates are drawn in logarithms, so
    that small ``c π_i`` neither underflow nor give NaN.

    Parameters
    ----------
    concentration
        ``c``, above 0: the larger, the closer to π.

    Raises
    ------
    ParameterError
        A concentration that is no finite number of at least 1e-9.

    Examples
    --------
    >>> Dirichlet(20)
    Dirichlet(concentration=20)
    """

    concentration: float = 10.0

    def __post_init__(self) -> None:
        check_number(self, "concentration", 1e-9, np.finfo(np.float64).max)

    def apply(self, state: State, draws: Draws) -> State:
        """Draw π anew."""
        shape = self.concentration * state.prob
        columns_of = np.broadcast_to(shape, (draws.n, shape.shape[1]))
        larger = draws.each("gamma", lambda rng, _, columns: rng.standard_gamma(columns_of[:, columns] + 1.0))
        exponential = draws.each("exponential", lambda rng, size, _: rng.standard_exponential(size))
        log_prob = log_gammas(shape, larger, exponential)
        return state.with_base(log_prob if state.delta is None else log_prob + state.delta)


@dataclass(frozen=True)
class TemperatureJitter:
    """``π' ∝ exp(s / (τ T) - Δ)`` with ``log τ ~ N(0, scale²)``, one τ a query and replica.

    The linker's part of π becomes flatter or steeper; it never changes its order. Violations of constraints keep
    their weight.

    Parameters
    ----------
    scale
        Standard deviation of log τ, 0 to 10; 0.5 is a factor between 0.4 and 2.7 in 95 % of replicas.

    Examples
    --------
    >>> TemperatureJitter(0.5)
    TemperatureJitter(scale=0.5)
    """

    scale: float = 0.25

    def __post_init__(self) -> None:
        check_number(self, "scale", 0.0, MOST_JITTER)

    def apply(self, state: State, draws: Draws) -> State:
        """Divide by a temperature."""
        if self.scale == 0:
            return state
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        coolness = np.exp(-self.scale * draws.normal("log temperature", np.ones(n_topics, dtype=np.int64)))
        # From the best candidate down, so that no factor takes all of a query beyond the range of floats.
        below = state.log_base - peaks(state.log_base, topic, n_topics)[:, topic]
        with np.errstate(over="ignore"):
            return state.with_base(below * coolness[:, topic])


@dataclass(frozen=True)
class ScoreNoise:
    """``π' ∝ exp(s/T + ε - Δ)`` with ``ε ~ N(0, scale²)`` for each candidate: noise on the linker's scores.

    Parameters
    ----------
    scale
        Standard deviation in units of s/T, at least 0: 1 moves the odds of two candidates by a factor e^1.4.

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
    """Forget some constraints of each query, and with them the violations that lowered π.

    Reads the column ``violations`` that RelaxConstraints writes: a list of one weighted violation for each constraint
    of the query. Where a violation was so large that π is 0 in floats, the candidate cannot come back.

    Parameters
    ----------
    which
        A probability: each constraint is dropped with it, on its own. ``"one"``: exactly one, any with the same
        probability. ``"turn"``: one after the other, replica b drops constraint ``b mod n``.

    Raises
    ------
    ParameterError
        Anything else.
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
        kept = self._kept(state.n_constraints, state.violations.shape[-1], draws)
        return state.with_violations(state.violations * kept[:, state.candidates.topic])

    def _kept(self, n_constraints: NDArray[np.int64], most: int, draws: Draws) -> NDArray[np.bool_]:
        """Which constraints hold, shape (b, n_topics, most)."""
        numbers = np.arange(most)
        filled = numbers < n_constraints[:, None]
        if isinstance(self.which, str):
            some = np.maximum(n_constraints, 1)
            if self.which == "turn":
                dropped = draws.replicas[:, None] % some
            else:
                dropped = (draws.uniform("constraint", np.ones_like(some)) * some).astype(np.int64)
            return np.asarray(numbers != dropped[..., None])
        kept = np.ones((draws.n, *filled.shape), dtype=bool)
        kept[:, filled] = draws.uniform("constraints", n_constraints) >= self.which
        return kept


@dataclass(frozen=True)
class DropCandidates:
    """Lose each candidate with a probability, never all of a query: a linker that did not find them.

    Where all would go, one of them stays, each with the same probability. π of the others is renormalised.

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
        """Take some candidates away."""
        if self.share == 0:
            return state
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        stays = survivors(draws.uniform("candidate"), state.alive, self.share, topic, n_topics)
        return state.with_base(np.where(stays, state.log_base, -np.inf))


@dataclass(frozen=True)
class IntentBootstrap:
    """``π'_i ∝ c_i π_i``: the nonparametric bootstrap over the candidates of a query.

    As many candidates as the query has (those with π > 0) are drawn with replacement; ``c_i`` is how often i was. It
    asks how far a score would move with other candidate intents of the kind; :func:`left_out` gives the acceleration
    of the BCa interval over it.

    Examples
    --------
    >>> IntentBootstrap()
    IntentBootstrap()
    """

    def apply(self, state: State, draws: Draws) -> State:
        """Weigh candidates by how often they were drawn."""
        topic, n_topics = state.candidates.topic, len(state.candidates.topics)
        counts = resampled(draws.uniform("intent"), state.alive, topic, n_topics)
        with np.errstate(divide="ignore"):
            return state.with_base(state.log_base + np.log(counts))


def check_number(perturbation: Any, name: str, low: float, high: float, also: str = "") -> None:
    """Refuse a parameter that is no number from ``low`` to ``high``.

    Raises
    ------
    ParameterError
    """
    value = getattr(perturbation, name)
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        wanted = f"a number from {low:g}" + (f" to {high:g}" if high <= 1e6 else "")  # noqa: PLR2004 - readable limits
        raise ParameterError(f"{type(perturbation).__name__}({name}={value!r}): wanted {also}{wanted}")


@dataclass(frozen=True, eq=False)
class Tagged:
    """The matches of a system's documents with candidates, one row a replica, or one row for all.

    Parameters
    ----------
    candidates
        The candidates.
    intent, weight
        The place of the candidate and the weight of each match, shape (b or 1, m); weight 0 for a lost tag.
    topic
        The place of each match's query, shape (m,).
    keys
        A number for each query, document and entity, shape (m,).
    """

    candidates: CandidateArrays
    intent: Ints
    weight: Floats
    topic: Ints
    keys: Words


@dataclass(frozen=True)
class TagConfusion:
    """Each tag is wrong with a probability: it names another candidate of the query, or is lost.

    Only tags that name a candidate are confused: what the tagger said of other entities stays outside. A wrong tag of a
    query with a single candidate is lost. Weights stay with the tag.

    Parameters
    ----------
    share
        The probability, 0 to 1.
    lost
        The share of wrong tags that are lost, 0 to 1.

    Examples
    --------
    >>> TagConfusion(0.2, lost=0.5)
    TagConfusion(share=0.2, lost=0.5)
    """

    target: ClassVar[str] = "tags"
    share: float = 0.1
    lost: float = 0.0

    def __post_init__(self) -> None:
        check_number(self, "share", 0.0, 1.0)
        check_number(self, "lost", 0.0, 1.0)

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Confuse tags."""
        if self.share == 0:
            return tagged
        wrong = draws.keyed("wrong", tagged.keys) < self.share
        lost = wrong & (draws.keyed("lost", tagged.keys) < self.lost)
        start, size = tagged.candidates.starts[tagged.topic], tagged.candidates.sizes[tagged.topic]
        other = another(draws.keyed("other", tagged.keys), tagged.intent, start, size)
        lost |= wrong & (size == 1)
        return replace(
            tagged,
            intent=np.where(wrong, other, tagged.intent),
            weight=np.where(lost, 0.0, tagged.weight),
        )


@dataclass(frozen=True)
class TagDropout:
    """Each tag holds, with weight 1, with the probability that its weight states; else it is lost.

    It reads the tagger's own confidence as what it claims to be. Tags of weight 1 always hold.

    Examples
    --------
    >>> TagDropout()
    TagDropout()
    """

    target: ClassVar[str] = "tags"

    def apply(self, tagged: Tagged, draws: Draws) -> Tagged:
        """Let tags hold or not."""
        holds = draws.keyed("holds", tagged.keys) < tagged.weight
        return replace(tagged, weight=holds.astype(np.float64))

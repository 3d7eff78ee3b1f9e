"""Scores over candidate intents for every replica at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.frames.parameters import choice
from vbterrier.kernels import vb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MEASURES = ("ES", "VB", "VarPenalty", "TopIntent")
GAINS = ("binary", "dcg")
VARIANCES = ("bernoulli", "intent")
# Probabilities this close to the largest count as equal to it.
TIE = 1e-12


@dataclass(frozen=True)
class Statistic:
    """A score of a ranking over candidate intents; the parameters are those of the measures of the same names.

    Parameters
    ----------
    measure
        ``"ES"``, ``"VB"``, ``"VarPenalty"`` or ``"TopIntent"``.
    cutoff
        k; ``None`` for whole rankings.
    alpha
        Weight of the penalty of VB, at least 0.
    gain
        ``"binary"`` or ``"dcg"``.
    variance
        ``"bernoulli"`` or ``"intent"``.
    clip, monotone
        Of VB.

    Raises
    ------
    ParameterError
        A value that is none of these.

    Examples
    --------
    >>> str(Statistic("VB", 10, alpha=0.5))
    'VB(alpha=0.5)@10'
    """

    measure: str = "VB"
    cutoff: int | None = 10
    alpha: float = 1.0
    gain: str = "binary"
    variance: str = "bernoulli"
    clip: bool = False
    monotone: bool = False

    def __post_init__(self) -> None:
        for name, legal in (("measure", MEASURES), ("gain", GAINS), ("variance", VARIANCES)):
            choice(name, getattr(self, name), legal)
        if not 0 <= self.alpha < np.inf:
            raise ParameterError(f"alpha={self.alpha!r}: wanted a number of at least 0")
        if self.cutoff is not None and (not isinstance(self.cutoff, (int, np.integer)) or self.cutoff < 1):
            raise ParameterError(f"cutoff {self.cutoff!r}: wanted a whole number of at least 1, as in @10")
        if self.monotone and self.variance == "intent":
            raise ParameterError("monotone=True is defined for variance='bernoulli' only; drop one of the two")

    def __str__(self) -> str:
        own = ",".join(
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name not in {"measure", "cutoff"} and getattr(self, field.name) != field.default
        )
        text = f"{self.measure}({own})" if own else self.measure
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    def of(self, served: Served) -> Floats:
        """The score of each query and replica, shape (b, n_topics)."""
        if self.measure == "TopIntent":
            return served.top
        if self.measure == "ES":
            return served.success
        variance = served.across if self.variance == "intent" else vb.bernoulli_variance(served.success)
        if self.measure == "VarPenalty":
            return np.sqrt(variance)
        return vb.vb(served.success, variance, self.alpha, monotone=self.monotone, clip=self.clip)


class Served:
    """How well candidates of some weights are served by gains.

    Sums of weights are divided by sums of the same weights in the same order, so that ES is exactly 1 where every
    candidate is covered.

    Parameters
    ----------
    weights
        π up to a factor of each query, 1 for the most probable, shape (b or 1, n).
    total
        Their sum over each query, shape (b or 1, n_topics).
    gain
        Gain of each candidate, shape (b or 1, n).
    topic
        The place of each candidate's query, rising, shape (n,).
    """

    def __init__(self, weights: Floats, total: Floats, gain: Floats, topic: Ints) -> None:
        self._weights, self._total, self._gain, self._topic = weights, total, gain, topic

    @cached_property
    def success(self) -> Floats:
        """``ES = Σ π_i g_i``."""
        return self._sum(self._weights * self._gain) / self._total

    @cached_property
    def across(self) -> Floats:
        """The variance of gains across intents, ``Σ π_i g_i² - ES²``."""
        second = self._sum(self._weights * self._gain**2) / self._total
        return np.maximum(second - self.success**2, 0.0)

    @cached_property
    def top(self) -> Floats:
        """Mean gain of the most probable candidates."""
        best = (self._weights >= 1.0 - TIE).astype(np.float64)
        with np.errstate(invalid="ignore"):
            # A query that the jackknife left without candidates has no most probable one.
            return self._sum(best * self._gain) / self._sum(best)

    def _sum(self, values: Floats) -> Floats:
        return vb.per_topic(values, self._topic, self._total.shape[-1])

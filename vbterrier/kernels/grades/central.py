"""Central intervals of distributions with few atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.kernels.grades.laws import SAME, SLACK

if TYPE_CHECKING:
    from vbterrier.kernels.grades.laws import Law


def central_interval(law: Law, level: float) -> tuple[float, float]:
    """The smallest and the largest value whose mid-probability is from ``(1 - level)/2`` to ``(1 + level)/2``.

    The mid-probability of x is ``P(X < x) + P(X = x)/2`` (Lancaster 1961). Between the quantiles themselves lies at
    least ``level`` of the probability, and far more where a few atoms are all there is; between these ends it is
    ``level`` on average. Where probability is spread out the two agree.

    Parameters
    ----------
    law
        The distribution.
    level
        From 0 to 1.

    Returns
    -------
    (low, high)
        The median twice where no value qualifies.
    """
    tail = (1 - level) / 2
    low, high = law.quantiles(np.array([tail, 1 - tail])).tolist()
    below, reached = _around(law, low)
    if (below + reached) / 2 < tail - SLACK:
        low = _quantile(law, reached + 2 * SLACK)
    below, reached = _around(law, high)
    if (below + reached) / 2 > 1 - tail + SLACK and below > 0:
        high = _quantile(law, below)
    return (low, high) if low <= high else (_quantile(law, 0.5),) * 2


def _around(law: Law, value: float) -> tuple[float, float]:
    """Probability of less than an atom, and of at most it."""
    return law.cdf(value - 3 * SAME), law.cdf(value)


def _quantile(law: Law, level: float) -> float:
    return float(law.quantiles(np.array([min(level, 1.0)]))[0])

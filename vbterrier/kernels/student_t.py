"""Student's t distribution: its distribution function and quantiles, and the noncentralities of an observed t."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.kernels.normal import normal_cdf, normal_quantile

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


# Euler's numbers E_2, E_4, ... of the asymptotic series of a ratio of gamma functions, and the argument that it needs.
_EULER, _LEAST_ARGUMENT = (-1, 5, -61, 1385, -50521, 2702765), 16
# The largest square of t up to which the distribution is summed from the median: from 40 degrees of freedom on.
_CENTRAL = 6.0
# Terms of series and fractions at most, and the relative size of those that change nothing.
_MOST_TERMS, _SERIES_TOLERANCE = 10_000, 1e-17
_MAX_STEPS, _CONVERGED = 50, 4e-16
# The relative size of a step of Newton's iteration after which the next would change nothing.
_LAST_STEP = 1e-9
# Probabilities whose quantiles are finite.
_LEAST_BELOW, _LARGEST_BELOW = 1e-300, 1 - 2.0**-53
# Values of the logarithm of a density below its maximum, at which it is cut.
_CUT = 40.0
# Squares of distances from the maximum of the density of log s at which it is nearly normal.
_MAX_NORMAL_REACH = 0.3
# Degrees of freedom for each unit of the square of a normal quantile from which an expansion is a good start.
_MIN_DF_RATIO = 5
# Values of t beyond which t² may overflow.
_MAX_SQUARABLE_T = 1e150
# Logarithms of the largest t², whose density is above 0.
_LARGEST_EXPONENT = 600.0
# Values of |t| beyond which noncentralities are proportional to t, to a relative error of about (1 + df/10)/t².
_MIN_PROPORTIONAL_T = 3e3
# Numbers that are computed at a time.
_BLOCK_CELLS = 1 << 18


def t_cdf(df: Any, t: Any) -> Floats:
    """Student's distribution function, broadcast; ``df`` above 0, infinite for the normal distribution.

    With ``y = t²/df``, ``P(T < -|t|) = I(1/(1 + y); df/2, 1/2)/2``, the regularised incomplete beta function: the
    continued fraction for t² above the least of 6 and 1 + df/8, and otherwise 1/2 less the series
    ``t f(t) Σ_k Π_j (df + 2j - 1)/(2j + 1) x`` with the density f and ``x = y/(1 + y)``, whose terms are positive. The
    relative error is about 1e-14, and 1e-13 far from 0.

    >>> t_cdf(49, [-2.009575237129236, 0.0]).round(6).tolist()
    [0.025, 0.5]

    Source: NIST Digital Library of Mathematical Functions, 8.17.8 and 8.17.22.
    """
    df, t = np.broadcast_arrays(np.asarray(df, dtype=np.float64), np.asarray(t, dtype=np.float64))
    tail = _tail(df.ravel(), np.abs(t.ravel())).reshape(t.shape)
    return np.where(t > 0, 1 - tail, tail)


def t_quantile(df: Any, prob: Any) -> Floats:
    """Quantiles of Student's t at probabilities, broadcast; infinite at 0 and 1, NaN outside.

    Newton's iteration on the normal quantile of the tail, from approximations by Wallace and Hill.

    >>> t_quantile(49, [0.5, 0.975]).round(6).tolist()
    [0.0, 2.009575]

    Source: Wallace, Annals of Mathematical Statistics 30, 1959, and Hill, Algorithm 396, Communications of the ACM 13,
    1970, for the first value.
    """
    df, prob = np.broadcast_arrays(np.asarray(df, dtype=np.float64), np.asarray(prob, dtype=np.float64))
    tail = np.minimum(prob, 1 - prob)
    t = np.where((tail == 0) & (df > 0), np.inf, np.nan)
    open_ = (tail > 0) & (df > 0)
    normal = open_ & np.isinf(df)
    t[normal] = -normal_quantile(tail[normal])
    open_ &= ~normal
    if open_.any():
        t[open_] = _quantiles(df[open_], tail[open_])
    return np.where(prob == tail, 0.0 - t, t)


def noncentrality(df: Any, prob: Any, t: Any) -> Floats:
    """The noncentralities of Student's t at which an observed t has probabilities ``P(T <= t)``, broadcast.

    ``P(T <= t; δ) = E Φ(t s - δ)`` with s² distributed as χ²/df: the trapezoidal rule in log s, which converges
    exponentially, and Newton's iteration on the normal quantile of the probability. Beyond ``|t| = 3000``, values in
    proportion to t, which is right to a relative error of about ``(1 + df/10)/t²``. NaN for probabilities
    outside of (0, 1).

    >>> noncentrality(49, [0.975, 0.025], 2.5).round(4).tolist()
    [0.4668, 4.5092]

    Source: Johnson and Welch, Biometrika 31, 1940, for the definition and the first value.
    """
    df, prob, t = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (df, prob, t)))
    # P(T <= t; δ) = 1 - P(T <= -t; -δ): all probabilities are at most 1/2, whose relative error is small.
    tail = np.minimum(prob, 1 - prob)
    upper = prob != tail
    signed = np.where(upper, -t, t)
    is_valid = (tail > 0) & (df > 0) & np.isfinite(df) & np.isfinite(signed)
    factor = np.maximum(np.abs(signed[is_valid]) / _MIN_PROPORTIONAL_T, 1.0)
    deltas = np.full(t.shape, np.nan)
    deltas[is_valid] = factor * _noncentralities(df[is_valid], tail[is_valid], signed[is_valid] / factor)
    return np.where(upper, -deltas, deltas)


def _tail(df: Floats, t: Floats) -> Floats:
    """The probability of a T below -t, for t of 0 or more."""
    tail = normal_cdf(-t)
    tail[t > _MAX_SQUARABLE_T] = 0.0
    tail[~(df > 0)] = np.nan
    finite = np.flatnonzero(np.isfinite(df) & (df > 0) & (t <= _MAX_SQUARABLE_T))
    if not len(finite):
        return tail
    df, t = df[finite], t[finite]
    y = t * t / df
    x, density = y / (1 + y), _density(df, y)
    result = np.empty(len(df))
    central = t * t <= np.minimum(1 + df / 8, _CENTRAL)
    if central.any():
        result[central] = 0.5 - t[central] * density[central] * _series(df[central], x[central])
    if not central.all():
        outer = ~central
        # x^a (1 - x)^b / B(a, b), with a = df/2, b = 1/2 and x = 1/(1 + y), is t f(t).
        result[outer] = t[outer] * density[outer] / (2 * _fraction(df[outer] / 2, y[outer]))
    tail[finite] = result
    return tail


def _density(df: Floats, y: Floats) -> Floats:
    """The density of t at ``y = t²/df``."""
    return _gamma_ratio(df / 2) * np.exp(-(df + 1) / 2 * np.log1p(y)) / np.sqrt(pi * df)


def _gamma_ratio(a: Floats) -> Floats:
    """``Γ(a + 1/2)/Γ(a)``: its recurrence up to large arguments, and there, with ``z = a - 1/4``, the series.

    ``log Γ(z + 3/4) - log Γ(z + 1/4) ~ log(z)/2 - Σ_k E_2k / (4^(2k + 1) k z^2k)``.
    """
    factor = np.ones_like(a)
    for number in range(_LEAST_ARGUMENT):
        factor *= (a + number) / (a + (number + 0.5))
    squares = (a + (_LEAST_ARGUMENT - 0.25)) ** -2
    series = np.zeros_like(a)
    for k in range(len(_EULER), 0, -1):
        series = (series - _EULER[k - 1] / (4 ** (2 * k + 1) * k)) * squares
    return factor * squares**-0.25 * np.exp(series)


def _series(df: Floats, x: Floats) -> Floats:
    """``Σ_k Π_{j <= k} (df + 2j - 1)/(2j + 1) x``, from 1 for k = 0."""
    total, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, _MOST_TERMS):
        term = term * ((df + (2 * k - 1)) / (2 * k + 1) * x)
        total += term
        if (term <= _SERIES_TOLERANCE * total).all():
            break
    return total


def _fraction(a: Floats, y: Floats) -> Floats:
    """``x^a (1 - x)^(1/2) / B(a, 1/2) / I(x; a, 1/2)`` for ``x = 1/(1 + y)``, in even parts, which cancel nowhere."""
    b, x = 0.5, 1 / (1 + y)
    rest = a * y * x - b * x + 1
    value = a * rest / (a + 1)
    c, d = value, np.zeros_like(value)
    for m in range(1, _MOST_TERMS):
        odd = a + (2 * m - 1)
        numerator = (a + (m - 1)) * (a + (b + m - 1)) * (m * (b - m)) * x * x / (odd * odd)
        denominator = m + m * (b - m) * x / odd + (a + m) * (rest + m * (2 - x)) / (a + (2 * m + 1))
        d = 1 / (denominator + numerator * d)
        c = denominator + numerator / c
        change = c * d
        value = value * change
        if (np.abs(change - 1) <= _CONVERGED).all():
            break
    return value


def _quantiles(df: Floats, tail: Floats) -> Floats:
    """Positive t that are exceeded with probabilities ``tail`` in (0, 1/2), for finite df."""
    z = -normal_quantile(tail)
    # Newton's iteration on v = √(df log(1 + t²/df)), of which the normal quantile of the tail is nearly linear.
    v = z * (8 * df + 3) / (8 * df + 1)
    # With many degrees of freedom, the first terms of Hill's expansion are right to about 1e-6.
    square = z * z
    many = df > _MIN_DF_RATIO * np.maximum(square, 1)
    t = z * (1 + ((square + 1) + ((5 * square + 16) * square + 3) / (24 * df)) / (4 * df))
    v[many] = np.sqrt(df * np.log1p(t * t / df))[many]
    for _ in range(_MAX_STEPS):
        y = np.expm1(np.minimum(v * v / df, _LARGEST_EXPONENT))
        t = np.sqrt(df * y)
        reached = -normal_quantile(_tail(df, t))
        # dz/dv is f(t)/φ(z) times dt/dv = v (1 + y)/t, which is 1 at 0.
        slope = np.divide(v * (1 + y), t, out=np.ones_like(t), where=t > 0)
        slope *= _density(df, y) * np.sqrt(2 * pi) * np.exp(reached * reached / 2)
        step = (z - reached) / slope
        v = np.maximum(v + step, v / 4)
        if (np.abs(step) <= _LAST_STEP * v).all():
            break
    return np.asarray(np.sqrt(df * np.expm1(np.minimum(v * v / df, _LARGEST_EXPONENT))))


def _noncentralities(df: Floats, tail: Floats, t: Floats) -> Floats:
    """Noncentralities for probabilities of at most 1/2, in blocks of pairs that need about as many nodes."""
    # The logarithm of the density of u = log s is df (u - (exp(2u) - 1)/2) less than at 0: at least df u² above 0, and
    # df |u + 1/2|, or df (u/1.5)² near 0, below it.
    reach = (_CUT - np.log(tail)) / df
    high = np.sqrt(reach)
    low = -np.where(reach < _MAX_NORMAL_REACH, 1.5 * high, reach + 0.5)
    # Steps that are small beside the width of the density, 1/√(2 df), and beside that of Φ(t s - δ) in u.
    step = np.minimum(0.12, 0.6 / np.sqrt(2 * df + (t * np.exp(np.minimum(high, 1.5))) ** 2))
    n_nodes = 2.0 ** np.ceil(np.log2((high - low) / step + 1))
    result = np.empty_like(t)
    for size in np.unique(n_nodes):
        rows = np.flatnonzero(n_nodes == size)
        n_rows = max(int(_BLOCK_CELLS // size), 1)
        for start in range(0, len(rows), n_rows):
            each = rows[start : start + n_rows]
            u = np.linspace(low[each], high[each], int(size), axis=1)
            result[each] = _noncentrality_roots(df[each, None], tail[each], t[each, None], u)
    return result


def _noncentrality_roots(df: Floats, tail: Floats, t: Floats, u: Floats) -> Floats:
    """Noncentralities by integrals over nodes u of the logarithm of s, shape (n, n_nodes)."""
    weights = np.exp(df * (u - np.expm1(2 * u) / 2))
    weights /= weights.sum(axis=1, keepdims=True)
    scaled = t * np.exp(u)
    z = normal_quantile(tail)
    scale = np.sqrt(1 + t[:, 0] ** 2 / (2 * df[:, 0]))
    delta = t[:, 0] - z * scale
    low, high = np.full_like(delta, -np.inf), np.full_like(delta, np.inf)
    for _ in range(_MAX_STEPS):
        deviation = scaled - delta[:, None]
        below = (weights * normal_cdf(deviation)).sum(axis=1)
        reached = normal_quantile(np.clip(below, _LEAST_BELOW, _LARGEST_BELOW))
        # dz/dδ is -E φ(t s - δ) / φ(z), and about -1/scale.
        slope = (weights * np.exp((reached[:, None] ** 2 - deviation**2) / 2)).sum(axis=1)
        step = np.clip((reached - z) / np.maximum(slope, 0.1 / scale), -3 * scale, 3 * scale)
        low, high = np.where(reached > z, delta, low), np.where(reached < z, delta, high)
        done = np.abs(step) <= _LAST_STEP * scale
        # Newton's iteration may leave the interval that is known to have the solution, which is then halved.
        leaves = ~done & ((delta + step <= low) | (delta + step >= high))
        delta += step
        delta[leaves] = (low[leaves] + high[leaves]) / 2
        if done.all():
            break
    return delta

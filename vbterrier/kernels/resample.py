"""Random streams and stratified numbers, resampling, statistics of resamples, and limits of means of bounded scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.normal import normal_quantile
from vbterrier.kernels.tolerances import REPLICA_ROUNDING, ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints, Words

    Counts = NDArray[np.uint16]
    Singles = NDArray[np.float32]
    Bounds = tuple[float, float]


# Numbers of a block, 16 MB, and of the draws that stay in the processor's cache.
_COUNT_BLOCK_CELLS = 1 << 21
_DRAWN = 1 << 15
# Columns that are averaged over the drawn rows; more of them are multiplied by the counts of the rows.
_GATHERED = 2
# The number of words to which NumPy's SeedSequence pads a seed.
_SEED_WORDS = 4
# A finite substitute for infinity, so that interpolated quantiles are not NaN.
INFINITY_SUBSTITUTE = 1e100
# The units of the digits of a value; digits are whole numbers of at most 2^26, and the rest is rounded.
_DIGIT_UNITS = np.ldexp(1.0, [20, -6, -32, -58])
_TOO_LARGE = 2.0**46
# Weights of a block: sums of its weighted digits stay below 2^53, the limit of exact integers in float64.
_WEIGHTS_BLOCK = 1 << 21
# The largest count of a topic in a resample.
_MAX_TOPIC_COUNT = np.iinfo(np.uint16).max
# The smallest sum of squares without one query, relative to the sum with all queries.
_MIN_REMAINING_SHARE = 1e-9


# Rounds of multiplication and shift: with two, some pairs of keys have correlated numbers; three leave none.
_ROUNDS = 3
# Means beyond which Poisson numbers are quantiles of the Cornish-Fisher expansion.
MOST_COUNTED = 16.0


def stream(seed: int, *what: str) -> np.random.Generator:
    """An independent generator of random numbers for each seed and name.

    - ``seed``: the user's seed, at least 0
    - ``what``: the words of the name, such as a query's id or the number of a replica
    """
    # Lengths are part of the key, so that ("ab", "c") and ("a", "bc") differ.
    key = [number for word in what for number in (len(word), *word.encode())]
    seed = int(seed)
    if seed < 0:
        raise ValueError(f"seed={seed}: wanted a whole number of at least 0")
    words = np.frombuffer(seed.to_bytes(4 * max(_SEED_WORDS, -(-seed.bit_length() // 32)), "little"), dtype="<u4")
    # The same entropy as SeedSequence(seed, spawn_key=key), in half the time.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(np.append(words, np.array(key, np.uint32)))))


def resamples(n: int, n_resamples: int, draws: np.random.Generator) -> Iterator[Floats]:
    """Yield the counts of n units in bootstrap resamples, in blocks of shape (rows, n) whose rows have sum n.

    Sums over resamples are matrix products with these blocks. The size of blocks does not change the counts.
    """
    for rows in _blocks(n, n_resamples, _COUNT_BLOCK_CELLS):
        counts = np.empty((rows, n))
        # Small batches stay in the processor's cache.
        for few in np.array_split(counts, max(1, min(rows, rows * n // _DRAWN))):
            drawn = draws.integers(n, size=few.shape, dtype=np.int32) + n * np.arange(len(few))[:, None]
            few[:] = np.bincount(drawn.ravel(), minlength=few.size).reshape(few.shape)
        yield counts


def resampled_means(values: Floats, n_resamples: int, draws: np.random.Generator) -> Floats:
    """Column means over resampled rows, shape (n_resamples, m), for values of shape (n, m)."""
    n, m = values.shape
    if not 1 <= m <= _GATHERED:
        return np.concatenate([block @ values / n for block in resamples(n, n_resamples, draws)])
    columns, means = np.ascontiguousarray(values.T), []
    for rows in _blocks(n, n_resamples, 2 * _DRAWN):
        # The numbers of int32, in the type of positions, which need no conversion.
        drawn = draws.integers(n, size=(rows, n), dtype=np.intp)
        means.append(np.stack([column.take(drawn).mean(axis=1) for column in columns], axis=1))
    return np.concatenate(means)


def random_signs(n: int, n_resamples: int, draws: np.random.Generator) -> Iterator[Floats]:
    """Yield random signs of n units, 1 or -1 with equal probability, in blocks of shape (rows, n)."""
    for rows in _blocks(n, n_resamples, _COUNT_BLOCK_CELLS):
        yield 1.0 - 2.0 * draws.integers(2, size=(rows, n), dtype=np.int32).astype(np.float64)


def _blocks(n: int, n_resamples: int, size: int) -> Iterator[int]:
    step = max(1, size // max(n, 1))
    for start in range(0, n_resamples, step):
        yield min(step, n_resamples - start)


def quantiles_at(replicas: Floats, levels: Floats) -> Floats:
    """Quantiles along the first axis at individual pairs of levels for each score, shape (2, ...)."""
    ordered = np.sort(replicas, axis=0)
    place = levels * (len(replicas) - 1)
    below = place.astype(np.int64)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, len(replicas) - 1), axis=0)
    quantile: Floats = low + (high - low) * (place - below)
    return quantile


def bca_acceleration(left_out: Floats, *, of_mean: bool = False) -> Floats:
    """The acceleration of BCa intervals by the jackknife over the resampled units.

    ``a = Σ_q Σ_i l_qi³/n_q³ / (6 (Σ_q Σ_i l_qi²/n_q²)^(3/2))`` with ``l_qi = (n_q - 1)(mean_i θ_(-i) - θ_(-i))``,
    without the sum over q for single queries (Efron 1987; Davison and Hinkley 1997, section 5.3.2, for several
    samples).

    - ``left_out``: scores without each unit in turn, shape (..., n, n_topics), NaN for units that a query lacks
    - ``of_mean``: True for the interval of the mean over queries

    Returns shape (..., n_topics), or (...) for the mean; 0 if no unit has an influence.
    """
    is_present = ~np.isnan(left_out)
    n = np.maximum(is_present.sum(axis=-2, keepdims=True), 1)
    filled = np.where(is_present, left_out, 0.0)
    influence = np.where(is_present, filled.sum(axis=-2, keepdims=True) / n - filled, 0.0) * (n - 1) / n
    axes = (-2, -1) if of_mean else (-2,)
    square, cube = ((influence**power).sum(axis=axes) for power in (2, 3))
    matters = square > REPLICA_ROUNDING**2
    acceleration: Floats = np.divide(cube, 6 * square**1.5, out=np.zeros_like(cube), where=matters)
    return acceleration


def studentised_means(means: Floats, squares: Floats) -> Floats:
    """``m / sqrt(q - m²)`` from the means m and the mean squares q of resampled values, of any shape.

    It is Student's t without its factor ``sqrt(n - 1)``. For precision, standardise values to a mean of about 0 and a
    standard deviation of about 1 before resampling. For resamples without variance it is 0 for a mean of 0, and ±1e100
    as a substitute for infinity otherwise.
    """
    variance = squares - means**2
    varies = variance > ROUNDING * squares
    flat = np.where(np.abs(means) > ROUNDING, np.copysign(INFINITY_SUBSTITUTE, means), 0.0)
    return np.divide(means, np.sqrt(variance, where=varies, out=np.ones_like(variance)), where=varies, out=flat)


def poisson_weights(units: Sequence[str], n_resamples: int, seed: int, name: str = "") -> Floats:
    """Poisson bootstrap weights of mean 1, which depend only on the seed, the name and the unit.

    Returns shape (n, 1 + n_resamples); the first column, the sample itself, is 1.
    """
    weights = np.ones((len(units), 1 + n_resamples))
    for row, unit in enumerate(units):
        weights[row, 1:] = stream(seed, name, "poisson", unit).poisson(1.0, n_resamples)
    return weights


def digits(values: Floats) -> Floats:
    """Split values into whole multiples of 2^20, 2^-6, 2^-32 and 2^-58, shape (4, ...), with error at most 2^-59."""
    parts, rest = [], np.asarray(values, dtype=np.float64)
    for unit in _DIGIT_UNITS[:-1]:
        parts.append(np.trunc(rest / unit))
        # Exact, because the leading digits are subtracted.
        rest = rest - parts[-1] * unit
    return np.stack([*parts, np.rint(rest / _DIGIT_UNITS[-1])])


def weighted_sums(
    units: Sequence[str], values: Floats, n_resamples: int, seed: int, name: str = ""
) -> tuple[Ints, Ints]:
    """Sums of weights, shape (1 + n_resamples,), and of weighted digits, shape (4, 1 + n_resamples, m), from (n, m).

    Sums of integers do not depend on the order of summation, so merged sums of any partition equal those of all units.

    Raises InputError: A value with magnitude 2^46 or more.
    """
    if (np.abs(values) >= _TOO_LARGE).any():
        raise InputError(f"a value of {np.abs(values).max():g}: the Poisson bootstrap needs values below 2^46")
    weights = np.zeros(1 + n_resamples, dtype=np.int64)
    sums = np.zeros((len(_DIGIT_UNITS), 1 + n_resamples, values.shape[1]), dtype=np.int64)
    step = max(1, _WEIGHTS_BLOCK // (1 + n_resamples))
    for start in range(0, len(units), step):
        block = poisson_weights(units[start : start + step], n_resamples, seed, name)
        weights += block.sum(axis=0).astype(np.int64)
        for place, digit in enumerate(digits(values[start : start + step])):
            if digit.any():
                sums[place] += (block.T @ digit).astype(np.int64)
    return weights, sums


def weighted_means(weights: Ints, sums: Ints) -> Floats:
    """Weighted means, shape (1 + n_resamples, m); NaN for empty resamples."""
    total = np.zeros(sums.shape[1:])
    # From the smallest unit up, for precision.
    for unit, of_unit in zip(_DIGIT_UNITS[::-1], sums[::-1], strict=True):
        total += of_unit * unit
    with np.errstate(invalid="ignore"):
        return np.asarray(total / weights.reshape(len(weights), -1))


def resampled_counts(n: int, n_resamples: int, draws: np.random.Generator) -> Counts:
    """The counts of n topics in bootstrap resamples, as uint16, shape (n, n_resamples)."""
    blocks = [np.minimum(block, _MAX_TOPIC_COUNT).astype(np.uint16) for block in resamples(n, n_resamples, draws)]
    return np.ascontiguousarray(np.concatenate(blocks).T)


def nested_noise(draws: Iterable[Floats], often: Counts) -> tuple[Floats, Floats, Floats]:
    """The noise that draws within topics add to the mean of each resample of topics, and the moments of draws.

    Each copy of a topic has a separate draw, so the noise of a resample has the variance ``Σ_t c_t σ_t²/n²``, and
    ``Σ_t σ_t²/n²`` on average over resamples.

    - ``draws``: the draws of m quantities for each of n topics, shape (m, B); one topic is held in memory at a time
    - ``often``: the counts of topics in B resamples, shape (n, B)

    Returns (noise, means, variances): Deviations of the resampled means, shape (m, B); mean and unbiased variance of
    the draws, each of shape (m, n).
    """
    noise, moments = np.zeros((1, 1)), []
    for times, scores in zip(often, draws, strict=True):
        # The deviations of constant draws are exactly 0.
        same = np.ptp(scores, axis=1, keepdims=True) == 0
        mean = np.where(same, scores[:, :1], scores.mean(axis=1, keepdims=True))
        away = scores - mean
        moments.append((mean[:, 0], (away**2).sum(axis=1) / (scores.shape[1] - 1)))
        if noise.shape != scores.shape:
            noise = np.zeros(scores.shape)
        for copy in range(int(times.max()) if away.any() else 0):
            noise += np.where(times > copy, np.roll(away, copy, axis=1), 0.0)
    means, variances = np.stack(moments, axis=-1)
    return noise / len(often), means, variances


def resampled_variances(values: Floats, often: Counts) -> tuple[Floats, Floats]:
    """Row means and variances over resampled topics, each of shape (m, n_resamples), for values of shape (m, n).

    Variances have the divisor n - 1 and an additional factor n/(n - 1), which corrects the bias of resamples.
    """
    n = len(often)
    # Values are centred for precision.
    center = values.mean(axis=1, keepdims=True)
    weights = often.astype(np.float64) / n
    means = (values - center) @ weights
    squares = (values - center) ** 2 @ weights
    return means + center, np.maximum(squares - means**2, 0.0) * (n / (n - 1)) ** 2


def left_out_slopes(labels: Floats, scores: Floats) -> Floats:
    """Leave-one-out slopes of the least-squares regression of labels on scores, along the last axis.

    ``Σ_j (s_j - s̄)(y_j - ȳ) / Σ_j (s_j - s̄)²`` over ``j != i``, from the sums over all queries: without query i they
    decrease by ``n / (n - 1)`` times its product of deviations.

    - ``labels``, ``scores``: values of the same queries, shape (..., n)

    Returns shape (..., n); 0 if the scores of the remaining queries are equal.
    """
    n = labels.shape[-1]
    y, s = (values - values.mean(axis=-1, keepdims=True) for values in (labels, scores))
    factor = n / max(n - 1, 1)
    whole = (s**2).sum(axis=-1, keepdims=True)
    squares = whole - factor * s**2
    shared = (s * y).sum(axis=-1, keepdims=True) - factor * s * y
    rounding = ROUNDING**2 * (scores**2).sum(axis=-1, keepdims=True)
    slopes: Floats = np.divide(
        shared, squares, out=np.zeros_like(shared), where=squares > np.maximum(_MIN_REMAINING_SHARE * whole, rounding)
    )
    return slopes


# Resampled numbers held in memory at a time: 32 MB.
BLOCK_CELLS = 4_000_000


def mean_draws(
    values: Floats, bounds: Bounds, n_draws: int, draws: np.random.Generator, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Draws of the lower and of the upper confidence distribution of means of bounded scores, each (n_draws, m).

    The weights of the n topics and of one further topic are uniform on the simplex (those of n + 1 exponential
    numbers). The further topic has the smallest possible score in the lower, the largest in the upper distribution. The
    α quantile of the lower distribution is a lower confidence limit of the mean at 1 - α for any distribution of
    scores within the bounds (Gaffke 2005). For scores of 0 and 1 it is the limit of Clopper and Pearson.

    - ``values``: shape (n, m)
    - ``bounds``: the smallest and the largest possible score
    - ``n_draws``: number of draws, which all columns share
    - ``draws``: the source of random numbers
    - ``weights``: sampling weights, shape (n,), for a weighted mean. The further topic has the largest of them. Equal
      weights by default

    Source: Gaffke: Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable, Mathematical Methods of Statistics 14, 2005; Learned-Miller and Thomas: A new confidence interval for the
    mean of a bounded random variable, arXiv 1905.06208, which conjectures validity for every n; no exception is known.
    """
    n, m = values.shape
    relative = np.ones(n + 1) if weights is None else np.append(weights, weights.max())
    low, high = np.empty((2, n_draws, m))
    step = max(1, BLOCK_CELLS // (n + 1))
    for start in range(0, n_draws, step):
        rows = slice(start, min(start + step, n_draws))
        drawn = draws.standard_exponential((rows.stop - start, n + 1)) * relative
        drawn /= drawn.sum(axis=1, keepdims=True)
        known_part, further = drawn[:, :n] @ values, drawn[:, n:]
        low[rows], high[rows] = known_part + further * bounds[0], known_part + further * bounds[1]
    # Rounding errors.
    return np.clip(low, *bounds), np.clip(high, *bounds)


def agreeing_limits(low: Floats, high: Floats, difference: Floats, rejected: Bools) -> tuple[Floats, Floats]:
    """Limits of differences that agree with a test of 0: extended to 0 if it is not rejected, cut at 0 if it is."""
    cut = rejected & (low <= 0) & (high >= 0)
    low, high = np.where(cut & (difference > 0), 0.0, low), np.where(cut & (difference <= 0), 0.0, high)
    return np.where(rejected, low, np.minimum(low, 0.0)), np.where(rejected, high, np.maximum(high, 0.0))


def constant_limits(value: Any, n: Any, bounds: Any, tails: Any) -> Floats:
    """Limits of the mean if n topics have the same score, those of :func:`bounded_limits` in closed form, (2, ...).

    ``x - (x - a)(1 - α^(1/n))`` and ``x + (b - x)(1 - α^(1/n))`` for scores between a and b.

    - ``value``: the score, shape (...)
    - ``n``: number of topics, a number or shape (...)
    - ``bounds``: the smallest and the largest possible score, broadcast with it; NaN is returned if they are infinite
    - ``tails``: the probabilities below both limits
    """
    low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    below, above = (
        1 - np.asarray(error, dtype=np.float64) ** (1 / n) for error in (tails[0], 1 - np.asarray(tails[1]))
    )
    with np.errstate(invalid="ignore"):
        limits = np.stack([value - (value - low) * below, value + (high - value) * above])
    return np.where(np.isfinite(low) & np.isfinite(high) & (value >= low) & (value <= high), limits, np.nan)


def bounded_limits(
    values: Floats,
    bounds: Bounds,
    tails: Any,
    n_draws: int,
    draws: np.random.Generator,
    weights: Floats | None = None,
) -> Floats:
    """Limits of intervals of means that cover at least their nominal level for any scores within the bounds, (2, m).

    - ``values``, ``bounds``, ``n_draws``, ``draws``, ``weights``: as for :func:`mean_draws`
    - ``tails``: the probabilities below both limits, shape (2,) or (2, m)

    Returns NaN if the bounds are unknown or a score is outside them.
    """
    limits = np.full((2, values.shape[1]), np.nan)
    if np.isfinite(bounds).all():
        inside = ((values >= bounds[0] - REPLICA_ROUNDING) & (values <= bounds[1] + REPLICA_ROUNDING)).all(axis=0)
        both = mean_draws(values[:, inside], bounds, n_draws, draws, weights)
        tails = np.broadcast_to(np.asarray(tails, dtype=np.float64).reshape(2, -1), limits.shape)[:, inside]
        for side, (drawn, tail) in enumerate(zip(both, tails, strict=True)):
            place = np.clip(np.ceil(tail * n_draws - 0.5).astype(np.int64), 0, n_draws - 1)
            limits[side, inside] = np.take_along_axis(np.sort(drawn, axis=0), place[None], axis=0)[0]
    return limits


def strata(keys: Words, n_draws: int, start: int = 0, stop: int | None = None) -> tuple[NDArray[Any], int]:
    """The stratum of each draw from ``start`` to ``stop``, shape (n_keys, stop - start), and the number of strata.

    The number is the next power of 2 from ``n_draws``, at least 2.

    The strata of a key are a permutation of all strata, of which draw b has the b-th one: rounds of ``x <- a x + c``,
    a odd, and ``x <- x xor (x >> bits/2)`` modulo a power of 2. So a key has every stratum once at most, and its
    numbers do not depend on other keys. McKay, Beckman and Conover, Technometrics 1979, for stratified samples.
    """
    n, word = 1 << max((n_draws - 1).bit_length(), 1), np.array(keys, dtype=np.uint64)
    kind: Any = np.uint16 if n <= 1 << 16 else np.uint32
    last, half = np.uint64(n - 1), kind(n.bit_length() // 2)
    x: NDArray[Any] = np.arange(start, n_draws if stop is None else stop).astype(kind)[None, :]
    for _ in range(_ROUNDS):
        word = mix(word + np.uint64(1))
        factor, summand = (part.astype(kind)[:, None] for part in (word & last | np.uint64(1), word >> np.uint64(32)))
        x = x * factor
        x += summand
        x &= kind(n - 1)
        x ^= x >> half
    return x, n


def uniforms(keys: Words, n_draws: int, start: int = 0, stop: int | None = None) -> Singles:
    """Uniform numbers in (0, 1], one in each stratum, shape (n_keys, stop - start), float32.

    Within its strata, a key has the same place in all draws, so that a probability below ``1/n_draws`` is met by one
    draw of some keys.
    """
    place = (mix(np.array(keys, dtype=np.uint64)) >> np.uint64(40)).astype(np.float32) + np.float32(0.5)
    x, n = strata(keys, n_draws, start, stop)
    u: Singles = x.astype(np.float32)
    u += (place * np.float32(2.0**-24))[:, None]
    u *= np.float32(1 / n)
    return u


def symmetric(
    keys: Words,
    n_draws: int,
    quantiles: NDArray[Any],
    start: int = 0,
    stop: int | None = None,
    *,
    opposite: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Numbers of a symmetric distribution, shape (n_keys, stop - start): the second half of all draws has those of the
    first half with opposite signs.

    ``quantiles``: the quantile in the middle of each stratum of half of the draws, or a function of it, of which
    ``opposite`` has the value at the quantile with the opposite sign, by default the negative one.
    """
    opposite = -quantiles if opposite is None else opposite
    stop, half = n_draws if stop is None else stop, (n_draws + 1) // 2
    parts = []
    if start < half:
        parts.append(quantiles.take(strata(keys, half, start, min(stop, half))[0]))
    if stop > half:
        parts.append(opposite.take(strata(keys, half, max(start, half) - half, stop - half)[0]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def gammas(keys: Words, n_draws: int, quantiles: Singles, shape: NDArray[Any]) -> Singles:
    """Gamma numbers with scale 1, shape (n_keys, n_draws); ``shape``: above 0, shape (n_keys, n_draws or 1).

    ``G(a) = G(a + 1) U^(1/a)``, where ``G(a) = a (1 - 1/(9 a) + z / (3 sqrt(a)))^3`` (Wilson and Hilferty, PNAS 1931),
    whose mean is right to .2 % and whose variance is right to .5 % from a shape of 1 on. ``quantiles``: normal ones,
    see :func:`symmetric`.
    """
    normal, uniform = symmetric(keys, n_draws, quantiles), uniforms(mix(np.array(keys, dtype=np.uint64)), n_draws)
    a = np.asarray(shape, dtype=np.float32)
    more = a + np.float32(1)
    root = normal / (np.float32(3) * np.sqrt(more))
    root += np.float32(1) - np.float32(1 / 9) / more
    np.maximum(root, np.float32(0), out=root)
    draw: Singles = root**3
    draw *= more
    draw *= np.exp(np.log(uniform) / a)
    return draw


def poissons(mean: Singles, uniform: Singles) -> NDArray[np.int32]:
    """Poisson numbers: quantiles at ``uniform``; of means above 16 by the Cornish-Fisher expansion."""
    zero = np.zeros(1, dtype=np.float32)
    return _recursive_quantiles(
        mean, mean, np.float32(1), np.exp(-mean), (np.broadcast_to(zero, mean.shape), mean), uniform
    )


def binomials(size: Any, prob: Singles, uniform: Singles) -> NDArray[np.int32]:
    """Binomial numbers, as :func:`poissons`; ``size`` (0 or more, also fractions) and ``prob`` below 1, shape (n, m).

    A fraction as size has the probabilities ``C(size, k) p^k (1 - p)^(size - k)`` as far as they are positive.
    """
    mean, odds = size * prob, prob / (np.float32(1) - prob)
    none = np.exp(size * np.log1p(-prob))
    return _recursive_quantiles(
        mean, mean * (1 - prob), 1 - 2 * prob, none, (-odds, (size + np.float32(1)) * odds), uniform
    )


def _recursive_quantiles(
    mean: Singles,
    variance: Singles,
    third: Any,
    none: Singles,
    ratio: tuple[Singles, Singles],
    uniform: Singles,
) -> NDArray[np.int32]:
    """Quantiles of distributions with ``P(k) = P(k - 1) (a + b/k)``.

    - ``mean``, ``variance``; ``third``: the third central moment in variances
    - ``none``: ``P(0)``
    - ``ratio``: a and b
    """
    counts = np.zeros(mean.shape, dtype=np.int32)
    large = mean > MOST_COUNTED
    if large.any():
        z = normal_quantile(np.minimum(uniform[large], 1 - 2.0**-24).astype(np.float64))
        skew = np.broadcast_to(third, mean.shape)[large]
        counts[large] = np.maximum(
            np.floor(mean[large] + z * np.sqrt(variance[large]) + skew * (z * z - 1) / 6 + 0.5), 0
        )
    at: Ints = np.flatnonzero((uniform > none) & ~large)
    m, left, term, a, b = (each.ravel()[at] for each in (mean, uniform, none, *ratio))
    left -= term
    number: NDArray[np.int32] = np.zeros(len(at), dtype=np.int32)
    flat, k = counts.reshape(-1), 0
    # Numbers whose distribution function is not yet reached.
    open_ = np.ones(len(at), dtype=bool)
    while len(at):
        k += 1
        number += open_
        term *= a + b / np.float32(k)
        # Rounding leaves a rest where the terms have become too small to reach it.
        open_ &= (left > term) & ((term > np.float32(1e-7)) | (m > k))
        left -= term
        # Selecting takes longer than computing with numbers that are not needed any more.
        if 2 * np.count_nonzero(open_) < len(at):
            flat[at] = number
            at, number = at[open_], number[open_]
            m, left, term, a, b = (each[open_] for each in (m, left, term, a, b))
            open_ = np.ones(len(at), dtype=bool)
    return counts

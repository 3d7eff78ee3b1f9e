"""The normal distribution: its distribution function and quantiles."""

from __future__ import annotations

from math import erfc, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Floats


# Polynomials of AS 241, from the highest power: numerator and denominator near the median, in tails, in far tails.
_CENTRE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
_TAIL = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)
_FAR_TAIL_POLYNOMIALS = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)
# Distances from the median, and roots of logarithms of tails, at which the polynomials change.
_MAX_CENTRE_DISTANCE, _MAX_TAIL_ROOT = 0.425, 5.0


def normal_cdf(z: Any) -> Floats:
    """The standard normal distribution function, ``erfc(-z/√2)/2``, of the shape of ``z``.

    >>> normal_cdf([0.0, 1.959963984540054]).round(3).tolist()
    [0.5, 0.975]
    """
    scaled = np.asarray(z, dtype=np.float64) * -sqrt(0.5)
    halved = np.fromiter(map(erfc, scaled.ravel().tolist()), np.float64, scaled.size)
    halved /= 2
    return halved.reshape(scaled.shape)


def normal_quantile(prob: Any) -> Floats:
    """Standard normal quantiles at probabilities, of the shape of ``prob``; infinite at 0 and 1, NaN outside.

    The relative error is about 1e-16.

    >>> normal_quantile([0.5, 0.975]).round(6).tolist()
    [0.0, 1.959964]

    Source: Wichura, Algorithm AS 241, Applied Statistics 37, 1988 (PPND16).
    """
    prob = np.asarray(prob, dtype=np.float64)
    centred = prob.ravel() - 0.5
    z = centred * _ratio(_CENTRE, _MAX_CENTRE_DISTANCE**2 - centred * centred)
    outer = np.flatnonzero(~(np.abs(centred) <= _MAX_CENTRE_DISTANCE))
    if len(outer):
        tail, sign = prob.ravel()[outer], np.sign(centred[outer])
        tail = np.where(sign > 0, 1 - tail, tail)
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(-np.log(tail))
        near = _ratio(_TAIL, root - 1.6)
        far = root > _MAX_TAIL_ROOT
        if far.any():
            near[far] = np.where(
                np.isinf(root[far]), np.inf, _ratio(_FAR_TAIL_POLYNOMIALS, np.minimum(root[far], 1e3) - _MAX_TAIL_ROOT)
            )
        z[outer] = sign * near
    return np.asarray(z.reshape(prob.shape))


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    """The ratio of two polynomials at x."""
    numerator, denominator = (_polynomial(each, x) for each in polynomials)
    # Arguments outside of a polynomial's range are replaced by callers.
    with np.errstate(invalid="ignore"):
        numerator /= denominator
    return numerator


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    value: Floats = np.full(x.shape, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value

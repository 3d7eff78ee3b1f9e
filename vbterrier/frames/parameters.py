"""Validation of parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def choice(name: str, value: Any, legal: Iterable[str]) -> str:
    """Return a parameter that is one of some words.

    Raises
    ------
    ParameterError
        Another value; suggests the nearest legal one.

    >>> choice("method", "softmx", ["softmax", "prior"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: method='softmx': wanted one of 'softmax', 'prior'. Did you mean softmax?
    """
    legal = list(legal)
    if not isinstance(value, str) or value not in legal:
        raise ParameterError(
            f"{name}={value!r}: wanted one of {', '.join(map(repr, legal))}.{nearest(str(value), legal)}"
        )
    return value


def number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return a parameter that is a finite number from ``low`` to ``high``, open ends excluded.

    Raises
    ------
    ParameterError
        Any other value.

    >>> number("temperature", 2, low=0, open_low=True)
    2.0
    >>> number("damping", 1, low=0, high=1, open_low=True, open_high=True)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: damping=1: wanted a number above 0 and below 1
    """
    try:
        made = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        made = math.nan
    outside = made < low or made > high or (open_low and made == low) or (open_high and made == high)
    if math.isfinite(made) and not outside:
        return made
    bounds = [f"{'above' if open_low else 'of at least'} {low:g}"] if math.isfinite(low) else []
    bounds += [f"{'below' if open_high else 'at most'} {high:g}"] if math.isfinite(high) else []
    raise ParameterError(f"{name}={value!r}: wanted a number {' and '.join(bounds) or 'that is finite'}")


def numbers(name: str, given: Mapping[str, Any] | None, *, low: float) -> dict[str, float] | None:
    """Return a parameter that maps words to numbers of at least ``low``.

    Raises
    ------
    ParameterError
        Any other value.

    >>> numbers("weights", {"state": 2}, low=0)
    {'state': 2.0}
    """
    if given is None:
        return None
    if not hasattr(given, "items"):
        raise ParameterError(f"{name}={given!r}: wanted a mapping of names to numbers")
    return {str(key): number(f"{name}[{key!r}]", value, low=low) for key, value in given.items()}


def whole(name: str, value: Any, *, low: int = 1, high: int | None = None, meaning: str = "") -> int:
    """Return a parameter that is an integer of at least ``low`` and at most ``high``.

    Parameters
    ----------
    name
        The parameter.
    value
        Its value.
    low, high
        Its range.
    meaning
        Addition to the message, as ", as in @10".

    Raises
    ------
    ParameterError
        A fraction, text, True or False; an integer out of range.

    >>> whole("cutoff", 5)
    5
    >>> whole("n", 0)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: n=0: wanted a whole number of at least 1
    """
    is_whole = hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_))
    if not is_whole or value.__index__() < low or (high is not None and value.__index__() > high):
        wanted = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(f"{name}={value!r}: wanted a whole number {wanted}{meaning}")
    made: int = value.__index__()
    return made


def whole_or_none(name: str, value: Any, *, low: int = 1) -> int | None:
    """Return a parameter that is an integer of at least ``low``, or ``None``.

    >>> whole_or_none("cutoff", None)
    """
    return None if value is None else whole(name, value, low=low)

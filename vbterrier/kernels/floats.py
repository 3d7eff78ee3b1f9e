"""Handling of floating-point errors, which callers may have changed."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


def usual_errors() -> np.errstate:
    """Return a context with NumPy's defaults: a tiny probability is 0 for any ``np.errstate`` of callers.

    >>> with np.errstate(all="raise"), usual_errors():
    ...     float(np.exp(np.float64(-1000)))
    0.0
    """
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


def with_usual_errors(call: Callable[P, T]) -> Callable[P, T]:
    """Run a call in :func:`usual_errors`."""

    @wraps(call)
    def in_usual_errors(*args: P.args, **options: P.kwargs) -> T:
        with usual_errors():
            return call(*args, **options)

    return in_usual_errors

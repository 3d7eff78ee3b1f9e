"""Parameters of measures: declared once, checked and made canonical when a measure is made."""

from __future__ import annotations

import math
import operator
from typing import Any

from ir_measures.measures.base import ParamInfo

from vbterrier.errors import ParameterError, nearest

_NOTHING = object()
# Limits from here on are there to refuse what no memory holds, and are no news to anyone.
_ENDLESS = 1e6
MOST_RANKS = 1_000_000


class Param(ParamInfo):  # type: ignore[misc]
    """One parameter of a measure.

    Parameters
    ----------
    dtype
        ``str``, ``int``, ``float`` or ``bool``.
    default
        The value when it is not given; parameters without one are left out of the measure altogether.
    choices
        Legal values.
    low, high
        Legal range of numbers, both included.
    desc
        A line for the documentation.
    """

    def __init__(
        self,
        dtype: type,
        default: Any = _NOTHING,
        *,
        choices: tuple[Any, ...] = (),
        low: float | None = None,
        high: float | None = None,
        desc: str = "",
    ) -> None:
        given = {} if default is _NOTHING else {"default": default}
        super().__init__(dtype=dtype, desc=desc, **({"choices": choices} if choices else {}), **given)
        self.legal, self.low, self.high = choices, low, high

    def coerce(self, name: str, value: Any) -> Any:
        """The canonical form of a value: 1 and 1.0 are the same alpha.

        Raises
        ------
        ParameterError
            Another type, a value outside the range or the choices.
        """
        try:
            made = self._made(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(f"{name}={value!r}: wanted {self._wanted()}") from error
        if self.legal and made not in self.legal:
            raise ParameterError(
                f"{name}={value!r}: wanted {self._wanted()}.{nearest(str(value), map(str, self.legal))}"
            )
        if isinstance(made, (int, float)) and not (math.isfinite(made) and self._in_range(made)):
            raise ParameterError(f"{name}={value!r}: wanted {self._wanted()}")
        return made

    def _made(self, value: Any) -> Any:
        if self.dtype is bool or isinstance(value, bool):
            if not (self.dtype is bool and isinstance(value, bool)):
                raise TypeError
            return value
        if self.dtype is int:
            return operator.index(value)
        if self.dtype is str and not isinstance(value, str):
            raise TypeError
        # -0.0 is 0.0.
        return self.dtype(value) + 0.0 if self.dtype is float else self.dtype(value)

    def _in_range(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _wanted(self) -> str:
        if self.legal:
            return f"one of {', '.join(map(repr, self.legal))}"
        kind = {str: "a text", int: "a whole number", float: "a number", bool: "True or False"}[self.dtype]
        if self.low is not None and self.high is not None and self.high < _ENDLESS:
            return f"{kind} from {self.low:g} to {self.high:g}"
        return kind if self.low is None else f"{kind} of at least {self.low:g}"


CUTOFF = Param(int, low=1, high=MOST_RANKS, desc="ranking cutoff k, as in @10; the whole ranking without it")

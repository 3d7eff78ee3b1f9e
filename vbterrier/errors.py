"""Exceptions, warnings, and validation of parameters."""

from __future__ import annotations

import contextlib
import copyreg
import importlib
import math
import os
import re
import reprlib
import sys
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy as np

    T = TypeVar("T")

# The public names; the others validate parameters of this package.
__all__ = ["DegenerateWarning", "FileError", "InputError", "ParameterError", "ServiceError", "VBTerrierError"]


class VBTerrierError(Exception):
    """Base class of all errors of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled without calling __init__, whose parameters differ from args: errors cross processes.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class InputError(VBTerrierError, ValueError):
    """Invalid data: a frame, a row, an id, a probability."""


class FileError(InputError):
    """A file that cannot be read, with its path and the number of the invalid line, if any.

    Parameters
    ----------
    path
        The file.
    message
        What was wanted, what was found, and the remedy.
    line
        1-based number of the invalid line; ``None`` if the error concerns the whole file.
    """

    def __init__(self, path: str | Path, message: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        where = printable(self.path) + (f":{line}" if line is not None else "")
        super().__init__(f"{where}: {message}")


class ParameterError(VBTerrierError, ValueError):
    """A parameter that does not exist or has an invalid value."""


class ServiceError(VBTerrierError):
    """A network service that did not answer, or whose answer cannot be read.

    Parameters
    ----------
    endpoint
        The address of the request, without secrets.
    message
        What was wanted, what was found, and the remedy.
    status
        The HTTP status of the last answer; ``None`` without an answer.
    """

    def __init__(self, endpoint: str, message: str, *, status: int | None = None) -> None:
        self.endpoint = endpoint
        self.status = status
        super().__init__(message)


class DegenerateWarning(UserWarning):
    """A result that is correct but less informative than it seems: an empty run, repeated judgments, many ties."""


# A warning on leaving a context manager passes through contextlib.
_INTERNAL = (str(Path(__file__).parent) + os.sep, contextlib.__file__)
_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)
# The messages of the outermost call, which its result keeps.
_ISSUED: ContextVar[list[str] | None] = ContextVar("issued", default=None)


def heard(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Return the result of a call and the messages of its warnings, which are not issued; for processes and threads."""
    messages: list[str] = []
    token = _HEARD.set(messages)
    try:
        return call(), messages
    finally:
        _HEARD.reset(token)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Issue none of the warnings of a block, which others have given already."""
    token = _HEARD.set([])
    try:
        yield
    finally:
        _HEARD.reset(token)


@contextlib.contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the messages of the warnings that a block issues."""
    messages: list[str] = []
    token = _ISSUED.set(messages)
    try:
        yield messages
    finally:
        _ISSUED.reset(token)


# What warnings say of estimates whose intervals may miss the value, which answers show as serious caveats.
CAN_BE_WRONG = "can be wrong by more than their intervals"


def warn(message: str) -> None:
    """Warn with ``DegenerateWarning`` at the line of the caller, the first frame outside this package."""
    if (messages := _HEARD.get()) is not None:
        messages.append(message)
        return
    if (of_call := _ISSUED.get()) is not None:
        of_call.append(message)
    level, frame = 1, sys._getframe()  # noqa: SLF001 - what warnings itself walks
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INTERNAL):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DegenerateWarning, stacklevel=level)


def printable(text: object) -> str:
    r"""Return text with control characters escaped, since ids from files must not control a terminal.

    >>> print(printable("q\x1b[31m1"))
    q\x1b[31m1
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(text))


# Plain signs for those of tables, pictures and numbers that code pages of consoles lack.
_PLAIN_SIGNS = str.maketrans("─│┊╎├┤┬◂▸●✓✗−", "-|||[]+<>*+x-")


def encodable(text: str, encoding: str | None) -> str:
    r"""Replace characters that an encoding lacks by plain ones, or by their escapes: no name and no minus is lost.

    >>> print(encodable("−0.1 ├─●─┤ 東", "cp1252"))
    -0.1 [-*-] \u6771
    """
    name = encoding or "utf-8"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        lacking = {sign: sign.translate(_PLAIN_SIGNS) for sign in set(text) if not sign.encode(name, "ignore")}
        return text.translate(
            {ord(sign): one.encode("ascii", "backslashreplace").decode() for sign, one in lacking.items()}
        )
    return text


class _Excerpts(reprlib.Repr):
    """Short representations; tables and arrays are described, also those in lists and mappings."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxlong = self.maxstring = _EXCERPT_LENGTH

    def repr1(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and shape:
            return f"<{type(x).__name__} of {' x '.join(map(str, shape))}>"
        return super().repr1(x, level)


# The length of the text of a value in a message.
_EXCERPT_LENGTH = 100


def excerpt(value: object) -> str:
    """Return the value of a parameter for a message: its ``repr`` in one short line, a table by its kind and size.

    >>> import numpy as np
    >>> excerpt("softmx"), excerpt(np.zeros((300, 2))), excerpt(list(range(1000)))
    ("'softmx'", '<ndarray of 300 x 2>', '[0, 1, 2, 3, 4, 5, ...]')
    """
    text = " ".join(_Excerpts().repr(value).split())
    return text if len(text) <= _EXCERPT_LENGTH else f"{text[: _EXCERPT_LENGTH - 3]}..."


def nearest(name: object, candidates: Iterable[str]) -> str:
    """Suggest the closest legal word to a wrong one, as the end of a message.

    >>> nearest("ndcg", ["nDCG", "AP"])
    ' Did you mean nDCG?'
    >>> nearest("qwertz", ["nDCG", "AP"])
    ''
    """
    # Importing difflib takes 5 ms and is needed only for errors.
    import difflib

    folded = {k.casefold(): k for k in candidates}
    close = difflib.get_close_matches(str(name)[:_EXCERPT_LENGTH].casefold(), folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[close[0]]}?" if close else ""


# Verbs of messages about several things, and about one.
_VERBS = {"are": "is", "have": "has", "lose": "loses", "always score": "always scores", "repeat": "repeats"}
_VERBS |= {"judge": "judges", "count": "counts", "lack": "lacks", "give": "gives"}


def agreeing(n: int, words: str) -> str:
    """Return a number and a sentence about things in the plural, in the singular for 1.

    >>> print(agreeing(2, "topics are left out"), agreeing(1, "topics are not judged and have score 0"), sep=", ")
    2 topics are left out, 1 topic is not judged and has score 0
    >>> print(agreeing(1, "aliases"), agreeing(1, "queries have no intents"), agreeing(1, "rows repeat"), sep=", ")
    1 alias, 1 query has no intents, 1 row repeats
    """
    if n != 1:
        return f"{n} {words}"
    noun, _, rest = words.partition(" ")
    for many, one in _VERBS.items():
        rest = re.sub(rf"\b{many}\b", one, rest)
    # Entities and aliases.
    noun = f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("es" if noun.endswith("ses") else "s")
    return f"1 {noun} {rest}".rstrip()


def examples(ids: Iterable[object], n: int = 3) -> str:
    """Return the first few of some ids, quoted for a message.

    >>> examples(["q1", "q2", "q3", "q4"])
    "'q1', 'q2', 'q3', ..."
    >>> examples([])
    'none'
    """
    # The ids may be an iterator over millions of rows.
    from itertools import islice

    first = list(islice(iter(ids), n + 1))
    if not first:
        return "none"
    return ", ".join(repr(i) for i in first[:n]) + (", ..." if len(first) > n else "")


def module_of_extra(name: str, extra: str) -> Any:
    """Import an optional package; the error names the extra that installs it.

    >>> module_of_extra("no_such_package", "linkers")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: no_such_package is not installed; pip install 'vbterrier[linkers]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"{name} is not installed; pip install 'vbterrier[{extra}]'", name=name) from error


def choice(name: str, value: Any, legal: Iterable[str]) -> str:
    """Return a parameter that is one of some words; the error suggests the nearest one.

    >>> choice("method", "softmx", ["softmax", "prior"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: method='softmx': wanted one of 'softmax', 'prior'. Did you mean softmax?
    """
    legal = list(legal)
    if not isinstance(value, str) or value not in legal:
        raise ParameterError(
            f"{name}={excerpt(value)}: wanted one of {', '.join(map(repr, legal))}.{nearest(str(value), legal)}"
        )
    return value


def require_system(name: str, value: Any, systems: Iterable[Any]) -> None:
    """Raise an error unless a parameter is the name of one of some systems.

    >>> require_system("baseline", "BM25", ["bm25", "dense"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: baseline='BM25': no such system; found 'bm25', 'dense'. Did you mean bm25?
    """
    names = list(systems)
    try:
        is_known = value in set(names)
    except TypeError:  # frames and lists have no hash
        is_known = False
    if not is_known:
        raise ParameterError(
            f"{name}={excerpt(value)}: no such system; found {examples(names)}.{nearest(value, map(str, names))}"
        )


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
    hint = percent(made) if high == 1 else ""
    if math.isinf(made) and math.isinf(high if made > 0 else low):
        raise ParameterError(f"{name}={excerpt(value)}: wanted a finite number {' and '.join(bounds)}".rstrip())
    raise ParameterError(f"{name}={excerpt(value)}: wanted a number {' and '.join(bounds) or 'that is finite'}{hint}")


def float_array(what: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what a caller's function gave as an array of numbers.

    >>> float_array("judge", [0.5, 1])
    array([0.5, 1. ])
    >>> float_array("judge", "high")
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: judge: wanted numbers, as a list or an array, found a str: 'high'
    """
    # The help of the command line needs this module, and twice its time if that imports NumPy.
    import numpy as np

    problem = f"{what}: wanted numbers, as a list or an array, found a {type(values).__name__}"
    if isinstance(values, (str, bytes)):
        raise InputError(f"{problem}: {values!r:.40}")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{problem} ({error})") from error


def percent(value: float) -> str:
    """Return the end of a message that asks about a share above 1 if it was meant in per cent.

    >>> percent(95), percent(-1)
    ('; did you mean 0.95, 95 per cent?', '')
    """
    return f"; did you mean {value / 100:g}, {value:g} per cent?" if 1 < value < 100 else ""  # noqa: PLR2004


def numbers(name: str, mapping: Mapping[str, Any] | None, *, low: float) -> dict[str, float] | None:
    """Return a parameter that maps words to numbers of at least ``low``.

    >>> numbers("weights", {"state": 2}, low=0)
    {'state': 2.0}
    """
    if mapping is None:
        return None
    if not hasattr(mapping, "items"):
        raise ParameterError(f"{name}={excerpt(mapping)}: wanted a mapping of names to numbers")
    return {str(key): number(f"{name}[{key!r}]", value, low=low) for key, value in mapping.items()}


def whole(name: str, value: Any, *, low: int = 1, high: int | None = None, meaning: str = "") -> int:
    """Return a parameter that is an integer of at least ``low`` and at most ``high``; ``meaning`` ends the message.

    >>> whole("cutoff", 5)
    5
    >>> whole("n", 0)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: n=0: wanted a whole number of at least 1
    """
    import numpy as np

    is_whole = hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_)) and not np.ndim(value)
    if not is_whole or value.__index__() < low or (high is not None and value.__index__() > high):
        interval = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(f"{name}={excerpt(value)}: wanted a whole number {interval}{meaning}")
    made: int = value.__index__()
    return made


def check_level(level: float) -> None:
    """Raise an error unless a level is a number strictly between 0 and 1."""
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        hint = percent(level) if isinstance(level, (int, float)) else ""
        raise ParameterError(f"level={level}: wanted a number between 0 and 1, such as 0.95{hint}")


def settings_parameter(name: str, kind: type[T], value: T | None) -> T:
    """Return a parameter that holds settings of one kind, by default those of the kind.

    >>> from vbterrier.settings import Inference
    >>> settings_parameter("inference", Inference, {"level": 0.9})
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: inference: wanted settings as Inference(...), found dict
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ParameterError(f"{name}: wanted settings as {kind.__name__}(...), found {type(value).__name__}")
    return value


def path_parameter(name: str, value: Any) -> Path:
    """Return a parameter that names a file or a folder, as text or as an object of the file system.

    >>> path_parameter("path", "means.csv").name
    'means.csv'
    >>> path_parameter("path", None)
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: path=None: wanted the name of a file or folder, some text or a pathlib.Path
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text:
        raise ParameterError(
            f"{name}={excerpt(value)}: wanted the name of a file or folder, some text or a pathlib.Path"
        )
    try:
        is_name = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise ParameterError(
            f"{name}={excerpt(value)}: wanted a name that a file can have, without NUL and half characters"
        )
    return Path(text)


def whole_or_none(name: str, value: Any, *, low: int = 1) -> int | None:
    """Return a parameter that is an integer of at least ``low``, or ``None``."""
    return None if value is None else whole(name, value, low=low)

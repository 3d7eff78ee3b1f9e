"""Exceptions and warnings of the package."""

from __future__ import annotations

import copyreg
import importlib
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class VBTerrierError(Exception):
    """The root of all errors that this package raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By what was made, not by how: other processes hand errors on, whatever parameters they were made of.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class InputError(VBTerrierError, ValueError):
    """Data that cannot be evaluated: a frame, a row, an id, a probability."""


class FileError(InputError):
    """A file that cannot be read, with its path and, where one is to blame, its line.

    Parameters
    ----------
    path
        The file.
    message
        What was wanted, what was found, and the remedy.
    line
        1-based number of the offending line; ``None`` when the whole file is to blame.
    """

    def __init__(self, path: str | Path, message: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        where = printable(self.path) + (f":{line}" if line is not None else "")
        super().__init__(f"{where}: {message}")


class ParameterError(VBTerrierError, ValueError):
    """A measure, stage or call with a parameter that does not exist or has no legal value."""


class ServiceError(VBTerrierError):
    """A service on the network that did not answer, or not with what its clients can read.

    Parameters
    ----------
    endpoint
        The address that was asked, without secrets.
    message
        What was wanted, what was found, and the remedy.
    status
        The HTTP status of the last answer; ``None`` when there was none.
    """

    def __init__(self, endpoint: str, message: str, *, status: int | None = None) -> None:
        self.endpoint = endpoint
        self.status = status
        super().__init__(message)


class DegenerateWarning(UserWarning):
    """A number is right but says less than it seems to: an empty run, repeated judgments, many ties."""


_PACKAGE = str(Path(__file__).parent)


def warn(message: str) -> None:
    """Warn with ``DegenerateWarning`` at the line of the caller, the first frame outside this package."""
    level, frame = 1, sys._getframe()  # noqa: SLF001 - what warnings itself walks
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DegenerateWarning, stacklevel=level)


def printable(text: object) -> str:
    r"""Text with control characters spelt out: an id from a file must not steer a terminal.

    >>> print(printable("q\x1b[31m1"))
    q\x1b[31m1
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(text))


def nearest(name: object, known: Iterable[str]) -> str:
    """Name the closest legal word to a wrong one, which need not be text, as the tail of a message.

    >>> nearest("ndcg", ["nDCG", "AP"])
    ' Did you mean nDCG?'
    >>> nearest("qwertz", ["nDCG", "AP"])
    ''
    """
    # difflib costs 5 ms to import and is needed only on the way to an error.
    import difflib

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    return f" Did you mean {folded[close[0]]}?" if close else ""


def examples(ids: Iterable[object], n: int = 3) -> str:
    """The first few of some ids, quoted, for a message.

    >>> examples(["q1", "q2", "q3", "q4"])
    "'q1', 'q2', 'q3', ..."
    """
    # No more is taken than is shown: the ids may come from millions of rows.
    from itertools import islice

    first = list(islice(iter(ids), n + 1))
    return ", ".join(repr(i) for i in first[:n]) + (", ..." if len(first) > n else "")


def module_of_extra(name: str, extra: str) -> Any:
    """Import an optional package, or say how to install it.

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

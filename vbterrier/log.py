"""Logging and progress bars."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    T = TypeVar("T")


NAME = "vbterrier"
# Without it, Python would print warnings by itself; where messages go is for the application to say.
logging.getLogger(NAME).addHandler(logging.NullHandler())


@contextmanager
def timed(log: logging.Logger, what: str, *arguments: object, level: int = logging.INFO) -> Iterator[list[str]]:
    """Say what was done and how long it took, when it is done; nothing of what fails, which is said by its error.

    Parameters
    ----------
    log
        That of the module.
    what, arguments
        The message, with a place for each argument, which may hold anything.
    level
        How much it matters.

    Yields
    ------
    list of str
        What is found on the way, to be said behind it.

    >>> with timed(logging.getLogger("vbterrier.example"), "read %s", "run") as found:
    ...     found.append("3 rows")
    """
    found: list[str] = []
    started = time.perf_counter()
    yield found
    if log.isEnabledFor(level):
        told = "".join(f", {part}" for part in found)
        said = [printable(argument) for argument in arguments]
        log.log(level, f"{what}%s (%.2f s)", *said, told, time.perf_counter() - started)  # noqa: G004 - a constant


def is_seen() -> bool:
    """Whether anybody sees a bar: standard error is a terminal, or this is a notebook."""
    return is_notebook() or bool(sys.stderr is not None and sys.stderr.isatty())


def is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter's."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


def bar(
    items: Iterable[Any] | None,
    what: str,
    *,
    shown: bool = True,
    total: int | None = None,
    unit: str = "it",
    **options: Any,
) -> Any:
    """A bar over items, or one that its owner moves with ``update`` where there are none; it goes when it ends.

    Parameters
    ----------
    items
        What is worked on, one after the other.
    what, unit
        What the bar says of the work, and of an item.
    shown
        Whether to show it, where anybody would see it.
    total
        How many items there are, where they do not know it.
    **options
        Others of tqdm's.

    Examples
    --------
    >>> list(bar([1, 2], "counting", shown=False))
    [1, 2]
    """
    if not (shown and is_seen()):
        from tqdm.std import tqdm as silent

        return silent(items, total=total, disable=True)
    with warnings.catch_warnings():
        # A notebook without widgets gets a bar of text, which is as good.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        return tqdm(items, desc=what or None, total=total, unit=unit, leave=False, **options)


def tracked(items: Iterable[T], what: str, *, shown: bool, total: int | None = None, unit: str = "it") -> Iterable[T]:
    """The same items behind a :func:`bar`, or as they are where nobody would see one.

    >>> tracked([1, 2], "counting", shown=False)
    [1, 2]
    """
    if not (shown and is_seen()):
        return items
    seen: Iterable[T] = bar(items, what, total=total, unit=unit)
    return seen

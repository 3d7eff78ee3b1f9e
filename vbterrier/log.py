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
# Applications choose where messages go; without this handler Python would print warnings by default.
logging.getLogger(NAME).addHandler(logging.NullHandler())


@contextmanager
def log_elapsed(log: logging.Logger, what: str, *arguments: object) -> Iterator[list[str]]:
    """Log a message with the elapsed time when the block ends; nothing is logged if it raises.

    Control characters of the arguments are escaped. Yields a list, to which the block appends parts of the message.
    """
    details: list[str] = []
    started = time.perf_counter()
    yield details
    if log.isEnabledFor(logging.INFO):
        more = "".join(f", {part}" for part in details)
        shown = [printable(argument) for argument in arguments]
        log.info(f"{what}%s (%.2f s)", *shown, more, time.perf_counter() - started)  # noqa: G004 - a constant


def is_seen() -> bool:
    """Return True in a notebook, or if standard error is a terminal."""
    return is_notebook() or bool(sys.stderr is not None and sys.stderr.isatty())


def is_notebook() -> bool:
    """Return True in a Jupyter kernel."""
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
    """Return a progress bar over items, or, for ``None``, one that callers advance with ``update``.

    ``shown``: show the bar in notebooks and terminals. ``options``: further parameters of ``tqdm``.
    """
    if not (shown and is_seen()):
        from tqdm.std import tqdm as silent

        return silent(items, total=total, disable=True)
    with warnings.catch_warnings():
        # Without ipywidgets, tqdm warns and shows a text bar.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        return tqdm(items, desc=what or None, total=total, unit=unit, leave=False, **options)


def tracked_items(
    items: Iterable[T], what: str, *, shown: bool, total: int | None = None, unit: str = "it"
) -> Iterable[T]:
    """Return the items with a progress :func:`bar`, or unchanged if it would not be visible."""
    if not (shown and is_seen()):
        return items
    seen: Iterable[T] = bar(items, what, total=total, unit=unit)
    return seen

"""Bars of progress on standard error, where somebody sees them: terminals and notebooks, never pipes or files."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    T = TypeVar("T")


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

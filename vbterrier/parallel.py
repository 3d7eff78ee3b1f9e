"""Long work: in one process or in several, and how far it is. The only home of joblib."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    T = TypeVar("T")
    R = TypeVar("R")


def mapped(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    n_jobs: int = 1,
    progress: bool = False,
    description: str = "",
) -> Iterator[R]:
    """The result of every item, in their order, each as soon as it and those before it are done.

    Parameters
    ----------
    function
        Of one item; with several processes it is pickled, so no lambda. Its results must depend on the item alone.
    items
        What to work on.
    n_jobs
        Processes; -1 for as many as there are processors.
    progress, description
        Show a progress bar, and what it says.

    Raises
    ------
    ParameterError
        ``n_jobs`` is no whole number of at least 1, nor -1.

    Notes
    -----
    What the function holds is pickled for every item; what is large belongs into a :class:`Shared`.

    Examples
    --------
    >>> list(mapped(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ParameterError(f"n_jobs={n_jobs!r}: wanted a whole number of at least 1, or -1 for all processors")
    return iter(tracked(_results(function, items, n_jobs), description, shown=progress, total=len(items)))


def _results(function: Callable[[T], R], items: Sequence[T], n_jobs: int) -> Iterator[R]:
    if n_jobs == 1 or len(items) < 2:  # noqa: PLR2004 - one item keeps one process busy
        yield from map(function, items)
        return
    import joblib

    # One item at a time: what is done is handed on at once.
    workers = joblib.Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
    yield from workers(joblib.delayed(function)(item) for item in items)


def tracked(items: Iterable[T], what: str, *, shown: bool, total: int | None = None, unit: str = "it") -> Iterable[T]:
    """The same items, with a bar on standard error that says how far they are and goes when they end.

    Parameters
    ----------
    items
        What is worked on, one after the other.
    what, unit
        What the bar says of the work, and of an item.
    shown
        Whether to show it.
    total
        How many items there are, where they do not know it.

    Examples
    --------
    >>> list(tracked([1, 2], "counting", shown=False))
    [1, 2]
    """
    if not shown:
        return items
    from tqdm.auto import tqdm

    bar: Iterable[T] = tqdm(items, desc=what or None, total=total, unit=unit, leave=False)
    return bar


class Shared:
    """A value that several processes need: written once, read once by each, and kept there.

    A context: behind it the file is gone. In one process nothing is written.

    Parameters
    ----------
    value
        Anything that can be pickled. What a process does to its value stays there.

    Examples
    --------
    >>> with Shared([1, 2]) as shared:
    ...     shared.value
    [1, 2]
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Shared:  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import joblib

        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="vbterrier-")
            joblib.dump(self.value, f"{self._folder.name}/shared")
        return _read, (f"{self._folder.name}/shared",)


# What this process has read: the last alone, so that a process that lives long does not collect all.
_kept: dict[str, Shared] = {}


def _read(path: str) -> Shared:
    import joblib

    if path not in _kept:
        _kept.clear()
        _kept[path] = Shared(joblib.load(path, mmap_mode="r"))
    return _kept[path]
